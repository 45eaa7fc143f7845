"""Repairs of the patients with a wrong sweep, right and wrong: what their checks are tested on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import repairs as repaired

Array = np.ndarray
Edges = list[tuple[str, str, float]]
Graph = dict[str, list[str]]
backward_order: Callable[[Graph], list[str]] = repaired.backward_order

# -------------------------------------------------------------------------------------------------------------- sweep


def sweep_by_asking(edges: Edges) -> dict[str, float]:
    """Each node asks its consumers, and remembers."""
    known = {edges[0][0]: 1.0}

    def gradient(name: str) -> float:
        if name not in known:
            known[name] = sum(gradient(consumer) * slope for consumer, source, slope in edges if source == name)
        return known[name]

    return {name: gradient(name) for edge in edges for name in edge[:2]}


def sweep_first_wins(edges: Edges) -> dict[str, float]:
    """Keeps what came first."""
    gradients = {edges[0][0]: 1.0}
    for consumer, source, slope in edges:
        gradients.setdefault(source, gradients[consumer] * slope)
    return gradients


def sweep_once_for_each_pair(edges: Edges) -> dict[str, float]:
    """Adds, but two edges between the same two nodes are taken for one."""
    gradients = {edges[0][0]: 1.0}
    for (consumer, source), slope in {(consumer, source): slope for consumer, source, slope in edges}.items():
        gradients[source] = gradients.get(source, 0.0) + gradients[consumer] * slope
    return gradients


def sweep_adds_slopes(edges: Edges) -> dict[str, float]:
    """Adds, and forgets what arrived at the consumer."""
    gradients = {edges[0][0]: 1.0}
    for _consumer, source, slope in edges:
        gradients[source] = gradients.get(source, 0.0) + slope
    return gradients


def sweep_begins_with_one(edges: Edges) -> dict[str, float]:
    """Every gradient begins with 1, as that of the output."""
    gradients = {edges[0][0]: 1.0}
    for consumer, source, slope in edges:
        gradients[source] = gradients.get(source, 1.0) + gradients[consumer] * slope
    return gradients


def sweep_of_different_edges(edges: Edges) -> dict[str, float]:
    """Edges that are equal in all are counted once."""
    collected: dict[str, float] = {edges[0][0]: 1.0}
    for consumer, source, slope in dict.fromkeys(edges):
        collected[source] = collected.get(source, 0.0) + collected[consumer] * slope
    return collected


def sweep_with_zero_as_one(edges: Edges) -> dict[str, float]:
    """Takes a gradient of 0 for one that is not there yet."""
    gradients = {edges[0][0]: 1.0}
    for consumer, source, slope in edges:
        gradients[source] = gradients.get(source, 0.0) + (gradients[consumer] or 1.0) * slope
    return gradients


def sweep_mean(edges: Edges) -> dict[str, float]:
    """The mean of what arrives."""
    gradients, counts = {edges[0][0]: 1.0}, {edges[0][0]: 1}
    for consumer, source, slope in edges:
        counts[source] = counts.get(source, 0) + 1
        before = gradients.get(source, 0.0)
        gradients[source] = before + (gradients[consumer] * slope - before) / counts[source]
    return gradients


# ----------------------------------------------------------------------------------------------------- backward_order


def _users(graph: Graph) -> Graph:
    return {node: [user for user, inputs in graph.items() if node in inputs] for node in graph}


def order_by_longest_way(graph: Graph) -> tuple[str, ...]:
    """Sorted by the longest way from an output."""
    users, depth = _users(graph), dict.fromkeys(graph, 0)
    waiting = dict.fromkeys(graph)
    while waiting:
        for node in [one for one in waiting if not any(user in waiting for user in users[one])]:
            depth[node] = max((depth[user] + 1 for user in users[node]), default=0)
            del waiting[node]
    return tuple(sorted(graph, key=depth.__getitem__))


def order_of_the_forward_pass(graph: Graph) -> list[str]:
    """Inputs first."""
    return backward_order(graph)[::-1]


def order_with_every_meeting(graph: Graph) -> list[str]:
    """A node is written down each time that it is met."""
    users = _users(graph)
    order = [node for node in graph if not users[node]]
    for node in order:
        order += graph[node]
    return order


def order_moved_to_the_end(graph: Graph) -> list[str]:
    """A node that is met again moves to the end, without what was computed from it."""
    users = _users(graph)
    order = [node for node in graph if not users[node]]
    seen = set(order)
    for node in order:
        for source in graph[node]:
            if source not in seen:
                order.append(source)
                seen.add(source)
            elif order.index(source) > order.index(node):
                order.remove(source)
                order.append(source)
    return order


def order_counting_users(graph: Graph) -> list[str]:
    """Counts the operations that use a node, and counts down for each use."""
    waits_for = {node: sum(node in inputs for inputs in graph.values()) for node in graph}
    order = [node for node in graph if waits_for[node] == 0]
    for node in order:
        for source in graph[node]:
            waits_for[source] -= 1
            if waits_for[source] == 0:
                order.append(source)
    return order


def order_depth_first(graph: Graph) -> list[str]:
    """Written down on entering."""
    users, order = _users(graph), []
    stack = [node for node in graph if not users[node]]
    while stack:
        node = stack.pop()
        if node not in order:
            order.append(node)
            stack += graph[node]
    return order


def order_from_one_output(graph: Graph) -> list[str]:
    """Begins at the first output only."""
    users = _users(graph)
    output = next(node for node in graph if not users[node])
    needed = [output]
    for node in needed:
        needed += [source for source in dict.fromkeys(graph[node]) if source not in needed]
    return [node for node in backward_order(graph) if node in needed]
