"""Exercises of lesson 50, gradient checks: a slope by differences, second derivatives by differentiating twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

import autodiff_lab as ad

from . import gradient_check_answers as answers
from .exercise import CHANGED_ARGUMENTS, RETURNS_NOTHING, STOPS_WITH_ERROR, Case, Exercise, Misconception, Wrong, case
from .gradient_checker import CHECKER
from .limits import Limited, limited
from .vjp_laws import numbers
from .withholding import DERIVATIVES

LESSON = "50_gradient_check"
Function = Callable[..., Any]

# -------------------------------------------------------------------------------------------------------------- slope

DIGITS = 3e-9  # relative: central differences reach 1e-10, one-sided ones 1e-8 at best
LINE, PARABOLA, CURVED, SMALL, LARGE, ZERO = "a line", "a parabola", "curved", "small x", "large x", "x = 0"


def _slope_cases(random: Random, marking: bool) -> Iterator[Case]:
    def positive() -> float:
        return random.randint(5, 25) / 8

    a, b, far, near = positive(), positive(), 10.0 ** random.randint(5, 6), 10.0 ** -random.randint(3, 4)
    kinds = [
        (LINE, f"{a} * x + {b}", positive()), (PARABOLA, f"x * x + {a} * x", positive()),
        (CURVED, f"x * x * x + {a}", positive()), (CURVED, "ops.exp(x)", positive()), (CURVED, "1.0 / x", positive()),
        (CURVED, "ops.log(x)", positive()), (CURVED, "x * x * x", -positive()),
        (LARGE, "x * x", a * far), (LARGE, "ops.log(x)", b * far), (SMALL, "1.0 / x", a * near),
        (SMALL, "ops.log(x)", b * near), (ZERO, f"ops.exp({a} * x)", 0.0), (ZERO, f"ops.tanh({b} * x)", 0.0),
    ]  # fmt: skip
    for check, formula, x in kinds:
        yield case(check, f"lambda x: {formula}, {x!r}")


def _error(answer: Any, f: Function, x: float) -> float:
    """How far the answer is from the derivative, relative to it; NaN where the answer is no number."""
    if not _is_number(answer):
        return math.nan
    exact = float(ad.grad(f)(x))
    return abs(float(answer) - exact) / abs(exact)


def _wrong_on(wrong: Sequence[Wrong]) -> set[str]:
    return {one.case.check for one in wrong}


def _all_are(*factors: float) -> Callable[[Sequence[Wrong]], bool]:
    """Whether all wrong answers are one of these multiples of the derivative, to three digits."""

    def is_multiple(one: Wrong, factor: float) -> bool:
        f, x = one.case.arguments
        return not one.failure and _error(np.divide(one.answer, factor), f, x) < 1e-3

    return lambda wrong: (
        all(_is_number(one.answer) for one in wrong)
        and any(all(is_multiple(one, factor) for one in wrong) for factor in factors)
    )


def _is_number(answer: Any) -> bool:
    return isinstance(answer, int | float | np.floating | np.ndarray) and not np.ndim(answer)


def _is_cut_off(one: Wrong) -> bool:
    """The number has no digit after the eighth."""
    return _is_number(one.answer) and round(float(one.answer), 8) == float(one.answer)


SLOPE = Exercise(
    lesson=LESSON,
    statement="""\
Write `slope(f, x)`: the derivative of a function of one number at `x`, found by running `f` at points near `x`. It
must be right to **eight digits**, for `x` of any size: 0.0001 as well as a million, negative numbers, and 0. You may
trust that `f` changes on the scale of `x` itself, and on the scale of 1 where `x` is 0. Do not use automatic
differentiation.""",
    hints=(
        "Two points on both sides of `x` are much better than `x` and one point beside it: look at the plot in "
        "section 2. How far is it from the one point to the other?",
        "At the best step both errors are equal: the one from bending, which grows with the step, and the one from "
        "rounding, which grows when the step shrinks. Read that step off the plot, for `x` around 1.",
        "Take a step of 1e-5 times the size of `x`, and 1e-5 where `x` is 0. Divide the difference of the two values by "
        "twice the step.",
    ),
    solution=answers.slope,
    alternatives=(answers.slope_of_order_four, answers.slope_by_search),
    withheld=DERIVATIVES,
    wrong=(
        (answers.slope_smallest_step, "the smaller the step, the better"),
        (answers.slope_one_sided, "one side is enough"),
        (answers.slope_not_halved, "two steps are one"),
        (answers.slope_large_step, "any small step will do"),
        (answers.slope_one_step_for_all, "one step fits all"),
        (answers.slope_no_step_at_zero, "zero has a scale"),
        (answers.slope_backwards, "a sign is lost"),
        (answers.slope_without_sign, "a sign is lost"),
        (answers.slope_rounded, "fewer digits are tidier"),
        (answers.slope_as_list, "not a number"),
        (answers.slope_by_the_lab, "the lab does it"),
    ),
    misconceptions=(
        RETURNS_NOTHING,
        Misconception(
            "zero has a scale",
            "Your function works except where `x` is 0: there a step relative to `x` is no step at all, and you "
            "divide zero by zero.",
            lambda wrong: _wrong_on(wrong) == {ZERO},
        ),
        STOPS_WITH_ERROR,
        Misconception(
            "not a number",
            "Return one number.",
            lambda wrong: not _is_number(wrong[0].answer),
        ),
        Misconception(
            "two steps are one",
            "Your slope is twice, or half, what it should be. From one step before `x` to one step behind it is a way of two "
            "steps.",
            _all_are(2.0, 0.5),
        ),
        Misconception(
            "a sign is lost",
            "Your slope has the wrong sign where it is wrong. It is what comes later minus what came before, and where `f` "
            "falls it is negative.",
            _all_are(-1.0),
        ),
        Misconception(
            "fewer digits are tidier",
            "Your numbers end after a few digits. Rounding throws away what is asked for: leave the result as it is.",
            lambda wrong: all(map(_is_cut_off, wrong)),
        ),
        Misconception(
            "the smaller the step, the better",
            "Your slope is wrong even for a straight line, where every step is small enough. So your step is too "
            "small: the two values of `f` are equal in most of their digits, the difference keeps only the rounding "
            "errors, and you divide these by the step.",
            lambda wrong: LINE in _wrong_on(wrong),
        ),
        Misconception(
            "one side is enough",
            "A line comes out right and a parabola does not. A difference to one side has an error in proportion to "
            "the step; with two points, one on each side, the errors of both sides cancel.",
            lambda wrong: PARABOLA in _wrong_on(wrong),
        ),
        Misconception(
            "one step fits all",
            "Your slope is right for numbers around 1, and wrong for very large or very small ones. A step is small "
            "or large only in comparison with `x`.",
            lambda wrong: CURVED not in _wrong_on(wrong),
        ),
        Misconception(
            "any small step will do",
            "Lines and parabolas come out right, and what bends more does not: your step is so large that the "
            "function bends on the way.",
            lambda wrong: True,
        ),
    ),
    cases=_slope_cases,
    accepts=lambda answer, f, x: _error(answer, f, x) <= DIGITS,
)

# ------------------------------------------------------------------------------------------------------ hessian_times

EXACT = 1e-11  # relative: rounding alone. Differences of a gradient reach 1e-10
RUNS = 4


def _hessian_cases(random: Random, marking: bool) -> Iterator[Case]:
    size = random.randint(6, 9) if marking else 3
    kinds = [
        ("squares", "ops.sum(x * x)", size), ("cubes", "ops.sum(x * x * x)", size),
        ("entries that mix", "ops.sum(x) * ops.sum(x * x)", size), ("entries that mix", "ops.tanh(x[0] * x[1]) * x[2]", size),
        ("exponentials", "ops.exp(ops.mean(x * x))", size + 1),
    ]  # fmt: skip
    for check, formula, n in kinds:
        yield case(
            check, f"limited(lambda x: {formula}, {RUNS}), {numbers(random, n)}, {numbers(random, n)}", limited=limited
        )
    large = f"np.linspace({random.randint(1, 3)}.5, 2.5, 20000)"
    yield case("20,000 numbers", f"limited(lambda x: ops.sum(x * x * x), {RUNS}), {large}, {large}", limited=limited)


def _along(f: Limited, x: np.ndarray, u: np.ndarray, v: np.ndarray) -> float:
    """d²/ds dt of f(x + s u + t v): how the slope along u changes along v. Forward mode twice."""
    return float(ad.jvp(lambda z: ad.jvp(f.function, (z,), (u,))[1], (x,), (v,))[1])


def _is_product(answer: Any, f: Limited, x: np.ndarray, v: np.ndarray, precision: float = EXACT) -> bool:
    """Whether ⟨u, answer⟩ is the second derivative along u and v, for random u."""
    if not isinstance(answer, np.ndarray) or answer.shape != x.shape:
        return False
    rng = np.random.default_rng(0)
    for u in rng.normal(size=(3, *x.shape)):
        terms = u * answer
        if not abs(terms.sum() - _along(f, x, u, v)) <= precision * np.abs(terms).sum():
            return False
    return True


def _is_nearly_right(one: Wrong) -> bool:
    f, x, v = one.case.arguments
    return not one.failure and _is_product(one.answer, f, x, v, precision=1e-4)


def _all_equal(formula: Callable[[Function, np.ndarray, np.ndarray], np.ndarray]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether every wrong answer is what a formula of f, x and v gives."""

    def is_equal(one: Wrong) -> bool:
        f, x, v = one.case.arguments
        expected = formula(f.function, x, v)
        return not one.failure and np.shape(one.answer) == expected.shape and np.allclose(one.answer, expected)

    return lambda wrong: all(map(is_equal, wrong))


HESSIAN = Exercise(
    lesson=LESSON,
    statement=f"""\
Write `hessian_times(f, x, v)`: the Hessian of `f` at `x`, times the vector `v`. `f` takes an array like `x` and
gives one number.

* Differentiate twice, with `ad.grad`, `ad.jvp` or `ad.vjp`, not with `ad.hvp`. Differences are not exact enough here.
* Do not build the Hessian: one case has 20,000 numbers, so the matrix would have 400 million. `f` may be run at most
  {RUNS} times.
* Return one array, shaped like `x`.""",
    hints=(
        "The gradient of `f` is a function too: it takes an array and gives an array. The Hessian is its Jacobian. "
        "What gives the product of a Jacobian with a vector, without the Jacobian?",
        "A Jacobian times a vector from the right is what one pass of forward mode computes. So push the tangent `v` "
        "through the function `ad.grad(f)`.",
        "`ad.jvp(function, (x,), (v,))` gives two things: the function's value and its derivative along `v`. Use the "
        "gradient of `f` as the function, and return the second thing.",
    ),
    solution=answers.hessian_times,
    alternatives=(answers.reverse_over_reverse, answers.reverse_over_forward),
    withheld=("hvp",),
    wrong=(
        (answers.gradient_times_v, "one derivative is enough"),
        (answers.both_parts, "jvp gives one thing"),
        (answers.curvature_along_v, "one number"),
        (answers.row_sums_times_v, "the direction comes last"),
        (answers.by_differences, "differences are exact"),
        (answers.row_by_row, "first the matrix, then the product"),
        (answers.as_numbers, "any row of numbers will do"),
        (answers.by_the_labs_hvp, "the lab does it"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        Misconception(
            "first the matrix, then the product",
            "Your function works through the Hessian, row by row or as a whole, so its cost grows with the number of "
            "entries of `x`. A product with one vector takes one pass, whatever the size.",
            lambda wrong: any(one.failure in ("TooManyCalls", "MemoryError") for one in wrong),
        ),
        STOPS_WITH_ERROR,
        Misconception(
            "jvp gives one thing",
            "You return a tuple. `ad.jvp` gives the value of the function and its derivative along the tangent; only "
            "one of them is asked for.",
            lambda wrong: isinstance(wrong[0].answer, tuple | list) and any(map(np.ndim, wrong[0].answer)),
        ),
        Misconception(
            "one number",
            "You return one number: the curvature along `v`, which is `v` times the Hessian times `v`. Asked for is the "
            "vector before the last product.",
            lambda wrong: np.ndim(wrong[0].answer) == 0,
        ),
        Misconception(
            "any row of numbers will do",
            "Return one array, shaped like `x`.",
            lambda wrong: not isinstance(wrong[0].answer, np.ndarray),
        ),
        Misconception(
            "one derivative is enough",
            "You return the gradient, or multiply it by `v`. That is a first derivative. The Hessian says how the *gradient* "
            "changes when `x` moves along `v`.",
            lambda wrong: (
                _all_equal(answers.gradient_times_v)(wrong) or _all_equal(lambda f, x, v: ad.grad(f)(x))(wrong)
            ),
        ),
        Misconception(
            "the direction comes last",
            "You move all entries of `x` by the same amount and multiply by `v` afterwards. That is right only where "
            "the entries do not mix. `v` is the direction in which `x` moves: it goes in as the tangent.",
            _all_equal(answers.row_sums_times_v),
        ),
        Misconception(
            "differences are exact",
            "Your product is right to about ten digits and no further, which is how differences look. Differentiating "
            "twice costs less than that and is exact but for rounding.",
            lambda wrong: all(map(_is_nearly_right, wrong)),
        ),
        Misconception(
            "not the Hessian",
            "Your vector is not the Hessian times `v`. The first derivative has to be a function that can be "
            "differentiated again: was a value taken out of it on the way, by `.numpy()` or `detach()`?",
            lambda wrong: True,
        ),
    ),
    cases=_hessian_cases,
    accepts=_is_product,
)

EXERCISES = (SLOPE, CHECKER, HESSIAN)
