"""Policies: which ready task goes first, and where it runs. Each is two pure functions, ``priority`` and ``place``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from . import plans
from .machines import Machine
from .mistakes import PolicyError, ScheduleError, meant
from .plans import Plan
from .tasks import Task, Tasks


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


Priority = Callable[[Task, State], float]  # the highest goes first, equals in order of submission
Place = Callable[[Task, State], "str | None"]  # a resource's name; None is: not now


def soonest(task: Task, state: State) -> str | None:
    """Of the resources that are free, the one where the task ends first; equals in the machine's order."""
    return min(state.free_for(task), key=lambda resource: state.end_on(task, resource), default=None)


def planned(task: Task, state: State) -> float:
    """The priority that the plan gives."""
    priority: float = state.plan.priorities[task.id]
    return priority


@dataclass(frozen=True, slots=True)
class Policy:
    """Which ready task goes first, and where it runs.

    Args:
        name: how figures and errors call it.
        priority: asked once, when a task becomes ready. The highest goes first, equals in order of submission.
        place: asked for ready tasks in that order whenever something has changed. It answers a resource's name, or None to
            let the task wait. A resource that is busy is waited for.
        plan: what can be known in advance; the functions find it as ``state.plan``.

    >>> shortest = Policy("shortest", lambda task, state: -task.cost)
    >>> shortest.place is soonest
    True
    """

    name: str
    priority: Priority
    place: Place = soonest
    plan: Callable[[Tasks, Machine], Any] | None = None


# ------------------------------------------------------------------------------------------------------------ in order


def in_turn(task: Task, state: State) -> str | None:
    """Not before the task that the plan puts before it has started."""
    before = state.plan.previous[task.id]
    return None if before >= 0 and not state.has_started(before) else soonest(task, state)


def one_at_a_time(task: Task, state: State) -> str | None:
    """In turn, and only while nothing else runs."""
    return None if state.running else in_turn(task, state)


def after_its_round(task: Task, state: State) -> str | None:
    """Not before every task of the round before has finished."""
    return soonest(task, state) if state.all_finished(state.plan.before[task.id]) else None


def where_planned(task: Task, state: State) -> str | None:
    """On the planned resource, after the task that is planned before it there."""
    before = state.plan.previous[task.id]
    return None if before >= 0 and not state.has_started(before) else str(state.plan.resources[task.id])


def _topological(tasks: Tasks, _machine: Machine) -> Plan:
    return plans.in_turn(tasks.order)


def _level_by_level(tasks: Tasks, _machine: Machine) -> Plan:
    return plans.in_rounds(tasks, plans.levels(tasks))


def _micro_batch_by_micro_batch(tasks: Tasks, machine: Machine) -> Plan:
    """Updates and other work that comes once belong to the last round."""
    last = max((task.micro_batch for task in tasks), default=0)
    rounds = [last if task.phase == "update" else task.micro_batch for task in tasks]
    return plans.in_rounds(tasks, rounds, plans.upward_ranks(tasks, machine))


# --------------------------------------------------------------------------------------------------------- ready queues


def _own_priority(task: Task, _state: State) -> float:
    return task.priority


def _first_come(_task: Task, state: State) -> float:
    return -state.enqueued


def _last_come(_task: Task, state: State) -> float:
    return state.enqueued


def _latest_first(tasks: Tasks, _machine: Machine) -> Plan:
    return Plan([task.sequence if task.sequence >= 0 else task.id for task in tasks])


def _by_upward_rank(tasks: Tasks, machine: Machine) -> Plan:
    return Plan(plans.upward_ranks(tasks, machine))


BACKWARD_FIRST = ("F", "update", "dW", "dX", "comm")  # the most urgent last
ZERO_BUBBLE = ("update", "dW", "F", "dX", "comm")


def _by_phase(urgency: Sequence[str]) -> Callable[[Tasks, Machine], Plan]:
    def plan(tasks: Tasks, machine: Machine) -> Plan:
        """Phases by urgency, then the oldest micro-batch, then the longest way to the end."""
        ranks = plans.upward_ranks(tasks, machine)
        return plans.by_key(tasks, lambda t: (urgency.index(tasks[t].phase), -tasks[t].micro_batch, ranks[t]))

    return plan


def at_home_or_stolen(task: Task, state: State) -> str | None:
    """On the resource that finished the last of what it waited for; a resource with no task of its own takes the oldest."""
    home = _home(task, state)
    free = list(state.free_for(task))
    if home in free:
        return home
    waiting = [state.tasks[other] for other in state.ready]
    homes = {_home(other, state) for other in waiting}
    oldest = next((other for other in waiting if _home(other, state) == home), task)
    return next((name for name in free if name not in homes), None) if oldest.id == task.id else None


def _home(task: Task, state: State) -> str:
    before = state.tasks.predecessors[task.id]
    able = [r.name for r in state.machine.resources if task.cost_on(r) is not None]
    if not before:
        return able[task.id % len(able)]
    last = state.resource_of(max(before, key=lambda other: (state.ends[other], other)))
    return last if last in able else able[0]


POLICIES: Mapping[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy("serial", planned, one_at_a_time, _topological),
        Policy("in_order", planned, in_turn, _topological),
        Policy("level_barrier", planned, after_its_round, _level_by_level),
        Policy("loop", planned, after_its_round, _micro_batch_by_micro_batch),
        Policy("priority", _own_priority),
        Policy("fifo", _first_come),
        Policy("lifo", _last_come),
        Policy("latest_first", planned, plan=_latest_first),
        Policy("critical_path", planned, plan=_by_upward_rank),
        Policy("backward_first", planned, plan=_by_phase(BACKWARD_FIRST)),
        Policy("zero_bubble", planned, plan=_by_phase(ZERO_BUBBLE)),
        Policy("heft", planned, where_planned, plans.heft),
        Policy("peft", planned, where_planned, plans.peft),
        Policy("work_stealing", _last_come, at_home_or_stolen),
    )
}
"""Every policy by its name.

* ``serial``: one task at a time, in topological order. ``in_order``: in topological order, each as soon as a device is free and
  the one before it has started, which is how a framework works that hands ops out without a ready queue.
* ``level_barrier``: level by level. ``loop``: micro-batch by micro-batch, each with a ready queue of its own.
* ``fifo``, ``lifo``: the ready queue, the oldest or the newest first. ``priority``: by ``Task.priority``, equals in order of
  submission, which is Graham's list scheduling. ``latest_first``: the highest sequence number first, as in PyTorch's backward.
* ``critical_path``: the longest way to the end first.
* ``backward_first``: dX and dW before F, so few activations live. ``zero_bubble``: dX, then F, and dW fills the gaps (Qi, Wan,
  Huang and Lin, Zero bubble pipeline parallelism, 2023).
* ``heft``, ``peft``: whole schedules laid out in advance. ``work_stealing``: a task stays where its last operand was made, the
  newest first; a device with nothing of its own takes another's oldest (Blumofe and Leiserson, 1999).
"""
DEFAULT = "lifo"  # the newest first goes into the depth: what was just made is used, and freed, next


def as_policy(policy: str | Policy | Priority | tuple[Priority, Place]) -> Policy:
    """A policy by its name, a Policy, a priority function, or a pair of priority and place functions.

    >>> as_policy("fifo").name
    'fifo'
    >>> def shortest_first(task, state):
    ...     return -task.cost
    >>> as_policy(shortest_first).name
    'shortest_first'
    """
    if isinstance(policy, str):
        if policy not in POLICIES:
            raise ScheduleError(f"no policy is named {policy!r}; {meant(policy, POLICIES)}")
        return POLICIES[policy]
    if isinstance(policy, Policy):
        return policy
    priority, place = policy if isinstance(policy, tuple) else (policy, soonest)
    if not callable(priority) or not callable(place):
        raise ScheduleError(
            f"a policy is a name, a Policy, a function priority(task, state), or a pair with place(task, state); got {policy!r}"
        )
    return Policy(getattr(priority, "__name__", "policy"), priority, place)


# -------------------------------------------------------------------------------------- asking, and refusing nonsense


def make_plan(policy: Policy, tasks: Tasks, machine: Machine) -> Any:
    """What the policy works out in advance."""
    try:
        return None if policy.plan is None else policy.plan(tasks, machine)
    except Exception as error:
        raise _raised(policy, "plan(tasks, machine)", error) from error


def planned_order(policy: Policy, plan: Any, total: int) -> tuple[list[int], list[int]]:
    """The tasks by planned priority, equals in order of submission; and for each task its place in that order.

    Raises:
        PolicyError: the plan has not one number for each task.
    """
    try:
        priorities = np.asarray(plan.priorities, np.float64)
    except (AttributeError, TypeError, ValueError) as error:
        raise _raised(policy, "plan.priorities", error) from error
    if priorities.shape != (total,) or np.isnan(priorities).any():
        raise PolicyError(
            f"policy {policy.name!r}: plan.priorities must be {total} numbers, one a task; got {plan.priorities!r}"
        )
    order = np.argsort(-priorities, kind="stable")  # 0.2 µs a task; sorted with a key takes 0.5
    position = np.empty_like(order)
    position[order] = np.arange(total)
    return order.tolist(), position.tolist()


def ask_priority(policy: Policy, task: Task, state: State) -> float:
    """The priority of a task that has become ready.

    Raises:
        PolicyError: the policy raised, or answered no number.
    """
    try:
        answer = policy.priority(task, state)
    except Exception as error:
        raise _raised(policy, f"priority({task.name!r})", error) from error
    if not isinstance(answer, Real) or answer != answer:
        raise PolicyError(
            f"policy {policy.name!r}: priority({task.name!r}) must be a number, the highest goes first; got {answer!r}"
        )
    return answer


def ask_place(policy: Policy, task: Task, state: State) -> int | None:
    """The place in the machine where a task is to run, or None to let it wait.

    Raises:
        PolicyError: the policy raised, named no resource, or named one that cannot run the task.
    """
    try:
        answer = policy.place(task, state)
    except Exception as error:
        raise _raised(policy, f"place({task.name!r})", error) from error
    if answer is None:
        return None
    machine = state.machine
    place = machine.places.get(answer) if isinstance(answer, str) else None
    if place is None:
        raise PolicyError(
            f"policy {policy.name!r}: place({task.name!r}) must name a resource or be None; got {answer!r}; "
            f"{meant(answer, machine.places)}"
        )
    if task.cost_on(machine.resources[place]) is None:
        able = [r.name for r in machine.resources if task.cost_on(r) is not None]
        raise PolicyError(f"policy {policy.name!r}: task {task.name!r} cannot run on {answer!r}; it can on {able}")
    return place


def _raised(policy: Policy, call: str, error: Exception) -> PolicyError:
    return PolicyError(f"policy {policy.name!r}: {call} raised {type(error).__name__}: {error}")
