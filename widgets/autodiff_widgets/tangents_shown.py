"""What the events of forward mode change in a drawn graph: values and tangents as they travel."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from autodiff_lab import events
from autodiff_lab.events import Event
from autodiff_lab.graph import Graph

from .captions import Names, gradients
from .drawing import Drawing
from .questions import in_words, of_product
from .scene import Change, Question
from .values import box_text, is_short, numbers_of

LEGEND = (
    ("waiting", "no tangent yet"), ("active", "its rules run"), ("used", "value that the rule reads"),
    ("target", "sends its tangent"), ("done", "has its tangent"),
)  # fmt: skip


class Shown(NamedTuple):
    """The changes of one event, and the node that the camera follows."""

    lasting: tuple[Change, ...]
    passing: tuple[Change, ...] = ()
    node: int | None = None


class TangentsShown:
    """Turns events of forward mode into changes of a drawing. ``ids`` says which node each serial number stands for."""

    def __init__(self, graph: Graph, drawing: Drawing, ids: Mapping[int, int]) -> None:
        self.graph, self.drawing, self.ids = graph, drawing, ids

    def of(self, event: Event) -> Shown | None:
        """The changes of an event; None where it is not of forward mode, or of a node that is not in the graph."""
        if not isinstance(event, (events.OpCalled, events.TangentSeeded, events.TangentPushed, events.TangentReached)):
            return None
        if event.serial is None:
            return Shown(())
        node = self.ids.get(event.serial)
        if node is None:
            return None
        match event:
            case events.OpCalled():
                return self._called(event, node)
            case events.TangentPushed():
                return self._pushed(event, node)
        return Shown(self.drawing.node(node, "done", tangent=tangent_line(event.tangents[0])), (), node)

    def question(self, event: Event, name: Names) -> Question | None:
        """Before a part of a tangent: what is it? Or, where its numbers are many: are they all 0?"""
        if not isinstance(event, events.TangentPushed) or event.serial not in self.ids:
            return None
        asked = of_product(gradients.part_question(event, name), event.tangent, event.local, event.part)
        if asked is not None or is_short(event.part):
            return asked
        right = gradients.MOVES if np.any(numbers_of(event.part)) else gradients.STILL
        return in_words(gradients.moving_question(event, name), right, (gradients.MOVES, gradients.STILL))

    def _called(self, event: events.OpCalled, node: int) -> Shown:
        inputs = self.graph.nodes[node].inputs
        edges = [c for place, i in enumerate(inputs) for c in self.drawing.edge(i, node, place, "active")]
        used = [c for i in inputs for c in self.drawing.node(i, "used")]
        told = self.drawing.node(node, None, value=f"value {box_text(event.value)}")
        return Shown(told, (*edges, *used, *self.drawing.node(node, "active")), node)

    def _pushed(self, event: events.TangentPushed, node: int) -> Shown:
        op, inputs = self.graph.nodes[node].op, self.graph.nodes[node].inputs
        assert op is not None
        names = op.operand_names(len(inputs))
        place = names.index(event.argument)
        read = [inputs[names.index(name)] for name in event.used if name in names]
        complete = event.arrived == event.parts
        progress = "" if complete else f" ({event.arrived} of {event.parts})"
        edge = self.drawing.edge(inputs[place], node, place, "done")
        lasting = self.drawing.node(
            node, "done" if complete else "waiting", tangent=tangent_line(event.total, progress)
        )
        passing = (
            *(change for i in read for change in self.drawing.node(i, "used")),
            *self.drawing.node(inputs[place], "target"),
            *self.drawing.edge(inputs[place], node, place, "active"),
            *self.drawing.node(node, "active"),
        )
        return Shown((*lasting, *edge), passing, node)


def tangent_line(tangent: Any, progress: str = "") -> str:
    """How a node shows its tangent."""
    return f"tangent {box_text(tangent)}{progress}"


def longest_lines(told: Iterable[Event], ids: Mapping[int, int]) -> dict[int, str]:
    """The longest text of a value or tangent that each node will show, so that its box is wide enough from the start."""
    longest: dict[int, str] = {}

    def note(serial: int, text: str) -> None:
        if serial in ids:
            longest[ids[serial]] = max(longest.get(ids[serial], ""), text, key=len)

    for event in told:
        match event:
            case events.TangentSeeded():
                note(event.serial, tangent_line(event.tangents[0]))
            case events.OpCalled():
                note(event.serial, f"value {box_text(event.value)}")
            case events.TangentPushed():
                note(
                    event.serial,
                    tangent_line(event.total, f" ({event.arrived} of {event.parts})" if event.parts > 1 else ""),
                )
    return longest


def matched(told: Iterable[Event], inputs: Iterable[int | None], graph: Graph) -> dict[int, int]:
    """Which node of a graph each serial number of a forward-mode run of the same function stands for.

    ``inputs`` are the nodes of the run's inputs, in order; None for one that is not in the graph. Op calls are matched by op
    and operands, in the order in which they ran.
    """
    seeded = iter(inputs)
    waiting: dict[tuple[str, tuple[int | None, ...]], deque[int]] = {}
    for node in graph:
        if node.op is not None:
            operands = tuple(None if graph.nodes[i].kind == "constant" else i for i in node.inputs)
            waiting.setdefault((node.op.name, operands), deque()).append(node.id)
    ids: dict[int, int] = {}
    level: int | None = None
    for event in told:
        match event:
            case events.TangentSeeded() if level in (None, event.level):
                level, found = event.level, next(seeded)
                if found is not None:
                    ids[event.serial] = found
            case events.OpCalled():
                operands = tuple(None if serial is None else ids.get(serial) for serial in event.inputs)
                if alike := waiting.get((event.op, operands)):
                    ids[event.serial] = alike.popleft()
    return ids
