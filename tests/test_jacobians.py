"""Jacobians by columns and by rows, Hessians, Hessian-vector products, and what each mode costs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import events, ops

RNG = np.random.default_rng(0)
X, W, B = RNG.standard_normal(3), RNG.standard_normal((4, 3)), RNG.standard_normal((2, 1))
MODES = ("forward", "reverse", "auto")


def layer(x: Any, w: Any, b: Any) -> Any:
    return ops.tanh(w @ x) * b


def by_differences(f: Any, arguments: tuple[Any, ...], place: int, step: float = 1e-6) -> Any:
    columns = []
    for index in np.ndindex(arguments[place].shape):
        moved = []
        for sign in (1, -1):
            given = [np.array(a) for a in arguments]
            given[place][index] += sign * step
            moved.append(np.array(f(*given)))
        columns.append((moved[0] - moved[1]) / (2 * step))
    return np.stack(columns, -1).reshape(np.shape(f(*arguments)) + arguments[place].shape)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("place", range(3))
def test_every_mode_gives_the_derivatives_that_differences_give(mode: Any, place: int) -> None:
    found = ad.jacobian(layer, place, mode)(X, W, B)
    assert found.shape == (2, 4, *(X, W, B)[place].shape)
    np.testing.assert_allclose(found, by_differences(layer, (X, W, B), place), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_several_arguments_give_a_tuple_and_negative_places_count_from_the_end(mode: Any) -> None:
    last, first = ad.jacobian(layer, (-1, 0), mode)(X, W, B)
    assert np.array_equal(last, ad.jacobian(layer, 2, mode)(X, W, B))
    assert np.array_equal(first, ad.jacobian(layer, 0, mode)(X, W, B))


@pytest.mark.parametrize("mode", MODES)
def test_the_results_structure_is_outside_and_the_arguments_inside(mode: Any) -> None:
    def f(params: Any) -> Any:
        return {"sum": params["w"] @ params["x"], "parts": (params["x"] * 2.0, params["w"])}

    found = ad.jacobian(f, mode=mode)({"x": X, "w": W})
    np.testing.assert_allclose(found["sum"]["x"], W)
    np.testing.assert_allclose(found["parts"][0]["x"], 2 * np.eye(3))
    assert not found["parts"][1]["x"].any()
    np.testing.assert_allclose(found["parts"][1]["w"], np.eye(12).reshape(4, 3, 4, 3))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("shape", "f"), [((0, 3), lambda x: x * 2.0), ((3,), lambda x: x[:0]), ((), lambda x: x * x)])
def test_empty_and_0d_arrays_have_jacobians_of_the_right_shape(mode: Any, shape: Any, f: Any) -> None:
    x = np.ones(shape)
    assert ad.jacobian(f, mode=mode)(x).shape == np.shape(f(x)) + shape


@pytest.mark.parametrize("mode", MODES)
def test_float32_stays_float32(mode: Any) -> None:
    assert ad.jacobian(lambda x: ops.tanh(x), mode=mode)(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("mode", MODES)
def test_a_constant_result_has_a_jacobian_of_zeros(mode: Any) -> None:
    assert not ad.jacobian(lambda x: np.ones(2), mode=mode)(X).any()


@pytest.mark.parametrize("outer", MODES)
@pytest.mark.parametrize("inner", MODES)
def test_a_jacobian_can_be_differentiated_again(outer: Any, inner: Any) -> None:
    second = ad.jacobian(ad.jacobian(lambda x: x[:2] ** 3 * x[2], mode=inner), mode=outer)(X)
    expected = np.zeros((2, 3, 3))
    for i in range(2):
        expected[i, i, i] = 6 * X[i] * X[2]
        expected[i, i, 2] = expected[i, 2, i] = 3 * X[i] ** 2
    np.testing.assert_allclose(second, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("mode", MODES)
def test_a_recorded_jacobian_runs_on_new_numbers(mode: Any) -> None:
    find = ad.jacobian(lambda x: ops.tanh(W @ x), mode=mode)
    graph = ad.record(find, np.zeros(3))
    assert graph.nodes[graph.outputs[0]].shape == (4, 3)
    np.testing.assert_allclose(graph(X), find(X), rtol=1e-14)


@pytest.mark.parametrize("mode", MODES)
def test_the_function_itself_runs_once_however_many_directions_there_are(mode: Any) -> None:
    runs = 0

    def f(x: Any) -> Any:
        nonlocal runs
        runs += 1
        return ops.exp(x)

    ad.jacobian(f, mode=mode)(X)
    assert runs == (2 if mode == "auto" else 1)


def test_auto_runs_the_function_once_where_a_call_before_has_shown_how_many_numbers_it_gives() -> None:
    runs = 0

    def f(x: Any) -> Any:
        nonlocal runs
        runs += 1
        return ops.exp(x) if wide else ops.sum(x)

    find = ad.jacobian(f)
    for wide, expected in ((True, 2), (True, 1), (False, 1), (False, 1), (True, 2), (True, 1)):
        runs = 0
        np.testing.assert_allclose(find(X), np.diag(np.exp(X)) if wide else np.ones(3))
        assert runs == expected


def test_who_listens_hears_the_same_at_every_call_of_a_jacobian() -> None:
    find = ad.jacobian(lambda x: ops.tanh(W @ x))
    counts = []
    for _ in range(2):
        find(X)
        with ad.listen() as told:
            find(X)
        counts.append([type(event) for event in told])
    assert counts[0] == counts[1]


def test_one_input_more_than_outputs_goes_forward() -> None:
    with ad.listen() as told:
        ad.jacobian(lambda x: x[:2] * x[2])(X)
    assert any(isinstance(event, events.TangentPushed) for event in told)


@pytest.mark.parametrize(("f", "rule"), [(lambda x: ops.sum(x * x), "VJP"), (lambda x: x[0] * np.ones(50), "JVP")])
def test_auto_takes_the_side_with_fewer_numbers(f: Any, rule: str) -> None:
    with ad.listen() as told:
        ad.jacobian(f)(X)
    swept = any(isinstance(event, events.ContributionAdded) for event in told)
    pushed = any(isinstance(event, events.TangentPushed) for event in told)
    assert (swept, pushed) == ((True, False) if rule == "VJP" else (False, True))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_batch_rule_may_leave_a_call_to_the_loop(mode: Any) -> None:
    stacks: list[Any] = []

    @ad.op
    def halves_apart(xp: Any, x: Any, *, scale: float = 2.0) -> Any:
        return scale * x

    halves_apart.shape_rule(lambda x: x)
    halves_apart.vjp(lambda g, *, scale: halves_apart(g, scale=scale))
    halves_apart.jvp(lambda dx, *, scale: halves_apart(dx, scale=scale))

    @halves_apart.batch_rule
    def halves_apart_batch(x: Any, *, scale: float) -> Any:
        stacks.append(x.shape)
        return scale * x if scale > 1.0 else NotImplemented

    for scale in (2.0, 0.5):
        find = ad.jacobian(lambda x, scale=scale: halves_apart(x, scale=scale), mode=mode)
        np.testing.assert_array_equal(find(X), scale * np.eye(3))
    assert stacks == [(3, 3)] * 2


def test_the_hessian_is_symmetric_and_that_of_differences() -> None:
    f = lambda x: ops.sum(ops.exp(W @ x) * ops.tanh(W @ x))  # noqa: E731
    found = ad.hessian(f)(X)
    np.testing.assert_allclose(found, found.T, rtol=1e-12)
    np.testing.assert_allclose(found, by_differences(ad.grad(f), (X,), 0), rtol=1e-6, atol=1e-7)


def test_the_hessian_of_two_arguments_has_four_blocks() -> None:
    f = lambda x, b: ops.sum(x * x) * ops.sum(b)  # noqa: E731
    (xx, xb), (bx, bb) = ad.hessian(f, (0, 1))(X, B)
    np.testing.assert_allclose(xx, 2 * np.eye(3) * B.sum())
    np.testing.assert_allclose(xb, np.broadcast_to(2 * X[:, None, None], (3, 2, 1)))
    np.testing.assert_allclose(bx, np.moveaxis(xb, 0, -1))
    assert not bb.any()


def test_hvp_is_the_hessian_times_the_vector() -> None:
    f = lambda x, w: ops.sum(ops.tanh(w @ x) ** 2)  # noqa: E731
    v, u = RNG.standard_normal(3), RNG.standard_normal((4, 3))
    (xx, xw), (wx, ww) = ad.hessian(f, (0, 1))(X, W)
    for_x, for_w = ad.hvp(f, (X, W), (v, u))
    np.testing.assert_allclose(for_x, xx @ v + np.tensordot(xw, u, 2), rtol=1e-12)
    np.testing.assert_allclose(for_w, np.tensordot(wx, v, 1) + np.tensordot(ww, u, 2), rtol=1e-12)


def test_the_cost_of_forward_mode_grows_with_the_inputs_and_of_reverse_mode_with_the_outputs() -> None:
    for n in (1, 2, 5):
        for m in (1, 3, 4):
            cost = ad.jacobian_cost(lambda x, m=m: ops.tanh(ops.reshape(ops.sum(x), (1,)) * np.ones(m)), np.ones(n))
            assert (cost.inputs, cost.outputs) == (n, m)
            assert cost.forward_rule_calls == 4 * n
            assert cost.reverse_rule_calls == 4 * m
            assert f"{n} tangent" in str(cost) and f"{m} sweep" in str(cost)


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="'auto', 'forward' or 'reverse', got 'sideways'"):
        ad.jacobian(layer, mode="sideways")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="argnums=3, but layer was called with 3 arguments"):
        ad.jacobian(layer, 3)(X, W, B)
    with pytest.raises(TypeError, match="floating"):
        ad.jacobian(lambda x: x)(np.arange(3))
    with pytest.raises(ValueError, match="must give one number"):
        ad.hessian(lambda x: x)(X)


def test_an_argument_named_twice_is_refused_also_by_a_negative_number() -> None:
    for transformed in (ad.grad, ad.jacobian):
        with pytest.raises(ValueError, match="names an argument twice"):
            transformed(lambda x: ops.sum(x * x), (0, -1))(X)


@pytest.mark.parametrize("mode", MODES)
def test_a_jacobian_may_be_changed_by_whoever_asked_for_it(mode: Any) -> None:
    for f in (ops.sum, ops.mean, lambda x: np.ones(2)):
        ad.jacobian(f, mode=mode)(X)[0] = 7.0


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_blocks_of_results_that_are_parts_of_each_other_share_no_memory(mode: Any) -> None:
    blocks = ad.jacobian(lambda x: (x, x, x[::-1], x[:2]), mode=mode)(np.ones(3))
    for one, other in itertools.combinations(blocks, 2):
        assert not np.shares_memory(one, other)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_blocks_of_arguments_that_get_the_same_cotangent_share_no_memory(mode: Any) -> None:
    one, other = ad.jacobian(lambda x, y: x + y, (0, 1), mode)(np.ones(3), np.ones(3))
    one[0] = 7.0
    np.testing.assert_array_equal(other, np.eye(3))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("shape", [(1, 5), (2, 5), (5, 5), (5, 2), (5, 1)])
def test_the_jacobian_of_a_matrix_times_a_vector_or_a_matrix_is_the_matrix(mode: Any, shape: Any) -> None:
    matrix = np.arange(1.0, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    x = np.ones(shape[1], np.float32)
    jacobian = ad.jacobian(lambda x: matrix @ x, mode=mode)(x)
    np.testing.assert_array_equal(jacobian, matrix, strict=True)
    from_left = ad.jacobian(lambda x: x @ matrix.T, mode=mode)(x)
    np.testing.assert_array_equal(from_left, matrix, strict=True)
    columns = ad.jacobian(lambda x: matrix @ x, mode=mode)(np.stack([x, x], axis=1))
    np.testing.assert_array_equal(columns, np.einsum("ij,kl->ikjl", matrix, np.eye(2)), strict=False)


def test_the_value_shares_no_memory_with_the_argument() -> None:
    x = np.array(3.0)
    value, _ = ad.value_and_grad(lambda x: x)(x)
    x[...] = 7.0
    assert float(value) == 3.0
