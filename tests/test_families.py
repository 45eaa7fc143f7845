"""Ops with several outputs or optional inputs: one function for users, plain ops for everything else."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops

X, Y = np.array([5.0, 7.5]), np.array([2.0, 3.0])


def divide_whole(runs: list[str]) -> Any:
    @ad.op(types="x: T, y: T -> quotient: T, remainder: T")
    def divide_whole(xp: Any, x: Any, y: Any) -> Any:
        """How often y goes into x, and what is left."""
        runs.append(type(x).__name__)
        quotient = xp.floor_divide(x, y)
        return quotient, x - quotient * y

    divide_whole.shape_rule(lambda x, y: np.broadcast_shapes(x, y))
    divide_whole.quotient.vjp("x")(lambda g: g * 0.0)
    divide_whole.quotient.vjp("y")(lambda g: g * 0.0)
    divide_whole.quotient.jvp("x")(lambda dx: dx * 0.0)
    divide_whole.quotient.jvp("y")(lambda dy: dy * 0.0)

    @divide_whole.remainder.vjp("x")
    def remainder_vjp_x(g: Any) -> Any:
        return g

    @divide_whole.remainder.vjp("y")
    def remainder_vjp_y(g: Any, x: Any, y: Any) -> Any:
        return -g * divide_whole.quotient(x, y)

    @divide_whole.remainder.jvp("x")
    def remainder_jvp_x(dx: Any) -> Any:
        return dx

    @divide_whole.remainder.jvp("y")
    def remainder_jvp_y(dy: Any, x: Any, y: Any) -> Any:
        return -dy * divide_whole.quotient(x, y)

    return divide_whole


@pytest.mark.parametrize(
    "wrap",
    [
        lambda a: a,
        list,
        ad.tensor,
        lambda a: ad.tensor(a, requires_grad=True),
        lambda a: 5.5,
    ],
    ids=["arrays", "lists", "tensors", "recorded", "numbers"],
)
def test_the_kernel_of_several_outputs_runs_once_in_a_call(wrap: Any) -> None:
    runs: list[str] = []
    both = divide_whole(runs)
    for _ in range(3):
        runs.clear()
        quotient, remainder = both(wrap(X), wrap(Y))
        assert len(runs) == 1
    x, y = (a if isinstance(wrap(a), (list, np.ndarray, ad.Tensor)) else np.asarray(5.5) for a in (X, Y))
    numbers = [part.numpy() if isinstance(part, ad.Tensor) else part for part in (quotient, remainder)]
    np.testing.assert_allclose(numbers, [x // y, x - x // y * y])


def test_a_kernel_that_fails_leaves_nothing_for_the_next_call() -> None:
    runs: list[str] = []
    both = divide_whole(runs)
    with pytest.raises(ad.OpError, match=r"divide_whole.quotient\(x: \(2,\) float64, y: \(3,\) float64\)"):
        both(X, np.ones(3))
    runs.clear()
    both.quotient(X, Y)
    both.remainder(X, Y)
    assert len(runs) == 2


def test_rules_that_call_the_family_get_values_of_their_own_operands() -> None:
    both = divide_whole([])

    def f(x: Any, y: Any) -> Any:
        q, r = both(x, y)
        return q + r * r

    q, r = X // Y, X - X // Y * Y
    gx, gy = ad.grad(lambda x, y: ops.sum(f(x, y)), (0, 1))(X, Y)
    np.testing.assert_allclose(gx, 2 * r)
    np.testing.assert_allclose(gy, -2 * r * q)
    value, tangent = ad.jvp(f, (X, Y), (np.ones(2), np.ones(2)))
    np.testing.assert_allclose(value, q + r * r)
    np.testing.assert_allclose(tangent, gx + gy)
    assert bool(ad.gradcheck(lambda x, y: ops.sum(f(x, y)), (X, Y), order=2))
    np.testing.assert_allclose(ad.jacobian(lambda x: both(x, Y)[1])(X), np.eye(2))


def test_a_graph_holds_one_plain_op_for_each_output() -> None:
    both = divide_whole([])
    graph = ad.record(lambda x, y: both(x, y), X, Y)
    assert [node.label for node in graph] == ["input", "input", "divide_whole.quotient", "divide_whole.remainder"]
    assert ad.Graph.from_json(graph.to_json()) == graph
    for result, expected in zip(graph(X, Y), both(X, Y), strict=True):
        np.testing.assert_array_equal(result, expected)
    assert "divide_whole.quotient" in graph.to_dot()


def test_users_see_one_function_and_the_registry_plain_ops() -> None:
    both = divide_whole([])
    assert ops.divide_whole is both and dir(ops).count("divide_whole") == 1  # type: ignore[attr-defined]
    assert not any("." in name for name in dir(ops))
    assert str(inspect.signature(both)) == "(x, y)" and both.__doc__.startswith("How often")
    assert [name for name in ad.registry if name.startswith("divide_whole")] == [
        "divide_whole.quotient",
        "divide_whole.remainder",
    ]
    with pytest.raises(KeyError, match=r"divide_whole is several ops: divide_whole\.quotient, divide_whole.remainder"):
        _ = ad.registry["divide_whole"]
    assert repr(both.op) == "<ops divide_whole.quotient, divide_whole.remainder>"


def test_an_output_without_a_rule_says_so_in_backward() -> None:
    @ad.op(types="x: T -> low: T, high: T", elementwise=True)
    def around(xp: Any, x: Any) -> Any:
        return x - 1, x + 1

    around.high.vjp("x")(lambda g: g)
    x = ad.tensor(X, requires_grad=True)
    low, high = around(x)
    high.sum().backward()
    assert x.grad is not None and x.grad.numpy().tolist() == [1.0, 1.0]
    with pytest.raises(NotImplementedError, match=r"op around.low has no vjp rule .* add @around.low.vjp\(\"x\"\)"):
        low.sum().backward()


def test_a_kernel_with_another_number_of_results_is_refused() -> None:
    @ad.op(types="x: T -> low: T, high: T", elementwise=True)
    def around(xp: Any, x: Any) -> Any:
        return x

    with pytest.raises(ad.OpError, match=r"kernel around must return a tuple \(low, high\), got a ndarray"):
        around(X)


# ------------------------------------------------------------------------------------------------------ optional inputs


def affine() -> Any:
    @ad.op(types="x: T, w: T, b: T?, mask: bool? -> y: T")
    def affine(xp: Any, x: Any, w: Any, b: Any = None, mask: Any = None, *, scale: float = 1.0) -> Any:
        """scale · x · w (+ b), where the mask is true."""
        y = scale * x * w
        y = y if b is None else y + b
        return y if mask is None else xp.where(mask, y, 0.0)

    @affine.shape_rule
    def affine_shape(x: Any, w: Any, b: Any, mask: Any) -> Any:
        return np.broadcast_shapes(x, w)

    @affine.vjp("x")
    def affine_vjp_x(g: Any, w: Any, mask: Any, *, scale: float) -> Any:
        g = g if mask is None else ops.where(mask, g, 0.0)
        return g * w * scale

    @affine.vjp("w")
    def affine_vjp_w(g: Any, x: Any, mask: Any, *, scale: float) -> Any:
        g = g if mask is None else ops.where(mask, g, 0.0)
        return g * x * scale

    @affine.vjp("b")
    def affine_vjp_b(g: Any, mask: Any) -> Any:
        return g if mask is None else ops.where(mask, g, 0.0)

    return affine


def test_what_a_call_leaves_out_is_none_for_kernel_and_rules() -> None:
    f, mask = affine(), np.array([True, False])
    assert str(inspect.signature(f)) == "(x, w, b=None, mask=None, scale=1.0)"
    assert f(X, Y).tolist() == (X * Y).tolist() and f(X, Y, X).tolist() == (X * Y + X).tolist()
    assert f(X, Y, mask=mask, scale=2.0).tolist() == [20.0, 0.0] and f(X, Y, X, mask).tolist() == [15.0, 0.0]
    for call, slope in (
        (lambda x: f(x, Y), Y),
        (lambda x: f(x, Y, X), Y),
        (lambda x: f(x, Y, mask=mask), Y * mask),
        (lambda x: f(Y, Y, x, mask), mask),
    ):
        np.testing.assert_array_equal(ad.grad(lambda x, call=call: ops.sum(call(x)))(X), slope)  # type: ignore[misc]


def test_the_op_that_ran_is_named_after_the_inputs_that_were_there() -> None:
    f, mask = affine(), np.array([True, False])

    def every(x: Any, w: Any, b: Any) -> Any:
        return f(x, w) + f(x, w, b) + f(x, w, mask=mask) + f(x, w, b, mask)

    graph = ad.record(every, X, Y, X)
    assert [node.label for node in graph if node.label.startswith("affine")] == [
        "affine.without_b_mask", "affine.with_b", "affine.with_mask", "affine.with_b_mask",
    ]  # fmt: skip
    assert graph(X, Y, X).tolist() == every(X, Y, X).tolist() and ad.Graph.from_json(graph.to_json()) == graph
    assert "mask" in ad.registry["affine.with_mask"].constant_inputs


def test_an_input_that_is_not_optional_cannot_be_left_out() -> None:
    with pytest.raises(ad.OpError, match="affine: x is None, and is not optional"):
        affine()(None, Y)


def test_optional_inputs_and_several_outputs_go_together_in_a_chain() -> None:
    def create(context: ad.KernelContext) -> Any:
        def kernel(x: Any, b: Any) -> Any:
            moved = x if b is None else x + b
            return moved, -moved

        return kernel

    both = (
        ad.register_op("plus_minus").input("x: T").input("b: T?").output("plus: T").output("minus: T")
        .shape_fn(lambda context: context.input_shape("x"))
        .kernel_creator(create)
        .vjp(lambda g: g, "x", output="plus").vjp(lambda g: -g, "x", output="minus")
    )  # fmt: skip
    assert [part.tolist() for part in both(X, Y)] == [[7.0, 10.5], [-7.0, -10.5]]
    assert [part.tolist() for part in both(X)] == [X.tolist(), (-X).tolist()]
    assert ad.grad(lambda x: ops.sum(both(x, Y)[1]))(X).tolist() == [-1.0, -1.0]
    assert ops.plus_minus.minus(X, Y).tolist() == [-7.0, -10.5]  # type: ignore[attr-defined]
    assert [name for name in ad.registry if name.startswith("plus_minus")] == [
        "plus_minus.plus.with_b", "plus_minus.plus.without_b", "plus_minus.minus.with_b", "plus_minus.minus.without_b",
    ]  # fmt: skip


def test_samples_of_a_family_reach_the_op_that_they_belong_to() -> None:
    f = affine()
    f.samples(lambda: [((X, Y, None, None), {}), ((X, Y, X, None), {"scale": 2.0})])
    for op in f.op.members:
        for operands, attributes in op.sample_calls():
            assert op.apply(operands, attributes).shape == (2,)
    assert [len(op.sample_calls()) for op in f.op.members] == [0, 1, 0, 1]


def test_a_constant_input_that_the_family_does_not_have_is_refused() -> None:
    with pytest.raises(ad.RegistrationError, match=r"constant inputs \['z'\] are not among \('x', 'y'\)"):

        @ad.op(types="x: T, y: T? -> out_: T", constant_inputs=("z",))
        def moved(xp: Any, x: Any, y: Any = None) -> Any: ...


def test_a_sample_that_does_not_fit_a_family_is_refused_and_optional_inputs_may_be_left_out_of_it() -> None:
    @ad.op(types="x: T, y: T, b: T? -> z: T", elementwise=True)
    def fused(xp: Any, x: Any, y: Any, b: Any = None) -> Any:
        return x * y if b is None else x * y + b

    x = np.array([1.0, 2.0])
    assert ad.opcheck(fused, [(x, x)]).ok and ad.opcheck(fused, [(x, x, x)]).ok
    for sample in (x, (x,) * 4):
        with pytest.raises(TypeError, match=r"a sample of fused has [14] operands, but it takes x, y, b; write None"):
            ad.opcheck(fused, [sample])


def test_a_family_with_a_list_of_inputs_is_checked_like_every_op() -> None:
    @ad.op(types="arrays: list(T) -> total: T, first: T")
    def total_and_first(xp: Any, *arrays: Any) -> Any:
        return sum(arrays[1:], arrays[0] * 1.0), arrays[0] * 2.0

    @total_and_first.shape_rule
    def total_and_first_shape(*arrays: Any) -> Any:
        return np.broadcast_shapes(*arrays)

    x = np.array([1.0, 2.0])
    failed = ad.opcheck(total_and_first, [((x, x), {})]).failed
    assert [test.name for test in failed] == ["first: shape rule"]  # its kernel does not broadcast
