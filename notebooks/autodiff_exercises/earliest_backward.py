"""The exercise "earliest backward" of lesson 110: when each task of the backward pass can begin at the earliest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from autodiff_lab import schedule

from . import earliest_backward_answers as answers
from .exercise import (
    CHANGED_ARGUMENTS,
    EVERY_PATH,
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
from .schedule_properties import Costs, Graph, tasks_of
from .step_graphs import LADDER, drawn_step

MANY_WAYS = "values used twice, many times"


def are_earliest(answer: Any, graph: Graph, costs: Costs) -> bool:
    """Whether these are the starts of the backward tasks where no task ever waits for a worker."""
    tasks = tasks_of(graph, costs)
    timeline = schedule.simulate(tasks, len(tasks), "fifo")
    return _are_times(answer) and _equal(
        answer, {span.name: span.start for span in timeline.spans if span.name.startswith("d")}
    )


def _are_times(answer: Any) -> bool:
    return isinstance(answer, dict) and all(is_number(time) for time in answer.values())


def _are_backward(answer: Any, graph: Graph) -> bool:
    return _are_times(answer) and answer.keys() == {task for task in graph if task.startswith("d")}


def _equal(answer: Costs, times: Costs) -> bool:
    return answer.keys() == times.keys() and all(math.isclose(answer[task], times[task]) for task in times)


def _like(formula: Callable[[Graph, Costs], Costs]) -> Callable[[Sequence[Wrong]], bool]:
    return every(lambda answer, graph, costs: _are_times(answer) and _equal(answer, formula(graph, costs)))


MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    EVERY_PATH,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Misconception(
        "not the backward tasks",
        "Return a dictionary with a time for each backward task, whose names begin with `d`, and for no other task.",
        lambda wrong: any(not one.failure and not _are_backward(one.answer, one.case.arguments[0]) for one in wrong),
    ),
    Misconception(
        "backward can start any time",
        "Your backward tasks wait for each other only. They also need what forward computed: a slope is taken at a value, and "
        "the first gradient comes from the last forward task.",
        _like(answers.any_time),
    ),
    Misconception(
        "backward waits for all of forward",
        "Your backward tasks wait for the whole forward pass. A micro-batch goes backward as soon as *it* has gone forward; "
        "the graph says who waits for whom, and nobody else has to.",
        _like(answers.after_all_forward),
    ),
    Misconception(
        "backward is one chain",
        "You let the backward tasks run one after the other. Those that do not wait for each other may run side by side: there "
        "are as many workers as you like.",
        _like(answers.one_at_a_time),
    ),
    Misconception(
        "the first arrival is enough",
        "Your tasks begin when the *first* of what they wait for is done. They need all of it: the last one decides.",
        _like(answers.first_arrival),
    ),
    Misconception(
        "waits add up",
        "You add up the times at which the inputs of a task are done. They pass side by side: the last one decides.",
        _like(answers.waits_add_up),
    ),
    Misconception(
        "all tasks take the same time",
        "You count tasks. `costs` says how many seconds each of them takes.",
        _like(answers.counting_tasks),
    ),
    Misconception(
        "ends for starts",
        "Your times are those at which the tasks *end*. Asked for is when they begin.",
        _like(answers.the_ends),
    ),
    Misconception(
        "the dictionary is in order",
        "You go through the dictionary once, as it is written down. A task may stand before those that it waits for: look at "
        "it when they are known.",
        lambda wrong: "written" in wrong[0].case.check,
    ),
    Misconception(
        "a few rounds are enough",
        "Your function is right for few layers. How many rounds does it make? Repeat until every task is known.",
        lambda wrong: wrong[0].case.check == MANY_WAYS,
    ),
    Misconception(
        "not the earliest time",
        "Take the smallest example and a pencil: which tasks begin at 0, when do they end, and who has then all it waits for?",
        lambda wrong: True,
    ),
)


def cases(random: Random, large: bool) -> Iterator[Case]:
    """Steps of few and more layers and micro-batches; then written in any order, with further edges, with many paths."""
    more = 1 if large else 0
    for check, layers, micro_batches in (("two layers", 2, 1), ("deeper", 3 + more, 1), ("micro-batches", 2, 2 + more)):
        yield _case(check, *drawn_step(random, layers, micro_batches))
    for _ in range(3 + more):
        yield _case("written in any order", *drawn_step(random, 2 + more, random.randint(1, 3), shuffles=True))
    graph, costs = drawn_step(random, 3, 2 + more, shuffles=True)
    graph["dX1.0"].append("dW2.0")  # as a rule that needs both gradients
    graph["dW1.1"] = sorted({*graph["dW1.1"], "F2.0", "dX2.1"})
    yield _case("written in any order, with further edges", graph, costs)
    rungs = f"for n in reversed(range({LADDER})) for side in 'FG'"
    ladder = f"{{f'{{side}}{{n}}': [f'F{{n - 1}}', f'G{{n - 1}}'] if n else [] {rungs}}}"
    last = f"'dX0': ['F{LADDER - 1}'], 'dW0': ['G{LADDER - 1}', 'F0']"
    names = f"[f'{{side}}{{n}}' {rungs}] + ['dX0', 'dW0']"
    cost = f"dict.fromkeys({names}, {random.randint(2, 9)})"
    yield soon(case(MANY_WAYS, f"{{**{ladder}, {last}}}, {cost}"))


def _case(check: str, graph: Graph, costs: Costs) -> Case:
    return case(check, f"{graph}, {costs}")


EXERCISES = (
    Exercise(
        lesson="110_overlap",
        statement="""\
Write `earliest_backward(graph, costs)`: when can each task of the backward pass begin, at the earliest?

* `graph` is a dictionary: each task with the list of those that it waits for, in any order. `costs` says how many seconds each
  task takes. Forward tasks have names such as `F1.0`; the names of backward tasks begin with `d`: `dX1.0`, `dW1.0`.
* There are as many workers as you like: a task begins when all that it waits for has ended, and at 0 if it waits for nothing.
* Return a dictionary: the time for each **backward** task.""",
        hints=(
            "You need the times of the forward tasks too, although you do not return them. Which task is the first whose end "
            "you know?",
            "A task begins when the *last* of those that it waits for has ended, and ends its own cost later. Find the ends in "
            "an order in which those of its inputs are known, once for each task.",
            "`ends[task] = max((ends[b] for b in graph[task]), default=0) + costs[task]`, for tasks of which all `b` are in "
            "`ends`; repeat until none is left. A start is the end less the cost.",
        ),
        solution=answers.earliest_backward,
        alternatives=(answers.by_sorting, answers.by_simulation),
        wrong=(
            (answers.any_time, "backward can start any time"),
            (answers.after_all_forward, "backward waits for all of forward"),
            (answers.one_at_a_time, "backward is one chain"),
            (answers.first_arrival, "the first arrival is enough"),
            (answers.waits_add_up, "waits add up"),
            (answers.counting_tasks, "all tasks take the same time"),
            (answers.the_ends, "ends for starts"),
            (answers.all_tasks, "not the backward tasks"),
            (answers.as_written, "the dictionary is in order"),
            (answers.ten_rounds, "a few rounds are enough"),
            (answers.along_every_path, "once for every path"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=are_earliest,
    ),
)
