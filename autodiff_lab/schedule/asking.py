"""Asking a policy: for its plan, for priorities, for places. Nonsense is refused with the names of policy and task."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from .machines import Machine
from .mistakes import PolicyError, meant
from .policies import Policy
from .state import State
from .task import Task
from .tasks import Tasks

NUMBER = (float, int, Real)  # a class is tested in the tenth of the time of an abstract one


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
    if not isinstance(answer, NUMBER) or answer != answer:
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
