"""Tables in a picture: headings and rows of texts, every column as wide as its widest text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from . import shapes
from .routes import Box
from .scene import Pane
from .shapes import Text

HEIGHT, GAP, MARGIN, BETWEEN = 30.0, 4.0, 16.0, 22.0  # px


class Entry(NamedTuple):
    """A row: the key of its element, one text for each column, and the keys of what it stands for besides."""

    key: str
    cells: tuple[Text, ...]
    css: str = "row"
    within: tuple[str, ...] = ()


class Share(NamedTuple):
    """A bar: its text, and how long it is as part of the widest row. It comes into sight in the state ``done``."""

    key: str
    text: str
    part: float


def table(label: str, lines: Iterable[str | Entry | Share]) -> Pane:
    """A pane with a heading for each string, a row for each entry and a bar for each share.

    >>> table("Rules", ["mul", Entry("mul: shape", (Text("shape rule"), Text("broadcast_shape")))]).svg.count("</text>")
    3
    """
    lines = list(lines)
    lefts = _lefts([line.cells for line in lines if isinstance(line, Entry)])
    width = max([lefts[-1], *map(_least_width, lines)])
    parts: list[str] = []
    y = MARGIN
    for line in lines:
        if isinstance(line, str):
            y += GAP if parts else 0.0
            parts.append(shapes.heading(line, MARGIN, y + 20))
        elif isinstance(line, Share):
            parts.append(_bar(line, Box(0, MARGIN, y, width, HEIGHT)))
        else:
            box = Box(0, MARGIN, y, width, HEIGHT)
            row = shapes.row(line.key, box, line.cells, line.css, lefts)
            for key in line.within:
                row = shapes.group(key, "", "", row)
            parts.append(row)
        y += HEIGHT + GAP
    return Pane(shapes.page(width + 2 * MARGIN, y + MARGIN, parts), label)


def _least_width(line: str | Entry | Share) -> float:
    """The width that a heading needs, or a bar, whose text has room inside or behind it, however long it is."""
    if isinstance(line, Share):
        return 2 * _text_room(line)
    return shapes.text_width(line, shapes.LABEL) if isinstance(line, str) else 0.0


def _text_room(share: Share) -> float:
    return shapes.text_width(share.text, shapes.DETAIL) + 10


def _bar(share: Share, box: Box) -> str:
    """A bar with its text inside, or behind it where it is too short."""
    bar = replace(box, width=max(share.part * box.width, 3.0))
    begin = bar.x if bar.width >= _text_room(share) else bar.right
    drawn = shapes.bar("", bar, "forward", share.text)
    return shapes.column(share.key, box, share.text, drawn + shapes.heading(share.text, begin + 10, box.middle + 5, ""))


def _lefts(rows: Sequence[tuple[Text, ...]]) -> list[float]:
    """Where each column begins, and where the last one ends."""
    count = max(map(len, rows), default=0)
    lefts = [0.0]
    for column in range(count):
        widest = shapes.lines_width(row[column] for row in rows if column < len(row))
        lefts.append(lefts[-1] + widest + BETWEEN)
    return lefts
