"""How a loop over an array of many axes is cut into blocks: axes that lie side by side are merged, leading axes are cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import Any

from .numpy_calls import Shape

Index = tuple[Any, ...]


@dataclass(frozen=True)
class MergedAxes:
    """The axes of a loop in runs that every operand treats alike: it has them all, or is repeated along them all.

    >>> merged = merge((4, 5, 6), [(4, 5, 6), (6,)], [])
    >>> merged.shape, merged.of((6,))
    ((20, 6), (1, 6))
    """

    loop: Shape
    runs: tuple[tuple[int, ...], ...]

    @property
    def shape(self) -> Shape:
        """The loop's shape, merged."""
        return self.of(self.loop)

    def of(self, shape: Shape) -> Shape:
        """The shape of an operand, merged; 1 where it is repeated."""
        sizes = aligned(shape, len(self.loop))
        return tuple(math.prod(sizes[axis] for axis in run) for run in self.runs)

    def axes(self, axes: frozenset[int]) -> frozenset[int]:
        """The merged axes that some of the loop's axes are in."""
        return frozenset(place for place, run in enumerate(self.runs) if axes.issuperset(run))


def aligned(shape: Shape, ndim: int) -> Shape:
    """A shape with 1 for the axes that broadcasting adds."""
    return (1,) * (ndim - len(shape)) + shape


def merge(loop: Shape, operands: Sequence[Shape], reduced: Sequence[frozenset[int]]) -> MergedAxes:
    """The runs of a loop's axes that all operands, and all reductions, treat alike. Axes of size 1 belong to no run."""
    patterns = [aligned(shape, len(loop)) for shape in dict.fromkeys(operands)]
    axes = [axis for axis, size in enumerate(loop) if size != 1]

    def treated(axis: int) -> tuple[bool, ...]:
        return (*(pattern[axis] == 1 for pattern in patterns), *(axis in one for one in reduced))

    return MergedAxes(loop, tuple(tuple(run) for _, run in groupby(axes, treated)))


@dataclass(frozen=True)
class Blocks:
    """The blocks of a merged loop: one index for each axis before ``axis``, and a slice of that one."""

    shape: Shape
    axis: int
    rows: int
    starts: tuple[tuple[int, ...], ...]

    @property
    def block_shape(self) -> Shape:
        """The shape of a block; the last along the axis may be shorter."""
        return (min(self.rows, self.shape[self.axis]), *self.shape[self.axis + 1 :]) if self.shape else ()

    def indices(self, shape: Shape, reduced: bool = False) -> list[Index]:
        """For each block the index of an operand's part. What a reduction leaves (``reduced``) loses the axes of size 1."""
        if not self.shape:
            return [()]
        last = [0 if reduced and size == 1 else slice(None) for size in shape[self.axis + 1 :]]
        return [self._index(start, shape, reduced, last) for start in self.starts]

    def _index(self, start: tuple[int, ...], shape: Shape, reduced: bool, last: list[Any]) -> Index:
        *outer, first = start
        fixed = [0 if size == 1 else place for size, place in zip(shape, outer, strict=False)]
        part: Any = slice(first, min(first + self.rows, self.shape[self.axis]))
        if shape[self.axis] == 1 and self.shape[self.axis] != 1:
            part = 0 if reduced else slice(None)
        return (*fixed, part, *last)

    def sizes(self) -> list[int]:
        """How many rows each block has."""
        end = self.shape[self.axis] if self.shape else 1
        return [min(self.rows, end - start[-1]) for start in self.starts] if self.shape else [1]


def cut(shape: Shape, numbers: int) -> Blocks:
    """Blocks of at most so many numbers, unless one row of the last axis's neighbour is shorter than that.

    >>> cut((20, 6), 24).starts
    ((0,), (4,), (8,), (12,), (16,))
    >>> cut((2, 60), 24).starts
    ((0, 0), (0, 24), (0, 48), (1, 0), (1, 24), (1, 48))
    """
    if not shape:
        return Blocks(shape, 0, 1, ((),))
    axis = next(place for place in range(len(shape)) if math.prod(shape[place + 1 :]) <= max(1, numbers))
    rows = max(1, numbers // max(1, math.prod(shape[axis + 1 :])))
    starts = product(*map(range, shape[:axis]), range(0, shape[axis], rows))
    return Blocks(shape, axis, rows, tuple(starts))
