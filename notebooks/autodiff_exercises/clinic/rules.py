"""Four patients of the bug clinic whose gradient rules are wrong: a sign, a factor, an ignored cotangent, an axis."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np

from autodiff_lab import ops

from .. import vjp_laws as laws
from ..exercise import (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Case,
    Misconception,
    case,
)
from ..vjp_laws import Pullback, numbers
from ..withholding import DERIVATIVES
from . import bugs as sick
from . import repairs as repaired
from . import rules_answers as answers
from . import smallest_tests as tests
from .patients import Patient, gives

Shape = tuple[int, ...]

# ------------------------------------------------------------------------------------------------------ gradient rules


def asks_div(g: np.ndarray, x: np.ndarray, y: np.ndarray) -> Pullback:
    """What div_vjp is asked for."""
    return Pullback(lambda x, y: x / y, (x, y), g)


def asks_mse(g: np.ndarray, x: np.ndarray, target: np.ndarray) -> Pullback:
    """What mse_vjp is asked for."""
    return Pullback(lambda x: ops.mean((x - target) ** 2.0), (x,), g)


def asks_sigmoid(g: np.ndarray, out: np.ndarray) -> Pullback:
    """What sigmoid_vjp is asked for, at the input that gives the result."""
    return Pullback(ops.sigmoid, (np.asarray(np.log(out / (1 - out))),), g)


def asks_scale_rows(g: np.ndarray, x: np.ndarray, s: np.ndarray) -> Pullback:
    """What scale_rows_vjp is asked for."""
    return Pullback(lambda x, s: x * ops.expand_dims(s, axis=1), (x, s), g)


def _shapes(random: Random, marking: bool) -> Iterator[tuple[str, Shape, str]]:
    more = random.randint(1, 3) if marking else 0
    yield "a vector", (3 + more,), "float64"
    yield "a matrix", (2, 4 + more), "float64"
    yield "a tall matrix", (5 + more, 3), "float64"
    yield "float32", (3, 2 + more), "float32"


def _div_cases(random: Random, marking: bool) -> Iterator[Case]:
    for check, shape, dtype in _shapes(random, marking):
        yield case(check, ", ".join(numbers(random, *shape, dtype=dtype) for _ in range(3)))


def _mse_cases(random: Random, marking: bool) -> Iterator[Case]:
    for check, shape, dtype in _shapes(random, marking):
        yield case(check, ", ".join(numbers(random, *of, dtype=dtype) for of in ((), shape, shape)))


def _sigmoid_cases(random: Random, marking: bool) -> Iterator[Case]:
    for check, shape, dtype in _shapes(random, marking):
        results = np.reshape([random.randint(1, 15) / 16 for _ in range(np.prod(shape))], shape).tolist()
        kind = "" if dtype == "float64" else f", dtype=np.{dtype}"
        yield case(check, f"{numbers(random, *shape, dtype=dtype)}, np.array({results}{kind})")


def _scale_rows_cases(random: Random, marking: bool) -> Iterator[Case]:
    more = random.randint(1, 3) if marking else 0
    for check, shape, dtype in (
        ("one row", (1, 2 + more), "float64"), ("a wide matrix", (2, 3 + more), "float64"),
        ("a square matrix", (3 + more, 3 + more), "float64"), ("a tall matrix", (4, 2 + more), "float64"),
        ("float32", (2, 3 + more), "float32"),
    ):  # fmt: skip
        yield case(check, ", ".join(numbers(random, *of, dtype=dtype) for of in (shape, shape, shape[:1])))


DIV = Patient(
    title="Patient 1: a quotient",
    complaint="""\
The gradient rule of `x / y`. A network that divides by a learnt scale trains, and the scale drifts away from where it
should be.""",
    sick=sick.div_vjp,
    repaired=repaired.div_vjp,
    catches=tests.catches_div_vjp,
    shows="1.0, 1.0, 2.0",
    hides="1.0, 0.0, 2.0",
    hidden=(
        "zero is as good as any number",
        "Your test calls the sick function healthy. At your numbers the wrong line gives 0, and 0 has no sign; or you look "
        "at the gradient of one input only. Choose numbers that differ from 0, and look at both gradients.",
    ),
    test_hints=(
        "The function returns two gradients. If `y` grows, does `x / y` grow or shrink?",
        "One number for each argument is enough: arrays may have a single entry, or be plain numbers.",
        "Call it with `g = 1.0`, and `x` and `y` positive. The quotient falls when `y` grows, so the second gradient must be "
        "negative. Return whether it is not.",
    ),
    hints=(
        "Two rules stand there. Which of the two did your test convict?",
        "Write x / y as x times y to the power −1. What does the power rule do with the exponent?",
        "The exponent −1 comes down in front. So the gradient for `y` has a minus sign.",
    ),
    alternatives=(answers.div_by_the_result,),
    wrong=(
        (answers.div_both_negative, "the sign belongs to both"),
        (answers.div_sign_moved, "a sign is lost"),
        (answers.div_not_squared, "one division is enough"),
        (answers.div_forgets_upstream, "the gradient is the local derivative"),
        (answers.div_in_place, "changes its argument"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        laws.not_one_array_each(asks_div, "two arrays, `(for_x, for_y)`"),
        laws.shape_lost(asks_div),
        laws.dtype_lost(asks_div),
        laws.upstream_forgotten(asks_div),
        laws.sign_lost(asks_div),
        Misconception(
            "the sign belongs to both",
            "Now both gradients have a minus. The quotient grows when `x` grows (for a positive `y`): only one line was "
            "wrong.",
            gives(answers.div_both_negative),
        ),
        Misconception(
            "one division is enough",
            "The sign is right now, and a division got lost. By how much does 1 / y change when y goes from 10 to 11? That "
            "is far less than a tenth.",
            gives(answers.div_not_squared),
        ),
        laws.not_the_adjoint(),
    ),
    cases=_div_cases,
    accepts=lambda answer, *arguments: laws.is_pullback(answer, asks_div(*arguments)),
    withheld=DERIVATIVES,
)

MSE = Patient(
    title="Patient 2: a mean",
    complaint="""\
The gradient rule of a loss, the mean of squared errors: `mean((x - target)²)`. `x` and `target` have one shape, `g` is
one number. Its author tested it on a single number. In training it works with a smaller learning rate than the
others need, and with another one for each batch size.""",
    sick=sick.mse_vjp,
    repaired=repaired.mse_vjp,
    catches=tests.catches_mse_vjp,
    shows="1.0, np.array([1.0, 2.0]), np.zeros(2)",
    hides="1.0, np.array([2.0]), np.zeros(1)",
    hidden=(
        "one number speaks for all sizes",
        "Your test calls the sick function healthy. A factor that depends on the *number of entries* cannot show where "
        "there is one entry, nor where all errors are 0.",
    ),
    test_hints=(
        "What is the mean of one number? Which factor of the rule can such a test not see?",
        "Take two numbers, and a target of zeros. Write the loss down by hand, and differentiate it.",
        "The mean of two squares a² and b² is half of their sum. So its derivative for a is a itself. Compare all of it with "
        "`np.allclose`.",
    ),
    hints=(
        "How many terms does the mean have? What does each of them contribute, compared with a sum?",
        "The rule of the sum, divided by the number of terms.",
        "Divide by the number of entries of `x`. Of *all* entries: a matrix has more of them than rows.",
    ),
    alternatives=(answers.mse_by_a_mean_of_ones,),
    wrong=(
        (answers.mse_by_rows, "a matrix has as many entries as rows"),
        (answers.mse_without_two, "one factor for another"),
        (answers.mse_turned_round, "a sign is lost"),
        (answers.mse_forgets_upstream, "the gradient is the local derivative"),
        (answers.mse_in_float64, "any dtype will do"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        laws.not_one_array_each(asks_mse, "one array"),
        laws.shape_lost(asks_mse),
        laws.dtype_lost(asks_mse),
        Misconception(
            "a matrix has as many entries as rows",
            "You divide by the length of `x`, which is its number of *rows*. The mean is over all entries.",
            gives(answers.mse_by_rows),
        ),
        Misconception(
            "one factor for another",
            "The division is there now, and the factor of the square is gone. The derivative of e² is not e.",
            gives(answers.mse_without_two),
        ),
        laws.sign_lost(asks_mse),
        laws.upstream_forgotten(asks_mse),
        laws.not_the_adjoint(),
    ),
    cases=_mse_cases,
    accepts=lambda answer, *arguments: laws.is_pullback(answer, asks_mse(*arguments)),
    withheld=DERIVATIVES,
)

SIGMOID = Patient(
    title="Patient 3: a rule that does not listen",
    complaint="""\
The gradient rule of the sigmoid. It is given the result `out`, from which the derivative can be read. Its test, with the
gradient of `sum(sigmoid(x))`, passes.""",
    sick=sick.sigmoid_vjp,
    repaired=repaired.sigmoid_vjp,
    catches=tests.catches_sigmoid_vjp,
    shows="2.0, 0.5",
    hides="1.0, 0.5",
    hidden=(
        "all ones is a test",
        "Your test calls the sick function healthy. The gradient of a sum is a `g` of ones, and with ones nobody sees "
        "whether a rule multiplies by `g`. Choose another number.",
    ),
    test_hints=(
        "One of the two arguments is not used. With which value of it does that not matter?",
        "Call it with a single number for each argument. If nothing arrives from above, what may be passed on?",
        "With `g = 0` the gradient has to be 0. Return whether it is something else.",
    ),
    hints=(
        "Which argument does the function not read?",
        "Chain rule: what arrives, times the local derivative.",
        "Multiply what is there by `g`, entry by entry.",
    ),
    alternatives=(answers.sigmoid_expanded,),
    wrong=(
        (answers.sigmoid_like_tanh, "the rule of another function"),
        (answers.sigmoid_adds_upstream, "the chain rule adds"),
        (answers.sigmoid_with_another_sign, "a sign is lost"),
        (answers.sigmoid_of_the_result, "the result is the input"),
        (answers.sigmoid_one_upstream_for_all, "one upstream gradient for all entries"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        laws.not_one_array_each(asks_sigmoid, "one array"),
        laws.shape_lost(asks_sigmoid),
        laws.dtype_lost(asks_sigmoid),
        laws.sign_lost(asks_sigmoid),
        Misconception(
            "the rule of another function",
            "1 − out² is the derivative of tanh. The sigmoid runs from 0 to 1, and its local derivative was right before.",
            gives(answers.sigmoid_like_tanh),
        ),
        Misconception(
            "the chain rule adds",
            "You add what arrives from above. Steps of a chain are *multiplied*; added are the contributions of different "
            "ways.",
            gives(answers.sigmoid_adds_upstream),
        ),
        Misconception(
            "the result is the input",
            "You take the sigmoid once more. What the rule is given is the *result* already: nothing has to be computed "
            "again.",
            gives(answers.sigmoid_of_the_result),
        ),
        Misconception(
            "one upstream gradient for all entries",
            "You use one number of what arrives for all entries. Each entry of the result has its own.",
            gives(answers.sigmoid_one_upstream_for_all),
        ),
        laws.not_the_adjoint(),
    ),
    cases=_sigmoid_cases,
    accepts=lambda answer, *arguments: laws.is_pullback(answer, asks_sigmoid(*arguments)),
    withheld=DERIVATIVES,
)

SCALE_ROWS = Patient(
    title="Patient 4: a wrong axis",
    complaint="""\
The gradient rule of `x * s[:, None]`, which multiplies each row of the matrix `x` by a number of its own. The team uses
square matrices, and never saw an error.""",
    sick=sick.scale_rows_vjp,
    repaired=repaired.scale_rows_vjp,
    catches=tests.catches_scale_rows_vjp,
    shows="np.ones((1, 2)), np.ones((1, 2)), np.ones(1)",
    hides="np.array([[3.0]]), np.array([[2.0]]), np.array([4.0])",
    hidden=(
        "a square is a matrix like any other",
        "Your test calls the sick function healthy. Where both axes have the same size, the two sums have the same shape, "
        "and with one entry even the same value. Let the sizes differ, and look at the gradient for `s`.",
    ),
    test_hints=(
        "A gradient has the shape of its input, always. For which matrices does a sum over the wrong axis have the right "
        "shape?",
        "Take a matrix with one row and two columns, so that `s` has one number. What shape must its gradient have?",
        "Make `g` and `x` with `np.ones((1, 2))` and `s` with `np.ones(1)`. Compare the shape of the second gradient with "
        "(1,).",
    ),
    hints=(
        "Each number of `s` was copied. Along which axis of the result do its copies lie?",
        "`s[0]` multiplies the whole row 0, so its gradient collects from that row: over the columns.",
        "Sum over axis 1 in place of axis 0.",
    ),
    alternatives=(answers.scale_rows_by_einsum,),
    wrong=(
        (answers.scale_rows_kept, "a gradient may have any shape"),
        (answers.scale_rows_not_summed, "broadcasting needs nothing"),
        (answers.scale_rows_mean, "the mean of the copies"),
        (answers.scale_rows_without_x, "the rule of addition"),
        (answers.scale_rows_all_summed, "if the shape fits, the numbers do"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        laws.not_one_array_each(asks_scale_rows, "two arrays, `(for_x, for_s)`"),
        Misconception(
            "broadcasting needs nothing",
            "You give one gradient for each copy of a number of `s`. All copies move when it moves: add them up.",
            gives(answers.scale_rows_not_summed),
        ),
        laws.shape_lost(asks_scale_rows),
        laws.dtype_lost(asks_scale_rows),
        Misconception(
            "the mean of the copies",
            "You average over the copies. Each of them moves the loss, so their effects add up.",
            gives(answers.scale_rows_mean),
        ),
        Misconception(
            "the rule of addition",
            "`x` got lost from the gradient for `s`. If an entry of `x` is large, its row's factor matters more.",
            gives(answers.scale_rows_without_x),
        ),
        Misconception(
            "if the shape fits, the numbers do",
            "You sum over everything, and repeat the sum until the shape fits. Each number of `s` has the gradient of its "
            "own row.",
            gives(answers.scale_rows_all_summed),
        ),
        laws.not_the_adjoint(),
    ),
    cases=_scale_rows_cases,
    accepts=lambda answer, *arguments: laws.is_pullback(answer, asks_scale_rows(*arguments)),
    withheld=DERIVATIVES,
)


PATIENTS = (DIV, MSE, SIGMOID, SCALE_ROWS)
