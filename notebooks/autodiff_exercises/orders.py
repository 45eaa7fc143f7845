"""Exercises on orders of lesson 30: what may run next in the backward sweep, and how many orders a graph has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from string import ascii_lowercase
from typing import Any

import numpy as np

from . import orders_answers as answers
from .exercise import (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Case,
    Exercise,
    Misconception,
    Wrong,
    case,
)
from .explaining import begins_with, every

Graph = dict[str, list[str]]  # node -> its inputs, one entry for each use


def _written(shape: list[list[int]], random: Random) -> tuple[str, list[str]]:
    """A graph as text, with names drawn at random and its nodes in any order; and the name of each number."""
    names = random.sample(ascii_lowercase, len(shape))
    nodes = random.sample(range(len(shape)), k=len(shape))
    return repr({names[node]: [names[source] for source in shape[node]] for node in nodes}), names


# -------------------------------------------------------------------------------------------- every legal next node


def are_all_legal(answer: Any, graph: Graph, done: list[str]) -> bool:
    """Whether the answer holds, once each, the nodes that are not done while all their consumers are."""
    if not _holds_nodes(answer, graph) or len(set(answer)) < len(answer):
        return False
    return set(answer) == answers.by_consumers(graph, done)


def _holds_nodes(answer: Any, graph: Graph) -> bool:
    return isinstance(answer, list | tuple | set | frozenset) and all(type(n) is str and n in graph for n in answer)


def _some(has: Callable[[Any, Graph, list[str]], bool]) -> Callable[[Sequence[Wrong]], bool]:
    return lambda wrong: any(has(one.answer, *one.case.arguments) for one in wrong if not one.failure)


def _begins_nowhere(answer: Any, graph: Graph, done: list[str]) -> bool:
    """All that is missing are nodes without consumers."""
    used = {source for inputs in graph.values() for source in inputs}
    missing = answers.by_consumers(graph, done) - set(answer)
    return bool(missing) and not missing & used


LEGAL_TWICE = "a value used twice by one operation"

LEGAL_MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Misconception(
        "not a list of nodes",
        "Return a list, a tuple or a set with names of nodes of the graph, and nothing else. There may be none in it.",
        _some(lambda answer, graph, done: not _holds_nodes(answer, graph)),
    ),
    Misconception(
        "once for every edge",
        "A node stands in your answer more than once. Its rule runs once, however many edges lead to it.",
        _some(lambda answer, graph, done: len(set(answer)) < len(answer)),
    ),
    Misconception(
        "backward asks the inputs",
        "Your answer is that of the forward pass, where a node waits for its inputs. Going backwards a node waits for its "
        "consumers, because gradients come from there.",
        every(lambda answer, graph, done: set(answer) == set(answers.forward_ready(graph, done))),
    ),
    Misconception(
        "x * x is one edge",
        "It goes wrong at an operation that uses one value twice, and only there. `x * x` has two edges from `x`: if you "
        "count two before, count two off afterwards, or count each consumer once in both places.",
        lambda wrong: (
            all(one.case.check == LEGAL_TWICE for one in wrong[:1])
            and all(any(len(set(i)) < len(i) for i in one.case.arguments[0].values()) for one in wrong)
        ),
    ),
    Misconception(
        "legal once, legal for ever",
        "A node of `done` is in your answer. Its rule has run; if it runs again, its contributions are counted twice.",
        _some(lambda answer, graph, done: bool(set(answer) & set(done))),
    ),
    Misconception(
        "one contribution is enough",
        "Your answer has nodes in it that still wait: some consumer of theirs is not done and will send a contribution, which "
        "then would come too late.",
        _some(lambda answer, graph, done: bool(set(answer) - answers.by_consumers(graph, done))),
    ),
    Misconception(
        "somebody must have sent something",
        "Nodes that nobody uses are missing. They wait for nothing, so they may run at any time, also as the first ones.",
        every(_begins_nowhere),
    ),
    Misconception(
        "inputs do not count",
        "Only nodes without inputs are missing. They have no rule, but a gradient that has to be complete, so a sweep comes "
        "to them as to all others.",
        every(lambda answer, graph, done: not any(graph[n] for n in answers.by_consumers(graph, done) - set(answer))),
    ),
    Misconception(
        "who was used stays used",
        "Your answer holds only nodes that nobody uses at all. Consumers that are done have sent what they had to send: who "
        "has no others waits for nothing.",
        every(lambda answer, graph, done: not set(answer) & {source for inputs in graph.values() for source in inputs}),
    ),
    Misconception(
        "the order is unique",
        "Each node in your answer may run next, but there are others that may, too. An order is seldom the only one; a "
        "scheduler wants to choose, so give all of them.",
        lambda wrong: True,
    ),
)


def legal_cases(random: Random, large: bool) -> Iterator[Case]:
    """Graphs from small to large, after any number of steps of a backward sweep."""
    for check, shape, steps in (
        ("the beginning", [[], [0], [1]], 0),
        ("two outputs", [[], [0], [0], [1, 2], [1]], 1),
        ("an input of the program", [[], [0], [0]], 2),
        ("a diamond", [[], [0], [0], [1, 2]], 1),
        ("a skip connection", [[], [0], [1], [2], [3, 1]], 1),
        (LEGAL_TWICE, [[], [0, 0], [1, 1]], 1),
        (LEGAL_TWICE, [[], [0, 0], [0, 0]], 1),
        ("the end", [[], [0], [1, 0]], 3),
    ):
        yield _legal_case(check, shape, steps, random)
    for size in range(5, 16 if large else 12):
        shape = [random.choices(range(n), k=random.choice((1, 2, 2))) if n > 1 else [] for n in range(size)]
        yield _legal_case("random graphs", shape, random.randint(0, size - 1), random)


def _legal_case(check: str, shape: list[list[int]], steps: int, random: Random) -> Case:
    text, names = _written(shape, random)
    numbers = {str(n): [str(source) for source in inputs] for n, inputs in enumerate(shape)}
    done: list[str] = []
    for _ in range(steps):
        done.append(random.choice(sorted(answers.by_consumers(numbers, done))))
    return case(check, f"{text}, {[names[int(n)] for n in done]}")


# ---------------------------------------------------------------------------------------------------- count the orders


def is_the_count(answer: Any, graph: Graph) -> bool:
    """Whether the answer is the number of topological orders, as a whole number."""
    return _is_whole(answer) and bool(answer == answers.by_sets(graph))


def _is_whole(answer: Any) -> bool:
    return isinstance(answer, int | np.integer) and not isinstance(answer, bool)


def _equals(formula: Callable[[Graph], int]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether all wrong answers are what another formula says."""
    return every(lambda answer, graph: answer == formula(graph))


def _equals_one_of(formula: Callable[[Graph, int], int]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether all wrong answers are what a formula says for the first node at each choice, or all what it says for the last."""
    return lambda wrong: any(
        every(lambda answer, graph, place=place: answer == formula(graph, place))(wrong) for place in (0, -1)
    )


COUNT_MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Misconception(
        "not a number", "Return the number of orders, as a whole number.", lambda wrong: not _is_whole(wrong[0].answer)
    ),
    Misconception(
        "few nodes are enough",
        "Graphs with up to seven nodes come out right, and those with eight do not. Is there a limit somewhere?",
        lambda wrong: all(len(one.case.arguments[0]) == 8 for one in wrong),
    ),
    Misconception(
        "the order is unique",
        "You say that there is a single order. Two nodes of which neither waits for the other may change places.",
        _equals(answers.always_one),
    ),
    Misconception(
        "every order goes",
        "You count all arrangements of the nodes. An edge forbids all those in which its ends stand the wrong way round.",
        _equals(answers.every_order),
    ),
    Misconception(
        "orders go level by level",
        "You let the graph go level by level, and change places inside of a level only. A node waits for its inputs and for "
        "nobody else: it may overtake a node of a lower level.",
        _equals(answers.level_by_level),
    ),
    Misconception(
        "part after part",
        "You multiply the numbers of parts that do not touch, as if one part ran after the other. Their nodes may "
        "alternate, like the cards when two packs are shuffled into one.",
        _equals(answers.part_by_part),
    ),
    Misconception(
        "nothing in, nothing out",
        "A graph without nodes has one order, the empty one: there is one way to do nothing.",
        lambda wrong: all(not one.case.arguments[0] for one in wrong),
    ),
    Misconception(
        "every way offers as much",
        "You go one way and multiply the choices along it. Which node you take decides how many choices come after it: add up "
        "over all first nodes.",
        _equals_one_of(answers.choices_along_one_way),
    ),
    Misconception(
        "two edges are two choices",
        "It goes wrong where an operation uses one value twice. Two edges lead to it, but it is one node, and as a choice it "
        "counts once.",
        begins_with("a value used twice by one operation"),
    ),
    Misconception(
        "not the number of orders",
        "Write down all orders of the smallest example by hand, then compare: which are missing, which are there twice?",
        lambda wrong: True,
    ),
)


def count_cases(random: Random, large: bool) -> Iterator[Case]:
    """Graphs with few nodes, from a chain to parts that do not touch."""
    for check, shape in (
        ("a chain", [[], [0], [1], [2]]),
        ("a value used twice by one operation", [[], [0, 0], [1, 1]]),
        ("parts that do not touch", [[], [0], [], [2], [3]]),
        ("a diamond with long sides", [[], [0], [1], [0], [3], [2, 4]]),
        ("a skip connection", [[], [], [0, 1], [2], [3, 0], [1]]),
    ):
        yield case(check, _written(shape, random)[0])
    yield case("a graph without nodes", "{}")
    yield case("eight nodes", _written([[], [0], [0], [], [3, 1], [3], [2], [4]], random)[0])
    for size in range(4, 8):
        for _ in range(2 if large else 1):
            shape = [random.choices(range(n), k=random.choice((0, 1, 2, 2))) if n else [] for n in range(size)]
            yield case("random graphs", _written(shape, random)[0])


EXERCISES = (
    Exercise(
        lesson="30_reverse_mode",
        statement="""\
Write `legal_next(graph, done)`: every node whose rule may run next.

* `graph` is a dictionary as before: each node with the list of its inputs, one entry for each use.
* `done` is the list of the nodes whose gradient rules have run, in a backward sweep that began at the outputs.
* Return a list (or a set) of **all** nodes that may come next, each once. Every node counts, those without inputs, too. If all
  are done, it is empty.
* Change neither `graph` nor `done`.""",
        hints=(
            "A rule may run when the gradient of its node is complete. Who sends contributions to a node: its inputs, or "
            "those that use it?",
            "Go through the nodes that are not done. Which nodes do they use? Can one of those be legal?",
            "Gather all inputs of all nodes that are not done: these still wait for a contribution. A node is legal if it "
            "is neither done nor among them.",
        ),
        solution=answers.legal_next,
        alternatives=(answers.by_consumers, answers.by_counting),
        wrong=(
            (answers.only_one, "the order is unique"),
            (answers.forward_ready, "backward asks the inputs"),
            (answers.one_consumer_is_enough, "one contribution is enough"),
            (answers.done_again, "legal once, legal for ever"),
            (answers.once_for_every_edge, "once for every edge"),
            (answers.never_begins, "somebody must have sent something"),
            (answers.marks_them_done, "changes its argument"),
            (answers.operations_only, "inputs do not count"),
            (answers.unused_only, "who was used stays used"),
            (answers.edges_counted_off_once, "x * x is one edge"),
            (answers.consumers_counted_off_twice, "x * x is one edge"),
        ),
        misconceptions=LEGAL_MISCONCEPTIONS,
        cases=legal_cases,
        accepts=are_all_legal,
    ),
    Exercise(
        lesson="30_reverse_mode",
        statement="""\
Write `count_orders(graph)`: the number of topological orders.

* `graph` is a dictionary as before, with at most eight nodes.
* Return a whole number: in how many ways can all nodes be put in a row, each after all its inputs? No nodes can be put in a
  row in one way.""",
        hints=(
            "How many orders does a chain have? How many do two nodes have that do not touch? And two chains of two?",
            "Build an order from the left. At each point some nodes are legal: those whose inputs all stand in the row. "
            "Each choice leads to other orders. So how many ways are there to go on?",
            "Write an inner function with the set of nodes that are done. If all are done, there is one way: stop. Else add "
            "up, over all legal nodes, the ways to go on with that node done as well. (With at most eight nodes you may "
            "also try all arrangements.)",
        ),
        solution=answers.count_orders,
        alternatives=(answers.by_permutations, answers.by_sets),
        wrong=(
            (answers.always_one, "the order is unique"),
            (answers.every_order, "every order goes"),
            (answers.level_by_level, "orders go level by level"),
            (answers.part_by_part, "part after part"),
            (answers.choices_for_every_edge, "two edges are two choices"),
            (answers.as_text, "not a number"),
            (answers.first_way, "every way offers as much"),
            (answers.none_of_nothing, "nothing in, nothing out"),
            (answers.up_to_seven, "few nodes are enough"),
        ),
        misconceptions=COUNT_MISCONCEPTIONS,
        cases=count_cases,
        accepts=is_the_count,
    ),
)
