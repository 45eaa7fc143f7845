"""The exercise "a scheduler for your record" of lesson 130: a ready queue over nodes, several workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from ..drawn_tasks import Shape, drawn_costs
from ..exercise import EVERY_PATH, RECURSION, STOPS_WITH_ERROR, Case, Exercise, Misconception, Wrong, case, soon
from ..schedule_properties import most_at_once
from . import node_plans_answers as answers
from . import probes
from .judging import PROTOCOL, plan_fault, waits_of
from .probes import Places
from .scalar_engines import LESSON

Facts = tuple[
    dict[str, list[str]], dict[str, float], dict[str, float], int
]  # who waits for whom, starts, costs, workers

FIXED: tuple[tuple[str, Shape, tuple[int, ...], int], ...] = (  # check, inputs of each node, costs, workers
    ("one operation", [[], [], [0, 1]], (9, 9, 2), 1),
    ("a chain", [[], [0], [1], [2]], (9, 2, 3, 1), 2),
    ("one value twice", [[], [0], [1, 1], [2, 2]], (9, 2, 3, 1), 2),
    ("two branches", [[], [0], [0], [1, 2]], (9, 5, 2, 1), 2),
    ("more ready nodes than workers", [[], [0], [0], [0], [0], [1, 2], [3, 4], [5, 6]], (9, 3, 1, 4, 2, 2, 1, 1), 2),
    ("short and long side by side", [[], [0], [0], [2], [3], [1, 4]], (9, 8, 1, 2, 3, 1), 2),
    ("one waits, another need not", [[], [0], [1], [0], [3], [2, 4]], (9, 7, 1, 2, 6, 1), 2),
)


def cases(random: Random, marking: bool) -> Iterator[Case]:
    """Records from one operation to many; then a wide and a deep one."""
    for check, shape, costs, workers in FIXED:
        factor = random.randint(1, 3)
        yield case(check, f"{shape}, {[factor * cost for cost in costs]}, {workers}")
    for size in range(6, 14 if marking else 10):
        record: list[list[int]] = [[], []]
        record += [random.choices(range(max(0, n - 4), n), k=random.randint(1, 2)) for n in range(2, size)]
        record.append(sorted(set(range(size)) - {one for inputs in record for one in inputs}))
        yield case("random records", f"{record}, {drawn_costs(random, size + 1)}, {random.randint(2, 4)}")
    times = random.randint(40, 60)
    yield soon(case("y = y + y, again and again", f"[[]] + [[n, n] for n in range({times})], [1] * {times + 1}, 2"))
    depth = random.randint(6000, 7000) if marking else 5000
    yield case(f"{depth:,} operations deep", f"[[]] + [[n] for n in range({depth})], [1] * {depth + 1}, 2")


def _facts(one: Wrong) -> Facts:
    graph, costs, workers = one.case.arguments
    waits = waits_of(graph)
    starts = {str(number): float(begin) for number, _worker, begin in one.answer}
    return waits, starts, {task: float(costs[int(task)]) for task in waits}, workers


def _some(*faults: str) -> Callable[[Sequence[Wrong]], bool]:
    return lambda wrong: any(not one.failure and plan_fault(one.answer, *one.case.arguments) in faults for one in wrong)


def _all(has: Callable[[Wrong], bool]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether all wrong answers are plans of all nodes, with a property."""

    def holds(one: Wrong) -> bool:
        return not one.failure and plan_fault(one.answer, *one.case.arguments) in ("illegal", "idle") and has(one)

    return lambda wrong: all(map(holds, wrong))


def _shifted(places: Callable[[Places, Sequence[float]], Places]) -> Callable[[Wrong], bool]:
    """Whether an answer is right after a change."""
    return lambda one: not plan_fault(places(one.answer, one.case.arguments[1]), *one.case.arguments)


def _too_many(one: Wrong) -> bool:
    _waits, starts, costs, workers = _facts(one)
    return most_at_once(starts, costs) > workers


def _on_one_lane(one: Wrong) -> bool:
    _waits, starts, costs, _workers = _facts(one)
    return most_at_once(starts, costs) == 1


def _in_rounds(one: Wrong) -> bool:
    """Whether each node begins when all are done that stand lower in the record."""
    waits, starts, costs, _workers = _facts(one)
    level: dict[str, int] = {}
    for task in sorted(waits, key=int):  # a record's numbers go up
        level[task] = 1 + max((level[other] for other in waits[task]), default=0)
    ends = [0.0] * (max(level.values()) + 1)
    for task in starts:
        ends[level[task]] = max(ends[level[task]], starts[task] + costs[task])
    return all(starts[task] >= max(ends[: level[task]]) for task in starts)


def _before_an_input(one: Wrong) -> bool:
    waits, starts, costs, _workers = _facts(one)
    return any(starts[task] < starts[other] + costs[other] for task in waits for other in waits[task])


def _has_leaves(wrong: Sequence[Wrong]) -> bool:
    return any(
        isinstance(one.answer, list) and any(not one.case.arguments[0][place[0]] for place in one.answer)
        for one in wrong
    )


MISCONCEPTIONS = (
    RECURSION,
    EVERY_PATH,
    PROTOCOL,
    STOPS_WITH_ERROR,
    Misconception(
        "not slots",
        "Return a list of `(node, worker, begin)`: a node of the record, the number of a worker, and a time.",
        _some("form"),
    ),
    Misconception(
        "inputs are work",
        "You planned values that were not computed. They are there from the beginning: their `op` is the empty text, and "
        "nobody has to run them.",
        _has_leaves,
    ),
    Misconception(
        "not each node once",
        "Some node is missing, or stands twice. All that was computed for the output has exactly one slot. A node with the "
        "same input twice waits for two entries: count both off, or none twice.",
        _some("nodes"),
    ),
    Misconception(
        "workers count from one",
        "Your plan is right but for the numbers of the workers: these are 0, 1, … up to `workers - 1`.",
        _all(_shifted(lambda places, costs: [(n, worker - 1, begin) for n, worker, begin in places])),
    ),
    Misconception(
        "an end for a begin",
        "Your times are right as the times at which nodes are done. Asked for is when they begin.",
        _all(_shifted(lambda places, costs: [(n, worker, begin - costs[n]) for n, worker, begin in places])),
    ),
    Misconception(
        "one input is enough",
        "A node begins before all of its inputs are done. Count how many of them are missing; who is at zero is ready.",
        lambda wrong: any(not one.failure and _before_an_input(one) for one in wrong),
    ),
    Misconception(
        "a ready node needs no worker",
        "Two nodes run on one worker at the same time. To be ready is not enough: a node also needs a worker that is free.",
        _some("illegal"),
    ),
    Misconception(
        "one at a time",
        "Only one node ever runs, although there are more workers. A topological order says who has to wait for whom; all "
        "others may run at the same time.",
        _all(_on_one_lane),
    ),
    Misconception(
        "the queue is emptied in rounds",
        "New nodes begin only when everything that ran has ended. When *one* node ends, its worker is free at once.",
        _all(_in_rounds),
    ),
    Misconception(
        "the order decides who begins",
        "A worker is idle while a node is ready. Is that node waiting for its turn in some order? Whoever is ready may "
        "begin.",
        lambda wrong: True,
    ),
)

EXERCISES = (
    Exercise(
        lesson=LESSON,
        statement="""\
Write `plan_nodes(output, cost, workers)`: a scheduler with a ready queue, for the record of your framework.

* `output` is a value. What it was computed from is found through `inputs`; a value whose `op` is `""` was not computed and
  is there from the beginning. `cost(node)` says how many seconds a node takes, more than 0.
* Return a list with one `(node, worker, begin)` for each node that was computed for `output`, itself included. Workers are
  `0`, `1`, … `workers - 1`; the first nodes begin at `0`.
* A node begins when all of its inputs are done and a worker is free. No worker is idle while a node is ready; which of the
  ready nodes goes first is for you to choose.
* A record of 5,000 nodes must go through, and one in which values are used again and again.

You may have written most of it in lesson 80: bring it along.""",
        hints=(
            "First go through the record from the output, and note for each node who uses it and how many computed inputs "
            "it waits for. Then play the seven steps of lesson 80.",
            "Keep `ready`, the numbers of the `free` workers, and `running`, a list of (end, worker, node). While somebody "
            "is ready and a worker is free: one slot more. Then jump to the smallest end.",
            "After the jump: for each entry that ends now give its worker back, and for each user of its node, once for "
            "each use, count down; who is at 0 becomes ready. A loop around both parts: `while ready or running`.",
        ),
        solution=answers.plan_nodes,
        alternatives=(answers.by_ends,),
        wrong=(
            (answers.one_after_the_other, "one at a time"),
            (answers.without_workers, "a ready node needs no worker"),
            (answers.one_input_is_enough, "one input is enough"),
            (answers.level_by_level, "the queue is emptied in rounds"),
            (answers.in_turn, "the order decides who begins"),
            (answers.leaves_are_work, "inputs are work"),
            (answers.double_edges_lost, "not each node once"),
            (answers.recursive, "recursion"),
            (answers.every_path, "once for every path"),
            (answers.names_only, "the lab cannot read it"),
            (answers.ends_for_begins, "an end for a begin"),
            (answers.from_worker_one, "workers count from one"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=lambda answer, graph, costs, workers: not plan_fault(answer, graph, costs, workers),
        withheld=("schedule.simulate", "schedule.run"),
        seconds=10.0,
        probe=probes.planned,
    ),
)
