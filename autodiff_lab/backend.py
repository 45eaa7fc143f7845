"""Array libraries and devices: ``cpu`` is NumPy, ``cuda:N`` is CuPy, ``sim:N`` a simulated accelerator.

The only module that imports CuPy, and only when asked; the simulated accelerator too is loaded only by who uses it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

from . import events

Array = Any  # a NumPy, CuPy or simulated array; all have shape, dtype and Python's operators


def is_array(value: Any) -> bool:
    """Whether a value is an array on any device, or a NumPy scalar.

    >>> is_array(np.zeros(2)), is_array(2.0)
    (True, False)
    """
    return isinstance(value, (np.ndarray, np.generic)) or is_elsewhere(value)


def is_elsewhere(value: Any) -> bool:
    """Whether a value is an array on another device than the CPU."""
    return _is_cupy(value) or _is_simulated(value)


def device_of(array: Array) -> str:
    """The device that holds an array: ``cpu``, ``cuda:0`` or ``sim:0``.

    >>> import numpy as np
    >>> device_of(np.zeros(2))
    'cpu'
    """
    if isinstance(array, (np.ndarray, np.generic, int, float)):
        return "cpu"
    if _is_cupy(array):
        return f"cuda:{array.device.id}"
    if _is_simulated(array):
        return str(array.device)
    raise TypeError(f"device_of: expected an array, got {type(array).__name__}")


def device_named(name: str) -> str:
    """The full name of a device: ``cuda`` is ``cuda:0``, ``sim`` is ``sim:0``.

    Raises:
        ValueError: there is no such device.

    >>> device_named("sim")
    'sim:0'
    """
    kind, _, number = name.partition(":") if isinstance(name, str) else ("", "", "")
    if name == "cpu" or (kind in ("cuda", "sim") and (number or "0").isdigit()):
        return name if kind == "cpu" else f"{kind}:{int(number or 0)}"
    known = "; ".join(devices())
    raise ValueError(f"unknown device {name!r}: write cpu, cuda:0 or sim:0; this machine has: {known}")


def require(device: str) -> None:
    """Refuse a device that this machine does not have; ``device_named`` alone also names those of other machines.

    Raises:
        ValueError: it is not here; says what is.
    """
    if device.startswith("cuda") and _number(device) >= _cuda_count():
        raise ValueError(f"there is no device {device!r} here; this machine has: {'; '.join(devices())}")


def common_device(devices: Sequence[str]) -> str:
    """The one device on which operands lie; numbers, which lie nowhere, are left out, and meet on ``cpu``.

    Raises:
        ValueError: they lie on several.
    """
    found = list(dict.fromkeys(devices))
    if len(found) > 1:
        there = next(device for device in found if device != "cpu")
        raise ValueError(
            f"its operands lie on {' and on '.join(found)}; nothing is copied by itself: move one with .to(…), or a NumPy "
            f"array with ad.tensor(…, device={there!r})"
        )
    return found[0] if found else "cpu"


def library_of(device: str) -> Any:
    """The array library that computes on a device: NumPy on ``cpu``, CuPy on ``cuda:N``, a strict one on ``sim:N``.

    A kernel gets it as ``xp``.

    >>> library_of("cpu").__name__, library_of("sim:0").ones(2)
    ('numpy', <array on sim:0 (simulated), (2,) float64>)
    """
    kind = device_named(device).partition(":")[0]
    return np if kind == "cpu" else _cupy() if kind == "cuda" else simulation().library(device_named(device))


def current(device: str) -> AbstractContextManager[Any]:
    """Inside the block, CuPy makes its arrays on this GPU."""
    return _cuda_device(device) if device.startswith("cuda") else nullcontext()


def asarray(data: Any, dtype: Any = None, device: str = "cpu", copy: bool | None = None) -> Array:
    """``data`` as an array on ``device``, as NumPy's ``asarray`` would read it. A copy between devices is told."""
    device = device_named(device)
    source = device_of(data) if is_array(data) else "cpu"
    kind = device.partition(":")[0]
    if kind == "sim" and source == device:  # never changed in place, so no copy is needed
        return data if dtype is None or data.dtype == np.dtype(dtype) else data.astype(dtype=dtype)
    if kind == "cuda" and source == device:
        return _cupy().array(data, dtype=dtype, copy=copy is not False)
    if source != "cpu":
        data, copy = to_numpy(data, f"to({device!r})"), None
    array = np.array(data, dtype=dtype, copy=copy)
    if kind == "cpu":
        return array
    return simulation().upload(array, device) if kind == "sim" else _to_cuda(array, device)


def placed(value: Any, dtype: Any, device: str, where: str) -> Array:
    """A value that a user hands over for something on ``device``: numbers and lists are put there, an array must be there.

    Raises:
        ValueError: the array lies elsewhere.
    """
    if type(value) is np.ndarray and device == "cpu":
        return np.array(value, dtype=dtype)
    if is_array(value) and not isinstance(value, np.generic) and device_of(value) != device:
        raise ValueError(
            f"{where}: expected an array on {device}, got one on {device_of(value)}; nothing is copied by itself: move it "
            f"with ad.tensor(…, device={device!r}) or .to({device!r})"
        )
    return asarray(value, dtype, device, copy=True)


def to_numpy(array: Array, asked_by: str = "numpy()") -> np.ndarray[Any, Any]:
    """A NumPy array with the same numbers; where they lie on another device the host waits for them, and copies them."""
    if _is_simulated(array):
        return array.get(asked_by=asked_by)  # type: ignore[no-any-return]
    return _from_cuda(array, asked_by) if _is_cupy(array) else np.asarray(array)


def devices() -> list[str]:
    """What this machine computes on, one line each, and why CUDA is or is not there.

    >>> devices()[0].startswith("cpu: NumPy"), devices()[-1].startswith("sim:0: simulated")
    (True, True)
    """
    simulated = "sim:0: simulated, a stand-in for a GPU on NumPy, as strict as CuPy (sim:1, sim:2, … too)"
    return [f"cpu: NumPy {np.__version__}", *_cuda_devices(), simulated]


def accelerator() -> str:
    """The device beside the CPU that a program can count on: ``cuda:0`` where there is a GPU, else ``sim:0``, simulated.

    >>> accelerator() in ("cuda:0", "sim:0")
    True
    """
    return "cuda:0" if any(line.startswith("cuda:0") for line in _cuda_devices()) else "sim:0"


def _cuda_devices() -> list[str]:
    if find_spec("cupy") is None:
        return ["cuda: not available, CuPy is not installed (install the extra [gpu] where there is an NVIDIA GPU)"]
    try:
        count = _cupy().cuda.runtime.getDeviceCount()
    except Exception as error:
        return [f"cuda: not available, CuPy is installed but finds no GPU ({error})"]
    return [f"cuda:{number}: CuPy {_cupy().__version__}" for number in range(count)]


def simulation() -> ModuleType:
    """What simulates ``sim:N``. It needs the ops, which stand above this module, so it is found by name when asked for."""
    return import_module(f"{__package__}.simulated.arrays")


def _is_simulated(array: Any) -> bool:
    return getattr(type(array), "is_simulated", False) is True


def _is_cupy(array: Any) -> bool:
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(array, cupy.ndarray)


def _cupy() -> ModuleType:
    if find_spec("cupy") is None:
        raise ValueError("device cuda needs CuPy, which is not installed: pip install 'autodiff-lab[gpu]', or use cpu")
    return import_module("cupy")


def _cuda_device(device: str) -> AbstractContextManager[Any]:
    require(device)
    return _cupy().cuda.Device(_number(device))  # type: ignore[no-any-return]


def _number(device: str) -> int:
    return int(device.partition(":")[2])


@cache
def _cuda_count() -> int:
    try:
        return int(_cupy().cuda.runtime.getDeviceCount())
    except _cupy().cuda.runtime.CUDARuntimeError:  # no driver, or none that this CuPy can use
        return 0


def _to_cuda(array: np.ndarray[Any, Any], device: str) -> Array:
    with _cuda_device(device):
        start = perf_counter()
        result = _cupy().array(array)
        events.tell(events.Transferred("cpu", device, array.nbytes, start, perf_counter()))
        return result


def _from_cuda(array: Array, asked_by: str) -> np.ndarray[Any, Any]:
    device, start = device_of(array), perf_counter()
    _cupy().cuda.get_current_stream().synchronize()
    ready = perf_counter()
    events.tell(events.Synchronised(device, asked_by, start, ready))
    result: np.ndarray[Any, Any] = array.get()
    events.tell(events.Transferred(device, "cpu", result.nbytes, ready, perf_counter()))
    return result
