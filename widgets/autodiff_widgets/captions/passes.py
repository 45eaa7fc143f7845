"""What is said of passes over a recorded graph: shapes that travel through it, and ops that share a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from autodiff_lab import events

from ..shapes import writable
from ..values import bytes_text
from .sentences import Names, capitalised, counted, listed, says

if TYPE_CHECKING:
    from autodiff_lab.shapes import Inference


def shape_words(shape: Any) -> str:
    """A shape in a sentence: sizes, names, and a question mark for each size that nothing is known of.

    >>> shape_words(("batch", None, 3)), shape_words((4,)), shape_words(None)
    ('(batch, ?, 3)', '(4,)', 'of unknown rank')
    """
    if shape is None:
        return "of unknown rank"
    sizes = ["?" if size is None else writable(str(size)) for size in shape]
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


SHAPES_OPENING = (
    "A shape rule says the result's shape from the operands' shapes: no data is looked at, nothing is computed."
)
FUSION_OPENING = "One by one, each op is a kernel: it reads its operands from memory and writes its result there."
BY_PAIRS, BY_GROUPS = "Step to compare neighbours.", "Step to see the groups."


@says(events.ShapeInferred)
def _shape_inferred(event: events.ShapeInferred, name: Names) -> str:
    here, shape = name(event.node), shape_words(event.shape)
    if not event.rule:
        return f"{capitalised(here)} has shape {shape}, {event.dtype}."
    seen = listed([shape_words(operand) for operand in event.operands])
    return f"{here}: the shape rule `{event.rule}` is asked about {seen} and says {shape}, {event.dtype}."


@says(events.ShapeLost)
def _shape_lost(event: events.ShapeLost, name: Names) -> str:
    where = f" ({event.source})" if event.source else ""
    left = f"{name(event.node)} is {shape_words(event.shape)}, and what comes after it does not know the size either"
    return f"The shape rule `{event.rule}` of `{event.op}` loses a dimension{where}: {left}."


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
        return f"Kernel {event.number} is `{event.name}` alone: it {read}."
    inside = len(event.nodes) - len(event.outputs)
    kept = (
        f"; {counted(inside, 'value')} between never {'leaves' if inside == 1 else 'leave'} the loop" if inside else ""
    )
    return f"Kernel {event.number} is `{event.name}`, {len(event.nodes)} ops in one loop: it {read}{kept}."


@says(events.LoopChosen)
def _loop_chosen(event: events.LoopChosen, name: Names) -> str:
    return f"Kernel {event.number}, `{event.name}`, runs as {event.kind}: {event.why}."


def shapes_caption(inference: Inference) -> str:
    """How an inference ends: what is known, and which rules are to blame for what is not."""
    count, rules = len(inference.graph), []
    if not inference.unknown:
        return f"Every size of all {count} shapes is known, by number or by name, and no number was computed."
    for number in inference.lost:
        op = inference.graph.nodes[number].op
        if op is not None:
            rules.append(f"`{op.operand_rule_name('shape')}` of `{op.name}`")
    blame = f" The shape {'rule' if len(rules) == 1 else 'rules'} {listed(rules)} lost them." if rules else ""
    return f"{len(inference.unknown)} of {count} shapes have sizes that nobody knows.{blame}"


def refused_caption(node: str, reason: str) -> str:
    """What ends a picture at a node: no shape can come out.

    >>> refused_caption("`matmul` (node 2)", "matmul(…): its shape rule takes no such shapes")
    '✗ `matmul` (node 2) has no shape. matmul(…): its shape rule takes no such shapes.'
    """
    return f"✗ {node} has no shape. {reason.rstrip('.')}."


def ended_caption(reason: str) -> str:
    """What ends a picture where a function failed outside of a shape rule."""
    return f"✗ The function ends here. {reason}"


def gains_caption(before: int, after: int, bytes_before: int, bytes_after: int) -> str:
    """What all groups come to.

    >>> gains_caption(2, 1, 40, 24)
    '2 kernels become 1. One by one they read and write 40 B of memory, in groups 24 B.'
    """
    kernels = counted(before, "kernel")
    if before == after:
        return f"Nothing is joined: {kernels}, to read and write {bytes_text(bytes_before)} of memory."
    moved = f"One by one they read and write {bytes_text(bytes_before)} of memory, in groups {bytes_text(bytes_after)}."
    return f"{kernels} become {after}. {moved}"


# ----------------------------------------------------------------------------------------------------------- questions

YES, NO = "yes, one kernel", "no, two kernels"


def shape_question(event: events.ShapeInferred) -> str:
    """Before a rule answers: which shape comes out?"""
    return f"`{event.op}` gets {listed([shape_words(operand) for operand in event.operands])}. Which shape comes out?"


def pair_question(event: events.NeighboursCompared, name: Names) -> str:
    """Before two neighbours are compared: are they joined?"""
    return f"{name(event.consumer)} reads {name(event.producer)}. Do they become one kernel?"
