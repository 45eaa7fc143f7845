"""Exercises of lesson 40 on copies and sums, each other's transpose: unbroadcast and sum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import numpy as np

from autodiff_lab import ops

from . import gradient_rules_of_copies_answers as answers
from . import vjp_laws as laws
from .exercise import CHANGED_ARGUMENTS, RETURNS_NOTHING, STOPS_WITH_ERROR, Case, Exercise, Misconception, Wrong, case
from .explaining import begins_with
from .vjp_laws import Gradients, Pullback, equals, every, numbers
from .withholding import DERIVATIVES

LESSON = "40_gradient_rules"
Axis = int | tuple[int, ...] | None
Shape = tuple[int, ...]

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
        ("an axis that stays 1", (n, 1, m), (1, m), "float64"), ("equal sizes", (m, m), (m,), "float64"),
        ("equal sizes", (m, m), (m, 1), "float64"), ("equal sizes", (n, n, m), (n, 1), "float64"),
        ("float32", (n, m), (1, m), "float32"),
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


def _sums_last_axes(found: Gradients, asked: Pullback) -> bool:
    (x,) = asked.inputs
    stretched = tuple(axis for axis, size in enumerate(x.shape) if size == 1)
    expected = asked.g.sum(axis=tuple(range(x.ndim, asked.g.ndim))).sum(axis=stretched, keepdims=True)
    return found[0].shape == expected.shape and np.allclose(found[0], expected)


def _takes_one_copy(found: Gradients, asked: Pullback) -> bool:
    (x,) = asked.inputs
    picked = asked.g[(0,) * (asked.g.ndim - x.ndim)][tuple(slice(0, size) for size in x.shape)]
    return found[0].shape == x.shape and np.allclose(found[0], picked)


UNBROADCAST = Exercise(
    lesson=LESSON,
    statement="""\
Write `unbroadcast(g, shape)` in NumPy. An array of shape `shape` was broadcast to the shape of `g` on the way forward. `g` is
the gradient for the large array; return the gradient for the small one. It has exactly the shape `shape` and the dtype of `g`.

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
        (answers.unbroadcast_aligned_left, "shapes are compared from the left"),
        (answers.unbroadcast_once, "a gradient may have any shape"),
        (answers.unbroadcast_by_size, "a size tells the axis"),
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
        Misconception(
            "shapes are compared from the left",
            "You keep the first axes and sum over the last ones. NumPy compares shapes from the right, so axes are added in "
            "front. Where all sizes are equal only the numbers show it.",
            lambda wrong: not begins_with("equal sizes")(wrong) and every(asks_unbroadcast, _sums_last_axes)(wrong),
        ),
        Misconception(
            "a size tells the axis",
            "It goes wrong where several axes have the same size. Whether an axis was added does not show in its size: "
            "shapes are compared from the right, place by place.",
            begins_with("equal sizes"),
        ),
        laws.shape_lost(asks_unbroadcast),
        laws.dtype_lost(asks_unbroadcast),
        STOPS_WITH_ERROR,
        laws.not_the_adjoint(),
    ),
    withheld=(*DERIVATIVES, "ops.sum_to"),
    cases=_unbroadcast_cases,
    accepts=lambda answer, *arguments: laws.is_pullback(answer, asks_unbroadcast(*arguments)),
)

# ---------------------------------------------------------------------------------------------------------------- sum


def asks_sum(g: np.ndarray, shape: Shape, axis: Axis = None, keepdims: bool = False) -> Pullback:
    """What sum_vjp is asked for."""
    return Pullback(lambda x: ops.sum(x, axis=axis, keepdims=keepdims), (np.zeros(shape, g.dtype),), g)


FROM_THE_END, SEVERAL = "counted from the end", "two axes"


def _sum_cases(random: Random, marking: bool) -> Iterator[Case]:
    n, m, k = random.sample(range(4, 8), 3) if marking else (2, 3, 4)
    kinds: list[tuple[str, Shape, Axis, bool, str]] = [
        ("everything", (m,), None, False, "float64"), ("the first axis", (n, m), 0, False, "float64"),
        ("the last axis", (n, m), 1, False, "float64"), ("the last axis", (m, m), 1, False, "float64"),
        (FROM_THE_END, (n, m, k), -2, False, "float64"), (FROM_THE_END, (n, m, k), -1, False, "float64"),
        (SEVERAL, (n, m, k), (0, 2), False, "float64"), (FROM_THE_END, (n, m, k), (0, -1), False, "float64"),
        ("keepdims", (n, m), 1, True, "float64"), ("keepdims", (n, m), None, True, "float64"),
        ("keepdims", (n, m, k), (0, 2), True, "float64"), ("float32", (n, m), 1, False, "float32"),
        ("float32", (n, m), None, False, "float32"), ("float32", (n, m), None, True, "float32"),
    ]  # fmt: skip
    for check, shape, axis, keepdims, dtype in kinds:
        result = np.zeros(shape).sum(axis=axis, keepdims=keepdims).shape
        yield case(check, f"{numbers(random, *result, dtype=dtype)}, {shape}, {axis}, {keepdims}")


def _axis_was_taken_out(one: Wrong) -> bool:
    _g, _shape, axis, keepdims = one.case.arguments
    return axis is not None and not keepdims


def _broadcasts_as_it_is(wrong: Sequence[Wrong]) -> bool:
    stretched = every(asks_sum, equals(lambda g, x: np.broadcast_to(g, x.shape)))
    answered = [one for one in wrong if not one.failure]
    begins = begins_with("the last axis")(wrong) and all(map(_axis_was_taken_out, wrong))
    return begins and (not answered or stretched(answered))


def _has_wrong_places(found: Gradients, asked: Pullback) -> bool:
    """As many copies of each number as there should be, elsewhere."""
    (x,), g = asked.inputs, asked.g
    copies = np.repeat(g.ravel(), x.size // g.size)
    return found[0].shape == x.shape and np.allclose(np.sort(found[0].ravel()), np.sort(copies))


SUM = Exercise(
    lesson=LESSON,
    statement="""\
Write `sum_vjp(g, shape, axis=None, keepdims=False)` in NumPy, the rule of `out = x.sum(axis, keepdims=keepdims)`.

* `shape` is the shape of `x`: the numbers of `x` are not needed, so a framework does not keep them.
* `axis` is as in NumPy: None for all axes, a number (perhaps negative), or a tuple of numbers.
* Return the gradient for `x`, of shape `shape` and the dtype of `g`.""",
    hints=(
        "Move one number of `x`. Which number of the sum moves, and by how much? So which number of `g` is its gradient?",
        "Sums forward, copies backward: the mirror image of broadcasting. `np.broadcast_to` makes copies, if the axis that was "
        "summed away stands in its old place again, with size 1.",
        "If `axis` is given and `keepdims` is false, put the axis back with `np.expand_dims(g, axis)`. Then broadcast "
        "to `shape`.",
    ),
    solution=answers.sum_vjp,
    alternatives=(answers.sum_vjp_by_shape, answers.sum_vjp_by_ones),
    wrong=(
        (answers.sum_averages, "a sum shares the gradient out"),
        (answers.sum_axis_gone, "broadcasting finds the axis by itself"),
        (answers.sum_forgets_upstream, "the gradient is the local derivative"),
        (answers.sum_passes_on, "every operation passes the gradient on"),
        (answers.sum_wrong_places, "enough copies, anywhere"),
        (answers.sum_expands_always, "an axis that was kept comes back twice"),
        (answers.sum_in_float64, "any dtype will do"),
        (answers.sum_of_all_in_float64, "any dtype will do"),
        (answers.sum_from_the_front, "axes are counted from the front"),
        (answers.sum_one_axis, "one axis at a time"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        laws.not_one_array_each(asks_sum, "one array"),
        Misconception(
            "an axis that was kept comes back twice",
            "With `keepdims` the axis is still there, with size 1. You put it back all the same, so there is one "
            "axis too many.",
            lambda wrong: all(one.case.arguments[3] and one.case.arguments[2] is not None for one in wrong),
        ),
        Misconception(
            "every operation passes the gradient on",
            "You return `g` itself. It has one number for each *sum*; asked for is one number for each number that was added.",
            every(asks_sum, equals(lambda g, x: g)),
        ),
        Misconception(
            "broadcasting finds the axis by itself",
            "You broadcast `g` as it is. NumPy compares shapes from the right, so it takes a missing axis for the *first* "
            "one, whichever you summed over. On a square matrix that gives wrong numbers without an error.",
            _broadcasts_as_it_is,
        ),
        Misconception(
            "axes are counted from the front",
            "It goes wrong for negative axes. They count from the end: −1 is the last one. `axis % len(shape)` is the same "
            "axis, counted from the front; a tuple may hold negative ones, too.",
            begins_with(FROM_THE_END),
        ),
        Misconception(
            "one axis at a time",
            "It goes wrong where `axis` is a tuple. All its axes were summed away together, and each has to come back to its "
            "own place, which is counted in `shape`.",
            begins_with(SEVERAL),
        ),
        laws.upstream_forgotten(asks_sum),
        Misconception(
            "a sum shares the gradient out",
            "You divide by the number of terms. That is the rule of the mean. A sum grows by d when one of its terms does, "
            "however many others there are.",
            every(asks_sum, laws.averages),
        ),
        laws.dtype_lost(asks_sum),
        laws.shape_lost(asks_sum),
        Misconception(
            "enough copies, anywhere",
            "Each number of `g` stands in your result as often as it should, but at other places. A term has the gradient of "
            "the sum that *it* went into. Making the shape fit does not put the numbers right.",
            every(asks_sum, _has_wrong_places),
        ),
        STOPS_WITH_ERROR,
        laws.not_the_adjoint(),
    ),
    withheld=DERIVATIVES,
    cases=_sum_cases,
    accepts=lambda answer, *arguments: laws.is_pullback(answer, asks_sum(*arguments)),
)

COPIES = (UNBROADCAST, SUM)
