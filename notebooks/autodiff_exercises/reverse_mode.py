"""The exercise "backward on a graph" of lesson 30: every rule once, when all contributions have arrived."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from random import Random
from string import ascii_lowercase
from typing import Any

import numpy as np

from . import reverse_mode_answers as answers
from .exercise import (
    CHANGED_ARGUMENTS,
    EVERY_PATH,
    RECURSION,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Case,
    Exercise,
    Misconception,
    case,
    soon,
)
from .explaining import begins_with, called_too_often, every, is_number
from .limits import Limited, limited

Graph = dict[str, list[str]]  # node -> its inputs, one entry for each use
WITHIN = 1e-9  # relative: contributions of both signs may cancel, and sums be added in another order

# --------------------------------------------------------------------------------------------------- what tells right


def is_balanced(answer: Any, graph: Graph, rule: Limited, output: str, seed: Any) -> bool:
    """Whether the output has the seed, and every other node exactly the sum of what its consumers' rules send it.

    No other numbers have this property. Nodes that the output does not depend on may be missing or 0.
    """
    return _balanced(answer, graph, rule, output, seed, lambda g: g)


def _balanced(answer: Any, graph: Graph, rule: Limited, output: str, seed: Any, upstream: Callable[[Any], Any]) -> bool:
    needed = _needed(graph, output)
    if not isinstance(answer, dict) or not needed <= set(answer) <= set(graph):
        return False
    expected: dict[str, Any] = {node: 0.0 for node in graph} | {output: seed}
    for node in needed:
        if graph[node]:
            for source, contribution in zip(graph[node], rule.function(node, upstream(answer[node])), strict=True):
                expected[source] = expected[source] + contribution
    return all(_alike(answer[node], expected[node]) for node in answer)


def _needed(graph: Graph, output: str) -> set[str]:
    """The output, and all that it was computed from."""
    reached = {output: None}
    stack = [output]
    while stack:
        for source in graph[stack.pop()]:
            if source not in reached:
                reached[source] = None
                stack.append(source)
    return set(reached)


def _alike(one: Any, other: Any) -> bool:
    """Whether two gradients agree: numbers, or arrays of one shape and dtype."""
    if not isinstance(other, np.ndarray):
        return is_number(one) and math.isclose(one, other, rel_tol=WITHIN, abs_tol=1e-12)
    if not isinstance(one, np.ndarray) or (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    return bool(np.allclose(one, other, rtol=1e-5 if other.dtype == np.float32 else WITHIN))


# ------------------------------------------------------------------------------------------------ what explains wrong


def _lacks_a_node(answer: Any, graph: Graph, rule: Limited, output: str, seed: Any) -> bool:
    return isinstance(answer, dict) and not _needed(graph, output) <= set(answer)


def _has_not_arrived(answer: Any, graph: Graph, rule: Limited, output: str, seed: Any) -> bool:
    """Some node that the output depends on has no gradient, or 0: none of the local derivatives is 0."""
    return isinstance(answer, dict) and any(np.all(answer.get(node, 0.0) == 0.0) for node in _needed(graph, output))


def _fails_or_has_another_dtype(answer: Any, graph: Graph, rule: Limited, output: str, seed: Any) -> bool:
    return not isinstance(answer, dict) or any(np.asarray(g).dtype != seed.dtype for g in answer.values())


def _starts_from_one(answer: Any, graph: Graph, rule: Limited, output: str, seed: Any) -> bool:
    return isinstance(answer, dict) and is_balanced(answer, graph, rule, output, 1.0)


def _no_upstream(answer: Any, graph: Graph, rule: Limited, output: str, seed: Any) -> bool:
    def starts_from(one: Any) -> bool:
        return _balanced(answer, graph, rule, output, seed, lambda g: one)

    return starts_from(1.0) or starts_from(seed)


def _is_one_of_the_contributions(place: int) -> Callable[..., bool]:
    """Whether the gradient of a value used twice by one operation is only what came along one of the two edges."""

    def has(answer: Any, graph: Graph, rule: Limited, output: str, seed: Any) -> bool:
        (source,) = set(graph[output])
        return (
            isinstance(answer, dict) and source in answer and _alike(answer[source], rule.function(output, seed)[place])
        )

    return lambda wrong: begins_with(TWICE)(wrong) and every(has)(wrong[:1])


ONE, UNNEEDED = "one operation", "a part that the output does not need"
TWICE = "a value used twice by one operation"
SHARED = "arrays that several nodes share"

MISCONCEPTIONS = (
    Misconception(
        "gradients are numbers",
        "With plain numbers your function is right, with arrays it is not. A gradient may be an array of any dtype: begin "
        "with the contribution that arrives first, not with a zero of your own, and add with `+`.",
        lambda wrong: (
            begins_with(SHARED)(wrong) and _fails_or_has_another_dtype(wrong[0].answer, *wrong[0].case.arguments)
        ),
    ),
    Misconception(
        "adding in place",
        "With plain numbers your function is right, with arrays it is not. A rule may send the same array to several nodes, "
        "and `+=` writes into that array, so all of them change. Add with `a + b`, which makes a new array.",
        begins_with(SHARED),
    ),
    CHANGED_ARGUMENTS,
    RECURSION,
    RETURNS_NOTHING,
    Misconception(
        "every node has a rule",
        "You call the rule too often already where there is a single operation. Nodes without inputs are not computed from "
        "anything, so they have no rule to call; and the rule of an operation is called once.",
        lambda wrong: begins_with(ONE)(wrong) and called_too_often(wrong[:1]),
    ),
    Misconception(
        "a walk for every path",
        "Your function goes to a node more than once: for every path that leads there. Paths multiply, so deep programs never "
        "end. Wait until all contributions have arrived, add them up, and call the rule once.",
        lambda wrong: called_too_often(wrong) or EVERY_PATH.explains(wrong),
    ),
    STOPS_WITH_ERROR,
    Misconception(
        "not a dictionary",
        "Return a dictionary: the name of each node with its gradient.",
        lambda wrong: not isinstance(wrong[0].answer, dict),
    ),
    Misconception(
        "only the inputs count",
        "Gradients are missing. Return those of all nodes that the output depends on: also those in between, and the "
        "output's own.",
        lambda wrong: begins_with(ONE)(wrong) and _lacks_a_node(wrong[0].answer, *wrong[0].case.arguments),
    ),
    Misconception(
        "the seed is always one",
        "The gradient of the output is what the caller gives as `seed`; everything else follows from it. It is one only "
        "where the output is the end of the whole program.",
        every(_starts_from_one),
    ),
    Misconception(
        "the gradient is the local derivative",
        "You call the rules with something else than the gradient of the node. A contribution is the local derivative "
        "*times* what has arrived from above: that is the chain rule.",
        every(_no_upstream),
    ),
    Misconception(
        "last path wins",
        "Where several contributions arrive at a node, you keep the one that came last. All of them count: the output moves "
        "by each of these ways, so the contributions are added.",
        _is_one_of_the_contributions(-1),
    ),
    Misconception(
        "x * x is one edge",
        "An operation on one value twice has two edges, and a contribution comes along each. If you turn the inputs into a set "
        "or into keys, one of them is lost.",
        _is_one_of_the_contributions(0),
    ),
    Misconception(
        "the written order will do",
        "Some gradient never arrived: you came to a node before any of its consumers, as in the order of the dictionary, or "
        "of the names. Nobody promised that a graph is written down, or named, in an order in which it can be computed.",
        lambda wrong: (
            not begins_with(ONE, TWICE)(wrong) and _has_not_arrived(wrong[0].answer, *wrong[0].case.arguments)
        ),
    ),
    Misconception(
        "each node once is enough",
        "You run the rule of a node before all contributions to it have arrived, and what comes later is lost. Breadth-first "
        "and the order in which a search first meets the nodes are not enough: a node has to wait for its longest way.",
        begins_with("a skip connection", "random graphs"),
    ),
    Misconception(
        "whoever uses a node will send",
        "It goes wrong where nodes are used by something that the output does not depend on. From there nothing ever comes, "
        "and who waits for it waits for ever. Count only the edges from nodes that the output depends on.",
        begins_with(UNNEEDED),
    ),
    Misconception(
        "not the sum of the contributions",
        "Some gradient is not the sum of what the rules of its consumers send. Follow the smallest example by hand.",
        lambda wrong: True,
    ),
)

# -------------------------------------------------------------------------------------------------- what is called on

SHAPES: tuple[
    tuple[str, list[list[int]]], ...
] = (  # node 0, 1, … with the numbers of its inputs; the last is the output
    (ONE, [[], [], [0, 1]]),
    (TWICE, [[], [0, 0]]),
    ("a chain", [[], [0], [1], [2]]),
    ("a skip connection", [[], [0], [1], [2, 0]]),
    ("a skip connection", [[], [0], [1], [0, 2], [3, 0, 1]]),
    (UNNEEDED, [[], [0], [0, 1], [1, 0]]),
)


def cases(random: Random, large: bool) -> Iterator[Case]:
    """Graphs from small to deep; names, local derivatives and the order in which nodes are written drawn at random."""
    for check, shape in SHAPES:
        yield _graph_case(check, shape, random)
    for size in range(4, 16 if large else 12):
        shape = [random.sample([n - 1, *random.choices(range(n), k=2)], k=3) if n > 1 else [] for n in range(size)]
        yield _graph_case("random graphs", shape, random)
    x, y, z = random.sample(ascii_lowercase, 3)
    seed = f"np.array({[_number(random) for _ in range(4 if large else 3)]}, 'float32')"
    graph = f'{{"{z}": ["{y}", "{x}"], "{y}": ["{x}", "{x}"], "{x}": []}}'
    yield _case(SHARED, graph, "lambda node, g: [g, g]", z, seed, calls=2)
    times = random.randint(40, 60)
    doubled = f'{{"y0": [], **{{f"y{{i + 1}}": [f"y{{i}}"] * 2 for i in range({times})}}}}'
    yield soon(_case("y = y + y, again and again", doubled, "lambda node, g: [g, g]", f"y{times}", "1.5", calls=times))
    depth = random.randint(6000, 7000) if large else 5000
    chain = f'{{"n0": [], **{{f"n{{i + 1}}": [f"n{{i}}"] for i in range({depth})}}}}'
    yield _case(f"{depth:,} operations deep", chain, "lambda node, g: [-g]", f"n{depth}", "1.5", calls=depth)


def _number(random: Random) -> float:
    return random.choice((-1, 1)) * round(random.uniform(1.25, 3), 2)


def _graph_case(check: str, shape: list[list[int]], random: Random) -> Case:
    names = random.sample(ascii_lowercase, len(shape))
    nodes = list(range(len(shape)))[::-1]
    if check == "random graphs":
        random.shuffle(nodes)
    graph = {names[node]: [names[source] for source in shape[node]] for node in nodes}
    factors = {names[node]: [_number(random) for _ in shape[node]] for node in nodes if shape[node]}
    rule = f"lambda node, g: [g * d for d in {factors}[node]]"
    return _case(check, repr(graph), rule, names[-1], str(_number(random)), calls=len(factors))


def _case(check: str, graph: str, rule: str, output: str, seed: str, calls: int) -> Case:
    return case(check, f'{graph}, limited({rule}, calls={calls}), "{output}", {seed}', limited=limited)


EXERCISES = (
    Exercise(
        lesson="30_reverse_mode",
        statement="""\
Write `backward(graph, rule, output, seed)`: one backward sweep.

* `graph` is a dictionary as in lesson 10: each key is the name of a node, its value the list of the node's inputs, one entry
  for each use. The nodes stand in any order.
* `rule(node, g)` is the gradient rule of an operation. It takes the node's gradient and returns a list: one contribution for
  each entry of `graph[node]`, in the same order. Nodes without inputs have no rule.
* `output` is the node to begin at, and `seed` is its gradient.
* Return a dictionary with the gradient of every node that `output` depends on, and of `output` itself. Other nodes may be
  missing, or 0.
* **Call each rule at most once.** In the check `rule` comes as `limited(rule, calls=...)`. A chain of 5,000 operations must go
  through, and gradients may be numbers or arrays: do not change what you were given.""",
        hints=(
            "A node may run its rule when all its contributions have arrived. How many will arrive? As many as there are "
            "edges to it from nodes that the output depends on. Can you count them before you start?",
            "Two passes. First find all nodes that the output depends on, and count for each how often it is used there. "
            "Then sweep: begin with the output, send contributions, and count down; who is at zero runs next. Or make a "
            "topological order first, and walk it from its end.",
            "Keep a dictionary of gradients with `{output: seed}` in it. When a contribution arrives at a node that is not in "
            "there, put it in; else put in the sum, made with `a + b`. Keep a list of nodes that are ready, and loop "
            "while there are any.",
        ),
        solution=answers.backward,
        alternatives=(answers.by_standard_library, answers.by_depth_first_search),
        wrong=(
            (answers.breadth_first, "each node once is enough"),
            (answers.pre_order, "each node once is enough"),
            (answers.last_path_wins, "last path wins"),
            (answers.every_path, "a walk for every path"),
            (answers.every_path_by_factors, "a walk for every path"),
            (answers.waits_for_all, "whoever uses a node will send"),
            (answers.rules_of_inputs, "every node has a rule"),
            (answers.as_pairs, "not a dictionary"),
            (answers.summed_as_floats, "gradients are numbers"),
            (answers.seed_for_all, "the gradient is the local derivative"),
            (answers.recursive, "recursion"),
            (answers.as_written, "the written order will do"),
            (answers.in_place, "adding in place"),
            (answers.inputs_as_a_set, "x * x is one edge"),
            (answers.upstream_forgotten, "the gradient is the local derivative"),
            (answers.seed_forgotten, "the seed is always one"),
            (answers.inputs_only, "only the inputs count"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=is_balanced,
    ),
)
