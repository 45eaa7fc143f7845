"""CUDA C++ for elementwise ops: one expression becomes the kernel for the dtypes of a call, compiled when first called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from .backend import Array

if TYPE_CHECKING:
    from .operators import Binding, Op

# What a kernel is told of an operand: the dtype of an array, or the type of a Python number, which is passed by value.
Operand = np.dtype[Any] | type
DType = np.dtype[Any]

THREADS = 256  # in a block: a multiple of the 32 that run in step, and few enough for every GPU

C_TYPES = {
    "bool": "bool", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long long",
    "float32": "float", "float64": "double",
}  # fmt: skip

_SOURCE = """\
using T = {number};

__device__ {stored} formula({numbers})
{{
    return {expression};
}}

extern "C" __global__ void {name}_kernel({parameters}, {stored}* out, long long size)
{{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) out[i] = formula({given});
}}
"""


# ------------------------------------------------------------------------------------------------------- giving and showing


def cuda_expression(op: Binding, expression: str) -> None:
    """Give an elementwise op a CUDA kernel: the C++ expression for one number of its result.

    The expression reads the op's inputs by name. Each is a ``T``, which is ``float`` where the call computes in single
    precision and ``double`` where it computes in double precision; write constants as ``T(0.5)``. The mathematical functions
    have their names of C: ``exp``, ``fabs``, ``atan2``, …. A wrong expression is refused by the compiler at the first call.

    The kernel takes calls whose arrays have one shape and whose result is floating, or compares floating numbers. All others
    (broadcasting, whole numbers) go to the kernel for every array library. Half precision is computed in single.

    Raises:
        TypeError: the op is not elementwise, has attributes, or takes any number of inputs.

    >>> @ad.op(elementwise=True)
    ... def cube(xp, x):
    ...     return x * x * x
    >>> ad.cuda_expression(cube, "x * x * x")
    >>> print(ad.cuda_source(cube, "float32"))
    using T = float;
    <BLANKLINE>
    __device__ float formula(T x)
    {
        return x * x * x;
    }
    <BLANKLINE>
    extern "C" __global__ void cube_kernel(const float* x, float* out, long long size)
    {
        const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
        if (i < size) out[i] = formula(x[i]);
    }
    <BLANKLINE>
    """
    known = op.op
    if not known.elementwise or known.attributes or known.is_variadic:
        raise TypeError(
            f"op {known.name}: a CUDA expression is for an elementwise op of named inputs without attributes; for others "
            f'register a whole kernel with @{known.name}.kernel("cuda")'
        )
    kernel, caller = ElementwiseKernel(known, expression, known.kernels["any", None]), sys._getframe(1)
    op.kernel("cuda")(_as_function(kernel, caller.f_code, caller.f_lineno))


def cuda_source(op: Binding, dtype: Any = "float32") -> str:
    """The CUDA C++ that computes an op on arrays of one dtype.

    Raises:
        ValueError: CuPy's own functions compute it, because there is no CUDA expression or none for this dtype.
    """
    kernel = elementwise_kernel(op.op)
    if kernel is None:
        raise ValueError(f"op {op.op.name} has no CUDA expression; on CUDA devices CuPy's own functions compute it")
    signature = kernel.signature((np.dtype(dtype),) * len(op.op.inputs))
    if signature is None:
        raise ValueError(
            f"op {op.op.name} on {np.dtype(dtype)}: CuPy's own functions compute it; a CUDA expression is for floating dtypes"
        )
    return kernel.source(signature)


def elementwise_kernel(op: Op) -> ElementwiseKernel | None:
    """The kernel that an op has from a CUDA expression, or None."""
    found = getattr(op.kernels.get(("cuda", None)), "elementwise_kernel", None)
    return found if isinstance(found, ElementwiseKernel) else None


# --------------------------------------------------------------------------------------------------------------- the kernel


@dataclass(frozen=True)
class Signature:
    """The types that a kernel is compiled for."""

    operands: tuple[Operand, ...]  # as they are handed over: half precision already widened
    number: DType  # T, in which the expression is computed
    stored: DType  # what the kernel writes: truth values of a comparison, else T
    result: DType  # the op's own result dtype: half precision again, where that was widened


@dataclass(frozen=True)
class ElementwiseKernel:
    """An op's CUDA kernels for all dtypes. Each is compiled at its first call; CuPy keeps what it compiled for each device."""

    op: Op
    expression: str
    general: Callable[..., Array]
    signatures: dict[tuple[Operand, ...], Signature | None] = field(default_factory=dict)
    compiled: dict[Signature, Any] = field(default_factory=dict)

    def __call__(self, xp: ModuleType, *values: Any) -> Array:
        """Compute on CuPy arrays and Python numbers."""
        signature = self.signature(tuple(value.dtype if hasattr(value, "dtype") else type(value) for value in values))
        shapes = {value.shape for value in values if hasattr(value, "shape")}
        if signature is None or len(shapes) != 1:
            return self.general(xp, *values)
        out = xp.empty(shapes.pop(), signature.stored)
        if out.size:
            pairs = zip(values, signature.operands, strict=True)
            given = [
                xp.ascontiguousarray(value, operand) if isinstance(operand, np.dtype) else signature.number.type(value)
                for value, operand in pairs
            ]
            blocks = -(-out.size // THREADS)
            self._compiled(xp, signature)((blocks,), (THREADS,), (*given, out, np.int64(out.size)))
        return out.astype(signature.result, copy=False)

    def signature(self, operands: tuple[Operand, ...]) -> Signature | None:
        """The types of the kernel for such operands; None where it is not for them."""
        if operands not in self.signatures:  # finding them takes 7 µs, as long as launching a kernel
            self.signatures[operands] = _signature(self.op, operands)
        return self.signatures[operands]

    def source(self, signature: Signature) -> str:
        """The kernel's CUDA C++."""
        number, stored = C_TYPES[signature.number.name], C_TYPES[signature.stored.name]
        operands = dict(zip(self.op.inputs, signature.operands, strict=True))
        return _SOURCE.format(
            name=self.op.name,
            number=number,
            stored=stored,
            expression=self.expression,
            numbers=", ".join(f"T {name}" for name in operands),
            parameters=", ".join(
                f"const {C_TYPES[operand.name]}* {name}" if isinstance(operand, np.dtype) else f"{number} {name}"
                for name, operand in operands.items()
            ),
            given=", ".join(
                f"{name}[i]" if isinstance(operand, np.dtype) else name for name, operand in operands.items()
            ),
        )

    def _compiled(self, xp: ModuleType, signature: Signature) -> Any:
        if signature not in self.compiled:
            kernel = xp.RawKernel(self.source(signature), f"{self.op.name}_kernel")
            try:
                kernel.compile()
            except xp.cuda.compiler.CompileException as error:
                raise ValueError(f"its CUDA expression {self.expression!r} does not compile: {error}") from error
            self.compiled[signature] = kernel
        return self.compiled[signature]


def _signature(op: Op, operands: tuple[Operand, ...]) -> Signature | None:
    facts = [operand if isinstance(operand, np.dtype) else operand(0) for operand in operands]
    result = op.infer_dtype(facts, {})
    number = np.dtype(np.result_type(*facts)) if result.kind == "b" else result
    if number not in (np.float16, np.float32, np.float64):
        return None
    wide = np.promote_types(number, np.float32)
    given = tuple(np.dtype(np.float32) if operand == np.float16 else operand for operand in operands)
    return Signature(given, wide, result if result.kind == "b" else wide, result)


def _as_function(kernel: ElementwiseKernel, place: CodeType, line: int) -> FunctionType:
    """A plain function ``kernel(xp, x, y)`` with the op's own parameters, which is what registering takes.

    Its code claims to stand where the expression was given, so that a traceback shows that line.
    """
    name, parameters = f"{kernel.op.name}_cuda", ("xp", *kernel.op.inputs)
    code = _call_code(len(kernel.op.inputs)).replace(
        co_name=name, co_qualname=name, co_varnames=parameters, co_filename=place.co_filename, co_firstlineno=line
    )
    function = FunctionType(code, {"_kernel": kernel}, name)
    function.__doc__ = f"{kernel.expression}, in CUDA C++."
    function.elementwise_kernel = kernel  # type: ignore[attr-defined]
    return function


@cache
def _call_code(inputs: int) -> CodeType:
    """Code that calls ``_kernel``; compiled once for all ops with so many inputs, because that is what takes time."""
    parameters = ", ".join(["xp", *(f"_{place}" for place in range(inputs))])
    namespace: dict[str, Any] = {}
    exec(f"def kernel({parameters}): return _kernel({parameters})", namespace)
    code: CodeType = namespace["kernel"].__code__
    return code
