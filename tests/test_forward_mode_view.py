"""ForwardModeView: what it shows is what jvp gives, pass by pass, and its passes are the columns of the Jacobian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import autodiff_widgets as aw
import numpy as np
import pytest
from autodiff_widgets.seeds import MOST_PASSES
from autodiff_widgets.subjects import floating_inputs
from autodiff_widgets.values import box_text, value_text

import autodiff_lab as ad
from autodiff_lab import events, ops
from tests.drawn_graphs import FUNCTIONS, expression, mlp_arguments, mlp_loss, square

SMALL = {name: FUNCTIONS[name] for name in ("expression", "diamond", "square", "residual", "scope entered twice")}


def texts_of(view: aw.ForwardModeView, slot: str, frame: int = -1) -> dict[str, str]:
    at = view.scene.texts_at(view.scene.index(frame))
    return {key: text for (key, found), text in at.items() if found == slot}


@pytest.mark.parametrize("name", SMALL)
def test_the_passes_are_the_columns_of_the_jacobian(name: str) -> None:
    f, arguments = SMALL[name]
    view = aw.ForwardModeView(f, *arguments, seed="all")
    inputs, of_inputs = floating_inputs(f, arguments, "test")
    blocks = ad.jacobian(of_inputs, tuple(range(len(inputs))))(*inputs.values())
    shape = np.shape(of_inputs(*inputs.values()))
    columns = [
        np.reshape(block, (*shape, value.size))[..., place]
        for block, value in zip(blocks, inputs.values(), strict=True)
        for place in range(value.size)
    ]
    shown = texts_of(view, "column")
    assert len(view.passes) == len(columns) == len(shown)
    for number, column in enumerate(columns):
        assert shown[f"column.{number}"] == box_text(column)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_tangent_of_the_output_is_what_jvp_gives(name: str) -> None:
    f, arguments = FUNCTIONS[name]
    view = aw.ForwardModeView(f, *arguments)
    inputs, of_inputs = floating_inputs(f, arguments, "test")
    _, derivative = ad.jvp(of_inputs, tuple(inputs.values()), view.passes[-1].tangents)
    output = view.graph.nodes[view.graph.outputs[0]]
    assert texts_of(view, "tangent")[f"n{output.serial}"] == f"tangent {box_text(derivative)}"
    assert texts_of(view, "value")[f"n{output.serial}"] == f"value {box_text(of_inputs(*inputs.values()))}"


def test_passes_and_rule_calls_are_counted_as_they_happen() -> None:
    view = aw.ForwardModeView(expression, 0.5, 3.0, 1.0, seed="all")
    starts = [i for i, frame in enumerate(view.frames) if frame.caption.startswith("Pass ")]
    assert [texts_of(view, "count", i)["passes"] for i in starts] == ["1 of 3", "2 of 3", "3 of 3"]
    calls = sum(isinstance(event, events.TangentPushed) for event in view.events)
    assert texts_of(view, "count")["rules"] == str(calls)
    assert f"{calls} calls of JVP rules" in view.frames[-1].caption
    assert calls == ad.jacobian_cost(expression, 0.5, 3.0, 1.0).forward_rule_calls


def test_a_pass_begins_with_no_tangent_but_those_of_the_inputs() -> None:
    view = aw.ForwardModeView(expression, 0.5, 3.0, 1.0, seed="all")
    second = next(i for i, frame in enumerate(view.frames) if frame.caption.startswith("Pass 2"))
    shown = texts_of(view, "tangent", second)
    inputs = [f"n{view.graph.nodes[node].serial}" for node in view.graph.inputs]
    assert [shown.pop(key) for key in inputs] == ["tangent 0", "tangent 1", "tangent 0"]
    assert set(shown.values()) == {"tangent ?"}


@pytest.mark.parametrize(
    ("seed", "labels"),
    [
        (0, ["x"]), (-1, ["b"]), ("w", ["w"]), ([0, "b"], ["x", "b"]), ("all", ["x", "w", "b"]), ({"w": 2.0}, ["direction"]),
    ],
)  # fmt: skip
def test_a_seed_is_a_place_a_name_some_of_them_all_of_them_or_a_direction(seed: Any, labels: list[str]) -> None:
    view = aw.ForwardModeView(expression, 0.5, 3.0, 1.0, seed=seed)
    assert [one.label for one in view.passes] == labels


def test_a_direction_moves_several_inputs_in_one_pass() -> None:
    view = aw.ForwardModeView(expression, 0.5, 3.0, 1.0, seed={"x": 1.0, "b": -2.0})
    _, derivative = ad.jvp(expression, (0.5, 3.0, 1.0), (1.0, 0.0, -2.0))
    assert texts_of(view, "column") == {"column.0": box_text(derivative)}
    assert "`x` moves with the tangent 1, `b` moves with the tangent -2, and `w` stands still" in view.frames[1].caption


def test_an_array_has_one_pass_for_each_number_up_to_a_limit_that_is_said() -> None:
    view = aw.ForwardModeView(lambda x: x * x, np.arange(3.0))
    assert [one.label for one in view.passes] == ["x[0]", "x[1]", "x[2]"]
    large = aw.ForwardModeView(lambda x: x.sum(), np.ones((5, 5)))
    assert len(large.passes) == MOST_PASSES and f"first {MOST_PASSES} of 25 passes" in large.frames[0].caption


def test_selecting_an_input_seeds_it_and_keeps_it_selected() -> None:
    view = aw.ForwardModeView(expression, 0.5, 3.0, 1.0)
    view.frame = 7
    view.selected = f"n{view.graph.nodes[view.graph.inputs[2]].serial}"
    assert view.seed == "b" and view.frame == 0
    assert view.frames[1].caption == "Pass 1 of 1: `b` moves with the tangent 1, and `x` and `w` stand still."
    assert view.selected == f"n{view.graph.nodes[view.graph.inputs[2]].serial}"
    assert len([event for event in view.events if isinstance(event, events.TangentReached)]) == 1
    graph = view.graph
    view.selected = f"n{graph.nodes[3].serial}"  # an op
    assert view.graph is graph and view.seed == "b"


def test_the_facts_of_a_node_have_its_tangent_of_every_pass() -> None:
    view = aw.ForwardModeView(lambda x, w: x * w, 2.0, 3.0, seed="all")
    product = view.graph.nodes[view.graph.outputs[0]]
    rows = view.scene.facts[f"n{product.serial}"]
    assert ("tangent along x", "3") in rows and ("tangent along w", "2") in rows
    assert "tangent along x 3; tangent along w 2" in view.text()


def test_functions_with_several_results_show_the_tangent_of_each() -> None:
    view = aw.ForwardModeView(lambda x: (x * x, {"e": ops.exp(x)}), 1.0)
    assert texts_of(view, "column") == {"column.0": "2; 2.71828"}
    assert len(view.graph.outputs) == 2


def test_a_result_that_does_not_depend_on_the_seed_says_so() -> None:
    view = aw.ForwardModeView(lambda x: np.ones(2), 1.0)
    assert view.frames[-2].caption == (
        f"The result {value_text(np.ones(2))} does not depend on an input that moves: its tangent is [0, 0]."
    )


def test_what_is_not_floating_is_held() -> None:
    view = aw.ForwardModeView(lambda x, times: x["a"] * times, {"a": 2.0}, 3)
    assert [node.name for node in view.graph if node.kind == "input"] == ["x['a']"]
    assert texts_of(view, "column") == {"column.0": "3"}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: aw.ForwardModeView(expression, 0.5, 3.0, 1.0, seed="y"), "no floating input 'y'; give one of 'x', 'w', 'b'"),
        (lambda: aw.ForwardModeView(expression, 0.5, 3.0, 1.0, seed=3), "seed: no floating input 3"),
        (lambda: aw.ForwardModeView(expression, 0.5, 3.0, 1.0, seed={"y": 1.0}), "seed: no floating input 'y'"),
        (lambda: aw.ForwardModeView(square, 2), "write 2.0 instead of 2"),
        (lambda: aw.ForwardModeView(ad.record(square, 2.0), 2.0), "a Graph has shapes and no values"),
    ],
)  # fmt: skip
def test_what_cannot_be_seeded_is_refused_with_the_reason(call: Callable[[], Any], says: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert says in str(caught.value)


def test_a_network_is_pushed_along_one_number_of_a_weight() -> None:
    view = aw.ForwardModeView(mlp_loss, *mlp_arguments(), seed={"params[0][0]": 1.0})
    assert len(view.passes) == 1 and view.frames[-1].caption.startswith("Done: 1 column of the Jacobian by 1 pass ")
