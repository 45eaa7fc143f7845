"""A graph drawn as a pane, and which element of the pane stands for each node: cut where it is large, collapsed where asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autodiff_lab.graph import Graph, Node

from . import shapes
from .captions import counted, graphs
from .captions.sentences import and_note
from .collapsing import collapsed, first_nodes
from .collector import paused
from .layout import Engine, Layout, place
from .repeats import Repeat
from .scene import Change, Pane, State
from .shapes import Text
from .values import bytes_text, dtype_text, numbers_of

LARGEST = 3000  # nodes drawn at most; the browser steps that many in 40 ms
SHOWN = 200  # nodes of a larger graph that are drawn
NARROWEST = 84.0  # px


def key_of(node: Node) -> str:
    """The key of a node's element: the same for the same op in every view of a page."""
    return f"n{node.serial}"


def node_text(node: Node) -> str:
    """How a sentence calls a node: by its name, or by its op and number.

    >>> import autodiff_lab as ad
    >>> [node_text(node) for node in ad.record(lambda x: ad.ops.tanh(x * 2.0), 1.0)]
    ['`x`', 'the constant 2', '`mul` (node 2)', '`tanh` (node 3)']
    """
    if node.name:
        return f"`{node.name}`"
    if node.kind == "constant":
        return "a constant array" if _is_array(node) else f"the constant {_constant(node)}"
    return f"`{node.label}` (node {node.id})"


def node_name(node: Node) -> str:
    """How a table calls a node: as a sentence does, without the marks of code."""
    return node_text(node).replace("`", "")


def node_lines(node: Node) -> tuple[Text, ...]:
    """What stands in a node: ``h = mul`` above shape and dtype."""
    return (Text(node_label(node), "label"), Text(shape_text(node)))


def node_label(node: Node, longest: int = 22) -> str:
    """The first line of a node: ``h = mul``, ``tanh``, ``x`` or a constant's value."""
    if node.kind == "constant" and not node.name:
        return _constant(node)
    if not node.name:
        return node.label
    return node.name if node.op is None else f"{shapes.shortened(node.name, longest)} = {node.op.name}"


def shape_text(node: Node) -> str:
    """Shape and dtype, and the device where that is not the CPU; or how many nodes a collapsed scope holds."""
    repeat: Repeat | None = node.attributes.get("repeat")
    if repeat is not None:
        return repeat.ops_text(node.phase)
    if "collapsed" in node.attributes:
        return f"{counted(node.attributes['collapsed'], 'node')}, collapsed"
    dtype = dtype_text(node.dtype)
    text = dtype if node.shape == () else f"{node.shape} {dtype}"
    return text if node.device == "cpu" else f"{text} · {node.device}"


def kept_text(node: Node, kept: Iterable[int], graph: Graph) -> str:
    """What a node keeps for its gradient rules, and its bytes.

    >>> import autodiff_lab as ad
    >>> x = ad.tensor(3.0, requires_grad=True, name="x")
    >>> graph = ad.graph_of(ad.ops.exp(x) * x)
    >>> [kept_text(node, node.saved, graph) for node in graph if node.saved]
    ['keeps result · 8 B', 'keeps exp, x · 16 B']
    """
    values = [graph.nodes[i] for i in kept]
    names = ["result" if value.id == node.id else value.name or node_label(value) for value in values]
    return f"keeps {', '.join(names)} · {bytes_text(sum(value.nbytes for value in values))}" if values else "freed"


def _constant(node: Node) -> str:
    return "array" if _is_array(node) else f"{numbers_of(node.value).item():.6g}"


def _is_array(node: Node) -> bool:
    """Whether a constant has no one number that could be shown."""
    return node.value is None or np.prod(node.shape) != 1


@dataclass(frozen=True)
class Drawing:
    """A drawn graph: its pane, and the element of each node and edge that is in it."""

    pane: Pane
    elements: Mapping[int, str]  # id of a node of the whole graph -> the element that stands for it
    lines: Mapping[tuple[int, int, int], str]  # (source, consumer, argument) of the whole graph -> the edge's element
    boxes: Mapping[str, Node]  # element -> the node that stands for a collapsed scope
    scopes: frozenset[str]  # whose bands are drawn
    note: str  # what a reader must know: what is not drawn, or why it is drawn otherwise

    def node(self, node: int, state: State | None, **texts: str) -> tuple[Change, ...]:
        """The change of a node's element; none where it is not drawn, no texts where it stands for several nodes."""
        element = self.elements.get(node)
        if element is None:
            return ()
        return (Change(element, state, {} if element in self.boxes else texts),)

    def edge(self, source: int, consumer: int, argument: int, state: State) -> tuple[Change, ...]:
        """The change of an edge's element; none where it is not drawn."""
        element = self.lines.get((source, consumer, argument))
        return () if element is None else (Change(element, state),)


@paused()
def draw(
    graph: Graph,
    label: str,
    lines: Callable[[Node], Sequence[Text]] = node_lines,
    collapse: Collection[str] = (),
    badge: str | None = None,
    engine: Engine = "ladder",
    key: Callable[[Node], str] = key_of,
    behind: Callable[[Layout], Iterable[str]] = lambda layout: (),
    repeats: Collection[Repeat] = (),
) -> Drawing:
    """Draw a graph. ``lines`` says what stands in a node, ``badge`` names a slot that is drawn above each node's corner.

    A scope in ``collapse`` is drawn as one box, and so are the blocks of each of ``repeats``, with a note. Of a graph with more
    than 3,000 boxes the first 200 are drawn, and a note says so. ``engine`` says how ``layout.place`` places it. ``key`` names
    a node's element. ``behind`` gives shapes that are drawn between the bands and the edges.
    """
    small, stands_for = collapsed(graph, collapse, repeats)
    piles = [node.name for node in small if node.attributes.get("repeat") is not None]
    note = graphs.repeats_note(list(dict.fromkeys(piles))) if piles else ""
    if len(small) > LARGEST:
        note = and_note(note, graphs.first_nodes_note(SHOWN, len(small)))
        small = first_nodes(small, SHOWN)
    texts = [node_lines(node) if "collapsed" in node.attributes else lines(node) for node in small]
    height = shapes.lines_height(max(map(len, texts), default=1))
    layout = place(
        small,
        lambda node: max(NARROWEST, shapes.lines_width(texts[node.id]) + (40 if node.kind == "input" else 26)),
        height,
        engine,
    )
    note = and_note(note, layout.notice)
    keys = [_box_key(node) if "collapsed" in node.attributes else key(node) for node in small]
    pane = Pane(_svg(small, layout, keys, texts, badge, note, behind(layout)), label)
    elements = {old: keys[new] for old, new in stands_for.items() if new < len(small)}
    edges = {
        (source, node.id, argument): line
        for node in graph
        for argument, source in enumerate(node.inputs)
        if (line := _edge_between(small, keys, stands_for[source], stands_for[node.id], argument))
    }
    boxes = {keys[node.id]: node for node in small if "collapsed" in node.attributes}
    return Drawing(pane, elements, edges, boxes, frozenset(band.scope for band in layout.bands), note)


def _box_key(node: Node) -> str:
    """The key of a box that stands for a collapsed scope."""
    return shapes.box_key(node.name, node.serial)


def _edge_between(small: Graph, keys: Sequence[str], source: int, consumer: int, argument: int) -> str | None:
    """The key of the drawn edge that stands for an edge of the whole graph; None inside a box and where it is cut off."""
    if source == consumer or consumer >= len(small):
        return None
    node = small.nodes[consumer]
    if "collapsed" in node.attributes:
        argument = node.inputs.index(source)
    return f"{keys[source]}>{keys[consumer]}.{argument}"


def _svg(
    small: Graph,
    layout: Layout,
    keys: Sequence[str],
    texts: Sequence[Sequence[Text]],
    badge: str | None,
    note: str,
    behind: Iterable[str],
) -> str:
    """The document: bands behind edges behind nodes and names."""
    parts = [*(shapes.band(band.x, band.y, band.width, band.height) for band in layout.bands), *behind]
    for line in sorted(layout.lines, key=lambda line: line.way != "saved"):
        source = small.nodes[line.source]
        key = f"{keys[line.source]}>{keys[line.consumer]}.{line.argument}"
        kept = (
            f"{node_label(source)} is kept for the backward pass: {source.nbytes} bytes" if line.way == "saved" else ""
        )
        parts.append(shapes.edge(key, line.points, f"edge {line.way}", kept, line.curved))
    for node, box in zip(small, layout.boxes, strict=True):
        css = f"{node.phase} {'op collapsed' if 'collapsed' in node.attributes else node.kind}"
        title = node_label(node, longest=10**6)
        is_pile = node.attributes.get("repeat") is not None
        parts.append(shapes.node(keys[node.id], box, css, texts[node.id], title, badge, is_pile))
    parts += [shapes.band_name(band.x, band.y, band.scope) for band in layout.bands]
    height = layout.height
    if note:
        parts.append(shapes.heading(note, 20, height + 4))
        height += 24
    return shapes.page(max(layout.width, shapes.text_width(note, shapes.LABEL) + 40), height, parts)
