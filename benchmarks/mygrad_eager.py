"""The workloads in MyGrad, as far as it has the ops: W1, W2, W3 and W5."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mygrad as mg
import numpy as np
from case import Case
from mygrad.nnet.activations import relu, sigmoid
from mygrad.nnet.losses import softmax_crossentropy
from workloads import train_result


def version() -> str:
    """Which MyGrad this is."""
    return f"MyGrad {mg.__version__}"


def w1(data: SimpleNamespace) -> Case:
    """A chain of mul, add and tanh on one element."""

    def step() -> dict[str, Any]:
        x, w, b = mg.tensor(data.x), mg.tensor(data.w), mg.tensor(data.b)
        h = x
        for i in range(data.n):
            kind = i % 3
            h = h * w if kind == 0 else h + b if kind == 1 else mg.tanh(h)
        h.backward()
        return {"y": h.data, "gx": x.grad, "gw": w.grad, "gb": b.grad}

    return Case(step, step)


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

    def loss(params: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = params
        error = mg.tanh(mg.tanh(data.X @ w1 + b1) @ w2 + b2) @ w3 + b3 - data.Y
        return mg.mean(error * error)

    return _training(data, loss)


def w3(data: SimpleNamespace) -> Case:
    """An SGD step of a perceptron for ten classes."""

    def loss(params: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = params
        return softmax_crossentropy(relu(relu(data.X @ w1 + b1) @ w2 + b2) @ w3 + b3, data.y)

    return _training(data, loss)


def w5(data: SimpleNamespace) -> Case:
    """An elementwise expression on four million numbers."""

    def step() -> dict[str, Any]:
        x = mg.tensor(data.x, copy=False)
        loss = mg.sum(mg.tanh(data.a * x + data.b) * sigmoid(x) - 0.5 * x * x)
        loss.backward()
        return {"loss": loss.data, "gx": x.grad}

    return Case(step, step)
