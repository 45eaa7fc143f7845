"""Kernels in C or C++: what a function in C says by its parameters, and how it is called like a kernel in Python."""

from __future__ import annotations

import ctypes
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .compilers import CompileError, Language, shared_library

_C_TYPES: dict[str, tuple[str, Any]] = {
    "float": ("float32", ctypes.c_float), "double": ("float64", ctypes.c_double), "int8_t": ("int8", ctypes.c_int8),
    "int16_t": ("int16", ctypes.c_int16), "int32_t": ("int32", ctypes.c_int32), "int64_t": ("int64", ctypes.c_int64),
    "uint8_t": ("uint8", ctypes.c_uint8), "bool": ("bool", ctypes.c_bool),
}  # fmt: skip
_PARAMETER = re.compile(r"(const\s+)?(\w+)\s*(\*?)\s*(?:__restrict(?:__)?\s+|restrict\s+)?(\w+)")
_EXAMPLE = "void scale(int64_t y_size, const float* x, float alpha, float* y)"


def native_kernel(
    source: str, *, language: Language = "c++", result_shape: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Compile a kernel in C or C++, for ``@op.kernel("cpu", dtype=…)``.

    The source has one function that returns void and whose parameters say by type and name what they are:

    * ``const float* x``: the input x, of that dtype and with its numbers one after the other;
    * ``float* y``: an output, which the function fills;
    * ``float alpha``: an attribute;
    * ``int64_t y_size``, ``int64_t x_ndim``, ``const int64_t* x_shape``: facts about an input or output.

    Types are float, double, bool, int8_t to int64_t and uint8_t. A C++ function is declared ``extern "C"``. The kernel knows
    nothing of Python and runs while other threads compute.

    Args:
        source: the text; ``<stdint.h>`` is included.
        language: ``c++`` or ``c``.
        result_shape: the output's shape from one shape per input (the op's shape rule will do). Without it inputs are
            broadcast to a common shape, which the output has too. With several outputs all have that shape.

    Raises:
        NoCompilerError: there is no compiler on this machine; ``find_compiler()`` tells beforehand.
        CompileError: the compiler refused the source; the text is its message.

    >>> if ad.find_compiler():
    ...     scale = native_kernel('''
    ...         extern "C" void scale(int64_t y_size, const float* x, float alpha, float* y) {
    ...             for (int64_t i = 0; i < y_size; i++) y[i] = alpha * x[i];
    ...         }
    ...     ''')
    ...     assert scale(np, np.ones(2, np.float32), alpha=3.0).tolist() == [3.0, 3.0]
    """
    prototype = _prototype(source)
    function = _function(_loaded(source, language), prototype.name)
    function.restype = None
    run = _Runner(prototype, function, result_shape)
    namespace: dict[str, Any] = {"_run": run}
    inputs, attributes = prototype.inputs, prototype.attributes
    keywords = ", ".join(["*", *attributes]) if attributes else ""
    passed = "{" + ", ".join(f"{name!r}: {name}" for name in attributes) + "}"
    head = ", ".join(["xp", *inputs, *([keywords] if keywords else [])])
    text = f"def {prototype.name}({head}):\n    return _run(({', '.join(inputs)},), {passed})\n"
    exec(compile(text, f"<native kernel {prototype.name}>", "exec"), namespace)
    kernel: Callable[..., Any] = namespace[prototype.name]
    kernel.__doc__ = source
    return kernel


# ------------------------------------------------------------------------------------------------------- the prototype


@dataclass(frozen=True)
class _Parameter:
    """One parameter of the C function: what it is, and of which input or output."""

    role: Literal["input", "output", "attribute", "size", "ndim", "shape"]
    name: str
    type: str

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(_C_TYPES[self.type][0])

    @property
    def c_type(self) -> Any:
        return _C_TYPES[self.type][1]


@dataclass(frozen=True)
class _Prototype:
    """The C function's name and parameters."""

    name: str
    parameters: tuple[_Parameter, ...]

    def named(self, role: str) -> tuple[str, ...]:
        return tuple(one.name for one in self.parameters if one.role == role)

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.named("input")

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.named("attribute")

    @property
    def outputs(self) -> tuple[_Parameter, ...]:
        return tuple(one for one in self.parameters if one.role == "output")


def _prototype(source: str) -> _Prototype:
    """Read the last function that returns void: functions before it may be its own."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.DOTALL)
    found = re.findall(r"\bvoid\s+(\w+)\s*\(([^)]*)\)\s*\{", code)
    if not found:
        raise CompileError(f"native_kernel: no function that returns void; write one, as in: {_EXAMPLE} {{ … }}")
    name, text = found[-1]
    parts = [part.strip() for part in text.split(",") if part.strip()]
    prototype = _Prototype(name, tuple(_parameter(name, part) for part in parts))
    arrays = {one.name for one in prototype.parameters if one.role in ("input", "output")}
    if not prototype.inputs or not prototype.outputs:
        raise CompileError(
            f"native_kernel: {name} needs an input (const float* x) and an output (float* y): {_EXAMPLE}"
        )
    for word in (name, *prototype.inputs, *prototype.attributes):
        if word == "xp" or word.startswith("_") or keyword.iskeyword(word):
            raise CompileError(f"native_kernel: the name {word!r} means something else to a kernel; choose another")
    for one in prototype.parameters:
        if one.role in ("size", "ndim", "shape") and one.name not in arrays:
            raise CompileError(
                f"native_kernel: {name} asks for the {one.role} of {one.name}, but its arrays are {', '.join(sorted(arrays))}"
            )
    return prototype


def _parameter(function: str, text: str) -> _Parameter:
    found = _PARAMETER.fullmatch(text)
    if found is None or found[2] not in _C_TYPES:
        raise CompileError(
            f"native_kernel: cannot read the parameter {text!r} of {function}; its type is one of {', '.join(_C_TYPES)}, with "
            f"const and * for an input, * for an output: {_EXAMPLE}"
        )
    constant, kind, pointer, name = bool(found[1]), found[2], bool(found[3]), found[4]
    if pointer and constant and kind == "int64_t" and name.endswith("_shape"):
        return _Parameter("shape", name.removesuffix("_shape"), kind)
    if pointer:
        return _Parameter("input" if constant else "output", name, kind)
    for fact in ("size", "ndim"):
        if kind == "int64_t" and name.endswith(f"_{fact}"):
            return _Parameter(fact, name.removesuffix(f"_{fact}"), kind)
    return _Parameter("attribute", name, kind)


# ------------------------------------------------------------------------------------------------------------- calling


def _loaded(source: str, language: Language) -> ctypes.CDLL:
    """The compiled library; made again where its file was cut off, as by a full disk."""
    path = shared_library(source, language)
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        path.unlink(missing_ok=True)
        return ctypes.CDLL(str(shared_library(source, language)))


def _function(library: ctypes.CDLL, name: str) -> Any:
    try:
        return getattr(library, name)
    except AttributeError:
        raise CompileError(
            f'native_kernel: the compiler gave {name} another name, as C++ does; declare it extern "C" void {name}(…)'
        ) from None


@dataclass(frozen=True)
class _Runner:
    """Calls the C function: checks what goes in, allocates what comes out."""

    prototype: _Prototype
    function: Any
    result_shape: Callable[..., Any] | None

    def __call__(self, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        named = {
            name: self._array(name, operand) for name, operand in zip(self.prototype.inputs, operands, strict=True)
        }
        shape = self._shape(named, attributes)
        if self.result_shape is None:
            named = {name: np.broadcast_to(array, shape) for name, array in named.items()}
        named = {
            name: np.ascontiguousarray(array).reshape(array.shape) for name, array in named.items()
        }  # 0-d stays 0-d
        outputs = {one.name: np.empty(shape, one.dtype) for one in self.prototype.outputs}
        self.function(*(self._passed(one, named | outputs, attributes) for one in self.prototype.parameters))
        results = tuple(outputs.values())
        return results[0] if len(results) == 1 else results

    def _array(self, name: str, operand: Any) -> Any:
        (expected,) = (one.dtype for one in self.prototype.parameters if one.role == "input" and one.name == name)
        array = np.asarray(operand, expected) if isinstance(operand, (int, float)) else operand
        array = np.asarray(array) if isinstance(array, np.generic) else array
        if type(array) is not np.ndarray or array.dtype != expected:
            found = getattr(operand, "dtype", type(operand).__name__)
            raise TypeError(
                f"kernel {self.prototype.name} is compiled for {expected} arrays, and {name} is {found}; register it with "
                f'@op.kernel("cpu", dtype="{expected}"), or convert {name}'
            )
        return array

    def _shape(self, named: Mapping[str, Any], attributes: Mapping[str, Any]) -> tuple[int, ...]:
        shapes = [array.shape for array in named.values()]
        if self.result_shape is None:
            return np.broadcast_shapes(*shapes)
        code = self.result_shape.__code__
        wanted = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        return tuple(self.result_shape(*shapes, **{name: attributes[name] for name in wanted}))

    def _number(self, one: _Parameter, value: Any) -> Any:
        """An attribute as a number of C, which would wrap around without a word where it is too large."""
        try:
            number = one.c_type(value)
        except TypeError:
            number = None
        if number is None or (one.dtype.kind != "f" and number.value != value):
            raise TypeError(
                f"kernel {self.prototype.name} takes {one.type} {one.name}, got {value!r}; give a number that fits, or "
                "declare another type"
            )
        return number

    def _passed(self, one: _Parameter, arrays: Mapping[str, Any], attributes: Mapping[str, Any]) -> Any:
        if one.role == "attribute":
            return self._number(one, attributes[one.name])
        array = arrays[one.name]
        if one.role in ("input", "output"):
            return ctypes.c_void_p(array.ctypes.data)
        if one.role == "shape":
            return (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
        return ctypes.c_int64(array.size if one.role == "size" else array.ndim)
