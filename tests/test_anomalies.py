"""Anomaly mode: who made the first NaN or infinity, in which line, from what."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import events, ops

X = np.array([-1.0, 0.0, 2.0])


@pytest.fixture(autouse=True)
def quiet_numpy() -> Any:
    with np.errstate(all="ignore"):
        yield


def unguarded(x: Any) -> Any:
    return ops.sum(ops.where(x > 0.0, ops.log(x), 0.0))


def guarded(x: Any) -> Any:
    safe = ops.where(x > 0.0, x, 1.0)
    return ops.sum(ops.where(x > 0.0, ops.log(safe), 0.0))


def root_behind_where(x: Any) -> Any:
    root = ops.power(x, 0.5)  # finite at 0, its derivative is not
    return ops.sum(ops.where(x > 0.0, root, 0.0))


# ------------------------------------------------------------- the branch that where did not take: 0 times infinity is NaN


def test_an_unguarded_branch_spoils_its_gradient_and_a_guarded_one_gives_exact_numbers() -> None:
    spoiled = ad.grad(unguarded)(X)
    assert np.isnan(spoiled[1]) or spoiled[1] == 0.0
    assert spoiled[2] == 0.5
    assert ad.grad(guarded)(X).tolist() == [0.0, 0.0, 0.5]
    with ad.anomaly_mode():
        assert ad.grad(guarded)(X).tolist() == [0.0, 0.0, 0.5]


def test_the_forward_pass_names_op_line_and_range() -> None:
    with ad.anomaly_mode(), pytest.raises(ad.AnomalyError) as caught:
        ad.grad(unguarded)(X)
    text = str(caught.value)
    assert text.startswith("log gave 1 NaN and 1 −inf among 3 numbers, called in test_anomalies.py:")
    assert "in unguarded: return ops.sum(ops.where(x > 0.0, ops.log(x), 0.0))" in text
    assert "x: shape (3,), from -1 to 2" in text


def test_the_backward_pass_names_rule_line_range_and_the_way_out() -> None:
    x = np.array([0.0, 4.0])
    assert np.isnan(ad.grad(root_behind_where)(x)[0])
    with ad.anomaly_mode(), pytest.raises(ad.AnomalyError) as caught:
        ad.grad(root_behind_where)(x)
    text = str(caught.value)
    assert (
        "the gradient rule power_vjp_x of power gave 1 NaN among 2 numbers for x, called in test_anomalies.py:" in text
    )
    assert "in root_behind_where: root = ops.power(x, 0.5)" in text
    assert "g: shape (2,), from 0 to 1" in text and "x: shape (2,), from 0 to 4" in text
    assert "power(where(condition, x, 1.0))" in text


# ------------------------------------------------------------------------------------------------------- where it looks


def test_eager_backward_is_watched_and_knows_the_line_of_a_forward_pass_inside_the_block() -> None:
    with ad.anomaly_mode():
        x = ad.tensor([0.0, 4.0], requires_grad=True)
        loss = root_behind_where(x)
        with pytest.raises(ad.AnomalyError, match=r"in root_behind_where: root = ops.power"):
            loss.backward()
    outside = root_behind_where(x)
    with ad.anomaly_mode(), pytest.raises(ad.AnomalyError, match="a line that is not known"):
        outside.backward()


def test_forward_mode_is_watched() -> None:
    with ad.anomaly_mode(), pytest.raises(ad.AnomalyError, match=r"rule power_jvp_x of power gave 1 inf") as caught:
        ad.jvp(lambda x: x**0.5, (np.array([0.0, 1.0]),), (np.ones(2),))
    assert "dx: shape (2,), from 1 to 1" in str(caught.value)


def test_the_second_derivative_is_laid_at_the_line_of_the_op() -> None:
    def f(x: Any) -> Any:
        return ops.sum(x**1.5)  # the first derivative is finite at 0, the second is not

    with ad.anomaly_mode():
        assert np.isfinite(ad.grad(f)(np.zeros(2))).all()
        with pytest.raises(ad.AnomalyError, match=r"in f: return ops.sum\(x\*\*1.5\)"):
            ad.grad(lambda x: ops.sum(ad.grad(f)(x)))(np.zeros(2))


def test_constants_are_watched_and_a_nan_that_came_in_is_not_blamed_on_the_op() -> None:
    with ad.anomaly_mode():
        with pytest.raises(ad.AnomalyError, match="log gave 1 −inf"):
            ops.log(ad.tensor(0.0))
        with pytest.raises(
            ad.AnomalyError, match=r"exp gave 1 NaN .*\n.*\nIt was not finite before: look at where x comes from"
        ):
            ops.exp(ad.tensor([np.nan, 1.0]))


def test_a_mask_of_minus_infinity_may_pass() -> None:
    mask = np.array([0.0, -np.inf])
    with ad.anomaly_mode():
        value, gradient = ad.value_and_grad(lambda x: ops.sum(ops.exp(x + mask)))(np.zeros(2))
    assert float(value) == 1.0 and gradient.tolist() == [1.0, 0.0]


def test_a_sum_of_gradients_that_overflows_is_found() -> None:
    large = np.float32(3e38)
    with ad.anomaly_mode(), pytest.raises(ad.AnomalyError, match="adding up the gradient of x of mul gave 1 inf"):
        x = np.float32(1e-3)
        ad.grad(lambda x: x * large + x * large)(x)


# --------------------------------------------------------------------------------------------- what it leaves as it is


def test_numbers_are_the_same_inside_and_outside_of_the_block() -> None:
    f = lambda x, w: ops.mean(ops.tanh(x @ w) ** 2)  # noqa: E731
    arguments = np.ones((2, 3)) / 3, np.ones((3, 2)) / 7
    expected = ad.value_and_grad(f, (0, 1))(*arguments)
    with ad.anomaly_mode():
        found = ad.value_and_grad(f, (0, 1))(*arguments)
        recorded = ad.record(ad.value_and_grad(f, (0, 1)), *arguments)
    assert np.array_equal(found[0], expected[0]) and all(map(np.array_equal, found[1], expected[1]))
    assert recorded == ad.record(ad.value_and_grad(f, (0, 1)), *arguments)


def test_listening_goes_on_inside_the_block_and_the_block_ends_with_an_error_too() -> None:
    with ad.listen() as told, ad.anomaly_mode():
        ad.grad(guarded)(X)
    assert any(isinstance(event, events.ContributionAdded) for event in told)
    with pytest.raises(ad.AnomalyError), ad.anomaly_mode():
        ops.log(ad.tensor(-1.0))
    assert events.context.get() is None
    assert np.isnan(float(ops.log(ad.tensor(-1.0))))


def test_other_threads_are_not_watched() -> None:
    found: list[float] = []

    def elsewhere() -> None:
        with np.errstate(all="ignore"):
            found.append(float(ops.log(ad.tensor(-1.0))))

    with ad.anomaly_mode():
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert np.isnan(found[0])


@pytest.mark.parametrize(
    "take",
    [
        lambda f, x: ad.hessian(f)(x),
        lambda f, x: ad.hvp(f, (x,), (np.ones_like(x),)),
        lambda f, x: ad.jvp(ad.grad(f), (x,), (np.ones_like(x),)),
        lambda f, x: ad.grad(lambda v: ops.sum(ad.grad(f)(v)))(x),
    ],
    ids=["hessian", "hvp", "forward over reverse", "reverse over reverse"],
)
def test_an_infinite_second_derivative_is_found_in_every_mixture_of_modes(take: Any) -> None:
    def f(x: Any) -> Any:
        return ops.sum(x**1.5)

    with ad.anomaly_mode():
        take(f, np.array([4.0, 1.0]))
        with pytest.raises(ad.AnomalyError, match=r"power|mul"):
            take(f, np.array([0.0, 1.0]))
