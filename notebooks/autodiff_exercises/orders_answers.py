"""Answers to the exercises on orders of lesson 30, right and wrong: what their checks are tested on."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations
from typing import Any

Graph = dict[str, list[str]]  # node -> its inputs, one entry for each use


def consumers_of(graph: Graph) -> Graph:
    """For each node the nodes that use it, once per use."""
    consumers: Graph = {node: [] for node in graph}
    for node, inputs in graph.items():
        for source in inputs:
            consumers[source].append(node)
    return consumers


# -------------------------------------------------------------------------------------- what solutions can look like


def legal_next(graph: dict[str, list[str]], done: list[str]) -> list[str]:
    """The nodes whose rules may run next in the backward sweep, when those of done have run."""
    waiting = {source for node, inputs in graph.items() if node not in done for source in inputs}
    return [node for node in graph if node not in done and node not in waiting]


def by_consumers(graph: Graph, done: list[str]) -> set[str]:
    """By the definition: all consumers are done."""
    consumers = consumers_of(graph)
    return {node for node in graph if node not in done and all(one in done for one in consumers[node])}


def by_counting(graph: Graph, done: list[str]) -> tuple[str, ...]:
    """Count the uses, and count down those that are done."""
    left = Counter(source for inputs in graph.values() for source in inputs)
    left.subtract(source for node in done for source in graph[node])
    return tuple(node for node in graph if node not in done and left[node] == 0)


def count_orders(graph: dict[str, list[str]]) -> int:
    """How many topological orders the graph has."""
    known = {}

    def ways_on(done):
        if len(done) == len(graph):
            return 1
        if done not in known:
            legal = [node for node in graph if node not in done and done.issuperset(graph[node])]
            known[done] = sum(ways_on(done | {node}) for node in legal)
        return known[done]

    return ways_on(frozenset())


def by_permutations(graph: Graph) -> int:
    """Try them all."""
    return sum(
        all(order.index(source) < place for place, node in enumerate(order) for source in graph[node])
        for order in permutations(graph)
    )


def by_sets(graph: Graph) -> int:
    """From size to size: in how many ways each set of nodes can be done first."""
    ways = Counter({frozenset[str](): 1})
    for _ in graph:
        longer: Counter[frozenset[str]] = Counter()
        for done, count in ways.items():
            for node in graph:
                if node not in done and done.issuperset(graph[node]):
                    longer[done | {node}] += count
        ways = longer
    return sum(ways.values())


# ----------------------------------------------------------------------------------- wrong solutions of "legal next"


def only_one(graph: Graph, done: list[str]) -> list[str]:
    """The node that some order has next."""
    return legal_next(graph, done)[:1]


def forward_ready(graph: Graph, done: list[str]) -> list[str]:
    """Inputs for consumers: what the forward pass could run."""
    return [node for node in graph if node not in done and all(source in done for source in graph[node])]


def one_consumer_is_enough(graph: Graph, done: list[str]) -> list[str]:
    """Every node to which some contribution has come."""
    consumers = consumers_of(graph)
    return [n for n in graph if n not in done and (not consumers[n] or any(one in done for one in consumers[n]))]


def done_again(graph: Graph, done: list[str]) -> list[str]:
    """Those that are done are legal for ever."""
    consumers = consumers_of(graph)
    return [node for node in graph if all(one in done for one in consumers[node])]


def once_for_every_edge(graph: Graph, done: list[str]) -> list[str]:
    """A node is written down for each of the edges that it waited for."""
    legal = legal_next(graph, done)
    uses = Counter(source for node in done for source in graph[node])
    return [node for node in legal for _ in range(max(uses[node], 1))]


def never_begins(graph: Graph, done: list[str]) -> list[str]:
    """Looks only at the inputs of what is done, so that nothing can be first."""
    reached = {source for node in done for source in graph[node]}
    return [node for node in legal_next(graph, done) if node in reached]


def marks_them_done(graph: Graph, done: list[str]) -> list[str]:
    """Writes its answer into the caller's list, too."""
    legal = legal_next(graph, done)
    done += legal
    return legal


def operations_only(graph: Graph, done: list[str]) -> list[str]:
    """Nodes without inputs have no rule."""
    return [node for node in legal_next(graph, done) if graph[node]]


def unused_only(graph: Graph, done: list[str]) -> list[str]:
    """What nobody uses, whoever is done."""
    consumers = consumers_of(graph)
    return [node for node in graph if node not in done and not consumers[node]]


def edges_counted_off_once(graph: Graph, done: list[str]) -> list[str]:
    """Counts every use, and takes off one for each consumer that is done."""
    left = Counter(source for inputs in graph.values() for source in inputs)
    left.subtract(source for node in done for source in set(graph[node]))
    return [node for node in graph if node not in done and left[node] == 0]


def consumers_counted_off_twice(graph: Graph, done: list[str]) -> list[str]:
    """Counts each consumer once, and takes off every use by those that are done."""
    left = Counter(source for inputs in graph.values() for source in set(inputs))
    left.subtract(source for node in done for source in graph[node])
    return [node for node in graph if node not in done and left[node] <= 0]


# ------------------------------------------------------------------------------ wrong solutions of "count the orders"


def always_one(graph: Graph) -> int:
    """There is one order."""
    return 1


def every_order(graph: Graph) -> int:
    """All orders of the nodes, edges or not."""
    return math.factorial(len(graph))


def level_by_level(graph: Graph) -> int:
    """One level after the other, any order inside a level."""
    depth: dict[str, int] = {}
    left = list(graph)
    while left:
        for node in left:
            if all(source in depth for source in graph[node]):
                depth[node] = 1 + max((depth[source] for source in graph[node]), default=0)
        left = [node for node in left if node not in depth]
    return math.prod(math.factorial(size) for size in Counter(depth.values()).values())


def part_by_part(graph: Graph) -> int:
    """The orders of parts that do not touch are multiplied."""
    consumers, left, product = consumers_of(graph), dict.fromkeys(graph), 1
    while left:
        part = [next(iter(left))]
        for node in part:
            part += [one for one in dict.fromkeys(graph[node] + consumers[node]) if one not in part]
        product *= count_orders({node: graph[node] for node in graph if node in part})
        left = dict.fromkeys(node for node in left if node not in part)
    return product


def choices_for_every_edge(graph: Graph) -> int:
    """A node that is used twice by one operation makes that operation legal twice."""
    consumers = consumers_of(graph)

    def ways_on(done: frozenset[str], legal: list[str]) -> int:
        if not legal:
            return 1
        total = 0
        for node in legal:
            now = done | {node}
            new = [one for one in consumers[node] if now.issuperset(graph[one])]
            total += ways_on(now, [one for one in legal if one != node] + new)
        return total

    return ways_on(frozenset(), [node for node in graph if not graph[node]])


def as_text(graph: Graph) -> Any:
    """The number, said in words."""
    return f"{count_orders(graph)} orders"


def choices_along_one_way(graph: Graph, place: int) -> int:
    """The product of the numbers of choices, where always the first node is taken (or the last, for −1)."""
    done: list[str] = []
    product = 1
    while len(done) < len(graph):
        legal = forward_ready(graph, done)
        product *= len(legal)
        done.append(legal[place])
    return product


def first_way(graph: Graph) -> int:
    """Multiplies the choices along the way that always takes the first."""
    return choices_along_one_way(graph, 0)


def none_of_nothing(graph: Graph) -> int:
    """Without nodes there is nothing to count."""
    return count_orders(graph) if graph else 0


def up_to_seven(graph: Graph) -> int:
    """Gives up where it would take long."""
    return count_orders(graph) if len(graph) < 8 else 1
