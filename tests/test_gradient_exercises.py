"""The exercises on gradient rules and gradient checks against answers that nobody ships, wrong ones and right ones."""

from __future__ import annotations

import sys
import textwrap

import numpy as np
import pytest
from autodiff_exercises import check
from autodiff_exercises.checking import examine
from autodiff_exercises.gradient_check_answers import at_one_point, gradient_is_right
from autodiff_exercises.planted_ops import PLANS, plan, planted_op
from autodiff_exercises.registry import EXERCISES
from autodiff_exercises.sameness import same

from tests.notebook_cell import defined

pytestmark = [pytest.mark.usefixtures("own_progress"), pytest.mark.slow]  # each check starts a process

SIGNATURES = {
    "mul_vjp": "g, x, y",
    "exp_vjp": "g, x",
    "unbroadcast": "g, shape",
    "sum_vjp": "g, shape, axis=None, keepdims=False",
    "matmul_vjp": "g, x, y",
    "transpose_vjp": "g, axes",
    "slope": "f, x",
    "gradient_is_right": "op",
    "hessian_times": "f, x, v",
}

WRONG = [
    ("mul_vjp", "return -g * y, -g * x", "a sign is lost"),
    ("mul_vjp", "return 2 * g * y, 2 * g * x", "not the transpose of forward mode"),
    ("mul_vjp", "return g * y", "not one gradient for each input"),
    ("mul_vjp", "return (g * y).sum(), (g * x).sum()", "a gradient may have any shape"),
    ("mul_vjp", "return g * y + 1e-6, g * x", "not the transpose of forward mode"),
    ("mul_vjp", "return abs(g) * y, abs(g) * x", "not the transpose of forward mode"),
    ("exp_vjp", "return (g * np.exp(x)).tolist()", "not one gradient for each input"),
    ("exp_vjp", "return g * (1 + x + x * x / 2)", "not the transpose of forward mode"),
    ("exp_vjp", "pass", "returns nothing"),
    ("unbroadcast", "return np.ones(shape, g.dtype)", None),
    ("unbroadcast", "return np.full(shape, g.sum(), g.dtype)", None),
    ("unbroadcast", "return g.reshape(-1)[: int(np.prod(shape))].reshape(shape)", None),
    ("unbroadcast", "return -g.sum()", None),
    ("sum_vjp", "return np.full(shape, g.sum(), g.dtype)", None),
    ("sum_vjp", "return np.zeros(shape, g.dtype)", None),
    ("sum_vjp", "return np.broadcast_to(np.expand_dims(g, axis or 0), shape)", None),
    ("sum_vjp", "return np.full(shape, g.item()) if axis is None else np.zeros(shape, g.dtype)", None),
    ("matmul_vjp", "return g @ y.T, (g.T @ x).T / 2", "not the transpose of forward mode"),
    ("matmul_vjp", "return (g @ y.T).astype(float), (x.T @ g).astype(float)", "any dtype will do"),
    ("matmul_vjp", "return g.T @ y, x @ g.T", None),
    ("transpose_vjp", "return np.sort(g.ravel()).reshape(g.transpose(np.argsort(axes)).shape)", None),
    ("transpose_vjp", "return np.swapaxes(g, 0, -1)", None),
    ("slope", "return 0.0", None),
    ("slope", "return (f(x + 1e-8) - f(x)) / 1e-8", "one side is enough"),
    ("slope", "return -(f(x + 1e-5) - f(x - 1e-5)) / 2e-5", None),
    ("slope", "return float('nan')", None),
    ("slope", "h = 1e-5 * max(1, abs(x))\nreturn (f(x + h) - f(x - h)) / (2 * h)", "one step fits all"),
    ("slope", "h = 1e-5 * (abs(x) or 1)\nreturn [(f(x + h) - f(x - h)) / (2 * h)]", "not a number"),
    ("gradient_is_right", "return False", "smaller ε is better"),
    ("gradient_is_right", "return True", "there is a gradient, so it is right"),
    ("gradient_is_right", "return 1", "anything is a verdict"),
    ("gradient_is_right", "return bool(np.all(op.vjp(op.forward(*op.inputs()), *op.inputs())[0] == 0))", None),
    ("hessian_times", "return x", None),
    ("hessian_times", "return np.zeros_like(x)", "not the Hessian"),
    ("hessian_times", "return ad.grad(f)(x)", "one derivative is enough"),
    ("hessian_times", "return ad.grad(f)(x + v) - ad.grad(f)(x)", "not the Hessian"),
    ("hessian_times", "return 2 * ad.jvp(ad.grad(f), (x,), (v,))[1]", "not the Hessian"),
    ("hessian_times", "return ad.grad(lambda z: ops.sum(ad.grad(f)(z).detach() * v))(x)", None),
]

WRONG += [
    (name, body, "the lab does it")
    for name, body in (
        ("mul_vjp", "return ad.vjp(ops.mul, x, y)[1](g)"),
        ("mul_vjp", "return ad.registry['mul'].vjp_rule('x')(g, y), ad.registry['mul'].vjp_rule('y')(g, x)"),
        ("exp_vjp", "return ad.jvp(ops.exp, (x,), (g,))[1]"),
        ("unbroadcast", "return ops.sum_to(g, shape=shape)"),
        ("sum_vjp", "return ad.vjp(lambda x: ops.sum(x, axis=axis), np.zeros(shape, g.dtype))[1](g)[0]"),
        ("matmul_vjp", "return ad.grad(lambda a, b: ops.sum(a @ b * g), (0, 1))(x, y)"),
        ("slope", "return ad.grad(f)(x)"),
        ("hessian_times", "return ad.hvp(f, (x,), (v,))[0]"),
    )
]

if sys.platform == "linux":  # where a check limits memory
    WRONG.append(("hessian_times", "return ad.hessian(f)(x) @ v", "first the matrix, then the product"))

RIGHT = [
    ("mul_vjp", "return [np.multiply(y, g), np.multiply(x, g)]"),
    ("exp_vjp", "return ops.mul(g, ops.exp(x))"),
    ("matmul_vjp", "return np.tensordot(g, y, (1, 1)), np.tensordot(x, g, (0, 0))"),
    ("exp_vjp", "return g + g * np.expm1(x)"),
    ("matmul_vjp", "return (g[:, None, :] * y[None]).sum(-1), (x[:, :, None] * g[:, None, :]).sum(0)"),
    ("slope", "h = np.finfo(float).eps ** (1 / 3) * (abs(x) or 1)\nreturn np.array((f(x + h) - f(x - h)) / (2 * h))"),
    ("slope", "h = -1e-5 * (x or 1)\nreturn (f(x + h) - f(x - h)) / (2 * h)"),
    ("hessian_times", "return ad.vjp(ad.grad(f), x)[1](v)[0]"),
    ("transpose_vjp", "return np.transpose(g, [axes.index(axis) for axis in range(g.ndim)])"),
]


def answer(name: str, body: str) -> object:
    lines = textwrap.indent(textwrap.dedent(body), "    ")
    return check(name, defined(f"def {name}({SIGNATURES[name]}):\n{lines}", name))


@pytest.mark.parametrize(("name", "body", "misconception"), WRONG, ids=[f"{name}: {body}" for name, body, _m in WRONG])
def test_a_wrong_answer_that_nobody_ships_is_refused_with_a_message(
    name: str, body: str, misconception: str | None
) -> None:
    found = answer(name, body)
    assert found.verdict == "wrong" and found.message
    if misconception:
        assert found.misconception == misconception


@pytest.mark.parametrize(("name", "body"), RIGHT, ids=[f"{name}: {body}" for name, body in RIGHT])
def test_a_right_answer_that_nobody_ships_is_accepted(name: str, body: str) -> None:
    assert answer(name, body).verdict == "right"


# -------------------------------------------------------------------------------------------------- the planted ops


def test_twenty_planted_ops_are_wrong_and_five_are_right() -> None:
    assert [one.is_right for one in PLANS].count(True) == 5 and len(PLANS) == 25
    assert len({one.name for one in PLANS}) == 25


@pytest.mark.parametrize("seed", [0, 3, 11])
def test_every_seed_plants_each_op_once_with_shapes_of_its_own(seed: int) -> None:
    ops = [planted_op(number, seed) for number in range(25)]
    assert {plan(one).name for one in ops} == {one.name for one in PLANS}
    assert [plan(one).name for one in ops] != [one.name for one in PLANS]


def test_inputs_are_fresh_each_time_and_the_same_for_the_same_seed() -> None:
    for number in range(25):
        op = planted_op(number)
        once, again, other = op.inputs(1), op.inputs(1), op.inputs(2)
        assert same(once, again) and not any(a is b for a, b in zip(once, again, strict=True))
        assert not same(once, other)


def test_a_planted_op_beyond_the_last_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0 to 24"):
        planted_op(25)


def test_a_checker_is_told_its_detection_rate_and_its_false_alarms() -> None:
    exercise = EXERCISES["gradient_is_right"]
    assert "found 20 of 20 wrong ops, and refused 0 of 5" in repr(examine(exercise, gradient_is_right, 0))
    assert "found 18 of 20 wrong ops, and refused 0 of 5" in repr(examine(exercise, at_one_point, 5, marking=True))


# ---------------------------------------------------------------------------------------------------- values compared


def test_values_are_the_same_down_to_dtype_and_bits() -> None:
    assert same({"a": [np.array([1.0, np.nan])]}, {"a": [np.array([1.0, np.nan])]})
    assert not same(np.zeros(2), np.zeros(2, np.float32))
    assert not same(np.zeros(2), np.zeros((2, 1)))
    assert not same([0.0], [np.array(0.0)])
    assert not same(np.array([0.0]), np.array([-0.0]))
