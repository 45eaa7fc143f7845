"""Errors against steps: one record that shows as a table in text and as a plot with two logarithmic axes in a notebook."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from autodiff_widgets.plots import Axis, Plot

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
        width, height = LEFT + self._across.length + 90, TOP + self._up.length + 50
        names = " and ".join(self.errors)
        described = f"Relative error against step, both logarithmic, for {names}. The numbers: {self!r}"
        lines = (
            f"<g fill='none' stroke='currentColor'>{self._grid()}{''.join(map(self._curve, self.errors, DASHES))}</g>"
        )
        texts = f"<g fill='currentColor' font-size='13'>{self._texts()}</g>"
        size = f"width='{width:.0f}' viewBox='0 0 {width:.0f} {height:.0f}' style='max-width:100%'"
        return f"<svg role='img' aria-label='{escape(described, quote=True)}' {size}>{lines}{texts}</svg>"

    @property
    def _across(self) -> Axis:
        decades = math.log10(self.steps[0] / self.steps[-1])
        return Axis(self.steps[-1], self.steps[0], DECADE_ACROSS * decades, is_log=True)

    @property
    def _up(self) -> Axis:
        """From the smallest error, rounded to a line of the grid, to 1; an error of 0 stands at its start."""
        smallest = min(error for errors in self.errors.values() for error in errors if error > 0)
        decades = GRID * math.ceil(-math.log10(smallest) / GRID)
        return Axis(10.0**-decades, 1.0, DECADE_DOWN * decades, is_log=True)

    @property
    def _plot(self) -> Plot:
        return Plot(self._across, self._up, (LEFT, TOP + self._up.length))

    def _grid(self) -> str:
        end = LEFT + self._across.length
        marks = (self._plot.point(self.steps[0], error)[1] for error in self._lines())
        return "".join(f"<path d='M{LEFT} {y:.0f}H{end:.0f}' stroke-opacity='.25'/>" for y in marks)

    def _lines(self) -> list[float]:
        decades = round(-math.log10(self._up.low))
        return [10.0**-decade for decade in range(0, decades + 1, GRID)]

    def _curve(self, name: str, dash: str) -> str:
        places = map(self._plot.point, self.steps, self.errors[name])
        points = " ".join(f"{x:.0f},{y:.0f}" for x, y in places)
        return f"<polyline points='{points}' stroke-width='2.5' stroke-dasharray='{dash}'/>"

    def _texts(self) -> str:
        at, last = self._plot.point, self.steps[0]
        below = at(last, self._up.low)[1] + 18
        texts = [(10.0, at(last, error)[1] + 4, f"{error:.0e}") for error in self._lines()]
        texts += [(at(h, 1.0)[0] - 16, below, f"{h:.0e}") for h in self.steps[::2]]
        texts += [(at(last, e[0])[0] + 6, at(last, e[0])[1] + 4, name) for name, e in self.errors.items()]
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
