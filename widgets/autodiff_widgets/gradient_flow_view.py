"""GradientFlowView: the values of the forward pass, then every contribution to a gradient as it arrives and is added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import autodiff_lab as ad
from autodiff_lab import events
from autodiff_lab.events import Event
from autodiff_lab.graph import Graph, Node

from .captions import Names, caption, listed
from .drawing import draw, kept_text, node_label, node_text
from .facts import graph_facts
from .scene import Change, Scene
from .shapes import Text
from .steps import Steps
from .subjects import callers_tensors, described, name_of, recorded, run, with_writable_names
from .values import box_text, value_text
from .view import View

LEGEND = (
    ("waiting", "gradient not complete"), ("ready", "gradient complete"), ("active", "its rules run"),
    ("used", "saved value that the rule reads"), ("target", "receives a contribution"), ("done", "done"),
)  # fmt: skip


class GradientFlowView(View):
    """Why each gradient has its value: the reverse sweep of a result, one contribution a step.

    Args:
        subject: a Tensor that was computed from Tensors with ``requires_grad=True``; or a function, whose forward pass is shown
            too, with its arguments. Gradients flow to floating numbers and arrays, also inside lists, tuples and dicts.
        cotangent: the gradient to start from, shaped like the result; 1 by default where the result is one number.

    Raises:
        TypeError, ValueError: there is nothing to go back through, or a cotangent is needed.

    >>> view = GradientFlowView(lambda x, w: x * w, 2.0, 3.0)
    >>> print(view.frames[4].caption)
    `mul` (node 2) sends 1 × 3 = 3 to `x` (rule mul_vjp_x): its only contribution.
    """

    def __init__(self, subject: Any, *arguments: Any, cotangent: Any = None, **traits: Any) -> None:
        forward: list[Event] = []
        names: dict[str, Any] = {}
        if isinstance(subject, ad.Tensor) and not arguments:
            output = recorded(subject, "GradientFlowView")
            names = callers_tensors()
        elif callable(subject) and arguments:
            output, forward, names = run(subject, arguments, "GradientFlowView")
        else:
            raise TypeError(_advice(subject, arguments))
        with ad.listen() as backward:
            ad.sweep(output, cotangent)
        self.graph = with_writable_names(ad.graph_of(output, names=names, told=forward))
        heard = [*forward, *backward]
        title = f"Gradients of {self.graph.name if isinstance(subject, ad.Tensor) else name_of(subject)}"
        super().__init__(gradient_scene(self.graph, heard, title), heard, **traits)


def gradient_scene(graph: Graph, heard: Sequence[Event], title: str) -> Scene:
    """The scene of a forward pass, if it was heard, and of a reverse sweep: one frame for each event."""
    flow = _Flow(graph, heard)
    for event in heard:
        flow.show(event)
    leaves = [
        f"{node_text(node)} {flow.gradients[node.id]}"
        for node in graph
        if node.kind == "input" and node.id in flow.gradients
    ]
    flow.steps.add(f"Done. The gradients are: {listed(leaves)}.")
    return Scene(title, (flow.drawing.pane,), tuple(flow.steps.frames), graph_facts(graph), LEGEND)


class _Flow:
    """Turns the events of a forward pass and a sweep into frames."""

    def __init__(self, graph: Graph, heard: Sequence[Event]) -> None:
        self.graph = graph
        self.ids = {node.serial: node.id for node in graph}
        self.expected = Counter(event.into for event in heard if isinstance(event, events.ContributionAdded))
        self.name = Names(self._called, self._saved_called, self.expected)
        self.kept = {node.id: list(node.saved) for node in graph if node.saved}
        self.gradients: dict[int, str] = {}
        ran = {event.serial for event in heard if isinstance(event, events.OpCalled)}
        self.values = {node.id: _value_line(node, node.serial in ran) for node in graph}
        room = self._rooms(heard)
        self.drawing = draw(graph, f"Graph {graph.name}", lambda node: self._lines(node, room))
        start = "Before the forward pass." if ran else "The forward pass is over. Shown are the values that it kept."
        self.steps = Steps(" ".join(filter(None, [start, self.drawing.note])))

    def show(self, event: Event) -> None:
        """Add the frame of an event."""
        lasting: tuple[Change, ...] = ()
        passing: tuple[Change, ...] = ()
        match event:
            case events.OpCalled():
                node = self.ids.get(event.serial)
                lasting, passing = self._forward(event, node)
            case events.SweepStarted():
                node = self.ids[event.serial]
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
        self.steps.add(caption(event, self.name), lasting, passing, focus, self._source(event.serial))

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
        keepers = [node for node, kept in self.kept.items() if value in kept]
        for node in keepers:
            self.kept[node].remove(value)  # type: ignore[arg-type]
        return tuple(c for node in keepers for c in self.drawing.node(node, None, kept=self._kept(node)))

    def _kept(self, node: int) -> str:
        return kept_text(self.graph.nodes[node], self.kept[node], self.graph)

    def _lines(self, node: Node, room: dict[int, str]) -> tuple[Text, ...]:
        known = self.values[node.id]
        lines = [Text(node_label(node), "label"), Text(known, "value", "value", room.get(node.id, ""))]
        if self.expected[node.serial] or node.id in self.graph.outputs:
            lines.append(Text("grad ?", "value", "gradient", room.get(node.id, "")))
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
        longest: dict[int, str] = {}
        for serial, text in texts:
            if serial in self.ids:
                longest[self.ids[serial]] = max(longest.get(self.ids[serial], ""), text, key=len)
        return longest


def _value_line(node: Node, is_told: bool) -> str:
    """The line of a node's value at the start."""
    if is_told:
        return "value ?"
    return "value not kept" if node.value is None else f"value {box_text(node.value)}"


def _gradient_line(value: Any, progress: str = "") -> str:
    return f"grad {box_text(value)}{progress}"


def _advice(subject: Any, arguments: Sequence[Any]) -> str:
    """Why a subject cannot be shown, and what to pass instead."""
    where = "GradientFlowView"
    if isinstance(subject, Graph):
        return f"{where}: a Graph has shapes and no values; pass the function and its arguments: {where}({subject.name}, …)"
    if callable(subject):
        name = name_of(subject)
        return f"{where}: got the function {name} without arguments; pass them too: {where}({name}, 2.0, 3.0)"
    if isinstance(subject, ad.Tensor):
        return f"{where}: got a Tensor and more arguments; pass the Tensor alone, or a function and its arguments"
    return (
        f"{where}: expected a Tensor or a function with its arguments, got {described(subject)}; pass the result of a "
        "computation on tensors made with ad.tensor(…, requires_grad=True)"
    )
