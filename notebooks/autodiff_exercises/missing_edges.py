"""The exercise "missing edges" of lesson 110: hazards that a list of dependencies leaves open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from autodiff_lab import schedule

from . import missing_edges_answers as answers
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
from .explaining import every
from .missing_edges_answers import Pairs, TaskList
from .schedule_properties import tasks_of
from .step_graphs import LADDER, ancestors

MANY_WAYS = "many ways"


def are_missing(answer: Any, tasks: TaskList, edges: Pairs) -> bool:
    """Whether exactly those pairs are named that touch a value, one writing, and of which the later need not wait."""
    return _are_pairs_once(answer) and _as_set(answer) == _open(tasks, edges)


def _open(tasks: TaskList, edges: Pairs) -> set[tuple[str, str]]:
    waits = {name: [one for one, later in dict.fromkeys(map(tuple, edges)) if later == name] for name, _, _ in tasks}
    known = ancestors(tasks_of(waits, dict.fromkeys(waits, 1)))
    found: set[tuple[str, str]] = set()
    users: dict[str, list[tuple[str, bool]]] = {}
    for name, reads, writes in tasks:
        for value in {*reads, *writes}:
            before = users.setdefault(value, [])
            found |= {(one, name) for one, wrote in before if (wrote or value in writes) and one not in known[name]}
            before.append((name, value in writes))
    return found


def _are_pairs(answer: Any) -> bool:
    return isinstance(answer, list | tuple | set) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(one, str) for one in pair)
        for pair in answer
    )


def _are_pairs_once(answer: Any) -> bool:
    return _are_pairs(answer) and len(answer) == len(_as_set(answer))


def _as_set(answer: Any) -> set[tuple[str, ...]]:
    return set(map(tuple, answer))


def _like(formula: Callable[[TaskList, Pairs], Pairs]) -> Callable[[Sequence[Wrong]], bool]:
    return every(lambda answer, *arguments: _are_pairs(answer) and _as_set(answer) == set(formula(*arguments)))


MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    EVERY_PATH,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Misconception(
        "not pairs of tasks",
        "Return a list of pairs of names, each pair once. It is empty where nothing is missing.",
        lambda wrong: any(not one.failure and not _are_pairs_once(one.answer) for one in wrong),
    ),
    Misconception(
        "later first",
        "Your pairs are the wrong way round: first the task that comes first in the program.",
        _like(answers.later_first),
    ),
    Misconception(
        "only reading waits for writing",
        "You find tasks that read what another writes. One that *writes* what another still reads, or has written, must wait "
        "too: memory is used again.",
        _like(answers.only_true_dependencies),
    ),
    Misconception(
        "readers may be overtaken",
        "You forget the write after a read: who overwrites a value must wait for those that still read it.",
        _like(answers.readers_overtaken),
    ),
    Misconception(
        "writers may be overtaken",
        "You forget the write after a write: the last one in the program has to win, so it has to come last.",
        _like(answers.writers_overtaken),
    ),
    Misconception(
        "readers wait for readers",
        "You order tasks that both only read a value. They disturb nobody, and may run side by side.",
        _like(answers.readers_too),
    ),
    Misconception(
        "a few steps are enough",
        "You follow the edges for some steps only. A way may have any number of them.",
        lambda wrong: wrong[0].case.check == MANY_WAYS or _like(answers.ways_of_two)(wrong),
    ),
    Misconception(
        "every order needs its own edge",
        "You ask for an edge where there is a way already. If a waits for b and b for c, then a waits for c.",
        _like(answers.an_edge_for_each),
    ),
    Misconception(
        "the edges do not matter",
        "You name all pairs that need an order, also those that have it. Asked for is what is *missing*.",
        _like(answers.what_is_there),
    ),
    Misconception(
        "what is named is mended",
        "You leave out hazards that would be gone if the edges that you have named were there. They are not: each pair is a "
        "hazard by itself, along the edges that *are* there.",
        _like(answers.as_if_mended),
    ),
    Misconception(
        "edges come in order",
        "You go through `edges` once, as they stand there. An edge may stand before those that lead to its first task: what "
        "is known of a task has to be complete before it is handed on.",
        _like(answers.edges_as_written),
    ),
    Misconception(
        "only neighbours meet",
        "You compare each task with the one before it. Any two tasks can run at the same time, unless there is a way between "
        "them.",
        _like(answers.neighbours_only),
    ),
    Misconception(
        "one hazard is all",
        "You stop at the first. There may be more.",
        _like(answers.the_first),
    ),
    Misconception(
        "not what is missing",
        "Take the smallest example. For each two tasks ask: do both touch a value, and does one of them write it? If so, which "
        "edges make the later one wait?",
        lambda wrong: True,
    ),
)

KINDS: tuple[tuple[str, TaskList], ...] = (
    ("write after read", [("F", ["x", "w"], ["y"]), ("update", ["g"], ["w"])]),
    ("read after write", [("F0", ["x"], ["h"]), ("F1", ["h"], ["y"])]),
    ("write after write", [("clear", [], ["g"]), ("dW", ["x"], ["g"])]),
    ("all three", [("one", ["x"], ["y"]), ("two", ["y"], ["x"]), ("three", [], ["y"])]),
    ("two readers", [("F", ["x", "w"], ["y"]), ("dX", ["w", "e"], ["dx"]), ("dW", ["x", "e"], ["dw"])]),
)


def cases(random: Random, large: bool) -> Iterator[Case]:
    """Each kind of hazard alone; training steps of which edges were taken out; long chains; many ways."""
    for check, tasks in KINDS:
        yield _case(check, tasks, [])
    yield _case("all is in order", KINDS[1][1], [("F0", "F1")])
    chain: TaskList = [(f"add{n}", ["a", "g"], ["g"]) for n in range(random.randint(5, 7))]
    yield _case("a chain", chain, [(f"add{n}", f"add{n + 1}") for n in range(len(chain) - 1) if n != 2])
    for layers, micro_batches, lost in ((1, 2, 1), (2, 1, 2), (2, 2, 3), *(((3, 2, 4),) if large else ())):
        yield _case("a training step", *_step(random, layers, micro_batches, lost))
    yield soon(case(MANY_WAYS, _ladder(random.randint(2, 9))))


def _case(check: str, tasks: TaskList, edges: Pairs) -> Case:
    return case(check, f"{tasks}, {edges}")


def _step(random: Random, layers: int, micro_batches: int, lost: int) -> tuple[TaskList, Pairs]:
    """A step with updates in place, and its dependencies in any order but so many, one of which an update needs."""
    step = schedule.training_step(layers, micro_batches, update=1.0)
    tasks = [(task.name, list(task.reads), list(task.written)) for task in step]
    edges = [(step.name(one), task.name) for task in step for one in step.predecessors[task.id]]
    needed = next(edge for edge in edges if edge[1].startswith("update") and not edge[0].startswith("dW"))
    rest = [edge for edge in edges if edge != needed]
    return tasks, random.sample(rest, k=len(rest) - lost)


def _ladder(last: int) -> str:
    """Two tasks read what the last one writes: from one of them very many ways lead there, from the other none."""
    rungs = f"*[(f'{{side}}{{n}}', [], [f'{{side}}{{n}}']) for n in range({LADDER}) for side in 'ab']"
    edges = f"[(f'{{one}}{{n}}', f'{{other}}{{n + 1}}') for n in range({LADDER - 1}) for one in 'ab' for other in 'ab']"
    ends = f"('first', 'a0'), ('a{LADDER - 1}', 'last')"
    return f"[('first', ['w'], []), ('alone{last}', ['w'], []), {rungs}, ('last', [], ['w'])], [*{edges}, {ends}]"


EXERCISES = (
    Exercise(
        lesson="110_overlap",
        statement="""\
Write `missing_edges(tasks, edges)`: somebody says who waits for whom. What was forgotten?

* `tasks` is a list in the order of the program; each task is a tuple of its name, the list of values that it reads, and the
  list of values that it writes. `edges` is a list of pairs `(earlier, later)`: `later` waits for `earlier`.
* Two tasks are a **hazard** if both touch the same value, at least one of them writes it, and no way along the edges leads from
  the earlier one to the later one: then they may run in the wrong order, or at once.
* Return the list of all hazards, as pairs `(earlier, later)`; earlier and later as in the program.""",
        hints=(
            "There are two questions, and each deserves lines of its own: do these two tasks need an order? Do the edges give "
            "one?",
            "Two tasks need an order if one writes what the other reads or writes. For the other question collect, for each "
            "task, the set of all that have certainly ended before it.",
            "In the order of the program: `before[later]` is the union of `{one} | before[one]` over the edges `(one, later)`. "
            "Edges never lead back, so `before[one]` is complete.",
        ),
        solution=answers.missing_edges,
        alternatives=(answers.by_marking,),
        wrong=(
            (answers.only_true_dependencies, "only reading waits for writing"),
            (answers.readers_overtaken, "readers may be overtaken"),
            (answers.writers_overtaken, "writers may be overtaken"),
            (answers.readers_too, "readers wait for readers"),
            (answers.an_edge_for_each, "every order needs its own edge"),
            (answers.ways_of_two, "a few steps are enough"),
            (answers.later_first, "later first"),
            (answers.neighbours_only, "only neighbours meet"),
            (answers.as_if_mended, "what is named is mended"),
            (answers.edges_as_written, "edges come in order"),
            (answers.the_first, "one hazard is all"),
            (answers.what_is_there, "the edges do not matter"),
            (answers.along_every_path, "once for every path"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=are_missing,
    ),
)
