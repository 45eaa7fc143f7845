"""Ops that work number by number, with NumPy's broadcasting."""

from __future__ import annotations

import math
from typing import Any

from ..operators import Shape, boolean_dtype, floating_dtype, op, result_dtype
from .sampling import Call, binary, normal, positive, unary
from .structure import ones_like

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


mul.samples(binary)


@op(elementwise=True)
def div(xp: Any, x: Any, y: Any) -> Any:
    """x / y."""
    return xp.true_divide(x, y)


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


neg.samples(unary)


@op(elementwise=True)
def power(xp: Any, x: Any, y: Any) -> Any:
    """x to the power y.

    At base 0 with a positive exponent both derivatives are finite; at a negative base the exponent's derivative is NaN.
    A plain number as exponent never touches the logarithm.
    """
    return x**y if hasattr(x, "dtype") else xp.power(x, y)


@power.vjp("x")
def power_vjp_x(g: Any, x: Any, y: Any) -> Any:
    return g * y * x ** _one_less(y)


@power.vjp("y")
def power_vjp_y(g: Any, x: Any, out: Any) -> Any:
    return g * out * log(_base_with_logarithm(x))


@power.jvp("x")
def power_jvp_x(dx: Any, x: Any, y: Any) -> Any:
    return dx * y * x ** _one_less(y)


@power.jvp("y")
def power_jvp_y(dy: Any, x: Any, out: Any) -> Any:
    return dy * out * log(_base_with_logarithm(x))


def _one_less(y: Any) -> Any:
    """y − 1, but 1 where y is 0: there the derivative 0 · x⁻¹ must be 0 also at x = 0."""
    if isinstance(y, (int, float)):
        return y - 1 if y else 1
    return where(y == 0, 1.0, y - 1)


def _base_with_logarithm(x: Any) -> Any:
    """x where it has a logarithm, 1 at 0 (so that 0ʸ · log gives 0, not 0 · −∞), NaN below."""
    one = ones_like(x)  # a constant of x's dtype, so that no gradient and no float64 comes from the other branches
    return where(x > 0, x, where(x == 0, one, math.nan * one))


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
def maximum(xp: Any, x: Any, y: Any) -> Any:
    """The larger of x and y. Where they are equal, each gets half of the gradient."""
    return xp.maximum(x, y)


@maximum.vjp("x")
def maximum_vjp_x(g: Any, x: Any, y: Any) -> Any:
    return where(x > y, g, where(x == y, 0.5 * g, 0.0))


@maximum.vjp("y")
def maximum_vjp_y(g: Any, x: Any, y: Any) -> Any:
    return where(y > x, g, where(x == y, 0.5 * g, 0.0))


@maximum.jvp("x")
def maximum_jvp_x(dx: Any, x: Any, y: Any) -> Any:
    return where(x > y, dx, where(x == y, 0.5 * dx, 0.0))


@maximum.jvp("y")
def maximum_jvp_y(dy: Any, x: Any, y: Any) -> Any:
    return where(y > x, dy, where(x == y, 0.5 * dy, 0.0))


maximum.samples(binary)


@op(elementwise=True, constant_inputs=("condition",))
def where(xp: Any, condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y. No gradient flows to the condition."""
    return xp.where(condition, x, y)


@where.dtype_rule
def where_dtype(condition: Any, x: Any, y: Any) -> Any:
    return result_dtype(x, y)


@where.vjp("x")
def where_vjp_x(g: Any, condition: Any) -> Any:
    return where(condition, g, 0.0)


@where.vjp("y")
def where_vjp_y(g: Any, condition: Any) -> Any:
    return where(condition, 0.0, g)


@where.jvp("x")
def where_jvp_x(dx: Any, condition: Any) -> Any:
    return where(condition, dx, 0.0)


@where.jvp("y")
def where_jvp_y(dy: Any, condition: Any) -> Any:
    return where(condition, 0.0, dy)


@where.samples
def where_samples() -> list[Call]:
    return [((normal(*_sample_shape(x), seed=9) > 0, x, y), {}) for (x, y), _ in binary()]


def _sample_shape(x: Any) -> Shape:
    return getattr(x, "shape", (2, 3))


# ------------------------------------------------------------------------------------------------------------ functions


@op(elementwise=True)
def exp(xp: Any, x: Any) -> Any:
    """eˣ."""
    return xp.exp(x)


exp.dtype_rule(floating_dtype)


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


log.dtype_rule(floating_dtype)


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
def tanh(xp: Any, x: Any) -> Any:
    """The hyperbolic tangent."""
    return xp.tanh(x)


tanh.dtype_rule(floating_dtype)


@tanh.vjp
def tanh_vjp(g: Any, out: Any) -> Any:
    return g * (1.0 - out * out)


@tanh.jvp
def tanh_jvp(dx: Any, out: Any) -> Any:
    return dx * (1.0 - out * out)


tanh.samples(unary)


@op(elementwise=True)
def relu(xp: Any, x: Any) -> Any:
    """The larger of x and 0. The derivative at 0 is 0."""
    return xp.maximum(x, 0)


@relu.vjp
def relu_vjp(g: Any, out: Any) -> Any:
    return g * (out > 0)


@relu.jvp
def relu_jvp(dx: Any, out: Any) -> Any:
    return dx * (out > 0)


relu.samples(unary)


@op(elementwise=True)
def sigmoid(xp: Any, x: Any) -> Any:
    """1 / (1 + e⁻ˣ), without overflow and with full relative accuracy far from 0."""
    decay = xp.exp(-xp.abs(x))
    return xp.where(xp.asarray(x) >= 0, 1, decay) / (1 + decay)


sigmoid.dtype_rule(floating_dtype)


@sigmoid.vjp
def sigmoid_vjp(g: Any, out: Any) -> Any:
    return g * out * (1.0 - out)


@sigmoid.jvp
def sigmoid_jvp(dx: Any, out: Any) -> Any:
    return dx * out * (1.0 - out)


sigmoid.samples(unary)


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


# --------------------------------------------------------------------------------------- comparisons: no gradient flows


@op(elementwise=True, differentiable=False)
def less(xp: Any, x: Any, y: Any) -> Any:
    """Whether x < y."""
    return xp.less(x, y)


@op(elementwise=True, differentiable=False)
def less_equal(xp: Any, x: Any, y: Any) -> Any:
    """Whether x ≤ y."""
    return xp.less_equal(x, y)


@op(elementwise=True, differentiable=False)
def greater(xp: Any, x: Any, y: Any) -> Any:
    """Whether x > y."""
    return xp.greater(x, y)


@op(elementwise=True, differentiable=False)
def greater_equal(xp: Any, x: Any, y: Any) -> Any:
    """Whether x ≥ y."""
    return xp.greater_equal(x, y)


@op(elementwise=True, differentiable=False)
def equal(xp: Any, x: Any, y: Any) -> Any:
    """Whether x = y."""
    return xp.equal(x, y)


@op(elementwise=True, differentiable=False)
def not_equal(xp: Any, x: Any, y: Any) -> Any:
    """Whether x ≠ y."""
    return xp.not_equal(x, y)


for comparison in (less, less_equal, greater, greater_equal, equal, not_equal):
    comparison.dtype_rule(boolean_dtype)
    comparison.samples(binary)
