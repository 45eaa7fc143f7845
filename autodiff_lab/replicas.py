"""Data-parallel replicas: each takes a part of a batch, their gradients are averaged, and a check says which half is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .checks import gradcheck
from .reports import GradcheckReport
from .reverse_mode import value_and_grad
from .trees import flatten

Tree = Any  # nested dicts, lists and tuples of arrays
Loss = Callable[..., Any]  # of parameters and the arrays of a batch: the mean over the batch
Culprit = Literal["gradient rule", "all-reduce"]


def all_reduce(gradients: Sequence[Tree]) -> Tree:
    """The mean of the replicas' gradients, which every replica is given.

    (g₁ + … + gₙ) / n. Each loss is a mean over equally many rows, so this is the gradient of the mean over all rows.

    >>> all_reduce([{"w": np.array(1.0)}, {"w": np.array(3.0)}])
    {'w': np.float64(2.0)}
    """
    return _leaf_by_leaf(lambda *leaves: sum(leaves) / len(leaves), gradients)


@dataclass(frozen=True)
class ReplicaStep:
    """One data-parallel step: each replica's loss and gradient, and the gradient that all of them are given."""

    losses: tuple[float, ...]
    gradients: tuple[Tree, ...]
    reduced: Tree


def data_parallel(loss: Loss, parameters: Tree, parts: Sequence[tuple[Any, ...]]) -> ReplicaStep:
    """One step of several replicas, one after the other: each differentiates ``loss(parameters, *part)`` on its own part.

    Args:
        loss: gives one number, a mean over the rows of its part.
        parameters: the same for every replica.
        parts: for each replica the arrays of its part of the batch, with equally many rows.

    Raises:
        ValueError: there is no part, or the parts have different numbers of rows.

    >>> step = data_parallel(
    ...     lambda w, x: (w * x).mean(), np.array(2.0), [(np.array([1.0, 2.0]),), (np.array([3.0, 4.0]),)]
    ... )
    >>> [float(gradient) for gradient in step.gradients], float(step.reduced)
    ([1.5, 3.5], 2.5)
    """
    rows = [len(part[0]) for part in parts]
    if len(set(rows)) != 1:
        raise ValueError(f"data_parallel: expected parts with equally many rows, one for each replica; got rows {rows}")
    results = [value_and_grad(loss)(parameters, *part) for part in parts]
    losses, gradients = zip(*results, strict=True)
    return ReplicaStep(tuple(map(float, losses)), gradients, all_reduce(gradients))


@dataclass(frozen=True)
class ReplicaReport:
    """What comparing the replicas found: each one's gradient against differences, and what was reduced against their mean."""

    checks: tuple[GradcheckReport, ...]
    ratio: float  # of what all-reduce gave to the mean of what it got; NaN where it is no multiple

    @property
    def ok(self) -> bool:
        """Whether every gradient is right, before all-reduce and after it."""
        return not self.culprits

    @property
    def culprits(self) -> tuple[Culprit, ...]:
        """Which halves of the step are wrong; both can be."""
        rule = any(check.verdict == "wrong" for check in self.checks)
        reduction = not np.isclose(self.ratio, 1.0, rtol=1e-3)
        return (*(("gradient rule",) if rule else ()), *(("all-reduce",) if reduction else ()))

    def __repr__(self) -> str:
        head = "✓ replicas: no gradient is wrong" if self.ok else f"✗ replicas: wrong {' and '.join(self.culprits)}"
        lines = [
            f"replica {number}, before all-reduce: {check.verdict} gradient"
            for number, check in enumerate(self.checks, 1)
        ]
        factor = "no multiple of" if np.isnan(self.ratio) else f"{self.ratio:.4g} times"
        return "\n  ".join([head, *lines, f"all-reduce gave {factor} the mean of the replicas' gradients"])


def check_replicas(loss: Loss, parameters: Tree, parts: Sequence[tuple[Any, ...]]) -> ReplicaReport:
    """Tell a wrong gradient rule from a wrong all-reduce, which can give the same wrong gradient.

    A rule is wrong in each replica, before anything is exchanged: so each replica's gradient is compared with differences.
    What comes out of all-reduce is compared with the mean of what went in.

    >>> parts = [(np.array([1.0, 2.0]),), (np.array([3.0, 4.0]),)]
    >>> check_replicas(lambda w, x: (w * x).mean(), np.array(2.0), parts)
    ✓ replicas: no gradient is wrong
      replica 1, before all-reduce: right gradient
      replica 2, before all-reduce: right gradient
      all-reduce gave 1 times the mean of the replicas' gradients
    """
    step = data_parallel(loss, parameters, parts)
    checks = tuple(gradcheck(_of_parameters(loss, part), (parameters,)) for part in parts)
    sent = np.mean([_as_vector(gradient) for gradient in step.gradients], axis=0)
    return ReplicaReport(checks, _ratio(_as_vector(step.reduced), sent))


def _of_parameters(loss: Loss, part: tuple[Any, ...]) -> Loss:
    def loss_of_parameters(parameters: Tree) -> Any:
        return loss(parameters, *part)

    return loss_of_parameters


def _ratio(received: np.ndarray, sent: np.ndarray) -> float:
    """The number that turns what was sent into what was received; NaN where there is none."""
    size = float(sent @ sent)
    ratio = float(received @ sent) / size if size else 1.0
    return ratio if np.allclose(received, ratio * sent, rtol=1e-3, atol=1e-6 * size**0.5) else float("nan")


def _as_vector(tree: Tree) -> np.ndarray:
    return np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in flatten(tree)[0]])


def _leaf_by_leaf(formula: Callable[..., Any], trees: Sequence[Tree]) -> Tree:
    """A tree like the given ones, with ``formula`` of the leaves that stand at one place in them."""
    columns = zip(*(flatten(tree)[0] for tree in trees), strict=True)
    return flatten(trees[0])[1].rebuild(formula(*leaves) for leaves in columns)
