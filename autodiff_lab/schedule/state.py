"""State: what a policy may look at while tasks run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from . import plans
from .machines import Machine
from .task import Task
from .tasks import Tasks


class State:
    """What a policy may look at while tasks run. The engine keeps it up to date; a policy changes nothing in it.

    Attributes:
        tasks, machine: what is scheduled, and on what.
        plan: what the policy's ``plan`` worked out in advance.
        time: now.
        enqueued: how many tasks have become ready so far; the task whose priority is asked is the next.
        ready: numbers of the tasks that wait for nothing and have not started.
        running: for each task that runs its resource's name.
        lane_of: for each task the lane that it started on (``machine.lanes``), or -1.
        ends: for each task that has finished, when.
        free_units, free_lanes, live: for each resource the units and lanes that are free, and the bytes that live there.
    """

    def __init__(self, tasks: Tasks, machine: Machine, plan: Any = None) -> None:
        self.tasks, self.machine, self.plan = tasks, machine, plan
        self.time = 0.0
        self.enqueued = 0
        self.ready: dict[int, None] = {}
        self.running: dict[int, str] = {}
        self.lane_of = [-1] * len(tasks)
        self.finished = bytearray(len(tasks))
        self.ends = [0.0] * len(tasks)
        self.free_units = [resource.capacity for resource in machine.resources]
        self.free_lanes = [resource.lanes for resource in machine.resources]
        self.live = [0.0] * len(machine.resources)
        self._passed: dict[int, int] = {}

    @cached_property
    def ranks(self) -> list[float]:
        """The upward rank of each task."""
        return plans.upward_ranks(self.tasks, self.machine)

    def resource_of(self, task: int) -> str | None:
        """The name of the resource that a task started on, or None."""
        lane = self.lane_of[task]
        return None if lane < 0 else self.machine.resources[self.machine.lanes[lane][0]].name

    def has_started(self, task: int) -> bool:
        """Whether a task runs or has finished."""
        return self.lane_of[task] >= 0

    def has_finished(self, task: int) -> bool:
        """Whether a task has finished."""
        return bool(self.finished[task])

    def all_finished(self, tasks: Sequence[int]) -> bool:
        """Whether all of these have finished. Asked again for the same list it goes on where it stopped."""
        place = self._passed.get(id(tasks), 0)
        while place < len(tasks) and self.finished[tasks[place]]:
            place += 1
        self._passed[id(tasks)] = place
        return place == len(tasks)

    def can_start(self, task: Task, place: int) -> bool:
        """Whether the resource at ``place`` of the machine can run the task, and has lane, units and memory for it now."""
        resource = self.machine.resources[place]
        return (
            self.free_lanes[place] > 0
            and self.free_units[place] >= task.demand
            and self.live[place] + task.nbytes <= resource.memory
            and task.cost_on(resource) is not None
        )

    def free_for(self, task: Task) -> Iterator[str]:
        """The names of the resources on which the task could start now, in the machine's order."""
        return (r.name for place, r in enumerate(self.machine.resources) if self.can_start(task, place))

    def arrival(self, task: Task, resource: str) -> float:
        """When all that the task waits for has arrived on a resource."""
        place, lanes = self.machine.index(resource), self.machine.lanes
        latest = 0.0
        for before in self.tasks.predecessors[task.id]:
            nbytes = self.tasks.edge_bytes(before, task.id)
            way = self.machine.travel_time(lanes[self.lane_of[before]][0], place, nbytes)
            latest = max(latest, self.ends[before] + way)
        return latest

    def end_on(self, task: Task, resource: str) -> float:
        """When the task would end on a resource if it had it from now on."""
        cost = task.cost_on(self.machine.resources[self.machine.index(resource)])
        assert cost is not None
        return max(self.time, self.arrival(task, resource)) + cost
