"""Backward through a stretch of elementwise ops on wide arrays: one loop over blocks, so that cotangents stay in the cache.

Op by op, each rule reads whole arrays from memory and writes a whole one for the next rule, which nobody else sees. The same
sweep on stand-ins says which NumPy calls its rules make, and those are made on one block after the other. Only what leaves the
stretch is written out.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from .loop_code import LoopCode
from .numpy_calls import Fact, NumPyCall, cast, prepared
from .tensors import Record
from .traced_functions import Untraceable
from .tracing import Tracer
from .wide_arrays import blocks

Cotangents = Mapping[int, Any]  # by serial number
Sweep = Callable[[list[Record], dict[int, Any]], list[tuple[Record, Any]]]


def sweep_in_blocks(record: Record, g: Any, order: list[Record], cotangents: dict[int, Any], sweep: Sweep) -> bool:
    """Sweep a record, and the elementwise records that stand before it, in blocks. Gives whether that was done.

    ``order`` and ``cotangents`` are as in ``sweep`` when it comes to the record, whose cotangent is ``g``. Afterwards the whole
    stretch is gone from both, and ``cotangents`` has what it sent to earlier records, with the bits that ``sweep`` gives. A
    single record passes nothing on and is no stretch. Where blocks fail, all is as it was: the sweep op by op says why.
    """
    arrived = ChainMap({record[0]: g}, cotangents)
    if not _fits(record, g, arrived):
        return False
    start = len(order)
    while start and (order[start - 1][1] is None or _fits(order[start - 1], g, arrived)):
        start -= 1
    stretch = [one for one in order[start:] if one[1] is not None]
    if not stretch:
        return False
    try:
        sent = _sent([*stretch, record], arrived, sweep)
    except Exception:
        return False
    order[start:] = [one for one in order[start:] if one[1] is None]  # leaves wait until all that reads them is swept
    for one in stretch:
        cotangents.pop(one[0], None)
    cotangents.update(sent)
    return True


# ------------------------------------------------------------------------------------------------- what makes a stretch


def _fits(record: Record, g: Any, cotangents: Cotangents) -> bool:
    """Whether a record's rules may be run on blocks: all they read is like ``g`` and in C order, or is one number.

    Only rules of this library are: what a user's rule prints or counts is told as it is on small arrays.
    """
    serial, op, parents, attributes, operands, *saved = record
    assert op is not None
    if not (op.elementwise and _is_ours(op.module) and all(map(_is_rule_of_ours, op.vjp_rules.values()))):
        return False
    for parent, operand in zip(parents, operands or (), strict=False):
        if type(operand) is tuple and not (_has_kind(operand[1], g) and (parent is None or operand[0] == g.shape)):
            return False  # its cotangent will be summed, or cast
    reached = [cotangents.get(serial), *(cotangents.get(parent[0]) for parent in parents if parent is not None)]
    return (
        all(one is None or _is_cotangent(one, g) for one in reached)
        and all(_is_number(one, g) or _is_whole(one, g) for one in saved)
        and all(_is_number(one, g) for one in attributes.values())
    )


def _is_ours(module: str) -> bool:
    return module.startswith(f"{__package__}.")


def _is_rule_of_ours(rule: Any) -> bool:
    return type(rule) is FunctionType and _is_ours(rule.__module__)  # what a fault puts in its place is no function


def _has_kind(dtype: np.dtype[Any], g: Any) -> bool:
    return bool(dtype == g.dtype or dtype == np.bool_)


def _is_whole(value: Any, g: Any) -> bool:
    return (
        type(value) is np.ndarray and value.shape == g.shape and value.flags.c_contiguous and _has_kind(value.dtype, g)
    )


def _is_number(value: Any, g: Any) -> bool:
    if type(value) is np.ndarray:
        return value.size == 1 and _has_kind(value.dtype, g)
    return value is None or type(value) in (bool, int, float, str)


def _is_cotangent(value: Any, g: Any) -> bool:
    is_alike = type(value) is np.ndarray and value.shape == g.shape and value.dtype == g.dtype
    return is_alike and (value.flags.c_contiguous or _is_repeated(value))


def _is_repeated(array: Any) -> bool:
    """Whether an array is one number, repeated without memory, as the cotangent of what was summed."""
    return not any(array.strides)


# ------------------------------------------------------------------------------------------------------ the loop itself


def _sent(stretch: Sequence[Record], cotangents: Cotangents, sweep: Sweep) -> Cotangents:
    """What a stretch, earliest record first, sends to the records before it.

    Raises:
        Exception: its rules do more than NumPy calls that work number by number, or one of these fails.
    """
    inside = {record[0] for record in stretch}
    before = {parent[0] for record in stretch for parent in record[2] if parent is not None} - inside
    arriving = {serial: cotangents[serial] for serial in (*inside, *before) if serial in cotangents}
    kept = [value for record in stretch for value in record[5:] if type(value) is np.ndarray]
    arrays = [*{id(array): array for array in (*arriving.values(), *kept)}.values()]
    flat = [_flat(array) for array in arrays]
    tracer = Tracer()
    seen = {id(array): tracer.value(one.shape, one.dtype) for array, one in zip(arrays, flat, strict=True)}
    records: list[Record] = [(serial, None, (), {}, None) for serial in before]
    for serial, op, parents, attributes, _, *saved in stretch:
        records.append((serial, op, parents, attributes, None, *[seen.get(id(one), one) for one in saved]))
    reached = sweep(records, {serial: seen[id(array)] for serial, array in arriving.items()})
    calls = [_on_numbers(call, tracer.facts) for call in tracer.calls]
    if tracer.is_refused or not all(call.is_elementwise for call in calls):
        raise Untraceable("a rule that works on whole arrays only")
    values = dict(enumerate(arrays))  # a rule may hand on what it was given
    made = {result.number: result.dtype for _, result in reached if result.number not in values}
    values |= {number: np.empty(cotangents[stretch[-1][0]].shape, dtype) for number, dtype in made.items()}
    _run(calls, tracer.facts, flat, {number: values[number].reshape(-1) for number in made})
    return {record[0]: values[result.number] for record, result in reached}


def _flat(array: Any) -> Any:
    """An array's numbers on one axis; of a repeated number the one."""
    return array[(slice(1),) * array.ndim].reshape(1) if _is_repeated(array) else array.reshape(-1)


def _on_numbers(call: NumPyCall, facts: Sequence[Fact]) -> NumPyCall:
    """A call that fills an array of some shape as one that works number by number."""
    if call.function is not np.full:
        return call
    filling = (call.operands[1], facts[call.result].dtype)
    return NumPyCall(cast, filling, {}, call.result, writes=True, is_elementwise=True)


def _run(calls: Sequence[NumPyCall], facts: Sequence[Fact], given: Sequence[Any], results: Mapping[int, Any]) -> None:
    """Make the calls on each block of what was ``given``, into the same block of ``results``."""
    code = LoopCode(facts.__getitem__)
    code.names = {number: f"x{number}" for number in range(len(given))}
    targets = {number: f"y{number}" for number in results}
    parameters = [*code.names.values(), *targets.values()]
    calls = [prepared(call, facts) for call in calls]
    code.write(calls, targets, [""] * len(calls))
    loop, _ = code.function(parameters)
    size = max((one.size for one in results.values()), default=0)
    parts = list(blocks(size, max(one.itemsize for one in given)))
    scratch = [np.empty(1 if shape == (1,) else parts[0].stop, dtype) for shape, dtype in code.slots]
    for part in parts:
        read = [one if one.size == 1 else one[part] for one in given]
        loop(*read, *[one[part] for one in results.values()], *[one[: size - part.start] for one in scratch])
