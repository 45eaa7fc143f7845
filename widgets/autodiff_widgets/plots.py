"""Plots with two axes: where a number stands, which numbers are written beside an axis, curves that grow step by step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from . import shapes
from .routes import Point
from .values import number_text

SPREAD = 30.0  # positive numbers that differ by a larger factor get a logarithmic axis
DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (8, 5),
    (2, 4),
    (12, 4, 2, 4),
)  # of the first curve, the second, …; as scene.css


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from ``low`` to ``high`` over ``length`` px; ``is_log`` where equal factors are equally far apart.

    >>> axis = Axis(1.0, 1000.0, 300.0, is_log=True)
    >>> axis.place(10.0), axis.ticks()
    (100.0, [1.0, 10.0, 100.0, 1000.0])
    """

    low: float
    high: float
    length: float
    is_log: bool = False

    def place(self, number: float) -> float:
        """How far from the start of the axis a number stands, in px; one that is outside stands at the end."""
        low, high, at = (self._scaled(value) for value in (self.low, self.high, min(max(number, self.low), self.high)))
        return self.length * (at - low) / (high - low)

    def ticks(self, count: int = 6) -> list[float]:
        """At most about so many round numbers on the axis."""
        return self._decades(count) if self.is_log else self._steps(count)

    def _scaled(self, number: float) -> float:
        return math.log10(number) if self.is_log else number

    def _steps(self, count: int) -> list[float]:
        rough = (self.high - self.low) / count
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * times for times in (1, 2, 5, 10) if unit * times >= rough * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [place * step for place in range(first, last + 1)]

    def _decades(self, count: int) -> list[float]:
        low, high = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        if high - low < 1:
            marks = (times * 10.0**decade for decade in range(low - 1, max(low, high) + 1) for times in (1, 2, 5))
            return [mark for mark in marks if self._holds(mark)]
        return [10.0**decade for decade in range(low, high + 1, max(1, math.ceil((high - low) / count)))]

    def _holds(self, number: float) -> bool:
        return self.low * (1 - 1e-9) <= number <= self.high * (1 + 1e-9)


def axis_of(numbers: Iterable[float], length: float) -> Axis:
    """An axis that holds all finite numbers: logarithmic where they are positive and far apart, else linear from 0 or below.

    >>> axis_of([0.5, 2.0], 100.0)
    Axis(low=0.0, high=2.0, length=100.0, is_log=False)
    >>> axis_of([0.5, 2000.0, math.inf], 100.0).is_log
    True
    """
    finite = [number for number in numbers if math.isfinite(number)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if low > 0 and high > SPREAD * low:
        return Axis(low, high, length, is_log=True)
    low = min(low, 0.0)
    return Axis(low, high if high > low else low + 1.0, length)


@dataclass(frozen=True, slots=True)
class Plot:
    """Two axes on a pane, with the corner where both begin."""

    across: Axis
    up: Axis
    corner: Point

    def point(self, x: float, y: float) -> Point:
        """Where a pair of numbers stands on the pane."""
        return self.corner[0] + self.across.place(x), self.corner[1] - self.up.place(y)

    def frame(self, below: str, above: str) -> list[str]:
        """Axes, lines and numbers; ``below`` names the axis across, ``above`` the axis that goes up."""
        (left, bottom), right = self.corner, self.corner[0] + self.across.length
        parts = []
        for tick in self.up.ticks():
            y = bottom - self.up.place(tick)
            parts.append(shapes.line([(left, y), (right, y)], "grid"))
            parts.append(shapes.heading(_tick_text(tick), left - 8, y + 4, "detail", "end"))
        for tick in self.across.ticks():
            x = left + self.across.place(tick)
            parts.append(shapes.line([(x, bottom), (x, bottom + 5)], "grid"))
            parts.append(shapes.heading(_tick_text(tick), x, bottom + 20, "detail", "middle"))
        parts.append(shapes.line([(left, bottom - self.up.length), (left, bottom), (right, bottom)], "axis"))
        parts.append(shapes.heading(below, right, bottom + 38, "detail", "end"))
        parts.append(shapes.heading(above, left, bottom - self.up.length - 12, "detail"))
        return parts


def pieces(points: Sequence[Point | None], number: int) -> list[str]:
    """The ``number``-th curve as one piece for each point, whose dashes go on from piece to piece; it breaks at None."""
    css, period = f"edge {run_css(number)}", sum(DASHES[number]) or 1.0
    found, so_far = [""], 0.0
    for before, here in pairwise(points):
        if before is None or here is None:
            found.append("")
            continue
        found.append(shapes.line([before, here], css, offset=so_far % period))
        so_far += math.dist(before, here)
    return found[: len(points)]


def _tick_text(tick: float) -> str:
    return f"{tick:,.0f}" if 1000 <= abs(tick) < 1e7 else number_text(tick, 3)


def run_css(number: int) -> str:
    """The class of the ``number``-th curve, counted from 0."""
    return f"run{number + 1}"
