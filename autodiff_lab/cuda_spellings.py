"""Calls of NumPy in CUDA C++: an op's own expression where it has one, else a spelling for each ufunc."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .cuda_kernels import C_TYPES, ElementwiseKernel, Signature, elementwise_kernel
from .kernel_programs import Programs
from .loop_programs import NotALoop
from .numpy_calls import DType, Fact, NumPyCall, Program, Value, cast, name_of, select
from .operators import Op
from .tracing import WholeKernel

Array = Any

# --------------------------------------------------------------------------------------------- the ops' own expressions


@dataclass(frozen=True)
class Formula:
    """An op's CUDA expression, for the dtypes of a call, as one function of a program."""

    kernel: ElementwiseKernel
    signature: Signature

    def __hash__(self) -> int:
        return hash((self.kernel.op.name, self.signature))

    def __call__(self, *operands: Any) -> Any:
        """What the expression stands for, on NumPy arrays."""
        return self.kernel.general(np, *operands)

    @property
    def __name__(self) -> str:
        return f"{self.kernel.op.name.replace('.', '_')}_formula"


class CudaPrograms(Programs):
    """Programs for a CUDA device: an op's CUDA expression where it has one, else what its kernel does."""

    def of(self, op: Op, operands: Sequence[Fact | float], attributes: Mapping[str, Any]) -> Program | None:
        """The program of a call.

        Raises:
            NotALoop: the op has a kernel for CUDA devices that is no expression.
        """
        kernel = elementwise_kernel(op)
        if kernel is None and any(device == "cuda" for device, _ in op.kernels):
            raise NotALoop(f"op {op.name} has a kernel of its own for CUDA devices")
        formula = _formula(op, operands)
        if formula is None:
            return _with_formulas(super().of(op, operands, attributes))
        shape = np.broadcast_shapes(*(one.shape for one in operands if isinstance(one, Fact)))
        facts = [one if isinstance(one, Fact) else Fact((), np.dtype(type(one))) for one in operands]
        given = tuple(Value(place) if isinstance(one, Fact) else one for place, one in enumerate(operands))
        call = NumPyCall(formula, given, {}, len(facts), is_elementwise=True)
        return Program(len(facts), (*facts, Fact(shape, formula.signature.result)), (call,), Value(len(facts)))


def _formula(op: Op, operands: Sequence[Fact | float]) -> Formula | None:
    """An op's expression for operands with these facts; None where it has none, or none for these."""
    kernel = elementwise_kernel(op)
    signature = kernel and kernel.signature(tuple(o.dtype if isinstance(o, Fact) else type(o) for o in operands))
    return Formula(kernel, signature) if kernel is not None and isinstance(signature, Signature) else None


def _with_formulas(program: Program | None) -> Program | None:
    """A program in which kernels that could not be followed are their ops' expressions."""
    if program is None or not any(isinstance(call.function, WholeKernel) for call in program.calls):
        return program
    calls = []
    for call in program.calls:
        if isinstance(call.function, WholeKernel):
            facts = [program.facts[one.number] if isinstance(one, Value) else one for one in call.operands]
            function = _formula(call.function.op, facts) or call.function
            call = NumPyCall(function, call.operands, call.options, call.result, is_elementwise=call.is_elementwise)
        calls.append(call)
    return Program(program.inputs, program.facts, tuple(calls), program.result)


# ------------------------------------------------------------------------------------------------------ NumPy in C++

_SAME = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "sinh", "cosh", "tanh",
         "floor", "ceil", "rint", "trunc", "fabs", "hypot", "isfinite"]  # fmt: skip
_RENAMED = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
            "arctan2": "atan2"}  # fmt: skip
_BETWEEN = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "less": "<", "less_equal": "<=", "greater": ">",
            "greater_equal": ">=", "equal": "==", "not_equal": "!=", "logical_and": "&&", "logical_or": "||"}  # fmt: skip
_FORMULAS = {
    "negative": "-{0}", "positive": "{0}", "square": "{0} * {0}", "reciprocal": "1 / {0}", "isnan": "{0} != {0}",
    "logical_not": "!{0}", "absolute": "({0} < 0 ? -{0} : {0})",
    "maximum": "({0} > {1} || {0} != {0} ? {0} : {1})", "minimum": "({0} < {1} || {0} != {0} ? {0} : {1})",
    "sign": "({0} > 0 ? 1 : {0} < 0 ? -1 : {0})",
}  # fmt: skip
_FLOATING_ONLY = {"absolute": "fabs({0})", "power": "pow({0}, {1})",
                  "logaddexp": "({0} == {1} ? {0} + log({T}(2)) : fmax({0}, {1}) + log1p(exp(-fabs({0} - {1}))))",
                  "sign": "({0} > 0 ? {T}(1) : {0} < 0 ? {T}(-1) : {0})"}  # fmt: skip

UFUNCS: dict[str, str] = {
    **{name: f"{name}({{0}})" for name in _SAME},
    **{name: f"{c}({{0}})" for name, c in _RENAMED.items()},
    **{name: f"{{0}} {sign} {{1}}" for name, sign in _BETWEEN.items()},
    **_FORMULAS,
    "hypot": "hypot({0}, {1})",
    "arctan2": "atan2({0}, {1})",
}
BOOLEANS = {"add": "{0} || {1}", "multiply": "{0} && {1}", "maximum": "{0} || {1}", "minimum": "{0} && {1}",
            "absolute": "{0}", "positive": "{0}"}  # fmt: skip


def wide(dtype: DType) -> DType:
    """The dtype in which a kernel keeps a value: single precision for half."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def c_type(dtype: DType) -> str:
    """The name of a dtype in C++."""
    return C_TYPES[wide(dtype).name]


def expression(call: NumPyCall, names: Callable[[Any, DType], str], facts: Sequence[Fact]) -> str:
    """A call as an expression of C++; ``names(operand, dtype)`` gives an operand converted to a dtype.

    Raises:
        NotALoop: C++ has no word for it.
    """
    function, result = call.function, facts[call.result].dtype
    if isinstance(function, Formula):
        given = [names(one, function.signature.number) for one in call.operands]
        return f"{function.__name__}({', '.join(given)})"
    if function is cast:
        return names(call.operands[0], result)
    if function is select:
        condition, x, y = call.operands
        return f"({names(condition, np.dtype(bool))} ? {names(x, result)} : {names(y, result)})"
    if function is np.clip:
        return _clipped(call, names, result)
    if function is np.round and len(call.operands) == 2 and call.operands[1] == 0 and result.kind == "f":
        return f"rint({names(call.operands[0], result)})"
    if isinstance(function, np.ufunc) and not call.options:
        return _ufunc(function, call, names, facts)
    raise NotALoop(f"C++ has no word for {name_of(function)}")


def _ufunc(function: np.ufunc, call: NumPyCall, names: Callable[[Any, DType], str], facts: Sequence[Fact]) -> str:
    kinds = [facts[o.number].dtype if isinstance(o, Value) else getattr(o, "dtype", type(o)) for o in call.operands]
    *wanted, _ = function.resolve_dtypes((*(np.dtype(bool) if kind is bool else kind for kind in kinds), None))
    kind = wanted[0].kind
    table = UFUNCS | (_FLOATING_ONLY if kind == "f" else BOOLEANS if kind == "b" else {})
    if function.__name__ not in table or (kind == "b" and function.__name__ in ("subtract", "negative", "square")):
        raise NotALoop(f"C++ has no word for {name_of(function)} on {wanted[0]}")
    given = [names(one, dtype) for one, dtype in zip(call.operands, wanted, strict=True)]
    return table[function.__name__].format(*given, T=c_type(wanted[0]))


def _clipped(call: NumPyCall, names: Callable[[Any, DType], str], result: DType) -> str:
    x, low, high = (*call.operands, None, None)[:3]
    found = names(x, result)
    for name, bound in (("maximum", low), ("minimum", high)):
        if bound is not None:
            found = UFUNCS[name].format(f"({found})", names(bound, result))
    return found


def literal(value: Any, dtype: DType) -> str:
    """A number as C++ writes it, of a dtype."""
    number = np.asarray(value, wide(dtype)).item()
    name = c_type(dtype)
    if isinstance(number, float) and not math.isfinite(number):
        sign = "-" if number < 0 else ""
        return f"(({name})({'0.0' if math.isnan(number) else sign + '1.0'} / 0.0))"
    text = str(number).lower() if isinstance(number, bool) else repr(number)
    return (
        f"(({name})({text}))"
        if isinstance(number, float)
        else f"(({name}){text})"
        if number >= 0
        else f"(({name})({text}))"
    )
