"""Answers to the exercises of lesson 10, right and wrong: what the checks are tested on."""

from __future__ import annotations

import graphlib
from collections import deque

Graph = dict[str, list[str]]  # node -> its inputs, one entry for each use

# -------------------------------------------------------------------------------------- what a solution can look like


def topological_order(graph: dict[str, list[str]]) -> list[str]:
    """All nodes of the graph, each node once and after all its inputs."""
    order: list[str] = []
    entered: set[str] = set()
    for root in graph:
        stack = [(root, False)]
        while stack:
            node, inputs_are_done = stack.pop()
            if inputs_are_done:
                order.append(node)
            elif node not in entered:
                entered.add(node)
                stack.append((node, True))
                stack.extend((source, False) for source in graph[node])
    return order


def by_counting(graph: Graph) -> list[str]:
    """Kahn's algorithm: a node joins the queue when the last input that it waited for is done."""
    waiting_for = {node: len(inputs) for node, inputs in graph.items()}
    users = _users(graph)
    queue = deque(node for node in graph if waiting_for[node] == 0)
    order = []
    while queue:
        order.append(queue.popleft())
        for user in users[order[-1]]:
            waiting_for[user] -= 1
            if waiting_for[user] == 0:
                queue.append(user)
    return order


def by_depth(graph: Graph) -> list[str]:
    """Sorted by the length of the longest path from an input of the program."""
    return sorted(graph, key=depths(graph).__getitem__)


def depths(graph: Graph) -> dict[str, int]:
    """For each node the number of operations on the longest path to it."""
    depth = dict.fromkeys(graph, 0)
    for node in by_counting(graph):
        depth[node] = max((depth[source] + 1 for source in graph[node]), default=0)
    return depth


def by_passes(graph: Graph) -> tuple[str, ...]:
    """Again and again over what is left, taking every node whose inputs are all taken."""
    order: dict[str, None] = {}
    left = list(graph)
    while left:
        order.update((node, None) for node in left if all(source in order for source in graph[node]))
        left = [node for node in left if node not in order]
    return tuple(order)


def by_standard_library(graph: Graph) -> list[str]:
    """Python has it in a module of its own."""
    return list(graphlib.TopologicalSorter(graph).static_order())


def _users(graph: Graph) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {node: [] for node in graph}
    for node, inputs in graph.items():
        for source in inputs:
            users[source].append(node)
    return users


# ---------------------------------------------------------------------------------------------------- wrong solutions


def breadth_first(graph: Graph) -> list[str]:
    """Level by level from the outputs, then turned round."""
    order = [node for node, users in _users(graph).items() if not users]
    for node in order:
        order.extend(source for source in dict.fromkeys(graph[node]) if source not in order)
    return order[::-1]


def breadth_first_from_the_inputs(graph: Graph) -> list[str]:
    """Level by level from the inputs of the program."""
    users = _users(graph)
    order = [node for node in graph if not graph[node]]
    for node in order:
        order.extend(user for user in dict.fromkeys(users[node]) if user not in order)
    return order


def pre_order(graph: Graph) -> list[str]:
    """Depth first, but a node is written down on the way in; then turned round."""
    order: dict[str, None] = {}
    stack = [node for node, users in _users(graph).items() if not users]
    while stack:
        node = stack.pop()
        if node not in order:
            order[node] = None
            stack.extend(graph[node])
    return list(order)[::-1]


def consumers_first(graph: Graph) -> list[str]:
    """The order of the backward pass."""
    return topological_order(graph)[::-1]


def without_memory(graph: Graph) -> list[str]:
    """A node is written down once for every path that leads to it."""
    order = []
    stack = [(node, False) for node, users in _users(graph).items() if not users]
    while stack:
        node, inputs_are_done = stack.pop()
        if inputs_are_done:
            order.append(node)
        else:
            stack.append((node, True))
            stack.extend((source, False) for source in graph[node])
    return order


def seen_when_left(graph: Graph) -> list[str]:
    """A node counts as seen only when its inputs are done, so it is entered again on every path before that."""
    order: dict[str, None] = {}
    for root in graph:
        stack = [(root, False)]
        while stack:
            node, inputs_are_done = stack.pop()
            if inputs_are_done:
                order[node] = None
            else:
                stack.append((node, True))
                stack.extend((source, False) for source in graph[node])
    return list(order)


def three_rounds(graph: Graph) -> list[str]:
    """Sorted by levels that three rounds over the graph have raised."""
    return _by_rounds(graph, 3)


def six_rounds(graph: Graph) -> list[str]:
    """Sorted by levels that six rounds over the graph have raised."""
    return _by_rounds(graph, 6)


def _by_rounds(graph: Graph, rounds: int) -> list[str]:
    level = dict.fromkeys(graph, 0)
    for _ in range(rounds):
        for node in graph:
            level[node] = max((level[source] + 1 for source in graph[node]), default=0)
    return sorted(graph, key=level.__getitem__)


def moved_twice(graph: Graph) -> list[str]:
    """Twice over the list, moving each node behind the last of its inputs."""
    order = list(graph)
    for _ in range(2):
        for node in list(order):
            order.remove(node)
            order.insert(max((order.index(source) + 1 for source in graph[node]), default=0), node)
    return order


def recursive(graph: Graph) -> list[str]:
    """The lecture's ``build_topo``."""
    order: dict[str, None] = {}

    def visit(node: str) -> None:
        if node not in order:
            for source in graph[node]:
                visit(source)
            order[node] = None

    for node in graph:
        visit(node)
    return list(order)


def from_one_output(graph: Graph) -> list[str]:
    """Only what the first output needs."""
    needed: set[str] = set()
    stack = [node for node, users in _users(graph).items() if not users][:1]
    while stack:
        node = stack.pop()
        needed.add(node)
        stack.extend(source for source in graph[node] if source not in needed)
    return [node for node in topological_order(graph) if node in needed]


def double_edges_lost(graph: Graph) -> list[str]:
    """Counts every use of an input, but tells each consumer only once."""
    waiting_for = {node: len(inputs) for node, inputs in graph.items()}
    order = [node for node in graph if not graph[node]]
    users = _users(graph)
    for node in order:
        for user in dict.fromkeys(users[node]):
            waiting_for[user] -= 1
            if waiting_for[user] == 0:
                order.append(user)
    return order


def double_edges_counted_off(graph: Graph) -> list[str]:
    """Counts each input once, and counts off every use of it."""
    waiting_for = {node: len(set(inputs)) for node, inputs in graph.items()}
    order = [node for node in graph if not graph[node]]
    users = _users(graph)
    for node in order:
        for user in users[node]:
            waiting_for[user] -= 1
            if waiting_for[user] == 0:
                order.append(user)
    return order


def from_the_first_key(graph: Graph) -> list[str]:
    """One search, from where the dictionary begins."""
    order: list[str] = []
    entered: set[str] = set()
    stack = [(node, False) for node in list(graph)[:1]]
    while stack:
        node, inputs_are_done = stack.pop()
        if inputs_are_done:
            order.append(node)
        elif node not in entered:
            entered.add(node)
            stack += [(node, True), *((source, False) for source in graph[node])]
    return order


def as_written(graph: Graph) -> list[str]:
    """The order in which the graph was written down."""
    return list(graph)


def emptying(graph: Graph) -> list[str]:
    """Takes finished inputs out of the caller's own lists."""
    order = [node for node in graph if not graph[node]]
    users = _users(graph)
    for node in order:
        for user in users[node]:
            graph[user].remove(node)
            if not graph[user]:
                order.append(user)
    return order


def alphabetical(graph: Graph) -> list[str]:
    """Sorted by name."""
    return sorted(graph)


def nothing(graph: Graph) -> list[str]:
    """Nothing gets into the list."""
    return []


def returned_too_early(graph: Graph) -> list[str]:
    """The return stands inside the loop."""
    for node in topological_order(graph):
        return [node]
    return []


def operations_only(graph: Graph) -> list[str]:
    """The inputs of the program are left out."""
    return [node for node in topological_order(graph) if graph[node]]


def last_one_lost(graph: Graph) -> list[str]:
    """A slice that ends one too early."""
    return topological_order(graph)[:-1]


def what_is_used(graph: Graph) -> list[str]:
    """What nobody uses, the outputs, is left out."""
    users = _users(graph)
    return [node for node in topological_order(graph) if users[node]]


def not_of_nothing(graph: Graph) -> list[str]:
    """Begins with the first node of the graph, which need not exist."""
    next(iter(graph))
    return topological_order(graph)
