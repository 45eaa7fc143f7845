"""The generated bindings of every op, and Python's and NumPy's operators on Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import events
from ..backend import device_named, is_elsewhere
from ..bindings import device_of
from ..operators import registry
from ..tensors import Tensor
from . import (  # noqa: F401  (importing a family registers its ops)
    activations,
    choices,
    contraction,
    convolution,
    diagonals,
    elementwise,
    exponentials,
    hyperbolic,
    indexing,
    joining,
    linalg,
    nn,
    norms,
    ordering,
    powers,
    products,
    rearrange,
    reduce,
    sliding,
    structure,
    transfer,
    trigonometric,
)
from .composed import composed_functions

_BINDINGS: dict[str, Any] = {name: known.binding for name, known in (*registry.items(), *composed_functions.items())}
globals().update(_BINDINGS)
__all__ = sorted(_BINDINGS)


def __getattr__(name: str) -> Any:
    """The binding of an op or composed function that was registered by a user."""
    found = registry.binding(name)
    if found is None:
        raise AttributeError(registry.unknown(name, __dir__()))
    return found


def __dir__() -> list[str]:
    return sorted({*registry.names(), *composed_functions})


# --------------------------------------------------------------------------- what Python's and NumPy's syntax means


def _reversed(binding: Any) -> Any:
    return lambda self, other: binding(other, self)


def _equal(self: Any, other: Any) -> Any:
    return False if other is None else _BINDINGS["equal"](self, other)


def _not_equal(self: Any, other: Any) -> Any:
    return True if other is None else _BINDINGS["not_equal"](self, other)


def _getitem(self: Any, index: Any) -> Any:
    inner = index.innermost() if isinstance(index, Tensor) else index
    not_here = hasattr(inner, "is_symbol") or is_elsewhere(inner)
    if not_here and index.dtype.kind in "iu":  # whole numbers that only a run of the graph, or a device, will know
        return _BINDINGS["take"](self, index, axis=0)
    return _BINDINGS["getitem"](self, index=_plain_index(index))


def _plain_index(index: Any) -> Any:
    """An index in which Tensors are replaced by their arrays."""
    if isinstance(index, tuple):
        return tuple(map(_plain_index, index))
    return index.numpy() if isinstance(index, Tensor) else index


def _reshape(self: Any, *shape: Any) -> Any:
    return _BINDINGS["reshape"](self, shape=shape[0] if len(shape) == 1 else shape)


def _transpose(self: Any, *axes: Any) -> Any:
    return _BINDINGS["transpose"](
        self, axes=axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
    )


def _to(self: Any, device: str) -> Any:
    """The value on another device, by ``ops.to_device``; the same object where it lies there already.

    Moving is recorded, so gradients flow back through it: to train on a device, make the leaf there.

    >>> import autodiff_lab as ad
    >>> x = ad.tensor([1.0, 2.0], requires_grad=True)
    >>> (x.to("sim:0") * 2.0).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """
    device = device_named(device)
    if device == device_of(self):
        return self
    moved = _BINDINGS["to_device"](self, device=device)
    if type(self) is Tensor:
        moved._name = self.name
    return moved


_NUMPY_NAMES = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "negative": "neg", "absolute": "abs",
    "fabs": "abs", "rint": "round", "amax": "max", "amin": "min",
}  # fmt: skip


def _numpy_function(function: Any) -> Any:
    """The op or composed function that stands for a function of NumPy, or None. Those of numpy.linalg differ in detail."""
    name = _NUMPY_NAMES.get(function.__name__, function.__name__)
    if getattr(function, "__module__", "numpy") != "numpy":
        return _linalg_norm if function is np.linalg.norm else None
    return registry.binding(name) or _BINDINGS.get(name)


def _linalg_norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    count = x.ndim if axis is None else 1 if isinstance(axis, int) else len(axis)
    if count > 1 and ord is not None:
        raise TypeError(
            "np.linalg.norm: norms of matrices have no gradient here; ops.norm takes all numbers as one vector"
        )
    return _BINDINGS["norm"](x, ord=2 if ord is None else ord, axis=axis, keepdims=keepdims)


def _array_ufunc(self: Any, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
    """``np.exp(tensor)`` and ``array * tensor`` are op calls; a function without an op works on constants only."""
    function = _numpy_function(ufunc)
    if method == "__call__" and not options and function is not None:
        return function(*operands)
    return _on_constants(getattr(ufunc, method), ufunc.__name__, operands, options)


def _array_function(self: Any, function: Any, types: Any, arguments: Any, options: Any) -> Any:
    known = _numpy_function(function)
    if known is not None:
        return known(*arguments, **options)
    return _on_constants(function, function.__name__, arguments, options)


def _on_constants(function: Any, name: str, arguments: Any, options: Any) -> Any:
    def plain(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(plain, value))
        if not isinstance(value, Tensor):
            return value.numpy() if hasattr(value, "is_symbol") else value
        if value.requires_grad:
            raise TypeError(
                f"np.{name} has no gradient here: use an op of ops, or .numpy() where none is meant to flow"
            )
        return value.numpy()

    return function(*plain(tuple(arguments)), **{key: plain(value) for key, value in options.items()})


_OPERATORS = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "power", "matmul": "matmul"}


def _in_place(name: str, binding: Any) -> Any:
    """``w -= step``: new data for a leaf under ``no_grad``; an error for a leaf that is being recorded; else a new Tensor."""

    def update(self: Any, other: Any) -> Any:
        if type(self) is not Tensor or not (self.requires_grad and self.is_leaf):
            return NotImplemented
        now = events.context.get()
        if now is None or now.records:
            raise TypeError(
                f"a leaf that requires a gradient is never changed in place: write it inside `with ad.no_grad():`, or give "
                f"it new data, as in w.data = w.data … ({name})"
            )
        self.data = binding(self.detach(), other)
        return self

    return update


_ONE_SIDED = {
    "neg": "neg",
    "abs": "abs",
    "round": "round",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_METHODS = (
    "abs", "all", "any", "argmax", "argmin", "argsort", "astype", "clip", "cumprod", "cumsum", "diagonal", "dot", "exp", "log",
    "max", "mean", "min", "prod", "ravel", "relu", "repeat", "round", "sigmoid", "softmax", "sqrt", "squeeze", "std", "sum",
    "swapaxes", "take", "tanh", "trace", "var",
)  # fmt: skip


def attach_operators(operand: type) -> None:
    """Give a class of operands Python's operators and NumPy's methods; the generated bindings are the methods themselves."""
    for name, op in _OPERATORS.items():
        setattr(operand, f"__{name}__", _BINDINGS[op])
        setattr(operand, f"__r{name}__", _reversed(_BINDINGS[op]))
        setattr(operand, f"__i{name}__", _in_place(f"__i{name}__", _BINDINGS[op]))
    for name, op in _ONE_SIDED.items():
        setattr(operand, f"__{name}__", _BINDINGS[op])
    for name in _METHODS:
        setattr(operand, name, _BINDINGS[name])
    methods = {
        "__eq__": _equal, "__ne__": _not_equal, "__getitem__": _getitem, "reshape": _reshape, "transpose": _transpose,
        "T": property(_transpose), "to": _to, "__array_ufunc__": _array_ufunc, "__array_function__": _array_function,
    }  # fmt: skip
    for name, method in methods.items():
        setattr(operand, name, method)


attach_operators(Tensor)
registry.reserve(composed_functions, "a function of autodiff_lab.ops that is made of ops")
registry.reserve(globals().keys() - _BINDINGS.keys(), "the module autodiff_lab.ops, where it means something else")
