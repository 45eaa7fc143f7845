"""Repeated blocks: found by structure, drawn as one box a phase, opened to one block; what differs is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import autodiff_widgets as aw
import numpy as np
import pytest
from autodiff_widgets.collapsing import collapsed
from autodiff_widgets.graph_view import LARGE
from autodiff_widgets.repeats import Repeat, repeats_of, structure
from autodiff_widgets.scene import Scene

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.graph import Graph, is_topological_order
from autodiff_lab.layers import MLP, TransformerLM
from autodiff_lab.optimizers import Adam
from tests.drawn_graphs import GRAPHS, HOSTILE, joint, mlp_arguments, mlp_loss
from tests.test_every_view import elements
from tests.test_layers import TOKENS, loss_of


@cache
def transformer(blocks: int) -> Graph:
    model = TransformerLM(6, context=5, width=4, heads=2, blocks=blocks, seed=0)
    return joint(loss_of(model), model.values(), TOKENS)


def mlp(*widths: int) -> Graph:
    model = MLP(*widths, activation=ops.tanh, seed=0)
    return joint(loss_of(model), model.values(), np.ones((4, widths[0]), np.float32))


def chain_of(names: list[str], step: Callable[[Any, int], Any] = lambda x, _: ops.tanh(x * 2.0)) -> Graph:
    """A chain of scopes with these names, each around the same ops."""

    def f(x: Any) -> Any:
        for number, name in enumerate(names):
            with ad.name_scope(name):
                x = step(x, number)
        return x.sum()

    return joint(f, np.ones((2, 2)))


def nested(x: Any) -> Any:
    for block in range(3):
        with ad.name_scope(f"encoder.block{block}"):
            for head in range(2):
                with ad.name_scope(f"head{head}"):
                    x = ops.tanh(x * 2.0)
            x = ops.exp(-x)
    return x.sum()


def trained(w: Any, state: Any, x: Any) -> Any:
    def loss(w: Any) -> Any:
        h = x
        for name, each in w.items():
            with ad.name_scope(name):
                h = ops.tanh(h @ each["weight"])
        return h.sum()

    value, gradients = ad.value_and_grad(loss)(w)
    return value, Adam(0.1).update(w, gradients, state)


FOUND: dict[str, tuple[Callable[[], Graph], list[tuple[str, int]]]] = {
    "a Transformer of 2 blocks": (lambda: transformer(2), [("block × 2", 31)]),
    "a Transformer of 12 blocks": (lambda: transformer(12), [("block × 12", 31)]),
    "a loop of 12 layers": (lambda: joint(mlp_loss, *mlp_arguments(12)), [("layer × 12", 3)]),
    "an MLP of one width, whose activations have no scope": (lambda: mlp(8, 8, 8, 8), [("layer × 2", 3)]),
    "an MLP whose ends are narrower": (lambda: mlp(3, 8, 8, 8, 8, 2), [("layer × 3", 3)]),
    "an MLP of other widths": (lambda: mlp(3, 5, 7, 2), []),
    "blocks that share a weight": (lambda: GRAPHS["joint residual"], [("block × 3", 3)]),
    "scopes without numbers": (lambda: chain_of(["stem", "body", "crown"]), [("stem … crown × 3", 2)]),
    "numbers alone": (lambda: chain_of(["blocks.0", "blocks.1"]), [("blocks × 2", 2)]),
    "one scope inside the other": (lambda: joint(nested, 0.5), [("block × 3", 6)]),
    "parameters that are constants": (
        lambda: ad.record(MLP(8, 8, 8, 8, 8, seed=0), np.zeros((1, 8), np.float32)),
        [("layer × 3", 3)],
    ),
    "no scopes": (lambda: GRAPHS["joint diamond"], []),
    "no nodes": (lambda: Graph((), (), ()), []),
}


@pytest.fixture(scope="module", params=FOUND, ids=str)
def found(request: pytest.FixtureRequest) -> tuple[Graph, tuple[Repeat, ...], list[tuple[str, int]]]:
    make, expected = FOUND[request.param]
    graph = make()
    return graph, repeats_of(graph), expected


Found = tuple[Graph, tuple[Repeat, ...], list[tuple[str, int]]]


def test_repeats_are_found_by_structure(found: Found) -> None:
    _, repeats, expected = found
    assert [(one.name, len(one.ops(0, "forward"))) for one in repeats] == expected


def test_no_node_is_in_two_blocks(found: Found) -> None:
    for one in found[1]:
        nodes = [*one.shared, *(node for block in one.blocks for node in block)]
        assert len(nodes) == len(set(nodes)) == len(one.nodes)


def test_every_block_has_the_graph_of_the_first_in_the_forward_pass(found: Found) -> None:
    for one in found[1]:
        first, *others = (structure(one.graph, one.ops(n, "forward")) for n in range(len(one.blocks)))
        assert others and all(other == first for other in others)
        assert not list(one.differences("forward"))


def test_the_collapsed_graph_is_in_order_and_keeps_every_node(found: Found) -> None:
    graph, repeats, _ = found
    small, stands_for = collapsed(graph, (), repeats)
    assert is_topological_order(small, range(len(small))) and set(stands_for) == {node.id for node in graph}
    assert sum(node.attributes.get("collapsed", 1) for node in small) == len(graph)
    boxes = [node for node in small if node.attributes.get("repeat")]
    phases = [phase for phase in ("forward", "backward") if any(node.phase == phase for node in graph)]
    assert {(node.name, node.phase) for node in boxes} == {(one.name, phase) for one in repeats for phase in phases}
    assert len(boxes) == len(phases) * len(repeats)


def test_a_value_that_goes_from_block_to_block_is_drawn_outside_of_the_box() -> None:
    graph = joint(mlp_loss, *mlp_arguments(3))
    (repeat,) = repeats_of(graph)
    assert graph.node("x").id not in repeat.nodes
    assert {graph.node(f"params[{n}][0]").id for n in range(3)} <= repeat.nodes


def test_updates_are_a_box_of_their_own_with_the_state_that_only_they_read() -> None:
    w = {f"layer{number}": {"weight": np.eye(3)} for number in range(4)}
    graph = ad.record(trained, w, Adam(0.1).initial_state(w), np.ones((2, 3)))
    (repeat,) = repeats_of(graph)
    small, _ = collapsed(graph, (), [repeat])
    assert [node.phase for node in small if node.attributes.get("repeat")] == ["forward", "backward", "update"]


def test_a_block_of_another_shape_parts_the_row_and_is_named_with_the_difference() -> None:
    def step(x: Any, number: int) -> Any:
        return ops.tanh(x * 2.0) if number != 3 else ops.tanh(x.reshape((4, 1)) * 2.0).reshape((2, 2))

    graph = chain_of([f"block{number}" for number in range(1, 8)], step)
    repeats = repeats_of(graph)
    assert [one.scopes for one in repeats] == [("block1", "block2", "block3"), ("block5", "block6", "block7")]
    assert {one.neighbours for one in repeats} == {(("block4", "4 ops instead of 2"),)}
    assert {one.name for one in repeats} == {"block × 3"}
    view = aw.GraphView(graph, collapse="repeats")
    assert len(boxes(view.scene)) == len(set(boxes(view.scene))) == 4


def test_what_differs_is_the_first_op_that_does() -> None:
    reasons = {
        one.neighbours[0][1]
        for step in (
            lambda x, n: ops.tanh(x * 2.0) if n else ops.exp(x * 2.0),
            lambda x, n: ops.tanh(x * 2.0) if n else ops.tanh(x * 3.0),
        )
        for one in repeats_of(chain_of(["block0", "block1", "block2"], step))
    }
    assert reasons == {"exp instead of tanh", "other attributes, constants or wiring"}


def test_blocks_that_differ_only_on_the_way_back_stay_together_and_the_facts_say_so() -> None:
    view = aw.GraphView(transformer(2))
    forward, backward = (dict(view.scene.facts[key]) for key in boxes(view.scene))
    assert forward["inside"] == "2 × 31 ops" and backward["inside"] == "231 ops"
    assert backward["differs"] == "block2: 115 ops instead of 116" and "differs" not in forward
    assert forward["own inputs"] == "2 × 16 arrays, 488 numbers, 1952 B in all"


def test_a_large_graph_collapses_its_repeats_by_itself_with_a_note() -> None:
    graph = transformer(2)
    assert len(graph) > LARGE
    by_itself, whole = aw.GraphView(graph), aw.GraphView(graph, collapse=())
    note = "Blocks of the same structure are drawn as one box: block × 2."
    assert note in by_itself.frames[0].caption and note in by_itself.scene.panes[0].svg
    assert boxes(by_itself.scene) and not boxes(whole.scene) and len(by_itself.frames) < len(whole.frames) / 4
    small = aw.GraphView(joint(mlp_loss, *mlp_arguments(3)))
    assert not boxes(small.scene) and note[:20] not in small.frames[0].caption


def test_a_large_graph_with_repeats_begins_as_an_overview_whose_other_scopes_are_boxes_too() -> None:
    view = aw.GraphView(transformer(12))
    assert {scope for scope in view.collapsed if "." not in scope} == {"token", "place", "norm", "head", "loss"}
    assert len([key for key in elements(view) if ">" not in key]) < 30
    view.selected = next(key for key in view.scene.facts if key.startswith("scope:norm#"))
    assert "norm" not in view.collapsed and boxes(view.scene)
    assert aw.GraphView(transformer(12), collapse="repeats").collapsed == ()


def test_where_nothing_is_repeated_asking_for_it_draws_every_node_and_says_so() -> None:
    view = aw.GraphView(GRAPHS["joint diamond"], collapse="repeats")
    assert not boxes(view.scene) and "No two blocks in a row" in view.frames[0].caption


def test_a_box_has_one_step_in_each_phase_that_says_what_it_stands_for() -> None:
    view = aw.GraphView(transformer(12))
    said = [frame.caption for frame in view.frames if "stands for" in frame.caption]
    assert said == [
        f"`block × 12` stands for `block1` to `block12`, which have the same structure: {ops} ops in the {phase} pass."
        for ops, phase in ((372, "forward"), (1391, "backward"))
    ]
    states = view.scene.states_at(len(view.frames) - 1)
    assert all(states[key] == "done" for key in boxes(view.scene))


def test_no_sentence_names_a_node_that_is_inside_a_box() -> None:
    view = aw.GraphView(transformer(2))
    hidden = [f"(node {node})" for one in repeats_of(view.graph) for node in one.nodes]
    said = " ".join([frame.caption + (frame.question.text if frame.question else "") for frame in view.frames])
    assert not [name for name in hidden if name in said]


def test_a_box_opens_to_one_block_in_all_phases_with_the_keys_and_facts_of_the_whole_graph() -> None:
    view = aw.GraphView(transformer(2))
    whole = aw.GraphView(view.graph, collapse=())
    (repeat,) = repeats_of(view.graph)
    for key in boxes(view.scene):
        inside = view.inside(key)
        drawn = keys_of(inside)
        assert {f"n{view.graph.nodes[node].serial}" for node in repeat.blocks[0]} <= drawn
        assert all(inside.facts[node] == whole.scene.facts[node] for node in drawn if node.startswith("n"))
        json.dumps(inside.as_json())
    assert "block1, one of 2 blocks" in inside.title


def test_sentences_inside_a_block_call_nodes_as_outside() -> None:
    view = aw.GraphView(transformer(2))
    inside = {frame.caption for frame in view.inside(boxes(view.scene)[0]).frames[1:-1]}
    outside = {frame.caption for frame in aw.GraphView(view.graph, collapse=()).frames}
    own = [caption for caption in inside if " is an input: " not in caption]  # a result from outside comes as an input
    assert own and set(own) <= outside


def test_nested_repeats_open_level_by_level() -> None:
    def deep(x: Any) -> Any:
        for block in range(2):
            with ad.name_scope(f"block{block}"):
                for layer in range(80):
                    with ad.name_scope(f"layer{layer}"):
                        x = ops.tanh(x * 2.0)
        return x.sum()

    view = aw.GraphView(joint(deep, 0.5))
    block = view.inside(boxes(view.scene)[0])
    assert boxes(block) and "layer × 80" in block.panes[0].svg
    layer = view.inside(boxes(block)[0])
    assert not boxes(layer) and "block0.layer0, one of 80 blocks" in layer.title
    assert not set(boxes(view.scene)) & set(boxes(block))


def test_the_browser_is_answered_when_it_opens_a_box() -> None:
    view = aw.GraphView(transformer(2))
    key = boxes(view.scene)[0]
    view.opened = key
    assert view.inner[key] == view.inside(key).as_json() and view.opened is None
    with pytest.raises(KeyError, match="has nothing inside"):
        view.inside("n1")


def test_collapsing_a_scope_around_repeats_takes_their_place() -> None:
    view = aw.GraphView(joint(nested, 0.5), collapse="repeats")
    assert boxes(view.scene)
    view.collapsed = ("encoder",)
    assert not boxes(view.scene) and any(key.startswith("scope:encoder#") for key in view.scene.facts)
    view.collapsed = ()
    assert boxes(view.scene)


def test_a_row_that_would_wait_for_itself_is_not_collapsed() -> None:
    graph = joint(mlp_loss, *mlp_arguments(3))
    (repeat,) = repeats_of(graph)
    every_other = Repeat(graph, repeat.scopes[::2], repeat.blocks[::2], (), ())
    small, _ = collapsed(graph, (), [every_other])
    assert len(small) == len(graph)


def test_hostile_names_of_repeated_scopes_are_shown_as_text() -> None:
    names = [f"{name}{number}" for name in HOSTILE if name.strip() and "." not in name for number in range(2)]
    view = aw.GraphView(chain_of(names), collapse="repeats")
    assert len(boxes(view.scene)) >= 2
    for key in boxes(view.scene):
        scene = view.inside(key)
        json.dumps(scene.as_json(), ensure_ascii=False).encode()
        assert keys_of(scene)
    assert elements(view)


def keys_of(scene: Scene) -> set[str]:
    """The keys of the nodes and boxes that a scene draws."""
    return {key for key in elements(aw.View(scene)) if ">" not in key and not key.startswith("scope:")}


def boxes(scene: Scene) -> list[str]:
    """The boxes of a scene that can be opened; its ops can be opened too."""
    return [key for key in scene.opens if key.startswith("scope:")]
