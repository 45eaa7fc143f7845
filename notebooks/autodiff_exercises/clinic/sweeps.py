"""Two patients of the bug clinic whose rules are right and whose sweep is wrong: in what it adds, and in its order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np

from .. import order_properties as properties
from ..exercise import (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Case,
    Misconception,
    Wrong,
    case,
    soon,
)
from . import bugs as sick
from . import repairs as repaired
from . import smallest_tests as tests
from . import sweeps_answers as answers
from .patients import Patient, gives

Edges = list[tuple[str, str, float]]
Graph = dict[str, list[str]]


def _edges(graph: Graph, random: Random) -> str:
    """The edges of a graph in an order in which rules run, each with a random slope."""
    edges = [
        (node, source, random.choice((-1, 1)) * random.choice((0.5, 0.75, 1.25, 1.5)))
        for node in answers.backward_order(graph)
        for source in graph[node]
    ]
    return repr(edges)


def _sweep_cases(random: Random, marking: bool) -> Iterator[Case]:
    for check, graph in (
        ("a value used twice by one operation", {"y": ["x", "x"], "x": []}),
        ("a value with two consumers", {"y": ["a", "b"], "a": ["x"], "b": ["x"], "x": []}),
        ("a chain", {"y": ["b"], "b": ["a"], "a": ["x"], "x": []}),
        ("a value that is used by three", {"y": ["a", "b", "x"], "a": ["x"], "b": ["a"], "x": []}),
    ):
        yield case(check, _edges(graph, random))
    slope = random.choice((0.5, 1.25, 1.5))
    yield case("two edges that look the same", repr([("y", "x", slope)] * 2))
    yield case("a gradient of 0", repr([("y", "a", slope), ("y", "a", -slope), ("y", "b", 1.0), ("a", "b", slope)]))
    for size in (6, 9, 12 if marking else 10):
        names = [f"v{n}" for n in range(size)]
        yield case("random graphs", _edges(_connected(names, random), random))


def _connected(names: Sequence[str], random: Random) -> Graph:
    """A random graph with one output, the last name: each node uses the one before it, and perhaps others."""
    graph = {names[0]: list[str]()}
    for before, name in pairwise(names):
        graph[name] = [before, *random.choices(list(graph), k=random.choice((0, 1, 2)))]
    return graph


def _scattered(names: Sequence[str], random: Random) -> Graph:
    """A random graph that may have several outputs and parts that do not touch."""
    graph: Graph = {}
    for name in names:
        graph[name] = random.choices(list(graph), k=random.choice((0, 1, 2, 2))) if graph else []
    return graph


def _is_sweep(answer: Any, edges: Edges) -> bool:
    """Whether every gradient is the sum of what the edges into its node bring: a consumer's gradient times a slope."""
    names = {name for edge in edges for name in edge[:2]}
    if not isinstance(answer, dict) or answer.keys() != names:
        return False
    if not all(isinstance(one, int | float | np.number) for one in answer.values()):
        return False
    total: dict[str, float] = defaultdict(float, {edges[0][0]: 1.0})
    size: dict[str, float] = defaultdict(lambda: 1e-300, {edges[0][0]: 1.0})
    for consumer, source, slope in edges:
        total[source] += answer[consumer] * slope
        size[source] += abs(answer[consumer] * slope)
    return all(bool(abs(answer[name] - total[name]) <= 1e-9 * size[name]) for name in names)


SWEEP = Patient(
    title="Patient 5: the last one wins",
    complaint="""\
The sweep. It is given a list of edges `(consumer, input, slope)`, in an order in which rules may run, beginning with the
output, whose gradient is 1. A contribution is the consumer's gradient times the slope. Return a dictionary with the gradient
of every node. On a perceptron it is right.""",
    sick=sick.sweep,
    repaired=repaired.sweep,
    catches=tests.catches_sweep,
    shows="[('y', 'x', 2.0), ('y', 'x', 3.0)]",
    hides="[('y', 'x', 2.0), ('x', 'w', 3.0)]",
    hidden=(
        "a chain is a network like any other",
        "Your test calls the sick function healthy. Where each value has one consumer, one contribution arrives, and it does "
        "not matter whether it is added or stored. Use a value twice.",
    ),
    test_hints=(
        "Where may storing and adding differ? How many contributions must arrive?",
        "One operation may use a value twice: `y = x + x`. How many edges is that?",
        "Two edges from `y` to `x`, both with slope 1. The gradient of `x` must be 2.",
    ),
    hints=(
        "Look at what happens to the first contribution when the second one comes.",
        "A node begins with 0, and everything that arrives is added.",
        "`gradients.get(source, 0.0)` is what has arrived so far. Add the contribution to that.",
    ),
    alternatives=(answers.sweep_by_asking,),
    wrong=(
        (answers.sweep_first_wins, "the first one wins"),
        (answers.sweep_once_for_each_pair, "two edges are one"),
        (answers.sweep_adds_slopes, "the gradient is the local derivative"),
        (answers.sweep_begins_with_one, "every gradient begins with one"),
        (answers.sweep_mean, "the mean of the contributions"),
        (answers.sweep_of_different_edges, "two edges are one"),
        (answers.sweep_with_zero_as_one, "a gradient of 0 is none"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        Misconception(
            "the first one wins",
            "Now the first contribution is kept, and what comes later is lost. All of them count.",
            gives(answers.sweep_first_wins),
        ),
        Misconception(
            "two edges are one",
            "You add what comes from different consumers, but an operation that uses a value twice has two edges to it, and "
            "both bring something.",
            lambda wrong: (
                gives(answers.sweep_once_for_each_pair)(wrong) or gives(answers.sweep_of_different_edges)(wrong)
            ),
        ),
        Misconception(
            "a gradient of 0 is none",
            "Where contributions cancel, a gradient is 0, and 0 is what it hands on. Ask whether something has arrived, not "
            "whether it counts as true.",
            gives(answers.sweep_with_zero_as_one),
        ),
        Misconception(
            "the gradient is the local derivative",
            "You add the slopes, and forget what arrived at the consumer. Each contribution is its gradient times the slope.",
            gives(answers.sweep_adds_slopes),
        ),
        Misconception(
            "every gradient begins with one",
            "Only the output begins with 1, because it moves itself. Every other node begins with 0.",
            gives(answers.sweep_begins_with_one),
        ),
        Misconception(
            "the mean of the contributions",
            "You average. If a value is used in two places, moving it moves both, and the effects add up.",
            gives(answers.sweep_mean),
        ),
        Misconception(
            "not the sum of what arrives",
            "Some node does not have the sum of what its edges bring, or is missing, or has something else than a number.",
            lambda wrong: True,
        ),
    ),
    cases=_sweep_cases,
    accepts=_is_sweep,
    size=len,
    unit="edges",
)


def _order_cases(random: Random, marking: bool) -> Iterator[Case]:
    for check, graph in (
        ("a skip connection", {"y": ["x", "a"], "a": ["x"], "x": []}),
        ("a chain", {"y": ["b"], "b": ["a"], "a": ["x"], "x": []}),
        ("two outputs", {"y": ["a"], "z": ["b"], "a": ["x"], "b": ["a", "x"], "x": []}),
        ("a value used twice by one operation", {"y": ["a", "a"], "a": ["b", "b"], "b": []}),
        (
            "a value used twice by one operation, and by another",
            {"y": ["x", "a", "x"], "a": ["b"], "b": ["x"], "x": []},
        ),
    ):
        yield case(check, _renamed(graph, random))
    for size, kind in ((6, _connected), (8, _scattered), (10, _connected), (14 if marking else 12, _scattered)):
        names = [f"v{n}" for n in range(size)]
        yield case("random graphs", _renamed(kind(names, random), random))
    depth = random.randint(40, 60)
    doubling = {f"d{n}": [f"d{n - 1}"] * 2 for n in range(depth, 0, -1)} | {"d0": []}
    yield soon(case("a deep graph of double edges", repr(doubling)))


def _renamed(graph: Graph, random: Random) -> str:
    """The graph as text, with other names and its entries in another order."""
    letters = random.sample("abcdefghijkmnpqrstuvwxyz", len(graph))
    names = dict(zip(graph, letters, strict=True))
    nodes = random.sample(list(graph), len(graph))
    return repr({names[node]: [names[source] for source in graph[node]] for node in nodes})


def _is_backward_order(answer: Any, graph: Graph) -> bool:
    return isinstance(answer, list | tuple) and properties.is_topological_order(answer[::-1], graph)


def _nodes_of(one: Wrong) -> Any:
    """The answer where it is a list of nodes of the graph, else None."""
    (graph,) = one.case.arguments
    is_list = isinstance(one.answer, list | tuple) and all(properties.is_node(node, graph) for node in one.answer)
    return one.answer if is_list else None


BACKWARD_ORDER = Patient(
    title="Patient 6: the wrong order",
    complaint="""\
The order of the backward sweep. A graph is a dictionary: each node with the list of its inputs. It looks like a proper
search: begin with the outputs, add what they use, each node once. This is the lecture's story B.""",
    sick=sick.backward_order,
    repaired=repaired.backward_order,
    catches=tests.catches_backward_order,
    shows="{'y': ['x', 'a'], 'a': ['x'], 'x': []}",
    hides="{'y': ['a'], 'a': ['x'], 'x': []}",
    hidden=(
        "a chain is a network like any other",
        "Your test calls the sick function healthy. The search goes level by level, and on a chain that is right. It is "
        "right even where a value has two consumers, if the search meets the later one of them first. Which node must be met "
        "too early?",
    ),
    test_hints=(
        "Three nodes are enough. One of them has to be used twice, by nodes of different depth.",
        "`y` uses `a` and `x`, and `a` uses `x`. In which order must the three come? Does the function find it?",
        "The order of the inputs matters: write `y` with the list x, a. Then the search meets `x` before `a`, although `a` "
        "still sends something to it. Compare the answer with the only right order.",
    ),
    hints=(
        "When may a node be written down? It is not enough that *somebody* who uses it is in the list.",
        "Count for each node how often it is used. Count down when a consumer has been written down.",
        "Write a node down when its count reaches 0. Outputs begin with 0. An operation that uses it twice counts twice.",
    ),
    alternatives=(answers.order_by_longest_way,),
    wrong=(
        (answers.order_of_the_forward_pass, "backward is forward"),
        (answers.order_with_every_meeting, "once for every path"),
        (answers.order_moved_to_the_end, "moving one node is enough"),
        (answers.order_depth_first, "on entering"),
        (answers.order_from_one_output, "there is one output"),
        (answers.order_counting_users, "x * x is one edge"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        Misconception(
            "once for every path",
            "Your list holds nodes more than once, or grows without end where values are used twice, layer upon layer: it "
            "goes along every path. A node is written down once.",
            lambda wrong: any(
                one.failure in ("no answer in time", "MemoryError", "RecursionError")
                or ((nodes := _nodes_of(one)) is not None and len(set(nodes)) < len(nodes))
                for one in wrong
            ),
        ),
        STOPS_WITH_ERROR,
        Misconception(
            "backward is forward",
            "Your order is that of the forward pass: inputs first. The backward sweep goes from the outputs to the inputs.",
            lambda wrong: all(properties.is_topological_order(one.answer, one.case.arguments[0]) for one in wrong),
        ),
        Misconception(
            "there is one output",
            "Your list lacks nodes. A graph may have several outputs, and all of them send something back.",
            lambda wrong: any(
                (nodes := _nodes_of(one)) is not None and len(nodes) < len(one.case.arguments[0]) for one in wrong
            ),
        ),
        Misconception(
            "x * x is one edge",
            "You count who uses a value, and count down for each use. An operation that uses it twice counts down twice: then "
            "count two before, or one in both places.",
            gives(answers.order_counting_users),
        ),
        Misconception(
            "moving one node is enough",
            "A node that is met again moves back in your list, but what *it* uses, and was written down before, stays where "
            "it was.",
            gives(answers.order_moved_to_the_end),
        ),
        Misconception(
            "on entering",
            "You go deep and write a node down when you first meet it. Some of its consumers come later in your list, and "
            "what they send is lost. A node may be written down only when all its consumers are.",
            gives(answers.order_depth_first),
        ),
        Misconception(
            "somebody who uses it is enough",
            "In your list some node stands before one of those that use it, or it is no list of all nodes. What a late "
            "consumer sends is lost.",
            lambda wrong: True,
        ),
    ),
    cases=_order_cases,
    accepts=_is_backward_order,
    size=len,
    unit="nodes",
    is_rounded=False,
)


PATIENTS = (SWEEP, BACKWARD_ORDER)
