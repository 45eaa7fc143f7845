"""Which kernel runs: the fallback order over device and dtype, told step by step, and the error where there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import events
from .bindings import OpError
from .signatures import RegistrationError

Kernel = Callable[..., Any]
Key = tuple[str, Any]  # kind of device, or "any"; dtype, or None for any

DEVICE_KINDS = ("cpu", "cuda", "sim")


def kernel_key(op: str, device: str, dtype: Any) -> Key:
    """The key under which a kernel is kept; refuses a kind of device or a dtype that does not exist."""
    if device not in (*DEVICE_KINDS, "any"):
        raise RegistrationError(
            f"op {op}: no device kind {device!r}; a kernel is for 'cpu', 'cuda', 'sim', or for 'any' array library"
        )
    try:
        found = None if dtype is None else np.dtype(dtype)
    except TypeError:
        raise RegistrationError(f"op {op}: no dtype {dtype!r}; write one of NumPy's, as in dtype='float32'") from None
    if found is not None and found.kind not in "biuf":
        raise RegistrationError(f"op {op}: a kernel for {found} would never run, since ops take real numbers only")
    return device, found


def fallback_order(kind: str, dtype: Any) -> tuple[Key, ...]:
    """The keys that dispatch looks at: device and dtype, the device, every library with the dtype, every library.

    A stand-in accelerator (``sim``) falls back to what every library can run, never to the kernels of ``cuda``.

    >>> [(device, str(dtype)) for device, dtype in fallback_order("cpu", np.dtype("float32"))]
    [('cpu', 'float32'), ('cpu', 'None'), ('any', 'float32'), ('any', 'None')]
    """
    order = ((kind, dtype), (kind, None), ("any", dtype), ("any", None))
    return order if dtype is not None else (order[1], order[3])


def choose(
    op: str, kernels: Mapping[Key, Kernel], device: str, dtype: Any, tell: events.Receiver | None = None
) -> Kernel:
    """The kernel of the first key in the fallback order that there is.

    Raises:
        OpError: there is none; lists the kernels that there are, and says how to add one.
    """
    kind = device.partition(":")[0]
    for key in fallback_order(kind, dtype):
        kernel = kernels.get(key)
        if tell is not None:
            name = None if kernel is None else kernel.__name__
            tell(events.KernelConsidered(op, *key_texts(key), name, kernel is not None))
        if kernel is not None:
            return kernel
    there = "; ".join(f"{kernel.__name__} for {' and '.join(key_texts(key))}" for key, kernel in kernels.items())
    raise OpError(
        f"{op} has no kernel for {device} and {'numbers without a dtype' if dtype is None else dtype}; it has, by device and "
        f"dtype: {there}. Add one with @{op}.kernel({kind!r}), or bring the operands to a device and dtype that has one"
    )


def key_texts(key: Key) -> tuple[str, str]:
    """A key as text: device and dtype, ``any`` where it does not matter."""
    return key[0], "any" if key[1] is None else str(key[1])
