"""Simulate: run tasks in virtual time on the devices of a machine, and tell the lecture's seven steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import Any

from .. import events
from ..events import Receiver
from .machines import Machine, cores
from .mistakes import DeadlockError, OutOfMemoryError, some
from .policies import (
    DEFAULT,
    Place,
    Policy,
    Priority,
    State,
    as_policy,
    ask_place,
    ask_priority,
    make_plan,
    planned,
    soonest,
)
from .tasks import Task, Tasks, check_places
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
    now = events.context.get()
    return _Simulation(tasks, machine, as_policy(policy), tell or (now.receiver if now else None)).run()


class _Simulation:
    def __init__(self, tasks: Tasks, machine: Machine, policy: Policy, tell: Receiver | None) -> None:
        self.tasks, self.machine, self.policy, self.tell = tasks, machine, policy, tell
        self.state = State(tasks, machine, make_plan(policy, tasks, machine))
        self.is_planned = policy.priority is planned
        # With equal devices and nothing to decide, no state is kept that nobody reads: a quarter of the time.
        self.is_plain = tell is None and self.is_planned and policy.place is soonest and _are_alike(tasks, machine)
        self.waiting = list(map(len, tasks.predecessors))
        self.ready: list[Any] = []  # a heap of places in the planned order, or of (-priority, task)
        self.running: list[tuple[float, int]] = []  # a heap of (end, task); the task -1 only wakes those who wait
        self.arrivals: set[float] = set()  # the moments at which somebody is woken
        self.free = list(range(len(machine.lanes)))  # a heap of lanes
        self.free_on: list[list[int]] = [[] for _ in machine.resources]
        for lane, (place, _) in enumerate(machine.lanes):
            self.free_on[place].append(lane)
        self.position: list[int] = []  # for each task its place in the planned order
        self.awaited: dict[int, Any] = {}  # what each waiting task was last said to wait for
        self.uses: list[list[int]] = []  # for each task those whose results it uses
        self.users_left: list[int] = []

    def run(self) -> Timeline:
        """Steps 1 to 7. One body for all policies: what state and policy are asked is in ``_acquire`` and ``_release``."""
        tasks, successors, waiting = self.tasks, self.tasks.successors, self.waiting
        ready, running, free, is_plain, is_planned = self.ready, self.running, self.free, self.is_plain, self.is_planned
        costs: Any = self._costs() if is_plain else ()
        by_priority = self._planned_order() if is_planned else []
        position = self.position = _inverse(by_priority)
        starts, ends, lane_of = [math.nan] * len(tasks), self.state.ends, self.state.lane_of
        self._begin()
        now, aside = 0.0, []
        while True:
            while ready and (free or not is_plain):  # step 4
                entry = heappop(ready)
                task = by_priority[entry] if is_planned else entry[1]
                lane = heappop(free) if is_plain else self._acquire(task)
                if lane < 0:
                    aside.append(entry)
                    continue
                starts[task], lane_of[task] = now, lane
                heappush(running, (now + costs[task] if is_plain else now + self._duration(task, lane), task))
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

    # --------------------------------------------------------------------------------------------------- before and after

    def _begin(self) -> None:
        """Steps 1 to 3."""
        if self.tell is not None:
            self.tell(events.TasksCollected(len(self.tasks), self.policy.name))
            for task, count in enumerate(self.waiting):
                self.tell(events.TaskDependenciesCounted(task, count))
        if not self.is_plain:
            self.users_left = list(map(len, self.tasks.users))
            self.uses = [[] for _ in self.waiting]
            for producer, users in enumerate(self.tasks.users):
                for user in users:
                    self.uses[user].append(producer)
        for task, count in enumerate(self.waiting):
            if not count:
                self._enqueue(task, 3)

    def _end(self, now: float, starts: list[float]) -> None:
        left = [task for task, start in enumerate(starts) if math.isnan(start)]
        if left:
            raise self._stuck(left)
        if self.tell is not None:
            self.tell(events.AllTasksDone(now))

    def _stuck(self, left: list[int]) -> Exception:
        names = some(self.tasks.name(task) for task in self.state.ready)
        full = [task for task in self.state.ready if self._lacks_memory(self.tasks[task])]
        if full:
            living = [
                p for p, n in enumerate(self.users_left) if self.state.lane_of[p] >= 0 and (n or p in self.tasks.kept)
            ]
            lives = some(f"{self.tasks.name(p)} ({self.tasks.nbytes[p]:g})" for p in living if self.tasks.nbytes[p])
            wanted = some(f"{self.tasks.name(task)} ({self.tasks.nbytes[task]:g})" for task in full)
            return OutOfMemoryError(
                f"policy {self.policy.name!r}: out of memory at {self.state.time:g}: {wanted} do not fit, and nothing runs "
                f"that would free some; what lives: {lives}. Another order, or more memory, is needed"
            )
        return DeadlockError(
            f"policy {self.policy.name!r}: nothing runs at {self.state.time:g}, and it lets every ready task wait: {names}; "
            f"{len(left)} tasks are left. place must name a resource for one of them"
        )

    def _lacks_memory(self, task: Task) -> bool:
        able = [place for place, r in enumerate(self.machine.resources) if task.cost_on(r) is not None]
        return all(self.state.live[place] + task.nbytes > self.machine.resources[place].memory for place in able)

    def _planned_order(self) -> list[int]:
        priorities = self.state.plan.priorities
        return sorted(range(len(self.tasks)), key=priorities.__getitem__, reverse=True)  # stable also in reverse

    def _costs(self) -> list[float]:
        speed = self.machine.resources[self.machine.computing[0]].speed
        costs: Any = self.tasks.costs
        return costs if speed == 1 else [cost / speed for cost in costs]

    def _duration(self, task: int, lane: int) -> float:
        cost = self.tasks[task].cost_on(self.machine.resources[self.machine.lanes[lane][0]])
        assert cost is not None
        return cost

    # ---------------------------------------------------------------------------------------------------------- the steps

    def _enqueue(self, task: int, step: int) -> None:
        state = self.state
        if self.is_plain:
            heappush(self.ready, self.position[task])
            return
        priority = ask_priority(self.policy, self.tasks[task], state)
        heappush(self.ready, self.position[task] if self.is_planned else (-priority, task))
        state.ready[task] = None
        state.enqueued += 1
        if self.tell is not None:
            self.tell(events.TaskEnqueued(task, priority, state.time, step))

    def _count_down(self, task: int) -> None:
        """Steps 5 and 6 after a task."""
        for after in self.tasks.successors[task]:
            self.waiting[after] -= 1
            if self.tell is not None:
                self.tell(events.TaskDependencyDone(task, after, self.waiting[after]))
            if not self.waiting[after]:
                self._enqueue(after, 6)

    def _acquire(self, number: int) -> int:
        """A lane for the task, or -1: it waits, and whoever listens is told for what."""
        state, task = self.state, self.tasks[number]
        if self.tell is None and not any(state.free_lanes):
            return -1
        place = ask_place(self.policy, task, state)
        if place is None or not state.can_start(task, place):
            self._say_waits(task, place)
            return -1
        name = self.machine.resources[place].name
        if self.machine.transfers and (arrival := state.arrival(task, name)) > state.time:
            if arrival not in self.arrivals:
                self.arrivals.add(arrival)
                heappush(self.running, (arrival, -1))
            self._say(number, name, "transfer", self._last_to_arrive(task, name, arrival))
            return -1
        lane = heappop(self.free_on[place])
        state.free_lanes[place] -= 1
        state.free_units[place] -= task.demand
        state.live[place] += task.nbytes
        state.running[number] = name
        del state.ready[number]
        self.awaited.pop(number, None)
        if self.tell is not None:
            self.tell(events.TaskTaken(number, state.time))
            self.tell(events.ResourceAcquired(number, name, self.machine.lanes[lane][1], state.time))
        return lane

    def _release(self, number: int, now: float) -> None:
        state = self.state
        state.time = now
        if number < 0:  # only a value that has arrived
            return
        lane, state.ends[number] = state.lane_of[number], now
        place = self.machine.lanes[lane][0]
        heappush(self.free_on[place], lane)
        state.free_lanes[place] += 1
        state.free_units[place] += self.tasks[number].demand
        del state.running[number]
        state.finished[number] = 1
        for producer in self.uses[number]:
            self.users_left[producer] -= 1
            if not self.users_left[producer] and producer not in self.tasks.kept:
                state.live[self.machine.lanes[state.lane_of[producer]][0]] -= self.tasks.nbytes[producer]
        if self.tell is not None:
            self.tell(
                events.ResourceReleased(
                    number, state.resource_of(number) or "", self.machine.lanes[lane][1], state.time
                )
            )
        self._count_down(number)

    # ------------------------------------------------------------------------------------------------ saying who waits for what

    def _say_waits(self, task: Task, place: int | None) -> None:
        if self.tell is None:
            return
        state, resources = self.state, self.machine.resources
        able = [p for p, r in enumerate(resources) if task.cost_on(r) is not None] if place is None else [place]
        name = resources[able[0]].name if len(able) == 1 else None
        holders = [
            (self._end_of(other), other) for other, on in state.running.items() if self.machine.index(on) in able
        ]
        blocker = min(holders)[1] if holders else None
        if any(state.can_start(task, p) for p in able):
            self._say(task.id, name, "policy", blocker)
        elif any(state.free_lanes[p] and state.free_units[p] >= task.demand for p in able):
            self._say(task.id, name, "memory", blocker)
        else:
            self._say(task.id, name, "busy", blocker)

    def _end_of(self, task: int) -> float:
        return next(end for end, other in self.running if other == task)

    def _last_to_arrive(self, task: Task, name: str, arrival: float) -> int:
        """The task whose value is still on its way."""
        place, lanes = self.machine.index(name), self.machine.lanes

        def arrives(other: int) -> float:
            way = self.machine.travel_time(
                lanes[self.state.lane_of[other]][0], place, self.tasks.edge_bytes(other, task.id)
            )
            return self.state.ends[other] + way

        return max(self.tasks.predecessors[task.id], key=arrives)

    def _say(self, task: int, resource: str | None, cause: str, blocker: int | None) -> None:
        if self.tell is not None and self.awaited.get(task) != (resource, cause, blocker):
            self.awaited[task] = (resource, cause, blocker)
            self.tell(events.ResourceAwaited(task, resource, cause, blocker, self.state.time))


def _inverse(order: list[int]) -> list[int]:
    position = [0] * len(order)
    for place, task in enumerate(order):
        position[task] = place
    return position


def _are_alike(tasks: Tasks, machine: Machine) -> bool:
    """Whether any free lane is as good as any other for every task."""
    speeds = {resource.speed for resource in machine.resources}
    return (
        tasks.are_plain
        and not machine.transfers
        and len(speeds) == 1
        and all(r.computes and r.memory == math.inf and r.lanes == r.capacity for r in machine.resources)
    )
