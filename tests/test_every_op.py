"""Laws that every op of the registry obeys, on the samples that each op registers."""

from __future__ import annotations

import doctest
import inspect
import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.batching import batch_level, in_batch, out_of_batch
from autodiff_lab.operator_laws import dtype_rule_says_what_the_kernel_gives
from autodiff_lab.operators import Op
from autodiff_lab.ops.composed import composed_functions
from autodiff_lab.sample_grids import DTYPES, calls_of, dtypes_tried

OPS = [ad.registry[name] for name in ops.__all__ if name in ad.registry]


def flowing(op: Op, operands: tuple[Any, ...]) -> list[int]:
    """The places of the operands that a gradient can flow to."""
    if not op.is_differentiable:
        return []
    return [
        place
        for place, (name, operand) in enumerate(zip(op.operand_names(len(operands)), operands, strict=True))
        if name not in op.constant_inputs and isinstance(operand, np.ndarray) and operand.dtype.kind == "f"
    ]


CALLS = [
    pytest.param(one, operands, attributes, id=f"{one.name}-{number}", marks=[pytest.mark.slow] if number else [])
    for one in (*OPS, *composed_functions.values())
    for number, (operands, attributes) in enumerate(one.sample_calls())
]
EVERY_CALL = pytest.mark.parametrize(("op", "operands", "attributes"), CALLS)
EVERY_OP_CALL = pytest.mark.parametrize(
    ("op", "operands", "attributes"), [call for call in CALLS if isinstance(call.values[0], Op)]
)
EVERY_DIFFERENTIABLE_CALL = pytest.mark.parametrize(
    ("op", "operands", "attributes"), [call for call in CALLS if flowing(*call.values[:2])]
)


def applied(op: Op, operands: Any, attributes: dict[str, Any]) -> Any:
    """The result of a call; the parts of a list one behind the other."""
    result = op.apply(operands, attributes)
    return ops.concatenate(result, axis=None) if isinstance(result, list) else result


def in_float64(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(o.astype(np.float64) if isinstance(o, np.ndarray) and o.dtype.kind == "f" else o for o in operands)


def of_flowing(op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The op as a function of its flowing operands alone, and these."""
    places = flowing(op, operands)

    def f(*values: Any) -> Any:
        given = list(operands)
        for place, value in zip(places, values, strict=True):
            given[place] = value
        return applied(op, given, attributes)

    return f, [operands[place] for place in places]


def like(arrays: list[Any], seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.standard_normal(a.shape), a.dtype) for a in arrays]


def inner(a: list[Any], b: list[Any]) -> float:
    return float(sum(np.sum(np.asarray(x, np.float64) * np.asarray(y, np.float64)) for x, y in zip(a, b, strict=True)))


def test_every_op_has_samples_and_a_docstring() -> None:
    for one in (*OPS, *composed_functions.values()):
        assert one.sample_calls(), f"{one.name} has no samples"
        assert one.doc.split("\n")[0].endswith("."), f"the docstring of {one.name} does not start with a sentence"


def test_every_differentiable_input_has_both_gradient_rules() -> None:
    for op in OPS:
        expected = set(op.inputs) - op.constant_inputs if op.is_differentiable else set()
        assert set(op.vjp_rules) == expected, op
        assert set(op.jvp_rules) == expected, op


def test_samples_hold_0d_empty_non_contiguous_and_float32_inputs() -> None:
    arrays = [o for call in CALLS for o in call.values[1] if isinstance(o, np.ndarray)]
    assert any(a.ndim == 0 for a in arrays)
    assert any(a.size == 0 for a in arrays)
    assert any(not a.flags.c_contiguous for a in arrays)
    assert any(a.dtype == np.float32 for a in arrays)


@pytest.mark.parametrize("name", ops.__all__)
def test_the_example_in_every_docstring_runs(name: str) -> None:
    text = inspect.getdoc(getattr(ops, name)) or ""
    example = doctest.DocTestParser().get_doctest(text, {"ad": ad, "ops": ops, "np": np}, name, None, None)
    report: list[str] = []
    assert doctest.DocTestRunner().run(example, out=report.append).failed == 0, "".join(report)


@EVERY_OP_CALL
def test_shape_and_dtype_rule_say_what_the_kernel_gives(
    op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]
) -> None:
    result = applied(op, operands, attributes)
    shapes = [np.shape(o) for o in operands]
    dtypes = [o.dtype if isinstance(o, np.ndarray) else type(o)(0) for o in operands]
    full = {**{k: v for k, v in op.attributes.items() if not op.is_required(k)}, **attributes}
    assert isinstance(result, np.ndarray)
    assert op.infer_shape(shapes, full) == result.shape
    assert op.infer_dtype(dtypes, full) == result.dtype


NOT_AS_NUMPY = {"reciprocal": "of a whole number is a fraction here", "astype": "takes dtype only by place there"}


def numpys(name: str, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """What NumPy's function of that name gives."""
    function = getattr(np, name)
    if name == "einsum":
        return function(attributes["subscripts"], *operands)
    if name in ("concatenate", "stack", "vstack", "hstack"):
        return function(operands, **attributes)
    result = function(*operands, **attributes)
    return np.concatenate(result, axis=None) if isinstance(result, list) else result


EVERY_CALL_AS_IN_NUMPY = pytest.mark.parametrize(
    ("op", "operands", "attributes"),
    [call for call in CALLS if hasattr(np, call.values[0].name) and call.values[0].name not in NOT_AS_NUMPY],
)


@EVERY_CALL_AS_IN_NUMPY
def test_a_function_that_is_called_as_in_numpy_gives_numpys_numbers_and_dtype(
    op: Any, operands: tuple[Any, ...], attributes: dict[str, Any]
) -> None:
    result = applied(op, operands, attributes)
    expected = np.asarray(numpys(op.name, operands, attributes))
    assert result.dtype == expected.dtype
    rtol = 1e-6 if result.dtype.itemsize < 8 else 1e-14
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=1e-15, strict=True)


@EVERY_CALL_AS_IN_NUMPY
def test_numpys_function_on_tensors_is_the_op(op: Any, operands: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    tensors = tuple(ad.tensor(o) if isinstance(o, np.ndarray) else o for o in operands)
    result = numpys(op.name, tensors, attributes)
    assert type(result) is ad.Tensor
    assert np.array_equal(result.numpy(), applied(op, operands, attributes), equal_nan=True)


@EVERY_CALL
def test_operands_are_left_untouched(op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    before = [np.array(o) for o in operands]
    f, values = of_flowing(op, operands, attributes)
    applied(op, operands, attributes)
    if values:
        result, pull = ad.vjp(f, *values)
        cotangent = like([result], 1)[0]
        kept = cotangent.copy()
        pull(cotangent)
        assert np.array_equal(cotangent, kept), "the cotangent was changed"
    for operand, old in zip(operands, before, strict=True):
        assert np.array_equal(operand, old)


@EVERY_DIFFERENTIABLE_CALL
def test_jvp_agrees_with_central_differences(op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    f, values = of_flowing(op, in_float64(operands), attributes)
    tangents = like(values, 2)
    _, tangent = ad.jvp(f, tuple(values), tuple(tangents))
    step = 1e-6
    forward = f(*(v + step * t for v, t in zip(values, tangents, strict=True)))
    backward = f(*(v - step * t for v, t in zip(values, tangents, strict=True)))
    np.testing.assert_allclose(tangent, (forward - backward) / (2 * step), rtol=2e-7, atol=2e-7)


@EVERY_DIFFERENTIABLE_CALL
def test_vjp_is_the_adjoint_of_jvp(op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    f, values = of_flowing(op, in_float64(operands), attributes)
    tangents = like(values, 3)
    result, tangent = ad.jvp(f, tuple(values), tuple(tangents))
    cotangent = like([np.asarray(result)], 4)[0]
    gradients = ad.vjp(f, *values).pull(cotangent)
    assert inner([cotangent], [tangent]) == pytest.approx(inner(list(gradients), tangents), rel=1e-11, abs=1e-11)


@EVERY_DIFFERENTIABLE_CALL
def test_second_order_forward_over_reverse_agrees_with_differences_and_reverse_over_reverse(
    op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]
) -> None:
    f, values = of_flowing(op, in_float64(operands), attributes)
    weight = like([np.asarray(f(*values))], 5)[0]
    tangents = like(values, 6)
    places = tuple(range(len(values)))
    gradient = ad.grad(lambda *v: ops.sum(f(*v) * weight), places)
    _, over_reverse = ad.jvp(gradient, tuple(values), tuple(tangents))
    step = 1e-5
    ahead = gradient(*(v + step * t for v, t in zip(values, tangents, strict=True)))
    behind = gradient(*(v - step * t for v, t in zip(values, tangents, strict=True)))
    for got, plus, minus in zip(over_reverse, ahead, behind, strict=True):
        np.testing.assert_allclose(got, (plus - minus) / (2 * step), rtol=1e-6, atol=1e-6)

    def along(*v: Any) -> Any:
        parts = [ops.sum(g * t) for g, t in zip(gradient(*v), tangents, strict=True)]
        return sum(parts[1:], parts[0])

    for got, want in zip(ad.grad(along, places)(*values), over_reverse, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


@EVERY_DIFFERENTIABLE_CALL
def test_gradients_have_the_shape_and_dtype_of_their_operand(
    op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]
) -> None:
    f, values = of_flowing(op, operands, attributes)
    result, pull = ad.vjp(f, *values)
    for gradient, value in zip(pull(like([result], 7)[0]), values, strict=True):
        assert (gradient.shape, gradient.dtype) == (value.shape, value.dtype)
    _, tangent = ad.jvp(f, tuple(values), tuple(like(values, 8)))
    assert (tangent.shape, tangent.dtype) == (result.shape, result.dtype)


@EVERY_CALL
def test_tensors_arrays_and_a_recorded_graph_give_the_same_numbers(
    op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]
) -> None:
    expected = applied(op, operands, attributes)
    tensors = [ad.tensor(o) if isinstance(o, np.ndarray) else o for o in operands]
    result = applied(op, tensors, attributes)
    assert type(result) is ad.Tensor
    assert np.array_equal(result.numpy(), expected, equal_nan=True)
    arrays = [o for o in operands if isinstance(o, np.ndarray)]

    def f(*given: Any) -> Any:
        rest = iter(given)
        return applied(op, [next(rest) if isinstance(o, np.ndarray) else o for o in operands], attributes)

    graph = ad.record(f, *arrays)
    assert np.array_equal(graph(*arrays), expected, equal_nan=True)
    assert graph.nodes[graph.outputs[0]].shape == expected.shape
    assert graph.nodes[graph.outputs[0]].dtype == expected.dtype


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # whole numbers that are too large, logarithms of 0
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_dtype_rule_and_kernel_agree_on_small_whole_numbers_and_truth_values_too(op: Op) -> None:
    for call in dtypes_tried(calls_of(op), DTYPES):
        assert dtype_rule_says_what_the_kernel_gives(call) is None, str(call)


@EVERY_DIFFERENTIABLE_CALL
def test_eager_backward_equals_the_transformation_and_the_recorded_joint_graph(
    op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]
) -> None:
    f, values = of_flowing(op, operands, attributes)
    places = tuple(range(len(values)))

    def loss(*v: Any) -> Any:
        result = f(*v)
        return ops.sum(result * result)

    value, gradients = ad.value_and_grad(loss, places)(*values)
    leaves = [ad.tensor(v, requires_grad=True) for v in values]
    eager = loss(*leaves)
    eager.backward()
    graph = ad.record(ad.value_and_grad(loss, places), *values)
    recorded_value, recorded = graph(*values)
    assert np.array_equal(eager.numpy(), value) and np.array_equal(recorded_value, value)
    for leaf, gradient, from_graph in zip(leaves, gradients, recorded, strict=True):
        assert leaf.grad is not None
        assert np.array_equal(leaf.grad.numpy(), gradient)
        assert np.array_equal(from_graph, gradient)
    assert {node.phase for node in graph} == {"forward", "backward"}


def of_places(op: Op, operands: list[Any], attributes: dict[str, Any], places: tuple[int, ...]) -> Any:
    """The op as a function of the operands at some places; the others are what they are."""

    def f(*values: Any) -> Any:
        given = list(operands)
        for place, value in zip(places, values, strict=True):
            given[place] = value
        return applied(op, given, attributes)

    return f


def choices(op: Op, operands: tuple[Any, ...]) -> list[tuple[int, ...]]:
    """All flowing operands, and each alone."""
    places = flowing(op, operands)
    return sorted({tuple(places), *((place,) for place in places)})


@EVERY_DIFFERENTIABLE_CALL
def test_a_derivative_has_the_same_bits_whether_somebody_listens_or_not(
    op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]
) -> None:
    """While nobody does, generated code reads the call; else the general one does."""
    for places in choices(op, operands):
        f, values = of_places(op, list(operands), attributes, places), [operands[place] for place in places]

        def derivatives(f: Any = f, values: list[Any] = values) -> list[Any]:
            result, pull = ad.vjp(f, *values)
            along = ad.jvp(f, tuple(values), tuple(like(values, 3)))
            return [result, *pull(like([result], 4)[0]), *along]

        quiet = derivatives()
        with ad.listen(brief=True):
            heard = derivatives()
        for one, other in zip(quiet, heard, strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


@EVERY_DIFFERENTIABLE_CALL
def test_an_array_beside_a_tensor_may_be_changed_after_the_call(
    op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]
) -> None:
    for places in choices(op, operands):
        held = [o.copy(order="K") if isinstance(o, np.ndarray) else o for o in operands]
        result, pull = ad.vjp(of_places(op, held, attributes, places), *(operands[place] for place in places))
        cotangent = like([result], 5)[0]
        before = pull(cotangent)
        for operand in held:
            if isinstance(operand, np.ndarray):
                operand[...] = 0
        for one, other in zip(before, pull(cotangent), strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


@EVERY_DIFFERENTIABLE_CALL
def test_create_graph_gives_the_second_derivative_of_nested_grad(
    op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]
) -> None:
    f, values = of_flowing(op, in_float64(operands), attributes)
    places = tuple(range(len(values)))

    def loss(*v: Any) -> Any:
        result = f(*v)
        return ops.sum(result * result * result)

    leaves = [ad.tensor(v, requires_grad=True) for v in values]
    loss(*leaves).backward(create_graph=True)
    first = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    squares = [ops.sum(g * g) for g in first if g is not None]
    total = sum(squares[1:], squares[0])
    if total.requires_grad:  # not where the first derivative is 0 everywhere, as for floor
        total.backward()

    def norm(*v: Any) -> Any:
        parts = [ops.sum(g * g) for g in ad.grad(loss, places)(*v)]
        return sum(parts[1:], parts[0])

    for leaf, want in zip(leaves, ad.grad(norm, places)(*values), strict=True):
        got = np.zeros_like(want) if leaf.grad is None else leaf.grad.numpy()
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


@EVERY_DIFFERENTIABLE_CALL
def test_nothing_on_the_way_is_wider_than_single_precision(
    op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]
) -> None:
    if attributes.get("dtype") == "float64":
        return
    f, values = of_flowing(op, operands, attributes)
    singles = [np.asarray(value, np.float32) for value in values]
    places = tuple(range(len(values)))
    graph = ad.record(ad.value_and_grad(lambda *v: ops.sum(f(*v)), places), *singles)
    wide = [node for node in graph if node.kind == "op" and node.dtype == np.float64]
    assert not wide, graph.text()


KINKS: list[tuple[Any, tuple[float, ...], tuple[float, ...]]] = [
    (ops.abs, (0.0,), (0.0,)),
    (ops.sign, (0.0,), (0.0,)),
    (ops.floor, (2.0,), (0.0,)),
    (ops.round, (0.5,), (0.0,)),
    (ops.hypot, (0.0, 0.0), (0.0, 0.0)),
    (ops.minimum, (2.0, 2.0), (0.5, 0.5)),
    (lambda x: ops.clip(x, -1, 2.0), (2.0,), (1.0,)),
    (lambda x: ops.clip(x, -1, 2.0), (-1.0,), (1.0,)),
    (lambda x: ops.clip(x, -1, 2.0), (2.5,), (0.0,)),
    (ops.relu, (0.0,), (0.0,)),
    (ops.maximum, (2.0, 2.0), (0.5, 0.5)),
    (ops.power, (0.0, 3.0), (0.0, 0.0)),
    (ops.power, (0.0, 1.0), (1.0, 0.0)),
    (ops.power, (0.0, 0.0), (0.0, 0.0)),
]


@pytest.mark.parametrize(("op", "point", "gradient"), KINKS)
def test_kinks_follow_the_stated_convention_in_both_modes(op: Any, point: Any, gradient: Any) -> None:
    places = tuple(range(len(point)))
    assert tuple(map(float, ad.grad(op, places)(*point))) == gradient
    for place in places:
        tangents = tuple(float(other == place) for other in places)
        assert float(ad.jvp(op, point, tangents)[1]) == gradient[place]


def test_a_negative_base_has_a_base_derivative_and_no_exponent_derivative() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        base, exponent = ad.grad(ops.power, (0, 1))(-2.0, 3.0)
    assert float(base) == 12.0
    assert np.isnan(exponent)


@pytest.mark.parametrize("value", [1000.0, -1000.0, -40.0])
def test_sigmoid_and_tanh_stay_finite_and_quiet_far_from_zero(value: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(ops.sigmoid(value)) == pytest.approx(np.exp(min(value, 0.0)), rel=1e-15)
        assert float(ad.grad(ops.sigmoid)(value)) == pytest.approx(np.exp(-abs(value)), rel=1e-15)
        assert abs(float(ops.tanh(value))) == 1.0
        assert float(ad.grad(ops.tanh)(value)) == 0.0


def test_no_number_or_0d_array_beside_a_batch_widens_float32() -> None:
    for other in (2.0, np.float64(2.0), np.array(2.0), [1.0, 2.0, 3.0], np.ones((2, 3), np.float32)):
        level = batch_level()
        for op in (ops.mul, lambda x, y: ops.mul(y, x), ops.add, lambda x, y: ops.where(True, x, y)):
            result = op(in_batch(np.ones((4, 3), np.float32), level), other)
            expected = op(np.ones(3, np.float32), other) if isinstance(other, (list, np.ndarray)) else None
            assert result.dtype == (np.float64 if isinstance(other, list) else np.float32), (op, other)
            if expected is not None and np.ndim(other):
                assert result.shape == expected.shape
                np.testing.assert_array_equal(out_of_batch(result, level, 4), np.stack([expected] * 4))


def test_no_number_or_0d_array_widens_float32_or_float16() -> None:
    scalars = [2.0, 3, np.float64(0.5), np.array(0.25), np.int64(2), True]
    binary = [
        ops.add, ops.sub, ops.mul, ops.div, ops.maximum, ops.minimum, ops.power, ops.arctan2, ops.hypot, ops.logaddexp,
        lambda x, y: ops.clip(x, y, 5) if isinstance(x, ad.Tensor) else ops.clip(y, 0, x),
    ]  # fmt: skip
    for dtype, op, scalar in itertools.product(["float16", "float32"], binary, scalars):
        x = ad.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
        for result in (op(x, scalar), op(scalar, x)):
            assert result.dtype == dtype, (op, scalar)
            result.sum().backward()
            assert x.grad is not None and x.grad.dtype == dtype


@pytest.mark.parametrize("op", [op for op in OPS if len(op.inputs) == 1 and not op.is_variadic], ids=lambda op: op.name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of 0.5 outside of a domain, for both alike
def test_a_numpy_scalar_is_read_as_the_0d_array_that_it_stands_for(op: Op) -> None:
    attributes = next((given for _, given in op.sample_calls()), {})

    def seen(operand: Any) -> Any:
        try:
            result = op.apply([operand], attributes)
        except (TypeError, ValueError, IndexError) as error:
            return str(error)
        return type(result), result.dtype, result.shape, result.tobytes()

    for dtype in (np.float16, np.float32, np.float64, np.int8):
        for number in (0.5, 0.0, 2.0):
            assert seen(dtype(number)) == seen(np.array(number, dtype))


@pytest.mark.parametrize(("op", "operands", "attributes"), [call for call in CALLS if isinstance(call.values[0], Op)])
@pytest.mark.filterwarnings(
    "ignore:invalid value"
)  # a scaled operand may leave arccosh's domain, for loop and batch alike
def test_a_batch_gives_what_a_loop_over_it_gives(op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    places = [i for i, o in enumerate(operands) if isinstance(o, np.ndarray) and o.dtype.kind == "f"]
    for chosen in {tuple(places), tuple(places[:1]), tuple(places[-1:])} - {()}:
        factors = np.array([1.0, 0.5, 0.75])
        members = [[o * o.dtype.type(f) if i in chosen else o for i, o in enumerate(operands)] for f in factors]
        level = batch_level()
        stacked = [
            in_batch(np.stack([member[i] for member in members]), level) if i in chosen else o
            for i, o in enumerate(operands)
        ]
        result = op.apply(stacked, attributes)
        expected = [op.apply(member, attributes) for member in members]
        assert type(result) is ad.Tensor and result.shape == expected[0].shape and result.dtype == expected[0].dtype
        np.testing.assert_allclose(
            out_of_batch(result, level, 3),
            np.stack(expected),
            rtol=1e-6 if "float32" in str(result.dtype) else 1e-12,
            atol=1e-12,
        )
