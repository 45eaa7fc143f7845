"""Exercises of lesson 40, gradient rules: elementwise rules, broadcasting, sums, and the rules that move numbers."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np

from autodiff_lab import ops

from . import gradient_rules_answers as answers
from . import vjp_laws as laws
from .exercise import CHANGED_ARGUMENTS, RETURNS_NOTHING, STOPS_WITH_ERROR, Case, Exercise, Misconception, case
from .gradient_rules_of_matrices import MATRIX_EXERCISES
from .vjp_laws import Gradients, Pullback, equals, every, numbers

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
        ("one number", (), "float64"), ("a vector", (3 + more,), "float64"), ("a matrix", (2 + more, 3), "float64"),
        ("three axes", (2, 3, 2 + more), "float64"), ("float32", (2, 3 + more), "float32"),
    ]  # fmt: skip
    for check, shape, dtype in shapes:
        yield case(check, ", ".join(numbers(random, *shape, dtype=dtype) for _ in range(arrays)))


MUL = Exercise(
    lesson=LESSON,
    statement="""\
Write `mul_vjp(g, x, y)`, the rule of the elementwise product `out = x * y`.

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
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        laws.not_one_array_each(asks_mul, "two arrays, `(for_x, for_y)`"),
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
    cases=lambda random, marking: _elementwise_cases(random, marking, arrays=3),
    accepts=lambda answer, *arguments: laws.is_pullback(answer, asks_mul(*arguments)),
)

EXP = Exercise(
    lesson=LESSON,
    statement="""\
Write `exp_vjp(g, x)`, the rule of `out = np.exp(x)`, entry by entry. `g` is the gradient that arrives, shaped like `x`. Return
one array: the gradient for `x`. Keep the dtype, and leave the arguments as they are.""",
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
    cases=lambda random, marking: _elementwise_cases(random, marking, arrays=2),
    accepts=lambda answer, *arguments: laws.is_pullback(answer, asks_exp(*arguments)),
)

# -------------------------------------------------------------------------------------------------------- unbroadcast


def asks_unbroadcast(g: np.ndarray, shape: Shape) -> Pullback:
    """What unbroadcast is asked for: the VJP of broadcasting."""
    return Pullback(lambda x: ops.broadcast_to(x, shape=g.shape), (np.zeros(shape, g.dtype),), g)


def _unbroadcast_cases(random: Random, marking: bool) -> Iterator[Case]:
    n, m, k = random.sample(range(4, 8), 3) if marking else (4, 3, 2)
    kinds: list[tuple[str, Shape, Shape, str]] = [
        ("a number to a vector", (m,), (), "float64"), ("a new axis", (n, m), (m,), "float64"),
        ("a stretched axis", (n, m), (n, 1), "float64"), ("a stretched axis", (n, m), (1, m), "float64"),
        ("two new axes", (k, n, m), (m,), "float64"), ("new and stretched", (k, n, m), (n, 1), "float64"),
        ("everything", (k, n, m), (1, 1, 1), "float64"), ("nothing to do", (n, m), (n, m), "float64"),
        ("an axis that stays 1", (n, 1, m), (1, m), "float64"), ("float32", (n, m), (1, m), "float32"),
    ]  # fmt: skip
    for check, large, small, dtype in kinds:
        yield case(check, f"{numbers(random, *large, dtype=dtype)}, {small}")


def _sums_new_axes_only(found: Gradients, asked: Pullback) -> bool:
    new = tuple(range(asked.g.ndim - asked.inputs[0].ndim))
    expected = asked.g.sum(axis=new)
    return found[0].shape == expected.shape and np.allclose(found[0], expected)


def _is_right_but_for_the_axes(found: Gradients, asked: Pullback) -> bool:
    (x,) = asked.inputs
    return found[0].size == x.size and laws.is_adjoint((found[0].reshape(x.shape),), asked)


def _takes_one_copy(found: Gradients, asked: Pullback) -> bool:
    (x,) = asked.inputs
    picked = asked.g[(0,) * (asked.g.ndim - x.ndim)][tuple(slice(0, size) for size in x.shape)]
    return found[0].shape == x.shape and np.allclose(found[0], picked)


UNBROADCAST = Exercise(
    lesson=LESSON,
    statement="""\
Write `unbroadcast(g, shape)`. An array of shape `shape` was broadcast to the shape of `g` on the way forward. `g` is the
gradient for the large array; return the gradient for the small one. It has exactly the shape `shape` and the dtype of `g`.

Broadcasting follows NumPy: shapes are compared from the right; missing axes are added in front; axes of size 1 are
stretched.""",
    hints=(
        "One number of the small array became several equal numbers of the large one. Each copy has a gradient of its own in "
        "`g`. How much does the loss move when the one number moves, and all its copies with it?",
        "Copies forward, sums backward. Which axes of `g` hold copies? Those that were added in front, and those where "
        "`shape` says 1. Treat the two kinds in two steps.",
        "First sum over the first `g.ndim - len(shape)` axes. Then sum, with `keepdims=True`, over every axis whose size in "
        "`shape` is 1.",
    ),
    solution=answers.unbroadcast,
    alternatives=(answers.unbroadcast_by_reshape, answers.unbroadcast_one_at_a_time),
    wrong=(
        (answers.unbroadcast_nothing, "broadcasting needs nothing"),
        (answers.unbroadcast_new_axes_only, "only new axes are copies"),
        (answers.unbroadcast_drops_axes, "a summed axis is gone"),
        (answers.unbroadcast_mean, "the mean of the copies"),
        (answers.unbroadcast_first_copy, "one copy stands for all"),
        (answers.unbroadcast_aligned_left, "a gradient may have any shape"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        laws.not_one_array_each(asks_unbroadcast, "one array"),
        Misconception(
            "broadcasting needs nothing",
            "You pass the gradient on as it is. The forward pass made copies of one number; all copies move when it moves, so "
            "their gradients have to be added up. A gradient with more numbers than the parameter cannot even be subtracted "
            "from it.",
            every(asks_unbroadcast, equals(lambda g, x: g)),
        ),
        Misconception(
            "only new axes are copies",
            "You sum over the axes that were added in front, which is right, but an axis of size 1 that was stretched holds "
            "copies too.",
            every(asks_unbroadcast, _sums_new_axes_only),
        ),
        Misconception(
            "a summed axis is gone",
            "Your sums are right, but the small array had an axis of size 1 there, and your result has none. A gradient has "
            "the shape of its input: look at what `keepdims` does.",
            every(asks_unbroadcast, _is_right_but_for_the_axes),
        ),
        Misconception(
            "the mean of the copies",
            "You average over the copies. Each of them moves the loss, so their effects add up: more copies, more effect.",
            every(asks_unbroadcast, laws.averages),
        ),
        Misconception(
            "one copy stands for all",
            "You take the gradient of one copy. The copies have equal values, but each is used at another place, so their "
            "gradients differ, and all of them count.",
            every(asks_unbroadcast, _takes_one_copy),
        ),
        laws.shape_lost(asks_unbroadcast),
        laws.dtype_lost(asks_unbroadcast),
        STOPS_WITH_ERROR,
        laws.not_the_adjoint(),
    ),
    cases=_unbroadcast_cases,
    accepts=lambda answer, *arguments: laws.is_pullback(answer, asks_unbroadcast(*arguments)),
)

EXERCISES = (MUL, EXP, UNBROADCAST, *MATRIX_EXERCISES)
