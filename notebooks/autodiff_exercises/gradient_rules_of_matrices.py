"""Exercises of lesson 40 on rules that mix or move numbers: matmul and transpose."""

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
from .withholding import DERIVATIVES

LESSON = "40_gradient_rules"
Shape = tuple[int, ...]

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
Write `matmul_vjp(g, x, y)` in NumPy, the rule of the matrix product `out = x @ y`: `x` has shape (n, m), `y` has (m, k), `out`
and `g` have (n, k), and n, m, k may all differ. Return two arrays: the gradient for `x` and the gradient for `y`.""",
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
    withheld=DERIVATIVES,
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
Write `transpose_vjp(g, axes)` in NumPy, the rule of `out = np.transpose(x, axes)`: axis number i of `out` is axis `axes[i]` of
`x`. `g` is shaped like `out`. Return the gradient for `x`. All axes may have different sizes.""",
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
    withheld=DERIVATIVES,
    cases=_transpose_cases,
    accepts=lambda answer, *arguments: laws.is_pullback(answer, asks_transpose(*arguments)),
)

MATRICES = (MATMUL, TRANSPOSE)
