"""The shapes of pictures as SVG text: node, edge, scope band, list row. Classes say what a thing is, scene.css how it looks.

Every text that comes from a user's program is data: it is escaped here and nowhere else.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .routes import Box, Point
from .scene import writable as writable

LABEL = 15.0  # px; the sizes that scene.css gives to .label and to other text
DETAIL = 12.5
LONGEST = 30  # characters of a text that are drawn; the whole text is in the title and in the facts
LINE = 17.0  # px from one line of a node to the next
CORNER = 8.0  # radius where an edge turns


@dataclass(frozen=True, slots=True)
class Text:
    """One line in a shape. A frame rewrites it where it has a slot; ``room`` is the longest text that it will show."""

    text: str
    css: str = "detail"
    slot: str | None = None
    room: str = ""


def escaped(text: str) -> str:
    """Text as XML data, for content and for attributes, where a bare line break would become a space.

    >>> escaped('<b onload="x">&')
    '&lt;b onload=&quot;x&quot;&gt;&amp;'
    """
    return html.escape(writable(text)).replace("\n", "&#10;").replace("\t", "&#9;").replace("\r", "&#13;")


def shortened(text: str, longest: int = LONGEST) -> str:
    """The text on one line, cut with an ellipsis where it is longer than ``longest`` characters.

    >>> shortened("a_very_long_name_of_a_variable", 12)
    'a_very_long…'
    """
    line = " ".join(text.split()) if text.strip() else text
    return line if len(line) <= longest else line[: longest - 1] + "…"


def text_width(text: str, size: float) -> float:
    """About how wide the text is drawn, in px; East Asian characters and emoji take a full square."""
    squares = sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.62 for c in text)
    return squares * size


def lines_width(lines: Iterable[Text]) -> float:
    """The width that the widest line needs."""
    return max((_width(line) for line in lines), default=0.0)


def lines_height(count: int) -> float:
    """The height of a box with so many lines."""
    return 16.0 + LINE * count


def _width(line: Text) -> float:
    size = LABEL if line.css == "label" else DETAIL
    return max(text_width(shortened(line.text), size), text_width(shortened(line.room), size))


def node(
    key: str, box: Box, css: str, lines: Sequence[Text], title: str, badge: str | None = None, is_many: bool = False
) -> str:
    """A node: inputs have round ends, constants sharp corners, ops soft ones. ``badge`` names a slot above its corner.

    What stands for many of a kind lies on a pile.
    """
    radius = min(box.height / 2, 26) if "input" in css else 2 if "constant" in css else 8
    first = box.middle - LINE * (len(lines) - 1) / 2 + 5
    texts = [_text(line, box.centre, first + LINE * place) for place, line in enumerate(lines)]
    if badge is not None:
        texts.append(_text(Text("", "label outside", badge), box.right, box.y - 6, "end"))
    pile = "".join(_rect(box.x + by, box.y - by, box.width, box.height, radius) for by in (10, 5) if is_many)
    return (
        f'<g class="node {css}" data-op="{escaped(key)}"><title>{escaped(title)}</title>'
        f"{pile}{_rect(box.x, box.y, box.width, box.height, radius)}{''.join(texts)}</g>"
    )


def edge(key: str, points: Sequence[Point], css: str, title: str = "", curved: bool = False) -> str:
    """An edge: its way, and an arrowhead of two strokes in the same path, so that it shares the edge's colour without an id.

    The points of a curved edge are those of a Bézier curve; a straight one has S-curves where it is slanted.
    """
    note = f"<title>{escaped(title)}</title>" if title else ""
    way = f"{_curve(points)} {_slanted_head(points)}" if curved else f"{_way(points)} {_head(points)}"
    return f'<path class="{css}" data-op="{escaped(key)}" d="{way}">{note}</path>'


def band(x: float, y: float, width: float, height: float) -> str:
    """The band of a name scope; what is in it is drawn over it."""
    return f'<g class="scope">{_rect(x, y, width, height, 10)}</g>'


def band_name(x: float, y: float, scope: str) -> str:
    """The name of a name scope at the top of its band, drawn over edges that pass."""
    name = _text(Text(scope.rpartition(".")[2], "label"), x + 12, y + 22, "start")
    return f'<g class="scope" data-op="{escaped(scope_key(scope))}"><title>{escaped(scope)}</title>{name}</g>'


def scope_key(scope: str) -> str:
    """The key of a scope's name."""
    return f"scope:{scope}"


def box_key(scope: str, run: object) -> str:
    """The key of a box that stands for a run of a collapsed scope's nodes."""
    return f"scope:{scope}#{run}"


def row(key: str, box: Box, lines: Sequence[Text], css: str = "row", lefts: Sequence[float] = ()) -> str:
    """A row of a list: a box with its texts side by side, where ``lefts`` says or else at equal distances."""
    places = lefts or [place * box.width / max(len(lines), 1) for place in range(len(lines))]
    texts = [_text(line, box.x + 10 + left, box.middle + 5, "start") for line, left in zip(lines, places, strict=False)]
    return (
        f'<g class="{css}" data-op="{escaped(key)}">{_rect(box.x, box.y, box.width, box.height, 5)}{"".join(texts)}</g>'
    )


def bar(key: str, box: Box, css: str, title: str) -> str:
    """A bar of a chart."""
    return group(key, f"bar {css}", title, rectangle(box, min(3, box.width / 4)))


def group(key: str, css: str, title: str, drawn: str) -> str:
    """Shapes that are one element; without a key they are only drawn."""
    named = f' data-op="{escaped(key)}"' if key else ""
    return f'<g class="{css}"{named}><title>{escaped(title)}</title>{drawn}</g>'


def column(key: str, box: Box, title: str, drawn: str) -> str:
    """One step of a plot: what comes into sight there, on a column that can be selected."""
    return group(
        key, "step", title, _rect(box.x, box.y, box.width, box.height, 0) + (f"<g>{drawn}</g>" if drawn else "")
    )


def heading(text: str, x: float, y: float, css: str = "label", anchor: str = "start", slot: str | None = None) -> str:
    """A line of text that has no box of its own."""
    return _text(Text(text, css, slot), x, y, anchor, longest=200)


def line(points: Sequence[Point], css: str, offset: float = 0.0) -> str:
    """Straight strokes through the points; ``offset`` is where in the pattern of its dashes the line begins, in px."""
    way = "L".join(map(_p, points))
    begins = f' stroke-dashoffset="{_n(offset)}"' if offset else ""
    return f'<path class="{css}"{begins} d="M{way}"/>'


def outline(points: Sequence[Point]) -> str:
    """A closed shape with straight sides."""
    return f'<path d="M{"L".join(map(_p, points))}z"/>'


def tube(points: Sequence[Point]) -> str:
    """The way of an edge without an arrowhead, to be drawn as a broad stroke behind it."""
    return f'<path d="{_way(points)}"/>'


def rectangle(box: Box, radius: float) -> str:
    """A box with round corners."""
    return _rect(box.x, box.y, box.width, box.height, radius)


def mark(point: Point, number: int, css: str) -> str:
    """The mark of the first curve (round), the second (square), the third (triangle) and the fourth (cross)."""
    x, y = map(_n, point)
    ways = ("m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "m-4-4h8v8h-8z", "m0-5l5 9h-10z", "m-4-4l8 8m0-8l-8 8")
    return f'<path class="mark {css}" d="M{x} {y}{ways[number % len(ways)]}"/>'


def page(width: float, height: float, parts: Iterable[str], css: str = "") -> str:
    """The SVG document of a pane at its natural size; ``css="plot"`` lets it shrink to the room that there is."""
    size = f'width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}"'
    kind = f' class="{css}"' if css else ""
    return f'<svg xmlns="http://www.w3.org/2000/svg"{kind} {size}>{"".join(parts)}</svg>'


# -------------------------------------------------------------------------------------------------------------- pieces


def _text(line: Text, x: float, y: float, anchor: str = "middle", longest: int = LONGEST) -> str:
    slot = f' data-slot="{escaped(line.slot)}"' if line.slot else ""
    shown = escaped(shortened(line.text, longest))
    return f'<text class="{line.css}"{slot} x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}">{shown}</text>'


def _rect(x: float, y: float, width: float, height: float, radius: float) -> str:
    return f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{_n(radius)}"/>'


def _n(number: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{number:.1f}".removesuffix(".0")


def _p(point: Point) -> str:
    return f"{_n(point[0])} {_n(point[1])}"


def _is_straight(a: Point, b: Point) -> bool:
    return abs(a[0] - b[0]) < 0.5 or abs(a[1] - b[1]) < 0.5


def _way(points: Sequence[Point]) -> str:
    """A path through the points: slanted pieces are S-curves that leave and arrive upright, corners are rounded."""
    parts = [f"M{_p(points[0])}"]
    for place in range(1, len(points)):
        a, b = points[place - 1], points[place]
        if not _is_straight(a, b):
            half = (a[1] + b[1]) / 2
            parts.append(f"C{_n(a[0])} {_n(half)} {_n(b[0])} {_n(half)} {_p(b)}")
        elif place + 1 < len(points) and _is_straight(b, points[place + 1]):
            c = points[place + 1]
            radius = min(CORNER, math.dist(a, b) / 2, math.dist(b, c) / 2)
            parts.append(f"L{_p(_towards(b, a, radius))}Q{_p(b)} {_p(_towards(b, c, radius))}")
        else:
            parts.append(f"L{_p(b)}")
    return "".join(parts)


def _towards(start: Point, goal: Point, distance: float) -> Point:
    length = math.dist(start, goal) or 1.0
    return (start[0] + (goal[0] - start[0]) * distance / length, start[1] + (goal[1] - start[1]) * distance / length)


def _head(points: Sequence[Point]) -> str:
    """The arrowhead: two strokes at the end of the last piece."""
    (ax, ay), (x, y) = points[-2], points[-1]
    if abs(ay - y) < 0.5:
        back = -8 if x > ax else 8
        return f"M{_n(x + back)} {_n(y - 5)}L{_n(x)} {_n(y)}L{_n(x + back)} {_n(y + 5)}"
    back = -8 if y > ay else 8
    return f"M{_n(x - 5)} {_n(y + back)}L{_n(x)} {_n(y)}L{_n(x + 5)} {_n(y + back)}"


def _curve(points: Sequence[Point]) -> str:
    """A path along a Bézier curve."""
    return f"M{_p(points[0])}C{' '.join(map(_p, points[1:]))}"


def _slanted_head(points: Sequence[Point]) -> str:
    """The arrowhead of a curve, which may arrive from any side."""
    x, y = end = points[-1]
    before = next((p for p in reversed(points) if math.dist(p, end) > 0.5), (x, y - 1.0))
    dx, dy = ((a - b) / math.dist(before, end) for a, b in zip(end, before, strict=True))
    left, right = ((x - 8 * dx - side * 5 * dy, y - 8 * dy + side * 5 * dx) for side in (1, -1))
    return f"M{_p(left)}L{_p(end)}L{_p(right)}"
