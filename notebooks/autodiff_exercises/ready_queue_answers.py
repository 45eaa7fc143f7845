"""Answers to the exercise "the seven steps" of lesson 80, right and wrong: what its check is tested on."""

from __future__ import annotations

import graphlib
import heapq
from collections.abc import Callable
from typing import Any

from autodiff_lab import schedule

from .schedule_properties import Choose, Costs, Graph, Starts, tasks_of

# -------------------------------------------------------------------------------------- what a solution can look like


def seven_steps(graph, costs, workers, choose):
    """When each task starts; choose(ready) takes the next one."""
    waiting_for = {task: len(before) for task, before in graph.items()}
    users = {task: [] for task in graph}
    for task, before in graph.items():
        for other in before:
            users[other].append(task)

    ready = [task for task in graph if waiting_for[task] == 0]
    running = {}  # task -> when it will end
    starts = {}
    now = 0.0
    while ready or running:
        while ready and len(running) < workers:
            task = choose(ready)
            ready.remove(task)
            starts[task] = now
            running[task] = now + costs[task]
        now = min(running.values())
        for task in [task for task, end in running.items() if end == now]:
            del running[task]
            for other in users[task]:
                waiting_for[other] -= 1
                if waiting_for[other] == 0:
                    ready.append(other)
    return starts


def looking_again(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Starts:
    """Without counters: look anew, whenever something has ended, at what is ready."""
    starts: Starts = {}
    now = 0.0
    while len(starts) < len(graph):
        ended = {task for task, start in starts.items() if start + costs[task] <= now}
        ready = {task for task in graph if task not in starts and ended.issuperset(graph[task])}
        for _ in range(min(len(ready), workers - (len(starts) - len(ended)))):
            task = choose(sorted(ready))
            ready.discard(task)
            starts[task] = now
        now = min((start + costs[task] for task, start in starts.items() if start + costs[task] > now), default=now)
    return starts


def with_a_heap(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Starts:
    """The ends in a heap, sets of what is missing."""
    missing = {task: set(before) for task, before in graph.items()}
    ready = [task for task in graph if not missing[task]]
    starts: Starts = {}
    ends: list[tuple[float, str]] = []
    now = 0.0
    while ready or ends:
        while ready and len(ends) < workers:
            task = choose(ready)
            ready = [one for one in ready if one != task]
            starts[task] = now
            heapq.heappush(ends, (now + costs[task], task))
        now = ends[0][0]
        while ends and ends[0][0] == now:
            _, done = heapq.heappop(ends)
            for task in graph:
                if done in missing[task]:
                    missing[task].remove(done)
                    if not missing[task]:
                        ready.append(task)
    return starts


# ---------------------------------------------------------------------------------------------------- wrong solutions


def _run(
    graph: Graph,
    costs: Costs,
    workers: float,
    choose: Choose,
    *,
    enough: Callable[..., bool] = all,
    may_start: Callable[[str, Starts, dict[str, float]], bool] = lambda task, starts, running: True,
    counts_from: str = "end",
    starts_after_an_end: float = float("inf"),
    ends_at_once: float = float("inf"),
) -> Starts:
    """The seven steps with something in them done otherwise."""
    starts: Starts = {}
    running: dict[str, float] = {}
    done: dict[str, None] = {}
    now, may_begin = 0.0, float("inf")
    while len(starts) < len(graph) or running:
        while len(running) < workers and may_begin > 0:
            known = {*done, *(starts if counts_from == "start" else ())}
            ready = [
                task
                for task, before in graph.items()
                if task not in starts and (not before or enough(other in known for other in before))
            ]
            ready = [task for task in ready if may_start(task, starts, running)]
            if not ready:
                break
            task = choose(ready)
            starts[task] = now
            running[task] = now + costs[task]
            may_begin -= 1
        if not running:
            break
        now = min(running.values())
        ended = [task for task, end in running.items() if end == now]
        for task in ended[: int(min(ends_at_once, len(ended)))]:
            done[task] = None
            del running[task]
        may_begin = starts_after_an_end
    return starts


def one_input_is_enough(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Starts:
    """A task is ready when one of those that it waits for has ended."""
    return _run(graph, costs, workers, choose, enough=any)


def from_the_start(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Starts:
    """Counts down when a task begins."""
    return _run(graph, costs, workers, choose, counts_from="start")


def without_workers(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Starts:
    """Whatever is ready begins."""
    return _run(graph, costs, float("inf"), choose)


def one_at_a_time(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Starts:
    """The next task begins when the one before has ended."""
    return _run(graph, costs, 1, choose)


def level_by_level(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Starts:
    """Waits until all that runs has ended, then fills the workers again."""
    starts: Starts = {}
    now = 0.0
    while len(starts) < len(graph):
        ready = [task for task in graph if task not in starts and starts.keys() >= set(graph[task])]
        round_of = []
        for _ in range(min(workers, len(ready))):
            round_of.append(choose(ready))
            ready.remove(round_of[-1])
        starts |= dict.fromkeys(round_of, now)
        now += max(costs[task] for task in round_of)
    return starts


def in_turn(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Starts:
    """In a topological order; who is not ready holds up all that come after."""
    order = list(graphlib.TopologicalSorter(graph).static_order())
    return _run(graph, costs, workers, choose, may_start=lambda task, starts, running: order[len(starts)] == task)


def one_for_one(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Starts:
    """After an end one task begins, also where several workers are free."""
    return _run(graph, costs, workers, choose, starts_after_an_end=1)


def first_in_the_list(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Starts:
    """Takes the first ready task and never asks."""
    return _run(graph, costs, workers, lambda ready: ready[0])


def in_steps(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Starts:
    """Every task takes one step."""
    return _run(graph, dict.fromkeys(graph, 1.0), workers, choose)


def one_end_after_the_other(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Starts:
    """Of two that end at one moment the second is looked at after something has begun."""
    return _run(graph, costs, workers, choose, ends_at_once=1)


def double_edges_lost(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Starts:
    """Counts uses, and counts down once for each task that ends."""
    waiting_for = {task: len(before) for task, before in graph.items()}
    ready = [task for task in graph if not waiting_for[task]]
    starts: Starts = {}
    running: dict[str, float] = {}
    now = 0.0
    while ready or running:
        while ready and len(running) < workers:
            task = choose(ready)
            ready.remove(task)
            starts[task], running[task] = now, now + costs[task]
        now = min(running.values())
        for done in [task for task, end in running.items() if end == now]:
            del running[done]
            for task, before in graph.items():
                if done in before:
                    waiting_for[task] -= 1
                    if not waiting_for[task]:
                        ready.append(task)
    return starts


def crossing_out(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Starts:
    """Crosses out in the graph itself."""
    starts = seven_steps(graph, costs, workers, choose)
    for before in graph.values():
        before.clear()
    return starts


def ends(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Starts:
    """When each task ends."""
    return {task: start + costs[task] for task, start in seven_steps(graph, costs, workers, choose).items()}


def by_the_lab(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Starts:
    """The lab's simulator."""
    return dict(zip(graph, schedule.simulate(tasks_of(graph, costs), workers, "fifo").starts, strict=True))


def from_one_on(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Any:
    """The clock begins at 1."""
    return {task: start + 1 for task, start in seven_steps(graph, costs, workers, choose).items()}


def only_the_order(graph: Graph, costs: Costs, workers: int, choose: Choose) -> Any:
    """The tasks in the order in which they begin."""
    return list(seven_steps(graph, costs, workers, choose))
