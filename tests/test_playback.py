"""Forward mode as it is told: the events say what ran, and a graph can be drawn from them alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from autodiff_widgets.subjects import floating_inputs

import autodiff_lab as ad
from autodiff_lab import events, ops
from autodiff_lab.tangents import NumberedTangents
from tests.drawn_graphs import FUNCTIONS, chain, expression

Told = list[events.Event]


def heard(f: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Told, Any]:
    with ad.listen() as told:
        result = ad.jvp(f, primals, tangents)
    return told, result


@pytest.fixture(params=FUNCTIONS, ids=str)
def run(request: pytest.FixtureRequest) -> tuple[Any, tuple[Any, ...], Told, Any]:
    """A function of floating inputs, its primals, and what a pass along a random direction told and gave."""
    f, arguments = FUNCTIONS[request.param]
    inputs, of_inputs = floating_inputs(f, arguments, "test")
    rng = np.random.default_rng(0)
    primals = tuple(inputs.values())
    told, result = heard(of_inputs, primals, tuple(rng.normal(size=value.shape) for value in primals))
    return of_inputs, primals, told, result


def test_the_graph_of_a_run_computes_what_the_run_computed(run: Any) -> None:
    f, primals, told, (value, _) = run
    graph = ad.graph_told(told)
    np.testing.assert_array_equal(graph(*primals), value)
    assert [node.label for node in graph if node.op] == [node.label for node in ad.record(f, *primals) if node.op]


def test_every_node_of_the_graph_knows_the_value_that_its_op_gives(run: Any) -> None:
    graph = ad.graph_told(run[2])
    for node in graph:
        assert np.shape(node.value) == node.shape
        if node.op is not None:
            operands = [graph.nodes[i].value for i in node.inputs]
            np.testing.assert_array_equal(node.op.apply(operands, node.attributes), node.value)


def test_the_parts_add_up_to_the_tangent_that_travels_on(run: Any) -> None:
    told, (_, derivative) = run[2], run[3]
    tangents = {event.serial: event.tangents[0] for event in told if isinstance(event, events.TangentSeeded)}
    pushed = [event for event in told if isinstance(event, events.TangentPushed)]
    for event in pushed:
        np.testing.assert_array_equal(event.tangent, tangents[event.sender])
        before = tangents[event.serial] if event.arrived > 1 else 0.0
        np.testing.assert_allclose(event.total - before, np.broadcast_to(event.part, np.shape(event.total)), atol=1e-12)
        tangents[event.serial] = event.total
        if event.local is not None:
            np.testing.assert_allclose(event.tangent * event.local, event.part, rtol=1e-12)
    reached = told[-1]
    assert isinstance(reached, events.TangentReached) and reached.serial is not None
    np.testing.assert_array_equal(tangents[reached.serial], derivative)
    np.testing.assert_array_equal(reached.tangents[0], derivative)


def test_listening_changes_no_number_of_forward_mode(run: Any) -> None:
    f, primals, told, (value, derivative) = run
    tangents = tuple(event.tangents[0] for event in told if isinstance(event, events.TangentSeeded))
    again = ad.jvp(f, primals, tangents)
    assert np.array_equal(again[0], value) and np.array_equal(again[1], derivative)


def test_tangents_are_numbered_only_while_somebody_listens() -> None:
    seen: list[type] = []

    def f(x: Any) -> Any:
        y = x * x
        seen.extend((type(x._history), type(y._history)))
        return y

    ad.jvp(f, (2.0,), (1.0,))
    heard(f, (2.0,), (1.0,))
    assert seen == [tuple, tuple, NumberedTangents, NumberedTangents]


def test_listening_adds_no_node_to_a_graph_that_is_recorded() -> None:
    def derivative(x: Any, b: Any) -> Any:
        return ad.jvp(lambda b: ops.tanh(x + b), (b,), (np.ones(3),))[1]

    quiet = ad.record(derivative, np.ones((4, 3)), np.zeros(3))
    with ad.listen():
        assert ad.record(derivative, np.ones((4, 3)), np.zeros(3)) == quiet


def test_several_tangents_that_travel_together_are_told_apart() -> None:
    with ad.listen() as told:
        jacobian = ad.jacobian(lambda x: ops.exp(x) * x, mode="forward")(np.array([0.5, 2.0]))
    columns = {event.direction: event.total for event in told if isinstance(event, events.TangentPushed)}
    np.testing.assert_array_equal(np.stack([columns[0], columns[1]], axis=1), jacobian)


def test_of_nested_forward_modes_the_graph_is_that_of_the_outer_one() -> None:
    def inner(x: Any) -> Any:
        return ad.jvp(lambda y: y * y * x, (x,), (1.0,))[1]

    told, (value, _) = heard(inner, (3.0,), (1.0,))
    graph = ad.graph_told(told, ("x",))
    assert [node.name for node in graph if node.kind == "input"] == ["x"]
    np.testing.assert_allclose(graph(3.0), value)
    np.testing.assert_allclose(graph(5.0), 2 * 5.0 * 5.0)


def test_a_reverse_mode_inside_forward_mode_is_part_of_the_graph() -> None:
    told, (value, _) = heard(ad.grad(lambda x: x**3), (2.0,), (1.0,))
    graph = ad.graph_told(told)
    np.testing.assert_allclose([value, graph(2.0), graph(5.0)], [12.0, 12.0, 75.0])


def test_an_op_with_any_number_of_inputs_names_each_sender() -> None:
    told, _ = heard(lambda a, b: ops.concatenate([a, b]), (np.ones(1), np.ones(2)), (np.ones(1), np.zeros(2)))
    pushed = [event for event in told if isinstance(event, events.TangentPushed)]
    assert [event.argument for event in pushed] == ["arrays[0]", "arrays[1]"]
    assert [event.sender for event in pushed] == [
        event.serial for event in told if isinstance(event, events.TangentSeeded)
    ]


def test_a_result_that_nothing_moves_has_no_number_and_the_tangent_zero() -> None:
    told, _ = heard(lambda x: np.ones(2), (1.0,), (1.0,))
    reached = told[-1]
    assert isinstance(reached, events.TangentReached)
    assert reached.serial is None and not np.any(reached.tangents[0])


def test_names_scopes_and_lines_come_with_the_events() -> None:
    def f(x: Any) -> Any:
        with ad.name_scope("first"):
            h = x * 2.0
        return ops.exp(h)

    graph = ad.graph_told(heard(f, (1.0,), (1.0,))[0], ("x",), "f")
    node = graph.node("h")
    assert (node.scope, node.source.text if node.source else "") == ("first", "h = x * 2.0")
    assert graph.node("x").kind == "input"


def test_without_a_pass_there_is_no_graph_to_tell() -> None:
    with ad.listen() as told:
        ad.grad(expression)(0.5, 3.0, 1.0)
    with pytest.raises(ValueError, match=r"no forward mode was heard; call ad\.jvp inside"):
        ad.graph_told(told)


def test_forward_mode_keeps_nothing_for_later_and_reverse_mode_says_what_it_saves() -> None:
    told, _ = heard(chain(3), (0.5,), (1.0,))
    assert not any(event.saved for event in told if isinstance(event, events.OpCalled))
    with ad.listen() as recorded:
        ad.grad(chain(3))(0.5)
    saved = [event.saved for event in recorded if isinstance(event, events.OpCalled)]
    released = [event for event in recorded if isinstance(event, events.SavedValueReleased)]
    assert [list(arrays) for arrays in saved] == [["out"]] * 3 and len(released) == 3
