"""The lecture's claims: what is measured and what is simulated, when, and that neither says more than it knows."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import claims, ops, quiet, schedule
from autodiff_lab.claims import CLAIMS, Workload, examine
from autodiff_lab.schedule import Task, Tasks

ROUND = schedule.training_step(2, micro_batches=3)  # 12 one micro-batch after the other, 10 with backward work first


@pytest.fixture
def others_use(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Say how many CPU seconds other programs use from one look to the next; two cores are there."""

    def use(seconds: float) -> None:
        used = itertools.count()
        monkeypatch.setattr(quiet, "_used_by_others", lambda: seconds * next(used))
        monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1}, raising=False)

    return use


def sums() -> Workload:
    x = np.ones((40, 40), np.float32)
    return claims.workload("sums", ad.record(lambda x, y: (x @ y).sum() + (y @ x).sum(), x, x), (x, x))


# --------------------------------------------------------------------------------------------------------- what is claimed


def test_on_round_numbers_each_figure_is_what_can_be_counted_by_hand() -> None:
    overlap = examine(CLAIMS["H2"], Workload("round", ROUND, {}), simulates=True).figures
    assert [round(figure, 1) for figure in overlap.values()] == [20.0, 20.0]
    used = examine(CLAIMS["H1"], Workload("round", ROUND, {}), simulates=True).figures
    assert used["in_order"] == 75 and used["critical_path"] == 100 == used["no policy can do more than"]


def test_no_policy_uses_more_than_the_bound_and_on_one_tower_all_reach_it() -> None:
    for make in (claims.eight_towers, claims.one_tower):
        *figures, bound = examine(CLAIMS["H1"], make(16), simulates=True).figures.values()
        assert all(figure <= bound + 1e-9 for figure in figures)
    assert figures == pytest.approx([50, 50, 50])


def test_over_the_loop_one_micro_batch_gains_little_and_four_gain_near_a_third(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "measure", lambda *_: schedule.Roofline())
    work = [claims.transformer(2, 128, micro_batches, tokens=32) for micro_batches in (1, 4)]
    found = [examine(CLAIMS["H2"], each, simulates=True).figures for each in work]
    one, four = (figures["gain over the loop with a ready queue"] for figures in found)
    assert one <= 8 and four >= 25
    assert all(
        figures["gain over issuing op after op"] > figures["gain over the loop with a ready queue"] for figures in found
    )


# -------------------------------------------------------------------------------------------------- measured or simulated


def test_on_a_quiet_machine_claims_are_measured(others_use: Callable[[float], None]) -> None:
    others_use(0.0)
    evidence = examine(CLAIMS["H1"], sums(), repetitions=5)
    assert not evidence.is_simulated
    assert "measured: medians of 5 quiet repetitions, 0 rejected" in repr(evidence)
    assert all(timeline.faults() == [] for timeline in evidence.timelines.values())


def test_on_a_busy_machine_they_are_simulated_and_the_evidence_says_so(others_use: Callable[[float], None]) -> None:
    others_use(1e6)
    evidence = examine(CLAIMS["H1"], sums(), seconds=0.2)
    assert evidence.is_simulated and list(evidence.timelines) == list(CLAIMS["H1"].policies)
    assert "simulated with the measured cost of each op: only 0 of" in repr(evidence)


@pytest.mark.parametrize("cores, missing, why", [
    ({0}, "", "this machine has only 1 core for this program, and 2 are needed"),
    ({0, 1}, "psutil", "psutil is not installed"),
    ({0, 1}, "threadpoolctl", "threadpoolctl is not installed"),
])  # fmt: skip
def test_where_nothing_can_be_measured_nothing_runs_and_the_reason_is_told(
    cores: set[int], missing: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: cores, raising=False)
    monkeypatch.setattr(quiet, "find_spec", lambda name: None if name == missing else name)
    work = sums()
    monkeypatch.setattr(schedule, "run", None)
    assert examine(CLAIMS["H1"], work).source == f"simulated with the measured cost of each op: {why}"


def test_policies_that_give_different_results_are_no_evidence(others_use: Callable[[float], None]) -> None:
    others_use(0.0)
    calls = itertools.count()
    work = Workload("dice", Tasks({"a": Task(lambda: next(calls))}), {})
    with pytest.raises(ValueError, match="dice: a differs between in_order and fifo"):
        examine(CLAIMS["H1"], work)


# ------------------------------------------------------------------------------------------------------------- repetitions


def test_only_quiet_repetitions_count(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([0.0, 0.0, 0.0, 1e6] * 5)  # before and after each repetition
    monkeypatch.setattr(quiet, "_used_by_others", lambda: next(looks))
    numbers = itertools.count()
    samples = quiet.repeat(lambda: next(numbers), wanted=5)
    assert (samples.kept, samples.rejected, samples.are_enough) == ([0, 2, 4, 6, 8], 4, True)


def test_measuring_ends_as_soon_as_the_fewest_that_count_cannot_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0.0, 1.0)  # every look at the clock takes a second
    monkeypatch.setattr(quiet.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(quiet, "_used_by_others", lambda: 0.0)
    numbers: Any = itertools.count()
    samples = quiet.repeat(lambda: next(numbers), seconds=6.0)
    assert len(samples.kept) == 1 and not samples.are_enough


def test_costs_are_measured_with_blas_on_one_thread() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    seen: set[int] = set()

    def call(self: Any, operands: Any, attributes: Any) -> Any:
        seen.update(pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas")
        return apply(self, operands, attributes)

    op = type(ad.registry["exp"])
    apply = op.apply
    with threadpoolctl.threadpool_limits(2, user_api="blas"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(op, "apply", call)
        schedule.measure(ad.record(ops.exp, 1.0), 1.0, repeats=1)
    assert seen == {1}
