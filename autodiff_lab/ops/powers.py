"""Elementwise powers, roots, and the reciprocal."""

from __future__ import annotations

import math
from typing import Any

from ..cuda_kernels import cuda_expression
from ..operand_rules import floating_dtype, function_dtype, number_dtype
from ..operators import op
from .choices import where
from .exponentials import log
from .sampling import Call, binary, normal, positive, unary
from .structure import ones_like


@op(elementwise=True)
def power(xp: Any, x: Any, y: Any) -> Any:
    """x to the power y.

    At base 0 with a positive exponent both derivatives are finite; at a negative base the exponent's derivative is NaN.
    A plain number as exponent never touches the logarithm.
    """
    return x**y if hasattr(x, "dtype") else xp.power(x, y)


cuda_expression(power, "pow(x, y)")
power.dtype_rule(number_dtype)


@power.vjp("x")
def power_vjp_x(g: Any, x: Any, y: Any) -> Any:
    return g * _slope(x, y)


@power.vjp("y")
def power_vjp_y(g: Any, x: Any, out: Any) -> Any:
    return g * out * _logarithm_of_base(x)


@power.jvp("x")
def power_jvp_x(dx: Any, x: Any, y: Any) -> Any:
    return dx * _slope(x, y)


@power.jvp("y")
def power_jvp_y(dy: Any, x: Any, out: Any) -> Any:
    return dy * out * _logarithm_of_base(x)


def _slope(x: Any, y: Any) -> Any:
    """y · x^(y − 1), and 0 at x = y = 0, where that would be 0 · ∞."""
    if isinstance(y, (int, float)):
        return y * x ** (y - 1 if y else 1)
    return y * where(x == 0, where(y == 0, ones_like(x), x), x) ** (y - 1)


def _logarithm_of_base(x: Any) -> Any:
    """log x; 0 where x is 0 (so that 0ʸ · log gives 0, not 0 · −∞), NaN below. For a plain number again a plain number."""
    if isinstance(x, (int, float)):
        return math.log(x) if x > 0 else 0.0 if x == 0 else math.nan
    one = ones_like(x)  # a constant of x's dtype, so that no gradient and no float64 comes from the other branches
    return log(where(x > 0, x, where(x == 0, one, math.nan * one)))


@power.samples
def power_samples() -> list[Call]:
    return [
        *binary(positive),
        ((normal(2, 3), 3), {}),
        ((normal(3), 2.0), {}),
        ((normal(2), 0), {}),
        ((positive(2), -1.5), {}),
    ]


@op(elementwise=True)
def square(xp: Any, x: Any) -> Any:
    """x²."""
    return xp.square(x)


@square.vjp
def square_vjp(g: Any, x: Any) -> Any:
    return g * (2.0 * x)


@square.jvp
def square_jvp(dx: Any, x: Any) -> Any:
    return dx * (2.0 * x)


cuda_expression(square, "x * x")
square.dtype_rule(number_dtype)
square.samples(unary)


@op(elementwise=True)
def sqrt(xp: Any, x: Any) -> Any:
    """The square root. The derivative at 0 is infinite."""
    return xp.sqrt(x)


cuda_expression(sqrt, "sqrt(x)")
sqrt.dtype_rule(function_dtype)


@sqrt.vjp
def sqrt_vjp(g: Any, out: Any) -> Any:
    return 0.5 * g / out


@sqrt.jvp
def sqrt_jvp(dx: Any, out: Any) -> Any:
    return 0.5 * dx / out


@sqrt.samples
def sqrt_samples() -> list[Call]:
    return unary(positive)


@op(elementwise=True)
def cbrt(xp: Any, x: Any) -> Any:
    """The cube root, also of negative numbers. The derivative at 0 is infinite."""
    return xp.cbrt(x)


cuda_expression(cbrt, "cbrt(x)")
cbrt.dtype_rule(function_dtype)


@cbrt.vjp
def cbrt_vjp(g: Any, out: Any) -> Any:
    return g / (3.0 * out * out)


@cbrt.jvp
def cbrt_jvp(dx: Any, out: Any) -> Any:
    return dx / (3.0 * out * out)


cbrt.samples(unary)


@op(elementwise=True)
def reciprocal(xp: Any, x: Any) -> Any:
    """1 / x. Unlike NumPy's, the reciprocal of a whole number is a fraction."""
    return xp.true_divide(1, x)


cuda_expression(reciprocal, "1 / x")
reciprocal.dtype_rule(floating_dtype)


@reciprocal.vjp
def reciprocal_vjp(g: Any, out: Any) -> Any:
    return -g * out * out


@reciprocal.jvp
def reciprocal_jvp(dx: Any, out: Any) -> Any:
    return -dx * out * out


reciprocal.samples(unary)


@op(elementwise=True)
def hypot(xp: Any, x: Any, y: Any) -> Any:
    """The hypotenuse √(x² + y²), without overflow. Both derivatives at (0, 0) are 0."""
    return xp.hypot(x, y)


cuda_expression(hypot, "hypot(x, y)")
hypot.dtype_rule(function_dtype)


@hypot.vjp("x")
def hypot_vjp_x(g: Any, x: Any, out: Any) -> Any:
    return g * (x / (out + (out == 0)))


@hypot.vjp("y")
def hypot_vjp_y(g: Any, y: Any, out: Any) -> Any:
    return g * (y / (out + (out == 0)))


@hypot.jvp("x")
def hypot_jvp_x(dx: Any, x: Any, out: Any) -> Any:
    return dx * (x / (out + (out == 0)))


@hypot.jvp("y")
def hypot_jvp_y(dy: Any, y: Any, out: Any) -> Any:
    return dy * (y / (out + (out == 0)))


hypot.samples(binary)
