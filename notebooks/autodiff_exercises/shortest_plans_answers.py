"""Answers to the exercise "shortest" of lesson 80, right and wrong: what its check is tested on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

from .beating_fifo_answers import beat_fifo
from .ranks_answers import upward_rank
from .ready_queue_answers import seven_steps
from .schedule_properties import Costs, Graph, length

# -------------------------------------------------------------------------------------- what a solution can look like


def shortest(graph, costs, workers):
    """The length of the shortest plan that there is."""
    best = sum(costs.values())

    def put(ends, free_from):
        nonlocal best
        if max(ends.values(), default=0) >= best:
            return
        if len(ends) == len(graph):
            best = max(ends.values())
        for task in graph:
            if task not in ends and all(other in ends for other in graph[task]):
                ready = max((ends[other] for other in graph[task]), default=0)
                end = max(free_from[0], ready) + costs[task]
                put({**ends, task: end}, sorted([*free_from[1:], end]))

    put({}, [0.0] * workers)
    return best


def _in_every_order(graph: Graph) -> Iterator[tuple[str, ...]]:
    for order in permutations(graph):
        place = {task: number for number, task in enumerate(order)}
        if all(place[other] < place[task] for task in graph for other in graph[task]):
            yield order


def by_permutations(graph: Graph, costs: Costs, workers: int) -> float:
    """Every order; each task on the worker that is free first, when all has ended that it waits for."""

    def laid_out(order: tuple[str, ...]) -> float:
        ends: dict[str, float] = {}
        free_from = [0.0] * workers
        for task in order:
            start = max([free_from[0], *(ends[other] for other in graph[task])])
            ends[task] = start + costs[task]
            free_from = sorted([*free_from[1:], ends[task]])
        return max(ends.values())

    return min(map(laid_out, _in_every_order(graph)))


# ---------------------------------------------------------------------------------------------------- wrong solutions


def for_two_workers(graph: Graph, costs: Costs, workers: int) -> float:
    """As if there were two workers always."""
    return by_permutations(graph, costs, 2)


def dealt_out(graph: Graph, costs: Costs, workers: int) -> float:
    """Every order; the tasks are dealt out to the workers in turn."""

    def laid_out(order: tuple[str, ...]) -> float:
        ends: dict[str, float] = {}
        free_from = [0.0] * workers
        for place, task in enumerate(order):
            start = max([free_from[place % workers], *(ends[other] for other in graph[task])])
            ends[task] = free_from[place % workers] = start + costs[task]
        return max(ends.values())

    return min(map(laid_out, _in_every_order(graph)))


def never_waiting(graph: Graph, costs: Costs, workers: int) -> float:
    """The best over all lists; a worker never waits while a task is ready."""

    def with_list(order: tuple[str, ...]) -> float:
        return length(seven_steps(graph, costs, workers, lambda ready: min(ready, key=order.index)), costs)

    return min(map(with_list, _in_every_order(graph)))


def by_rank(graph: Graph, costs: Costs, workers: int) -> float:
    """What the critical path's policy makes."""
    return length(beat_fifo(graph, costs, workers), costs)


def the_bound(graph: Graph, costs: Costs, workers: int) -> float:
    """All work by the number of workers, or the longest way."""
    return max(sum(costs.values()) / workers, *upward_rank(graph, costs, {}).values())


def the_longest_way(graph: Graph, costs: Costs, workers: int) -> float:
    """As if there were workers without end."""
    return max(upward_rank(graph, costs, {}).values())


def all_the_work(graph: Graph, costs: Costs, workers: int) -> float:
    """As if there were one worker."""
    return sum(costs.values())


def without_gaps(graph: Graph, costs: Costs, workers: int) -> float:
    """Every order, but a worker begins the next task without waiting for what it needs."""
    found = []
    for order in permutations(graph):
        free_from = [0.0] * workers
        for task in order:
            free_from = sorted([*free_from[1:], free_from[0] + costs[task]])
        found.append(free_from[-1])
    return min(found)


def the_plan_itself(graph: Graph, costs: Costs, workers: int) -> Any:
    """The starts of a plan."""
    return beat_fifo(graph, costs, workers)
