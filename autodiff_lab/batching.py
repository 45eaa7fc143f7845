"""Batches: many derivatives at once, as one value with a leading axis that the op calls do not see.

A Tensor of a batch level looks like one array to whoever computes with it, and holds a stack of them. ``jacobian`` seeds all
rows or all columns with one such Tensor, so that each gradient rule runs once instead of once per row.

An op is mapped over the batch in one of three ways: an elementwise op by broadcasting, an op with a ``batch_rule`` by that,
unless it answers NotImplemented, any other op by a loop over the batch. The bindings of elementwise ops broadcast where no axes
are to be added, without coming here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .bindings import as_operand, real_array, shape_of
from .operators import registry
from .tensors import Level, Tensor

if TYPE_CHECKING:
    from .operators import Op


def batch_level() -> Level:
    """A new level for one batch."""
    return Level(is_reverse=False, reading=map_batch)


def in_batch(stacked: Any, level: Level) -> Tensor:
    """A stack of arrays, along the first axis, as one value of the batch."""
    return Tensor(stacked, level)


def out_of_batch(value: Any, level: Level, size: int) -> Any:
    """The stack that a value of the batch holds; a value that is the same for the whole batch is repeated."""
    if type(value) is Tensor and value._level is level:
        return value._data
    return _call("broadcast_to", _with_axis(value), shape=(size, *shape_of(value)))


def map_batch(op: Op, operands: Sequence[Any], attributes: dict[str, Any], level: Level) -> Tensor:
    """Call an op on every member of a batch."""
    if op.has_batch_rule and not op.elementwise:
        stacks = [o._data if type(o) is Tensor and o._level is level else _with_axis(as_operand(o)) for o in operands]
        result = op.apply_batch_rule(stacks, attributes)
        if result is not NotImplemented:
            return Tensor(result, level)
    batched = [type(o) is Tensor and o._level is level for o in operands]
    values = [o._data if flag else as_operand(o) for o, flag in zip(operands, batched, strict=True)]
    if op.elementwise:
        return Tensor(op.apply(_aligned(values, batched), attributes), level)
    size = next(shape_of(v)[0] for v, flag in zip(values, batched, strict=True) if flag)
    members = ([v[i] if flag else v for v, flag in zip(values, batched, strict=True)] for i in range(size))
    results = [_with_axis(op.apply(member, attributes)) for member in members]
    return Tensor(_call("concatenate", results, axis=0), level)


def _aligned(values: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """The values; a stack whose members have fewer axes than others is given axes of size 1, as broadcasting adds them."""
    ranks = [len(shape_of(value)) - flag for value, flag in zip(values, batched, strict=True)]
    rank = max(ranks)
    return [
        _with_rank(value, rank) if flag and own < rank else value
        for value, flag, own in zip(values, batched, ranks, strict=True)
    ]


def _with_rank(stack: Any, rank: int) -> Any:
    size, *rest = shape_of(stack)
    return _call("reshape", stack, shape=(size, *(1,) * (rank - len(rest)), *rest))


def _with_axis(value: Any) -> Any:
    """A value that is the same for the whole batch, as a stack of one."""
    if type(value) is np.ndarray:
        return value[None]
    return _call("reshape", value if hasattr(value, "shape") else real_array(value), shape=(1, *shape_of(value)))


def _call(name: str, operand: Any, **attributes: Any) -> Any:
    return registry[name].binding(operand, **attributes)
