"""Three patients of the bug clinic that lie between right gradients: a training loop, an array that is shared, a penalty."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import ops

from ..exercise import CHANGED_ARGUMENTS, RETURNS_NOTHING, STOPS_WITH_ERROR, Case, Misconception, case
from ..vjp_laws import numbers
from . import bugs as sick
from . import repairs as repaired
from . import smallest_tests as tests
from . import training_answers as answers
from .patients import Patient, gives

Function = Callable[..., Any]


# ------------------------------------------------------------------------------------------------------------ descend


def _descend_cases(random: Random, marking: bool) -> Iterator[Case]:
    for check, slope, steps in (
        ("two steps", 2.0, 2), ("many steps", 0.5, random.randint(5, 9 if marking else 7)), ("one step", 1.5, 1),
        ("no step", 2.0, 0), ("a slope that stays", 0.0, 3),
    ):  # fmt: skip
        start, shift, rate = (random.choice((-1, 1)) * random.randint(5, 15) / 4 for _ in range(3))
        yield case(check, f"lambda w: {slope} * w + {shift}, {start}, {abs(rate) / 16}, {steps}")


def _is_descended(answer: Any, gradient: Function, w: float, rate: float, steps: int) -> bool:
    """Whether the distance to the minimum shrank by the same factor in every step, for a gradient slope · w + shift."""
    if not isinstance(answer, int | float | np.number):
        return False
    shift = gradient(0.0)
    slope = gradient(1.0) - shift
    if slope == 0.0:
        return math.isclose(answer, w - rate * shift * steps, rel_tol=1e-9, abs_tol=1e-9)
    lowest = -shift / slope
    return math.isclose(answer, lowest + (w - lowest) * (1 - rate * slope) ** steps, rel_tol=1e-9, abs_tol=1e-9)


DESCEND = Patient(
    title="Patient 7: nothing is forgotten",
    complaint="""\
The training loop, here with a single weight: `steps` times, go `rate` times the gradient downhill. The loss swings more and
more, and the team makes the learning rate smaller and smaller.""",
    sick=sick.descend,
    repaired=repaired.descend,
    catches=tests.catches_descend,
    shows="lambda w: 2.0 * w, 1.0, 0.25, 2",
    hides="lambda w: 2.0 * w, 1.0, 0.25, 1",
    hidden=(
        "one step shows everything",
        "Your test calls the sick function healthy. What one step leaves behind can only disturb a later one: how many steps "
        "does it take?",
    ),
    test_hints=(
        "Is the first step right? And the second?",
        "Choose a gradient that you can do in your head: the slope may even be the same everywhere.",
        "With a gradient of 1 everywhere and a rate of 1, two steps from 0 must end at −2.",
    ),
    hints=(
        "What does `total` hold at the beginning of the second step, and what should it hold?",
        "Each step goes along the gradient at the point where it *now* is, and along nothing else.",
        "No sum over the steps is needed: subtract `rate * gradient(w)`.",
    ),
    alternatives=(answers.descend_forgetting,),
    wrong=(
        (answers.descend_along_the_first, "the gradient stays what it was"),
        (answers.descend_along_the_mean, "the mean of all gradients"),
        (answers.descend_half_forgetting, "half is forgotten"),
        (answers.descend_upwards, "a sign is lost"),
        (answers.descend_one_too_many, "one step too many"),
    ),
    misconceptions=(
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        Misconception(
            "the gradient stays what it was",
            "You take the gradient once and go along it in every step. The slope is another one after each step.",
            gives(answers.descend_along_the_first),
        ),
        Misconception(
            "the mean of all gradients",
            "You go along the mean of all gradients so far. Old gradients belong to points that are left behind.",
            gives(answers.descend_along_the_mean),
        ),
        Misconception(
            "half is forgotten",
            "A part of the old gradients stays. That has a name, momentum, and it can be useful, but here nobody asked for "
            "it.",
            gives(answers.descend_half_forgetting),
        ),
        Misconception("a sign is lost", "You go uphill.", gives(answers.descend_upwards)),
        Misconception(
            "one step too many",
            "Your weight is where it should be after one step more.",
            gives(answers.descend_one_too_many),
        ),
        Misconception(
            "not gradient descent",
            "After some step your weight is not where the gradient at the point before leads. Print `w` in each step.",
            lambda wrong: True,
        ),
    ),
    cases=_descend_cases,
    accepts=_is_descended,
    size=lambda gradient, w, rate, steps: int(steps),
    unit="steps",
)

# --------------------------------------------------------------------------------------------------------------- sums


def _sums_cases(random: Random, marking: bool) -> Iterator[Case]:
    more = random.randint(1, 3) if marking else 0
    for check, shape, pairs, dtype in (
        ("one array for two names", (2,), "[('x', g), ('y', g), ('x', h)]", "float64"),
        ("two contributions", (2 + more,), "[('x', g), ('x', h)]", "float64"),
        ("matrices", (2, 2 + more), "[('x', g), ('y', h), ('y', g), ('x', g)]", "float64"),
        ("one contribution each", (2,), "[('x', g), ('y', h)]", "float64"),
        ("float32", (3 + more,), "[('x', g), ('x', h), ('x', g)]", "float32"),
    ):
        arrays = ", ".join(numbers(random, *shape, dtype=dtype) for _ in range(2))
        yield case(check, f"(lambda g, h: {pairs})({arrays})")


def _is_sums(answer: Any, contributions: list[tuple[str, np.ndarray]], exactly: bool = True) -> bool:
    """Whether each name has, in every entry, what its arrays have together, in their dtype."""
    by_name: dict[str, list[np.ndarray]] = {}
    for name, array in contributions:
        by_name.setdefault(name, []).append(array)
    if not isinstance(answer, dict) or answer.keys() != by_name.keys():
        return False
    return all(
        isinstance(found := answer[name], np.ndarray)
        and (found.shape == arrays[0].shape and found.dtype.kind == "f")
        and (found.dtype == arrays[0].dtype or not exactly)
        and np.allclose(found, np.sum(arrays, axis=0), rtol=1e-5)
        for name, arrays in by_name.items()
    )


SUMS = Patient(
    title="Patient 8: a shared array",
    complaint="""\
The accumulation of a sweep. To save memory, the second contribution is added in place. The rule of `x + y` sends *one* array
two ways. Training shows nothing: the loss falls as well as ever.""",
    sick=sick.sums,
    repaired=repaired.sums,
    catches=tests.catches_sums,
    shows="(lambda g, h: [('x', g), ('x', h)])(np.array([1.0]), np.array([2.0]))",
    hides="(lambda g, h: [('x', g), ('y', h)])(np.array([1.0]), np.array([2.0]))",
    hidden=(
        "only what is returned counts",
        "Your test calls the sick function healthy. The sum that it returns is right. But whose array did it write into? "
        "Look at what you handed over, before and after.",
    ),
    test_hints=(
        "Which array does the second contribution get added into? Who else has it?",
        "Hand over two arrays of one number, with one name. The result is right. What is in the arrays now?",
        "Keep the first array in a variable of its own, call the function, and return whether that variable has changed.",
    ),
    hints=(
        "`+=` on an array writes into the array that is there. Which array is that?",
        "Either make a new array for every sum, or a copy for every name before anything is added into it.",
        "`totals[name] = totals[name] + array` makes a new array, and leaves both old ones alone.",
    ),
    alternatives=(answers.sums_in_buffers_of_its_own,),
    wrong=(
        (answers.sums_one_copy_of_each, "one copy for two names"),
        (answers.sums_last_wins, "the last one wins"),
        (answers.sums_in_float64, "any dtype will do"),
        (answers.sums_of_everything, "one number for each name"),
        (answers.sums_mean, "the mean of the contributions"),
    ),
    misconceptions=(
        Misconception(
            "changes its argument",
            "Your function still writes into arrays that others have. Make a new array for the sum.",
            lambda wrong: any(one.attempt.changed_arguments for one in wrong),
        ),
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        Misconception(
            "any dtype will do",
            "The sums are right, and float32 came out as another dtype. `np.zeros(shape)` is float64.",
            lambda wrong: all(_is_sums(one.answer, one.case.arguments[0], exactly=False) for one in wrong),
        ),
        Misconception(
            "the last one wins",
            "Nothing is overwritten any more, and nothing is added: of several contributions the last one is left.",
            gives(answers.sums_last_wins),
        ),
        Misconception(
            "one copy for two names",
            "What you were given stays as it was. But two names share one copy, so what is added for the one is added for "
            "the other.",
            gives(answers.sums_one_copy_of_each),
        ),
        Misconception(
            "one number for each name",
            "You add up the entries too. The sum of arrays is an array: entry by entry.",
            gives(answers.sums_of_everything),
        ),
        Misconception(
            "the mean of the contributions",
            "You average. Contributions add up.",
            gives(answers.sums_mean),
        ),
        Misconception(
            "not the sum of what arrived",
            "Some name is missing or does not have the sum of its arrays.",
            lambda wrong: True,
        ),
    ),
    cases=_sums_cases,
    accepts=_is_sums,
    size=len,
    unit="contributions",
)


# --------------------------------------------------------------------------------------------------- penalty_gradient


def _penalty_cases(random: Random, marking: bool) -> Iterator[Case]:
    size = random.randint(3, 5) if marking else 3
    for check, formula, n in (
        ("squares", "ops.sum(x * x)", 1), ("cubes", "ops.sum(x * x * x)", size), ("a line", "3.0 * ops.sum(x)", 2),
        ("entries that mix", "ops.sum(x) * ops.sum(x * x)", size), ("exponentials", "ops.exp(ops.mean(x))", size),
    ):  # fmt: skip
        yield case(check, f"lambda x: {formula}, {numbers(random, n)}")


def _is_penalty_gradient(answer: Any, f: Function, x: np.ndarray) -> bool:
    """Whether ⟨answer, u⟩ is how sum(∇f²) changes along u, by forward mode, for random u."""
    if not isinstance(answer, np.ndarray) or answer.shape != x.shape or answer.dtype.kind != "f":
        return False

    def penalty(z: Any) -> Any:
        return ops.sum(ad.grad(f)(z) ** 2.0)

    along = [(u, float(ad.jvp(penalty, (x,), (u,))[1])) for u in np.random.default_rng(0).normal(size=(3, *x.shape))]
    return all(bool(abs(np.sum(answer * u) - d) <= 1e-9 * (1.0 + np.abs(answer * u).sum())) for u, d in along)


PENALTY_GRADIENT = Patient(
    title="Patient 9: a value that the second derivative does not see",
    complaint="""\
The gradient of a penalty on gradients, as in physics or meta-learning. To compute the slope once less, somebody took it out
of the inner function. The penalty has the right *value*, and `gradcheck` of `f` passes.""",
    sick=sick.penalty_gradient,
    repaired=repaired.penalty_gradient,
    catches=tests.catches_penalty_gradient,
    shows="lambda x: ops.sum(x * x), np.array([1.0])",
    hides="lambda x: 3.0 * ops.sum(x), np.array([1.0])",
    hidden=(
        "a straight line bends enough",
        "Your test calls the sick function healthy. Where the slope is the same everywhere, or 0, its derivative is 0 "
        "whatever the function forgets. Choose a function that bends, and a point that is not its minimum.",
    ),
    test_hints=(
        "For which functions is a second derivative not 0?",
        "Take f(x) = x² in one number. What is its slope, what is the square of that, and what is the derivative of the "
        "square?",
        "The slope is 2x, its square 4x², the derivative of that 8x. Compare at x = 1, with `ops.sum(x * x)` as the "
        "function.",
    ),
    hints=(
        "The penalty is a product of two slopes. Which of them moves when `z` moves?",
        "A value that is computed outside is a constant inside. Product rule: half of the derivative is missing.",
        "Compute the slope inside `penalty`, from `z`, and multiply it with itself.",
    ),
    alternatives=(answers.penalty_by_hessian,),
    wrong=(
        (answers.penalty_of_the_slope, "one derivative is enough"),
        (answers.penalty_value, "the penalty is its gradient"),
        (answers.penalty_all_outside, "outside is as good as inside"),
        (answers.penalty_doubled_twice, "a factor more"),
        (answers.penalty_of_the_sum, "the square of the sum"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        Misconception(
            "one derivative is enough",
            "You differentiate the square, and stop there. The slope inside it changes with `x` too: the chain rule goes on.",
            gives(answers.penalty_of_the_slope),
        ),
        Misconception(
            "the penalty is its gradient",
            "You return the penalty, one number. Asked for is how it changes with each entry of `x`.",
            gives(answers.penalty_value),
        ),
        Misconception(
            "outside is as good as inside",
            "Now both slopes are computed outside, so nothing in the inner function depends on `z`, and its gradient is 0.",
            gives(answers.penalty_all_outside),
        ),
        Misconception(
            "a factor more",
            "Your gradient is a multiple of the right one. Do not make up for a lost half with a number: let both slopes "
            "move.",
            gives(answers.penalty_doubled_twice),
        ),
        Misconception(
            "the square of the sum",
            "You add up the slopes and square the sum. The penalty is the sum of the squares; with one number they agree.",
            gives(answers.penalty_of_the_sum),
        ),
        Misconception(
            "not the gradient of the penalty",
            "Your answer does not say how the penalty changes when `x` moves. Is it an array like `x`, and does every slope "
            "in it depend on the point?",
            lambda wrong: True,
        ),
    ),
    cases=_penalty_cases,
    accepts=_is_penalty_gradient,
    size=lambda f, x: int(np.size(x)),
)


PATIENTS = (DESCEND, SUMS, PENALTY_GRADIENT)
