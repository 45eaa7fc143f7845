"""Tangents beside gradients: forward mode on the same graph, and the identity that joins both ends."""

from __future__ import annotations

import re
from typing import Any

import autodiff_widgets as aw
import numpy as np
import pytest
from autodiff_widgets.subjects import floating_inputs
from autodiff_widgets.values import box_text

import autodiff_lab as ad
from autodiff_lab import events, reverse_mode
from tests.drawn_graphs import FUNCTIONS, expression, square
from tests.test_every_view import faulty_view

ENDS = re.compile(r"Gradient · tangent is (\S+) at the output and (\S+) at the inputs: (.*)")


def ends_of(view: aw.GradientFlowView) -> tuple[float, float, str]:
    found = ENDS.match(view.frames[-2].caption)
    assert found is not None
    return float(found[1]), float(found[2]), found[3]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient_times_tangent_is_one_number_at_both_ends(name: str) -> None:
    f, arguments = FUNCTIONS[name]
    inputs, of_inputs = floating_inputs(f, arguments, "test")
    rng = np.random.default_rng(1)
    along = {name: rng.normal(size=value.shape) for name, value in inputs.items()}
    at_output, at_inputs, verdict = ends_of(aw.GradientFlowView(f, *arguments, tangents=along))
    _, derivative = ad.jvp(of_inputs, tuple(inputs.values()), tuple(along.values()))
    assert at_output == pytest.approx(float(derivative), rel=1e-5)
    assert at_inputs == pytest.approx(float(derivative), rel=1e-4) and "the same number" in verdict


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_node_of_the_graph_gets_its_tangent(name: str) -> None:
    f, arguments = FUNCTIONS[name]
    view = aw.GradientFlowView(f, *arguments, tangents=True)
    shown = view.scene.texts_at(len(view.frames) - 1)
    for node in view.graph:
        if node.kind != "constant":
            assert shown[f"n{node.serial}", "tangent"].startswith("tangent ")
    inputs, of_inputs = floating_inputs(f, arguments, "test")
    _, derivative = ad.jvp(of_inputs, tuple(inputs.values()), tuple(np.ones_like(v) for v in inputs.values()))
    output = view.graph.nodes[view.graph.outputs[0]]
    assert shown[f"n{output.serial}", "tangent"] == f"tangent {box_text(derivative)}"


def test_ends_that_differ_show_a_wrong_rule() -> None:
    @ad.op(elementwise=True)
    def halved(xp: Any, x: Any) -> Any:
        """x / 2."""
        return x / 2.0

    @halved.vjp
    def halved_vjp(g: Any) -> Any:
        return g / 4.0

    @halved.jvp
    def halved_jvp(dx: Any) -> Any:
        return dx / 2.0

    at_output, at_inputs, verdict = ends_of(aw.GradientFlowView(lambda x: halved(x) * x, 3.0, tangents=True))
    assert (at_output, at_inputs) == (3.0, 2.25) and "a gradient rule is wrong" in verdict


def test_a_cotangent_of_several_numbers_is_weighed_with_their_tangents() -> None:
    view = aw.GradientFlowView(
        lambda x: x * x, np.array([1.0, 2.0]), cotangent=np.array([1.0, 10.0]), tangents={"x": np.array([3.0, 1.0])}
    )
    assert ends_of(view)[:2] == (46.0, 46.0)  # 1 · 2·1·3 + 10 · 2·2·1


def test_the_forward_pass_is_not_shown_again_for_the_tangents() -> None:
    view = aw.GradientFlowView(expression, 0.5, 3.0, 1.0, tangents=True)
    forward = [frame.caption for frame in view.frames if frame.caption.startswith("Forward:")]
    assert len(forward) == 4
    assert len([event for event in view.events if isinstance(event, events.OpCalled)]) == 8, "but it ran again"


def test_an_input_that_the_result_does_not_need_has_no_node_and_no_say() -> None:
    view = aw.GradientFlowView(lambda x, unused: x * x, 3.0, 5.0, tangents=True)
    assert ends_of(view)[:2] == (6.0, 6.0)


def test_a_forward_mode_inside_the_function_is_shown_by_the_ops_that_it_made() -> None:
    def f(x: Any) -> Any:
        return ad.jvp(lambda y: y * y * x, (x,), (1.0,))[1]

    view = aw.GradientFlowView(f, 3.0, memory=True)
    assert view.frames[-1].caption == "Done. The gradient is: `x` 12."
    calls = [frame.caption for frame in view.frames if frame.caption.startswith("Forward:")]
    shown = {node.label for node in view.graph if node.op is not None}
    assert shown == {"mul", "add"} and len(calls) >= len([n for n in view.graph if n.op is not None])
    assert view.scene.panes[1].svg.count('class="bar forward"') == len(calls)


def test_tensors_with_names_of_their_own_move_too_and_those_without_a_gradient_stand_still() -> None:
    weight = ad.tensor(2.0, requires_grad=True, name="weight")
    view = aw.GradientFlowView(lambda w, x, c: w * x * c, weight, 3.0, ad.tensor(5.0), tangents=True)
    assert ends_of(view)[:2] == (25.0, 25.0)
    with pytest.raises(ValueError, match=r"tangents: no floating input 'c'; give one of 'w', 'x'"):
        aw.GradientFlowView(lambda w, x, c: w * x * c, weight, 3.0, ad.tensor(5.0), tangents={"c": 1.0})


def test_an_argument_that_was_computed_moves_where_the_function_begins() -> None:
    x = ad.tensor(2.0, requires_grad=True)
    view = aw.GradientFlowView(lambda y: y * y, x * 3.0, tangents=True)
    assert ends_of(view)[:2] == (12.0, 12.0)


def test_tangents_of_a_tensor_are_refused_because_its_function_is_not_known() -> None:
    x = ad.tensor(3.0, requires_grad=True)
    with pytest.raises(ValueError, match=r"tangents need the function.*tangents=True"):
        aw.GradientFlowView(x * x, tangents=True)
    with pytest.raises(ValueError, match=r"tangents: no floating input 'y'; give one of 'x'"):
        aw.GradientFlowView(square, 3.0, tangents={"y": 1.0})


# --------------------------------------------------------------------------------------------------------- what is at fault


def test_the_node_at_fault_bears_a_mark_from_the_first_frame_and_the_caption_says_what_is_off() -> None:
    view = faulty_view()
    wrong = next(node for node in view.graph if node.label == "doubled_wrongly")
    assert view.scene.texts_at(0)[f"n{wrong.serial}", "fault"] == "✗ wrong rule"
    blamed = [i for i, frame in enumerate(view.frames) if "✗" in frame.caption]
    sends, last = blamed
    assert (
        "doubled_wrongly_vjp`): nothing else comes there. ✗ Wrong rule: doubled_wrongly_vjp is wrong"
        in view.frames[sends].caption
    )
    assert "a sign is lost." in view.frames[sends].caption
    assert view.scene.states_at(sends)[f"n{wrong.serial}"] == "wrong"
    assert view.scene.states_at(sends + 1)[f"n{wrong.serial}"] != "wrong"
    assert last == len(view.frames) - 1 and view.frames[last].focus == f"n{wrong.serial}"
    assert [key for key, state in view.scene.states_at(last).items() if state == "wrong"] == [f"n{wrong.serial}"]
    assert "in f: return (ad.ops.tanh(doubled_wrongly(x * w)) * x).sum()" in str(view.frames[last].source)
    assert ("wrong", "at fault: find_faulty_op") in view.scene.legend


def test_a_wrong_sum_is_marked_at_the_node_that_receives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reverse_mode, "accumulate", lambda total, contribution: contribution)
    report = ad.find_faulty_op(square, 3.0)
    view = aw.GradientFlowView(square, 3.0, faulty=report)
    assert view.scene.texts_at(0)[f"n{view.graph.nodes[0].serial}", "fault"] == "✗ wrong sum"
    assert "✗ Wrong sum: the sum at x (node 0) is wrong after contribution 2" in view.frames[-1].caption


def test_a_healthy_report_changes_nothing() -> None:
    plain, checked = (
        aw.GradientFlowView(square, 3.0, **more) for more in ({}, {"faulty": ad.find_faulty_op(square, 3.0)})
    )
    assert [frame.caption for frame in plain.frames] == [frame.caption for frame in checked.frames]
    assert plain.scene.legend == checked.scene.legend and "fault" not in checked.scene.panes[0].svg


def test_a_report_about_another_graph_is_refused() -> None:
    with pytest.raises(ValueError, match=r"faulty is a report about another graph, .* with 2 nodes"):
        aw.GradientFlowView(expression, 0.5, 3.0, 1.0, faulty=ad.find_faulty_op(square, 3.0))
