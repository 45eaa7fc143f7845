"""What a policy can know before anything runs: ranks, and the whole schedules that HEFT and PEFT lay out in advance."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .machines import Machine
from .tasks import Tasks


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What a policy worked out in advance; it finds it as ``state.plan``.

    Args:
        priorities: for each task; higher goes first.
        resources: for each task the name of its resource.
        previous: for each task the one that must have started before it, or -1.
        before: for each task those that must have finished before it, beside its dependencies.
    """

    priorities: Sequence[float]
    resources: Sequence[str] = ()
    previous: Sequence[int] = ()
    before: Sequence[Sequence[int]] = ()


def in_turn(order: Sequence[int]) -> Plan:
    """Each task starts only after the one before it in ``order``.

    >>> in_turn([0, 2, 1]).previous
    [-1, 2, 0]
    """
    previous, priorities = [-1] * len(order), [0.0] * len(order)
    for place, task in enumerate(order):
        priorities[task] = -place
        previous[task] = order[place - 1] if place else -1
    return Plan(priorities, previous=previous)


def by_key(tasks: Tasks, key: Callable[[int], Any]) -> Plan:
    """Priorities that put the tasks in the order of a key, the largest first; equal keys in order of submission.

    >>> by_key(Tasks.from_columns([1.0, 2.0, 2.0], [(), (), ()]), lambda task: (0, task)).priorities
    [0, 1, 2]
    """
    keys = [key(task) for task in range(len(tasks))]
    position = {one: place for place, one in enumerate(sorted(set(keys)))}
    return Plan([position[one] for one in keys])


def in_rounds(tasks: Tasks, rounds: Sequence[int], ranks: Sequence[float] | None = None) -> Plan:
    """A task waits until every task of the earlier rounds has finished; inside a round the highest rank goes first.

    A task that waits for one of a later round belongs to that round.

    >>> in_rounds(Tasks.from_columns([1.0, 1.0, 1.0], [(), (), (1,)]), [0, 1, 0]).before
    [(), [0], [0]]
    """
    own = list(rounds)
    for task in tasks.order:
        own[task] = max([own[task], *(own[before] for before in tasks.predecessors[task])])
    members: dict[int, list[int]] = {}
    for task, number in enumerate(own):
        members.setdefault(number, []).append(task)
    numbers = sorted(members)
    earlier: dict[int, Sequence[int]] = dict(zip(numbers, [(), *(members[n] for n in numbers)], strict=False))
    return Plan([0.0] * len(own) if ranks is None else ranks, before=[earlier[number] for number in own])


def levels(tasks: Tasks) -> list[int]:
    """For each task how many tasks stand before it on the longest way to it.

    >>> levels(Tasks.from_columns([1.0, 1.0, 1.0], [(), (0,), (0, 1)]))
    [0, 1, 2]
    """
    found = [0] * len(tasks)
    for task in tasks.order:
        found[task] = max((found[before] + 1 for before in tasks.predecessors[task]), default=0)
    return found


# --------------------------------------------------------------------------------------------------------------- ranks


def upward_ranks(tasks: Tasks, machine: Machine) -> list[float]:
    """For each task the longest way from its start to the end, with mean costs and mean travel times.

    rank(i) = mean cost(i) + max over successors j of (mean travel time(i, j) + rank(j)). Source: Topcuoglu, Hariri and Wu,
    Performance-effective and low-complexity task scheduling for heterogeneous computing, 2002.

    >>> from autodiff_lab.schedule.machines import cores
    >>> upward_ranks(Tasks.from_columns([3.0, 1.0, 2.0], [(), (0,), (0,)]), cores(2))
    [5.0, 1.0, 2.0]
    """
    costs = mean_costs(tasks, machine)
    ranks = [0.0] * len(costs)
    successors = tasks.successors
    if not machine.transfers:
        for task in reversed(tasks.order):
            longest = 0.0
            for after in successors[task]:
                if ranks[after] > longest:
                    longest = ranks[after]
            ranks[task] = costs[task] + longest
        return ranks
    for task in reversed(tasks.order):
        ways = [ranks[after] + machine.mean_travel_time(tasks.edge_bytes(task, after)) for after in successors[task]]
        ranks[task] = costs[task] + max(ways, default=0.0)
    return ranks


def mean_costs(tasks: Tasks, machine: Machine) -> Sequence[float]:
    """The mean of each task's cost over the resources that can run it."""
    if tasks.are_plain:
        slowness = [1 / machine.resources[place].speed for place in machine.computing]
        mean = sum(slowness) / len(slowness) if slowness else 1.0
        return tasks.costs if mean == 1.0 else [cost * mean for cost in tasks.costs]  # type: ignore[operator,return-value]
    return [_mean([cost for r in machine.resources if (cost := task.cost_on(r)) is not None]) for task in tasks]


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


# ------------------------------------------------------------------------------------------------------- whole schedules


def heft(tasks: Tasks, machine: Machine) -> Plan:
    """Heterogeneous earliest finish time: by upward rank, each task where it ends first, also in a gap.

    Source: Topcuoglu, Hariri and Wu, 2002. Equal ends take the lane that comes first.
    """
    ranks = upward_ranks(tasks, machine)
    layout = Layout(tasks, machine)
    for task in _by_rank(tasks, ranks):
        layout.put(task, min(layout.choices(task), key=lambda choice: choice[:2]))
    return layout.plan()


def peft(tasks: Tasks, machine: Machine) -> Plan:
    """Predict earliest finish time: like HEFT, and it looks ahead to what each choice leaves to do at best.

    oct(i, p) is the shortest that the longest way after i can take if i runs on p; tasks go by mean oct, each where its end
    plus oct is smallest. Source: Arabnejad and Barbosa, List scheduling algorithm for heterogeneous systems by an optimistic
    cost table, 2014.
    """
    layout = Layout(tasks, machine)
    table = _optimistic_costs(layout)
    waiting = [len(before) for before in tasks.predecessors]
    rank = [_mean([cost for cost in row if cost < math.inf]) for row in table]
    ready = [(-rank[task], task) for task, count in enumerate(waiting) if not count]
    ready.sort()
    while ready:
        _, task = ready.pop(0)
        layout.put(task, min(layout.choices(task), key=lambda c, row=table[task]: (c[0] + row[c[1]], c[1])))  # type: ignore[misc]
        for after in tasks.successors[task]:
            waiting[after] -= 1
            if not waiting[after]:
                insort(ready, (-rank[after], after))
    return layout.plan()


def _by_rank(tasks: Tasks, ranks: Sequence[float]) -> list[int]:
    place = {task: position for position, task in enumerate(tasks.order)}  # a task of cost 0 ranks with its successors
    return sorted(range(len(tasks)), key=lambda task: (-ranks[task], place[task]))


def _optimistic_costs(layout: Layout) -> list[list[float]]:
    lanes = range(len(layout.lanes))
    table = [[0.0] * len(lanes) for _ in layout.tasks]
    for task in reversed(layout.tasks.order):
        for after in layout.tasks.successors[task]:
            nbytes = layout.tasks.edge_bytes(task, after)
            for lane in lanes:
                best = min(
                    table[after][other] + layout.duration[after][other] + layout.travel(lane, other, nbytes)
                    for other in lanes
                )
                table[task][lane] = max(table[task][lane], best)
    return table


class Layout:
    """A schedule that is laid out task by task, each after those that it waits for, in the gaps of its lane or at the end."""

    def __init__(self, tasks: Tasks, machine: Machine) -> None:
        self.tasks, self.machine, self.lanes = tasks, machine, machine.lanes
        self.duration = [
            [_or_never(task.cost_on(machine.resources[place])) for place, _ in self.lanes] for task in tasks
        ]
        self.busy: list[list[tuple[float, float, int]]] = [
            [] for _ in self.lanes
        ]  # (start, end, how many were put before)
        self.ends = [0.0] * len(tasks)
        self.lane_of = [-1] * len(tasks)
        self._put: list[int] = []

    def travel(self, lane: int, other: int, nbytes: float) -> float:
        """How long a value travels from one lane to another."""
        return self.machine.travel_time(self.lanes[lane][0], self.lanes[other][0], nbytes)

    def choices(self, task: int) -> Iterable[tuple[float, int, float]]:
        """For each lane that can run the task: (earliest end, lane, start)."""
        for lane, duration in enumerate(self.duration[task]):
            if duration < math.inf:
                start = self._gap(lane, self._arrival(task, lane), duration)
                yield start + duration, lane, start

    def put(self, task: int, choice: tuple[float, int, float]) -> None:
        """Lay a task out as chosen."""
        end, lane, start = choice
        self.ends[task], self.lane_of[task] = end, lane
        insort(self.busy[lane], (start, end, len(self._put)))
        self._put.append(task)

    def plan(self) -> Plan:
        """The order on each lane as a plan that an engine can follow."""
        priorities, previous = [0.0] * len(self.tasks), [-1] * len(self.tasks)
        for rows in self.busy:
            before = -1
            for start, _, number in rows:
                task = self._put[number]
                priorities[task], previous[task] = -start, before
                before = task
        names = [self.machine.resources[self.lanes[lane][0]].name for lane in self.lane_of]
        return Plan(priorities, names, previous)

    def _arrival(self, task: int, lane: int) -> float:
        latest = 0.0
        for before in self.tasks.predecessors[task]:
            way = self.travel(self.lane_of[before], lane, self.tasks.edge_bytes(before, task))
            latest = max(latest, self.ends[before] + way)
        return latest

    def _gap(self, lane: int, earliest: float, duration: float) -> float:
        """The first moment from ``earliest`` on at which the lane is free for long enough."""
        start = earliest
        for begin, end, _ in self.busy[lane]:
            if start + duration <= begin:
                return start
            start = max(start, end)
        return start


def _or_never(cost: float | None) -> float:
    return math.inf if cost is None else cost
