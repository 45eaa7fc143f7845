"""Where everything of a graph stands on the page: as a ladder, or as Graphviz places it. Positions only, no looks.

In the ladder forward goes down on the left. Backward climbs on the right, each backward node in the row of the forward node
whose rule made it, so both sides of a layer share one band. The values that backward reuses are the rungs between them. A row
depends only on what was recorded before it, so a later op never moves an earlier row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from autodiff_lab.graph import Graph, Node

from .collector import paused
from .columns import arrange
from .graphviz_layout import NoGraphvizError, graphviz_places
from .repeats import outer_scopes
from .routes import Box, Line, Router, Spot

ROW_GAP = 44.0  # between two rows; edges that run along the rows have their tracks here
NODE_GAP = 28.0  # between two boxes of a row
GUTTER = 96.0  # between the forward and the backward column
MARGIN = 24.0
HEADER = 30.0  # the name of a scope at the top of its band
PAD = 14.0  # between a band and what is in it
LONGEST_LANE = 400  # rows; a longer edge is drawn straight across

Engine = Literal["ladder", "graphviz"]


@dataclass(frozen=True, slots=True)
class Band:
    """The strip of the rows that a name scope takes; inner scopes lie in the band of the outer one."""

    scope: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """A placed graph: a box for each node (by id), a line for each edge, a band for each scope, and the size of the page."""

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    bands: tuple[Band, ...]
    width: float
    height: float
    notice: str = ""  # what a reader must know, such as why this is not the layout that was asked for


@paused()
def place(
    graph: Graph,
    width_of: Callable[[Node], float] = lambda node: 96.0,
    height: float = 46.0,
    engine: Engine = "ladder",
) -> Layout:
    """Place a graph. Every box has one height.

    Args:
        graph: any graph; one that was recorded looks best as a ladder.
        width_of: the width of a node's box, in px.
        height: the height of all boxes, in px.
        engine: ``"ladder"``: forward down on the left, backward up on the right, without backward nodes a layered drawing.
            ``"graphviz"``: as ``dot`` places it, without bands for scopes; where Graphviz is missing or needs more than
            5 seconds the ladder, with a notice that says so.

    Raises:
        ValueError: there is no such engine.

    >>> import autodiff_lab as ad
    >>> layout = place(ad.record(lambda x, w: x * w + 1.0, 2.0, 3.0))
    >>> [round(box.y) for box in layout.boxes]  # x and w, the constant beside mul, mul, add
    [24, 24, 114, 114, 204]
    """
    if engine not in get_args(Engine):
        raise ValueError(f"layout: expected one of {', '.join(map(repr, get_args(Engine)))}, got {engine!r}")
    widths = [width_of(node) for node in graph]
    if engine == "ladder":
        return _ladder(graph, widths, height)
    try:
        boxes, lines, width, bottom = graphviz_places(graph, widths, height)
    except NoGraphvizError as reason:
        return replace(_ladder(graph, widths, height), notice=f"{reason} The graph is drawn as a ladder instead.")
    return Layout(boxes, lines, (), width, bottom)


def _ladder(graph: Graph, widths: Sequence[float], height: float) -> Layout:
    rows, scopes = _rows(graph)
    tops, bands = _heights(scopes, height)
    inset = MARGIN + PAD * max((scope.count(".") + 1 for scope in scopes if scope), default=0)
    forward = [node.id for node in graph if node.phase == "forward"]
    backward = [node.id for node in graph if node.phase != "forward"]
    x, edge = _shifted(_column(graph, forward, rows, widths), widths, inset)
    gutter = edge
    if backward:
        right, edge = _shifted(_column(graph, backward, rows, widths), widths, edge + GUTTER)
        x |= right
    boxes = tuple(Box(i, x[i] - widths[i] / 2, tops[rows[i]], widths[i], height) for i in range(len(graph)))
    router = Router(graph, boxes, rows, tops, x, ROW_GAP, gutter)
    lines = tuple(line for node in graph for line in router.into(node))
    width = edge + inset
    bottom = (tops[-1] + height if tops else MARGIN) + MARGIN + PAD * len(outer_scopes(scopes[-1] if scopes else ""))
    drawn = tuple(_band(band, scopes, tops, height, width) for band in bands)
    return Layout(boxes, lines, drawn, width, bottom)


def is_leaf(node: Node) -> bool:
    """Whether the node is an input or a constant: something that no op computed."""
    return node.kind != "op"


# --------------------------------------------------------------------------------------------------------------- rows


def _rows(graph: Graph) -> tuple[list[int], list[str]]:
    """Each node's row, and each row's scope.

    A leaf stands in the row above the op that uses it first (beside it, in the backward column); an op below all its inputs
    and inside its scope's rows. What an update computes from its state alone stands beside what reads it.
    """
    rows = [-1] * len(graph)
    scopes: list[str] = []
    start, scope = 0, None
    for node in graph:
        fresh = [i for i in node.inputs if rows[i] < 0]
        if node.phase != "forward":
            rows[node.id] = row = _row_beside(node, graph, rows)
            for leaf in fresh:
                rows[leaf] = row
        elif not is_leaf(node):
            if node.scope != scope:
                start, scope = len(scopes), node.scope
            row = max([start + bool(fresh), *(rows[i] + 1 for i in node.inputs if rows[i] >= 0)])
            scopes += [node.scope] * (row + 1 - len(scopes))
            rows[node.id] = row
            for leaf in fresh:
                rows[leaf] = row - 1
    for node in reversed(graph.nodes):
        if rows[node.id] < 0:
            readers = (rows[reader] for reader in graph.consumers[node.id] if rows[reader] >= 0)
            rows[node.id] = min(readers, default=-1 if is_leaf(node) else len(scopes) - 1)
    if graph.nodes and not scopes:
        scopes = [""]
    return [max(row, 0) for row in rows], scopes


def _row_beside(node: Node, graph: Graph, rows: Sequence[int]) -> int:
    """The row of a backward or update node: its origin's; else of the highest gradient or parameter that it reads.

    What many updates share, as the number of the step, stands high up, so an update takes the row of the lowest. A leaf
    without an origin, and what is computed from such leaves alone, have no row until something uses them.
    """
    if node.origin is not None:
        return rows[node.origin]
    if is_leaf(node):
        return -1
    reads = [rows[i] for i in node.inputs if rows[i] >= 0]
    gradients = [rows[i] for i in node.inputs if rows[i] >= 0 and graph.nodes[i].phase != "forward"]
    return (max if node.phase == "update" else min)(gradients or reads, default=-1)


def _heights(scopes: Sequence[str], height: float) -> tuple[list[float], list[tuple[str, int, int]]]:
    """The top of each row, and for each band (scope, first row, last row). A row's top depends on earlier rows only."""
    tops: list[float] = []
    bands: list[tuple[str, int, int]] = []
    opened: list[int] = []  # places in bands
    for row, scope in enumerate(scopes):
        names = outer_scopes(scope)
        kept = sum(1 for place, name in zip(opened, names, strict=False) if bands[place][0] == name)
        y = tops[-1] + height + ROW_GAP if tops else MARGIN
        tops.append(y + (len(opened) - kept) * PAD + (len(names) - kept) * HEADER)
        del opened[kept:]
        for name in names[kept:]:
            opened.append(len(bands))
            bands.append((name, row, row))
        for place in opened:
            bands[place] = (bands[place][0], bands[place][1], row)
    return tops, bands


def _band(
    band: tuple[str, int, int], scopes: Sequence[str], tops: Sequence[float], height: float, width: float
) -> Band:
    """The rectangle of a scope's rows; what is inside it closes before it does and opens after it."""
    name, first, last = band
    depth = name.count(".")
    inside_first, inside_last = (len(outer_scopes(scopes[row])) - depth - 1 for row in (first, last))
    x = MARGIN + PAD * depth - PAD / 2
    top = tops[first] - HEADER * (inside_first + 1) - 4
    bottom = tops[last] + height + PAD * (inside_last + 1)
    return Band(name, x, top, width - 2 * x, bottom - top)


# ------------------------------------------------------------------------------------------------------------ columns


def _column(graph: Graph, members: Sequence[int], rows: Sequence[int], widths: Sequence[float]) -> dict[Spot, float]:
    """The centres of a column's nodes and lanes. A lane ``(source, row)`` keeps a row free for edges that pass through it.

    All edges of one source share its lane.
    """
    sources = _with_lanes(graph, members, rows)
    number = {spot: place for place, spot in enumerate(sources)}
    by_row: dict[int, list[list[int]]] = {}
    for group in _groups(graph, members, rows):
        by_row.setdefault(rows[group[0]], []).append([number[member] for member in group])
    for spot in sources:
        if not isinstance(spot, int):
            by_row.setdefault(spot[1], []).append([number[spot]])
    climbs = any(graph.nodes[member].phase != "forward" for member in members)
    ordered = [by_row[row] for row in sorted(by_row, reverse=climbs)]
    sizes = [widths[spot] if isinstance(spot, int) else 0.0 for spot in sources]
    flow = [[number[source] for source in found] for found in sources.values()]
    return dict(zip(sources, arrange(ordered, sizes, flow, NODE_GAP), strict=True))


def _groups(graph: Graph, members: Sequence[int], rows: Sequence[int]) -> list[list[int]]:
    """The nodes of a column that stay together in their row, in recorded order: of one origin, or one made from the other."""
    group_of: dict[int, list[int]] = {}
    of_origin: dict[int, int] = {}  # origin -> one of its nodes
    inside = frozenset(members)
    for member in members:
        near = [i for i in graph.nodes[member].inputs if i in inside and rows[i] == rows[member]]
        origin = graph.nodes[member].origin
        if origin is not None:
            near.append(of_origin.setdefault(origin, member))
        joined = {id(group_of[i]): group_of[i] for i in near if i in group_of}
        group = [i for found in joined.values() for i in found] + [member]
        for i in group:
            group_of[i] = group
    return [sorted(group) for group in {id(group): group for group in group_of.values()}.values()]


def _with_lanes(graph: Graph, members: Sequence[int], rows: Sequence[int]) -> dict[Spot, list[Spot]]:
    """Which spots of the column point to each spot, when an edge steps from row to row."""
    sources: dict[Spot, list[Spot]] = {member: [] for member in members}
    inside = frozenset(members)
    for consumer in members:
        for source in graph.nodes[consumer].inputs:
            if source not in inside:
                continue
            last: Spot = source
            step = 1 if rows[consumer] > rows[source] else -1
            if abs(rows[consumer] - rows[source]) <= LONGEST_LANE:
                for row in range(rows[source] + step, rows[consumer], step):
                    sources.setdefault((source, row), [last])
                    last = (source, row)
            sources[consumer].append(last)
    return sources


def _shifted(centres: Mapping[Spot, float], widths: Sequence[float], start: float) -> tuple[dict[Spot, float], float]:
    """The column moved so that it begins at ``start``, and where it ends."""
    half = {spot: widths[spot] / 2 if isinstance(spot, int) else 0.0 for spot in centres}
    left = min((x - half[spot] for spot, x in centres.items()), default=0.0)
    moved = {spot: x - left + start for spot, x in centres.items()}
    return moved, max((x + half[spot] for spot, x in moved.items()), default=start)
