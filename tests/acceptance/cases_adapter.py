"""Maps the sketches of a log of cases onto the public names. No arithmetic of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import ops as n

__all__ = ["D", "T", "arr", "back", "clear", "fwd", "g", "n"]


def T(a: Any, dtype: str = "float64") -> ad.Tensor:
    return ad.tensor(a, dtype=dtype if np.asarray(a).dtype.kind == "f" else None, requires_grad=True)


def back(y: ad.Tensor, seed: Any = None, keep: bool = False) -> None:
    y.backward(seed)  # a graph may always be used again


def g(x: ad.Tensor) -> Any:
    return None if x.grad is None else x.grad.numpy()


def clear(x: ad.Tensor) -> None:
    x.grad = None


def arr(y: ad.Tensor) -> Any:
    return y.numpy()


def D(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return ad.grad(f)


def fwd(f: Callable[[Any], Any], x: Any, t: Any) -> Any:
    return ad.jvp(f, (x,), (t,))[1]
