"""What a kernel on a simulated device computes with: arrays in the device's memory, and a library with what CuPy has.

Every function is NumPy's, so the numbers are those of the CPU. What is strict is the door: a NumPy array does not come in, a
function that CuPy lacks is not there, and no number leaves without being asked for.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .. import events
from .cupy_names import cupy_names
from .device import Block, Device, host


def refused(what: str, advice: str) -> Callable[..., NoReturn]:
    """A special method that says why an array on a device does not do this, and what to write."""

    def refuse(self: Any, *_arguments: Any, **_options: Any) -> NoReturn:
        raise TypeError(f"{what} of an array on {self.device} (simulated): {advice}")

    return refuse


def numpy_refused(self: Any, function: Any, *arguments: Any, **options: Any) -> Any:
    """NumPy's functions stay out, except where a NumPy scalar meets an array in an operator, as in ``np.float32(2) * x``."""
    method, *operands = arguments
    others = [operand for operand in operands if operand is not self] if isinstance(function, np.ufunc) else []
    if method == "__call__" and not options and others and all(isinstance(other, np.generic) for other in others):
        return NotImplemented if len(operands) != 2 else self.meets_number(function, *operands)
    raise TypeError(
        f"np.{function.__name__} got an array on {self.device} (simulated): NumPy computes on the CPU. In a kernel use "
        f"xp.{function.__name__}, elsewhere an op; or bring the numbers to the host with .to('cpu') or .numpy()"
    )


class DeviceArray:
    """An array in a simulated device's memory, as a kernel sees it: with the methods and operators of CuPy's arrays."""

    __slots__ = ("__weakref__", "_block", "_device", "_value")
    __hash__ = None  # type: ignore[assignment]
    is_simulated = True

    def __init__(self, value: Any, device: Device, block: Block | None = None) -> None:
        self._value = value  # NumPy's array or, after a reduction, its scalar, which computes as the CPU does
        self._device = device
        self._block = block or Block(device, value.nbytes)

    @property
    def device(self) -> str:
        """The device's name."""
        return self._device.name

    @property
    def T(self) -> DeviceArray:
        """The array with its axes reversed: a view."""
        return _call(self._device, np.transpose, (self,), {})  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or f"ndarray.{name}" not in cupy_names():
            known = hasattr(np.ndarray, name)
            raise AttributeError(f"CuPy's arrays have no {name!r}" + (", NumPy's only" if known else ""))
        found = getattr(self._value, name)
        if not callable(found):
            return _wrapped(found, self._device, (self,))
        return lambda *arguments, **options: _call(self._device, found, arguments, options, self)

    def __getitem__(self, index: Any) -> Any:
        at = plain_index(index, self._device)
        return _call(self._device, lambda value: value[at], (self,), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        self._value[plain_index(index, self._device)] = plain(value, self._device)

    def __len__(self) -> int:
        return len(self._value)

    def __iter__(self) -> Any:
        return (self[place] for place in range(len(self)))

    def __repr__(self) -> str:
        return f"<array on {self.device} (simulated), {self._value.shape} {self._value.dtype}>"

    def meets_number(self, function: Any, *operands: Any) -> Any:
        """A NumPy scalar and this array in a ufunc."""
        return _call(self._device, function, operands, {})

    def item(self) -> Any:
        """The one number, on the host: a GPU's host would wait here."""
        return self._value.item()

    def get(self) -> Any:
        """Refused inside a kernel: a kernel computes on the device."""
        raise TypeError(f"get() inside a kernel on {self.device} (simulated): a kernel computes on the device, with xp")

    numpy = tolist = tobytes = get

    def __reduce__(self) -> Any:
        return DeviceArray, (self._value, self._device)

    _LEAVES = "a kernel's numbers stay on the device; compare with xp.where, or take one number with .item()"
    __bool__ = refused("bool()", _LEAVES)
    __float__ = refused("float()", _LEAVES)
    __int__ = refused("int()", _LEAVES)
    __index__ = refused("an index", _LEAVES)
    __array__ = refused("a NumPy array", "a kernel computes with xp, the library that it is given, not with np")
    __array_ufunc__ = numpy_refused
    __array_function__ = numpy_refused


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
_SPECIAL = (
    *(f"__{name}__" for name in _BINARY), *(f"__r{name}__" for name in _BINARY),
    *(f"__{name}__" for name in ("lt", "le", "eq", "ne", "ge", "gt", "neg", "pos", "abs", "invert")),
)  # fmt: skip


def _operator(name: str) -> Callable[..., Any]:
    function = getattr(operator, name, None)

    def apply(self: DeviceArray, *others: Any) -> Any:
        if function is None:  # reversed: the other operand stands on the left
            swapped = getattr(operator, f"__{name[3:]}")
            return _call(self._device, lambda one, other: swapped(other, one), (self, *others), {})
        return _call(self._device, function, (self, *others), {})

    return apply


for _name in _SPECIAL:
    setattr(DeviceArray, _name, _operator(_name))


def _in_place(name: str) -> Callable[..., Any]:
    change = getattr(operator, name)

    def apply(self: DeviceArray, other: Any) -> DeviceArray:
        self._value = change(self._value, plain(other, self._device))
        return self

    return apply


for _name in _BINARY:
    setattr(DeviceArray, f"__i{_name}__", _in_place(f"__i{_name}__"))


def numbers_in(array: DeviceArray) -> np.ndarray[Any, Any]:
    """What an array of a kernel holds, for who shows or checks it: that takes no time, and is no copy between devices.

    >>> import autodiff_lab as ad
    >>> numbers_in(ad.library_of("sim:0").ones(2))
    array([1., 1.])
    """
    return np.array(array._value)


# ------------------------------------------------------------------------------------------------------------ the door


def plain(value: Any, device: Device) -> Any:
    """What NumPy is given for an argument. Refuses what lies elsewhere."""
    if isinstance(value, DeviceArray):
        if value._device is not device:
            raise ValueError(f"an array on {value.device} meets one on {device.name}; move one with .to(…) first")
        return value._value
    if isinstance(value, np.ndarray):
        raise TypeError(
            f"Unsupported type {type(value)}: {device.name} (simulated) computes with its own arrays and with numbers; "
            "make the array there with xp, or move it with .to(…) first"
        )
    if isinstance(value, (list, tuple)):
        return type(value)(plain(part, device) for part in value)
    if isinstance(value, slice):
        return slice(*(plain(part, device) for part in (value.start, value.stop, value.step)))
    return value


def plain_index(index: Any, device: Device) -> Any:
    """An index: like CuPy's it may hold NumPy arrays, which travel with the call."""
    if isinstance(index, tuple):
        return tuple(plain_index(part, device) for part in index)
    return index if isinstance(index, np.ndarray) else plain(index, device)


def _wrapped(result: Any, device: Device, arguments: Any) -> Any:
    """What NumPy gave, as an array of the device: a view shares the memory of an argument."""
    if isinstance(result, (list, tuple)):
        return type(result)(_wrapped(part, device, arguments) for part in result)
    if not isinstance(result, (np.ndarray, np.generic)):
        return result
    shared = None
    if isinstance(result, np.ndarray):
        shared = next((a._block for a in arguments if isinstance(a, DeviceArray) and _overlap(a._value, result)), None)
    return DeviceArray(result, device, shared)


def _overlap(one: Any, other: np.ndarray[Any, Any]) -> bool:
    return isinstance(one, np.ndarray) and np.may_share_memory(one, other)


def _call(
    device: Device, function: Callable[..., Any], arguments: Any, options: dict[str, Any], *also: DeviceArray
) -> Any:
    """One of NumPy's functions on arrays of a device."""
    given = [plain(argument, device) for argument in arguments]
    result = function(*given, **{name: plain(value, device) for name, value in options.items()})
    return _wrapped(result, device, (*also, *arguments, *options.values()))


# ---------------------------------------------------------------------------------------------------------- the library


class Library:
    """The functions of CuPy on a simulated device: what a kernel gets as ``xp``, or a part of it such as ``xp.linalg``."""

    def __init__(self, device: Device, prefix: str = "") -> None:
        self._device, self._prefix = device, prefix

    def __repr__(self) -> str:
        return f"<array library of {self._device.name}, simulated: what CuPy has, on NumPy>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Library) and (self._device, self._prefix) == (other._device, other._prefix)

    def __hash__(self) -> int:
        return hash((self._device.name, self._prefix))

    def __reduce__(self) -> Any:
        return Library, (self._device, self._prefix)

    def __getattr__(self, name: str) -> Any:
        full = self._prefix + name
        names = cupy_names()
        if full not in names:
            if any(known.startswith(full + ".") for known in names):
                return Library(self._device, full + ".")
            raise AttributeError(f"CuPy has no {full!r}, so a kernel for {self._device.name} cannot use it")
        if name == "ndarray":
            return DeviceArray
        if name == "ElementwiseKernel":
            return lambda *text, **_options: ElementwiseKernel(self._device, *text)
        found: Any = np
        for part in full.split("."):
            found = getattr(found, part, None)
        if found is None:
            raise AttributeError(f"CuPy's {full!r} runs on a GPU only; {self._device.name} is simulated, on NumPy")
        if isinstance(found, type) or not (callable(found) or hasattr(found, "__getitem__")):
            return found  # a dtype or a number, such as xp.float32 and xp.pi
        return Function(self._device, full, found)


_COPIES = ("array", "asarray", "ascontiguousarray", "asfortranarray")  # these take NumPy arrays, in CuPy too


class Function:
    """A function of the library; a ufunc with its methods, or something that is indexed, as ``xp.ogrid``."""

    def __init__(self, device: Device, name: str, function: Any) -> None:
        self._device, self._name, self._function = device, name, function
        self._parameters = cupy_names()[name]

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call it."""
        takes_any = not self._parameters or any(name.startswith("**") for name in self._parameters)
        unknown = [] if takes_any else [name for name in options if name not in self._parameters]
        if unknown:
            raise TypeError(f"CuPy's {self._name} takes no {unknown[0]!r}; it has {', '.join(self._parameters)}")
        if self._name.endswith(".at"):
            return self._at(*arguments)
        if self._name in _COPIES and isinstance(arguments[0], np.ndarray):
            arguments = (self._copied(arguments[0]), *arguments[1:])
        return _call(self._device, self._function, arguments, options)

    def _at(self, target: Any, index: Any, *values: Any) -> Any:
        """``xp.add.at(x, index, values)``."""
        at = plain_index(index, self._device)
        return _call(self._device, lambda x, *rest: self._function(x, at, *rest), (target, *values), {})

    def _copied(self, array: np.ndarray[Any, Any]) -> DeviceArray:
        """A NumPy array as one of the device, which a kernel asks for by ``xp.asarray``: a copy between devices."""
        end = host.now + self._device.costs.link(array.nbytes)
        events.tell(events.Transferred("cpu", self._device.name, array.nbytes, host.now, end))
        return DeviceArray(np.array(array), self._device)

    def __getitem__(self, index: Any) -> Any:
        return _call(self._device, lambda at: self._function[at], (index,), {})

    def __getattr__(self, method: str) -> Function:
        name = f"{self._name}.{method}"
        if name not in cupy_names():
            raise AttributeError(f"CuPy has no {name!r}, so a kernel for {self._device.name} cannot use it")
        return Function(self._device, name, getattr(self._function, method))


class ElementwiseKernel:
    """CuPy's kernel of one line of C++: ``("T x, T y", "T z", "z = hypot(x, y)", "name")``.

    The line is one assignment of an expression that C++ and Python write alike, with the functions of ``math.h``. Python
    computes it number by number.
    """

    def __init__(self, device: Device, inputs: str, output: str, line: str, name: str = "kernel") -> None:
        self._device = device
        names = ", ".join(part.split()[-1] for part in inputs.split(","))
        target, _, expression = line.strip().rstrip(";").partition("=")
        if target.strip() != output.split()[-1]:
            raise ValueError(
                f"{name}: {device.name} is simulated and reads one line such as 'y = erf(x)', got {line!r}"
            )
        self._each = eval(f"lambda {names}: {expression.strip()}", dict(vars(math)))

    def __call__(self, *arrays: Any) -> Any:
        """Compute number by number, with broadcasting; the result has the first array's dtype."""

        def compute(*values: Any) -> Any:
            dtype = next(value.dtype for value in values if hasattr(value, "dtype"))
            return np.asarray(np.frompyfunc(self._each, len(values), 1)(*values)).astype(dtype)

        return _call(self._device, compute, arrays, {})
