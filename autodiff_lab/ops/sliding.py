"""Windows that slide over the last two axes of images, and pooling, which is made of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..bindings import dtype_of
from ..operand_rules import Shape
from ..operators import op
from .composed import composed
from .ordering import max
from .rearrange import pad
from .reduce import mean
from .sampling import Call, normal

Pair = int | tuple[int, int]


def pair(value: Any, name: str) -> tuple[int, int]:
    """A number for both axes of an image, or one for each."""
    found = (value, value) if isinstance(value, (int, np.integer)) else tuple(value)
    if len(found) != 2 or not all(isinstance(one, (int, np.integer)) and one >= 0 for one in found):
        raise ValueError(f"{name} must be a whole number or a pair of them, not below 0; got {value!r}")
    return int(found[0]), int(found[1])


def window_counts(size: Shape, kernel: tuple[int, int], stride: Pair, padding: Pair = 0) -> tuple[int, int]:
    """How many windows fit along each axis: ⌊(size + 2 · padding − kernel) / stride⌋ + 1."""
    steps, edges = pair(stride, "stride"), pair(padding, "padding")
    if 0 in steps or 0 in kernel:
        raise ValueError(f"stride and kernel must be at least 1, got stride {steps} and kernel {kernel}")
    padded = tuple(one + 2 * edge for one, edge in zip(size, edges, strict=True))
    if padded[0] < kernel[0] or padded[1] < kernel[1]:
        raise ValueError(f"a kernel of size {kernel} does not fit into an image of size {padded}, padding included")
    rows, columns = ((one - width) // step + 1 for one, width, step in zip(padded, kernel, steps, strict=True))
    return rows, columns


def strided_windows(xp: Any, x: Any, kernel: tuple[int, int], steps: tuple[int, int], axis: int) -> Any:
    """A view of the windows over the axes ``axis`` and ``axis + 1``: their positions there, and inside them two axes behind."""
    rows, columns = window_counts(x.shape[axis : axis + 2], kernel, steps)
    before, behind = slice(axis), slice(axis + 2, None)
    down, across = x.strides[axis : axis + 2]
    return xp.lib.stride_tricks.as_strided(
        x,
        (*x.shape[before], rows, columns, *kernel, *x.shape[behind]),
        (*x.strides[before], down * steps[0], across * steps[1], down, across, *x.strides[behind]),
    )


def add_strided_windows(result: Any, parts: Any, steps: tuple[int, int], axis: int) -> None:
    """Add windows to an array where they overlap: the adjoint of ``strided_windows``, in place."""
    rows, columns, height, width = parts.shape[axis : axis + 4]
    before = (slice(None),) * axis
    for i in range(height):
        for j in range(width):
            down = slice(i, i + steps[0] * (rows - 1) + 1, steps[0])
            across = slice(j, j + steps[1] * (columns - 1) + 1, steps[1])
            result[(*before, down, across)] += parts[(*before, slice(None), slice(None), i, j)]


# -------------------------------------------------------------------------------------------------------------- windows


@op(views="x")
def windows(xp: Any, x: Any, *, kernel: Pair, stride: Pair = 1) -> Any:
    """All windows of size ``kernel`` over the last two axes of x, ``stride`` apart: (…, H, W) → (…, rows, columns, kh, kw)."""
    return strided_windows(xp, x, pair(kernel, "kernel"), pair(stride, "stride"), x.ndim - 2)


@windows.shape_rule
def windows_shape(x: Shape, *, kernel: Pair, stride: Pair) -> Shape:
    if len(x) < 2:
        raise ValueError(f"windows slide over the last two axes, but x has the shape {x}")
    size = pair(kernel, "kernel")
    return (*x[:-2], *window_counts(x[-2:], size, stride), *size)


@windows.vjp
def windows_vjp(g: Any, x_shape: Shape, *, stride: Pair) -> Any:
    return add_windows(g, size=x_shape[-2:], stride=stride)


@windows.jvp
def windows_jvp(dx: Any, *, kernel: Pair, stride: Pair) -> Any:
    return windows(dx, kernel=kernel, stride=stride)


@windows.samples
def windows_samples() -> list[Call]:
    x = normal(2, 5, 6)
    return [((x,), {"kernel": 2}), ((x,), {"kernel": (3, 2), "stride": (1, 2)}), ((x.T,), {"kernel": 2, "stride": 2}),
            ((x.astype(np.float32),), {"kernel": 1, "stride": 3}), ((normal(4, 4),), {"kernel": 4})]  # fmt: skip


@op
def add_windows(xp: Any, x: Any, *, size: Shape, stride: Pair = 1) -> Any:
    """Images of ``size`` to which windows are added where they overlap: the adjoint of windows."""
    add_windows_shape(x.shape, size=size, stride=stride)
    result = xp.zeros((*x.shape[:-4], *size), x.dtype)
    add_strided_windows(result, x, pair(stride, "stride"), x.ndim - 4)
    return result


@add_windows.shape_rule
def add_windows_shape(x: Shape, *, size: Shape, stride: Pair) -> Shape:
    expected = windows_shape((*x[:-4], *size), kernel=x[-2:], stride=stride)
    if x != expected:
        raise ValueError(f"windows of shape {x} do not come from images of size {size}: those give {expected}")
    return (*x[:-4], *size)


@add_windows.vjp
def add_windows_vjp(g: Any, x_shape: Shape, *, stride: Pair) -> Any:
    return windows(g, kernel=x_shape[-2:], stride=stride)


@add_windows.jvp
def add_windows_jvp(dx: Any, *, size: Shape, stride: Pair) -> Any:
    return add_windows(dx, size=size, stride=stride)


@add_windows.samples
def add_windows_samples() -> list[Call]:
    calls = [(x, call, windows_shape(x.shape, **{"stride": 1, **call})) for (x,), call in windows_samples()]
    return [((normal(*shape).astype(x.dtype),), {"size": x.shape[-2:], "stride": call.get("stride", 1)})
            for x, call, shape in calls]  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- pooling


@composed()
def max_pool2d(x: Any, kernel: Pair, stride: Pair | None = None, padding: Pair = 0) -> Any:
    """The largest number in each window. Equal largest numbers share the gradient; padding counts as −∞.

    Shapes: x (…, H, W); the result (…, rows, columns) with ⌊(size + 2 · padding − kernel) / stride⌋ + 1 windows along each
    axis. ``stride`` is the kernel's size unless given.

    >>> ops.max_pool2d(np.arange(16.0).reshape(4, 4), 2)
    array([[ 5.,  7.],
           [13., 15.]])
    """
    if any(pair(padding, "padding")) and dtype_of(x).kind != "f":
        raise TypeError(
            f"max_pool2d: padding counts as −∞, which {dtype_of(x)} does not have; make x floating with astype"
        )
    return max(_pooled(x, kernel, stride, padding, -math.inf), axis=(-2, -1))


@composed()
def avg_pool2d(x: Any, kernel: Pair, stride: Pair | None = None, padding: Pair = 0) -> Any:
    """The mean of each window. Padding is zeros, which count in the mean. Shapes as in max_pool2d.

    >>> ops.avg_pool2d(np.arange(16.0).reshape(4, 4), 2)
    array([[ 2.5,  4.5],
           [10.5, 12.5]])
    """
    return mean(_pooled(x, kernel, stride, padding, 0.0), axis=(-2, -1))


def _pooled(x: Any, kernel: Pair, stride: Pair | None, padding: Pair, filling: float) -> Any:
    """The windows of a padded image."""
    size, edges = pair(kernel, "kernel"), pair(padding, "padding")
    if edges[0] >= size[0] or edges[1] >= size[1]:
        raise ValueError(f"padding {edges} must be smaller than the kernel {size}, or some windows hold nothing else")
    if any(edges):
        widths = (*((0, 0) for _ in range(x.ndim - 2)), (edges[0], edges[0]), (edges[1], edges[1]))
        x = pad(x, widths, constant_values=filling)
    return windows(x, kernel=size, stride=size if stride is None else stride)


@max_pool2d.samples
@avg_pool2d.samples
def pooling_samples() -> list[Call]:
    x = normal(2, 3, 4, 5)
    return [((x,), {"kernel": 2}), ((x,), {"kernel": 3, "stride": 1, "padding": 1}),
            ((x.T,), {"kernel": (2, 1), "stride": (1, 2)}), ((x.astype(np.float32),), {"kernel": 2, "padding": (1, 0)}),
            ((normal(4, 4),), {"kernel": 2})]  # fmt: skip
