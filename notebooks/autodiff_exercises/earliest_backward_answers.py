"""Answers to the exercise "earliest backward" of lesson 110, right and wrong: what its check is tested on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from graphlib import TopologicalSorter
from typing import Any

from autodiff_lab import schedule

from .schedule_properties import Costs, Graph, tasks_of

# -------------------------------------------------------------------------------------- what a solution can look like


def earliest_backward(graph, costs):
    """When each backward task can begin at the earliest."""
    ends = {}
    waiting = list(graph)
    while waiting:
        ready = [task for task in waiting if all(before in ends for before in graph[task])]
        for task in ready:
            ends[task] = max((ends[before] for before in graph[task]), default=0) + costs[task]
        waiting = [task for task in waiting if task not in ends]
    return {task: ends[task] - costs[task] for task in graph if task.startswith("d")}


def by_sorting(graph: Graph, costs: Costs) -> Costs:
    """In a topological order of the standard library."""
    return _backward(_starts(graph, costs))


def by_simulation(graph: Graph, costs: Costs) -> Costs:
    """A worker for each task: then nobody ever waits for a worker."""
    timeline = schedule.simulate(tasks_of(graph, costs), len(graph), "fifo")
    return _backward(dict(zip(graph, timeline.starts, strict=True)))


def _starts(graph: Graph, costs: Costs, join: Callable[[Iterable[float]], float] = max) -> Costs:
    starts: Costs = {}
    for task in TopologicalSorter(graph).static_order():
        starts[task] = join([starts[before] + costs[before] for before in graph[task]] or [0])
    return starts


def _backward(times: Mapping[str, Any]) -> dict[str, Any]:
    return {task: time for task, time in times.items() if task.startswith("d")}


# ---------------------------------------------------------------------------------------------------- wrong solutions


def any_time(graph: Graph, costs: Costs) -> Costs:
    """Backward tasks wait for backward tasks only."""
    inner = {
        task: [before for before in waits if before in _backward(graph)] for task, waits in _backward(graph).items()
    }
    return _starts(inner, costs)


def after_all_forward(graph: Graph, costs: Costs) -> Costs:
    """Nothing goes backward before everything has gone forward."""
    forward = [task for task in graph if not task.startswith("d")]
    joined = {task: list({*waits, *forward}) if task.startswith("d") else waits for task, waits in graph.items()}
    return _backward(_starts(joined, costs))


def one_at_a_time(graph: Graph, costs: Costs) -> Costs:
    """Forward, and then the backward tasks one by one."""
    now = sum(costs[task] for task in graph if not task.startswith("d"))
    starts: Costs = {}
    for task in TopologicalSorter(graph).static_order():
        if task.startswith("d"):
            starts[task] = now
            now += costs[task]
    return starts


def first_arrival(graph: Graph, costs: Costs) -> Costs:
    """Begins when the first of what it waits for is there."""
    return _backward(_starts(graph, costs, min))


def waits_add_up(graph: Graph, costs: Costs) -> Costs:
    """Adds what it waits for."""
    return _backward(_starts(graph, costs, sum))


def counting_tasks(graph: Graph, costs: Costs) -> Costs:
    """Every task takes one second."""
    return _backward(_starts(graph, dict.fromkeys(graph, 1)))


def the_ends(graph: Graph, costs: Costs) -> Costs:
    """When each ends."""
    return {task: start + costs[task] for task, start in by_sorting(graph, costs).items()}


def all_tasks(graph: Graph, costs: Costs) -> Costs:
    """The forward tasks too."""
    return _starts(graph, costs)


def as_written(graph: Graph, costs: Costs) -> Costs:
    """Goes through the dictionary once."""
    return _backward(_after_rounds(1, graph, costs))


def ten_rounds(graph: Graph, costs: Costs) -> Costs:
    """Goes through the dictionary ten times."""
    return _backward(_after_rounds(10, graph, costs))


def _after_rounds(rounds: int, graph: Graph, costs: Costs) -> Costs:
    starts: Costs = {}
    for _ in range(rounds):
        for task, waits in graph.items():
            starts[task] = max((starts.get(before, 0) + costs[before] for before in waits), default=0)
    return starts


def along_every_path(graph: Graph, costs: Costs) -> Costs:
    """Asks again and again."""

    def start(task: str) -> float:
        return max((start(before) + costs[before] for before in graph[task]), default=0)

    return {task: start(task) for task in graph if task.startswith("d")}
