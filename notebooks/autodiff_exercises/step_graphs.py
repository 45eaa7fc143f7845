"""Training steps as plain dictionaries, drawn at random, and what is over when a task begins: for the exercises on overlap."""

from __future__ import annotations

from random import Random

from autodiff_lab import schedule
from autodiff_lab.schedule import Tasks

from .schedule_properties import Costs, Graph

LADDER = 120  # layers of two tasks that both wait for both of the layer before: 2 to the power of 120 paths


def drawn_step(random: Random, layers: int, micro_batches: int = 1, shuffles: bool = False) -> tuple[Graph, Costs]:
    """A training step with a cost for each task; shuffled, it is written down in any order."""
    tasks = schedule.training_step(layers, micro_batches)
    written = random.sample(range(len(tasks)), k=len(tasks)) if shuffles else range(len(tasks))
    graph = {tasks.name(task): [tasks.name(other) for other in tasks.predecessors[task]] for task in written}
    return graph, {task: random.randint(1, 9) for task in graph}


def ancestors(tasks: Tasks) -> dict[str, set[str]]:
    """For each task all that have certainly ended when it begins.

    >>> from autodiff_exercises.schedule_properties import tasks_of
    >>> sorted(ancestors(tasks_of({"a": [], "b": ["a"], "c": ["b"]}, {"a": 1, "b": 1, "c": 1}))["c"])
    ['a', 'b']
    """
    found: dict[str, set[str]] = {}
    for task in tasks.order:
        before = [tasks.name(other) for other in tasks.predecessors[task]]
        found[tasks.name(task)] = set(before).union(*(found[other] for other in before))
    return found
