"""Repairs of the patients that break a promise, right and wrong: what their checks are tested on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import numpy as np

Array = np.ndarray
Function = Callable[..., Any]
Shape = tuple[int, ...]
Kernels = dict[tuple[str, str | None], Function]

# ---------------------------------------------------------------------------------------------------- broadcast_shape


def broadcast_by_numpy(x: Shape, y: Shape) -> Shape:
    """NumPy's own rule."""
    return np.broadcast_shapes(x, y)


def broadcast_from_the_end(x: Shape, y: Shape) -> list[int]:
    """Pairs from the right."""
    turned = [b if a == 1 else a for a, b in zip_longest(x[::-1], y[::-1], fillvalue=1)]
    return turned[::-1]


def broadcast_shorter(x: Shape, y: Shape) -> Shape:
    """Pairs from the right, as long as there are some."""
    turned = [b if a == 1 else a for a, b in zip(x[::-1], y[::-1], strict=False)]
    return tuple(turned[::-1])


def broadcast_larger(x: Shape, y: Shape) -> Shape:
    """The larger of two sizes."""
    rank = max(len(x), len(y))
    wide = [(1,) * (rank - len(one)) + one for one in (x, y)]
    return tuple(map(max, *wide)) if rank else ()


def broadcast_without_ones(x: Shape, y: Shape) -> Shape:
    """Drops the axes of size 1."""
    return tuple(size for size in np.broadcast_shapes(x, y) if size != 1)


def broadcast_longer(x: Shape, y: Shape) -> Shape:
    """The shape with more axes."""
    return x if len(x) >= len(y) else y


def broadcast_turned(x: Shape, y: Shape) -> Shape:
    """Pairs from the right, and never turned back."""
    return tuple(b if a == 1 else a for a, b in zip_longest(x[::-1], y[::-1], fillvalue=1))


def broadcast_first(x: Shape, y: Shape) -> Shape:
    """Only missing axes are added."""
    rank = max(len(x), len(y))
    return y[: rank - len(x)] + x


# ---------------------------------------------------------------------------------------------------------- div_dtype


def div_dtype_by_trying(x: str, y: str) -> Any:
    """Ask NumPy with two arrays."""
    return (np.ones(1, x) / np.ones(1, y)).dtype


def div_dtype_double(x: str, y: str) -> Any:
    """Always double precision."""
    return np.dtype("float64")


def div_dtype_single(x: str, y: str) -> Any:
    """Whole numbers become float32."""
    found = np.result_type(x, y)
    return found if found.kind == "f" else np.dtype("float32")


def div_dtype_first(x: str, y: str) -> Any:
    """The first input's where it is floating."""
    found = np.dtype(x)
    return found if found.kind == "f" else np.dtype("float64")


def div_dtype_larger(x: str, y: str) -> Any:
    """The input with more bytes, made floating."""
    found = max(np.dtype(x), np.dtype(y), key=lambda one: one.itemsize)
    return np.dtype(f"float{8 * found.itemsize}")


def div_dtype_floating_one(x: str, y: str) -> Any:
    """Whichever is floating, as if the other did not matter."""
    floating = [one for one in map(np.dtype, (y, x)) if one.kind == "f"]
    return floating[0] if floating else np.dtype("float64")


# ------------------------------------------------------------------------------------------------------ choose_kernel


def choose_by_ranking(kernels: Kernels, device: str, dtype: str) -> Function | None:
    """The best of those that fit."""
    fitting = [key for key in kernels if key[0] in (device, "any") and key[1] in (dtype, None)]
    best = max(fitting, key=lambda key: (key[0] == device, key[1] == dtype), default=None)
    return None if best is None else kernels[best]


def choose_general_first(kernels: Kernels, device: str, dtype: str) -> Function | None:
    """The one that always works."""
    return kernels.get(("any", None)) or kernels.get((device, None)) or kernels.get((device, dtype))


def choose_first_that_fits(kernels: Kernels, device: str, dtype: str) -> Function | None:
    """The first of the table that may run there."""
    for (where, what), kernel in kernels.items():
        if where in (device, "any") and what in (dtype, None):
            return kernel
    return None


def choose_exact_or_general(kernels: Kernels, device: str, dtype: str) -> Function | None:
    """Nothing between the most special one and the most general one."""
    return kernels.get((device, dtype)) or kernels.get(("any", None))


def choose_device_only(kernels: Kernels, device: str, dtype: str) -> Function | None:
    """The dtype is forgotten."""
    fitting = [kernel for (where, _what), kernel in kernels.items() if where == device]
    return fitting[0] if fitting else kernels.get(("any", None))


def choose_device_general_first(kernels: Kernels, device: str, dtype: str) -> Function | None:
    """The device's general kernel before its special one."""
    for key in ((device, None), (device, dtype), ("any", None)):
        if key in kernels:
            return kernels[key]
    return None
