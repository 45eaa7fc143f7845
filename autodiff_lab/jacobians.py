"""All first and second derivatives at once: jacobian by columns or by rows, hessian, hvp, and what each mode costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from . import backend, events, ops
from .batching import batch_level, in_batch, out_of_batch
from .bindings import device_of, dtype_of, shape_of
from .forward_mode import jvp, push_forward
from .reverse_mode import Owned, distinct, grad, vjp
from .trees import Structure, flatten

Mode = Literal["auto", "forward", "reverse"]
Blocks = list[list[Any]]  # for each leaf of the result, one block for each leaf of the arguments


def jacobian(f: Callable[..., Any], argnums: int | Sequence[int] = 0, mode: Mode = "auto") -> Callable[..., Any]:
    """A function that gives the Jacobian of ``f``: every partial derivative of every number of the result.

    J[i, j] = ∂f(x)[i] / ∂x[j], an array of shape ``result.shape + argument.shape``. Where results or arguments nest, so does
    the Jacobian: the result's structure outside, the argument's inside.

    With n numbers in the arguments and m in the result:

    * ``"forward"`` finds n columns. ``f`` runs once and carries all n tangents along, so it holds n tangents of each
      intermediate value.
    * ``"reverse"`` finds m rows. ``f`` runs once and is recorded; the sweep carries m cotangents.
    * ``"auto"`` takes ``"forward"`` where n ≤ m. It runs ``f`` once more to know m.

    The tangents or cotangents travel as one batch: each rule runs once, on a stack of n or m. While somebody listens they
    travel one after the other, so that every rule call is told.

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
        places = distinct([_place(place, len(arguments), name) for place in chosen], argnums)
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
    bases, level, total = _bases(leaves), batch_level(), sum(map(_size, leaves))
    if _side_by_side(total):
        tangents: list[Any] = [(in_batch(basis, level),) for basis in bases]
        outputs, pushed, result_structure = push_forward(f, leaves, structure, tangents)
        stacks = [out_of_batch(tangent, level, total) for (tangent,) in pushed]
    else:
        outputs, pushed, result_structure = push_forward(f, leaves, structure, bases)
        stacks = [_stack(columns, output) for columns, output in zip(pushed, outputs, strict=True)]
    if len(stacks) > 1:  # two results may have the same tangent, or one may be a part of the other
        owned = Owned()
        stacks = [owned.own(stack) for stack in stacks]
    blocks = []
    for output, stack in zip(outputs, stacks, strict=True):
        axes = (*range(1, len(shape_of(stack))), 0)
        columns = ops.transpose(stack, axes=axes)
        parts = [ops.getitem(columns, (..., part)) for part in _parts(leaves)]
        blocks.append([_block(part, output, leaf) for part, leaf in zip(parts, leaves, strict=True)])
    return blocks, result_structure


def _by_rows(value: Any, pull: Callable[[Any], Any], arguments: tuple[Any, ...]) -> tuple[Blocks, Structure]:
    """One cotangent for each number of the result; what it pulls back is a row."""
    outputs, structure = flatten(value)
    leaves = flatten(arguments)[0]
    bases, level, total = _bases(outputs), batch_level(), sum(map(_size, outputs))
    if _side_by_side(total):
        gradients = flatten(pull(structure.rebuild(in_batch(basis, level) for basis in bases)))[0]
        stacks = [out_of_batch(gradient, level, total) for gradient in gradients]
    else:
        rows = [flatten(pull(structure.rebuild(seeds)))[0] for seeds in zip(*bases, strict=True)]
        stacks = [_stack([row[place] for row in rows], leaf) for place, leaf in enumerate(leaves)]
    blocks = [
        [_block(ops.getitem(stack, part), output, leaf) for stack, leaf in zip(stacks, leaves, strict=True)]
        for output, part in zip(outputs, _parts(outputs), strict=True)
    ]
    return blocks, structure


def _side_by_side(total: int) -> bool:
    """Whether all seeds travel as one batch: not where somebody listens, who is told of one seed after the other."""
    context = events.context.get()
    return total > 0 and (context is None or context.receiver is None)


def _bases(leaves: Sequence[Any]) -> list[Any]:
    """For each leaf a stack of one array per number of all leaves: 1 at that number, 0 elsewhere."""
    total = sum(map(_size, leaves))
    return [
        backend.asarray(
            np.eye(total, _size(leaf), -part.start, dtype_of(leaf)).reshape(total, *shape_of(leaf)),
            device=device_of(leaf),
        )
        for leaf, part in zip(leaves, _parts(leaves), strict=True)
    ]


def _parts(leaves: Sequence[Any]) -> list[slice]:
    """Where each leaf's numbers lie among those of all leaves."""
    ends = list(accumulate(map(_size, leaves)))
    return [slice(end - _size(leaf), end) for end, leaf in zip(ends, leaves, strict=True)]


def _stack(members: Sequence[Any], like: Any) -> Any:
    if members:
        return ops.stack(list(members), axis=0)
    return backend.asarray(np.zeros((0, *shape_of(like))), dtype_of(like), device_of(like))


def _block(part: Any, output: Any, leaf: Any) -> Any:
    """A part of the rows or columns in the block's shape, for the caller to keep and change."""
    block = ops.reshape(part, shape=shape_of(output) + shape_of(leaf))
    return block if not isinstance(block, np.ndarray) or block.flags.writeable else block.copy()


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
