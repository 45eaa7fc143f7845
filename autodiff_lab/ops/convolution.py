"""Two-dimensional convolution, as networks use the word, and its adjoints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np

from ..operand_rules import Shape
from ..operators import op
from .composed import composed
from .sampling import Call, normal
from .sliding import Pair, add_strided_windows, pair, window_counts
from .structure import reshape


@composed(arrays=2)
def conv2d(x: Any, w: Any, b: Any = None, stride: Pair = 1, padding: Pair = 0) -> Any:
    """What networks call a convolution: each window of an image times each kernel, summed, plus a bias.

    out[n, o, i, j] = b[o] + Σ x[n, c, i · stride + p, j · stride + q] · w[o, c, p, q]: a cross-correlation, because the
    kernel is not turned round.

    Shapes: x (images, channels, H, W), w (outputs, channels, kh, kw), b (outputs,); the result (images, outputs, rows,
    columns) with ⌊(size + 2 · padding − kernel) / stride⌋ + 1 rows and columns. Padding is zeros.

    >>> ops.conv2d(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2)), [0.5])
    array([[[[4.5, 4.5],
             [4.5, 4.5]]]])
    """
    result = correlate2d(x, w, stride=stride, padding=padding)
    return result if b is None else result + reshape(b, shape=(-1, 1, 1))


@conv2d.samples
def conv2d_samples() -> list[Call]:
    calls = correlate2d_samples()
    return [((x, w, normal(w.shape[0], seed=3).astype(w.dtype)), options) for (x, w), options in calls[-2:]]


# The product of images x, kernels w and cotangents g is linear in each, so each of the three ops below is the derivative of the
# others. All multiply matrices of strips: what a column of the kernel meets, in all rows of the image. What a row of the kernel
# meets is a run of rows in them, a matrix as it lies: so numbers are copied once for each column of the kernel, not for each
# number in it, and no axis is moved. For 16 images of 32 × 32, 3 × 3 kernels, 32 → 32, an op takes 3.2 ms on one core, 2.7 of
# them in matrix products; with copied windows it took 3.8.

_IN_CACHE = 1 << 20  # bytes of strips that are multiplied at a time


@op
def correlate2d(xp: Any, x: Any, w: Any, *, stride: Pair = 1, padding: Pair = 0) -> Any:
    """Each window of the images x times each kernel in w, summed: conv2d without a bias."""
    shape = correlate2d_shape(x.shape, w.shape, stride=stride, padding=padding)
    outputs, channels, kh, kw = w.shape
    kernels = w.transpose(2, 0, 3, 1).reshape(kh, outputs, kw * channels)
    products = [
        reduce(xp.add, map(xp.matmul, kernels, strips)) for _, strips in _strips(xp, x, (kh, kw), stride, padding)
    ]
    return xp.concatenate(products).reshape(shape)


@op
def correlate2d_images(xp: Any, y: Any, w: Any, *, size: Shape, stride: Pair = 1, padding: Pair = 0) -> Any:
    """Each number of y times its kernel, added where its window lies in the image: the adjoint of correlate2d in x."""
    correlate2d_images_shape(y.shape, w.shape, size=size, stride=stride, padding=padding)
    steps, (top, left), (outputs, channels, kh, kw) = pair(stride, "stride"), pair(padding, "padding"), w.shape
    if steps == (1, 1) and top < kh and left < kw:  # windows of y times the kernels turned round: nothing overlaps
        turned = w[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
        return correlate2d(y, turned, padding=(kh - 1 - top, kw - 1 - left))
    parts = xp.matmul(w.reshape(outputs, channels * kh * kw).T, _as_rows(y))
    parts = parts.reshape(y.shape[0], channels, kh, kw, *y.shape[2:]).transpose(0, 1, 4, 5, 2, 3)
    result = xp.zeros((y.shape[0], channels, size[0] + 2 * top, size[1] + 2 * left), parts.dtype)
    add_strided_windows(result, parts, steps, 2)
    return result[:, :, top : top + size[0], left : left + size[1]]


@op
def correlate2d_kernels(xp: Any, x: Any, y: Any, *, kernel: Shape, stride: Pair = 1, padding: Pair = 0) -> Any:
    """The sum of all windows of x, each times its number in y: kernels of size ``kernel``, the adjoint of correlate2d in w."""
    correlate2d_kernels_shape(x.shape, y.shape, kernel=tuple(kernel), stride=stride, padding=padding)
    numbers = _as_rows(y).transpose(0, 2, 1)

    def product(strip: Any, start: int) -> Any:
        found = xp.matmul(strip, numbers[start : start + len(strip)])
        return found.sum(axis=0, dtype=found.dtype)

    products = (
        xp.stack([product(strip, start) for strip in strips])
        for start, strips in _strips(xp, x, tuple(kernel), stride, padding)
    )
    return reduce(xp.add, products).reshape(*kernel, x.shape[1], y.shape[1]).transpose(3, 2, 0, 1)


def _as_rows(x: Any) -> Any:
    """Images as matrices: a row for each channel."""
    return x.reshape(*x.shape[:2], math.prod(x.shape[2:]))


def _strips(xp: Any, x: Any, kernel: Any, stride: Pair, padding: Pair) -> Iterator[tuple[int, list[Any]]]:
    """What each row of a kernel meets, (images, kw · channels, windows), for as many images at a time as fit into the cache.

    With the number of the first of these images.
    """
    (images, channels, height, width), (kh, kw), (top, left) = x.shape, kernel, pair(padding, "padding")
    (down, across), (rows, columns) = pair(stride, "stride"), window_counts(x.shape[2:], kernel, stride, padding)
    shape = kw, channels, height + 2 * top, columns
    count = max(1, _IN_CACHE // max(1, math.prod(shape) * x.dtype.itemsize))
    for start in range(0, max(1, images), count):
        part = x[start : start + count]
        strips = xp.zeros((len(part), *shape), x.dtype)
        for j in range(kw):
            here, there = _overlap(j - left, across, columns, width)
            strips[:, j, :, top : top + height, here] = part[..., there]
        met = (strips[..., i : i + down * (rows - 1) + 1 : down, :] for i in range(kh))
        yield start, [one.reshape(len(part), kw * channels, rows * columns) for one in met]


def _overlap(first: int, step: int, count: int, size: int) -> tuple[slice, slice]:
    """Which of ``count`` places, ``step`` apart from ``first`` on, lie in an axis of ``size``, and where they lie there."""
    start = max(0, -(first // step))
    stop = max(start, min(count, (size - 1 - first) // step + 1))
    return slice(start, stop), slice(first + start * step, first + stop * step, step)


@correlate2d.shape_rule
def correlate2d_shape(x: Shape, w: Shape, *, stride: Pair, padding: Pair) -> Shape:
    if len(x) != 4 or len(w) != 4 or x[1] != w[1]:
        raise ValueError(
            f"x must be (images, channels, H, W) and w (outputs, channels, kh, kw) with as many channels, got {x} and {w}"
        )
    return (x[0], w[0], *window_counts(x[2:], w[2:], stride, padding))


@correlate2d_images.shape_rule
def correlate2d_images_shape(y: Shape, w: Shape, *, size: Shape, stride: Pair, padding: Pair) -> Shape:
    images = (y[0], w[1], *size)
    _check_fits(y, correlate2d_shape(images, w, stride=stride, padding=padding))
    return images


@correlate2d_kernels.shape_rule
def correlate2d_kernels_shape(x: Shape, y: Shape, *, kernel: Shape, stride: Pair, padding: Pair) -> Shape:
    kernels = (y[1], x[1], *kernel)
    _check_fits(y, correlate2d_shape(x, kernels, stride=stride, padding=padding))
    return kernels


def _check_fits(y: Shape, expected: Shape) -> None:
    if y != expected:
        raise ValueError(f"y has the shape {y}, but the windows give {expected}")


@correlate2d.vjp("x")
def correlate2d_vjp_x(g: Any, w: Any, x_shape: Shape, *, stride: Pair, padding: Pair) -> Any:
    return correlate2d_images(g, w, size=x_shape[2:], stride=stride, padding=padding)


@correlate2d.vjp("w")
def correlate2d_vjp_w(g: Any, x: Any, w_shape: Shape, *, stride: Pair, padding: Pair) -> Any:
    return correlate2d_kernels(x, g, kernel=w_shape[2:], stride=stride, padding=padding)


@correlate2d.jvp("x")
def correlate2d_jvp_x(dx: Any, w: Any, *, stride: Pair, padding: Pair) -> Any:
    return correlate2d(dx, w, stride=stride, padding=padding)


@correlate2d.jvp("w")
def correlate2d_jvp_w(dw: Any, x: Any, *, stride: Pair, padding: Pair) -> Any:
    return correlate2d(x, dw, stride=stride, padding=padding)


@correlate2d_images.vjp("y")
def correlate2d_images_vjp_y(g: Any, w: Any, *, stride: Pair, padding: Pair) -> Any:
    return correlate2d(g, w, stride=stride, padding=padding)


@correlate2d_images.vjp("w")
def correlate2d_images_vjp_w(g: Any, y: Any, w_shape: Shape, *, stride: Pair, padding: Pair) -> Any:
    return correlate2d_kernels(g, y, kernel=w_shape[2:], stride=stride, padding=padding)


@correlate2d_images.jvp("y")
def correlate2d_images_jvp_y(dy: Any, w: Any, *, size: Shape, stride: Pair, padding: Pair) -> Any:
    return correlate2d_images(dy, w, size=size, stride=stride, padding=padding)


@correlate2d_images.jvp("w")
def correlate2d_images_jvp_w(dw: Any, y: Any, *, size: Shape, stride: Pair, padding: Pair) -> Any:
    return correlate2d_images(y, dw, size=size, stride=stride, padding=padding)


@correlate2d_kernels.vjp("x")
def correlate2d_kernels_vjp_x(g: Any, y: Any, x_shape: Shape, *, stride: Pair, padding: Pair) -> Any:
    return correlate2d_images(y, g, size=x_shape[2:], stride=stride, padding=padding)


@correlate2d_kernels.vjp("y")
def correlate2d_kernels_vjp_y(g: Any, x: Any, *, stride: Pair, padding: Pair) -> Any:
    return correlate2d(x, g, stride=stride, padding=padding)


@correlate2d_kernels.jvp("x")
def correlate2d_kernels_jvp_x(dx: Any, y: Any, *, kernel: Shape, stride: Pair, padding: Pair) -> Any:
    return correlate2d_kernels(dx, y, kernel=kernel, stride=stride, padding=padding)


@correlate2d_kernels.jvp("y")
def correlate2d_kernels_jvp_y(dy: Any, x: Any, *, kernel: Shape, stride: Pair, padding: Pair) -> Any:
    return correlate2d_kernels(x, dy, kernel=kernel, stride=stride, padding=padding)


@correlate2d.samples
def correlate2d_samples() -> list[Call]:
    x, w = normal(2, 2, 5, 4), normal(3, 2, 3, 2, seed=1)
    settings: list[dict[str, Any]] = [{}, {"stride": 2}, {"stride": (1, 3), "padding": (2, 1)}, {"padding": 1}]
    calls: list[Call] = [((x, w), options) for options in settings]
    return [*calls, ((x.T, normal(1, 5, 1, 1)), {}), ((x.astype(np.float32), w.astype(np.float32)), {"stride": 2})]


@correlate2d_images.samples
def correlate2d_images_samples() -> list[Call]:
    return [
        ((_cotangent(x, w, options), w), {"size": x.shape[2:], **options}) for (x, w), options in correlate2d_samples()
    ]


@correlate2d_kernels.samples
def correlate2d_kernels_samples() -> list[Call]:
    return [
        ((x, _cotangent(x, w, options)), {"kernel": w.shape[2:], **options})
        for (x, w), options in correlate2d_samples()
    ]


def _cotangent(x: Any, w: Any, options: dict[str, Any]) -> Any:
    shape = correlate2d_shape(x.shape, w.shape, **{"stride": 1, "padding": 0, **options})
    return normal(*shape, seed=4).astype(x.dtype)
