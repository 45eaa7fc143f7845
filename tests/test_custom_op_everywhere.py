"""The lecture's own op, in both spellings and on two devices: it works in every reading, and passes its checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.backend import asarray, device_of, to_numpy
from tests.test_registration import X, my_custom_op_by_chain, my_custom_op_by_decorator

TANH = np.tanh(X.astype(np.float64))
VALUE, SLOPE, BEND = 2 * TANH, 2 * (1 - TANH**2), -4 * TANH * (1 - TANH**2)


@pytest.fixture(params=[my_custom_op_by_decorator, my_custom_op_by_chain], ids=["decorator", "chain"])
def f(request: pytest.FixtureRequest) -> Any:
    op = request.param()
    return lambda x: op(x, alpha=2.0)


@pytest.fixture(params=["cpu", "sim:0"])
def x(request: pytest.FixtureRequest) -> Any:
    return asarray(X, device=request.param)


def assert_is(found: Any, expected: Any, like: Any) -> None:
    assert (device_of(found), found.dtype, found.shape) == (device_of(like), np.float32, X.shape)
    np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-4)


def slopes(f: Any) -> Any:
    return ad.grad(lambda v: ops.sum(f(v)))


def test_a_call_gives_an_array_where_its_operand_lies(f: Any, x: Any) -> None:
    assert_is(f(x), VALUE, x)


def test_it_differentiates_twice(f: Any, x: Any) -> None:
    assert_is(slopes(f)(x), SLOPE, x)
    assert_is(slopes(slopes(f))(x), BEND, x)


def test_backward_leaves_the_gradient_beside_its_tensor(f: Any, x: Any) -> None:
    leaf = ad.tensor(X, device=device_of(x), requires_grad=True)
    f(leaf).sum().backward()
    assert leaf.grad is not None
    assert_is(leaf.grad.data, SLOPE, x)


def test_both_modes_agree(f: Any, x: Any) -> None:
    value, slope = ad.jvp(f, (x,), (ops.ones_like(x),))
    assert_is(value, VALUE, x)
    assert_is(slope, SLOPE, x)
    assert_is(ad.jvp(slopes(f), (x,), (ops.ones_like(x),))[1], BEND, x)


def test_a_recorded_joint_graph_knows_its_device_and_runs_there(f: Any, x: Any) -> None:
    graph = ad.record(ad.value_and_grad(lambda v: ops.sum(f(v))), x)
    (node,) = [node for node in graph if node.label == "MyCustomOp"]
    assert (node.device, node.dtype, node.shape) == (device_of(x), np.float32, X.shape)
    assert_is(graph(x)[1], SLOPE, x)


def test_the_same_numbers_on_both_devices_bit_for_bit(f: Any) -> None:
    there = asarray(X, device="sim:0")
    for g in (f, slopes(f), slopes(slopes(f))):
        assert to_numpy(g(there)).tobytes() == g(X).tobytes()


def test_it_passes_every_test_of_opcheck_that_applies(f: Any) -> None:
    report = ad.opcheck(ops.MyCustomOp)  # type: ignore[attr-defined]
    assert report.ok, str(report)
    waiting = [test.name for test in report.tests if test.verdict != "passed"]
    assert waiting == ["kernels agree"], str(report)


def test_a_float64_array_is_refused_in_one_sentence(f: Any, x: Any) -> None:
    with pytest.raises(ad.OpError, match=r"MyCustomOp.*x is declared float32.*astype"):
        f(ops.astype(x, dtype="float64"))
