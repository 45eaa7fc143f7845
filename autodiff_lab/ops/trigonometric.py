"""Elementwise trigonometric functions, of angles in radians, and their inverses."""

from __future__ import annotations

from typing import Any

from ..cuda_kernels import cuda_expression
from ..operand_rules import function_dtype
from ..operators import op
from .powers import sqrt
from .sampling import Call, binary, fraction, unary


@op(elementwise=True)
def sin(xp: Any, x: Any) -> Any:
    """The sine of an angle in radians."""
    return xp.sin(x)


cuda_expression(sin, "sin(x)")
sin.dtype_rule(function_dtype)


@sin.vjp
def sin_vjp(g: Any, x: Any) -> Any:
    return g * cos(x)


@sin.jvp
def sin_jvp(dx: Any, x: Any) -> Any:
    return dx * cos(x)


sin.samples(unary)


@op(elementwise=True)
def cos(xp: Any, x: Any) -> Any:
    """The cosine of an angle in radians."""
    return xp.cos(x)


cuda_expression(cos, "cos(x)")
cos.dtype_rule(function_dtype)


@cos.vjp
def cos_vjp(g: Any, x: Any) -> Any:
    return -g * sin(x)


@cos.jvp
def cos_jvp(dx: Any, x: Any) -> Any:
    return -dx * sin(x)


cos.samples(unary)


@op(elementwise=True)
def tan(xp: Any, x: Any) -> Any:
    """The tangent of an angle in radians."""
    return xp.tan(x)


cuda_expression(tan, "tan(x)")
tan.dtype_rule(function_dtype)


@tan.vjp
def tan_vjp(g: Any, out: Any) -> Any:
    return g * (1.0 + out * out)


@tan.jvp
def tan_jvp(dx: Any, out: Any) -> Any:
    return dx * (1.0 + out * out)


@tan.samples
def tan_samples() -> list[Call]:
    return unary(fraction)


@op(elementwise=True)
def arcsin(xp: Any, x: Any) -> Any:
    """The angle in [−π/2, π/2] whose sine is x."""
    return xp.arcsin(x)


cuda_expression(arcsin, "asin(x)")
arcsin.dtype_rule(function_dtype)


@arcsin.vjp
def arcsin_vjp(g: Any, x: Any) -> Any:
    return g / sqrt((1.0 - x) * (1.0 + x))


@arcsin.jvp
def arcsin_jvp(dx: Any, x: Any) -> Any:
    return dx / sqrt((1.0 - x) * (1.0 + x))


@arcsin.samples
def arcsin_samples() -> list[Call]:
    return unary(fraction)


@op(elementwise=True)
def arccos(xp: Any, x: Any) -> Any:
    """The angle in [0, π] whose cosine is x."""
    return xp.arccos(x)


cuda_expression(arccos, "acos(x)")
arccos.dtype_rule(function_dtype)


@arccos.vjp
def arccos_vjp(g: Any, x: Any) -> Any:
    return -g / sqrt((1.0 - x) * (1.0 + x))


@arccos.jvp
def arccos_jvp(dx: Any, x: Any) -> Any:
    return -dx / sqrt((1.0 - x) * (1.0 + x))


@arccos.samples
def arccos_samples() -> list[Call]:
    return unary(fraction)


@op(elementwise=True)
def arctan(xp: Any, x: Any) -> Any:
    """The angle in (−π/2, π/2) whose tangent is x."""
    return xp.arctan(x)


cuda_expression(arctan, "atan(x)")
arctan.dtype_rule(function_dtype)


@arctan.vjp
def arctan_vjp(g: Any, x: Any) -> Any:
    return g / (1.0 + x * x)


@arctan.jvp
def arctan_jvp(dx: Any, x: Any) -> Any:
    return dx / (1.0 + x * x)


arctan.samples(unary)


@op(elementwise=True)
def arctan2(xp: Any, y: Any, x: Any) -> Any:
    """The angle in (−π, π] of the point (x, y), given as arctan2(y, x). There is no derivative at (0, 0)."""
    return xp.arctan2(y, x)


cuda_expression(arctan2, "atan2(y, x)")
arctan2.dtype_rule(function_dtype)


@arctan2.vjp("y")
def arctan2_vjp_y(g: Any, y: Any, x: Any) -> Any:
    return g * (x / (x * x + y * y))


@arctan2.vjp("x")
def arctan2_vjp_x(g: Any, y: Any, x: Any) -> Any:
    return -g * (y / (x * x + y * y))


@arctan2.jvp("y")
def arctan2_jvp_y(dy: Any, y: Any, x: Any) -> Any:
    return dy * (x / (x * x + y * y))


@arctan2.jvp("x")
def arctan2_jvp_x(dx: Any, y: Any, x: Any) -> Any:
    return -dx * (y / (x * x + y * y))


arctan2.samples(binary)
