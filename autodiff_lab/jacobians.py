"""All first and second derivatives at once: jacobian by columns or by rows, hessian, hvp, and what each mode costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import numpy as np

from . import events, ops
from .bindings import dtype_of, shape_of
from .forward_mode import jvp, push_forward
from .reverse_mode import grad, vjp
from .trees import Structure, flatten

Mode = Literal["auto", "forward", "reverse"]
Blocks = list[list[Any]]  # for each leaf of the result, one block for each leaf of the arguments


def jacobian(f: Callable[..., Any], argnums: int | Sequence[int] = 0, mode: Mode = "auto") -> Callable[..., Any]:
    """A function that gives the Jacobian of ``f``: every partial derivative of every number of the result.

    J[i, j] = ∂f(x)[i] / ∂x[j], an array of shape ``result.shape + argument.shape``. Where results or arguments nest, so does
    the Jacobian: the result's structure outside, the argument's inside.

    With n numbers in the arguments and m in the result:

    * ``"forward"`` finds n columns. ``f`` runs once and carries all n tangents along, so it holds n tangents of each
      intermediate value, and calls n JVP rules per edge.
    * ``"reverse"`` finds m rows. ``f`` runs once and is recorded; m sweeps over the one record call m VJP rules per edge.
    * ``"auto"`` takes ``"forward"`` where n ≤ m. It runs ``f`` once more to know m.

    Source: Griewank and Walther, Evaluating Derivatives (2008), chapter 3.

    Raises:
        ValueError: an unknown mode, or an argument that is not there.
        TypeError: an argument is not floating.

    >>> jacobian(lambda x: x[:2] * x[2])(np.array([2.0, 3.0, 5.0]))
    array([[5., 0., 2.],
           [0., 5., 3.]])
    """
    if mode not in ("auto", "forward", "reverse"):
        raise ValueError(f"jacobian: mode must be 'auto', 'forward' or 'reverse', got {mode!r}")
    chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    name = getattr(f, "__name__", type(f).__name__)

    def jacobian_of(*arguments: Any) -> Any:
        places = [_place(place, len(arguments), name) for place in chosen]
        moving = _of_places(f, arguments, places)
        selected = tuple(arguments[place] for place in places)
        blocks, structure = _blocks(moving, selected, mode)
        parts = [_per_argument(row, selected) for row in blocks]
        return structure.rebuild(part[0] if isinstance(argnums, int) else part for part in parts)

    jacobian_of.__name__ = f"jacobian({name})"
    jacobian_of.__wrapped__ = f  # type: ignore[attr-defined]
    return jacobian_of


def hessian(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that gives the Hessian of ``f``, which must give one number: the Jacobian of its gradient.

    H[i, j] = ∂²f / ∂x[i] ∂x[j], of shape ``x.shape + x.shape``. Forward over reverse: one run of the gradient carries n
    tangents, for n numbers in the arguments.

    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([3.0, 5.0]))
    array([[10.,  6.],
           [ 6.,  0.]])
    """
    return jacobian(grad(f, argnums), argnums, mode="forward")


def hvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The Hessian of ``f`` at ``primals`` times ``tangents``, without building the Hessian: a tuple like ``primals``.

    H v = d/dt ∇f(x + t v) at t = 0. Forward over reverse: a few times the cost of one gradient, whatever the size of x.
    With several primals H is the joint Hessian of all. Source: Pearlmutter, Fast exact multiplication by the Hessian (1994).

    >>> (product,) = hvp(lambda x: (x**3).sum(), (np.array([1.0, 2.0]),), (np.array([1.0, 10.0]),))
    >>> product
    array([  6., 120.])
    """
    return jvp(grad(f, tuple(range(len(primals)))), primals, tangents)[1]


# -------------------------------------------------------------------------------------------------------------- the cost


@dataclass(frozen=True, slots=True)
class JacobianCost:
    """What the Jacobian of a function costs in each mode, counted while both ran; see ``jacobian_cost``."""

    inputs: int  # numbers in the arguments: n
    outputs: int  # numbers in the result: m
    forward_rule_calls: int  # JVP rules called for all n tangents
    reverse_rule_calls: int  # VJP rules called in all m sweeps

    def __str__(self) -> str:
        n, m = self.inputs, self.outputs
        return (
            f"Jacobian of {m} × {n} (outputs × inputs)\n"
            f"  forward: {n} {'tangent' if n == 1 else 'tangents'}, {self.forward_rule_calls} calls of JVP rules\n"
            f"  reverse: {m} {'sweep' if m == 1 else 'sweeps'}, {self.reverse_rule_calls} calls of VJP rules"
        )


def jacobian_cost(f: Callable[..., Any], *arguments: Any) -> JacobianCost:
    """How many gradient rules the Jacobian of ``f`` for all arguments calls in each mode: runs both and counts.

    >>> print(jacobian_cost(lambda x: (x * x).sum(), np.ones(100)))
    Jacobian of 1 × 100 (outputs × inputs)
      forward: 100 tangents, 300 calls of JVP rules
      reverse: 1 sweep, 3 calls of VJP rules
    """
    every = tuple(range(len(arguments)))
    with events.listen() as forward:
        jacobian(f, every, mode="forward")(*arguments)
    with events.listen() as reverse:
        jacobian(f, every, mode="reverse")(*arguments)
    return JacobianCost(
        _count(arguments),
        _count(f(*arguments)),
        sum(isinstance(event, events.TangentPushed) for event in forward),
        sum(isinstance(event, events.ContributionAdded) for event in reverse),
    )


# ------------------------------------------------------------------------------------------------------- columns and rows


def _blocks(f: Callable[..., Any], arguments: tuple[Any, ...], mode: Mode) -> tuple[Blocks, Structure]:
    """The blocks of the Jacobian of ``f``, and how its result nests."""
    if mode == "forward":
        return _by_columns(f, arguments)
    value, pull = vjp(f, *arguments)
    if mode == "auto" and _count(arguments) <= _count(value):
        return _by_columns(f, arguments)
    return _by_rows(value, pull, arguments)


def _by_columns(f: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Blocks, Structure]:
    """One tangent for each number of the arguments; its derivative is a column."""
    leaves, structure = flatten(arguments)
    outputs, pushed, result_structure = push_forward(f, leaves, structure, _bases(leaves))
    blocks = []
    for output, columns in zip(outputs, pushed, strict=True):
        shape, rest = shape_of(output), iter(columns)
        blocks.append([_joined(islice(rest, _size(leaf)), -1, shape + shape_of(leaf), output) for leaf in leaves])
    return blocks, result_structure


def _by_rows(value: Any, pull: Callable[[Any], Any], arguments: tuple[Any, ...]) -> tuple[Blocks, Structure]:
    """One cotangent for each number of the result; what it pulls back is a row."""
    outputs, structure = flatten(value)
    leaves = flatten(arguments)[0]
    rows = iter([flatten(pull(structure.rebuild(seeds)))[0] for seeds in zip(*_bases(outputs), strict=True)])
    blocks = []
    for output in outputs:
        of_output = list(islice(rows, _size(output)))
        blocks.append(
            [
                _joined((row[place] for row in of_output), 0, shape_of(output) + shape_of(leaf), leaf)
                for place, leaf in enumerate(leaves)
            ]
        )
    return blocks, structure


def _bases(leaves: Sequence[Any]) -> list[list[Any]]:
    """For each leaf one array per number of all leaves: 1 at that number, 0 elsewhere."""
    total = sum(map(_size, leaves))
    bases = []
    start = 0
    for leaf in leaves:
        ones = np.eye(_size(leaf)).reshape(_size(leaf), *shape_of(leaf))
        zeros = np.zeros(shape_of(leaf))
        bases.append([ones[i - start] if 0 <= i - start < _size(leaf) else zeros for i in range(total)])
        start += _size(leaf)
    return bases


def _joined(parts: Iterable[Any], axis: int, shape: tuple[int, ...], like: Any) -> Any:
    """Rows (``axis`` 0) or columns (−1) side by side, in the block's shape; zeros like ``like`` where there are none."""
    side_by_side = list(parts)
    if not side_by_side:
        return np.zeros(shape, dtype_of(like))
    return ops.reshape(ops.stack(side_by_side, axis=axis), shape=shape)


# ---------------------------------------------------------------------------------------------------------- the arguments


def _of_places(f: Callable[..., Any], arguments: Sequence[Any], places: Sequence[int]) -> Callable[..., Any]:
    """``f`` as a function of the arguments at ``places``, the others held."""

    def moving(*values: Any) -> Any:
        given = list(arguments)
        for place, value in zip(places, values, strict=True):
            given[place] = value
        return f(*given)

    moving.__name__ = getattr(f, "__name__", type(f).__name__)
    return moving


def _per_argument(row: list[Any], arguments: Sequence[Any]) -> tuple[Any, ...]:
    """The blocks of one leaf of the result, nested like each argument."""
    blocks = iter(row)
    return tuple(flatten(argument)[1].rebuild(blocks) for argument in arguments)


def _place(place: int, count: int, name: str) -> int:
    if not -count <= place < count:
        raise ValueError(f"jacobian: argnums={place}, but {name} was called with {count} arguments")
    return place % count


def _size(leaf: Any) -> int:
    return math.prod(shape_of(leaf))


def _count(value: Any) -> int:
    """How many numbers there are in nested arrays."""
    return sum(map(_size, flatten(value)[0]))
