"""The workloads in autodiff_lab, eager: what ``backward()`` and the transformations cost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import formulas
import numpy as np
from case import Case
from workloads import train_result

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.backend import asarray


def version() -> str:
    """Which autodiff_lab this is."""
    return f"autodiff_lab {ad.__version__}"


def runs_on(device: str) -> bool:
    """Whether the device is here."""
    return device == "cpu" or any(line.startswith(f"{device}:") for line in ad.devices())


def leaf(value: Any, device: str = "cpu") -> ad.Tensor:
    """A Tensor that wants a gradient."""
    return ad.tensor(value, device=device, requires_grad=True)


def w1(data: SimpleNamespace) -> Case:
    """A chain of mul, add and tanh on one element."""

    def forward() -> tuple[Any, ...]:
        x, w, b = leaf(data.x), leaf(data.w), leaf(data.b)
        return formulas.chain(x, w, b, data.n, ops.tanh), x, w, b

    return _chain_case(forward)


def w6(data: SimpleNamespace) -> Case:
    """A deep chain of mul and add."""

    def forward() -> tuple[Any, ...]:
        x, w, b = leaf(data.x), leaf(data.w), leaf(data.b)
        return formulas.deep_chain(x, w, b, data.n), x, w, b

    return _chain_case(forward)


w6a = w6b = w6


def _chain_case(forward: Any) -> Case:
    def step() -> dict[str, Any]:
        h, x, w, b = forward()
        h.backward()
        return {"y": h.numpy(), "gx": x.grad.numpy(), "gw": w.grad.numpy(), "gb": b.grad.numpy()}

    return Case(step, step, forward)


def _training(data: SimpleNamespace, loss_of: Any) -> Case:
    """Steps of SGD; the result is that of three steps from the start."""
    params = [leaf(p, data.device) for p in data.params]

    def step() -> float:
        loss = loss_of(params)
        loss.backward()
        for p in params:
            p.data = p.data - data.lr * p.grad.data
            p.grad = None
        return loss.item()

    return Case(step, lambda: train_result([step() for _ in range(3)], [p.numpy() for p in params]))


def _gradients(leaves: dict[str, ad.Tensor], loss_of: Any) -> Case:
    """Forward and backward; the result is the loss, and the gradients by the names of the leaves."""

    def step() -> float:
        for one in leaves.values():
            one.grad = None
        loss = loss_of()
        loss.backward()
        return loss.item()  # last, since on a device this waits for the gradients too

    return Case(step, lambda: {"loss": step(), **{name: one.grad.numpy() for name, one in leaves.items()}})


def small_loss(params: Any, x: Any, y: Any) -> Any:
    """The mean squared error of a small perceptron with tanh."""
    return formulas.squared_error(params, x, y, ops.tanh, ops.mean)


def w2(data: SimpleNamespace) -> Case:
    """An SGD step of a small perceptron."""
    x, y = ad.tensor(data.X), ad.tensor(data.Y)
    return _training(data, lambda params: small_loss(params, x, y))


def w3(data: SimpleNamespace) -> Case:
    """An SGD step of a perceptron for ten classes."""
    x, classes = ad.tensor(data.X, device=data.device), asarray(data.y, device=data.device)
    return _training(data, lambda params: large_loss(params, x, classes))


def large_loss(params: Any, x: Any, classes: Any) -> Any:
    """The cross-entropy of a perceptron with relu."""
    w1, b1, w2, b2, w3, b3 = params
    hidden = ops.relu(ops.relu(x @ w1 + b1) @ w2 + b2)
    return ops.cross_entropy(hidden @ w3 + b3, classes)


def w4(data: SimpleNamespace) -> Case:
    """A pre-norm Transformer block."""
    p = {name: leaf(value, data.device) for name, value in data.p.items()}
    x, weight = leaf(data.x, data.device), ad.tensor(data.G, device=data.device)
    sizes = data.B, data.T, data.D, data.H, data.eps
    leaves = {"gx": x, **{f"g_{name}": one for name, one in p.items()}}
    return _gradients(leaves, lambda: block_loss(p, x, weight, *sizes))


def block_loss(p: Any, x: Any, weight: Any, batch: int, time: int, width: int, heads: int, eps: float) -> Any:
    """The weighted sum of what a pre-norm Transformer block gives."""
    size = width // heads
    a = ops.layer_norm(x, p["g1"], p["c1"], eps=eps)
    qkv = (a.reshape(batch * time, width) @ p["wqkv"] + p["bqkv"]).reshape(batch, time, 3, heads, size)
    q, k, v = qkv.transpose(2, 0, 3, 1, 4)
    scores = ops.softmax((q @ k.transpose(0, 1, 3, 2)) * size**-0.5)
    mixed = (scores @ v).transpose(0, 2, 1, 3).reshape(batch * time, width)
    h = x + (mixed @ p["wo"] + p["bo"]).reshape(batch, time, width)
    u = ops.layer_norm(h, p["g2"], p["c2"], eps=eps).reshape(batch * time, width) @ p["w1"] + p["b1"]
    out = h + (ops.gelu(u, approximate="tanh") @ p["w2"] + p["b2"]).reshape(batch, time, width)
    return ops.sum(out * weight)


def w5(data: SimpleNamespace) -> Case:
    """An elementwise expression on four million numbers."""
    x = leaf(data.x, data.device)
    return _gradients({"gx": x}, lambda: wide_loss(x, data.a, data.b))


def wide_loss(x: Any, a: float, b: float) -> Any:
    """The sum of tanh(ax + b) · sigmoid(x) − ½x²."""
    return ops.sum(ops.tanh(a * x + b) * ops.sigmoid(x) - 0.5 * x * x)


def _jacobian(mode: Any) -> Any:
    def workload(data: SimpleNamespace) -> Case:
        def f(x: Any) -> Any:
            v = data.B @ x
            return ops.sin(data.A @ x) * ops.exp(-v * v)

        jacobian = ad.jacobian(f, mode=mode)
        return Case(lambda: jacobian(data.x), lambda: {"J": np.asarray(jacobian(data.x))})

    return workload


w7a_fwd = w7b_fwd = _jacobian("forward")
w7a_rev = w7b_rev = _jacobian("reverse")


def w8(data: SimpleNamespace) -> Case:
    """A Hessian-vector product of the small perceptron's loss."""

    def step() -> Any:
        return ad.hvp(lambda *params: small_loss(params, data.X, data.Y), tuple(data.params), tuple(data.v))

    return Case(step, lambda: {f"h{i}": np.asarray(h) for i, h in enumerate(step())})


def w9(data: SimpleNamespace) -> Case:
    """A convolution."""
    x, w, b = (leaf(value, data.device) for value in (data.x, data.w, data.b))
    weight = ad.tensor(data.G, device=data.device)
    return _gradients({"gx": x, "gw": w, "gb": b}, lambda: convolution_loss(x, w, b, weight))


def convolution_loss(x: Any, w: Any, b: Any, weight: Any) -> Any:
    """The weighted sum of a convolution of 3 × 3."""
    return ops.sum(ops.conv2d(x, w, b, stride=1, padding=1) * weight)
