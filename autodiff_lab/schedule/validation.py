"""The independent validator: whether a timeline could happen, from its tasks and its machine alone. Knows no engine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .timeline import Timeline

CLOSE = 1e-9  # of the makespan: what adding the same numbers in another order may change


def faults(timeline: Timeline) -> list[str]:
    """What is illegal, one sentence each; empty for a legal schedule."""
    nowhere = [task for task, lane in enumerate(timeline.lanes) if not -1 <= lane < len(timeline.machine.lanes)]
    if nowhere:
        return [
            f"{timeline.tasks.name(task)} ran on lane {timeline.lanes[task]}, which does not exist" for task in nowhere
        ]
    close = CLOSE * max(timeline.makespan, 1e-300)
    return [fault for check in _CHECKS for fault in check(timeline, close)]


def _whether_each_ran(t: Timeline, close: float) -> Iterator[str]:
    for task in range(len(t)):
        if t.lanes[task] >= 0:
            yield from _whether_it_fits(t, task, close)
        elif t.statuses.get(task, "done") == "done":
            yield f"{t.tasks.name(task)} never ran"


def _whether_it_fits(t: Timeline, task: int, close: float) -> Iterator[str]:
    resource = t.machine.resources[t.resource(task)]
    cost, start, end = t.tasks[task].cost_on(resource), t.starts[task], t.ends[task]
    if not 0 <= start <= end < math.inf:
        yield f"{t.tasks.name(task)} ran from {start} to {end}"
    elif cost is None:
        yield f"{t.tasks.name(task)} ran on {resource.name}, which cannot run it"
    elif t.simulated and abs(end - start - cost) > close:
        yield f"{t.tasks.name(task)} took {end - start} on {resource.name} instead of {cost}"


def _whether_each_waited(t: Timeline, close: float) -> Iterator[str]:
    for task, before in enumerate(t.tasks.predecessors):
        for other in before if t.lanes[task] >= 0 else ():
            if t.lanes[other] < 0 or t.statuses.get(other, "done") != "done":
                yield f"{t.tasks.name(task)} ran although {t.tasks.name(other)}, which it waits for, did not finish"
                continue
            nbytes = t.tasks.edge_bytes(other, task)
            arrival = t.ends[other] + t.machine.travel_time(t.resource(other), t.resource(task), nbytes)
            if t.starts[task] < arrival - close:
                began = f"{t.tasks.name(task)} began at {t.starts[task]}"
                yield f"{began}, before {t.tasks.name(other)} had ended and arrived at {arrival}"


def _whether_lanes_were_free(t: Timeline, close: float) -> Iterator[str]:
    last: dict[int, int] = {}
    for task in t.order:
        before = last.get(t.lanes[task])
        if before is not None and t.starts[task] < t.ends[before] - close:
            yield f"{t.tasks.name(before)} and {t.tasks.name(task)} overlap on {t.span(task).resource}"
        if before is None or t.ends[task] > t.ends[before]:
            last[t.lanes[task]] = task


def _whether_units_sufficed(t: Timeline, close: float) -> Iterator[str]:
    for place, resource in enumerate(t.machine.resources):
        here = [(t.starts[task], t.ends[task], t.tasks[task].demand) for task in t.order if t.resource(task) == place]
        most, when = _most_at_once(here, close)
        if most > resource.capacity:
            yield f"at {when} the tasks on {resource.name} demand {most:.0f} of {resource.capacity} units"


def _whether_memory_sufficed(t: Timeline, close: float) -> Iterator[str]:
    for place, resource in enumerate(t.machine.resources):
        if resource.memory == math.inf:
            continue
        here = [task for task in t.order if t.resource(task) == place]
        freed = {task: math.inf if t.is_kept(task) else t.lifetime(task)[1] for task in here}
        most, when = _most_at_once([(t.starts[task], freed[task], t.tasks.nbytes[task]) for task in here], close)
        if most > resource.memory:
            yield f"at {when} {most:.0f} bytes live on {resource.name}, more than its {resource.memory:.0f}"


def _most_at_once(intervals: Sequence[tuple[float, float, float]], close: float) -> tuple[float, float]:
    """The largest sum of amounts at once, and when; an end and a start that are close do not meet."""
    changes = [(start + close, 1, amount) for start, _, amount in intervals if amount]
    changes += [(end, 0, -amount) for _, end, amount in intervals if amount]
    most, when, now = 0.0, 0.0, 0.0
    for time, _, amount in sorted(changes):
        now += amount
        if now > most:
            most, when = now, time - close
    return most, when


_CHECKS = (
    _whether_each_ran,
    _whether_each_waited,
    _whether_lanes_were_free,
    _whether_units_sufficed,
    _whether_memory_sufficed,
)
