"""Answers to the exercises of lesson 40 on sum, matmul and transpose, right and wrong: what the checks are tested on."""

from __future__ import annotations

import numpy as np

Array = np.ndarray
Axis = int | tuple[int, ...] | None

# ---------------------------------------------------------------------------------------------------------------- sum


def sum_vjp(
    g: np.ndarray, shape: tuple[int, ...], axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> np.ndarray:
    """The gradient of x.sum(axis, keepdims=keepdims) for x of this shape, where g is the gradient that arrives."""
    if axis is not None and not keepdims:
        g = np.expand_dims(g, axis)
    return np.broadcast_to(g, shape).copy()


def sum_vjp_by_shape(g: Array, shape: tuple[int, ...], axis: Axis = None, keepdims: bool = False) -> Array:
    """The shape that keepdims would have kept, worked out by hand; a view is enough."""
    axes = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    summed = {a % len(shape) for a in axes}
    return np.broadcast_to(g.reshape([1 if a in summed else n for a, n in enumerate(shape)]), shape)


def sum_vjp_by_ones(g: Array, shape: tuple[int, ...], axis: Axis = None, keepdims: bool = False) -> Array:
    """Multiplied by ones of the right dtype."""
    if axis is not None and not keepdims:
        g = np.expand_dims(g, axis)
    return np.asarray(np.ones(shape, dtype=g.dtype) * g)


def sum_axis_gone(g: Array, shape: tuple[int, ...], axis: Axis = None, keepdims: bool = False) -> Array:
    """Broadcasting finds the axis by itself."""
    return np.broadcast_to(g, shape).copy()


def sum_averages(g: Array, shape: tuple[int, ...], axis: Axis = None, keepdims: bool = False) -> Array:
    """Shares the gradient out."""
    out = sum_vjp(g, shape, axis, keepdims)
    return np.asarray(out * np.asarray(g.size / out.size, g.dtype))


def sum_forgets_upstream(g: Array, shape: tuple[int, ...], axis: Axis = None, keepdims: bool = False) -> Array:
    """Every number counts once."""
    return np.ones(shape, g.dtype)


def sum_passes_on(g: Array, shape: tuple[int, ...], axis: Axis = None, keepdims: bool = False) -> Array:
    """As for addition."""
    return g


def sum_wrong_places(g: Array, shape: tuple[int, ...], axis: Axis = None, keepdims: bool = False) -> Array:
    """Copies g until the shape is full."""
    return np.repeat(g.ravel(), np.prod(shape, dtype=int) // g.size).reshape(shape)


def sum_expands_always(g: Array, shape: tuple[int, ...], axis: Axis = None, keepdims: bool = False) -> Array:
    """Puts the axis back also where it was kept."""
    return np.broadcast_to(g if axis is None else np.expand_dims(g, axis), shape).copy()


def sum_in_float64(g: Array, shape: tuple[int, ...], axis: Axis = None, keepdims: bool = False) -> Array:
    """Multiplied by ones that are float64."""
    return np.asarray(np.ones(shape) * sum_vjp(g, shape, axis, keepdims))


# ------------------------------------------------------------------------------------------------------------- matmul


def matmul_vjp(g: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The gradients of x @ y for x and for y, two matrices, where g is the gradient that arrives."""
    return g @ y.T, x.T @ g


def matmul_by_einsum(g: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Index by index: out[i, k] = Σⱼ x[i, j] y[j, k]."""
    return np.einsum("ik,jk->ij", g, y), np.einsum("ij,ik->jk", x, g)


def matmul_by_outer_products(g: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Transposed results of transposed products."""
    return (y @ g.T).T, (g.T @ x).T


def matmul_without_transpose(g: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """As for numbers."""
    return g @ y, x @ g


def matmul_wrong_side(g: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Transposed, and from the wrong side."""
    return y.T @ g, g @ x.T


def matmul_reshapes(g: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Makes the shapes fit."""
    return g @ y.reshape(y.shape[::-1]), x.reshape(x.shape[::-1]) @ g


def matmul_forgets_upstream(g: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """The local derivatives summed over what they touch."""
    return np.ones_like(g) @ y.T, x.T @ np.ones_like(g)


def matmul_swapped(g: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Right gradients in the wrong order."""
    return x.T @ g, g @ y.T


def matmul_elementwise(g: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """The rule of the product of numbers."""
    return g * y, g * x


# ---------------------------------------------------------------------------------------------------------- transpose


def transpose_vjp(g: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The gradient of np.transpose(x, axes) for x, where g is the gradient that arrives."""
    return np.transpose(g, np.argsort(axes))


def transpose_by_places(g: Array, axes: tuple[int, ...]) -> Array:
    """Axis number `place` of the result was axis `axis` of x."""
    back = [0] * len(axes)
    for place, axis in enumerate(axes):
        back[axis] = place
    return g.transpose(back)


def transpose_by_moving(g: Array, axes: tuple[int, ...]) -> Array:
    """Each axis moves to where it came from."""
    return np.moveaxis(g, range(g.ndim), axes)


def transpose_again(g: Array, axes: tuple[int, ...]) -> Array:
    """Twice is back again."""
    return np.transpose(g, axes)


def transpose_reshapes(g: Array, axes: tuple[int, ...]) -> Array:
    """The right shape is enough."""
    return g.reshape([g.shape[list(axes).index(axis)] for axis in range(g.ndim)])


def transpose_all(g: Array, axes: tuple[int, ...]) -> Array:
    """All axes turned round."""
    return g.T


def transpose_passes_on(g: Array, axes: tuple[int, ...]) -> Array:
    """The numbers are the same, so nothing is to be done."""
    return g


def transpose_in_float64(g: Array, axes: tuple[int, ...]) -> Array:
    """Copies the numbers one by one into a new array."""
    out = np.zeros([g.shape[list(axes).index(axis)] for axis in range(g.ndim)])
    out[...] = transpose_vjp(g, axes)
    return out
