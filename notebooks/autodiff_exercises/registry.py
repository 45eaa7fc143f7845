"""Every exercise of every lesson, by name."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable
from typing import Any

from . import (
    beating_fifo,
    busy_workers,
    clinic,
    computation_graph,
    dispatch_table,
    dual_numbers,
    earliest_backward,
    fused_groups,
    gradient_check,
    gradient_rules,
    hidden_copies,
    jacobian_passes,
    memory_plans,
    missing_edges,
    more_workers,
    nested_derivative,
    op_interfaces,
    op_kernels,
    op_rules,
    orders,
    own_framework,
    pipeline_bubbles,
    placements,
    queue_orders,
    ranks,
    ready_queue,
    reverse_mode,
    second_kernel,
    shapes_without_data,
    shortest_plans,
    tracing,
    two_streams,
)
from .exercise import Exercise

LESSONS = (
    computation_graph,
    tracing,
    dual_numbers,
    jacobian_passes,
    nested_derivative,
    reverse_mode,
    orders,
    gradient_rules,
    gradient_check,
    op_interfaces,
    op_rules,
    op_kernels,
    dispatch_table,
    second_kernel,
    hidden_copies,
    ready_queue,
    queue_orders,
    ranks,
    beating_fifo,
    more_workers,
    shortest_plans,
    placements,
    memory_plans,
    busy_workers,
    shapes_without_data,
    fused_groups,
    earliest_backward,
    two_streams,
    missing_edges,
    pipeline_bubbles,
    clinic,
    own_framework,
)
EXERCISES: dict[str, Exercise] = {one.name: one for lesson in LESSONS for one in lesson.EXERCISES}


def exercise_named(which: str | Callable[..., Any]) -> Exercise:
    """The exercise with this name, or that the function of this name answers.

    >>> exercise_named("topological_order").lesson
    '10_computation_graph'
    """
    name = which if isinstance(which, str) else getattr(which, "__name__", type(which).__name__)
    if name in EXERCISES:
        return EXERCISES[name]
    near = difflib.get_close_matches(name, EXERCISES, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    if callable(which):
        example = near[0] if near else next(iter(EXERCISES))
        written = name if name.isidentifier() and not isinstance(which, functools.partial) else "f"
        guess += f" A function with another name is checked with its exercise: check({example!r}, {written})."
    raise ValueError(f"no exercise is called {name!r}; there are: {', '.join(EXERCISES)}.{guess}")
