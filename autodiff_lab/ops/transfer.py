"""The op that moves numbers between devices. Nothing else does: an op whose operands lie on two devices refuses."""

from __future__ import annotations

from typing import Any

from ..backend import asarray
from ..operand_rules import Shape
from ..operators import op
from .sampling import Call, normal

# An op with an attribute ``device`` makes its result there. The host runs it, so it is never queued on a device.


@op(views="x")
def to_device(xp: Any, x: Any, *, device: str) -> Any:
    """The same numbers on another device, such as "cpu", "cuda:0" or "sim:0". The gradient moves back.

    Source of the name: the Python array API standard.

    >>> ops.to_device(np.array([1.0, 2.0]), "sim:0")
    <array on sim:0 (simulated), (2,) float64>
    """
    return asarray(x, device=device)


@to_device.shape_rule
def to_device_shape(x: Shape) -> Shape:
    return x


@to_device.batch_rule
def to_device_batch(x: Any, *, device: str) -> Any:
    return to_device(x, device=device)


@to_device.vjp
def to_device_vjp(g: Any, x_device: str) -> Any:
    return to_device(g, device=x_device)


@to_device.jvp
def to_device_jvp(dx: Any, *, device: str) -> Any:
    return to_device(dx, device=device)


@to_device.samples
def to_device_samples() -> list[Call]:
    return [((normal(2, 3),), {"device": "cpu"}), ((normal(),), {"device": "cpu"})]
