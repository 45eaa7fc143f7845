"""Answers to the exercise "how busy" of lesson 90, right and wrong: what its check is tested on."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from autodiff_lab import schedule

from .ranks_answers import handed_on
from .schedule_properties import Costs, Graph, Starts, length, tasks_of

# -------------------------------------------------------------------------------------- what a solution can look like


def how_busy(graph, costs, starts, workers):
    """What part of the workers' time was used, and what part any schedule could use at most."""
    work = sum(costs.values())
    makespan = max(starts[task] + costs[task] for task in graph)

    longest = {}  # the longest way from the beginning to the end of each task
    while len(longest) < len(graph):
        for task, before in graph.items():
            if task not in longest and all(other in longest for other in before):
                longest[task] = costs[task] + max((longest[other] for other in before), default=0)

    critical = max(longest.values())
    return work / (workers * makespan), min(1.0, work / (workers * critical))


def _figures(graph: Graph, costs: Costs, starts: Starts) -> tuple[float, float, float]:
    """All work, the makespan, and the length of the critical path."""
    return sum(costs.values()), length(starts, costs), max(handed_on(graph, costs, {}).values())


def by_idle_time(graph: Graph, costs: Costs, starts: Starts, workers: int) -> list[float]:
    """One less what was not used."""
    work, makespan, critical = _figures(graph, costs, starts)
    return [1 - (workers * makespan - work) / (workers * makespan), min(work / workers / critical, 1)]


# ---------------------------------------------------------------------------------------------------- wrong solutions


def always_one(graph: Graph, costs: Costs, starts: Starts, workers: int) -> Any:
    """Everything can be used."""
    return how_busy(graph, costs, starts, workers)[0], 1.0


def without_a_cap(graph: Graph, costs: Costs, starts: Starts, workers: int) -> Any:
    """The bound is above 1 where there is much to do."""
    work, makespan, critical = _figures(graph, costs, starts)
    return work / (workers * makespan), work / (workers * critical)


def of_those_that_worked(graph: Graph, costs: Costs, starts: Starts, workers: int) -> Any:
    """Workers without a task do not count."""
    used = min(workers, len({worker for worker in _workers_used(graph, costs, starts)}))
    work, makespan, critical = _figures(graph, costs, starts)
    return work / (used * makespan), min(1.0, work / (used * critical))


def _workers_used(graph: Graph, costs: Costs, starts: Starts) -> list[int]:
    free_from: list[float] = []
    taken = []
    for task in sorted(graph, key=lambda task: starts[task]):
        worker = next((w for w, time in enumerate(free_from) if time <= starts[task]), len(free_from))
        free_from[worker : worker + 1] = [starts[task] + costs[task]]
        taken.append(worker)
    return taken


def in_per_cent(graph: Graph, costs: Costs, starts: Starts, workers: int) -> Any:
    """Numbers up to 100."""
    used, bound = how_busy(graph, costs, starts, workers)
    return 100 * used, 100 * bound


def of_one_worker(graph: Graph, costs: Costs, starts: Starts, workers: int) -> Any:
    """Work over makespan."""
    used, bound = without_a_cap(graph, costs, starts, 1)
    return used, min(1.0, bound)


def counting_tasks(graph: Graph, costs: Costs, starts: Starts, workers: int) -> Any:
    """The critical path is the one with the most tasks."""
    used, _ = how_busy(graph, costs, starts, workers)
    levels = handed_on(graph, dict.fromkeys(graph, 1), {})
    return used, min(1.0, len(graph) / (workers * max(levels.values())))


def when_somebody_works(graph: Graph, costs: Costs, starts: Starts, workers: int) -> Any:
    """The part of the time in which at least one worker works."""
    makespan = length(starts, costs)
    ends = sorted({*starts.values(), *(starts[task] + costs[task] for task in graph)})
    busy = sum(
        stop - start
        for start, stop in pairwise(ends)
        if any(starts[task] <= start < starts[task] + costs[task] for task in graph)
    )
    return busy / makespan, how_busy(graph, costs, starts, workers)[1]


def until_the_last_start(graph: Graph, costs: Costs, starts: Starts, workers: int) -> Any:
    """The schedule ends when the last task has started."""
    work, _, critical = _figures(graph, costs, starts)
    return work / (workers * (max(starts.values()) or 1)), min(1.0, work / (workers * critical))


def of_the_longest_task(graph: Graph, costs: Costs, starts: Starts, workers: int) -> Any:
    """The bound follows from the longest task alone."""
    used, _ = how_busy(graph, costs, starts, workers)
    return used, min(1.0, sum(costs.values()) / (workers * max(costs.values())))


def only_one_number(graph: Graph, costs: Costs, starts: Starts, workers: int) -> Any:
    """The utilisation."""
    return how_busy(graph, costs, starts, workers)[0]


def by_the_best_policy(graph: Graph, costs: Costs, starts: Starts, workers: int) -> Any:
    """What the critical path's policy uses stands for the bound."""
    best = schedule.simulate(tasks_of(graph, costs), workers, "critical_path").utilisation
    return how_busy(graph, costs, starts, workers)[0], best
