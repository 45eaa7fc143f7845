"""Outcomes: from a graph or tasks and their inputs to outputs and a timeline, whoever runs the tasks; and what failed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from ..graph import Graph
from ..tensors import Tensor
from .costs import CostModel, Roofline
from .graph_tasks import from_graph
from .mistakes import ScheduleError, meant
from .task import Task
from .tasks import Tasks
from .timeline import Status, Timeline

Named = Mapping[str, Any]  # values by name
Carrier = Callable[[Tasks, Named], tuple[Named, Timeline]]  # carries tasks out: from the inputs to what was kept


def outcome(
    caller: str,
    work: Graph | Tasks | Iterable[Task] | Mapping[str, Task],
    inputs: Any,
    costs: CostModel | None,
    run: Carrier,
) -> tuple[Any, Timeline]:
    """The outputs in the form in which the caller expects them, and the timeline.

    Raises:
        ScheduleError: an input is missing; before anything runs.
    """
    if isinstance(work, Graph):
        return _of_graph(work, inputs, costs or Roofline(), run)
    tasks = work if isinstance(work, Tasks) else Tasks(work)
    values, timeline = run(tasks, _named_inputs(caller, tasks, inputs))
    named = dict.fromkeys([*tasks.outputs, *(name for task in tasks.kept for name in tasks[task].written)])
    return {name: values[name] for name in named if name in values}, timeline


def _of_graph(graph: Graph, inputs: Any, costs: CostModel, run: Carrier) -> tuple[Any, Timeline]:
    known = graph.values_with(*map(_plain, inputs))
    tasks = from_graph(graph, costs)
    values, timeline = run(tasks, dict(zip(tasks.inputs, (known[place] for place in graph.inputs), strict=True)))
    for task in tasks:
        known[task.node or 0] = values.get(task.name)
    return graph.results_of(known), timeline


def _plain(value: Any) -> Any:
    """An argument as an array: what runs in parallel records nothing."""
    return value.innermost() if type(value) is Tensor else value


def _named_inputs(caller: str, tasks: Tasks, inputs: Any) -> Named:
    if not isinstance(inputs, Mapping):
        if not len(inputs):
            return _named_inputs(caller, tasks, {})
        raise ScheduleError(
            f"{caller}: the inputs of tasks are a dict from names to values, got {type(inputs).__name__}"
        )
    for name in tasks.inputs:
        if name not in inputs:
            raise ScheduleError(
                f"{caller}: the tasks read {name!r}, which is not among the inputs; {meant(name, inputs)}"
            )
    return inputs


# ---------------------------------------------------------------------------------------------------------- what failed


def statuses(tasks: Tasks, ended: Collection[int], failed: int | None) -> dict[int, Status]:
    """What did not end well: the task that failed, those that depend on it, and those that nobody got to."""
    found: dict[int, Status] = {task: "cancelled" for task in range(len(tasks)) if task not in ended}
    if failed is not None:
        found[failed] = "failed"
        reached = [failed]
        for task in reached:  # grows while it is walked
            for after in tasks.successors[task]:
                if found.get(after) == "cancelled":
                    found[after] = "skipped"
                    reached.append(after)
    return found


def explained(caller: str, error: BaseException, failed: Task | None, timeline: Timeline) -> BaseException:
    """The error with a note that names the task and, for an op, the user's line; its ``timeline`` tells of the rest."""
    if failed is not None:
        source = getattr(failed.call, "source", None)
        error.add_note(f"{caller}: in task {failed.name!r}" + (f", {source}" if source else ""))
    with suppress(AttributeError):
        error.timeline = timeline  # type: ignore[attr-defined]
    return error
