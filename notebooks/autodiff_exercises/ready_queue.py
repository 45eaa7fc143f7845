"""The exercise "the seven steps" of lesson 80: a scheduler with a ready queue, several workers and any policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from . import ready_queue_answers as answers
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
    soon,
)
from .explaining import begins_with, every
from .order_properties import wrong_at_a_double_edge
from .schedule_properties import (
    Choose,
    Costs,
    Graph,
    are_starts,
    follows,
    is_idle_while_ready,
    is_legal,
    moments,
    most_at_once,
    waits_for_levels,
)

# --------------------------------------------------------------------------------------------------- what tells right


def is_what_the_steps_give(answer: Any, graph: Graph, costs: Costs, workers: int, choose: Choose) -> bool:
    """Whether it is a legal schedule in which ``choose`` fills every free worker, from all ready tasks, at every end."""
    return (
        are_starts(answer, graph)
        and is_legal(answer, graph, costs, workers)
        and follows(answer, graph, costs, workers, choose)
    )


# ------------------------------------------------------------------------------------------------ what explains wrong


def _all(has: Callable[[Any, Graph, Costs, int, Choose], bool]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether all wrong answers are starts, with a property."""
    return every(lambda answer, graph, *rest: are_starts(answer, graph) and has(answer, graph, *rest))


def _some(has: Callable[[Any, Graph, Costs, int, Choose], bool]) -> Callable[[Sequence[Wrong]], bool]:
    return lambda wrong: any(has(one.answer, *one.case.arguments) for one in wrong if not one.failure)


def _lacks_tasks(answer: Any, graph: Graph, *_: Any) -> bool:
    return isinstance(answer, dict) and answer.keys() < graph.keys()


def _waits_for_one(answer: Any, graph: Graph, costs: Costs, *_: Any) -> bool:
    return all(
        answer[task] >= min(answer[other] + costs[other] for other in before)
        for task, before in graph.items()
        if before
    )


def _waits_for_starts(answer: Any, graph: Graph, *_: Any) -> bool:
    return all(answer[task] >= answer[other] for task, before in graph.items() for other in before)


def _never_more_starts_than_ends(answer: Any, graph: Graph, costs: Costs, *_: Any) -> bool:
    return all(
        sum(start == moment for start in answer.values()) <= max(1, sum(answer[t] + costs[t] == moment for t in answer))
        for moment in moments(answer, costs)[1:]
    )


MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Misconception(
        "x * x is one edge",
        "Tasks are missing behind a task that uses one value twice. Such a task has two entries: if you count two "
        "before, count two off afterwards, or count each other task once in both places.",
        every(lambda answer, graph, *_: _lacks_tasks(answer, graph) and wrong_at_a_double_edge(list(answer), graph)),
    ),
    Misconception(
        "tasks are missing",
        "Some tasks never start. Step 7 says: repeat until *all* are done. Go on while any task is ready or runs.",
        _some(_lacks_tasks),
    ),
    Misconception(
        "not the starts",
        "Return a dictionary: for each task of the graph, and for nothing else, the time at which it starts.",
        _some(lambda answer, graph, *_: not are_starts(answer, graph)),
    ),
    Misconception(
        "an end for a start",
        "Your numbers are right as the times at which tasks end. Asked for is when they start.",
        _all(
            lambda answer, graph, costs, workers, choose: (
                all(answer[task] >= costs[task] for task in answer)
                and follows({task: end - costs[task] for task, end in answer.items()}, graph, costs, workers, choose)
            )
        ),
    ),
    Misconception(
        "the first second is not used",
        "Nothing starts at 0 in your schedule. The first tasks start at 0, as many as there are workers and ready tasks.",
        _all(lambda answer, graph, costs, workers, choose: min(answer.values()) > 0),
    ),
    Misconception(
        "all tasks take one step",
        "You go on in equal steps, as if each task took the same time. The clock has to jump to the next moment at which "
        "something ends, and `costs` says when that is.",
        _all(
            lambda answer, graph, costs, workers, choose: follows(
                answer, graph, dict.fromkeys(graph, 1.0), workers, choose
            )
        ),
    ),
    Misconception(
        "a ready task needs no worker",
        "More tasks run at once than there are workers. To be ready is not enough: step 4 says that a task also needs a "
        "resource, and a worker runs one task at a time.",
        _some(lambda answer, graph, costs, workers, choose: most_at_once(answer, costs) > workers),
    ),
    Misconception(
        "one input is enough",
        "A task starts when the first of those that it waits for has ended. It needs the values of all of them: count "
        "how many are missing, and let it join the queue at zero.",
        _all(lambda answer, graph, *rest: not _legal(answer, graph, *rest) and _waits_for_one(answer, graph, *rest)),
    ),
    Misconception(
        "a task that has begun is done",
        "A task starts while one that it waits for is still running. Values are there when a task *ends*: steps 5 and "
        "6 belong to its end, not to its start.",
        _all(lambda answer, graph, *rest: not _legal(answer, graph, *rest) and _waits_for_starts(answer, graph)),
    ),
    Misconception(
        "one at a time",
        "Only one task ever runs, although there are more workers. Give out ready tasks until no worker is free or "
        "none is left, and only then let time go on.",
        _all(lambda answer, graph, costs, *_: most_at_once(answer, costs) == 1),
    ),
    Misconception(
        "the queue is emptied in rounds",
        "New tasks start only when everything that ran has ended. Nobody has to wait for a whole round: when *one* "
        "task ends, its worker is free, and what it made ready may start at once.",
        _all(lambda answer, graph, costs, *_: waits_for_levels(answer, costs)),
    ),
    Misconception(
        "one end, one start",
        "A worker that once found nothing to do stays idle. When a task ends, several may become ready: start as many "
        "as there are free workers, not one for each that ended.",
        _all(
            lambda answer, graph, costs, workers, choose: (
                is_idle_while_ready(answer, graph, costs, workers)
                and _never_more_starts_than_ends(answer, graph, costs)
            )
        ),
    ),
    Misconception(
        "topological order is the order of execution",
        "A worker is idle while a task is ready. Is that task waiting for its turn in some order? A topological order "
        "says who may not overtake whom; who waits for nobody may start before all others.",
        _some(
            lambda answer, graph, costs, workers, choose: (
                is_legal(answer, graph, costs, workers) and is_idle_while_ready(answer, graph, costs, workers)
            )
        ),
    ),
    Misconception(
        "one end after the other",
        "It goes wrong where two tasks end at the same moment. All that ends then counts before anything new starts: "
        "else `choose` does not see every task that is ready.",
        begins_with("two end at once"),
    ),
    Misconception(
        "any ready task will do",
        "Legal, and nobody is idle; but it is not the policy that decides. Whenever a worker is free, hand the list of "
        "*all* ready tasks to `choose`, and start the one that it returns.",
        _all(lambda answer, graph, costs, workers, choose: is_legal(answer, graph, costs, workers)),
    ),
    Misconception(
        "not the seven steps",
        "Your schedule is not what the seven steps give. Play the smallest example by hand: who is ready at time 0, "
        "who is chosen, when does the first one end, and who becomes ready then?",
        lambda wrong: True,
    ),
)


def _legal(answer: Any, graph: Graph, costs: Costs, workers: int, choose: Choose) -> bool:
    return is_legal(answer, graph, costs, workers)


# -------------------------------------------------------------------------------------------------- what is called on

TWO_ENDS: Shape = [[], [], [0], [1], [0], [1]]
FIXED: tuple[tuple[str, Shape, tuple[int, ...], int], ...] = (  # check, shape, costs, workers
    ("a chain", [[], [0], [1]], (2, 3, 1), 2),
    ("a value used twice", [[], [0, 0], [1, 1, 0]], (2, 3, 1), 1),
    ("a task that waits for two", [[], [], [0, 1]], (2, 5, 1), 2),
    ("more ready tasks than workers", [[], [], [], [], []], (3, 1, 4, 2, 2), 2),
    ("several become ready at once", [[], [0], [0], [0], [1, 2]], (1, 4, 3, 2, 2), 3),
    ("short and long tasks side by side", [[], [], [1], [2], [0, 3]], (8, 1, 2, 3, 1), 2),
    ("a task that waits, and one that need not", [[], [0], [], [2], [1, 3]], (7, 1, 2, 6, 1), 2),
)


def cases(random: Random, large: bool) -> Iterator[Case]:
    """Tasks from few to many, under policies that do not depend on the order of the list."""
    for check, shape, costs, workers in FIXED:
        factor = random.randint(1, 3)
        yield _case(check, shape, [factor * cost for cost in costs], workers, random)
    for urgent in ((0, 1, 2, 4, 3, 5), (0, 1, 3, 5, 2, 4)):  # whichever end is looked at first, one of them shows it
        yield _case("two end at once", TWO_ENDS, (3, 3, 1, 2, 4, 5), 2, random, urgent)
    for size in range(5, 15 if large else 12):
        shape = drawn_shape(random, size)
        yield _case("random graphs", shape, drawn_costs(random, size), random.randint(1, 4), random)
    depth = random.randint(300, 400) if large else 300
    chain = f'{{"t0": [], **{{f"t{{i + 1}}": [f"t{{i}}"] for i in range({depth})}}}}'
    costs_of_it = f'{{f"t{{i}}": 1 + i % 3 for i in range({depth + 1})}}'
    yield soon(case("hundreds of tasks in a row", f"{chain}, {costs_of_it}, 2, min"))


def _case(
    check: str, shape: Shape, costs: Sequence[int], workers: int, random: Random, urgent: Sequence[int] = ()
) -> Case:
    graph, cost_of, names = named(shape, costs, random)
    order = [names[task] for task in urgent] or random.sample(names, k=len(names))
    by_urgency = f"lambda ready: min(ready, key={order}.index)"
    choose = by_urgency if urgent else random.choice(("min", "max", by_urgency))
    return case(check, f"{graph}, {cost_of}, {workers}, {choose}")


EXERCISES = (
    Exercise(
        lesson="80_scheduling",
        statement="""\
Write `seven_steps(graph, costs, workers, choose)`: a scheduler with a ready queue, in virtual time.

* `graph` is a dictionary: each task with the list of the tasks that it waits for, one entry for each use.
* `costs` says how many seconds each task takes, at least 1. There are `workers` workers; each runs one task at a time.
* `choose(ready)` is the policy. It is given the list of **all** tasks that are ready, and returns the one that goes next.
* Return a dictionary: for each task the time at which it starts. The first ones start at 0.
* No worker is idle while a task is ready. All that ends at one moment counts before anything new starts.
* A row of hundreds of tasks must go through. Do not change `graph`.""",
        hints=(
            "Keep three things: for each task how many it still waits for, the list of ready tasks, and for each running "
            "task when it will end. Which of them changes in which of the seven steps?",
            "Time does not tick, it jumps. First fill the workers: while a task is ready and a worker is free, choose, "
            "and write down start and end. Then jump to the smallest end among those that run, and do steps 5 and 6 "
            "for all tasks that end there.",
            "A loop around two parts, `while ready or running`. Part one: `while ready and len(running) < workers`. "
            "Part two: `now = min(running.values())`; for each task of which the end is `now`, take it out of "
            "`running`, and count down for each entry that names it; whoever reaches 0 goes into `ready`.",
        ),
        solution=answers.seven_steps,
        alternatives=(answers.looking_again, answers.with_a_heap),
        wrong=(
            (answers.one_input_is_enough, "one input is enough"),
            (answers.from_the_start, "a task that has begun is done"),
            (answers.without_workers, "a ready task needs no worker"),
            (answers.one_at_a_time, "one at a time"),
            (answers.level_by_level, "the queue is emptied in rounds"),
            (answers.in_turn, "topological order is the order of execution"),
            (answers.one_for_one, "one end, one start"),
            (answers.first_in_the_list, "any ready task will do"),
            (answers.in_steps, "all tasks take one step"),
            (answers.one_end_after_the_other, "one end after the other"),
            (answers.double_edges_lost, "x * x is one edge"),
            (answers.crossing_out, "changes its argument"),
            (answers.ends, "an end for a start"),
            (answers.only_the_order, "not the starts"),
            (answers.from_one_on, "the first second is not used"),
            (answers.by_the_lab, "the lab does it"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=is_what_the_steps_give,
        withheld=("schedule.simulate", "schedule.run"),
    ),
)
