"""Ops that combine the numbers along axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..operators import Shape, floating_dtype, op
from .sampling import Call, normal
from .structure import broadcast_to, reshape

Axis = int | tuple[int, ...] | None


def reduced_axes(axis: Axis, ndim: int) -> tuple[int, ...]:
    """The axes that ``axis`` means, counted from 0 and in order; None means all."""
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if isinstance(axis, (int, np.integer)) else tuple(axis)
    for one in axes:
        if not -ndim <= one < ndim:
            raise ValueError(f"axis {one} is out of range for an array of {ndim} axes")
    found = tuple(sorted(int(one) % ndim for one in axes))
    if len(set(found)) != len(found):
        raise ValueError(f"axis {axis!r} names an axis twice")
    return found


def reduced_shape(x: Shape, axis: Axis, keepdims: bool) -> Shape:
    """The shape after a reduction."""
    axes = reduced_axes(axis, len(x))
    if keepdims:
        return tuple(1 if place in axes else size for place, size in enumerate(x))
    return tuple(size for place, size in enumerate(x) if place not in axes)


def spread(g: Any, shape: Shape, axis: Axis, keepdims: bool) -> Any:
    """A reduction's cotangent, repeated along the reduced axes: what every number of the input gets."""
    if not keepdims and axis is not None:
        g = reshape(g, shape=reduced_shape(shape, axis, keepdims=True))
    return broadcast_to(g, shape=shape)


def reduction_samples() -> list[Call]:
    """Calls over no, one, several and negative axes, with and without keepdims, and of an empty and a 0-d array."""
    x = normal(2, 3, 4)
    attributes: list[dict[str, Any]] = [
        {}, {"axis": 1}, {"axis": (0, 2)}, {"axis": (-1, 0)}, {"axis": -1, "keepdims": True}, {"keepdims": True},
    ]  # fmt: skip
    return [((x,), a) for a in attributes] + [((normal(),), {}), ((x.astype(np.float32),), {"axis": 0})]


# ------------------------------------------------------------------------------------------------------------- the ops


@op
def sum(xp: Any, x: Any, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The sum over ``axis``: an int, a tuple of ints, or None for all axes."""
    return x.sum(axis=axis, keepdims=keepdims)


@sum.shape_rule
def sum_shape(x: Shape, *, axis: Axis, keepdims: bool) -> Shape:
    return reduced_shape(x, axis, keepdims)


@sum.dtype_rule
def sum_dtype(x: Any) -> Any:
    kind = np.dtype(x).kind if isinstance(x, np.dtype) else np.result_type(x).kind
    widest = {"b": np.int_, "i": np.int_, "u": np.uint}.get(kind)  # NumPy adds whole numbers in the platform's widest
    return np.result_type(x) if widest is None else np.result_type(x, widest)


@sum.vjp
def sum_vjp(g: Any, x_shape: Shape, *, axis: Axis, keepdims: bool) -> Any:
    return spread(g, x_shape, axis, keepdims)


@sum.jvp
def sum_jvp(dx: Any, *, axis: Axis, keepdims: bool) -> Any:
    return sum(dx, axis=axis, keepdims=keepdims)


@sum.samples
def sum_samples() -> list[Call]:
    return [*reduction_samples(), ((normal(0, 3),), {"axis": 0}), ((normal(0, 3),), {})]


@op
def mean(xp: Any, x: Any, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The mean over ``axis``: an int, a tuple of ints, or None for all axes. Half precision is added up in float32."""
    return x.mean(axis=axis, keepdims=keepdims)


@mean.shape_rule
def mean_shape(x: Shape, *, axis: Axis, keepdims: bool) -> Shape:
    return reduced_shape(x, axis, keepdims)


mean.dtype_rule(floating_dtype)


@mean.vjp
def mean_vjp(g: Any, x_shape: Shape, *, axis: Axis, keepdims: bool) -> Any:
    count = math.prod(x_shape[place] for place in reduced_axes(axis, len(x_shape)))
    return spread(g / max(count, 1), x_shape, axis, keepdims)


@mean.jvp
def mean_jvp(dx: Any, *, axis: Axis, keepdims: bool) -> Any:
    return mean(dx, axis=axis, keepdims=keepdims)


mean.samples(reduction_samples)
