"""The workloads in jax, compiled by ``jit`` on the CPU: all but W6, as to compile a chain of 10⁶ ops takes minutes.

What a step reads is an argument of the compiled function, since XLA computes constants in advance. Every step waits for its
results. XLA takes as many threads as the process has cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import formulas
import jax
import jax.numpy as jnp
import numpy as np
from case import Case
from workloads import train_result

jax.config.update("jax_enable_x64", True)  # float32 stays what it is


def version() -> str:
    """Which jax this is."""
    return f"jax {jax.__version__}"


def on_device(values: Any) -> Any:
    """Nested NumPy arrays as jax arrays."""
    return jax.tree.map(jnp.asarray, values)


def w1(data: SimpleNamespace) -> Case:
    """A chain of mul, add and tanh on one element."""

    def chain(x: Any, w: Any, b: Any) -> Any:
        return formulas.chain(x, w, b, data.n, jnp.tanh)[0]

    return _case(jax.value_and_grad(chain, (0, 1, 2)), (data.x, data.w, data.b), _chain_result)


def _chain_result(found: Any) -> dict[str, Any]:
    y, (gx, gw, gb) = found
    return {"y": y, "gx": gx, "gw": gw, "gb": gb}


def _case(f: Callable[..., Any], arguments: tuple[Any, ...], named: Callable[[Any], dict[str, Any]]) -> Case:
    """Calls of a compiled function; the result is one call's, by names."""
    compiled, given = jax.jit(f), on_device(arguments)

    def step() -> Any:
        return jax.block_until_ready(compiled(*given))

    return Case(step, lambda: {name: np.asarray(value) for name, value in named(step()).items()})


def _training(data: SimpleNamespace, loss: Callable[..., Any], *batch: Any) -> Case:
    """Steps of SGD; the result is that of three steps from the start."""
    params, batch = on_device(list(data.params)), on_device(batch)

    @jax.jit
    def training_step(params: Any, *batch: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, *batch)
        return value, [p - data.lr * g for p, g in zip(params, gradients, strict=True)]

    def step() -> float:
        value, params[:] = jax.block_until_ready(training_step(params, *batch))
        return float(value)

    return Case(step, lambda: train_result([step() for _ in range(3)], params))


def small_loss(params: Any, x: Any, y: Any) -> Any:
    """The mean squared error of a small perceptron with tanh."""
    return formulas.squared_error(params, x, y, jnp.tanh, jnp.mean)


def w2(data: SimpleNamespace) -> Case:
    """An SGD step of a small perceptron."""
    return _training(data, small_loss, data.X, data.Y)


def w3(data: SimpleNamespace) -> Case:
    """An SGD step of a perceptron for ten classes."""

    def loss(params: Any, x: Any, y: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = params
        logits = jax.nn.relu(jax.nn.relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1))

    return _training(data, loss, data.X, data.y)


def w4(data: SimpleNamespace) -> Case:
    """A pre-norm Transformer block."""
    batch, time, width, heads = data.B, data.T, data.D, data.H
    size = width // heads

    def norm(x: Any, scale: Any, shift: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + data.eps) * scale + shift

    def loss(p: Any, x: Any, weight: Any) -> Any:
        qkv = norm(x, p["g1"], p["c1"]) @ p["wqkv"] + p["bqkv"]
        q, k, v = qkv.reshape(batch, time, 3, heads, size).transpose(2, 0, 3, 1, 4)
        mixed = jax.nn.softmax((q @ k.swapaxes(-1, -2)) * size**-0.5) @ v
        h = x + mixed.transpose(0, 2, 1, 3).reshape(batch, time, width) @ p["wo"] + p["bo"]
        u = norm(h, p["g2"], p["c2"]) @ p["w1"] + p["b1"]
        return jnp.sum((h + jax.nn.gelu(u, approximate=True) @ p["w2"] + p["b2"]) * weight)

    def named(found: Any) -> dict[str, Any]:
        value, (g, gx) = found
        return {"loss": value, "gx": gx, **{f"g_{name}": one for name, one in g.items()}}

    return _case(jax.value_and_grad(loss, (0, 1)), (data.p, data.x, data.G), named)


def w5(data: SimpleNamespace) -> Case:
    """An elementwise expression on four million numbers."""

    def loss(x: Any) -> Any:
        return jnp.sum(jnp.tanh(data.a * x + data.b) * jax.nn.sigmoid(x) - 0.5 * x * x)

    return _case(jax.value_and_grad(loss), (data.x,), lambda found: {"loss": found[0], "gx": found[1]})


def _jacobian(transformation: Any) -> Any:
    def workload(data: SimpleNamespace) -> Case:
        def jacobian(x: Any, a: Any, b: Any) -> Any:
            def f(x: Any) -> Any:
                v = b @ x
                return jnp.sin(a @ x) * jnp.exp(-v * v)

            return transformation(f)(x)

        return _case(jacobian, (data.x, data.A, data.B), lambda found: {"J": found})

    return workload


w7a_fwd = w7b_fwd = _jacobian(jax.jacfwd)
w7a_rev = w7b_rev = _jacobian(jax.jacrev)


def w8(data: SimpleNamespace) -> Case:
    """A Hessian-vector product of the small perceptron's loss."""

    def product(params: Any, directions: Any, x: Any, y: Any) -> Any:
        return jax.jvp(jax.grad(lambda p: small_loss(p, x, y)), (params,), (directions,))[1]

    arguments = list(data.params), list(data.v), data.X, data.Y
    return _case(product, arguments, lambda found: {f"h{i}": h for i, h in enumerate(found)})


def w9(data: SimpleNamespace) -> Case:
    """A convolution."""

    def loss(x: Any, w: Any, b: Any, weight: Any) -> Any:
        y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME") + b[:, None, None]
        return jnp.sum(y * weight)

    def named(found: Any) -> dict[str, Any]:
        value, (gx, gw, gb) = found
        return {"loss": value, "gx": gx, "gw": gw, "gb": gb}

    return _case(jax.value_and_grad(loss, (0, 1, 2)), (data.x, data.w, data.b, data.G), named)
