"""Exercises of lesson 60, registering an op, on what is known before anything runs: shape rule and dtype rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

from . import op_rules_answers as answers
from .abstract_arrays import AbstractArray, abstract
from .exercise import (
    ACCEPTS_ANYTHING,
    ANOTHER_ERROR,
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Case,
    Exercise,
    Misconception,
    Wrong,
    case,
    refused,
)  # fmt: skip
from .explaining import begins_with

LESSON = "60_registering_an_op"

# -------------------------------------------------------------------------------------------------------------- shape

SETS, BATCH, BATCHES, EMPTY, MANY, POINTS, UNEQUAL = (
    "two sets of points", "a batch on both sides", "batches that broadcast", "axes of size 0", "a million points",
    "points of unequal size", "batches that do not fit",
)  # fmt: skip


def _shape_cases(random: Random, marking: bool) -> Iterator[Case]:
    n, m, d, b, c = random.sample(range(2, 10), 5)

    def shapes(check: str, x: tuple[int, ...], y: tuple[int, ...]) -> Case:
        return case(check, f"abstract({x}), abstract({y})", abstract=abstract)

    yield shapes(SETS, (n, d), (m, d))
    yield shapes(SETS, (m, d), (n, d))
    yield shapes(BATCH, (b, n, d), (b, m, d))
    yield shapes(BATCHES, (n, d), (b, m, d))
    yield shapes(BATCHES, (c, b, n, d), (m, d))
    yield shapes(BATCHES, (b, 1, n, d), (c, m, d))
    yield shapes(EMPTY, (0, d), (m, d))
    yield shapes(EMPTY, (0, n, d), (1, m, d))
    yield shapes(MANY, (10**6 + n, d), (10**6 + m, d))
    yield refused(shapes(POINTS, (n, d), (m, c)), "ValueError")
    yield refused(shapes(POINTS, (n, d), (m, 1)), "ValueError")
    yield refused(shapes(UNEQUAL, (b, n, d), (c, m, d)), "ValueError")
    yield refused(shapes(UNEQUAL, (0, n, d), (b, m, d)), "ValueError")


def _shape(x: AbstractArray, y: AbstractArray) -> tuple[int, ...]:
    """The shape that the differences of the points have in NumPy, on arrays that are views of one number."""
    left, right = (np.broadcast_to(np.zeros(()), one.shape) for one in (x, y))
    return np.broadcast(left[..., :, None, 0], right[..., None, :, 0]).shape


def _sizes(answer: Any) -> tuple[int, ...] | None:
    """The answer as a shape; None where it is something else."""
    is_shape = isinstance(answer, tuple | list) and all(isinstance(size, int | np.integer) for size in answer)
    return tuple(map(int, answer)) if is_shape else None


def _is_shape(answer: Any, x: AbstractArray, y: AbstractArray) -> bool:
    return _sizes(answer) == _shape(x, y)


def _always(formula: Callable[[Any, Any], Any]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether every wrong answer is what a formula of the arguments gives, where there is an answer."""

    def explains(wrong: Sequence[Wrong]) -> bool:
        found = [one for one in wrong if not one.case.refusal]
        return bool(found) and all(
            not one.failure and _sizes(one.answer) == formula(*one.case.arguments) for one in found
        )

    return explains


SHAPE = Exercise(
    lesson=LESSON,
    statement="""\
The op `distances` takes points `x` of shape `(n, d)` and points `y` of shape `(m, d)`, and gives all their distances: shape
`(n, m)`. There may be more axes in front, a batch: `(…, n, d)` and `(…, m, d)` give `(…, n, m)`, and the axes in front
broadcast as in NumPy. Write its shape rule `distances_shape(x, y)`.

* `x` and `y` know their `.shape`, and nothing else: the graph is being recorded, and there are no numbers yet. You can make
  such arrays yourself: `abstract((2, 3))`.
* Return the shape, a tuple.
* Raise a `ValueError` if the points have unequal sizes d, or if the batches do not broadcast.""",
    hints=(
        "Write the two shapes below each other and mark what becomes of each axis: which one stays, which one is gone, "
        "which ones are combined?",
        "`x.shape[-2]` and `y.shape[-2]` stay and `x.shape[-1]` is summed away. For what stands in front, `x.shape[:-2]` and "
        "`y.shape[:-2]`, NumPy has a function that broadcasts shapes.",
        "`np.broadcast_shapes(x.shape[:-2], y.shape[:-2])` is the front, and raises ValueError by itself. Then n, then m. "
        "Compare the last sizes before that.",
    ),
    solution=answers.distances_shape,
    alternatives=(answers.shape_by_hand, answers.shape_without_memory),
    wrong=(
        (answers.shape_of_the_first, "the result is shaped like the first input"),
        (answers.shape_of_the_data, "the shape rule may look at data"),
        (answers.shape_of_zeros, "the kernel runs to find the shape"),
        (answers.shape_with_the_sum, "what is summed stays"),
        (answers.shape_of_two_axes, "there are two axes"),
        (answers.shape_with_batch_of_the_first, "the first input has the batch"),
        (answers.shape_of_anything, "accepts what does not fit"),
        (answers.shape_of_larger_batches, "the larger size wins"),
        (answers.shape_turned, "rows and columns turned"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        Misconception(
            "the shape rule may look at data",
            "Your rule looks at the numbers of its inputs. A shape rule runs while the graph is recorded, before any number "
            "exists: for a shape that depends on data nobody could plan memory. Use `.shape` alone.",
            lambda wrong: any(one.failure in ("ReadsData", "AttributeError", "TypeError") for one in wrong),
        ),
        Misconception(
            "the kernel runs to find the shape",
            "Your rule computes the distances of stand-ins to see what comes out. For large shapes that needs the memory "
            "and the time of the op itself, which a shape rule is there to avoid.",
            lambda wrong: all(one.case.check == MANY for one in wrong),
        ),
        ACCEPTS_ANYTHING,
        ANOTHER_ERROR,
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        Misconception(
            "the result is shaped like the first input",
            "Your rule gives the shape of `x`. That is right for an elementwise op, and it is the shape function that one "
            "copies most often. What do n, m and d stand for here?",
            _always(lambda x, y: x.shape),
        ),
        Misconception(
            "rows and columns turned",
            "Entry `[i, j]` belongs to point i of `x` and point j of `y`: which of the two counts comes first?",
            _always(lambda x, y: (*_shape(x, y)[:-2], y.shape[-2], x.shape[-2])),
        ),
        Misconception(
            "what is summed stays",
            "A distance is one number. The axis of size d is summed over, so that it is gone.",
            _always(lambda x, y: (*_shape(x, y), x.shape[-1])),
        ),
        Misconception(
            "the larger size wins",
            "Your rule takes the larger of two sizes. An axis may have size 0, a batch without anything in it: a 1 is "
            "stretched to 0, and 0 does not fit to any other size.",
            lambda wrong: all(0 in one.case.arguments[0].shape for one in wrong),
        ),
        Misconception(
            "there are two axes",
            "Your rule is right for two axes and loses those in front. That is how graphs lose their batch: nothing fails "
            "here, and whoever reads the shape later works with a wrong size.",
            begins_with(BATCH),
        ),
        Misconception(
            "the first input has the batch",
            "The axes in front may stand at either input, or at both and broadcast. Your rule takes them from one of them.",
            begins_with(BATCHES),
        ),
        Misconception(
            "another shape",
            "Your shape is not that of the distances. Take the smallest case, and say for each axis of the result where it "
            "comes from.",
            lambda wrong: True,
        ),
    ),
    cases=_shape_cases,
    accepts=_is_shape,
)

# -------------------------------------------------------------------------------------------------------------- dtype

SAME, WIDTHS, WHOLE, MIXED, TRUTH = (
    "floats of one width", "floats of two widths", "whole numbers", "whole numbers and floats", "truth values",
)  # fmt: skip
FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint32")


def _dtype_cases(random: Random, marking: bool) -> Iterator[Case]:
    """The grid of all pairs, group by group."""
    groups: dict[str, list[tuple[str, str]]] = {check: [] for check in (SAME, WIDTHS, WHOLE, MIXED, TRUTH)}
    for x in (*FLOATS, *INTEGERS, "bool"):
        for y in (*FLOATS, *INTEGERS, "bool"):
            floats = (x in FLOATS) + (y in FLOATS)
            check = TRUTH if "bool" in (x, y) else (WHOLE, MIXED, SAME if x == y else WIDTHS)[floats]
            groups[check].append((x, y))
    for check, pairs in groups.items():
        for x, y in random.sample(pairs, len(pairs)):
            yield case(check, f"np.dtype({x!r}), np.dtype({y!r})")


def _dtype_of(answer: Any) -> np.dtype | None:
    """The dtype that an answer names; None where it names none."""
    try:
        return np.dtype(answer) if isinstance(answer, np.dtype | type | str) else None
    except (TypeError, ValueError):
        return None


def _is_dtype(answer: Any, x: np.dtype, y: np.dtype) -> bool:
    """What the kernel makes of one number of each dtype."""
    return _dtype_of(answer) == ((np.ones((), x) + np.ones((), y)) / 2).dtype


def _all(has: Callable[..., bool]) -> Callable[[Sequence[Wrong]], bool]:
    return lambda wrong: all(
        (found := _dtype_of(one.answer)) is not None and has(found, *one.case.arguments) for one in wrong
    )


DTYPE = Exercise(
    lesson=LESSON,
    statement="""\
The op `average` computes `(x + y) / 2`, entry by entry, with NumPy's `+` and `/`. Write its dtype rule
`average_dtype(x, y)`: `x` and `y` are the dtypes of the two inputs, such as `np.dtype("float32")`. Return the dtype of the
result. The inputs may be floats, whole numbers or truth values of any width, and two different ones.""",
    hints=(
        "Try some pairs in NumPy: what is the dtype of `np.ones(2, 'int32') / 2`? And of `np.ones(2, 'float32') + "
        "np.ones(2, 'int64')`?",
        "There are two steps. Adding brings both inputs to one dtype: `np.result_type` knows which. What does the division "
        "do with a dtype that is not floating?",
        "Take `np.result_type(x, y)`. If its `kind` is `'f'`, that is the answer. If not, the division makes float64 of it.",
    ),
    solution=answers.average_dtype,
    alternatives=(answers.dtype_of_one_number, answers.dtype_as_a_name),
    wrong=(
        (answers.dtype_of_the_sum, "whole numbers stay whole"),
        (answers.dtype_of_the_first, "the result has the first input's dtype"),
        (answers.dtype_always_double, "float64 is always safe"),
        (answers.dtype_of_one_float, "one input decides"),
        (answers.dtype_of_the_narrow, "the narrower one wins"),
        (answers.dtype_like_a_network, "whole numbers become float32"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        Misconception(
            "not a dtype",
            "Return a dtype, as `np.dtype` makes it, or its name.",
            lambda wrong: any(_dtype_of(one.answer) is None for one in wrong),
        ),
        Misconception(
            "the result has the first input's dtype",
            "Your rule looks at the first input only. Swap the inputs: the average is the same, so its dtype has to be the "
            "same.",
            lambda wrong: (
                _all(lambda found, x, y: found == x)(wrong) and any(len({*one.case.arguments}) == 2 for one in wrong)
            ),
        ),
        Misconception(
            "float64 is always safe",
            "Your rule says float64 where the kernel computes with fewer bytes: two float32 give float32. The plan for the "
            "memory is too large, and who reads eight bytes where four were written reads garbage.",
            _all(lambda found, x, y: found == np.float64 and x.kind + y.kind != "ii"),
        ),
        Misconception(
            "whole numbers stay whole",
            "Your rule is right for the sum. Then comes a division, and half of 3 is no whole number.",
            _all(lambda found, x, y: found.kind in "iub"),
        ),
        Misconception(
            "whole numbers become float32",
            "A division of whole numbers gives float64 in NumPy, whose kernel runs here. Other frameworks choose float32; "
            "a rule says what its kernel does, not what one would like.",
            _all(lambda found, x, y: "f" not in (x.kind, y.kind) and found == np.float32),
        ),
        Misconception(
            "the narrower one wins",
            "With two floats of different width your rule chooses the narrower one. The wide one has digits that would be "
            "lost.",
            lambda wrong: _takes_the_narrower(wrong),
        ),
        Misconception(
            "one input decides",
            "Your rule takes the dtype of one of the inputs where two have a say. A float32 and an int64 give float64 in "
            "NumPy, because float32 cannot hold every int64.",
            _all(lambda found, x, y: found in (x, y)),
        ),
        Misconception(
            "not the kernel's dtype",
            "Your rule and the kernel disagree. Let NumPy compute `(x + y) / 2` for the two dtypes, and look at what comes "
            "out.",
            lambda wrong: True,
        ),
    ),
    cases=_dtype_cases,
    accepts=_is_dtype,
)


def _takes_the_narrower(wrong: Sequence[Wrong]) -> bool:
    """Whether of two floats always the narrower one was taken, whichever stood first."""
    pairs = [one for one in wrong if one.case.check == WIDTHS]
    return len(pairs) == 6 and all(
        _dtype_of(one.answer) == min(one.case.arguments, key=lambda dtype: dtype.itemsize) for one in pairs
    )


EXERCISES = (SHAPE, DTYPE)
