"""Regions: groups of nodes as coloured shapes behind a graph, each with one outline around all its parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from . import shapes
from .routes import Box, Line
from .scene import Change

MARGIN = 9.0  # px around a node; scene.css draws the outline outside of it
COLOURS = 6

Edge = tuple[int, int, int]  # source, consumer, argument


@dataclass(frozen=True)
class Region:
    """The region of one group: its number, its place among all regions, its title, and the keys of its nodes."""

    number: int
    place: int
    title: str
    members: Mapping[int, str]

    def parts(self, placed: Sequence[Box], lines: Iterable[Line]) -> Iterator[str]:
        """The shapes, of which none is seen before it is ``shown``: all outlines first, then what fills them.

        ``placed`` holds the boxes of the graph's nodes, ``lines`` are the edges between members.
        """
        boxes = {key: placed[node] for node, key in self.members.items() if node < len(placed)}
        tubes = {self._edge((line.source, line.consumer, line.argument)): line.points for line in lines}
        drawn = []
        for css in ("rim", "inside"):
            drawn += [shapes.group(_part(key), css, self.title, shapes.tube(points)) for key, points in tubes.items()]
            drawn += [shapes.group(_part(key), css, self.title, _around(box)) for key, box in boxes.items()]
        if boxes:
            yield shapes.group(region_key(self.number), region_css(self.place), self.title, "".join(drawn))

    def shown(self, nodes: Iterable[int], edges: Iterable[Edge]) -> list[Change]:
        """What brings these nodes and edges into sight."""
        keys = [*(self.members[node] for node in nodes), *map(self._edge, edges)]
        return [Change(_part(key), "done") for key in keys]

    def _edge(self, edge: Edge) -> str:
        source, consumer, argument = edge
        return f"{self.members[source]}>{self.members[consumer]}.{argument}"


def region_key(group: int) -> str:
    """The key of a group's region, and of whatever else stands for the group.

    >>> region_key(3)
    'group:3'
    """
    return f"group:{group}"


def region_css(place: int) -> str:
    """The class that gives the first region, the second, … its colour."""
    return f"region region{place % COLOURS + 1}"


def _part(key: str) -> str:
    return f"{key}~group"


def _around(box: Box) -> str:
    x, y, width, height = box.x - MARGIN, box.y - MARGIN, box.width + 2 * MARGIN, box.height + 2 * MARGIN
    return shapes.rectangle(Box(box.node, x, y, width, height), 8 + MARGIN)
