"""Tensor: a value and how it was computed. A passive record; ``ops`` attaches the operators, ``reverse_mode`` ``backward``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from . import backend

if TYPE_CHECKING:
    from .operators import Op

# How a Tensor was computed, as a plain tuple because one is made per op call (35 ns; a class instance costs 200):
#   serial      number in the order of making, so that a larger one is never an input of a smaller one
#   op          the Op; None for a leaf
#   parents     for each operand its record, or None where no gradient flows
#   attributes  the op's attributes
#   operands    None, or (shape, dtype) or the Python number of each operand, where they differ or one is not recorded;
#               for a leaf its Leaf
#   *saved      the values that the gradient rules name, in the order of ``op.saved_names``, which only grows
Record = tuple[int, "Op | None", tuple[Any, ...], dict[str, Any], Any, *tuple[Any, ...]]

Axis = int | tuple[int, ...] | None

next_serial = count(1).__next__


class Level:
    """Which derivative a Tensor belongs to: each ``grad`` or ``jvp`` that is running has a level of its own.

    A higher level started later, so it is the inner derivative. Keeping levels apart is what makes
    d/dx [x · d/dy (x + y)] = 1 come out right (perturbation confusion: Siskind and Pearlmutter, 2005).
    """

    __slots__ = ("depth", "is_batch", "is_reverse", "reading")
    _next_depth = count().__next__

    def __init__(self, is_reverse: bool, reading: Callable[..., Tensor] | None = None) -> None:
        self.depth = Level._next_depth()
        self.is_reverse = is_reverse
        self.reading = reading  # how an op call at this level is read, where it is no derivative: see batching.py
        self.is_batch = reading is not None

    def __repr__(self) -> str:
        kind = "batch" if self.is_batch else "reverse" if self.is_reverse else "forward"
        return f"Level({self.depth}, {kind})"


BASE = Level(is_reverse=True)  # the level of Tensors that users make


class Leaf:
    """What a Tensor that is not the result of an op carries: its name, and the gradient that ``backward`` adds up."""

    __slots__ = ("device", "dtype", "grad", "name", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: str, name: str | None) -> None:
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self.name = name
        self.grad: Tensor | None = None


def leaf_record(value: Any, name: str | None = None) -> Record:
    """The record of a value that gradients flow to."""
    return (next_serial(), None, (), {}, Leaf(value.shape, value.dtype, device_below(value), name))


def device_below(value: Any) -> str:
    """The device of an array, symbol or Tensor."""
    inner = value.innermost() if type(value) is Tensor else value
    if type(inner) is np.ndarray:
        return "cpu"
    return str(inner.device) if hasattr(inner, "is_symbol") else backend.device_of(inner)


class Tensor:
    """A value that remembers how it was computed.

    Make one with ``ad.tensor``. Its value is never changed in place, so a recorded gradient is always that of the recorded
    point: ``data`` is a read-only view, and assigning ``data`` of a leaf gives it a new array of the same shape and dtype.

    >>> import autodiff_lab as ad
    >>> x = ad.tensor([1.0, 2.0], requires_grad=True, name="x")
    >>> y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ("__weakref__", "_data", "_history", "_level", "_name")
    __hash__ = object.__hash__

    if TYPE_CHECKING:  # attached by ops/__init__.py and reverse_mode.py
        T: Tensor

        def __neg__(self) -> Tensor: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __round__(self, decimals: int = 0) -> Tensor: ...
        def abs(self) -> Tensor: ...
        def exp(self) -> Tensor: ...
        def log(self) -> Tensor: ...
        def sqrt(self) -> Tensor: ...
        def tanh(self) -> Tensor: ...
        def relu(self) -> Tensor: ...
        def sigmoid(self) -> Tensor: ...
        def softmax(self, axis: Axis = -1) -> Tensor: ...
        def clip(self, a_min: float | None = None, a_max: float | None = None) -> Tensor: ...
        def round(self, decimals: int = 0) -> Tensor: ...
        def sum(self, axis: Axis = None, keepdims: bool = False) -> Tensor: ...
        def mean(self, axis: Axis = None, keepdims: bool = False) -> Tensor: ...
        def prod(self, axis: Axis = None, keepdims: bool = False) -> Tensor: ...
        def max(self, axis: Axis = None, keepdims: bool = False) -> Tensor: ...
        def min(self, axis: Axis = None, keepdims: bool = False) -> Tensor: ...
        def all(self, axis: Axis = None, keepdims: bool = False) -> Tensor: ...
        def any(self, axis: Axis = None, keepdims: bool = False) -> Tensor: ...
        def argmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor: ...
        def argmin(self, axis: int | None = None, keepdims: bool = False) -> Tensor: ...
        def argsort(self, axis: int = -1) -> Tensor: ...
        def var(self, axis: Axis = None, ddof: int = 0, keepdims: bool = False) -> Tensor: ...
        def std(self, axis: Axis = None, ddof: int = 0, keepdims: bool = False) -> Tensor: ...
        def cumsum(self, axis: int | None = None) -> Tensor: ...
        def cumprod(self, axis: int | None = None) -> Tensor: ...
        def dot(self, other: Any) -> Tensor: ...
        def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor: ...
        def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor: ...
        def reshape(self, *shape: Any) -> Tensor: ...
        def transpose(self, *axes: Any) -> Tensor: ...
        def swapaxes(self, axis1: int, axis2: int) -> Tensor: ...
        def squeeze(self, axis: Axis = None) -> Tensor: ...
        def ravel(self) -> Tensor: ...
        def repeat(self, repeats: int | tuple[int, ...], axis: int | None = None) -> Tensor: ...
        def take(self, indices: Any, axis: int | None = None) -> Tensor: ...
        def astype(self, dtype: Any) -> Tensor: ...
        def backward(self, gradient: Any = None, create_graph: bool = False) -> None: ...
        def to(self, device: str) -> Tensor: ...

    def __init__(self, data: Any, level: Level = BASE, history: Any = None, name: str | None = None) -> None:
        if level is BASE and type(data) is Tensor:
            raise TypeError("a Tensor of a Tensor: use it as it is, or ad.tensor(x.detach()) for a constant copy")
        self._data = data  # an array, a symbol, or a Tensor of a lower level
        self._level = level
        self._history = history  # reverse level: its Record or None; forward level: a tuple of tangents or None
        self._name = name

    # ------------------------------------------------------------------------------------------------------- the value

    @property
    def data(self) -> Any:
        """The value, as a read-only array (inside ``grad`` or ``jvp``, the value one level below)."""
        value = self._data
        if isinstance(value, np.ndarray):
            value = value.view()
            value.setflags(False)  # type: ignore[call-arg]  # write by its place: 0.07 µs with the view, by its name 0.16
        return value

    @data.setter
    def data(self, new: Any) -> None:
        if not self.is_leaf:
            raise ValueError(
                "data: only a leaf can be given new data; this Tensor is the result of an op. Use detach()."
            )
        old = self._data
        value = new._data if type(new) is Tensor else new
        if type(value) is np.ndarray and type(old) is np.ndarray and value.dtype == old.dtype:
            value = value.copy()
        else:
            value = backend.placed(value, old.dtype, self.device, "data")
        if value.shape != old.shape:
            raise ValueError(f"data: expected shape {old.shape}, got {value.shape}; make a new tensor for a new shape")
        self._data = value

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        shape: tuple[int, ...] = self._data.shape
        return shape[1:] if self._level.is_batch else shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the value."""
        return self._data.dtype  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def device(self) -> str:
        """Where the value lies: ``cpu``, ``cuda:N`` or ``sim:N``."""
        return device_below(self)

    def innermost(self) -> Any:
        """The array or symbol below every level."""
        value = self._data
        while type(value) is Tensor:
            value = value._data
        return value

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy of the value as a NumPy array, which may be changed freely. On another device the host waits for it."""
        return np.array(self._on_host("numpy()"))

    def _on_host(self, asked_by: str) -> np.ndarray[Any, Any]:
        """The value as a NumPy array, which is this Tensor's own where that lies here."""
        value = self.innermost()
        if type(value) is np.ndarray:
            return value
        if hasattr(value, "is_symbol"):
            value.numpy()  # says why a symbol has no numbers
        return backend.to_numpy(value, asked_by)

    def item(self) -> Any:
        """The value of a one-element Tensor as a Python number. On another device the host waits for it."""
        if self.size != 1:
            raise ValueError(f"item: only a Tensor with one element is one number; this one has shape {self.shape}")
        return self._on_host("item()").item()

    def detach(self) -> Tensor:
        """The same value as a constant: no gradient flows through the result."""
        return Tensor(self.innermost(), name=self.name)

    # ------------------------------------------------------------------------------------------------ how it was computed

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to or through this Tensor."""
        return self._history is not None

    @property
    def is_leaf(self) -> bool:
        """Whether this Tensor is not the result of a recorded op."""
        return self._history is None or self._leaf() is not None

    def _leaf(self) -> Leaf | None:
        """What a leaf that requires a gradient carries; None for any other Tensor."""
        history = self._history
        return history[4] if history is not None and self._level.is_reverse and history[1] is None else None

    @property
    def name(self) -> str | None:
        """The name given with ``ad.tensor(…, name=)``."""
        return getattr(self, "_name", None)  # results of ops are made without it

    @property
    def grad(self) -> Tensor | None:
        """The gradient that ``backward`` has added up so far; None before the first."""
        leaf = self._leaf()
        return None if leaf is None else leaf.grad

    @grad.setter
    def grad(self, new: Tensor | None) -> None:
        leaf = self._leaf()
        if leaf is None:
            raise ValueError("grad: only a leaf made with requires_grad=True keeps a gradient")
        if new is not None and (type(new) is not Tensor or new.shape != self.shape):
            raise ValueError(f"grad: expected None or a Tensor of shape {self.shape}, got {new!r}")
        leaf.grad = new

    # --------------------------------------------------------------------------------------------------- Python's protocols

    def __repr__(self) -> str:
        value = self.innermost()
        note = (
            "" if self._level is BASE else f", {'grad' if self._level.is_reverse else 'jvp'} level {self._level.depth}"
        )
        if hasattr(value, "is_symbol"):
            return f"tensor({value!r}{note})"
        array = backend.to_numpy(value, "repr()")
        text = np.array2string(array, prefix="tensor(", separator=", ", threshold=60)
        dtype = "" if array.dtype in (np.float64, np.int64, np.bool_) else f", dtype={array.dtype}"
        dtype += (
            ""
            if self.device == "cpu"
            else f", device={self.device!r}" + (" (simulated)" if self.device.startswith("sim") else "")
        )
        grad = ", requires_grad=True" if self.requires_grad and self._level is BASE else ""
        label = f", name={self.name!r}" if self.name else ""
        return f"tensor({text}{dtype}{grad}{label}{note})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d Tensor")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                f"bool: a Tensor of shape {self.shape} is not one truth value; use .numpy().any() or .all()"
            )
        return bool(self.numpy().item())

    def __float__(self) -> float:
        if self._history is not None and self._level is not BASE:
            raise TypeError(
                "float() would make a constant of a value whose derivative is being taken: use ops.exp and the like instead "
                "of math.exp, or .item() where a constant is meant"
            )
        if self._history is not None:
            warnings.warn(
                "float() of a recorded Tensor is a constant, through which no gradient flows; .item() says that it is meant",
                stacklevel=2,
            )
        return float(self.item())

    def __format__(self, how: str) -> str:
        return format(self.numpy().item() if how and self.size == 1 else str(self), how)

    def __copy__(self) -> Tensor:
        return self.__deepcopy__({}) if self.is_leaf else Tensor(self._data, self._level, self._history)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        rebuild, parts = self.__reduce__()
        copied: Tensor = rebuild(*parts)
        memo[id(self)] = copied
        return copied

    def __reduce__(self) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
        """What a copy or a pickle is made of: a leaf's value, gradient and name. A graph is not copied."""
        if not self.is_leaf or self._level is not BASE:
            raise TypeError(
                "copy: this Tensor is the result of an op, and its graph would be torn from its inputs; copy detach() instead"
            )
        gradient = None if self.grad is None else self.grad.numpy()
        return _rebuild_leaf, (self.numpy(), self.device, self.requires_grad, self.name, gradient)

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError(f"index: only a whole-number Tensor is an index; this one is {self.dtype}")
        return int(self.item())

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(
            "a Tensor is never changed in place: its gradient would be that of another point. Use ops.where"
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if self.requires_grad:
            raise TypeError("turning a recorded Tensor into an array would lose its gradient; call .numpy() to say so")
        return self.numpy() if dtype is None else self.numpy().astype(dtype)


def _rebuild_leaf(value: Any, device: str, requires_grad: bool, name: str | None, gradient: Any) -> Tensor:
    made = tensor(value, device=device, requires_grad=requires_grad, name=name)
    if gradient is not None:
        made.grad = tensor(gradient, device=device)
    return made


def tensor(
    data: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False, name: str | None = None
) -> Tensor:
    """A Tensor that holds a copy of ``data``.

    Args:
        data: an array, a Tensor, a number, or nested lists of numbers.
        dtype: NumPy dtype; by default NumPy's reading of ``data``.
        device: ``cpu``, ``cuda:N`` or ``sim:N``; by default where ``data`` lies.
        requires_grad: whether gradients are wanted; needs a floating dtype.
        name: how graphs and views call it.

    Raises:
        TypeError: a gradient is wanted for whole numbers, complex numbers or something that is not numbers.

    >>> import autodiff_lab as ad
    >>> ad.tensor([1.0, 2.0], dtype="float32", name="x")
    tensor([1., 2.], dtype=float32, name='x')
    """
    value = _array_from(data, dtype, device)
    if value.dtype.kind not in "biuf":
        kind = (
            "complex numbers are not supported"
            if value.dtype.kind == "c"
            else "give an array or nested lists of numbers"
        )
        raise TypeError(f"tensor: expected real numbers, got {type(data).__name__} of dtype {value.dtype}; {kind}")
    if not requires_grad:
        return Tensor(value, name=name)
    require_floating(value.dtype, "tensor(…, requires_grad=True)")
    return Tensor(value, BASE, leaf_record(value, name), name)


def _array_from(data: Any, dtype: Any, device: str | None) -> Any:
    """An array from what a user gives; refuses what would lose a gradient."""
    if isinstance(data, Tensor):
        if data.requires_grad:
            raise TypeError(
                "tensor: this would make a constant of a recorded Tensor, and its gradient would be lost; use it as it is, or "
                "say .detach()"
            )
        data = data.innermost()
    if isinstance(data, (list, tuple)) and any(isinstance(part, Tensor) for part in data):
        raise TypeError("tensor: a list of Tensors is joined by ops.stack or ops.concatenate, which keep the gradient")
    lies = backend.device_of(data) if backend.is_elsewhere(data) else "cpu"
    device = lies if device is None else backend.device_named(device)
    backend.require(device)
    try:
        return backend.asarray(data, dtype=dtype, device=device, copy=True)
    except ValueError as error:
        raise ValueError(f"tensor: {type(data).__name__} is not a regular array of numbers: {error}") from error


def require_floating(dtype: np.dtype[Any], where: str) -> None:
    """Refuse a dtype that has no derivative."""
    if dtype.kind != "f":
        raise TypeError(
            f"{where}: gradients need a floating dtype, got {dtype}; write 1.0 instead of 1, or pass dtype='float64'"
        )
