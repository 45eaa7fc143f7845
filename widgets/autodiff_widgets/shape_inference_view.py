"""ShapeInferenceView: shapes and dtypes travel through a graph, rule by rule, without data, also where sizes are not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import autodiff_lab as ad
from autodiff_lab import events
from autodiff_lab.events import Event
from autodiff_lab.graph import Graph, Node

from .captions import Names, caption, passes
from .captions.passes import shape_words
from .captions.sentences import and_note
from .collector import paused
from .drawing import draw, key_of, node_label, node_text
from .facts import Rows, graph_facts
from .insides import OpensOps, numbers_in, of_recorded
from .questions import in_words
from .scene import Change, Pane, Question, Scene, State
from .shapes import Text, shortened, writable
from .steps import Steps
from .subjects import graph_from, with_writable_names
from .tables import Entry, table

if TYPE_CHECKING:
    from autodiff_lab.shapes import Inference, PartialShape

MOST_OPERANDS = 4  # that the rule's card has a row for
NOTHING = "✗ none"
LEGEND = (("active", "its rule is asked"), ("used", "its operands"), ("done", "every size is a number"))
NAMED = (("ready", "some sizes have a name"),)
UNKNOWN = (("waiting", "a size is unknown"), ("wrong", "its rule lost a size"))
REFUSED = (("wrong", "no shape fits"),)


class ShapeInferenceView(OpensOps):
    """How each shape follows from the shapes before it: the operands' shapes go into a rule, and it answers.

    A size that is not known yet has a name, as ``batch``, or is ``?``. Where a rule loses a size, all that follows is seen to
    lose it too; where no shape fits, the picture ends, and says why.

    Args:
        subject: a graph, or a function with its arguments.
        shapes: shapes of some inputs by name, with numbers, names and None as sizes: ``{"x": ("batch", 784)}``.

    Raises:
        TypeError, ValueError: there is no graph, no such input, or the input has another number of axes.

    >>> import numpy as np
    >>> graph = ad.record(lambda x, w: x @ w, np.zeros((64, 784)), np.zeros((784, 10)))
    >>> print(ShapeInferenceView(graph, shapes={"x": ("batch", 784)}).frames[3].caption)
    `matmul` (node 2): the shape rule `matmul_shape` is asked about (batch, 784) and (784, 10) and says (batch, 10), \
float64.
    """

    def __init__(
        self, subject: Any, *arguments: Any, shapes: Mapping[str, PartialShape] | None = None, **traits: Any
    ) -> None:
        self.graph, failure = _graph_of(subject, arguments)
        told: list[Event] = []
        self.inference: Inference | None = None
        try:
            given = {writable(name): shape for name, shape in (shapes or {}).items()}
            self.inference = ad.infer_shapes(self.graph, given, told.append)
        except ad.OpError as error:
            failure = error
        self._insides = of_recorded(self.graph, numbers_in(arguments, self.graph), "ShapeInferenceView", subject)
        super().__init__(self._insides.opened(shapes_scene(self.graph, told, self.inference, failure)), told, **traits)


@paused()
def shapes_scene(graph: Graph, told: Sequence[Event], inference: Inference | None, failure: Exception | None) -> Scene:
    """The scene of a run of ``infer_shapes``: a frame for each node that it came to."""
    asking = _Asking(graph, told)
    for event in told:
        asking.show(event)
    asking.end(inference, failure)
    panes = (asking.drawing.pane, *([asking.pane()] if asking.rows else []))
    return Scene(f"Shapes of {graph.name}", panes, tuple(asking.steps.frames), asking.facts(), asking.legend(failure))


class _Asking:
    """The frames of an inference: each rule is asked, and its answer is written into the node."""

    def __init__(self, graph: Graph, told: Sequence[Event]) -> None:
        self.graph = graph
        self.told = {event.node: event for event in told if isinstance(event, events.ShapeInferred)}
        self.lost = {event.node: event for event in told if isinstance(event, events.ShapeLost)}
        self.name = Names(lambda node: node_text(graph.nodes[node]))
        self.drawing = draw(graph, f"Graph {graph.name}", self._lines)
        counts = [len(event.operands) for event in self.told.values()]
        self.rows = min(max(counts, default=0), MOST_OPERANDS)
        self.steps = Steps(and_note(passes.SHAPES_OPENING, self.drawing.note))

    def show(self, event: Event) -> None:
        """Add the frame of an event."""
        if isinstance(event, events.ShapeInferred):
            self._infer(event)
        elif isinstance(event, events.ShapeLost):
            node = self.drawing.node(event.node, "wrong")
            source = None if event.source is None else str(event.source)
            self.steps.add(caption(event, self.name), node, (), self.drawing.elements.get(event.node), source)

    def end(self, inference: Inference | None, failure: Exception | None) -> None:
        """Add the last frame: what is known at last, or what ends the picture."""
        if failure is None:
            assert inference is not None
            self.steps.add(passes.shapes_caption(inference))
            return
        node = self._at_fault(failure)
        if node is None:
            self.steps.add(passes.ended_caption(writable(str(failure))))
            return
        edges = [change for at, i in enumerate(node.inputs) for change in self.drawing.edge(i, node.id, at, "wrong")]
        lasting = [*edges, *self.drawing.node(node.id, "wrong", shape=NOTHING)]
        if node.op is not None:
            lasting += self._card(node, node.op.operand_rule_name("shape"), "wrong", NOTHING, "")
        said, focus = (
            passes.refused_caption(self.name(node.id), writable(str(failure))),
            self.drawing.elements.get(node.id),
        )
        self.steps.add(said, lasting, (), focus, _source(node))

    def _at_fault(self, failure: Exception) -> Node | None:
        """The node whose rule refuses its operands: the first that has no shape; or the last, whose call was refused."""
        if len(self.told) < len(self.graph):
            return self.graph.nodes[len(self.told)]
        return self.graph.nodes[-1] if isinstance(failure, ad.OpError) else None

    def pane(self) -> Pane:
        """The card of the rule that is asked: what goes in, and what comes out."""
        calls = [event for event in self.told.values() if event.rule]
        names = max((shortened(self._label(i), 18) for e in calls for i in self.graph.nodes[e.node].inputs), key=len)
        widest = max((shape_words(shape) for event in calls for shape in (*event.operands, event.shape)), key=len)
        rule, dtype = (max(texts, key=len) for texts in zip(*((e.rule, str(e.dtype)) for e in calls), strict=True))
        lines: list[str | Entry] = ["What goes in"]
        for place in range(self.rows):
            cells = (Text("", "label", "name", names), Text("", "value", "shape", widest))
            lines.append(Entry(f"operand.{place}", cells))
        lines += ["The shape rule", Entry("rule", (Text("", "label", "rule", rule),)), "What comes out"]
        lines.append(Entry("answer", (Text("", "label", "shape", widest), Text("", "value", "dtype", dtype))))
        return table("The rule", lines)

    def facts(self) -> dict[str, Rows]:
        """What is known of each node, with the inferred shape beside the recorded one."""
        facts = graph_facts(self.graph)
        for number, event in self.told.items():
            rows = [("inferred shape", f"{shape_words(event.shape)} {event.dtype}"), ("shape rule", event.rule)]
            if number in self.lost:
                source = self.lost[number].source
                rows.append(("lost", f"by {event.rule}" + (f", {source}" if source else "")))
            facts[key_of(self.graph.nodes[number])] += tuple((label, value) for label, value in rows if value)
        return facts

    def legend(self, failure: Exception | None) -> tuple[tuple[str, str], ...]:
        """The states in use."""
        states = {_state(event.shape) for event in self.told.values()}
        rows = (*LEGEND, *(NAMED if "ready" in states else ()), *(UNKNOWN if "waiting" in states else ()))
        return (*rows, *(REFUSED if failure is not None else ()))

    # ------------------------------------------------------------------------------------------------------- one event

    def _infer(self, event: events.ShapeInferred) -> None:
        node = self.graph.nodes[event.node]
        state = _state(event.shape)
        lasting = list(self.drawing.node(node.id, state, shape=_answer(event)))
        passing = list(self.drawing.node(node.id, "active"))
        for place, source in enumerate(node.inputs):
            if _state(self.told[source].shape) == "waiting":
                lasting += self.drawing.edge(source, node.id, place, "waiting")
            passing += [*self.drawing.edge(source, node.id, place, "active"), *self.drawing.node(source, "used")]
        if event.rule:
            lasting += self._card(node, event.rule, state, shape_words(event.shape), str(event.dtype))
            passing.append(Change("rule", "active"))
        said, focus = caption(event, self.name), self.drawing.elements.get(node.id)
        self.steps.add(said, lasting, _once(passing), focus, _source(node), self._question(event))

    def _card(self, node: Node, rule: str, state: State, shape: str, dtype: str) -> list[Change]:
        """The rule's card at a call. It stays as it is at inputs and constants, which have shapes of their own."""
        changes = [Change("rule", "idle", {"rule": rule}), Change("answer", state, {"shape": shape, "dtype": dtype})]
        for place in range(self.rows):
            is_there = place < len(node.inputs)
            name = shortened(self._label(node.inputs[place]), 18) if is_there else ""
            operand = shape_words(self.told[node.inputs[place]].shape) if is_there else ""
            changes.append(Change(f"operand.{place}", "used" if is_there else "idle", {"name": name, "shape": operand}))
        return changes

    def _question(self, event: events.ShapeInferred) -> Question | None:
        """Before a rule answers: which shape comes out?"""
        if not event.rule:
            return None
        return in_words(
            passes.shape_question(event), shape_words(event.shape), map(shape_words, _likely(event.operands))
        )

    def _label(self, node: int) -> str:
        return node_label(self.graph.nodes[node])

    def _lines(self, node: Node) -> tuple[Text, ...]:
        event = self.told.get(node.id)
        return (Text(node_label(node), "label"), Text("", "detail", "shape", _answer(event) if event else ""))


def _answer(event: events.ShapeInferred) -> str:
    return f"{shape_words(event.shape)} {event.dtype}".removeprefix("() ")


def _state(shape: PartialShape) -> State:
    """Whether all sizes are numbers, some are names, or something is unknown."""
    if shape is None or None in shape:
        return "waiting"
    return "ready" if any(isinstance(size, str) for size in shape) else "done"


def _likely(operands: Sequence[PartialShape]) -> list[PartialShape]:
    """Shapes that a reader may take for the answer: an operand's, the outer sizes of two, one axis fewer, axes turned round."""
    known = [shape for shape in operands if shape is not None]
    found: list[PartialShape] = list(known)
    found += [(*one[:-1], *other[-1:]) for one in known for other in known[1:]]
    found += [shape for one in known for shape in (one[::-1], one[:-1], one[1:], (1, *one))]
    return [*found, ()]


def _source(node: Node) -> str | None:
    return None if node.source is None else str(node.source)


def _once(changes: Sequence[Change]) -> list[Change]:
    return list({change.element: change for change in changes}.values())


def _graph_of(subject: Any, arguments: Sequence[Any]) -> tuple[Graph, Exception | None]:
    """The graph of a subject, as far as it can be recorded, and what ended the recording."""
    if callable(subject) and arguments:
        graph, error = ad.record_until_error(subject, *arguments)
        return with_writable_names(graph), error
    return graph_from(subject, "ShapeInferenceView"), None
