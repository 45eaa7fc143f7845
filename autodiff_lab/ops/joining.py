"""Several arrays made one, and one made several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..operand_rules import Shape
from ..operators import op
from .composed import composed
from .rearrange import expand_dims, named_axes, pad
from .sampling import Call, normal
from .structure import getitem, reshape


@op
def concatenate(xp: Any, *arrays: Any, axis: int | None = 0) -> Any:
    """The arrays one behind the other along ``axis``; with None each is taken as one row of numbers.

    Shapes: equal but for the size along ``axis``. Each array gets its part of the gradient.

    >>> ops.concatenate([[1.0, 2.0], [3.0]])
    array([1., 2., 3.])
    """
    return xp.concatenate(arrays, axis=axis)


@concatenate.shape_rule
def concatenate_shape(*arrays: Shape, axis: int | None) -> Shape:
    shapes, along = _as_joined(arrays, axis)
    first = shapes[0]
    for place, shape in enumerate(shapes):
        if (*shape[:along], *shape[along + 1 :]) != (*first[:along], *first[along + 1 :]) or len(shape) != len(first):
            raise ValueError(f"arrays[{place}] has the shape {shape}, which does not fit {first} but along axis {axis}")
    return (*first[:along], sum(shape[along] for shape in shapes), *first[along + 1 :])


@concatenate.vjp("arrays")
def concatenate_vjp(g: Any, arrays_shape: Sequence[Shape], place: int, *, axis: int | None) -> Any:
    start, stop, along = _part(arrays_shape, place, axis)
    part = getitem(g, index=(*(slice(None),) * along, slice(start, stop)))
    return part if axis is not None else reshape(part, shape=arrays_shape[place])


@concatenate.jvp("arrays")
def concatenate_jvp(
    darrays: Any, arrays_shape: Sequence[Shape], place: int, out_shape: Shape, *, axis: int | None
) -> Any:
    start, stop, along = _part(arrays_shape, place, axis)
    widths = tuple((start, out_shape[one] - stop) if one == along else (0, 0) for one in range(len(out_shape)))
    return pad(darrays if axis is not None else reshape(darrays, shape=-1), widths)


def _as_joined(shapes: Sequence[Shape], axis: int | None) -> tuple[list[Shape], int]:
    """The shapes as they are joined, and the axis counted from 0."""
    if not shapes:
        raise ValueError("there is nothing to join: pass a list of at least one array")
    if axis is None:
        return [(math.prod(shape),) for shape in shapes], 0
    return list(shapes), named_axes(axis, len(shapes[0]))[0]


def _part(shapes: Sequence[Shape], place: int, axis: int | None) -> tuple[int, int, int]:
    """Where the array at ``place`` starts and stops in the result, and along which axis."""
    joined, along = _as_joined(shapes, axis)
    start = sum(shape[along] for shape in joined[:place])
    return start, start + joined[place][along], along


@concatenate.samples
def concatenate_samples() -> list[Call]:
    x, y, z = normal(2, 3), normal(2, 1, seed=1), normal(2, 0)
    return [((x, y, z), {"axis": 1}), ((x, x), {}), ((x.T, normal(3, 4)), {"axis": -1}), ((x, y), {"axis": None}), ((x,), {}),
            ((x.astype(np.float32), y.astype(np.float32)), {"axis": 1}), ((x.astype(np.float32), x), {})]  # fmt: skip


@composed(arrays=0, apply=lambda stack, operands, options: stack(operands, **options))
def stack(arrays: list[Any], axis: int = 0) -> Any:
    """Arrays of one shape side by side along a new axis.

    >>> ops.stack([[1.0, 2.0], [3.0, 4.0]], axis=1)
    array([[1., 3.],
           [2., 4.]])
    """
    return concatenate([expand_dims(array, axis) for array in arrays], axis=axis)


@stack.samples
def stack_samples() -> list[Call]:
    return [
        ((normal(2, 3), normal(2, 3, seed=1)), {"axis": -1}),
        ((normal(), normal()), {}),
        ((normal(2).astype(np.float32),), {}),
    ]


@composed(arrays=0, apply=lambda vstack, operands, options: vstack(operands))
def vstack(arrays: list[Any]) -> Any:
    """Arrays one below the other; a vector counts as a row.

    >>> ops.vstack([[1.0, 2.0], [3.0, 4.0]])
    array([[1., 2.],
           [3., 4.]])
    """
    return concatenate([_with_axes(array, 2) for array in arrays], axis=0)


@composed(arrays=0, apply=lambda hstack, operands, options: hstack(operands))
def hstack(arrays: list[Any]) -> Any:
    """Arrays one beside the other: vectors end to end, matrices along their rows.

    >>> ops.hstack([[1.0, 2.0], [3.0]])
    array([1., 2., 3.])
    """
    rows = [_with_axes(array, 1) for array in arrays]
    return concatenate(rows, axis=0 if rows and rows[0].ndim == 1 else 1)


def _with_axes(array: Any, ndim: int) -> Any:
    """An array of at least so many axes; new ones stand in front."""
    array = array if hasattr(array, "shape") else np.asarray(array)
    return array if array.ndim >= ndim else expand_dims(array, tuple(range(ndim - array.ndim)))


@vstack.samples
@hstack.samples
def row_samples() -> list[Call]:
    return [
        ((normal(3), normal(3, seed=1)), {}),
        ((normal(2, 3), normal(2, 3, seed=1)), {}),
        ((normal(), normal()), {}),
    ]


@composed()
def split(x: Any, indices_or_sections: int | tuple[int, ...], axis: int = 0) -> list[Any]:
    """A list of the parts of x along ``axis``: so many equal ones, or cut at the indices.

    >>> ops.split([1.0, 2.0, 3.0, 4.0], 2)
    [array([1., 2.]), array([3., 4.])]
    """
    (along,) = named_axes(axis, x.ndim)
    size = x.shape[along]
    if isinstance(indices_or_sections, (int, np.integer)):
        count = int(indices_or_sections)
        if count < 1 or size % count:
            raise ValueError(
                f"split: axis {axis} of size {size} does not divide into {count} equal parts; give indices instead"
            )
        cuts = [size // count * place for place in range(1, count)]
    else:
        cuts = [int(cut) for cut in indices_or_sections]
    parts = zip([0, *cuts], [*cuts, size], strict=True)
    return [getitem(x, index=(*(slice(None),) * along, slice(start, stop))) for start, stop in parts]


@split.samples
def split_samples() -> list[Call]:
    return [
        ((normal(4, 3),), {"indices_or_sections": 2}),
        ((normal(2, 5),), {"indices_or_sections": (1, 3), "axis": -1}),
    ]
