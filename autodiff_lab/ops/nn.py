"""Ops of neural networks that have a gradient rule of their own for accuracy: softmax, cross-entropy, layer normalisation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..bindings import device_of
from ..operand_rules import Shape, as_floating, floating_dtype, function_dtype, keeps_floating, result_dtype
from ..operators import op
from .exponentials import exp
from .powers import sqrt
from .reduce import Axis, in_single, mean, not_empty, reduced_axes, reduced_shape, sum, var
from .sampling import Call, normal
from .structure import broadcast_to, reshape
from .transfer import to_device

# ------------------------------------------------------------------------------------------------------------- softmax


@op
def softmax(xp: Any, x: Any, *, axis: Axis = -1) -> Any:
    """eˣ divided by its sum over ``axis``: positive numbers that add up to 1, without overflow.

    >>> ops.softmax([1000.0, 1000.0])
    array([0.5, 0.5])
    """
    weight = xp.exp(_below_largest(xp, x, axis))
    return weight / weight.sum(axis=axis, keepdims=True)


@softmax.vjp
def softmax_vjp(g: Any, out: Any, *, axis: Axis) -> Any:
    return out * (g - sum(g * out, axis=axis, keepdims=True))


@softmax.jvp
def softmax_jvp(dx: Any, out: Any, *, axis: Axis) -> Any:
    return out * (dx - sum(dx * out, axis=axis, keepdims=True))


@op
def log_softmax(xp: Any, x: Any, *, axis: Axis = -1) -> Any:
    """The logarithm of the softmax: x − log Σ eˣ, finite also where the softmax itself is too small for a number.

    >>> ops.log_softmax([0.0, -1000.0])
    array([    0., -1000.])
    """
    shifted = _below_largest(xp, x, axis)
    return shifted - xp.log(xp.exp(shifted).sum(axis=axis, keepdims=True))


@log_softmax.vjp
def log_softmax_vjp(g: Any, out: Any, *, axis: Axis) -> Any:
    return g - exp(out) * sum(g, axis=axis, keepdims=True)


@log_softmax.jvp
def log_softmax_jvp(dx: Any, out: Any, *, axis: Axis) -> Any:
    return dx - sum(exp(out) * dx, axis=axis, keepdims=True)


def _below_largest(xp: Any, x: Any, axis: Axis) -> Any:
    """x − its largest number over ``axis``, so that no exp overflows."""
    x = as_floating(xp, x)
    if not x.size or not x.ndim:  # of these NumPy refuses some and takes others; every other mistake it refuses itself
        softmax_shape(x.shape, axis=axis)
    return x - xp.max(x, axis=axis, keepdims=True)


@softmax.shape_rule
@log_softmax.shape_rule
def softmax_shape(x: Shape, *, axis: Axis) -> Shape:
    not_empty(x, axis, reduced_shape(x, axis, keepdims=True))
    return x


@softmax.samples
@log_softmax.samples
def softmax_samples() -> list[Call]:
    x = normal(2, 3, 4)
    return [((x,), {}), ((x,), {"axis": 1}), ((x,), {"axis": (0, 2)}), ((x.T,), {"axis": -2}), ((normal(5),), {}),
            ((normal(0, 3),), {}), ((x.astype(np.float32),), {"axis": 0}), ((np.array([[1, 2]]),), {})]  # fmt: skip


softmax.dtype_rule(function_dtype)
log_softmax.dtype_rule(function_dtype)

# -------------------------------------------------------------------------------------------------------- cross-entropy


@op(differentiable=False)
def one_hot(xp: Any, classes: Any, *, count: int, dtype: Any = "float64") -> Any:
    """For each class number a row of ``count`` zeros with a 1 at that place. No gradient flows.

    >>> ops.one_hot([2, 0], 3)
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    return xp.equal(_checked_classes(xp.asarray(classes), count)[..., None], xp.arange(count)).astype(dtype)


@one_hot.shape_rule
def one_hot_shape(classes: Shape, *, count: int) -> Shape:
    return (*classes, count)


@one_hot.dtype_rule
def one_hot_dtype(classes: Any, *, dtype: Any) -> Any:
    _check_whole(classes)
    return dtype


@one_hot.samples
def one_hot_samples() -> list[Call]:
    return [((np.array([2, 0, 1]),), {"count": 3}), ((np.array([[1], [0]]),), {"count": 4, "dtype": np.float32})]


@op(constant_inputs=("classes",))
def cross_entropy(xp: Any, logits: Any, classes: Any) -> Any:
    """The mean over all rows of −log softmax(logits)[class]: how surprised the network is by the right classes.

    The gradient of a row is softmax(logits) − one-hot(class), divided by the number of rows.

    Shapes: logits (…, classes), classes (…): whole numbers from 0; the result is one number, in natural logarithms.

    >>> round(float(ops.cross_entropy([[0.0, 0.0], [0.0, 0.0]], [0, 1])), 6)  # two equal chances: log 2
    0.693147
    """
    logits, classes = as_floating(xp, logits), xp.asarray(classes)
    cross_entropy_shape(logits.shape, classes.shape)  # else a row would serve several classes, by broadcasting
    picks = _checked_classes(classes, logits.shape[-1])
    shifted = logits - xp.max(logits, axis=-1, keepdims=True)
    picked = xp.take_along_axis(shifted, picks[..., None], axis=-1)[..., 0]
    return (xp.log(xp.exp(shifted).sum(axis=-1)) - picked).mean()


def _checked_classes(classes: Any, count: int) -> Any:
    if classes.dtype.kind not in "iu":
        _check_whole(classes.dtype)
    low, high = (classes.min().item(), classes.max().item()) if classes.size else (0, 0)
    if classes.size and not 0 <= low <= high < count:
        raise IndexError(
            f"classes must lie between 0 and {count - 1}, because a row of logits has {count}; got {low}…{high}"
        )
    return classes


def _check_whole(dtype: Any) -> None:
    if np.result_type(dtype).kind not in "iu":
        raise TypeError(
            f"classes must be whole numbers, got {np.result_type(dtype)}; for one-hot rows use argmax first"
        )


@cross_entropy.shape_rule
def cross_entropy_shape(logits: Shape, classes: Shape) -> Shape:
    if not logits or logits[:-1] != classes:
        raise ValueError(f"classes must hold one class for each row of logits: shape {logits[:-1]}, got {classes}")
    return ()


@cross_entropy.dtype_rule
def cross_entropy_dtype(logits: Any, classes: Any) -> Any:
    _check_whole(classes)
    return function_dtype(logits)


@cross_entropy.vjp("logits")
def cross_entropy_vjp(g: Any, logits: Any, classes: Any) -> Any:
    return _surprise(logits, classes) * (g / _rows(logits))


@cross_entropy.jvp("logits")
def cross_entropy_jvp(dlogits: Any, logits: Any, classes: Any) -> Any:
    return sum(dlogits * _surprise(logits, classes)) / _rows(logits)


def _surprise(logits: Any, classes: Any) -> Any:
    right = one_hot(classes, logits.shape[-1], logits.dtype)
    if device_of(right) != device_of(logits):  # the class is a plain number, which lies nowhere
        right = to_device(right, device_of(logits))
    return softmax(logits) - right


def _rows(logits: Any) -> int:
    return math.prod(logits.shape[:-1])


@cross_entropy.samples
def cross_entropy_samples() -> list[Call]:
    x, classes = normal(4, 3), np.array([2, 0, 1, 1])
    return [((x, classes), {}), ((x.astype(np.float32), classes), {}), ((normal(3, 4).T, classes), {}),
            ((normal(2, 2, 3), np.array([[0, 1], [2, 2]])), {}), ((normal(5), 3), {})]  # fmt: skip


# -------------------------------------------------------------------------------------------------- layer normalisation


@op
def standardize(xp: Any, x: Any, *, axis: Axis = -1, eps: float = 1e-5) -> Any:
    """(x − mean) / √(var + eps) over ``axis``: mean 0 and, but for eps, variance 1. The variance divides by n."""

    def standardized(v: Any) -> Any:
        centred = v - xp.mean(v, axis=axis, keepdims=True)
        return centred / xp.sqrt(xp.mean(centred * centred, axis=axis, keepdims=True) + eps)

    return in_single(standardized, x)


@standardize.shape_rule
def standardize_shape(x: Shape, *, axis: Axis) -> Shape:
    reduced_axes(axis, len(x))
    return x


standardize.dtype_rule(floating_dtype)


@standardize.vjp
def standardize_vjp(g: Any, x: Any, out: Any, *, axis: Axis, eps: float) -> Any:
    return _through_standardize(g, x, out, axis, eps)


@standardize.jvp
def standardize_jvp(dx: Any, x: Any, out: Any, *, axis: Axis, eps: float) -> Any:
    return _through_standardize(dx, x, out, axis, eps)


def _through_standardize(g: Any, x: Any, out: Any, axis: Axis, eps: float) -> Any:
    """The derivative of standardize: g without its part along the constant and along the result. It is its own adjoint."""
    along = out * mean(g * out, axis=axis, keepdims=True)
    return (g - mean(g, axis=axis, keepdims=True) - along) / sqrt(var(x, axis=axis, keepdims=True) + eps)


@standardize.samples
def standardize_samples() -> list[Call]:
    x = normal(2, 3, 4)
    return [((x,), {}), ((x.T,), {"axis": 1, "eps": 0.1}), ((x.astype(np.float32),), {"axis": (1, 2)})]


@op
def layer_norm(xp: Any, x: Any, weight: Any, bias: Any, *, axis: Axis = -1, eps: float = 1e-5) -> Any:
    """standardize(x) · weight + bias: (x − mean) / √(var + eps) over ``axis``, then scaled and shifted (Ba et al., 2016).

    Shapes: weight and bias have the sizes of the axes that are normalised, in their order; the result is shaped like x.

    >>> ops.layer_norm([[1.0, 3.0]], [1.0, 1.0], [0.0, 10.0], eps=0.0)
    array([[-1., 11.]])
    """
    layer_norm_shape(xp.shape(x), xp.shape(weight), xp.shape(bias), axis=axis)
    axes = reduced_axes(axis, xp.ndim(x))
    scale, shift = (part.reshape(_aligned(part.shape, axes, xp.ndim(x))) for part in (weight, bias))
    return standardize(x, axis, eps) * scale + shift


@layer_norm.shape_rule
def layer_norm_shape(x: Shape, weight: Shape, bias: Shape, *, axis: Axis) -> Shape:
    normalised = tuple(x[place] for place in reduced_axes(axis, len(x)))
    for name, shape in (("weight", weight), ("bias", bias)):
        if shape != normalised:
            raise ValueError(f"{name} must have the sizes of the normalised axes, {normalised}, got {shape}")
    return x


@layer_norm.dtype_rule
@keeps_floating
def layer_norm_dtype(x: Any, weight: Any, bias: Any) -> Any:
    return result_dtype(floating_dtype(x), weight, bias)


@layer_norm.vjp("x")
def layer_norm_vjp_x(g: Any, x: Any, weight: Any, *, axis: Axis, eps: float) -> Any:
    return _through_standardize(g * _beside(weight, x, axis), x, standardize(x, axis, eps), axis, eps)


@layer_norm.vjp("weight")
def layer_norm_vjp_weight(g: Any, x: Any, *, axis: Axis, eps: float) -> Any:
    return _over_other_axes(g * standardize(x, axis, eps), axis)


@layer_norm.vjp("bias")
def layer_norm_vjp_bias(g: Any, *, axis: Axis) -> Any:
    return _over_other_axes(g, axis)


@layer_norm.jvp("x")
def layer_norm_jvp_x(dx: Any, x: Any, weight: Any, *, axis: Axis, eps: float) -> Any:
    return _through_standardize(dx, x, standardize(x, axis, eps), axis, eps) * _beside(weight, x, axis)


@layer_norm.jvp("weight")
def layer_norm_jvp_weight(dweight: Any, x: Any, *, axis: Axis, eps: float) -> Any:
    return standardize(x, axis, eps) * _beside(dweight, x, axis)


@layer_norm.jvp("bias")
def layer_norm_jvp_bias(dbias: Any, x: Any, *, axis: Axis) -> Any:
    return broadcast_to(_beside(dbias, x, axis), shape=x.shape)


def _aligned(shape: Shape, axes: tuple[int, ...], ndim: int) -> Shape:
    """The shape that lets numbers along some axes broadcast against an array of ``ndim`` axes."""
    sizes = dict(zip(axes, shape, strict=True))
    return tuple(sizes.get(place, 1) for place in range(ndim))


def _beside(weight: Any, x: Any, axis: Axis) -> Any:
    return reshape(weight, shape=_aligned(weight.shape, reduced_axes(axis, x.ndim), x.ndim))


def _over_other_axes(g: Any, axis: Axis) -> Any:
    axes = reduced_axes(axis, g.ndim)
    return sum(g, axis=tuple(place for place in range(g.ndim) if place not in axes))


@layer_norm.samples
def layer_norm_samples() -> list[Call]:
    x = normal(2, 3, 4)
    calls = [(x, -1, (4,)), (x, (1, 2), (3, 4)), (x, 1, (3,)), (x.T, (0, -1), (4, 2)), (x.astype(np.float32), -1, (4,))]
    return [((x, normal(*shape, seed=1).astype(x.dtype), normal(*shape, seed=2).astype(x.dtype)), {"axis": axis, "eps": 0.01})
            for x, axis, shape in calls]  # fmt: skip
