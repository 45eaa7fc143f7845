"""The workloads in HIPS autograd, as far as it has the ops: all but W9."""

from __future__ import annotations

import math
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import autograd
import autograd.numpy as np
import formulas
from autograd.differential_operators import make_hvp, make_jvp
from autograd.extend import vspace
from autograd.scipy.special import expit, logsumexp
from case import Case
from workloads import train_result


def version() -> str:
    """Which autograd this is."""
    return f"HIPS autograd {metadata.version('autograd')}"


def w1(data: SimpleNamespace) -> Case:
    """A chain of mul, add and tanh on one element."""

    def chain(x: Any, w: Any, b: Any) -> Any:
        return formulas.chain(x, w, b, data.n, np.tanh)[0]

    return _chain_case(data, chain)


def w6(data: SimpleNamespace) -> Case:
    """A deep chain of mul and add."""

    def chain(x: Any, w: Any, b: Any) -> Any:
        return formulas.deep_chain(x, w, b, data.n)[0]

    return _chain_case(data, chain)


w6a = w6b = w6


def _chain_case(data: SimpleNamespace, chain: Any) -> Case:
    both = autograd.value_and_grad(chain, (0, 1, 2))

    def step() -> dict[str, Any]:
        y, (gx, gw, gb) = both(data.x, data.w, data.b)
        return {"y": y, "gx": gx, "gw": gw, "gb": gb}

    return Case(step, step)


def _training(data: SimpleNamespace, loss: Any) -> Case:
    params = [p.copy() for p in data.params]
    both = autograd.value_and_grad(loss)

    def step() -> float:
        value, gradients = both(params)
        for p, g in zip(params, gradients, strict=True):
            p -= data.lr * g
        return float(value)

    return Case(step, lambda: train_result([step() for _ in range(3)], params))


def small_loss(params: Any, x: Any, y: Any) -> Any:
    """The mean squared error of a small perceptron with tanh."""
    w1, b1, w2, b2, w3, b3 = params
    error = np.dot(np.tanh(np.dot(np.tanh(np.dot(x, w1) + b1), w2) + b2), w3) + b3 - y
    return np.mean(error * error)


def w2(data: SimpleNamespace) -> Case:
    """An SGD step of a small perceptron."""
    return _training(data, lambda params: small_loss(params, data.X, data.Y))


def w3(data: SimpleNamespace) -> Case:
    """An SGD step of a perceptron for ten classes."""
    rows = np.arange(len(data.y))

    def loss(params: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = params
        hidden = np.maximum(np.dot(np.maximum(np.dot(data.X, w1) + b1, 0), w2) + b2, 0)
        logits = np.dot(hidden, w3) + b3
        return np.mean(logsumexp(logits, axis=1) - logits[rows, data.y])

    return _training(data, loss)


def w4(data: SimpleNamespace) -> Case:
    """A pre-norm Transformer block."""
    batch, time, width, heads = data.B, data.T, data.D, data.H
    size = width // heads

    def norm(x: Any, scale: Any, shift: Any) -> Any:
        centred = x - np.mean(x, axis=-1, keepdims=True)
        return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + data.eps) * scale + shift

    def loss(p: Any, x: Any) -> Any:
        qkv = np.matmul(norm(x, p["g1"], p["c1"]), p["wqkv"]) + p["bqkv"]
        qkv = np.transpose(np.reshape(qkv, (batch, time, 3, heads, size)), (2, 0, 3, 1, 4))
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = np.matmul(q, np.swapaxes(k, -1, -2)) * size**-0.5
        powers = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
        mixed = np.matmul(powers / np.sum(powers, axis=-1, keepdims=True), v)
        joined = np.reshape(np.transpose(mixed, (0, 2, 1, 3)), (batch, time, width))
        h = x + np.matmul(joined, p["wo"]) + p["bo"]
        u = np.matmul(norm(h, p["g2"], p["c2"]), p["w1"]) + p["b1"]
        gelu = 0.5 * u * (1.0 + np.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u * u * u)))
        return np.sum((h + np.matmul(gelu, p["w2"]) + p["b2"]) * data.G)

    both = autograd.value_and_grad(lambda arguments: loss(*arguments))

    def step() -> dict[str, Any]:
        value, (g, gx) = both((data.p, data.x))
        return {"loss": value, "gx": gx, **{f"g_{name}": one for name, one in g.items()}}

    return Case(step, step)


def w5(data: SimpleNamespace) -> Case:
    """An elementwise expression on four million numbers."""
    both = autograd.value_and_grad(lambda x: np.sum(np.tanh(data.a * x + data.b) * expit(x) - 0.5 * x * x))

    def step() -> dict[str, Any]:
        loss, gradient = both(data.x)
        return {"loss": loss, "gx": gradient}

    return Case(step, step)


def _f(data: SimpleNamespace) -> Any:
    def f(x: Any) -> Any:
        v = np.dot(data.B, x)
        return np.sin(np.dot(data.A, x)) * np.exp(-v * v)

    return f


def w7a_rev(data: SimpleNamespace) -> Case:
    """The Jacobian by rows."""
    jacobian = autograd.jacobian(_f(data))
    return Case(lambda: jacobian(data.x), lambda: {"J": jacobian(data.x)})


w7b_rev = w7a_rev


def w7a_fwd(data: SimpleNamespace) -> Case:
    """The Jacobian by columns."""
    push = make_jvp(_f(data))

    def step() -> Any:
        along = push(data.x)
        return np.stack([along(v)[1] for v in vspace(data.x).standard_basis()], axis=-1)

    return Case(step, lambda: {"J": step()})


w7b_fwd = w7a_fwd


def w8(data: SimpleNamespace) -> Case:
    """A Hessian-vector product of the small perceptron's loss."""

    def step() -> Any:
        product, _ = make_hvp(lambda params: small_loss(params, data.X, data.Y))(tuple(data.params))
        return product(tuple(data.v))

    return Case(step, lambda: {f"h{i}": h for i, h in enumerate(step())})
