"""Products along axes, running sums and products, and differences of neighbours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..operand_rules import Shape, sum_dtype
from ..operators import op
from .composed import composed
from .rearrange import flip, pad
from .reduce import Axis, reduced_axes, reduced_shape, reduction_samples, spread, sum
from .sampling import Call, normal
from .structure import getitem, ones_like, reshape, transpose


@op
def prod(xp: Any, x: Any, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The product over ``axis``. The derivative for a number is the product of the others, also where some are 0.

    >>> ad.grad(ops.prod)(np.array([2.0, 0.0, 5.0])).tolist()
    [0.0, 10.0, 0.0]
    """
    reduced_axes(axis, xp.ndim(x))  # NumPy takes axis 0 of a number, which has none
    return xp.prod(x, axis=axis, keepdims=keepdims)


@prod.shape_rule
def prod_shape(x: Shape, *, axis: Axis, keepdims: bool) -> Shape:
    return reduced_shape(x, axis, keepdims)


prod.dtype_rule(sum_dtype)


@prod.vjp
def prod_vjp(g: Any, x: Any, *, axis: Axis, keepdims: bool) -> Any:
    return spread(g, x.shape, axis, keepdims) * _product_of_others(x, axis)


@prod.jvp
def prod_jvp(dx: Any, x: Any, *, axis: Axis, keepdims: bool) -> Any:
    return sum(dx * _product_of_others(x, axis), axis=axis, keepdims=keepdims)


@prod.samples
def prod_samples() -> list[Call]:
    zeros = np.array([[2.0, 0.0, 5.0, -1.0], [0.0, 3.0, 0.0, 1.0], [1.5, 2.0, -0.5, 0.7]])
    return [
        *reduction_samples(),
        ((zeros,), {"axis": 1}),
        ((zeros[:, :3],), {"axis": 0}),
        ((normal(0, 3),), {"axis": 0}),
    ]


def _product_of_others(x: Any, axis: Axis) -> Any:
    """For each number the product of all others along the axes, without a division, so that zeros do no harm."""
    axes = reduced_axes(axis, x.ndim)
    order = (*(place for place in range(x.ndim) if place not in axes), *axes)
    rows = transpose(x, axes=order)
    count = math.prod(x.shape[place] for place in axes)
    others = _others_in_row(reshape(rows, shape=(*rows.shape[: x.ndim - len(axes)], count)))
    return transpose(reshape(others, shape=rows.shape), axes=tuple(int(place) for place in np.argsort(order)))


def _others_in_row(row: Any) -> Any:
    """The product of the others along the last axis: what lies outside of a pair, times the other one of the pair.

    Pairs of pairs do the rest, so n numbers take about 3n multiplications in log₂ n rounds.
    """
    count = row.shape[-1]
    if count <= 1:
        return ones_like(row)
    if count % 2:
        widths = ((0, 0),) * (row.ndim - 1) + ((0, 1),)
        return getitem(_others_in_row(pad(row, widths, constant_values=1)), index=(..., slice(count)))
    pairs = reshape(row, shape=(*row.shape[:-1], count // 2, 2))
    outside = _others_in_row(pairs[..., 0] * pairs[..., 1])
    others = reshape(outside, shape=(*outside.shape, 1)) * flip(pairs, -1)
    return reshape(others, shape=row.shape)


# ----------------------------------------------------------------------------------------------- running sums and products


@op
def cumsum(xp: Any, x: Any, *, axis: int | None = None) -> Any:
    """The running sum along ``axis``; None runs through all numbers. Each number gets the gradients from its place onwards.

    >>> ops.cumsum([1.0, 2.0, 3.0])
    array([1., 3., 6.])
    """
    reduced_axes(axis, xp.ndim(x))
    return xp.cumsum(x, axis=axis)


@cumsum.shape_rule
def cumsum_shape(x: Shape, *, axis: int | None) -> Shape:
    reduced_axes(axis, len(x))
    return (math.prod(x),) if axis is None else x


cumsum.dtype_rule(sum_dtype)


@cumsum.vjp
def cumsum_vjp(g: Any, x_shape: Shape, *, axis: int | None) -> Any:
    along = 0 if axis is None else axis
    return reshape(flip(cumsum(flip(g, along), axis=along), along), shape=x_shape)


@cumsum.jvp
def cumsum_jvp(dx: Any, *, axis: int | None) -> Any:
    return cumsum(dx, axis=axis)


@cumsum.samples
def running_samples() -> list[Call]:
    x = normal(3, 5)
    return [((x,), {"axis": 1}), ((x.T,), {"axis": 0}), ((x,), {}), ((normal(),), {}), ((normal(0, 3),), {"axis": 0}),
            ((x.astype(np.float32),), {"axis": -1})]  # fmt: skip


@composed()
def cumprod(x: Any, axis: int | None = None) -> Any:
    """The running product along ``axis``; None runs through all numbers. Zeros do no harm to its derivatives.

    In round k each product takes in the one 2ᵏ places before it, so n numbers take log₂ n rounds.

    >>> ops.cumprod([1.0, 2.0, 3.0])
    array([1., 2., 6.])
    """
    if axis is None:
        return cumprod(reshape(x, shape=-1), 0)
    (along,) = reduced_axes(axis, x.ndim)
    step = 1
    while step < x.shape[along]:
        widths = tuple((step, 0) if place == along else (0, 0) for place in range(x.ndim))
        kept = (slice(None),) * along + (slice(x.shape[along]),)
        x = x * getitem(pad(x, widths, constant_values=1), index=kept)
        step *= 2
    return x


cumprod.samples(running_samples)


@composed()
def diff(x: Any, n: int = 1, axis: int = -1) -> Any:
    """The differences between neighbours along ``axis``, taken ``n`` times.

    >>> ops.diff([1.0, 2.0, 4.0])
    array([1., 2.])
    """
    (along,) = reduced_axes(axis, x.ndim)
    before = (slice(None),) * along
    for _ in range(n):
        x = getitem(x, index=(*before, slice(1, None))) - getitem(x, index=(*before, slice(None, -1)))
    return x


@diff.samples
def diff_samples() -> list[Call]:
    return [((normal(3, 4),), {}), ((normal(3, 4).T,), {"axis": 0}), ((normal(5).astype(np.float32),), {"n": 2})]
