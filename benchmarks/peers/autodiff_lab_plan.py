"""The workloads in autodiff_lab, compiled: plans of the joint graph, as ``ad.compile`` makes them at the first call."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import formulas
import numpy as np
from autodiff_lab_eager import block_loss, convolution_loss, large_loss, runs_on, small_loss, version, wide_loss
from case import Case
from workloads import train_result

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.backend import asarray, to_numpy

__all__ = ["runs_on", "version", "w1", "w2", "w3", "w4", "w5", "w8", "w9"]


def w1(data: SimpleNamespace) -> Case:
    """A chain of mul, add and tanh on one element."""

    def chain(x: Any, w: Any, b: Any) -> Any:
        return ops.sum(formulas.chain(x, w, b, data.n, ops.tanh))

    gradients = ad.compile(ad.value_and_grad(chain, argnums=(0, 1, 2)), workers=data.workers)

    def step() -> dict[str, Any]:
        y, (gx, gw, gb) = gradients(data.x, data.w, data.b)
        return {"y": y.reshape(1), "gx": gx, "gw": gw, "gb": gb}

    return Case(step, step)


def _training(data: SimpleNamespace, loss: Callable[..., Any], *batch: Any) -> Case:
    """Steps of SGD; the result is that of three steps from the start."""
    params = [asarray(p, device=data.device) for p in data.params]
    batch = tuple(asarray(part, device=data.device) for part in batch)

    def training_step(params: Any, *batch: Any) -> Any:
        value, gradients = ad.value_and_grad(loss)(params, *batch)
        return value, [p - data.lr * g for p, g in zip(params, gradients, strict=True)]

    compiled = ad.compile(training_step, workers=data.workers)

    def step() -> float:
        value, params[:] = compiled(params, *batch)
        return value.item()

    return Case(step, lambda: train_result([step() for _ in range(3)], [to_numpy(p) for p in params]))


def w2(data: SimpleNamespace) -> Case:
    """An SGD step of a small perceptron."""
    return _training(data, small_loss, data.X, data.Y)


def w3(data: SimpleNamespace) -> Case:
    """An SGD step of a perceptron for ten classes."""
    return _training(data, large_loss, data.X, data.y)


def _gradients(
    data: SimpleNamespace, loss: Callable[..., Any], wanted: dict[str, Any], *others: Any, **options: Any
) -> Case:
    """Forward and backward; the result is the loss, and the gradients of what is wanted by its names."""
    arrays = [asarray(value, device=data.device) for value in wanted.values()]
    others = tuple(asarray(value, device=data.device) for value in others)
    both = ad.value_and_grad(lambda arrays, *others: loss(*arrays, *others))
    compiled = ad.compile(both, workers=data.workers, **options)

    def step() -> Any:
        value, gradients = compiled(arrays, *others)
        return value.item(), gradients  # on a device this waits for the gradients too

    def result() -> dict[str, Any]:
        value, gradients = step()
        return {"loss": value, **{name: to_numpy(g) for name, g in zip(wanted, gradients, strict=True)}}

    return Case(step, result)


def w4(data: SimpleNamespace) -> Case:
    """A pre-norm Transformer block."""
    sizes = data.B, data.T, data.D, data.H, data.eps

    def loss(x: Any, *others: Any) -> Any:
        *p, weight = others
        return block_loss(dict(zip(data.p, p, strict=True)), x, weight, *sizes)

    return _gradients(data, loss, {"gx": data.x, **{f"g_{name}": value for name, value in data.p.items()}}, data.G)


def w5(data: SimpleNamespace, **options: Any) -> Case:
    """An elementwise expression on four million numbers, with options of ``compile``."""
    return _gradients(data, lambda x: wide_loss(x, data.a, data.b), {"gx": data.x}, **options)


def w8(data: SimpleNamespace) -> Case:
    """A Hessian-vector product of the small perceptron's loss."""

    def product(params: Any, directions: Any, x: Any, y: Any) -> Any:
        return ad.hvp(lambda *p: small_loss(p, x, y), params, directions)

    compiled = ad.compile(product, workers=data.workers)
    params, directions = tuple(data.params), tuple(data.v)

    def step() -> Any:
        return compiled(params, directions, data.X, data.Y)

    return Case(step, lambda: {f"h{i}": np.asarray(h) for i, h in enumerate(step())})


def w9(data: SimpleNamespace) -> Case:
    """A convolution."""
    return _gradients(data, convolution_loss, {"gx": data.x, "gw": data.w, "gb": data.b}, data.G)
