"""Views of passes over a graph: shapes as the rules said them, groups as fusion formed them, memory as the plan laid it out."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import autodiff_widgets as aw
import numpy as np
import pytest
from autodiff_widgets.captions.passes import shape_words
from autodiff_widgets.fusion_gains import moved
from autodiff_widgets.fusion_view import MOST_PAIRS
from autodiff_widgets.questions import MOST
from autodiff_widgets.regions import region_key
from autodiff_widgets.view import View

import autodiff_lab as ad
from autodiff_lab import events, ops
from autodiff_lab.graph import Graph
from autodiff_lab.layers import TransformerLM
from autodiff_lab.optimizers import Adam
from tests.drawn_graphs import GRAPHS, chain, mlp_arguments, mlp_loss
from tests.test_every_view import elements


@pytest.fixture(params=["expression", "mlp", "joint mlp", "joint residual", "joint diamond", "scope entered twice"])
def graph(request: pytest.FixtureRequest) -> Graph:
    return GRAPHS[request.param]


def keys(graph: Graph) -> list[str]:
    return [f"n{node.serial}" for node in graph]


def last_states(view: View) -> dict[str, str]:
    return view.scene.states_at(len(view.frames) - 1)


def last_texts(view: View, slot: str) -> dict[str, str]:
    texts = view.scene.texts_at(len(view.frames) - 1)
    return {element: text for (element, name), text in texts.items() if name == slot}


def layer(x: Any, w: Any, b: Any, v: Any) -> Any:
    h = ops.tanh(x @ w + b)
    return (h @ v).sum(axis=1)


LAYER = ad.record(layer, np.zeros((8, 4)), np.zeros((4, 3)), np.zeros(3), np.zeros((3, 2)))


def losing() -> Graph:
    """A chain whose second op has a rule that loses a size."""

    @ad.op(elementwise=True)
    def doubled(xp: Any, x: Any) -> Any:
        return x + x

    @doubled.shape_rule
    def doubled_shape(x: Any) -> Any:
        return (None, *x[1:])

    def f(x: Any) -> Any:
        h = doubled(x * 2.0)
        return ops.tanh(h) + 1.0

    return ad.record(f, np.zeros((2, 3)))


@pytest.mark.parametrize(
    "make",
    [aw.ShapeInferenceView, aw.FusionView, lambda graph: aw.PlanView(ad.plan(graph))],
    ids=["shapes", "fusion", "plan"],
)
def test_a_picture_without_a_player_shows_the_end(make: Callable[[Graph], View]) -> None:
    graph = GRAPHS["joint mlp"]
    view = make(graph)
    svg = ET.fromstring(view.svg())
    shown = {element.get("data-op"): element.get("data-s") for element in svg.iter() if element.get("data-s")}
    assert shown == last_states(view)


# ------------------------------------------------------------------------------------------------------------- shapes


def test_every_node_shows_the_shape_and_dtype_that_the_rules_say(graph: Graph) -> None:
    view = aw.ShapeInferenceView(graph)
    inference = ad.infer_shapes(graph)
    shown = last_texts(view, "shape")
    for node in graph:
        shape = shape_words(inference.shapes[node.id])
        assert f"{shape} {inference.dtypes[node.id]}".removeprefix("() ") == shown[f"n{node.serial}"]


def test_nothing_is_shown_of_a_shape_before_its_rule_was_asked(graph: Graph) -> None:
    view = aw.ShapeInferenceView(graph)
    for number, frame in enumerate(view.frames[:-1]):
        shown = {key for (key, slot) in view.scene.texts_at(number) if slot == "shape" and key.startswith("n")}
        assert shown == set(keys(graph)[:number]), frame.caption


def test_a_size_with_a_name_travels_as_that_name_and_has_a_state_of_its_own() -> None:
    view = aw.ShapeInferenceView(LAYER, shapes={"x": ("batch", 4)})
    shown, states = last_texts(view, "shape"), last_states(view)
    named = {key for key, text in shown.items() if "batch" in text and key.startswith("n")}
    assert len(named) == 6 and {states[key] for key in named} == {"ready"}
    assert {states[key] for key in set(keys(LAYER)) - named} == {"done"}


def test_a_rule_that_loses_a_size_is_marked_and_all_that_follows_is_unknown() -> None:
    graph = losing()
    view = aw.ShapeInferenceView(graph)
    states = last_states(view)
    assert [node.label for node in graph if states[f"n{node.serial}"] == "wrong"] == ["doubled"]
    assert [node.label for node in graph if states[f"n{node.serial}"] == "waiting"] == ["tanh", "add"]
    assert any("doubled_shape" in frame.caption and "loses a dimension" in frame.caption for frame in view.frames)
    assert "`doubled_shape` of `doubled`" in view.frames[-1].caption


def test_a_shape_that_fits_nowhere_ends_the_picture_at_its_node_with_the_reason() -> None:
    view = aw.ShapeInferenceView(LAYER, shapes={"v": (5, 2)})
    states, failing = last_states(view), next(node for node in LAYER if node.label == "matmul" and node.id > 5)
    assert states[f"n{failing.serial}"] == "wrong"
    assert not any(f"n{node.serial}" in states for node in LAYER.nodes[failing.id + 1 :])
    caption = view.frames[-1].caption
    assert all(text in caption for text in ("matmul_shape", "(5, 2)", "test_pass_views.py"))
    assert view.inference is None and len(elements(view)) > 0


def test_a_function_whose_shapes_do_not_fit_is_drawn_as_far_as_it_goes() -> None:
    view = aw.ShapeInferenceView(layer, np.zeros((8, 4)), np.zeros((5, 3)), np.zeros(3), np.zeros((3, 2)))
    assert [node.label for node in view.graph][-1] == "matmul"
    assert last_states(view)[f"n{view.graph.nodes[-1].serial}"] == "wrong"
    assert "matmul_shape" in view.frames[-1].caption


def test_a_function_that_branches_on_a_value_is_drawn_up_to_there() -> None:
    view = aw.ShapeInferenceView(lambda x: x if ops.exp(x) > 0 else -x, 2.0)
    assert [node.label for node in view.graph] == ["input", "exp", "constant", "greater"]
    assert "ops.where" in view.frames[-1].caption


def test_the_answer_to_each_question_about_a_shape_is_what_the_rule_says(graph: Graph) -> None:
    view = aw.ShapeInferenceView(graph)
    asked = [(frame.question, event) for frame, event in zip(view.frames[1:], view.events, strict=False)]
    ops = [event for event in view.events if isinstance(event, events.ShapeInferred) and event.rule]
    assert sum(question is not None for question, _ in asked) == min(len(ops), MOST)
    for question, event in asked:
        assert isinstance(event, events.ShapeInferred)
        assert question is None or event.rule
        if question is not None:
            assert dict(question.choices)[question.right] == shape_words(event.shape)
            assert len(dict(question.choices)) == len(question.choices) >= 2


@pytest.mark.parametrize("error", [TypeError, ValueError], ids=["array", "unknown input"])
def test_what_has_no_shapes_to_infer_is_refused(error: type[Exception]) -> None:
    with pytest.raises(error):
        aw.ShapeInferenceView(np.ones(3)) if error is TypeError else aw.ShapeInferenceView(LAYER, shapes={"q": (1,)})


def test_recording_until_an_error_gives_the_same_graph_where_there_is_none() -> None:
    graph, error = ad.record_until_error(mlp_loss, *mlp_arguments())
    assert error is None and graph == ad.record(mlp_loss, *mlp_arguments())


def test_a_refused_call_that_the_function_caught_is_no_part_of_the_graph() -> None:
    def f(x: Any) -> Any:
        try:
            return x @ np.ones((7, 7))
        except ad.OpError:
            raise RuntimeError("something else") from None

    graph, error = ad.record_until_error(f, np.ones((2, 3)))
    assert isinstance(error, RuntimeError) and [node.label for node in graph] == ["input", "constant"]


# ------------------------------------------------------------------------------------------------------------- fusion


def shown_parts(view: View) -> set[str]:
    return {key for key, state in last_states(view).items() if key.endswith("~group") and state == "done"}


def test_the_regions_at_the_end_are_the_groups(graph: Graph) -> None:
    view, fusion = aw.FusionView(graph), ad.fuse(graph)
    several = [group for group in fusion.groups if len(group.nodes) > 1]
    inside = {node: group.number for group in several for node in group.nodes}
    nodes = {f"n{graph.nodes[node].serial}~group" for node in inside}
    edges = {
        f"n{graph.nodes[source].serial}>n{node.serial}.{place}~group"
        for node in graph
        for place, source in enumerate(node.inputs)
        if node.id in inside and inside.get(source) == inside[node.id]
    }
    assert shown_parts(view) == nodes | edges
    assert {key for key in elements(view) if key.startswith("group:")} == {
        region_key(group.number) for group in several
    }


def test_every_op_says_at_last_in_which_kernel_it_is_and_whether_it_is_written(graph: Graph) -> None:
    shown = last_texts(aw.FusionView(graph), "kernel")
    for group in ad.fuse(graph).groups:
        for node in group.nodes:
            written = ", written" if len(group.nodes) > 1 and node in group.outputs else ""
            assert shown[f"n{graph.nodes[node].serial}"] == f"kernel {group.number}{written}"


def test_every_pair_has_a_frame_with_its_reason_and_a_question_with_its_answer(graph: Graph) -> None:
    view = aw.FusionView(graph)
    pairs = [event for event in view.events if isinstance(event, events.NeighboursCompared)]
    assert {(p.producer, p.consumer, p.reason) for p in pairs} == {
        (p.producer, p.consumer, p.reason) for p in ad.fuse(graph).neighbours
    }
    for frame, pair in zip(view.frames[1:], pairs, strict=False):
        assert pair.text in frame.caption
        right = "joined" if pair.reason == "joined" else "border"
        assert frame.question is None or frame.question.right == right
    assert sum(frame.question is not None for frame in view.frames) == min(len(pairs), MOST)


def test_every_edge_between_ops_says_why_it_is_joined_or_a_border(graph: Graph) -> None:
    facts = aw.FusionView(graph).scene.facts
    for pair in ad.fuse(graph).neighbours:
        for place, source in enumerate(graph.nodes[pair.consumer].inputs):
            if source == pair.producer:
                rows = dict(facts[f"n{graph.nodes[source].serial}>n{graph.nodes[pair.consumer].serial}.{place}"])
                assert rows["because"] == pair.text and ("border" in rows["is"]) == (pair.reason != "joined")


def test_groups_move_fewer_bytes_and_single_kernels_as_many_as_before(graph: Graph) -> None:
    fusion = ad.fuse(graph)
    before, after = moved(fusion)
    assert (after < before) == any(len(group.nodes) > 1 for group in fusion.groups)


def test_a_border_because_of_an_unknown_shape_looks_otherwise_than_others() -> None:
    view = aw.FusionView(losing())
    states = last_states(view)
    assert {state for key, state in states.items() if ">" in key and not key.endswith("~group")} == {"wrong"}
    assert view.frames[-1].caption.startswith("Nothing is joined: 4 kernels")


def test_a_fusion_that_writes_nothing_twice_is_drawn_as_it_is() -> None:
    fusion = ad.fuse(GRAPHS["joint mlp"], write_shared=False)
    view = aw.FusionView(fusion)
    assert view.fusion.groups == fusion.groups != ad.fuse(GRAPHS["joint mlp"]).groups


def test_of_many_pairs_the_groups_are_stepped_through() -> None:
    graph = ad.record(chain(MOST_PAIRS + 2), 0.5)
    view = aw.FusionView(graph)
    assert [frame.question for frame in view.frames] == [None] * 3
    assert len(shown_parts(view)) == 2 * MOST_PAIRS + 3


def test_what_ran_stands_beside_each_group() -> None:
    graph = GRAPHS["joint mlp"]
    number = next(group.number for group in ad.fuse(graph).groups if len(group.nodes) > 1)
    chosen = events.LoopChosen(number, "mul+sum", "blocked NumPy", "that is the default")
    view = aw.FusionView(graph, [chosen])
    assert last_texts(view, "loop") == {region_key(number): "blocked NumPy"}
    assert ("because", "that is the default") in view.scene.facts[region_key(number)]


# -------------------------------------------------------------------------------------------------------------- plans


PLANS: dict[str, Callable[[], Any]] = {
    **{name: (lambda name=name: ad.plan(GRAPHS[name])) for name in ("mlp", "joint mlp", "joint residual")},
    "joint mlp, not fused": lambda: ad.plan(GRAPHS["joint mlp"], fuse=False),
    "layer": lambda: ad.plan(LAYER),
}


@pytest.fixture(params=PLANS, ids=str)
def plan(request: pytest.FixtureRequest) -> Any:
    return PLANS[request.param]()


def test_a_frame_for_each_step_marks_its_row_and_what_it_reads_and_writes(plan: Any) -> None:
    view = aw.PlanView(plan)
    assert len(view.frames) == len(plan.steps) + 2
    serials = [f"n{node.serial}" for node in plan.graph]
    drawn = elements(view)
    for step in plan.steps:
        states = view.scene.states_at(step.number + 1)
        assert [key for key, state in states.items() if state == "active" and key.startswith("step.")] == [
            f"step.{step.number}"
        ]
        reads = {serials[node] for node in step.reads if serials[node] in drawn}
        assert {states[key] for key in reads} <= {"used", "active"}


def test_every_lifetime_has_a_bar_that_is_long_as_it_lives_and_bars_of_a_buffer_do_not_overlap(plan: Any) -> None:
    chart = aw.PlanView(plan).chart
    bars = [bar for bar in chart.bars if not bar.is_view]
    assert {bar.node for bar in bars} == {life.node for life in plan.lifetimes}
    for bar in bars:
        assert bar.first <= bar.start < bar.end <= bar.last + 1
    for row in range(chart.rows):
        ordered = sorted((bar for bar in bars if bar.row == row), key=lambda bar: bar.start)
        assert all(one.end <= other.start + 1e-9 for one, other in pairwise(ordered))


def test_a_value_is_not_in_sight_before_the_step_that_writes_it(plan: Any) -> None:
    view = aw.PlanView(plan)
    for bar in view.chart.bars:
        assert bar.key not in view.scene.states_at(bar.first)
        assert bar.key in view.scene.states_at(bar.first + 1)


def test_what_is_shown_of_memory_is_what_the_plan_says(plan: Any) -> None:
    view = aw.PlanView(plan)
    assert max(view.chart.in_use) <= plan.peak_bytes and view.chart.fresh[-1] == plan.bytes_without_reuse
    for buffer in plan.buffers:
        assert f"buffer.{buffer.number}" in view.scene.facts
    gone = [key for key in view.scene.facts if key.endswith("~gone")]
    assert len(gone) == len(plan.folded) + len(plan.shared) + len(plan.dropped)


def test_the_answer_to_each_question_about_memory_is_where_the_value_lies(plan: Any) -> None:
    view = aw.PlanView(plan)
    places = {life.node: life.buffer for life in plan.lifetimes if not life.name.startswith("inside ")}
    for step, frame in zip(plan.steps, view.frames[1:], strict=False):
        if frame.question is not None:
            buffer = next(places[node] for node in step.writes if node in places)
            assert frame.question.right == ("own" if buffer is None else f"buffer.{buffer}")


def test_a_node_of_the_graph_is_selected_in_the_plan_too(plan: Any) -> None:
    drawn = set(elements(aw.PlanView(plan)))
    for step in plan.steps:
        for node in step.nodes[-60:]:
            assert f"n{plan.graph.nodes[node].serial}~step" in drawn


@pytest.mark.parametrize("wrong", [GRAPHS["mlp"], 3.0], ids=["graph", "number"])
def test_what_is_no_plan_is_refused_with_what_to_pass(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"(?s)PlanView: expected a Plan.*ad\.plan\(graph\)"):
        aw.PlanView(wrong)


# --------------------------------------------------------------------------------------------------------- large graphs


def training_step() -> Graph:
    """Forward, backward and Adam's update of a Transformer with two blocks."""
    model, rule = TransformerLM(11, context=8, width=16, heads=2, blocks=2, seed=0), Adam()
    tokens = np.zeros((2, 8), np.int64)

    def step(parameters: Any, state: Any, x: Any, y: Any) -> Any:
        loss, gradients = ad.value_and_grad(lambda p: ops.cross_entropy(model.with_parameters(p)(x), y))(parameters)
        return loss, *rule.update(parameters, gradients, state)

    return ad.record(step, model.values(), rule.initial_state(model.values()), tokens, tokens)


@pytest.mark.slow
def test_a_training_step_of_a_transformer_fits_into_a_notebook_and_a_browser() -> None:
    graph = training_step()
    assert len(graph) > 1000
    views = {
        "shapes": aw.ShapeInferenceView(graph),
        "fusion": aw.FusionView(graph),
        "plan": aw.PlanView(ad.plan(graph)),
    }
    for name, view in views.items():
        assert len(json.dumps(view.scene.as_json())) < 4_000_000, name
        for pane in view.scene.panes:
            assert float(ET.fromstring(pane.svg).attrib["width"]) < 20_000, name
    assert len(views["fusion"].frames) < 200
    assert set(keys(graph)) <= set(elements(views["fusion"]))
