"""The way of each edge between placed boxes: along its column, beside its row, or as a rung from forward to backward."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal, NamedTuple

from autodiff_lab.graph import Graph, Node

TRACK = 5.0  # px between two edges that run side by side between two rows
TRACKS = 5  # how many fit
PORT = 26.0  # px between two arrowheads on one box, where it is wide enough

Point = tuple[float, float]
Spot = int | tuple[int, int]  # a node, or the lane (source, row) in which the edges of a source pass a row
Way = Literal["forward", "backward", "saved"]


@dataclass(frozen=True, slots=True)
class Box:
    """A node's rectangle: its left upper corner and its size, in px."""

    node: int
    x: float
    y: float
    width: float
    height: float

    @property
    def centre(self) -> float:
        """The middle, across."""
        return self.x + self.width / 2

    @property
    def middle(self) -> float:
        """The middle, down."""
        return self.y + self.height / 2

    @property
    def right(self) -> float:
        """The right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.y + self.height


class Line(NamedTuple):
    """An edge's way from a node to one argument of its consumer."""

    source: int
    consumer: int
    argument: int
    way: Way
    points: tuple[Point, ...]
    curved: bool = False  # points are those of a Bézier curve: two control points between two points of the way


def way_of(graph: Graph, source: int, consumer: int) -> Way:
    """What an edge is: part of the forward pass, part of the backward pass, or a value that backward reuses."""
    if graph.nodes[consumer].phase == "forward":
        return "forward"
    return "saved" if graph.nodes[source].phase == "forward" else "backward"


class Router:
    """Finds the points of every edge; remembers which tracks between the rows are taken."""

    def __init__(
        self,
        graph: Graph,
        boxes: Sequence[Box],
        rows: Sequence[int],
        tops: Sequence[float],
        x: Mapping[Spot, float],
        row_gap: float,
        gutter: float,
    ) -> None:
        self.graph, self.boxes, self.rows, self.tops, self.x = graph, boxes, rows, tops, x
        self.row_gap, self.gutter = row_gap, gutter
        self.forward = [node.phase == "forward" for node in graph]
        self.taken: dict[object, dict[int, int]] = {}  # row or "gutter" -> source -> track
        self.spots: dict[int, list[float]] = {}  # row -> centres of what stands there, from left to right
        for spot, centre in sorted(x.items(), key=itemgetter(1)):
            self.spots.setdefault(rows[spot] if isinstance(spot, int) else spot[1], []).append(centre)

    def into(self, node: Node) -> Iterator[Line]:
        """The lines of the node's arguments: those that arrive at one side in the order in which they come there."""
        arrivals = sorted((*self._arrival(source, node.id), place, source) for place, source in enumerate(node.inputs))
        sides = [arrival[0] for arrival in arrivals]
        for rank, (side, _, place, source) in enumerate(arrivals):
            offset = twin = 0.0
            if len(arrivals) > 1:
                offset = self._offset(node.id, rank - sides.index(side), sides.count(side))
                twin = offset if node.inputs.count(source) > 1 else 0.0
            points = self._points(side, source, node.id, offset, twin)
            yield Line(source, node.id, place, way_of(self.graph, source, node.id), tuple(points))

    def _arrival(self, source: int, consumer: int) -> tuple[str, float]:
        """By which side of the consumer the edge arrives, and where it comes from."""
        here, there = self.rows[consumer], self.rows[source]
        if here == there or self.forward[source] != self.forward[consumer]:
            return ("rung" if self._faces(source, consumer) else "track"), self.boxes[source].centre
        step = 1 if there > here else -1
        x = self.x.get((source, here + step))
        return ("below" if step > 0 else "above"), self.boxes[source].centre if x is None else x

    def _faces(self, source: int, consumer: int) -> bool:
        """Whether nothing of the row stands between the two, so that a straight line joins them."""
        row, start, end = self.rows[source], self.boxes[source].centre, self.boxes[consumer].centre
        if row != self.rows[consumer] or start > end:
            return False
        return bisect_right(self.spots[row], start) == bisect_left(self.spots[row], end)

    def _offset(self, consumer: int, rank: int, count: int) -> float:
        step = min(PORT, (self.boxes[consumer].width - 24) / max(count, 1))
        return (rank - (count - 1) / 2) * step

    def _points(self, side: str, source: int, consumer: int, offset: float, twin: float) -> list[Point]:
        start, end = self.boxes[source], self.boxes[consumer]
        if side == "rung":
            return [(start.right, start.middle + twin / 2), (end.x, end.middle + twin / 2)]
        if side == "track":
            return self._along_tracks(start, end)
        down = side == "above"
        step = 1 if down else -1
        points = [(start.centre + twin, start.bottom if down else start.y)]
        for row in range(self.rows[source] + step, self.rows[consumer], step):
            if (source, row) in self.x:
                top, bottom = self.tops[row], self.tops[row] + start.height
                points += [(self.x[source, row], y) for y in ((top, bottom) if down else (bottom, top))]
        return [*points, (end.centre + offset, end.y if down else end.bottom)]

    def _along_tracks(self, start: Box, end: Box) -> list[Point]:
        """Out of the source, along a track between two rows, down into the top of the consumer."""
        row, goal = self.rows[start.node], self.rows[end.node]
        leaves = start.right - 14
        arrives = end.x + 14 + self._track(("top", end.node), start.node) * 9 % max(end.width / 2 - 20, 9)
        if goal == row:
            way = [
                (leaves, start.y),
                (leaves, self._height(goal, start.node)),
                (arrives, self._height(goal, start.node)),
            ]
        elif goal == row + 1:
            y = self._height(goal, start.node)
            way = [(leaves, start.bottom), (leaves, y), (arrives, y)]
        else:
            near = row + 1 if goal > row else row
            first, second = self._height(near, start.node), self._height(goal, start.node)
            x = self.gutter + 16 + self._track("gutter", start.node) % 12 * TRACK
            exit_y = start.bottom if goal > row else start.y
            way = [(leaves, exit_y), (leaves, first), (x, first), (x, second), (arrives, second)]
        return [*way, (arrives, end.y)]

    def _track(self, where: object, source: int) -> int:
        """The track of a source at a place, the first free one; edges of one source share it."""
        taken = self.taken.setdefault(where, {})
        return taken.setdefault(source, len(taken))

    def _height(self, row: int, source: int) -> float:
        """The height of the source's track above a row."""
        track = self._track(row, source) % TRACKS
        return (
            self.tops[row] - min(self.row_gap, self.tops[row]) / 2 + (track + 1) // 2 * (TRACK if track % 2 else -TRACK)
        )
