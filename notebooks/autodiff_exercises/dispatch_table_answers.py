"""Answers to the exercise "the dispatch table" of lesson 70, right and wrong: what its check is tested on."""

from __future__ import annotations

from typing import Any

import numpy as np

import autodiff_lab as ad

Kernels = dict[tuple[str, str], str]  # (kind of device, dtype) -> the kernel's name; "any" for both

# -------------------------------------------------------------------------------------- what solutions can look like


def kernel_for(kernels, operands):
    """The name of the kernel that runs a call with these operands; None where no kernel may run it."""
    arrays = [operand for operand in operands if isinstance(operand, tuple)]
    devices = {device for device, dtype in arrays}
    if len(devices) > 1:
        return None
    kind = devices.pop().split(":")[0] if devices else "cpu"
    dtype = arrays[0][1] if arrays else "any"
    for key in ((kind, dtype), (kind, "any"), ("any", dtype), ("any", "any")):
        if key in kernels:
            return kernels[key]
    return None


def _asked(operands: list[Any]) -> tuple[str, str] | None:
    """Kind of device and dtype of a call; None where its arrays lie on several devices."""
    arrays = [operand for operand in operands if isinstance(operand, tuple)]
    if len({device for device, _dtype in arrays}) > 1:
        return None
    return (arrays[0][0].partition(":")[0], arrays[0][1]) if arrays else ("cpu", "any")


def best_of_all(kernels: Kernels, operands: list[Any]) -> str | None:
    """Every kernel that fits gets marks, two for the device and one for the dtype; the best one is taken."""
    asked = _asked(operands)
    if asked is None:
        return None
    kind, dtype = asked
    fitting = [key for key in kernels if key[0] in (kind, "any") and key[1] in (dtype, "any")]
    best = max(fitting, key=lambda key: 2 * (key[0] == kind) + (key[1] == dtype), default=None)
    return None if best is None else kernels[best]


# ------------------------------------------------------------------------------------------------- wrong solutions


def _first(kernels: Kernels, keys: list[tuple[str, str]]) -> str | None:
    return next((kernels[key] for key in keys if key in kernels), None)


def exact_only(kernels: Kernels, operands: list[Any]) -> str | None:
    """A kernel for this device and dtype, or none."""
    asked = _asked(operands)
    return None if asked is None else kernels.get(asked)


def dtype_first(kernels: Kernels, operands: list[Any]) -> str | None:
    """The right dtype counts more than the right device."""
    asked = _asked(operands)
    if asked is None:
        return None
    kind, dtype = asked
    return _first(kernels, [(kind, dtype), ("any", dtype), (kind, "any"), ("any", "any")])


def first_that_fits(kernels: Kernels, operands: list[Any]) -> str | None:
    """The table is gone through from its beginning."""
    asked = _asked(operands)
    if asked is None:
        return None
    return next((kernels[k] for k in kernels if k[0] in (asked[0], "any") and k[1] in (asked[1], "any")), None)


def any_dtype_of_the_device(kernels: Kernels, operands: list[Any]) -> str | None:
    """A kernel of this device is better than none, whatever its dtype is."""
    asked = _asked(operands)
    if asked is None:
        return None
    there = next((name for (kind, _dtype), name in kernels.items() if kind == asked[0]), None)
    return _first(kernels, [asked, (asked[0], "any")]) or there or kernel_for(kernels, operands)


def cpu_helps_out(kernels: Kernels, operands: list[Any]) -> str | None:
    """Where a device has no kernel, that of the CPU runs."""
    asked = _asked(operands)
    if asked is None:
        return None
    return kernel_for(kernels, operands) or _first(kernels, [("cpu", asked[1]), ("cpu", "any")])


def sim_is_a_gpu(kernels: Kernels, operands: list[Any]) -> str | None:
    """A stand-in for a GPU takes the kernels of the GPU before those of every library."""
    asked = _asked(operands)
    if asked is None or asked[0] != "sim":
        return kernel_for(kernels, operands)
    own = _first(kernels, [asked, ("sim", "any")])
    return own or _first(kernels, [("cuda", asked[1]), ("cuda", "any")]) or kernel_for(kernels, operands)


def by_the_devices_name(kernels: Kernels, operands: list[Any]) -> str | None:
    """Looks for "cuda:0" where the table says "cuda"."""
    asked = _asked(operands)
    if asked is None:
        return None
    name = next((operand[0] for operand in operands if isinstance(operand, tuple)), "cpu")
    return _first(kernels, [(name, asked[1]), (name, "any"), ("any", asked[1]), ("any", "any")])


def of_the_first_operand(kernels: Kernels, operands: list[Any]) -> str | None:
    """Where the first array lies, there it runs; the others will be brought."""
    first = next((operand for operand in operands if isinstance(operand, tuple)), 0.0)
    return kernel_for(kernels, [first])


def numbers_on_the_cpu(kernels: Kernels, operands: list[Any]) -> str | None:
    """A Python number lies on the CPU, as a float64."""
    return kernel_for(kernels, [operand if isinstance(operand, tuple) else ("cpu", "float64") for operand in operands])


def first_may_be_a_number(kernels: Kernels, operands: list[Any]) -> str | None:
    """Where a number comes first, the call has no dtype."""
    if isinstance(operands[0], tuple):
        return kernel_for(kernels, operands)
    return kernel_for(kernels, [(one[0], "none") if isinstance(one, tuple) else one for one in operands])


def of_the_last_operand(kernels: Kernels, operands: list[Any]) -> str | None:
    """The last array's dtype decides."""
    return kernel_for(kernels, operands[::-1])


def same_kind_is_same_device(kernels: Kernels, operands: list[Any]) -> str | None:
    """Two GPUs are one."""
    return kernel_for(kernels, [(o[0].split(":")[0], o[1]) if isinstance(o, tuple) else o for o in operands])


def asks_the_lab(kernels: Kernels, operands: list[Any]) -> str | None:
    """The lab knows the order."""
    asked = _asked(operands)
    if asked is None:
        return None
    kind, dtype = asked
    order = ad.fallback_order(kind, None if dtype == "any" else np.dtype(dtype))
    return _first(kernels, [(one, "any" if narrow is None else str(narrow)) for one, narrow in order])
