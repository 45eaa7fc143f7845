"""Ops that move numbers without changing them: reshape, transpose, broadcast, index, and their adjoints."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ..operand_rules import Shape, sum_dtype
from ..operators import op
from .sampling import Call, normal

# ------------------------------------------------------------------------------------------------------------- reshape


@op(views="x")
def reshape(xp: Any, x: Any, *, shape: Shape) -> Any:
    """The same numbers, in order, in another shape; one size may be −1."""
    return x.reshape(shape)


@reshape.shape_rule
def reshape_shape(x: Shape, *, shape: Shape) -> Shape:
    wanted = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    known = math.prod(size for size in wanted if size != -1)
    if -1 in wanted and known and wanted.count(-1) == 1:
        wanted = tuple(math.prod(x) // known if size == -1 else size for size in wanted)
    if math.prod(wanted) != math.prod(x) or min(wanted, default=0) < 0:
        raise ValueError(f"{math.prod(x)} numbers of shape {x} do not fill the shape {shape}")
    return wanted


@reshape.batch_rule
def reshape_batch(x: Any, *, shape: Shape) -> Any:
    return reshape(x, shape=(x.shape[0], *reshape_shape(x.shape[1:], shape=shape)))


@reshape.vjp
def reshape_vjp(g: Any, x_shape: Shape) -> Any:
    return reshape(g, shape=x_shape)


@reshape.jvp
def reshape_jvp(dx: Any, *, shape: Shape) -> Any:
    return reshape(dx, shape=shape)


@reshape.samples
def reshape_samples() -> list[Call]:
    x = normal(2, 6)
    return [((x,), {"shape": (3, 4)}), ((x,), {"shape": (-1, 2)}), ((x.T,), {"shape": 12}), ((normal(1),), {"shape": ()}),
            ((normal(0, 3),), {"shape": (3, 0)}), ((x.astype(np.float32),), {"shape": (4, 3)})]  # fmt: skip


# ----------------------------------------------------------------------------------------------------------- transpose


@op(views="x")
def transpose(xp: Any, x: Any, *, axes: tuple[int, ...] | None = None) -> Any:
    """The axes in another order; reversed where none is given."""
    return x.transpose(axes)


@transpose.shape_rule
def transpose_shape(x: Shape, *, axes: tuple[int, ...] | None) -> Shape:
    order = _axis_order(axes, len(x))
    if sorted(order) != list(range(len(x))):
        raise ValueError(f"axes {axes} do not name each of the {len(x)} axes of shape {x} once")
    return tuple(x[place] for place in order)


@transpose.batch_rule
def transpose_batch(x: Any, *, axes: tuple[int, ...] | None) -> Any:
    return transpose(x, axes=(0, *(place + 1 for place in _axis_order(axes, x.ndim - 1))))


@transpose.vjp
def transpose_vjp(g: Any, *, axes: tuple[int, ...] | None) -> Any:
    if axes is None:
        return transpose(g)
    return transpose(g, axes=tuple(int(place) for place in np.argsort(_axis_order(axes, len(axes)))))


@transpose.jvp
def transpose_jvp(dx: Any, *, axes: tuple[int, ...] | None) -> Any:
    return transpose(dx, axes=axes)


def _axis_order(axes: tuple[int, ...] | None, ndim: int) -> list[int]:
    return list(reversed(range(ndim))) if axes is None else [axis % ndim if ndim else axis for axis in axes]


@transpose.samples
def transpose_samples() -> list[Call]:
    x = normal(2, 3, 4)
    return [((x,), {}), ((x,), {"axes": (1, 2, 0)}), ((x,), {"axes": (0, -1, 1)}), ((normal(),), {}), ((normal(0, 2),), {}),
            ((x.astype(np.float32),), {"axes": (2, 0, 1)})]  # fmt: skip


# ------------------------------------------------------------------------------------------- broadcasting and its adjoint

_SMALL = 4096  # numbers: up to here filling an array is as fast as making a view


@op(views="x")
def broadcast_to(xp: Any, x: Any, *, shape: Shape) -> Any:
    """x repeated along new axes and axes of size 1, to a larger shape."""
    if x.ndim == 0 and isinstance(shape, tuple) and math.prod(shape) <= _SMALL:
        return xp.full(shape, x, x.dtype)  # 0.7 µs, where a view by broadcast_to takes 4
    return xp.broadcast_to(x, shape)


@broadcast_to.shape_rule
def broadcast_to_shape(x: Shape, *, shape: Shape) -> Shape:
    wanted = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if not _broadcasts(x, wanted):
        raise ValueError(f"shape {x} does not broadcast to {shape}: counted from the right, sizes must be equal or 1")
    return wanted


@broadcast_to.batch_rule
def broadcast_to_batch(x: Any, *, shape: Shape) -> Any:
    size, *rest = x.shape
    wanted = broadcast_to_shape(tuple(rest), shape=shape)
    aligned = reshape(x, shape=(size, *(1,) * (len(wanted) - len(rest)), *rest))
    return broadcast_to(aligned, shape=(size, *wanted))


@broadcast_to.vjp
def broadcast_to_vjp(g: Any, x_shape: Shape) -> Any:
    return sum_to(g, shape=x_shape)


@broadcast_to.jvp
def broadcast_to_jvp(dx: Any, *, shape: Shape) -> Any:
    return broadcast_to(dx, shape=shape)


@broadcast_to.samples
def broadcast_to_samples() -> list[Call]:
    return [((normal(),), {"shape": (2, 3)}), ((normal(3),), {"shape": (2, 3)}), ((normal(2, 1),), {"shape": (4, 2, 3)}),
            ((normal(2, 3),), {"shape": (2, 3)}), ((normal(1),), {"shape": (0,)})]  # fmt: skip


@op
def sum_to(xp: Any, x: Any, *, shape: Shape) -> Any:
    """x summed over the axes that broadcasting from ``shape`` would have added or repeated: the adjoint of broadcast_to."""
    if x.ndim == 2 and x.shape[1:] == tuple(shape) and x.dtype.kind == "f" and x.dtype.itemsize > 2:
        ones = _ones if xp is np and x.shape[0] <= _SMALL else xp.ones
        return ones(x.shape[0], x.dtype) @ x  # a bias's gradient: 1.0 µs at 64 × 32, where a sum over axis 0 takes 1.7
    added = x.ndim - len(shape)
    repeated = tuple(added + place for place, size in enumerate(shape) if size == 1 and x.shape[added + place] != 1)
    return x.sum(axis=(*range(added), *repeated)).reshape(shape)


@lru_cache(maxsize=16)
def _ones(count: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A row of ones that nobody changes: making it anew takes longer than the sum."""
    return np.ones(count, dtype)


@sum_to.shape_rule
def sum_to_shape(x: Shape, *, shape: Shape) -> Shape:
    if not _broadcasts(shape, x):
        raise ValueError(f"shape {x} cannot be summed to {shape}, because {shape} does not broadcast to it")
    return tuple(shape)


sum_to.dtype_rule(sum_dtype)


@sum_to.batch_rule
def sum_to_batch(x: Any, *, shape: Shape) -> Any:
    added = x.ndim - 1 - len(shape)
    flat = reshape(x, shape=(x.shape[0], math.prod(x.shape[1 : 1 + added]), *x.shape[1 + added :])) if added else x
    summed = flat.sum(axis=1) if added else flat
    return sum_to(summed, shape=(x.shape[0], *shape))


@sum_to.vjp
def sum_to_vjp(g: Any, x_shape: Shape) -> Any:
    return broadcast_to(g, shape=x_shape)


@sum_to.jvp
def sum_to_jvp(dx: Any, *, shape: Shape) -> Any:
    return sum_to(dx, shape=shape)


@sum_to.samples
def sum_to_samples() -> list[Call]:
    x = normal(4, 2, 3)
    return [((x,), {"shape": shape}) for shape in [(), (3,), (2, 1), (1, 2, 3), (4, 2, 3)]] + [
        ((normal(0, 3),), {"shape": (3,)})
    ]


def _broadcasts(small: Shape, large: Shape) -> bool:
    """Whether an array of shape ``small`` can be broadcast to ``large``."""
    if len(small) > len(large):
        return False
    pairs = zip(reversed(small), reversed(large), strict=False)
    return all(size == 1 or size == wanted for size, wanted in pairs)


# ----------------------------------------------------------------------------------------------- indexing and its adjoint


@op(views="x")
def getitem(xp: Any, x: Any, *, index: Any) -> Any:
    """x[index], with any index that NumPy takes. The gradients of a number that is taken several times add up."""
    return x[index]


@getitem.shape_rule
def getitem_shape(x: Shape, *, index: Any) -> Shape:
    without_data = np.broadcast_to(np.empty((), np.bool_), x)  # every stride is 0
    return tuple(without_data[index].shape)


@getitem.batch_rule
def getitem_batch(x: Any, *, index: Any) -> Any:
    return getitem(x, index=_in_each(index)) if _is_basic(index) else NotImplemented


@getitem.vjp
def getitem_vjp(g: Any, x_shape: Shape, *, index: Any) -> Any:
    return add_at(g, index=index, shape=x_shape)


@getitem.jvp
def getitem_jvp(dx: Any, *, index: Any) -> Any:
    return getitem(dx, index=index)


@getitem.samples
def getitem_samples() -> list[Call]:
    x, mask = normal(4, 3), np.array([True, False, True, True])
    indices: list[Any] = [
        1, -1, (0, 2), slice(1, 3), (slice(None, None, -2), 1), (Ellipsis, None, 0), np.array([2, 0, 2, 2]), mask,
        (np.array([0, 1, 0]), np.array([2, 2, 2])), (slice(None), [0, 0]), slice(2, 2),
        np.array([[True, False, True]] * 4), np.ix_([3, 0], [1, 1]), (slice(None), None, np.array([[0], [2]])), (mask, -1),
        np.int64(2), True, [], (Ellipsis, np.array(1)), (1, Ellipsis, slice(None, None, 2)),
    ]  # fmt: skip
    return [((x,), {"index": index}) for index in indices]


@op
def add_at(xp: Any, x: Any, *, index: Any, shape: Shape) -> Any:
    """Zeros of ``shape`` to which x is added at ``index``: the adjoint of getitem."""
    result = xp.zeros(shape, x.dtype)
    if _takes_each_once(index):
        result[index] = x
    else:
        xp.add.at(result, index, x)
    return result


@add_at.shape_rule
def add_at_shape(x: Shape, *, index: Any, shape: Shape) -> Shape:
    taken = getitem_shape(tuple(shape), index=index)
    if not _broadcasts(x, taken):
        raise ValueError(f"values of shape {x} do not fit an index that takes {taken} from {shape}")
    return tuple(shape)


@add_at.batch_rule
def add_at_batch(x: Any, *, index: Any, shape: Shape) -> Any:
    if not _is_basic(index):
        return NotImplemented
    size, *rest = x.shape
    missing = len(getitem_shape(tuple(shape), index=index)) - len(rest)
    aligned = reshape(x, shape=(size, *(1,) * missing, *rest)) if missing else x
    return add_at(aligned, index=_in_each(index), shape=(size, *shape))


@add_at.vjp
def add_at_vjp(g: Any, x_shape: Shape, *, index: Any) -> Any:
    taken = getitem(g, index=index)
    return taken if taken.shape == x_shape else sum_to(taken, shape=x_shape)


@add_at.jvp
def add_at_jvp(dx: Any, *, index: Any, shape: Shape) -> Any:
    return add_at(dx, index=index, shape=shape)


@add_at.samples
def add_at_samples() -> list[Call]:
    return [
        ((normal(*np.empty((4, 3))[call["index"]].shape),), {**call, "shape": (4, 3)}) for _, call in getitem_samples()
    ]


def _is_basic(index: Any) -> bool:
    """Whether an index leaves the order of axes alone: truth values and arrays of indices may move theirs to the front."""
    parts = index if isinstance(index, tuple) else (index,)
    return _takes_each_once(index) and not any(isinstance(part, bool) for part in parts)


def _in_each(index: Any) -> tuple[Any, ...]:
    """An index that takes the same from each member of a stack."""
    return (slice(None), *index) if isinstance(index, tuple) else (slice(None), index)


def _takes_each_once(index: Any) -> bool:
    """Whether an index is made of whole numbers, slices, None and Ellipsis only, which never take a number twice."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or part is Ellipsis or isinstance(part, (int, np.integer, slice)) for part in parts)


# ------------------------------------------------------------------------------------ constants shaped like another array


@op(differentiable=False)
def ones_like(xp: Any, x: Any) -> Any:
    """Ones in the shape and dtype of x: the cotangent that a reverse sweep starts from."""
    return xp.ones_like(x)


@op(differentiable=False)
def zeros_like(xp: Any, x: Any) -> Any:
    """Zeros in the shape and dtype of x: the gradient of an input that nothing depends on."""
    return xp.zeros_like(x)


@ones_like.shape_rule
@zeros_like.shape_rule
def like_shape(x: Shape) -> Shape:
    return x


@ones_like.samples
@zeros_like.samples
def like_samples() -> list[Call]:
    return [((normal(2, 3),), {}), ((normal(),), {}), ((normal(2).astype(np.float32),), {}), ((normal(3, 2).T,), {})]
