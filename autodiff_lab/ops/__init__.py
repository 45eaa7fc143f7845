"""The generated bindings of every op, and Python's and NumPy's operators on Tensors."""

from __future__ import annotations

from typing import Any

from ..operators import registry
from ..tensors import Tensor
from . import elementwise, linalg, reduce, structure
from .elementwise import (
    add,
    astype,
    div,
    equal,
    exp,
    greater,
    greater_equal,
    less,
    less_equal,
    log,
    maximum,
    mul,
    neg,
    not_equal,
    power,
    relu,
    sigmoid,
    sub,
    tanh,
    where,
)
from .linalg import matmul
from .reduce import mean, sum
from .structure import add_at, broadcast_to, getitem, ones_like, reshape, sum_to, transpose, zeros_like

BUILT_IN = tuple(registry)  # what ops/__init__.pyi declares


def __getattr__(name: str) -> Any:
    """The binding of an op that was registered by a user."""
    if name in registry:
        return registry[name].binding
    raise AttributeError(f"no op named {name!r}; registered are: {', '.join(sorted(registry))}")


def __dir__() -> list[str]:
    return sorted(registry)


# --------------------------------------------------------------------------- what Python's and NumPy's syntax means


def _reversed(binding: Any) -> Any:
    return lambda self, other: binding(other, self)


def _equal(self: Any, other: Any) -> Any:
    return False if other is None else equal(self, other)


def _not_equal(self: Any, other: Any) -> Any:
    return True if other is None else not_equal(self, other)


def _getitem(self: Any, index: Any) -> Any:
    return getitem(self, index=_plain_index(index))


def _plain_index(index: Any) -> Any:
    """An index in which Tensors are replaced by their arrays."""
    if isinstance(index, tuple):
        return tuple(map(_plain_index, index))
    return index.numpy() if isinstance(index, Tensor) else index


def _reshape(self: Any, *shape: Any) -> Any:
    return reshape(self, shape=shape[0] if len(shape) == 1 else shape)


def _transpose(self: Any, *axes: Any) -> Any:
    return transpose(self, axes=axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None)


_NUMPY_NAMES = {"subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "negative": "neg"}


def _array_ufunc(self: Any, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
    """``np.exp(tensor)`` and ``array * tensor`` are op calls; a function without an op works on constants only."""
    name = _NUMPY_NAMES.get(ufunc.__name__, ufunc.__name__)
    if method == "__call__" and not options and name in registry:
        return registry[name].binding(*operands)
    return _on_constants(getattr(ufunc, method), ufunc.__name__, operands, options)


def _array_function(self: Any, function: Any, types: Any, arguments: Any, options: Any) -> Any:
    if function.__name__ in registry:
        return registry[function.__name__].binding(*arguments, **options)
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


def attach_operators(operand: type) -> None:
    """Give a class of operands Python's operators and NumPy's methods; the generated bindings are the methods themselves."""
    for name, binding in {"add": add, "sub": sub, "mul": mul, "truediv": div, "pow": power, "matmul": matmul}.items():
        setattr(operand, f"__{name}__", binding)
        setattr(operand, f"__r{name}__", _reversed(binding))
    for name, binding in {"neg": neg, "lt": less, "le": less_equal, "gt": greater, "ge": greater_equal}.items():
        setattr(operand, f"__{name}__", binding)
    for binding in (exp, log, tanh, relu, sigmoid, sum, mean, astype):
        setattr(operand, binding.op.name, binding)
    for name, method in {"__eq__": _equal, "__ne__": _not_equal, "__getitem__": _getitem, "reshape": _reshape,
                         "transpose": _transpose, "T": property(transpose), "__array_ufunc__": _array_ufunc,
                         "__array_function__": _array_function}.items():  # fmt: skip
        setattr(operand, name, method)


attach_operators(Tensor)
