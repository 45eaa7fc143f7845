"""Whether two values are the same, arrays included: what tells that an argument was changed."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import simulated


def same(one: Any, other: Any) -> bool:
    """Whether two values have the same type and hold the same; arrays the same dtype, shape and bits.

    >>> same([1, np.zeros(3)], [1, np.zeros(3)]), same(np.zeros(3), np.zeros(3, "float32"))
    (True, False)
    """
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    if isinstance(one, simulated.DeviceArray):
        return one.device == other.device and same(simulated.numbers_in(one), simulated.numbers_in(other))
    if isinstance(one, ad.Tensor):
        return same(one.numpy(), other.numpy()) and same(one.grad, other.grad)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one) if f.compare)
    return bool(one == other)
