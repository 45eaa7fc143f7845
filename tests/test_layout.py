"""Laws of the ladder: what holds for every graph that is placed."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from autodiff_widgets.collapsing import collapsed, first_nodes, scopes_of
from autodiff_widgets.layout import Layout, is_leaf, place

import autodiff_lab as ad
from autodiff_lab.graph import Graph
from autodiff_lab.optimizers import Adam
from tests.drawn_graphs import GRAPHS, chain, joint, mlp_arguments, mlp_loss, residual

PLACED = {name: (graph, place(graph, lambda node: 60.0 + 7 * (node.id % 9))) for name, graph in GRAPHS.items()}


@pytest.fixture(params=PLACED, ids=str)
def placed(request: pytest.FixtureRequest) -> tuple[Graph, Layout]:
    return PLACED[request.param]


def test_every_node_has_a_box_and_every_use_a_line(placed: tuple[Graph, Layout]) -> None:
    graph, layout = placed
    assert [box.node for box in layout.boxes] == [node.id for node in graph]
    uses = [(i, node.id, place) for node in graph for place, i in enumerate(node.inputs)]
    assert sorted((line.source, line.consumer, line.argument) for line in layout.lines) == sorted(uses)


def test_boxes_do_not_overlap(placed: tuple[Graph, Layout]) -> None:
    _, layout = placed
    rows: dict[float, list] = {}  # type: ignore[type-arg]
    for box in layout.boxes:
        rows.setdefault(box.y, []).append(box)
    for row in rows.values():
        for left, right in pairwise(sorted(row, key=lambda box: box.x)):
            assert left.right < right.x
    for upper, lower in pairwise(sorted(rows)):
        assert max(box.bottom for box in rows[upper]) < lower


def test_everything_lies_on_the_page(placed: tuple[Graph, Layout]) -> None:
    _, layout = placed
    corners = [(box.x, box.y) for box in layout.boxes] + [(box.right, box.bottom) for box in layout.boxes]
    corners += [point for line in layout.lines for point in line.points]
    corners += [point for b in layout.bands for point in ((b.x, b.y), (b.x + b.width, b.y + b.height))]
    assert all(0 <= x <= layout.width and 0 <= y <= layout.height for x, y in corners)


def test_a_forward_node_is_above_its_consumers(placed: tuple[Graph, Layout]) -> None:
    graph, layout = placed
    for source, consumer in graph.edges:
        if graph.nodes[source].phase == graph.nodes[consumer].phase == "forward":
            assert layout.boxes[source].bottom < layout.boxes[consumer].y


def test_a_leaf_is_in_the_row_above_the_op_that_uses_it_first(placed: tuple[Graph, Layout]) -> None:
    graph, layout = placed
    tops = sorted({box.y for box in layout.boxes})
    for node in graph:
        users = [i for i in graph.consumers[node.id] if graph.nodes[i].phase == "forward"]
        if is_leaf(node) and node.phase == "forward" and users:
            assert tops.index(layout.boxes[node.id].y) == tops.index(layout.boxes[users[0]].y) - 1


def test_a_backward_node_is_right_of_all_forward_nodes_in_the_row_of_its_origin(placed: tuple[Graph, Layout]) -> None:
    graph, layout = placed
    edge = max(layout.boxes[node.id].right for node in graph if node.phase == "forward")
    for node in graph:
        if node.phase == "backward":
            assert layout.boxes[node.id].x > edge
            if node.origin is not None:
                assert layout.boxes[node.id].y == layout.boxes[node.origin].y


def test_backward_climbs(placed: tuple[Graph, Layout]) -> None:
    graph, layout = placed
    for source, consumer in graph.edges:
        if graph.nodes[source].phase == graph.nodes[consumer].phase == "backward":
            assert layout.boxes[source].y >= layout.boxes[consumer].y


def test_the_values_that_backward_reuses_are_the_rungs(placed: tuple[Graph, Layout]) -> None:
    graph, layout = placed
    for line in layout.lines:
        crosses = graph.nodes[line.source].phase == "forward" and graph.nodes[line.consumer].phase == "backward"
        assert (line.way == "saved") == crosses


def test_a_band_holds_the_ops_of_its_scope_and_no_other(placed: tuple[Graph, Layout]) -> None:
    graph, layout = placed
    for node in graph:
        box = layout.boxes[node.id]
        around = {b.scope for b in layout.bands if b.y < box.y and box.bottom < b.y + b.height}
        if node.kind == "op" and node.phase == "forward" and "." not in node.scope:
            assert around == ({node.scope} if node.scope else set())


def test_bands_nest_or_are_apart(placed: tuple[Graph, Layout]) -> None:
    _, layout = placed
    for one, two in combinations(layout.bands, 2):
        upper, lower = sorted((one, two), key=lambda band: band.y)
        inside = lower.y + lower.height < upper.y + upper.height and lower.scope.startswith(upper.scope + ".")
        assert inside or upper.y + upper.height < lower.y


def test_a_line_starts_at_its_source_and_ends_at_its_consumer(placed: tuple[Graph, Layout]) -> None:
    _, layout = placed
    for line in layout.lines:
        for node, (x, y) in ((line.source, line.points[0]), (line.consumer, line.points[-1])):
            box = layout.boxes[node]
            assert box.x - 1 <= x <= box.right + 1 and box.y - 1 <= y <= box.bottom + 1


def test_lines_of_one_value_used_twice_by_an_op_are_apart() -> None:
    layout = place(GRAPHS["square"])
    first, second = (line.points for line in layout.lines)
    assert abs(first[0][0] - second[0][0]) > 10 and abs(first[-1][0] - second[-1][0]) > 10


def test_the_layout_is_deterministic(placed: tuple[Graph, Layout]) -> None:
    graph, layout = placed
    assert place(graph, lambda node: 60.0 + 7 * (node.id % 9)) == layout


@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "chain of 300"])
def test_a_later_op_never_moves_an_earlier_row(name: str) -> None:
    graph = GRAPHS[name]
    whole = place(graph).boxes
    for count in range(1, len(graph)):
        part = first_nodes(graph, count)
        used = {i for node in part for i in node.inputs}
        for node, box in zip(part, place(part).boxes, strict=True):
            if not is_leaf(node) or node.id in used:  # a leaf waits at the top until something uses it
                assert box.y == whole[node.id].y


def test_a_chain_is_one_straight_column() -> None:
    layout = place(ad.record(chain(50), 1.0))
    assert len({round(box.centre) for box in layout.boxes}) == 1


def test_the_spine_of_a_network_is_straight_whatever_hangs_beside_it() -> None:
    graph = joint(mlp_loss, *mlp_arguments(20))
    layout = place(graph)
    spine = [layout.boxes[node.id].centre for node in graph if node.label == "tanh"]
    assert max(spine) - min(spine) < 2
    climb = [layout.boxes[node.id].centre for node in graph if node.name.startswith("∂h")]
    assert max(climb) - min(climb) < 2


def test_an_edge_that_passes_a_row_runs_in_a_lane_and_not_through_a_box() -> None:
    graph = ad.record(residual, np.ones((2, 2)), np.eye(2))
    layout = place(graph)
    for line in layout.lines:
        for (x, top), (_, bottom) in pairwise(line.points):
            for box in layout.boxes:
                if box.node not in (line.source, line.consumer) and top <= box.y and box.bottom <= bottom:
                    assert not box.x < x < box.right


def test_an_update_stands_in_the_row_of_its_gradient_and_not_with_all_others() -> None:
    rule = Adam()

    def step(parameters: Any, state: Any, x: Any, y: Any) -> Any:
        _, gradients = ad.value_and_grad(mlp_loss)(parameters, x, y)
        return rule.update(parameters, gradients, state)

    parameters, *data = mlp_arguments(6)
    graph = ad.record(step, parameters, rule.initial_state(parameters), *data)
    boxes = place(graph).boxes
    heights = [boxes[node.id].y for node in graph if node.name == "updated"]
    assert len(heights) == 12 and len(set(heights)) >= 6
    assert max(Counter(box.y for box in boxes).values()) < len(graph) / 4


def test_a_large_graph_is_placed_in_linear_space() -> None:
    layout = place(ad.record(chain(3000), 1.0))
    assert sum(len(line.points) for line in layout.lines) == 2 * 3000


def test_collapsing_keeps_a_valid_order_and_loses_no_node() -> None:
    for graph in GRAPHS.values():
        for scopes in (scopes_of(graph), scopes_of(graph)[:1]):
            small, stands_for = collapsed(graph, scopes)
            assert all(source < consumer for source, consumer in small.edges)
            assert set(stands_for) == {node.id for node in graph} and set(stands_for.values()) == set(range(len(small)))
            assert sum(node.attributes.get("collapsed", 1) for node in small) == len(graph)
