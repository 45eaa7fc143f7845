"""The exercise on Jacobians of lesson 20: one forward pass for each input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

import autodiff_lab as ad

from . import jacobian_passes_answers as answers
from .exercise import CHANGED_ARGUMENTS, RETURNS_NOTHING, STOPS_WITH_ERROR, Case, Exercise, Misconception, Wrong, case
from .explaining import EXACT, called_too_often, every
from .limits import Limited, limited

# --------------------------------------------------------------------------------------------------- what tells right


def is_the_jacobian(answer: Any, f: Limited, x: Any, within: float = EXACT) -> bool:
    """Whether the answer is the Jacobian of f at x, in the type of the results of f."""
    if not isinstance(answer, np.ndarray):
        return False
    right = ad.jacobian(f.function)(x)
    if right.dtype == np.float32:
        within = max(within, 1e-5)
    return (
        answer.dtype == right.dtype
        and answer.shape == right.shape
        and bool(np.allclose(answer, right, rtol=within, atol=within))
    )


def _right_but_for_the_type(answer: Any, f: Limited, x: Any) -> bool:
    return (
        isinstance(answer, np.ndarray)
        and answer.dtype != x.dtype
        and is_the_jacobian(answer.astype(x.dtype), f, x, 1e-5)
    )


def _values(answer: Any, f: Limited, x: Any) -> bool:
    value = np.asarray(f.function(x))
    return np.shape(answer) == (value.size, x.size) and bool(np.all(answer == value[:, np.newaxis]))


def _undone(change: Callable[[Any], Any]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether all wrong answers are right after a change of theirs."""
    return every(lambda answer, f, x: answer.ndim == 2 and is_the_jacobian(change(answer), f, x))


def _one_direction(answer: Any, f: Limited, x: Any) -> bool:
    return isinstance(answer, np.ndarray) and (
        answer.ndim == 1 or (answer.ndim == 2 and answer.shape[1] > 1 and bool(np.all(answer == answer[:, :1])))
    )


MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    Misconception(
        "a pass for every entry",
        "`f` ran too often. One pass gives the derivatives of all outputs in one direction: a whole column of the "
        "Jacobian. As many passes as there are inputs are enough.",
        called_too_often,
    ),
    STOPS_WITH_ERROR,
    Misconception(
        "not an array",
        "Return one array of numbers, with a row for each output. Arrays in a list become one with `np.stack`.",
        lambda wrong: any(not isinstance(one.answer, np.ndarray) for one in wrong if not one.failure),
    ),
    Misconception(
        "the value is the derivative",
        "Your table holds the values of `f`. A pass gives two things: the value first, then the derivative.",
        every(_values),
    ),
    Misconception(
        "one pass gives everything",
        "You have the derivative in one direction only: if all inputs move together, their effects arrive as one sum, and "
        "nobody can take it apart any more. Let one input move at a time.",
        lambda wrong: any(
            _one_direction(one.answer, *one.case.arguments) for one in wrong if np.size(one.case.arguments[1]) > 1
        ),
    ),
    Misconception(
        "rows are columns",
        "Your table lies on its side. Row i belongs to output i, column j to input j, so the shape is outputs × inputs.",
        _undone(np.transpose),
    ),
    Misconception(
        "reshape is as good as transpose",
        "Your shape is right, and your numbers stand at wrong places: `reshape` keeps the numbers in their order and draws new "
        "lines between them, a transpose moves them.",
        _undone(lambda answer: answer.reshape(answer.shape[::-1]).T),
    ),
    Misconception(
        "directions pile up",
        "Each of your passes still moves the inputs of the passes before it. One input at a time: take the one before "
        "back to zero.",
        _undone(lambda answer: np.diff(answer, axis=1, prepend=np.zeros_like(answer[:, :1]))),
    ),
    Misconception(
        "one type for all numbers",
        "The numbers are right, their type is not: derivatives are wanted in single precision where `f` computes in single "
        "precision, and in double where it computes in double. Make your arrays with the type of what comes back from the "
        "passes.",
        every(_right_but_for_the_type),
    ),
    Misconception(
        "it is finite differences",
        "You are near, and that is not near enough: forward mode has no step and so no error from a step. `ad.jvp` gives the "
        "derivative in a direction to the last digit.",
        every(lambda answer, f, x: x.dtype == np.float32 or is_the_jacobian(answer, f, x, within=1e-3)),
    ),
    Misconception(
        "not the derivatives",
        "Entry (i, j) is how fast output i moves when input j alone moves. Which direction do you give to each pass?",
        lambda wrong: True,
    ),
)


def cases(random: Random, large: bool) -> Iterator[Case]:
    """Functions with different numbers of inputs and outputs."""
    more = 2 if large else 0
    for check, outputs, inputs in (
        ("fewer inputs than outputs", 3, 2),
        ("more inputs than outputs", 2, 4 + more),
        ("one output", 1, 5 + more),
        ("one input", 4 + more, 1),
    ):
        table = [[random.randint(1, 9) for _ in range(inputs)] for _ in range(outputs)]
        name = random.choice(("tanh", "exp", "sigmoid"))
        yield _jacobian_case(check, f"np.array({table}) @ ops.{name}(x)", random, inputs)
    yield _jacobian_case("inputs that meet", "x[:2] * ops.tanh(x[2:])", random, 4)
    yield _jacobian_case("single precision", "x[:2] * ops.tanh(x[2])", random, 3, ", 'float32'")


def _jacobian_case(check: str, body: str, random: Random, inputs: int, dtype: str = "") -> Case:
    x = [round(random.uniform(-0.9, 0.9), 2) for _ in range(inputs)]
    return case(check, f"limited(lambda x: {body}, calls={inputs + 1}), np.array({x}{dtype})", limited=limited)


EXERCISES = (
    Exercise(
        lesson="20_forward_mode",
        statement="""\
Write `jacobian_by_passes(f, x)`: all partial derivatives of `f` at `x`, by forward passes.

* `f` takes an array of shape `(n,)` and gives an array of shape `(m,)`.
* Return an array of shape `(m, n)`: entry (i, j) is how fast output i moves when input j moves.
* One pass is `value, derivative = ad.jvp(f, (x,), (direction,))`, and it runs `f` once. `f` may run n + 1 times, no more: in
  the check it comes as `limited(f, calls=...)`, which refuses further calls.
* Do not change `x`. Where `f` computes in single precision, so should you. `ad.jacobian` is not to be used.""",
        hints=(
            "What does one pass give you: a row of the table, a column, or a single entry? Do one by hand, for two inputs "
            "and three outputs, and compare the shapes.",
            "Direction number j has a one at place j and zeros elsewhere. Its pass gives column j. How many passes is "
            "that?",
            "Gather the derivatives of all passes in a list, and put them side by side with `np.stack(..., axis=1)`. Make "
            "each direction anew, with `np.zeros_like(x)`.",
        ),
        solution=answers.jacobian_by_passes,
        alternatives=(answers.by_unit_vectors, answers.by_sweeps),
        withheld=("jacobian", "hessian"),
        wrong=(
            (answers.one_pass, "one pass gives everything"),
            (answers.one_pass_for_all_columns, "one pass gives everything"),
            (answers.rows_for_columns, "rows are columns"),
            (answers.entry_by_entry, "a pass for every entry"),
            (answers.forward_differences, "it is finite differences"),
            (answers.directions_pile_up, "directions pile up"),
            (answers.always_double, "one type for all numbers"),
            (answers.always_single, "one type for all numbers"),
            (answers.values_in_the_table, "the value is the derivative"),
            (answers.reshaped, "reshape is as good as transpose"),
            (answers.by_the_labs_jacobian, "the lab does it"),
            (answers.direction_in_x, "changes its argument"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=is_the_jacobian,
    ),
)
