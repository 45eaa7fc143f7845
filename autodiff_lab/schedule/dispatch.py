"""The ready queue and what surrounds it, one body for simulated and for real runs: who waits, what is free, what is told."""

from __future__ import annotations

import math
from heapq import heappop, heappush
from typing import Any

from .. import events
from ..events import Receiver
from .asking import ask_place, ask_priority, make_plan, planned_order
from .machines import Machine
from .mistakes import DeadlockError, some
from .policies import Policy, planned, soonest
from .state import State
from .task import Task
from .tasks import Tasks


class Dispatch:
    """Steps 1 to 6 of the workflow, for an engine that says when: it keeps ``state.time``, and takes from ``ready``."""

    def __init__(self, tasks: Tasks, machine: Machine, policy: Policy, tell: Receiver | None) -> None:
        self.tasks, self.machine, self.policy, self.tell = tasks, machine, policy, tell
        self.state = State(tasks, machine, make_plan(policy, tasks, machine))
        self.is_planned = policy.priority is planned
        self.is_alike = policy.place is soonest and _are_alike(tasks, machine)
        # With equal devices and nothing to decide, no state is kept that nobody reads: a quarter of the time.
        self.is_plain = tell is None and self.is_planned and self.is_alike
        self.waiting = list(map(len, tasks.predecessors))
        self.by_priority, self.position = (
            planned_order(policy, self.state.plan, len(tasks)) if self.is_planned else ([], [])
        )
        self.ready: list[Any] = []  # a heap of places in the planned order, or of (-priority, task)
        self.free_on: list[list[int]] = [[] for _ in machine.resources]
        for lane, (place, _) in enumerate(machine.lanes):
            self.free_on[place].append(lane)
        self.awaited: dict[int, Any] = {}  # what each waiting task was last said to wait for
        self.uses: list[list[int]] = []  # for each task those whose results it uses
        self.users_left: list[int] = []

    def expected_end(self, task: int) -> float:
        """When a running task will end, as far as the engine knows; whom others wait for is told by it."""
        raise NotImplementedError

    def collect(self) -> None:
        """Steps 1 to 3."""
        if self.tell is not None:
            self.tell(events.TasksCollected(len(self.tasks), self.policy.name))
            for task, count in enumerate(self.waiting):
                self.tell(events.TaskDependenciesCounted(task, count))
        if not self.is_plain:
            self.count_users()
        for task, count in enumerate(self.waiting):
            if not count:
                self.enqueue(task, 3)

    def count_users(self) -> None:
        """Find out for each task whose results it uses, and how many use its own."""
        self.uses, self.users_left = self.tasks.uses, self.tasks.use_counts.copy()

    def enqueue(self, task: int, step: int) -> None:
        """A task waits for nothing any more: steps 3 and 6."""
        if self.is_plain:
            heappush(self.ready, self.position[task])
            return
        state = self.state
        planned = self.is_planned
        priority = state.plan.priorities[task] if planned else ask_priority(self.policy, self.tasks[task], state)
        heappush(self.ready, self.position[task] if planned else (-priority, task))
        state.ready[task] = None
        state.enqueued += 1
        if self.tell is not None:
            self.tell(events.TaskEnqueued(task, priority, state.time, step))

    def choose(self, number: int) -> int | None:
        """Where the policy lets a ready task start now; None where it waits, and whoever listens is told for what."""
        if self.is_alike:  # ``soonest`` would answer the same, in twenty times the time
            place = next((place for place, free in enumerate(self.state.free_lanes) if free), None)
            is_free = place is not None
        else:
            place = ask_place(self.policy, self.tasks[number], self.state)
            is_free = place is not None and self.state.can_start(self.tasks[number], place)
        if not is_free:
            self._say_waits(self.tasks[number], place)
        return place if is_free else None

    def acquire(self, number: int, place: int) -> int:
        """Step 4: a ready task takes a lane of a resource."""
        state = self.state
        lane = heappop(self.free_on[place])
        state.free_lanes[place] -= 1
        state.free_units[place] -= self.tasks.demands[number]
        state.live[place] += self.tasks.nbytes[number]
        state.lane_of[number] = lane
        state.running[number] = name = self.machine.resources[place].name
        del state.ready[number]
        self.awaited.pop(number, None)
        if self.tell is not None:
            self.tell(events.TaskTaken(number, state.time))
            self.tell(events.ResourceAcquired(number, name, self.machine.lanes[lane][1], state.time))
        return lane

    def release(self, number: int) -> None:
        """A task is done: it gives its lane back, and what it was the last to use is freed."""
        state, lane = self.state, self.state.lane_of[number]
        place, number_of_lane = self.machine.lanes[lane]
        heappush(self.free_on[place], lane)
        state.ends[number] = state.time
        state.free_lanes[place] += 1
        state.free_units[place] += self.tasks.demands[number]
        name = state.running.pop(number)
        state.finished[number] = 1
        self.use_up(number)
        if self.tell is not None:
            self.tell(events.ResourceReleased(number, name, number_of_lane, state.time))

    def use_up(self, number: int) -> None:
        """Free the results that a finished task was the last to use."""
        for producer in self.uses[number]:
            self.users_left[producer] -= 1
            if not self.users_left[producer]:
                self.drop(producer)

    def drop(self, producer: int) -> None:
        """Nobody needs the result of a task any more."""
        self.state.live[self.machine.lanes[self.state.lane_of[producer]][0]] -= self.tasks.nbytes[producer]

    def count_down(self, task: int) -> None:
        """Steps 5 and 6: those that waited for a task wait for one fewer."""
        waiting, tell = self.waiting, self.tell
        for after in self.tasks.successors[task]:
            waiting[after] -= 1
            if tell is not None:
                tell(events.TaskDependencyDone(task, after, waiting[after]))
            if not waiting[after]:
                self.enqueue(after, 6)

    def deadlock(self) -> DeadlockError:
        """The error where nothing runs, and every ready task has to wait."""
        names = some(self.tasks.name(task) for task in self.state.ready)
        return DeadlockError(
            f"policy {self.policy.name!r}: nothing runs at {self.state.time:g}, and it lets every ready task wait: {names}; "
            f"{sum(map(bool, self.waiting)) + len(self.state.ready)} tasks are left. place must name a resource for one of them"
        )

    # ------------------------------------------------------------------------------------------------ saying who waits for what

    def say_waits(self, task: int, resource: str | None, cause: str, blocker: int | None) -> None:
        """Tell why a ready task does not start, once for each reason."""
        if self.tell is not None and self.awaited.get(task) != (resource, cause, blocker):
            self.awaited[task] = (resource, cause, blocker)
            self.tell(events.ResourceAwaited(task, resource, cause, blocker, self.state.time))

    def _say_waits(self, task: Task, place: int | None) -> None:
        if self.tell is None:
            return
        state, resources = self.state, self.machine.resources
        able = [p for p, r in enumerate(resources) if task.cost_on(r) is not None] if place is None else [place]
        name = resources[able[0]].name if len(able) == 1 else None
        holders = [other for other, on in state.running.items() if self.machine.index(on) in able]
        blocker = min(holders, key=lambda other: (self.expected_end(other), other), default=None)
        if any(state.can_start(task, p) for p in able):
            self.say_waits(task.id, name, "policy", blocker)
        elif any(state.free_lanes[p] and state.free_units[p] >= task.demand for p in able):
            self.say_waits(task.id, name, "memory", blocker)
        else:
            self.say_waits(task.id, name, "busy", blocker)


def _are_alike(tasks: Tasks, machine: Machine) -> bool:
    """Whether any free lane is as good as any other for every task."""
    speeds = {resource.speed for resource in machine.resources}
    return (
        tasks.are_plain
        and not machine.transfers
        and len(speeds) == 1
        and all(r.computes and r.memory == math.inf and r.lanes == r.capacity for r in machine.resources)
    )
