"""Every op on the simulated device gives what it gives on the CPU, bit for bit; tests/gpu asks the same of a real GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.backend import asarray, device_of, to_numpy
from autodiff_lab.operators import Op
from tests.test_every_op import EVERY_CALL, EVERY_DIFFERENTIABLE_CALL, applied, flowing, like

SIM = "sim:0"
Functions = tuple[Any, list[Any]]


def moved(values: Any, device: str = SIM) -> list[Any]:
    return [asarray(value, device=device) if isinstance(value, np.ndarray) else value for value in values]


def assert_same_bits(found: Any, expected: Any) -> None:
    found, expected = to_numpy(found), np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.tobytes() == expected.tobytes(), (found, expected)


def here_and_there(op: Op, operands: Any, attributes: dict[str, Any]) -> tuple[Functions, Functions]:
    """The op as a function of its flowing operands, and these: on the CPU, and on the simulated device."""
    places = flowing(op, operands)

    def of(given: Any) -> Functions:
        def f(*values: Any) -> Any:
            chosen = dict(zip(places, values, strict=True))
            return applied(op, [chosen.get(place, operand) for place, operand in enumerate(given)], attributes)

        return f, [given[place] for place in places]

    return of(operands), of(moved(operands))


def squared(f: Any) -> Any:
    def loss(*values: Any) -> Any:
        result = f(*values)
        return ops.sum(result * result)

    return loss


@EVERY_CALL
def test_an_op_gives_the_same_numbers(op: Op, operands: Any, attributes: dict[str, Any]) -> None:
    result = applied(op, moved(operands), attributes)
    assert device_of(result) == attributes.get("device", SIM)
    assert_same_bits(result, applied(op, operands, attributes))


@EVERY_DIFFERENTIABLE_CALL
def test_both_modes_give_the_same_derivatives(op: Op, operands: Any, attributes: dict[str, Any]) -> None:
    (f, values), (g, there) = here_and_there(op, operands, attributes)
    (result, pull), (result_there, pull_there) = ad.vjp(f, *values), ad.vjp(g, *there)
    cotangent, tangents = like([result], 1)[0], like(values, 2)
    (seed,) = moved([cotangent], device_of(result_there))
    for found, expected in zip(pull_there(seed), pull(cotangent), strict=True):
        assert device_of(found) == SIM
        assert_same_bits(found, expected)
    pushed = ad.jvp(g, tuple(there), tuple(moved(tangents)))[1]
    assert_same_bits(pushed, ad.jvp(f, tuple(values), tuple(tangents))[1])


@EVERY_DIFFERENTIABLE_CALL
def test_jacobians_and_second_derivatives_are_the_same(op: Op, operands: Any, attributes: dict[str, Any]) -> None:
    (f, values), (g, there) = here_and_there(op, operands, attributes)
    places, tangents = tuple(range(len(values))), like(values, 3)
    products = ad.hvp(squared(g), there, moved(tangents)), ad.hvp(squared(f), values, tangents)
    jacobians = ad.jacobian(g, places)(*there), ad.jacobian(f, places)(*values)
    for found, expected in (*zip(*products, strict=True), *zip(*jacobians, strict=True)):
        assert_same_bits(found, expected)


@EVERY_DIFFERENTIABLE_CALL
def test_tensors_and_a_recorded_joint_graph_give_the_same_gradients(
    op: Op, operands: Any, attributes: dict[str, Any]
) -> None:
    (f, values), (g, there) = here_and_there(op, operands, attributes)
    places = tuple(range(len(values)))
    leaves = [ad.tensor(value, requires_grad=True, device=SIM) for value in values]
    squared(g)(*leaves).backward()
    graph = ad.record(ad.value_and_grad(squared(g), places), *there)
    lying = {n.device for n in graph if not (n.kind == "constant" and isinstance(n.value, (int, float)))}
    assert "device" in attributes or lying == {SIM}
    expected = ad.grad(squared(f), places)(*values)
    for leaf, from_graph, gradient in zip(leaves, graph(*there)[1], expected, strict=True):
        assert leaf.grad is not None and leaf.grad.device == SIM
        assert_same_bits(leaf.grad.data, gradient)
        assert_same_bits(from_graph, gradient)
