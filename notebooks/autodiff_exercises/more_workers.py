"""The exercise "slower with more" of lesson 80: the numbers of workers at which one more makes a list schedule longer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from autodiff_lab import schedule

from . import more_workers_answers as answers
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
    lowered,
    tasks_of,
)


def are_slower(answer: Any, graph: Graph, costs: Costs, order: list[str]) -> bool:
    """Whether these are the numbers of workers after which the list's schedule gets longer."""
    return _are_counts(answer) and sorted(answer) == _slower(graph, costs, order)


def _slower(graph: Graph, costs: Costs, order: list[str]) -> list[int]:
    tasks = tasks_of(graph, costs, order)
    counts = range(1, len(graph) + 1)
    return lowered([schedule.simulate(tasks, workers, "priority").makespan for workers in counts])


def _are_counts(answer: Any) -> bool:
    return isinstance(answer, list | tuple | set) and all(is_number(one) and one == int(one) for one in answer)


def _counts(has: Callable[[list[int], list[int], int], bool]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether every wrong answer has a property, given what is right and the number of tasks."""
    return every(
        lambda answer, graph, costs, order: (
            _are_counts(answer) and has(sorted(answer), _slower(graph, costs, order), len(graph))
        )
    )


def _like(formula: Callable[[Graph, Costs, list[str]], Any]) -> Callable[[Sequence[Wrong]], bool]:
    return every(lambda answer, *arguments: _are_counts(answer) and sorted(answer) == formula(*arguments))


SLOWER_MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Misconception(
        "not numbers of workers",
        "Return a list of numbers of workers: whole numbers from 1 to one less than there are tasks. It may be empty.",
        lambda wrong: any(
            not _are_counts(one.answer) or not set(one.answer) <= set(range(1, len(one.case.arguments[0]) + 1))
            for one in wrong
        ),
    ),
    Misconception(
        "more workers never hurt",
        "You say that it never happens. It does: with another worker a task starts earlier, and a worker is then busy "
        "with it just when a more important one becomes ready. Simulate, and compare. (If you did: does a free worker "
        "take the first task of the list that *is* ready, or does everybody wait for the first of the list?)",
        _counts(lambda answer, right, size: not answer),
    ),
    Misconception(
        "one worker too far",
        "Each of your numbers is one too high. Asked for is the number from which one more hurts, not the number that "
        "is slower.",
        _counts(lambda answer, right, size: answer == [workers + 1 for workers in right]),
    ),
    Misconception(
        "one anomaly is all",
        "You stop at the first. Another worker may hurt again.",
        _counts(lambda answer, right, size: len(answer) == 1 and answer == right[:1]),
    ),
    Misconception(
        "a few workers are enough to see it",
        "Your answer is right up to a certain number of workers, and stops there. Try all numbers, up to as many "
        "workers as tasks.",
        _counts(lambda answer, right, size: answer == right[: len(answer)]),
    ),
    Misconception(
        "no gain is a loss",
        "You also name numbers at which one worker more changes nothing. Asked for is where it takes *longer*.",
        _like(answers.not_faster),
    ),
    Misconception(
        "slower than the best",
        "You compare with the best so far. Asked for is the next number of workers against this one.",
        _like(answers.slower_than_one),
    ),
    Misconception(
        "the list does not matter",
        "You serve in order of arrival. The list says who goes first among those that are ready.",
        _like(answers.as_they_come),
    ),
    Misconception(
        "not where it hurts",
        "Simulate the smallest example by hand, once for each number of workers: how long does each take?",
        lambda wrong: True,
    ),
)

ANOMALIES: tuple[tuple[str, Shape, tuple[int, ...]], ...] = (  # found by search, the first but one by Graham
    ("seven tasks", [[], [], [], [2, 0], [2], [2], [0]], (2, 3, 2, 2, 3, 2, 9)),
    ("Graham's nine tasks", [[], [], [], [], [3], [3], [3], [3], [0]], (3, 2, 2, 2, 4, 4, 4, 4, 9)),
    ("ten tasks", [[], [], [], [2], [], [1], [], [1], [], [2]], (2, 3, 1, 3, 5, 7, 1, 9, 4, 6)),
    ("twice", [[], [], [], [2, 1], [1], [4, 3], [2], [5, 1, 3], [], [8], []], (2, 3, 2, 4, 9, 2, 3, 5, 2, 3, 3)),
    ("twice", [[], [], [], [], [3, 1], [3], [3], [], [0], [], [4, 7, 8], []], (3, 2, 8, 3, 4, 3, 4, 1, 9, 8, 8, 6)),
    ("many workers", [[], [], [1], [], [1], [4, 1, 3], [], [], [], [], []], (5, 4, 3, 1, 6, 8, 8, 5, 3, 6, 8)),
)
FIRST_COME: Shape = [
    [],
    [],
    [],
    [],
    [],
    [3],
    [3, 1],
    [3],
    [0],
]  # an anomaly of FIFO, if written down like this, and of no list


def slower_cases(random: Random, large: bool) -> Iterator[Case]:
    """Graphs with anomalies at one or two numbers of workers, and graphs without any."""
    yield _slower_case("three tasks", [[], [0], [0]], (2, 3, 4), random)
    for check, shape, costs in ANOMALIES:
        factor = random.randint(1, 9)
        yield _slower_case(check, shape, [factor * cost for cost in costs], random)
    graph, cost_of, names = named(FIRST_COME, (3, 1, 2, 2, 4, 2, 4, 4, 9), random)
    yield case("another rule's anomaly", f"{ ({name: graph[name] for name in names}) }, {cost_of}, {names}")
    for size in (6, 8, *((10, 12) if large else ())):
        yield _slower_case("random graphs", drawn_shape(random, size), drawn_costs(random, size), random)


def _slower_case(check: str, shape: Shape, costs: Sequence[int], random: Random) -> Case:
    graph, cost_of, names = named(shape, costs, random)
    return case(check, f"{graph}, {cost_of}, {names}")


EXERCISES = (
    Exercise(
        lesson="80_scheduling",
        statement="""\
Write `slower_with_more(graph, costs, order)`: where does one worker more make it slower?

* `graph` and `costs` are as before; `order` is a list of all tasks. Whenever a worker is free, it takes the first task of the
  list that is ready, as in Graham's example.
* Return the list of all numbers of workers n, from 1 to one less than there are tasks, for which n + 1 workers need longer
  than n.""",
        hints=(
            "You have everything that you need: how long do these tasks take with one worker, with two, with three?",
            "`seven_steps(graph, costs, n, choose)` gives the starts; who is `choose`? From starts and costs follows "
            "when the last task ends.",
            "`choose = lambda ready: min(ready, key=order.index)` takes the first of the list that is ready. Make a "
            "list of the lengths for all n, and compare neighbours.",
        ),
        solution=answers.slower_with_more,
        alternatives=(answers.by_comparing,),
        wrong=(
            (answers.never, "more workers never hurt"),
            (answers.the_larger_number, "one worker too far"),
            (answers.not_faster, "no gain is a loss"),
            (answers.slower_than_one, "slower than the best"),
            (answers.as_they_come, "the list does not matter"),
            (answers.first_one, "one anomaly is all"),
            (answers.up_to_three, "a few workers are enough to see it"),
            (answers.the_lengths, "not numbers of workers"),
        ),
        misconceptions=SLOWER_MISCONCEPTIONS,
        cases=slower_cases,
        accepts=are_slower,
    ),
)
