"""The laws about other devices that opcheck holds an op to: kernels and rules run where their operands lie.

They are judged on the simulated device, which is as strict as a GPU: NumPy is refused there, and no number leaves unasked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from . import backend, events
from .dispatch import fallback_order
from .gradient_laws import SOUND, floating, has_no
from .op_calls import OpCall
from .operator_laws import law, unlike
from .operators import Op
from .sample_grids import outcome

DEVICE = "sim:0"
_STAND_IN = f"{DEVICE}, a stand-in for a GPU"


def _not_there(op: Op) -> str:
    if "device" in op.attributes:
        return "the op says itself where its result lies"
    kinds = {kind for kind, _ in op.kernels}
    return "" if kinds & {"sim", "any"} else f"its kernels are for {' and '.join(sorted(kinds))} alone"


def _moving_calls(calls: Sequence[OpCall]) -> list[OpCall]:
    """The calls with an array, which can lie on a device, and a kernel there."""
    return [call for call in calls if call.arrays and _has_kernel(call)]


def _has_kernel(call: OpCall) -> bool:
    dtype = next((operand.dtype for operand in call.operands if hasattr(operand, "dtype")), None)
    return any(key in call.op.kernels for key in fallback_order("sim", dtype))


@law("kernel on a device", _moving_calls, _not_there, ["schema", "determinism", "kernels agree"])
def kernel_runs_where_its_operands_lie(call: OpCall) -> str | None:
    """On a strict device the op gives the numbers of the CPU."""
    expected = outcome(call)
    if not isinstance(expected, np.ndarray):
        return None
    operands = call.moved(DEVICE)
    kernel = call.op.kernel_for(DEVICE, operands)
    try:
        got = backend.to_numpy(call.run(operands))
    except Exception as error:
        return f"the kernel {kernel.__name__} does not run on {_STAND_IN}: {error.__cause__ or error}"
    problem = unlike(got, expected)
    return f"the kernel {kernel.__name__} on {_STAND_IN}, {problem} of the CPU" if problem else None


@law(
    "rules on a device",
    lambda calls: _moving_calls(floating(calls)),
    lambda op: _not_there(op) or (has_no("vjp")(op) and has_no("jvp")(op)),
    (*SOUND, "gradient shapes", "rules need no numbers", "kernel on a device"),
)
def rules_run_where_their_operands_lie(call: OpCall) -> str | None:
    """On a strict device each gradient rule gives the numbers of the CPU, and leaves them on the device."""
    here, there = (_named(call, device) for device in ("cpu", DEVICE))
    for kind, place in product(("vjp", "jvp"), call.moving):
        if not call.has_rule(place, kind):
            continue
        expected = _asked(call, place, kind, here)
        try:
            with events.listen() as told:
                got = _asked(call, place, kind, there)
            problem = _left_device(got, told) or unlike(backend.to_numpy(got), expected)
        except Exception as error:
            problem = f"stops with {type(error).__name__}: {error}"
        if problem:
            return (
                f"{call.rule(place, kind)} on {_STAND_IN}, {problem}. A rule makes its arrays with ops, from what it is given, "
                "as in ops.ones_like(g), and chooses with ops.where"
            )
    return None


def _named(call: OpCall, device: str) -> dict[str, Any]:
    """What a gradient rule may name, on a device: operands and result."""
    operands = call.moved(device)
    return dict(zip(call.names, operands, strict=True)) | {"out": call.run(operands)}


def _asked(call: OpCall, place: int, kind: str, named: Mapping[str, Any]) -> Any:
    """What one gradient rule gives for a cotangent or tangent of ones."""
    like = named["out" if kind == "vjp" else call.names[place]]
    ones = backend.asarray(np.ones(like.shape, like.dtype), device=backend.device_of(like))
    apply = call.op.apply_vjp if kind == "vjp" else call.op.apply_jvp
    return apply(place, ones, dict(named), call.attributes)


def _left_device(got: Any, told: Sequence[events.Event]) -> str:
    """How a rule brought numbers to the host; "" where it did not."""
    waits = [event.asked_by for event in told if isinstance(event, events.Synchronised)]
    if waits:
        return f"brings numbers to the host by {waits[0]}, so that the host waits for the device at every call"
    device = backend.device_of(got)
    return "" if device == DEVICE else f"gives an array on {device}"
