"""Errors against steps: one record that shows as a table in text and as a plot with two logarithmic axes in a notebook."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

LEFT, TOP, DECADE_ACROSS, DECADE_DOWN = 70, 20, 32, 17  # pixels; a decade is a factor of ten
DASHES = ("7 4", "none", "2 3")
GRID = 3  # decades between two lines


@dataclass(frozen=True, slots=True)
class ErrorPlot:
    """The relative error of some methods for each of some steps, the largest step first."""

    steps: tuple[float, ...]
    errors: Mapping[str, tuple[float, ...]]

    def __repr__(self) -> str:
        head = "  ".join(["step ", *(f"{name:>9}" for name in self.errors)])
        rows = [
            "  ".join([f"{h:.0e}", *(f"{self.errors[n][i]:9.0e}" for n in self.errors)])
            for i, h in enumerate(self.steps)
        ]
        return "\n".join([head, *rows])

    def _repr_html_(self) -> str:
        width, height = self._across(self.steps[0]) + 90, self._down(10.0 ** -self._decades()) + 50
        names = " and ".join(self.errors)
        described = f"Relative error against step, both logarithmic, for {names}. The numbers: {self!r}"
        lines = (
            f"<g fill='none' stroke='currentColor'>{self._grid()}{''.join(map(self._curve, self.errors, DASHES))}</g>"
        )
        texts = f"<g fill='currentColor' font-size='13'>{self._texts()}</g>"
        size = f"width='{width:.0f}' viewBox='0 0 {width:.0f} {height:.0f}' style='max-width:100%'"
        return f"<svg role='img' aria-label='{escape(described, quote=True)}' {size}>{lines}{texts}</svg>"

    def _decades(self) -> int:
        """How far down the axis of errors goes: the smallest error, rounded to a line of the grid."""
        smallest = min(error for errors in self.errors.values() for error in errors if error > 0)
        return GRID * math.ceil(-math.log10(smallest) / GRID)

    def _across(self, step: float) -> float:
        return LEFT + DECADE_ACROSS * math.log10(step / self.steps[-1])

    def _down(self, error: float) -> float:
        return TOP - DECADE_DOWN * max(math.log10(error), -self._decades()) if error > 0 else self._down(1e-300)

    def _grid(self) -> str:
        end = self._across(self.steps[0])
        marks = (self._down(10.0**-decade) for decade in range(0, self._decades() + 1, GRID))
        return "".join(f"<path d='M{LEFT} {y:.0f}H{end:.0f}' stroke-opacity='.25'/>" for y in marks)

    def _curve(self, name: str, dash: str) -> str:
        places = zip(map(self._across, self.steps), map(self._down, self.errors[name]), strict=True)
        points = " ".join(f"{x:.0f},{y:.0f}" for x, y in places)
        return f"<polyline points='{points}' stroke-width='2.5' stroke-dasharray='{dash}'/>"

    def _texts(self) -> str:
        below = self._down(10.0 ** -self._decades()) + 18
        texts = [(10.0, self._down(10.0**-d) + 4, f"1e-{d:02}") for d in range(0, self._decades() + 1, GRID)]
        texts += [(self._across(h) - 16, below, f"{h:.0e}") for h in self.steps[::2]]
        texts += [(self._across(self.steps[0]) + 6, self._down(e[0]) + 4, name) for name, e in self.errors.items()]
        texts.append((LEFT, below + 20, "step (the error is on the left axis)"))
        return "".join(f"<text x='{x:.0f}' y='{y:.0f}'>{escape(text)}</text>" for x, y, text in texts)


def error_plot(steps: Sequence[float], errors: Mapping[str, Sequence[float]]) -> ErrorPlot:
    """A table and a plot of errors against steps.

    Args:
        steps: positive numbers, the largest first.
        errors: for each method, by name, one error for each step.

    Raises:
        ValueError: a method has more or fewer errors than there are steps.

    >>> error_plot([0.1, 0.01], {"central": [2e-3, 2e-5]})
    step     central
    1e-01      2e-03
    1e-02      2e-05
    """
    for name, found in errors.items():
        if len(found) != len(steps):
            raise ValueError(
                f"error_plot: {name} has {len(found)} errors for {len(steps)} steps; give one for each step"
            )
    kept = {name: tuple(map(float, found)) for name, found in errors.items()}
    return ErrorPlot(tuple(map(float, steps)), kept)
