"""What several peers compute in the same words, each with its own arrays, and its own functions where there is no operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def chain(x: Any, w: Any, b: Any, n: int, tanh: Callable[[Any], Any]) -> Any:
    """W1: so many of mul, add and tanh in a row."""
    h = x
    for i in range(n):
        kind = i % 3
        h = h * w if kind == 0 else h + b if kind == 1 else tanh(h)
    return h


def deep_chain(x: Any, w: Any, b: Any, n: int) -> Any:
    """W6: so many of mul and add in a row."""
    h = x
    for i in range(n):
        h = h + b if i & 1 else h * w
    return h


def squared_error(params: Any, x: Any, y: Any, tanh: Callable[[Any], Any], mean: Callable[[Any], Any]) -> Any:
    """W2 and W8: the mean squared error of a small perceptron with tanh."""
    w1, b1, w2, b2, w3, b3 = params
    error = tanh(tanh(x @ w1 + b1) @ w2 + b2) @ w3 + b3 - y
    return mean(error * error)
