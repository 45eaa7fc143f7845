"""Tensor: what it is made of, how it mixes with NumPy, and what it refuses."""

from __future__ import annotations

import copy
import math
import operator
import pickle
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
    with pytest.raises(ad.OpError, match="an operand is str; ops take Tensors, arrays and numbers"):
        x + "a"


def test_an_unknown_device_is_refused_with_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"unknown device 'tpu': write .*this machine has: cpu: NumPy"):
        ad.tensor(1.0, device="tpu")
    x = ad.tensor(1.0)
    assert x.to("cpu") is x and x.device == "cpu"
    assert ad.devices()[0].startswith("cpu")


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copied_leaf_is_a_leaf_of_its_own_with_the_same_value_gradient_and_name(copied: Any) -> None:
    w = ad.tensor([1.0, 2.0], requires_grad=True, name="w")
    b = ad.tensor(1.0, requires_grad=True)
    (w * w).sum().backward()
    w2 = copied(w)
    assert w2.grad is not None and w2.grad.numpy().tolist() == [2.0, 4.0] and w2.name == "w"
    w2.grad = None
    ((w2 * 2.0 + b) ** 2).sum().backward()
    assert b.grad is not None and b.grad.item() == 16.0
    assert w2.grad is not None and w2.grad.numpy().tolist() == [12.0, 20.0] and not w2.grad.requires_grad
    assert w.grad is not None and w.grad.numpy().tolist() == [2.0, 4.0]
    constant = copied(ad.tensor([1.0]))
    assert not constant.requires_grad


@pytest.mark.parametrize("copied", [copy.deepcopy, pickle.dumps])
def test_a_result_is_not_copied_away_from_its_graph(copied: Any) -> None:
    y = ad.tensor([1.0], requires_grad=True) * 2.0
    with pytest.raises(TypeError, match=r"result of an op, and its graph would be torn .* copy detach\(\) instead"):
        copied(y)


def test_a_recorded_tensor_never_becomes_a_constant_without_a_word() -> None:
    x = ad.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(TypeError, match=r"its gradient would be lost; use it as it is, or say .detach\(\)"):
        ad.tensor(x)
    with pytest.raises(TypeError, match=r"joined by ops.stack or ops.concatenate"):
        ad.tensor([x, x])
    with pytest.raises(TypeError, match="a Tensor of a Tensor"):
        ad.Tensor(x)
    with pytest.raises(TypeError, match=r"use ops.exp and the like instead of math.exp"):
        ad.grad(lambda v: v * math.exp(v))(1.0)
    with pytest.warns(UserWarning, match=r"is a constant, through which no gradient flows"):
        math.exp(x.sum())
    with pytest.raises(ValueError, match="backward inside grad"):
        ad.grad(lambda v: (v * v).backward())(1.0)


def test_an_update_in_place_needs_no_grad_and_keeps_the_leaf() -> None:
    w = ad.tensor([1.0, 2.0], requires_grad=True)
    same = w
    loss = (w * w).sum()
    with pytest.raises(TypeError, match=r"write it inside `with ad.no_grad\(\):`"):
        w -= 0.5
    loss.backward()
    with ad.no_grad():
        w -= 0.1 * w.grad
    assert w is same and w.requires_grad and np.allclose(w.numpy(), [0.8, 1.6])
    loss.backward()
    assert w.grad is not None and w.grad.numpy().tolist() == [4.0, 8.0], "the gradient of the point that was recorded"
    h = w * 1.0
    h *= 2.0
    assert h.requires_grad and not h.is_leaf


def test_an_index_that_changes_after_the_call_does_not_change_the_gradient() -> None:
    index, mask, listed = np.array([0, 1]), np.array([True, True, False]), [0, 1]
    x = ad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    taken = [x[index], x[mask], x[listed], ops.take(x, index), ops.getitem(x, (index,))]
    graph = ad.record(lambda v: v[index].sum(), np.ones(3))
    value, pull = ad.vjp(lambda v: v[index], np.ones(3))
    index[:], mask[:], listed[:] = 2, [False, False, True], [2, 2]
    for y in taken:
        x.grad = None
        y.backward(np.ones(2))
        assert x.grad is not None and x.grad.numpy().tolist() == [1.0, 1.0, 0.0]
    assert float(graph(np.array([1.0, 2.0, 3.0]))) == 3.0
    assert pull(np.ones(2))[0].tolist() == [1.0, 1.0, 0.0] and value.tolist() == [1.0, 1.0]


def test_a_number_is_printed_like_a_number() -> None:
    loss = ad.tensor(0.123456, requires_grad=True) * 1.0
    assert f"{loss:.3f}" == "0.123" and "tensor" in f"{loss}"


@pytest.mark.parametrize(
    ("data", "message"),
    [([[1, 2], [3]], "not a regular array of numbers"), (None, "got NoneType of dtype object"), ({1: 2}, "got dict")],
)
def test_what_is_no_array_of_numbers_is_refused_in_plain_words(data: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ad.tensor(data)
