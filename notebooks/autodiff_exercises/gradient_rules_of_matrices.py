"""Exercises of lesson 40 on rules that gather, mix or move numbers: sum, matmul, transpose."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from random import Random

import numpy as np

from autodiff_lab import ops

from . import gradient_rules_of_matrices_answers as answers
from . import vjp_laws as laws
from .exercise import CHANGED_ARGUMENTS, RETURNS_NOTHING, STOPS_WITH_ERROR, Case, Exercise, Misconception, Wrong, case
from .vjp_laws import Gradients, Pullback, equals, every, numbers

LESSON = "40_gradient_rules"
Axis = int | tuple[int, ...] | None
Shape = tuple[int, ...]

# ---------------------------------------------------------------------------------------------------------------- sum


def asks_sum(g: np.ndarray, shape: Shape, axis: Axis = None, keepdims: bool = False) -> Pullback:
    """What sum_vjp is asked for."""
    return Pullback(lambda x: ops.sum(x, axis=axis, keepdims=keepdims), (np.zeros(shape, g.dtype),), g)


def _sum_cases(random: Random, marking: bool) -> Iterator[Case]:
    n, m, k = random.sample(range(4, 8), 3) if marking else (2, 3, 4)
    kinds: list[tuple[str, Shape, Axis, bool, str]] = [
        ("everything", (m,), None, False, "float64"), ("the first axis", (n, m), 0, False, "float64"),
        ("the last axis", (n, m), 1, False, "float64"), ("the last axis", (m, m), 1, False, "float64"),
        ("counted from the end", (n, m, k), -2, False, "float64"), ("two axes", (n, m, k), (0, 2), False, "float64"),
        ("keepdims", (n, m), 1, True, "float64"), ("keepdims", (n, m), None, True, "float64"),
        ("float32", (n, m), 1, False, "float32"),
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
    return all(map(_axis_was_taken_out, wrong)) and bool(wrong) and (not answered or stretched(answered))


def _has_wrong_places(found: Gradients, asked: Pullback) -> bool:
    """As many copies of each number as there should be, elsewhere."""
    (x,), g = asked.inputs, asked.g
    copies = np.repeat(g.ravel(), x.size // g.size)
    return found[0].shape == x.shape and np.allclose(np.sort(found[0].ravel()), np.sort(copies))


SUM = Exercise(
    lesson=LESSON,
    statement="""\
Write `sum_vjp(g, shape, axis=None, keepdims=False)`, the rule of `out = x.sum(axis, keepdims=keepdims)`.

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
    cases=_sum_cases,
    accepts=lambda answer, *arguments: laws.is_pullback(answer, asks_sum(*arguments)),
)

# ------------------------------------------------------------------------------------------------------------- matmul


def asks_matmul(g: np.ndarray, x: np.ndarray, y: np.ndarray) -> Pullback:
    """What matmul_vjp is asked for."""
    return Pullback(ops.matmul, (x, y), g)


def _matmul_cases(random: Random, marking: bool) -> Iterator[Case]:
    n, m, k = random.sample(range(4, 8), 3) if marking else (2, 3, 4)
    sizes = [("square", 2, 2, 2, "float64"), ("square", 3, 3, 3, "float64"), ("three sizes", n, m, k, "float64")]
    sizes += [("a row and a column", 1, m, 1, "float64"), ("a column and a row", n, 1, k, "float64")]
    sizes += [("three sizes", k, n, m, "float64"), ("float32", n, m, k, "float32")]
    for check, rows, inner, columns, dtype in sizes:
        shapes = ((rows, columns), (rows, inner), (inner, columns))
        yield case(check, ", ".join(numbers(random, *shape, dtype=dtype) for shape in shapes))


MATMUL = Exercise(
    lesson=LESSON,
    statement="""\
Write `matmul_vjp(g, x, y)`, the rule of the matrix product `out = x @ y`: `x` has shape (n, m), `y` has (m, k), `out` and `g`
have (n, k), and n, m, k may all differ. Return two arrays: the gradient for `x` and the gradient for `y`.""",
    hints=(
        "Write down what shape each of the two gradients must have. `g` is (n, k). Which matrix do you have to multiply it "
        "with, from which side, so that the shapes come out? On distinct sizes there is only one way with a transpose.",
        "`out[i, k] = sum over j of x[i, j] * y[j, k]`. So `x[i, j]` moves the whole row i of `out`, each entry k by "
        "`y[j, k]`. Add up `g[i, k] * y[j, k]` over k: which matrix product is that?",
        "For `x`: `g` times the transpose of `y`. For `y`: the transpose of `x` times `g`. A transpose, not a reshape.",
    ),
    solution=answers.matmul_vjp,
    alternatives=(answers.matmul_by_einsum, answers.matmul_by_outer_products),
    wrong=(
        (answers.matmul_without_transpose, "matrices are like numbers"),
        (answers.matmul_wrong_side, "the side does not matter"),
        (answers.matmul_reshapes, "reshape is as good as transpose"),
        (answers.matmul_forgets_upstream, "the gradient is the local derivative"),
        (answers.matmul_swapped, "the order of the results"),
        (answers.matmul_elementwise, "the rule of the product of numbers"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        laws.not_one_array_each(asks_matmul, "two arrays, `(for_x, for_y)`"),
        Misconception(
            "matrices are like numbers",
            "You multiply by the other factor as if they were numbers. A gradient goes through a matrix *backwards*: where "
            "the forward pass sums over columns, the backward pass sums over rows. Something has to be turned round.",
            every(asks_matmul, equals(lambda g, x, y: (g @ y, x @ g))),
        ),
        Misconception(
            "the side does not matter",
            "You transpose the right matrices and multiply from the wrong side. Matrix products do not commute: check the "
            "shapes with three different sizes.",
            every(asks_matmul, equals(lambda g, x, y: (y.T @ g, g @ x.T))),
        ),
        Misconception(
            "the order of the results",
            "Both gradients are right, but in the wrong order: first the one for `x`, then the one for `y`.",
            every(asks_matmul, equals(lambda g, x, y: (x.T @ g, g @ y.T))),
        ),
        Misconception(
            "the rule of the product of numbers",
            "`x @ y` is not the elementwise product. Each entry of `x` takes part in a whole row of the result, so its "
            "gradient is a sum over that row.",
            every(asks_matmul, equals(lambda g, x, y: (g * y, g * x))),
        ),
        Misconception(
            "reshape is as good as transpose",
            "Your shapes are right and your numbers are not: `reshape` keeps the numbers in their order and draws new lines "
            "between them, while a transpose moves them. Print both for a matrix of two rows.",
            every(asks_matmul, equals(lambda g, x, y: (g @ y.reshape(y.T.shape), x.reshape(x.T.shape) @ g))),
        ),
        laws.upstream_forgotten(asks_matmul),
        laws.sign_lost(asks_matmul),
        laws.dtype_lost(asks_matmul),
        laws.shape_lost(asks_matmul),
        STOPS_WITH_ERROR,
        laws.not_the_adjoint(),
    ),
    cases=_matmul_cases,
    accepts=lambda answer, *arguments: laws.is_pullback(answer, asks_matmul(*arguments)),
)

# ---------------------------------------------------------------------------------------------------------- transpose


def asks_transpose(g: np.ndarray, axes: Shape) -> Pullback:
    """What transpose_vjp is asked for."""
    shape = tuple(g.shape[list(axes).index(axis)] for axis in range(g.ndim))
    return Pullback(lambda x: ops.transpose(x, axes=axes), (np.zeros(shape, g.dtype),), g)


def _transpose_cases(random: Random, marking: bool) -> Iterator[Case]:
    sizes = tuple(random.sample(range(2, 6), 4)) if marking else (2, 3, 4, 5)
    yield case("a matrix", f"{numbers(random, *sizes[:2])}, (1, 0)")
    yield case("a square matrix", f"{numbers(random, 3, 3)}, (1, 0)")
    for axes in itertools.permutations(range(3)):
        yield case("three axes", f"{numbers(random, *sizes[:3])}, {axes}")
    yield case("four axes", f"{numbers(random, *sizes)}, (1, 2, 3, 0)")
    yield case("float32", f"{numbers(random, *sizes[:3], dtype='float32')}, (1, 2, 0)")


def _moved(move: Callable[[np.ndarray, Shape], np.ndarray]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether every answer is the cotangent, moved in this way of the axes."""

    def explains(wrong: Sequence[Wrong]) -> bool:
        answered = [one for one in wrong if not one.failure]
        return bool(answered) and all(_is(one.answer, move(*one.case.arguments)) for one in answered)

    return explains


def _is(answer: object, expected: np.ndarray) -> bool:
    return isinstance(answer, np.ndarray) and np.array_equal(answer, expected)


def _only_new_lines(found: Gradients, asked: Pullback) -> bool:
    return found[0].shape == asked.inputs[0].shape and np.array_equal(found[0].ravel(), asked.g.ravel())


TRANSPOSE = Exercise(
    lesson=LESSON,
    statement="""\
Write `transpose_vjp(g, axes)`, the rule of `out = np.transpose(x, axes)`: axis number i of `out` is axis `axes[i]` of `x`. `g`
is shaped like `out`. Return the gradient for `x`. All axes may have different sizes.""",
    hints=(
        "No number changes, so no gradient changes either. But each has to go back to the place that its number came from.",
        "For a matrix, transposing again brings everything home. For three axes try it: if the first axis went to the end, "
        "where does the same move send it next? You need the move that *undoes* `axes`.",
        "The inverse of `axes` is the list `back` with `back[axes[i]] = i`. `np.argsort` gives just that.",
    ),
    solution=answers.transpose_vjp,
    alternatives=(answers.transpose_by_places, answers.transpose_by_moving),
    wrong=(
        (answers.transpose_again, "twice is back again"),
        (answers.transpose_reshapes, "reshape is as good as transpose"),
        (answers.transpose_all, "transposing turns all axes round"),
        (answers.transpose_passes_on, "every operation passes the gradient on"),
        (answers.transpose_in_float64, "any dtype will do"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        laws.not_one_array_each(asks_transpose, "one array"),
        Misconception(
            "every operation passes the gradient on",
            "The numbers of `g` are right, but they stand where the *result* had them. Each has to go back to where `x` had "
            "it.",
            _moved(lambda g, axes: g),
        ),
        Misconception(
            "twice is back again",
            "You move the axes the same way once more. Two axes are back after that, three that went round in a circle "
            "are not: the way back is the inverse of `axes`.",
            _moved(np.transpose),
        ),
        Misconception(
            "transposing turns all axes round",
            "`g.T` reverses the order of all axes, whatever `axes` says. For a matrix that is the same; with three axes it "
            "is one of six ways.",
            _moved(lambda g, axes: g.T),
        ),
        Misconception(
            "reshape is as good as transpose",
            "Your shape is right and your numbers are at the wrong places: `reshape` draws new lines between numbers that "
            "stay in their order, a transpose moves them.",
            every(asks_transpose, _only_new_lines),
        ),
        laws.sign_lost(asks_transpose),
        laws.dtype_lost(asks_transpose),
        laws.shape_lost(asks_transpose),
        laws.not_the_adjoint(),
    ),
    cases=_transpose_cases,
    accepts=lambda answer, *arguments: laws.is_pullback(answer, asks_transpose(*arguments)),
)

MATRIX_EXERCISES = (SUM, MATMUL, TRANSPOSE)
