"""The benchmark of the engine: peers give what hand-written NumPy gives, and the report says what falls short.

Nothing here looks at how long something took.
"""

from __future__ import annotations

import doctest
import importlib
import json
import os
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autodiff_lab import events, simulated
from benchmarks import engine, engine_report
from benchmarks.engine import IN_WORDS, PEERS, TARGETS
from benchmarks.engine_report import HAND, OURS, OWN, PLAN, TORCH, Report, Row, Target, headline
from benchmarks.peer_processes import (
    BLAS_THREADS,
    WORKLOADS,
    Disagreement,
    Peer,
    Setting,
    agree,
    data_of,
    fresh,
    lacks,
    pinned,
    reference,
    steady,
)

FOLDER = Path(engine.__file__).parent / "peers"
THERE = {name: importlib.import_module(peer.module) for name, peer in PEERS.items() if peer.is_installed}
QUICK = [name for name in WORKLOADS if name != "w6b"]  # w6a is the same chain, a tenth as long
ON_A_DEVICE = [workload for workload, setting in TARGETS if setting.device != "cpu"]


# --------------------------------------------------------------------------------------------------------------- peers


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("case.py", "c50c13ddb5463f16d6d2dfbda74667b8b74957bd2dade10b93bbac9b8ae0ddeb"),
        ("hand.py", "4683bf4af6419c3c11c3db9ea58c275364e28a7e37835da84e6d7b85c0e122a6"),
        ("workloads.py", "1e2a6d40bb16fa9f718b7d7563b9789a89559408f85e338b02295d7816c74a2c"),
    ],
)
def test_what_everything_is_compared_with_stays_as_it_was_given(name: str, digest: str) -> None:
    assert sha256((FOLDER / name).read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("workload", QUICK)
def test_every_peer_that_is_installed_gives_what_hand_written_numpy_gives(workload: str) -> None:
    expected, took_part = reference(workload), set()
    for name, peer in THERE.items():
        if not lacks(peer, workload, Setting()):
            result = getattr(peer, workload)(data_of(workload, Setting())).result()
            agree(workload, name, result, expected)
            took_part.add(name)
            if name in OWN:
                dtypes = {np.asarray(value).dtype.name for value in result.values() if np.ndim(value)}
                assert dtypes - {"float64" if "losses" in result else ""} <= {WORKLOADS[workload].dtype}
    assert {OURS, HAND} <= took_part


def test_whatever_has_a_target_is_among_ours() -> None:
    for (workload, setting), targets in TARGETS.items():
        assert not [name for name in targets if lacks(THERE[name], workload, Setting(setting.threads))]


@pytest.mark.slow
@pytest.mark.parametrize("name", [OURS, PLAN])
@pytest.mark.parametrize("workload", ON_A_DEVICE)
def test_rows_of_a_gpu_compute_on_the_device_that_they_name(
    workload: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated.device(0), "memory_limit", 1 << 30)
    setting = Setting(device="sim:0")
    assert not lacks(THERE[name], workload, setting)
    with events.listen() as told:
        result = getattr(THERE[name], workload)(data_of(workload, setting)).result()
    agree(workload, name, result, reference(workload))
    back = [event for event in told if isinstance(event, events.Transferred) and event.target == "cpu"]
    assert len(back) >= len(result)


def test_a_peer_says_what_it_lacks() -> None:
    hand = THERE[HAND]
    assert lacks(hand, "w2", Setting()) == ""
    assert lacks(hand, "w2", Setting(device="cuda:0")) == "no device cuda:0"
    assert lacks(THERE[PLAN], "w6b", Setting()) == "lacks it"
    assert lacks(THERE[OURS], "w2", Setting(device="cuda:99")) == "no device cuda:99"


@pytest.mark.parametrize("wrong", [1e-6, np.nan])
def test_a_wrong_gradient_stops_the_benchmark(wrong: float) -> None:
    expected = reference("w2")
    result = {key: np.array(value) for key, value in expected.items()}
    agree("w2", "a peer", result, expected)
    result["p3"].flat[5] += wrong
    with pytest.raises(Disagreement, match=r"w2: a peer disagrees on p3 by .* \(allowed 1e-08\)"):
        agree("w2", "a peer", result, expected)


# ----------------------------------------------------------------------------------------------------------- processes

ABSENT = {"a peer that is not there": Peer("no_module", "no_package_of_this_name")}


@pytest.mark.parametrize("threads", [1, 2])
def test_processes_inherit_their_cores_and_blas_threads(threads: int) -> None:
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0}
    before = dict(os.environ)
    program = "import os; print(len(getattr(os, 'sched_getaffinity', lambda _: {0})(0)), *map(os.environ.get, %r))"
    with pinned(threads):
        command = [sys.executable, "-c", program % (BLAS_THREADS,)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert printed == [str(min(threads, len(cores))), *[str(threads)] * len(BLAS_THREADS)]
    assert dict(os.environ) == before
    assert not hasattr(os, "sched_getaffinity") or os.sched_getaffinity(0) == cores


@pytest.mark.slow
def test_a_row_has_a_figure_for_each_round_of_each_peer_that_took_part() -> None:
    peers = {name: PEERS[name] for name in (OURS, PLAN, HAND)} | ABSENT
    figures, left_out, _ = steady(peers, "w2", Setting(), rounds=2, seconds=0.001)
    assert set(figures) == {OURS, PLAN, HAND}
    assert len({len(rounds) for rounds in figures.values()}) == 1
    assert all(len(rounds) >= 2 and min(rounds) > 0 for rounds in figures.values())
    assert left_out == {"a peer that is not there": "not installed"}


@pytest.mark.slow
def test_a_deep_chain_is_measured_once_in_a_process_with_the_memory_that_it_adds() -> None:
    peers = {name: PEERS[name] for name in (OURS, PLAN, HAND)} | ABSENT
    figures, left_out, _ = fresh(peers, "w6a", Setting(), rounds=1)
    assert left_out == {"a peer that is not there": "not installed", PLAN: "lacks it"}
    nodes = WORKLOADS["w6a"].ops
    for rounds in figures.values():
        for seconds, added in rounds:
            assert seconds > 0
            assert 100 * nodes < added < 2000 * nodes
    assert set(figures) == {OURS, HAND}


# -------------------------------------------------------------------------------------------------------------- report


def row(**changes: Any) -> Row:
    """A made-up row of three rounds."""
    parts: dict[str, Any] = {
        "name": "w2",
        "title": "a small perceptron",
        "setting": "one core, CPU time",
        "figures": {
            OURS: [40e-6, 60e-6, 50e-6],
            PLAN: [20e-6, 20e-6, 20e-6],
            HAND: [40e-6, 40e-6, 40e-6],
            TORCH: [200e-6, 200e-6, 200e-6],
            "HIPS autograd": [300e-6] * 3,
            "MyGrad": [100e-6] * 3,
        },
        "left_out": {"jax jit": "not installed"},
        "targets": {OURS: Target(0.26, 0.42, 1.30), PLAN: Target(0.08, 0.21, 0.62)},
    }
    return Row(**parts | changes)


def report(*rows: Row) -> Report:
    return Report("on a machine", {"torch": "2.0"}, rows)


def test_a_row_names_figures_ratios_and_targets_and_marks_what_is_missed() -> None:
    assert str(row()) == "\n".join(
        [
            "w2: a small perceptron; one core, CPU time",
            "                             autodiff_lab 50.0 µs            autodiff_lab plan 20.0 µs",
            "  hand NumPy       40.0 µs   1.25 × (target 1.3)             0.50 × (target 0.62)",
            "  torch eager       200 µs   0.25 × (target 0.26)            0.10 × (target 0.08, missed)",
            "  HIPS autograd     300 µs   0.17 ×                          0.067 ×",
            "  MyGrad            100 µs   0.50 × (target 0.42, missed)    0.20 × (target 0.21)",
            "  jax jit: not installed",
        ]
    )


def test_the_ending_lists_what_falls_short_and_counts_what_binds() -> None:
    memory = row(name="w6b memory", figures={OURS: [3e8], TORCH: [1e9]}, targets={OURS: Target(0.3)}, is_memory=True)
    gpu = row(name="w4 on cuda:0", figures={}, left_out={OURS: "no device cuda:0"}, targets={})
    assert report(row(), memory, gpu).ending.splitlines() == [
        "Short of the target beside torch:",
        "  w2, autodiff_lab plan: 0.10 × torch eager, target 0.08",
        "Short of a target that informs:",
        "  w2, autodiff_lab: 0.50 × MyGrad, target 0.42",
        "Not measured: w4 on cuda:0",
        "2 of 3 rows within their target",
    ]
    assert str(memory).splitlines()[1:] == [
        "                             autodiff_lab 300 MB",
        "  torch eager     1,000 MB   0.30 × (target 0.3)",
        "  jax jit: not installed",
    ]


def test_what_was_not_measured_counts_neither_way() -> None:
    alone = {OURS: [1.0], HAND: [1.0]}
    without = row(figures=alone, left_out={TORCH: "not installed"})
    assert report(without).ending == "0 of 0 rows within their target"
    assert "torch eager: not installed" in str(without)
    gpu = row(name="w4 on cuda:0", figures={TORCH: [1.0]}, left_out={OURS: "no device cuda:0"}, targets={})
    assert str(gpu).endswith("not measured (no device cuda:0)")
    assert str(row(is_quiet=False)).splitlines()[0].endswith("other programs ran beside it")


def test_wall_time_is_not_judged_where_other_programs_ran() -> None:
    loud = row(name="w4 on two cores", is_quiet=False, on_the_clock=True)
    assert loud.figures and "target" not in str(loud)
    assert str(loud).splitlines()[0].endswith("other programs ran beside it, so nothing is judged")
    assert report(loud, row(is_quiet=False)).ending.splitlines()[-2:] == [
        "Not judged, as other programs ran: w4 on two cores",
        "1 of 2 rows within their target",
    ]
    assert report(row(on_the_clock=True)).ending.endswith("1 of 2 rows within their target")


def test_ratios_are_taken_round_by_round() -> None:
    noisy = row(figures={OURS: [1.0, 10.0, 100.0], TORCH: [2.0, 40.0, 1000.0]})
    (ratio,) = noisy.ratios()
    assert (ratio.median, ratio.least, ratio.most) == (0.25, 0.1, 0.5)


def test_json_holds_all_that_the_text_says() -> None:
    found = json.loads(json.dumps(report(row()).as_json()))
    assert found["machine"] == "on a machine" and found["versions"] == {"torch": "2.0"}
    (one,) = found["rows"]
    assert one["peers"][OURS] == {"median": 50e-6, "least": 40e-6, "most": 60e-6, "rounds": [40e-6, 60e-6, 50e-6]}
    assert one["unit"] == "seconds" and one["left out"] == {"jax jit": "not installed"}
    beside = {(ratio["ours"], ratio["other"]): ratio for ratio in one["ratios"]}
    assert beside[PLAN, TORCH]["missed"] and beside[PLAN, TORCH]["target"] == 0.08
    assert beside[OURS, "HIPS autograd"]["target"] is None and not beside[OURS, "HIPS autograd"]["missed"]


def test_the_sentence_of_the_readme_comes_from_the_json() -> None:
    deep = row(name="w6b memory", figures={OURS: [3e8], TORCH: [1e9]}, is_memory=True)
    found = report(row(), row(name="w4"), deep).as_json()
    assert headline(found).count("0.10 ×") == 2 and "0.30 × the memory" in headline(found)
    with pytest.raises(ValueError, match=r"not measured beside torch: w4 \(autodiff_lab plan\), w6b memory"):
        headline(report(row()).as_json())


def test_examples_in_the_report_hold() -> None:
    found = doctest.testmod(engine_report)
    assert found.attempted and not found.failed


def test_every_setting_has_words_and_a_row_without_its_cores_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {setting for _, setting in TARGETS} == set(IN_WORDS)
    monkeypatch.setattr(engine, "_cores", lambda: 1)
    (found,) = engine.measured("w4", engine.TWO, rounds=1, seconds=0.001)
    assert str(found).endswith("not measured (there is one core)")


def test_text_and_json_are_written_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "measured", lambda workload, *_: [row(name=workload)])
    monkeypatch.setattr(sys, "argv", ["engine", "--only", "w7a,w2", "--out", str(tmp_path / "new")])
    engine.main()
    text, data = ((tmp_path / "new" / name).read_text(encoding="utf-8") for name in ("engine.txt", "engine.json"))
    assert [one["name"] for one in json.loads(data)["rows"]] == ["w2", "w7a_fwd", "w7a_rev"]
    assert text.count("a small perceptron") == 3 and text.endswith("\n3 of 6 rows within their target\n")


def test_the_readme_quotes_the_last_results() -> None:
    readme = " ".join((engine.RESULTS.parents[1] / "README.md").read_text(encoding="utf-8").split())
    assert headline(json.loads((engine.RESULTS / "engine.json").read_text(encoding="utf-8"))) in readme
    ending = (engine.RESULTS / "engine.txt").read_text(encoding="utf-8").splitlines()[-1]
    within, every = re.findall(r"\d+", ending)
    assert f"{within} of its {every} rows are within their targets" in readme


def test_what_falls_short_is_explained_row_by_row() -> None:
    rows = json.loads((engine.RESULTS / "engine.json").read_text(encoding="utf-8"))["rows"]
    short = [ratio for row in rows for ratio in row["ratios"] if ratio["other"] == TORCH and ratio["missed"]]
    text = (engine.RESULTS / "engine_limits.md").read_text(encoding="utf-8")
    table = [line for line in text.splitlines() if line.startswith("| W")]
    assert sorted(float(line.split("|")[3]) for line in table) == sorted(ratio["target"] for ratio in short)
