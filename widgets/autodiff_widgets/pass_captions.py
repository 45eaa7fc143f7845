"""Sentences about the passes over a recorded graph: shapes that travel through it, and ops that share a kernel."""

from __future__ import annotations

from typing import Any

from autodiff_lab import events

from .captions import Names, counted, listed, says


def shape_words(shape: Any) -> str:
    """A shape in a sentence: sizes, names, and a question mark for each size that nothing is known of.

    >>> shape_words(("batch", None, 3)), shape_words((4,)), shape_words(None)
    ('(batch, ?, 3)', '(4,)', 'of unknown rank')
    """
    if shape is None:
        return "of unknown rank"
    sizes = ["?" if size is None else str(size) for size in shape]
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


@says(events.ShapeInferred)
def _shape_inferred(event: events.ShapeInferred, name: Names) -> str:
    here, shape = name(event.node), shape_words(event.shape)
    if not event.rule:
        return f"{here} has shape {shape}, {event.dtype}."
    seen = listed([shape_words(operand) for operand in event.operands])
    return f"{here}: the shape rule {event.rule} of {event.op} is asked about {seen} and says {shape}, {event.dtype}."


@says(events.ShapeLost)
def _shape_lost(event: events.ShapeLost, name: Names) -> str:
    where = f" ({event.source})" if event.source else ""
    left = f"{name(event.node)} is {shape_words(event.shape)}, and what comes after it has to do without"
    return f"The shape rule {event.rule} of {event.op} loses a dimension{where}: {left}."


@says(events.NeighboursCompared)
def _neighbours_compared(event: events.NeighboursCompared, name: Names) -> str:
    pair = f"{name(event.producer)} and {name(event.consumer)}"
    verdict = "are joined" if event.reason == "joined" else f"stay apart, {event.reason}"
    return f"{pair} {verdict}: {event.text}."


@says(events.GroupFormed)
def _group_formed(event: events.GroupFormed, name: Names) -> str:
    written = listed([name(node) for node in event.outputs])
    read = f"reads {counted(len(event.inputs), 'value')} and writes {written}"
    if len(event.nodes) == 1:
        return f"Kernel {event.number} is {event.name} alone: it {read}."
    inside = len(event.nodes) - len(event.outputs)
    kept = (
        f"; {counted(inside, 'value')} between never {'leaves' if inside == 1 else 'leave'} the loop" if inside else ""
    )
    return f"Kernel {event.number} is {event.name}, {len(event.nodes)} ops in one loop: it {read}{kept}."


@says(events.LoopChosen)
def _loop_chosen(event: events.LoopChosen, name: Names) -> str:
    return f"Kernel {event.number}, {event.name}, runs as {event.kind}: {event.why}."
