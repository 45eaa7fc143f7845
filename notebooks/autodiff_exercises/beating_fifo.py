"""The exercise "beat FIFO" of lesson 80: any legal plan that is shorter will do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from autodiff_lab import schedule

from . import beating_fifo_answers as answers
from .drawn_tasks import drawn_costs, drawn_shape, named
from .exercise import (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    TOO_LATE,
    Case,
    Exercise,
    Misconception,
    Wrong,
    case,
    soon,
    stopped_by,
)
from .explaining import every
from .ranks_answers import handed_on
from .schedule_properties import (
    Costs,
    Graph,
    Starts,
    are_starts,
    is_legal,
    length,
    most_at_once,
    prefers,
    tasks_of,
)

TRIES = 2000  # draws for a graph with the wanted property; one in ten has it

# ------------------------------------------------------------------------------------------------------------ beat FIFO


def beats_fifo(answer: Any, graph: Graph, costs: Costs, workers: int) -> bool:
    """Whether the plan is legal and shorter than FIFO's."""
    return (
        are_starts(answer, graph)
        and is_legal(answer, graph, costs, workers)
        and length(answer, costs) < _length_of("fifo", graph, costs, workers)
    )


def _length_of(policy: str, graph: Graph, costs: Costs, workers: int) -> float:
    return schedule.simulate(tasks_of(graph, costs), workers, policy).makespan


def _plans(has: Callable[[Starts, Graph, Costs, int], bool]) -> Callable[[Sequence[Wrong]], bool]:
    return every(lambda answer, graph, *rest: are_starts(answer, graph) and has(answer, graph, *rest))


def _keeps_to(plan: Starts, graph: Graph) -> Callable[[Costs], bool]:
    """Whether every task starts after all that it waits for has ended."""
    return lambda costs: all(
        plan[other] + costs[other] <= plan[task] for task, before in graph.items() for other in before
    )


FIFO_MISCONCEPTIONS = (
    Misconception(
        "all orders can be tried",
        "You try all orders, and no answer comes. Ten tasks have up to 3,628,800 orders, twenty more than anybody "
        "could try. Choose by a rule: which tasks have the longest way to the end still before them?",
        stopped_by(TOO_LATE),
    ),
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Misconception(
        "not a plan",
        "Return a dictionary with the start of each task: an order alone does not say when a task starts.",
        lambda wrong: any(not are_starts(one.answer, one.case.arguments[0]) for one in wrong),
    ),
    Misconception(
        "a plan may overtake what it waits for",
        "Your plan is short because a task starts before one that it waits for has ended. Fill the workers, but only "
        "with tasks that are ready.",
        lambda wrong: any(not _keeps_to(one.answer, one.case.arguments[0])(one.case.arguments[1]) for one in wrong),
    ),
    Misconception(
        "there is always a free worker",
        "In your plan more tasks run at once than there are workers.",
        lambda wrong: any(most_at_once(one.answer, one.case.arguments[1]) > one.case.arguments[2] for one in wrong),
    ),
    Misconception(
        "one at a time",
        "Your plan runs one task at a time. It is right, and as slow as can be.",
        _plans(lambda plan, graph, costs, workers: most_at_once(plan, costs) == 1),
    ),
    Misconception(
        "long tasks are urgent",
        "You start the task that takes longest. A short task may be more urgent, if a long way waits behind it.",
        _plans(lambda plan, graph, costs, workers: prefers(plan, graph, costs, lambda task: costs[task])),
    ),
    Misconception(
        "short tasks are urgent",
        "You start the task that is done soonest. That makes many tasks happy early and the whole late: the long ones "
        "are left to the end.",
        _plans(lambda plan, graph, costs, workers: prefers(plan, graph, costs, lambda task: -costs[task])),
    ),
    Misconception(
        "who is nearest to the end goes first",
        "You start the task that has the *shortest* way to the end. Those with a long way are then late, and with them "
        "the whole.",
        _plans(lambda plan, graph, costs, workers: prefers(plan, graph, costs, _nearness(graph, costs))),
    ),
    Misconception(
        "first come, first served is fair",
        "Your plan takes exactly as long as FIFO's. Fair it is, but the program does not care who waited longest; it "
        "cares which tasks hold up the end.",
        _plans(lambda plan, graph, costs, workers: length(plan, costs) == _length_of("fifo", graph, costs, workers)),
    ),
    Misconception(
        "not shorter than FIFO",
        "Your plan is legal, and not shorter than FIFO's. Draw it for the smallest example: which task ends last, whom "
        "did it wait for, and could that one have started earlier?",
        lambda wrong: True,
    ),
)


def _nearness(graph: Graph, costs: Costs) -> Callable[[str], float]:
    ranks = handed_on(graph, costs, {})
    return lambda task: -ranks[task]


def fifo_cases(random: Random, large: bool) -> Iterator[Case]:
    """Graphs on which FIFO is not the best, and some other simple rule is no better than FIFO."""
    for number, rule in enumerate(
        (answers.least_urgent_first, answers.shortest_first, answers.longest_first, answers.fifo)
    ):
        for size in (5 + number, *((9, 10) if large else (8,))):
            yield soon(_fifo_case("graphs where other rules are no better", size, rule, random), 1.0)
    yield soon(_fifo_case("twenty tasks", 20, answers.fifo, random), 1.0)


def _fifo_case(check: str, size: int, rule: Callable[[Graph, Costs, int], Starts], random: Random) -> Case:
    for _ in range(TRIES):
        graph, costs, _names = named(drawn_shape(random, size), drawn_costs(random, size), random)
        workers = random.choice((2, 3))
        fifo = _length_of("fifo", graph, costs, workers)
        if _length_of("critical_path", graph, costs, workers) < fifo <= length(rule(graph, costs, workers), costs):
            return case(check, f"{graph}, {costs}, {workers}")
    raise AssertionError(f"no graph of {size} tasks was found")


EXERCISES = (
    Exercise(
        lesson="80_scheduling",
        statement="""\
Write `beat_fifo(graph, costs, workers)`: a plan that is shorter than FIFO's.

* `graph` and `costs` are dictionaries as before, and the workers are equal.
* Return a dictionary: for each task the time at which it starts. Who waits for whom must be kept, and no more tasks may run at
  once than there are workers.
* The plan has to be **shorter than what FIFO makes** of the same tasks. (FIFO: of those that are ready, who became ready first;
  of equals, who stands first in `graph`.) The graphs are such that this is possible. One has twenty tasks.
* You may use `seven_steps`, `upward_rank` or `schedule.simulate`: it is the choice that counts.""",
        hints=(
            "What goes wrong with FIFO in the pictures above? It starts tasks that nobody waits for, while one with a "
            "long way behind it stands in line.",
            "Give every task a number: how long is the way from its start to the end of the program? Then let the "
            "highest number go first.",
            "With your own functions: `ranks = upward_rank(graph, costs, {})`, and then "
            "`seven_steps(graph, costs, workers, choose)` with a `choose` that takes the task of the highest rank.",
        ),
        solution=answers.beat_fifo,
        alternatives=(answers.by_simulating, answers.best_of_many),
        wrong=(
            (answers.fifo, "first come, first served is fair"),
            (answers.longest_first, "long tasks are urgent"),
            (answers.shortest_first, "short tasks are urgent"),
            (answers.least_urgent_first, "who is nearest to the end goes first"),
            (answers.all_at_once, "there is always a free worker"),
            (answers.packed, "a plan may overtake what it waits for"),
            (answers.in_a_row, "one at a time"),
            (answers.every_order, "all orders can be tried"),
            (answers.only_an_order, "not a plan"),
        ),
        misconceptions=FIFO_MISCONCEPTIONS,
        cases=fifo_cases,
        accepts=beats_fifo,
    ),
)
