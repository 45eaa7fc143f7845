"""The workloads in autodiff_lab, compiled: plans of the joint graph, as ``ad.compile`` makes them at the first call."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from case import Case
from workloads import train_result

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.fused_loops import Loops
from benchmarks.ours import block_loss, large_loss, small_loss, version, wide_loss

__all__ = ["version", "w1", "w2", "w3", "w4", "w4_two_workers", "w5", "w5_two_workers", "w8"]


def w1(data: SimpleNamespace) -> Case:
    """A chain of mul, add and tanh on one element."""

    def chain(x: Any, w: Any, b: Any) -> Any:
        h = x
        for i in range(data.n):
            kind = i % 3
            h = h * w if kind == 0 else h + b if kind == 1 else ops.tanh(h)
        return ops.sum(h)

    gradients = ad.compile(ad.value_and_grad(chain, argnums=(0, 1, 2)))

    def step() -> dict[str, Any]:
        y, (gx, gw, gb) = gradients(data.x, data.w, data.b)
        return {"y": y.reshape(1), "gx": gx, "gw": gw, "gb": gb}

    return Case(step, step)


def _training(data: SimpleNamespace, loss: Callable[..., Any], *batch: Any) -> Case:
    """Steps of SGD; the result is that of three steps from the start."""
    params = list(data.params)

    def training_step(params: Any, *batch: Any) -> Any:
        value, gradients = ad.value_and_grad(loss)(params, *batch)
        return value, [p - data.lr * g for p, g in zip(params, gradients, strict=True)]

    compiled = ad.compile(training_step)

    def step() -> float:
        value, params[:] = compiled(params, *batch)
        return float(value)

    return Case(step, lambda: train_result([step() for _ in range(3)], params))


def w2(data: SimpleNamespace) -> Case:
    """An SGD step of a small perceptron."""
    return _training(data, small_loss, data.X, data.Y)


def w3(data: SimpleNamespace) -> Case:
    """An SGD step of a perceptron for ten classes."""
    return _training(data, large_loss, data.X, data.y)


def _w4(data: SimpleNamespace, workers: int) -> Case:
    sizes = data.B, data.T, data.D, data.H, data.eps
    gradients = ad.compile(
        ad.value_and_grad(lambda p, x, weight: block_loss(p, x, weight, *sizes), (0, 1)), workers=workers
    )

    def step() -> dict[str, Any]:
        loss, (g, gx) = gradients(data.p, data.x, data.G)
        return {"loss": loss, "gx": gx, **{f"g_{name}": gradient for name, gradient in g.items()}}

    return Case(step, step)


def w4(data: SimpleNamespace) -> Case:
    """A pre-norm Transformer block."""
    return _w4(data, 1)


def w4_two_workers(data: SimpleNamespace) -> Case:
    """The same block, on two workers."""
    return _w4(data, 2)


def wide(data: SimpleNamespace, workers: int, loops: Loops = "auto") -> Case:
    """The value and gradient of an elementwise expression on four million numbers."""
    gradient = ad.compile(ad.value_and_grad(lambda x: wide_loss(x, data.a, data.b)), workers=workers, loops=loops)

    def step() -> dict[str, Any]:
        loss, gx = gradient(data.x)
        return {"loss": loss, "gx": gx}

    return Case(step, step)


def w5(data: SimpleNamespace) -> Case:
    """An elementwise expression on four million numbers."""
    return wide(data, 1)


def w5_two_workers(data: SimpleNamespace) -> Case:
    """The same expression, on two workers."""
    return wide(data, 2)


def w8(data: SimpleNamespace) -> Case:
    """A Hessian-vector product of the small perceptron's loss."""

    def product(params: Any, directions: Any, x: Any, y: Any) -> Any:
        return ad.hvp(lambda *p: small_loss(p, x, y), params, directions)

    compiled = ad.compile(product)
    params, directions = tuple(data.params), tuple(data.v)

    def step() -> Any:
        return compiled(params, directions, data.X, data.Y)

    return Case(step, lambda: {f"h{i}": np.asarray(h) for i, h in enumerate(step())})
