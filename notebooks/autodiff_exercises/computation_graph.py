"""Exercises of lesson 10, a program is a graph: topological order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from string import ascii_lowercase
from typing import Any

from . import computation_graph_answers as answers
from .exercise import (
    CHANGED_ARGUMENTS,
    EVERY_PATH,
    RECURSION,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Case,
    Exercise,
    Misconception,
    Wrong,
    case,
    soon,
)
from .order_properties import (
    Graph,
    deep,
    from_one_place,
    is_node,
    is_topological_order,
    level_by_level,
    missing,
    only_repeats,
    waits_for_one,
    wrong_at_a_double_edge,
)

# ------------------------------------------------------------------------------------------------ what explains wrong

Property = Callable[[Sequence[Any], Graph], bool]


def _every(has: Property) -> Callable[[Sequence[Wrong]], bool]:
    """Whether all wrong orders have a property, which is then what the student believed."""
    return lambda wrong: all(has(one.answer, one.case.arguments[0]) for one in wrong if not one.failure)


def _some(has: Property) -> Callable[[Sequence[Wrong]], bool]:
    return lambda wrong: any(has(one.answer, one.case.arguments[0]) for one in wrong if not one.failure)


MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RECURSION,
    RETURNS_NOTHING,
    Misconception(
        "nothing in, nothing out",
        "A graph without nodes is a graph, too: its order is the empty list.",
        lambda wrong: all(not one.case.arguments[0] for one in wrong),
    ),
    Misconception(
        "once for every path",
        "You go to a node once for every path that leads to it. A graph is not a tree: many paths can lead to a value, yet it "
        "is computed once. So a node stands in your list more than once, or your function does not come to an end where "
        "values are used twice, layer upon layer: each layer doubles the number of paths. Remember where you have been from "
        "the moment you first enter a node.",
        lambda wrong: EVERY_PATH.explains(wrong) or _some(only_repeats)(wrong),
    ),
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
        _some(lambda order, graph: not all(is_node(node, graph) for node in order)),
    ),
    Misconception(
        "x * x is one edge",
        "It goes wrong at an operation that uses one value twice, and only there. `x * x` has two edges from `x`: if you "
        "count two before, count two off afterwards, or count each input once in both places.",
        _every(wrong_at_a_double_edge),
    ),
    Misconception(
        "an empty list",
        "Your list is always empty. Does anything get into it before you return it?",
        _every(lambda order, graph: not order),
    ),
    Misconception(
        "return ends the loop",
        "Your list never has more than one node. A `return` inside a loop ends the function in the first round; it belongs "
        "after the loop, with less indentation.",
        _every(lambda order, graph: len(order) == 1 < len(graph)),
    ),
    Misconception(
        "inputs are not nodes",
        "The inputs of the program are missing: your list holds the operations only. A node without inputs is a node, "
        "and it comes before whatever uses it.",
        _every(lambda order, graph: missing(order, graph) == {node for node in graph if not graph[node]}),
    ),
    Misconception(
        "one node is lost",
        "Exactly one node is missing, whatever the graph. Look at where your loop begins and where it ends.",
        _every(lambda order, graph: len(missing(order, graph)) == 1),
    ),
    Misconception(
        "one output is all",
        "Nodes are missing. A graph can have several outputs, and parts that do not touch: one search from one "
        "place does not reach them all.",
        _every(from_one_place),
    ),
    Misconception(
        "nodes are missing",
        "Some nodes are missing in your list. Each key of the dictionary belongs into it. Which ones are missing in the "
        "example, and what do they have in common?",
        _some(lambda order, graph: bool(missing(order, graph))),
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
        "a few rounds are enough",
        "Small graphs come out right, deep ones do not. Each round over the graph may settle no more than one node, so no "
        "fixed number of rounds is enough: go on as long as there is something to do, or choose a way without rounds.",
        lambda wrong: _every(lambda order, graph: len(graph) > 4)(wrong) and _some(deep)(wrong),
    ),
    Misconception(
        "breadth-first is enough",
        "You go level by level. The level counts the shortest way to a node, but a node has to wait for its "
        "longest: a skip connection makes the two differ. (On a plain chain they agree, which is why this fault "
        "can stay hidden.)",
        _every(level_by_level),
    ),
    Misconception(
        "one neighbour is enough",
        "You write a node down when the search first meets it, so it waits for one of its neighbours. It has to "
        "wait for all: write it down when everything that it needs is in the list.",
        _every(waits_for_one),
    ),
    Misconception(
        "too early",
        "Some node comes before a value that it is computed from. What must be in the list before a node may follow?",
        lambda wrong: True,
    ),
)

# -------------------------------------------------------------------------------------------------- what is called on

PRIME = 1013  # nodes of the chain with long jumps

SHAPES: tuple[tuple[str, list[list[int]]], ...] = (  # node 0, 1, … with the numbers of its inputs
    ("one operation", [[], [0]]),
    ("a value used twice by one operation", [[], [0, 0]]),
    ("a value used twice by one operation", [[], [0, 0], [1, 0, 1]]),
    ("a value used twice by one operation", [[], [0], [0, 0, 1]]),
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
    yield case("a graph without nodes", "{}")
    for number in range(40 if large else 20):
        size = 4 + number // (3 if large else 4)
        shape = [random.choices(range(n), k=random.choice((1, 2, 2, 3))) if n > 1 else [] for n in range(size)]
        yield _graph_case("random graphs", shape, random)
    yield from _shared_layer_upon_layer(random.randint(40, 60))
    yield from _chains(random, 6000 if large else 5000)


def _shared_layer_upon_layer(layers: int) -> Iterator[Case]:
    """Few nodes, and more paths than anybody can walk: each operation doubled, and a ladder of diamonds."""
    doubled = f'{{f"n{{i}}": [f"n{{i - 1}}"] * 2 if i else [] for i in range({layers}, -1, -1)}}'
    two_inputs = '[f"a{i - 1}", f"b{i - 1}"] if i else []'
    diamonds = f'{{f"{{side}}{{i}}": {two_inputs} for i in range({layers}, -1, -1) for side in "ab"}}'
    for expression in (doubled, diamonds):
        yield soon(case("values used twice, layer upon layer", expression))


def _chains(random: Random, depth: int) -> Iterator[Case]:
    """Chains, written down from the end, with long jumps, and from the beginning with two nodes out of their place."""
    check = "deep chains"
    chain = 'f"n{i}": [f"n{i - 1}"] if i else []'
    yield case(check, f"{{{chain} for i in range({random.randint(1010, 1060)}, -1, -1)}}")
    stride = pow(random.randint(300, 900), -1, PRIME)  # so that i + 1 is written that many places after i, all round
    yield case(check, f"{{{chain} for i in ({stride} * j % {PRIME} for j in range({PRIME}))}}")
    last = random.randint(depth, depth + 1000)
    yield case(check, f'{{"n{last}": ["n{last - 1}"], "n0": [], **{{{chain} for i in range(1, {last})}}}}')


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
  An empty graph has an empty order.
* It must not change `graph`. It must manage a chain of 5,000 operations, and values that are used twice in each of 40
  layers. (A check ends after 5 seconds.)""",
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
            (answers.seen_when_left, "once for every path"),
            (answers.three_rounds, "a few rounds are enough"),
            (answers.six_rounds, "a few rounds are enough"),
            (answers.moved_twice, "a few rounds are enough"),
            (answers.nothing, "an empty list"),
            (answers.returned_too_early, "return ends the loop"),
            (answers.operations_only, "inputs are not nodes"),
            (answers.last_one_lost, "one node is lost"),
            (answers.what_is_used, "nodes are missing"),
            (answers.not_of_nothing, "nothing in, nothing out"),
            (answers.recursive, "recursion"),
            (answers.from_one_output, "one output is all"),
            (answers.double_edges_lost, "x * x is one edge"),
            (answers.double_edges_counted_off, "x * x is one edge"),
            (answers.from_the_first_key, "one output is all"),
            (answers.as_written, "the written order will do"),
            (answers.emptying, "changes its argument"),
            (answers.alphabetical, "too early"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=is_topological_order,
    ),
)
