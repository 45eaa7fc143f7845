"""gradcheck: it finds every kind of wrong gradient, raises no false alarm, and says when it cannot tell."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.differences import slope

SEEDS = range(3)
DTYPES = ("float64", "float32")


def normal(*shape: int, seed: int = 0, dtype: Any = "float64") -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def custom(kernel: Callable[..., Any], rule: Callable[..., Any], shape: Callable[..., Any] | None = None) -> Any:
    """An op of one input with a VJP rule; elementwise where no shape rule is given."""
    made = ad.op(elementwise=shape is None)(kernel)
    if shape is not None:
        made.shape_rule(shape)
    made.vjp(rule)
    return made


# ------------------------------------------------------------------------------------- wrong rules, one mistake each

STORE: dict[str, Any] = {}


def op_cube(xp: Any, x: Any) -> Any:
    return x * x * x


def op_exp(xp: Any, x: Any) -> Any:
    return xp.exp(x)


def op_rows(xp: Any, x: Any) -> Any:
    return x.sum(axis=1)


def op_mean(xp: Any, x: Any) -> Any:
    return x.mean()


def op_flip(xp: Any, x: Any) -> Any:
    return x[::-1]


def op_turn(xp: Any, x: Any) -> Any:
    return x.T


def op_center(xp: Any, x: Any) -> Any:
    return x - x.mean()


def op_product(xp: Any, x: Any, y: Any) -> Any:
    return xp.matmul(x, y)


def op_stored(xp: Any, x: Any) -> Any:
    STORE["twice"] = 2 * np.asarray(x)
    return xp.asarray(STORE["twice"] ** 2)


def same_shape(x: Any) -> Any:
    return x


def rows_shape(x: Any) -> Any:
    return x[:1]


def number_shape(x: Any) -> Any:
    return ()


def turned_shape(x: Any) -> Any:
    return x[::-1]


def only_first(g: Any) -> Any:
    mask = np.zeros(g.shape)
    mask[(0,) * mask.ndim] = 1.0
    return mask


def one_sign_lost(g: Any, x: Any) -> Any:
    signs = np.ones(x.shape)
    signs.flat[-1] = -1.0
    return g * 3.0 * x * x * signs


def moved_around(g: Any, x: Any) -> Any:  # the errors of all entries add up to zero
    size = g.size
    error = np.resize([1.0, -1.0], size - size % 2)
    return g * 3.0 * x * x + ops.reshape(np.append(error, np.zeros(size % 2)), g.shape)


WRONG_RULES: dict[str, tuple[Any, Any, Any]] = {
    "a lost sign": (op_cube, lambda g, x: -g * 3.0 * x * x, None),
    "twice too large": (op_cube, lambda g, x: g * 6.0 * x * x, None),
    "off by one percent": (op_cube, lambda g, x: g * 3.03 * x * x, None),
    "wrong exponent": (op_cube, lambda g, x: g * 3.0 * x, None),
    "zeros": (op_cube, lambda g, x: 0.0 * g * x, None),
    "identity": (op_cube, lambda g: g, None),
    "the cotangent is ignored": (op_cube, lambda g, x: 0.0 * g + 3.0 * x * x, None),
    "the absolute cotangent": (op_cube, lambda g, x: ops.maximum(g, -g) * 3.0 * x * x, None),
    "the cotangent squared": (op_cube, lambda g, x: g * g * 3.0 * x * x, None),
    "the sum of cotangents": (op_cube, lambda g, x: ops.sum(g) * 3.0 * x * x, None),
    "errors that sum to zero": (op_cube, moved_around, None),
    "one entry with the wrong sign": (op_cube, one_sign_lost, None),
    "a small constant added": (op_cube, lambda g, x: g * (3.0 * x * x + 0.05), None),
    "the result in place of the derivative": (op_cube, lambda g, out: g * out, None),
    "the input in place of the result": (op_exp, lambda g, x: g * x, None),
    "a derivative at the wrong point": (op_exp, lambda g, out: g * (out + 0.1), None),
    "a sum that forgets to spread": (op_rows, lambda g, x: ops.reshape(g, (-1, 1)) * only_first(x), rows_shape),
    "every row gets what is meant for all": (op_rows, lambda g, x_shape: ops.broadcast_to(ops.sum(g), x_shape), rows_shape),
    "a mean without its 1/n": (op_mean, lambda g, x: ops.broadcast_to(g, x.shape), number_shape),
    "a flip that does not flip back": (op_flip, lambda g: g, same_shape),
    "a view with a gradient of zeros": (op_turn, lambda g: 0.0 * ops.transpose(g), turned_shape),
    "a transpose that is only reshaped": (op_turn, lambda g, x_shape: ops.reshape(g, x_shape), turned_shape),
    "a dropped path": (op_center, lambda g: g, same_shape),
}  # fmt: skip


@pytest.mark.parametrize("seed", [SEEDS[0], *(pytest.param(one, marks=pytest.mark.slow) for one in SEEDS[1:])])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mistake", WRONG_RULES)
def test_every_wrong_rule_is_found(mistake: str, dtype: str, seed: int) -> None:
    made = custom(*WRONG_RULES[mistake])
    report = ad.gradcheck(made, [normal(3, 4, seed=seed, dtype=dtype)], seed=seed)
    assert report.verdict == "wrong", report
    assert report.first is not None and report.first.input == "x" and not report


@pytest.mark.parametrize("seed", [SEEDS[0], *(pytest.param(one, marks=pytest.mark.slow) for one in SEEDS[1:])])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_wrong_rule_for_one_of_two_inputs_is_laid_at_its_door(dtype: str, seed: int) -> None:
    made = ad.op(op_product)
    made.shape_rule(lambda x, y: (x[0], y[1]))
    made.vjp("x")(lambda g, y: g @ ops.transpose(y))
    made.vjp("y")(lambda g, x: -(ops.transpose(x) @ g))
    report = ad.gradcheck(made, (normal(2, 3, seed=seed, dtype=dtype), normal(3, 2, seed=9, dtype=dtype)), seed=seed)
    assert report.verdict == "wrong"
    assert {finding.input for finding in report.findings} == {"y"}
    assert "Every entry of y is −1 times what it should be: a sign is lost." in str(report)


# ------------------------------------------------------------------------------------- wrong gradients derived by hand


def loss(w: Any, b: Any) -> Any:
    return np.sum((w * 2.0 + b) ** 2)


def loss_gradient(w: Any, b: Any) -> Any:
    r = 2.0 * (w * 2.0 + b)
    return 2.0 * r, r.sum()


WRONG_BY_HAND: dict[str, tuple[Any, str]] = {
    "minus": (lambda w, b: tuple(-g for g in loss_gradient(w, b)), "Every entry of w is −1 times"),
    "the inner derivative": (lambda w, b: (loss_gradient(w, b)[0] / 2, loss_gradient(w, b)[1]), "1/2 times"),
    "a mean": (lambda w, b: (loss_gradient(w, b)[0] / w.size, loss_gradient(w, b)[1]), "1/12 of what it should be: 12 is"),
    "an axis": (lambda w, b: (loss_gradient(w, b)[0] * 3, loss_gradient(w, b)[1]), "3 times what it should be: 3 is the size"),
    "one percent": (lambda w, b: (loss_gradient(w, b)[0] * 1.01, loss_gradient(w, b)[1]), "1.01 times"),
    "no sum": (lambda w, b: (loss_gradient(w, b)[0], loss_gradient(w, b)[1] / w.size), "Every entry of b is 1/12 times"),
    "shape": (lambda w, b: (loss_gradient(w, b)[0].T, loss_gradient(w, b)[1]), "w has shape (4, 3), expected (3, 4)"),
    "nan": (lambda w, b: (loss_gradient(w, b)[0] * np.nan, loss_gradient(w, b)[1]), "got nan"),
}  # fmt: skip


@pytest.mark.parametrize("seed", [SEEDS[0], *(pytest.param(one, marks=pytest.mark.slow) for one in SEEDS[1:])])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mistake", WRONG_BY_HAND)
def test_every_wrong_gradient_derived_by_hand_is_found_and_explained(mistake: str, dtype: str, seed: int) -> None:
    gradient, sentence = WRONG_BY_HAND[mistake]
    inputs = normal(3, 4, seed=seed, dtype=dtype), normal(seed=7, dtype=dtype)
    assert ad.gradcheck(loss, inputs, grad=loss_gradient, seed=seed)
    report = ad.gradcheck(loss, inputs, grad=gradient, seed=seed)
    assert report.verdict == "wrong" and sentence in str(report), report


def test_the_first_wrong_entry_is_named_with_index_got_expected_and_error() -> None:
    def colleague(w: Any, b: Any) -> Any:
        dw, db = loss_gradient(w, b)
        dw[1, 2] *= -1
        return dw, db

    w, b = normal(3, 4), normal(seed=7)
    report = ad.gradcheck(loss, (w, b), grad=colleague)
    assert len(report.findings) == 1 and report.first is not None
    found, right = report.first, loss_gradient(w, b)[0][1, 2]
    assert (found.input, found.index, found.place) == ("w", (1, 2), "w[1, 2]")
    assert found.got == pytest.approx(-right) and found.expected == pytest.approx(right, rel=1e-7)
    assert found.relative_error == pytest.approx(2.0)
    assert f"w[1, 2]: got {-right:.6g}, expected {right:.6g} (relative error 2.0e+00)" in str(report)


def test_a_gradient_by_hand_of_a_vector_is_its_jacobian() -> None:
    a = normal(2, 3)
    assert ad.gradcheck(lambda x: a @ x**2, [normal(3, seed=1)], grad=lambda x: a * 2.0 * x)
    assert ad.gradcheck(lambda x: a @ x**2, [normal(3, seed=1)], grad=lambda x: a * x).verdict == "wrong"


def test_a_transposed_gradient_and_a_gradient_of_several_numbers_are_explained() -> None:
    a, w = normal(3, 3), normal(3, 3, seed=1)
    report = ad.gradcheck(lambda w: np.sum((w @ a) ** 2), w, grad=lambda w: (2 * (w @ a) @ a.T).T)
    assert "The gradient of w is right, but transposed." in str(report)
    report = ad.gradcheck(lambda x: x * x, normal(4), grad=lambda x: 2 * x)
    assert "has shape (4,), expected (4, 4): the result's shape, then the input's. Let f end in a sum" in str(report)
    report = ad.gradcheck(custom(op_cube, lambda g, x: g * x), normal(4))
    assert "The result has 4 numbers: entries are of the gradient of ⟨c, result⟩" in str(report)


def test_a_rule_that_forgets_its_cotangent_is_told_so() -> None:
    report = ad.gradcheck(custom(op_cube, WRONG_RULES["the cotangent is ignored"][1]), normal(4))
    assert "The gradient of x is the same for every cotangent: a rule forgets to multiply by its cotangent g." in str(
        report
    )


# ------------------------------------------------------------------------------------------------------ no false alarm

W = normal(4, 3, seed=5)
RIGHT: dict[str, tuple[Any, Any]] = {
    "a layer": (lambda x: ops.tanh(W.astype(x.dtype) @ x), [normal(3)]),
    "a loss": (lambda w, b: ops.mean((w * 2.0 + b) ** 2), [normal(3, 4), normal(3, 1, seed=1)]),
    "a softmax, whose sum does not move": (
        lambda x: ops.sum(ops.exp(x) / ops.sum(ops.exp(x), axis=-1, keepdims=True)), [normal(2, 5)]),
    "a view": (lambda t: ops.transpose(t), [np.arange(3.0).reshape(1, 3)]),
    "the input itself": (lambda t: t, [normal(2, 2)]),
    "a slice": (lambda t: t[1:, ::2], [normal(3, 4)]),
    "a constant": (lambda x: ops.sum(x * 0.0) + 3.0, [normal(3)]),
    "a result that does not depend on an input": (lambda x, y: x * 2.0, [normal(3), normal(2)]),
    "relu on both sides of its kink": (lambda x: ops.relu(x), [np.array([-1.0, 2.0, 1e-7, -1e-7])]),
    "a cube at 0": (lambda x: x**3, [np.zeros(3)]),
    "large numbers": (lambda x: ops.sum(x * x), [1e6 * normal(4)]),
    "small numbers": (lambda x: ops.log(x), [np.array([1e-8, 1e-3, 1.0])]),
    "a large constant beside the result": (lambda x: ops.tanh(x) + 1e5, [normal(4)]),
    "a very small gradient": (lambda x: 1e-15 * ops.exp(x), [normal(4)]),
    "steep": (lambda x: ops.tanh(50.0 * x), [normal(5) / 50]),
    "nested arguments and results": (
        lambda p, n: {"a": p["w"] @ p["b"][0], "b": (p["w"] * n, 3)}, [{"w": normal(2, 3), "b": [normal(3)]}, 4]),
    "whole numbers beside": (lambda x, i: x[i] * x[i], [normal(4), np.array([0, 2, 2])]),
    "a 0-d array": (lambda x: x * x, [np.array(1.5)]),
    "a Python number": (lambda x: x * x, [1.5]),
    "an empty array": (lambda x: x * 2.0, [np.zeros((0, 3))]),
    "powers": (lambda x, y: x**y, [np.abs(normal(3)) + 0.5, normal(3, seed=3)]),
    "branches that Python decides": (lambda x: x * 2.0 if ops.sum(x) > 0 else x * 3.0, [np.ones(3)]),
    "Tensor methods": (lambda x: (x.exp() * x.tanh()).sum(axis=0), [normal(3, 2)]),
}  # fmt: skip


@pytest.mark.parametrize("seed", [SEEDS[0], *(pytest.param(one, marks=pytest.mark.slow) for one in SEEDS[1:])])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", RIGHT)
def test_right_gradients_raise_no_alarm(name: str, dtype: str, seed: int) -> None:
    f, inputs = RIGHT[name]
    given = [x.astype(dtype) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x for x in inputs]
    report = ad.gradcheck(f, given, seed=seed)
    assert report.verdict == "right" and report and report.ok, report


SMOOTH = [
    "a layer",
    "a loss",
    "a view",
    "a cube at 0",
    "powers",
    "nested arguments and results",
    "Tensor methods",
    "steep",
]


@pytest.mark.parametrize("seed", [SEEDS[0], *(pytest.param(one, marks=pytest.mark.slow) for one in SEEDS[1:])])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SMOOTH)
def test_right_second_derivatives_raise_no_alarm(name: str, dtype: str, seed: int) -> None:
    f, inputs = RIGHT[name]
    given = [x.astype(dtype) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x for x in inputs]
    report = ad.gradcheck(f, given, order=2, seed=seed)
    assert report.ok and report.order == 2, report


# ------------------------------------------------------------------------------------------------------- second order


def test_a_rule_that_hides_an_intermediate_passes_at_first_order_and_fails_at_second() -> None:
    made = custom(op_stored, lambda g, x: g * 4.0 * STORE["twice"])
    assert float(ad.grad(made)(1.5)) == 12.0  # f(x) = (2x)², f' = 8x
    assert ad.gradcheck(made, [1.5])
    report = ad.gradcheck(made, [1.5], order=2)
    assert report.verdict == "wrong" and report.order == 2
    assert report.first is not None and report.first.got == 0.0
    assert "takes it for a constant" in str(report) and "second derivatives" in str(report)


def through_numbers(value: Any) -> Any:
    return value.detach() if isinstance(value, ad.Tensor) else value


@pytest.mark.parametrize(
    ("rule", "hidden"),
    [
        (lambda g, x: g * 3.0 * through_numbers(x) * x, "x"),
        (lambda g, x: through_numbers(g) * 3.0 * x * x, "cotangent"),
    ],
)
def test_a_rule_that_detaches_its_input_or_its_cotangent_fails_at_second_order(rule: Any, hidden: str) -> None:
    made = custom(op_cube, rule)
    assert ad.gradcheck(made, [normal(3)])
    report = ad.gradcheck(made, [normal(3)], order=2)
    assert report.verdict == "wrong" and {finding.input for finding in report.findings} == {hidden}


# ------------------------------------------------------------------------------------------------------- precision


@pytest.mark.parametrize("seed", range(10))
def test_right_float32_code_is_never_called_wrong(seed: int) -> None:
    w, x = normal(3, 3, seed=seed, dtype="float32"), normal(3, seed=seed + 50, dtype="float32")
    assert ad.gradcheck(lambda v: ops.sum(ops.tanh(w @ v)), [x], seed=seed)
    inside = lambda v: ops.sum(ops.tanh(w @ ops.astype(v, dtype="float32")))  # noqa: E731
    assert ad.gradcheck(inside, [x], seed=seed).verdict in ("right", "imprecise")
    hidden = lambda v: ops.astype(inside(v), dtype="float64")  # noqa: E731
    assert ad.gradcheck(hidden, [x.astype("float64")], seed=seed).verdict in ("right", "imprecise")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_percent_is_found_in_float32_too(dtype: str, seed: int) -> None:
    off = custom(op_cube, lambda g, x: g * 3.03 * x * x)
    x = normal(3, seed=seed, dtype=dtype)
    assert ad.gradcheck(lambda v: ops.sum(off(v)), [x], seed=seed).verdict == "wrong"
    narrow = lambda v: off(ops.astype(v, dtype="float32"))  # noqa: E731
    assert ad.gradcheck(narrow, [x], seed=seed).verdict == "wrong"


def test_a_formula_that_rounding_ruins_in_float32_is_told_apart_from_a_wrong_one() -> None:
    def unstable(x: Any) -> Any:  # the derivative is the difference of two large numbers
        return ops.exp(x) - ops.exp(x - 1e-5)

    x = np.array([1.0, 2.0])
    assert ad.gradcheck(unstable, [x])
    report = ad.gradcheck(unstable, [x.astype("float32")])
    assert report.verdict == "imprecise" and not report.ok
    assert "not enough precision to tell" in str(report) and "right in float64, but rounding in float32" in str(report)
    assert "wrong" not in str(report)


def test_differences_that_see_nothing_are_not_called_wrong() -> None:
    report = ad.gradcheck(lambda x: ops.sum(x * 1e-9) + 1e9, [normal(3)])
    assert report.verdict in ("imprecise", "right")
    report = ad.gradcheck(lambda x: ops.sum(ops.astype(x * 1e-4 + 1.0, dtype="float16")), [normal(3)])
    assert report.verdict in ("imprecise", "right")


def test_a_function_that_is_not_finite_at_the_point_or_jumps_there_cannot_be_judged() -> None:
    report = ad.gradcheck(lambda x: ops.log(x), [np.array([0.0])])
    assert report.verdict == "imprecise" and "not finite at this point" in str(report)
    assert ad.gradcheck(lambda x: x[0] / x[1], [np.array([1.0, 0.0])]).verdict == "imprecise"
    floor = custom(op_floor, lambda g: 0.0 * g)
    assert ad.gradcheck(floor, [np.array([0.5, 2.2, -0.95])])
    report = ad.gradcheck(floor, [np.array([0.5, 1.0])])
    assert report.verdict == "imprecise" and "a jump or an edge" in str(report)
    assert ad.gradcheck(custom(op_floor, lambda g: g), [np.array([0.5, 2.95])]).verdict == "wrong"


def op_floor(xp: Any, x: Any) -> Any:
    return xp.floor(x)


# ----------------------------------------------------------------------------------------------------------- kinks


def test_relu_on_its_kink_is_right_and_the_kink_is_named() -> None:
    report = ad.gradcheck(lambda x: ops.sum(ops.relu(x)), [np.array([-1.0, 0.0, 1.0])])
    assert report.ok
    assert "x[1]: on a kink, with slope 0 to the left and 1 to the right; any number between is a derivative" in str(
        report
    )


def test_a_value_outside_the_slopes_of_a_kink_is_not_judged() -> None:
    wrong = custom(lambda_relu, lambda g, x: g * (2.0 * (x >= 0)))
    report = ad.gradcheck(wrong, [np.array([0.0, -1.0])])
    assert report.verdict == "kink" and not report.ok
    assert "move the point a little and check again" in str(report)
    assert ad.gradcheck(wrong, [np.array([0.5, -1.0])]).verdict == "wrong"


def lambda_relu(xp: Any, x: Any) -> Any:
    return xp.maximum(x, 0)


def test_equal_maxima_that_share_their_gradient_are_right() -> None:
    assert ad.gradcheck(ops.maximum, [np.array([1.0, 2.0]), np.array([1.0, 3.0])])


# -------------------------------------------------------------------------------------------- large inputs, wrong calls


def test_of_a_large_input_a_seeded_sample_is_checked_and_said() -> None:
    x = normal(50, 40)
    report = ad.gradcheck(lambda x: ops.tanh(x), [x], entries=20)
    assert report.ok and report.checked == (("x", 20, 2000),)
    assert "20 of 2000 entries of x (a sample, and one random direction through all)" in str(report)


def test_a_mistake_outside_the_sample_is_found_along_the_random_direction() -> None:
    def wrong_at_one(g: Any, x: Any) -> Any:
        factors = np.ones(x.shape)
        factors.flat[-7] = -1.0
        return g * 3.0 * x * x * factors

    made = custom(op_cube, wrong_at_one)
    for seed in SEEDS:
        report = ad.gradcheck(made, [normal(40, 40, seed=1) + 3.0], entries=5, seed=seed)
        assert report.verdict == "wrong"
        assert report.first is not None and report.first.place == "x along a random direction"


def test_calls_that_cannot_be_checked_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="expected a floating input, got int; write"):
        ad.gradcheck(lambda x: x, [3])
    with pytest.raises(ValueError, match="two calls gave two results"):
        rng = np.random.default_rng(0)
        ad.gradcheck(lambda x: x * float(rng.uniform()), [1.0])
    with pytest.raises(ValueError, match="no floating numbers"):
        ad.gradcheck(lambda x: x > 0.0, [1.0])
    with pytest.raises(ValueError, match="order must be 1 or 2, got 3"):
        ad.gradcheck(lambda x: x, [1.0], order=3)
    with pytest.raises(ValueError, match="leave grad out"):
        ad.gradcheck(lambda x: x, [1.0], grad=lambda x: x, order=2)
    with pytest.raises(ValueError, match="one gradient for each of w, b, got 1"):
        ad.gradcheck(loss, [normal(2), normal(2)], grad=lambda w, b: w)


def test_checking_leaves_the_inputs_and_the_random_numbers_of_others_untouched() -> None:
    x = normal(3)
    before, state = x.copy(), np.random.get_state()[1].copy()
    assert str(ad.gradcheck(lambda x: ops.tanh(x), [x])) == str(ad.gradcheck(lambda x: ops.tanh(x), [x]))
    assert np.array_equal(x, before) and np.array_equal(np.random.get_state()[1], state)


# ----------------------------------------------------------------------------------------------------------- reports


def test_the_rich_form_says_what_the_text_says_and_shows_names_as_typed() -> None:
    def f(a: Any) -> Any:
        return np.sum(a["<b>&"] ** 2)

    report = ad.gradcheck(f, [{"<b>&": normal(9)}], grad=lambda a: (a["<b>&"],))
    page = report._repr_html_()
    assert "wrong gradient" in page and "<b>" not in page and "&lt;b&gt;&amp;" in page
    assert (
        page.count("<tr>") == 1 + 5 and "and 4 more such entries" in page and "and 4 more such entries" in str(report)
    )
    assert "1/2 times what it should be" in page


# ------------------------------------------------------------------------------------------------------- differences


@pytest.mark.parametrize("x", [0.3, 2.0, -1.0])
@pytest.mark.parametrize(
    ("f", "derivative"),
    [(math.sin, math.cos), (math.exp, math.exp), (lambda x: x**5, lambda x: 5 * x**4), (lambda x: 7.0, lambda x: 0.0)],
)
def test_the_uncertainty_of_a_slope_covers_its_error(f: Any, derivative: Any, x: float) -> None:
    found = slope(lambda t: f(x + t), rounding=1e-16 * max(1.0, abs(f(x))))
    assert abs(found.value - derivative(x)) <= 3 * found.uncertainty + 1e-12
    assert found.uncertainty < 1e-6 and not found.has_kink


@pytest.mark.parametrize("x", [0.0, 1.0, -2.0])
@pytest.mark.parametrize(("left", "right"), [(-1.0, 1.0), (0.0, 1.0), (1.0, 1.05), (3.0, -0.5)])
def test_a_kink_is_seen_with_the_slopes_on_both_sides(left: float, right: float, x: float) -> None:
    kink = lambda z: (left if z < x else right) * (z - x) + 0.1 * (z - x) ** 2  # noqa: E731
    found = slope(lambda t: kink(x + t))
    assert found.has_kink and found.left == pytest.approx(left, rel=1e-3, abs=1e-3)
    assert found.right == pytest.approx(right, rel=1e-3, abs=1e-3)


def test_a_mask_of_huge_numbers_does_not_spoil_the_random_direction() -> None:
    for masked in (-1e9, -math.inf):
        scores = np.where(np.tri(12) > 0, normal(12, 12), masked)
        report = ad.gradcheck(lambda x: ops.softmax(x)[:, :3], scores, entries=4)
        assert report.ok, str(report)


@pytest.mark.parametrize(
    "f", [lambda x: ops.sqrt(x), lambda x: ops.sqrt(x).sum(), lambda x: x**0.5], ids=["sqrt", "sum of sqrt", "power"]
)
def test_an_infinite_slope_at_one_entry_does_not_make_the_others_wrong(f: Any) -> None:
    report = ad.gradcheck(f, [np.array([0.0, 1.0, 4.0])])
    assert report.verdict == "imprecise" and {finding.place for finding in report.findings} == {"x[0]"}
    assert ad.find_faulty_op(f, [np.array([0.0, 1.0, 4.0])]).ok
