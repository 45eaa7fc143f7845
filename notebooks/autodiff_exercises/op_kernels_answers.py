"""Answers to the exercises of lesson 60 on kernel and gradient, right and wrong: what the checks are tested on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autodiff_lab import Tensor, ops

Array = np.ndarray

# ------------------------------------------------------------------------------------------------------------- kernel


def soft_relu(xp, x):
    """log(1 + exp(x)), entry by entry, with the functions of the array library xp."""
    return xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.abs(x)))


def soft_relu_by_logaddexp(xp: Any, x: Any) -> Any:
    """By the function that is made for it."""
    return xp.logaddexp(x, 0 * x)


def soft_relu_by_cases(xp: Any, x: Any) -> Any:
    """For large x the 1 does not count."""
    return xp.where(x > 30, x, xp.log1p(xp.exp(xp.minimum(x, 30))))


def soft_relu_as_written(xp: Any, x: Any) -> Any:
    """The formula as it stands."""
    return xp.log(1 + xp.exp(x))


def soft_relu_of_numpy(xp: Any, x: Any) -> Any:
    """Uses np in place of xp."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def soft_relu_in_place(xp: Any, x: Any) -> Any:
    """Saves an array, and spoils the caller's."""
    if x.size:
        x[...] = soft_relu(xp, x)
    return x


def soft_relu_in_double(xp: Any, x: Any) -> Any:
    """Makes float64 of everything."""
    return soft_relu(xp, x.astype("float64"))


def soft_relu_by_loop(xp: Any, x: Any) -> Any:
    """Number by number, along one axis."""
    return xp.array([max(v, 0) + math.log1p(math.exp(-abs(v))) for v in x.tolist()], dtype=x.dtype)


def hard_relu(xp: Any, x: Any) -> Any:
    """What it is an approximation of."""
    return xp.maximum(x, 0)


def soft_relu_clipped(xp: Any, x: Any) -> Any:
    """Cuts off what is large."""
    return xp.log1p(xp.exp(xp.clip(x, -50, 50)))


def soft_relu_as_list(xp: Any, x: Any) -> Any:
    """The right numbers, taken out of the array."""
    return soft_relu(xp, x).tolist()


def soft_relu_straight_from_five(xp: Any, x: Any) -> Any:
    """Nearly a straight line from 5 on."""
    return xp.where(x > 5, x, xp.log1p(xp.exp(xp.minimum(x, 5))))


def soft_relu_by_log(xp: Any, x: Any) -> Any:
    """Takes out the large part, and loses the small one."""
    return xp.maximum(x, 0) + xp.log(1 + xp.exp(-xp.abs(x)))


def soft_relu_of_the_lab(xp: Any, x: Any) -> Any:
    """The lab's own op."""
    return ops.softplus(x)


# ----------------------------------------------------------------------------------------------------------- gradient


def soft_cap_vjp(g, out, cap):
    """The gradient of cap · tanh(x / cap) for x, from the gradient g that arrives and the result out."""
    share = out / cap
    return g * (1.0 - share * share)


def soft_cap_as_the_design_has_it(g: Any, out: Any, cap: float) -> Any:
    """Other brackets."""
    return g - g * out * out / (cap * cap)


def cap_forgotten(g: Any, out: Any, cap: float) -> Any:
    """The rule of tanh."""
    return g * (1.0 - out * out)


def outer_factor_only(g: Any, out: Any, cap: float) -> Any:
    """Multiplies by cap, and forgets that x was divided by it."""
    return g * cap * (1.0 - (out / cap) * (out / cap))


def inner_factor_only(g: Any, out: Any, cap: float) -> Any:
    """Divides by cap, and forgets that the result was multiplied by it."""
    return g * (1.0 - (out / cap) * (out / cap)) / cap


def upstream_forgotten(g: Any, out: Any, cap: float) -> Any:
    """The local derivative."""
    return 1.0 - (out / cap) * (out / cap)


def result_taken_for_input(g: Any, out: Any, cap: float) -> Any:
    """As if out were x."""
    squashed = ops.tanh(out / cap)
    return g * (1.0 - squashed * squashed)


def sign_of_soft_cap_lost(g: Any, out: Any, cap: float) -> Any:
    """The difference the other way round."""
    return g * ((out / cap) * (out / cap) - 1.0)


def soft_cap_on_arrays(g: Any, out: Any, cap: float) -> Any:
    """Takes the numbers out first."""
    g, out = np.asarray(getattr(g, "data", g)), np.asarray(getattr(out, "data", out))
    return np.asarray(g * (1.0 - (out / cap) ** 2), dtype=g.dtype)


def soft_cap_of_a_constant(g: Any, out: Any, cap: float) -> Any:
    """Nothing flows back through the result."""
    return soft_cap_vjp(g, out.detach() if isinstance(out, Tensor) else out, cap)


def soft_cap_in_place(g: Any, out: Any, cap: float) -> Any:
    """Works in the caller's g."""
    if isinstance(g, np.ndarray):
        g *= 1.0 - (out / cap) ** 2
        return g
    return soft_cap_vjp(g, out, cap)


def soft_cap_in_double(g: Any, out: Any, cap: float) -> Any:
    """Widens on the way."""
    return (
        soft_cap_vjp(g, out, cap) * np.ones(1)[0]
        if not isinstance(out, np.ndarray)
        else soft_cap_vjp(g, out.astype(float), cap)
    )
