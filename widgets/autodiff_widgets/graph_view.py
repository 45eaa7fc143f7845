"""GraphView: a graph as it was recorded, node by node, with phases, scopes, shapes and what backward reuses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import traitlets

from autodiff_lab.graph import Graph, Node

from .captions import Names, graphs
from .captions.sentences import and_note
from .collapsing import scopes_of
from .collector import paused
from .drawing import Drawing, draw, kept_text, node_lines, node_text
from .facts import box_facts, graph_facts, scope_facts
from .graph_questions import reads_question
from .insides import OpensOps, of_recorded
from .layout import Engine
from .repeats import Repeat, block_graph, lies_in, outer_scopes, repeats_of
from .scene import Change, Scene
from .shapes import Text, box_key, scope_key
from .steps import Steps
from .subjects import graph_from

LARGE = 300  # nodes: a larger graph cannot be read as a whole, so repeated blocks of it are drawn as one box

Collapse = Collection[str] | Literal["repeats"] | None


class GraphView(OpensOps):
    """The graph of a function or of a Tensor; a click on a scope's name collapses it to one box, a click on the box opens it.

    Blocks of the same structure in a row, as those of a Transformer, can be one box: ``block × 12``. Opening it shows one of
    them, in all phases.

    Args:
        subject: a Graph, as from ``ad.record``, or a Tensor that was computed from Tensors with ``requires_grad=True``.
        collapse: scopes that are drawn as one box; or ``"repeats"``: blocks of the same structure in a row. A graph of more
            than 300 nodes with such blocks begins as an overview, in which every other scope is one box too. ``()`` draws
            every node.
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
        collapse: Collapse = None,
        layout: Any = "ladder",
        inputs: Sequence[Any] | None = None,
        **traits: Any,
    ) -> None:
        self.graph = graph_from(subject, "GraphView")
        self._insides = of_recorded(self.graph, inputs, "GraphView", subject)
        self._wants_repeats = collapse == "repeats"
        is_large = collapse is None and len(self.graph) > LARGE
        self._repeats = repeats_of(self.graph) if self._wants_repeats or is_large else ()
        if collapse is None or collapse == "repeats":
            collapse = _others(self.graph, self._repeats) if is_large else ()
        self._collapse = frozenset(_known_scopes(self.graph, collapse))
        self._engine = cast(Engine, layout if isinstance(layout, str) else "ladder")
        if not isinstance(layout, str):
            traits["layout"] = layout
        super().__init__(self._whole(), **traits)

    @property
    def collapsed(self) -> tuple[str, ...]:
        """The scopes that are drawn as one box."""
        return tuple(sorted(self._collapse))

    @collapsed.setter
    def collapsed(self, scopes: Collection[str]) -> None:
        self._collapse = frozenset(_known_scopes(self.graph, scopes))
        self.scene = self._whole()

    def inside(self, key: str) -> Scene:
        """One of the blocks that a box stands for, in all phases.

        Raises:
            KeyError: the element has no inside.
        """
        return self._one_block(self._blocks[key]) if key in self._blocks else super().inside(key)

    def _whole(self) -> Scene:
        """The scene of the whole graph."""
        self._blocks: dict[str, Repeat] = {}  # the boxes of all levels that were drawn
        repeats = [one for one in self._repeats if not any(lies_in(one.scopes[0], scope) for scope in self._collapse)]
        note = graphs.NO_REPEATS if self._wants_repeats and not self._repeats else ""
        return self._drawn(self.graph, graphs.title(self.graph), repeats, note=note)

    def _one_block(self, repeat: Repeat) -> Scene:
        """The scene of one block, whose sentences and facts call its nodes as those of the whole graph do."""
        scope, names = repeat.scopes[0], {node.serial: node_text(node) for node in self.graph}
        block = block_graph(repeat.graph, repeat.blocks[0], scope)
        called = [
            replace(node, name=node.name or names[node.serial].replace("`", "")) if node.kind == "input" else node
            for node in block
        ]
        block = replace(block, nodes=tuple(called))
        repeats = repeats_of(block) if len(block) > LARGE else ()
        title = graphs.block_title(scope, len(repeat.blocks), len(block))
        scene = self._drawn(block, title, repeats, names)
        facts = graph_facts(self.graph)
        return replace(scene, facts={key: facts.get(key, rows) for key, rows in scene.facts.items()})

    def _drawn(
        self,
        graph: Graph,
        title: str,
        repeats: Collection[Repeat],
        names: Mapping[int, str] | None = None,
        note: str = "",
    ) -> Scene:
        scene, boxes, drawn = graph_scene(graph, title, self._collapse, self._engine, repeats, names, note)
        self._blocks |= boxes
        scene = self._insides.opened(scene)
        return replace(scene, opens=tuple(key for key in scene.opens if key in drawn))

    @traitlets.observe("selected")
    def _toggle_scope(self, change: dict[str, Any]) -> None:
        key = change["new"] or ""
        opened = {scope for scope in self._collapse if key.startswith(box_key(scope, ""))}
        closed = {scope for scope in scopes_of(self.graph) if key == scope_key(scope)}
        if opened or closed:
            self.selected = None
            self.collapsed = tuple((self._collapse - opened) | closed)


@paused()
def graph_scene(
    graph: Graph,
    title: str,
    collapse: Collection[str] = (),
    engine: Engine = "ladder",
    repeats: Collection[Repeat] = (),
    names: Mapping[int, str] | None = None,
    note: str = "",
) -> tuple[Scene, dict[str, Repeat], frozenset[str]]:
    """The scene of a graph, the boxes in it that stand for repeated blocks, and all elements that stand for nodes.

    One frame before the first step, and one for each node in recorded order; one for a box that stands for repeated blocks.
    ``names`` says how sentences call nodes, by serial number; ``note`` is what a reader must know first.
    """
    drawing = draw(graph, f"Graph {graph.name}", _lines(graph), collapse, engine=engine, repeats=repeats)
    steps = Steps(and_note(graphs.opening(title), note, drawing.note))
    called = names or {node.serial: node_text(node) for node in graph}
    name = Names(lambda node: _called(graph.nodes[node], drawing, called))
    blocks = {key: box.attributes["repeat"] for key, box in drawing.boxes.items() if box.attributes["repeat"]}
    shown: set[str] = set()
    for node in graph:
        key = drawing.elements.get(node.id, "")
        if key not in blocks:
            _add_step(steps, graph, drawing, node, graphs.node_caption(node, name), name)
        elif node.kind == "op" and key not in shown:
            shown.add(key)
            _add_box_step(steps, drawing, key, node.phase)
    steps.add(graphs.closing(len(graph)))
    facts = {**graph_facts(graph), **scope_facts(graph, drawing.scopes), **box_facts(drawing.boxes)}
    scene = Scene(title, (drawing.pane,), tuple(steps.frames), facts, _legend(graph), opens=tuple(blocks))
    return scene, blocks, frozenset(drawing.elements.values())


def _add_box_step(steps: Steps, drawing: Drawing, key: str, phase: str) -> None:
    """The step of all nodes of a box at once."""
    repeat: Repeat = drawing.boxes[key].attributes["repeat"]
    inside = [i for i in repeat.nodes if drawing.elements.get(i) == key]
    read = {(i, node, at) for node in inside for at, i in enumerate(repeat.graph.nodes[node].inputs)}
    edges = {c.element: c for use in sorted(read) for c in drawing.edge(*use, "active")}
    inputs = {c.element: c for i, _, _ in sorted(read) for c in drawing.node(i, "used") if c.element != key}
    ops = sum(len(repeat.ops(number, phase)) for number in range(len(repeat.blocks)))
    said = graphs.blocks_caption(repeat.name, list(repeat.short_scopes), ops, phase)
    steps.add(said, [Change(key, "done")], [*edges.values(), *inputs.values(), Change(key, "active")], key)


def _lines(graph: Graph) -> Callable[[Node], tuple[Text, ...]]:
    """What stands in a node. Where no backward nodes show what they reuse, each node says what it keeps for them."""
    if any(node.phase != "forward" for node in graph):
        return node_lines
    return lambda node: (*node_lines(node), *([Text(kept_text(node, node.saved, graph))] if node.saved else []))


def _add_step(steps: Steps, graph: Graph, drawing: Drawing, node: Node, caption: str, name: Names) -> None:
    edges = [c for place, i in enumerate(node.inputs) for c in drawing.edge(i, node.id, place, "active")]
    inputs = [c for i in node.inputs for c in drawing.node(i, "used")]
    passing = [*edges, *inputs, *drawing.node(node.id, "active")]
    source = None if node.source is None else str(node.source)
    asks = reads_question(graph, node, drawing, name)
    steps.add(caption, drawing.node(node.id, "done"), passing, drawing.elements.get(node.id), source, asks)


def _called(node: Node, drawing: Drawing, names: Mapping[int, str]) -> str:
    """How a sentence calls a node: by the repeated blocks that it is in, where those are one box, or by its own name."""
    box = drawing.boxes.get(drawing.elements.get(node.id, ""))
    return names[node.serial] if box is None or box.attributes["repeat"] is None else f"`{box.name}`"


def _legend(graph: Graph) -> tuple[tuple[str, str], ...]:
    rows = [("active", "this step"), ("used", "its inputs"), ("done", "recorded")]
    if any(node.phase == "backward" for node in graph):
        rows += [("edge forward", "forward"), ("edge backward", "backward"), ("edge saved", "kept for backward")]
    return tuple(rows)


def _others(graph: Graph, repeats: Collection[Repeat]) -> list[str]:
    """The scopes beside repeated blocks: neither inside of any, nor around them."""
    blocks = {scope for one in repeats for scope in one.scopes}
    around = {scope for block in blocks for scope in outer_scopes(block)}
    beside = (s for s in scopes_of(graph) if s not in around and not blocks.intersection(outer_scopes(s)))
    return list(beside) if blocks else []


def _known_scopes(graph: Graph, scopes: Collection[str]) -> Collection[str]:
    """The scopes, if the graph has them."""
    known = scopes_of(graph)
    for scope in [scopes] if isinstance(scopes, str) else scopes:
        if scope not in known:
            raise ValueError(
                f"collapse: graph {graph.name} has no scope {scope!r}; its scopes are: {', '.join(known) or 'none'}"
            )
    return [scopes] if isinstance(scopes, str) else scopes
