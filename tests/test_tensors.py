"""Tensor: what it is made of, how it mixes with NumPy, and what it refuses."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops

SYNTAX = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
OTHERS = [np.array([3.0, 4.0]), np.float64(2.0), 2, 2.5, np.array(1.5), np.array([[1.0], [2.0]])]


@pytest.mark.parametrize("apply", SYNTAX)
@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_an_array_or_number_on_either_side_gives_a_recorded_tensor_with_the_right_gradient(
    apply: Any, other: Any
) -> None:
    for left in (True, False):
        x = ad.tensor([1.5, 2.0], requires_grad=True)
        result = apply(other, x) if left else apply(x, other)
        assert type(result) is ad.Tensor
        values = x.numpy()
        plain = apply(other, values) if left else apply(values, other)
        np.testing.assert_allclose(result.numpy(), plain, rtol=1e-15)
        result.sum().backward()
        step = 1e-6

        def f(v: Any, left: bool = left) -> Any:
            return np.sum(apply(other, v) if left else apply(v, other))

        differences = [(f(values + step * e) - f(values - step * e)) / (2 * step) for e in np.eye(2)]
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), differences, rtol=1e-6)


@pytest.mark.parametrize("apply", COMPARISONS)
def test_comparisons_give_unrecorded_truth_values_on_either_side(apply: Any) -> None:
    x = ad.tensor([1.0, 3.0], requires_grad=True)
    for result, expected in [
        (apply(x, np.array([2.0, 3.0])), apply(np.array([1.0, 3.0]), np.array([2.0, 3.0]))),
        (apply(np.array([2.0, 3.0]), x), apply(np.array([2.0, 3.0]), np.array([1.0, 3.0]))),
    ]:
        assert type(result) is ad.Tensor and result.dtype == np.bool_ and not result.requires_grad
        assert result.numpy().tolist() == expected.tolist()


def test_matmul_takes_an_array_on_either_side() -> None:
    x = ad.tensor([1.0, 2.0], requires_grad=True)
    (np.array([3.0, 4.0]) @ x).backward()
    assert x.grad is not None and x.grad.numpy().tolist() == [3.0, 4.0]
    assert (x @ np.eye(2)).numpy().tolist() == [1.0, 2.0]


def test_numpy_functions_that_have_an_op_are_op_calls_and_others_refuse_to_cut_the_graph() -> None:
    x = ad.tensor([0.5, 1.0], requires_grad=True)
    assert np.exp(x).requires_grad and np.sum(x).requires_grad and np.where(x > 0.7, x, 0.0).requires_grad
    with pytest.raises(TypeError, match=r"np.heaviside has no gradient here"):
        np.heaviside(x, x)
    with pytest.raises(TypeError, match=r"np.median has no gradient here"):
        np.median(x)
    with pytest.raises(TypeError, match=r"call .numpy\(\)"):
        np.asarray(x)
    assert np.heaviside(x.detach(), 0.0).tolist() == [1.0, 1.0]
    np.testing.assert_allclose(x.detach(), [0.5, 1.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.max(), lambda x: x.min(axis=0), lambda x: x.prod(1), lambda x: x.std(axis=1, ddof=1), lambda x: x.var(),
        lambda x: x.cumsum(0), lambda x: x.cumprod(1), lambda x: x.clip(0.1, 0.3), lambda x: x.round(1), lambda x: x.ravel(),
        lambda x: x.swapaxes(0, 1), lambda x: x.squeeze(), lambda x: x.repeat(2, axis=1), lambda x: x.take([2, 0], axis=1),
        lambda x: x.trace(), lambda x: x.diagonal(1), lambda x: x.dot(x.T), lambda x: x.argmax(axis=1), lambda x: x.argsort(),
        lambda x: x.any(axis=0), lambda x: x.all(), lambda x: abs(x - 0.2),
    ],
)  # fmt: skip
def test_a_method_gives_what_numpys_method_gives(call: Any) -> None:
    x = np.arange(6.0).reshape(2, 3) / 10
    np.testing.assert_allclose(call(ad.tensor(x)).numpy(), call(x), rtol=1e-15, strict=True)


def test_methods_are_the_ops() -> None:
    x = ad.tensor(np.arange(6.0).reshape(2, 3) / 10)
    assert x.reshape(3, 2).shape == x.reshape((3, 2)).shape == (3, 2)
    assert x.T.shape == x.transpose().shape == x.transpose(1, 0).shape == x.transpose((1, 0)).shape == (3, 2)
    assert x.sum(0).numpy().tolist() == x.sum(axis=0).numpy().tolist() == x.numpy().sum(0).tolist()
    for name in ("exp", "tanh", "relu", "sigmoid", "mean"):
        assert np.array_equal(getattr(x, name)().numpy(), getattr(ops, name)(x).numpy())
    assert (-x).numpy().tolist() == (-x.numpy()).tolist()
    assert [row.shape for row in x] == [(3,), (3,)] and len(x) == 2


def test_whole_numbers_are_refused_where_a_gradient_is_wanted_with_the_way_out() -> None:
    with pytest.raises(TypeError, match=r"floating dtype, got int64; write 1.0 instead of 1, or pass dtype='float64'"):
        ad.tensor([1, 2, 3], requires_grad=True)
    assert ad.tensor([1, 2, 3], dtype="float32", requires_grad=True).dtype == np.float32
    with pytest.raises(TypeError, match="complex numbers are not supported"):
        ad.tensor([1j])
    with pytest.raises(TypeError, match="expected real numbers"):
        ad.tensor(["a"])
    with pytest.raises(TypeError, match="real numbers"):
        ad.tensor([1.0]) * np.array([1j])
    with pytest.raises(TypeError, match="an operand has dtype complex128; ops take real numbers"):
        ad.tensor([1.0], requires_grad=True) * 1j
    with pytest.raises(TypeError, match="an operand has dtype complex128; ops take real numbers"):
        ops.exp(1j)


def test_casting_to_whole_numbers_stops_the_gradient() -> None:
    x = ad.tensor([1.5], requires_grad=True)
    assert not x.astype("int64").requires_grad
    assert x.astype("float32").requires_grad


def test_a_tensor_says_what_it_is() -> None:
    assert repr(ad.tensor(2.0)) == "tensor(2.)"
    assert repr(ad.tensor([1.0], "float32", requires_grad=True, name="w")) == (
        "tensor([1.], dtype=float32, requires_grad=True, name='w')"
    )
    assert len(repr(ad.tensor(np.zeros(10_000)))) < 100


def test_one_truth_value_or_number_needs_one_element() -> None:
    assert bool(ad.tensor(1.0) > 0) and float(ad.tensor([2.0])) == 2.0 and int(ad.tensor(3)) == 3
    assert [10, 20, 30][ad.tensor(1)] == 20
    with pytest.raises(ValueError, match=r"shape \(2,\) is not one truth value"):
        bool(ad.tensor([1.0, 2.0]))
    with pytest.raises(ValueError, match="item"):
        ad.tensor([1.0, 2.0]).item()
    with pytest.raises(TypeError, match="only a whole-number Tensor"):
        [10, 20][ad.tensor(1.0)]


def test_a_tensor_is_hashable_by_identity_and_equal_to_none_is_false() -> None:
    x = ad.tensor([1.0, 2.0])
    assert {x: 1}[x] == 1
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711


def test_an_index_may_be_a_tensor() -> None:
    x = ad.tensor([10.0, 20.0, 30.0], requires_grad=True)
    x[ad.tensor([2, 0, 2, 2])].backward(np.array([1.0, 2.0, 4.0, 8.0]))
    assert x.grad is not None and x.grad.numpy().tolist() == [2.0, 0.0, 13.0]


def test_detach_gives_a_constant_and_no_grad_records_nothing() -> None:
    x = ad.tensor(2.0, requires_grad=True)
    assert not x.detach().requires_grad
    with ad.no_grad():
        assert not (x * x).requires_grad
    assert (x * x).requires_grad
    assert float(ad.grad(lambda v: v * v.detach())(3.0)) == 3.0


def test_an_op_error_names_op_operands_and_what_is_wrong() -> None:
    x = ad.tensor(np.ones((2, 3)))
    with pytest.raises(
        ad.OpError, match=r"add\(x: \(2, 3\) float64, y: \(2,\) float64\): the shapes .* do not broadcast"
    ):
        x + np.ones(2)
    with pytest.raises(
        ad.OpError, match=r"matmul\(x: \(2, 3\) float64, y: \(2, 2\) float64\): the last axis of x has size 3"
    ):
        x @ np.ones((2, 2))
    with pytest.raises(ad.OpError, match=r"sum\(x: \(2, 3\) float64, axis=2, keepdims=False\): axis 2 is out of range"):
        x.sum(axis=2)
    with pytest.raises(ad.OpError, match="do not fill the shape"):
        x.reshape(4, 2)
    with pytest.raises(ad.OpError, match="expected a NumPy or CuPy array, got str"):
        x + "a"


def test_an_unknown_device_is_refused_with_what_there_is() -> None:
    with pytest.raises(ValueError, match="unknown device 'tpu'; this machine has: cpu: NumPy"):
        ad.tensor(1.0, device="tpu")
    x = ad.tensor(1.0)
    assert x.to("cpu") is x and x.device == "cpu"
    assert ad.devices()[0].startswith("cpu")
