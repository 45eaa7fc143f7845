"""Derivatives by finite differences, and how far they can be trusted: what gradient checks compare with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Curve = Callable[[float], np.ndarray]  # numbers along a line through the point that is checked, which lies at 0

# Below this step a result that does not change may be rounded to float32 inside; a difference of 0 then says nothing.
_MAY_BE_BELOW_RESOLUTION = 1e-5
_AGREE = 0.05  # neighbouring differences that agree so well have settled


@dataclass(frozen=True, slots=True)
class Slope:
    """The derivative of a curve at 0 as differences see it."""

    value: float
    uncertainty: (
        float  # how far ``value`` may be off, seen from neighbouring steps and from rounding; inf where they disagree
    )
    steepest: float  # the largest difference quotient over steps up to 1e-3: what is large for this curve
    left: float
    right: float
    has_kink: bool  # the slopes to the left and to the right have settled, at different numbers


def central(curve: Curve, step: float) -> np.ndarray:
    """(curve(h) − curve(−h)) / 2h: the derivative up to h² · f‴ / 6, and rounding / h.

    >>> float(np.round(central(lambda t: np.exp(t), 1e-5), 9))
    1.0
    """
    return np.asarray((curve(step) - curve(-step)) / (2 * step))


def slope(curve: Callable[[float], float], scale: float = 1.0, rounding: float = 0.0, smallest: float = 1e-9) -> Slope:
    """The derivative of a curve of single numbers, from differences over a ladder of steps, two to a decade.

    A large step is wrong by the curve's bending, a small one by rounding; between them neighbours agree. The three
    neighbours that agree best give the value, and how well they agree gives its uncertainty.
    Source of the idea: Ridders, Accurate computation of F'(x) and F'(x)F''(x), 1982.

    Args:
        curve: the function along a line, the point at 0.
        scale: what a large step is; the ladder goes from a tenth of it down to ``smallest`` times it.
        rounding: the rounding error of one value of the curve.
        smallest: the last step, relative to ``scale``.

    >>> found = slope(math.exp, rounding=1e-16)
    >>> abs(found.value - 1.0) < 1e-9, found.has_kink
    (True, False)
    >>> kink = slope(abs)
    >>> kink.has_kink, kink.left, kink.right
    (True, -1.0, 1.0)
    """
    steps = scale * 10.0 ** -np.arange(1.0, max(4.0, -math.log10(smallest)), 0.5)
    ahead = np.array([curve(h) for h in steps])
    behind = np.array([curve(-h) for h in steps])
    with np.errstate(invalid="ignore"):
        right, left = (ahead - curve(0.0)) / steps, (curve(0.0) - behind) / steps
        both = (ahead - behind) / (2 * steps)
    kept = np.isfinite(both) & ~_below_resolution(ahead, behind, steps / scale)
    value, uncertainty = _settled(both[kept], rounding / steps[kept])
    settled_left, settled_right, doubt = _one_sided(left[kept], right[kept], rounding / steps[kept])
    gap = abs(settled_right - settled_left)
    has_kink = gap > max(4 * doubt, 1e-3 * abs(settled_left), 1e-3 * abs(settled_right))
    steepest = np.max(np.abs(both[kept & (steps <= 1e-3 * scale)]), initial=0.0)
    return Slope(value, uncertainty, float(steepest), settled_left, settled_right, bool(has_kink))


def _below_resolution(ahead: np.ndarray, behind: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Small steps that change nothing, though other steps do."""
    same = ahead == behind
    below: np.ndarray = same & (steps < _MAY_BE_BELOW_RESOLUTION) & (not same.all())
    return below


def _settled(quotients: np.ndarray, rounding: np.ndarray) -> tuple[float, float]:
    """The middle one of the three neighbours that agree best, and how far it may be off."""
    if len(quotients) < 3:
        return math.nan, math.inf
    windows = np.lib.stride_tricks.sliding_window_view(quotients, 3)
    errors = np.ptp(windows, axis=1) + rounding[1:-1]
    best = int(np.argmin(errors))
    return float(quotients[best + 1]), float(errors[best])


def _one_sided(left: np.ndarray, right: np.ndarray, rounding: np.ndarray) -> tuple[float, float, float]:
    """The slopes on either side at the smallest steps where both have settled over three steps, and how far they differ there.

    NaN where they settle nowhere.
    """
    for place in range(len(left) - 3, -1, -1):
        window = slice(place, place + 3)
        size = max(np.abs(left[window]).max(), np.abs(right[window]).max())
        spread = max(np.ptp(left[window]), np.ptp(right[window]))
        if spread <= _AGREE * size:
            return float(left[place + 1]), float(right[place + 1]), float(spread + rounding[window].max())
    return math.nan, math.nan, math.inf
