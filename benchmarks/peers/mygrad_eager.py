"""The workloads in MyGrad, as far as it has the ops: all but the transformations, W7 and W8."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import formulas
import mygrad as mg
import numpy as np
from case import Case
from mygrad.nnet.activations import relu, sigmoid, softmax
from mygrad.nnet.layers import conv_nd
from mygrad.nnet.losses import softmax_crossentropy
from workloads import train_result


def version() -> str:
    """Which MyGrad this is."""
    return f"MyGrad {mg.__version__}"


def w1(data: SimpleNamespace) -> Case:
    """A chain of mul, add and tanh on one element."""

    def step() -> dict[str, Any]:
        x, w, b = mg.tensor(data.x), mg.tensor(data.w), mg.tensor(data.b)
        return _chain_result(formulas.chain(x, w, b, data.n, mg.tanh), x, w, b)

    return Case(step, step)


def w6(data: SimpleNamespace) -> Case:
    """A deep chain of mul and add."""

    def step() -> dict[str, Any]:
        x, w, b = mg.tensor(data.x), mg.tensor(data.w), mg.tensor(data.b)
        return _chain_result(formulas.deep_chain(x, w, b, data.n), x, w, b)

    return Case(step, step)


w6a = w6b = w6


def _chain_result(h: Any, x: Any, w: Any, b: Any) -> dict[str, Any]:
    h.backward()
    return {"y": h.data, "gx": x.grad, "gw": w.grad, "gb": b.grad}


def _training(data: SimpleNamespace, loss_of: Any) -> Case:
    params = [mg.tensor(p.copy()) for p in data.params]

    def step() -> float:
        loss = loss_of(params)
        loss.backward()
        for p in params:
            p.data -= data.lr * p.grad
        return float(loss.item())

    return Case(step, lambda: train_result([step() for _ in range(3)], [np.asarray(p.data) for p in params]))


def w2(data: SimpleNamespace) -> Case:
    """An SGD step of a small perceptron."""

    return _training(data, lambda params: formulas.squared_error(params, data.X, data.Y, mg.tanh, mg.mean))


def w3(data: SimpleNamespace) -> Case:
    """An SGD step of a perceptron for ten classes."""

    def loss(params: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = params
        return softmax_crossentropy(relu(relu(data.X @ w1 + b1) @ w2 + b2) @ w3 + b3, data.y)

    return _training(data, loss)


def w4(data: SimpleNamespace) -> Case:
    """A pre-norm Transformer block."""
    batch, time, width, heads = data.B, data.T, data.D, data.H
    size = width // heads
    p, x = {name: mg.tensor(value) for name, value in data.p.items()}, mg.tensor(data.x)

    def norm(x: Any, scale: Any, shift: Any) -> Any:
        centred = x - mg.mean(x, axis=-1, keepdims=True)
        return centred / mg.sqrt(mg.mean(centred * centred, axis=-1, keepdims=True) + data.eps) * scale + shift

    def loss() -> Any:
        qkv = norm(x, p["g1"], p["c1"]) @ p["wqkv"] + p["bqkv"]
        qkv = qkv.reshape(batch, time, 3, heads, size).transpose(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        mixed = softmax((q @ k.transpose(0, 1, 3, 2)) * size**-0.5) @ v
        h = x + mixed.transpose(0, 2, 1, 3).reshape(batch, time, width) @ p["wo"] + p["bo"]
        u = norm(h, p["g2"], p["c2"]) @ p["w1"] + p["b1"]
        gelu = 0.5 * u * (1.0 + mg.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u * u * u)))
        return mg.sum((h + gelu @ p["w2"] + p["b2"]) * data.G)

    return _gradients({"gx": x, **{f"g_{name}": one for name, one in p.items()}}, loss)


def _gradients(leaves: dict[str, Any], loss_of: Any) -> Case:
    """Forward and backward; the result is the loss, and the gradients by the names of the leaves."""

    def step() -> float:
        loss = loss_of()
        loss.backward()  # replaces what gradients there were
        return float(loss.item())

    return Case(step, lambda: {"loss": step(), **{name: one.grad for name, one in leaves.items()}})


def w5(data: SimpleNamespace) -> Case:
    """An elementwise expression on four million numbers."""
    x = mg.tensor(data.x)
    return _gradients({"gx": x}, lambda: mg.sum(mg.tanh(data.a * x + data.b) * sigmoid(x) - 0.5 * x * x))


def w9(data: SimpleNamespace) -> Case:
    """A convolution."""
    x, w, b = mg.tensor(data.x), mg.tensor(data.w), mg.tensor(data.b)

    def loss() -> Any:
        return mg.sum((conv_nd(x, w, stride=1, padding=1) + b.reshape(-1, 1, 1)) * data.G)

    return _gradients({"gx": x, "gw": w, "gb": b}, loss)
