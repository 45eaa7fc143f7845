"""Training steps as plain dictionaries, drawn at random, and as tasks of the lab: for the exercises on overlap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

from autodiff_lab import schedule
from autodiff_lab.schedule import Task, Tasks

Graph = dict[str, list[str]]  # task -> the tasks that it waits for
Costs = dict[str, float]
LADDER = 120  # layers of two tasks that both wait for both of the layer before: 2 to the power of 120 paths


def drawn_step(random: Random, layers: int, micro_batches: int = 1, shuffles: bool = False) -> tuple[Graph, Costs]:
    """A training step with a cost for each task; shuffled, it is written down in any order."""
    tasks = schedule.training_step(layers, micro_batches)
    written = random.sample(range(len(tasks)), k=len(tasks)) if shuffles else range(len(tasks))
    graph = {tasks.name(task): [tasks.name(other) for other in tasks.predecessors[task]] for task in written}
    return graph, {task: random.randint(1, 9) for task in graph}


def tasks_of(graph: Mapping[str, Iterable[str]], costs: Costs) -> Tasks:
    """The lab's tasks; those that wait for each other in a circle raise its error."""
    return Tasks({name: Task(cost=costs[name], after=tuple(before)) for name, before in graph.items()})


def ancestors(tasks: Tasks) -> dict[str, set[str]]:
    """For each task all that have certainly ended when it begins.

    >>> sorted(ancestors(tasks_of({"a": [], "b": ["a"], "c": ["b"]}, {"a": 1, "b": 1, "c": 1}))["c"])
    ['a', 'b']
    """
    found: dict[str, set[str]] = {}
    for task in tasks.order:
        before = [tasks.name(other) for other in tasks.predecessors[task]]
        found[tasks.name(task)] = set(before).union(*(found[other] for other in before))
    return found
