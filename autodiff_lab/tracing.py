"""Stand-ins for arrays: they know shape and dtype and no numbers, and note every call of NumPy that a kernel makes on them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .bindings import NO_ATTRIBUTES, readings
from .numpy_calls import DType, Fact, NumPyCall, Shape, Value, cast
from .traced_functions import ANSWERS, Untraceable, axes_of, full

if TYPE_CHECKING:
    from .operators import Op


class StandIn(NDArrayOperatorsMixin):
    """An array without numbers, as a kernel for NumPy sees it."""

    __slots__ = ("dtype", "number", "shape", "tracer")
    __hash__ = object.__hash__
    device = "cpu"

    def __init__(self, tracer: Tracer, number: int) -> None:
        self.tracer, self.number = tracer, number
        self.shape, self.dtype = tracer.facts[number]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one number."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers."""
        return self.size * self.itemsize

    @property
    def T(self) -> Any:
        """The array with its axes reversed: a view."""
        return np.transpose(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d array")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, index: Any) -> StandIn:
        parts = index if type(index) is tuple else (index,)
        if any(isinstance(part, StandIn) and part.dtype.kind == "b" for part in parts):
            self.refuse()  # how much a mask takes depends on its numbers
        return self.tracer.note_generic(operator.getitem, (self, index), is_view=True)

    def __pow__(self, exponent: Any) -> Any:
        """``ndarray.__pow__``, which has faster functions for some plain numbers."""
        known = _POWERS.get(float(exponent)) if type(exponent) in (int, float) else None
        if known is not None and (self.dtype.kind == "f" or (known is np.square and type(exponent) is int)):
            return known(self)
        return np.power(self, exponent)

    def astype(self, dtype: Any, copy: bool = True) -> StandIn:
        """``ndarray.astype``."""
        found = np.dtype(dtype)
        if found == self.dtype and not copy:
            return self
        return self.tracer.note(cast, (self, found), {}, Fact(self.shape, found), writes=True, is_elementwise=True)

    def reshape(self, *shape: Any) -> Any:
        """``ndarray.reshape``."""
        return np.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Any:
        """``ndarray.transpose``."""
        return np.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _METHODS:
            raise AttributeError(f"a stand-in has no {name!r}")
        return lambda *arguments, **options: getattr(np, name)(self, *arguments, **options)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
        if not options.keys() <= {"axis", "keepdims", "dtype", "casting", "axes"}:
            raise Untraceable(f"np.{ufunc.__name__} with {', '.join(options)}")
        if method == "__call__":
            return self.tracer.note_ufunc(ufunc, operands, options)
        if method == "reduce":
            return self.tracer.notereduction(ufunc, *operands, **options)
        raise Untraceable(f"np.{ufunc.__name__}.{method}")

    def __array_function__(self, function: Any, _types: Any, operands: Any, options: Any) -> Any:
        if function in ANSWERS:
            return ANSWERS[function](*operands, **options)
        if function not in _KNOWN:
            raise Untraceable(f"np.{function.__name__}")
        if function not in _OF_SEVERAL and any(map(_is_numbers, (*operands[1:], *options.values()))):
            self.refuse()  # such as how often np.repeat repeats
        return self.tracer.note_generic(function, operands, options, is_view=function in _VIEWS)

    def refuse(self, *_arguments: Any, **_options: Any) -> NoReturn:
        """What a stand-in cannot do: it has no numbers, and is not changed. A kernel that catches the error is not followed."""
        self.tracer.is_refused = True
        raise Untraceable("the kernel asks for numbers, or writes in place")

    __bool__ = __float__ = __int__ = __index__ = __array__ = __setitem__ = refuse
    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = __imatmul__ = refuse
    __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = refuse


_POWERS: dict[float, Any] = {2.0: np.square, 0.5: np.sqrt, -1.0: np.reciprocal, 1.0: np.positive}

_METHODS = frozenset(
    ["all", "any", "argmax", "argmin", "argsort", "clip", "cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min",
     "prod", "ravel", "repeat", "round", "squeeze", "std", "sum", "swapaxes", "take", "trace", "var"]
)  # fmt: skip

_VIEWS = frozenset([np.broadcast_to, np.diagonal, np.expand_dims, np.moveaxis, np.ravel, np.reshape, np.squeeze,
                    np.swapaxes, np.transpose])  # fmt: skip

# Functions whose result's shape and dtype follow from those of the operands, and which change nothing.
_KNOWN = _VIEWS | frozenset([
    np.argmax, np.argmin, np.argsort, np.clip, np.concatenate, np.cumprod, np.cumsum, np.diff, np.dot, np.einsum, np.flip,
    np.inner, np.kron, np.outer, np.pad, np.repeat, np.roll, np.round, np.sort, np.stack, np.std, np.take,
    np.take_along_axis, np.tensordot, np.tile, np.trace, np.tril, np.triu, np.var,
])  # fmt: skip

# Those of several arrays: no array among their operands says which shape the result has.
_OF_SEVERAL = frozenset([np.clip, np.concatenate, np.dot, np.einsum, np.inner, np.kron, np.outer, np.roll, np.stack, np.take,
                         np.take_along_axis, np.tensordot])  # fmt: skip

_TAKE_OUT = frozenset([np.clip, np.concatenate, np.cumprod, np.cumsum, np.round, np.stack, np.std, np.take, np.var])
_ELEMENTWISE = frozenset([np.clip, np.round])


@dataclass(frozen=True)
class WholeKernel:
    """A kernel that stand-ins cannot follow, as one function of its operands."""

    op: Op
    kernel: Callable[..., Any]
    attributes: Mapping[str, Any]

    def __hash__(self) -> int:
        return hash(self.kernel)

    @property
    def __name__(self) -> str:
        return f"ops.{self.op.name}"

    def __call__(self, *operands: Any) -> Any:
        """Run the kernel as dispatch would."""
        if self.op.declared is not None:
            operands = tuple(self.op.declared.converted(operands, self.attributes, np))
        return self.kernel(np, *operands, **self.attributes)


class Tracer:
    """What a kernel has done so far: its calls, and the facts of all values."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.calls: list[NumPyCall] = []
        self.is_refused = False  # whether the kernel asked for what stand-ins do not have

    def value(self, shape: Shape, dtype: DType) -> StandIn:
        """A stand-in for a new value."""
        self.facts.append(Fact(shape, dtype))
        return StandIn(self, len(self.facts) - 1)

    def number(self, number: Any) -> Any:
        """An operand that is a Python number: the kernel gets the number."""
        self.facts.append(Fact((), np.dtype(type(number))))
        return number

    def note_kernel(self, op: Op, operands: Sequence[Any], attributes: Mapping[str, Any]) -> StandIn:
        """A whole kernel as one call."""
        shape = op.infer_shape([getattr(one, "shape", ()) for one in operands], attributes)
        dtype = op.infer_dtype([getattr(one, "dtype", one) for one in operands], attributes)
        kernel = WholeKernel(op, op.kernel_for("cpu", operands), _with_defaults(op, attributes))
        return self.note(
            kernel, operands, {}, Fact(shape, dtype), is_elementwise=op.elementwise, is_view=bool(op.views)
        )

    def run(self, op: Op, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        """Run an op's kernel on stand-ins, as dispatch would on NumPy arrays."""
        full = _with_defaults(op, attributes)
        if op.declared is not None:
            operands = op.declared.converted(operands, full, np)
        return op.kernel_for("cpu", operands)(_NUMPY, *operands, **full)

    def operand(self, value: Any) -> Any:
        """An operand as a program notes it."""
        if isinstance(value, StandIn):
            if value.tracer is not self:
                raise Untraceable("a stand-in has outlived its kernel")
            return Value(value.number)
        return type(value)(map(self.operand, value)) if type(value) in (tuple, list) else value

    def note(
        self, function: Any, operands: Sequence[Any], options: Mapping[str, Any], fact: Fact, **kind: bool
    ) -> StandIn:
        """A call, and a stand-in for its result."""
        given = tuple(map(self.operand, operands))
        named = {name: self.operand(value) for name, value in options.items()}
        if any(isinstance(value, (Value, tuple, list)) and _holds_value(value) for value in named.values()):
            raise Untraceable("an array as an option")
        result = self.value(*fact)
        self.calls.append(NumPyCall(function, given, named, result.number, **kind))
        return result

    def note_ufunc(self, ufunc: np.ufunc, operands: Sequence[Any], options: Mapping[str, Any]) -> StandIn:
        """A ufunc on its operands."""
        if ufunc.nout != 1 or (ufunc.signature is not None and ufunc is not np.matmul) or not options.keys() <= _TYPES:
            raise Untraceable(f"np.{ufunc.__name__}")
        if not all(isinstance(one, (StandIn, int, float, np.generic, np.ndarray)) for one in operands):
            raise Untraceable("an operand that is no array")
        how = {name: value for name, value in options.items() if name == "casting"}
        if "dtype" in options:
            how["signature"] = (*[None] * len(operands), np.dtype(options["dtype"]))
        kinds = [one.dtype if hasattr(one, "dtype") else _kind(one) for one in operands]
        resolved = ufunc.resolve_dtypes((*kinds, None), **how)
        shapes = [getattr(one, "shape", ()) for one in operands]
        shape = np.broadcast_shapes(*shapes) if ufunc.signature is None else _matmul_shape(*shapes)
        is_elementwise = ufunc.signature is None
        return self.note(
            ufunc, operands, options, Fact(shape, resolved[-1]), writes=True, is_elementwise=is_elementwise
        )

    def notereduction(
        self, ufunc: np.ufunc, x: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False
    ) -> StandIn:
        """``ufunc.reduce``."""
        options: dict[str, Any] = {"axis": axis, "dtype": dtype, "keepdims": bool(keepdims)}
        one = ufunc.reduce(np.zeros((1,) * x.ndim, x.dtype), **options)  # refuses a wrong axis
        gone = axes_of(axis, x.ndim)
        kept = [(1 if place in gone else size) for place, size in enumerate(x.shape) if keepdims or place not in gone]
        return self.note(ufunc.reduce, (x,), options, Fact(tuple(kept), one.dtype), writes=True)

    def note_generic(
        self, function: Any, operands: Sequence[Any], options: Mapping[str, Any] = NO_ATTRIBUTES, is_view: bool = False
    ) -> StandIn:
        """A function of which only running it on zeros tells what its result looks like."""
        found = function(*map(_example, operands), **{name: _example(value) for name, value in options.items()})
        if not isinstance(found, (np.ndarray, np.generic)):
            raise Untraceable(f"{function.__name__} gives a {type(found).__name__}")
        kind = {"writes": function in _TAKE_OUT, "is_view": is_view, "is_elementwise": function in _ELEMENTWISE}
        return self.note(function, operands, options, Fact(found.shape, found.dtype), **kind)


def _with_defaults(op: Op, attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in op.attributes.items() if not op.is_required(name)} | dict(attributes)


_TYPES = {"dtype", "casting"}


def _kind(number: Any) -> Any:
    """A Python number as ``resolve_dtypes`` takes it."""
    return np.dtype(np.bool_) if type(number) is bool else type(number)


def _is_numbers(value: Any) -> bool:
    """Whether there is a stand-in in a value."""
    return any(map(_is_numbers, value)) if isinstance(value, (tuple, list)) else isinstance(value, StandIn)


def _holds_value(value: Any) -> bool:
    return any(map(_holds_value, value)) if isinstance(value, (tuple, list)) else isinstance(value, Value)


def _example(value: Any) -> Any:
    """Zeros in place of a stand-in, in the memory of one number."""
    if isinstance(value, StandIn):
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)
    return type(value)(map(_example, value)) if type(value) in (tuple, list) else value


def _matmul_shape(x: Shape, y: Shape) -> Shape:
    """The shape of a matrix product; NumPy's own would have to be computed."""
    if not x or not y or x[-1] != y[-2 if len(y) > 1 else 0]:
        raise Untraceable("no matrix product")
    rows, columns = x[-2:-1], y[-1:] if len(y) > 1 else ()
    return (*np.broadcast_shapes(x[:-2], y[:-2]), *rows, *columns)


class _NumPy:
    """NumPy, as a kernel is given it: its functions that would turn a stand-in into an array leave it as it is."""

    full = staticmethod(full)

    def __getattr__(self, name: str) -> Any:
        if name in ("asarray", "asanyarray", "array", "ascontiguousarray"):
            return _as_array(getattr(np, name))
        if name in ("random", "frombuffer", "nditer"):
            raise Untraceable(f"np.{name}")
        return getattr(np, name)


def _as_array(function: Callable[..., Any]) -> Callable[..., Any]:
    def convert(x: Any, dtype: Any = None, **options: Any) -> Any:
        if not isinstance(x, StandIn):
            return function(x, dtype=dtype, **options)
        if options:
            raise Untraceable(f"np.{function.__name__} with {', '.join(options)}")
        return x if dtype is None else x.astype(dtype, copy=False)

    return convert


_NUMPY = _NumPy()


def _read(op: Op, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """An op that a kernel calls: its kernel runs on the stand-ins as well; where that fails it is one call of the program."""
    tracer: Tracer = next(one.tracer for one in operands if isinstance(one, StandIn))
    facts, calls, is_refused = len(tracer.facts), len(tracer.calls), tracer.is_refused
    try:
        return tracer.run(op, operands, attributes)
    except Exception:
        del tracer.facts[facts:], tracer.calls[calls:]
        tracer.is_refused = is_refused
        return tracer.note_kernel(op, operands, attributes)


readings[StandIn] = _read
