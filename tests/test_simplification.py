"""Simplification: what is folded, shared and dropped, and that no bit of a result changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import events, ops
from autodiff_lab.simplification import bitwise_key, simplify

X = np.array([0.0, -0.0, np.inf, np.nan, 2.0])


def labels(f: Any, *arguments: Any) -> list[str]:
    return [node.label for node in simplify(ad.record(f, *arguments)).graph if node.op is not None]


def test_equal_work_is_done_once() -> None:
    assert labels(lambda x: ops.exp(x) * ops.exp(x), X) == ["exp", "mul"]
    assert labels(lambda x: x[1:] + x[1:], X) == ["getitem", "add"]


def test_a_product_is_shared_whatever_the_order_of_its_factors_and_a_difference_is_not() -> None:
    assert labels(lambda x, y: x * y + y * x, X, X) == ["mul", "add"]
    assert labels(lambda x, y: (x - y) * (y - x), X, X) == ["sub", "sub", "mul"]


def test_work_that_differs_in_an_attribute_is_not_shared() -> None:
    assert labels(lambda x: ops.sum(x, axis=0) + ops.sum(x, axis=1), np.ones((2, 2))) == ["sum", "sum", "add"]


def test_the_seed_of_a_derivative_costs_nothing() -> None:
    found = labels(ad.grad(lambda x: ops.sum(ops.tanh(x))), np.ones(2000))
    assert found == ["tanh", "mul", "sub"]  # no ones_like, no broadcast_to, no product with 1


def test_a_large_array_is_never_made_by_folding() -> None:
    graph = simplify(ad.record(lambda x: x + ops.ones_like(x) * 2.0, np.ones(10**6))).graph
    assert [node.shape for node in graph if node.kind == "constant"] == [()]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * np.ones(5),
        lambda x: 1.0 * x / 1.0,
        lambda x: ops.broadcast_to(np.array(-0.0), shape=(5,)) + x,
        lambda x: ops.neg(ops.ones_like(np.ones(5)) * np.nan) * x,
        lambda x: (x * 1) - (x * 0.0),
        lambda x: ad.grad(lambda v: ops.sum(v / v))(x),
    ],
    ids=["array of ones", "one", "negative zero", "nan", "whole one", "gradient"],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_bit_stays(f: Any, dtype: str) -> None:
    x = X.astype(dtype)
    graph = ad.record(f, x)
    with np.errstate(all="ignore"):
        before, after = graph(x), simplify(graph).graph(x)
    assert before.dtype == after.dtype
    assert np.array_equal(before, after, equal_nan=True) and np.array_equal(np.signbit(before), np.signbit(after))


def test_a_python_number_stays_one_so_that_float32_stays_float32() -> None:
    x = np.ones(3, np.float32)
    graph = simplify(ad.record(lambda x: x * 2.0 * (ops.broadcast_to(np.array(3.0), shape=(3,)) + 1.0), x)).graph
    assert graph(x).dtype == ad.record(lambda x: x * 2.0 * (np.full(3, 3.0) + 1.0), x)(x).dtype == np.float64
    assert simplify(ad.record(lambda x: x * 2.0 + 1.0, x)).graph(x).dtype == np.float32


def test_an_op_of_a_user_is_called_as_often_as_the_function_said() -> None:
    called = []
    with ad.registry.restored():

        @ad.op(elementwise=True)
        def counted_double(xp: Any, x: Any) -> Any:
            called.append(1)
            return x * 2.0

        graph = simplify(ad.record(lambda x: counted_double(x) + counted_double(x), X[:2])).graph
        assert [node.label for node in graph].count("counted_double") == 2


def test_names_sources_and_phases_are_kept() -> None:
    def loss(x: Any) -> Any:
        h = ops.exp(x)
        return ops.sum(h * h)

    graph = ad.record(ad.value_and_grad(loss), X)
    found = simplify(graph)
    for before, after in found.places.items():
        if before not in found.shared and before not in found.folded:
            old, new = graph.nodes[before], found.graph.nodes[after]
            assert (old.name, old.source, old.phase, old.serial) == (new.name, new.source, new.phase, new.serial)


def test_what_happens_is_told() -> None:
    told: list[events.Event] = []
    simplify(ad.record(lambda x: (ops.exp(x), ops.tanh(x), ops.exp(x) * 1.0)[2], X), told.append)
    assert [type(event).__name__ for event in told] == ["NodeShared", "NodeFolded", "NodeDropped"]


def test_keys_tell_apart_what_differs_by_a_bit() -> None:
    different = [0.0, -0.0, 0, False, np.float64(0.0), np.zeros(()), np.zeros(1), "0", None, slice(0, 1), (0,), [0]]
    assert len({bitwise_key(value) for value in different}) == len(different)
    assert bitwise_key(float("nan")) == bitwise_key(float("nan"))
