"""Nested derivatives: each running derivative has its own level, in both modes and mixed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops

Derivative = Callable[[Callable[[Any], Any]], Callable[[Any], Any]]


def forward(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: ad.jvp(f, (x,), (1.0,))[1]


MODES: dict[str, Derivative] = {"forward": forward, "reverse": ad.grad}
PAIRS = pytest.mark.parametrize(("outer", "inner"), list(itertools.product(MODES, MODES)))

# x, and the derivative at x of x · d/dy g(x, y) at y = 1, worked out by hand
CONFUSION: dict[str, tuple[Callable[[Any, Any], Any], float, float]] = {
    "add": (lambda x, y: x + y, 2.0, 1.0),  # d/dx [x · 1]
    "mul": (lambda x, y: x * y, 2.0, 4.0),  # d/dx [x · x]
    "tanh": (lambda x, y: ops.tanh(x * y), 0.5, None),  # type: ignore[dict-item]
    "exp": (lambda x, y: ops.exp(x * y), 0.5, None),  # type: ignore[dict-item]
    "power": (lambda x, y: (x + y) ** 3, 2.0, 3 * 9.0 + 2 * 6 * 3.0),  # d/dx [x · 3 (x + 1)²]
    "matmul": (lambda x, y: ops.reshape(x * y, (1, 1)) @ ops.reshape(x, (1, 1)), 2.0, 12.0),  # d/dx [x · x²]
}


def by_hand(name: str, x: float) -> float:
    if name == "exp":  # x · x eˣ
        return (2 * x + x * x) * math.exp(x)
    t = math.tanh(x)  # x · x (1 − t²)
    return 2 * x * (1 - t * t) - 2 * x * x * t * (1 - t * t)


@PAIRS
@pytest.mark.parametrize("name", CONFUSION)
def test_an_inner_derivative_does_not_see_the_outer_one(name: str, outer: str, inner: str) -> None:
    g, x, expected = CONFUSION[name]
    expected = by_hand(name, x) if expected is None else expected

    def f(x: Any) -> Any:
        return x * ops.sum(MODES[inner](lambda y: ops.sum(g(x, y)))(1.0))

    assert float(MODES[outer](f)(x)) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("modes", list(itertools.product(MODES, repeat=3)))
def test_third_derivatives_agree_in_every_mixture_of_modes(modes: tuple[str, ...]) -> None:
    f: Callable[[Any], Any] = lambda x: x**3 * ops.tanh(x)  # noqa: E731
    for mode in modes:
        f = MODES[mode](f)
    t = math.tanh(0.7)
    s = 1 - t * t
    expected = 6 * t + 18 * 0.7 * s - 18 * 0.49 * t * s + 0.343 * (-2 * s * s + 4 * t * t * s)
    assert float(f(0.7)) == pytest.approx(expected, rel=1e-12)


@PAIRS
def test_a_derivative_of_a_user_tensor_inside_a_derivative_flows_back_to_it(outer: str, inner: str) -> None:
    w = ad.tensor(3.0, requires_grad=True)
    second = MODES[outer](MODES[inner](lambda x: w * x**3))
    result = second(2.0)
    assert result.item() == 36.0
    result.backward()
    assert w.grad is not None and w.grad.item() == 12.0


def test_create_graph_twice_gives_third_derivatives() -> None:
    x = ad.tensor(2.0, requires_grad=True)
    y = x**4
    for expected in (32.0, 48.0, 48.0):
        x.grad = None
        y.backward(create_graph=True)
        assert x.grad is not None
        y = x.grad
        assert y.item() == expected


def test_a_tensor_that_outlives_its_derivative_is_a_constant_outside() -> None:
    kept: list[Any] = []
    ad.grad(lambda x: kept.append(x) or x * x)(3.0)  # type: ignore[func-returns-value]
    assert ad.grad(lambda x: x * kept[0])(1.0).item() == 3.0


@pytest.mark.parametrize("outer", MODES)
def test_whole_numbers_are_not_recorded_inside_another_derivative(outer: str) -> None:
    def f(x: Any) -> Any:
        assert not ops.astype(x, dtype="int64").requires_grad
        return x * x

    assert float(MODES[outer](ad.grad(f))(3.0)) == 2.0


def test_hessian_vector_products_agree_forward_over_reverse_and_reverse_over_forward() -> None:
    rng = np.random.default_rng(0)
    x, v = rng.standard_normal(5), rng.standard_normal(5)

    def f(x: Any) -> Any:
        return ops.sum(ops.tanh(x) * x) + ops.sum(x[1:] * x[:-1] ** 2)

    _, forward_over_reverse = ad.jvp(ad.grad(f), (x,), (v,))
    reverse_over_forward = ad.grad(lambda x: ad.jvp(f, (x,), (v,))[1])(x)
    np.testing.assert_allclose(forward_over_reverse, reverse_over_forward, rtol=1e-12)


def test_jvp_names_what_is_wrong_with_its_arguments() -> None:
    with pytest.raises(ValueError, match=r"tangent has shape \(3,\), but its primal has \(2,\)"):
        ad.jvp(ops.exp, (np.ones(2),), (np.ones(3),))
    with pytest.raises(ValueError, match="nest"):
        ad.jvp(ops.exp, (np.ones(2),), ([np.ones(2), 1.0],))
    with pytest.raises(TypeError, match="floating dtype, got int64"):
        ad.jvp(ops.exp, (np.array(1),), (1.0,))


def test_inside_two_derivatives_each_argument_gets_a_gradient_of_its_own_shape_and_dtype() -> None:
    weight, bias, scale = np.ones((3, 2), np.float32), np.full(2, 0.5), np.ones((), np.float32)
    x = np.arange(12.0).reshape(4, 3) / 12.0

    def loss(w: Any, b: Any, s: Any) -> Any:
        return (ops.tanh((x @ w + b) * s) @ w.T).sum()

    primals = weight, bias, scale
    directions = tuple(np.full(value.shape, 0.25) for value in primals)  # in float64, whatever the primals are
    products = ad.hvp(loss, primals, directions)
    assert [(h.shape, h.dtype) for h in products] == [(value.shape, value.dtype) for value in primals]
    step = 1e-4
    near = [
        ad.grad(loss, (0, 1, 2))(*[p + s * d for p, d in zip(primals, directions, strict=True)]) for s in (step, -step)
    ]
    for product, after, before in zip(products, *near, strict=True):
        np.testing.assert_allclose(product, (after - before) / (2.0 * step), rtol=1e-3, atol=1e-3)


@PAIRS
def test_a_mistake_inside_two_derivatives_is_told_by_the_op_and_once(outer: str, inner: str) -> None:
    def mistaken(x: Any) -> Any:
        two_by_three = ops.reshape(x * np.ones(6), shape=(2, 3))
        return ops.sum(ops.matmul(two_by_three, two_by_three))

    with pytest.raises(ad.OpError) as plain:
        mistaken(0.5)
    with pytest.raises(ad.OpError) as nested:
        MODES[outer](MODES[inner](mistaken))(0.5)
    assert str(nested.value) == str(plain.value)
    assert str(plain.value).count("matmul") == 1
