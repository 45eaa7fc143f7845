"""The exercise "an engine for numbers" of lesson 130: values that know how they were computed, and backward."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from ..exercise import EVERY_PATH, RECURSION, STOPS_WITH_ERROR, Case, Exercise, Misconception, case, soon
from ..explaining import begins_with
from ..withholding import DERIVATIVES
from . import probes
from . import scalar_engines_answers as answers
from .judging import NOT_PLAIN, PROTOCOL, is_not_called, is_swept, record_alone

LESSON = "130_build_a_framework"
LEFT, TWICE, SKIP, AGAIN = "a plain number on the left", "one value twice", "a skip connection", "a second sweep"

PROGRAMS: tuple[tuple[str, int, str], ...] = (  # what is looked at, the number of inputs, and the program
    ("a sum", 2, "{0} + {1}"),
    ("a difference", 2, "{0} - {1}"),
    ("a product", 2, "{0} * {1}"),
    ("a quotient", 2, "{0} / {1}"),
    ("exp and log", 1, "{0}.exp()"),
    ("exp and log", 1, "{0}.log()"),
    ("a chain", 2, "({0} * {1}).log().exp()"),
    ("a plain number", 1, "({0} * {a} + 2) / {b}"),
    (LEFT, 1, "{a} + {0}"),
    (LEFT, 1, "{a} - {0}"),
    (LEFT, 1, "{a} / {0}"),
    (LEFT, 1, "3 * {0}"),
    (TWICE, 1, "{0} * {0}"),
    (TWICE, 1, "{0} + {0}"),
    (SKIP, 1, "[h := {0} * {a}, k := h.exp(), k * {0} + h][-1]"),
    (SKIP, 2, "[h := {0} * {1}, k := h + {0}, k * h - {0} / k][-1]"),
)


def cases(random: Random, marking: bool) -> Iterator[Case]:
    """Programs with one thing more from case to case, numbers drawn at random; then one swept twice, a wide and a deep one."""
    for check, count, body in PROGRAMS:
        yield _program(check, count, body, random)
    for size in range(3, 10 if marking else 6):
        known, lines = ["x", "y"], []
        for number in range(size):
            lines.append(f"h{number} := {random.choice(known)} {random.choice('+-*')} {random.choice('xy')}")
            known.append(f"h{number}")
        yield _program("random programs", 2, f"[{', '.join(lines)}, h{size - 1} * {{0}} / {{1}}][-1]", random)
    yield _program(AGAIN, 2, "({0} * {1}).exp() + {0}", random, times=2)
    a, b = _numbers(random, 2)
    yield soon(
        case(
            "y = y + y, again and again", f"lambda x: [x := x + x for _ in range({random.randint(40, 60)})][-1], ({a},)"
        )
    )
    depth = random.randint(6000, 7000) if marking else 5000
    yield case(f"{depth:,} operations deep", f"lambda x: [x := x + {b} for _ in range({depth})][-1], ({a},)")


def _program(check: str, count: int, body: str, random: Random, times: int = 1) -> Case:
    a, b = _numbers(random, 2)
    names = ["x", "y"][:count]
    numbers = tuple(_numbers(random, count))
    swept = "" if times == 1 else f", {times}"
    return case(check, f"lambda {', '.join(names)}: {body.format(*names, a=a, b=b)}, {numbers}{swept}")


def _numbers(random: Random, count: int) -> list[float]:
    """Positive numbers, none of them 1 or alike."""
    return [round(1.2 + 0.7 * place + random.uniform(0, 0.6), 2) for place in range(count)]


MISCONCEPTIONS = (
    Misconception(
        "an object for a class",
        "Return the class itself, so that the caller can make values with it: `return Value`, without calling it.",
        lambda wrong: begins_with("a sum")(wrong) and is_not_called(wrong),
    ),
    NOT_PLAIN,
    RECURSION,
    EVERY_PATH,
    PROTOCOL,
    Misconception(
        "a number on the left is Python's business",
        "With a plain number on the left, Python asks the right operand: its methods `__radd__`, `__rsub__`, `__rmul__` and "
        "`__rtruediv__` have to answer.",
        lambda wrong: begins_with(LEFT)(wrong) and wrong[0].failure == "TypeError",
    ),
    STOPS_WITH_ERROR,
    Misconception(
        "x * x has one input",
        "An operation on one value twice has two inputs, which are the same: a contribution comes along each. A set, or the "
        "keys of a dictionary, keep one of them.",
        lambda wrong: begins_with(TWICE)(wrong) and len(wrong[0].answer[2]) == 2 and len(wrong[0].answer[2][1][1]) < 2,
    ),
    Misconception(
        "the record tells another story",
        "Your numbers are right, and the record is not what happened. Each operation makes one value, whose `op` is add, "
        "sub, mul, div, exp or log, and whose `inputs` are its operands, the left one first. A difference by way of a "
        "product would be drawn, and scheduled, as two operations.",
        record_alone,
    ),
    Misconception(
        "last path wins",
        "It goes wrong where a value is used twice: you keep what arrived last. The result moves by each of these ways, so "
        "all contributions are added.",
        begins_with(TWICE),
    ),
    Misconception(
        "each value once is enough",
        "It goes wrong where a value is used on a short and on a long way. You ran its rule when the first contribution had "
        "arrived, and what came later went no further. A value has to wait for all of its users.",
        begins_with(SKIP),
    ),
    Misconception(
        "old gradients are sent again",
        "One sweep is right and a second one is not: it finds what the first has left in the values in between, and sends "
        "it on once more. Sweep with gradients of this sweep alone, and add them to `grad` at the end.",
        lambda wrong: begins_with(AGAIN)(wrong) and not _as_if_once(wrong),
    ),
    Misconception(
        "a sweep begins from zero",
        "A second sweep forgets the first one. `backward` *adds* to `grad`, so that several results can share a value; "
        "whoever wants to begin from zero sets it to zero.",
        begins_with(AGAIN),
    ),
    Misconception(
        "minus is plus",
        "It goes wrong at a difference. If what is taken away grows, the result shrinks: its contribution has a minus.",
        begins_with("a difference"),
    ),
    Misconception(
        "the divisor stands still",
        "It goes wrong at a quotient. The divisor moves, too: of a/b the derivative by b is −a/b².",
        begins_with("a quotient"),
    ),
    Misconception(
        "the left operand asks first",
        "It goes wrong where a plain number stands on the left: there `self` is the right operand, what is taken away, or "
        "what is divided by.",
        begins_with(LEFT),
    ),
    Misconception(
        "not what the rules give",
        "Value or gradient is not what the rules of the operations give. Follow the smallest example by hand.",
        lambda wrong: True,
    ),
)


def _as_if_once(wrong: Any) -> bool:
    """Whether the second sweep left what the first one had."""
    return not wrong[0].failure and is_swept(wrong[0].answer, *wrong[0].case.arguments[:2])


EXERCISES = (
    Exercise(
        lesson=LESSON,
        statement="""\
Write `scalar_engine()`: it returns a class, your engine for numbers. Call the class as you like. `Value(3.0)` makes a
value, which knows

* `data`, the number; `grad`, what backward has added up, 0.0 at first;
* `op`, the name of the operation that made it: `"add"`, `"sub"`, `"mul"`, `"div"`, `"exp"` or `"log"`; and `""` for a value
  that was not computed;
* `inputs`, a tuple of values, one for each operand, the left one first; `()` for a value that was not computed.

It has `+`, `-`, `*`, `/` with values and plain numbers on both sides, `.exp()` and `.log()`. A plain number becomes a value
with the op `""`. And it has `.backward()`, which **adds** the derivative of this value to the `grad` of all values that it
was computed from. A second `backward` adds the same once more. Programs are 5,000 operations deep, and use values again and
again.

So after `x = Value(3.0); y = x * x; y.backward()` we have `x.grad == 6.0`, `y.op == "mul"`, `y.inputs == (x, x)`.""",
        hints=(
            "What does an operation know that backward will need? Its operands and its local derivatives: keep them in the "
            "result, as a small function `rule` that takes the result's gradient and gives one contribution for each input.",
            "backward has three parts. Put all values in an order in which each comes after its inputs, with a stack of "
            "your own. Go through it from the end, with a dictionary of gradients that begins with `{self: 1.0}`, and add "
            "up what arrives. Then add the dictionary to the `grad`s.",
            "The order: put `(value, False)` on the stack. When you take `(value, False)` for the first time, put `(value, "
            "True)` and then its inputs with False; when you take `(value, True)`, it is next in the order. The rules: add "
            "`(g, g)`, sub `(g, -g)`, mul `(g * b.data, g * a.data)`, div `(g / b.data, -g * out / b.data)`, exp `(g * "
            "out,)`, log `(g / a.data,)`.",
        ),
        solution=answers.scalar_engine,
        alternatives=(answers.by_counting_uses,),
        withheld=(*DERIVATIVES, "micro.Value"),
        wrong=(
            (answers.last_path_wins, "last path wins"),
            (answers.breadth_first, "each value once is enough"),
            (answers.every_path, "once for every path"),
            (answers.recursive, "recursion"),
            (answers.stale, "old gradients are sent again"),
            (answers.from_zero, "a sweep begins from zero"),
            (answers.minus_is_plus, "minus is plus"),
            (answers.divisor_stands_still, "the divisor stands still"),
            (answers.left_is_right, "the left operand asks first"),
            (answers.only_on_the_right, "a number on the left is Python's business"),
            (answers.inputs_as_a_set, "x * x has one input"),
            (answers.minus_by_plus, "the record tells another story"),
            (answers.an_object, "an object for a class"),
            (answers.by_the_lab, "the lab does it"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=is_swept,
        seconds=10.0,
        probe=probes.swept,
    ),
)
