"""Fused groups as one CUDA kernel: C++ for one number of the loop, with an index for each operand that is repeated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from .block_programs import BlockProgram, spread
from .cuda_kernels import THREADS
from .cuda_spellings import CudaPrograms as CudaPrograms
from .cuda_spellings import Formula, c_type, expression, literal, wide
from .loop_blocks import MergedAxes, merge
from .numpy_calls import DType, NumPyCall, Shape, Value, cast, select, values_in

Array = Any

# ------------------------------------------------------------------------------------------------------------ the kernel


@dataclass(frozen=True)
class CudaSource:
    """The text of a group's kernel; ``reads`` and ``writes`` number the values behind its pointers, in order."""

    text: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]


def cuda_source(program: BlockProgram, comments: Mapping[int, str], name: str = "fused_kernel") -> CudaSource:
    """The kernel of a group: one thread for each number of the loop. What is reduced is written in full.

    Raises:
        NotALoop: C++ has no word for a call, or a dtype.
    """
    facts = program.facts
    own = {call.result for call in program.each}
    reads = tuple(dict.fromkeys(n for call in program.each for n in values_in(call.operands) if n not in own))
    reduced = [one.operand.number for one in program.reductions]
    writes = tuple(dict.fromkeys([*program.whole, *(n for n in reduced if n in own)]))
    merged = merge(program.shape, [facts[n].shape for n in reads], [])

    def named(operand: Any, dtype: DType) -> str:
        if not isinstance(operand, Value):
            return literal(operand, dtype)
        held = wide(facts[operand.number].dtype)
        return f"v{operand.number}" if held == wide(dtype) else f"(({c_type(dtype)})v{operand.number})"

    lines = [f"const {c_type(facts[n].dtype)} v{n} = x{n}[{index(merged, facts[n].shape)}];" for n in reads]
    formulas: dict[str, None] = {}  # texts: one serves all calls of its types
    for call in program.each:
        if isinstance(call.function, Formula):
            formulas[_function(call.function)] = None
        held, comment = c_type(facts[call.result].dtype), comments.get(call.result, "")
        lines.append(
            f"const {held} v{call.result} = {expression(call, named, facts)};" + (f"  // {comment}" if comment else "")
        )
    lines += [f"y{n}[i] = v{n};" for n in writes]
    parameters = [f"const {c_type(facts[n].dtype)}* x{n}" for n in reads]
    parameters += [f"{c_type(facts[n].dtype)}* y{n}" for n in writes]
    text = _KERNEL.format(
        formulas="".join(formulas), name=name, parameters=", ".join([*parameters, "long long size"]),
        lines="\n    ".join(lines),
    )  # fmt: skip
    return CudaSource(text, reads, writes)


_KERNEL = """\
{formulas}extern "C" __global__ void {name}({parameters})
{{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    {lines}
}}
"""


def _function(formula: Formula) -> str:
    """The C++ function of an op's expression."""
    signature = formula.signature
    number, stored = c_type(signature.number), c_type(signature.stored)
    parameters = ", ".join(f"{number} {name}" for name in formula.kernel.op.inputs)
    return (
        f"__device__ {stored} {formula.__name__}({parameters})\n{{\n    using T = {number};\n"
        f"    return {formula.kernel.expression};\n}}\n\n"
    )


def index(merged: MergedAxes, shape: Shape) -> str:
    """Where number ``i`` of the loop stands in an operand of some shape.

    >>> loop = merge((4, 5, 6), [(4, 5, 6), (6,), (4, 1, 1), (4, 1, 6), ()], [])
    >>> [index(loop, shape) for shape in [(4, 5, 6), (6,), (4, 1, 1), (4, 1, 6), ()]]
    ['i', 'i % 6', 'i / 30', 'i / 30 * 6 + i % 6', '0']
    """
    sizes, own = merged.shape, merged.of(shape)
    if own == sizes:
        return "i"
    terms = []
    for place, size in enumerate(own):
        if size == 1:
            continue
        below, step = math.prod(sizes[place + 1 :]), math.prod(own[place + 1 :])
        at = f"i / {below}" if below > 1 else "i"
        at += f" % {size}" if place else ""
        terms.append(at if step == 1 else f"{at} * {step}")
    return " + ".join(terms) or "0"


# --------------------------------------------------------------------------------------------------------------- running


class CudaLoop:
    """A group's kernel and what runs before and after it, on CuPy's arrays."""

    def __init__(self, program: BlockProgram, comments: Mapping[int, str]) -> None:
        self.program, self.source = program, cuda_source(program, comments)
        self._compiled: dict[int, Any] = {}

    def __call__(self, xp: ModuleType, arrays: Sequence[Array], out: Sequence[Array | None]) -> tuple[Array, ...]:
        """Run it with an array library that has ``RawKernel``."""
        program, facts = self.program, self.program.facts
        values: dict[int, Any] = dict(enumerate(arrays))
        self._run(xp, program.before, values)
        values |= self._launched(xp, values)
        for one in program.reductions:
            total = _reduced(xp, one.ufunc, values[one.operand.number], tuple(sorted(one.axes)), one.dtype)
            values[one.result] = total.reshape(facts[one.result].shape).astype(facts[one.result].dtype, copy=False)
        self._run(xp, program.after, values)
        outputs = [values[one.number] for one in program.outputs]
        for place, given in enumerate(out):
            if given is not None:
                given[...] = outputs[place]
                outputs[place] = given
        return tuple(outputs)

    def _launched(self, xp: ModuleType, values: Mapping[int, Any]) -> dict[int, Array]:
        facts, size = self.program.facts, math.prod(self.program.shape)
        made = {n: xp.empty(self.program.shape, wide(facts[n].dtype)) for n in self.source.writes}
        if size and made:
            given = [xp.ascontiguousarray(values[n], wide(facts[n].dtype)) for n in self.source.reads]
            self._kernel(xp)((-(-size // THREADS),), (THREADS,), (*given, *made.values(), np.int64(size)))
        return {n: array.astype(facts[n].dtype, copy=False) for n, array in made.items()}

    def _kernel(self, xp: ModuleType) -> Any:
        """The compiled kernel; a library keeps what it compiled for each of its devices."""
        if id(xp) not in self._compiled:
            kernel = xp.RawKernel(self.source.text, "fused_kernel")
            try:
                kernel.compile()
            except xp.cuda.compiler.CompileException as error:
                raise ValueError(f"a fused kernel does not compile: {error}\n{self.source.text}") from error
            self._compiled[id(xp)] = kernel
        return self._compiled[id(xp)]

    def _run(self, xp: ModuleType, calls: Sequence[NumPyCall], values: dict[int, Any]) -> None:
        for call in calls:
            operands = [values[o.number] if isinstance(o, Value) else _number(o) for o in call.operands]
            values[call.result] = _on_library(xp, call.function, operands, call.options)


_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_or": "any",
    "logical_and": "all",
}


def _number(operand: Any) -> Any:
    return operand[()] if isinstance(operand, np.ndarray) and not operand.ndim else operand


def _on_library(xp: ModuleType, function: Any, operands: Sequence[Any], options: Mapping[str, Any]) -> Array:
    """One call of a program with the functions of another array library."""
    if isinstance(function, Formula):
        return function.kernel.general(xp, *operands)
    if function is cast:
        return xp.asarray(operands[0]).astype(operands[1])
    if function is select:
        return xp.where(*operands)
    if function is spread:
        return xp.array(xp.broadcast_to(xp.asarray(operands[0], operands[2]), operands[1]))
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc):
        return _reduced(xp, owner, operands[0], options["axis"], options["dtype"], options["keepdims"])
    return getattr(xp, function.__name__)(*operands, **options)


def _reduced(xp: ModuleType, ufunc: np.ufunc, x: Array, axis: Any, dtype: Any, keepdims: bool = False) -> Array:
    """``ufunc.reduce`` by the function that other array libraries have for it."""
    options = {"dtype": dtype} if ufunc in (np.add, np.multiply) else {}
    return getattr(xp, _REDUCTIONS[ufunc.__name__])(x, axis=axis, keepdims=keepdims, **options)
