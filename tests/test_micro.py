"""The scalar engine: a published golden example, the printed listing's faults repaired, the rules checked."""

from __future__ import annotations

import ast
import inspect
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autodiff_lab import micro
from autodiff_lab.micro import Value


def leaf(number: float) -> Value:
    return Value(number, requires_grad=True)


def test_the_published_example_of_micrograd_gives_its_published_numbers() -> None:
    a, b = leaf(-4.0), leaf(2.0)
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + (b + a).relu()
    d += 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g += 10.0 / f
    g.backward()
    assert (round(g.data, 4), round(a.grad, 4), round(b.grad, 4)) == (24.7041, 138.8338, 645.5773)


FUNCTIONS = {
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "2 - b": lambda a, b: 2 - b + a,
    "a * b": lambda a, b: a * b,
    "a / b": lambda a, b: a / b,
    "3 / b": lambda a, b: 3 / b * a,
    "-a": lambda a, b: -a * b,
    "a ** 3": lambda a, b: a**3 + b**-2,
    "exp": lambda a, b: (a * b).exp(),
    "log": lambda a, b: (a * b + 1).log(),
    "tanh": lambda a, b: (a * b).tanh(),
    "relu": lambda a, b: (a - b).relu() * a,
    "shared": lambda a, b: (a * b) * (a * b) + a * a,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@given(st.floats(0.5, 2.0), st.floats(0.5, 2.0))
def test_gradients_agree_with_central_differences(name: str, at: float, bt: float) -> None:
    f = FUNCTIONS[name]
    if name == "relu" and abs(at - bt) < 1e-3:
        return  # the kink
    a, b = leaf(at), leaf(bt)
    f(a, b).backward()
    h = 1e-6

    def number(x: float, y: float) -> float:
        return f(Value(x), Value(y)).data

    assert a.grad == pytest.approx((number(at + h, bt) - number(at - h, bt)) / (2 * h), rel=1e-5, abs=1e-5)
    assert b.grad == pytest.approx((number(at, bt + h) - number(at, bt - h)) / (2 * h), rel=1e-5, abs=1e-5)


def test_a_second_backward_adds_the_same_amount_to_leaves_and_leaves_nothing_stale_in_between() -> None:
    x = leaf(3.0)
    h = x * x
    y = h * h
    y.backward()
    first, between = x.grad, h.grad
    y.backward()
    assert (x.grad, h.grad, y.grad) == (2 * first, between, 1.0)


def test_plain_numbers_work_on_both_sides() -> None:
    x = leaf(4.0)
    y = 2 * x + 1 - x / 2 + (8 / x) - (1 - x)
    y.backward()
    assert (y.data, x.grad) == (12.0, 2 - 0.5 - 0.5 + 1)


def test_a_value_that_requires_no_gradient_gets_none_and_remembers_nothing() -> None:
    x, constant = leaf(3.0), Value(5.0)
    y = x * constant
    y.backward()
    assert (x.grad, constant.grad) == (5.0, 0.0)
    assert (constant * 2).parents == () and not (constant * 2).requires_grad


def test_a_graph_far_deeper_than_the_recursion_limit_works() -> None:
    x = y = leaf(1.0)
    depth = 20 * sys.getrecursionlimit()
    for _ in range(depth):
        y = y + x
    y.backward()
    assert x.grad == depth + 1


def test_sharing_costs_one_visit_not_one_visit_per_path() -> None:
    x = y = leaf(1.0)
    for _ in range(60):
        y = y + y
    y.backward()
    assert x.grad == 2.0**60


@pytest.mark.parametrize("data", [np.ones(3), [1.0, 2.0], "1", np.ones((1, 1))])
def test_an_array_is_refused_with_the_next_step(data: object) -> None:
    with pytest.raises(TypeError, match="micro is scalar: use autodiff_lab for arrays"):
        Value(data)  # type: ignore[arg-type]


def test_a_numpy_scalar_is_a_number() -> None:
    x = leaf(np.float32(2.0))  # type: ignore[arg-type]
    (np.float64(3.0).item() * x).backward()
    assert x.grad == 3.0


def test_a_value_as_exponent_is_refused_with_the_next_step() -> None:
    with pytest.raises(TypeError, match="expected a plain number"):
        leaf(2.0) ** leaf(3.0)  # type: ignore[operator]
    a, b = leaf(2.0), leaf(3.0)
    (b * a.log()).exp().backward()
    assert (a.grad, b.grad) == (pytest.approx(12.0), pytest.approx(8 * math.log(2)))


def test_micro_imports_nothing_of_the_lab() -> None:
    tree = ast.parse(inspect.getsource(micro))
    imported = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    imported |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    assert imported <= {"__future__", "math", "collections.abc"}
