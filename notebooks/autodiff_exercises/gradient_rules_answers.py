"""Answers to the exercises of lesson 40 on mul and exp, right and wrong: what the checks are tested on."""

from __future__ import annotations

from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import ops

Array = np.ndarray

# ---------------------------------------------------------------------------------------------------------------- mul


def mul_vjp(g: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The gradients of x · y for x and for y, where g is the gradient that arrives. All three have one shape."""
    return g * y, g * x


def mul_by_einsum(g: Array, x: Array, y: Array) -> list[Array]:
    """The same, as a list and in another notation."""
    return [np.einsum("...,...->...", g, y), np.einsum("...,...->...", x, g)]


def mul_forgets_upstream(g: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """The local derivatives alone."""
    return y + 0 * g, x + 0 * g


def mul_swapped(g: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Each input multiplied by itself."""
    return g * x, g * y


def mul_like_add(g: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """The rule of addition."""
    return g.copy(), g.copy()


def mul_as_one_sum(g: Array, x: Array, y: Array) -> Array:
    """The two gradients added to one."""
    return np.asarray(g * y + g * x)


def mul_in_place(g: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Saves an array, and spoils the caller's."""
    for_x = g * y
    g *= x
    return for_x, g


def mul_in_float64(g: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Goes through Python's numbers."""
    return g.astype(float) * y, g.astype(float) * x


def mul_from_the_result(g: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Takes one factor out of the product again."""
    with np.errstate(all="ignore"):
        return g * (x * y) / x, g * (x * y) / y


def mul_by_the_lab(g: Array, x: Array, y: Array) -> Any:
    """The rule that the lab has."""
    return ad.vjp(ops.mul, x, y).pull(g)


# ---------------------------------------------------------------------------------------------------------------- exp


def exp_vjp(g: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The gradient of exp(x), entry by entry, for x, where g is the gradient that arrives, shaped like x."""
    return np.asarray(g * np.exp(x))


def exp_from_the_result(g: Array, x: Array) -> Array:
    """As frameworks do it: the forward pass has the result already."""
    out = np.exp(x)
    return np.asarray(np.multiply(out, g))


def exp_forgets_upstream(g: Array, x: Array) -> Array:
    """The derivative that school teaches."""
    return np.asarray(np.exp(x))


def exp_by_power_rule(g: Array, x: Array) -> Array:
    """Takes e for the variable and x for the exponent's number."""
    return np.asarray(g * x * np.exp(x - 1))


def exp_inside(g: Array, x: Array) -> Array:
    """The upstream gradient goes into the function."""
    return np.asarray(np.exp(g * x))


def exp_of_upstream(g: Array, x: Array) -> Array:
    """The derivative at the wrong place."""
    return np.asarray(g * np.exp(g))


def exp_like_log(g: Array, x: Array) -> Array:
    """The rule of the inverse function."""
    return np.asarray(g / x)


def exp_in_float64(g: Array, x: Array) -> Array:
    """Writes into an array that was made without a dtype."""
    out = np.zeros(x.shape)
    out[...] = g * np.exp(x)
    return out


def exp_in_place(g: Array, x: Array) -> Array:
    """Takes the caller's g for a place to work in."""
    g *= np.exp(x)
    return g
