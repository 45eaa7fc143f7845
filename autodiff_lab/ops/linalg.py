"""Ops of linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..operand_rules import Shape
from ..operators import op
from .sampling import Call, normal
from .structure import reshape, sum_to, transpose


@op
def matmul(xp: Any, x: Any, y: Any) -> Any:
    """The matrix product x @ y with NumPy's rules: vectors on either side, stacks of matrices broadcast."""
    return xp.matmul(x, y)


@matmul.shape_rule
def matmul_shape(x: Shape, y: Shape) -> Shape:
    if not x or not y:
        raise ValueError("matmul needs at least one axis on each side; use * for numbers")
    rows, inner, columns = x[-2:-1], x[-1], y[-1:] if len(y) > 1 else ()
    if inner != (y[-2] if len(y) > 1 else y[0]):
        raise ValueError(f"the last axis of x has size {inner}, but y {y} offers {y[-2] if len(y) > 1 else y[0]} rows")
    return (*np.broadcast_shapes(x[:-2], y[:-2]), *rows, *columns)


@matmul.batch_rule
def matmul_batch(x: Any, y: Any) -> Any:
    if x.ndim == 3 and y.ndim == 2 and x.shape[0] == 1:  # one matrix times many vectors is one product of matrices
        matrix = x.reshape(x.shape[1:])
        if len(matrix) < len(y):  # the few rows first: 1,000 vectors of 1,000 times two rows take 0.4 ms, not 0.7
            return (matrix @ y.T).T
        return y @ matrix.T
    if x.ndim == 3 and y.ndim == 3 and x.shape[0] == 1 and y.shape[2] == 1:
        columns = reshape(y, shape=y.shape[:2])
        return reshape(matmul(columns, _swapped(reshape(x, shape=x.shape[1:]))), shape=(y.shape[0], x.shape[1], 1))
    if x.ndim == 2 and y.ndim == 3 and y.shape[0] == 1:
        return matmul(x, reshape(y, shape=y.shape[1:]))
    size = max(x.shape[0], y.shape[0])
    rows = reshape(x, shape=(x.shape[0], 1, x.shape[1])) if x.ndim == 2 else x
    columns = reshape(y, shape=(*y.shape, 1)) if y.ndim == 2 else y
    rank = max(rows.ndim, columns.ndim)
    product = matmul(_with_rank(rows, rank), _with_rank(columns, rank))
    shape = (size, *matmul_shape(x.shape[1:], y.shape[1:]))
    return product if product.shape == shape else reshape(product, shape=shape)


def _with_rank(stack: Any, rank: int) -> Any:
    """A stack whose members are given leading axes of size 1, so that the stack has ``rank`` axes."""
    missing = rank - stack.ndim
    return reshape(stack, shape=(stack.shape[0], *(1,) * missing, *stack.shape[1:])) if missing else stack


@matmul.vjp("x")
def matmul_vjp_x(g: Any, y: Any, x_shape: Shape) -> Any:
    if y.ndim == 1:
        return reshape(g, shape=(*g.shape, 1)) * y
    if len(x_shape) == 1:
        return _summed(_times_vector(y, g), x_shape)
    return _summed(g @ _swapped(y), x_shape)


@matmul.vjp("y")
def matmul_vjp_y(g: Any, x: Any, y_shape: Shape) -> Any:
    if x.ndim == 1 and len(y_shape) == 1:
        return g * x
    if x.ndim == 1:
        return reshape(x, shape=(x.shape[0], 1)) * reshape(g, shape=(*g.shape[:-1], 1, g.shape[-1]))
    if len(y_shape) == 1:
        return _summed(_times_vector(_swapped(x), g), y_shape)
    return _summed(_swapped(x) @ g, y_shape)


@matmul.jvp("x")
def matmul_jvp_x(dx: Any, y: Any) -> Any:
    return matmul(dx, y)


@matmul.jvp("y")
def matmul_jvp_y(dy: Any, x: Any) -> Any:
    return matmul(x, dy)


@matmul.samples
def matmul_samples() -> list[Call]:
    ranks = [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((2, 3), (5, 3, 4)),
             ((5, 1, 2, 3), (6, 3, 4)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4)), ((2, 0), (0, 3))]  # fmt: skip
    calls: list[Call] = [((normal(*x, seed=1), normal(*y, seed=2)), {}) for x, y in ranks]
    return [*calls, ((normal(2, 3).astype(np.float32), normal(3, 2).astype(np.float32)), {})]


def _swapped(x: Any) -> Any:
    """The last two axes exchanged."""
    return x.T if x.ndim == 2 else transpose(x, axes=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _times_vector(matrix: Any, vector: Any) -> Any:
    """Matrix times vector over any leading axes of both."""
    if vector.ndim == 1:
        return matmul(matrix, vector)
    product = matmul(matrix, reshape(vector, shape=(*vector.shape, 1)))
    return reshape(product, shape=product.shape[:-1])


def _summed(g: Any, shape: Shape) -> Any:
    """g summed over the stacked axes along which an operand of this shape was broadcast."""
    return g if g.shape == shape else sum_to(g, shape=shape)
