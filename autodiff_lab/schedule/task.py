"""Task: one piece of work, what it costs where, what it reads and writes; and what makes it no task."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple, get_args

from .machines import Resource
from .mistakes import ScheduleError

Phase = Literal["F", "dX", "dW", "comm", "update"]
PHASES: tuple[Phase, ...] = get_args(Phase)
Reason = Literal["after", "read after write", "write after read", "write after write"]


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One piece of work that is not interrupted.

    Args:
        call: what a real run calls, with ``args`` and then the values of ``reads`` and ``after``; None is nothing to call.
        name: unique among the tasks; the key where tasks are given as a dict.
        cost: seconds at speed 1; or a cost for each kind or name of a resource, and then it runs on these only.
        after: names of tasks that it waits for and whose values it gets. A dict gives the bytes that it gets from each,
            where that is not all of what the other produced.
        reads, writes: names of values. Without ``writes`` it writes one value with its own name.
        phase: ``F`` forward, ``dX`` and ``dW`` gradients for further rules and for parameters, ``comm``, ``update``.
        nbytes: size of what it produces. It counts from the task's start until its last user has finished.
        priority: for the policy ``priority``: higher goes first.
        on: the name or kind of the resource that it must have; None is any that computes.
        demand: units of the resource's capacity.
        op, node, sequence, micro_batch: where it came from. ``sequence`` is the forward node's number, also in backward.
        serial: ``Node.serial`` of the node that it came from: pictures show both as one thing.
    """

    call: Callable[..., Any] | None = None
    _: KW_ONLY
    name: str = ""
    cost: float | Mapping[str, float] = 1.0
    after: Sequence[str] | Mapping[str, float] = ()
    reads: Sequence[str] = ()
    writes: Sequence[str] = ()
    phase: Phase = "F"
    nbytes: float = 0
    args: tuple[Any, ...] = ()
    priority: float = 0
    on: str | None = None
    demand: int = 1
    op: str = ""
    node: int | None = None
    sequence: int = -1
    micro_batch: int = 0
    serial: int = -1
    id: int = -1  # its place among the tasks, given by Tasks

    @property
    def written(self) -> Sequence[str]:
        """The values that it writes."""
        return self.writes or (self.name,)

    def cost_on(self, resource: Resource) -> float | None:
        """Seconds on a resource; None where it cannot run there.

        >>> Task(name="a", cost={"cuda": 3.0}).cost_on(Resource("gpu", "cuda", speed=2.0))
        1.5
        """
        fits = resource.computes if self.on is None else self.on in (resource.name, resource.kind)
        if not fits or self.demand > resource.capacity:
            return None
        cost = self.cost
        if isinstance(cost, Mapping):
            found = cost.get(resource.name, cost.get(resource.kind))
            return None if found is None else found / resource.speed
        return cost / resource.speed


class Dependency(NamedTuple):
    """One task waits for another, and why."""

    source: int
    target: int
    reason: Reason
    value: str  # the value that both touch
    nbytes: float  # what travels if they run on different devices


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """What a real run calls for a task, and with which values. Values have the numbers of ``Tasks.numbers``."""

    function: Callable[..., Any] | None
    arguments: tuple[Any, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    nbytes: float  # of each value that it writes
    is_light: bool  # unless it is an array, its result takes no memory that counts, and the place of no other


def checked(task: Task) -> Task:
    """The task, if it is one."""
    if not isinstance(task, Task):
        raise ScheduleError(f"expected a Task, got {task!r}; a graph's tasks are made by from_graph(graph)")
    return task


def check_each(tasks: Sequence[Task]) -> None:
    """Refuse tasks without a name of their own, and with costs, sizes or phases that are none."""
    seen: set[str] = set()
    for task in tasks:
        if not task.name or not isinstance(task.name, str):
            raise ScheduleError(f"task {task.id}: it has no name; give it one, or give the tasks as a dict")
        if task.name in seen:
            raise ScheduleError(f"two tasks are named {task.name!r}; give each its own name")
        seen.add(task.name)
        if task.phase not in PHASES:
            raise ScheduleError(f"task {task.name!r}: a phase is one of {', '.join(PHASES)}; got {task.phase!r}")
        for field in ("after", "reads", "writes"):
            if isinstance(getattr(task, field), str):
                raise ScheduleError(
                    f"task {task.name!r}: {field} must be a list of names, got the text {getattr(task, field)!r}"
                )
        _check_numbers(task)


def _check_numbers(task: Task) -> None:
    costs = task.cost.values() if isinstance(task.cost, Mapping) else [task.cost]
    for cost in costs:
        if not _is_amount(cost):
            raise ScheduleError(f"task {task.name!r}: a cost must be a number of at least 0, got {cost!r}")
    if not costs:
        raise ScheduleError(f"task {task.name!r}: it has no cost for any resource, so it can run nowhere")
    if not _is_amount(task.nbytes):
        raise ScheduleError(f"task {task.name!r}: nbytes must be a number of at least 0, got {task.nbytes!r}")
    if type(task.demand) is not int or task.demand < 1:
        raise ScheduleError(f"task {task.name!r}: demand must be a whole number of at least 1, got {task.demand!r}")


def _is_amount(value: Any) -> bool:
    try:
        return bool(0 <= value < math.inf)
    except TypeError:
        return False
