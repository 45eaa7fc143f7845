"""What the benchmarks of pictures draw: joint graphs of a multilayer perceptron, whose size is known, and long timelines."""

from __future__ import annotations

from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import ops, schedule
from autodiff_lab.graph import Graph
from autodiff_lab.schedule import Task, Timeline

LAYERS = {47: 3, 294: 22, 996: 76, 2998: 230}  # a joint graph has 13 nodes a layer, and 8 more


def loss(parameters: Any, x: Any, target: Any) -> Any:
    """The squared error of a multilayer perceptron with tanh."""
    h = x
    for number, (w, b) in enumerate(parameters):
        with ad.name_scope(f"layer{number + 1}"):
            h = ops.tanh(h @ w + b)
    with ad.name_scope("loss"):
        e = h - target
        return (e * e).sum()


def mlp(layers: int) -> tuple[Any, Any, Any, Any]:
    """The loss and its arguments: parameters of so many layers, x and target."""
    random = np.random.default_rng(0)
    parameters = [(random.standard_normal((4, 4)), np.zeros((2, 4))) for _ in range(layers)]
    return loss, parameters, np.ones((2, 4)), np.ones((2, 4))


def joint_mlp(layers: int) -> Graph:
    """The joint graph of the loss and its gradients."""
    f, *arguments = mlp(layers)
    return ad.record(ad.value_and_grad(f), *arguments)


def timeline(tasks: int, workers: int = 8, level: int = 64) -> Timeline:
    """So many tasks of different length on several workers, each waiting for two of the level before."""
    costs = np.random.default_rng(0).uniform(0.5, 1.5, tasks)
    waits = [
        [f"t{i - level}", f"t{i - level + (1 if i % level < level - 1 else 1 - level)}"] for i in range(level, tasks)
    ]
    made = {
        f"t{i}": Task(cost=float(cost), after=waits[i - level] if i >= level else ()) for i, cost in enumerate(costs)
    }
    return schedule.simulate(made, workers, "critical_path")
