"""What is said of plans: what is not computed, what each step runs, and where values lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autodiff_lab import events

from ..values import bytes_text
from .sentences import Names, counted, listed, says

if TYPE_CHECKING:
    from autodiff_lab.planning import Plan


@says(events.NodeFolded)
def _node_folded(event: events.NodeFolded, name: Names) -> str:
    if event.into == event.node:
        return f"{name(event.node)} has only constants as operands: it is computed once, now, and becomes a constant."
    return f"{name(event.node)} has the value of {name(event.into)}, which takes its place."


@says(events.NodeShared)
def _node_shared(event: events.NodeShared, name: Names) -> str:
    return f"{name(event.node)} computes what {name(event.earlier)} has computed already: one result serves both."


@says(events.NodeDropped)
def _node_dropped(event: events.NodeDropped, name: Names) -> str:
    return f"No output needs {name(event.node)}: it is not computed."


@says(events.StepPlanned)
def _step_planned(event: events.StepPlanned, name: Names) -> str:
    what = name(event.nodes[-1])
    if len(event.nodes) > 1:
        what = f"{counted(len(event.nodes), 'op')}, the last of which is {what}"
    calls = counted(event.calls, "NumPy call")
    how = {
        "ufunc": f"by {calls}",
        "kernel": "by its own kernel",
        "view": "as a view: no number moves",
        "blocked NumPy": f"block by block, by {calls}",
        "one launch": "by one launch on the device",
    }
    return f"Step {event.step} runs {what}, {how.get(event.kind, f'as a {event.kind}')}."


@says(events.BufferTaken)
def _buffer_taken(event: events.BufferTaken, name: Names) -> str:
    size = bytes_text(event.nbytes)
    if event.in_place_of is not None:
        source = "what it is computed from" if event.in_place_of == event.node else name(event.in_place_of)
        return (
            f"{name(event.node)} is written over {source}, which nobody reads again: {size} of buffer {event.buffer}."
        )
    return f"{name(event.node)} goes into buffer {event.buffer}: {size}."


@says(events.BufferReleased)
def _buffer_released(event: events.BufferReleased, name: Names) -> str:
    return f"{name(event.node)} was read for the last time: buffer {event.buffer} is free again."


def own_caption(node: str, nbytes: int) -> str:
    """What is said of a value that lies in no buffer.

    >>> own_caption("`h`", 96)
    '`h` gets an array of its own: 96 B.'
    """
    return f"{node} gets an array of its own: {bytes_text(nbytes)}."


def plan_caption(plan: Plan) -> str:
    """What all steps need, and what using memory again saves."""
    steps, most, peak = counted(len(plan.steps), "step"), plan.bytes_without_reuse, plan.peak_bytes
    where = (
        f"in {counted(len(plan.buffers), 'buffer')} and arrays of their own"
        if plan.buffers
        else "in arrays of their own"
    )
    if not plan.steps:
        return "The plan has no steps: nothing is left to compute."
    said = f"The plan has {steps}, whose values need {bytes_text(peak)}, {where}."
    if most <= peak:
        return said
    return f"{said} If no memory were used twice, it would be {bytes_text(most)}, {most / peak:.1f} times as much."


def opening(plan: Plan) -> str:
    """How the steps of a plan begin."""
    gone = listed(
        [
            f"{len(nodes)} {one if len(nodes) == 1 else many}"
            for nodes, one, many in (
                (plan.folded, "has a known value", "have a known value"),
                (plan.shared, "computes what another one does", "compute what others do"),
                (plan.dropped, "is not needed", "are not needed"),
            )
            if nodes
        ]
    )
    of = f"A plan of {counted(len(plan.steps), 'step')} for a graph of {counted(len(plan.original), 'node')}"
    return f"{of}{f', of which {gone}' if gone else ''}. Step to see what each reads, writes and frees."


def place_question(step: int, runs: str, value: str) -> str:
    """Before a step: which memory does its result get?"""
    return f"Step {step} runs `{runs}`. Where does {'its result' if value == f'`{runs}`' else value} go?"
