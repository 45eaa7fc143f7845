"""The exercise on nested derivatives of lesson 20: a derivative inside a derivative keeps its tangents to itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from . import nested_derivative_answers as answers
from .exercise import EVERY_PATH, RETURNS_NOTHING, STOPS_WITH_ERROR, Case, Exercise, Misconception, Wrong, case, soon
from .explaining import EXACT, begins_with, every, is_number
from .withholding import DERIVATIVES

INSIDE = "a derivative inside of a derivative"
ALONE = ("one derivative", "a high power")


def is_the_derivative(answer: Any, f: Callable[[Any], Any], x: float, within: float = EXACT) -> bool:
    """Whether the answer is f′(x). In ``f`` the name ``derivative`` stands for the lab's."""
    return is_number(answer) and math.isclose(answer, answers.by_the_lab(f, x), rel_tol=within, abs_tol=within)


def _first_is(times: float) -> Callable[[Sequence[Wrong]], bool]:
    """Whether the first wrong answer is this multiple of the right one, at a derivative inside of a derivative."""

    def explains(wrong: Sequence[Wrong]) -> bool:
        right = answers.by_the_lab(*wrong[0].case.arguments)
        answer = wrong[0].answer
        return wrong[0].case.check == INSIDE and is_number(answer) and math.isclose(answer, times * right)

    return explains


# Differences with a small step are near for a derivative that runs alone, and noise where they are nested.
_nearly_right = every(lambda answer, f, x: is_the_derivative(answer, f, x, within=1e-2))

MISCONCEPTIONS = (
    RETURNS_NOTHING,
    EVERY_PATH,
    Misconception(
        "it is finite differences",
        "You are near, and differences come no nearer: nested inside each other they lose half of their digits each "
        "time, and soon all of them. Let tangents travel with the values.",
        lambda wrong: _nearly_right(wrong[:1]) if begins_with(*ALONE)(wrong) else _nearly_right(wrong),
    ),
    Misconception(
        "a wide step is exact",
        "It goes wrong where `f` bends more than a parabola. Differences are exact for the lowest powers only, whatever the "
        "step: let tangents travel with the values.",
        begins_with("a high power"),
    ),
    Misconception(
        "every tangent is mine",
        "The inner function returns a number of the *outer* derivative, in which the inner x does not occur. For the inner "
        "derivative it stands still: look whose number the result is before you take its tangent.",
        begins_with("an inner function that stands still"),
    ),
    Misconception(
        "there is only one tangent",
        "Two derivatives run at the same time, and your numbers mix their tangents: the inner one counts the movement of "
        "the outer x as if it were its own. Each call of `derivative` needs tangents that no other call takes for its own.",
        _first_is(2.0),
    ),
    Misconception(
        "the left operand decides",
        "A tangent gets lost where numbers of two derivatives meet. The number of the inner derivative holds the one of the "
        "outer derivative inside itself, never the other way round, on whichever side it stands.",
        _first_is(0.0),
    ),
    Misconception(
        "an inner derivative is just a number",
        "What the inner derivative returns may depend on the outer x, and then it moves with it: it has to come back with "
        "the outer tangent still inside.",
        begins_with("an inner derivative that depends on the outer x", "a second derivative"),
    ),
    Misconception(
        "the result is always dual",
        "A function may ignore its argument and return a plain number. How fast does it move then?",
        begins_with("a function that stands still"),
    ),
    STOPS_WITH_ERROR,
    Misconception(
        "not the derivative",
        "The rules of sum and product do not lead to your number. Take the smallest example and follow value and tangent "
        "by hand.",
        lambda wrong: True,
    ),
)

PROGRAMS: tuple[tuple[str, str], ...] = (  # the numbers a, b and c are drawn
    ("one derivative", "lambda x: x * x * {a} + {b} * x"),
    ("a high power", "lambda x: [square := x * x, x * square * square * {a}][-1]"),
    ("a function that stands still", "lambda x: {a}"),
    (INSIDE, "lambda x: x * derivative(lambda y: x + y, {b})"),
    (INSIDE, "lambda x: derivative(lambda y: y + x, {b}) * x"),
    (INSIDE, "lambda x: x * derivative(lambda y: y * {a} + x, {b}) + x * {c}"),
    (INSIDE, "lambda x: x * derivative(lambda x, outer=x: x + outer, {b})"),
    ("an inner function that stands still", "lambda x: x * derivative(lambda y: x * {a}, {b}) + x"),
    ("an inner derivative that depends on the outer x", "lambda x: x * derivative(lambda y: x * y * y, {b})"),
    ("a second derivative", "lambda x: derivative(lambda y: y * y * y, x)"),
    (
        "three derivatives inside each other",
        "lambda x: x * derivative(lambda y: y * derivative(lambda z: x * y * z + z, {b}), {c})",
    ),
)

MORE_PROGRAMS: tuple[tuple[str, str], ...] = (  # of another shape, for marking
    ("a derivative at a point that moves", "lambda x: derivative(lambda y: y * y * x + {a} * y, x * {b})"),
    (
        "derivatives at points that move",
        "lambda x: derivative(lambda y: x * y + derivative(lambda z: z * z * y, x), {b}) * x",
    ),
    (
        "two derivatives side by side",
        "lambda x: derivative(lambda y: y * x, {a}) * derivative(lambda y: y * y * x, {b})",
    ),
    ("a third derivative", "lambda x: derivative(lambda y: derivative(lambda z: z * z * z * z * {a}, y), x)"),
)


def cases(random: Random, large: bool) -> Iterator[Case]:
    """Programs of sums and products, with one derivative more inside from case to case; numbers drawn at random."""
    for check, program in PROGRAMS + (MORE_PROGRAMS if large else ()):
        a, b, c, x = (round(random.uniform(1.25, 4), 2) for _ in range(4))
        yield case(check, f"{program.format(a=a, b=b, c=c)}, {x}", derivative=answers.by_the_lab)
    halves = f"lambda x: [x := x * {a} + x * 0.5 for _ in range({random.randint(40, 60)})][-1]"
    yield soon(case("a value used twice, layer upon layer", f"{halves}, 1.5"))


EXERCISES = (
    Exercise(
        lesson="20_forward_mode",
        statement="""\
Write `derivative(f, x)`: how fast `f` moves at `x`.

* `f` is a function of one number. It uses `+`, `*`, plain numbers, and **your** `derivative`, which so runs inside itself; the
  inner function may use the outer number. The lab's own derivatives are not to be used.
* Return a plain number (when your function runs inside itself, whatever the outer call can go on with).

The touchstone is `derivative(lambda x: x * derivative(lambda y: x + y, 2.0), 3.0)`: the inner derivative is one, so the
function is x · 1. The check wants twelve digits.""",
        hints=(
            "Follow the touchstone by hand. Inside, x + y is computed. Which tangents do x and y carry at that moment? Whose "
            "are they? Which of them should the inner `derivative` return?",
            "Give every call of `derivative` a number of its own, its level: `derivative.level = getattr(derivative, "
            '"level", 0) + 1`. A dual number remembers the level of the call that made it. For a call, a number of '
            "another level is a constant.",
            "Inner calls begin later, so their level is larger, and the larger level must stand outside: if `other` has the "
            "larger level, let it do the work: `__add__` returns `other + self`, `__mul__` returns `other * self`. At the end: "
            "if the result has the level of this call, return its tangent, else zero.",
        ),
        solution=answers.derivative,
        alternatives=(answers.by_polynomials,),
        withheld=DERIVATIVES,
        wrong=(
            (answers.confused, "there is only one tangent"),
            (answers.left_operand_decides, "the left operand decides"),
            (answers.inner_result_is_a_number, "an inner derivative is just a number"),
            (answers.nested_differences, "it is finite differences"),
            (answers.small_differences, "it is finite differences"),
            (answers.wide_differences, "a wide step is exact"),
            (answers.whoever_it_belongs_to, "every tangent is mine"),
            (answers.by_the_lab, "the lab does it"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=is_the_derivative,
    ),
)
