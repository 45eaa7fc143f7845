"""Properties of schedules in plain dictionaries: whether one is legal, and whether a worker is idle while a task is ready."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from autodiff_lab import schedule
from autodiff_lab.schedule import Tasks, Timeline

Graph = dict[str, list[str]]  # task -> the tasks that it waits for, one entry for each use
Costs = dict[str, float]
Starts = dict[str, float]
Choose = Callable[[list[str]], str]


def tasks_of(graph: Graph, costs: Costs, order: Sequence[str] = ()) -> Tasks:
    """The library's tasks. Where an order is given, the first has the highest priority."""
    urgent = {task: -place for place, task in enumerate(order)}
    return Tasks(
        {
            name: schedule.Task(cost=costs[name], after=tuple(dict.fromkeys(before)), priority=urgent.get(name, 0))
            for name, before in graph.items()
        }
    )


def timeline_of(starts: Starts, graph: Graph, costs: Costs, workers: int) -> Timeline:
    """The schedule that these starts make, each task on a lane that is free then; too many get lanes that do not exist."""
    free_from: list[float] = []
    lanes: dict[str, int] = {}
    for task in sorted(graph, key=lambda task: starts[task]):
        lane = next((lane for lane, time in enumerate(free_from) if time <= starts[task]), len(free_from))
        free_from[lane : lane + 1] = [starts[task] + costs[task]]
        lanes[task] = lane
    ends = [float(starts[task] + costs[task]) for task in graph]
    return Timeline(
        tasks_of(graph, costs),
        schedule.cores(workers),
        "",
        [float(starts[t]) for t in graph],
        ends,
        [lanes[t] for t in graph],
    )


def are_starts(answer: Any, graph: Graph) -> bool:
    """Whether this is a dictionary with a time for each task, and for nothing else."""
    return isinstance(answer, dict) and answer.keys() == graph.keys() and all(map(_is_time, answer.values()))


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and type(value) is not bool and bool(0 <= value < math.inf)


def is_legal(starts: Starts, graph: Graph, costs: Costs, workers: int) -> bool:
    """Whether each task waits for those before it, and no more run at once than there are workers."""
    return not timeline_of(starts, graph, costs, workers).faults()


def most_at_once(starts: Starts, costs: Costs) -> int:
    """The largest number of tasks that run at the same time."""
    return max(
        (sum(starts[t] <= moment < starts[t] + costs[t] for t in starts) for moment in starts.values()), default=0
    )


def length(starts: Starts, costs: Costs) -> float:
    """When the last task ends."""
    return max((starts[task] + costs[task] for task in starts), default=0)


def ready_at(moment: float, starts: Starts, graph: Graph, costs: Costs) -> list[str]:
    """The tasks that have not begun before a moment, while all that they wait for has ended."""
    return [
        task
        for task, before in graph.items()
        if starts[task] >= moment and all(starts[other] + costs[other] <= moment for other in before)
    ]


def moments(starts: Starts, costs: Costs) -> list[float]:
    """When something can change: the beginning, and the end of each task."""
    return sorted({0.0, *(float(starts[task] + costs[task]) for task in starts)})


def running_at(moment: float, starts: Starts, costs: Costs) -> list[str]:
    """The tasks that have begun before a moment and end after it."""
    return [task for task in starts if starts[task] < moment < starts[task] + costs[task]]


def is_idle_while_ready(starts: Starts, graph: Graph, costs: Costs, workers: int) -> bool:
    """Whether some worker has nothing to do at a moment at which a task is ready and does not begin."""
    for moment in moments(starts, costs):
        ready = ready_at(moment, starts, graph, costs)
        begun = [task for task in ready if starts[task] == moment]
        if len(begun) < len(ready) and len(running_at(moment, starts, costs)) + len(begun) < workers:
            return True
    return False


def follows(starts: Starts, graph: Graph, costs: Costs, workers: int, choose: Choose) -> bool:
    """Whether at every moment exactly those ready tasks begin that ``choose`` names, one for each worker that is free."""
    seen = 0
    for moment in moments(starts, costs):
        ready = ready_at(moment, starts, graph, costs)
        for _ in range(min(workers - len(running_at(moment, starts, costs)), len(ready))):
            task = choose(list(ready))
            ready.remove(task)
            if starts[task] != moment:
                return False
            seen += 1
        if any(starts[task] == moment for task in ready):
            return False
    return seen == len(graph)


def prefers(starts: Starts, graph: Graph, costs: Costs, key: Callable[[str], float]) -> bool:
    """Whether at every moment the ready tasks that begin have at least the key of those that are left."""
    for moment in moments(starts, costs):
        ready = ready_at(moment, starts, graph, costs)
        begun = [key(task) for task in ready if starts[task] == moment]
        left = [key(task) for task in ready if starts[task] > moment]
        if begun and left and min(begun) < max(left):
            return False
    return True


def waits_for_levels(starts: Starts, costs: Costs) -> bool:
    """Whether nothing ever begins while something else is in the middle of its run."""
    return not any(running_at(moment, starts, costs) for moment in starts.values())


def lowered(values: Sequence[float]) -> list[int]:
    """The places after which a value is larger than the one before.

    >>> lowered([9, 4, 5, 5])
    [2]
    """
    return [place for place, (one, other) in enumerate(pairwise(values), start=1) if other > one]
