"""What tells a right VJP from a wrong one, and what wrong ones have in common: laws, for every exercise on rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

import autodiff_lab as ad

from .exercise import Misconception, Wrong

Gradients = tuple[np.ndarray, ...]
DIRECTIONS = 3  # random ones: a wrong gradient that agrees along all of them would be a coincidence of probability 0


@dataclass(frozen=True)
class Pullback:
    """What a VJP is asked for: a function, its inputs, and the cotangent of its result."""

    f: Callable[..., Any]
    inputs: Gradients
    g: np.ndarray


Asks = Callable[..., Pullback]  # reads the arguments of a case


def numbers(random: Random, *shape: int, dtype: str = "float64", zeros: bool = False) -> str:
    """An array as a student can type it: quarters between −3.75 and 3.75, none of them whole, so none is 1, and 0 on "
    "request."""
    values = [
        random.choice((-1, 1)) * (random.randint(0, 3) + random.choice((0.25, 0.75))) for _ in range(_size(shape))
    ]
    if zeros:
        values[0] = 0.0
    kind = "" if dtype == "float64" else f", dtype=np.{dtype}"
    return f"np.array({np.reshape(values, shape).tolist()}{kind})"


def _size(shape: Sequence[int]) -> int:
    return int(np.prod(shape, dtype=int))


# --------------------------------------------------------------------------------------------------- what tells right


def gradients(answer: Any, asked: Pullback) -> Gradients | None:
    """The answer as one array of numbers for each input; None where it is something else."""
    given = answer if isinstance(answer, tuple | list) and len(asked.inputs) > 1 else (answer,)
    if len(given) != len(asked.inputs) or not all(map(_is_array_of_numbers, given)):
        return None
    return tuple(np.asarray(one) for one in given)


def _is_array_of_numbers(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.floating) and value.dtype.kind in "biuf"


def is_pullback(answer: Any, asked: Pullback) -> bool:
    """Whether each gradient has the shape and dtype of its input, and ⟨g, J u⟩ = ⟨Jᵀ g, u⟩ for random directions u."""
    found = gradients(answer, asked)
    return (
        found is not None
        and all(one.shape == x.shape and one.dtype == x.dtype for one, x in zip(found, asked.inputs, strict=True))
        and is_adjoint(found, asked)
    )


def is_adjoint(found: Gradients, asked: Pullback) -> bool:
    """The law alone, whatever the dtypes; J u comes from forward mode, in double precision."""
    if any(one.shape != x.shape for one, x in zip(found, asked.inputs, strict=True)):
        return False
    wide = tuple(x.astype(np.float64) for x in asked.inputs)
    precision = 100 * max(float(np.finfo(one.dtype).eps) for one in (asked.g, *found))
    rng = np.random.default_rng(0)
    return all(
        _agree(found[place], asked, wide, place, rng.normal(size=wide[place].shape), precision)
        for place in range(len(wide))
        for _ in range(DIRECTIONS)
    )


def _agree(
    gradient: np.ndarray, asked: Pullback, inputs: Gradients, place: int, u: np.ndarray, precision: float
) -> bool:
    """The law for one direction of one input."""
    tangents = tuple(u if place == other else np.zeros_like(x) for other, x in enumerate(inputs))
    pushed = ad.jvp(asked.f, inputs, tangents)[1]
    back, forth = gradient.astype(np.float64) * u, asked.g.astype(np.float64) * pushed
    return bool(abs(back.sum() - forth.sum()) <= precision * (np.abs(back).sum() + np.abs(forth).sum()))


# ------------------------------------------------------------------------------------------------ what explains wrong

Property = Callable[[Gradients, Pullback], bool]


def every(asks: Asks, has: Property) -> Callable[[Sequence[Wrong]], bool]:
    """Whether all wrong answers have a property; calls that failed say nothing."""

    def explains(wrong: Sequence[Wrong]) -> bool:
        answered = [one for one in wrong if not one.failure]
        return bool(answered) and all(_holds(has, one.answer, asks(*one.case.arguments)) for one in answered)

    return explains


def _holds(has: Property, answer: Any, asked: Pullback) -> bool:
    found = gradients(answer, asked)
    return found is not None and has(found, asked)


def equals(formula: Callable[..., Any]) -> Property:
    """The gradients are what a formula of the cotangent and the inputs gives: ``equals(lambda g, x, y: (g * x, g * y))``."""

    def has(found: Gradients, asked: Pullback) -> bool:
        try:
            expected = formula(asked.g, *asked.inputs)
        except (ValueError, IndexError):  # shapes for which the formula means nothing
            return False
        parts = expected if isinstance(expected, tuple) else (expected,)
        return all(a.shape == np.shape(b) and np.allclose(a, b, rtol=1e-4) for a, b in zip(found, parts, strict=True))

    return has


def forgets_upstream(found: Gradients, asked: Pullback) -> bool:
    """The gradients are right for a cotangent of ones."""
    return is_adjoint(found, replace(asked, g=np.ones_like(asked.g)))


def has_lost_its_sign(found: Gradients, asked: Pullback) -> bool:
    """The gradients are right for −g."""
    return is_adjoint(found, replace(asked, g=-asked.g))


def is_swapped(found: Gradients, asked: Pullback) -> bool:
    """Each gradient is that of the other input."""
    return is_adjoint(found[::-1], asked)


def averages(found: Gradients, asked: Pullback) -> bool:
    """The gradients are divided by how many numbers of one side stand against one of the other."""
    small, large = sorted((asked.g.size, found[0].size))
    ratio = large / max(small, 1)
    return is_adjoint(tuple(one * ratio for one in found), asked)


def has_another_dtype(found: Gradients, asked: Pullback) -> bool:
    """The numbers are right and the dtype is not."""
    others = any(one.dtype != x.dtype for one, x in zip(found, asked.inputs, strict=True))
    rounded = tuple(one.astype(x.dtype) for one, x in zip(found, asked.inputs, strict=True))
    return others and is_adjoint(rounded, asked)


def has_another_shape(found: Gradients, asked: Pullback) -> bool:
    """Some gradient is not shaped like its input."""
    return any(one.shape != x.shape for one, x in zip(found, asked.inputs, strict=True))


def upstream_forgotten(asks: Asks) -> Misconception:
    """The belief that a gradient is the local derivative."""
    return Misconception(
        "the gradient is the local derivative",
        "Your rule gives the derivative of this one operation and drops `g`, the gradient that arrives from above. The "
        "chain rule multiplies the two. With a `g` of ones nobody would notice, which is why the checks use other numbers.",
        every(asks, forgets_upstream),
    )


def zero_divided(asks: Asks) -> Misconception:
    """NaN where an input is 0."""
    return Misconception(
        "nothing is ever zero",
        "Your rule divides, and where an input is 0 it gives NaN, though the operation has a derivative there. One such number "
        "spoils every gradient behind it. Which number did you want to get rid of? Leave it out from the beginning.",
        every(asks, lambda found, asked: not all(np.isfinite(one).all() for one in found)),
    )


def sign_lost(asks: Asks) -> Misconception:
    """The right numbers with the wrong sign."""
    return Misconception(
        "a sign is lost",
        "Your numbers are right and their sign is not: the loss would be climbed instead of descended.",
        every(asks, has_lost_its_sign),
    )


def not_one_array_each(asks: Asks, expected: str) -> Misconception:
    """Something that is not one array for each input."""
    return Misconception(
        "not one gradient for each input",
        f"A rule gives one gradient for each input of the operation. Here your function should return {expected}.",
        lambda wrong: any(
            not one.failure and gradients(one.answer, asks(*one.case.arguments)) is None for one in wrong
        ),
    )


def dtype_lost(asks: Asks) -> Misconception:
    """float32 came in, float64 goes out."""
    return Misconception(
        "any dtype will do",
        "Your numbers are right, but float32 came in and another dtype goes out. From here on every step back is done in "
        "twice the memory. Look for what makes new arrays, such as `np.ones(...)` or `float(...)`: they are float64 unless "
        "told otherwise.",
        every(asks, has_another_dtype),
    )


def shape_lost(asks: Asks) -> Misconception:
    """A gradient that is not shaped like its input."""
    return Misconception(
        "a gradient may have any shape",
        "A gradient has the shape of its input, always: one number for each number that could move. Yours has another one.",
        every(asks, has_another_shape),
    )


def not_the_adjoint() -> Misconception:
    """What explains everything else."""
    return Misconception(
        "not the transpose of forward mode",
        "Your gradient fails ⟨g, J u⟩ = ⟨gradient, u⟩. Move one number of the input a little: which numbers of the result "
        "move, and by how much? Each of them contributes its `g` times that.",
        lambda wrong: True,
    )
