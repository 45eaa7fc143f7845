"""Calls of NumPy as data: what a kernel's program is made of, and how it is run and shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Shape = tuple[int, ...]
DType = np.dtype[Any]


class Fact(NamedTuple):
    """What is known of a value without its numbers."""

    shape: Shape
    dtype: DType


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a program: one of its inputs, or the result of one of its calls."""

    number: int


@dataclass(frozen=True, slots=True)
class NumPyCall:
    """One call of a program. An operand is a ``Value`` or a constant; a Python number stays a Python number.

    ``writes``: the function takes ``out=``. ``is_view``: the result may share an operand's memory. ``is_elementwise``: the
    function works number by number with broadcasting, so it may be run on a part of its operands.
    """

    function: Callable[..., Any]
    operands: tuple[Any, ...]
    options: Mapping[str, Any]
    result: int
    writes: bool = False
    is_view: bool = False
    is_elementwise: bool = False

    def reading(self, operands: tuple[Any, ...], result: int | None = None) -> NumPyCall:
        """The same call with other operands and, if given, another number for its result."""
        number = self.result if result is None else result
        return NumPyCall(self.function, operands, self.options, number, self.writes, self.is_view, self.is_elementwise)

    def text(self) -> str:
        """The call as one line of Python, values as ``v0``, ``v1``, …"""
        given = [_shown(operand) for operand in self.operands]
        given += [f"{name}={_shown(value)}" for name, value in self.options.items()]
        return f"v{self.result} = {name_of(self.function)}({', '.join(given)})"


@dataclass(frozen=True, slots=True)
class Program:
    """The calls of a kernel in order: values 0 … ``inputs`` − 1 are its operands, every call makes one more.

    ``result`` is a ``Value``, which may be an operand itself, or a constant.

    >>> from autodiff_lab.kernel_programs import program_of
    >>> silu = program_of(ad.registry["silu"], [Fact((3,), np.dtype("float32"))], {})
    >>> print(silu)
    v1 = np.absolute(v0)
    v2 = np.negative(v1)
    v3 = np.exp(v2)
    v4 = np.greater_equal(v0, 0)
    v5 = np.maximum(v3, v4)
    v6 = np.add(1, v3)
    v7 = np.divide(v5, v6)
    v8 = np.multiply(v0, v7)
    result v8
    >>> silu(np.zeros(3, np.float32))
    array([0., 0., 0.], dtype=float32)
    """

    inputs: int
    facts: tuple[Fact, ...]
    calls: tuple[NumPyCall, ...]
    result: Any

    def __call__(self, *operands: Any) -> Any:
        """Run the calls one by one."""
        values = [*operands]

        def given(operand: Any) -> Any:
            if type(operand) is Value:
                return values[operand.number]
            return type(operand)(map(given, operand)) if type(operand) in (tuple, list) else operand

        for call in self.calls:
            values.append(call.function(*map(given, call.operands), **call.options))
        result = given(self.result)
        return result if type(result) is np.ndarray and type(self.result) is Value else np.array(result)

    def __str__(self) -> str:
        return "\n".join([*(call.text() for call in self.calls), f"result {_shown(self.result)}"])


def _shown(operand: Any) -> str:
    if isinstance(operand, Value):
        return f"v{operand.number}"
    if isinstance(operand, (tuple, list)):
        inner = ", ".join(map(_shown, operand)) + ("," if isinstance(operand, tuple) and len(operand) == 1 else "")
        return f"({inner})" if isinstance(operand, tuple) else f"[{inner}]"
    if isinstance(operand, np.ndarray):
        return f"<{operand.shape} {operand.dtype}>" if operand.ndim else repr(operand.item())
    return str(operand) if isinstance(operand, np.dtype) else repr(operand)


def name_of(function: Any) -> str:
    """How a function is called in a text: ``np.tanh``, ``np.add.reduce``, ``select``."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc):
        return f"np.{owner.__name__}.{function.__name__}"
    module = getattr(function, "__module__", None) or "numpy"
    return ("np." if isinstance(function, np.ufunc) or module.startswith("numpy") else "") + str(function.__name__)


# -------------------------------------------------------------- what has no function in NumPy that takes ``out`` as well


def cast(x: Any, dtype: Any, out: Any = None) -> Any:
    """``x.astype(dtype)``."""
    if out is None:
        return x.astype(dtype)
    np.copyto(out, x, casting="unsafe")
    return out


def select(condition: Any, x: Any, y: Any, out: Any = None) -> Any:
    """``np.where(condition, x, y)``."""
    if out is None:
        return np.where(condition, x, y)
    np.copyto(out, np.where(condition, x, y))  # a third of the time of two copies, one of them masked
    return out


# ----------------------------------------------------------------------------------------- what a call reads, and how


def values_in(operands: Iterable[Any]) -> list[int]:
    """The numbers of the values among operands."""
    found: list[int] = []
    for one in operands:
        if isinstance(one, Value):
            found.append(one.number)
        elif isinstance(one, (tuple, list)):
            found += values_in(one)
    return found


def prepared(call: NumPyCall, facts: Sequence[Fact]) -> NumPyCall:
    """The call with Python numbers as 0-d arrays of the dtype that NumPy would give them: 0.2 µs less each time.

    >>> call = NumPyCall(np.multiply, (Value(0), 2.0), {}, 1, writes=True, is_elementwise=True)
    >>> prepared(call, [Fact((3,), np.dtype("float32"))] * 2).operands[1].dtype
    dtype('float32')
    """
    numbers = [type(one) in (int, float) for one in call.operands]
    if not any(numbers) or not (isinstance(call.function, np.ufunc) or call.function is select) or call.options:
        return call
    kinds = [_kind(one, facts) for one in call.operands]
    if isinstance(call.function, np.ufunc):
        wanted = call.function.resolve_dtypes((*kinds, None))
    else:
        wanted = (np.dtype(bool), *[facts[call.result].dtype] * 2)
    try:
        given = [
            np.asarray(one, d) if is_number else one
            for one, d, is_number in zip(call.operands, wanted, numbers, strict=False)
        ]
    except OverflowError:  # a whole number that the dtype cannot hold: NumPy has its own rules for it
        return call
    return call.reading(tuple(given))


def _kind(operand: Any, facts: Sequence[Fact]) -> Any:
    if isinstance(operand, Value):
        return facts[operand.number].dtype
    return operand.dtype if hasattr(operand, "dtype") else np.dtype(bool) if type(operand) is bool else type(operand)
