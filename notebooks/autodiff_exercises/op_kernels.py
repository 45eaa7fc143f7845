"""Exercises of lesson 60, registering an op, on what computes: a kernel for every array library, and a gradient rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import ops, simulated

from . import op_kernels_answers as answers
from . import vjp_laws as laws
from .attempts import Followed
from .exercise import (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Case,
    Exercise,
    Misconception,
    Wrong,
    case,
)  # fmt: skip
from .explaining import begins_with
from .vjp_laws import Pullback, numbers

LESSON = "60_registering_an_op"

# ------------------------------------------------------------------------------------------------------------- kernel

VECTOR, SHAPES, NARROW, BETWEEN, LARGE, TINY, OTHER = (
    "a vector", "every shape", "float32", "numbers between small and large", "large numbers", "tiny results",
    "another library",
)  # fmt: skip


def _kernel_cases(random: Random, marking: bool) -> Iterator[Case]:
    size = random.randint(2, 4)
    large = [random.choice((-1, 1)) * random.randint(800, 2000) / 1 for _ in range(size)]
    yield case(VECTOR, f"np, {numbers(random, 3)}")
    yield case(SHAPES, f"np, {numbers(random)}")
    yield case(SHAPES, f"np, {numbers(random, 2, size)}")
    yield case(SHAPES, f"np, {numbers(random, 2, 1, size)}")
    yield case(SHAPES, f"np, np.zeros(({size}, 0))")
    yield case(NARROW, f"np, {numbers(random, size, dtype='float32')}")
    for dtype in ("float64", "float32"):
        between = [start + random.randint(1, 4) / 2 for start in (5, 8, 13)]
        yield case(BETWEEN, f"np, np.array({between}, dtype=np.{dtype})")
    yield case(LARGE, f"np, np.array({[1000.0, *large]})")
    yield case(LARGE, f"np, np.array({[100.0 + size, -200.0, 0.5]}, dtype=np.float32)")
    for dtype in ("float64", "float32"):
        yield case(TINY, f"np, np.array({[-40.0, -random.randint(50, 70) / 1, 0.5]}, dtype=np.{dtype})")
    for dtype in ("float64", "float32"):
        values = np.round(np.linspace(-2.0, 2.0, size + 1) + random.random(), 2).tolist()
        yield case(OTHER, f"other, other.array({values}, dtype={dtype!r})", other=ad.library_of("sim:0"))


def _numbers_of(array: Any) -> np.ndarray:
    return simulated.numbers_in(array) if isinstance(array, simulated.DeviceArray) else np.asarray(array)


def _is_soft_relu(answer: Any, xp: Any, x: Any) -> bool:
    """An array of the same library, shape and dtype, and near what double precision gives."""
    if not isinstance(answer, np.ndarray | np.floating if xp is np else simulated.DeviceArray):
        return False
    found, given = _numbers_of(answer), _numbers_of(x)
    if found.shape != given.shape or found.dtype != given.dtype:
        return False
    precision = 100 * float(np.finfo(given.dtype).eps)
    smallest = float(np.finfo(given.dtype).tiny)
    return np.allclose(found, np.logaddexp(0.0, given.astype(np.float64)), rtol=precision, atol=smallest)


def _has_another_dtype(wrong: Sequence[Wrong]) -> bool:
    """Whether all wrong answers have the right numbers."""
    return all(
        isinstance(one.answer, simulated.DeviceArray | np.ndarray | np.floating)
        and one.answer.dtype.kind == "f"
        and _is_soft_relu(one.answer.astype(one.case.arguments[1].dtype), *one.case.arguments)
        for one in wrong
    )


def _is_hard(answer: Any, x: Any) -> bool:
    is_array = isinstance(answer, simulated.DeviceArray | np.ndarray | np.floating)
    return is_array and np.array_equal(_numbers_of(answer), np.maximum(_numbers_of(x), 0))


KERNEL = Exercise(
    lesson=LESSON,
    statement="""\
Write the kernel `soft_relu(xp, x)`: log(1 + exp(x)), entry by entry. `xp` is the array library: NumPy, or another one with
NumPy's functions, as CuPy is for GPUs.

* Compute with `xp.…` and with operators: an array of another library is refused by `np.…`. The lesson has such a library to
  try: `soft_relu(other, other.array([1.0, 2.0]))`.
* Return an array of the same library, shape and dtype, also for one number and for no numbers. `x` stays as it is.
* It must be right for large numbers too: the result for x = 1000 is 1000. And where the result is tiny: for x = −40 it is
  4.2e-18, and not 0.""",
    hints=(
        "Why is the formula as it stands infinite at x = 1000, when its logarithm is a small number? Which part gets too "
        "large?",
        "For large positive x the result is x plus something tiny. Take out the x: log(1 + exp(x)) = x + log(1 + exp(−x)). "
        "For negative x the formula is harmless as it stands. Can you write both as one?",
        "max(x, 0) + log(1 + exp(−|x|)). The library has `maximum`, `abs`, `exp` and `log1p`, which is log(1 + …).",
    ),
    solution=answers.soft_relu,
    alternatives=(answers.soft_relu_by_logaddexp, answers.soft_relu_by_cases),
    wrong=(
        (answers.hard_relu, "the corner stays"),
        (answers.soft_relu_as_written, "a formula is a program"),
        (answers.soft_relu_clipped, "a formula is a program"),
        (answers.soft_relu_of_numpy, "NumPy is the array library"),
        (answers.soft_relu_in_place, "changes its argument"),
        (answers.soft_relu_in_double, "any dtype will do"),
        (answers.soft_relu_by_loop, "an array is a list"),
        (answers.soft_relu_as_list, "a list is an array"),
        (answers.soft_relu_straight_from_five, "nearly is equal"),
        (answers.soft_relu_by_log, "1 + tiny is more than 1"),
        (answers.soft_relu_of_the_lab, "the lab does it"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        Misconception(
            "an array is a list",
            "Your kernel is right for a vector. Arrays have any number of axes, also none. Compute with whole arrays: the "
            "library goes through the numbers, in any shape, and a hundred times faster.",
            begins_with(SHAPES),
        ),
        Misconception(
            "NumPy is the array library",
            "Your kernel works for NumPy's arrays only. Another library's arrays may lie in the memory of a GPU, where "
            "NumPy cannot read. Use `xp`, which is the library of the arrays that you were given.",
            begins_with(OTHER),
        ),
        STOPS_WITH_ERROR,
        Misconception(
            "a formula is a program",
            "Your kernel is right for numbers of everyday size. exp(x) is larger than the largest float from x = 710 on, "
            "and in float32 from x = 89 on. Where is the large part, and can it be taken out before?",
            begins_with(LARGE),
        ),
        Misconception(
            "1 + tiny is more than 1",
            "Your kernel is right until the result is tiny. Near 1 floats lie about 1e-16 apart, so 1 + exp(−40) is exactly 1, "
            "and its logarithm 0. `log1p(y)` is log(1 + y) without computing 1 + y.",
            begins_with(TINY),
        ),
        Misconception(
            "nearly is equal",
            "Your kernel is right near 0 and far away, and not in between. The curve comes near to the line x, and to 0, and "
            "never meets them: at x = 5 there are still 0.007 between them.",
            begins_with(BETWEEN),
        ),
        Misconception(
            "a list is an array",
            "Return an array of the library, not a list of Python numbers.",
            lambda wrong: isinstance(wrong[0].answer, list | tuple),
        ),
        Misconception(
            "any dtype will do",
            "Your numbers are right, and the dtype is not that of the input. A kernel that widens takes twice the memory, "
            "and contradicts the dtype rule, by which the memory was planned.",
            _has_another_dtype,
        ),
        Misconception(
            "the corner stays",
            "You computed max(x, 0), of which this is a smooth version. Around 0 they differ.",
            lambda wrong: all(not one.failure and _is_hard(one.answer, one.case.arguments[1]) for one in wrong),
        ),
        Misconception(
            "not log(1 + exp(x))",
            "Your kernel computes something else. Compare with the formula at x = 0, where it is log 2.",
            lambda wrong: True,
        ),
    ),
    cases=_kernel_cases,
    accepts=_is_soft_relu,
    withheld=("ops.softplus", "ops.logaddexp"),
)

# ----------------------------------------------------------------------------------------------------------- gradient

TENSORS = "on Tensors"


def asks_soft_cap(g: Any, out: Any, cap: float) -> Pullback:
    """What soft_cap_vjp is asked for: the input is the one that gives this result."""
    g, out = (one.numpy() if isinstance(one, ad.Tensor) else one for one in (g, out))
    x = cap * np.arctanh(out.astype(np.float64) / cap)
    return Pullback(lambda x: cap * ops.tanh(x / cap), (x.astype(out.dtype),), g)


def _gradient_cases(random: Random, marking: bool) -> Iterator[Case]:
    def arrays(*shape: int, **options: Any) -> tuple[str, str]:
        return numbers(random, *shape, **options), numbers(random, *shape, **options)

    size = random.randint(2, 4)
    for check, pair in (
        ("one number", arrays()), ("a vector", arrays(size)), ("a matrix", arrays(2, size + 1)),
        ("float32", arrays(size, dtype="float32")),
    ):  # fmt: skip
        yield case(check, f"{', '.join(pair)}, {random.choice((4.0, 5.0, 8.0))}")
    g, out = arrays(size)
    arguments = ", ".join(f"ad.tensor({one}, requires_grad=True)" for one in (g, out))
    yield case(TENSORS, f"{arguments}, {random.choice((4.0, 5.0, 8.0))}")


def _is_gradient(answer: Any, g: Any, out: Any, cap: float) -> bool:
    if not isinstance(g, ad.Tensor):
        return laws.is_pullback(answer, asks_soft_cap(g, out, cap))
    if not isinstance(answer, Followed) or not laws.is_pullback(answer.value, asks_soft_cap(g, out, cap)):
        return False
    second = ad.vjp(answers.soft_cap_vjp, g.numpy(), out.numpy(), cap)[1](np.ones(g.shape))
    return all(
        found is not None and np.allclose(found, right)
        for found, right in zip(answer.gradients, second[:2], strict=False)
    )


def _arrays_alone(explains: Callable[[Sequence[Wrong]], bool]) -> Callable[[Sequence[Wrong]], bool]:
    """The explanation, for the calls on arrays."""
    return lambda wrong: bool(found := [one for one in wrong if one.case.check != TENSORS]) and explains(found)


GRADIENT = Exercise(
    lesson=LESSON,
    statement="""\
The op `soft_cap` computes `out = cap * tanh(x / cap)`: nearly x where x is small, and never more than `cap`. Large language
models keep their scores in bounds with it. Write its gradient rule `soft_cap_vjp(g, out, cap)`: the gradient for `x`.

* `g` is the gradient that arrives. The rule is given the *result* `out`, not `x`: then `x` need not be kept in memory.
* `g` and `out` may be arrays, or Tensors while somebody differentiates twice. So write operators, and functions of `ops` if you
  need any.
* Keep the dtype, and leave the arguments as they are.""",
    hints=(
        "The derivative of tanh is 1 − tanh². And `tanh(x / cap)` can be had from `out`: how?",
        "Chain rule: the outer function multiplies by `cap`, the inner one divides by `cap`. Both leave a factor. What is "
        "their product?",
        "`out / cap` is tanh(x / cap). The two factors `cap` and `1 / cap` cancel. So: `g` times one minus the square of "
        "`out / cap`.",
    ),
    solution=answers.soft_cap_vjp,
    alternatives=(answers.soft_cap_as_the_design_has_it,),
    wrong=(
        (answers.cap_forgotten, "a factor is missing"),
        (answers.outer_factor_only, "one factor of two"),
        (answers.inner_factor_only, "one factor of two"),
        (answers.upstream_forgotten, "the gradient is the local derivative"),
        (answers.result_taken_for_input, "the result is the input"),
        (answers.sign_of_soft_cap_lost, "a sign is lost"),
        (answers.soft_cap_on_arrays, "a rule works on numbers only"),
        (answers.soft_cap_of_a_constant, "a rule works on numbers only"),
        (answers.soft_cap_in_place, "changes its argument"),
        (answers.soft_cap_in_double, "any dtype will do"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        Misconception(
            "a rule works on numbers only",
            "Your rule is right on arrays. Given Tensors it does not give a Tensor that was computed from them, so the second "
            "derivative is cut off, without an error. Use operators and functions of `ops`, and take no numbers out.",
            lambda wrong: all(one.case.check == TENSORS for one in wrong),
        ),
        STOPS_WITH_ERROR,
        *(
            Misconception(one.name, one.message, _arrays_alone(one.explains))
            for one in (
                laws.not_one_array_each(asks_soft_cap, "one array"),
                laws.shape_lost(asks_soft_cap),
                laws.dtype_lost(asks_soft_cap),
                laws.upstream_forgotten(asks_soft_cap),
                laws.sign_lost(asks_soft_cap),
            )
        ),
        Misconception(
            "a factor is missing",
            "Your rule is that of tanh alone, as if `cap` were 1. The square of `out` can be as large as `cap` times `cap`. "
            "Which quotient is the tanh?",
            lambda wrong: _is(wrong, lambda g, out, cap: g * (1 - out**2)),
        ),
        Misconception(
            "one factor of two",
            "There are two factors from `cap`: the result is multiplied by it, and `x` is divided by it. You counted one "
            "of them. Such a gradient has the right sign and the right zeros, and training only seems to have another "
            "learning rate.",
            lambda wrong: (
                _is(wrong, lambda g, out, cap: g * cap * (1 - (out / cap) ** 2))
                or _is(wrong, lambda g, out, cap: g / cap * (1 - (out / cap) ** 2))
            ),
        ),
        Misconception(
            "the result is the input",
            "You put `out` where `x` belongs, and computed tanh once more. `out` is already what comes out of it.",
            lambda wrong: _is(wrong, lambda g, out, cap: g * (1 - np.tanh(out / cap) ** 2)),
        ),
        laws.not_the_adjoint(),
    ),
    cases=_gradient_cases,
    accepts=_is_gradient,
)


def _is(wrong: Sequence[Wrong], formula: Callable[..., Any]) -> bool:
    """Whether every wrong answer on arrays is what a formula gives."""
    found = [one for one in wrong if one.case.check != TENSORS]
    return bool(found) and all(
        not one.failure and np.allclose(one.answer, formula(*one.case.arguments), rtol=1e-4) for one in found
    )


EXERCISES = (KERNEL, GRADIENT)
