"""Small workloads with round numbers, on which schedules can be worked out by hand: the layers of one training step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .mistakes import ScheduleError
from .task import Task
from .tasks import Tasks


def training_step(
    layers: int,
    micro_batches: int = 1,
    *,
    forward: float = 1.0,
    dx: float = 1.0,
    dw: float = 1.0,
    update: float | None = None,
    update_on: str | None = None,
    devices: Sequence[str] = (),
    splits: bool = True,
    activation: float = 1.0,
    gradient: float = 1.0,
) -> Tasks:
    """One training step of a chain of equal layers, with a task for each layer, phase and micro-batch.

    ``F2.0`` is the forward task of layer 2 for micro-batch 0, and keeps its activation for backward; ``dX2.0`` hands the
    gradient on to layer 1; ``dW2.0`` adds the gradient of the weights of layer 2 to ``g2``, in place. ``update2`` writes the
    weights ``w2``, also in place, so it waits for all who still read them. Every layer has a dX, as if more layers came before.

    Args:
        layers, micro_batches: how many of each.
        forward, dx, dw, update: costs of one task; without ``update`` there are no updates.
        update_on: the resource of the updates.
        devices: the resources of a pipeline; each takes an equal part of the layers, in order.
        splits: whether dX and dW are tasks of their own; else ``dX`` does both.
        activation, gradient: bytes.

    >>> [task.name for task in training_step(2)]
    ['F0.0', 'F1.0', 'dX1.0', 'dW1.0', 'dX0.0', 'dW0.0']
    >>> from autodiff_lab import schedule
    >>> stages = ["gpu0", "gpu1", "gpu2", "gpu3"]
    >>> step = training_step(4, micro_batches=8, devices=stages, splits=False)
    >>> 1 - schedule.simulate(step, schedule.pipeline(4), "fifo").utilisation  # the bubble, (p − 1) / (m + p − 1)
    0.2727272727272727
    """
    if layers < 1 or micro_batches < 1 or layers % max(len(devices), 1):
        raise ScheduleError(
            "training_step: expected at least one layer and one micro-batch, and layers that can be divided among the devices; "
            f"got layers={layers}, micro_batches={micro_batches}, {len(devices)} devices"
        )
    places = [devices[layer * len(devices) // layers] if devices else None for layer in range(layers)]
    found: list[Task] = []
    for number in range(micro_batches):
        for layer in range(layers):
            found.append(_forward(layer, layers, number, forward, places[layer], activation))
        for layer in reversed(range(layers)):
            found += _backward(layer, layers, number, (dx, dw), splits, places[layer], gradient)
    for layer in range(layers) if update is not None else ():
        found.append(_update(layer, micro_batches - 1, update or 0.0, update_on or places[layer]))
    inputs = [f"x.{number}" for number in range(micro_batches)] + [f"w{layer}" for layer in range(layers)]
    return Tasks(found, inputs=inputs, outputs=[f"g{layer}" for layer in range(layers)])


def _forward(layer: int, layers: int, number: int, cost: float, place: str | None, activation: float) -> Task:
    before = f"F{layer - 1}.{number}" if layer else f"x.{number}"
    return Task(name=f"F{layer}.{number}", cost=cost, reads=(before, f"w{layer}"), phase="F", nbytes=activation,
                on=place, sequence=number * layers + layer, micro_batch=number)  # fmt: skip


def _update(layer: int, number: int, cost: float, place: str | None) -> Task:
    return Task(name=f"update{layer}", cost=cost, reads=(f"g{layer}",), writes=(f"w{layer}",), phase="update",
                on=place, micro_batch=number)  # fmt: skip


def _backward(
    layer: int, layers: int, number: int, costs: tuple[float, float], splits: bool, place: str | None, gradient: float
) -> Iterator[Task]:
    after = f"dX{layer + 1}.{number}" if layer + 1 < layers else f"F{layer}.{number}"
    before = f"F{layer - 1}.{number}" if layer else f"x.{number}"
    so_far = (f"g{layer}",) if number else ()
    facts: dict[str, Any] = {"on": place, "sequence": number * layers + layer, "micro_batch": number}
    name, weights = f"dX{layer}.{number}", f"w{layer}"
    if not splits:
        yield Task(name=name, cost=sum(costs), reads=(after, before, weights, *so_far), writes=(name, f"g{layer}"),
                   phase="dX", nbytes=gradient, **facts)  # fmt: skip
        return
    yield Task(name=name, cost=costs[0], reads=(after, before, weights), phase="dX", **facts)
    yield Task(name=f"dW{layer}.{number}", cost=costs[1], reads=(after, before, *so_far), writes=(f"g{layer}",),
               phase="dW", nbytes=0 if number else gradient, **facts)  # fmt: skip
