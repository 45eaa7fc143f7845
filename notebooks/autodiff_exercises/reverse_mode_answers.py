"""Answers to the exercise "backward on a graph" of lesson 30, right and wrong: what its check is tested on."""

from __future__ import annotations

import graphlib
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

Graph = dict[str, list[str]]  # node -> its inputs, one entry for each use
Rule = Callable[[str, Any], list[Any]]  # a node and its gradient -> one contribution for each of its inputs

# -------------------------------------------------------------------------------------- what a solution can look like


def backward(graph, rule, output, seed):
    """The gradient of the output for every node that it depends on, as {node: gradient}."""
    missing = {output: 0}  # how many contributions have not arrived yet
    reached = [output]
    for node in reached:
        for source in graph[node]:
            if source not in missing:
                missing[source] = 0
                reached.append(source)
            missing[source] += 1

    gradients = {output: seed}
    ready = [output]
    while ready:
        node = ready.pop()
        contributions = rule(node, gradients[node]) if graph[node] else []
        for source, contribution in zip(graph[node], contributions, strict=True):
            gradients[source] = gradients[source] + contribution if source in gradients else contribution
            missing[source] -= 1
            if missing[source] == 0:
                ready.append(source)
    return gradients


def _swept(graph: Graph, rule: Rule, order: list[str], gradients: dict[str, Any]) -> dict[str, Any]:
    """Run the rules in this order; a node that no gradient has reached is left out."""
    for node in order:
        if node in gradients and graph[node]:
            for source, contribution in zip(graph[node], rule(node, gradients[node]), strict=True):
                gradients[source] = gradients[source] + contribution if source in gradients else contribution
    return gradients


def by_standard_library(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """A topological order, read backwards; nodes that the output does not need get 0."""
    order = list(graphlib.TopologicalSorter(graph).static_order())[::-1]
    return {node: 0.0 for node in graph} | _swept(graph, rule, order, {output: seed})


def by_depth_first_search(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """The lecture's order, with a stack of its own."""
    order: list[str] = []
    entered: set[str] = set()
    stack = [(output, False)]
    while stack:
        node, inputs_are_done = stack.pop()
        if inputs_are_done:
            order.append(node)
        elif node not in entered:
            entered.add(node)
            stack += [(node, True), *((source, False) for source in graph[node])]
    return _swept(graph, rule, order[::-1], {output: seed})


# ---------------------------------------------------------------------------------------------------- wrong solutions


def _order(graph: Graph) -> list[str]:
    return list(graphlib.TopologicalSorter(graph).static_order())[::-1]


def last_path_wins(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """Each contribution takes the place of the one before."""
    gradients = {output: seed}
    for node in _order(graph):
        if node in gradients and graph[node]:
            gradients.update(zip(graph[node], rule(node, gradients[node]), strict=True))
    return gradients


def breadth_first(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """Level by level from the output, each node once."""
    order = [output]
    for node in order:
        order += [source for source in dict.fromkeys(graph[node]) if source not in order]
    return _swept(graph, rule, order, {output: seed})


def pre_order(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """Depth first, each node when the search first meets it."""
    order: dict[str, None] = {}
    stack = [output]
    while stack:
        node = stack.pop()
        if node not in order:
            order[node] = None
            stack.extend(graph[node])
    return _swept(graph, rule, list(order), {output: seed})


def every_path(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """A contribution is sent on as soon as it arrives: the right numbers, once for every path."""
    gradients: dict[str, Any] = {}
    waiting = deque([(output, seed)])
    while waiting:
        node, contribution = waiting.popleft()
        gradients[node] = gradients[node] + contribution if node in gradients else contribution
        if graph[node]:
            waiting.extend(zip(graph[node], rule(node, contribution), strict=True))
    return gradients


def recursive(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """The lecture's ``build_topo``."""
    order: dict[str, None] = {}

    def visit(node: str) -> None:
        if node not in order:
            for source in graph[node]:
                visit(source)
            order[node] = None

    visit(output)
    return _swept(graph, rule, list(order)[::-1], {output: seed})


def as_written(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """In the order of the dictionary, backwards."""
    return {node: 0.0 for node in graph} | _swept(graph, rule, list(graph)[::-1], {output: seed})


def in_place(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """Adds into the array that arrived first."""
    gradients = {output: seed}
    for node in _order(graph):
        if node in gradients and graph[node]:
            for source, contribution in zip(graph[node], rule(node, gradients[node]), strict=True):
                if source in gradients:
                    gradients[source] += contribution
                else:
                    gradients[source] = contribution
    return gradients


def inputs_as_a_set(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """Each input once, with the first contribution that there is for it."""
    gradients = {output: seed}
    for node in _order(graph):
        if node in gradients and graph[node]:
            sent = list(zip(graph[node], rule(node, gradients[node]), strict=True))
            for source, contribution in dict(reversed(sent)).items():
                gradients[source] = gradients[source] + contribution if source in gradients else contribution
    return gradients


def upstream_forgotten(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """Every rule starts from 1."""
    return _swept(graph, lambda node, g: rule(node, 1.0), _order(graph), {output: seed})


def seed_forgotten(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """The gradient of the output is 1."""
    return by_depth_first_search(graph, rule, output, 1.0)


def inputs_only(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """The gradients of the program's inputs."""
    return {node: g for node, g in backward(graph, rule, output, seed).items() if not graph[node]}


def seed_for_all(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """Every rule starts from the seed."""
    return _swept(graph, lambda node, g: rule(node, seed), _order(graph), {output: seed})


def every_path_by_factors(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """Asks each rule once, for the local derivatives, and then multiplies them along every path."""
    local = {
        node: rule(node, 1.0)
        for node in backward(graph, lambda n, g: [g for _ in graph[n]], output, 1.0)
        if graph[node]
    }
    return every_path(graph, lambda node, g: [g * factor for factor in local[node]], output, seed)


def waits_for_all(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """Waits for every consumer, also for those that the output does not need."""
    missing = {node: sum(inputs.count(node) for inputs in graph.values()) for node in graph} if len(graph) < 99 else {}
    gradients, ready = {output: seed}, [output]
    while ready:
        node = ready.pop()
        for source, contribution in zip(graph[node], rule(node, gradients[node]) if graph[node] else [], strict=True):
            gradients[source] = gradients[source] + contribution if source in gradients else contribution
            missing[source] = missing.get(source, 1) - 1
            if missing[source] == 0:
                ready.append(source)
    return gradients


def rules_of_inputs(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """Calls a rule for nodes without inputs, too."""
    gradients = {output: seed}
    for node in _order(graph):
        if node in gradients:
            for source, contribution in zip(graph[node], rule(node, gradients[node]), strict=False):
                gradients[source] = gradients[source] + contribution if source in gradients else contribution
    return gradients


def as_pairs(graph: Graph, rule: Rule, output: str, seed: Any) -> Any:
    """A list of pairs."""
    return list(backward(graph, rule, output, seed).items())


def summed_as_floats(graph: Graph, rule: Rule, output: str, seed: Any) -> dict[str, Any]:
    """Adds up Python's numbers."""
    gradients = dict.fromkeys(graph, 0.0)
    gradients[output] = seed
    for node in _order(graph):
        if np.any(gradients[node]) and graph[node]:
            for source, contribution in zip(graph[node], rule(node, gradients[node]), strict=True):
                gradients[source] += float(contribution)
    return gradients
