"""Exercises of lesson 40, gradient rules: the elementwise rules, and the list of all."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np

from autodiff_lab import ops

from . import gradient_rules_answers as answers
from . import vjp_laws as laws
from .exercise import CHANGED_ARGUMENTS, RETURNS_NOTHING, STOPS_WITH_ERROR, Case, Exercise, Misconception, case
from .gradient_rules_of_copies import COPIES
from .gradient_rules_of_matrices import MATRICES
from .vjp_laws import Pullback, equals, every, numbers
from .withholding import DERIVATIVES

LESSON = "40_gradient_rules"
Shape = tuple[int, ...]

# ---------------------------------------------------------------------------------------------------------- mul, exp


def asks_mul(g: np.ndarray, x: np.ndarray, y: np.ndarray) -> Pullback:
    """What mul_vjp is asked for."""
    return Pullback(ops.mul, (x, y), g)


def asks_exp(g: np.ndarray, x: np.ndarray) -> Pullback:
    """What exp_vjp is asked for."""
    return Pullback(ops.exp, (x,), g)


def _elementwise_cases(random: Random, marking: bool, arrays: int) -> Iterator[Case]:
    """One shape for all arrays, from a single number to three axes."""
    more = random.randint(1, 2) if marking else 0
    shapes: list[tuple[str, Shape, str]] = [
        ("one number", (), "float64"), ("one number", (), "float64"), ("a vector", (3 + more,), "float64"),
        ("a matrix", (2 + more, 3), "float64"), ("three axes", (2, 3, 2 + more), "float64"),
        ("float32", (2, 3 + more), "float32"),
    ]  # fmt: skip
    for check, shape, dtype in shapes:
        yield case(check, ", ".join(numbers(random, *shape, dtype=dtype) for _ in range(arrays)))
    yield case("zeros", ", ".join(numbers(random, 3 + more, zeros=place > 0) for place in range(arrays)))


MUL = Exercise(
    lesson=LESSON,
    statement="""\
Write `mul_vjp(g, x, y)`, in NumPy, the rule of the elementwise product `out = x * y`.

* `g` is the gradient that arrives: `g[i]` says how much the loss grows when `out[i]` grows. `g`, `x` and `y` have one shape.
* Return two arrays: the gradient for `x` and the gradient for `y`, in this order.
* Keep the dtype, and leave all three arguments as they are.""",
    hints=(
        "Move `x[0]` by a tiny amount d. By how much does `out[0]` move? And by how much does the loss move then?",
        "`out[0]` moves by d times `y[0]`. Each unit of that is worth `g[0]` to the loss. Multiply the two.",
        "For `x` multiply the gradient that arrives by the *other* factor; for `y` do the same with `x`.",
    ),
    solution=answers.mul_vjp,
    alternatives=(answers.mul_by_einsum,),
    wrong=(
        (answers.mul_forgets_upstream, "the gradient is the local derivative"),
        (answers.mul_swapped, "each for itself"),
        (answers.mul_like_add, "every operation passes the gradient on"),
        (answers.mul_as_one_sum, "not one gradient for each input"),
        (answers.mul_in_place, "changes its argument"),
        (answers.mul_in_float64, "any dtype will do"),
        (answers.mul_from_the_result, "nothing is ever zero"),
        (answers.mul_by_the_lab, "the lab does it"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        laws.not_one_array_each(asks_mul, "two arrays, `(for_x, for_y)`"),
        laws.zero_divided(asks_mul),
        laws.shape_lost(asks_mul),
        laws.dtype_lost(asks_mul),
        laws.upstream_forgotten(asks_mul),
        laws.sign_lost(asks_mul),
        Misconception(
            "each for itself",
            "You hand each input what belongs to the other. If `y` is large, a small step of `x` moves the product a lot: "
            "the gradient for `x` has to depend on `y`.",
            every(asks_mul, laws.is_swapped),
        ),
        Misconception(
            "every operation passes the gradient on",
            "You pass the gradient on unchanged. That is the rule of addition, where the result moves just as much as the "
            "input. A product moves by more or by less: by how much?",
            every(asks_mul, equals(lambda g, x, y: (g, g))),
        ),
        laws.not_the_adjoint(),
    ),
    withheld=DERIVATIVES,
    cases=lambda random, marking: _elementwise_cases(random, marking, arrays=3),
    accepts=lambda answer, *arguments: laws.is_pullback(answer, asks_mul(*arguments)),
)

EXP = Exercise(
    lesson=LESSON,
    statement="""\
Write `exp_vjp(g, x)` in NumPy, the rule of `out = np.exp(x)`, entry by entry. `g` is the gradient that arrives, shaped like
`x`. Return one array: the gradient for `x`. Keep the dtype, and leave the arguments as they are.""",
    hints=(
        "What is the derivative of e to the power x, seen as a function of x? It is one of the few that you know by heart.",
        "The local derivative is the result itself. What is missing is the gradient that arrives from above.",
        "Compute the exponential of `x`, and multiply it entry by entry with `g`, into a new array.",
    ),
    solution=answers.exp_vjp,
    alternatives=(answers.exp_from_the_result,),
    wrong=(
        (answers.exp_forgets_upstream, "the gradient is the local derivative"),
        (answers.exp_by_power_rule, "the power rule"),
        (answers.exp_inside, "the upstream gradient goes into the function"),
        (answers.exp_of_upstream, "the derivative is taken at the gradient"),
        (answers.exp_like_log, "the rule of the logarithm"),
        (answers.exp_in_float64, "any dtype will do"),
        (answers.exp_in_place, "changes its argument"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        laws.not_one_array_each(asks_exp, "one array"),
        laws.zero_divided(asks_exp),
        laws.shape_lost(asks_exp),
        laws.dtype_lost(asks_exp),
        laws.upstream_forgotten(asks_exp),
        laws.sign_lost(asks_exp),
        Misconception(
            "the power rule",
            "You brought the exponent down, as for x to the power n. There the variable is below; here it is above. The "
            "derivative of the exponential function has no factor in front.",
            every(asks_exp, equals(lambda g, x: g * x * np.exp(x - 1))),
        ),
        Misconception(
            "the upstream gradient goes into the function",
            "You put the gradient into the exponent. It is not an input of the operation: it arrives from above, and "
            "multiplies the local derivative.",
            every(asks_exp, equals(lambda g, x: np.exp(g * x))),
        ),
        Misconception(
            "the derivative is taken at the gradient",
            "You take the derivative at the point `g`. The graph was run at the point `x`, and the derivative belongs there.",
            every(asks_exp, equals(lambda g, x: g * np.exp(g))),
        ),
        Misconception(
            "the rule of the logarithm",
            "Dividing by `x` is the rule of the logarithm, the inverse function.",
            every(asks_exp, equals(lambda g, x: g / x)),
        ),
        laws.not_the_adjoint(),
    ),
    withheld=DERIVATIVES,
    cases=lambda random, marking: _elementwise_cases(random, marking, arrays=2),
    accepts=lambda answer, *arguments: laws.is_pullback(answer, asks_exp(*arguments)),
)

EXERCISES = (MUL, EXP, *COPIES, *MATRICES)
