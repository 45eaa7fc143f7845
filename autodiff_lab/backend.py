"""Array libraries and devices: ``cpu`` is NumPy, ``cuda:N`` is CuPy. The only module that imports CuPy, and only when asked."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

Array = Any  # a NumPy or CuPy array; both have shape, dtype and NumPy's methods


def device_of(array: Array) -> str:
    """The device that holds an array: ``cpu`` or ``cuda:0``.

    >>> import numpy as np
    >>> device_of(np.zeros(2))
    'cpu'
    """
    if isinstance(array, (np.ndarray, np.generic, int, float)):
        return "cpu"
    if _is_cupy(array):
        return f"cuda:{array.device.id}"
    raise TypeError(f"device_of: expected a NumPy or CuPy array, got {type(array).__name__}")


def library_of(device: str) -> ModuleType:
    """The array library that computes on a device: NumPy on ``cpu``, CuPy on ``cuda:N``."""
    if device == "cpu":
        return np
    kind, _, _ = device.partition(":")
    if kind == "cuda":
        return _cupy()
    known = "; ".join(devices())
    raise ValueError(f"unknown device {device!r}; this machine has: {known}")


def asarray(data: Any, dtype: Any = None, device: str = "cpu", copy: bool | None = None) -> Array:
    """``data`` as an array on ``device``, as NumPy's ``asarray`` would read it."""
    library = library_of(device)
    if library is np:
        if _is_cupy(data):
            data = data.get()
        return np.array(data, dtype=dtype, copy=copy)
    with _cuda_device(device):
        return library.array(data, dtype=dtype, copy=True if copy is None else copy)


def to_numpy(array: Array) -> np.ndarray[Any, Any]:
    """A NumPy array with the same numbers, copied from the device if need be."""
    return array.get() if _is_cupy(array) else np.asarray(array)


def devices() -> list[str]:
    """What this machine computes on, one line each, and why CUDA is or is not there.

    >>> devices()[0].startswith("cpu: NumPy")
    True
    """
    lines = [f"cpu: NumPy {np.__version__}"]
    if find_spec("cupy") is None:
        return [
            *lines,
            "cuda: not available, CuPy is not installed (install the extra [gpu] where there is an NVIDIA GPU)",
        ]
    try:
        count = _cupy().cuda.runtime.getDeviceCount()
    except Exception as error:
        return [*lines, f"cuda: not available, CuPy is installed but finds no GPU ({error})"]
    return lines + [f"cuda:{number}: CuPy {_cupy().__version__}" for number in range(count)]


def _is_cupy(array: Any) -> bool:
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(array, cupy.ndarray)


def _cupy() -> ModuleType:
    if find_spec("cupy") is None:
        raise ValueError("device cuda needs CuPy, which is not installed: pip install 'autodiff-lab[gpu]', or use cpu")
    return import_module("cupy")


def _cuda_device(device: str) -> Any:
    number = device.partition(":")[2] or "0"
    if not number.isdigit():
        raise ValueError(f"unknown device {device!r}: write cuda:0, cuda:1, …")
    return _cupy().cuda.Device(int(number))
