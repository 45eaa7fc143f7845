"""find_faulty_op: it names the op, the line, the sum or the order at fault in a whole model, and blames no healthy one."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import layers, ops, reverse_mode

TOKENS = np.array([[1, 2, 3, 4, 5], [5, 4, 3, 2, 10]])
Model = tuple[Callable[..., Any], tuple[Any, ...]]


def normal(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(3).standard_normal(shape)


def mlp(activation: Any = ops.tanh) -> Model:
    model = layers.MLP(6, 5, 3, activation=activation, seed=0)
    classes = np.array([0, 2, 1, 1])
    return (
        lambda p, x: ops.cross_entropy(model.with_parameters(p)(x), classes),
        (model.parameters(), normal((4, 6)).astype(np.float32)),
    )


def cnn() -> Model:
    model = layers.CNN(8, 4, channels=(2, 3), seed=0)
    return (
        lambda p, x: ops.cross_entropy(model.with_parameters(p)(x), np.array([1, 3])),
        (model.parameters(), normal((2, 1, 8, 8)).astype(np.float32)),
    )


def transformer() -> Model:
    model = layers.TransformerLM(11, context=6, width=8, heads=2, blocks=2, seed=0)
    return lambda p: ops.cross_entropy(model.with_parameters(p)(TOKENS), np.roll(TOKENS, 1, 1)), (model.parameters(),)


MODELS = {"mlp": mlp, "cnn": cnn, "transformer": transformer}


def residual(x: Any, w: Any) -> Any:
    """A value with two consumers at different depths."""
    h = x * w
    deep = ops.tanh(ops.exp(h * 0.5))
    return (h + deep).sum()


RESIDUAL: Model = (residual, (np.array([0.3, -0.2]), np.array([1.5, 0.5])))


def graph_in(report: ad.FaultyOpReport) -> ad.Graph:
    """The graph that a report speaks of."""
    assert report.graph is not None
    return report.graph


class Altered:
    """A rule with another body. The library reads name and parameters from the code object, which stays the right one's."""

    def __init__(self, body: Callable[..., Any], right: Any) -> None:
        self.body = body
        self.__name__, self.__code__ = right.__name__, right.__code__

    def __call__(self, *values: Any, **attributes: Any) -> Any:
        return self.body(*values, **attributes)


def altered(monkeypatch: pytest.MonkeyPatch, op: str, argument: str, alter: Callable[[Any], Any]) -> str:
    """Replace one VJP rule by an altered one until the test is over; gives the rule's name."""
    rules = ad.registry[op].vjp_rules
    right = rules[argument]
    monkeypatch.setitem(rules, argument, Altered(alter(right), right))
    ad.registry[op]._changed()
    return str(right.__name__)


@pytest.fixture(autouse=True)
def healthy_bindings() -> Any:
    """Bindings that were generated with an altered rule are generated again."""
    yield
    for op in ad.registry.values():
        op._changed()


# ------------------------------------------------------------------------------------------------------------ healthy


@pytest.mark.parametrize("name", MODELS)
def test_a_healthy_model_is_not_blamed_and_takes_seconds(name: str) -> None:
    started = time.process_time()  # of this process alone: other work on the machine does not count
    report = ad.find_faulty_op(*MODELS[name]())
    assert report.ok and report, str(report)
    assert (report.blame, report.op, report.node, report.source, report.reason) == ("", None, None, None, "")
    assert "gradcheck of the whole function agrees" in str(report)
    assert str(report).startswith("✓") and "every op's rule is right at these values" in str(report)
    assert time.process_time() - started < 10


@pytest.mark.parametrize("name", ["mlp", "transformer"])
def test_every_call_of_a_smooth_model_is_judged(name: str) -> None:
    report = ad.find_faulty_op(*MODELS[name]())
    calls = sum(node.kind == "op" for node in graph_in(report))
    assert report.notes[0].startswith(f"The rules of {calls} of {calls} op calls agree")


def test_kinks_are_no_fault() -> None:
    report = ad.find_faulty_op(lambda x: (ops.relu(x) + ops.abs(x)).sum(), np.array([0.0, 1.0, -2.0]))
    assert report.ok, str(report)


def test_a_masked_softmax_is_no_fault() -> None:
    def attention(x: Any) -> Any:
        return (ops.softmax(ops.where(np.tri(5) > 0, x, -np.inf)) * x).sum()

    assert ad.find_faulty_op(attention, normal((5, 5))).ok


# -------------------------------------------------------------------------------------------------------------- rules


RULES = [
    ("mlp", "tanh", "x", lambda right: lambda g, *s, **a: -right(g, *s, **a), "−1 times what it should be: a sign is lost"),
    ("mlp", "cross_entropy", "logits", lambda right: lambda g, *s, **a: right(g, *s, **a) * 4.0, "4 times what it should be"),
    ("mlp", "matmul", "y", lambda right: lambda g, *s, **a: right(ops.ones_like(g), *s, **a), "forgets to multiply by its"),
    ("cnn", "correlate2d", "w", lambda right: lambda g, *s, **a: 2.0 * right(g, *s, **a), "2 times what it should be"),
    ("cnn", "max", "x", lambda right: lambda g, *s, **a: right(g, *s, **a) * 0.5, "1/2 of what it should be"),
    ("transformer", "softmax", "x", lambda right: lambda g, *s, **a: right(g, *s, **a) + 1.0, "softmax_vjp is wrong"),
    ("transformer", "layer_norm", "weight", lambda right: lambda g, *s, **a: -right(g, *s, **a), "a sign is lost"),
    ("transformer", "gelu", "x", lambda right: lambda g, *s, **a: 1.1 * right(g, *s, **a), "1.1 times what it should be"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "op", "argument", "alter", "said"), RULES)
def test_a_wrong_rule_is_named_with_its_op_and_line(
    model: str, op: str, argument: str, alter: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    f, inputs = MODELS[model]()
    rule = altered(monkeypatch, op, argument, alter)
    report = ad.find_faulty_op(f, inputs)
    assert not report.ok and report.blame == "rule", str(report)
    assert {fault.op for fault in report.faults} == {op}
    assert {fault.rule for fault in report.faults} == {rule}
    assert report.node is not None and graph_in(report).nodes[report.node].label == op
    assert said in report.reason, report.reason
    assert report.source is not None and "test_faulty_ops.py" in report.source
    calls = sum(node.label == op for node in graph_in(report))
    assert len(report.faults) == calls, "every call of the op is at fault, and nothing else"


def test_the_source_is_the_line_that_called_the_op(monkeypatch: pytest.MonkeyPatch) -> None:
    altered(monkeypatch, "exp", "x", lambda right: lambda g, *s, **a: 0.5 * right(g, *s, **a))
    report = ad.find_faulty_op(*RESIDUAL)
    assert report.source is not None
    assert report.source.endswith("in residual: deep = ops.tanh(ops.exp(h * 0.5))")


def test_a_rule_that_is_wrong_only_at_some_values_is_found_where_it_is_called_with_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong_above_two(right: Any) -> Any:
        return lambda g, out: right(g, out) * ops.where(out > 2.0, 3.0, 1.0)

    def f(x: Any) -> Any:
        return ops.exp(ops.exp(x)).sum()

    altered(monkeypatch, "exp", "x", wrong_above_two)
    assert ad.find_faulty_op(f, np.array([-1.0, -2.0])).ok
    report = ad.find_faulty_op(f, np.array([0.5, -2.0]))
    outer = [node.id for node in report.graph if node.label == "exp"][-1]
    assert (report.op, report.node, len(report.faults)) == ("exp", outer, 1)


def test_a_wrong_shape_is_named_though_the_sweep_stops() -> None:
    @ad.op
    def turned_over(xp: Any, x: Any) -> Any:
        return x.T.copy()

    @turned_over.shape_rule
    def turned_over_shape(x: Any) -> Any:
        return x[::-1]

    @turned_over.vjp
    def turned_over_vjp(g: Any) -> Any:
        return g

    report = ad.find_faulty_op(lambda x, w: (turned_over(x * w) ** 2).sum(), (np.ones((2, 3)), np.ones((2, 3))))
    assert report.op == "turned_over" and "transpose it" in report.reason
    assert any("The sweep stopped with" in note for note in report.notes)


def test_a_rule_that_raises_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(right: Any) -> Any:
        def rule(g: Any, *saved: Any) -> Any:
            raise ZeroDivisionError("no such luck")

        return rule

    altered(monkeypatch, "tanh", "x", failing)
    report = ad.find_faulty_op(*mlp())
    assert report.op == "tanh" and "stop with ZeroDivisionError: no such luck" in report.reason


def test_a_wrong_shape_or_dtype_rule_is_named_though_gradients_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost_first_axis(x: Any) -> Any:
        return (1, *x[1:])

    monkeypatch.setattr(ad.registry["tanh"], "_shape_rule", lost_first_axis)
    f, inputs = mlp()
    assert ad.gradcheck(f, list(inputs)).ok
    report = ad.find_faulty_op(f, inputs)
    assert (report.op, report.blame, report.graph) == ("tanh", "rule", None)
    assert report.reason.startswith("lost_first_axis says shape (1, 5), but the kernel gave (4, 5)")
    assert report.source is not None and "no graph can be made" in str(report)
    monkeypatch.undo()
    monkeypatch.setattr(ad.registry["tanh"], "_dtype_rule", lambda x: np.dtype(np.float64))
    report = ad.find_faulty_op(f, inputs)
    assert "says dtype float64, but the kernel gave float32" in report.reason
    assert report.node is not None and graph_in(report).nodes[report.node].label == "tanh"


# ---------------------------------------------------------------------------------------------------- sums and the order


def last_wins(total: Any, contribution: Any) -> Any:
    return contribution


def first_wins(total: Any, contribution: Any) -> Any:
    return total


def halved(total: Any, contribution: Any) -> Any:
    return (total + contribution) * 0.5


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (last_wins, "it is that contribution alone, and what had arrived before is lost"),
        (first_wins, "it did not change, so that contribution is lost"),
        (halved, "got "),
    ],
)
@pytest.mark.parametrize("model", ["residual", "transformer"])
def test_a_wrong_sum_is_told_from_a_wrong_rule(
    fault: Any, said: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    f, inputs = RESIDUAL if model == "residual" else transformer()
    monkeypatch.setattr(reverse_mode, "accumulate", fault)
    report = ad.find_faulty_op(f, inputs)
    assert {one.blame for one in report.faults} == {"sum"}, str(report)
    assert said in report.reason and "reverse_mode.accumulate" in report.reason
    if model == "residual":
        assert (report.op, graph_in(report).nodes[report.node or 0].name) == ("mul", "h")
        assert report.source is not None and report.source.endswith("h = x * w")


def added_in_place(total: Any, contribution: Any) -> Any:
    if isinstance(total, np.ndarray) and total.flags.writeable and total.shape == np.shape(contribution):
        total += contribution
        return total
    return total + contribution


def test_adding_in_place_into_a_shared_array_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any, y: Any) -> Any:
        a = x * 2.0
        b = y * 3.0
        return ((a * a) * (a + b)).sum()  # a + b sends one array to a and to b, before a * a sends more to a

    assert ad.find_faulty_op(f, (np.ones(2), np.ones(2))).ok
    monkeypatch.setattr(reverse_mode, "accumulate", added_in_place)
    assert not ad.gradcheck(f, (np.ones(2), np.ones(2)))
    report = ad.find_faulty_op(f, (np.ones(2), np.ones(2)))
    assert {one.blame for one in report.faults} == {"sum"}, str(report)
    assert "adding a contribution at a (node" in report.reason and "changed the cotangent of b (node" in report.reason


def breadth_first(*roots: Any) -> Any:
    found: dict[int, Any] = {}
    queue = deque(roots)
    while queue:
        record = queue.popleft()
        if record[0] not in found:
            found[record[0]] = record
            queue.extend(parent for parent in record[2] if parent is not None)
    return list(found.values())[::-1]


def test_a_wrong_order_is_told_from_a_wrong_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reverse_mode, "backward_order", breadth_first)
    report = ad.find_faulty_op(*RESIDUAL)
    assert {one.blame for one in report.faults} == {"order"}, str(report)
    assert graph_in(report).nodes[report.node or 0].name == "h"
    assert "after 1 of 2 contributions, before mul (node " in report.reason
    assert ad.find_faulty_op(lambda x: ops.exp(ops.tanh(x * 2.0)).sum(), np.ones(2)).ok, "on a chain it is right"


def test_a_leaf_that_is_taken_too_early_is_an_error_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reverse_mode, "backward_order", breadth_first)
    report = ad.find_faulty_op(lambda x: (x * ops.tanh(ops.exp(x))).sum(), np.array([0.5, 1.0]))
    assert (report.blame, report.op) == ("order", None)
    assert "takes x (node 0) after 1 of 2 contributions" in report.reason


def test_a_sweep_that_visits_a_node_twice_is_an_error_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def whenever_something_arrived(*roots: Any) -> Any:
        """Nearest first, and each record again for every consumer, as a search that marks nothing gives them."""
        order, queue = [], deque(roots)
        while queue:
            record = queue.popleft()
            order.append(record)
            queue.extend(parent for parent in record[2] if parent is not None)
        return order[::-1]

    monkeypatch.setattr(reverse_mode, "backward_order", whenever_something_arrived)
    report = ad.find_faulty_op(*RESIDUAL)
    assert report.blame == "order" and "visits h (node" in report.reason and "2 times" in report.reason, str(report)


def test_a_broadcast_that_is_not_summed_back_is_blamed_on_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        reverse_mode, "fit_cotangents", lambda contributions, operands, elementwise: tuple(contributions)
    )
    report = ad.find_faulty_op(lambda x, b: ((x + b) ** 2.0).sum(), (np.ones((3, 2)), np.ones(2)))
    assert (report.blame, report.op) == ("sum", "add"), str(report)
    assert "sums the contributions of elementwise ops to their operand's shape, here (2,)" in report.reason


# ------------------------------------------------------------------------------------------------- what is outside, inputs


def test_a_value_that_leaves_the_recorded_ops_is_the_functions_own_fault() -> None:
    report = ad.find_faulty_op(lambda x: (x * x.detach()).sum(), np.array([2.0, 3.0]))
    assert (report.ok, report.blame, report.op, report.node) == (False, "outside", None, None)
    assert "the gradient of x[0] is not" in report.reason and ".detach()" in report.reason


def test_a_recorded_tensor_is_judged_by_what_its_records_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    x = ad.tensor([1.0, 2.0], requires_grad=True, name="x")
    assert ad.find_faulty_op((ops.tanh(x) * x).sum()).ok
    altered(monkeypatch, "tanh", "x", lambda right: lambda g, *s, **a: -right(g, *s, **a))
    report = ad.find_faulty_op((ops.tanh(x) * x).sum())
    assert (report.op, report.source) == ("tanh", None)
    unknown = ad.find_faulty_op((x + 1.0).sum())
    assert unknown.ok and "pass the function and its arguments" in str(unknown)


def test_a_result_of_several_numbers_gets_a_random_cotangent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ad.find_faulty_op(lambda x: ops.exp(x) * x, np.array([1.0, 2.0])).ok
    altered(monkeypatch, "exp", "x", lambda right: lambda g, out: right(ops.ones_like(g), out))
    assert ad.find_faulty_op(lambda x: ops.exp(x) * x, np.array([1.0, 2.0])).op == "exp"


@pytest.mark.parametrize("given", [np.array([0.5, 1.0]), ad.tensor([0.5, 1.0]), ad.tensor([0.5, 1.0], device="sim:0")])
def test_a_wrong_rule_is_named_wherever_the_arguments_lie(monkeypatch: pytest.MonkeyPatch, given: Any) -> None:
    def f(x: Any) -> Any:
        return ops.tanh(x * 2.0) * x

    assert ad.find_faulty_op(f, given).ok
    altered(monkeypatch, "tanh", "x", lambda right: lambda g, *saved: -right(g, *saved))
    report = ad.find_faulty_op(f, given)
    assert (report.op, report.blame) == ("tanh", "rule") and "a sign is lost" in report.reason


def test_what_cannot_be_checked_is_refused() -> None:
    with pytest.raises(TypeError, match="must give one Tensor, got tuple; return the loss"):
        ad.find_faulty_op(lambda x: (x, x), 1.0)
    with pytest.raises(ValueError, match="no graph"):
        ad.find_faulty_op(ad.tensor(1.0))


def test_the_registry_is_left_alone_and_gradients_of_the_caller_too() -> None:
    model = layers.MLP(3, 2, seed=0)
    before = [dict(op.vjp_rules) for op in ad.registry.values()]
    ad.find_faulty_op(lambda x: model(x).sum(), np.ones((2, 3), np.float32))
    assert [dict(op.vjp_rules) for op in ad.registry.values()] == before
    assert all(tensor.grad is None for part in model.parameters().values() for tensor in part.values())


def test_a_report_is_a_truth_value_a_text_and_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    altered(monkeypatch, "tanh", "x", lambda right: lambda g, *s, **a: -right(g, *s, **a))
    report = ad.find_faulty_op(*RESIDUAL)
    assert not report
    assert str(report).startswith("✗ residual: 1 fault found\n  tanh (node ")
    page = report._repr_html_()
    assert "<table>" in page and "tanh_vjp" in page and "deep = ops.tanh" in page


def test_a_slope_that_is_not_finite_behind_where_is_told_as_such() -> None:
    def f(x: Any) -> Any:
        return ops.where(x > 0, ops.sqrt(x), 0.0).sum()

    def repaired(x: Any) -> Any:
        return ops.where(x > 0, ops.sqrt(ops.where(x > 0, x, 1.0)), 0.0).sum()

    x = np.array([-1.0, 4.0])
    with np.errstate(all="ignore"):
        report = ad.find_faulty_op(f, x)
    assert report.blame == "outside" and "0 is multiplied by a slope that is not finite" in str(report.reason)
    assert ad.find_faulty_op(repaired, x).ok


def test_a_cotangent_that_does_not_fit_the_result_is_refused_and_no_op_is_blamed() -> None:
    with pytest.raises(ValueError, match=r"the cotangent has shape \(3,\), but the output has \(2,\)"):
        ad.find_faulty_op(lambda x: 2.0 * x, np.ones(2), np.ones(3))
