"""What ops must give, from closed forms, from counting by hand, and from loops that are too plain to be wrong."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.ops.composed import composed


def both_modes(f: Any, x: Any) -> np.ndarray[Any, Any]:
    """The gradient of a function to one number, in reverse mode, after checking that forward mode gives the same."""
    x = np.asarray(x)
    gradient = np.asarray(ad.grad(f)(x))
    for place in np.ndindex(x.shape):
        direction = np.zeros_like(x)
        direction[place] = 1.0
        np.testing.assert_allclose(ad.jvp(f, (x,), (direction,))[1], gradient[place], rtol=1e-12, atol=1e-300)
    return gradient


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# ------------------------------------------------------------------------------------------------------------- kinks


def test_equal_largest_and_smallest_numbers_share_the_gradient() -> None:
    x = np.array([[3.0, 7.0, 7.0], [7.0, 1.0, 0.0]])
    third = 1 / 3
    np.testing.assert_allclose(both_modes(ops.max, x), [[0, third, third], [third, 0, 0]])
    assert both_modes(lambda v: ops.sum(ops.max(v, axis=1)), x).tolist() == [[0, 0.5, 0.5], [1, 0, 0]]
    assert both_modes(lambda v: ops.sum(ops.min(v, axis=0)), -x).tolist() == [[0, 1, 1], [1, 0, 0]]
    pooled = both_modes(lambda v: ops.sum(ops.max_pool2d(v, 2)), np.ones((2, 2)))
    assert pooled.tolist() == [[0.25, 0.25], [0.25, 0.25]]
    assert both_modes(lambda v: ops.norm(v, ord=np.inf), np.array([2.0, -2.0])).tolist() == [0.5, -0.5]


@pytest.mark.parametrize("order", [None, 1, 2, 3, np.inf])
def test_a_row_of_zeros_has_norm_zero_and_gradient_zero_and_leaves_the_other_rows_alone(order: Any) -> None:
    gradient = both_modes(lambda v: ops.sum(ops.norm(v, ord=order, axis=1)), np.array([[3.0, 4.0], [0.0, 0.0]]))
    assert gradient[1].tolist() == [0.0, 0.0]
    if order in (None, 2):
        assert gradient[0].tolist() == [0.6, 0.8]


def test_equal_numbers_have_standard_deviation_zero_and_gradient_zero() -> None:
    assert both_modes(lambda v: ops.sum(ops.std(v, axis=1)), [[2.0, 2.0, 2.0], [1.0, 3.0, 2.0]])[0].tolist() == [
        0,
        0,
        0,
    ]


def test_sorting_hands_each_gradient_to_the_number_that_came_there() -> None:
    weights = np.array([1.0, 10.0, 100.0, 1000.0])
    assert both_modes(lambda v: ops.sum(ops.sort(v) * weights), [3.0, 1.0, 1.0, 2.0]).tolist() == [1000, 1, 10, 100]


def test_where_with_a_safe_argument_keeps_nan_out_of_the_gradient() -> None:
    x = np.array([-1.0, 0.0, 2.0])

    def log_of_positive(v: Any) -> Any:
        safe = ops.where(v > 0, v, 1.0)
        return ops.sum(ops.where(v > 0, ops.log(safe), 0.0))

    assert both_modes(log_of_positive, x).tolist() == [0.0, 0.0, 0.5]


# ----------------------------------------------------------------------------------------------------------- products


def test_the_product_has_the_right_derivatives_where_factors_are_zero() -> None:
    assert both_modes(ops.prod, [2.0, 0.0, 5.0, -1.0]).tolist() == [0.0, -10.0, 0.0, 0.0]
    assert both_modes(ops.prod, [2.0, 0.0, 0.0]).tolist() == [0.0, 0.0, 0.0]
    rows = both_modes(lambda v: ops.sum(ops.prod(v, axis=1)), [[1.0, 2.0], [0.0, 3.0]])
    assert rows.tolist() == [[2.0, 1.0], [3.0, 0.0]]


@pytest.mark.parametrize("x", [[2.0, 0.0, 5.0, -1.0, 3.0], [0.0, 0.0, 3.0], [4.0]])
def test_the_second_derivative_of_a_product_is_the_product_of_all_but_two(x: list[float]) -> None:
    count = len(x)
    columns = [ad.jvp(ad.grad(ops.prod), (np.array(x),), (row,))[1] for row in np.eye(count)]
    expected = [
        [0.0 if i == j else math.prod(x[k] for k in range(count) if k not in (i, j)) for j in range(count)]
        for i in range(count)
    ]
    np.testing.assert_allclose(columns, expected)


def test_a_running_product_has_the_right_derivatives_where_factors_are_zero() -> None:
    assert both_modes(lambda v: ops.sum(ops.cumprod(v)), [2.0, 0.0, 5.0]).tolist() == [1.0, 12.0, 0.0]


# ------------------------------------------------------------------------------------------------ far from 0, large, small


def test_logsumexp_takes_large_numbers_and_minus_infinity() -> None:
    assert float(ops.logsumexp([1000.0, 1000.0])) == pytest.approx(1000 + math.log(2), rel=1e-15)
    np.testing.assert_allclose(ad.grad(ops.logsumexp)(np.array([1000.0, 1000.0])), [0.5, 0.5], rtol=1e-13)
    assert float(ops.logsumexp([-np.inf, 3.0])) == 3.0
    assert ad.grad(ops.logsumexp)(np.array([-np.inf, 3.0])).tolist() == [0.0, 1.0]
    with np.errstate(divide="ignore"):
        assert float(ops.logsumexp([-np.inf, -np.inf])) == -np.inf
        assert ad.grad(ops.logsumexp)(np.array([-np.inf, -np.inf])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("value", "softplus"), [(1000.0, 1000.0), (-1000.0, 0.0), (-40.0, 4.248354255291589e-18)])
def test_softplus_stays_finite_and_exact_far_from_zero(value: float, softplus: float) -> None:
    assert float(ops.softplus(value)) == pytest.approx(softplus, rel=1e-14)
    assert float(ad.grad(ops.softplus)(value)) == pytest.approx(math.exp(min(value, 0)), rel=1e-14)
    assert float(ops.silu(value)) == pytest.approx(value * math.exp(min(value, 0)), rel=1e-14)


def test_softmax_and_cross_entropy_take_large_logits() -> None:
    logits = np.array([[1000.0, 0.0], [0.0, -1000.0]])
    assert ops.softmax(logits).tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert ops.log_softmax(logits).tolist() == [[0.0, -1000.0], [0.0, -1000.0]]
    loss, gradient = ad.value_and_grad(lambda v: ops.cross_entropy(v, [1, 0]))(logits)
    assert float(loss) == 500.0 and gradient.tolist() == [[0.5, -0.5], [0.0, 0.0]]


def test_cross_entropy_is_the_mean_of_minus_the_log_softmax_of_the_right_classes() -> None:
    rng = np.random.default_rng(1)
    logits, classes = rng.standard_normal((5, 3)), np.array([0, 2, 1, 1, 0])
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert float(ops.cross_entropy(logits, classes)) == pytest.approx(-np.log(chances[np.arange(5), classes]).mean())
    gradient = ad.grad(lambda v: ops.cross_entropy(v, classes))(logits)
    np.testing.assert_allclose(gradient, (chances - np.eye(3)[classes]) / 5, rtol=1e-13)


def test_the_error_function_and_gelu_keep_their_relative_accuracy_in_the_tails() -> None:
    x = np.linspace(-6.0, 6.0, 49)
    np.testing.assert_allclose(ops.erf(x), [math.erf(v) for v in x], rtol=2e-16)
    np.testing.assert_allclose(ops.erfc(x), [math.erfc(v) for v in x], rtol=2e-16)
    # 50 digits: 10 Φ(−10) = 7.6198530241605260659733432516e-23, and −8 Φ(−8) = 4.9768460577984…e-15
    assert float(ops.gelu(-10.0)) == pytest.approx(-7.6198530241605260659733e-23, rel=1e-13)
    assert float(ops.gelu(-8.0)) == pytest.approx(-8 * 6.22096057427178412351e-16, rel=1e-13)
    assert float(ops.gelu(0.0)) == 0.0 and float(ad.grad(ops.gelu)(0.0)) == 0.5
    np.testing.assert_allclose(ops.gelu(x, approximate="tanh"), ops.gelu(x), atol=5e-4)


def test_small_arguments_keep_their_digits() -> None:
    tiny = 1e-12
    assert float(ops.log1p(tiny)) == pytest.approx(tiny - tiny**2 / 2, rel=1e-15)
    assert float(ops.expm1(tiny)) == pytest.approx(tiny + tiny**2 / 2, rel=1e-15)
    assert float(ad.grad(ops.arcsin)(1 - 2**-40)) == pytest.approx(1 / math.sqrt(2**-40 * (2 - 2**-40)), rel=1e-15)
    assert float(ops.hypot(3e200, 4e200)) == pytest.approx(5e200)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "bool"])
def test_the_mean_is_numpys_bit_by_bit(dtype: str) -> None:
    random = np.random.default_rng(0)
    for shape in [(), (1,), (7,), (3, 5), (64, 1), (2, 3, 129), (41, 5, 2)]:
        x = (random.standard_normal(shape) * 3).astype(dtype)
        for axis, keepdims in itertools.product(
            [None, *range(-x.ndim, x.ndim), (0, -1)][: None if x.ndim > 1 else -1], [False, True]
        ):
            for given in (x, x.T):
                mean, expected = (
                    ops.mean(given, axis=axis, keepdims=keepdims),
                    np.asarray(given.mean(axis, keepdims=keepdims)),
                )
                assert (mean.shape, mean.dtype, mean.tobytes()) == (expected.shape, expected.dtype, expected.tobytes())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nothing = ops.mean(np.zeros((0, 2)))
    assert np.isnan(nothing) and ops.mean(np.zeros((2, 0)), axis=0).shape == (0,)


def test_the_mean_and_spread_of_half_precision_numbers_are_added_up_wider() -> None:
    x = ad.tensor([40000.0, 40000.0, 40000.0], dtype="float16", requires_grad=True)
    y = x.mean()
    y.backward()
    assert y.item() == 40000.0 and y.dtype == np.float16
    assert x.grad is not None and x.grad.dtype == np.float16
    np.testing.assert_allclose(x.grad.numpy(), 1 / 3, rtol=1e-3)
    large = np.array([300.0, -300.0], np.float16)  # its squares are too large for half precision
    assert float(ops.std(large)) == 300.0 and float(ops.norm(large)) == pytest.approx(424.0, abs=0.5)
    assert ops.layer_norm(large, np.ones(2, np.float16), np.zeros(2, np.float16)).tolist() == [1.0, -1.0]


# ---------------------------------------------------------------------------------------------- sums that meet in one place


def test_a_number_that_is_taken_several_times_gets_the_sum_of_its_gradients() -> None:
    weights = np.array([1.0, 2.0, 4.0, 8.0])
    places = np.array([2, 0, 2, 2])
    x = np.array([10.0, 20.0, 30.0])
    assert both_modes(lambda v: ops.sum(v[places] * weights), x).tolist() == [2.0, 0.0, 13.0]
    assert both_modes(lambda v: ops.sum(ops.take(v, places) * weights), x).tolist() == [2.0, 0.0, 13.0]
    table = both_modes(lambda v: ops.sum(ops.embedding(v, [[1, 1], [1, 0]])), np.zeros((3, 2)))
    assert table.tolist() == [[1.0, 1.0], [3.0, 3.0], [0.0, 0.0]]
    assert both_modes(lambda v: ops.sum(ops.repeat(v, (1, 3, 0))), x).tolist() == [1.0, 3.0, 0.0]
    assert both_modes(lambda v: ops.sum(ops.pad(v, 2, mode="reflect")), x).tolist() == [2.0, 3.0, 2.0]


def test_a_graph_that_was_recorded_with_indices_runs_with_others() -> None:
    def picked(table: Any, words: Any) -> Any:
        return ops.sum(ops.square(table[words]))

    table = np.arange(6.0).reshape(3, 2)
    graph = ad.record(ad.value_and_grad(picked), table, np.array([0, 1]))
    value, gradient = graph(table, np.array([2, 2]))
    assert float(value) == 2 * (16 + 25) and gradient.tolist() == [[0, 0], [0, 0], [16, 20]]


def test_einsum_takes_the_diagonal_where_a_letter_occurs_twice_in_one_operand() -> None:
    assert both_modes(lambda m: ops.einsum("ii->", m), [[1.0, 2.0], [3.0, 4.0]]).tolist() == [[1, 0], [0, 1]]
    x, m = np.array([[5.0, 6.0], [7.0, 8.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    assert both_modes(lambda v: ops.sum(ops.einsum("nd,nn->d", v, m)), x).tolist() == [[1, 1], [4, 4]]
    assert both_modes(lambda v: ops.sum(ops.einsum("nd,nn->d", x, v)), m).tolist() == [[11, 0], [0, 15]]


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk,kl,li->", [(2, 3), (3, 4), (4, 5), (5, 2)]), ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("i,i,i->", [(3,)] * 3), ("iji,jk->k", [(2, 3, 2), (3, 4)]), ("...,...->...", [(2, 1), (3,)]),
        ("a...b,b...->...a", [(2, 3, 4), (4, 3)]), ("ij,ji", [(2, 3), (3, 2)]), ("ba", [(2, 3)]), ("iiii->i", [(3,) * 4]),
        ("ij,kl->ijkl", [(2, 3), (4, 5)]), ("i...->...", [(3,)]), ("ij,ij->", [(1, 3), (2, 3)]), (",->", [(), ()]),
    ],
)  # fmt: skip
def test_einsum_agrees_with_numpy(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [np.random.default_rng(place).standard_normal(shape) for place, shape in enumerate(shapes)]
    np.testing.assert_allclose(ops.einsum(subscripts, *arrays), np.einsum(subscripts, *arrays), rtol=1e-13, strict=True)


# --------------------------------------------------------------------------------------------------- windows over images


def conv2d_by_loops(x: Any, w: Any, b: Any, stride: tuple[int, int], padding: tuple[int, int]) -> Any:
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    rows, columns = ((x.shape[2 + i] - w.shape[2 + i]) // stride[i] + 1 for i in (0, 1))
    out = np.empty((len(x), len(w), rows, columns))
    for n, o, i, j in np.ndindex(out.shape):
        part = x[n, :, i * stride[0] : i * stride[0] + w.shape[2], j * stride[1] : j * stride[1] + w.shape[3]]
        out[n, o, i, j] = (part * w[o]).sum() + b[o]
    return out


@pytest.mark.parametrize(
    ("stride", "padding", "kernel"), list(itertools.product([(1, 1), (2, 3)], [(0, 0), (1, 2)], [(3, 3), (2, 1)]))
)
def test_conv2d_is_the_sum_over_each_window(stride: Any, padding: Any, kernel: Any) -> None:
    rng = np.random.default_rng(0)
    x, w, b = rng.standard_normal((2, 3, 6, 7)), rng.standard_normal((4, 3, *kernel)), rng.standard_normal(4)
    result = ops.conv2d(x, w, b, stride=stride, padding=padding)
    np.testing.assert_allclose(result, conv2d_by_loops(x, w, b, stride, padding), rtol=1e-12, atol=1e-13, strict=True)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding"),
    [
        ((1, 1), (3, 3), 2, 3),
        ((2, 1), (1, 5), (1, 4), (0, 6)),
        ((3, 2), (5, 4), 1, (1, 2)),
        ((1, 8), (1, 14), 2, (0, 3)),
    ],
)
def test_conv2d_where_a_column_of_the_kernel_meets_padding_only(
    size: Any, kernel: Any, stride: Any, padding: Any
) -> None:
    rng = np.random.default_rng(0)
    x, w, b = rng.standard_normal((2, 3, *size)), rng.standard_normal((4, 3, *kernel)), rng.standard_normal(4)
    expected = conv2d_by_loops(x, w, b, *(one if isinstance(one, tuple) else (one, one) for one in (stride, padding)))
    result = ops.conv2d(x, w, b, stride=stride, padding=padding)
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-13, strict=True)
    assert ad.gradcheck(lambda x, w, b: ops.conv2d(x, w, b, stride=stride, padding=padding), (x, w, b)).ok


@pytest.mark.parametrize("images_at_a_time", [1, 2, 4])
def test_convolutions_do_not_depend_on_how_many_images_fit_into_the_cache(
    images_at_a_time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((5, 3, 6, 7)), rng.standard_normal((4, 3, 3, 2))

    def derivatives() -> Any:
        value, pull = ad.vjp(lambda x, w: ops.conv2d(x, w, stride=(1, 2), padding=1), x, w)
        return value, *pull(np.cos(np.arange(value.size)).reshape(value.shape))

    whole = derivatives()
    monkeypatch.setattr(ops.convolution, "_IN_CACHE", images_at_a_time * x[0].size * 3 * 2 * 8)
    for part, expected in zip(derivatives(), whole, strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-13, atol=1e-13, strict=True)


def test_windows_that_do_not_reach_the_edge_give_it_no_gradient() -> None:
    x, w = (
        ad.tensor(np.arange(36.0).reshape(1, 1, 6, 6), requires_grad=True),
        ad.tensor(np.ones((1, 1, 3, 3)), requires_grad=True),
    )
    ops.conv2d(x, w, stride=2).backward(np.array([[[[1.0, 2.0], [3.0, 4.0]]]]))
    assert x.grad is not None and w.grad is not None
    assert x.grad.numpy()[0, 0].tolist() == [
        [1, 1, 3, 2, 2, 0], [1, 1, 3, 2, 2, 0], [4, 4, 10, 6, 6, 0], [3, 3, 7, 4, 4, 0], [3, 3, 7, 4, 4, 0], [0] * 6,
    ]  # fmt: skip
    assert w.grad.numpy()[0, 0].tolist() == [[96, 106, 116], [156, 166, 176], [216, 226, 236]]


def test_padding_counts_as_zero_in_the_mean_and_never_wins_the_maximum() -> None:
    x = np.full((1, 1, 2, 2), -1.0)
    assert ops.avg_pool2d(x, 2, stride=2, padding=1)[0, 0].tolist() == [[-0.25, -0.25], [-0.25, -0.25]]
    assert ops.max_pool2d(x, 2, stride=2, padding=1)[0, 0].tolist() == [[-1.0, -1.0], [-1.0, -1.0]]


def test_layer_norm_divides_by_the_biased_variance_with_eps_inside_the_root() -> None:
    x = np.array([[1.0, 2.0, 6.0]])
    expected = (x - 3.0) / math.sqrt(14 / 3 + 0.5) * [1.0, 2.0, 3.0] + [0.0, 1.0, 0.0]
    np.testing.assert_allclose(ops.layer_norm(x, [1.0, 2.0, 3.0], [0.0, 1.0, 0.0], eps=0.5), expected)


# ------------------------------------------------------------------------------------------------------- what is refused


REFUSED: list[tuple[Any, str]] = [
    (lambda: ops.cross_entropy(np.zeros((2, 3)), [0, 3]), r"between 0 and 2.*got 0…3"),
    (lambda: ops.cross_entropy(np.zeros((2, 3)), [0, -1]), r"between 0 and 2.*got -1…0"),
    (lambda: ops.cross_entropy(np.zeros((2, 3)), [0.0, 1.0]), "classes must be whole numbers, got float64"),
    (lambda: ops.cross_entropy(np.zeros((2, 3)), [0, 1, 2]), r"one class for each row of logits: shape \(2,\), got \(3,\)"),
    (lambda: ops.conv2d(np.zeros((1, 2, 5, 5)), np.zeros((1, 3, 2, 2))), "as many channels"),
    (lambda: ops.conv2d(np.zeros((1, 1, 2, 2)), np.zeros((1, 1, 3, 3))), "does not fit into an image"),
    (lambda: ops.max_pool2d(np.zeros((4, 4)), 2, padding=2), "must be smaller than the kernel"),
    (lambda: ops.max_pool2d(np.zeros((4, 4)), 2, stride=0), "stride and kernel must be at least 1"),
    (lambda: ops.max(np.zeros((0, 3)), axis=0), "no largest or smallest"),
    (lambda: ops.gelu(1.0, approximate="erf"), "approximate must be 'none' or 'tanh', got 'erf'"),
    (lambda: ops.clip([1.0], [0.0], None), "a_min must be a number or None, got list; for arrays use maximum"),
    (lambda: ops.norm([1.0], ord="fro"), "norms of matrices are not supported"),
    (lambda: ops.layer_norm(np.zeros((2, 3)), np.zeros(2), np.zeros(3)), r"weight must have the sizes.*\(3,\), got \(2,\)"),
    (lambda: ops.concatenate([np.zeros((2, 3)), np.zeros((3, 3))], axis=1), r"arrays\[1\] has the shape \(3, 3\)"),
    (lambda: ops.concatenate([]), "at least one array"),
    (lambda: ops.split(np.zeros(5), 2), "does not divide into 2 equal parts; give indices instead"),
    (lambda: ops.einsum("ij,jk", np.zeros((2, 3))), "name 2 operands, got 1"),
    (lambda: ops.einsum("ij->i", np.zeros(3)), "does not name the 1 axes of operand 0"),
    (lambda: ops.einsum("ij,jk", np.zeros((2, 3)), np.zeros((2, 3))), "letter 'j' has size 3 and size 2"),
    (lambda: ops.einsum("i->j", np.zeros(3)), "each letter of the result must occur in an operand"),
    (lambda: ops.tensordot(np.zeros((2, 3)), np.zeros((2, 3)), 1), "axes of unequal size"),
    (lambda: ops.squeeze(np.zeros((2, 1)), 0), "axis 0 .* has size 2, not 1"),
    (lambda: ops.sum([1j]), "complex"),
    (lambda: np.linalg.norm(ad.tensor(np.eye(2), requires_grad=True), 2), "norms of matrices have no gradient here"),
    (lambda: np.linalg.det(ad.tensor(np.eye(2), requires_grad=True)), "np.det has no gradient here"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_a_wrong_call_is_refused_with_what_was_seen_and_expected(call: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError, IndexError), match=text):
        call()


def test_numpys_norm_of_a_vector_is_the_op() -> None:
    x = ad.tensor([3.0, 4.0], requires_grad=True)
    np.linalg.norm(x).backward()
    assert x.grad is not None and x.grad.numpy().tolist() == [0.6, 0.8]
    assert np.linalg.norm(ad.tensor(np.ones((2, 2)), requires_grad=True), axis=1, ord=1).numpy().tolist() == [2.0, 2.0]


def test_the_result_of_a_composed_function_has_the_users_name_in_a_graph() -> None:
    def f(x: Any) -> Any:
        table = ops.outer(x, x)
        return ops.trace(table)

    graph = ad.record(f, np.ones(3))
    assert graph.node("table").label == "mul"


def test_a_wrong_call_of_a_composed_function_names_the_function() -> None:
    with pytest.raises(ad.OpError, match="swapaxes: axis 2 is out of range for an array of 2 axes"):
        ops.swapaxes(np.zeros((2, 3)), 0, 2)
    with pytest.raises(ad.OpError, match="einsum: subscripts 'ij->i': 'ij' does not name the 1 axes"):
        ops.einsum("ij->i", np.zeros(3))
    with pytest.raises(ad.RegistrationError, match="an op has that name; choose another"):
        composed()(identity_named("exp"))


def identity_named(name: str) -> Any:
    def function(x: Any) -> Any:
        return x

    function.__name__ = name
    return function


def test_the_second_derivatives_of_a_power_are_symmetric_at_exponent_zero_and_one() -> None:
    def f(x: Any, y: Any) -> Any:
        return x**y

    for y in (0.0, 1.0, 2.0):
        mixed = ad.grad(ad.grad(f, 0), 1)(2.0, y)
        assert float(mixed) == pytest.approx(2.0 ** (y - 1) * (1 + y * np.log(2.0)))
        assert float(ad.grad(ad.grad(f, 1), 0)(2.0, y)) == pytest.approx(float(mixed))
    assert float(ad.grad(ad.grad(ad.grad(f, 0), 0), 1)(2.0, 1.0)) == pytest.approx(0.5)


@pytest.mark.parametrize("mode", ["mean", "maximum", "linear_ramp", "empty"])
def test_pad_refuses_the_modes_whose_derivative_it_does_not_know(mode: str) -> None:
    with pytest.raises(ad.OpError, match=f"pad knows the modes constant, edge, reflect, symmetric, wrap; got '{mode}'"):
        ops.pad(np.ones(3), (1, 1), mode=mode)


def test_operands_that_numpy_would_read_otherwise_are_refused() -> None:
    with pytest.raises(
        ad.OpError, match=r"take needs whole numbers as indices, got truth values; for a mask write x\[mask\]"
    ):
        ops.take(np.ones(3), np.array([True, True, False]))
    with pytest.raises(ValueError, match="letter 'i' names axes of sizes"):
        ops.einsum("ii->", np.ones((1, 3)))
    with pytest.raises(ad.OpError, match="masked array"):
        ops.sum(np.ma.array([1.0, 2.0], mask=[False, True]))
    with pytest.raises(TypeError, match="padding counts as −∞, which int64 does not have"):
        ops.max_pool2d(np.arange(16).reshape(4, 4), 2, 2, 1)
    with pytest.raises(IndexError, match="classes must lie between 0 and 2"):
        ops.one_hot([2, -1], 3)


def test_a_convolution_of_no_images_gives_none_and_gradients_of_zeros() -> None:
    x, w = np.zeros((0, 1, 4, 4)), np.ones((2, 1, 3, 3))
    assert ops.conv2d(x, w).shape == (0, 2, 2, 2)
    gx, gw = ad.grad(lambda x, w: ops.sum(ops.conv2d(x, w)), (0, 1))(x, w)
    assert gx.shape == x.shape and not gw.any() and gw.shape == w.shape
