"""Ops that compare the numbers along an axis: the largest, the smallest, where they are, and sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..operand_rules import Shape
from ..operators import op
from .choices import equal, where
from .composed import composed
from .elementwise import astype
from .indexing import take_along_axis
from .reduce import Axis, not_empty, reduced_axes, reduced_shape, reduction_samples, spread, sum
from .sampling import Call, normal
from .structure import reshape

# ---------------------------------------------------------------------------------------------- the largest, the smallest


@op
def max(xp: Any, x: Any, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The largest number along ``axis``. Where k numbers are equally large, each gets 1/k of the gradient.

    >>> ad.grad(ops.max)(np.array([7.0, 3.0, 7.0])).tolist()
    [0.5, 0.0, 0.5]
    """
    return xp.max(x, axis=axis, keepdims=keepdims)


@op
def min(xp: Any, x: Any, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The smallest number along ``axis``. Where k numbers are equally small, each gets 1/k of the gradient."""
    return xp.min(x, axis=axis, keepdims=keepdims)


@max.shape_rule
@min.shape_rule
def extreme_shape(x: Shape, *, axis: Axis, keepdims: bool) -> Shape:
    return not_empty(x, axis, reduced_shape(x, axis, keepdims))


@max.vjp
@min.vjp
def extreme_vjp(g: Any, x: Any, out: Any, *, axis: Axis, keepdims: bool) -> Any:
    ties, count = _ties(x, out, axis, keepdims)
    return where(ties, spread(g / count, x.shape, axis, keepdims), 0.0)


@max.jvp
@min.jvp
def extreme_jvp(dx: Any, x: Any, out: Any, *, axis: Axis, keepdims: bool) -> Any:
    ties, count = _ties(x, out, axis, keepdims)
    return sum(where(ties, dx, 0.0), axis=axis, keepdims=keepdims) / count


def _ties(x: Any, out: Any, axis: Axis, keepdims: bool) -> tuple[Any, Any]:
    """Which numbers are as extreme as the result, and how many they are."""
    ties = equal(x, spread(out, x.shape, axis, keepdims))
    return ties, astype(sum(ties, axis=axis, keepdims=keepdims), dtype=out.dtype)


def extreme_samples() -> list[Call]:
    ties = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    return [*reduction_samples(), ((ties.astype(np.int64),), {"axis": 1}), ((normal(0, 3),), {"axis": 1})]


max.samples(extreme_samples)
min.samples(extreme_samples)

# --------------------------------------------------------------------------------- where they are: no gradient flows


@op(differentiable=False)
def argmax(xp: Any, x: Any, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """The index of the largest number along ``axis``, the first where several are equal; None counts through all numbers."""
    place_shape(xp.shape(x), axis=axis, keepdims=keepdims)
    return xp.argmax(x, axis=axis, keepdims=keepdims)


@op(differentiable=False)
def argmin(xp: Any, x: Any, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """The index of the smallest number along ``axis``, the first where several are equal; None counts through all numbers."""
    place_shape(xp.shape(x), axis=axis, keepdims=keepdims)
    return xp.argmin(x, axis=axis, keepdims=keepdims)


@argmax.shape_rule
@argmin.shape_rule
def place_shape(x: Shape, *, axis: int | None, keepdims: bool) -> Shape:
    return not_empty(x, axis, reduced_shape(x, axis, keepdims))


@op(differentiable=False)
def argsort(xp: Any, x: Any, *, axis: int = -1) -> Any:
    """The indices that sort x along ``axis``; equal numbers keep their order."""
    argsort_shape(xp.shape(x), axis=axis)
    return xp.argsort(x, axis=axis, kind="stable")


@argsort.shape_rule
def argsort_shape(x: Shape, *, axis: int) -> Shape:
    reduced_axes(axis, len(x))
    return x


@argmax.dtype_rule
@argmin.dtype_rule
@argsort.dtype_rule
def index_dtype(x: Any) -> Any:
    return np.intp


@argmax.samples
@argmin.samples
def place_samples() -> list[Call]:
    x = normal(2, 3, 4)
    return [((x,), {}), ((x,), {"axis": 1}), ((x.T,), {"axis": -1, "keepdims": True}), ((normal(),), {}),
            ((x.astype(np.float32),), {"keepdims": True})]  # fmt: skip


@argsort.samples
def argsort_samples() -> list[Call]:
    x = normal(2, 3, 4)
    return [
        ((x,), {}),
        ((x,), {"axis": 0}),
        ((np.array([1, 0, 1, 0]),), {}),
        ((normal(0, 3),), {}),
        ((x.T,), {"axis": 1}),
    ]


# ------------------------------------------------------------------------------------------------------------- sorting


@composed()
def sort(x: Any, axis: int | None = -1) -> Any:
    """The numbers in ascending order along ``axis``; None sorts all numbers into one row.

    Each place of the result hands its gradient to the number that it holds; equal numbers keep their order.

    >>> ops.sort([3.0, 1.0, 2.0])
    array([1., 2., 3.])
    """
    if axis is None:
        return sort(reshape(x, shape=-1), -1)
    return take_along_axis(x, argsort(x, axis=axis), axis=axis)


@sort.samples
def sort_samples() -> list[Call]:
    x = normal(3, 4)
    return [
        ((x,), {}),
        ((x,), {"axis": 0}),
        ((x.T,), {"axis": None}),
        ((x.astype(np.float32),), {}),
        ((normal(0, 3),), {}),
    ]
