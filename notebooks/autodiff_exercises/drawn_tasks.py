"""Tasks to schedule, drawn at random: their shape, costs, names, and the order in which they are written down."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from string import ascii_lowercase

from .schedule_properties import Costs, Graph

Shape = Sequence[Sequence[int]]  # task 0, 1, … with the numbers of those that it waits for


def drawn_shape(random: Random, size: int, most: int = 2) -> list[list[int]]:
    """So many tasks, each of which waits for up to ``most`` earlier ones, none of them twice."""
    return [random.sample(range(n), k=min(n, random.randint(0, most))) for n in range(size)]


def drawn_costs(random: Random, size: int, largest: int = 9) -> list[int]:
    """A whole number for each task."""
    return [random.randint(1, largest) for _ in range(size)]


def named(shape: Shape, costs: Sequence[float], random: Random) -> tuple[Graph, Costs, list[str]]:
    """The tasks as dictionaries, written in any order, and the name of each number."""
    names = random.sample(ascii_lowercase, len(shape))
    written = random.sample(range(len(shape)), k=len(shape))
    graph = {names[task]: [names[before] for before in shape[task]] for task in written}
    return graph, {names[task]: costs[task] for task in written}, names
