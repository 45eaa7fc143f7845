"""Functions drawn at random for the tests of passes: elementwise ops, broadcasts, reductions, products, views."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import ops

ROWS, COLUMNS = 3, 4


def program(seed: int, steps: int = 14) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of three arrays that is drawn at random, and its arguments."""
    numbers = np.random.default_rng(seed)
    arguments = (
        numbers.normal(size=(ROWS, COLUMNS)),
        numbers.normal(size=COLUMNS),
        numbers.normal(size=(COLUMNS, COLUMNS)),
    )

    def drawn(x: Any, b: Any, w: Any) -> Any:
        random = Random(seed)
        values = [x, b, x * 1.0]
        for _ in range(steps):
            values.append(_step(random, values, w))
        outputs = random.sample(values[3:], random.randint(1, 3))
        return [values[-1], *outputs]

    return drawn, arguments


def joint_program(seed: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The same with its gradients."""
    drawn, arguments = program(seed, steps=9)

    def total(*arrays: Any) -> Any:
        parts = [ops.mean(output * output) for output in drawn(*arrays)]
        loss = parts[0]
        for part in parts[1:]:
            loss = loss + part
        return loss

    return ad.value_and_grad(total, (0, 1, 2)), arguments


def _step(random: Random, values: list[Any], w: Any) -> Any:
    value, other = random.choice(values), random.choice(values[-4:])
    kind = random.random()
    if kind < 0.45:
        return random.choice((ops.tanh, ops.sin, ops.square, ops.abs, lambda v: v * 0.5, lambda v: 1.0 - v))(value)
    if kind < 0.7 and _broadcast(value.shape, other.shape):
        return random.choice((ops.add, ops.mul, ops.maximum))(value, other)
    if kind < 0.85 and value.shape:
        axis = random.choice((None, 0, -1))
        return random.choice((ops.sum, ops.mean, ops.max))(value, axis=axis, keepdims=random.random() < 0.5)
    if kind < 0.9 and _broadcast(value.shape, (ROWS, COLUMNS)):
        return ops.broadcast_to(value, shape=(ROWS, COLUMNS))
    if kind < 0.95 and value.shape and value.shape[-1] == COLUMNS:
        return value @ w
    return ops.sin(value.T) if len(value.shape) == 1 else ops.zeros_like(value) + 1.0


def _broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    try:
        return len(np.broadcast_shapes(one, other)) <= 2
    except ValueError:
        return False
