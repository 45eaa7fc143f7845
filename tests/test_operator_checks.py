"""opcheck: each mistake is found by the test that a reader expects, and no op of the registry is blamed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.op_calls import OpCall
from autodiff_lab.operator_checks import LAWS

OPS = [name for name in ops.__all__ if name in ad.registry]
FAST = ("add", "concatenate", "matmul", "max", "reshape", "softmax", "where")
NAMES = [law.name for law in LAWS]


def op_of(kernel: Callable[..., Any], vjp: Any = None, jvp: Any = None, **options: Any) -> Any:
    """An op of one input named x, or of the inputs that ``vjp`` has rules for; elementwise unless it gets a shape rule."""
    shape, dtype = options.pop("shape", None), options.pop("dtype", None)
    made = ad.op(elementwise=shape is None, **options)(kernel)
    if shape is not None:
        made.shape_rule(shape)
    if dtype is not None:
        made.dtype_rule(dtype)
    for kind, rules in (("vjp", vjp), ("jvp", jvp)):
        for name, rule in (rules if isinstance(rules, dict) else {"x": rules} if rules else {}).items():
            getattr(made, kind)(name)(rule)
    return made


VALUES = np.array([[0.5, -1.5, 2.0], [1.0, 0.25, -0.75]])
STORE: dict[str, Any] = {"count": 0}


def op_cube(xp: Any, x: Any) -> Any:
    return x * x * x


def op_times(xp: Any, x: Any, y: Any) -> Any:
    return x * y


def op_turn(xp: Any, x: Any) -> Any:
    return x.T.copy()


def op_flat(xp: Any, x: Any) -> Any:
    return x.reshape(-1).copy()


def op_rows(xp: Any, x: Any) -> Any:
    return x.sum(axis=-1)


def op_scale_rows(xp: Any, x: Any, y: Any) -> Any:
    return x * y


def op_mean(xp: Any, x: Any) -> Any:
    return xp.asarray(x.mean())


def op_wide(xp: Any, x: Any) -> Any:
    return xp.asarray(x, "float64") * 2


def op_in_place(xp: Any, x: Any) -> Any:
    x += 1
    return x.copy()


def op_random(xp: Any, x: Any) -> Any:
    return x + np.random.default_rng().standard_normal(x.shape)


def op_kept(xp: Any, x: Any) -> Any:
    STORE["doubled"] = 2 * np.asarray(x)
    return x * x


def op_pair(xp: Any, x: Any) -> Any:
    return x, x


def op_strict(xp: Any, x: Any) -> Any:
    if x.ndim != 2:
        raise ValueError("a matrix is needed")
    return x * 2


def op_sine(xp: Any, x: Any) -> Any:
    return np.sin(x)


def op_rounded(xp: Any, x: Any) -> Any:
    return xp.floor(x)


def op_on_host(xp: Any, x: Any) -> Any:
    return np.full(x.shape, 2.0, x.dtype)


def same_shape(x: Any) -> Any:
    return x


def turned(x: Any) -> Any:
    return x[::-1]


def flat(x: Any) -> Any:
    return (int(np.prod(x)),)


def flat_no_matter_what(x: Any) -> Any:
    if len(x) != 2:
        raise ValueError("a matrix is needed")
    return flat(x)


def without_last(x: Any) -> Any:
    return x[:-1]


def lost_dimension(x: Any) -> Any:
    return x[1:]


def cube_vjp(g: Any, x: Any) -> Any:
    return g * 3.0 * x * x


def cube_jvp(dx: Any, x: Any) -> Any:
    return dx * 3.0 * x * x


def lost_sign(g: Any, x: Any) -> Any:
    return -g * 3.0 * x * x


def lost_factor(g: Any, x: Any) -> Any:
    return g * x * x


def ignored(g: Any, x: Any) -> Any:
    return 3.0 * x * x


def lost_sign_forward(dx: Any, x: Any) -> Any:
    return -dx * 3.0 * x * x


def hidden(g: Any, x: Any) -> Any:
    return g * 3.0 * x.detach() * x if isinstance(x, ad.Tensor) else g * 3.0 * x * x


def reads_numbers(g: Any, x: Any) -> Any:
    return g * 3.0 * np.asarray(x.numpy() if isinstance(x, ad.Tensor) else x) ** 2


def branches(g: Any, x: Any) -> Any:
    return g * 3.0 * x * x if float(ops.sum(x * x)) >= 0.0 else g


def kept_value(g: Any) -> Any:
    return g * ops.reshape(STORE["doubled"], g.shape)


def mutates_cotangent(g: Any, x: Any) -> Any:
    if isinstance(g, np.ndarray):
        g *= 3.0 * x * x
        return g
    return g * 3.0 * x * x


def not_turned_back(g: Any) -> Any:
    return g


def reshaped_back(g: Any, x_shape: Any) -> Any:
    return ops.reshape(g, x_shape)


def mean_vjp(g: Any, x_shape: Any) -> Any:
    return ops.broadcast_to(g, x_shape)


def widened(g: Any) -> Any:
    return ops.astype(g, "float64") * 2.0


def rows_shape(x: Any, y: Any) -> Any:
    return np.broadcast_shapes(x, y)


def times_vjp_x(g: Any, y: Any) -> Any:
    return g * y


def times_vjp_y(g: Any, x: Any) -> Any:
    return g * x


def first_dtype(x: Any, y: Any) -> Any:
    return np.result_type(x)


def number_shape(x: Any) -> Any:
    return ()


def made_by_numpy(g: Any, x: Any) -> Any:
    return g * np.full(x.shape, 3.0) * x * x


def asks_for_a_number(dx: Any, x: Any) -> Any:
    return dx * (3.0 + ops.sum(x * 0.0).item()) * x * x


def never_negative(dx: Any, x: Any) -> Any:
    return dx * 3.0 * x * x if float(ops.sum(x * x)) >= 0.0 else dx


def zeros_of_numpy(dx: Any, x_shape: Any, x_dtype: Any) -> Any:
    return np.zeros(x_shape, x_dtype)


def zero(g: Any) -> Any:
    return ops.zeros_like(g)


ROW = (VALUES, VALUES[0])
SQUARE = VALUES[:, :2]

# what is wrong -> how the op is made, its samples, the test that finds it, and what that test says
WRONG: dict[str, tuple[Callable[[], Any], list[Any], str, str]] = {
    "lost sign": (lambda: op_of(op_cube, lost_sign), [VALUES], "VJP rule", "lost_sign .*−1 times"),
    "lost factor": (lambda: op_of(op_cube, lost_factor), [VALUES], "VJP rule", "lost_factor .*1/3 times what it should be"),
    "cotangent ignored": (lambda: op_of(op_cube, ignored), [VALUES], "VJP rule", "ignored .*multiply by its cotangent"),
    "factor of a mean": (lambda: op_of(op_mean, mean_vjp, shape=number_shape), [VALUES], "VJP rule", "6 is the number of"),
    "forward sign": (lambda: op_of(op_cube, cube_vjp, lost_sign_forward), [VALUES], "JVP rule", "lost_sign_forward .*−1"),
    "not transposed back": (
        lambda: op_of(op_turn, not_turned_back, shape=turned), [VALUES], "gradient shapes", "not_turned_back .*transpose it",
    ),
    "reshaped, not transposed": (
        lambda: op_of(op_turn, reshaped_back, shape=turned), [SQUARE], "VJP rule", "reshaped_back .*right, but transposed",
    ),
    "broadcast not summed": (
        lambda: op_of(op_scale_rows, {"x": times_vjp_x, "y": times_vjp_y}, shape=rows_shape), [ROW],
        "gradient shapes", r"times_vjp_y .*\(2, 3\) for y, whose shape is \(3,\); it must be summed",
    ),
    "float64 for float32": (
        lambda: op_of(op_times, {"x": lambda g: g, "y": widened}), [(VALUES.astype("float32"),) * 2],
        "gradient shapes", "widened gives a cotangent of dtype float64 for y, whose dtype is float32",
    ),
    "hidden value": (lambda: op_of(op_cube, hidden), [VALUES], "second derivatives", "detach"),
    "reads numbers": (lambda: op_of(op_cube, reads_numbers), [VALUES], "rules need no numbers", "while its graph is recorded"),
    "branches on a value": (lambda: op_of(op_cube, branches), [VALUES], "rules need no numbers", "ops.where"),
    "keeps a value of the kernel": (lambda: op_of(op_kept, kept_value), [VALUES], "rules need no numbers", "kept_value"),
    "cotangent changed": (
        lambda: op_of(op_cube, mutates_cotangent), [VALUES], "arguments unchanged", "mutates_cotangent changes its argument g",
    ),
    "argument changed": (
        lambda: op_of(op_in_place, shape=same_shape), [VALUES], "arguments unchanged", "op_in_place changes its argument x",
    ),
    "random": (lambda: op_of(op_random), [VALUES], "determinism", "seed"),
    "two arrays": (lambda: op_of(op_pair), [VALUES], "schema", "op_pair gives a tuple"),
    "no rule for y": (lambda: op_of(op_times, {"x": times_vjp_x}), [ROW], "schema", 'op_times.vjp\\("y"\\)'),
    "lost dimension": (
        lambda: op_of(op_rows, shape=lost_dimension), [VALUES], "shape rule", r"lost_dimension says \(\d,\) for \(\d, \d\)",
    ),
    "rule accepts more": (
        lambda: op_of(op_strict, shape=same_shape), [VALUES], "shape rule", "same_shape says .*kernel refuses",
    ),
    "kernel accepts more": (
        lambda: op_of(op_flat, shape=flat_no_matter_what), [VALUES], "shape rule", "refuses .*but the kernel gives shape",
    ),
    "dtype of the first": (
        lambda: op_of(op_times, dtype=first_dtype), [ROW], "dtype rule", "first_dtype says .*the kernel gives float",
    ),
    "a kernel of NumPy": (
        lambda: op_of(op_sine), [VALUES], "kernel on a device",
        r"op_sine does not run on sim:0, a stand-in for a GPU: .*np.sin got an array on sim:0.* In a kernel use xp.sin",
    ),
    "a kernel that makes its array with NumPy": (
        lambda: op_of(op_on_host, differentiable=False), [VALUES.astype("float32")], "kernel on a device",
        "op_on_host does not run on sim:0.* its kernel gave a ndarray, which lies on the host",
    ),
    "a rule that makes its array with NumPy": (
        lambda: op_of(op_cube, made_by_numpy), [VALUES], "rules on a device",
        r"made_by_numpy on sim:0, a stand-in for a GPU, stops with .* lie on sim:0 and on cpu.*as in ops.ones_like\(g\)",
    ),
    "a rule that asks for a number": (
        lambda: op_of(op_cube, cube_vjp, asks_for_a_number), [VALUES], "rules on a device",
        r"asks_for_a_number on sim:0.* brings numbers to the host by item\(\)",
    ),
    "a rule that branches on a device": (
        lambda: op_of(op_cube, cube_vjp, never_negative), [VALUES], "rules on a device",
        r"never_negative on sim:0.* float\(\) of an array on sim:0.* chooses with ops.where",
    ),
    "a rule whose result lies elsewhere": (
        lambda: op_of(op_rounded, zero, zeros_of_numpy), [VALUES], "rules on a device", "zeros_of_numpy on sim:0.* on cpu",
    ),
    "always double": (lambda: op_of(op_wide), [VALUES], "dtype rule", "kernel gives float64"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_found_by_the_test_that_a_reader_expects(name: str) -> None:
    make, samples, test, said = WRONG[name]
    before = [np.array(part) for sample in samples for part in (sample if isinstance(sample, tuple) else (sample,))]
    report = ad.opcheck(make(), samples)
    assert not report.ok
    assert report.failed[0].name == test, str(report)
    assert re.search(said, report.test(test).reason), report.test(test).reason
    after = [part for sample in samples for part in (sample if isinstance(sample, tuple) else (sample,))]
    assert all(map(np.array_equal, before, after))


@pytest.mark.parametrize("name", WRONG)
def test_the_smallest_failing_call_can_be_typed_and_fails_by_itself(name: str) -> None:
    make, samples, test, _ = WRONG[name]
    op = make().op
    found = ad.opcheck(op, samples).test(test)

    def typed(*operands: Any, **attributes: Any) -> OpCall:
        return OpCall(op, operands, attributes)

    call = eval(found.example, {"np": np, "ops": type("Ops", (), {op.name: staticmethod(typed)})})
    judge = next(law.judge for law in LAWS if law.name == test)
    try:
        complaint = judge(call)
    except (TypeError, ValueError) as error:
        complaint = str(error)
    assert complaint, found.example


@pytest.mark.parametrize("name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in OPS])
def test_no_op_of_the_registry_is_blamed(name: str) -> None:
    report = ad.opcheck(getattr(ops, name))
    assert report.ok, str(report)
    assert [test.name for test in report.tests] == NAMES


# ------------------------------------------------------------------------------- results that share memory with inputs


def identity(xp: Any, x: Any) -> Any:
    return x


def tail(xp: Any, x: Any) -> Any:
    return x[1:]


def tail_shape(x: Any) -> Any:
    if not x:
        raise ValueError("a number has no tail")
    return (max(x[0] - 1, 0), *x[1:])


def add_one_in_place(xp: Any, x: Any) -> Any:
    x += 1
    return x


def copied(xp: Any, x: Any) -> Any:
    return x.copy()


def one_buffer(xp: Any, x: Any) -> Any:
    STORE.setdefault(x.shape, np.zeros(x.shape))[...] = x
    return STORE[x.shape]


@pytest.mark.parametrize(
    ("kernel", "shape", "test", "said"),
    [
        (
            identity,
            same_shape,
            "memory",
            r"output 0 shares memory with argument x: give a copy \(x.copy\(\)\), or declare it",
        ),
        (tail, tail_shape, "memory", r'output 0 shares memory with argument x: .*@op\(views="x"\)'),
        (add_one_in_place, same_shape, "arguments unchanged", "add_one_in_place changes its argument x in place"),
        (one_buffer, same_shape, "memory", "output 0 is the same array in every call"),
    ],
)
def test_shared_memory_is_reported_with_argument_and_output(kernel: Any, shape: Any, test: str, said: str) -> None:
    sample = np.arange(3.0)
    report = ad.opcheck(op_of(kernel, shape=shape), [sample])
    assert not report.ok
    assert re.search(said, report.test(test).reason), str(report)
    assert sample.tolist() == [0.0, 1.0, 2.0]


def test_a_copy_passes_and_so_does_sharing_that_is_declared() -> None:
    sample = np.arange(3.0)
    assert ad.opcheck(op_of(copied, shape=same_shape), [sample]).ok
    assert ad.opcheck(op_of(tail, shape=tail_shape, views="x"), [sample]).ok
    assert sample.tolist() == [0.0, 1.0, 2.0]


def twice_the_same(xp: Any, x: Any) -> Any:
    doubled = x * 2
    return doubled, doubled


def twice(xp: Any, x: Any) -> Any:
    return x * 2, x * 2


def test_one_array_that_is_returned_twice_is_reported_with_both_outputs() -> None:
    sample = np.arange(3.0)
    for kernel, is_right in ((twice_the_same, False), (twice, True)):
        op = ad.op(types="x: T -> first: T, second: T", elementwise=True)(kernel)
        op.vjp("x")(lambda g: 2.0 * g)
        report = ad.opcheck(op, [sample])
        assert report.ok == is_right, str(report)
        assert report.test("first: VJP rule").verdict == report.test("second: VJP rule").verdict == "passed"
    assert sample.tolist() == [0.0, 1.0, 2.0]
    report = ad.opcheck(ad.op(types="x: T -> first: T, second: T", elementwise=True)(twice_the_same), [sample])
    (found,) = report.failed
    assert found.name == "outputs apart" and found.example == "ops.twice_the_same(np.array([0.0, 1.0, 2.0]))"
    assert "output 0 (first) and output 1 (second) share memory" in found.reason


def test_an_optional_input_is_checked_there_and_left_out() -> None:
    @ad.op(types="x: T, y: T? -> z: T", elementwise=True)
    def shifted(xp: Any, x: Any, y: Any) -> Any:
        return x * 2.0 if y is None else x * 2.0 + y

    @shifted.vjp("x")
    def shifted_vjp_x(g: Any) -> Any:
        return 2.0 * g

    @shifted.vjp("y")
    def shifted_vjp_y(g: Any) -> Any:
        return -g

    report = ad.opcheck(shifted, [(VALUES, VALUES), (VALUES, None)])
    assert [test.name for test in report.failed] == ["with_y: VJP rule"]
    assert report.test("without_y: VJP rule").verdict == "passed"


def test_an_op_that_takes_single_precision_alone_is_checked_in_it() -> None:
    @ad.op(types="x: float32 -> y: float32", elementwise=True)
    def narrow(xp: Any, x: Any) -> Any:
        return x * x

    narrow.vjp(lambda g, x: 2 * g * x)
    narrow.jvp(lambda dx, x: 2 * dx * x)
    report = ad.opcheck(narrow)
    assert report.ok and report.test("JVP rule").verdict == "passed", str(report)
    assert ".astype('float32')" in ad.opcheck(narrow, [VALUES]).failed[0].reason


def test_a_view_of_what_is_no_input_is_refused_when_registered() -> None:
    with pytest.raises(ad.RegistrationError, match="views of \\['z'\\]"):
        ad.op(views="z")(identity)


# ------------------------------------------------------------------------------------------------------------- kernels


def test_a_kernel_that_disagrees_with_the_reference_is_named() -> None:
    op = op_of(op_cube, cube_vjp, cube_jvp)

    @op.kernel("cpu", dtype="float32")
    def cube_in_single(xp: Any, x: Any) -> Any:
        return xp.abs(x * x * x)

    report = ad.opcheck(op, [VALUES, VALUES.astype("float32")])
    assert [test.name for test in report.failed] == ["kernels agree"]
    assert "the kernel cube_in_single for cpu and float32 gives" in report.failed[0].reason
    assert "of the reference kernel op_cube" in report.failed[0].reason
    report = ad.opcheck(op, [VALUES])
    assert report.ok and report.test("kernels agree").verdict == "not applicable", "it has no say where it is not asked"


def test_a_kernel_for_another_library_stops_and_is_named() -> None:
    op = op_of(op_cube)

    @op.kernel("cpu", dtype="float32")
    def cube_elsewhere(xp: Any, x: Any) -> Any:
        return xp.elementwise(x)

    report = ad.opcheck(op, [VALUES.astype("float32")])
    assert not report.ok and "has no attribute 'elementwise'" in report.failed[0].reason


# ------------------------------------------------------------------------------------------------------ inputs and verdicts


def test_an_op_without_samples_is_tried_on_a_few_shapes() -> None:
    def halved_log(xp: Any, x: Any) -> Any:
        return xp.log(x) / 2

    report = ad.opcheck(op_of(halved_log, lambda g, x: g / (2.0 * x)))
    assert report.ok and report.test("VJP rule").verdict == "passed", str(report)


def test_an_op_that_cannot_be_tried_says_how_samples_are_given() -> None:
    @ad.op
    def op_needs_size(xp: Any, x: Any, *, size: Any) -> Any:
        return x[:size]

    report = ad.opcheck(op_needs_size)
    assert not report.ok and not report.failed
    assert {test.verdict for test in report.tests} == {"not applicable"}
    assert "@op_needs_size.samples" in report.tests[0].reason and "nothing could be tested" in str(report)


def test_what_cannot_be_tested_has_a_verdict_of_its_own() -> None:
    report = ad.opcheck(op_of(op_cube), [VALUES])
    assert report.ok
    assert report.test("VJP rule").reason == "no gradient: the op has no vjp rule; add one with @op_cube.vjp"
    assert (
        "differentiable=False"
        in ad.opcheck(ops.sign if not ops.sign.op.is_differentiable else ops.less).tests[-1].reason
    )


def test_only_the_vjp_rule_is_needed() -> None:
    report = ad.opcheck(op_of(op_cube, cube_vjp), [VALUES])
    assert report.ok
    assert report.test("JVP rule").verdict == report.test("adjoint").verdict == "not applicable"


def test_kinks_raise_no_alarm() -> None:
    assert ad.opcheck(ops.relu, [np.array([0.0, 1.0, -1.0])]).ok
    assert ad.opcheck(ops.abs, [np.zeros(2)]).ok
    assert ad.opcheck(ops.maximum, [(np.ones(2), np.ones(2))]).ok


def test_a_rule_that_forgets_an_attribute_is_found_without_samples() -> None:
    @ad.op(elementwise=True)
    def bounded(xp: Any, x: Any, *, limit: float = 1.0) -> Any:
        return limit * xp.tanh(x / limit)

    bounded.vjp(lambda g, out, *, limit: g * (1.0 - out * out / limit))  # right where limit is 1
    found = ad.opcheck(bounded).test("VJP rule")
    assert found.verdict == "failed" and found.reason.startswith("the VJP rule for x is wrong: at x it gives")
    assert found.example == "ops.bounded(np.array(0.2), limit=1.5)"
    bounded.vjp(lambda g, out, *, limit: g * (1.0 - out * out / (limit * limit)))
    assert ad.opcheck(bounded).ok


def test_advice_and_example_of_a_family_name_what_a_user_writes() -> None:
    @ad.op(types="x: T, y: T? -> low: T, high: T", elementwise=True)
    def around(xp: Any, x: Any, y: Any) -> Any:
        return (x - 1.0, x + 1.0) if y is None else (x - y, x + y)

    around.low.vjp("x")(lambda g: -g)  # type: ignore[attr-defined]
    report = ad.opcheck(around, [(VALUES, None), (VALUES, VALUES)])
    assert "@around.high.vjp" in report.test("high.without_y: VJP rule").reason
    assert 'add @around.low.vjp("y")' in report.test("low.with_y: schema").reason
    assert report.test("low.without_y: VJP rule").example == "ops.around(x=np.array(0.5))"


def test_what_failed_stands_first_and_what_says_nothing_last_once_for_each_reason() -> None:
    lines = str(ad.opcheck(op_of(op_cube, lost_sign), [VALUES])).splitlines()
    marks = [line.strip()[0] for line in lines[1:] if not line.startswith("      ")]
    assert marks == sorted(marks, key="✗✓–".index) and (marks.count("✗"), marks.count("–")) == (1, 3)
    assert "  – second derivatives: says nothing before VJP rule passes" in lines
    assert any(line.startswith("  – JVP rule, adjoint: no gradient: the op has no jvp rule") for line in lines)


def test_single_precision_is_written_as_short_as_it_is() -> None:
    call = OpCall(ops.exp.op, (np.array([[0.2, 1e-5]], "float32").T,), {})
    assert str(call) == "ops.exp(np.array([[0.2], [1e-05]], 'float32'))"
    assert (eval(str(call), {"np": np, "ops": ops}) == ops.exp(call.operands[0])).all()


def test_what_is_no_op_is_refused_with_what_to_use() -> None:
    with pytest.raises(TypeError, match=r"'add' is text; pass the op itself, as in ad.opcheck\(ops.add\)"):
        ad.opcheck("add")
    with pytest.raises(TypeError, match=r"opcheck: moveaxis is no op.*ad\.gradcheck\(moveaxis"):
        ad.opcheck(ops.moveaxis)
    with pytest.raises(KeyError, match="its tests are: schema, arguments unchanged"):
        ad.opcheck(ops.add).test("speed")


def test_a_report_is_a_truth_value_a_text_and_a_table() -> None:
    right, wrong = ad.opcheck(ops.exp), ad.opcheck(op_of(op_cube, lost_sign), [VALUES])
    assert right and not wrong
    assert str(right).startswith("✓ exp: 14 of 15 tests passed; 1 not applicable")
    assert "✗ VJP rule: lost_sign is wrong" in str(wrong) and "smallest failing call: ops.op_cube(np.array(" in str(
        wrong
    )
    page = wrong._repr_html_()
    assert "<table>" in page and "✗ failed" in page and "lost_sign" in page


def test_an_op_whose_kernel_refuses_all_that_is_tried_is_told_why() -> None:
    @ad.op(elementwise=True)
    def nothing(xp: Any, x: Any) -> Any:
        x * 2.0

    report = ad.opcheck(nothing)
    assert not report.ok and "arrays of a few shapes are refused (kernel nothing gave None" in str(report)


def test_samples_that_are_no_list_are_refused() -> None:
    with pytest.raises(TypeError, match=r"samples are a list of calls, as in \[\(x, y\)\]; got 3"):
        ad.opcheck(ops.mul, 3)  # type: ignore[arg-type]
