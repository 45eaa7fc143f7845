"""The exercise "upward rank" of lesson 80: the longest way to the end, the priority of the critical path."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from . import ranks_answers as answers
from .drawn_tasks import Shape, drawn_costs, drawn_shape, named
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
from .explaining import every, is_number
from .ranks_answers import Travel
from .schedule_properties import Costs, Graph


def are_ranks(answer: Any, graph: Graph, costs: Costs, travel: Travel) -> bool:
    """Whether each task's rank is its cost and the longest way on: no other numbers have this property."""
    if not isinstance(answer, dict) or answer.keys() != graph.keys() or not all(map(is_number, answer.values())):
        return False
    longest = dict.fromkeys(graph, 0.0)
    for task, before in graph.items():
        for other in before:
            longest[other] = max(longest[other], travel.get((other, task), 0) + answer[task])
    return all(math.isclose(answer[task], costs[task] + longest[task], rel_tol=1e-9) for task in graph)


def _ranks_like(formula: Callable[[Graph, Costs, Travel], Costs]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether every wrong answer is what another formula gives."""

    def has(answer: Any, graph: Graph, costs: Costs, travel: Travel) -> bool:
        if not isinstance(answer, dict) or answer.keys() != graph.keys() or not all(map(is_number, answer.values())):
            return False
        return all(
            math.isclose(answer[task], rank, abs_tol=1e-9) for task, rank in formula(graph, costs, travel).items()
        )

    return every(has)


RANK_MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    RECURSION,
    EVERY_PATH,
    STOPS_WITH_ERROR,
    Misconception(
        "not a number for each task",
        "Return a dictionary with one number for each task of the graph.",
        lambda wrong: any(
            not isinstance(one.answer, dict)
            or one.answer.keys() != one.case.arguments[0].keys()
            or not all(map(is_number, one.answer.values()))
            for one in wrong
        ),
    ),
    Misconception(
        "the way behind me counts",
        "You measure the way from the beginning of the program to each task. What makes a task urgent is the way that "
        "is still ahead: from its start to the end of the program.",
        _ranks_like(answers.from_the_beginning),
    ),
    Misconception(
        "my own time does not count",
        "You leave out the cost of the task itself. The way begins at its start, so its own time belongs to it.",
        _ranks_like(answers.without_itself),
    ),
    Misconception(
        "all ways are added",
        "You add up the ranks of all users. These run side by side; the program is late only if the *longest* way is.",
        _ranks_like(answers.all_ways_added),
    ),
    Misconception(
        "the nearest end counts",
        "You follow the shortest way to the end. The program ends when its last task does, so the longest way counts.",
        _ranks_like(answers.shortest_way),
    ),
    Misconception(
        "values are there at once",
        "You leave out how long values travel. A user can start only when the value has arrived: `travel` says how long "
        "that takes, for the pairs that are in it.",
        _ranks_like(answers.without_travel),
    ),
    Misconception(
        "tasks are counted",
        "You count how many tasks are on the way. They take different times: add up `costs` and `travel`.",
        _ranks_like(answers.counted),
    ),
    Misconception(
        "the written order will do",
        "A rank needs the ranks of all users first. The dictionary is not written in an order in which they are known: "
        "find one, or wait with each task until all its users have a rank.",
        _ranks_like(answers.as_written),
    ),
    Misconception(
        "not the longest way",
        "Some rank is not the task's cost plus the longest way on, over any of its users. Begin with the tasks that "
        "nobody uses: what is their rank?",
        lambda wrong: True,
    ),
)

RANK_SHAPES: tuple[tuple[str, Shape], ...] = (
    ("a chain", [[], [0], [1]]),
    ("a value used twice", [[], [0, 0]]),
    ("two ways to the end", [[], [0], [0], [1, 2]]),
    ("a skip connection", [[], [0], [1], [2, 0]]),
    ("two ends", [[], [0], [0], [2]]),
)


def rank_cases(random: Random, large: bool) -> Iterator[Case]:
    """Graphs from small to deep; values travel between some of the tasks."""
    for check, shape in RANK_SHAPES:
        yield _rank_case(check, shape, random)
    for size in range(5, 14 if large else 11):
        yield _rank_case("random graphs", drawn_shape(random, size), random)
    layers = random.randint(30, 45)
    doubled = f'{{f"n{{i}}": [f"n{{i - 1}}"] * 2 if i else [] for i in range({layers}, -1, -1)}}'
    yield soon(
        case("values used twice, layer upon layer", f"{doubled}, {{f'n{{i}}': 1 for i in range({layers + 1})}}, {{}}")
    )
    depth = random.randint(3000, 4000)
    chain = f'{{f"n{{i}}": [f"n{{i - 1}}"] if i else [] for i in range({depth})}}'
    yield case("thousands of tasks in a row", f"{chain}, {{f'n{{i}}': 2 for i in range({depth})}}, {{}}")


def _rank_case(check: str, shape: Shape, random: Random) -> Case:
    graph, costs, _ = named(shape, drawn_costs(random, len(shape)), random)
    edges = [(other, task) for task, before in graph.items() for other in dict.fromkeys(before)]
    chosen = random.sample(edges, k=(len(edges) + 1) // 2)
    return case(check, f"{graph}, {costs}, { ({edge: random.randint(1, 9) for edge in chosen}) }")


EXERCISES = (
    Exercise(
        lesson="80_scheduling",
        statement="""\
Write `upward_rank(graph, costs, travel)`: for each task the longest way from its start to the end of the program.

* `graph` and `costs` are dictionaries as before: what each task waits for, and how long it takes.
* `travel` says how long values travel: `{("a", "b"): 3}` if 3 seconds lie between the end of `a` and the earliest start of `b`.
  For pairs that are not in it: none.
* Return a dictionary with a number for each task. The rank of a task is its own cost, plus the longest way on: over its users,
  the travel time and the user's rank.
* A row of thousands of tasks must go through, and values that are used twice, layer upon layer.""",
        hints=(
            "Which ranks can you write down at once? Those of the tasks that nobody waits for. Whose can you write "
            "down next?",
            "You need the users of each task, and an order in which all users of a task come before it: a topological "
            "order from its end, or counters as in the seven steps, going backwards.",
            "For each task count how many uses have no rank yet. Keep a list of tasks whose count is 0. Take one, give "
            "it `costs[task] + max(..., default=0)`, then count down all that it waits for, once for each entry.",
        ),
        solution=answers.upward_rank,
        alternatives=(answers.handed_on,),
        wrong=(
            (answers.from_the_beginning, "the way behind me counts"),
            (answers.without_itself, "my own time does not count"),
            (answers.all_ways_added, "all ways are added"),
            (answers.shortest_way, "the nearest end counts"),
            (answers.without_travel, "values are there at once"),
            (answers.counted, "tasks are counted"),
            (answers.as_written, "the written order will do"),
            (answers.every_way, "once for every path"),
            (answers.recursive, "recursion"),
            (answers.recursive_without_travel, "values are there at once"),
            (answers.by_the_lab, "the lab does it"),
        ),
        misconceptions=RANK_MISCONCEPTIONS,
        cases=rank_cases,
        accepts=are_ranks,
        withheld=("schedule.upward_ranks",),
    ),
)
