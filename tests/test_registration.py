"""The life of a registration: two spellings of one registry, the chain that is not complete, redefinition, and what is told."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import events, ops

X = np.array([0.1, -0.7, 2.0], np.float32)


# ---------------------------------------------------------------------------------------------- the lecture's own op, twice


def my_custom_op_by_decorator() -> Any:
    @ad.op(types="x: float32, *, alpha: float -> y: float32")
    def MyCustomOp(xp: Any, x: Any, *, alpha: float = 1.0) -> Any:
        """alpha · tanh(x)."""
        return xp.tanh(x) * xp.asarray(alpha, x.dtype)

    @MyCustomOp.shape_rule
    def my_custom_op_shape(x: Any) -> Any:
        return x

    MyCustomOp.vjp(my_custom_op_vjp)
    MyCustomOp.jvp(my_custom_op_jvp)
    return MyCustomOp


def my_custom_op_by_chain() -> Any:
    def shape(context: ad.ShapeContext) -> Any:
        return context.input_shape(0)

    def new_kernel(context: ad.KernelContext) -> Any:
        factor = context.xp.asarray(context.attributes["alpha"], context.input_dtype("x"))
        return lambda x: context.xp.tanh(x) * factor

    (
        ad.register_op("MyCustomOp").input("x: float32").output("y: float32").attr("alpha: float = 1.0")
        .doc("alpha · tanh(x).").shape_fn(shape).kernel_creator(new_kernel)
        .vjp(my_custom_op_vjp).jvp(my_custom_op_jvp, "x")
    )  # fmt: skip
    return ops.MyCustomOp  # type: ignore[attr-defined]


def my_custom_op_vjp(g: Any, out: Any, *, alpha: float) -> Any:
    return g * (alpha - out * out / alpha)


def my_custom_op_jvp(dx: Any, out: Any, *, alpha: float) -> Any:
    return dx * (alpha - out * out / alpha)


SPELLINGS = pytest.mark.parametrize("spelling", [my_custom_op_by_decorator, my_custom_op_by_chain])


@SPELLINGS
def test_both_spellings_give_an_op_that_works_in_every_reading(spelling: Any) -> None:
    op = spelling()
    assert ops.MyCustomOp is op and "MyCustomOp" in dir(ops)  # type: ignore[attr-defined]
    assert str(inspect.signature(op)) == "(x, alpha=1.0)" and op.__doc__ == "alpha · tanh(x)."
    assert op.__module__ == __name__
    value, slope = 2 * np.tanh(X), 2 * (1 - np.tanh(X) ** 2)
    bend = -4 * np.tanh(X) * (1 - np.tanh(X) ** 2)

    def f(x: Any) -> Any:
        return op(x, alpha=2.0)

    def slopes(x: Any) -> Any:
        return ad.grad(lambda v: ops.sum(f(v)))(x)

    np.testing.assert_allclose(op(X, 2.0), value, rtol=1e-6)
    np.testing.assert_allclose(slopes(X), slope, rtol=1e-5)
    np.testing.assert_allclose(ad.jvp(f, (X,), (np.ones_like(X),))[1], slope, rtol=1e-5)
    np.testing.assert_allclose(ad.grad(lambda v: ops.sum(slopes(v)))(X), bend, rtol=1e-4)
    np.testing.assert_allclose(ad.jvp(slopes, (X,), (np.ones_like(X),))[1], bend, rtol=1e-4)
    t = ad.tensor(X, requires_grad=True)
    f(t).sum().backward()
    assert t.grad is not None
    np.testing.assert_allclose(t.grad.numpy(), slope, rtol=1e-5)
    graph = ad.record(ad.value_and_grad(lambda v: ops.sum(f(v))), X)
    np.testing.assert_allclose(graph(X)[1], slope, rtol=1e-5)
    assert ad.Graph.from_json(graph.to_json()) == graph
    assert bool(ad.gradcheck(f, (X,), order=2))


@SPELLINGS
def test_a_number_counts_as_an_array_of_the_declared_dtype(spelling: Any) -> None:
    result = spelling()(0.5)
    assert result.dtype == np.float32 and result.shape == ()


@SPELLINGS
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda f: f(X.astype(float)),
            r"\(x: \(3,\) float64, alpha=1.0\): x is declared float32 and has dtype float64",
        ),
        (lambda f: f(ad.tensor(X.astype(float), requires_grad=True)), r"convert it, as in x.astype\('float32'\)"),
        (lambda f: ad.record(f, X.astype(float)), "x is declared float32 and has dtype float64"),
        (lambda f: ad.jvp(f, (X.astype(float),), (X.astype(float),)), "x is declared float32 and has dtype float64"),
        (lambda f: f(X, alpha="2"), "attribute alpha is declared float and is '2', a str"),
        (lambda f: f(X, alpha=True), "attribute alpha is declared float and is True, a bool"),
        (lambda f: ad.record(lambda x: f(x, alpha=None), X), "attribute alpha is declared float and is None"),
    ],
)
def test_a_call_with_another_type_is_refused_with_op_argument_and_both_types(
    spelling: Any, call: Any, message: str
) -> None:
    with pytest.raises(ad.OpError, match=f"MyCustomOp.*{message}"):
        call(spelling())


# ------------------------------------------------------------------------------------------------ the chain


def test_an_op_whose_chain_has_not_ended_says_what_is_missing() -> None:
    chain = ad.register_op("Half").input("x: T")
    with pytest.raises(
        AttributeError, match=r"op Half is not registered yet, it has no output, no shape function .*no ker"
    ):
        _ = ops.Half  # type: ignore[attr-defined]
    with pytest.raises(KeyError, match="it has no output"):
        _ = ad.registry["Half"]
    with pytest.raises(ad.RegistrationError, match="no output"):
        chain(1.0)
    assert "Half" not in ad.registry and "Half" not in dir(ops) and "no kernel" in repr(chain)
    chain.output("y: T").shape_fn(lambda context: context.input_shape("x"))
    with pytest.raises(
        AttributeError, match=r"it has no kernel \(.kernel_creator or .kernel\); go on with its register_op"
    ):
        _ = ops.Half  # type: ignore[attr-defined]
    chain.kernel(lambda xp, x: x / 2)
    assert float(chain(1.0)) == float(ops.Half(1.0)) == 0.5  # type: ignore[attr-defined]
    assert "complete" in repr(chain)


def test_a_chain_that_begins_anew_hides_the_old_op_until_it_is_complete(capsys: pytest.CaptureFixture[str]) -> None:
    my_custom_op_by_chain()
    chain = ad.register_op("MyCustomOp").input("x")
    with pytest.raises(AttributeError, match="op MyCustomOp is not registered yet"):
        _ = ops.MyCustomOp  # type: ignore[attr-defined]
    assert capsys.readouterr().err == ""
    chain.output("y").elementwise().kernel(lambda xp, x: -x)
    assert float(ops.MyCustomOp(1.0)) == -1.0  # type: ignore[attr-defined]
    assert capsys.readouterr().err.count("\n") == 1


def test_a_kernel_is_created_once_for_each_device_dtypes_and_attributes() -> None:
    created: list[Any] = []

    def create(context: ad.KernelContext) -> Any:
        created.append((context.device, context.dtypes, dict(context.attributes)))
        return lambda x, y: x * y * context.attributes["alpha"]

    op = (
        ad.register_op("Product").input("x: T").input("y: T").output("z: T").attr("alpha: float = 1.0")
        .shape_fn(lambda context: context.input_shape("y")).kernel_creator(create)
    )  # fmt: skip
    x = np.ones(2)
    for alpha in (1.0, 2.0, 1.0, 0.0, -0.0):
        op(x, x, alpha=alpha)
    op(x, 3.0)
    op(X, X)
    op(np.ones((5, 5)), np.ones((5, 5)))
    float64, float32 = np.dtype(np.float64), np.dtype(np.float32)
    assert created == [
        ("cpu", (float64, float64), {"alpha": 1.0}), ("cpu", (float64, float64), {"alpha": 2.0}),
        ("cpu", (float64, float64), {"alpha": 0.0}), ("cpu", (float64, float64), {"alpha": -0.0}),
        ("cpu", (float32, float32), {"alpha": 1.0}),
    ]  # fmt: skip
    assert [str(one[2]["alpha"]) for one in created[2:4]] == ["0.0", "-0.0"]
    told = ad.dispatch_told(ops.Product, [x, x], {"alpha": 2.0})  # type: ignore[attr-defined]
    assert isinstance(told[-1], events.KernelCreated) and told[-1].cached and len(created) == 5
    told = ad.dispatch_told(ops.Product, [x, x], {"alpha": 7.0})  # type: ignore[attr-defined]
    assert isinstance(told[-1], events.KernelCreated) and not told[-1].cached and len(created) == 6


def test_an_attribute_that_changes_with_every_call_does_not_fill_the_memory() -> None:
    from autodiff_lab.registration import KEPT_KERNELS

    op = my_custom_op_by_chain()
    for step in range(KEPT_KERNELS + 10):
        op(X, alpha=float(step))
    (creator,) = op.op.kernels.values()
    assert len(creator.kept) == KEPT_KERNELS


def test_an_op_with_a_list_of_inputs_can_be_spelled_as_a_chain() -> None:
    op = (
        ad.register_op("Total").input("arrays: list(T)").output("y: T")
        .shape_fn(lambda context: context.input_shape(0)).kernel(lambda xp, *arrays: sum(arrays))
        .vjp(lambda g: g)
    )  # fmt: skip
    x = np.ones(2)
    assert op([x, x, x]).tolist() == [3.0, 3.0]
    assert [g.tolist() for g in ad.grad(lambda x, y: ops.sum(op([x, y])), (0, 1))(x, x)] == [[1.0, 1.0]] * 2
    with pytest.raises(ad.OpError, match=r"arrays\[0\] and arrays\[1\] are declared T, one dtype for both"):
        op([x, X])


# ----------------------------------------------------------------------------------------------- what types mean


@pytest.mark.parametrize(
    ("types", "dtypes", "result"),
    [
        ("x: T, y: T -> z: T", ("float32", "float32"), "float32"),
        ("x: T, y: T -> z: T", ("int64", "int64"), "int64"),
        ("x: T, y: T -> z: bool", ("float64", "float64"), "bool"),
        ("x: T, y: T -> z: T", ("float32", "float64"), "x and y are declared T, one dtype for both"),
        ("x: T, y: S -> z: S", ("float64", "float32"), "float32"),
        ("x: float, y: int -> z: float", ("float32", "int64"), "float32"),
        ("x: float, y: int -> z: float", ("float32", "float32"), "y is declared int and has dtype float32"),
        ("x: bool, y: float64 -> z: float64", ("bool", "float64"), "float64"),
        ("x: bool, y: float64 -> z: float64", ("int64", "float64"), "x is declared bool and has dtype int64"),
        ("x: float, y: float -> z: float", ("float32", "float64"), "float64"),
        ("x, y -> z", ("int64", "float32"), "float64"),
    ],
)
def test_types_allow_a_call_or_refuse_it_and_give_the_dtype_rule(types: str, dtypes: Any, result: str) -> None:
    @ad.op(types=types)
    def typed(xp: Any, x: Any, y: Any) -> Any:
        return xp.zeros(x.shape, xp.bool_ if "z: bool" in types else xp.result_type(x if "S" not in types else y, y))

    typed.shape_rule(lambda x, y: x)
    arrays = [np.ones(2, dtype) for dtype in dtypes]
    if " " in result:
        for call in (typed, lambda *arrays: ad.record(typed, *arrays)):
            with pytest.raises(ad.OpError, match=result):
                call(*arrays)
    else:
        assert ad.record(typed, *arrays).nodes[-1].dtype == np.dtype(result)


def test_numbers_take_the_dtype_of_the_arrays_that_share_their_type() -> None:
    @ad.op(types="x: T, y: T -> z: T", elementwise=True)
    def plus(xp: Any, x: Any, y: Any) -> Any:
        return x + y

    plus.vjp("x")(lambda g: g)
    assert plus(X, 1.0).dtype == plus(2, X).dtype == np.float32
    assert plus(ad.tensor(X, requires_grad=True), 1.0).dtype == np.float32
    assert plus(1, 2).dtype == np.int64 and plus(1, 2.5) == 3.5
    assert ad.record(lambda x: plus(x, 1.0), X).nodes[-1].dtype == np.float32
    with pytest.raises(ad.OpError, match=r"y is declared T, here int64, and is 2.5; give a number of that kind"):
        plus(np.ones(2, int), 2.5)


def test_no_gradient_flows_to_an_input_whose_type_holds_whole_numbers() -> None:
    @ad.op(types="x: T, count: int -> y: T")
    def times(xp: Any, x: Any, count: Any) -> Any:
        return x * count

    times.shape_rule(lambda x, count: x)
    times.vjp("x")(lambda g, count: g * count)
    assert ad.grad(lambda x: times(x, 3))(2.0) == 3.0
    assert times.op.constant_inputs == {"count"}


# ---------------------------------------------------------------------------------- running the defining cell again


def run_cell(text: str, module: str = "__main__", namespace: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run a cell as a notebook does: its own file name, the module's names."""
    names = {} if namespace is None else namespace
    names |= {"ad": ad, "ops": ops, "np": np, "__name__": module}
    exec(compile(text, f"<cell of {module}>", "exec"), names)
    return names


SCALE = '''
@ad.op(elementwise=True)
def scale(xp, x):
    """{factor} x."""
    return x * {factor}

@scale.vjp
def scale_vjp(g):
    return g * {factor}
'''


def test_running_the_defining_cell_again_replaces_the_op_with_one_notice(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_cell(SCALE.format(factor=2))
    x = ad.tensor([1.0], requires_grad=True)
    old = names["scale"](x)
    first = capsys.readouterr()
    run_cell(SCALE.format(factor=3), namespace=names)
    second = capsys.readouterr()
    y = ad.tensor([1.0], requires_grad=True)
    new, by_name = names["scale"](y), ops.scale(ad.tensor([1.0]))  # type: ignore[attr-defined]
    old.backward(np.ones(1))
    new.backward(np.ones(1))
    assert x.grad is not None and y.grad is not None
    results = [old.numpy(), x.grad.numpy(), new.numpy(), y.grad.numpy(), by_name.numpy()]
    assert [float(r[0]) for r in results] == [2, 2, 3, 3, 3]
    assert ops.scale.__doc__ == "3 x."  # type: ignore[attr-defined]
    assert first.err == first.out == second.out == "" and second.err.count("\n") == 1
    assert second.err.startswith(
        "op scale is defined anew (<cell of __main__>:2)" if False else "op scale is defined anew"
    )
    run_cell(SCALE.format(factor=3), namespace=names)
    assert capsys.readouterr().err.count("op scale is defined anew") == 1


def test_another_module_that_takes_the_name_is_refused_with_both_places() -> None:
    run_cell(SCALE.format(factor=2), module="mine")
    with pytest.raises(
        ad.RegistrationError, match=r"taken by module mine \(line 2\); choose another name in theirs \(line 2\)"
    ):
        run_cell(SCALE.format(factor=3), module="theirs")
    assert float(ops.scale(1.0)) == 2.0  # type: ignore[attr-defined]


def test_a_graph_from_before_says_that_it_holds_the_old_op_and_still_runs() -> None:
    from autodiff_widgets.facts import graph_facts

    run_cell(SCALE.format(factor=2))
    graph = ad.record(lambda x: ops.scale(x) + 1.0, 1.0)  # type: ignore[attr-defined]
    assert "replaced" not in str(graph) and graph.nodes[1].op is not None and graph.nodes[1].op.is_current
    run_cell(SCALE.format(factor=3))
    again = ad.record(lambda x: ops.scale(x) + 1.0, 1.0)  # type: ignore[attr-defined]
    assert str(graph).splitlines()[2].endswith("(replaced since)") and str(graph).count("replaced") == 1
    assert "replaced" not in str(again) and graph != again
    assert float(graph(1.0)) == 3.0 and float(again(1.0)) == 4.0
    rows = dict(next(rows for key, rows in graph_facts(graph).items() if dict(rows).get("op") == "scale(x)"))
    assert rows["definition"] == "an older scale, replaced since this graph was recorded"
    with pytest.raises(ValueError, match=r"node 1 \(scale\): the op was replaced since"):
        graph.to_json()


def test_an_op_may_be_defined_anew_with_other_outputs_and_inputs() -> None:
    names = run_cell(
        "@ad.op(types='x: T -> low: T, high: T')\ndef halves(xp, x): return x[:1], x[1:]\nhalves.shape_rule(lambda x: (1,))"
    )
    graph = ad.record(lambda x: names["halves"](x)[0], np.ones(2))
    run_cell("@ad.op(elementwise=True)\ndef halves(xp, x): return x / 2")
    assert [name for name in ad.registry if name.startswith("halves")] == ["halves"]
    assert "(replaced since)" in str(graph) and float(ops.halves(1.0)) == 0.5  # type: ignore[attr-defined]


# -------------------------------------------------------------------------------------------------- no gradient given


def test_backward_through_an_op_without_a_gradient_raises_and_names_op_and_call() -> None:
    @ad.op(elementwise=True)
    def mystery(xp: Any, x: Any) -> Any:
        return x * 5

    x = ad.tensor([1.0], requires_grad=True)
    y = ops.sum(mystery(x) + x)
    with pytest.raises(
        NotImplementedError, match=r"op mystery has no vjp .*the call of mystery that gave shape \(1,\)"
    ) as e:
        y.backward()
    assert '@mystery.vjp("x")' in str(e.value) and x.grad is None
    with ad.anomaly_mode():
        z = ops.sum(mystery(x) + x)
        with pytest.raises(
            NotImplementedError, match=r"gave shape \(1,\) in test_registration.py:\d+ in test_back.*z = ops.sum"
        ):
            z.backward()
    with pytest.raises(NotImplementedError, match=r"in test_registration.py:\d+ in f: return ops.sum\(mystery\(x\)\)"):

        def f(x: Any) -> Any:
            return ops.sum(mystery(x))

        ad.record(ad.grad(f), np.ones(1))
    with pytest.raises(NotImplementedError, match="op mystery has no jvp rule"):
        ad.jvp(mystery, (1.0,), (1.0,))

    mystery.vjp(lambda g: g * 5)
    ops.sum(mystery(x) + x).backward()
    assert x.grad is not None and x.grad.item() == 6.0


@pytest.mark.parametrize("spelling", ["decorator", "chain"])
def test_only_an_op_that_says_that_it_is_not_differentiable_cuts_the_graph(spelling: str) -> None:
    if spelling == "decorator":

        @ad.op(elementwise=True, differentiable=False)
        def stop(xp: Any, x: Any) -> Any:
            return x * 5
    else:
        chain = ad.register_op("stop").input("x").output("y").elementwise().not_differentiable()
        chain.kernel(lambda xp, x: x * 5)
    z = ad.tensor([1.0], requires_grad=True)
    ops.sum(ops.stop(z) + z).backward()  # type: ignore[attr-defined]
    assert z.grad is not None and z.grad.numpy().tolist() == [1.0]


# ----------------------------------------------------------------------------------------------- told step by step


def kinds(told: list[events.Event]) -> list[str]:
    return [getattr(event, "kind", type(event).__name__) for event in told]


@SPELLINGS
def test_registering_tells_every_step_and_registering_again_tells_the_same(spelling: Any) -> None:
    with ad.listen() as heard:
        op = spelling()
    replayed = ad.registration_told(op)
    order = ["SchemaRegistered", "dtype rule", "shape rule", "KernelRegistered", "vjp rule", "jvp rule"]
    assert sorted(kinds(heard)) == sorted(order)
    assert kinds(replayed) == [*order, "BindingGenerated"]
    assert set(heard) < set(replayed)
    schema, binding = replayed[0], replayed[-1]
    assert isinstance(schema, events.SchemaRegistered) and isinstance(binding, events.BindingGenerated)
    assert schema[:4] == ("MyCustomOp", ("x: float32",), ("y: float32",), ("alpha: float = 1.0",))
    assert binding.signature == "MyCustomOp(x, alpha=1.0)" and binding.saved == ("out",)
    vjp = next(event for event in replayed if isinstance(event, events.RuleRegistered) and event.kind == "vjp rule")
    assert (vjp.argument, vjp.rule, vjp.reads, vjp.attributes) == ("x", "my_custom_op_vjp", ("g", "out"), ("alpha",))
    assert vjp.source is not None and vjp.source.text.startswith("def my_custom_op_vjp")
    assert ad.registry["MyCustomOp"] is op.op and op.op.is_current


def test_every_op_of_the_registry_can_tell_its_registration() -> None:
    before = dict(ad.registry)
    for name, op in before.items():
        told = ad.registration_told(op)
        assert kinds(told)[0] == "SchemaRegistered" and kinds(told)[-1] == "BindingGenerated"
        gradients = [event for event in told if isinstance(event, events.RuleRegistered) and event.argument]
        assert {e.argument for e in gradients if e.kind == "vjp rule"} == set(op.vjp_rules), name
        assert sum(isinstance(event, events.KernelRegistered) for event in told) == len(op.kernels)
    assert dict(ad.registry) == before


def test_a_replacement_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    my_custom_op_by_chain()
    with ad.listen() as heard:
        my_custom_op_by_decorator()
    (replaced,) = (event for event in heard if isinstance(event, events.OpReplaced))
    assert replaced.op == "MyCustomOp" and "register_op" in replaced.old.text and "ad.op" in replaced.new.text


def test_the_first_call_tells_a_listener_no_more_than_the_second() -> None:
    op, x = my_custom_op_by_chain(), ad.tensor(X, requires_grad=True)
    with ad.listen() as first:
        op(x)
    with ad.listen() as second:
        op(x)
    assert kinds(first) == kinds(second) == ["OpCalled"]


# ------------------------------------------------------------------------------------ names, and rules that are replaced


@pytest.mark.parametrize(
    "name",
    [
        "kernel",
        "level",
        "result",
        "op",
        "new",
        "type",
        "Tensor",
        "x_record",
        "x_rule",
        "default",
        "len",
        "range",
        "x_jvp",
        "x_tangents",
        "tangent",
        "moving",
    ],
)
def test_an_input_may_bear_a_name_that_the_generated_code_uses(name: str) -> None:
    space: dict[str, Any] = {"ad": ad, "__name__": __name__}
    exec(
        f"@ad.op(elementwise=True)\ndef times(xp, x, {name}): return x * {name}\n"
        f"times.vjp('x')(lambda g, {name}: g * {name})\ntimes.vjp('{name}')(lambda g, x: g * x)\n"
        f"times.jvp('x')(lambda dx, {name}: dx * {name})\ntimes.jvp('{name}')(lambda d{name}, x: x * d{name})",
        space,
    )
    x, y = ad.tensor(2.0, requires_grad=True), ad.tensor(5.0, requires_grad=True)
    space["times"](x, y).backward()
    assert (float(x.grad), float(y.grad)) == (5.0, 2.0) and float(space["times"](2.0, **{name: 3.0})) == 6.0
    assert [float(v) for v in ad.jvp(space["times"], (2.0, 5.0), (1.0, 10.0))] == [10.0, 25.0]


def test_the_inputs_of_a_variadic_op_may_be_named_like_the_beginning_of_another_value() -> None:
    @ad.op
    def total(xp: Any, *o: Any, tuple: float = 2.0) -> Any:
        return sum(o) * tuple

    total.shape_rule(lambda *o: o[0])

    @total.vjp("o")
    def total_vjp(g: Any, out: Any, o: Any, *, tuple: float) -> Any:
        return g * tuple + 0.0 * (out - sum(o))

    assert [float(g) for g in ad.grad(lambda x, y: total([x, y]), argnums=(0, 1))(1.0, 3.0)] == [2.0, 2.0]


def squares() -> Any:
    @ad.op(elementwise=True)
    def squares(xp: Any, x: Any) -> Any:
        return x * x

    squares.vjp(lambda g, x: g * 2.0 * x)
    return squares


def test_a_call_that_was_recorded_before_its_rule_was_replaced_never_mixes_up_what_it_kept() -> None:
    op, x = squares(), ad.tensor(3.0, requires_grad=True)
    early = op(x)
    op.vjp(lambda g, out: g * 2.0 * ops.sqrt(out))  # reads what the early call did not keep
    z = ad.tensor(5.0, requires_grad=True)
    op(z).backward()
    assert z.grad is not None and float(z.grad) == 10.0
    with pytest.raises(
        ValueError, match=r"op squares: this call was recorded before .* kept no out, .*; compute it again"
    ):
        early.backward()


@pytest.mark.parametrize("calls_between", [0, 1])
def test_a_call_that_was_recorded_before_its_rule_was_replaced_is_swept_by_the_new_one(calls_between: int) -> None:
    op, x = squares(), ad.tensor(3.0, requires_grad=True)
    early = op(x)
    op.vjp(lambda g, x: g * -7.0 * x)
    for _ in range(calls_between):
        op(x)
    early.backward()
    assert x.grad is not None and float(x.grad) == -21.0


def test_a_kernel_is_kept_for_the_numbers_of_an_array_in_an_attribute_and_not_for_how_they_are_shown() -> None:
    def new_kernel(context: ad.KernelContext) -> Any:
        (factor,) = context.attributes["by"]
        return lambda x: x * factor

    ad.register_op("Scaled").input("x: T").output("y: T").attr("by: tuple").elementwise().kernel_creator(new_kernel)
    for long in (3, 5000):  # the text of an array has 8 digits, and of many numbers the first and last three
        zeros, one = np.zeros(long), np.zeros(long)
        one[long // 2] = 1e-12
        assert [ops.Scaled(np.ones(long), by=(by,)).sum() for by in (zeros, one)] == [0.0, 1e-12]  # type: ignore[attr-defined]


def test_a_kernel_creator_may_be_anything_that_can_be_called() -> None:
    def new_kernel(context: ad.KernelContext, factor: float) -> Any:
        return lambda x: x * factor

    ad.register_op("Tripled").input("x: T").output("y: T").elementwise().kernel_creator(partial(new_kernel, factor=3.0))
    assert float(ops.Tripled(2.0)) == 6.0  # type: ignore[attr-defined]


def test_a_gradient_or_tangent_of_another_shape_than_it_belongs_to_is_refused() -> None:
    @ad.op
    def doubled(xp: Any, x: Any) -> Any:
        return 2.0 * x

    doubled.shape_rule(lambda x: x)
    doubled.vjp(lambda g: 2.0 * g[:1])
    doubled.jvp(lambda dx: 2.0 * dx[:1])
    with pytest.raises(ValueError, match=r"has shape \(1,\), but its shape is \(2,\): .* ad.find_faulty_op names it"):
        ad.grad(lambda x: doubled(x).sum())(np.ones(2))
    with pytest.raises(
        ad.OpError, match=r"doubled\(.*its jvp rules give a tangent of shape \(1,\) for a result of shape \(2,\)"
    ):
        ad.jvp(doubled, (np.ones(2),), (np.ones(2),))
