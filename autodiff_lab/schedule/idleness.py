"""Why a lane did nothing: the causes of idle time, worked out from a finished timeline."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from .timeline import Timeline

Cause = Literal["dependencies", "transfer", "memory", "policy", "nothing left"]


class Idle(NamedTuple):
    """A computing lane did nothing from ``start`` to ``end``.

    The cause: ``nothing left`` where every task that could run there has begun; where one was ready, ``memory`` if none of
    those would have fitted beside what lived there, else ``policy``, which had other plans for them; ``transfer`` where one
    waited only for a value on its way; else ``dependencies``.
    """

    lane: int
    start: float
    end: float
    cause: Cause


def stretches(timeline: Timeline) -> list[Idle]:
    """Every idle stretch of every computing lane, cut where the cause changes."""
    found: list[Idle] = []
    facts = [_Pending(timeline, place) for place in range(len(timeline.machine.resources))]
    for lane, gaps in enumerate(_gaps(timeline)):
        pending = facts[timeline.machine.lanes[lane][0]]
        for start, end in gaps:
            for a, b in pending.cuts(start, end):
                cause = pending.cause((a + b) / 2)
                if found and found[-1].lane == lane and found[-1].end == a and found[-1].cause == cause:
                    found[-1] = found[-1]._replace(end=b)
                else:
                    found.append(Idle(lane, a, b, cause))
    return found


def _gaps(timeline: Timeline) -> list[list[tuple[float, float]]]:
    gaps: list[list[tuple[float, float]]] = [[] for _ in timeline.machine.lanes]
    free_from = [0.0] * len(gaps)
    for task in timeline.order:
        lane = timeline.lanes[task]
        if timeline.starts[task] > free_from[lane]:
            gaps[lane].append((free_from[lane], timeline.starts[task]))
        free_from[lane] = max(free_from[lane], timeline.ends[task])
    for lane, (place, _) in enumerate(timeline.machine.lanes):
        if place not in timeline.machine.computing:
            gaps[lane] = []
        elif free_from[lane] < timeline.makespan:
            gaps[lane].append((free_from[lane], timeline.makespan))
    return gaps


class _Pending:
    """How many tasks that one resource could run were in which state at a moment, from sorted lists of times."""

    def __init__(self, timeline: Timeline, place: int) -> None:
        resource = timeline.machine.resources[place]
        self.timeline, self.place, self.memory = timeline, place, resource.memory
        self.able: list[tuple[float, float, float]] = []  # (arrived, started, bytes) of each task
        done: list[float] = []  # when all that a task waits for had finished
        arrived: list[float] = []  # when it had also arrived here
        started: list[float] = []
        for task in timeline.order:
            if timeline.tasks[task].cost_on(resource) is None:
                continue
            before = timeline.tasks.predecessors[task]
            ends = [timeline.ends[other] for other in before]
            ways = [_way(timeline, other, task, place) for other in before]
            done.append(max(ends, default=0.0))
            arrived.append(max(map(sum, zip(ends, ways, strict=True)), default=0.0))
            started.append(timeline.starts[task])
            self.able.append((arrived[-1], started[-1], timeline.tasks.nbytes[task]))
        self.done, self.arrived, self.started = sorted(done), sorted(arrived), sorted(started)
        self._times = sorted({*self.done, *self.arrived, *self.started})

    def cuts(self, start: float, end: float) -> list[tuple[float, float]]:
        """The stretch in pieces in which nothing changes."""
        inside = self._times[bisect_right(self._times, start) : bisect_left(self._times, end)]
        points = [start, *inside, end]
        return list(pairwise(points))

    def cause(self, time: float) -> Cause:
        """Why nothing ran at a moment between the changes."""
        started, arrived, done = (bisect_right(times, time) for times in (self.started, self.arrived, self.done))
        if started == len(self.started):
            return "nothing left"
        if arrived > started:
            return "memory" if self._is_full(time) else "policy"
        return "transfer" if done > started else "dependencies"

    def _is_full(self, time: float) -> bool:
        """Whether every task that is ready at a moment needs more memory than is left."""
        if self.memory == math.inf:
            return False
        t = self.timeline
        here = [
            task for task in t.order if t.resource(task) == self.place and t.starts[task] <= time < t.lifetime(task)[1]
        ]
        left = self.memory - sum(t.tasks.nbytes[task] for task in here)
        return all(nbytes > left for arrived, started, nbytes in self.able if arrived <= time < started)


def _way(timeline: Timeline, source: int, target: int, place: int) -> float:
    nbytes = timeline.tasks.edge_bytes(source, target)
    return timeline.machine.travel_time(timeline.resource(source), place, nbytes)
