"""Elementwise ops with a kink or a jump: maximum, where, clip, abs, rounding, and the comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cuda_kernels import cuda_expression
from ..operand_rules import Shape, boolean_dtype, keeps_floating, result_dtype, signed_dtype
from ..operators import op
from .sampling import Call, binary, normal, unary
from .structure import zeros_like

# ------------------------------------------------------------------------------------------------ the larger, the smaller


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


cuda_expression(maximum, "x > y || x != x ? x : y")
maximum.samples(binary)


@op(elementwise=True)
def minimum(xp: Any, x: Any, y: Any) -> Any:
    """The smaller of x and y. Where they are equal, each gets half of the gradient."""
    return xp.minimum(x, y)


@minimum.vjp("x")
def minimum_vjp_x(g: Any, x: Any, y: Any) -> Any:
    return where(x < y, g, where(x == y, 0.5 * g, 0.0))


@minimum.vjp("y")
def minimum_vjp_y(g: Any, x: Any, y: Any) -> Any:
    return where(y < x, g, where(x == y, 0.5 * g, 0.0))


@minimum.jvp("x")
def minimum_jvp_x(dx: Any, x: Any, y: Any) -> Any:
    return where(x < y, dx, where(x == y, 0.5 * dx, 0.0))


@minimum.jvp("y")
def minimum_jvp_y(dy: Any, x: Any, y: Any) -> Any:
    return where(y < x, dy, where(x == y, 0.5 * dy, 0.0))


cuda_expression(minimum, "x < y || x != x ? x : y")
minimum.samples(binary)


@op(elementwise=True, constant_inputs=("condition",))
def where(xp: Any, condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y. No gradient flows to the condition."""
    return xp.where(condition, x, y)


cuda_expression(where, "condition ? x : y")


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


# ---------------------------------------------------------------------------------------------------- size and direction


@op(elementwise=True)
def abs(xp: Any, x: Any) -> Any:
    """The absolute value |x|. The derivative is the sign of x, so 0 at 0."""
    return xp.absolute(x)


@abs.vjp
def abs_vjp(g: Any, x: Any) -> Any:
    return g * sign(x)


@abs.jvp
def abs_jvp(dx: Any, x: Any) -> Any:
    return dx * sign(x)


cuda_expression(abs, "fabs(x)")
abs.samples(unary)


@op(elementwise=True)
def sign(xp: Any, x: Any) -> Any:
    """−1, 0 or 1: the sign of x. The derivative is 0 everywhere, also at the jump."""
    return xp.sign(x)


@sign.vjp
def sign_vjp(g: Any) -> Any:
    return zeros_like(g)


@sign.jvp
def sign_jvp(dx: Any) -> Any:
    return zeros_like(dx)


cuda_expression(sign, "x > 0 ? T(1) : x < 0 ? T(-1) : x")
sign.dtype_rule(signed_dtype)
sign.samples(unary)


@op(elementwise=True)
def clip(xp: Any, x: Any, *, a_min: float | None = None, a_max: float | None = None) -> Any:
    """x, but a_min where x is below it and a_max where x is above: two numbers, or None for no bound.

    The derivative is 1 between the bounds and on them, 0 outside. For bounds that are arrays use maximum and minimum.

    >>> ops.clip([-2.0, 0.5, 3.0], -1, 1)
    array([-1. ,  0.5,  1. ])
    """
    return xp.clip(x, _bound(a_min, "a_min"), _bound(a_max, "a_max"))


@clip.dtype_rule
def clip_dtype(x: Any, *, a_min: float | None, a_max: float | None) -> Any:
    return result_dtype(x, *(_bound(bound, "") for bound in (a_min, a_max) if bound is not None))


@clip.vjp
def clip_vjp(g: Any, x: Any, *, a_min: float | None, a_max: float | None) -> Any:
    return _inside(g, x, a_min, a_max)


@clip.jvp
def clip_jvp(dx: Any, x: Any, *, a_min: float | None, a_max: float | None) -> Any:
    return _inside(dx, x, a_min, a_max)


def _inside(g: Any, x: Any, a_min: float | None, a_max: float | None) -> Any:
    """g where x is not outside of the bounds, 0 elsewhere."""
    if a_min is not None:
        g = where(x < a_min, 0.0, g)
    return g if a_max is None else where(x > a_max, 0.0, g)


def _bound(bound: Any, name: str) -> float | None:
    """A bound as a plain number, which widens no dtype."""
    if isinstance(bound, (np.ndarray, np.generic)) and bound.ndim == 0:
        return bound.item()  # type: ignore[no-any-return]
    if bound is None or isinstance(bound, (int, float)):
        return bound
    raise TypeError(f"{name} must be a number or None, got {type(bound).__name__}; for arrays use maximum and minimum")


@clip.samples
def clip_samples() -> list[Call]:
    x = normal(3, 4)
    return [((x,), {"a_min": -0.5, "a_max": 0.7}), ((x.T,), {"a_min": 0, "a_max": None}),
            ((normal(),), {"a_min": None, "a_max": 0.25}), ((normal(0, 3),), {"a_min": 0, "a_max": 1}),
            ((x.astype(np.float32),), {"a_min": -0.5, "a_max": 1})]  # fmt: skip


@op(elementwise=True)
def floor(xp: Any, x: Any) -> Any:
    """The largest whole number that is not above x. The derivative is 0 everywhere, also at the jumps."""
    return xp.floor(x)


cuda_expression(floor, "floor(x)")


@op(elementwise=True)
def ceil(xp: Any, x: Any) -> Any:
    """The smallest whole number that is not below x. The derivative is 0 everywhere, also at the jumps."""
    return xp.ceil(x)


cuda_expression(ceil, "ceil(x)")


@op(elementwise=True)
def round(xp: Any, x: Any, *, decimals: int = 0) -> Any:
    """x rounded to ``decimals`` places, halves to the even neighbour. The derivative is 0 everywhere, also at the jumps."""
    return xp.round(x, decimals)


@round.dtype_rule
@keeps_floating
def round_dtype(x: Any) -> Any:
    found = result_dtype(x)
    return found if found.kind != "b" else np.dtype(np.float16)


for step in (floor, ceil, round):
    step.vjp(sign_vjp)
    step.jvp(sign_jvp)
    step.samples(unary)


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


_SYMBOLS = {less: "<", less_equal: "<=", greater: ">", greater_equal: ">=", equal: "==", not_equal: "!="}
for comparison, symbol in _SYMBOLS.items():
    comparison.dtype_rule(boolean_dtype)
    cuda_expression(comparison, f"x {symbol} y")
    comparison.samples(binary)
