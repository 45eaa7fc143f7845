"""The exercise "whom the queue serves" of lesson 80: first in first out, last in first out, and priorities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from string import ascii_lowercase
from typing import Any

from . import queue_orders_answers as answers
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
from .explaining import every
from .queue_orders_answers import Log

# ------------------------------------------------------------------------------------------------ whom the queue serves


def is_served(answer: Any, log: Log, kind: str) -> bool:
    """Whether each take serves a task that waits and that no other waiting task goes before, and nothing else is served."""
    if not isinstance(answer, list | tuple) or not all(isinstance(task, str) for task in answer):
        return False
    waiting: dict[str, tuple[float, int]] = {}  # name -> priority and number
    left = list(answer)
    for number, entry in enumerate(log):
        if entry != "take":
            waiting[entry[0]] = (entry[1], number)
        elif waiting:
            task = left.pop(0) if left else ""
            if task not in waiting or any(_goes_before(other, waiting[task], kind) for other in waiting.values()):
                return False
            del waiting[task]
    return not left


def _goes_before(one: tuple[float, int], other: tuple[float, int], kind: str) -> bool:
    if kind == "priority" and one[0] != other[0]:
        return one[0] > other[0]
    return one[1] > other[1] if kind == "lifo" else one[1] < other[1]


def _serves_like(formula: Callable[[Log, str], list[Any]]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether every wrong answer is what another rule gives."""
    return every(lambda answer, log, kind: isinstance(answer, list | tuple) and list(answer) == formula(log, kind))


def _by_arrival(served: str, log: Log, kind: str) -> list[str]:
    return list(answers.served(log, served))  # type: ignore[no-untyped-call]


SERVED_MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Misconception(
        "not a list of tasks",
        "Return a list with the names of tasks and nothing else. A worker that finds the queue empty takes nothing, and "
        "leaves no trace in the list.",
        lambda wrong: any(
            not isinstance(one.answer, list | tuple) or not all(isinstance(task, str) for task in one.answer)
            for one in wrong
        ),
    ),
    Misconception(
        "looking is taking",
        "A task is served more than once. Whoever is taken leaves the queue.",
        lambda wrong: any(len(set(one.answer)) < len(one.answer) for one in wrong),
    ),
    Misconception(
        "the queue is emptied at the end",
        "You serve tasks that nobody took. When the log ends, some may still wait.",
        lambda wrong: any(len(one.answer) > one.case.arguments[0].count("take") for one in wrong),
    ),
    Misconception(
        "first in, last out",
        "You have changed two of the kinds over. FIFO is first in, first out, as in front of a shop; LIFO is last in, "
        "first out, as with a pile of plates.",
        _serves_like(answers.swapped),
    ),
    Misconception(
        "a queue is a queue",
        "You serve in order of arrival, whatever `kind` says.",
        _serves_like(answers.always_first_come),
    ),
    Misconception(
        "two kinds are enough",
        "FIFO and LIFO are right. For the third kind, priorities, it does not matter who came first or last: the highest "
        "number among those that wait goes first.",
        lambda wrong: any(
            _serves_like(partial(_by_arrival, kind))(wrong)
            and all(one.case.arguments[1] == "priority" for one in wrong)
            for kind in ("fifo", "lifo")
        ),
    ),
    Misconception(
        "all arrivals are known",
        "A task is taken before it has arrived, or instead of one that waited then. Sorting everything at the "
        "beginning is no queue: at each take you may choose among those that wait *at that moment*.",
        _serves_like(answers.all_known_at_first),
    ),
    Misconception(
        "small numbers are urgent",
        "You take the lowest priority first. Here a higher number goes first. (A heap of Python gives the smallest: put "
        "the negative number in.)",
        _serves_like(answers.smallest_first),
    ),
    Misconception(
        "equals go by name",
        "Of equal priorities you take the one whose name comes first in the alphabet: that is what a heap of pairs "
        "with names does. The one that came first should go first; put a running number before the name.",
        _serves_like(answers.by_name),
    ),
    Misconception(
        "equals are turned round",
        "Of equal priorities you take the one that came last. Who has waited longest should go first.",
        _serves_like(answers.last_of_equals),
    ),
    Misconception(
        "not whom the queue serves",
        "At some take another task should be the one that goes, or none. Write down by hand, for the smallest example, who "
        "waits at each take.",
        lambda wrong: True,
    ),
)


def served_cases(random: Random, large: bool) -> Iterator[Case]:
    """Logs from short to long, for all three kinds."""
    for check, pattern in (
        ("no take without a task", "aataatatt"),
        ("takes that find nothing", "tattaat"),
        ("tasks that stay to the end", "aaataat"),
        ("equal priorities", "aaaattatt"),
    ):
        for kind in ("fifo", "lifo", "priority"):
            yield _served_case(check, pattern, kind, random)
    for _ in range(20 if large else 10):
        pattern = "".join(random.choice("aat") for _ in range(random.randint(6, 16)))
        yield _served_case("random logs", pattern, random.choice(("fifo", "lifo", "priority")), random)


def _served_case(check: str, pattern: str, kind: str, random: Random) -> Case:
    names = iter(random.sample(ascii_lowercase, k=len(pattern)))
    in_alphabet = sorted(random.sample(ascii_lowercase, k=5))
    of_equals = iter(
        [in_alphabet[place] for place in (1, 4, 0, 2, 3)]
    )  # who comes first or last is not the first there
    log: Log = [
        "take"
        if one == "t"
        else (next(of_equals), 5)
        if check == "equal priorities"
        else (next(names), random.randint(1, 5))
        for one in pattern
    ]
    return case(check, f'{log}, "{kind}"')


EXERCISES = (
    Exercise(
        lesson="80_scheduling",
        statement="""\
Write `served(log, kind)`: in which order does a ready queue serve its tasks?

* `log` is what happens, in order. A pair such as `("a", 3)` says that the task `a` arrives, with priority 3; the text `"take"`
  says that a worker takes one. Who finds the queue empty goes away with nothing.
* `kind` is `"fifo"`: first in, first out; `"lifo"`: last in, first out; or `"priority"`: the highest number first, of
  equals the one that came first.
* Return the list of the tasks that were taken, in that order.""",
        hints=(
            "Go through the log with a list of those who wait. What happens to the list at an arrival, and what at a "
            "take?",
            "At a take, FIFO wants the first of the list and LIFO the last one. For priorities look for the largest "
            "number; of equals the one that stands first in the list.",
            "`max(queue, key=lambda waiting: waiting[1])` gives the first of the largest. Then `queue.remove(...)`. "
            "Take care of an empty list.",
        ),
        solution=answers.served,
        alternatives=(answers.by_keys,),
        wrong=(
            (answers.all_known_at_first, "all arrivals are known"),
            (answers.smallest_first, "small numbers are urgent"),
            (answers.last_of_equals, "equals are turned round"),
            (answers.by_name, "equals go by name"),
            (answers.swapped, "first in, last out"),
            (answers.nothing_is_served, "not a list of tasks"),
            (answers.emptied, "the queue is emptied at the end"),
            (answers.everybody, "the queue is emptied at the end"),
            (answers.two_kinds, "two kinds are enough"),
            (answers.never_removed, "looking is taking"),
            (answers.always_first_come, "a queue is a queue"),
        ),
        misconceptions=SERVED_MISCONCEPTIONS,
        cases=served_cases,
        accepts=is_served,
    ),
)
