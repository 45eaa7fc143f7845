"""Elementwise hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cuda_kernels import cuda_expression
from ..operand_rules import function_dtype
from ..operators import op
from .powers import sqrt
from .sampling import Call, fraction, positive, unary


@op(elementwise=True)
def sinh(xp: Any, x: Any) -> Any:
    """The hyperbolic sine."""
    return xp.sinh(x)


cuda_expression(sinh, "sinh(x)")
sinh.dtype_rule(function_dtype)


@sinh.vjp
def sinh_vjp(g: Any, x: Any) -> Any:
    return g * cosh(x)


@sinh.jvp
def sinh_jvp(dx: Any, x: Any) -> Any:
    return dx * cosh(x)


sinh.samples(unary)


@op(elementwise=True)
def cosh(xp: Any, x: Any) -> Any:
    """The hyperbolic cosine."""
    return xp.cosh(x)


cuda_expression(cosh, "cosh(x)")
cosh.dtype_rule(function_dtype)


@cosh.vjp
def cosh_vjp(g: Any, x: Any) -> Any:
    return g * sinh(x)


@cosh.jvp
def cosh_jvp(dx: Any, x: Any) -> Any:
    return dx * sinh(x)


cosh.samples(unary)


@op(elementwise=True)
def tanh(xp: Any, x: Any) -> Any:
    """The hyperbolic tangent."""
    return xp.tanh(x)


cuda_expression(tanh, "tanh(x)")
tanh.dtype_rule(function_dtype)


@tanh.vjp
def tanh_vjp(g: Any, out: Any) -> Any:
    return g * (1.0 - out * out)


@tanh.jvp
def tanh_jvp(dx: Any, out: Any) -> Any:
    return dx * (1.0 - out * out)


tanh.samples(unary)


@op(elementwise=True)
def arcsinh(xp: Any, x: Any) -> Any:
    """The number whose hyperbolic sine is x."""
    return xp.arcsinh(x)


cuda_expression(arcsinh, "asinh(x)")
arcsinh.dtype_rule(function_dtype)


@arcsinh.vjp
def arcsinh_vjp(g: Any, x: Any) -> Any:
    return g / sqrt(x * x + 1.0)


@arcsinh.jvp
def arcsinh_jvp(dx: Any, x: Any) -> Any:
    return dx / sqrt(x * x + 1.0)


arcsinh.samples(unary)


@op(elementwise=True)
def arccosh(xp: Any, x: Any) -> Any:
    """The number, not below 0, whose hyperbolic cosine is x; x is at least 1."""
    return xp.arccosh(x)


cuda_expression(arccosh, "acosh(x)")
arccosh.dtype_rule(function_dtype)


@arccosh.vjp
def arccosh_vjp(g: Any, x: Any) -> Any:
    return g / sqrt((x - 1.0) * (x + 1.0))


@arccosh.jvp
def arccosh_jvp(dx: Any, x: Any) -> Any:
    return dx / sqrt((x - 1.0) * (x + 1.0))


@arccosh.samples
def arccosh_samples() -> list[Call]:
    return unary(_above_one)


@op(elementwise=True)
def arctanh(xp: Any, x: Any) -> Any:
    """The number whose hyperbolic tangent is x."""
    return xp.arctanh(x)


cuda_expression(arctanh, "atanh(x)")
arctanh.dtype_rule(function_dtype)


@arctanh.vjp
def arctanh_vjp(g: Any, x: Any) -> Any:
    return g / ((1.0 - x) * (1.0 + x))


@arctanh.jvp
def arctanh_jvp(dx: Any, x: Any) -> Any:
    return dx / ((1.0 - x) * (1.0 + x))


@arctanh.samples
def arctanh_samples() -> list[Call]:
    return unary(fraction)[:-1]  # without the whole number 1, where it is infinite


def _above_one(*shape: int) -> Any:
    return np.asarray(1.0 + positive(*shape))
