"""All first and second derivatives at once: jacobian by columns or by rows, hessian, hvp, and what each mode costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from . import backend, events, ops
from .batching import batch_level, in_batch, out_of_batch
from .bindings import device_of, dtype_of, shape_of
from .forward_mode import jvp, push_forward
from .reverse_mode import Owned, distinct, grad, pull_back
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
    * ``"auto"`` takes ``"forward"`` where n ≤ m + 1, since one more tangent costs less than recording does. To know m, the
      first call runs ``f`` once more; a later call with as many numbers in its arguments goes by the m of the call before.

    Several tangents or cotangents travel as one batch: each rule runs once, on a stack of n or m. While somebody listens they
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
    seen: dict[int, int] = {}

    def jacobian_of(*arguments: Any) -> Any:
        places = distinct([_place(place, len(arguments), name) for place in chosen], argnums)
        selected = tuple([arguments[place] for place in places])
        blocks, structure = _blocks(_of_places(f, arguments, places), selected, mode, seen)
        nested = [_per_argument(row, selected) for row in blocks]
        return structure.rebuild([parts[0] for parts in nested] if isinstance(argnums, int) else nested)

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


def _blocks(
    f: Callable[..., Any], arguments: tuple[Any, ...], mode: Mode, seen: dict[int, int]
) -> tuple[Blocks, Structure]:
    """The blocks of the Jacobian of ``f``, and how its result nests.

    ``seen`` remembers how many numbers there were in the last result for so many in the arguments. Who listens or records a
    graph hears the same at every call, so nothing is remembered then.
    """
    leaves, nesting = flatten(arguments)
    count = sum(map(_size, leaves))
    known = seen.get(count) if events.context.get() is None else None
    if mode == "reverse" or (mode == "auto" and (known is None or count > known + 1)):
        outputs, pull, structure = pull_back(f, arguments)
        seen[count] = sum(map(_size, outputs))
        if mode == "reverse" or count > seen[count] + 1:
            return _by_rows(outputs, pull, leaves), structure
    outputs, blocks, structure = _by_columns(f, leaves, nesting)
    seen[count] = sum(map(_size, outputs))
    return blocks, structure


def _by_columns(f: Callable[..., Any], leaves: list[Any], nesting: Structure) -> tuple[list[Any], Blocks, Structure]:
    """One tangent for each number of the arguments; its derivative is a column. Gives the result's leaves too."""
    parts, total = _parts(leaves)
    bases = _bases(leaves, parts, total)
    if _side_by_side(total):
        level = batch_level()
        outputs, pushed, structure = push_forward(f, leaves, nesting, [(in_batch(basis, level),) for basis in bases])
        stacks = [out_of_batch(tangent, level, total) for (tangent,) in pushed]
    else:
        outputs, pushed, structure = push_forward(f, leaves, nesting, bases)
        stacks = [_stack(columns, output) for columns, output in zip(pushed, outputs, strict=True)]
    blocks = []
    for output, stack in zip(outputs, _own_each(stacks), strict=True):
        columns = stack.transpose((*range(1, len(stack.shape)), 0))
        blocks.append([_block(columns[..., part], output, leaf) for part, leaf in zip(parts, leaves, strict=True)])
    return outputs, blocks, structure


def _by_rows(outputs: list[Any], pull: Callable[[Any], list[Any]], leaves: list[Any]) -> Blocks:
    """One cotangent for each number of the result; what it pulls back is a row."""
    parts, total = _parts(outputs)
    bases = _bases(outputs, parts, total)
    if _side_by_side(total):
        level = batch_level()
        gradients = pull([in_batch(basis, level) for basis in bases])
        stacks = [out_of_batch(gradient, level, total) for gradient in gradients]
    else:
        rows = [pull(seeds) for seeds in zip(*bases, strict=True)]
        stacks = [_stack([row[place] for row in rows], leaf) for place, leaf in enumerate(leaves)]
    stacks = _own_each(stacks)
    return [
        [_block(stack[part], output, leaf) for stack, leaf in zip(stacks, leaves, strict=True)]
        for output, part in zip(outputs, parts, strict=True)
    ]


def _side_by_side(total: int) -> bool:
    """Whether all seeds travel as one batch: not one alone, nor where somebody listens, who is told of one after the other."""
    context = events.context.get()
    return total > 1 and (context is None or context.receiver is None)


def _parts(leaves: Sequence[Any]) -> tuple[list[slice], int]:
    """Where each leaf's numbers lie among those of all leaves, and how many they all have."""
    parts, total = [], 0
    for leaf in leaves:
        start, total = total, total + _size(leaf)
        parts.append(slice(start, total))
    return parts, total


def _bases(leaves: Sequence[Any], parts: Sequence[slice], total: int) -> list[Any]:
    """For each leaf a stack of one array per number of all leaves: 1 at that number, 0 elsewhere."""
    bases = []
    for leaf, part in zip(leaves, parts, strict=True):
        basis = np.eye(total, part.stop - part.start, -part.start, dtype_of(leaf)).reshape(total, *shape_of(leaf))
        device = device_of(leaf)
        bases.append(basis if device == "cpu" else backend.asarray(basis, device=device))
    return bases


def _stack(members: Sequence[Any], like: Any) -> Any:
    if members:
        return ops.stack(list(members), axis=0)
    return backend.asarray(np.zeros((0, *shape_of(like))), dtype_of(like), device_of(like))


def _own_each(stacks: list[Any]) -> list[Any]:
    """Stacks without common memory: several results may have one tangent, or several arguments one cotangent."""
    if len(stacks) == 1:
        return stacks
    owned = Owned()
    return [owned.own(stack) for stack in stacks]


def _block(part: Any, output: Any, leaf: Any) -> Any:
    """A part of the rows or columns in the block's shape, for the caller to keep and change."""
    block = part.reshape(shape_of(output) + shape_of(leaf))
    return block if type(block) is not np.ndarray or block.flags.writeable else block.copy()


# ---------------------------------------------------------------------------------------------------------- the arguments


def _of_places(f: Callable[..., Any], arguments: Sequence[Any], places: Sequence[int]) -> Callable[..., Any]:
    """``f`` as a function of the arguments at ``places``, the others held."""
    if len(arguments) == len(places) == 1:
        return f

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
    return tuple([flatten(argument)[1].rebuild(blocks) for argument in arguments])


def _place(place: int, count: int, name: str) -> int:
    if not -count <= place < count:
        raise ValueError(f"jacobian: argnums={place}, but {name} was called with {count} arguments")
    return place % count


def _size(leaf: Any) -> int:
    return math.prod(shape_of(leaf))


def _count(value: Any) -> int:
    """How many numbers there are in nested arrays."""
    return sum(map(_size, flatten(value)[0]))
