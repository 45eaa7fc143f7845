"""The exercise "an engine for arrays" of lesson 130: ops from a table, and gradients in the shapes of the arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import numpy as np

from ..exercise import EVERY_PATH, RECURSION, STOPS_WITH_ERROR, Case, Exercise, Misconception, Wrong, case, refused
from ..explaining import begins_with
from ..vjp_laws import numbers
from ..withholding import DERIVATIVES
from . import array_engines_answers as answers
from . import probes
from .judging import NOT_PLAIN, PROTOCOL, REFUSALS, is_not_called, is_sweep, is_swept, labs_sweep, record_alone
from .scalar_engines import LESSON

LEFT, OTHER, AGAIN = "an array on the left", "an op that is new", "a second sweep"
AXES, ONES, TWICE, SHARED = (
    "axes that one side lacks",
    "axes of size 1",
    "an array used twice",
    "arrays that rules share",
)
MANY = "backward of many numbers"

PROGRAMS: tuple[
    tuple[str, str, tuple[tuple[int, ...], ...]], ...
] = (  # what is looked at, the program, the inputs' shapes
    ("one shape", "lambda x, y: (x + y * {c}).sum()", ((2, 3), (2, 3))),
    ("one shape", "lambda x, y: (x * y).sum()", ((2, 3), (2, 3))),
    ("a plain number", "lambda x: (x * {a} + 2).sum()", ((3,),)),
    ("a plain number", "lambda x: ({a} + 2 * x).sum()", ((3,),)),
    (LEFT, "lambda x: ({c} * x).sum()", ((2, 3),)),
    (AXES, "lambda x, y: (x * y).sum()", ((2, 3), (3,))),
    (AXES, "lambda x, y: (x * y).sum()", ((), (2, 3))),
    (AXES, "lambda x, y: (x * {c} + y).sum()", ((2, 3), (2, 2, 3))),
    (ONES, "lambda x, y: (x * y).sum()", ((2, 3), (2, 1))),
    (ONES, "lambda x, y: ((x + y) * {c}).sum()", ((1, 3), (2, 1))),
    (ONES, "lambda x, y: (x * y).sum()", ((4, 1), (3,))),
    (TWICE, "lambda x: (x * x).sum()", ((2, 3),)),
    (TWICE, "lambda x, y: [h := x * y, (h * x + h).sum()][-1]", ((2, 3), (3,))),
    (SHARED, "lambda x, y: [h := x * y, ((h + x) * {c}).sum() + (h * y * y * y).sum()][-1]", ((2, 3), (2, 3))),
    (SHARED, "lambda x, y: [h := x * y, (h * y * y * y).sum() + ((h + x) * {c}).sum()][-1]", ((2, 3), (2, 3))),
    (OTHER, "lambda x: (x.tanh() * x).sum()", ((2, 3),)),
)


def cases(random: Random, marking: bool) -> Iterator[Case]:
    """Programs with one thing more from case to case; then two sweeps, refusals, and a deep one."""
    for check, program, shapes in PROGRAMS:
        program = program.format(a=random.randint(2, 9) + 0.5, c=numbers(random, 2, 3))
        yield _case(check, program, shapes, random, ', 1, {"tanh": probes.TANH}' if check == OTHER else "")
    for size in range(2, 7 if marking else 4):
        lines = [
            f"x := x {random.choice('+*')} {random.choice(('y', 'z', 'x'))} * {random.randint(2, 5)}"
            for _ in range(size)
        ]
        yield _case(
            "random programs",
            f"lambda x, y, z: [{', '.join(lines)}, (x * y).sum()][-1]",
            ((3, 1), (1, 2), (2,)),
            random,
        )
    yield _case(AGAIN, "lambda x, y: (x * y * x).sum()", ((2, 3), (3,)), random, ", 2")
    yield refused(_case(MANY, "lambda x: x * x", ((2, 3),), random), "ValueError")
    yield refused(_case("an op that is not there", "lambda x: x.cosine().sum()", ((2, 3),), random), "AttributeError")
    depth = random.randint(6000, 7000) if marking else 5000
    yield _case(
        f"{depth:,} operations deep", f"lambda x: [x := x + 0.5 for _ in range({depth})][-1].sum()", ((2,),), random
    )


def _case(check: str, program: str, shapes: tuple[tuple[int, ...], ...], random: Random, rest: str = "") -> Case:
    arrays = ", ".join(numbers(random, *shape) for shape in shapes)
    return case(check, f"{program}, ({arrays},){rest}", probes=probes)


def _as_if_once(wrong: Sequence[Wrong]) -> bool:
    """Whether the second sweep left what the first one had."""
    return not wrong[0].failure and is_swept(wrong[0].answer, *wrong[0].case.arguments[:2])


def _shapes_differ(wrong: Sequence[Wrong]) -> bool:
    """Whether some gradient of the first wrong answer is not shaped like its array."""
    answer, arrays = wrong[0].answer, wrong[0].case.arguments[1]
    return is_sweep(answer) and any(np.shape(g) != np.shape(x) for g, x in zip(answer[1], arrays, strict=False))


def _are_averages(wrong: Sequence[Wrong]) -> bool:
    """Whether the gradients of the first wrong answer are the right ones, each divided by some number."""
    answer, (program, arrays) = wrong[0].answer, wrong[0].case.arguments[:2]
    if not is_sweep(answer) or _shapes_differ(wrong):
        return False
    with np.errstate(all="ignore"):
        ratios = [np.ravel(one / other) for one, other in zip(labs_sweep(program, arrays)[1], answer[1], strict=True)]
    ratios = [one[~np.isnan(one)] for one in ratios]  # 0 / 0 says nothing
    return all(np.allclose(one, one[:1]) for one in ratios)


MISCONCEPTIONS = (
    Misconception(
        "an object for a class",
        "Return the class itself, so that the caller can make arrays with it: `return Tensor`, without calling it.",
        lambda wrong: begins_with("one shape")(wrong) and is_not_called(wrong),
    ),
    RECURSION,
    EVERY_PATH,
    Misconception(
        "NumPy leaves it to us",
        "It goes wrong where a NumPy array stands on the left. NumPy does not ask your class: it takes your object for a "
        "number and goes through its own array, entry by entry. The line `__array_ufunc__ = None` in a class tells NumPy to "
        "keep out, and Python asks your `__rmul__` then.",
        begins_with(LEFT),
    ),
    NOT_PLAIN,
    PROTOCOL,
    Misconception(
        "any array is an end",
        "`backward` began at an array of many numbers. There is no one gradient of many numbers: which of them should grow? "
        "Refuse it with a ValueError, and say what to do: to add them up first.",
        begins_with(MANY),
    ),
    *REFUSALS,
    Misconception(
        "the table is for show",
        "An op that the table has, and that is new, does not work. Your class knows some names by itself. Look every op up "
        "in `ops` when it is asked for: then whoever adds an op need not touch your class.",
        begins_with(OTHER),
    ),
    STOPS_WITH_ERROR,
    Misconception(
        "a gradient may have any shape",
        "A gradient of yours is not shaped like its array. An operation stretches an array that is smaller than the other "
        "one: whatever reaches the copies has to be added up, over axes that the array lacks *and* over those where its "
        "size is 1.",
        _shapes_differ,
    ),
    Misconception(
        "copies share the gradient",
        "It goes wrong where an array is stretched: your gradients are too small, as if an average had been taken. If one "
        "number moves, all of its copies move: their gradients are added.",
        lambda wrong: begins_with(AXES, ONES)(wrong) and _are_averages(wrong),
    ),
    Misconception(
        "one copy speaks for all",
        "It goes wrong where an array is stretched: the shapes are right, the numbers are not. Every copy of a number gets "
        "a gradient, and all of them count: add them up.",
        begins_with(AXES, ONES),
    ),
    Misconception(
        "last path wins",
        "It goes wrong where an array is used twice: you keep what arrived last. All contributions are added.",
        begins_with(TWICE),
    ),
    Misconception(
        "adding in place",
        "It goes wrong where a rule hands the same array to several inputs. `+=` writes into that array, so all of them "
        "change. Add with `a + b`, which makes a new one.",
        begins_with(SHARED, "random programs"),
    ),
    Misconception(
        "old gradients are sent again",
        "One sweep is right and a second one is not: it finds what the first has left in the values in between, and sends "
        "it on once more. Sweep with gradients of this sweep alone, and add them to `grad` at the end.",
        lambda wrong: begins_with(AGAIN)(wrong) and not _as_if_once(wrong),
    ),
    Misconception(
        "a sweep begins from zero",
        "A second sweep forgets the first one. `backward` *adds* to `grad`; whoever wants to begin from zero sets it to zero.",
        begins_with(AGAIN),
    ),
    Misconception(
        "the record tells another story",
        "Your numbers are right, and the record is not what happened. Each call of an op makes one value with the op's name "
        "and its operands as `inputs`, the left one first; a plain number becomes a value of its own.",
        record_alone,
    ),
    Misconception(
        "not what the rules give",
        "Value or gradient is not what the table's rules give. Follow the smallest example by hand.",
        lambda wrong: True,
    ),
)

EXERCISES = (
    Exercise(
        lesson=LESSON,
        statement="""\
Write `array_engine(ops)`: it returns a class, your engine for arrays. `ops` is a table: a name gives `OpRules`, with
`forward`, `gradients` and `shape`. `Tensor(array)` makes a value with `data`, `grad`, `op`, `inputs` and `backward()` as
before. In addition:

* `data` is a NumPy array of float64, and `grad` has the same shape, zeros at first.
* `+`, `-`, `*`, `/`, `@` call the ops `"add"`, `"sub"`, `"mul"`, `"div"`, `"matmul"` of the table, with values, arrays and
  plain numbers on both sides. Every other op is a method: `x.sum()` calls `"sum"`. What the table does not have *when it is
  called* is an AttributeError.
* Whatever a rule gives is brought into the shape of its array: NumPy stretches arrays, and you add up.
* `backward()` of anything but a single number, of shape `()`, is a ValueError.

Use your own earlier code: `scalar_engine().backward` is a function, and it may fit without a change. The lab's derivatives
are not at hand here.""",
        hints=(
            "Write one function `apply(name, *operands)`, and let everything else call it: it makes values of plain "
            "operands, looks up the rules, runs `forward`, and keeps a rule for backward. How did your numbers keep theirs?",
            "A second function brings a contribution into a shape: sum over as many axes in front as it has too many, then "
            "over those axes where the shape says 1, with `keepdims=True`. Methods for ops: Python calls `__getattr__(self, "
            "name)` for a name that a value does not have.",
            "For the operators, a loop: `setattr(Tensor, '__add__', lambda x, y: apply('add', x, y))` and `setattr(Tensor, "
            "'__radd__', lambda y, x: apply('add', x, y))`; beware of loop variables in a lambda. In the class say "
            "`__array_ufunc__ = None`. The rule: `lambda g: [fitted(one(g, out, *arrays), x.shape) for one, x in "
            "zip(rules.gradients, arrays)]`.",
        ),
        solution=answers.array_engine,
        alternatives=(answers.by_counting_uses,),
        withheld=DERIVATIVES,
        wrong=(
            (answers.as_it_comes, "a gradient may have any shape"),
            (answers.new_axes_only, "a gradient may have any shape"),
            (answers.averages, "copies share the gradient"),
            (answers.first_copy, "one copy speaks for all"),
            (answers.numpy_first, "NumPy leaves it to us"),
            (answers.three_ops_for_ever, "the table is for show"),
            (answers.last_path_wins, "last path wins"),
            (answers.in_place, "adding in place"),
            (answers.stale, "old gradients are sent again"),
            (answers.from_any_shape, "any array is an end"),
            (answers.recursive, "recursion"),
            (answers.an_array, "an object for a class"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=is_swept,
        seconds=10.0,
        probe=probes.swept_arrays,
    ),
)
