"""Recorded graphs: forward and joint, their phases, names and lines, and graphs of executed Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops


def perceptron(x: Any, w: Any, b: Any) -> Any:
    with ad.name_scope("layer1"):
        h = x @ w + b
        y = ops.tanh(h)
    loss = ops.mean(y * y)
    return loss


ARGUMENTS = (np.ones((4, 3)), np.full((3, 5), 0.1), np.zeros(5))
JOINT = ad.record(ad.value_and_grad(perceptron, (1, 2)), *ARGUMENTS)


def test_recording_computes_nothing_and_knows_every_shape_and_dtype() -> None:
    calls: list[str] = []

    @ad.op
    def loud(xp: Any, x: Any) -> Any:
        """x, and a note that a kernel ran."""
        calls.append("kernel")
        return x + 0

    @loud.shape_rule
    def loud_shape(x: Any) -> Any:
        return x

    graph = ad.record(lambda x: loud(x) * 2.0, np.zeros((1000, 1000), np.float32))
    assert not calls
    assert [(n.shape, n.dtype) for n in graph if n.kind == "op"] == [((1000, 1000), np.float32)] * 2
    graph(np.zeros((1000, 1000), np.float32))
    assert calls == ["kernel"]


def test_nodes_bear_the_users_variable_names_scopes_and_lines() -> None:
    graph = ad.record(perceptron, *ARGUMENTS)
    assert [node.name for node in graph] == ["x", "w", "b", "", "h", "y", "", "loss"]
    h = graph.node("h")
    assert h.scope == "layer1" and graph.node("loss").scope == ""
    assert h.source is not None
    assert h.source.text == "h = x @ w + b" and h.source.function == "perceptron" and h.source.file == __file__
    with pytest.raises(KeyError, match=r"no node named 'z'; its names are: b, h, loss, w, x, y"):
        graph.node("z")


def test_an_empty_scope_is_no_scope() -> None:
    def f(x: Any) -> Any:
        with ad.name_scope("outer"), ad.name_scope(""):
            return x * 2.0

    assert ad.record(f, 1.0).nodes[-1].scope == "outer"


def test_names_follow_every_kind_of_assignment() -> None:
    def f(x: Any) -> Any:
        global _made_global
        plain = x + 1.0
        _made_global = plain * 2.0
        called = ops.exp(_made_global)
        first, second = called + 1.0, called + 2.0  # only the store right after the call is seen
        captured = first * second
        return (lambda: captured * 1.0)()

    names = [node.name for node in ad.record(f, 1.0) if node.kind == "op"]
    assert names == ["plain", "_made_global", "called", "", "second", "captured", ""]


def test_a_joint_graph_marks_backward_nodes_with_their_phase_origin_and_scope() -> None:
    backward = [node for node in JOINT if node.phase == "backward"]
    assert {node.phase for node in JOINT} == {"forward", "backward"} and backward
    assert [node.phase for node in JOINT] == ["forward"] * 8 + ["backward"] * len(backward)
    origins = [JOINT.nodes[node.origin] for node in backward if node.origin is not None]
    assert origins and all(origin.phase == "forward" for origin in origins)
    assert all(node.scope == JOINT.nodes[node.origin].scope for node in backward if node.origin is not None)
    assert {node.name for node in backward if node.name} == {"∂loss", "∂h", "∂y"}
    assert all(node.source == JOINT.nodes[node.origin].source for node in backward if node.origin is not None)


def test_saved_values_are_the_forward_nodes_that_backward_nodes_read() -> None:
    read = {s for s, c in JOINT.edges if JOINT.nodes[c].phase == "backward" and JOINT.nodes[s].phase == "forward"}
    kept = set(JOINT.saved_by)
    assert kept <= read
    assert {JOINT.nodes[i].name for i in kept} == {"x", "y"}
    assert JOINT.nodes[min(kept)].nbytes == 4 * 3 * 8


def test_a_recorded_graph_gives_eagers_numbers_on_new_arguments() -> None:
    rng = np.random.default_rng(1)
    arguments = [rng.standard_normal(a.shape) for a in ARGUMENTS]
    value, (gw, gb) = JOINT(*arguments)
    expected, (ew, eb) = ad.value_and_grad(perceptron, (1, 2))(*arguments)
    assert np.array_equal(value, expected) and np.array_equal(gw, ew) and np.array_equal(gb, eb)
    with pytest.raises(TypeError, match=r"takes 3 inputs \(x, w, b\), got 1"):
        JOINT(arguments[0])


def test_a_graph_can_be_run_on_tensors_and_recorded_again() -> None:
    square = ad.record(lambda x: x * x, 1.0)
    assert float(ad.grad(square)(3.0)) == 6.0
    again = ad.record(lambda x: square(x) + 1.0, 1.0)
    assert float(again(3.0)) == 10.0


def test_higher_derivatives_record() -> None:
    graph = ad.record(ad.grad(ad.grad(lambda x: x**4)), 2.0)
    assert float(graph(2.0)) == 48.0
    hvp = ad.record(lambda x, v: ad.jvp(ad.grad(lambda x: ops.sum(x**3)), (x,), (v,))[1], np.ones(3), np.ones(3))
    assert hvp(np.arange(3.0), np.ones(3)).tolist() == [0.0, 6.0, 12.0]


def test_nested_arguments_are_inputs_with_their_path_as_name() -> None:
    graph = ad.record(lambda params, *xs: params["w"][0] * xs[1], {"w": [1.0, 2.0]}, 3.0, 4.0)
    assert [graph.nodes[i].name for i in graph.inputs] == ["params['w'][0]", "params['w'][1]", "xs[0]", "xs[1]"]
    assert ad.record(lambda x: {"a": x, "b": [x * 2.0]}, 1.0)(2.0) == {"a": 2.0, "b": [4.0]}


def test_captured_arrays_and_tensors_are_constants_and_one_array_is_one_node() -> None:
    weights = np.array([1.0, 2.0])
    trained = ad.tensor([3.0, 4.0], requires_grad=True)
    graph = ad.record(lambda x: x * weights + x * weights + trained, np.zeros(2))
    constants = [node for node in graph if node.kind == "constant"]
    assert len(constants) == 2
    weights[:] = 0.0
    assert graph(np.ones(2)).tolist() == [5.0, 8.0]


def test_a_branch_on_a_value_is_refused_with_the_way_out() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        return y if y > 0 else -y

    with pytest.raises(TypeError, match=r"An if, while or float\(\) that depends on values"):
        ad.record(f, 1.0)
    with pytest.raises(TypeError, match="An if, while"):
        ad.record(ad.grad(f), 1.0)
    with pytest.raises(TypeError, match="An if, while"):
        ad.record(lambda x: float(x), 1.0)
    with pytest.raises(TypeError, match="An if, while"):
        ad.record(lambda x: np.asarray(x), 1.0)


def test_symbols_do_not_outlive_their_recording_and_records_do_not_nest() -> None:
    kept: list[Any] = []
    ad.record(lambda x: kept.append(x) or x, 1.0)  # type: ignore[func-returns-value]
    with pytest.raises(ValueError, match="recording is over"):
        ad.record(lambda x: x * kept[0], 1.0)
    with pytest.raises(ValueError, match="record inside record"):
        ad.record(lambda x: ad.record(lambda y: y, 1.0), 1.0)


def test_a_shape_that_does_not_fit_is_an_error_at_the_users_line() -> None:
    def f(x: Any, w: Any) -> Any:
        return x @ w  # the line

    with pytest.raises(ad.OpError, match=r"matmul\(x: \(2, 3\) float64, y: \(4, 5\) float64\)") as raised:
        ad.record(f, np.ones((2, 3)), np.ones((4, 5)))
    assert any(
        (entry.name == "f" and entry.path == __file__) or "test_recording" in str(entry.path)
        for entry in raised.traceback
    )


def test_graph_of_an_executed_tensor_has_its_ops_names_shapes_and_known_values() -> None:
    x = ad.tensor(ARGUMENTS[0])
    w, b = (ad.tensor(a, requires_grad=True) for a in ARGUMENTS[1:])
    loss = perceptron(x, w, b)
    graph = ad.graph_of(loss, {"w": w, "b": b, "loss": loss})
    assert [(n.name, n.label, n.shape) for n in graph] == [
        ("w", "input", (3, 5)), ("b", "input", (5,)), ("", "constant", (4, 3)), ("", "matmul", (4, 5)), ("", "add", (4, 5)),
        ("", "tanh", (4, 5)), ("", "mul", (4, 5)), ("loss", "mean", ()),
    ]  # fmt: skip
    known = [n.value is not None for n in graph]
    assert known == [True, True, True, False, False, True, False, True]
    assert graph.nodes[-1].value == loss.item()
    assert {graph.nodes[i].label for i in graph.saved_by} == {"constant", "tanh"}
    assert graph.nodes[-1].serial == loss._history[0]


def test_events_of_the_run_add_names_scopes_and_lines_to_the_graph_of_a_tensor() -> None:
    w, b = (ad.tensor(a, requires_grad=True) for a in ARGUMENTS[1:])
    with ad.listen() as told:
        loss = perceptron(ad.tensor(ARGUMENTS[0]), w, b)
    graph = ad.graph_of(loss, told=told)
    assert [n.name for n in graph if n.kind == "op"] == ["", "h", "y", "", "loss"]
    assert graph.node("h").scope == "layer1"
    assert graph.node("h").source is not None and graph.node("h").source.text == "h = x @ w + b"
    with pytest.raises(ValueError, match="requires_grad=True"):
        ad.graph_of(ad.tensor(1.0))


def test_a_value_used_twice_by_one_op_gives_two_edges_and_one_node() -> None:
    graph = ad.record(lambda x: x * x, 3.0)
    assert len(graph) == 2 and list(graph.edges) == [(0, 1), (0, 1)] and graph.consumers[0] == (1, 1)


def test_the_text_form_has_one_line_a_node_and_grows_linearly() -> None:
    def doublings(count: int) -> Any:
        def f(x: Any) -> Any:
            for _ in range(count):
                x = x + x
            return x

        return ad.record(f, 1.0)

    assert len(doublings(80)) == 81
    sizes = [len(doublings(n).text()) for n in (100, 200, 400)]
    assert sizes[2] < 2.2 * sizes[1] < 2.2 * 2.2 * sizes[0]
    assert JOINT.text().count("\n") == len(JOINT) + 1


def test_an_array_that_changes_while_a_graph_is_recorded_is_a_new_constant() -> None:
    def f(x: Any) -> Any:
        mask, total = np.zeros(2), 0.0
        for i in range(2):
            mask[:] = 0.0
            mask[i] = 1.0
            total = total + ops.sum(x * mask) * (i + 1.0)
        return total

    x = np.array([3.0, 5.0])
    value, gradient = ad.record(ad.value_and_grad(f), x)(x)
    assert float(value) == 13.0 and gradient.tolist() == [1.0, 2.0]


def test_a_computed_index_records_inside_a_gradient() -> None:
    graph = ad.record(ad.grad(lambda x: x[ops.argmax(x)] * 3.0), np.array([1.0, 5.0, 2.0]))
    assert graph(np.array([9.0, 5.0, 2.0])).tolist() == [3.0, 0.0, 0.0]
