"""Timelines: figures by hand, a validator that finds every corruption, idle time and its causes, Chrome's trace format."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from autodiff_lab import schedule
from autodiff_lab.schedule import Machine, Resource, Task, Tasks, Timeline, Transfer, simulate

DIAMOND = Tasks(
    {
        "a": Task(cost=2, nbytes=4),
        "b": Task(cost=1, after=["a"], nbytes=2, phase="dX"),
        "c": Task(cost=3, after=["a"], nbytes=1, phase="dW"),
        "d": Task(cost=1, after=["b", "c"], nbytes=8, phase="update"),
    }
)
TWO = Machine(
    (Resource("gpu0", "cuda", memory=12), Resource("gpu1", "cuda", memory=12)), {("gpu0", "gpu1"): Transfer(alpha=1.0)}
)


def diamond() -> Timeline:
    """``a`` 0–2, ``c`` 2–5 and ``d`` 5–6 on gpu0; ``b`` 3–4 on gpu1, after a has travelled for 1."""
    return Timeline(DIAMOND, TWO, "by hand", [0, 3, 2, 5], [2, 4, 5, 6], [0, 1, 0, 0])


def test_the_figures_are_those_that_one_finds_by_hand() -> None:
    timeline = diamond()
    assert timeline.faults() == []
    assert (timeline.makespan, timeline.work, timeline.busy) == (6, 7, {"gpu0": 6, "gpu1": 1})
    assert timeline.utilisation == 7 / 12 and timeline.bound == 7 / 12
    assert timeline.critical_path == [0, 2, 3] and timeline.critical_length == 6
    assert timeline.order == [0, 2, 1, 3]
    assert timeline.backward_over_forward == 2.0
    assert [span.name for span in timeline.spans] == ["a", "c", "b", "d"]
    assert timeline.span(1) == (1, "b", "dX", "gpu1", 0, 3, 4, "done")


def test_live_bytes_count_from_a_tasks_start_until_its_last_user_has_finished() -> None:
    timeline = diamond()
    assert timeline.live_bytes == [(0.0, 0.0), (0, 4), (2, 5), (3, 7), (5, 11), (6, 8)]
    assert timeline.peak == 11 and timeline.peak_tasks == [3, 1, 2]
    assert [timeline.lifetime(task) for task in range(4)] == [(0, 5), (3, 6), (2, 6), (5, 6)]


def test_idle_time_has_a_cause() -> None:
    causes = [(idle.start, idle.end, idle.cause) for idle in diamond().idle]
    assert causes == [(0, 2, "dependencies"), (2, 3, "transfer"), (4, 5, "dependencies"), (5, 6, "nothing left")]
    lazy = Timeline(Tasks({"a": Task(cost=2)}), schedule.cores(1), "late", [3], [5], [0])
    assert lazy.idle_by_cause == {"policy": 3}
    gpu = Machine((Resource("gpu", "cuda", capacity=2, memory=10),))
    full = simulate({"a": Task(cost=2, nbytes=6), "use a": Task(after=["a"]), "b": Task(nbytes=6)}, gpu, "priority")
    assert full.idle_by_cause == {"memory": 3, "nothing left": 1}


CORRUPTIONS: dict[str, tuple[Callable[[Timeline], Timeline], str]] = {
    "a task that never runs": (
        lambda t: replace(t, lanes=[0, -1, 0, 0], starts=[0, math.nan, 2, 5], ends=[2, math.nan, 5, 6]), "b never ran"),
    "a start before a predecessor's end": (lambda t: replace(t, starts=[0, 3, 1, 5], ends=[2, 4, 4, 6]), "c began at 1"),
    "a start before the value has arrived": (
        lambda t: replace(t, starts=[0, 2, 2, 5], ends=[2, 3, 5, 6]), "b began at 2, before a had ended and arrived at 3"),
    "two tasks at once on one lane": (
        lambda t: replace(t, lanes=[0, 0, 0, 0], starts=[0, 2, 2, 5], ends=[2, 3, 5, 6]), "b and c overlap on gpu0"),
    "a task that is too short": (lambda t: replace(t, ends=[2, 4, 4, 6]), "c took 2 on gpu0 instead of 3"),
    "an end before the start": (lambda t: replace(t, ends=[2, 2, 5, 6]), "b ran from 3 to 2"),
    "a start before 0": (lambda t: replace(t, starts=[-1, 3, 2, 5], ends=[1, 4, 5, 6]), "a ran from -1 to 1"),
    "a lane that does not exist": (lambda t: replace(t, lanes=[0, 7, 0, 0]), "b ran on lane 7"),
    "more bytes than there are": (
        lambda t: replace(t, machine=Machine((Resource("gpu0", "cuda", memory=8), *TWO.resources[1:]), TWO.transfers)),
        "bytes live on gpu0, more than its 8"),
    "a resource that cannot run the task": (
        lambda t: replace(t, machine=Machine((Resource("gpu0", "cuda"), Resource("gpu1", "link")))),
        "b ran on gpu1, which cannot run it"),
    "more units than there are": (
        lambda t: replace(t, tasks=Tasks([replace(task, demand=2) for task in DIAMOND]), lanes=[0, 1, 0, 0],
                          machine=Machine((Resource("gpu0", "cuda", capacity=3, streams=2),))),
        "demand 4 of 3 units"),
    "a task after one that failed": (lambda t: replace(t, statuses={0: "failed"}), "c ran although a, which it waits for"),
}  # fmt: skip


@pytest.mark.parametrize("what", CORRUPTIONS)
def test_the_validator_finds(what: str) -> None:
    corrupt, text = CORRUPTIONS[what]
    found = corrupt(diamond()).faults()
    assert any(text in fault for fault in found), found


def test_a_run_that_failed_is_legal_where_its_dependants_were_skipped() -> None:
    nan = math.nan
    timeline = Timeline(
        DIAMOND,
        TWO,
        "fifo",
        [0, 3, 2, nan],
        [2, 4, 2.5, nan],
        [0, 1, 0, -1],
        {2: "failed", 3: "skipped"},
        simulated=False,
    )
    assert timeline.faults() == []
    assert timeline.span(3).status == "skipped" and timeline.span(2).status == "failed"
    assert "d: skipped" in timeline.text() and "c: failed" in timeline.text()
    assert timeline.lifetime(1) == (3, 4), "nobody freed it before the run ended"


def test_cpu_time_gives_a_utilisation_of_its_own() -> None:
    assert diamond().cpu_utilisation is None
    assert replace(diamond(), simulated=False, cpu_times=[1, 1, 3, 1]).cpu_utilisation == 0.5


def test_a_machine_is_never_used_more_than_the_bound_says() -> None:
    chain = Tasks({"a": Task(), "b": Task(after=["a"])})
    assert simulate(chain, 4, "critical_path").bound == simulate(chain, 4, "critical_path").utilisation == 0.25


def test_two_timelines_are_compared_line_by_line() -> None:
    fast, slow = simulate(DIAMOND, 2, "critical_path"), simulate(DIAMOND, 2, "serial")
    assert fast.speedup_over(slow) == 7 / 6
    lines = fast.compared_with(slow).splitlines()
    assert lines[0].split() == ["critical_path", "serial"]
    assert lines[1].split() == ["makespan", "6", "7"]
    assert lines[4].split() == ["peak", "bytes", *(f"{timeline.peak:g}" for timeline in (fast, slow))]


# -------------------------------------------------------------------------------------------------- Chrome's trace format


def trace(timeline: Timeline, kind: str) -> list[dict[str, Any]]:
    return [event for event in json.loads(timeline.to_chrome_trace())["traceEvents"] if event["ph"] == kind]


def test_the_trace_counts_in_microseconds() -> None:
    b = next(event for event in trace(diamond(), "X") if event["name"] == "b")
    assert (b["ts"], b["dur"], b["cat"], b["pid"], b["tid"]) == (3e6, 1e6, "dX", 1, 0)
    assert [(event["ts"], event["args"]["bytes"]) for event in trace(diamond(), "C")][-2:] == [(5e6, 11), (6e6, 8)]


def test_slices_of_one_lane_never_overlap_partly() -> None:
    tasks = Tasks({f"t{i}": Task(cost=0.1 * i, after=[f"t{i // 2}"] if i else []) for i in range(40)})
    timeline = simulate(tasks, Machine((Resource("gpu", "cuda", capacity=3), Resource("cpu"))), "lifo")
    lanes: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in trace(timeline, "X"):
        lanes.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    assert len(lanes) == 4
    for slices in lanes.values():
        assert all(
            end <= start + 1e-6 for (_, end), (start, _) in zip(sorted(slices), sorted(slices)[1:], strict=False)
        )


def test_an_arrow_leads_from_inside_the_maker_into_the_start_of_the_user() -> None:
    timeline = diamond()
    starts, ends = trace(timeline, "s"), trace(timeline, "f")
    assert [event["id"] for event in starts] == [event["id"] for event in ends] == [0, 1]
    assert [(event["ts"], event["pid"]) for event in starts] == [(0, 0), (3e6, 1)]  # inside a, inside b
    assert [(event["ts"], event["pid"], event["bp"]) for event in ends] == [(3e6, 1, "e"), (5e6, 0, "e")]


def test_the_trace_names_devices_and_says_whether_it_was_simulated() -> None:
    assert [e["args"]["name"] for e in trace(diamond(), "M") if e["name"] == "process_name"] == ["gpu0", "gpu1"]
    assert json.loads(diamond().to_chrome_trace())["otherData"] == {"policy": "by hand", "time": "simulated"}
    assert json.loads(replace(diamond(), simulated=False).to_chrome_trace())["otherData"]["time"] == "real"
