"""Arrays drawn number by number: each cell with its number and a shade; of a large array a window, with words for the rest."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from . import shapes
from .formulas import cell_name
from .routes import Box
from .values import number_text

WHOLE, WINDOW = 10, 6  # an axis of at most so many numbers is drawn whole; of a longer one the first few
CELLS = 128  # drawn of one array, at most, as far as more than one slice of it is concerned
SLICES = 4
NARROW = 3  # columns of slices that stand side by side
WIDTH, HEIGHT = 64.0, 25.0  # px of a cell
ROOM = 7  # characters of a number in it
_POWER = re.compile(r"e\+?(-?)0*")  # of ten, without what says nothing
SIDE, TOP, HEAD, PAD = 28.0, 17.0, 40.0, 10.0  # px: row labels, column labels, the array's name, the frame around

Index = tuple[int, ...]


@dataclass(frozen=True)
class CellArray:
    """An array in a picture: its key, what the keys of its cells begin with, the name that its cells bear, and its label."""

    key: str
    stem: str
    name: str  # "x"; cells are "x[0, 1]"
    label: str
    values: np.ndarray[Any, Any]
    is_known_later: bool = False  # its numbers come into sight with a step

    def cell_key(self, index: Sequence[int]) -> str:
        """The key of a cell's element."""
        return f"{self.stem}{cell_name('', index) or '[]'}"

    @property
    def drawn(self) -> Iterator[Index]:
        """The indices of the cells that are drawn."""
        for before in _slices(self.values.shape):
            for row in range(_shown(self.values.shape[-2])) if self.values.ndim > 1 else (None,):
                for column in range(_shown(self.values.shape[-1])) if self.values.ndim else (None,):
                    yield (*before, *(place for place in (row, column) if place is not None))

    @property
    def size_text(self) -> str:
        """Shape and dtype, and which part is drawn where that is not all.

        >>> CellArray("x", "x", "x", "x", np.zeros((64, 3))).size_text
        '(64, 3) float64: rows 0–5'
        """
        shape = self.values.shape
        what = f"{shape} {self.values.dtype}" if shape else f"one number, {self.values.dtype}"
        if 0 in shape:
            return f"{what}: no numbers"
        count, slices = math.prod(shape[:-2]), len(list(_slices(shape)))
        cut = [f"{slices} of {count} slices"] if slices < count else []
        cut += [f"{word} 0–{WINDOW - 1}" for axis, word in ((-2, "rows"), (-1, "columns")) if self._is_cut(axis)]
        return f"{what}: {', '.join(cut)}" if cut else what

    @property
    def width(self) -> float:
        """The px that the picture of it needs."""
        widest = max(shapes.text_width(self.label, shapes.LABEL), shapes.text_width(self.size_text, shapes.DETAIL))
        return max(self._across * self._slice_width, widest) + 2 * PAD

    @property
    def height(self) -> float:
        """The px from its top to its bottom."""
        return HEAD + math.ceil(len(list(_slices(self.values.shape))) / self._across) * self._slice_height + PAD

    @property
    def _across(self) -> int:
        """How many slices stand side by side."""
        return 2 if self._columns <= NARROW and len(list(_slices(self.values.shape))) > 1 else 1

    @property
    def _slice_width(self) -> float:
        return SIDE + WIDTH * (self._columns + self._is_cut(-1) * 0.5)

    @property
    def _columns(self) -> int:
        return _shown(self.values.shape[-1]) if self.values.ndim else 1

    @property
    def _rows(self) -> int:
        return _shown(self.values.shape[-2]) if self.values.ndim > 1 else 1

    @property
    def _slice_height(self) -> float:
        name = TOP if self.values.ndim > 2 else 0.0
        return name + TOP + HEIGHT * (self._rows + self._is_cut(-2) * 0.7) + 4

    def _is_cut(self, axis: int) -> bool:
        shape = self.values.shape
        return len(shape) >= -axis and _shown(shape[axis]) < shape[axis]

    def svg(self, x: float, y: float) -> str:
        """The array with its left upper corner at (x, y)."""
        parts = [
            shapes.rectangle(Box(0, x, y, self.width, self.height), 8),
            shapes.heading(self.label, x + PAD, y + 19),
            shapes.heading(self.size_text, x + PAD, y + 35, "detail"),
        ]
        largest = _largest(self.values)
        for place, before in enumerate(_slices(self.values.shape)):
            down, aside = divmod(place, self._across)
            corner = x + PAD + aside * self._slice_width, y + HEAD + down * self._slice_height
            parts.append(self._slice(before, *corner, largest))
        css = "array later" if self.is_known_later else "array"
        return shapes.group(self.key, css, f"{self.label}: {self.size_text}", "".join(parts))

    def _slice(self, before: Index, x: float, y: float, largest: float) -> str:
        """One matrix, row or number, with the numbers of its rows and columns."""
        parts: list[str] = []
        if self.values.ndim > 2:
            parts.append(shapes.heading(f"{self.name}[{', '.join(map(str, before))}, :, :]", x, y + 13, "detail"))
            y += TOP
        left, top = x + SIDE, y + TOP
        for column in range(self._columns) if self.values.ndim else ():
            parts.append(_aside(str(column), left + WIDTH * (column + 0.5), y + 13))
        for row in range(self._rows) if self.values.ndim > 1 else ():
            parts.append(_aside(str(row), x + SIDE - 12, top + HEIGHT * (row + 0.5) + 4))
        if self._is_cut(-1):
            parts.append(_aside("…", left + WIDTH * (self._columns + 0.25), top + HEIGHT / 2 + 4))
        if self._is_cut(-2):
            parts.append(_aside("…", left + WIDTH / 2, top + HEIGHT * self._rows + 14))
        for row in range(self._rows):
            for column in range(self._columns):
                index = (*before, *(row, column)[2 - min(self.values.ndim, 2) :])
                parts.append(
                    self._cell(index, Box(0, left + WIDTH * column, top + HEIGHT * row, WIDTH, HEIGHT), largest)
                )
        return "".join(parts)

    def _cell(self, index: Index, box: Box, largest: float) -> str:
        value = self.values[index]
        drawn = shapes.rectangle(box, 2) + _tint(value, box, largest)
        drawn += shapes.heading(cell_text(value), box.right - 5, box.middle + 4.5, "value", "end")
        return shapes.group(
            self.cell_key(index), "cell", f"{cell_name(self.name, index)} = {number_text(value)}", drawn
        )


def cell_text(value: Any) -> str:
    """A number in the room of a cell.

    >>> [cell_text(value) for value in (np.float64(-0.404603), np.float64(6.2e-17), np.int64(12), np.bool_(True))]
    ['−0.405', '6.2e−17', '12', 'true']
    >>> [cell_text(value) for value in (np.float64(-9.87e-250), np.float64(1.2e250), np.int64(2**62))]
    ['−1e−249', '1.2e250', '4.6e18']
    """
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    tries = (value, 3, 6), (value, 2, ROOM), (float(value), 2, ROOM), (float(value), 1, ROOM)
    texts = [_POWER.sub(r"e\1", number_text(number, digits)) for number, digits, _ in tries]
    text = next((text for text, (_, _, room) in zip(texts, tries, strict=True) if len(text) <= room), texts[-1])
    return text.replace("-", "−")


def _slices(shape: Sequence[int]) -> Iterator[Index]:
    """The leading indices of the matrices that are drawn."""
    if 0 in shape:
        return iter(())
    size = max(math.prod(map(_shown, shape[-2:])), 1)
    return islice(np.ndindex(*shape[:-2]), max(1, min(SLICES, CELLS // size)))


def _shown(size: int) -> int:
    return size if size <= WHOLE else WINDOW


def _largest(values: Any) -> float:
    """The largest absolute value among the finite numbers; 0 where there is none."""
    finite = np.abs(values.astype(float))[np.isfinite(values.astype(float))]
    return float(finite.max()) if finite.size else 0.0


def _aside(text: str, x: float, y: float) -> str:
    return shapes.heading(text, x, y, "aside", "middle")


def _tint(value: Any, box: Box, largest: float) -> str:
    """The second reading of a number: a bar at the cell's left, as high as the number is large, hatched below 0."""
    size = abs(float(value)) / largest if largest and math.isfinite(value) else 0.0
    if not size:
        return ""
    high = max(size * (box.height - 4), 2.0)
    bar = Box(0, box.x + 2, box.y + box.height - 2 - high, 6, high)
    if value > 0:
        return shapes.group("", "above", "", shapes.rectangle(bar, 0)).replace("<title></title>", "")
    step = 4.0
    strokes = [
        shapes.line([(bar.x, low), (bar.right, max(low - 6, bar.y))], "below")
        for low in np.arange(bar.y + high, bar.y, -step)
    ]
    return shapes.group("", "below", "", shapes.rectangle(bar, 0) + "".join(strokes)).replace("<title></title>", "")
