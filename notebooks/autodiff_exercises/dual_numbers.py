"""The exercise on dual numbers of lesson 20: forward mode for plain numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random
from typing import Any

import autodiff_lab as ad

from . import dual_numbers_answers as answers
from .exercise import (
    CHANGED_ARGUMENTS,
    EVERY_PATH,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Case,
    Exercise,
    Misconception,
    case,
    soon,
)
from .explaining import EXACT, begins_with, called_too_often, every, is_number
from .limits import Limited, limited
from .withholding import DERIVATIVES

Numbers = tuple[float, ...]

# --------------------------------------------------------------------------------------------------- what tells right


def is_value_and_tangent(answer: Any, f: Limited, primals: Numbers, tangents: Numbers, within: float = EXACT) -> bool:
    """Whether the answer is the value of f and its derivative in the direction of the tangents."""
    if not _is_pair(answer):
        return False
    right = ad.jvp(f.function, primals, tangents)
    return all(math.isclose(a, b, rel_tol=within, abs_tol=within) for a, b in zip(answer, right, strict=True))


def _is_pair(answer: Any) -> bool:
    return isinstance(answer, list | tuple) and len(answer) == 2 and all(map(is_number, answer))


def _in_another_direction(answer: Any, f: Limited, primals: Numbers, tangents: Numbers) -> bool:
    return any(is_value_and_tangent(answer, f, primals, (one,) * len(primals)) for one in (0.0, 1.0))


def _is_near(answer: Any, f: Limited, primals: Numbers, tangents: Numbers) -> bool:
    return is_value_and_tangent(answer, f, primals, tangents, within=1e-3)


def _has_wrong_value(answer: Any, f: Limited, primals: Numbers, tangents: Numbers) -> bool:
    return not math.isclose(answer[0], ad.jvp(f.function, primals, tangents)[0], rel_tol=EXACT)


MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    EVERY_PATH,
    Misconception(
        "one run is not enough",
        "Your function runs `f` more than once. Differences compare two runs, forward mode does not: each operation carries "
        "its tangent along, by its own rule. Nor does it need a run for each input: all of them move at once, each by its "
        "tangent.",
        called_too_often,
    ),
    Misconception(
        "near is right",
        "You are near, and that is not near enough: the rules of the operations have no step, and nothing that is cut off or "
        "rounded. They give the derivative to the last digit.",
        every(_is_near),
    ),
    Misconception(
        "the tangent comes first",
        "Your two numbers are right, in the wrong order: first the value, then the tangent.",
        every(lambda answer, *asked: _is_pair(answer) and is_value_and_tangent(answer[::-1], *asked)),
    ),
    Misconception(
        "the direction is always the same",
        "Your derivative belongs to another direction: each input starts with the tangent that the caller gave.",
        every(_in_another_direction),
    ),
    Misconception(
        "a number on the left is Python's business",
        "With a plain number on the left, Python asks the right operand: its methods `__radd__`, `__rsub__` and `__rmul__` "
        "have to answer.",
        lambda wrong: begins_with("a plain number on the left")(wrong) and bool(wrong[0].failure),
    ),
    Misconception(
        "every plain number has a point",
        "It goes wrong where a plain number is whole: `2` is an `int`, not a `float`. Ask whether the operand is a dual number "
        "instead.",
        begins_with("a whole number"),
    ),
    STOPS_WITH_ERROR,
    Misconception(
        "one of the two is enough",
        "Return a pair of plain numbers: the value of the result, and its tangent.",
        lambda wrong: not _is_pair(wrong[0].answer),
    ),
    Misconception(
        "an operation changes its operands",
        "It goes wrong where a value is used again after an operation. `x + y` makes a new number and leaves `x` and `y` as "
        "they were: return a new object, and assign to nothing of `self`.",
        begins_with("values used again"),
    ),
    Misconception(
        "the left operand asks first",
        "It goes wrong where a plain number stands on the left, and the value itself is wrong. There Python calls the method "
        "of the right operand: `a - x` becomes `x.__rsub__(a)`, so `self` is what is taken away.",
        lambda wrong: (
            begins_with("a plain number on the left")(wrong)
            and _has_wrong_value(wrong[0].answer, *wrong[0].case.arguments)
        ),
    ),
    Misconception(
        "a plain number moves too",
        "It goes wrong where a plain number meets a dual one. A constant stands still, whatever the inputs do: which "
        "tangent says that?",
        begins_with("a plain number", "a plain number on the left"),
    ),
    Misconception(
        "minus is plus",
        "It goes wrong where something is subtracted. If what is taken away grows, the difference shrinks.",
        begins_with("a difference"),
    ),
    Misconception(
        "the product of the tangents",
        "It goes wrong at a product. Let only the left factor move: by how much does the product move? Then only the "
        "right one. The two moves are added.",
        begins_with("a product"),
    ),
    Misconception(
        "the tangent is the local derivative",
        "It goes wrong at `exp`. Its local derivative says how much the result moves for each unit that the input moves; "
        "it still has to be multiplied by how much the input does move.",
        begins_with("the exponential function"),
    ),
    Misconception(
        "not what the rules give", "Value or tangent is not what the rules of the operations give.", lambda _: True
    ),
)

PROGRAMS: tuple[tuple[str, int, str], ...] = (  # what is looked at, the number of inputs, and the program
    ("a sum", 2, "{0} + {1}"),
    ("a difference", 2, "{0} - {1}"),
    ("a product", 2, "{0} * {1}"),
    ("a product", 1, "{0} * {0}"),
    ("the exponential function", 1, "{0}.exp()"),
    ("values used again", 2, "[h := {0} * {1}, h + {0}, h - {0}, h * {0}, h.exp(), h + {0}][-1]"),
    ("a plain number", 1, "{0} * {0} + {a}"),
    ("a plain number", 2, "({0} - {a}) * ({1} * {b})"),
    ("a plain number on the left", 1, "{a} + {0}"),
    ("a plain number on the left", 1, "{a} - {b} * {0}"),
    ("a whole number", 1, "2 * {0} * 3 + 1"),
    ("several operations", 2, "({0} * {1} - {0}).exp() * {a}"),
    ("several operations", 3, "[h := {0} * {1}, h * h - ({2} - h).exp()][-1]"),
)


def cases(random: Random, large: bool) -> Iterator[Case]:
    """Programs with one operation more from case to case; numbers drawn at random."""
    for check, count, body in PROGRAMS:
        names = random.sample("rstuvwxyz", count)
        a, b = (round(random.uniform(1.25, 3), 2) for _ in range(2))
        yield _program(check, names, body.format(*names, a=a, b=b), random)
    doubled = f"limited(lambda x: [x := x - x * 0.5 for _ in range({random.randint(40, 60)})][-1], calls=1)"
    yield soon(case("a value used twice, layer upon layer", f"{doubled}, (1.5e6,), (0.7e6,)", limited=limited))
    for size in range(3, 9 if large else 5):
        names = random.sample("rstuvwxyz", random.randint(2, 4))
        known, lines = list(names), []
        for number in range(size):
            lines.append(f"h{number} := {random.choice(known)} {random.choice('+-*')} {random.choice(names)}")
            known.append(f"h{number}")
        yield _program("random programs", names, f"[{', '.join(lines)}, h{size - 1} * {names[0]}.exp()][-1]", random)


def _program(check: str, names: list[str], body: str, random: Random) -> Case:
    primals, tangents = (tuple(_numbers(random, len(names))) for _ in range(2))
    return case(check, f"limited(lambda {', '.join(names)}: {body}, calls=1), {primals}, {tangents}", limited=limited)


def _numbers(random: Random, count: int) -> list[float]:
    """Numbers with two digits, none of them small, none of them 1 or alike."""
    return [round(random.choice((-1, 1)) * (0.3 + 0.37 * place + random.uniform(0, 0.3)), 2) for place in range(count)]


EXERCISES = (
    Exercise(
        lesson="20_forward_mode",
        statement="""\
Write `push_tangents(f, primals, tangents)`: forward mode for plain numbers.

* `f` is a function of as many numbers as there are `primals`. It uses `+`, `-`, `*`, plain numbers on either side of them, and
  the method `.exp()`. Call it **once**, on dual numbers: objects of a small class of yours.
* `tangents` is the direction: how fast each of the inputs moves.
* Return a pair of plain numbers: the value of `f(*primals)`, and how fast it moves. The result depends on some input.
* Write the rules yourself, without the lab's derivatives.

So `push_tangents(lambda x, y: x * y, (2.0, 5.0), (1.0, 0.0))` is `(10.0, 5.0)`. The check wants twelve digits.""",
        hints=(
            "A dual number has two parts, value and tangent. For each operation ask two questions: what is the value of "
            "the result? And how fast does the result move, if the operands move as fast as their tangents say?",
            "Write a class with `__add__`, `__sub__`, `__mul__` and `exp`. First turn the other operand into a dual number "
            "if it is a plain one. For a plain number on the left, Python calls `__radd__`, `__rsub__` and `__rmul__`.",
            "The rules: of `a + b` the tangent is a′ + b′, of `a * b` it is a′·b + a·b′, of `a.exp()` it is exp(a)·a′, and a "
            "plain number has the tangent zero. Beware of `__rsub__(self, other)`: it is `other - self`.",
        ),
        solution=answers.push_tangents,
        alternatives=(answers.by_matrices,),
        withheld=DERIVATIVES,
        wrong=(
            (answers.product_of_tangents, "the product of the tangents"),
            (answers.chain_forgotten, "the tangent is the local derivative"),
            (answers.sign_lost, "minus is plus"),
            (answers.numbers_move, "a plain number moves too"),
            (answers.always_the_same_direction, "the direction is always the same"),
            (answers.differences, "one run is not enough"),
            (answers.exp_cut_off, "near is right"),
            (answers.tangent_first, "the tangent comes first"),
            (answers.floats_only, "every plain number has a point"),
            (answers.in_place, "an operation changes its operands"),
            (answers.reversed_like_forward, "the left operand asks first"),
            (answers.by_the_labs_jvp, "the lab does it"),
            (answers.numbers_only_right, "a number on the left is Python's business"),
            (answers.tangent_only, "one of the two is enough"),
            (answers.along_every_path, "once for every path"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=is_value_and_tangent,
    ),
)
