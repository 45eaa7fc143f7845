"""What tells whether a sweep, a record or a plan of a student's framework is right: the lab's own laws, on plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import autodiff_lab as ad

from ..attempts import NotPlain
from ..exercise import ACCEPTS_ANYTHING, ANOTHER_ERROR, Misconception, Wrong
from ..schedule_properties import Costs, Graph, Starts
from .lab_graphs import lab_timeline
from .probes import Node, Places, Program, Record, Swept, nodes_of
from .protocol import ProtocolError, Slot

WITHIN = 1e-9  # relative: sums may be made in another order

# ------------------------------------------------------------------------------------------------------------- sweeps


def is_swept(answer: Any, program: Program, leaves: Sequence[Any], times: int = 1, more: Any = None) -> bool:
    """Whether value, gradients and record are those of the lab, the gradients added up as often as was swept."""
    if not is_sweep(answer):
        return False
    expected = labs_sweep(program, leaves)
    return has_numbers(answer, expected, times) and answer[2] == expected[2]


def has_numbers(answer: Swept, expected: Swept, times: int) -> bool:
    """Whether value and gradients agree, the gradients with ``times`` the expected ones."""
    (value, gradients, _record), (wanted, wanted_gradients, _) = answer, expected
    return (
        alike(value, wanted)
        and len(gradients) == len(wanted_gradients)
        and all(alike(one, times * other) for one, other in zip(gradients, wanted_gradients, strict=True))
    )


def is_sweep(answer: Any) -> bool:
    """Whether something has the form of what a sweep gives."""
    return (
        isinstance(answer, tuple) and len(answer) == 3 and isinstance(answer[1], tuple) and isinstance(answer[2], list)
    )


def alike(one: Any, other: Any) -> bool:
    """Whether a number or array has the shape and the numbers of another, but for rounding."""
    if not isinstance(one, int | float | np.number | np.ndarray):
        return False
    other = np.asarray(other)
    return np.shape(one) == other.shape and bool(np.allclose(one, other, rtol=WITHIN, atol=1e-12))


def labs_sweep(program: Program, leaves: Sequence[Any]) -> Swept:
    """What the lab makes of a program: value, gradients, and the record in the form of ``record_of``."""
    tensors = [ad.tensor(np.asarray(one, float), requires_grad=True) for one in leaves]
    output = program(*tensors)
    output.backward()
    gradients = tuple(np.zeros(one.shape) if one.grad is None else one.grad.numpy() for one in tensors)
    graph = ad.graph_of(output)
    place: dict[int, int] = {}
    record: Record = []
    for node in map(graph.nodes.__getitem__, ad.depth_first_order(graph)):
        place[node.id] = len(record)
        record.append((node.op.name if node.op else "", tuple(place[one] for one in node.inputs)))
    return output.numpy(), gradients, record


# -------------------------------------------------------------------------------------------------------------- plans


def plan_fault(places: Any, graph: Sequence[Sequence[int]], costs: Sequence[float], workers: int) -> str:
    """What is wrong with a plan for the last node of a graph: its form, an illegal slot, or time lost; empty if nothing."""
    nodes = nodes_of(graph)
    needed = _needed(graph)
    if not isinstance(places, list) or not all(map(_is_place, places)):
        return "form"
    if sorted(number for number, _worker, _begin in places) != needed:
        return "nodes"
    starts = {str(number): begin for number, _worker, begin in places}
    if timeline_of(places, nodes, costs, workers).faults():
        return "illegal"
    return "idle" if loses_time(starts, waits_of(graph), {task: costs[int(task)] for task in starts}, workers) else ""


def loses_time(starts: Starts, waits: Graph, costs: Costs, workers: int) -> bool:
    """Whether a worker is idle between the moment at which some task is ready and its start. Time O(n log n)."""
    ends = {task: starts[task] + costs[task] for task in starts}
    ready = {task: max((ends[other] for other in waits[task]), default=0.0) for task in starts}
    change: dict[float, int] = {0.0: 0}
    for task in starts:
        change[starts[task]] = change.get(starts[task], 0) + 1
        change[ends[task]] = change.get(ends[task], 0) - 1
    idle_until: dict[float, float] = {}  # seconds, added up over workers
    idle, running, last = 0.0, 0, 0.0
    for moment in sorted(change):
        idle += (workers - running) * (moment - last)
        idle_until[moment], running, last = idle, running + change[moment], moment
    return any(idle_until[starts[task]] - idle_until[ready[task]] > WITHIN for task in starts)


def timeline_of(places: Places, nodes: Sequence[Node], costs: Sequence[float], workers: int) -> Any:
    """The lab's Timeline of a plan."""
    cost_of = dict(zip(map(id, nodes), costs, strict=True))
    slots: list[Slot] = [(nodes[number], worker, begin) for number, worker, begin in places]
    return lab_timeline(nodes[-1], slots, lambda node: cost_of[id(node)], workers)


def waits_of(graph: Sequence[Sequence[int]]) -> dict[str, list[str]]:
    """For each node that is computed for the last one, the computed nodes that it waits for."""
    return {str(number): [str(one) for one in graph[number] if graph[one]] for number in _needed(graph)}


def _is_place(place: Any) -> bool:
    return (
        isinstance(place, tuple)
        and len(place) == 3
        and isinstance(place[1], int | np.integer)
        and isinstance(place[2], int | float | np.number)
        and math.isfinite(place[2])
    )


def _needed(graph: Sequence[Sequence[int]]) -> list[int]:
    """The nodes that are computed, and that the last one depends on."""
    reached, waiting = {len(graph) - 1}, [len(graph) - 1]
    while waiting:
        new = set(graph[waiting.pop()]) - reached
        reached |= new
        waiting += new
    return sorted(number for number in reached if graph[number])


# ------------------------------------------------------------------------------------------------ what explains wrong

PROTOCOL = Misconception(
    "the lab cannot read it",
    "Your part works with names or forms of its own. The lab, and your next part, read what the statement lists: the last "
    "line below says what is missing.",
    lambda wrong: wrong[0].failure == ProtocolError.__name__,
)
NOT_PLAIN = Misconception(
    "not a number",
    "A value or a gradient of yours is an object in place of a number or an array. `data` and `grad` are plain, and only "
    "the value around them is of your class.",
    lambda wrong: any(isinstance(one.answer, NotPlain) for one in wrong),
)
REFUSALS = (ACCEPTS_ANYTHING, ANOTHER_ERROR)


def record_alone(wrong: Sequence[Wrong]) -> bool:
    """Whether the first wrong answer has the right numbers, and another record."""
    answer, (program, leaves, *times) = wrong[0].answer, wrong[0].case.arguments[:3]
    return is_sweep(answer) and has_numbers(answer, labs_sweep(program, leaves), *times or (1,))


def is_not_called(wrong: Sequence[Wrong]) -> bool:
    """Whether something was returned that cannot be called, where a class was asked for."""
    failure = wrong[0].attempt.failure
    return failure is not None and failure.kind == "TypeError" and "not callable" in failure.message
