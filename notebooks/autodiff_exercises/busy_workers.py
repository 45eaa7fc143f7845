"""The exercise "how busy" of lesson 90: the utilisation of a schedule, and the most that any schedule could reach."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from autodiff_lab import schedule

from . import busy_workers_answers as answers
from .drawn_tasks import Shape, drawn_costs, drawn_shape, named
from .exercise import CHANGED_ARGUMENTS, RETURNS_NOTHING, STOPS_WITH_ERROR, Case, Exercise, Misconception, Wrong, case
from .explaining import every, is_number
from .schedule_properties import Costs, Graph, Starts, tasks_of, timeline_of


def is_utilisation_and_bound(answer: Any, graph: Graph, costs: Costs, starts: Starts, workers: int) -> bool:
    """Whether both numbers are those of the timeline that the starts make."""
    if not _are_two_numbers(answer):
        return False
    timeline = timeline_of(starts, graph, costs, workers)
    return math.isclose(answer[0], timeline.utilisation) and math.isclose(answer[1], timeline.bound)


def _are_two_numbers(answer: Any) -> bool:
    return isinstance(answer, list | tuple) and len(answer) == 2 and all(map(is_number, answer))


def _like(formula: Callable[[Graph, Costs, Starts, int], Any]) -> Callable[[Sequence[Wrong]], bool]:
    return every(
        lambda answer, *arguments: (
            _are_two_numbers(answer)
            and all(math.isclose(one, other) for one, other in zip(answer, formula(*arguments), strict=True))
        )
    )


MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Misconception(
        "one number says it all",
        "Return two numbers, the utilisation and its bound. Without the bound nobody can tell whether the schedule or "
        "the graph is to blame.",
        lambda wrong: any(not _are_two_numbers(one.answer) for one in wrong),
    ),
    Misconception(
        "per cent are fractions",
        "Your numbers are right in per cent. Return fractions: half is 0.5.",
        _like(answers.in_per_cent),
    ),
    Misconception(
        "everything can be used",
        "Your bound is always 1. On a chain two workers cannot both be busy, whatever the policy: no schedule is "
        "shorter than the longest way through the graph.",
        _like(answers.always_one),
    ),
    Misconception(
        "more than everything can be used",
        "Your bound is above 1 where there is much to do side by side. Nobody uses more than all of the time.",
        _like(answers.without_a_cap),
    ),
    Misconception(
        "idle workers do not count",
        "You divide by the workers that had something to do. The others were there, and paid for: they count.",
        _like(answers.of_those_that_worked),
    ),
    Misconception(
        "time is used if somebody works",
        "You measure the time in which anybody works. With one busy worker of four a quarter is used.",
        _like(answers.when_somebody_works),
    ),
    Misconception(
        "the number of workers does not matter",
        "You compare the work with the time of a single worker. In one second, `workers` workers have that many seconds.",
        _like(answers.of_one_worker),
    ),
    Misconception(
        "the critical path has the most tasks",
        "Your bound counts tasks. The critical path is the way that takes longest, and few long tasks may take longer "
        "than many short ones.",
        _like(answers.counting_tasks),
    ),
    Misconception(
        "the longest task is the critical path",
        "Your bound follows from the longest task alone. Tasks that wait for each other add up: take the longest way.",
        _like(answers.of_the_longest_task),
    ),
    Misconception(
        "it ends when the last task starts",
        "You take the last start for the end. The schedule ends when the last task *ends*.",
        _like(answers.until_the_last_start),
    ),
    Misconception(
        "a good policy is the bound",
        "Your bound is what some policy reaches. Another may be better; the bound holds for all of them. It follows "
        "from all work, the longest way, and the number of workers.",
        _like(answers.by_the_best_policy),
    ),
    Misconception(
        "not the parts of the time",
        "The first number is all work, divided by workers times makespan. For the second, put the length of the "
        "longest way in place of the makespan; it is at most 1.",
        lambda wrong: True,
    ),
)


def cases(random: Random, large: bool) -> Iterator[Case]:
    """Schedules of real policies, from a chain on two workers to random graphs."""
    for check, shape, costs, workers in (
        ("a chain", [[], [0], [1]], (2, 9, 4), 2),
        ("tasks side by side", [[], [], [], []], (3, 3, 3, 3), 2),
        ("more workers than tasks", [[], [], []], (2, 4, 3), 5),
        ("a graph on which no ready queue is the best", [[], [], [0], [0], [2, 3]], (1, 2, 10, 10, 5), 2),
        ("few long tasks and many short ones", [[], [0], [1], [2], [], [4]], (1, 1, 1, 1, 5, 4), 2),
    ):
        factor = random.randint(1, 5)
        yield _case(check, shape, [factor * cost for cost in costs], workers, "critical_path", random)
    for number in range(10 if large else 8):
        shape = drawn_shape(random, random.randint(5, 9))
        policy = ("serial", "in_order", "fifo", "critical_path")[number % 4]
        yield _case("random graphs", shape, drawn_costs(random, len(shape)), random.randint(2, 4), policy, random)


def _case(check: str, shape: Shape, costs: Sequence[float], workers: int, policy: str, random: Random) -> Case:
    graph, cost_of, _ = named(shape, costs, random)
    timeline = schedule.simulate(tasks_of(graph, cost_of), workers, policy)
    starts = {task: start for task, start in zip(graph, timeline.starts, strict=True)}
    return case(check, f"{graph}, {cost_of}, {starts}, {workers}")


EXERCISES = (
    Exercise(
        lesson="90_resources",
        statement="""\
Write `how_busy(graph, costs, starts, workers)`: what part of the workers' time was used, and what part could be?

* `graph` and `costs` are dictionaries: what each task waits for, and how many seconds it takes. `starts` says when each task
  started, in some schedule on so many equal `workers`.
* Return two numbers: the **utilisation**, the part of all the workers' time, from 0 to the end of the last task, in which they
  ran tasks; and its **bound**, the highest utilisation that any schedule of this graph could have, on so many workers.
* Both are fractions, from 0 to 1.""",
        hints=(
            "The first number needs no graph: how many seconds of work are there, and how many seconds have the "
            "workers together?",
            "For the second: a schedule ends at the earliest when the longest way through the graph is done, and when "
            "all work is shared evenly. What would the utilisation be if it ended right then?",
            "With W all work, m workers and CP the longest way: W / (m · makespan), and min(1, W / (m · CP)). For CP "
            "give each task its cost plus the largest number of those that it waits for, in an order in which these "
            "are known.",
        ),
        solution=answers.how_busy,
        alternatives=(answers.by_idle_time,),
        wrong=(
            (answers.only_one_number, "one number says it all"),
            (answers.always_one, "everything can be used"),
            (answers.without_a_cap, "more than everything can be used"),
            (answers.of_those_that_worked, "idle workers do not count"),
            (answers.in_per_cent, "per cent are fractions"),
            (answers.of_one_worker, "the number of workers does not matter"),
            (answers.counting_tasks, "the critical path has the most tasks"),
            (answers.when_somebody_works, "time is used if somebody works"),
            (answers.until_the_last_start, "it ends when the last task starts"),
            (answers.of_the_longest_task, "the longest task is the critical path"),
            (answers.by_the_best_policy, "a good policy is the bound"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=is_utilisation_and_bound,
    ),
)
