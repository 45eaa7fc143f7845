"""Ops that the tests of views register: each function registers one and gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import autodiff_widgets as aw

import autodiff_lab as ad
from autodiff_lab.events import Event
from autodiff_lab.operators import Binding


def typed_op() -> Any:
    """Types, an attribute, and a gradient rule."""

    @ad.op(types="x: float, w: float -> y: float", elementwise=True)
    def scaled(xp: Any, x: Any, w: Any, *, alpha: float = 1.0) -> Any:
        return alpha * w * x

    @scaled.vjp("x")
    def scaled_vjp_x(g: Any, w: Any, *, alpha: float) -> Any:
        return alpha * g * w

    return scaled


def family() -> Any:
    """Two outputs and an optional input: four ops."""

    @ad.op(types="x: T, y: T, b: T? -> low: T, high: T", elementwise=True)
    def spread(xp: Any, x: Any, y: Any, b: Any = None) -> Any:
        return x - y, x + y

    return spread


def op_with_creator() -> Any:
    """The lecture's spelling."""

    def create(context: ad.KernelContext) -> Callable[[Any], Any]:
        return lambda x: context.attributes["factor"] * x

    registration = ad.register_op("Scaled").input("x: float32").output("y: float32").attr("factor: float = 2.0")
    return registration.shape_fn(lambda context: context.input_shape(0)).kernel_creator(create)


def op_for_float32() -> Any:
    """One kernel, for one dtype."""

    def halved(xp: Any, x: Any) -> Any:
        return x / 2

    registration = ad.register_op("Halved").input("x: float").output("y: float")
    return registration.shape_fn(lambda context: context.input_shape("x")).kernel(halved, "cpu", "float32")


OPS = (typed_op, family, op_with_creator, op_for_float32)


def with_kernels() -> Binding:
    """An op with kernels for several devices and dtypes."""

    @ad.op(elementwise=True)
    def product(xp: Any, x: Any, y: Any) -> Any:
        return x * y

    for device, dtype in (("cpu", "float32"), ("any", "float32"), ("cuda", None), ("cpu", "float64")):

        @product.kernel(device, dtype)
        def special(xp: Any, x: Any, y: Any) -> Any:
            return x * y

    return product


def dispatch_of_kernels(**options: Any) -> aw.DispatchView:
    """The search among them."""
    return aw.DispatchView(with_kernels(), **options)


def heard_while(register: Callable[[], Any]) -> list[Event]:
    """What is told while something is registered."""
    with ad.listen() as heard:
        register()
    return heard
