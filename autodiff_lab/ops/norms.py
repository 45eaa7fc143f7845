"""Lengths of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..operand_rules import Shape, function_dtype, sum_dtype
from ..operators import op
from .choices import abs, not_equal, where
from .composed import composed
from .elementwise import astype
from .ordering import max, min
from .powers import power
from .reduce import Axis, in_single, one_for_zero, reduced_shape, reduction_samples, spread, sum
from .sampling import Call, normal


@op
def euclidean_norm(xp: Any, x: Any, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The length of the vectors along ``axis``: √Σ x². Where it is 0, so is its derivative.

    >>> float(ops.euclidean_norm([3.0, 4.0]))
    5.0
    """
    return in_single(lambda v: xp.sqrt(xp.sum(xp.square(v), axis=axis, keepdims=keepdims)), x)


@euclidean_norm.shape_rule
def euclidean_norm_shape(x: Shape, *, axis: Axis, keepdims: bool) -> Shape:
    return reduced_shape(x, axis, keepdims)


@euclidean_norm.dtype_rule
def euclidean_norm_dtype(x: Any) -> Any:
    return function_dtype(sum_dtype(x))


@euclidean_norm.vjp
def euclidean_norm_vjp(g: Any, x: Any, out: Any, *, axis: Axis, keepdims: bool) -> Any:
    return spread(g, x.shape, axis, keepdims) * _direction(x, out, axis, keepdims)


@euclidean_norm.jvp
def euclidean_norm_jvp(dx: Any, x: Any, out: Any, *, axis: Axis, keepdims: bool) -> Any:
    return sum(dx * _direction(x, out, axis, keepdims), axis=axis, keepdims=keepdims)


def _direction(x: Any, out: Any, axis: Axis, keepdims: bool) -> Any:
    """x divided by its length; 0 where that is 0."""
    return x / spread(one_for_zero(out), x.shape, axis, keepdims)


euclidean_norm.samples(reduction_samples)


@composed()
def norm(x: Any, ord: float | None = 2, axis: Axis = None, keepdims: bool = False) -> Any:
    """The norm of the vectors along ``axis``: (Σ |x|ᵖ)^(1/p) with p = ord, which is 2 by default.

    Further: ord = ∞ is the largest |x|, −∞ the smallest, 0 the number of entries that are not 0 (which carries no gradient).
    Over several axes, or with axis=None, all their numbers are one vector. Where the norm is 0, so is its derivative; equal
    largest entries share it.

    >>> float(ops.norm([3.0, -4.0])), float(ops.norm([3.0, -4.0], ord=1))
    (5.0, 7.0)
    """
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    if ord is None or ord == 2:
        return euclidean_norm(x, **options)
    if isinstance(ord, str):
        raise TypeError(f"ord must be a number, got {ord!r}; norms of matrices are not supported")
    if ord == math.inf:
        return max(abs(x), **options)
    if ord == -math.inf:
        return min(abs(x), **options)
    if ord == 0:
        return astype(sum(not_equal(x, 0), **options), dtype=function_dtype(x.dtype))
    if ord == 1:
        return sum(abs(x), **options)
    total = sum(power(abs(x), float(ord)), **options)
    return where(total == 0, 0.0, power(one_for_zero(total), 1.0 / ord))


@norm.samples
def norm_samples() -> list[Call]:
    x = normal(3, 4)
    orders = [None, 1, 2, 3, 2.5, -1, np.inf, -np.inf]
    calls: list[Call] = [((x,), {"ord": order, "axis": 1}) for order in orders]
    return [*calls, ((x,), {}), ((x.T,), {"axis": (0, 1), "ord": 3, "keepdims": True}), ((normal(3, 0),), {"axis": 1}),
            ((x.astype(np.float32),), {"ord": 3})]  # fmt: skip
