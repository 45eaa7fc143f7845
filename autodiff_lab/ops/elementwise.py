"""Arithmetic, number by number with NumPy's broadcasting, and the change of dtype."""

from __future__ import annotations

from typing import Any

from ..cuda_kernels import cuda_expression
from ..operand_rules import floating_dtype, signed_dtype
from ..operators import op
from .sampling import Call, binary, normal, unary

# ---------------------------------------------------------------------------------------------------------- arithmetic


@op(elementwise=True)
def add(xp: Any, x: Any, y: Any) -> Any:
    """x + y."""
    return xp.add(x, y)


@add.vjp("x")
def add_vjp_x(g: Any) -> Any:
    return g


@add.vjp("y")
def add_vjp_y(g: Any) -> Any:
    return g


@add.jvp("x")
def add_jvp_x(dx: Any) -> Any:
    return dx


@add.jvp("y")
def add_jvp_y(dy: Any) -> Any:
    return dy


cuda_expression(add, "x + y")
add.samples(binary)


@op(elementwise=True)
def sub(xp: Any, x: Any, y: Any) -> Any:
    """x − y."""
    return xp.subtract(x, y)


@sub.vjp("x")
def sub_vjp_x(g: Any) -> Any:
    return g


@sub.vjp("y")
def sub_vjp_y(g: Any) -> Any:
    return -g


@sub.jvp("x")
def sub_jvp_x(dx: Any) -> Any:
    return dx


@sub.jvp("y")
def sub_jvp_y(dy: Any) -> Any:
    return -dy


cuda_expression(sub, "x - y")
sub.dtype_rule(signed_dtype)
sub.samples(binary)


@op(elementwise=True)
def mul(xp: Any, x: Any, y: Any) -> Any:
    """x · y."""
    return xp.multiply(x, y)


@mul.vjp("x")
def mul_vjp_x(g: Any, y: Any) -> Any:
    return g * y


@mul.vjp("y")
def mul_vjp_y(g: Any, x: Any) -> Any:
    return g * x


@mul.jvp("x")
def mul_jvp_x(dx: Any, y: Any) -> Any:
    return dx * y


@mul.jvp("y")
def mul_jvp_y(dy: Any, x: Any) -> Any:
    return x * dy


cuda_expression(mul, "x * y")
mul.samples(binary)


@op(elementwise=True)
def div(xp: Any, x: Any, y: Any) -> Any:
    """x / y."""
    return xp.true_divide(x, y)


cuda_expression(div, "x / y")
div.dtype_rule(floating_dtype)


@div.vjp("x")
def div_vjp_x(g: Any, y: Any) -> Any:
    return g / y


@div.vjp("y")
def div_vjp_y(g: Any, y: Any, out: Any) -> Any:
    return -g * out / y


@div.jvp("x")
def div_jvp_x(dx: Any, y: Any) -> Any:
    return dx / y


@div.jvp("y")
def div_jvp_y(dy: Any, y: Any, out: Any) -> Any:
    return -dy * out / y


div.samples(binary)


@op(elementwise=True)
def neg(xp: Any, x: Any) -> Any:
    """−x."""
    return xp.negative(x)


@neg.vjp
def neg_vjp(g: Any) -> Any:
    return -g


@neg.jvp
def neg_jvp(dx: Any) -> Any:
    return -dx


cuda_expression(neg, "-x")
neg.dtype_rule(signed_dtype)
neg.samples(unary)


@op(elementwise=True)
def astype(xp: Any, x: Any, *, dtype: Any) -> Any:
    """x in another dtype. A gradient flows between floating dtypes."""
    return xp.asarray(x).astype(dtype)


@astype.dtype_rule
def astype_dtype(x: Any, *, dtype: Any) -> Any:
    return dtype


@astype.vjp
def astype_vjp(g: Any, x_dtype: Any) -> Any:
    return astype(g, dtype=x_dtype)


@astype.jvp
def astype_jvp(dx: Any, *, dtype: Any) -> Any:
    return astype(dx, dtype=dtype)


@astype.samples
def astype_samples() -> list[Call]:
    return [((normal(2, 3).astype("float32"),), {"dtype": "float64"}), ((normal(3),), {"dtype": "float64"})]
