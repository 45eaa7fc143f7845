"""Every op on every device gives what it gives on the CPU: on the simulated one bit for bit, on a real GPU up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.backend import asarray, device_of, devices, to_numpy
from autodiff_lab.operators import Op
from tests.test_every_op import EVERY_CALL, EVERY_DIFFERENTIABLE_CALL, applied, like, of_flowing

ELSEWHERE = pytest.mark.parametrize("device", ["sim:0", pytest.param("cuda:0", marks=pytest.mark.gpu)])


@pytest.fixture(autouse=True)
def the_device_is_there(device: str) -> None:
    if not any(line.startswith(device) for line in devices()):
        pytest.skip(f"this machine has no {device}")


def moved(values: Any, device: str) -> list[Any]:
    return [asarray(value, device=device) if isinstance(value, np.ndarray) else value for value in values]


def assert_same(found: Any, expected: Any, device: str) -> None:
    """The same number for number: in every bit where NumPy computes both."""
    found, expected = to_numpy(found), np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if device.startswith("sim"):
        assert found.tobytes() == expected.tobytes(), np.testing.assert_array_equal(found, expected)
    else:
        rtol = {2: 4e-3, 4: 2e-5}.get(expected.dtype.itemsize, 1e-11)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


def squared(f: Any) -> Any:
    def loss(*values: Any) -> Any:
        result = f(*values)
        return ops.sum(result * result)

    return loss


@ELSEWHERE
@EVERY_CALL
def test_an_op_gives_the_same_numbers(op: Op, operands: Any, attributes: dict[str, Any], device: str) -> None:
    result = applied(op, moved(operands, device), attributes)
    assert device_of(result) == attributes.get("device", device)
    assert_same(result, applied(op, operands, attributes), device)


@ELSEWHERE
@EVERY_DIFFERENTIABLE_CALL
def test_both_modes_give_the_same_derivatives(op: Op, operands: Any, attributes: dict[str, Any], device: str) -> None:
    f, values = of_flowing(op, operands, attributes)
    g, there = of_flowing_on(device, op, operands, attributes)
    (result, pull), (result_there, pull_there) = ad.vjp(f, *values), ad.vjp(g, *there)
    cotangent, tangents = like([result], 1)[0], like(values, 2)
    (seed,) = moved([cotangent], device_of(result_there))
    for found, expected in zip(pull_there(seed), pull(cotangent), strict=True):
        assert device_of(found) == device
        assert_same(found, expected, device)
    pushed = ad.jvp(g, tuple(there), tuple(moved(tangents, device)))[1]
    assert_same(pushed, ad.jvp(f, tuple(values), tuple(tangents))[1], device)


@ELSEWHERE
@EVERY_DIFFERENTIABLE_CALL
def test_jacobians_and_second_derivatives_are_the_same(
    op: Op, operands: Any, attributes: dict[str, Any], device: str
) -> None:
    f, values = of_flowing(op, operands, attributes)
    g, there = of_flowing_on(device, op, operands, attributes)
    places, tangents = tuple(range(len(values))), like(values, 3)
    products = ad.hvp(squared(g), there, moved(tangents, device)), ad.hvp(squared(f), values, tangents)
    jacobians = ad.jacobian(g, places)(*there), ad.jacobian(f, places)(*values)
    for found, expected in (*zip(*products, strict=True), *zip(*jacobians, strict=True)):
        assert_same(found, expected, device)


@ELSEWHERE
@EVERY_DIFFERENTIABLE_CALL
def test_tensors_and_a_recorded_joint_graph_give_the_same_gradients(
    op: Op, operands: Any, attributes: dict[str, Any], device: str
) -> None:
    f, values = of_flowing(op, operands, attributes)
    g, there = of_flowing_on(device, op, operands, attributes)
    places = tuple(range(len(values)))
    expected = ad.grad(squared(f), places)(*values)
    leaves = [ad.tensor(value, requires_grad=True, device=device) for value in values]
    squared(g)(*leaves).backward()
    graph = ad.record(ad.value_and_grad(squared(g), places), *there)
    lying = [n.device for n in graph if not (n.kind == "constant" and isinstance(n.value, (int, float, np.generic)))]
    assert "device" in attributes or set(lying) == {device}
    for leaf, from_graph, gradient in zip(leaves, graph(*there)[1], expected, strict=True):
        assert leaf.grad is not None and leaf.grad.device == device
        assert_same(leaf.grad.data, gradient, device)
        assert_same(from_graph, gradient, device)


def of_flowing_on(device: str, op: Op, operands: Any, attributes: dict[str, Any]) -> tuple[Any, list[Any]]:
    """``of_flowing`` on a device: what does not flow lies there too."""
    there = moved(operands, device)
    places = [
        place
        for place, value in enumerate(operands)
        if any(value is v for v in of_flowing(op, operands, attributes)[1])
    ]

    def f(*values: Any) -> Any:
        given = list(there)
        for place, value in zip(places, values, strict=True):
            given[place] = value
        return applied(op, given, attributes)

    return f, [there[place] for place in places]
