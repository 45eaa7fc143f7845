"""Twenty wrong ops and five right ones: what a student's gradient checker is marked on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

Array = np.ndarray
Arrays = tuple[np.ndarray, ...]
Memory = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlantedOp:
    """An op in plain NumPy whose gradient rule may be wrong.

    ``inputs(seed)`` gives fresh arrays, other numbers for another seed; ``forward(*inputs)`` the result;
    ``vjp(g, *inputs)`` a tuple with one gradient for each input, where ``g`` is shaped like the result.

    >>> op = planted_op(7)
    >>> len(op.vjp(op.forward(*op.inputs()), *op.inputs())) == len(op.inputs())
    True
    """

    number: int
    seed: int = 0
    memory: Memory = field(
        default_factory=dict, compare=False, repr=False
    )  # for an op that remembers what it should not

    def inputs(self, seed: int = 0) -> Arrays:
        """Fresh inputs for the op."""
        sizes = tuple(Random(self.seed).sample(range(2, 6), 3))
        return plan(self).inputs(np.random.default_rng((self.seed, self.number, seed)), sizes, seed)

    def forward(self, *inputs: Array) -> Array:
        """The result, which is right for every op."""
        self.memory.setdefault("first", inputs[0].copy())
        return np.asarray(plan(self).forward(*inputs))

    def vjp(self, g: Array, *inputs: Array) -> Arrays:
        """One gradient for each input, by a rule that may be wrong."""
        self.memory.setdefault("first", inputs[0].copy())
        given = plan(self).vjp(g, *inputs, *((self.memory,) if plan(self).remembers else ()))
        return tuple(map(np.asarray, given if isinstance(given, tuple) else (given,)))


def planted_op(number: int, seed: int = 0) -> PlantedOp:
    """One of the ops, 0 to 24. Which of them are wrong depends on ``seed``, and so do their shapes."""
    if not 0 <= number < len(PLANS):
        raise ValueError(f"planted_op: expected a number from 0 to {len(PLANS) - 1}, got {number}")
    return PlantedOp(number, seed)


def plan(op: PlantedOp) -> Plan:
    """What the op does."""
    return Random(op.seed).sample(PLANS, len(PLANS))[op.number]


# ------------------------------------------------------------------------------------------------------------- inputs

Inputs = Callable[[np.random.Generator, tuple[int, ...], int], Arrays]


def _normal(rng: np.random.Generator, *shape: int) -> Array:
    """Numbers of either sign, the first one negative, none closer to 0 than 0.1."""
    values = rng.normal(size=shape)
    values.flat[0] = -abs(values.flat[0])
    return np.asarray(values + np.where(values >= 0, 0.1, -0.1))


def matrix(rng: np.random.Generator, sizes: tuple[int, ...], seed: int) -> Arrays:
    """One matrix."""
    return (_normal(rng, *sizes[:2]),)


def square(rng: np.random.Generator, sizes: tuple[int, ...], seed: int) -> Arrays:
    """A square matrix."""
    return (_normal(rng, 3, 3),)


def two_matrices(rng: np.random.Generator, sizes: tuple[int, ...], seed: int) -> Arrays:
    """Two matrices of one shape."""
    return _normal(rng, *sizes[:2]), _normal(rng, *sizes[:2])


def factors(rng: np.random.Generator, sizes: tuple[int, ...], seed: int) -> Arrays:
    """Two matrices that can be multiplied."""
    return _normal(rng, *sizes[:2]), _normal(rng, *sizes[1:])


def square_factors(rng: np.random.Generator, sizes: tuple[int, ...], seed: int) -> Arrays:
    """Two square matrices."""
    return _normal(rng, 3, 3), _normal(rng, 3, 3)


def matrix_and_row(rng: np.random.Generator, sizes: tuple[int, ...], seed: int) -> Arrays:
    """A matrix, and a matrix of one row that is stretched to it."""
    return _normal(rng, *sizes[:2]), _normal(rng, 1, sizes[1])


def narrow(rng: np.random.Generator, sizes: tuple[int, ...], seed: int) -> Arrays:
    """One matrix in float32."""
    return (_normal(rng, *sizes[:2]).astype(np.float32),)


def large(rng: np.random.Generator, sizes: tuple[int, ...], seed: int) -> Arrays:
    """Numbers around a thousand."""
    return (1000.0 * _normal(rng, *sizes[:2]),)


def with_a_zero(rng: np.random.Generator, sizes: tuple[int, ...], seed: int) -> Arrays:
    """One matrix whose last entry is 0."""
    values = _normal(rng, *sizes[:2])
    values.flat[-1] = 0.0
    return (values,)


def largest_first(rng: np.random.Generator, sizes: tuple[int, ...], seed: int) -> Arrays:
    """A vector with its largest entry in front for seed 0, and at the end for every other seed."""
    values = np.sort(_normal(rng, sizes[0] + 1))
    return (values[::-1].copy() if seed == 0 else values,)


# ---------------------------------------------------------------------------------------------------- forward and back


def softmax(x: Array) -> Array:
    """exp(x) / Σ exp(x) along the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def sinc(x: Array) -> Array:
    """sin(x) / x, and 1 at 0."""
    return np.asarray(np.sinc(x / np.pi))


def sinc_vjp(g: Array, x: Array) -> Array:
    """The school formula, which is 0 / 0 at 0."""
    with np.errstate(all="ignore"):
        return np.asarray(g * (x * np.cos(x) - np.sin(x)) / x**2)


def without_the_last(g: Array, x: Array) -> Array:
    """A loop that ends one too early."""
    out = g * np.cos(x)
    out.flat[-1] = 0.0
    return np.asarray(out)


def to_the_first(g: Array, x: Array) -> Array:
    """The gradient of the largest entry, which is taken to be the first."""
    out = np.zeros_like(x)
    out[0] = g
    return out


def spoils_x(g: Array, x: Array) -> Array:
    """Right, but x is overwritten."""
    np.exp(x, out=x)
    return np.asarray(g * x)


def spoils_g(g: Array, x: Array) -> Array:
    """Right, but g is overwritten."""
    g *= np.cos(x)
    return g.copy()


# -------------------------------------------------------------------------------------------------------------- the ops


@dataclass(frozen=True, slots=True)
class Plan:
    """One planted op: what is wrong with it, and the kind of mistake, which is empty for a right op."""

    name: str
    kind: str
    inputs: Inputs
    forward: Callable[..., Any]
    vjp: Callable[..., Any]
    remembers: bool = False

    @property
    def is_right(self) -> bool:
        """Whether a checker should accept it."""
        return not self.kind


NUMBERS, UPSTREAM, SHAPES = "signs and factors", "upstream gradients", "shapes and axes"
PLACES, MANNERS = "entries and points", "dtypes and arguments"

PLANS: tuple[Plan, ...] = (
    # five right ones
    Plan("relu", "", matrix, lambda x: np.maximum(x, 0), lambda g, x: g * (x > 0)),
    Plan("mul", "", matrix_and_row, lambda x, y: x * y, lambda g, x, y: (g * y, (g * x).sum(axis=0, keepdims=True))),
    Plan("matmul", "", factors, lambda x, y: x @ y, lambda g, x, y: (g @ y.T, x.T @ g)),
    Plan("float32 sine", "", narrow, np.sin, lambda g, x: g * np.cos(x)),
    Plan("large squares", "", large, lambda x: 1e6 * x**2, lambda g, x: 2e6 * g * x),
    # twenty wrong ones
    Plan("sign lost", NUMBERS, matrix, np.cos, lambda g, x: g * np.sin(x)),
    Plan("factor missing", NUMBERS, matrix, lambda x: x**2, lambda g, x: g * x),
    Plan("one percent off", NUMBERS, matrix, np.tanh, lambda g, x: 1.01 * g * (1 - np.tanh(x) ** 2)),
    Plan("not a number", NUMBERS, with_a_zero, sinc, sinc_vjp),
    Plan("upstream forgotten", UPSTREAM, matrix, np.exp, lambda g, x: np.exp(x)),
    Plan("upstream without sign", UPSTREAM, matrix, np.exp, lambda g, x: abs(g) * np.exp(x)),
    Plan("nothing arrives", UPSTREAM, matrix, softmax, lambda g, x: 0 * g),
    Plan(
        "sign lost in a sum of zero", UPSTREAM, matrix,
        lambda x: x - x.mean(axis=-1, keepdims=True), lambda g, x: g.mean(axis=-1, keepdims=True) - g,
    ),
    Plan("transposed", SHAPES, square_factors, lambda x, y: x @ y, lambda g, x, y: (g @ y, x.T @ g)),
    Plan("reshaped", SHAPES, matrix, lambda x: x.T, lambda g, x: g.reshape(x.shape)),
    Plan("wrong axis", SHAPES, square, lambda x: x.sum(axis=1), lambda g, x: np.broadcast_to(g, x.shape).copy()),
    Plan("broadcasting not undone", SHAPES, matrix_and_row, lambda x, y: x + y, lambda g, x, y: (g, g.copy())),
    Plan("negative inputs", PLACES, matrix, abs, lambda g, x: g * np.where(x > 0, 1.0, 0.5)),
    Plan("last entry", PLACES, matrix, np.sin, without_the_last),
    Plan("second input", PLACES, two_matrices, lambda x, y: x / y, lambda g, x, y: (g / y, g * x / y**2)),
    Plan("lucky point", PLACES, largest_first, lambda x: x.max(), to_the_first),
    Plan("stale value", PLACES, matrix, np.exp, lambda g, x, memory: g * np.exp(memory["first"]), remembers=True),
    Plan("dtype", MANNERS, narrow, np.sin, lambda g, x: g.astype(np.float64) * np.cos(x)),
    Plan("changes x", MANNERS, matrix, np.exp, spoils_x),
    Plan("changes g", MANNERS, matrix, np.sin, spoils_g),
)  # fmt: skip
