"""Batches: many derivatives at once, as one value with a leading axis that the op calls do not see.

A Tensor of a batch level looks like one array to whoever computes with it, and holds a stack of them. ``jacobian`` seeds all
rows or all columns with one such Tensor, so that each gradient rule runs once instead of once per row.

An op is mapped over the batch in one of three ways: an elementwise op by broadcasting, an op with a ``batch_rule`` by that,
any other op by a loop over the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import bindings
from .bindings import shape_of
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
    values: list[Any] = []
    batched: list[bool] = []
    rank = 0  # of the member that has most axes
    for operand in operands:
        is_batched = type(operand) is Tensor and operand._level is level
        values.append(operand._data if is_batched else bindings.as_operand(operand))
        batched.append(is_batched)
        rank = max(rank, len(shape_of(values[-1])) - is_batched)
    if op.elementwise:
        aligned = [_aligned(v, rank) if flag else v for v, flag in zip(values, batched, strict=True)]
        return Tensor(op.apply(aligned, attributes), level)
    if op.has_batch_rule:
        leading = [v if flag else _with_axis(v) for v, flag in zip(values, batched, strict=True)]
        return Tensor(op.apply_batch_rule(leading, attributes), level)
    size = next(shape_of(v)[0] for v, flag in zip(values, batched, strict=True) if flag)
    members = ([v[i] if flag else v for v, flag in zip(values, batched, strict=True)] for i in range(size))
    results = [_with_axis(op.apply(member, attributes)) for member in members]
    return Tensor(_call("concatenate", results, axis=0), level)


def _aligned(value: Any, rank: int) -> Any:
    """A stack whose members have fewer axes than ``rank``, with axes of size 1 after the first, as broadcasting adds them."""
    shape = shape_of(value)
    missing = rank - (len(shape) - 1)
    return _call("reshape", value, shape=(shape[0], *(1,) * missing, *shape[1:])) if missing else value


def _with_axis(value: Any) -> Any:
    """A value that is the same for the whole batch, as a stack of one."""
    return _call(
        "reshape", bindings.real_array(value) if not hasattr(value, "shape") else value, shape=(1, *shape_of(value))
    )


def _call(name: str, operand: Any, **attributes: Any) -> Any:
    return registry[name].binding(operand, **attributes)
