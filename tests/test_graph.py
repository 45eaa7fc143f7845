"""The two topological orders of a graph, and what they tell."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import autodiff_lab as ad
from autodiff_lab import events
from autodiff_lab.graph import Graph, Node, Source

FLOAT = np.dtype(np.float64)


def random_graph(edges: list[list[int]]) -> Graph:
    """A graph whose node i reads the earlier nodes ``edges[i]``; the outputs are the nodes that nobody reads."""
    add = ad.registry["add"]
    nodes = [
        Node(i, "op" if inputs else "input", f"n{i}", (), FLOAT, op=add if inputs else None, inputs=tuple(inputs))
        for i, inputs in enumerate(edges)
    ]
    read = {source for inputs in edges for source in inputs}
    inputs = tuple(node.id for node in nodes if node.kind == "input")
    return Graph(tuple(nodes), inputs, tuple(i for i in range(len(nodes)) if i not in read))


@st.composite
def graphs(draw: Any) -> Graph:
    count = draw(st.integers(1, 30))
    edges = [draw(st.lists(st.integers(0, i - 1), max_size=3)) if i else [] for i in range(count)]
    return random_graph(edges)


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_both_algorithms_give_an_order_that_networkx_accepts_too(graph: Graph) -> None:
    oracle = networkx.MultiDiGraph(list(graph.edges))
    oracle.add_nodes_from(node.id for node in graph)
    for algorithm in (ad.depth_first_order, ad.kahn_order):
        order = algorithm(graph)
        assert ad.is_topological_order(graph, order)
        place = {node: i for i, node in enumerate(order)}
        assert all(place[a] < place[b] for a, b in oracle.edges())
        assert order == algorithm(graph)


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_replaying_the_events_of_depth_first_search_gives_its_stack_and_order(graph: Graph) -> None:
    told: list[Any] = []
    order = ad.depth_first_order(graph, told.append)
    stack: list[int] = []
    finished: list[int] = []
    for event in told:
        if isinstance(event, events.NodeEntered):
            assert event.via == (stack[-1] if stack else None)
            stack.append(event.node)
        elif isinstance(event, events.NodeFinished):
            assert stack.pop() == event.node and event.position == len(finished)
            finished.append(event.node)
        else:
            assert isinstance(event, events.NodeSeenAgain) and event.via == stack[-1]
            assert event.node in finished or event.node in stack
    assert finished == order and not stack


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_replaying_the_events_of_kahns_algorithm_gives_its_queue_counts_and_order(graph: Graph) -> None:
    told: list[Any] = []
    order = ad.kahn_order(graph, told.append)
    waiting: dict[int, int] = {}
    queue: list[int] = []
    done: list[int] = []
    for event in told:
        match event:
            case events.DependenciesCounted(node, count):
                assert count == len(graph.nodes[node].inputs)
                waiting[node] = count
            case events.NodeEnqueued(node):
                assert waiting[node] == 0
                queue.append(node)
            case events.NodeDequeued(node, position):
                assert queue.pop(0) == node and position == len(done)
                done.append(node)
            case events.DependencyDone(node, consumer, count):
                assert node == done[-1]
                waiting[consumer] -= 1
                assert waiting[consumer] == count
            case _:
                pytest.fail(f"unexpected event {event}")
    assert done == order and not queue


@pytest.mark.parametrize("order", [[0, 2, 1, 3], [0, 1, 2], [0, 1, 2, 2], [0, 1, 2, 4], [3, 2, 1, 0]])
def test_a_wrong_order_is_not_accepted(order: list[int]) -> None:
    graph = random_graph([[], [0], [1], [0, 2]])
    assert ad.is_topological_order(graph, [0, 1, 2, 3])
    assert not ad.is_topological_order(graph, order)


def test_depth_first_search_leaves_out_what_no_output_needs() -> None:
    graph = ad.record(lambda x, unused: x * 2.0, 1.0, 1.0)
    assert 1 not in ad.depth_first_order(graph)
    assert 1 in ad.kahn_order(graph)


def test_a_chain_of_fifty_thousand_is_ordered_without_recursion() -> None:
    chain = random_graph([[], *([i] for i in range(50_000))])
    assert ad.depth_first_order(chain) == ad.kahn_order(chain) == list(range(50_001))


def test_a_source_line_reads_well_from_a_file_and_from_a_notebooks_cell() -> None:
    assert str(Source("/home/me/model.py", 3, "f", "h = x * w")) == "model.py:3 in f: h = x * w"
    assert str(Source(r"C:\Temp\ipykernel_7\358716.py", 2, "<module>", "h = x * w")) == "line 2: h = x * w"
