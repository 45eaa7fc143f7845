"""compile: eager's numbers, one plan for each kind of arguments, and derivatives that stay right."""

from __future__ import annotations

from collections import namedtuple
from enum import IntEnum
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops, schedule
from autodiff_lab.argument_readers import reader_of
from autodiff_lab.faults import last_path_wins
from autodiff_lab.layers import Linear
from autodiff_lab.optimizers import Adam
from autodiff_lab.trees import flatten

X, Y = np.arange(6.0).reshape(2, 3), np.arange(3.0)


def same(got: Any, want: Any) -> bool:
    (a, one), (b, other) = flatten(got), flatten(want)
    return one == other and all(
        type(p) is type(q)
        and np.array_equal(np.asarray(p), np.asarray(q))
        and np.asarray(p).dtype == np.asarray(q).dtype
        for p, q in zip(a, b, strict=True)
    )


Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    ("f", "arguments", "options"),
    [
        (lambda x: ops.exp(x), (X,), {}),
        (lambda x, y: {"sum": ops.add(x, y), "rest": [x * y, (y,)]}, (X, Y), {}),
        (lambda tree: ops.add(tree["a"], tree["b"][0]) * 2.0, ({"a": X, "b": [Y, "text"]},), {}),
        (lambda x, *, scale, by: ops.mul(x, scale) + by, (X,), {"scale": np.float64(2.0), "by": Y}),
        (lambda x, n: ops.power(x, n) if n > 1 else ops.exp(x), (X, 3), {}),
        (lambda x, axis=None: ops.sum(x, axis=axis), (X,), {"axis": 1}),
        (lambda x: Pair(ops.exp(x), ops.tanh(x)), (X,), {}),
        (lambda x: x * 0.5, (X.astype(np.float32),), {}),
        (lambda x, number: ops.mul(x, number), (X.astype(np.float32), 0.5), {}),
        (lambda pair: ops.add(pair.left, pair.right), (Pair(X, Y),), {}),
        (lambda x: (ops.exp(x), 2.5), (X,), {}),
    ],
    ids=["array", "nested results", "nested arguments", "keywords", "static number", "axis", "named tuple", "float32",
         "weak number", "named tuple in", "a number comes back"],
)  # fmt: skip
def test_results_are_those_of_the_function(f: Any, arguments: Any, options: Any) -> None:
    compiled = ad.compile(f)
    for _ in range(2):
        assert same(compiled(*arguments, **options), f(*arguments, **options))
    assert len(compiled.plans) == 1


def test_the_function_runs_once_for_each_kind_of_arguments() -> None:
    runs = []

    def f(x: Any, n: int = 1) -> Any:
        runs.append(n)
        return x * n

    compiled = ad.compile(f)
    for x in (X, X + 1.0, Y, X.astype(np.float32), X):
        compiled(x)
    compiled(X, 2), compiled(X, n=2), compiled(X, 2)
    assert len(runs) == len(compiled.plans) == 5


def test_tensors_come_back_where_tensors_were_given() -> None:
    compiled = ad.compile(lambda x, y: (x * 2.0, y * 2.0))
    one, other = compiled(ad.tensor(X), Y)
    assert type(one) is ad.Tensor and type(other) is np.ndarray
    assert np.array_equal(one.numpy(), X * 2.0)


def test_where_a_derivative_watches_the_function_itself_runs() -> None:
    compiled = ad.compile(lambda x: ops.sum(ops.tanh(x) * x))
    eager = ad.grad(lambda x: ops.sum(ops.tanh(x) * x))(X)
    x = ad.tensor(X, requires_grad=True)
    compiled(x).backward()
    assert x.grad is not None and np.array_equal(x.grad.numpy(), eager)
    assert np.array_equal(ad.grad(compiled)(X), eager)
    assert np.allclose(ad.jvp(compiled, (X,), (X,))[1], np.sum(eager * X))
    assert len(ad.record(compiled, X)) > 3
    assert compiled.plans == ()
    with ad.no_grad():
        assert type(compiled(x)) is ad.Tensor and len(compiled.plans) == 1


def test_an_op_that_is_defined_anew_is_planned_anew() -> None:
    with ad.registry.restored():

        def define(factor: float) -> Any:
            @ad.op(elementwise=True)
            def scaled_for_compile(xp: Any, x: Any) -> Any:
                return x * factor

            return scaled_for_compile

        define(2.0)
        compiled = ad.compile(lambda x: ops.scaled_for_compile(x))
        assert np.array_equal(compiled(X), X * 2.0)
        define(3.0)
        assert np.array_equal(compiled(X), X * 3.0)


def test_a_branch_on_a_value_is_an_error_that_names_the_line() -> None:
    def f(x: Any) -> Any:
        if ops.sum(x) > 0:
            return x
        return -x

    with pytest.raises(TypeError, match=r"ops\.where") as caught:
        ad.compile(f)(X)
    assert any("if ops.sum(x) > 0" in note for note in caught.value.__notes__)


def test_a_parameter_that_is_no_argument_is_refused() -> None:
    w = ad.tensor(Y, requires_grad=True)
    with pytest.raises(ValueError, match="not among its arguments"):
        ad.compile(lambda x: x * w)(X)


def test_a_parameter_inside_of_no_grad_is_refused_as_well() -> None:
    layer = Linear(3, 2, seed=0)
    with ad.no_grad(), pytest.raises(ValueError, match=r"with_parameters"):
        ad.compile(layer)(X)
    frozen = ad.compile(lambda p, x: layer.with_parameters(p)(x))
    assert same(frozen(layer.values(), X), layer(X).numpy())


def test_a_compiled_function_may_be_compiled_again_with_other_options() -> None:
    inner = ad.compile(lambda x: ops.exp(x))
    outer = ad.compile(inner, fuse=False)
    assert np.array_equal(outer(X), np.exp(X))
    assert len(outer.plans) == 1 and outer.plans[0].fusion is None and inner.plans == ()


def test_a_layers_attributes_are_not_those_of_the_compiled_function() -> None:
    class Odd:
        _f, _last = "mine", "too"

        def __init__(self) -> None:
            self._known = self._lock = None

        def __call__(self, x: Any) -> Any:
            return ops.exp(x)

    assert np.array_equal(ad.compile(Odd())(X), np.exp(X))


@pytest.mark.parametrize(
    "number", [np.float64(2.0), np.array(2.0), np.int64(2), 2.0], ids=["f8", "0-d", "i8", "Python"]
)
def test_what_meets_a_tensor_is_read_as_it_is_without_compile(number: Any) -> None:
    def f(x: Any) -> Any:
        return x * number, ops.maximum(x, number)

    x = ad.tensor(X, dtype="float32")
    assert same(ad.compile(f)(x), f(x))


def test_a_tensor_that_is_no_argument_makes_tensors() -> None:
    def f(x: Any) -> Any:
        return x * constant, x * 2.0

    constant = ad.tensor(Y)
    compiled = ad.compile(f)
    assert same(compiled(X), f(X)) and same(compiled(X), f(X))


def test_a_number_of_some_other_kind_is_planned_once() -> None:
    class Kind(IntEnum):
        FIRST, SECOND = 1, 2

    compiled = ad.compile(lambda x, kind: x * int(kind))
    for kind in (Kind.FIRST, Kind.SECOND, 1) * 2:
        assert np.array_equal(compiled(X, kind), X * int(kind))
    assert len(compiled.plans) == 3


def test_in_anomaly_mode_every_op_is_looked_at() -> None:
    slope = ad.compile(ad.grad(lambda x: ops.sum(ops.log(x))))
    slope(Y + 1.0)
    with ad.anomaly_mode(), np.errstate(all="ignore"), pytest.raises(ad.AnomalyError, match="log"):
        slope(Y)


def test_a_plan_from_before_is_not_used_inside_of_a_fault_nor_one_from_inside_after_it() -> None:
    def f(x: Any) -> Any:
        return ops.sum(x * x)

    before, inside = ad.compile(ad.grad(f)), ad.compile(ad.grad(f))
    assert np.array_equal(before(Y), 2.0 * Y)
    with last_path_wins():
        assert np.array_equal(before(Y), Y) and np.array_equal(inside(Y), Y)
    assert np.array_equal(before(Y), 2.0 * Y) and np.array_equal(inside(Y), 2.0 * Y)


def test_other_kinds_of_arrays_are_read_as_an_op_reads_them() -> None:
    compiled = ad.compile(lambda x: ops.mul(x, x))
    assert type(compiled(np.matrix(X))) is np.ndarray and np.array_equal(compiled(np.matrix(X)), X * X)
    with pytest.raises(TypeError, match="masked"):
        compiled(np.ma.masked_array(Y, Y > 1))


def test_arrays_on_a_device_stay_there_also_on_two_streams() -> None:
    def f(x: Any) -> Any:
        return ops.sum(ops.tanh(x @ x) * ops.exp(x @ x.T))

    x = ad.tensor(np.linspace(-1, 1, 16).reshape(4, 4), device="sim:0")
    value, gradient = ad.compile(ad.value_and_grad(f))(x)
    want, wanted = ad.value_and_grad(f)(x)
    assert gradient.device == "sim:0"
    assert np.array_equal(value.numpy(), want.numpy()) and np.allclose(gradient.numpy(), wanted.numpy(), rtol=1e-14)
    plan = ad.plan(ad.record(f, x), workers=2)
    outputs, timeline = schedule.run(plan, [x], workers=2)
    assert np.array_equal(outputs.get(), want.numpy()) and timeline.faults() == []


def test_an_argument_that_cannot_be_compared_is_refused() -> None:
    with pytest.raises(TypeError, match="compare"):
        ad.compile(lambda x, names: x * len(names))(X, {"a", "b"})


@pytest.mark.parametrize("f", [3, None, "f"])
def test_what_is_no_function_is_refused(f: Any) -> None:
    with pytest.raises(TypeError, match="expected a function"):
        ad.compile(f)


def test_many_plans_for_a_changing_number_are_noticed_once(capsys: pytest.CaptureFixture[str]) -> None:
    compiled = ad.compile(lambda x, rate: x * rate)
    for rate in range(80):
        compiled(X, float(rate))
    assert capsys.readouterr().err.count("because a Python number changed") == 1
    assert len(compiled.plans) == 64


def transformer(p: Any, tokens: Any, classes: Any) -> Any:
    """A pre-norm Transformer of two layers, and its loss."""
    h = p["embedding"][tokens]
    for layer in p["layers"]:
        a = ops.layer_norm(h, layer["g1"], layer["c1"])
        q, k, v = ((a @ layer[name]).reshape(2, 5, 2, 4).transpose(0, 2, 1, 3) for name in ("wq", "wk", "wv"))
        mixed = ops.softmax((q @ k.transpose(0, 1, 3, 2)) * 0.5) @ v
        h = h + mixed.transpose(0, 2, 1, 3).reshape(2, 5, 8) @ layer["wo"]
        u = ops.layer_norm(h, layer["g2"], layer["c2"]) @ layer["w1"]
        h = h + ops.gelu(u, approximate="tanh") @ layer["w2"]
    return ops.cross_entropy(h @ p["head"], classes)


def transformer_parameters() -> Any:
    rng = np.random.default_rng(1)

    def matrix(*shape: int) -> Any:
        return (0.3 * rng.standard_normal(shape)).astype(np.float32)

    def layer() -> dict[str, Any]:
        square = {name: matrix(8, 8) for name in ("wq", "wk", "wv", "wo")}
        norms = {name: np.ones(8, np.float32) for name in ("g1", "g2")} | {n: matrix(8) for n in ("c1", "c2")}
        return square | norms | {"w1": matrix(8, 16), "w2": matrix(16, 8)}

    return {"embedding": matrix(11, 8), "layers": [layer(), layer()], "head": matrix(8, 11)}


@pytest.mark.parametrize("workers", [1, 2])
def test_training_a_transformer_with_adam_is_the_same_compiled(workers: int) -> None:
    rule, rng = Adam(learning_rate=0.01), np.random.default_rng(2)
    tokens, classes = rng.integers(0, 11, (2, 5)), rng.integers(0, 11, (2, 5))

    def step(p: Any, state: Any, tokens: Any, classes: Any) -> Any:
        value, gradients = ad.value_and_grad(transformer)(p, tokens, classes)
        return value, *rule.update(p, gradients, state)

    compiled = ad.compile(step, workers=workers)
    p = transformer_parameters()
    q, ours, theirs = p, rule.initial_state(p), rule.initial_state(p)
    for _ in range(4):
        value, p, ours = compiled(p, ours, tokens, classes)
        want, q, theirs = step(q, theirs, tokens, classes)
        assert np.allclose(value, want, rtol=1e-5)
    for got, wanted in zip(flatten((p, ours))[0], flatten((q, theirs))[0], strict=True):
        assert got.dtype == wanted.dtype and np.allclose(got, wanted, rtol=1e-4, atol=1e-5)
    assert len(compiled.plans) == 1


@pytest.mark.parametrize(
    "others",
    [
        ([X, Y], {"a": X[:1]}, 2.0),
        ((X, Y), {"a": X}, 2.0),
        ([X, Y], {"b": X}, 2.0),
        ([X, Y], {"a": X}, 2),
        ([X, Y], {"a": X}, 3.0),
        ([X, Y.astype(np.float32)], {"a": X}, 2.0),
        ([X, Y, X], {"a": X}, 2.0),
        ([X, ad.tensor(Y)], {"a": X}, 2.0),
        ([X, Y], {"a": X}),
    ],
    ids=["shape", "kind", "key", "type of a number", "number", "dtype", "length", "a Tensor", "fewer"],
)
def test_a_reader_knows_arguments_that_are_of_another_kind(others: Any) -> None:
    read = reader_of(([X, Y], {"a": X}, 2.0))
    assert read is not None and read(others) is None
    assert [id(leaf) for leaf in read(([X, Y], {"a": X}, 2.0)) or ()] == [id(X), id(Y), id(X)]


def test_zeros_of_both_signs_are_two_numbers() -> None:
    compiled = ad.compile(lambda x, zero: x * zero)
    for zero in (0.0, -0.0, 0.0):
        assert np.array_equal(np.signbit(compiled(Y, zero)), np.signbit(Y * zero))
