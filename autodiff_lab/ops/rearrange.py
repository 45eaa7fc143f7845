"""Other arrangements of the same numbers: axes moved, turned round, repeated, padded. Most are made of other ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..operand_rules import Shape
from ..operators import op
from .composed import composed
from .sampling import Call, normal
from .structure import add_at, broadcast_to, getitem, reshape, transpose

Axes = int | tuple[int, ...]


def named_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from 0, in the order in which they are named."""
    named = (axis,) if isinstance(axis, (int, np.integer)) else tuple(axis)
    for one in named:
        if not -ndim <= one < ndim:
            raise ValueError(f"axis {one} is out of range for an array of {ndim} axes")
    places = tuple(int(one) % ndim for one in named)
    if len(set(places)) != len(places):
        raise ValueError(f"axis {axis!r} names an axis twice")
    return places


# -------------------------------------------------------------------------------------------------------- the order of axes


@composed()
def moveaxis(x: Any, source: Axes, destination: Axes) -> Any:
    """The axes ``source`` at the places ``destination``, the others in their order.

    >>> ops.moveaxis(np.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    sources, destinations = named_axes(source, x.ndim), named_axes(destination, x.ndim)
    if len(sources) != len(destinations):
        raise ValueError(f"source {source} and destination {destination} must name as many axes")
    order = [place for place in range(x.ndim) if place not in sources]
    for target, place in sorted(zip(destinations, sources, strict=True)):
        order.insert(target, place)
    return transpose(x, axes=tuple(order))


@moveaxis.samples
def moveaxis_samples() -> list[Call]:
    x = normal(2, 3, 4)
    return [
        ((x,), {"source": 0, "destination": -1}),
        ((x.astype(np.float32),), {"source": (0, 2), "destination": (1, 0)}),
    ]


@composed()
def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    """Two axes exchanged.

    >>> ops.swapaxes(np.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    (one,), (other,) = named_axes(axis1, x.ndim), named_axes(axis2, x.ndim)
    order = list(range(x.ndim))
    order[one], order[other] = other, one
    return transpose(x, axes=tuple(order))


@swapaxes.samples
def swapaxes_samples() -> list[Call]:
    return [((normal(2, 3, 4),), {"axis1": 0, "axis2": -1}), ((normal(2, 0),), {"axis1": 0, "axis2": 1})]


# ------------------------------------------------------------------------------------------------------------ axes of size 1


@composed()
def expand_dims(x: Any, axis: Axes) -> Any:
    """New axes of size 1 at the places ``axis`` of the result.

    >>> ops.expand_dims(np.zeros((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    count = 1 if isinstance(axis, (int, np.integer)) else len(axis)
    new = named_axes(axis, x.ndim + count)
    sizes = iter(x.shape)
    return reshape(x, shape=tuple(1 if place in new else next(sizes) for place in range(x.ndim + count)))


@expand_dims.samples
def expand_dims_samples() -> list[Call]:
    return [((normal(2, 3),), {"axis": (0, -1)}), ((normal(3, 2).T,), {"axis": 1}), ((normal(),), {"axis": 0})]


@composed()
def squeeze(x: Any, axis: Axes | None = None) -> Any:
    """x without axes of size 1: those that ``axis`` names, or all.

    >>> ops.squeeze(np.zeros((1, 3, 1)), 0).shape
    (3, 1)
    """
    ones = tuple(place for place, size in enumerate(x.shape) if size == 1) if axis is None else named_axes(axis, x.ndim)
    for place in ones:
        if x.shape[place] != 1:
            raise ValueError(f"axis {place} of the shape {x.shape} has size {x.shape[place]}, not 1")
    return reshape(x, shape=tuple(size for place, size in enumerate(x.shape) if place not in ones))


@squeeze.samples
def squeeze_samples() -> list[Call]:
    return [((normal(1, 3, 1),), {}), ((normal(1, 3, 1),), {"axis": -1}), ((normal(1, 1),), {"axis": (0, 1)})]


@composed()
def ravel(x: Any) -> Any:
    """All numbers in one row.

    >>> ops.ravel([[1.0, 2.0], [3.0, 4.0]])
    array([1., 2., 3., 4.])
    """
    return reshape(x, shape=-1)


@ravel.samples
def ravel_samples() -> list[Call]:
    return [((normal(3, 2).T,), {}), ((normal(),), {}), ((normal(0, 2),), {})]


def _picked(x: Any, places: Any, axis: int) -> Any:
    """The entries at ``places`` along an axis."""
    return getitem(x, index=(*(slice(None),) * axis, places))


# ---------------------------------------------------------------------------------------------------- turned round, rolled


@composed()
def flip(x: Any, axis: Axes | None = None) -> Any:
    """The entries along ``axis`` in reverse order; None reverses every axis.

    >>> ops.flip([1.0, 2.0, 3.0])
    array([3., 2., 1.])
    """
    places = range(x.ndim) if axis is None else named_axes(axis, x.ndim)
    backwards = slice(None, None, -1)
    return getitem(x, index=tuple(backwards if place in places else slice(None) for place in range(x.ndim)))


@flip.samples
def flip_samples() -> list[Call]:
    x = normal(2, 3)
    return [
        ((x,), {}),
        ((x.T,), {"axis": 0}),
        ((x,), {"axis": (-1, 0)}),
        ((normal(),), {}),
        ((normal(0, 2),), {"axis": 0}),
    ]


@composed()
def roll(x: Any, shift: Axes, axis: Axes | None = None) -> Any:
    """The entries pushed ``shift`` places along ``axis``; what falls off the end comes in at the start.

    >>> ops.roll([1.0, 2.0, 3.0], 1)
    array([3., 1., 2.])
    """
    if axis is None:
        return reshape(roll(reshape(x, shape=-1), shift, 0), shape=x.shape)
    places = named_axes(axis, x.ndim)
    shifts = (shift,) * len(places) if isinstance(shift, (int, np.integer)) else tuple(shift)
    if len(shifts) != len(places):
        raise ValueError(f"shift {shift} and axis {axis} must have as many entries")
    for one, place in zip(shifts, places, strict=True):
        x = _picked(x, np.roll(np.arange(x.shape[place]), one), place)
    return x


@roll.samples
def roll_samples() -> list[Call]:
    x = normal(3, 4)
    return [((x,), {"shift": 5}), ((x.T,), {"shift": -1, "axis": 0}), ((x,), {"shift": (1, 2), "axis": (0, 1)}),
            ((normal(0, 2),), {"shift": 1, "axis": 0})]  # fmt: skip


# ----------------------------------------------------------------------------------------------------------------- repeated


@composed()
def repeat(x: Any, repeats: int | tuple[int, ...], axis: int | None = None) -> Any:
    """Each entry along ``axis`` several times in a row; None repeats each number. The gradients of the copies add up.

    >>> ops.repeat([1.0, 2.0], 2)
    array([1., 1., 2., 2.])
    """
    if axis is None:
        return repeat(reshape(x, shape=-1), repeats, 0)
    (place,) = named_axes(axis, x.ndim)
    return _picked(x, np.repeat(np.arange(x.shape[place]), repeats), place)


@repeat.samples
def repeat_samples() -> list[Call]:
    x = normal(2, 3)
    return [((x,), {"repeats": 2}), ((x,), {"repeats": (2, 0, 1), "axis": 1}), ((x.T,), {"repeats": 3, "axis": -1})]


@composed()
def tile(x: Any, reps: Axes) -> Any:
    """x laid next to itself, ``reps`` times along each axis. The gradients of the copies add up.

    >>> ops.tile([1.0, 2.0], 2)
    array([1., 2., 1., 2.])
    """
    counts = (reps,) if isinstance(reps, (int, np.integer)) else tuple(reps)
    ndim = max(len(counts), x.ndim)
    counts = (1,) * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - x.ndim) + tuple(x.shape)
    apart = reshape(x, shape=tuple(part for size in shape for part in (1, size)))
    laid = broadcast_to(apart, shape=tuple(part for pair in zip(counts, shape, strict=True) for part in pair))
    return reshape(laid, shape=tuple(count * size for count, size in zip(counts, shape, strict=True)))


@tile.samples
def tile_samples() -> list[Call]:
    x = normal(2, 3)
    return [((x,), {"reps": 2}), ((x.T,), {"reps": (2, 1, 3)}), ((x,), {"reps": (3, 1)}), ((normal(),), {"reps": 2})]


# ------------------------------------------------------------------------------------------------------------------- padded


_PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


@op
def pad(xp: Any, x: Any, *, pad_width: Any, mode: str = "constant", constant_values: float = 0.0) -> Any:
    """x with more entries before and after each axis: ``pad_width`` is ((before, after), …), a pair for all axes, or a number.

    The new entries are ``constant_values``, or with mode="edge", "reflect", "symmetric" or "wrap" copies of entries of x.

    >>> ops.pad([1.0, 2.0], (1, 2), constant_values=9.0)
    array([9., 1., 2., 9., 9.])
    """
    _check_mode(mode)
    options = {"constant_values": constant_values} if mode == "constant" else {}
    return xp.pad(x, pad_width, mode=mode, **options)


@pad.shape_rule
def pad_shape(x: Shape, *, pad_width: Any, mode: str) -> Shape:
    _check_mode(mode)
    widths = _widths(pad_width, len(x))
    if mode != "constant" and any(size == 0 and width != (0, 0) for size, width in zip(x, widths, strict=True)):
        raise ValueError(f"mode {mode!r} copies entries, but an axis of the shape {x} has none; use mode='constant'")
    return tuple(before + size + after for size, (before, after) in zip(x, widths, strict=True))


@pad.vjp
def pad_vjp(g: Any, x_shape: Shape, *, pad_width: Any, mode: str) -> Any:
    if mode != "constant":
        return add_at(g, index=_copied(x_shape, pad_width, mode), shape=x_shape)
    starts = [before for before, _ in _widths(pad_width, len(x_shape))]
    return getitem(g, index=tuple(slice(start, start + size) for start, size in zip(starts, x_shape, strict=True)))


@pad.jvp
def pad_jvp(dx: Any, *, pad_width: Any, mode: str) -> Any:
    return pad(dx, pad_width, mode)


def _check_mode(mode: str) -> None:
    if mode not in _PAD_MODES:
        raise ValueError(f"pad knows the modes {', '.join(_PAD_MODES)}; got {mode!r}")


def _widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    """The entries before and after each axis."""
    try:
        pairs = np.broadcast_to(np.asarray(pad_width), (ndim, 2))
    except ValueError:
        raise ValueError(
            f"pad_width {pad_width} does not give a pair (before, after) for each of {ndim} axes"
        ) from None
    return [(int(before), int(after)) for before, after in pairs]


def _copied(shape: Shape, pad_width: Any, mode: str) -> Any:
    """For each place of the padded array the index of the entry that it is a copy of."""
    widths = _widths(pad_width, len(shape))
    along: list[Any] = [np.pad(np.arange(size), pair, mode=mode) for size, pair in zip(shape, widths, strict=True)]  # type: ignore[call-overload]
    return np.ix_(*along)


@pad.samples
def pad_samples() -> list[Call]:
    x = normal(2, 3)
    widths = ((1, 2), (0, 1))
    others = [((x,), {"pad_width": (1, 1), "mode": mode}) for mode in ("edge", "reflect", "symmetric", "wrap")]
    return [*others, ((x,), {"pad_width": widths, "constant_values": 0.5}), ((x.T,), {"pad_width": 1}),
            ((normal(0, 2),), {"pad_width": (1, 2)}), ((normal(),), {"pad_width": 0}),
            ((x.astype(np.float32),), {"pad_width": widths, "constant_values": 0.5})]  # fmt: skip
