"""Properties of orders of a graph: what tells a right order of nodes, and what wrong ones have in common."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from .computation_graph_answers import depths

Graph = dict[str, list[str]]  # node -> its inputs, one entry for each use


def is_topological_order(order: Any, graph: Graph) -> bool:
    """Whether the order is a list or tuple with each node once, every node after all its inputs."""
    if not isinstance(order, list | tuple) or len(order) != len(graph):
        return False
    if not all(is_node(node, graph) for node in order) or set(order) != set(graph):
        return False
    place = {node: number for number, node in enumerate(order)}
    return all(place[source] < place[node] for node, inputs in graph.items() for source in inputs)


def is_node(node: Any, graph: Graph) -> bool:
    """Whether this is a name of the graph, also as NumPy's text."""
    return isinstance(node, str) and node in graph


def only_repeats(order: Sequence[Any], graph: Graph) -> bool:
    """Nodes of the graph, some of them more than once."""
    return (
        isinstance(order, list | tuple) and all(is_node(node, graph) for node in order) and len(set(order)) < len(order)
    )


def missing(order: Sequence[Any], graph: Graph) -> set[str]:
    """The nodes that are not in the order."""
    return set(graph) - set(order)


def wrong_at_a_double_edge(order: Sequence[Any], graph: Graph) -> bool:
    """Every node that is missing, or comes too early, has an input twice, or waits for a node that is missing."""
    lost, place = missing(order, graph), {node: number for number, node in enumerate(order)}
    early = {n for n in place if any(place.get(source, -1) > place[n] for source in graph[n])}
    return bool(lost | early) and all(len(set(graph[n])) < len(graph[n]) or lost & set(graph[n]) for n in lost | early)


def from_one_place(order: Sequence[Any], graph: Graph) -> bool:
    """Nodes are missing: there are only those that one end of the list needs, or only those that need it."""
    ends = {*order[:1], *order[-1:]} if missing(order, graph) else ()
    return any(_reached_from(end, after) == set(order) for end in ends for after in (graph, _users(graph)))


def _reached_from(start: str, after: Graph) -> set[str]:
    reached, waiting = {start}, [start]
    while waiting:
        new = set(after[waiting.pop()]) - reached
        reached |= new
        waiting += new
    return reached


def deep(order: Sequence[Any], graph: Graph) -> bool:
    """Some node has more than three operations before it, one after the other."""
    return max(depths(graph).values(), default=0) > 3


def level_by_level(order: Sequence[Any], graph: Graph) -> bool:
    """The shortest distance from the inputs never falls along the order, or that to the outputs never rises."""
    from_inputs = _distances(graph, _users(graph))
    to_outputs = _distances(_users(graph), graph)
    return all(from_inputs[a] <= from_inputs[b] for a, b in pairwise(order)) or all(
        to_outputs[a] >= to_outputs[b] for a, b in pairwise(order)
    )


def waits_for_one(order: Sequence[Any], graph: Graph) -> bool:
    """Every node comes after one of its inputs, or every node comes before one of its consumers."""
    place = {node: number for number, node in enumerate(order)}
    users = _users(graph)
    return all(place[n] > min(place[i] for i in graph[n]) for n in graph if graph[n]) or all(
        place[n] < max(place[u] for u in users[n]) for n in graph if users[n]
    )


def _users(graph: Graph) -> Graph:
    users: Graph = {node: [] for node in graph}
    for node, inputs in graph.items():
        for source in inputs:
            users[source].append(node)
    return users


def _distances(before: Graph, after: Graph) -> dict[str, int]:
    """The number of edges on the shortest way from a node that has nothing before it."""
    distance = {node: 0 for node in before if not before[node]}
    reached = list(distance)
    for node in reached:
        for following in after[node]:
            if following not in distance:
                distance[following] = distance[node] + 1
                reached.append(following)
    return distance
