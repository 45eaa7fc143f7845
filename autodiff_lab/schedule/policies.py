"""Policies: which ready task goes first, and where it runs. Each is two pure functions, ``priority`` and ``place``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import plans
from .machines import Machine
from .mistakes import ScheduleError, meant
from .plans import Plan
from .search import Search
from .state import State
from .task import Task
from .tasks import Tasks

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


def _forward_backward_forward_backward(tasks: Tasks, machine: Machine) -> Plan:
    """A round for each forward and each backward pass. Updates and other work that comes once belong to the last round."""
    last = 2 * max((task.micro_batch for task in tasks), default=0) + 1
    rounds = [last if task.phase == "update" else 2 * task.micro_batch + (task.phase != "F") for task in tasks]
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


def searched(budget: float | None = None, steps: int | None = None, seed: int = 0) -> Policy:
    """The policy ``search`` with a budget of its own: seconds, or steps for the same schedule on every run. See ``Search``.

    >>> from autodiff_lab.schedule import simulate
    >>> tasks = Tasks([Task(name=str(cost), cost=cost) for cost in (2.0, 2.1, 3.0, 3.1, 2.2)])
    >>> simulate(tasks, 2, "heft").makespan, round(simulate(tasks, 2, searched(steps=20)).makespan, 1)
    (7.2, 6.3)
    """
    return Policy("search", planned, where_planned, Search(budget, steps, seed))


POLICIES: Mapping[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy("serial", planned, one_at_a_time, _topological),
        Policy("in_order", planned, in_turn, _topological),
        Policy("level_barrier", planned, after_its_round, _level_by_level),
        Policy("loop", planned, after_its_round, _forward_backward_forward_backward),
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
        searched(),
    )
}
"""Every policy by its name.

* ``serial``: one task at a time, in topological order. ``in_order``: in topological order, each as soon as a device is free and
  the one before it has started, which is how a framework works that hands ops out without a ready queue.
* ``level_barrier``: level by level. ``loop``: forward, backward, forward, backward, one micro-batch after the
  other, each pass with a ready queue of its own.
* ``fifo``, ``lifo``: the ready queue, the oldest or the newest first. ``priority``: by ``Task.priority``, equals in order of
  submission, which is Graham's list scheduling. ``latest_first``: the highest sequence number first, as in PyTorch's backward.
* ``critical_path``: the longest way to the end first.
* ``backward_first``: dX and dW before F, so few activations live. ``zero_bubble``: dX, then F, and dW fills the gaps (Qi, Wan,
  Huang and Lin, Zero bubble pipeline parallelism, 2023).
* ``heft``, ``peft``: whole schedules laid out in advance. ``work_stealing``: a task stays where its last operand was made, the
  newest first; a device with nothing of its own takes another's oldest (Blumofe and Leiserson, 1999).
* ``search``: tries many schedules before anything runs, and follows the shortest; ``searched`` gives it a budget.
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
