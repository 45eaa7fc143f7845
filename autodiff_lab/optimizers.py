"""Optimizers: rules that turn gradients into new parameters, and an object that applies a rule to Tensors.

A rule is a pure function ``update(parameters, gradients, state) -> (parameters, state)``. It computes on arrays, and on
symbols: so a whole training step, with its forward, backward and update phases, records as one graph.

>>> import autodiff_lab as ad
>>> rule = SGD(learning_rate=0.25)
>>> def training_step(parameters, state, x):
...     loss, gradients = ad.value_and_grad(lambda p, x: (p["w"] * x) ** 2)(parameters, x)
...     return loss, *rule.update(parameters, gradients, state)
>>> parameters = {"w": np.array(1.0)}
>>> graph = ad.record(training_step, parameters, rule.initial_state(parameters), 1.0)
>>> list(dict.fromkeys(node.phase for node in graph))
['forward', 'backward', 'update']
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from . import Tensor, events, map_leaves, name_scope, ops
from .backend import asarray
from .bindings import device_of
from .trees import Structure, flatten

Tree = Any  # nested dicts, lists and tuples of arrays
State = dict[str, Any]


class Rule(Protocol):
    """How parameters follow from gradients. A rule of your own needs these two methods."""

    def initial_state(self, parameters: Tree) -> State:
        """What the rule remembers before the first step."""

    def update(self, parameters: Tree, gradients: Tree, state: State) -> tuple[Tree, State]:
        """The parameters and the state after one step; nothing that is passed in changes."""


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent, with momentum if asked for.

    v ← momentum · v + g, then p ← p − learning_rate · v. The learning rate multiplies at the end, as in PyTorch; in Sutskever
    et al. (2013) it multiplies g, which differs when the rate changes during training. v starts at 0.

    >>> rule = SGD(learning_rate=0.1, momentum=0.5)
    >>> parameters = {"w": np.array([1.0])}
    >>> state = rule.initial_state(parameters)
    >>> for _ in range(2):
    ...     parameters, state = rule.update(parameters, {"w": np.array([1.0])}, state)
    >>> parameters["w"].round(6), state["velocity"]["w"]
    (array([0.75]), array([1.5]))
    """

    learning_rate: float = 0.01
    momentum: float = 0.0

    def __post_init__(self) -> None:
        _check_numbers("SGD", self.learning_rate, momentum=self.momentum)

    def initial_state(self, parameters: Tree) -> State:
        """Velocities of 0; nothing where there is no momentum."""
        return {"velocity": map_leaves(ops.zeros_like, parameters)} if self.momentum else {}

    def update(self, parameters: Tree, gradients: Tree, state: State) -> tuple[Tree, State]:
        """One step against the gradients, or along the velocities that they have added up to."""

        def plain(parameter: Any, gradient: Any) -> tuple[Any]:
            updated = parameter - self.learning_rate * gradient
            return (updated,)

        def with_momentum(parameter: Any, gradient: Any, velocity: Any) -> tuple[Any, Any]:
            velocity = self.momentum * velocity + gradient
            updated = parameter - self.learning_rate * velocity
            return updated, velocity

        with events.update_phase():
            if not self.momentum:
                (updated,) = _for_each_parameter(plain, parameters, gradients)
                return updated, state
            updated, velocity = _for_each_parameter(with_momentum, parameters, gradients, _kept(state, "velocity"))
            return updated, {"velocity": velocity}


@dataclass(frozen=True)
class Adam:
    """Adam: steps of about the learning rate, whatever the size of the gradients (Kingma and Ba, 2015, algorithm 1).

    m ← β₁ m + (1 − β₁) g and v ← β₂ v + (1 − β₂) g², both from 0. At step t the running means are still too small by the
    factors 1 − β₁ᵗ and 1 − β₂ᵗ, so p ← p − learning_rate · m̂ / (√v̂ + eps) with m̂ = m / (1 − β₁ᵗ), v̂ = v / (1 − β₂ᵗ).

    >>> rule = Adam(learning_rate=0.1)
    >>> parameters = {"w": np.array([1.0, 1.0])}
    >>> gradients = {"w": np.array([3.0, -0.003])}
    >>> updated, state = rule.update(parameters, gradients, rule.initial_state(parameters))
    >>> updated["w"].round(4)  # the first step has the size of the learning rate
    array([0.9, 1.1])
    """

    learning_rate: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    def __post_init__(self) -> None:
        _check_numbers("Adam", self.learning_rate, beta1=self.beta1, beta2=self.beta2)

    def initial_state(self, parameters: Tree) -> State:
        """Step 0, and running means of 0."""
        zeros = map_leaves(ops.zeros_like, parameters)
        first = device_of(next(iter(flatten(parameters)[0]), 0))
        return {"step": asarray(np.zeros((), np.int64), device=first), "mean": zeros, "square": zeros}

    def update(self, parameters: Tree, gradients: Tree, state: State) -> tuple[Tree, State]:
        """One step against the running mean of the gradients, in units of their running size."""
        with events.update_phase():
            step = _kept(state, "step") + 1
            so_far = _weight_so_far(self.beta1, step), _weight_so_far(self.beta2, step)
            weights = {kind: [_as_kind(weight, *kind) for weight in so_far] for kind in _kinds(gradients)}

            def adam(parameter: Any, gradient: Any, mean: Any, square: Any) -> tuple[Any, Any, Any]:
                mean = self.beta1 * mean + (1.0 - self.beta1) * gradient
                square = self.beta2 * square + (1.0 - self.beta2) * (gradient * gradient)
                mean_weight, square_weight = weights[gradient.dtype, device_of(gradient)]
                unbiased_mean, unbiased_square = mean / mean_weight, square / square_weight
                updated = parameter - self.learning_rate * unbiased_mean / (ops.sqrt(unbiased_square) + self.eps)
                return updated, mean, square

            before = _kept(state, "mean"), _kept(state, "square")
            updated, mean, square = _for_each_parameter(adam, parameters, gradients, *before)
            return updated, {"step": step, "mean": mean, "square": square}


def _weight_so_far(beta: float, step: Any) -> Any:
    """1 − βᵗ in float64, without cancellation: −expm1(t · log β)."""
    return -ops.expm1(step * (math.log(beta) if beta else -math.inf))


def _kinds(tree: Tree) -> list[tuple[Any, str]]:
    """Each dtype on each device once."""
    return list(dict.fromkeys((_as_array(leaf).dtype, device_of(leaf)) for leaf in flatten(tree)[0]))


def _as_kind(value: Any, dtype: Any, device: str) -> Any:
    cast = ops.astype(value, dtype)
    return cast if device_of(cast) == device else ops.to_device(cast, device)


def _check_numbers(rule: str, learning_rate: float, **fractions: float) -> None:
    if not learning_rate > 0:
        raise ValueError(f"{rule}: learning_rate must be above 0, got {learning_rate}")
    for name, value in fractions.items():
        if not 0 <= value < 1:
            raise ValueError(f"{rule}: {name} must be at least 0 and below 1, got {value}")


def _kept(state: State, name: str) -> Any:
    if not isinstance(state, dict) or name not in state:
        raise ValueError(f"update: the state has no {name!r}; begin with initial_state(parameters) of the same rule")
    return state[name]


def _for_each_parameter(formula: Callable[..., tuple[Any, ...]], parameters: Tree, *others: Tree) -> list[Tree]:
    """The results of ``formula``, each nested like the parameters. What it records is in the scope of the parameter's layer."""
    leaves, structure = flatten(parameters)
    if not leaves:
        raise ValueError("update: there are no parameters")
    columns = [leaves, *(_leaves_like(other, structure) for other in others)]
    rows = []
    for path, *values in zip(structure.paths(), *columns, strict=True):
        with name_scope(".".join(map(str, path[:-1]))):
            rows.append(formula(*map(_as_array, values)))
    return [structure.rebuild(column) for column in zip(*rows, strict=True)]


def _leaves_like(tree: Tree, structure: Structure) -> list[Any]:
    leaves, own_structure = flatten(tree)
    if own_structure != structure:
        wanted, seen = ", ".join(_names(structure)), ", ".join(_names(own_structure)) or "nothing"
        raise ValueError(
            f"update: gradients and state must nest like the parameters, {wanted}, but one nests like {seen}; pass the "
            "gradients of all parameters, and the state that initial_state or the step before gave"
        )
    return leaves


def _names(structure: Structure) -> list[str]:
    """Each parameter's name, as layer1.weight."""
    return [".".join(map(str, path)) or "(one alone)" for path in structure.paths()]


def _as_array(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, (int, float)) else value


# ------------------------------------------------------------------------------------------------------ for Tensors


class Optimizer:
    """A rule at work on Tensors, in the style of PyTorch: ``zero_grad``, ``backward``, ``step``.

    >>> import autodiff_lab as ad
    >>> w = ad.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = Optimizer([w], SGD(learning_rate=0.25))
    >>> optimizer.zero_grad()
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.5, -1. ], requires_grad=True)
    """

    def __init__(self, parameters: Tree, rule: Rule) -> None:
        leaves, self._structure = flatten(parameters)
        for name, leaf in zip(_names(self._structure), leaves, strict=True):
            if not (isinstance(leaf, Tensor) and leaf.requires_grad and leaf.is_leaf):
                raise TypeError(
                    f"Optimizer: parameter {name} must be a Tensor made with requires_grad=True, got {type(leaf).__name__}; "
                    "for arrays use the rule's update"
                )
        self.rule = rule
        self._parameters: list[Tensor] = leaves
        self.state = rule.initial_state(self._values())

    def zero_grad(self) -> None:
        """Forget the gradients: ``backward`` adds to those that are there."""
        for parameter in self._parameters:
            parameter.grad = None

    def step(self) -> None:
        """Give every parameter its next value.

        Raises:
            ValueError: a parameter has no gradient.
        """
        gradients = self._structure.rebuild(self._gradients())
        updated, self.state = self.rule.update(self._values(), gradients, self.state)
        for parameter, value in zip(self._parameters, flatten(updated)[0], strict=True):
            parameter.data = value

    def _values(self) -> Tree:
        return self._structure.rebuild(parameter.data for parameter in self._parameters)

    def _gradients(self) -> list[Any]:
        names = _names(self._structure)
        missing = [name for name, parameter in zip(names, self._parameters, strict=True) if parameter.grad is None]
        if missing:
            raise ValueError(
                f"Optimizer.step: no gradient has reached {', '.join(missing)}; call backward() on a loss that depends on it, "
                "or leave it out of the parameters"
            )
        return [parameter.grad.data for parameter in self._parameters if parameter.grad is not None]
