"""Answers to the exercises of lesson 60 on shape rule and dtype rule, right and wrong: what the checks are tested on."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import numpy as np

Shape = tuple[int, ...]

# -------------------------------------------------------------------------------------------------------------- shape


def distances_shape(x, y):
    """The shape of the distances between all points of x, (…, n, d), and all points of y, (…, m, d): (…, n, m)."""
    (*batch, n, d), (*other, m, e) = x.shape, y.shape
    if d != e:
        raise ValueError(f"points of x have {d} numbers, points of y have {e}; they must be equal")
    return (*np.broadcast_shapes(tuple(batch), tuple(other)), n, m)


def shape_by_hand(x: Any, y: Any) -> list[int]:
    """Without NumPy."""
    if x.shape[-1] != y.shape[-1]:
        raise ValueError("sizes of the points differ")
    batch: list[int] = []
    first, second = list(x.shape[:-2]), list(y.shape[:-2])
    while first or second:
        a, b = (first.pop() if first else 1), (second.pop() if second else 1)
        if a != b and 1 not in (a, b):
            raise ValueError("batches do not fit")
        batch.insert(0, b if a == 1 else a)
    return [*batch, x.shape[-2], y.shape[-2]]


def shape_without_memory(x: Any, y: Any) -> Shape:
    """NumPy's own broadcasting, on arrays that take no memory whatever their shape."""
    if x.shape[-1] != y.shape[-1]:
        raise ValueError("sizes of the points differ")
    left, right = (np.broadcast_to(np.zeros(()), (*one.shape[:-1], 1))[..., 0] for one in (x, y))
    return np.broadcast(left[..., :, None], right[..., None, :]).shape


def shape_of_the_first(x: Any, y: Any) -> Shape:
    """The lecture's shape function."""
    shape: Shape = x.shape
    return shape


def shape_of_the_data(x: Any, y: Any) -> Shape:
    """Runs the kernel."""
    return np.sqrt(np.sum((np.asarray(x)[..., :, None, :] - np.asarray(y)[..., None, :, :]) ** 2, axis=-1)).shape


def shape_of_zeros(x: Any, y: Any) -> Shape:
    """Runs the kernel on zeros."""
    if x.shape[-1] != y.shape[-1]:
        raise ValueError("sizes of the points differ")
    return np.sum((np.zeros(x.shape)[..., :, None, :] - np.zeros(y.shape)[..., None, :, :]) ** 2, axis=-1).shape


def shape_with_the_sum(x: Any, y: Any) -> Shape:
    """Forgets that the differences are summed."""
    return (*distances_shape(x, y), x.shape[-1])


def shape_of_two_axes(x: Any, y: Any) -> Shape:
    """No batch."""
    if x.shape[-1] != y.shape[-1]:
        raise ValueError("sizes of the points differ")
    return x.shape[-2], y.shape[-2]


def shape_with_batch_of_the_first(x: Any, y: Any) -> Shape:
    """The batch of x, whatever that of y is."""
    if x.shape[-1] != y.shape[-1]:
        raise ValueError("sizes of the points differ")
    return (*x.shape[:-1], y.shape[-2])


def shape_of_anything(x: Any, y: Any) -> Shape:
    """Never compares the sizes of the points."""
    return (*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-2])


def shape_of_larger_batches(x: Any, y: Any) -> Shape:
    """Broadcasts as if an axis had never size 0."""
    if x.shape[-1] != y.shape[-1]:
        raise ValueError("sizes of the points differ")
    batches = zip_longest(x.shape[-3::-1], y.shape[-3::-1], fillvalue=1)
    sizes = [max(pair) if min(pair) < 2 or len({*pair}) == 1 else None for pair in batches]
    if None in sizes:
        raise ValueError("batches do not fit")
    return (*(size for size in reversed(sizes) if size is not None), x.shape[-2], y.shape[-2])


def shape_turned(x: Any, y: Any) -> Shape:
    """Rows and columns the other way round."""
    *batch, n, m = distances_shape(x, y)
    return (*batch, m, n)


# -------------------------------------------------------------------------------------------------------------- dtype


def average_dtype(x, y):
    """The dtype of (x + y) / 2, from the dtypes of x and y."""
    found = np.result_type(x, y)
    return found if found.kind == "f" else np.dtype(np.float64)


def dtype_of_one_number(x: Any, y: Any) -> Any:
    """Asks the kernel, on one number that has nothing to do with the user's data."""
    return ((np.ones((), x) + np.ones((), y)) / 2).dtype


def dtype_as_a_name(x: Any, y: Any) -> str:
    """A name does as well."""
    return str(average_dtype(x, y))


def dtype_of_the_first(x: Any, y: Any) -> Any:
    """The first input decides."""
    return x


def dtype_of_the_sum(x: Any, y: Any) -> Any:
    """Forgets the division."""
    return np.result_type(x, y)


def dtype_always_double(x: Any, y: Any) -> Any:
    """To be safe."""
    return np.dtype("float64")


def dtype_of_one_float(x: Any, y: Any) -> Any:
    """The first floating input decides."""
    return next((one for one in (x, y) if one.kind == "f"), np.dtype("float64"))


def dtype_like_a_network(x: Any, y: Any) -> Any:
    """Whole numbers become float32, since that is what networks compute in."""
    found = np.result_type(x, y)
    return found if found.kind == "f" else np.dtype("float32")


def dtype_of_the_narrow(x: Any, y: Any) -> Any:
    """The narrower one, to save memory."""
    found = min((one for one in (x, y) if one.kind == "f"), key=lambda one: one.itemsize, default=None)
    return np.dtype("float64") if found is None else found
