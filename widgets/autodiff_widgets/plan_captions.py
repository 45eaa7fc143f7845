"""Sentences about plans: what was simplified, which steps there are, and which memory they use."""

from __future__ import annotations

from autodiff_lab import events

from .captions import Names, counted, listed, says
from .values import bytes_text


@says(events.NodeFolded)
def _node_folded(event: events.NodeFolded, name: Names) -> str:
    if event.node == event.into:
        return f"{name(event.node)} ({event.op}) has constant operands only: it is computed now, and is a constant from now on."
    return f"{name(event.node)} ({event.op} with 1) has the value of {name(event.into)}: nothing is computed."


@says(events.NodeShared)
def _node_shared(event: events.NodeShared, name: Names) -> str:
    return f"{name(event.node)} computes what {name(event.earlier)} has computed ({event.op} of the same): it is done once."


@says(events.NodeDropped)
def _node_dropped(event: events.NodeDropped, name: Names) -> str:
    return f"No output needs {name(event.node)} ({event.op}): it is not computed."


@says(events.StepPlanned)
def _step_planned(event: events.StepPlanned, name: Names) -> str:
    what = listed([name(node) for node in event.nodes])
    return f"Step {event.step} computes {what}: {event.kind}, {counted(event.calls, 'call')}."


@says(events.BufferTaken)
def _buffer_taken(event: events.BufferTaken, name: Names) -> str:
    where = f"Step {event.step}: {name(event.node)} ({bytes_text(event.nbytes)}) is written into buffer {event.buffer}"
    if event.in_place_of is None:
        return f"{where}."
    same = event.in_place_of == event.node
    source = "what it was computed from" if same else name(event.in_place_of)
    return f"{where}, in place of {source}, which nobody reads again."


@says(events.BufferReleased)
def _buffer_released(event: events.BufferReleased, name: Names) -> str:
    return (
        f"Step {event.step} was the last to read {name(event.node)}: buffer {event.buffer} ({bytes_text(event.nbytes)}) "
        "can serve another value."
    )
