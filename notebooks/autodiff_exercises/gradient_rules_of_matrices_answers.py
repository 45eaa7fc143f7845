"""Answers to the exercises of lesson 40 on matmul and transpose, right and wrong: what the checks are tested on."""

from __future__ import annotations

import numpy as np

Array = np.ndarray

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
