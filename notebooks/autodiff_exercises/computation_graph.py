"""Exercises of lesson 10, a program is a graph: topological order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from random import Random
from string import ascii_lowercase
from typing import Any

from . import computation_graph_answers as answers
from .exercise import (
    CHANGED_ARGUMENTS,
    RECURSION,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Case,
    Exercise,
    Misconception,
    Wrong,
    case,
)

Graph = dict[str, list[str]]  # node -> its inputs, one entry for each use

# --------------------------------------------------------------------------------------------------- what tells right


def is_topological_order(order: Any, graph: Graph) -> bool:
    """Whether the order is a list or tuple with each node once, every node after all its inputs."""
    if not isinstance(order, list | tuple) or not all(type(node) is str for node in order):
        return False
    if sorted(order) != sorted(graph):
        return False
    place = {node: number for number, node in enumerate(order)}
    return all(place[source] < place[node] for node, inputs in graph.items() for source in inputs)


# ------------------------------------------------------------------------------------------------ what explains wrong

Property = Callable[[Sequence[Any], Graph], bool]


def _every(has: Property) -> Callable[[Sequence[Wrong]], bool]:
    """Whether all wrong orders have a property, which is then what the student believed."""
    return lambda wrong: all(has(one.answer, one.case.arguments[0]) for one in wrong if not one.failure)


def _some(has: Property) -> Callable[[Sequence[Wrong]], bool]:
    return lambda wrong: any(has(one.answer, one.case.arguments[0]) for one in wrong if not one.failure)


def _missing(order: Sequence[Any], graph: Graph) -> set[str]:
    return set(graph) - set(order)


def _missing_behind_a_double_edge(order: Sequence[Any], graph: Graph) -> bool:
    """Every missing node has an input twice, or waits for a node that is missing."""
    missing = _missing(order, graph)
    return bool(missing) and all(len(set(graph[n])) < len(graph[n]) or missing & set(graph[n]) for n in missing)


def _level_by_level(order: Sequence[Any], graph: Graph) -> bool:
    """The shortest distance from the inputs never falls along the order, or that to the outputs never rises."""
    from_inputs = _distances(graph, _users(graph))
    to_outputs = _distances(_users(graph), graph)
    return all(from_inputs[a] <= from_inputs[b] for a, b in pairwise(order)) or all(
        to_outputs[a] >= to_outputs[b] for a, b in pairwise(order)
    )


def _waits_for_one(order: Sequence[Any], graph: Graph) -> bool:
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


MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RECURSION,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Misconception(
        "not a list",
        "Your function should return a list of node names. If you gather the order in something else, or return an "
        "iterator such as `reversed(...)`, turn it into a list.",
        _some(lambda order, graph: not isinstance(order, list | tuple)),
    ),
    Misconception(
        "not a node",
        "There is something in your list that is no node of the graph. The list holds the names, which are the "
        "keys of the dictionary, and nothing else.",
        _some(lambda order, graph: not all(type(node) is str and node in graph for node in order)),
    ),
    Misconception(
        "once for every path",
        "A node stands in your list more than once. A graph is not a tree: several paths lead to a value that is "
        "used several times, yet it is computed once. Remember where you have been.",
        _some(lambda order, graph: len(set(order)) < len(order)),
    ),
    Misconception(
        "x * x is one edge",
        "Nodes are missing behind an operation that uses one value twice. `x * x` has two edges from `x`: if you "
        "count two before, count two off afterwards, or count each input once in both places.",
        _every(_missing_behind_a_double_edge),
    ),
    Misconception(
        "one output is all",
        "Nodes are missing. A graph can have several outputs, and parts that do not touch: one search from one "
        "place does not reach them all.",
        _some(lambda order, graph: bool(_missing(order, graph))),
    ),
    Misconception(
        "the written order will do",
        "You return the nodes in the order in which the dictionary holds them. Nobody promised that a graph is "
        "written down in an order in which it can be computed.",
        _every(lambda order, graph: list(order) == list(graph)),
    ),
    Misconception(
        "consumers first",
        "Your order is right backwards: results come before what they are computed from. That is the order of the "
        "backward pass; asked for is the forward one.",
        _every(lambda order, graph: is_topological_order(list(order)[::-1], graph)),
    ),
    Misconception(
        "breadth-first is enough",
        "You go level by level. The level counts the shortest way to a node, but a node has to wait for its "
        "longest: a skip connection makes the two differ. (On a plain chain they agree, which is why this fault "
        "can stay hidden.)",
        _every(_level_by_level),
    ),
    Misconception(
        "one neighbour is enough",
        "You write a node down when the search first meets it, so it waits for one of its neighbours. It has to "
        "wait for all: write it down when everything that it needs is in the list.",
        _every(_waits_for_one),
    ),
    Misconception(
        "too early",
        "Some node comes before a value that it is computed from. What must be in the list before a node may follow?",
        lambda wrong: True,
    ),
)

# -------------------------------------------------------------------------------------------------- what is called on

SHAPES: tuple[tuple[str, list[list[int]]], ...] = (  # node 0, 1, … with the numbers of its inputs
    ("one operation", [[], [0]]),
    ("a value used twice by one operation", [[], [0, 0]]),
    ("a value used twice by one operation", [[], [0, 0], [1, 0, 1]]),
    ("two outputs", [[], [0], [0]]),
    ("parts that do not touch", [[], [], [0], [1]]),
    ("a diamond", [[], [0], [0], [1, 2]]),
    ("a skip connection", [[], [0], [1], [2, 0]]),
    ("a skip connection", [[], [0], [1], [0, 2]]),
)


def cases(random: Random, large: bool) -> Iterator[Case]:
    """Graphs from small to deep, their names and the order in which they are written drawn at random."""
    for check, shape in SHAPES:
        yield _graph_case(check, shape, random, written_backwards=True)
    for number in range(40 if large else 20):
        size = 4 + number // (3 if large else 4)
        shape = [random.choices(range(n), k=random.choice((1, 2, 2, 3))) if n > 1 else [] for n in range(size)]
        yield _graph_case("random graphs", shape, random)
    depth = random.randint(6000, 7000) if large else 5000
    yield case(
        f"{depth:,} operations deep",
        f'{{"n{depth}": ["n{depth - 1}"], "n0": [], **{{f"n{{i}}": [f"n{{i - 1}}"] for i in range(1, {depth})}}}}',
    )


def _graph_case(check: str, shape: list[list[int]], random: Random, written_backwards: bool = False) -> Case:
    names = random.sample(ascii_lowercase, len(shape))
    nodes = list(range(len(shape)))[::-1]
    if not written_backwards:
        random.shuffle(nodes)
    return case(check, repr({names[node]: [names[source] for source in shape[node]] for node in nodes}))


EXERCISES = (
    Exercise(
        lesson="10_computation_graph",
        statement="""\
Write `topological_order(graph)`.

* `graph` is a dictionary. Each key is the name of a node; its value is the list of the node's inputs.
  `y = x * x` is `{"y": ["x", "x"], "x": []}`.
* Return a list that holds **each node once, every node after all its inputs**. Most graphs have several such orders:
  any of them is right.
* All nodes count: a graph can have several outputs, and parts that do not touch.
* It must not change `graph`, and it must manage a chain of 5,000 operations. (A check ends after 5 seconds.)""",
        hints=(
            "Which nodes can go first? Those that have no inputs. Which node may follow? One whose inputs are "
            "all in the list already. Find an order for the diamond with pencil and paper and notice what you "
            "keep looking up.",
            "There are two classical ways, and you have stepped through both. Counting: write for each node on how "
            "many inputs it waits, and count down. Depth first: go to the inputs before you write the node down. "
            "Choose one; both need a note of what is done.",
            'Depth first without recursion: keep a list as a stack, and put pairs on it, (node, False) for "look '
            'at its inputs first" and (node, True) for "its inputs are done, write it down". When you take '
            "(node, False) off, put (node, True) back and then its inputs on top. Start such a search from every "
            "node, and skip what has been entered.",
        ),
        solution=answers.topological_order,
        alternatives=(answers.by_counting, answers.by_depth, answers.by_passes, answers.by_standard_library),
        wrong=(
            (answers.breadth_first, "breadth-first is enough"),
            (answers.breadth_first_from_the_inputs, "breadth-first is enough"),
            (answers.pre_order, "one neighbour is enough"),
            (answers.consumers_first, "consumers first"),
            (answers.without_memory, "once for every path"),
            (answers.recursive, "recursion"),
            (answers.from_one_output, "one output is all"),
            (answers.double_edges_lost, "x * x is one edge"),
            (answers.as_written, "the written order will do"),
            (answers.emptying, "changes its argument"),
            (answers.alphabetical, "too early"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=is_topological_order,
    ),
)
