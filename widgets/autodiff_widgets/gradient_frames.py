"""Frames of a gradient's way: the events of a forward pass, a reverse sweep, and a pass of forward mode beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import events
from autodiff_lab.events import Event
from autodiff_lab.graph import Graph, Node

from .captions import Names, caption, gradients
from .captions.sentences import and_note
from .drawing import draw, kept_text, node_label, node_text
from .gradient_questions import GradientQuestions
from .saved_bytes import ByteBars
from .scene import Change
from .shapes import Text
from .steps import Steps
from .tangents_shown import TangentsShown, longest_lines
from .values import box_text, numbers_of, value_text


def of_reverse_mode(heard: Sequence[Event]) -> list[Event]:
    """What was heard, without the op calls of a forward mode that ran inside: each has a call of its own below."""
    pushed = {event.serial for event in heard if isinstance(event, events.TangentPushed)}
    return [event for event in heard if not (isinstance(event, events.OpCalled) and event.serial in pushed)]


class GradientFrames:
    """Turns events into frames.

    ``heard`` are those of a forward pass and a sweep; ``told`` those of a run of ``jvp`` of the same function, whose serial
    numbers stand for the nodes in ``ids``; ``bars`` is the chart of kept bytes, where it is wanted. ``faults`` are what
    ``find_faulty_op`` found, to be marked.
    """

    def __init__(
        self,
        graph: Graph,
        heard: Sequence[Event],
        told: Sequence[Event] = (),
        ids: Mapping[int, int] | None = None,
        bars: ByteBars | None = None,
        faults: Sequence[ad.FaultFound] = (),
    ) -> None:
        self.graph = graph
        self.heard, self.told = of_reverse_mode(heard), told
        self.bars = ByteBars(()) if bars is None else bars
        self.ids = {node.serial: node.id for node in graph} | dict(ids or {})
        self.expected = Counter(event.into for event in heard if isinstance(event, events.ContributionAdded))
        self._sweeps = _contributions_by_sweep(heard)
        self.name = Names(self._called, self._saved_called, self.expected)
        self.kept = {node.id: list(node.saved) for node in graph if node.saved}
        self.keepers: dict[int | None, list[int]] = {}  # of each value
        for node, saved in self.kept.items():
            for value in saved:
                self.keepers.setdefault(value, []).append(node)
        self.gradients: dict[int, str] = {}
        ran = {event.serial for event in heard if isinstance(event, events.OpCalled)}
        self.values = {node.id: _value_line(node, node.serial in ran) for node in graph}
        failed = {event.serial for event in heard if isinstance(event, events.OpFailed)}
        self.values |= {node.id: "no result" for node in graph if node.serial in failed}
        room = self._rooms(heard)
        self.faults = {fault.node: fault for fault in faults if fault.node is not None}
        badge = "fault" if self.faults else None
        self.drawing = draw(graph, f"Graph {graph.name}", lambda node: self._lines(node, room), badge=badge)
        self.questions = GradientQuestions(graph, self.ids, self.name, self.expected, self.drawing.elements.get)
        start = gradients.BEFORE_FORWARD if ran else gradients.AFTER_FORWARD
        marks = [
            c for node, f in self.faults.items() for c in self.drawing.node(node, None, fault=f"✗ wrong {f.blame}")
        ]
        self.steps = Steps(and_note(start, self.drawing.note), marks)

    def show(self, event: Event) -> None:
        """Add the frame of an event."""
        lasting: tuple[Change, ...] = ()
        passing: tuple[Change, ...] = ()
        asks = self.questions.before(event)
        match event:
            case events.OpCalled():
                node = self.ids.get(event.serial)
                lasting, passing = self._forward(event, node)
            case events.OpFailed():
                node = self.ids[event.serial]
                lasting = self.drawing.node(node, "wrong")
            case events.SweepStarted():
                node = self.ids[event.serial]
                self.expected.clear()
                self.expected.update(self._sweeps.pop(0))
                lasting = (*self._all_wait(), *self._gradient(node, event.seed, "ready"))
            case events.CotangentComplete():
                node = self.ids[event.serial]
                lasting = (*self._gradient(node, event.cotangent, "done"),)
                passing = self.drawing.node(node, "active")
            case events.ContributionAdded():
                node = self.ids[event.into]
                lasting, passing = self._contribution(event, node)
            case events.SavedValueReleased():
                node = self.ids[event.serial]
                lasting = self._release(self._saved_as(node, event.name))
                passing = self.drawing.node(node, "active")
            case events.LeafReached():
                node = self.ids[event.serial]
                lasting = self._gradient(node, event.gradient, "done")
            case _:
                return
        focus = None if node is None else self.drawing.elements.get(node)
        bar, bar_now = self.bars.hears(event)
        said, marks = self._blamed(event)
        self.steps.add(said, (*lasting, *bar), (*passing, *marks, *bar_now), focus, self._source(event.serial), asks)

    def show_faults(self) -> None:
        """Add the frames of what is wrong, one a fault, after the sweep."""
        for node, fault in self.faults.items():
            focus, source = self.drawing.elements.get(node), self._source(self.graph.nodes[node].serial)
            self.steps.add(gradients.fault_caption(fault), self.drawing.node(node, "wrong"), focus=focus, source=source)

    def _blamed(self, event: Event) -> tuple[str, tuple[Change, ...]]:
        """An event's caption, and the mark of a fault that shows there.

        A rule's shows where it sends its contribution, a sum's and the order's where a node takes what has arrived.
        """
        said, node = caption(event, self.name), self.ids.get(getattr(event, "serial", -1), -1)
        match event, self.faults.get(node):
            case events.ContributionAdded(rule=rule), ad.FaultFound(rule=blamed) as fault if rule == blamed:
                pass
            case events.CotangentComplete() | events.LeafReached(), ad.FaultFound(rule=None) as fault:
                pass
            case _:
                return said, ()
        return f"{said} {gradients.fault_caption(fault)}", self.drawing.node(node, "wrong")

    def push(self) -> None:
        """Add the frames of forward mode on the same graph: the values are known, so only tangents are shown."""
        shown = TangentsShown(self.graph, self.drawing, self.ids)
        nodes = [change for node in self.graph for change in self.drawing.node(node.id, "idle")]
        edges = [
            change
            for node in self.graph
            for place, source in enumerate(node.inputs)
            for change in self.drawing.edge(source, node.id, place, "idle")
        ]
        self.steps.add(gradients.TURN_ROUND, (*nodes, *edges, *self.bars.ends()))
        for event in self.told:
            found = None if isinstance(event, events.OpCalled) else shown.of(event)
            if found is not None:
                focus = None if found.node is None else self.drawing.elements.get(found.node)
                bar, bar_now = self.bars.hears(event)
                source = self._source(event.serial) if isinstance(event, events.TangentPushed) else None
                asks = shown.question(event, self.name)
                self.steps.add(
                    caption(event, self.name), (*found.lasting, *bar), (*found.passing, *bar_now), focus, source, asks
                )
        self.steps.add(gradients.adjoint_caption(*self._both_ends()))

    def _both_ends(self) -> tuple[float, float]:
        """The inner product of gradient and tangent at the output, and the sum of those at the inputs."""
        moved = {self.ids.get(e.serial, -1): e.tangents[0] for e in self.told if isinstance(e, events.TangentSeeded)}
        seed = next(event.seed for event in self.heard if isinstance(event, events.SweepStarted))
        reached = next(event.tangents[0] for event in self.told[::-1] if isinstance(event, events.TangentReached))
        gradients = {self.ids[e.serial]: e.cotangent for e in self.heard if isinstance(e, events.CotangentComplete)}
        gradients |= {self.ids[e.serial]: e.gradient for e in self.heard if isinstance(e, events.LeafReached)}
        return _inner(seed, reached), sum(_inner(gradients.get(node, 0.0), tangent) for node, tangent in moved.items())

    def _source(self, serial: int) -> str | None:
        """The line of the user's code that made a node, where it is known."""
        source = self.graph.nodes[self.ids[serial]].source if serial in self.ids else None
        return None if source is None else str(source)

    def _called(self, serial: int) -> str:
        if serial not in self.ids:
            return "a value that the result does not depend on"
        return node_text(self.graph.nodes[self.ids[serial]])

    def _saved_called(self, serial: int, name: str) -> str:
        node = self.ids[serial]
        value = self._saved_as(node, name)
        return "its result" if value is None or value == node else node_text(self.graph.nodes[value])

    def _forward(self, event: events.OpCalled, node: int | None) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
        if node is None:
            return (), ()
        inputs = self.graph.nodes[node].inputs
        edges = [c for place, i in enumerate(inputs) for c in self.drawing.edge(i, node, place, "active")]
        used = [c for i in inputs for c in self.drawing.node(i, "used")]
        told = self.drawing.node(node, "idle", value=f"value {box_text(event.value)}")
        return told, (*edges, *used, *self.drawing.node(node, "active"))

    def _all_wait(self) -> tuple[Change, ...]:
        nodes = [node.id for node in self.graph if self.expected[node.serial]]
        return tuple(change for node in nodes for change in self.drawing.node(node, "waiting"))

    def _gradient(self, node: int, value: Any, state: Any, progress: str = "") -> tuple[Change, ...]:
        self.gradients[node] = value_text(value)
        return self.drawing.node(node, state, gradient=_gradient_line(value, progress))

    def _contribution(
        self, event: events.ContributionAdded, into: int
    ) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
        node, place = self._argument(event.serial, event.argument)
        complete = event.arrived == self.expected[event.into]
        progress = "" if complete else f" ({event.arrived} of {self.expected[event.into]})"
        told = self._gradient(into, event.total, "ready" if complete else "waiting", progress)
        read = [
            c
            for name in event.used
            if (i := self._saved_as(node, name)) is not None
            for c in self.drawing.node(i, "used")
        ]
        passing = (
            *read,
            *self.drawing.node(node, "active"),
            *self.drawing.edge(into, node, place, "active"),
            *self.drawing.node(into, "target"),
        )
        return (*told, *self.drawing.edge(into, node, place, "done")), passing

    def _argument(self, serial: int, argument: str) -> tuple[int, int]:
        """The node whose rule ran, and the place of the op's argument among its inputs."""
        node = self.ids[serial]
        op, inputs = self.graph.nodes[node].op, self.graph.nodes[node].inputs
        assert op is not None
        return node, op.operand_names(len(inputs)).index(argument)

    def _saved_as(self, node: int, name: str) -> int | None:
        """The node whose value a node's rules know by this name; None where it is a fact such as a shape."""
        op, inputs = self.graph.nodes[node].op, self.graph.nodes[node].inputs
        if op is None or name == "out":
            return node
        names = op.operand_names(len(inputs))
        return inputs[names.index(name)] if name in names else None

    def _release(self, value: int | None) -> tuple[Change, ...]:
        """The value is gone from every node that kept it."""
        keepers = self.keepers.pop(value, [])
        for node in keepers:
            self.kept[node].remove(value)  # type: ignore[arg-type]
        return tuple(c for node in keepers for c in self.drawing.node(node, None, kept=self._kept(node)))

    def _kept(self, node: int) -> str:
        return kept_text(self.graph.nodes[node], self.kept[node], self.graph)

    def _lines(self, node: Node, room: dict[int, str]) -> tuple[Text, ...]:
        known = self.values[node.id]
        lines = [Text(node_label(node), "label"), Text(known, "value", "value", room.get(node.id, ""))]
        if self.expected[node.serial] or (self._sweeps and node.id in self.graph.outputs):
            lines.append(Text("grad ?", "value", "gradient", room.get(node.id, "")))
        if self.told and node.kind != "constant":
            lines.append(Text("tangent ?", "value", "tangent", room.get(node.id, "")))
        if node.saved:
            lines.append(Text(self._kept(node.id), "detail", "kept"))
        return tuple(lines)

    def _rooms(self, heard: Sequence[Event]) -> dict[int, str]:
        """The longest text that each node will show, so that its box is wide enough from the start."""
        texts: list[tuple[int, str]] = []
        for event in heard:
            match event:
                case events.OpCalled():
                    texts.append((event.serial, f"value {box_text(event.value)}"))
                case events.SweepStarted():
                    texts.append((event.serial, _gradient_line(event.seed)))
                case events.ContributionAdded():
                    texts.append(
                        (event.into, _gradient_line(event.total, " (1 of 2)" if self.expected[event.into] > 1 else ""))
                    )
        longest = longest_lines(self.told, self.ids)
        for serial, text in texts:
            if serial in self.ids:
                longest[self.ids[serial]] = max(longest.get(self.ids[serial], ""), text, key=len)
        return longest


def _contributions_by_sweep(heard: Sequence[Event]) -> list[Counter[int]]:
    """How many contributions each node receives, for one sweep after the other."""
    sweeps: list[Counter[int]] = []
    for event in heard:
        if isinstance(event, events.SweepStarted):
            sweeps.append(Counter())
        elif isinstance(event, events.ContributionAdded) and sweeps:
            sweeps[-1][event.into] += 1
    return sweeps


def _value_line(node: Node, is_told: bool) -> str:
    """The line of a node's value at the start."""
    if is_told:
        return "value ?"
    return "value not kept" if node.value is None else f"value {box_text(node.value)}"


def _gradient_line(value: Any, progress: str = "") -> str:
    return f"grad {box_text(value)}{progress}"


def _inner(one: Any, other: Any) -> float:
    return float(np.sum(numbers_of(one) * numbers_of(other)))
