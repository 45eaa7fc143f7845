"""Training runs to compare: a small model trained twice from the same numbers, once with a fault, and what became of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from . import datasets, events, ops, tensor
from .events import StepTrained, TrainingStopped
from .faults import Outcome
from .layers import MLP, Layer, ResidualMLP
from .optimizers import SGD, Optimizer, Rule
from .replicas import data_parallel
from .seams import Replacement
from .trees import flatten

LESS = 1.3  # a loss at the end so many times the healthy one counts as less learnt
NOTHING = 0.8, 1.5  # between so many times the first loss at the end nothing was learnt, and above it diverges


@dataclass(frozen=True)
class Setting:
    """What is trained: each run makes its own model and batches, so that all runs start from the same numbers."""

    name: str
    model: Callable[[], Layer]
    batches: Callable[[], Iterable[tuple[Any, Any]]]  # inputs and wanted classes; one step a batch
    rule: Rule
    loss: Callable[[Any, Any], Any] = ops.cross_entropy
    replicas: int = 1  # that each take an equal part of every batch


@dataclass(frozen=True)
class Run:
    """One training run: its steps, and the error that stopped it if one did."""

    name: str
    steps: tuple[StepTrained, ...]
    stopped: TrainingStopped | None = None

    @property
    def losses(self) -> tuple[float, ...]:
        """The loss before each step."""
        return tuple(step.loss for step in self.steps)

    @property
    def gradient_norms(self) -> tuple[float, ...]:
        """The norm of the gradient that each step followed."""
        return tuple(step.gradient_norm for step in self.steps)

    @property
    def final_loss(self) -> float:
        """The mean loss of the last fifth of the steps."""
        last = self.losses[-max(1, len(self.losses) // 5) :]
        return sum(last) / len(last) if last else math.nan

    @property
    def events(self) -> tuple[StepTrained | TrainingStopped, ...]:
        """What the run told."""
        return self.steps if self.stopped is None else (*self.steps, self.stopped)


@dataclass(frozen=True)
class Comparison:
    """The same training twice: healthy, and with a fault."""

    setting: str
    healthy: Run
    faulty: Run

    @property
    def outcome(self) -> Outcome:
        """What became of the faulty run, by its loss at the end against its first loss and the healthy run's end."""
        if self.faulty.stopped is not None:
            return "stops with an error"
        end, first = self.faulty.final_loss, self.faulty.losses[0]
        if not end < NOTHING[1] * first:
            return "diverges"
        if end > NOTHING[0] * first:
            return "does not learn"
        return "learns less" if end > LESS * self.healthy.final_loss else "learns as well"

    @property
    def events(self) -> tuple[StepTrained | TrainingStopped, ...]:
        """What both runs told, the healthy one first."""
        return (*self.healthy.events, *self.faulty.events)

    def __repr__(self) -> str:
        start, healthy, faulty = (f"{x:.3g}" for x in (*self.healthy.losses[:1], *self._ends))
        what = f"{self.setting}, {self.faulty.name}: {self.outcome}"
        if self.faulty.stopped is not None:
            return f"{what}\n  in step {self.faulty.stopped.step}: {self.faulty.stopped.reason}"
        return f"{what}\n  loss from {start} to {faulty}, healthy to {healthy}, in {len(self.faulty.steps)} steps"

    @property
    def _ends(self) -> tuple[float, float]:
        return self.healthy.final_loss, self.faulty.final_loss


def train(setting: Setting, name: str = "healthy") -> Run:
    """Train once. Each step is told as a ``StepTrained``; an error in a step ends the run and is told as ``TrainingStopped``.

    The ops of a step tell nothing, since a receiver would hold every value of every step.

    >>> run = train(mlp_on_digits(steps=3))
    >>> [step.step for step in run.steps], run.losses[-1] < run.losses[0]
    ([1, 2, 3], True)
    """
    told: list[Any] = []
    for event in _steps(setting, name):
        told.append(event)
        events.tell(event)
    stopped = told.pop() if told and isinstance(told[-1], TrainingStopped) else None
    return Run(name, tuple(told), stopped)


def _steps(setting: Setting, name: str) -> Iterator[StepTrained | TrainingStopped]:
    model = setting.model()
    optimizer = Optimizer(model.parameters(), setting.rule)
    for number, batch in enumerate(setting.batches(), 1):
        try:
            loss, norm = _step(setting, model, optimizer, batch)
        except (TypeError, ValueError, IndexError) as error:
            yield TrainingStopped(name, number, f"{type(error).__name__}: {error}")
            return
        yield StepTrained(name, number, loss, norm)


def _step(setting: Setting, model: Layer, optimizer: Optimizer, batch: tuple[Any, Any]) -> tuple[float, float]:
    with events.silence(), np.errstate(all="ignore"):  # a run that diverges overflows, and its numbers say so
        optimizer.zero_grad()
        loss = _backward(setting, model, batch)
        optimizer.step()
    squares = [float(np.square(p.grad.numpy(), dtype=np.float64).sum()) for p in flatten(model.parameters())[0]]
    return loss, math.sqrt(sum(squares))


def _backward(setting: Setting, model: Layer, batch: tuple[Any, Any]) -> float:
    """Give every parameter its gradient; the loss."""
    if setting.replicas == 1:
        loss = setting.loss(model(batch[0]), batch[1])
        loss.backward()
        return float(loss.item())
    parts = list(zip(*(np.array_split(array, setting.replicas) for array in batch), strict=True))
    step = data_parallel(
        lambda parameters, x, y: setting.loss(model.with_parameters(parameters)(x), y), model.values(), parts
    )
    for parameter, gradient in zip(*(flatten(tree)[0] for tree in (model.parameters(), step.reduced)), strict=True):
        parameter.grad = tensor(gradient)
    return sum(step.losses) / setting.replicas


def compare(setting: Setting, fault: Replacement) -> Comparison:
    """Train twice from the same numbers: healthy, and inside ``with fault``.

    >>> from autodiff_lab import faults
    >>> compare(mlp_on_digits(), faults.lost_sign("cross_entropy")).outcome
    'diverges'
    """
    healthy = train(setting)
    with fault:
        return Comparison(setting.name, healthy, train(setting, fault.name))


# ------------------------------------------------------------------------------------------------------------ settings


def mlp_on_digits(*, steps: int = 60, learning_rate: float = 0.5, seed: int = 0) -> Setting:
    """A perceptron of two layers on handwritten digits: a chain, in which each value has one consumer."""
    return Setting(
        "MLP on digits",
        lambda: MLP(64, 32, 10, activation=ops.tanh, seed=seed),
        lambda: _digit_batches(steps, seed),
        SGD(learning_rate),
    )


def residual_on_digits(*, steps: int = 60, learning_rate: float = 0.05, seed: int = 0) -> Setting:
    """A residual network of three blocks on handwritten digits: each block's input has three consumers."""
    return Setting(
        "residual network on digits",
        lambda: ResidualMLP(64, 16, 10, blocks=3, seed=seed),
        lambda: _digit_batches(steps, seed),
        SGD(learning_rate),
    )


def replicas_on_digits(*, count: int = 4, steps: int = 60, learning_rate: float = 0.5, seed: int = 0) -> Setting:
    """The perceptron again, with every batch of 64 rows divided among replicas whose gradients are averaged."""
    alone = mlp_on_digits(steps=steps, learning_rate=learning_rate, seed=seed)
    return replace(alone, name=f"{alone.name}, {count} replicas", replicas=count)


def _digit_batches(count: int, seed: int) -> Iterator[tuple[Any, Any]]:
    """``count`` batches of 64 digits; epochs follow each other, without the rest that is smaller."""
    images, labels = datasets.digits()
    rows = images.reshape(len(images), -1)
    epochs = (datasets.batches(rows, labels, size=64, seed=seed + epoch) for epoch in range(count))
    full = ((x, y) for epoch in epochs for x, y in epoch if len(x) == 64)
    return islice(full, count)


SETTINGS: dict[str, Callable[..., Setting]] = {
    "mlp": mlp_on_digits,
    "residual": residual_on_digits,
    "replicas": replicas_on_digits,
}
