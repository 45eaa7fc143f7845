"""Answers to the exercises of lesson 40 on broadcasting and sum, right and wrong: what the checks are tested on."""

from __future__ import annotations

import numpy as np

Array = np.ndarray
Axis = int | tuple[int, ...] | None

# -------------------------------------------------------------------------------------------------------- unbroadcast


def unbroadcast(g: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The gradient for an array of this shape that was broadcast to the shape of g."""
    new_axes = tuple(range(g.ndim - len(shape)))
    g = g.sum(axis=new_axes)
    stretched = tuple(axis for axis, size in enumerate(shape) if size == 1)
    return np.asarray(g.sum(axis=stretched, keepdims=True))


def unbroadcast_by_reshape(g: Array, shape: tuple[int, ...]) -> Array:
    """All axes at once: give the small shape its leading ones, sum, then take them off."""
    full = (1,) * (g.ndim - len(shape)) + shape
    axes = tuple(a for a in range(g.ndim) if full[a] == 1)
    return np.asarray(g.sum(axis=axes, keepdims=True).reshape(shape))


def unbroadcast_one_at_a_time(g: Array, shape: tuple[int, ...]) -> Array:
    """One axis after the other."""
    while g.ndim > len(shape):
        g = np.add.reduce(g, axis=0)
    for axis, size in enumerate(shape):
        if g.shape[axis] != size:
            g = np.add.reduce(g, axis=axis, keepdims=True)
    return np.asarray(g)


def unbroadcast_nothing(g: Array, shape: tuple[int, ...]) -> Array:
    """Broadcasting needs nothing."""
    return g


def unbroadcast_new_axes_only(g: Array, shape: tuple[int, ...]) -> Array:
    """Forgets the axes of size 1 that were stretched."""
    return np.asarray(g.sum(axis=tuple(range(g.ndim - len(shape)))))


def unbroadcast_drops_axes(g: Array, shape: tuple[int, ...]) -> Array:
    """The stretched axes are summed, and gone."""
    g = g.sum(axis=tuple(range(g.ndim - len(shape))))
    return np.asarray(g.sum(axis=tuple(axis for axis, size in enumerate(shape) if size == 1)))


def unbroadcast_mean(g: Array, shape: tuple[int, ...]) -> Array:
    """The average of the copies."""
    g = g.mean(axis=tuple(range(g.ndim - len(shape))))
    return np.asarray(g.mean(axis=tuple(axis for axis, size in enumerate(shape) if size == 1), keepdims=True))


def unbroadcast_first_copy(g: Array, shape: tuple[int, ...]) -> Array:
    """One copy stands for all."""
    g = g[(0,) * (g.ndim - len(shape))]
    return np.array(g[tuple(slice(0, size) for size in shape)])


def unbroadcast_aligned_left(g: Array, shape: tuple[int, ...]) -> Array:
    """The new axes come last, as if shapes were compared from the left."""
    g = g.sum(axis=tuple(range(len(shape), g.ndim)))
    return np.asarray(g.sum(axis=tuple(axis for axis, size in enumerate(shape) if size == 1), keepdims=True))


def unbroadcast_once(g: Array, shape: tuple[int, ...]) -> Array:
    """One new axis at most."""
    g = g.sum(axis=0) if g.ndim > len(shape) else g
    return np.asarray(g.sum(axis=tuple(axis for axis, size in enumerate(shape) if size == 1), keepdims=True))


def unbroadcast_by_size(g: Array, shape: tuple[int, ...]) -> Array:
    """Sums over the first axis whose size the small shape does not have."""
    while g.ndim > len(shape):
        strange = (axis for axis, size in enumerate(g.shape) if size not in shape)
        g = g.sum(axis=next(strange, 0))
    return np.asarray(g.sum(axis=tuple(axis for axis, size in enumerate(shape) if size == 1), keepdims=True))


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


def sum_of_all_in_float64(g: Array, shape: tuple[int, ...], axis: Axis = None, keepdims: bool = False) -> Array:
    """One Python number for a sum over everything."""
    return np.full(shape, g.item()) if axis is None else sum_vjp(g, shape, axis, keepdims)


def sum_from_the_front(g: Array, shape: tuple[int, ...], axis: Axis = None, keepdims: bool = False) -> Array:
    """Compares the numbers of the axes with what stands in axis."""
    axes = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return np.broadcast_to(g.reshape([1 if a in axes else n for a, n in enumerate(shape)]), shape)


def sum_one_axis(g: Array, shape: tuple[int, ...], axis: Axis = None, keepdims: bool = False) -> Array:
    """Puts back the first axis of several."""
    return sum_vjp(g, shape, axis[0] if isinstance(axis, tuple) and not keepdims else axis, keepdims)
