"""The exercise "shortest" of lesson 80: the best of all plans, in which a worker may also wait."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from . import shortest_plans_answers as answers
from .drawn_tasks import Shape, drawn_costs, drawn_shape, named
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
from .explaining import every, is_number
from .schedule_properties import (
    Costs,
    Graph,
)


def is_shortest(answer: Any, graph: Graph, costs: Costs, workers: int) -> bool:
    """Whether it is the length of the shortest of all plans, tried one by one."""
    return is_number(answer) and math.isclose(answer, answers.by_permutations(graph, costs, workers))


def _says(formula: Callable[[Graph, Costs, int], float]) -> Callable[[Sequence[Wrong]], bool]:
    return every(lambda answer, *arguments: is_number(answer) and math.isclose(answer, formula(*arguments)))


SHORTEST_MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Misconception(
        "not a number",
        "Return one number: how long the shortest plan takes.",
        lambda wrong: not is_number(wrong[0].answer),
    ),
    Misconception(
        "greedy is optimal",
        "Almost. In your plans a worker never waits while a task is ready. Sometimes the shortest plan lets a ready "
        "task wait for a moment, because a more important one becomes ready then.",
        _says(answers.never_waiting),
    ),
    Misconception(
        "the bound can always be reached",
        "You return a bound: no plan is shorter than all work divided by the workers, or than the longest way. But often "
        "no plan is as short as that.",
        _says(answers.the_bound),
    ),
    Misconception(
        "workers without end",
        "You return the length of the longest way, which is what it takes with a worker for everybody.",
        _says(answers.the_longest_way),
    ),
    Misconception(
        "there are two workers",
        "You plan for two workers, whatever `workers` says.",
        _says(lambda graph, costs, workers: answers.by_permutations(graph, costs, 2)),
    ),
    Misconception(
        "everybody gets as many tasks",
        "You deal the tasks out in turn. Who has a long task should get fewer of them: put each on the worker that is free "
        "first.",
        _says(answers.dealt_out),
    ),
    Misconception("one worker", "You add up all costs, as if there were one worker.", _says(answers.all_the_work)),
    Misconception(
        "the longest way first is optimal",
        "You return what the rule of the critical path makes. It is a good rule, not always the best: try the other "
        "orders.",
        _says(answers.by_rank),
    ),
    Misconception(
        "a plan may overtake what it waits for",
        "Your number is smaller than any legal plan. A task starts when a worker is free *and* all that it waits for "
        "has ended.",
        every(lambda answer, *arguments: is_number(answer) and answer < answers.by_permutations(*arguments)),
    ),
    Misconception(
        "not the shortest",
        "There is a shorter plan for the smallest example. Lay all orders out, one after the other: each task on the "
        "worker that is free first, as soon as all that it waits for has ended.",
        lambda wrong: True,
    ),
)

PATIENCE: Shape = [[], [], [0], [0], [2, 3]]  # costs 1, 2, 10, 10, 5 on two workers: who waits at 0 wins 1 second


def shortest_cases(random: Random, large: bool) -> Iterator[Case]:
    """A few tasks; for some of them patience pays, for some the longest way first is not the best."""
    yield _shortest_case("two tasks in a row", [[], [0]], (2, 3), 2, random)
    yield _shortest_case("three tasks side by side", [[], [], []], (2, 3, 2), 2, random)
    yield _shortest_case("five tasks side by side", [[]] * 5, _by_a_number(random, (3, 3, 2, 2, 2)), 2, random)
    yield _shortest_case(
        "tasks for which it pays to wait", PATIENCE, _by_a_number(random, (1, 2, 10, 10, 5)), 2, random
    )
    yield _shortest_case("one long task and short ones", [[]] * 4, _by_a_number(random, (7, 2, 2, 2)), 2, random)
    for workers in (1, 3):
        shape: Shape = [[], [], [], [0], [0, 1], []]
        yield _shortest_case("other numbers of workers", shape, drawn_costs(random, 6), workers, random)
    for _ in range(6 if large else 4):
        size, workers = random.randint(4, 6), random.choice((2, 2, 3))
        yield _shortest_case("random graphs", drawn_shape(random, size), drawn_costs(random, size), workers, random)


def _by_a_number(random: Random, costs: Sequence[int]) -> list[int]:
    factor = random.randint(1, 5)
    return [factor * cost for cost in costs]


def _shortest_case(check: str, shape: Shape, costs: Sequence[int], workers: int, random: Random) -> Case:
    graph, cost_of, _ = named(shape, costs, random)
    return case(check, f"{graph}, {cost_of}, {workers}")


EXERCISES = (
    Exercise(
        lesson="80_scheduling",
        statement="""\
Write `shortest(graph, costs, workers)`: how long does the shortest plan take?

* `graph` and `costs` are as before, with at most six tasks.
* Return one number: when the last task ends in the best legal plan that there is.""",
        hints=(
            "With so few tasks you can try everything. What has to be decided to make a plan? Is an order enough?",
            "Take the tasks in some order in which each comes after all that it waits for. Put each on the worker that "
            "is free first, as soon as all that it waits for has ended. The best over all orders is the best of all: "
            "in the order in which the tasks of the best plan start, each is put at least as early.",
            "`itertools.permutations(graph)` gives all orders; leave out those in which a task comes before one that "
            "it waits for. Start of a task: the larger of the smallest entry of `free_from` and the ends of all that "
            "it waits for.",
        ),
        solution=answers.shortest,
        alternatives=(answers.by_permutations,),
        wrong=(
            (answers.never_waiting, "greedy is optimal"),
            (answers.by_rank, "the longest way first is optimal"),
            (answers.the_bound, "the bound can always be reached"),
            (answers.the_longest_way, "workers without end"),
            (answers.all_the_work, "one worker"),
            (answers.without_gaps, "a plan may overtake what it waits for"),
            (answers.the_plan_itself, "not a number"),
            (answers.for_two_workers, "there are two workers"),
            (answers.dealt_out, "everybody gets as many tasks"),
        ),
        misconceptions=SHORTEST_MISCONCEPTIONS,
        cases=shortest_cases,
        accepts=is_shortest,
    ),
)
