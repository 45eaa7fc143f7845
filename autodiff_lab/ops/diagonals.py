"""Diagonals and triangles of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..operand_rules import Shape
from ..operators import op
from .composed import composed
from .rearrange import named_axes
from .reduce import sum
from .sampling import Call, normal

# ------------------------------------------------------------------------------------------------------------ diagonals


@op(views="x")
def diagonal(xp: Any, x: Any, *, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The entries whose indices along two axes differ by ``offset``; they become the last axis.

    >>> ops.diagonal([[1.0, 2.0], [3.0, 4.0]])
    array([1., 4.])
    """
    return xp.diagonal(x, offset, axis1, axis2)


@diagonal.shape_rule
def diagonal_shape(x: Shape, *, offset: int, axis1: int, axis2: int) -> Shape:
    if len(x) < 2:
        raise ValueError(f"a diagonal needs two axes, but x has the shape {x}")
    first, second = named_axes((axis1, axis2), len(x))
    rows, columns = x[first], x[second]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    return (*(size for place, size in enumerate(x) if place not in (first, second)), length)


@diagonal.vjp
def diagonal_vjp(g: Any, x_shape: Shape, *, offset: int, axis1: int, axis2: int) -> Any:
    return from_diagonal(g, shape=x_shape, offset=offset, axis1=axis1, axis2=axis2)


@diagonal.jvp
def diagonal_jvp(dx: Any, *, offset: int, axis1: int, axis2: int) -> Any:
    return diagonal(dx, offset=offset, axis1=axis1, axis2=axis2)


@diagonal.samples
def diagonal_samples() -> list[Call]:
    x = normal(3, 4)
    return [((x,), {}), ((x,), {"offset": 2}), ((x.T,), {"offset": -1}), ((x,), {"offset": 9}), ((normal(0, 2),), {}),
            ((normal(2, 3, 4),), {"axis1": -1, "axis2": 0}), ((x.astype(np.float32),), {"axis1": 1, "axis2": 0})]  # fmt: skip


@op
def from_diagonal(xp: Any, x: Any, *, shape: Shape, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Zeros of ``shape`` with x on a diagonal: the adjoint of diagonal."""
    from_diagonal_shape(x.shape, shape=shape, offset=offset, axis1=axis1, axis2=axis2)
    result = xp.zeros(shape, x.dtype)
    steps = xp.arange(x.shape[-1])
    matrices = xp.moveaxis(result, (axis1, axis2), (-2, -1))
    matrices[..., steps + max(-offset, 0), steps + max(offset, 0)] = x
    return result


@from_diagonal.shape_rule
def from_diagonal_shape(x: Shape, *, shape: Shape, offset: int, axis1: int, axis2: int) -> Shape:
    expected = diagonal_shape(tuple(shape), offset=offset, axis1=axis1, axis2=axis2)
    if x != expected:
        raise ValueError(f"x has the shape {x}, but the diagonal of {shape} has {expected}")
    return tuple(shape)


@from_diagonal.vjp
def from_diagonal_vjp(g: Any, *, offset: int, axis1: int, axis2: int) -> Any:
    return diagonal(g, offset=offset, axis1=axis1, axis2=axis2)


@from_diagonal.jvp
def from_diagonal_jvp(dx: Any, *, shape: Shape, offset: int, axis1: int, axis2: int) -> Any:
    return from_diagonal(dx, shape=shape, offset=offset, axis1=axis1, axis2=axis2)


@from_diagonal.samples
def from_diagonal_samples() -> list[Call]:
    return [((np.array(diagonal(x, **how)),), {"shape": x.shape, **how}) for (x,), how in diagonal_samples()]


@composed()
def diag(x: Any, k: int = 0) -> Any:
    """The k-th diagonal of a matrix; or for a vector the square matrix that has it there.

    >>> ops.diag([1.0, 2.0])
    array([[1., 0.],
           [0., 2.]])
    """
    if x.ndim == 2:
        return diagonal(x, offset=k)
    if x.ndim != 1:
        raise ValueError(f"x must be a vector or a matrix, got the shape {x.shape}; use diagonal for stacks")
    side = x.shape[0] + abs(k)
    return from_diagonal(x, shape=(side, side), offset=k)


@diag.samples
def diag_samples() -> list[Call]:
    return [((normal(3),), {}), ((normal(3),), {"k": -1}), ((normal(3, 4),), {"k": 1}), ((normal(4, 3).T,), {})]


@composed()
def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The sum of a diagonal.

    >>> float(ops.trace([[1.0, 2.0], [3.0, 4.0]]))
    5.0
    """
    return sum(diagonal(x, offset=offset, axis1=axis1, axis2=axis2), axis=-1)


@trace.samples
def trace_samples() -> list[Call]:
    return [((normal(3, 4),), {}), ((normal(2, 3, 3),), {"offset": 1, "axis1": 1, "axis2": 2})]


# ------------------------------------------------------------------------------------------------------------ triangles


@op
def tril(xp: Any, x: Any, *, k: int = 0) -> Any:
    """x with zeros above the k-th diagonal of its last two axes.

    >>> ops.tril([[1.0, 2.0], [3.0, 4.0]])
    array([[1., 0.],
           [3., 4.]])
    """
    triangle_shape(x.shape)
    return xp.tril(x, k)


@tril.vjp
def tril_vjp(g: Any, *, k: int) -> Any:
    return tril(g, k=k)


@tril.jvp
def tril_jvp(dx: Any, *, k: int) -> Any:
    return tril(dx, k=k)


@op
def triu(xp: Any, x: Any, *, k: int = 0) -> Any:
    """x with zeros below the k-th diagonal of its last two axes."""
    triangle_shape(x.shape)
    return xp.triu(x, k)


@triu.vjp
def triu_vjp(g: Any, *, k: int) -> Any:
    return triu(g, k=k)


@triu.jvp
def triu_jvp(dx: Any, *, k: int) -> Any:
    return triu(dx, k=k)


@tril.shape_rule
@triu.shape_rule
def triangle_shape(x: Shape) -> Shape:
    if len(x) < 2:
        raise ValueError(f"a triangle needs two axes, but x has the shape {x}")
    return x


@tril.samples
@triu.samples
def triangle_samples() -> list[Call]:
    return [((normal(3, 4),), {}), ((normal(3, 4).T,), {"k": -1}), ((normal(2, 3, 3),), {"k": 1}), ((normal(0, 3),), {}),
            ((normal(3, 3).astype(np.float32),), {})]  # fmt: skip
