"""Ops that combine the numbers along axes: sum, mean, var, std, logsumexp."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..operand_rules import Shape, as_floating, boolean_dtype, floating_dtype, function_dtype, sum_dtype
from ..operators import op
from .choices import where
from .exponentials import exp
from .sampling import Call, normal
from .structure import broadcast_to, reshape

Axis = int | tuple[int, ...] | None


def reduced_axes(axis: Axis, ndim: int) -> tuple[int, ...]:
    """The axes that ``axis`` means, counted from 0 and in order; None means all."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    for one in axes:
        if not isinstance(one, (int, np.integer)) or isinstance(one, bool):
            raise TypeError(f"axis must be a whole number, a tuple of them, or None for all axes; got {axis!r}")
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


def not_empty(x: Shape, axis: Axis, result: Shape) -> Shape:
    """The shape of a result that needs the largest or smallest number, unless there is nothing to choose from."""
    if 0 in (x[place] for place in reduced_axes(axis, len(x))) and 0 not in result:
        raise ValueError(f"there is no largest or smallest among no numbers: axis {axis} of the shape {x} is empty")
    return result


def after_batch_axis(axis: Axis, ndim: int) -> tuple[int, ...]:
    """The axes that ``axis`` means for each member of a stack of ``ndim`` axes, counted in the stack."""
    return tuple(place + 1 for place in reduced_axes(axis, ndim - 1))


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


def in_single(reduction: Any, x: Any, **options: Any) -> Any:
    """A reduction of squares, in single precision where x is in half precision: 256² is too large for that."""
    if getattr(x, "dtype", None) != np.float16:
        return reduction(x, **options)
    return reduction(x.astype(np.float32), **options).astype(np.float16)


def spread_samples() -> list[Call]:
    """Samples for var and std: reductions of more than one number, with ddof too."""
    calls = [call for call in reduction_samples() if call[0][0].ndim]
    return [*calls, ((normal(4, 3),), {"axis": 0, "ddof": 1}), ((normal(3, 4).T,), {"axis": -1, "ddof": 2}),
            ((normal(3, 0),), {"axis": 0})]  # fmt: skip


# --------------------------------------------------------------------------------------------------------- sum and mean


@op
def sum(xp: Any, x: Any, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The sum over ``axis``: an int, a tuple of ints, or None for all axes."""
    return x.sum(axis=axis, keepdims=keepdims)


@sum.shape_rule
def sum_shape(x: Shape, *, axis: Axis, keepdims: bool) -> Shape:
    return reduced_shape(x, axis, keepdims)


sum.dtype_rule(sum_dtype)


@sum.batch_rule
def sum_batch(x: Any, *, axis: Axis, keepdims: bool) -> Any:
    return sum(x, axis=after_batch_axis(axis, x.ndim), keepdims=keepdims)


@sum.vjp
def sum_vjp(g: Any, x_shape: Shape, *, axis: Axis, keepdims: bool) -> Any:
    return spread(g, x_shape, axis, keepdims)


@sum.jvp
def sum_jvp(dx: Any, *, axis: Axis, keepdims: bool) -> Any:
    return sum(dx, axis=axis, keepdims=keepdims)


@sum.samples
def sum_samples() -> list[Call]:
    return [*reduction_samples(), ((normal(0, 3),), {"axis": 0}), ((normal(0, 3),), {})]


_EXACT = 1 << 24  # every whole number up to here is one of single precision, so dividing by it rounds once


@op
def mean(xp: Any, x: Any, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The mean over ``axis``: an int, a tuple of ints, or None for all axes. Half precision is added up in float32."""
    if type(x) is np.ndarray and x.dtype.kind == "f" and x.dtype.itemsize > 2 and 0 < x.size <= _EXACT:
        total = x.sum(axis=axis, keepdims=keepdims)
        return total / (x.size // total.size)  # bit by bit as NumPy's mean, which takes 1.0 µs more, in Python
    return x.mean(axis=axis, keepdims=keepdims)


@mean.shape_rule
def mean_shape(x: Shape, *, axis: Axis, keepdims: bool) -> Shape:
    return reduced_shape(x, axis, keepdims)


mean.dtype_rule(floating_dtype)


@mean.batch_rule
def mean_batch(x: Any, *, axis: Axis, keepdims: bool) -> Any:
    return mean(x, axis=after_batch_axis(axis, x.ndim), keepdims=keepdims)


@mean.vjp
def mean_vjp(g: Any, x_shape: Shape, *, axis: Axis, keepdims: bool) -> Any:
    count = math.prod(x_shape) // max(math.prod(g.shape), 1)  # numbers in each mean
    return spread(g / max(count, 1), x_shape, axis, keepdims)


@mean.jvp
def mean_jvp(dx: Any, *, axis: Axis, keepdims: bool) -> Any:
    return mean(dx, axis=axis, keepdims=keepdims)


mean.samples(reduction_samples)


# --------------------------------------------------------------------------------------------------------------- spread


@op
def var(xp: Any, x: Any, *, axis: Axis = None, ddof: int = 0, keepdims: bool = False) -> Any:
    """The variance over ``axis``: the mean square distance from the mean, Σ (x − mean)² / (n − ddof).

    >>> float(ops.var([1.0, 3.0])), float(ops.var([1.0, 3.0], ddof=1))
    (1.0, 2.0)
    """
    return in_single(xp.var, x, axis=axis, ddof=ddof, keepdims=keepdims)


@var.shape_rule
def var_shape(x: Shape, *, axis: Axis, keepdims: bool) -> Shape:
    return reduced_shape(x, axis, keepdims)


var.dtype_rule(floating_dtype)


@var.vjp
def var_vjp(g: Any, x: Any, *, axis: Axis, ddof: int, keepdims: bool) -> Any:
    return _from_mean(x, axis) * (2.0 * spread(g, x.shape, axis, keepdims)) / _divisor(x.shape, axis, ddof)


@var.jvp
def var_jvp(dx: Any, x: Any, *, axis: Axis, ddof: int, keepdims: bool) -> Any:
    return sum(_from_mean(x, axis) * (2.0 * dx), axis=axis, keepdims=keepdims) / _divisor(x.shape, axis, ddof)


@op
def std(xp: Any, x: Any, *, axis: Axis = None, ddof: int = 0, keepdims: bool = False) -> Any:
    """The standard deviation over ``axis``: √var. Where all numbers are equal it is 0, and so is its derivative.

    >>> float(ops.std([1.0, 3.0]))
    1.0
    """
    return in_single(xp.std, x, axis=axis, ddof=ddof, keepdims=keepdims)


@std.shape_rule
def std_shape(x: Shape, *, axis: Axis, keepdims: bool) -> Shape:
    return reduced_shape(x, axis, keepdims)


std.dtype_rule(floating_dtype)


@std.vjp
def std_vjp(g: Any, x: Any, out: Any, *, axis: Axis, ddof: int, keepdims: bool) -> Any:
    return _from_mean(x, axis) * spread(g / one_for_zero(out), x.shape, axis, keepdims) / _divisor(x.shape, axis, ddof)


@std.jvp
def std_jvp(dx: Any, x: Any, out: Any, *, axis: Axis, ddof: int, keepdims: bool) -> Any:
    along = sum(_from_mean(x, axis) * dx, axis=axis, keepdims=keepdims)
    return along / one_for_zero(out) / _divisor(x.shape, axis, ddof)


def _from_mean(x: Any, axis: Axis) -> Any:
    return x - mean(x, axis=axis, keepdims=True)


def _divisor(shape: Shape, axis: Axis, ddof: int) -> float:
    """n − ddof; NaN where that is not above 0, because NumPy's variance is NaN or infinite there."""
    count = math.prod(shape[place] for place in reduced_axes(axis, len(shape))) - ddof
    return count if count > 0 else math.nan


def one_for_zero(out: Any) -> Any:
    """out, but 1 where it is 0: what a 0 is divided by there, so that it stays 0."""
    return where(out == 0, 1.0, out)


var.samples(spread_samples)
std.samples(spread_samples)


# ------------------------------------------------------------------------------------------------------------ logsumexp


@op
def logsumexp(xp: Any, x: Any, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """log Σ eˣ over ``axis``, without overflow: the largest number is taken out of the sum first.

    Where every number is −∞ the result is −∞, and the derivative is 0.

    >>> float(ops.logsumexp([1000.0, 1000.0]))
    1000.6931471805599
    """
    x = as_floating(xp, x)
    top = xp.max(x, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, 0)
    result = xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True)) + top
    return result if keepdims else result.reshape(reduced_shape(xp.shape(x), axis, False))


@logsumexp.shape_rule
def logsumexp_shape(x: Shape, *, axis: Axis, keepdims: bool) -> Shape:
    return not_empty(x, axis, reduced_shape(x, axis, keepdims))


logsumexp.dtype_rule(function_dtype)


@logsumexp.vjp
def logsumexp_vjp(g: Any, x: Any, out: Any, *, axis: Axis, keepdims: bool) -> Any:
    return spread(g, x.shape, axis, keepdims) * _shares(x, out, axis, keepdims)


@logsumexp.jvp
def logsumexp_jvp(dx: Any, x: Any, out: Any, *, axis: Axis, keepdims: bool) -> Any:
    return sum(dx * _shares(x, out, axis, keepdims), axis=axis, keepdims=keepdims)


def _shares(x: Any, out: Any, axis: Axis, keepdims: bool) -> Any:
    """The softmax of x, from the result: eˣ⁻ᵒᵘᵗ."""
    return exp(x - spread(where(out == -math.inf, 0.0, out), x.shape, axis, keepdims))


logsumexp.samples(reduction_samples)


# ------------------------------------------------------------------------------------------- truth values: no gradient flows


@op(differentiable=False)
def all(xp: Any, x: Any, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Whether every number along ``axis`` is true, that is, not 0. No gradient flows."""
    return xp.all(x, axis=axis, keepdims=keepdims)


@op(differentiable=False)
def any(xp: Any, x: Any, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Whether some number along ``axis`` is true, that is, not 0. No gradient flows."""
    return xp.any(x, axis=axis, keepdims=keepdims)


@all.shape_rule
@any.shape_rule
def truth_shape(x: Shape, *, axis: Axis, keepdims: bool) -> Shape:
    return reduced_shape(x, axis, keepdims)


for truth in (all, any):
    truth.dtype_rule(boolean_dtype)
    truth.samples(reduction_samples)
