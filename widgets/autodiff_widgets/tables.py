"""Tables in a picture: headings and rows of texts, every column as wide as its widest text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from . import shapes
from .routes import Box
from .scene import Pane
from .shapes import Text

HEIGHT, GAP, MARGIN, BETWEEN = 30.0, 4.0, 16.0, 22.0  # px


class Entry(NamedTuple):
    """A row: the key of its element, and one text for each column."""

    key: str
    cells: tuple[Text, ...]


def table(label: str, lines: Iterable[str | Entry]) -> Pane:
    """A pane with a heading for each string and a row for each entry.

    >>> table("Rules", ["mul", Entry("mul: shape", (Text("shape rule"), Text("broadcast_shape")))]).svg.count("</text>")
    3
    """
    lines = list(lines)
    lefts = _lefts([line.cells for line in lines if isinstance(line, Entry)])
    width = max([lefts[-1], *(shapes.text_width(line, shapes.LABEL) for line in lines if isinstance(line, str))])
    parts: list[str] = []
    y = MARGIN
    for line in lines:
        if isinstance(line, str):
            y += GAP if parts else 0.0
            parts.append(shapes.heading(line, MARGIN, y + 20))
        else:
            box = Box(0, MARGIN, y, width, HEIGHT)
            parts.append(shapes.row(line.key, box, line.cells, lefts=lefts))
        y += HEIGHT + GAP
    return Pane(shapes.page(width + 2 * MARGIN, y + MARGIN, parts), label)


def _lefts(rows: Sequence[tuple[Text, ...]]) -> list[float]:
    """Where each column begins, and where the last one ends."""
    count = max(map(len, rows), default=0)
    lefts = [0.0]
    for column in range(count):
        widest = shapes.lines_width(row[column] for row in rows if column < len(row))
        lefts.append(lefts[-1] + widest + BETWEEN)
    return lefts
