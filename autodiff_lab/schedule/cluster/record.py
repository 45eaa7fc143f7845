"""From the reports of a cluster's workers to a timeline: tasks on workers, and between workers the values that travelled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import NamedTuple

from ..machines import Machine, Resource
from ..task import Task
from ..tasks import Tasks
from ..timeline import Status, Timeline


class Ran(NamedTuple):
    """A task ran on a worker: its first run that ended well, since whoever waited for it waited for that one."""

    on: str
    start: float
    end: float
    cpu: float
    is_done: bool


class Moved(NamedTuple):
    """A value came to a worker from another: a task's result by number, an input by name."""

    value: int | str
    source: str
    target: str
    start: float
    end: float


@dataclass
class Reports:
    """What workers told of a run, in seconds since it began."""

    ran: dict[int, Ran] = field(default_factory=dict)
    moved: list[Moved] = field(default_factory=list)

    def add(self, task: int, ran: Ran) -> None:
        """A task ran, perhaps again, because what it gave was lost."""
        if task not in self.ran or (ran.is_done and not self.ran[task].is_done):
            self.ran[task] = ran


def timeline_of(
    tasks: Tasks, workers: Machine, policy: str, reports: Reports, statuses: Mapping[int, Status], clock_error: float
) -> Timeline:
    """The timeline of the tasks on their workers; each value that travelled is a task of its own, on the way ``a->b``."""
    drawn = _Drawn(tasks, workers, reports)
    places = {resource.name: place for place, resource in enumerate(drawn.machine.resources)}
    lanes, first = [-1] * len(drawn.tasks), dict[int, int]()
    for lane, (place, _) in enumerate(drawn.machine.lanes):
        first.setdefault(place, lane)
    for name, members in drawn.on.items():
        for task, lane in zip(members, lanes_of([drawn.spans[task] for task in members]), strict=True):
            lanes[task] = first[places[name]] + lane
    cpu = [0.0] * len(drawn.machine.lanes)
    for number, ran in reports.ran.items():
        cpu[lanes[drawn.number[number]]] += ran.cpu
    spans = [drawn.spans.get(task, (math.nan, math.nan)) for task in range(len(drawn.tasks))]
    return Timeline(
        drawn.tasks, drawn.machine, policy, [start for start, _ in spans], [end for _, end in spans], lanes,
        {drawn.number[task]: status for task, status in statuses.items()}, simulated=False, cpu_times=cpu,
        clock_error=clock_error,
    )  # fmt: skip


class _Drawn:
    """Tasks and travels in one list, in an order in which nothing stands before what it waits for."""

    def __init__(self, tasks: Tasks, workers: Machine, reports: Reports) -> None:
        self._given, self._reports = tasks, reports
        self._found: list[Task] = []
        self._arrived: dict[
            tuple[int | str, str], list[tuple[float, str]]
        ] = {}  # a value on a worker: when, and as what
        self._moves: dict[int | str, list[Moved]] = {}
        for move in sorted(reports.moved, key=lambda one: one.start):
            self._moves.setdefault(move.value, []).append(move)
        self.spans: dict[int, tuple[float, float]] = {}
        self.on: dict[str, list[int]] = {}
        self.number: dict[int, int] = {}  # where each of the tasks that were given stands
        for name in tasks.inputs:
            self._add_moves(name, Task(name=name))
        for task in tasks:
            self._add_task(task)
            self._add_moves(task.id, task)
        self.tasks = Tasks(self._found, outputs=[tasks.name(task) for task in tasks.kept])
        self.machine = self._machine(workers)

    def _add_task(self, task: Task) -> None:
        ran = self._reports.ran.get(task.id)
        after: dict[str, float] = {}
        for before in self._given.predecessors[task.id]:
            own = self._given.name(before)
            after[self._as_it_came(before, own, ran)] = self._given.edge_bytes(before, task.id)
        for name in set(task.reads).intersection(self._given.inputs):
            if (came := self._as_it_came(name, "", ran)) != "":
                after[came] = 0.0
        self.number[task.id] = len(self._found)
        on = ran.on if ran else task.on
        self._add(replace(task, call=None, args=(), reads=(), writes=(), after=after, on=on), ran)

    def _as_it_came(self, value: int | str, own: str, ran: Ran | None) -> str:
        """The last travel that brought a value before a task began, or the value's own name."""
        if ran is None:
            return own
        came = [name for end, name in self._arrived.get((value, ran.on), ()) if end <= ran.start]
        return came[-1] if came else own

    def _add_moves(self, value: int | str, made: Task) -> None:
        for move in self._moves.get(value, ()):
            own = made.name if isinstance(value, int) else ""
            before = [name for end, name in self._arrived.get((value, move.source), ()) if end <= move.start]
            after = before[-1] if before else own
            arrivals = self._arrived.setdefault((value, move.target), [])
            again = f" #{len(arrivals) + 1}" if arrivals else ""
            name = f"{made.name}->{move.target}{again}"
            arrivals.append((move.end, name))
            travel = Task(
                name=name, cost=move.end - move.start, after=(after,) if after else (), phase="comm", nbytes=made.nbytes,
                on=f"{move.source}->{move.target}", op="transfer", sequence=made.sequence, micro_batch=made.micro_batch,
            )  # fmt: skip
            self._add(travel, move)

    def _add(self, task: Task, span: Ran | Moved | None) -> None:
        if span is not None:
            self.spans[len(self._found)] = span.start, span.end
            self.on.setdefault(str(task.on), []).append(len(self._found))
        self._found.append(task)

    def _machine(self, workers: Machine) -> Machine:
        """The workers that there were at first, those that came later, and the ways that values took."""
        known = {resource.name: resource for resource in workers.resources}
        for name, members in sorted(self.on.items()):
            lanes = 1 + max(lanes_of([self.spans[task] for task in members]))
            if name not in known:
                known[name] = Resource(name, "link" if "->" in name else "cpu", capacity=lanes)
            elif known[name].capacity < lanes:
                known[name] = replace(known[name], capacity=lanes)
        return Machine(tuple(known.values()))


def lanes_of(spans: Sequence[tuple[float, float]]) -> list[int]:
    """For each span a lane of its own while it lasts, the lowest that is free.

    >>> lanes_of([(0, 2), (1, 3), (2, 4)])
    [0, 1, 0]
    """
    free: list[int] = []
    running: list[tuple[float, int]] = []
    found = [0] * len(spans)
    for place in sorted(range(len(spans)), key=lambda one: spans[one]):
        start, end = spans[place]
        while running and running[0][0] <= start:
            heappush(free, heappop(running)[1])
        found[place] = heappop(free) if free else len(running)
        heappush(running, (end, found[place]))
    return found
