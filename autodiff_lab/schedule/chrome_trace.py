"""A timeline in Chrome's trace event format, which chrome://tracing and Perfetto show.

Source: Trace Event Format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .timeline import Timeline

MICROSECONDS = 1e6  # the format counts in microseconds, a timeline in seconds


def to_chrome_trace(timeline: Timeline) -> str:
    """The timeline as JSON: a process per resource, a thread per lane, an arrow where a value changes lanes, live bytes.

    Tasks of one lane follow each other and never overlap partly, as the format demands.

    >>> from autodiff_lab import schedule
    >>> trace = json.loads(
    ...     schedule.simulate(schedule.Tasks({"a": schedule.Task(cost=2.0)}), schedule.cores(1)).to_chrome_trace()
    ... )
    >>> [(event["ph"], event["name"]) for event in trace["traceEvents"]]
    [('M', 'process_name'), ('M', 'thread_name'), ('X', 'a'), ('C', 'live bytes')]
    """
    events = [*_names(timeline), *_tasks(timeline), *_arrows(timeline), *_memory(timeline)]
    kind = "simulated" if timeline.simulated else "real"
    about = {"policy": timeline.policy, "time": kind}
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}, allow_nan=False)


def _names(t: Timeline) -> Iterator[dict[str, Any]]:
    for place, resource in enumerate(t.machine.resources):
        yield {"ph": "M", "name": "process_name", "pid": place, "tid": 0, "args": {"name": resource.name}}
    for place, lane in t.machine.lanes:
        yield {"ph": "M", "name": "thread_name", "pid": place, "tid": lane, "args": {"name": f"lane {lane}"}}


def _tasks(t: Timeline) -> Iterator[dict[str, Any]]:
    for span in t.spans:
        task = t.tasks[span.task]
        facts = {
            "task": span.task,
            "op": task.op,
            "status": span.status,
            "bytes": task.nbytes,
            "micro_batch": task.micro_batch,
        }
        yield {"ph": "X", "cat": span.phase, "name": span.name, "ts": _us(span.start), "dur": _us(span.end) - _us(span.start),
               "args": facts, **_where(t, span.task)}  # fmt: skip


def _arrows(t: Timeline) -> Iterator[dict[str, Any]]:
    """An arrow begins inside the task that made the value and binds to the task that waits for it."""
    number = 0
    for task in t.order:
        for before in t.tasks.predecessors[task]:
            if t.lanes[before] >= 0 and t.lanes[before] != t.lanes[task]:
                arrow = {"cat": "dependency", "name": "value", "id": number}
                yield {"ph": "s", **arrow, "ts": _us(t.starts[before]), **_where(t, before)}
                yield {"ph": "f", "bp": "e", **arrow, "ts": _us(t.starts[task]), **_where(t, task)}
                number += 1


def _memory(t: Timeline) -> Iterator[dict[str, Any]]:
    for time, nbytes in t.live_bytes:
        yield {"ph": "C", "name": "live bytes", "pid": 0, "ts": _us(time), "args": {"bytes": nbytes}}


def _where(t: Timeline, task: int) -> dict[str, int]:
    place, lane = t.machine.lanes[t.lanes[task]]
    return {"pid": place, "tid": lane}


def _us(seconds: float) -> float:
    return MICROSECONDS * seconds
