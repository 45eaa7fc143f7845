"""Answers to the exercise "upward rank" of lesson 80, right and wrong: what its check is tested on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from autodiff_lab import schedule

from .schedule_properties import Costs, Graph, tasks_of

Travel = dict[tuple[str, str], float]  # (from, to) -> seconds that the value travels between them

# -------------------------------------------------------------------------------------- what a solution can look like


def upward_rank(graph, costs, travel):
    """For each task the longest way from its start to the end of the program."""
    users = {task: [] for task in graph}
    missing = dict.fromkeys(graph, 0)  # how many users have no rank yet
    for task, before in graph.items():
        for other in before:
            users[other].append(task)
            missing[other] += 1

    ranks = {}
    known = [task for task in graph if missing[task] == 0]
    while known:
        task = known.pop()
        ways = [travel.get((task, user), 0) + ranks[user] for user in users[task]]
        ranks[task] = costs[task] + max(ways, default=0)
        for other in graph[task]:
            missing[other] -= 1
            if missing[other] == 0:
                known.append(other)
    return ranks


def _last_first(graph: Graph) -> list[str]:
    """The tasks in an order in which each comes before all that it waits for."""
    left: dict[str, int] = {task: 0 for task in graph}
    for before in graph.values():
        for other in before:
            left[other] += 1
    order = [task for task in graph if not left[task]]
    for task in order:
        for other in graph[task]:
            left[other] -= 1
            if not left[other]:
                order.append(other)
    return order


def handed_on(graph: Graph, costs: Costs, travel: Travel) -> Costs:
    """Each task hands its rank on to those that it waits for."""
    longest = dict.fromkeys(graph, 0.0)
    ranks = {}
    for task in _last_first(graph):
        ranks[task] = longest[task] + costs[task]
        for other in graph[task]:
            longest[other] = max(longest[other], ranks[task] + travel.get((other, task), 0))
    return ranks


# ---------------------------------------------------------------------------------------------------- wrong solutions


def from_the_beginning(graph: Graph, costs: Costs, travel: Travel) -> Costs:
    """The longest way from the beginning to the end of the task."""
    ranks: Costs = {}
    for task in reversed(_last_first(graph)):
        ways = [ranks[other] + travel.get((other, task), 0) for other in graph[task]]
        ranks[task] = costs[task] + max(ways, default=0)
    return ranks


def without_itself(graph: Graph, costs: Costs, travel: Travel) -> Costs:
    """The longest way that is left when the task has ended."""
    return {task: rank - costs[task] for task, rank in upward_rank(graph, costs, travel).items()}


def _ranked(graph: Graph, costs: Costs, travel: Travel, join: Callable[[list[float]], float]) -> Costs:
    ways: dict[str, list[float]] = {task: [] for task in graph}
    ranks: Costs = {}
    for task in _last_first(graph):
        ranks[task] = costs[task] + (join(ways[task]) if ways[task] else 0)
        for other in dict.fromkeys(graph[task]):
            ways[other].append(ranks[task] + travel.get((other, task), 0))
    return ranks


def all_ways_added(graph: Graph, costs: Costs, travel: Travel) -> Costs:
    """Adds up the ranks of all users."""
    return _ranked(graph, costs, travel, sum)


def shortest_way(graph: Graph, costs: Costs, travel: Travel) -> Costs:
    """Follows the user with the smallest rank."""
    return _ranked(graph, costs, travel, min)


def without_travel(graph: Graph, costs: Costs, travel: Travel) -> Costs:
    """Values are everywhere at once."""
    return upward_rank(graph, costs, {})


def counted(graph: Graph, costs: Costs, travel: Travel) -> Costs:
    """The number of tasks on the longest way."""
    return upward_rank(graph, dict.fromkeys(graph, 1), {})


def as_written(graph: Graph, costs: Costs, travel: Travel) -> Costs:
    """One pass over the dictionary from its end."""
    ranks = dict(costs)
    for task in reversed(list(graph)):
        for other in graph[task]:
            ranks[other] = max(ranks[other], costs[other] + travel.get((other, task), 0) + ranks[task])
    return ranks


def every_way(graph: Graph, costs: Costs, travel: Travel) -> Costs:
    """Walks along every way to the end."""

    def rank(task: str) -> float:
        ways = [travel.get((task, user), 0) + rank(user) for user, before in graph.items() for b in before if b == task]
        return costs[task] + max(ways, default=0)

    return {task: rank(task) for task in graph}


def recursive_without_travel(graph: Graph, costs: Costs, travel: Travel) -> Costs:
    """Two mistakes at once: the first shows on three tasks, the second on thousands."""
    return recursive(graph, costs, {})


def recursive(graph: Graph, costs: Costs, travel: Travel) -> Costs:
    """Remembers what it knows, and calls itself for every task of the longest way."""
    users: Graph = {task: [] for task in graph}
    for task, before in graph.items():
        for other in before:
            users[other].append(task)

    @cache
    def rank(task: str) -> float:
        return costs[task] + max((travel.get((task, user), 0) + rank(user) for user in users[task]), default=0)

    return {task: rank(task) for task in graph}


def by_the_lab(graph: Graph, costs: Costs, travel: Travel) -> Costs:
    """The lab's own ranks."""
    return dict(zip(graph, schedule.upward_ranks(tasks_of(graph, costs), schedule.cores(1)), strict=True))
