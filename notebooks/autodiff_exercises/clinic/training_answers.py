"""Repairs of the patients between right gradients, right and wrong: what their checks are tested on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import ops

Array = np.ndarray
Function = Callable[..., Any]
Contributions = list[tuple[str, Array]]

# ------------------------------------------------------------------------------------------------------------ descend


def descend_forgetting(gradient: Function, w: float, rate: float, steps: int) -> float:
    """The sum is there, and is forgotten in each step."""
    for _ in range(steps):
        total = 0.0
        total += gradient(w)
        w -= rate * total
    return w


def descend_along_the_first(gradient: Function, w: float, rate: float, steps: int) -> float:
    """One gradient for all steps."""
    first = gradient(w)
    for _ in range(steps):
        w = w - rate * first
    return w


def descend_along_the_mean(gradient: Function, w: float, rate: float, steps: int) -> float:
    """The mean of all gradients so far."""
    total = 0.0
    for step in range(steps):
        total = total + gradient(w)
        w = w - rate * total / (step + 1)
    return w


def descend_half_forgetting(gradient: Function, w: float, rate: float, steps: int) -> float:
    """Half of what was there stays: momentum."""
    total = 0.0
    for _ in range(steps):
        total = total / 2 + gradient(w)
        w = w - rate * total
    return w


def descend_upwards(gradient: Function, w: float, rate: float, steps: int) -> float:
    """Uphill."""
    for _ in range(steps):
        w = w + rate * gradient(w)
    return w


def descend_one_too_many(gradient: Function, w: float, rate: float, steps: int) -> float:
    """From 0 to steps."""
    for _ in range(steps + 1):
        w = w - rate * gradient(w)
    return w


# --------------------------------------------------------------------------------------------------------------- sums


def sums_in_buffers_of_its_own(contributions: Contributions) -> dict[str, Array]:
    """In place, in arrays that nobody else has."""
    totals: dict[str, Array] = {}
    for name, array in contributions:
        if name in totals:
            totals[name] += array
        else:
            totals[name] = array.copy()
    return totals


def sums_one_copy_of_each(contributions: Contributions) -> dict[str, Array]:
    """Copies each array once, so that two names still share a copy."""
    copies = {id(array): array.copy() for _name, array in contributions}
    totals: dict[str, Array] = {}
    for name, array in contributions:
        if name in totals:
            totals[name] += array
        else:
            totals[name] = copies[id(array)]
    return totals


def sums_last_wins(contributions: Contributions) -> dict[str, Array]:
    """Nothing is changed any more, and nothing is added."""
    return dict(contributions)


def sums_in_float64(contributions: Contributions) -> dict[str, Array]:
    """Begins with zeros, of NumPy's own dtype."""
    totals: dict[str, Array] = {}
    for name, array in contributions:
        totals[name] = totals.get(name, np.zeros(array.shape)) + array
    return totals


def sums_of_everything(contributions: Contributions) -> dict[str, Any]:
    """One number for each name."""
    totals: dict[str, Any] = {}
    for name, array in contributions:
        totals[name] = totals.get(name, 0.0) + array.sum()
    return totals


def sums_mean(contributions: Contributions) -> dict[str, Array]:
    """The mean for each name."""
    names = [name for name, _array in contributions]
    totals: dict[str, Array] = {}
    for name, array in contributions:
        totals[name] = totals.get(name, np.zeros_like(array)) + (array / names.count(name)).astype(array.dtype)
    return totals


# --------------------------------------------------------------------------------------------------- penalty_gradient


def penalty_by_hessian(f: Function, x: Array) -> Array:
    """Twice the Hessian times the gradient."""
    slope = ad.grad(f)(x)
    return np.asarray(2.0 * ad.jvp(ad.grad(f), (x,), (slope,))[1])


def penalty_of_the_slope(f: Function, x: Array) -> Array:
    """Differentiates the square, and not the slope in it."""
    return np.asarray(2.0 * ad.grad(f)(x))


def penalty_value(f: Function, x: Array) -> Array:
    """The penalty itself."""
    return np.asarray(np.sum(ad.grad(f)(x) ** 2))


def penalty_all_outside(f: Function, x: Array) -> Array:
    """Both factors are plain numbers."""
    slope = ad.grad(f)(x)
    return np.asarray(ad.grad(lambda z: ops.sum(slope * slope) + 0.0 * ops.sum(z))(x))


def penalty_doubled_twice(f: Function, x: Array) -> Array:
    """Makes up for the half, twice."""
    slope = ad.grad(f)(x)
    return np.asarray(4.0 * ad.grad(lambda z: ops.sum(slope * ad.grad(f)(z)))(x))


def penalty_of_the_sum(f: Function, x: Array) -> Array:
    """The square of the sum in place of the sum of squares."""
    return np.asarray(ad.grad(lambda z: ops.sum(ad.grad(f)(z)) ** 2.0)(x))
