"""Elementwise functions between the layers of a network: relu and its smooth relatives, and the error function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..cuda_kernels import cuda_expression
from ..operand_rules import as_floating, function_dtype, keeps_floating, result_dtype
from ..operators import op
from ..wide_arrays import in_blocks
from .exponentials import exp
from .hyperbolic import tanh
from .sampling import Call, normal, unary


@op(elementwise=True)
def relu(xp: Any, x: Any) -> Any:
    """The larger of x and 0. The derivative at 0 is 0."""
    return xp.maximum(x, 0)


@relu.dtype_rule
@keeps_floating
def relu_dtype(x: Any) -> Any:
    return result_dtype(x, 0)  # 0 is a number, so truth values become whole numbers


@relu.vjp
def relu_vjp(g: Any, out: Any) -> Any:
    return g * (out > 0)


@relu.jvp
def relu_jvp(dx: Any, out: Any) -> Any:
    return dx * (out > 0)


cuda_expression(relu, "x < 0 ? T(0) : x")
relu.samples(unary)


@op(elementwise=True)
@in_blocks
def sigmoid(xp: Any, x: Any) -> Any:
    """1 / (1 + e⁻ˣ), without overflow and with full relative accuracy far from 0."""
    x = as_floating(xp, x)
    decay = xp.exp(-xp.absolute(x))  # NumPy's fabs takes 25 times as long
    return xp.maximum(decay, x >= 0) / (1 + decay)


cuda_expression(sigmoid, "(x < 0 ? exp(x) : 1) / (1 + exp(-fabs(x)))")
sigmoid.dtype_rule(function_dtype)


@sigmoid.vjp
def sigmoid_vjp(g: Any, out: Any) -> Any:
    return g * out * (1.0 - out)


@sigmoid.jvp
def sigmoid_jvp(dx: Any, out: Any) -> Any:
    return dx * out * (1.0 - out)


sigmoid.samples(unary)


@op(elementwise=True)
@in_blocks
def softplus(xp: Any, x: Any) -> Any:
    """log(1 + eˣ), a smooth relu: without overflow, and with full relative accuracy far below 0."""
    x = as_floating(xp, x)
    return xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.absolute(x)))


cuda_expression(softplus, "fmax(x, T(0)) + log1p(exp(-fabs(x)))")
softplus.dtype_rule(function_dtype)


@softplus.vjp
def softplus_vjp(g: Any, x: Any) -> Any:
    return g * sigmoid(x)


@softplus.jvp
def softplus_jvp(dx: Any, x: Any) -> Any:
    return dx * sigmoid(x)


softplus.samples(unary)


@op(elementwise=True)
@in_blocks
def silu(xp: Any, x: Any) -> Any:
    """x · sigmoid(x), also called swish."""
    return x * sigmoid(x)


cuda_expression(silu, "x * ((x < 0 ? exp(x) : 1) / (1 + exp(-fabs(x))))")
silu.dtype_rule(function_dtype)


@silu.vjp
def silu_vjp(g: Any, x: Any) -> Any:
    return g * _silu_slope(x)


@silu.jvp
def silu_jvp(dx: Any, x: Any) -> Any:
    return dx * _silu_slope(x)


def _silu_slope(x: Any) -> Any:
    chance = sigmoid(x)
    return chance * (1.0 + x * (1.0 - chance))


silu.samples(unary)

# ------------------------------------------------------------------------------------------------ the error function and gelu


@op(elementwise=True)
def erf(xp: Any, x: Any) -> Any:
    """The error function 2/√π · ∫₀ˣ exp(−t²) dt, as exact as the C library's."""
    return _with_math(math.erf, x)


@op(elementwise=True)
def erfc(xp: Any, x: Any) -> Any:
    """1 − erf(x), with full relative accuracy also where erf(x) is almost 1."""
    return _with_math(math.erfc, x)


def _with_math(function: Any, x: Any) -> Any:
    """A function of Python's math module, number by number (about 50 ns each), because NumPy has none for it."""
    x = np.asarray(x)
    dtype = function_dtype(x.dtype)
    return np.fromiter(map(function, x.ravel().tolist()), dtype, x.size).reshape(x.shape)


@erf.kernel("sim")
def erf_simulated(xp: Any, x: Any) -> Any:
    return xp.ElementwiseKernel("T x", "T y", "y = erf(x)")(as_floating(xp, x))


@erfc.kernel("sim")
def erfc_simulated(xp: Any, x: Any) -> Any:
    return xp.ElementwiseKernel("T x", "T y", "y = erfc(x)")(as_floating(xp, x))


erf.dtype_rule(function_dtype)
erfc.dtype_rule(function_dtype)


@erf.vjp
def erf_vjp(g: Any, x: Any) -> Any:
    return g * (2.0 / math.sqrt(math.pi) * exp(-x * x))


@erf.jvp
def erf_jvp(dx: Any, x: Any) -> Any:
    return dx * (2.0 / math.sqrt(math.pi) * exp(-x * x))


@erfc.vjp
def erfc_vjp(g: Any, x: Any) -> Any:
    return g * (-2.0 / math.sqrt(math.pi) * exp(-x * x))


@erfc.jvp
def erfc_jvp(dx: Any, x: Any) -> Any:
    return dx * (-2.0 / math.sqrt(math.pi) * exp(-x * x))


cuda_expression(erf, "erf(x)")
erf.samples(unary)
cuda_expression(erfc, "erfc(x)")
erfc.samples(unary)


@op(elementwise=True)
@in_blocks
def gelu(xp: Any, x: Any, *, approximate: str = "none") -> Any:
    """x · Φ(x), where Φ is the normal distribution function; with approximate="tanh" a formula that is near to it.

    The formula is ½ x (1 + tanh(√(2/π) (x + 0.044715 x³))) (Hendrycks and Gimpel, 2016); it is off by up to 0.0005.

    >>> [round(float(ops.gelu(1.0, approximate=how)), 6) for how in ("none", "tanh")]
    [0.841345, 0.841192]
    """
    x = as_floating(xp, x)
    if approximate == "none":
        return x * _normal_distribution(x)
    if approximate == "tanh":
        return 0.5 * x * (1.0 + xp.tanh(_tanh_argument(x)))
    raise ValueError(f"approximate must be 'none' or 'tanh', got {approximate!r}")


gelu.dtype_rule(function_dtype)


@gelu.vjp
def gelu_vjp(g: Any, x: Any, *, approximate: str) -> Any:
    return g * _gelu_slope(x, approximate)


@gelu.jvp
def gelu_jvp(dx: Any, x: Any, *, approximate: str) -> Any:
    return dx * _gelu_slope(x, approximate)


def _normal_distribution(x: Any) -> Any:
    return 0.5 * erfc(x * -math.sqrt(0.5))


def _tanh_argument(x: Any) -> Any:
    return math.sqrt(2.0 / math.pi) * (x + 0.044715 * (x * x * x))


def _gelu_slope(x: Any, approximate: str) -> Any:
    if approximate == "none":
        return _normal_distribution(x) + x * (math.sqrt(0.5 / math.pi) * exp(-0.5 * x * x))
    bend = tanh(_tanh_argument(x))
    inner_slope = math.sqrt(2.0 / math.pi) * (1.0 + 3.0 * 0.044715 * (x * x))
    return 0.5 * (1.0 + bend) + 0.5 * x * (1.0 - bend * bend) * inner_slope


@gelu.samples
def gelu_samples() -> list[Call]:
    return [
        *unary(),
        *(((x,), {"approximate": "tanh"}) for x in (normal(), normal(2, 3), normal(4).astype(np.float32))),
    ]
