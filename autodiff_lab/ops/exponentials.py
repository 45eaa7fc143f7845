"""Elementwise exponentials and logarithms."""

from __future__ import annotations

import math
from typing import Any

from ..cuda_kernels import cuda_expression
from ..operand_rules import function_dtype
from ..operators import op
from .sampling import Call, binary, positive, unary


@op(elementwise=True)
def exp(xp: Any, x: Any) -> Any:
    """eˣ."""
    return xp.exp(x)


cuda_expression(exp, "exp(x)")
exp.dtype_rule(function_dtype)


@exp.vjp
def exp_vjp(g: Any, out: Any) -> Any:
    return g * out


@exp.jvp
def exp_jvp(dx: Any, out: Any) -> Any:
    return dx * out


exp.samples(unary)


@op(elementwise=True)
def log(xp: Any, x: Any) -> Any:
    """The natural logarithm."""
    return xp.log(x)


cuda_expression(log, "log(x)")
log.dtype_rule(function_dtype)


@log.vjp
def log_vjp(g: Any, x: Any) -> Any:
    return g / x


@log.jvp
def log_jvp(dx: Any, x: Any) -> Any:
    return dx / x


@log.samples
def log_samples() -> list[Call]:
    return unary(positive)


@op(elementwise=True)
def expm1(xp: Any, x: Any) -> Any:
    """eˣ − 1, accurate near 0."""
    return xp.expm1(x)


cuda_expression(expm1, "expm1(x)")
expm1.dtype_rule(function_dtype)


@expm1.vjp
def expm1_vjp(g: Any, out: Any) -> Any:
    return g * (out + 1.0)


@expm1.jvp
def expm1_jvp(dx: Any, out: Any) -> Any:
    return dx * (out + 1.0)


expm1.samples(unary)


@op(elementwise=True)
def log1p(xp: Any, x: Any) -> Any:
    """The natural logarithm of 1 + x, accurate near 0."""
    return xp.log1p(x)


cuda_expression(log1p, "log1p(x)")
log1p.dtype_rule(function_dtype)


@log1p.vjp
def log1p_vjp(g: Any, x: Any) -> Any:
    return g / (1.0 + x)


@log1p.jvp
def log1p_jvp(dx: Any, x: Any) -> Any:
    return dx / (1.0 + x)


@log1p.samples
def log1p_samples() -> list[Call]:
    return unary(positive)


@op(elementwise=True)
def exp2(xp: Any, x: Any) -> Any:
    """2ˣ."""
    return xp.exp2(x)


cuda_expression(exp2, "exp2(x)")
exp2.dtype_rule(function_dtype)


@exp2.vjp
def exp2_vjp(g: Any, out: Any) -> Any:
    return g * out * math.log(2.0)


@exp2.jvp
def exp2_jvp(dx: Any, out: Any) -> Any:
    return dx * out * math.log(2.0)


exp2.samples(unary)


@op(elementwise=True)
def log2(xp: Any, x: Any) -> Any:
    """The logarithm with base 2."""
    return xp.log2(x)


cuda_expression(log2, "log2(x)")
log2.dtype_rule(function_dtype)


@log2.vjp
def log2_vjp(g: Any, x: Any) -> Any:
    return g / (x * math.log(2.0))


@log2.jvp
def log2_jvp(dx: Any, x: Any) -> Any:
    return dx / (x * math.log(2.0))


@log2.samples
def log2_samples() -> list[Call]:
    return unary(positive)


@op(elementwise=True)
def log10(xp: Any, x: Any) -> Any:
    """The logarithm with base 10."""
    return xp.log10(x)


cuda_expression(log10, "log10(x)")
log10.dtype_rule(function_dtype)


@log10.vjp
def log10_vjp(g: Any, x: Any) -> Any:
    return g / (x * math.log(10.0))


@log10.jvp
def log10_jvp(dx: Any, x: Any) -> Any:
    return dx / (x * math.log(10.0))


@log10.samples
def log10_samples() -> list[Call]:
    return unary(positive)


@op(elementwise=True)
def logaddexp(xp: Any, x: Any, y: Any) -> Any:
    """log(eˣ + eʸ), without overflow."""
    return xp.logaddexp(x, y)


cuda_expression(logaddexp, "x == y ? x + log(T(2)) : fmax(x, y) + log1p(exp(-fabs(x - y)))")
logaddexp.dtype_rule(function_dtype)


@logaddexp.vjp("x")
def logaddexp_vjp_x(g: Any, x: Any, out: Any) -> Any:
    return g * exp(x - out)


@logaddexp.vjp("y")
def logaddexp_vjp_y(g: Any, y: Any, out: Any) -> Any:
    return g * exp(y - out)


@logaddexp.jvp("x")
def logaddexp_jvp_x(dx: Any, x: Any, out: Any) -> Any:
    return dx * exp(x - out)


@logaddexp.jvp("y")
def logaddexp_jvp_y(dy: Any, y: Any, out: Any) -> Any:
    return dy * exp(y - out)


logaddexp.samples(binary)
