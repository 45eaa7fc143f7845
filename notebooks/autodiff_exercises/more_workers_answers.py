"""Answers to the exercise "slower with more" of lesson 80, right and wrong: what its check is tested on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autodiff_lab import schedule

from .schedule_properties import Costs, Graph, tasks_of

# -------------------------------------------------------------------------------------- what a solution can look like


def slower_with_more(graph, costs, order):
    """For which numbers of workers one worker more makes the plan longer."""
    lengths = {}
    for workers in range(1, len(graph) + 1):
        starts = {}
        now = 0.0
        while len(starts) < len(graph):
            ends = {task: start + costs[task] for task, start in starts.items()}
            free = workers - sum(end > now for end in ends.values())
            for task in order:
                if free and task not in starts and all(ends.get(other, now + 1) <= now for other in graph[task]):
                    starts[task] = now
                    free -= 1
            now = min(start + costs[task] for task, start in starts.items() if start + costs[task] > now)
        lengths[workers] = max(starts[task] + costs[task] for task in graph)
    return [workers for workers in range(1, len(graph)) if lengths[workers + 1] > lengths[workers]]


def _lengths(graph: Graph, costs: Costs, order: Sequence[str], policy: Any = "priority") -> list[float]:
    tasks = tasks_of(graph, costs, order)
    return [schedule.simulate(tasks, workers, policy).makespan for workers in range(1, len(graph) + 1)]


def by_comparing(graph: Graph, costs: Costs, order: list[str]) -> tuple[int, ...]:
    """With the lab's simulator."""
    found = _lengths(graph, costs, order)
    return tuple(place for place in range(1, len(found)) if found[place] > found[place - 1])


# ---------------------------------------------------------------------------------------------------- wrong solutions


def never(graph: Graph, costs: Costs, order: list[str]) -> list[int]:
    """More workers never hurt."""
    return []


def the_larger_number(graph: Graph, costs: Costs, order: list[str]) -> list[int]:
    """With how many workers it is slower."""
    return [workers + 1 for workers in slower_with_more(graph, costs, order)]


def not_faster(graph: Graph, costs: Costs, order: list[str]) -> list[int]:
    """One worker more does not help."""
    found = _lengths(graph, costs, order)
    return [place for place in range(1, len(found)) if found[place] >= found[place - 1]]


def slower_than_one(graph: Graph, costs: Costs, order: list[str]) -> list[int]:
    """Slower than with the best number so far."""
    found = _lengths(graph, costs, order)
    return [place for place in range(1, len(found)) if found[place] > min(found[:place])]


def as_they_come(graph: Graph, costs: Costs, order: list[str]) -> list[int]:
    """FIFO, whatever the list says."""
    found = _lengths(graph, costs, order, "fifo")
    return [place for place in range(1, len(found)) if found[place] > found[place - 1]]


def first_one(graph: Graph, costs: Costs, order: list[str]) -> list[int]:
    """Stops at the first."""
    return slower_with_more(graph, costs, order)[:1]


def up_to_three(graph: Graph, costs: Costs, order: list[str]) -> list[int]:
    """Tries a few numbers of workers."""
    return [workers for workers in slower_with_more(graph, costs, order) if workers <= 3]


def the_lengths(graph: Graph, costs: Costs, order: list[str]) -> list[float]:
    """How long it takes with each number of workers."""
    return _lengths(graph, costs, order)
