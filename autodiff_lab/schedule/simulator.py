"""Simulate: run tasks in virtual time on the devices of a machine, and tell the lecture's seven steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from .. import events
from ..events import Receiver
from .asking import ask_place
from .dispatch import Dispatch
from .machines import Machine, cores
from .mistakes import OutOfMemoryError, some
from .policies import DEFAULT, Place, Policy, Priority, as_policy
from .task import Task
from .tasks import Tasks, check_places
from .timeline import Timeline


def simulate(
    tasks: Tasks | Iterable[Task] | Mapping[str, Task],
    machine: Machine | int,
    policy: str | Policy | Priority | tuple[Priority, Place] = DEFAULT,
    tell: Receiver | None = None,
) -> Timeline:
    """The timeline of ``tasks`` on a machine, event by event in virtual time.

    Whenever something has ended, the ready tasks are asked in order of priority (equals in order of submission) where to run;
    each starts if its resource has a lane, units, memory, and its values have arrived. The same call gives the same timeline,
    always. Time O((tasks + dependencies) · log tasks) for policies that let no ready task wait.

    Args:
        tasks: ``Tasks``, or what they are made of.
        machine: a Machine, or a number of equal cores.
        policy: a name in ``POLICIES``, a Policy, a function ``priority(task, state)``, or a pair with ``place(task, state)``.
        tell: hears each step as an event of ``autodiff_lab.events``; by default whoever listens with ``ad.listen``.

    Raises:
        ScheduleError: tasks, machine and policy do not fit; says which task and why, before anything runs.
        PolicyError: the policy raised or answered nonsense.
        DeadlockError: the policy lets every ready task wait while nothing runs.
        OutOfMemoryError: no ready task fits into the memory that is left, and nothing runs that would free some.

    >>> tasks = {"a": Task(cost=3), "b": Task(cost=2), "c": Task(cost=2, after=["b"])}
    >>> simulate(tasks, 2, "critical_path").makespan
    4.0
    >>> simulate(tasks, 1, lambda task, state: task.cost).order
    [0, 1, 2]
    """
    tasks = tasks if isinstance(tasks, Tasks) else Tasks(tasks)
    machine = machine if isinstance(machine, Machine) else cores(machine)
    check_places(tasks, machine)
    return _Simulation(tasks, machine, as_policy(policy), tell or events.receiver()).run()


class _Simulation(Dispatch):
    """The engine that says when: the clock jumps to the next end of a task."""

    def __init__(self, tasks: Tasks, machine: Machine, policy: Policy, tell: Receiver | None) -> None:
        super().__init__(tasks, machine, policy, tell)
        self.running: list[tuple[float, int]] = []  # a heap of (end, task); the task -1 only wakes those who wait
        self.arrivals: set[float] = set()  # the moments at which somebody is woken
        self.free = list(range(len(machine.lanes)))  # a heap of lanes

    def run(self) -> Timeline:
        """Steps 1 to 7. One body for all policies: what state and policy are asked is in ``Dispatch``."""
        tasks, successors, waiting = self.tasks, self.tasks.successors, self.waiting
        ready, running, free, is_plain, is_planned = self.ready, self.running, self.free, self.is_plain, self.is_planned
        is_alike, costs = self.is_alike, self._costs() if self.is_alike else ()
        free_lanes, listens = (
            self.state.free_lanes,
            self.tell is not None,
        )  # who listens is told what every ready task waits for
        by_priority, position = self.by_priority, self.position
        starts, ends, lane_of = [math.nan] * len(tasks), self.state.ends, self.state.lane_of
        self.collect()
        now, aside = 0.0, []
        while True:
            while ready and (free if is_plain else listens or any(free_lanes)):  # step 4
                entry = heappop(ready)
                task = by_priority[entry] if is_planned else entry[1]
                lane = heappop(free) if is_plain else self._acquire(task)
                if lane < 0:
                    aside.append(entry)
                    continue
                starts[task], lane_of[task] = now, lane
                heappush(running, (now + (costs[task] if is_alike else self._duration(task, lane)), task))
            if aside:
                ready.extend(aside)
                heapify(ready)
                aside.clear()
            if not running:
                break
            now, task = heappop(running)
            while True:  # all that ends now, before anything else starts
                if not is_plain:
                    self._release(task, now)
                else:
                    ends[task] = now
                    heappush(free, lane_of[task])
                    for after in successors[task]:  # step 5
                        waiting[after] = left = waiting[after] - 1
                        if not left:  # step 6
                            heappush(ready, position[after])
                if not running or running[0][0] > now:
                    break
                task = heappop(running)[1]
        self._end(now, starts)
        return Timeline(tasks, self.machine, self.policy.name, starts, ends, lane_of)

    def expected_end(self, task: int) -> float:
        """When a running task will end: exactly, since this engine knows."""
        return next(end for end, other in self.running if other == task)

    def _end(self, now: float, starts: list[float]) -> None:
        if any(map(math.isnan, starts)):
            raise self._stuck()
        if self.tell is not None:
            self.tell(events.AllTasksDone(now))

    def _stuck(self) -> Exception:
        full = [task for task in self.state.ready if self._lacks_memory(self.tasks[task])]
        if full:
            living = [p for p, n in enumerate(self.users_left) if self.state.lane_of[p] >= 0 and n]
            lives = some(f"{self.tasks.name(p)} ({self.tasks.nbytes[p]:g})" for p in living if self.tasks.nbytes[p])
            wanted = some(f"{self.tasks.name(task)} ({self.tasks.nbytes[task]:g})" for task in full)
            return OutOfMemoryError(
                f"policy {self.policy.name!r}: out of memory at {self.state.time:g}: {wanted} do not fit, and nothing runs "
                f"that would free some; what lives: {lives}. Another order, or more memory, is needed"
            )
        return self.deadlock()

    def _lacks_memory(self, task: Task) -> bool:
        """Whether a task does not fit where the policy wants it, or nowhere; nothing runs, so lanes and units are free."""
        able = [place for place, r in enumerate(self.machine.resources) if task.cost_on(r) is not None]
        wanted = ask_place(self.policy, task, self.state)
        return not any(self.state.can_start(task, place) for place in (able if wanted is None else [wanted]))

    def _costs(self) -> Sequence[float]:
        speed = self.machine.resources[self.machine.computing[0]].speed
        costs: Any = self.tasks.costs
        return costs if speed == 1 else [cost / speed for cost in costs]

    def _duration(self, task: int, lane: int) -> float:
        cost = self.tasks[task].cost_on(self.machine.resources[self.machine.lanes[lane][0]])
        assert cost is not None
        return cost

    def _release(self, task: int, now: float) -> None:
        self.state.time = now
        if task >= 0:  # else only a value has arrived
            self.release(task)
            self.count_down(task)

    def _acquire(self, number: int) -> int:
        """A lane for the task, or -1: it waits, and whoever listens is told for what."""
        place = self.choose(number)
        if place is None:
            return -1
        if self.machine.transfers:
            task, name = self.tasks[number], self.machine.resources[place].name
            if (arrival := self.state.arrival(task, name)) > self.state.time:
                if arrival not in self.arrivals:
                    self.arrivals.add(arrival)
                    heappush(self.running, (arrival, -1))
                self.say_waits(number, name, "transfer", self._last_to_arrive(task, name, arrival))
                return -1
        return self.acquire(number, place)

    def _last_to_arrive(self, task: Task, name: str, arrival: float) -> int:
        """The task whose value is still on its way."""
        place, lanes = self.machine.index(name), self.machine.lanes

        def arrives(other: int) -> float:
            way = self.machine.travel_time(
                lanes[self.state.lane_of[other]][0], place, self.tasks.edge_bytes(other, task.id)
            )
            return self.state.ends[other] + way

        return max(self.tasks.predecessors[task.id], key=arrives)
