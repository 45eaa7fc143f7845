"""The exercise "two streams" of lesson 110: tasks on two streams, with the events that keep every order that matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Any

from autodiff_lab import schedule
from autodiff_lab.schedule import ScheduleError, Timeline

from . import two_streams_answers as answers
from .exercise import CHANGED_ARGUMENTS, RETURNS_NOTHING, STOPS_WITH_ERROR, Case, Exercise, Misconception, Wrong, case
from .schedule_properties import Costs, Graph, tasks_of
from .step_graphs import ancestors, drawn_step

TRIES = 500  # draws for a step with the wanted property
Fault = str  # "form", "tasks", "circle", "hazard", "slow", or empty


def fault(answer: Any, graph: Graph, costs: Costs) -> Fault:
    """The first thing that is wrong with two streams and their waits; empty where they are right."""
    if not _has_form(answer):
        return "form"
    streams, waits = answer
    if sorted([*streams[0], *streams[1]]) != sorted(graph) or not {one for pair in waits for one in pair} <= set(graph):
        return "tasks"
    try:
        timeline = replayed(answer, graph, costs)
    except ScheduleError:
        return "circle"
    if hazards(answer, graph, costs):
        return "hazard"
    return "" if timeline.makespan <= limit(graph, costs) + 1e-9 else "slow"


def _has_form(answer: Any) -> bool:
    if not (_is_list(answer, 2) and _is_list(answer[0], 2) and isinstance(answer[1], list | tuple | set)):
        return False
    names = [one for stream in answer[0] if _is_list(stream) for one in stream]
    return (
        all(map(_is_list, answer[0]))
        and all(_is_list(pair, 2) for pair in answer[1])
        and all(isinstance(one, str) for one in [*names, *(one for pair in answer[1] for one in pair)])
    )


def _is_list(value: Any, size: int | None = None) -> bool:
    return isinstance(value, list | tuple) and size in (None, len(value))


def _ordered(answer: Any, graph: Graph) -> Graph:
    """Whom each task really waits for: the task before it on its stream, and the events."""
    streams, waits = answer
    found: Graph = {task: [] for task in graph}
    for stream in streams:
        for before, task in pairwise(stream):
            found[task].append(before)
    for before, task in set(map(tuple, waits)):
        if before not in found[task]:
            found[task].append(before)
    return found


def replayed(answer: Any, graph: Graph, costs: Costs) -> Timeline:
    """What happens on the streams: every task begins as soon as stream and events allow."""
    return schedule.simulate(tasks_of(_ordered(answer, graph), costs), len(graph), "fifo")


def hazards(answer: Any, graph: Graph, costs: Costs) -> list[tuple[str, str]]:
    """Pairs of which the second needs the first, and nothing makes it wait."""
    known = ancestors(tasks_of(_ordered(answer, graph), costs))
    return [(before, task) for task in graph for before in graph[task] if before not in known[task]]


def limit(graph: Graph, costs: Costs) -> float:
    """What two streams need at most if neither waits without need (Graham, 1966): half of all work and the longest way."""
    longest = schedule.simulate(tasks_of(graph, costs), len(graph), "fifo").makespan
    return (sum(costs.values()) + longest) / 2


def _all(has: Callable[[Any, Graph, Costs, Fault], bool]) -> Callable[[Sequence[Wrong]], bool]:
    return lambda wrong: all(
        not one.failure and has(one.answer, *one.case.arguments, fault(one.answer, *one.case.arguments))  # type: ignore[call-arg]
        for one in wrong
    )


def _some(*names: Fault) -> Callable[[Sequence[Wrong]], bool]:
    return lambda wrong: any(not one.failure and fault(one.answer, *one.case.arguments) in names for one in wrong)


def _is_right_reversed(answer: Any, graph: Graph, costs: Costs, found: Fault) -> bool:
    if found not in ("circle", "hazard"):
        return False
    return not fault((answer[0], [(later, before) for before, later in answer[1]]), graph, costs)


def _is_in_time(answer: Any, graph: Graph, costs: Costs, found: Fault) -> bool:
    if found != "hazard":
        return False
    timeline = replayed(answer, graph, costs)
    place = timeline.tasks.id_of
    return all(timeline.ends[place(one)] <= timeline.starts[place(task)] for one, task in hazards(answer, graph, costs))


def _waits_already(answer: Any, graph: Graph, costs: Costs, found: Fault) -> bool:
    waiting = {task for _before, task in answer[1]} if found == "hazard" else set()
    return found == "hazard" and all(task in waiting for _before, task in hazards(answer, graph, costs))


def _is_split_by_pass(answer: Any, graph: Graph, costs: Costs, found: Fault) -> bool:
    return found == "slow" and all(len({task.startswith("d") for task in stream}) == 1 for stream in answer[0])


def _is_fast_with_fewer_waits(answer: Any, graph: Graph, costs: Costs, found: Fault) -> bool:
    if found != "slow":
        return False
    needed = [(before, task) for before, task in answer[1] if before in graph[task]]
    return replayed((answer[0], needed), graph, costs).makespan < replayed(answer, graph, costs).makespan


MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Misconception(
        "not streams and waits",
        "Return a pair: a list of two lists with names of tasks, and a list of pairs of names.",
        _some("form"),
    ),
    Misconception(
        "not each task once",
        "Some task stands on no stream, or more than once, or a wait names a task that does not exist.",
        _some("tasks"),
    ),
    Misconception(
        "the streams know who waits",
        "You ask for no waits at all. A stream knows its own order and nothing of the other: what begins there may read what "
        "is not yet written. Where a task needs one of the other stream, it has to wait for its event.",
        _all(lambda answer, graph, costs, found: found == "hazard" and not answer[1]),
    ),
    Misconception(
        "waits the wrong way round",
        "Your pairs are the wrong way round. First comes the task whose end is waited for, then the one that waits.",
        _all(_is_right_reversed),
    ),
    Misconception(
        "one event is enough",
        "A task of yours waits for one event and needs others too. Each task of the other stream that it needs must certainly "
        "be over, by an event of its own or because something else waited for it.",
        _all(_waits_already),
    ),
    Misconception(
        "in time is safe",
        "With exactly these costs your tasks happen to run in a right order, and nothing makes them. Costs change, from run to "
        "run: an order that matters needs a stream or an event that keeps it.",
        _all(_is_in_time),
    ),
    Misconception(
        "a stream sorts itself",
        "On one of your streams a task stands behind another that needs it, or both streams wait for each other for ever. "
        "A stream runs its tasks in exactly the order of your list.",
        _some("circle", "hazard"),
    ),
    Misconception(
        "one stream is fast enough",
        "One of your streams is empty: nothing overlaps.",
        _all(lambda answer, graph, costs, found: found == "slow" and not all(answer[0])),
    ),
    Misconception(
        "forward here, backward there",
        "You put forward on one stream and backward on the other. Backward of a micro-batch waits for its forward, so one "
        "stream is mostly idle. What overlaps is dX and dW, and one micro-batch with another.",
        _all(_is_split_by_pass),
    ),
    Misconception(
        "more waits are safer",
        "Your tasks wait for others that they do not need. Nothing goes wrong, and little overlaps: wait only where the graph "
        "asks for it.",
        _all(_is_fast_with_fewer_waits),
    ),
    Misconception(
        "any second stream is fast",
        "Right results, too late: a stream is idle while there is something that it could do. Share the *time*, not the number "
        "of tasks: which stream can begin the next task first?",
        lambda wrong: True,
    ),
)


def cases(random: Random, large: bool) -> Iterator[Case]:
    """Steps with one micro-batch and with more, deeper, and written down in any order."""
    more = 1 if large else 0
    for check, layers, micro_batches, shuffles in (
        ("two layers", 2, 1, False),
        ("micro-batches", 2, 2, False),
        ("deeper", 3 + more, 1, False),
        ("written in any order", 3, 2 + more, True),
        ("written in any order", 4 + more, 2, True),
        ("written in any order", 2, 3 + more, True),
    ):
        graph, costs = drawn_step(random, layers, micro_batches, shuffles)
        yield case(check, f"{graph}, {costs}")
    for _ in range(2):
        yield _step_that_shows(answers.in_turn, random)
    unequal = {f"F0.{number}": random.randint(8, 9) if number % 2 else 1 for number in range(8)} | {"dX0": 1}
    yield case("long and short in turn", f"{ ({key: [] for key in unequal} | {'dX0': [*unequal][:-1]}) }, {unequal}")
    graph = {"F0.0": [], "F0.1": [], "dX0.0": ["F0.0"]} | {f"dW{number}.1": ["F0.1"] for number in range(8)}
    yield case(
        "one that has to wait", f"{graph}, { ({'F0.0': random.randint(9, 12)} | dict.fromkeys([*graph][1:], 1)) }"
    )
    forward = [f"F0.{number}" for number in range(4 + 2 * more)]
    graph = {task: [] for task in forward} | {"dX0": list(forward), "dW0": list(forward)}
    yield case("needs many", f"{graph}, { ({task: random.randint(4, 5) for task in graph}) }")


def _step_that_shows(rule: Callable[[Graph, Costs], Any], random: Random) -> Case:
    """A step on which a simple rule is too slow."""
    for _ in range(TRIES):
        graph, costs = drawn_step(random, random.randint(2, 3), random.randint(2, 3), shuffles=True)
        if fault(rule(graph, costs), graph, costs) == "slow":
            return case("written in any order", f"{graph}, {costs}")
    raise AssertionError(f"no step was found for {rule.__name__}")


EXERCISES = (
    Exercise(
        lesson="110_overlap",
        statement="""\
Write `two_streams(graph, costs)`: put the tasks of a training step on two streams.

* `graph` is a dictionary: each task with the list of those that it waits for. `costs` says how many seconds each task takes.
* A **stream** runs its tasks one after the other, in the order in which they were handed over, and knows nothing of the other
  stream. When a task has ended, it leaves an **event**, and a task of the other stream can be told to wait for that.
* Return a pair: a list of two streams, each the list of its tasks in order; and a list of waits, each a pair
  `(task, later)` which says that `later` waits for the event of `task`.
* Every order that the graph asks for must be certain, *whatever the tasks really cost*.
* With the costs given, it must end by (W + C) / 2, where W is the sum of all costs and C the longest way through the graph.
  You keep to that if no stream is idle while there is a task that it could begin.""",
        hints=(
            "Build both lists from the front, in the order of time. Keep for each stream from when on it is free, and for each "
            "task that is placed, when it ends.",
            "Of the tasks of which all inputs are placed, take the one that can begin first, on the stream on which it can. "
            "Then: which of its inputs are on the other stream?",
            "It can begin at `max(free[stream], ends of its inputs)`; take the minimum over streams and ready tasks. For each "
            "input on the other stream add `(input, task)` to the waits.",
        ),
        solution=answers.two_streams,
        alternatives=(answers.by_simulation,),
        wrong=(
            (answers.no_waits, "the streams know who waits"),
            (answers.wrong_way_round, "waits the wrong way round"),
            (answers.only_where_late, "in time is safe"),
            (answers.one_event_each, "one event is enough"),
            (answers.any_order, "a stream sorts itself"),
            (answers.one_stream, "one stream is fast enough"),
            (answers.forward_and_backward, "forward here, backward there"),
            (answers.a_barrier_each, "more waits are safer"),
            (answers.the_smallest_alone, "any second stream is fast"),
            (answers.in_turn, "any second stream is fast"),
            (answers.by_load, "any second stream is fast"),
            (answers.one_lost, "not each task once"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=lambda answer, graph, costs: not fault(answer, graph, costs),
    ),
)
