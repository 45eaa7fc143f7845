"""The picture of one op call: inputs left, the op, the result right; below them backward, which runs from right to left."""

from __future__ import annotations

from collections.abc import Sequence

from . import shapes
from .cell_arrays import CellArray
from .op_arrays import OpArrays
from .routes import Box, Point
from .scene import Pane
from .shapes import Text

MARGIN, GAP, BESIDE = 16.0, 12.0, 30.0  # px: around the picture, between arrays, and on both sides of the op's box
LOWEST = 70.0  # px, the height of a row

Named = tuple[str, str]  # class and text of a heading


def op_pane(arrays: OpArrays, headings: Sequence[Named]) -> Pane:
    """The pane of an op call, with some lines of text above it."""
    parts, top = [], MARGIN
    for css, line in headings:
        parts.append(shapes.heading(line, MARGIN, top + 12, css))
        top += 22.0
    left = max(array.width for array in (*arrays.inputs, *arrays.gradients))
    box = Text(arrays.trace.name, "label" if len(arrays.trace.name) <= 10 else "detail"), Text("backward", "label")
    middle = shapes.lines_width(box) + 24
    rows = [_Row(arrays.inputs, [arrays["out"]], arrays.key, "forward", box[0])]
    if arrays.gradients:
        rows.append(_Row(arrays.gradients, [arrays["g"]], f"{arrays.key}:backward", "backward", box[1]))
    for row in rows:
        parts += row.parts(left, middle, top)
        top += row.height + 2 * GAP
    right = MARGIN + left + middle + 2 * BESIDE + max(row.right[0].width for row in rows)
    width = max(right, *(MARGIN + shapes.text_width(line, shapes.LABEL) for _, line in headings))
    return Pane(shapes.page(width + MARGIN, top, parts), f"Arrays of {arrays.trace.name}")


class _Row:
    """Arrays on both sides of a box: forward they are joined from left to right, backward from right to left."""

    def __init__(self, left: Sequence[CellArray], right: Sequence[CellArray], key: str, phase: str, name: Text) -> None:
        self.left, self.right, self.key, self.phase, self.name = left, right, key, phase, name

    @property
    def height(self) -> float:
        """The px from the top of the highest side to its bottom."""
        return max(_height(self.left), _height(self.right), LOWEST)

    def parts(self, left: float, middle: float, top: float) -> list[str]:
        """The shapes, where the left side takes ``left`` px and the box ``middle``."""
        box = Box(0, MARGIN + left + BESIDE, top + self.height / 2 - 20, middle, 40)
        parts: list[str] = []
        for side, x in ((self.left, MARGIN), (self.right, box.right + BESIDE)):
            y = top + (self.height - _height(side)) / 2
            for array in side:
                parts.append(array.svg(x, y))
                outer = (x + array.width, box.x) if side is self.left else (x, box.right)
                parts.append(
                    self._edge(array, (outer[0], y + array.height / 2), (outer[1], box.middle), side is self.left)
                )
                y += array.height + GAP
        return [*parts, shapes.node(self.key, box, f"{self.phase} op", [self.name], self.name.text)]

    def _edge(self, array: CellArray, at_array: Point, at_box: Point, is_left: bool) -> str:
        """The edge between an array and the box; the corner is near the box, so that edges of one side share it."""
        corner = at_box[0] + (-BESIDE / 2 if is_left else BESIDE / 2)
        points = [at_array, (corner, at_array[1]), (corner, at_box[1]), at_box]
        if is_left != (self.phase == "forward"):
            points.reverse()
        return shapes.edge(edge_key(array, self.key), points, f"edge {self.phase}")


def edge_key(array: CellArray, key: str) -> str:
    """The key of the edge between an array and a box."""
    return f"{array.key}>{key}"


def _height(side: Sequence[CellArray]) -> float:
    return sum(array.height for array in side) + GAP * (len(side) - 1)
