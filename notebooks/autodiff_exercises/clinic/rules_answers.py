"""Repairs of the patients with wrong gradient rules, right and wrong: what their checks are tested on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import repairs as repaired

Array = np.ndarray
Two = tuple[Array, Array]
Graph = dict[str, list[str]]
backward_order: Callable[[Graph], list[str]] = repaired.backward_order

# ------------------------------------------------------------------------------------------------------------ div_vjp


def div_by_the_result(g: Array, x: Array, y: Array) -> list[Array]:
    """From the quotient, as frameworks do it."""
    return [g / y, -g * (x / y) / y]


def div_both_negative(g: Array, x: Array, y: Array) -> Two:
    """The sign on both."""
    return -g / y, -g * x / y**2


def div_sign_moved(g: Array, x: Array, y: Array) -> Two:
    """The sign on the wrong one."""
    return -g / y, g * x / y**2


def div_not_squared(g: Array, x: Array, y: Array) -> Two:
    """The sign is there, a division is lost."""
    return g / y, -g * x / y


def div_forgets_upstream(g: Array, x: Array, y: Array) -> Two:
    """The derivatives of the school book."""
    return np.asarray(1 / y), np.asarray(-x / y**2)


def div_in_place(g: Array, x: Array, y: Array) -> Two:
    """Saves an array, and spoils the caller's."""
    for_x = g / y
    g *= -x
    g /= y**2
    return for_x, g


# ------------------------------------------------------------------------------------------------------------ mse_vjp


def mse_by_a_mean_of_ones(g: Array, x: Array, target: Array) -> Array:
    """The rule of the mean, then that of the square."""
    each = np.full_like(x, 1 / x.size) * g
    return np.asarray(2 * (x - target) * each)


def mse_by_rows(g: Array, x: Array, target: Array) -> Array:
    """Divides by the rows."""
    return np.asarray(g * 2 * (x - target) / len(x))


def mse_without_two(g: Array, x: Array, target: Array) -> Array:
    """The division is there, the factor of the square is gone."""
    return np.asarray(g * (x - target) / x.size)


def mse_turned_round(g: Array, x: Array, target: Array) -> Array:
    """The gradient for the target."""
    return np.asarray(g * 2 * (target - x) / x.size)


def mse_forgets_upstream(g: Array, x: Array, target: Array) -> Array:
    """As if the loss were always the end."""
    return np.asarray(2 * (x - target) / x.size)


def mse_in_float64(g: Array, x: Array, target: Array) -> Array:
    """Goes through an array of float64."""
    return np.asarray(np.full(x.shape, 2 * float(g) / x.size) * (x - target))


# -------------------------------------------------------------------------------------------------------- sigmoid_vjp


def sigmoid_expanded(g: Array, out: Array) -> Array:
    """The same, multiplied out."""
    return np.asarray(g * out - g * out * out)


def sigmoid_like_tanh(g: Array, out: Array) -> Array:
    """The rule of another function of this shape."""
    return np.asarray(g * (1 - out * out))


def sigmoid_adds_upstream(g: Array, out: Array) -> Array:
    """Adds what should be multiplied."""
    return np.asarray(g + out * (1 - out))


def sigmoid_with_another_sign(g: Array, out: Array) -> Array:
    """The difference the other way round."""
    return np.asarray(g * out * (out - 1))


def sigmoid_of_the_result(g: Array, out: Array) -> Array:
    """Takes the result for the input."""
    again = 1 / (1 + np.exp(-out))
    return np.asarray(g * again * (1 - again))


def sigmoid_one_upstream_for_all(g: Array, out: Array) -> Array:
    """The mean of what arrives, for all entries."""
    return np.asarray(g.mean(dtype=g.dtype) * out * (1 - out))


# ----------------------------------------------------------------------------------------------------- scale_rows_vjp


def scale_rows_by_einsum(g: Array, x: Array, s: Array) -> Two:
    """The same in another notation."""
    return np.einsum("ij,i->ij", g, s), np.einsum("ij,ij->i", g, x)


def scale_rows_kept(g: Array, x: Array, s: Array) -> Two:
    """The summed axis stays."""
    return g * s[:, None], (g * x).sum(axis=1, keepdims=True)


def scale_rows_not_summed(g: Array, x: Array, s: Array) -> Two:
    """One gradient for each copy."""
    return g * s[:, None], g * x


def scale_rows_mean(g: Array, x: Array, s: Array) -> Two:
    """The mean of the copies."""
    return g * s[:, None], (g * x).mean(axis=1)


def scale_rows_without_x(g: Array, x: Array, s: Array) -> Two:
    """As if s were added."""
    return g * s[:, None], g.sum(axis=1)


def scale_rows_all_summed(g: Array, x: Array, s: Array) -> Two:
    """The right shape, by force."""
    return g * s[:, None], np.full_like(s, (g * x).sum())
