"""Two exercises of lesson 90 on memory: the peak of an order, and an order whose peak stays under a cap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from . import memory_plans_answers as answers
from .attempts import Attempt
from .drawn_tasks import Shape, drawn_costs, drawn_shape, named
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
from .explaining import every, is_number
from .memory_plans_answers import Reads, Sizes
from .order_properties import is_topological_order

TRIES = 3000

# ---------------------------------------------------------------------------------------------------------- peak memory


def is_the_peak(answer: Any, order: list[str], reads: Reads, nbytes: Sizes, kept: list[str]) -> bool:
    """Whether it is the largest sum, over all moments, of what has begun to live and is wanted then or later."""
    return is_number(answer) and bool(answer == answers.by_moments(order, reads, nbytes, kept))


def _like(formula: Callable[..., Any]) -> Callable[[Sequence[Wrong]], bool]:
    return every(lambda answer, *arguments: is_number(answer) and answer == formula(*arguments))


PEAK_MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Misconception(
        "not a number of bytes",
        "Return one number: the most bytes that live at one time.",
        lambda wrong: any(not is_number(one.answer) for one in wrong),
    ),
    Misconception(
        "memory is freed at the end",
        "You add up all results, as if nothing were freed before the end. A result can go as soon as its last reader "
        "is done: that is why memory is less than the sum.",
        _like(answers.freed_at_the_end),
    ),
    Misconception(
        "results are counted, not weighed",
        "You count how many results live. They have different sizes: add up `nbytes`.",
        _like(answers.number_of_results),
    ),
    Misconception(
        "the first name is all",
        "You keep one of the results in `kept`. There may be more of them.",
        _like(answers.first_is_kept),
    ),
    Misconception(
        "it runs as it is written",
        "You look for the last reader in the order in which `reads` is written down. The tasks run in the order of `order`.",
        _like(answers.last_as_written),
    ),
    Misconception(
        "only the running task needs memory",
        "You look at what the running task reads and writes. Beside it live all results that a *later* task will read.",
        _like(answers.only_what_is_read),
    ),
    Misconception(
        "operands make room for the result",
        "You free what a task reads before its result is there. While it runs, it reads the one and writes the other, "
        "so both live.",
        _like(answers.freed_before),
    ),
    Misconception(
        "read once, freed",
        "You free a result when its first reader is done. If another task reads it later, that is a *use after free*: "
        "it would find something else there. Wait for the last reader.",
        _like(answers.freed_by_the_first),
    ),
    Misconception(
        "what is kept can go",
        "You free results that somebody wants at the end. They live until then, whoever has read them.",
        _like(answers.outputs_freed),
    ),
    Misconception(
        "who is never read stays for ever",
        "A result that nobody reads and nobody keeps is freed when its own task ends. With you it stays: that is a leak.",
        _like(answers.unread_kept),
    ),
    Misconception(
        "the peak is at the end",
        "You return what lives at the end. The most may have lived somewhere in the middle.",
        _like(answers.at_the_end),
    ),
    Misconception(
        "read twice, freed twice",
        "It goes wrong where a task reads one result twice. The result is there once, and freed once.",
        _like(answers.twice_read_twice_there),
    ),
    Misconception(
        "not the peak",
        "At some moment more or less lives than you say. For the smallest example write down, task by task, what lives "
        "while it runs.",
        lambda wrong: True,
    ),
)

PEAK_SHAPES: tuple[tuple[str, Shape, tuple[int, ...], tuple[int, ...]], ...] = (  # check, shape, sizes, kept
    ("a chain", [[], [0], [1]], (8, 4, 6), (2,)),
    ("a result that two tasks read", [[], [0], [0], [1, 2]], (8, 2, 1, 1), (3,)),
    ("a result that is kept", [[], [0], [1], [2]], (8, 1, 6, 2), (0, 3)),
    ("a result that is kept", [[], [0], [1], [2]], (8, 1, 6, 2), (3, 0)),
    ("a result that nobody reads", [[], [], [1]], (8, 5, 4), (2,)),
    ("a task that reads one result twice", [[], [0, 0], [1]], (4, 5, 6), (2,)),
)


def peak_cases(random: Random, large: bool) -> Iterator[Case]:
    """Orders of small graphs, each with something to stumble over, and of random ones."""
    for check, shape, sizes, kept in PEAK_SHAPES:
        factor = random.randint(1, 9)
        yield _peak_case(check, shape, [factor * size for size in sizes], kept, random)
    fan: Shape = [[], [0], [0], [0], [0]]
    yield _peak_case("written in another order than it runs", fan, (8, 1, 5, 9, 1), (4,), random, (0, 4, 3, 1, 2))
    for size in range(5, 13 if large else 10):
        shape = drawn_shape(random, size)
        outputs = random.sample(range(size), k=random.randint(1, 2))
        yield _peak_case("random graphs", shape, drawn_costs(random, size, 20), outputs, random)


def _peak_case(
    check: str,
    shape: Shape,
    sizes: Sequence[int],
    kept: Sequence[int],
    random: Random,
    written: Sequence[int] = (),
) -> Case:
    reads, nbytes, names = named(shape, sizes, random)
    reads = {names[task]: reads[names[task]] for task in written} or reads
    return case(check, f"{names}, {reads}, {nbytes}, {[names[task] for task in kept]}")


# ---------------------------------------------------------------------------------------------------------- under a cap


def is_under_the_cap(answer: Any, reads: Reads, nbytes: Sizes, kept: list[str], cap: int) -> bool:
    """Whether each task comes once and after all that it reads, and never more than ``cap`` bytes live."""
    return is_topological_order(answer, reads) and answers.by_moments(list(answer), reads, nbytes, kept) <= cap


def _orders_like(formula: Callable[..., Any]) -> Callable[[Sequence[Wrong]], bool]:
    return every(lambda answer, *arguments: isinstance(answer, list | tuple) and list(answer) == formula(*arguments))


CAP_MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    Misconception(
        "all orders can be tried",
        "You try all orders from the beginning, and no answer comes. Stop as soon as the memory is full: all orders "
        "that begin like this one are hopeless. And remember which sets of tasks led nowhere.",
        stopped_by(TOO_LATE, "MemoryError"),
    ),
    STOPS_WITH_ERROR,
    Misconception(
        "not a list of tasks",
        "Return a list of tasks, the names and nothing else. There is always an order that fits.",
        lambda wrong: any(
            not isinstance(one.answer, list | tuple)
            or not all(isinstance(task, str) and task in one.case.arguments[0] for task in one.answer)
            for one in wrong
        ),
    ),
    Misconception(
        "what nobody wants need not run",
        "Tasks are missing, or there twice. Each has to run once, also one whose result nobody keeps.",
        lambda wrong: any(sorted(one.answer) != sorted(one.case.arguments[0]) for one in wrong),
    ),
    Misconception(
        "use before it is there",
        "A task stands before one whose result it reads. It would read memory in which nothing is yet.",
        lambda wrong: any(not is_topological_order(one.answer, one.case.arguments[0]) for one in wrong),
    ),
    Misconception(
        "the oldest first saves memory",
        "You take tasks in the order in which they become ready. That begins everything and finishes nothing, so much "
        "lives at once.",
        _orders_like(answers.as_they_come),
    ),
    Misconception(
        "the newest first saves memory",
        "You always go on with what was just made. That is a good rule, but it cannot see that another branch is "
        "larger, or that a large result should wait.",
        _orders_like(answers.newest_first),
    ),
    Misconception(
        "small results first",
        "You take the smallest result first. What counts is not what a task makes, but what lives afterwards, and what "
        "the rest will need.",
        _orders_like(answers.smallest_first),
    ),
    Misconception(
        "large results first",
        "You take the largest result first. It then lives beside everything that comes before its reader.",
        _orders_like(answers.largest_first),
    ),
    Misconception(
        "least memory now is least memory later",
        "You take the task that leaves least behind at this moment. Sometimes one has to take more now to free much "
        "soon. When you are stuck, go back and try another.",
        _orders_like(answers.least_now),
    ),
    Misconception(
        "more than the cap",
        "In your order more than `cap` bytes live at some time. While a task runs, its result lives beside all that it "
        "reads and all that later tasks will read.",
        lambda wrong: True,
    ),
)
RULES = (
    (answers.as_they_come, "the oldest first saves memory"),
    (answers.newest_first, "the newest first saves memory"),
    (answers.smallest_first, "small results first"),
    (answers.largest_first, "large results first"),
    (answers.least_now, "least memory now is least memory later"),
)


def cap_cases(random: Random, large: bool) -> Iterator[Case]:
    """Graphs whose smallest possible peak is the cap, on which each simple rule fails once, and one without hope of luck."""
    yield _cap_case("two branches", [[], [0], [], [2], [1, 3]], (9, 1, 9, 1, 1), (4,), random)
    for size, (rule, name) in enumerate(RULES, start=5):
        for _ in range(2 if large else 1):
            yield _graph_that_shows(rule, name, size, random)
    branches, bottom = random.sample(range(20, 40), k=6), 12  # large results that each leave a small one, and their sum
    shape: Shape = [*([[]] * 6), *([branch] for branch in range(6)), list(range(6, bottom))]
    while True:  # only what begins with the largest fits, so it is not where trying all orders comes to it first
        one = _cap_case("thirteen tasks", shape, [*branches, *([1] * 7)], (bottom,), random)
        reads, nbytes, *_ = one.arguments
        roots = [task for task in reads if not reads[task]]
        if max(roots, key=nbytes.__getitem__) in roots[1:-1]:
            break
    yield soon(one)


def _graph_that_shows(rule: Callable[..., list[str]], name: str, size: int, random: Random) -> Case:
    """A graph on which a simple rule takes too much memory, in a way that tells it from all others."""
    for _ in range(TRIES):
        shape = drawn_shape(random, size)
        unread = [task for task in range(size) if not any(task in before for before in shape)]
        one = _cap_case("random graphs", shape, drawn_costs(random, size, 20), unread, random)
        wrong = Wrong(one, Attempt(0, rule(*one.arguments)))
        belief = next(belief for belief in CAP_MISCONCEPTIONS if belief.explains([wrong]))
        if belief.name == name and not is_under_the_cap(wrong.answer, *one.arguments):
            return one
    raise AssertionError(f"no graph was found for {name}")


def _cap_case(check: str, shape: Shape, sizes: Sequence[int], kept: Sequence[int], random: Random) -> Case:
    reads, nbytes, names = named(shape, sizes, random)
    outputs = [names[task] for task in kept]
    return case(check, f"{reads}, {nbytes}, {outputs}, {answers.smallest_peak(reads, nbytes, outputs)}")


EXERCISES = (
    Exercise(
        lesson="90_resources",
        statement="""\
Write `peak_memory(order, reads, nbytes, kept)`: how many bytes live at most?

* `order` is a list of tasks; they run one after the other. `reads` says for each task whose results it reads, one entry for
  each use, and `nbytes` how large its own result is.
* A result lives from the start of its task until its last reader is done. Those in `kept` live to the end. A result that nobody
  reads, and that is not kept, goes when its own task is done.
* Return the largest number of bytes that live at one time.""",
        hints=(
            "Take the example of a chain and write down, for each task, what lives while it runs.",
            "Find out first who reads each result last. Then go through the order with a counter: up when a task "
            "begins, down when it is done. When do you look at the counter?",
            "While a task runs, its result *and* all that it reads live. So: add `nbytes[task]`, compare with the most "
            "so far, and only then take off what nobody reads after this task and nobody keeps.",
        ),
        solution=answers.peak_memory,
        alternatives=(answers.by_moments,),
        wrong=(
            (answers.freed_at_the_end, "memory is freed at the end"),
            (answers.only_what_is_read, "only the running task needs memory"),
            (answers.freed_before, "operands make room for the result"),
            (answers.freed_by_the_first, "read once, freed"),
            (answers.outputs_freed, "what is kept can go"),
            (answers.unread_kept, "who is never read stays for ever"),
            (answers.at_the_end, "the peak is at the end"),
            (answers.first_is_kept, "the first name is all"),
            (answers.last_as_written, "it runs as it is written"),
            (answers.twice_read_twice_there, "read twice, freed twice"),
            (answers.number_of_results, "results are counted, not weighed"),
        ),
        misconceptions=PEAK_MISCONCEPTIONS,
        cases=peak_cases,
        accepts=is_the_peak,
    ),
    Exercise(
        lesson="90_resources",
        statement="""\
Write `under_a_cap(reads, nbytes, kept, cap)`: an order that fits into memory.

* `reads`, `nbytes` and `kept` are as before; the tasks run one after the other.
* Return a list of **all** tasks, each after all that it reads, in which never more than `cap` bytes live at one time.
* There is always such an order, but there may be few of them. One graph has thirteen tasks.""",
        hints=(
            "With few tasks you can try: which may come first, which may come then? When do you know that an order is "
            "no good?",
            "Build the order from the left. At each point try every task that may come next and still fits. If none "
            "does, take the last one back and try another.",
            "What lives after some tasks depends only on *which* are done, not on their order. So remember the sets of "
            "tasks from which nothing led to the end (a `frozenset` can be put into a set), and never go there again.",
        ),
        solution=answers.under_a_cap,
        alternatives=(answers.by_the_best_of_all,),
        wrong=(
            *RULES,
            (answers.smallest_sizes_first, "use before it is there"),
            (answers.every_order, "all orders can be tried"),
            (answers.every_legal_order, "all orders can be tried"),
            (answers.gives_up, "not a list of tasks"),
        ),
        misconceptions=CAP_MISCONCEPTIONS,
        cases=cap_cases,
        accepts=is_under_the_cap,
        seconds=10.0,
    ),
)
