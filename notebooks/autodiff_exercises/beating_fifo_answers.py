"""Answers to the exercise "beat FIFO" of lesson 80, right and wrong: what its check is tested on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from random import Random
from typing import Any

from autodiff_lab import schedule

from .ranks_answers import upward_rank
from .ready_queue_answers import one_at_a_time, seven_steps
from .schedule_properties import Costs, Graph, Starts, length, tasks_of

# -------------------------------------------------------------------------------------- what a solution can look like


def beat_fifo(graph, costs, workers):
    """When each task starts in a plan that is shorter than what FIFO makes."""
    longest = dict(costs)  # the way to the end, at first only the task itself
    for _ in graph:
        for task, before in graph.items():
            for other in before:
                longest[other] = max(longest[other], costs[other] + longest[task])

    order = sorted(graph, key=lambda task: -longest[task])
    free_from = [0.0] * workers
    starts = {}
    while order:
        now = min(free_from)
        ended = {task for task, start in starts.items() if start + costs[task] <= now}
        ready = [task for task in order if ended.issuperset(graph[task])]
        worker = free_from.index(now)
        if ready:
            starts[ready[0]] = now
            free_from[worker] = now + costs[ready[0]]
            order.remove(ready[0])
        else:
            free_from[worker] = min(start + costs[task] for task, start in starts.items() if start + costs[task] > now)
    return starts


def by_simulating(graph: Graph, costs: Costs, workers: int) -> Starts:
    """The lab's own policy."""
    timeline = schedule.simulate(tasks_of(graph, costs), workers, "critical_path")
    return dict(zip(graph, timeline.starts, strict=True))


def best_of_many(graph: Graph, costs: Costs, workers: int) -> Starts:
    """The best of many orders, drawn at random, and of the order by rank."""
    random, ranks = Random(0), upward_rank(graph, costs, {})
    plans = [by_simulating(graph, costs, workers)]
    for _ in range(30):
        urgency = {task: ranks[task] * random.uniform(0.5, 1) for task in graph}
        plans.append(seven_steps(graph, costs, workers, lambda ready, key=urgency: max(ready, key=key.get)))
    return min(plans, key=lambda starts: length(starts, costs))


# ---------------------------------------------------------------------------------------------------- wrong solutions


def _by(graph: Graph, costs: Costs, workers: int, key: Callable[[str], Any]) -> Starts:
    return seven_steps(graph, costs, workers, lambda ready: max(ready, key=key))


def fifo(graph: Graph, costs: Costs, workers: int) -> Starts:
    """What FIFO makes."""
    return dict(zip(graph, schedule.simulate(tasks_of(graph, costs), workers, "fifo").starts, strict=True))


def longest_first(graph: Graph, costs: Costs, workers: int) -> Starts:
    """The task that takes longest."""
    return _by(graph, costs, workers, lambda task: (costs[task], task))


def shortest_first(graph: Graph, costs: Costs, workers: int) -> Starts:
    """The task that is done soonest."""
    return _by(graph, costs, workers, lambda task: (-costs[task], task))


def least_urgent_first(graph: Graph, costs: Costs, workers: int) -> Starts:
    """By rank, the smallest first."""
    ranks = upward_rank(graph, costs, {})
    return _by(graph, costs, workers, lambda task: (-ranks[task], task))


def all_at_once(graph: Graph, costs: Costs, workers: int) -> Starts:
    """Each task as soon as its inputs are there, on a worker of its own."""
    return seven_steps(graph, costs, len(graph), min)


def packed(graph: Graph, costs: Costs, workers: int) -> Starts:
    """Fills the workers evenly, whoever waits for whom."""
    free_from = [0.0] * workers
    starts = {}
    for task in sorted(graph, key=lambda task: -costs[task]):
        worker = free_from.index(min(free_from))
        starts[task] = free_from[worker]
        free_from[worker] += costs[task]
    return starts


def in_a_row(graph: Graph, costs: Costs, workers: int) -> Starts:
    """One after the other."""
    return one_at_a_time(graph, costs, workers, min)


def every_order(graph: Graph, costs: Costs, workers: int) -> Starts:
    """Tries all orders."""
    plans = (
        seven_steps(graph, costs, workers, lambda ready, order=order: min(ready, key=order.index))
        for order in permutations(graph)
    )
    return min(plans, key=lambda starts: length(starts, costs))


def only_an_order(graph: Graph, costs: Costs, workers: int) -> Any:
    """The order by rank."""
    ranks = upward_rank(graph, costs, {})
    return sorted(graph, key=lambda task: -ranks[task])
