"""Arrays that the ops' samples are made of: seeded, away from kinks and poles unless asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

Call = tuple[tuple[Any, ...], dict[str, Any]]


def normal(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Normal numbers, none closer to 0 than 0.1."""
    values = np.random.default_rng(seed).standard_normal(shape)
    return np.asarray(values + np.where(values >= 0, 0.1, -0.1))


def positive(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Numbers between 0.5 and 2."""
    return np.asarray(np.random.default_rng(seed).uniform(0.5, 2.0, shape))


def fraction(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Numbers between −0.9 and 0.9, none closer to 0 than 0.1."""
    return np.asarray(normal(*shape, seed=seed).clip(-0.9, 0.9))


def unary(make: Any = normal) -> list[Call]:
    """Calls of an elementwise op of one input: 0-d, a matrix, an empty array, a transposed (not contiguous) one, float32."""
    arrays = [make(), make(2, 3), make(0, 3), make(3, 2).T, make(4).astype(np.float32), np.array([1], np.int8)]
    return [((array,), {}) for array in arrays]


def binary(make: Any = normal) -> list[Call]:
    """Calls of an elementwise op of two inputs: equal shapes, both broadcasting, a number on either side, mixed dtypes."""
    a, b = make(2, 3, seed=1), make(2, 3, seed=2)
    pairs = [
        (make(seed=1), make(seed=2)), (a, b), (make(2, 1, seed=3), make(3, seed=4)), (a, make(seed=5)), (make(0, 3), make(3)),
        (a, 2.0), (0.5, b), (a.astype(np.float32), b.astype(np.float32)), (a.astype(np.float32), b), (make(3, 2).T, b),
    ]  # fmt: skip
    return [(pair, {}) for pair in pairs]
