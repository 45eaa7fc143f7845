"""The NumPy calls that a kernel makes: found by running the kernel once on stand-ins, which know shape and dtype only.

A program does what the kernel does, on the same dtypes and with the same functions, so its numbers are the kernel's bit by
bit. Whoever runs it may say where a result is to be written, which is how plans and fused loops do without temporaries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .numpy_calls import Fact as Fact
from .numpy_calls import NumPyCall as NumPyCall
from .numpy_calls import Program as Program
from .numpy_calls import Value as Value
from .operators import Op
from .tracing import Tracer


def program_of(op: Op, operands: Sequence[Fact | float], attributes: Mapping[str, Any]) -> Program | None:
    """The program of an op's kernel for NumPy arrays with these facts, or Python numbers.

    None where the kernel cannot be followed, because it looks at numbers, writes in place, calls a function that is not known
    here, raises an error or does not do the same twice: then it has to be called as it is.

    >>> print(program_of(ad.registry["tanh"], [Fact((3,), np.dtype("float32"))], {}))
    v1 = np.tanh(v0)
    result v1
    >>> print(program_of(ad.registry["erf"], [Fact((3,), np.dtype("float32"))], {}))
    None
    """
    first = _trace(op, operands, attributes)
    if first is None or not first.calls:
        return first
    second = _trace(op, operands, attributes)  # what a kernel draws at random, or counts, differs now
    return first if second is not None and _alike(first, second) else None


def _trace(op: Op, operands: Sequence[Fact | float], attributes: Mapping[str, Any]) -> Program | None:
    tracer = Tracer()
    values = [tracer.value(*one) if isinstance(one, Fact) else tracer.number(one) for one in operands]
    try:
        result = tracer.run(op, values, attributes)
        shown = tracer.operand(result)
    except Exception:  # whatever a kernel does not do on a stand-in, it says better on arrays
        return None
    if tracer.is_refused or not isinstance(shown, (Value, int, float, np.generic, np.ndarray)):
        return None
    return Program(len(values), tuple(tracer.facts), tuple(tracer.calls), shown)


class Programs:
    """The programs of a graph's kernels: of calls that are alike the program is found once.

    >>> programs, fact = Programs(), Fact((3,), np.dtype("float32"))
    >>> programs.of(ad.registry["exp"], [fact], {}) is programs.of(ad.registry["exp"], [fact], {})
    True
    """

    def __init__(self) -> None:
        self._known: dict[Any, Program | None] = {}

    def of(self, op: Op, operands: Sequence[Fact | float], attributes: Mapping[str, Any]) -> Program | None:
        """As ``program_of``."""
        if not all(type(value) in _PLAIN for value in attributes.values()):
            return program_of(op, operands, attributes)
        numbers = tuple(one if isinstance(one, Fact) else repr(one) for one in operands)  # 1 is not 1.0, nor 0.0 −0.0
        key = op, numbers, repr(attributes) if attributes else ""
        if key not in self._known:
            self._known[key] = program_of(op, operands, attributes)
        return self._known[key]


_PLAIN = (int, float, bool, str, type(None))


def _alike(one: Program, other: Program) -> bool:
    """Whether two runs of a kernel did the same; NaN is equal to itself, and −0.0 not to 0.0."""
    same = len(one.calls) == len(other.calls) and _same(one.result, other.result)
    return same and all(map(_same_call, one.calls, other.calls))


def _same_call(one: NumPyCall, other: NumPyCall) -> bool:
    return one.function == other.function and _same(one.operands, other.operands) and _same(one.options, other.options)


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if type(one) is tuple or type(one) is list:
        return len(one) == len(other) and all(map(_same, one, other))
    if type(one) is dict:
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if type(one) is np.ndarray:
        return one is other or (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    return repr(one) == repr(other) if isinstance(one, (float, np.generic)) else bool(one == other)
