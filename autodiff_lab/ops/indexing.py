"""Taking numbers by arrays of indices, and the adjoints, which add what was taken back to where it came from.

Plain indexing, ``x[index]``, is ``getitem`` in structure.py. Here the indices are an input of the op, so that a recorded
graph can be run with other indices. No gradient flows to them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bindings import shape_of
from ..operand_rules import Shape, result_dtype
from ..operators import op
from .composed import composed
from .sampling import Call, normal

# ---------------------------------------------------------------------------------------------------- rows by their numbers


@op(constant_inputs=("indices",))
def take(xp: Any, x: Any, indices: Any, *, axis: int | None = None) -> Any:
    """The entries of x along ``axis`` that ``indices`` name; None counts through all numbers.

    The gradients of an entry that is taken several times add up.

    >>> ops.take([10.0, 20.0, 30.0], [2, 0, 2])
    array([30., 10., 30.])
    """
    if xp.asarray(indices).dtype.kind == "b":
        raise TypeError("take needs whole numbers as indices, got truth values; for a mask write x[mask]")
    return xp.take(x, indices, axis=axis)


@take.shape_rule
def take_shape(x: Shape, indices: Shape, *, axis: int | None) -> Shape:
    if axis is None:
        return indices
    place = _place(axis, len(x))
    return (*x[:place], *indices, *x[place + 1 :])


@take.dtype_rule
def take_dtype(x: Any, indices: Any) -> Any:
    return result_dtype(x)


@take.vjp("x")
def take_vjp(g: Any, indices: Any, x_shape: Shape, *, axis: int | None) -> Any:
    return add_taken(g, indices, shape=x_shape, axis=axis)


@take.jvp("x")
def take_jvp(dx: Any, indices: Any, *, axis: int | None) -> Any:
    return take(dx, indices, axis=axis)


@take.samples
def take_samples() -> list[Call]:
    x = normal(2, 4, 3)
    return [((x, np.array([[0, 3], [3, -1]])), {"axis": 1}), ((x, np.array([2, 0, 2])), {"axis": -1}),
            ((x.T, np.array([5, 0, 5])), {}), ((x, 1), {"axis": 0}), ((x.astype(np.float32), np.array([1, 1])), {"axis": 1}),
            ((x, np.zeros((0,), np.int64)), {"axis": 2})]  # fmt: skip


@op(constant_inputs=("indices",))
def add_taken(xp: Any, x: Any, indices: Any, *, shape: Shape, axis: int | None = None) -> Any:
    """Zeros of ``shape`` to which x is added where ``indices`` name entries along ``axis``: the adjoint of take."""
    add_taken_shape(x.shape, shape_of(indices), shape=shape, axis=axis)
    result = xp.zeros(shape, x.dtype)
    if axis is None:
        xp.add.at(result.reshape(-1), indices, x)
        return result
    place = _place(axis, len(shape))
    count = getattr(indices, "ndim", 0)
    axes = tuple(range(place, place + count))
    xp.add.at(xp.moveaxis(result, place, 0), indices, xp.moveaxis(x, axes, tuple(range(count))))
    return result


@add_taken.shape_rule
def add_taken_shape(x: Shape, indices: Shape, *, shape: Shape, axis: int | None) -> Shape:
    taken = take_shape(tuple(shape), indices, axis=axis)
    if x != taken:
        raise ValueError(f"values of shape {x} do not fit indices that take {taken} from {shape}")
    return tuple(shape)


add_taken.dtype_rule(take_dtype)


@add_taken.vjp("x")
def add_taken_vjp(g: Any, indices: Any, *, axis: int | None) -> Any:
    return take(g, indices, axis=axis)


@add_taken.jvp("x")
def add_taken_jvp(dx: Any, indices: Any, *, shape: Shape, axis: int | None) -> Any:
    return add_taken(dx, indices, shape=shape, axis=axis)


@add_taken.samples
def add_taken_samples() -> list[Call]:
    return [((np.take(x, i, **how), i), {"shape": x.shape, **how}) for (x, i), how in take_samples()]


@composed(arrays=2)
def embedding(table: Any, indices: Any) -> Any:
    """The rows of a table that ``indices`` name: the vector of each word of a text, given the words' numbers.

    Shapes: table (words, width), indices any; the result has the shape of the indices and the width behind it.

    >>> ops.embedding([[0.0, 0.1], [1.0, 1.1]], [1, 1, 0])
    array([[1. , 1.1],
           [1. , 1.1],
           [0. , 0.1]])
    """
    return take(table, indices, axis=0)


@embedding.samples
def embedding_samples() -> list[Call]:
    return [((normal(5, 3), np.array([[0, 4], [4, 4]])), {}), ((normal(5, 3).astype(np.float32), np.array([1])), {})]


# ------------------------------------------------------------------------------------------------- one index for each place


@op(constant_inputs=("indices",))
def take_along_axis(xp: Any, x: Any, indices: Any, *, axis: int = -1) -> Any:
    """For each place of ``indices`` the entry of x that it names along ``axis``; along all other axes the place itself.

    >>> ops.take_along_axis([[10.0, 20.0], [30.0, 40.0]], [[1], [0]], axis=1)
    array([[20.],
           [30.]])
    """
    return xp.take_along_axis(x, indices, axis=axis)


@take_along_axis.shape_rule
def take_along_axis_shape(x: Shape, indices: Shape, *, axis: int) -> Shape:
    if len(x) != len(indices):
        raise ValueError(f"x and indices must have as many axes, got {x} and {indices}; reshape the indices")
    place = _place(axis, len(x))
    rest = np.broadcast_shapes((*x[:place], 1, *x[place + 1 :]), (*indices[:place], 1, *indices[place + 1 :]))
    return (*rest[:place], indices[place], *rest[place + 1 :])


take_along_axis.dtype_rule(take_dtype)


@take_along_axis.vjp("x")
def take_along_axis_vjp(g: Any, indices: Any, x_shape: Shape, *, axis: int) -> Any:
    return add_along_axis(g, indices, shape=x_shape, axis=axis)


@take_along_axis.jvp("x")
def take_along_axis_jvp(dx: Any, indices: Any, *, axis: int) -> Any:
    return take_along_axis(dx, indices, axis=axis)


@take_along_axis.samples
def take_along_axis_samples() -> list[Call]:
    x = normal(3, 4)
    return [((x, np.array([[0], [3], [3]])), {"axis": 1}), ((x, np.array([[2, 2, 0, 1], [2, 0, 0, 1]])), {"axis": 0}),
            ((x, np.array([[1, 1]])), {"axis": 1}), ((normal(1, 4), np.array([[1], [1], [0]])), {}),
            ((x.T.astype(np.float32), np.argsort(x.T)), {"axis": -1}),
            ((normal(0, 3), np.zeros((0, 2), np.int64)), {})]  # fmt: skip


@op(constant_inputs=("indices",))
def add_along_axis(xp: Any, x: Any, indices: Any, *, shape: Shape, axis: int = -1) -> Any:
    """Zeros of ``shape`` to which x is added at the places that ``indices`` name: the adjoint of take_along_axis."""
    add_along_axis_shape(x.shape, indices.shape, shape=shape, axis=axis)
    result = xp.zeros(shape, x.dtype)
    places = list(xp.ogrid[tuple(slice(size) for size in shape)])
    places[_place(axis, len(shape))] = indices
    xp.add.at(result, tuple(places), x)
    return result


@add_along_axis.shape_rule
def add_along_axis_shape(x: Shape, indices: Shape, *, shape: Shape, axis: int) -> Shape:
    taken = take_along_axis_shape(tuple(shape), indices, axis=axis)
    if x != taken:
        raise ValueError(f"values of shape {x} do not fit indices that take {taken} from {shape}")
    return tuple(shape)


add_along_axis.dtype_rule(take_dtype)


@add_along_axis.vjp("x")
def add_along_axis_vjp(g: Any, indices: Any, *, axis: int) -> Any:
    return take_along_axis(g, indices, axis=axis)


@add_along_axis.jvp("x")
def add_along_axis_jvp(dx: Any, indices: Any, *, shape: Shape, axis: int) -> Any:
    return add_along_axis(dx, indices, shape=shape, axis=axis)


@add_along_axis.samples
def add_along_axis_samples() -> list[Call]:
    calls = take_along_axis_samples()
    return [((take_along_axis(x, i, **how), i), {"shape": x.shape, **how}) for (x, i), how in calls]


def _place(axis: int, ndim: int) -> int:
    """An axis counted from 0."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of range for an array of {ndim} axes")
    return axis % ndim
