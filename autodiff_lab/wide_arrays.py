"""Wide arrays, which the cache does not hold: kernels of several NumPy calls take them block by block."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy import ndarray

from .signatures import parameters_of

# Smaller arrays stay in the cache as they are. Blocks save, at 4 MB, a fifth of a backward sweep and nothing of a kernel; at
# 16 MB half of the sweep and a third of the kernel.
WIDE_BYTES = 2**22
BLOCK_BYTES = 2**18  # in smaller blocks the calls themselves take too long, in larger ones the numbers leave the cache


def is_wide(value: Any) -> bool:
    """Whether a value is a NumPy array so large that blocks are faster."""
    return type(value) is ndarray and value.nbytes >= WIDE_BYTES


def blocks(size: int, itemsize: int) -> Iterator[slice]:
    """The parts that so many numbers are taken in; the last may be shorter.

    >>> [block.start for block in blocks(150_000, 4)]
    [0, 65536, 131072]
    """
    numbers = BLOCK_BYTES // itemsize
    return (slice(start, start + numbers) for start in range(0, size, numbers))


def in_blocks(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of an elementwise op of one input, run on wide arrays block by block, with the same bits.

    It pays where the kernel makes several NumPy calls. An array that is not in C order is not cut.
    """

    @functools.wraps(kernel)
    def in_blocks(xp: Any, x: Any, **attributes: Any) -> Any:
        if not (is_wide(x) and x.flags.c_contiguous):
            return kernel(xp, x, **attributes)
        numbers, result = x.reshape(-1), None
        for block in blocks(x.size, x.itemsize):
            part = kernel(xp, numbers[block], **attributes)
            result = np.empty(x.size, part.dtype) if result is None else result
            result[block] = part
        return result.reshape(x.shape)  # type: ignore[union-attr]

    in_blocks.parameters = parameters_of(kernel)  # type: ignore[attr-defined]
    in_blocks.__kwdefaults__ = kernel.__kwdefaults__  # type: ignore[attr-defined]  # registering reads both
    return in_blocks
