"""Which kernel runs: the fallback order, what dispatch tells, and the error where there is no kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import events
from autodiff_lab.bindings import binding_source
from autodiff_lab.dispatch import DEVICE_KINDS, fallback_order

KEYS = [("any", None), ("any", "float32"), ("cpu", None), ("cpu", "float32"), ("cuda", None), ("sim", "float32")]


def op_with(keys: list[tuple[str, Any]], ran: list[Any]) -> Any:
    """An op with one kernel for each key; each notes its key when it runs."""
    chain = ad.register_op("noted").input("x").input("y").output("z").elementwise()
    for key in keys:
        chain.kernel(_noting(key, ran), *key)
    return ad.ops.noted  # type: ignore[attr-defined]


def _noting(key: tuple[str, Any], ran: list[Any]) -> Any:
    def kernel(xp: Any, x: Any, y: Any) -> Any:
        ran.append(key)
        return x + y

    kernel.__name__ = f"{key[0]}_{key[1]}"
    return kernel


def expected(keys: list[tuple[str, Any]], kind: str, dtype: str) -> tuple[str, Any] | None:
    """The order in words: device and dtype, device, any library and dtype, any library."""
    order = [(kind, dtype), (kind, None), ("any", dtype), ("any", None)]
    return next((key for key in order if key in keys), None)


@pytest.mark.parametrize("mask", range(1, 2 ** len(KEYS)))
def test_the_kernel_that_runs_is_the_first_of_the_order_and_the_one_that_dispatch_tells(mask: int) -> None:
    keys = [key for place, key in enumerate(KEYS) if mask >> place & 1]
    ran: list[Any] = []
    op = op_with(keys, ran)
    for dtype in ("float32", "float64"):
        x = np.ones(2, dtype)
        for kind in DEVICE_KINDS:
            told = ad.dispatch_told(op, [x, x], device=f"{kind}:0")
            assert all(isinstance(event, events.KernelConsidered) for event in told)
            chosen = [(e.device, None if e.dtype == "any" else e.dtype) for e in told if e.chosen]  # type: ignore[union-attr]
            found = expected(keys, kind, dtype)
            assert chosen == ([] if found is None else [found])
            assert len(told) == 4 if found is None else told[-1].chosen  # type: ignore[union-attr]
        for call in (lambda x=x: op(x, x), lambda x=x: op(1.0, x), lambda x=x: op(ad.tensor(x), ad.tensor(x))):  # type: ignore[misc]
            ran.clear()
            if (found := expected(keys, "cpu", dtype)) is None:
                with pytest.raises(
                    ad.OpError, match=f"noted has no kernel for cpu and {dtype}; it has, by device and dtype: "
                ):
                    call()
            else:
                call()
            assert ran == [expected(keys, "cpu", dtype)] or (found is None and not ran)


def test_a_stand_in_accelerator_never_runs_the_kernels_of_cuda() -> None:
    for dtype in (np.dtype("float32"), None):
        assert {device for device, _ in fallback_order("sim", dtype)} == {"sim", "any"}


def test_the_error_lists_every_kernel_and_says_how_to_add_one() -> None:
    op = op_with([("cuda", None), ("sim", "float32")], [])
    with pytest.raises(ad.OpError) as error:
        op(1.0, 2.0)
    assert str(error.value) == (
        "noted has no kernel for cpu and numbers without a dtype; it has, by device and dtype: cuda_None for cuda and any; "
        "sim_float32 for sim and float32. Add one with @noted.kernel('cpu'), or bring the operands to a device and dtype that "
        "has one"
    )


@pytest.mark.parametrize("keys", [[("any", None)], [("any", None), ("cpu", "float32")], [("cpu", None)], KEYS])
def test_an_op_with_special_kernels_is_recorded_by_the_fast_path_too(keys: Any) -> None:
    op = op_with(keys, [])
    op(1.0, 2.0)
    source = binding_source(op.op)
    assert "_next_serial()" in source and ("_kernels.get(" in source) == any(dtype for _, dtype in keys)


def test_a_kernel_registered_after_the_first_call_is_used_from_then_on() -> None:
    ran: list[Any] = []
    op, x = op_with([("any", None)], ran), np.ones(2)
    op(x, x)
    op.kernel("cpu")(_noting(("cpu", None), ran))
    op(x, x)
    op(1.0, x)
    op.kernel("cpu", dtype=float)(_noting(("cpu", "float64"), ran))
    op(x, x)
    op(ad.tensor(x), ad.tensor(x))
    assert ran == [("any", None), ("cpu", None), ("cpu", None), ("cpu", "float64"), ("cpu", "float64")]
