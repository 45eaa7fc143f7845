"""Which values of a plan lie in C order, as NumPy itself would lay them out: only these may be written into a buffer.

How numbers lie decides in which order a sum adds them up, so it decides about the last bits. A result that NumPy would lay out
in another way, such as the exponential of a transposed array, is left to NumPy.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .numpy_calls import Fact, Value
from .plan_lines import Line, Lines

Strides = tuple[int, ...]

_VIEWS = (np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze, np.broadcast_to, np.diagonal)
_IN_C_ORDER = (
    np.full,
    np.concatenate,
    np.stack,
    np.take,
    np.var,
    np.std,
    np.cumsum,
    np.cumprod,
)  # of operands in C order


@dataclass(frozen=True, eq=False)
class Layout:
    """How the values of a plan lie, where the inputs lie in C order."""

    is_c: Sequence[bool]  # certainly in C order
    views: frozenset[int]  # values that are certainly views


def with_dot(lines: Lines) -> tuple[Lines, Layout]:
    """The lines, with ``np.dot`` for small matrix products, and how their results lie.

    Where both operands are what BLAS takes as it is, ``np.dot`` calls the same function of BLAS as ``np.matmul`` does, with 0.5
    to 4 µs less on the way (64 × 32 by 32 × 1: 2.8 instead of 6.7).
    """
    strides: list[Strides | None] = [c_strides(fact) for fact in lines.facts]  # right for inputs; the rest is set below
    views: set[int] = set()
    calls = []
    for line in lines.calls:
        found = _result(line, lines.facts, strides, views)
        for number in line.results:
            strides[number] = found if found is not _C else c_strides(lines.facts[number])
        calls.append(replace(line, function=np.dot) if _is_for_blas(line, lines.facts, strides) else line)
    is_c = [known is not None and _is_c(lines.facts[place], known) for place, known in enumerate(strides)]
    return replace(lines, calls=tuple(calls)), Layout(is_c, frozenset(views))


def _is_for_blas(line: Line, facts: Sequence[Fact], strides: Sequence[Strides | None]) -> bool:
    """Whether a matrix product is of two matrices or vectors of one floating dtype that lie in rows or in columns."""
    if line.function is not np.matmul or line.options:
        return False
    result = facts[line.results[0]]
    operands = [_facts_of(operand, facts, strides) for operand in line.operands]
    return (
        result.dtype.char in "fd"
        and 0 < len(result.shape) <= 2
        and all(
            known is not None
            and fact.dtype == result.dtype
            and len(fact.shape) <= 2
            and _in_rows_or_columns(fact, known)
            for fact, known in operands
        )
    )


def _facts_of(operand: Any, facts: Sequence[Fact], strides: Sequence[Strides | None]) -> tuple[Fact, Strides | None]:
    if type(operand) is Value:
        return facts[operand.number], strides[operand.number]
    array = np.asarray(operand)
    return Fact(array.shape, array.dtype), array.strides


def _in_rows_or_columns(fact: Fact, strides: Strides) -> bool:
    flipped = Fact(fact.shape[::-1], fact.dtype)
    return 0 not in fact.shape and (_is_c(fact, strides) or _is_c(flipped, strides[::-1]))


_C: Any = object()


def c_strides(fact: Fact) -> Strides:
    """The strides of an array in C order, in bytes."""
    found: list[int] = []
    step = fact.dtype.itemsize
    for size in reversed(fact.shape):
        found.append(step)
        step *= size
    return tuple(reversed(found))


def _is_c(fact: Fact, strides: Strides) -> bool:
    """Whether strides are those of C order; an axis of one element may have any."""
    pairs = zip(fact.shape, strides, c_strides(fact), strict=True)
    return 0 in fact.shape or all(size == 1 or one == c for size, one, c in pairs)


def _result(line: Line, facts: Sequence[Fact], strides: Sequence[Strides | None], views: set[int]) -> Any:
    """The strides of a line's result, ``_C``, or None where they are unknown."""
    fact = facts[line.results[0]]
    if (line.is_group and line.writes) or fact.shape == ():
        return _C
    reads = line.reads
    if any(strides[number] is None for number in reads):
        return _C if line.function is np.matmul and len(fact.shape) == 2 else None
    if line.may_share:
        found, is_view = _view(line, fact, facts, strides)
        if is_view:
            views.add(line.results[0])
        return found
    if line.function is np.matmul:
        return _C if all(_outer_axes_descend(facts[n], strides[n] or ()) for n in reads) else None
    if line.writes or line.function in _IN_C_ORDER:
        alike = all(_is_c(facts[n], strides[n] or ()) for n in reads)
        return _C if alike and _constants_are_c(line.operands) else None
    return None


def _outer_axes_descend(fact: Fact, strides: Strides) -> bool:
    outer = [step for size, step in zip(fact.shape[:-2], strides[:-2], strict=True) if size != 1 and step]
    return outer == sorted(outer, reverse=True)


def _constants_are_c(operands: Any) -> bool:
    if isinstance(operands, (tuple, list)):
        return all(map(_constants_are_c, operands))
    return not isinstance(operands, np.ndarray) or operands.flags.c_contiguous


def _view(line: Line, fact: Fact, facts: Sequence[Fact], strides: Sequence[Strides | None]) -> tuple[Any, bool]:
    """The strides of a view, and whether it certainly is one: made of an array that has the strides and no numbers."""
    is_index = line.function is operator.getitem and _is_basic(line.operands[1])
    known = is_index or line.function in (*_VIEWS, np.reshape, np.ravel)
    base = line.operands[0]
    if not known or type(base) is not Value:
        return None, False
    before = strides[base.number] or ()
    ghost = _ghost(facts[base.number], before)
    if line.function in (np.reshape, np.ravel):
        if _is_c(facts[base.number], before):
            return _C, True
        try:  # never by a function that copies where it cannot make a view: the ghost has no numbers to copy
            ghost.shape = fact.shape
        except AttributeError:
            return _C, False
        return ghost.strides, True
    made = line.function(ghost, *line.operands[1:], **line.options)
    return (made.strides, True) if isinstance(made, np.ndarray) else (_C, False)


def _ghost(fact: Fact, strides: Strides) -> np.ndarray[Any, Any]:
    return np.lib.stride_tricks.as_strided(np.empty(1, fact.dtype), fact.shape, strides)


def _is_basic(index: Any) -> bool:
    """Whether an index only moves and steps, so that the result is a view."""
    parts = index if isinstance(index, tuple) else (index,)
    plain = (int, np.integer, slice, type(None), type(...))
    return all(isinstance(part, plain) and not isinstance(part, bool) for part in parts)
