"""GraphView: a graph as it was recorded, node by node, with phases, scopes, shapes and what backward reuses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, cast

import traitlets

from autodiff_lab.graph import Graph, Node

from .captions import Names, graphs
from .captions.sentences import and_note
from .collapsing import scopes_of
from .drawing import Drawing, draw, kept_text, node_lines, node_name, node_text
from .facts import box_facts, graph_facts, scope_facts
from .insides import OpensOps, of_recorded
from .layout import Engine
from .questions import which
from .scene import Question, Scene
from .shapes import Text, box_key, scope_key
from .steps import Steps
from .subjects import graph_from


class GraphView(OpensOps):
    """The graph of a function or of a Tensor; a click on a scope's name collapses it to one box, a click on the box opens it.

    Args:
        subject: a Graph, as from ``ad.record``, or a Tensor that was computed from Tensors with ``requires_grad=True``.
        collapse: scopes that are drawn as one box.
        layout: ``"ladder"``, or ``"graphviz"`` for a general graph (without bands for scopes). What is not text is the
            layout of the widget itself, as of every widget.
        inputs: what the graph is run on when an op is opened, to show its arrays: one value for each input.

    Raises:
        TypeError, ValueError: ``subject`` has no graph, ``collapse`` names a scope that it does not have, or ``layout`` is
            unknown.

    >>> import autodiff_lab as ad
    >>> GraphView(ad.record(lambda x, w: x * w, 2.0, 3.0))
    Graph <lambda>: 3 nodes, 2 edges: 3 elements, 5 frames
      0. Graph <lambda>: 3 nodes, 2 edges. Step to see the nodes in the order in which they were recorded.
      1. `x` is an input: shape (), float64.
      2. `w` is an input: shape (), float64.
      3. `mul` (node 2) = mul(`x`, `w`): shape (), float64.
      4. All 3 nodes are there.
    """

    def __init__(
        self,
        subject: Any,
        collapse: Collection[str] = (),
        layout: Any = "ladder",
        inputs: Sequence[Any] | None = None,
        **traits: Any,
    ) -> None:
        self.graph = graph_from(subject, "GraphView")
        self._insides = of_recorded(self.graph, inputs, "GraphView", subject)
        self._collapse = frozenset(_known_scopes(self.graph, collapse))
        self._engine = cast(Engine, layout if isinstance(layout, str) else "ladder")
        if not isinstance(layout, str):
            traits["layout"] = layout
        super().__init__(self._insides.opened(graph_scene(self.graph, self._collapse, self._engine)), **traits)

    @property
    def collapsed(self) -> tuple[str, ...]:
        """The scopes that are drawn as one box."""
        return tuple(sorted(self._collapse))

    @collapsed.setter
    def collapsed(self, scopes: Collection[str]) -> None:
        self._collapse = frozenset(_known_scopes(self.graph, scopes))
        self.scene = self._insides.opened(graph_scene(self.graph, self._collapse, self._engine))

    @traitlets.observe("selected")
    def _toggle_scope(self, change: dict[str, Any]) -> None:
        key = change["new"] or ""
        opened = {scope for scope in self._collapse if key.startswith(box_key(scope, ""))}
        closed = {scope for scope in scopes_of(self.graph) if key == scope_key(scope)}
        if opened or closed:
            self.selected = None
            self.collapsed = tuple((self._collapse - opened) | closed)


def graph_scene(graph: Graph, collapse: Collection[str] = (), engine: Engine = "ladder") -> Scene:
    """The scene of a graph: one frame before the first step, and one for each node in recorded order."""
    drawing = draw(graph, f"Graph {graph.name}", _lines(graph), collapse, engine=engine)
    title = f"Graph {graph.name}: {graphs.size_words(graph)}"
    steps = Steps(and_note(graphs.opening(title), drawing.note))
    name = Names(lambda node: node_text(graph.nodes[node]))
    for node in graph:
        _add_step(steps, graph, drawing, node, graphs.node_caption(node, name))
    steps.add(graphs.closing(len(graph)))
    facts = {**graph_facts(graph), **scope_facts(graph, drawing.scopes), **box_facts(drawing.boxes)}
    return Scene(title, (drawing.pane,), tuple(steps.frames), facts, _legend(graph))


def _lines(graph: Graph) -> Callable[[Node], tuple[Text, ...]]:
    """What stands in a node. Where no backward nodes show what they reuse, each node says what it keeps for them."""
    if any(node.phase != "forward" for node in graph):
        return node_lines
    return lambda node: (*node_lines(node), *([Text(kept_text(node, node.saved, graph))] if node.saved else []))


def _add_step(steps: Steps, graph: Graph, drawing: Drawing, node: Node, caption: str) -> None:
    edges = [c for place, i in enumerate(node.inputs) for c in drawing.edge(i, node.id, place, "active")]
    inputs = [c for i in node.inputs for c in drawing.node(i, "used")]
    passing = [*edges, *inputs, *drawing.node(node.id, "active")]
    source = None if node.source is None else str(node.source)
    asks = _question(graph, node, drawing)
    steps.add(caption, drawing.node(node.id, "done"), passing, drawing.elements.get(node.id), source, asks)


def _question(graph: Graph, node: Node, drawing: Drawing) -> Question | None:
    """Before an op: what does it read? A reader may think of what that was computed from, or of what reads the op."""
    if node.op is None or not node.inputs:
        return None
    nodes, reused = (
        graph.nodes,
        [i for i in node.inputs if node.phase == "backward" and graph.nodes[i].phase == "forward"],
    )
    right = (reused or node.inputs)[-1]
    further = [far for i in node.inputs for far in nodes[i].inputs]
    others = [i for i in (*further, *graph.consumers[node.id], *reversed(range(node.id))) if i not in node.inputs]
    if reused:
        others = [i for i in others if nodes[i].phase == "forward"]
    read = {node_name(nodes[i]) for i in node.inputs}  # a name may be used again
    named = [i for i in dict.fromkeys(others) if nodes[i].kind != "constant" and node_name(nodes[i]) not in read]
    if nodes[right].kind == "constant" or drawing.elements.get(right) == drawing.elements.get(node.id):
        return None
    text = graphs.reads_question(node_text(node), bool(reused))
    return which(text, right, named[:20], drawing.elements.get, lambda i: node_name(nodes[i]))


def _legend(graph: Graph) -> tuple[tuple[str, str], ...]:
    rows = [("active", "this step"), ("used", "its inputs"), ("done", "recorded")]
    if any(node.phase == "backward" for node in graph):
        rows += [("edge forward", "forward"), ("edge backward", "backward"), ("edge saved", "kept for backward")]
    return tuple(rows)


def _known_scopes(graph: Graph, scopes: Collection[str]) -> Collection[str]:
    """The scopes, if the graph has them."""
    known = scopes_of(graph)
    for scope in [scopes] if isinstance(scopes, str) else scopes:
        if scope not in known:
            raise ValueError(
                f"collapse: graph {graph.name} has no scope {scope!r}; its scopes are: {', '.join(known) or 'none'}"
            )
    return [scopes] if isinstance(scopes, str) else scopes
