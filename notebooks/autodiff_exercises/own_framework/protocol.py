"""What the lab asks of a framework of one's own: what a value knows, what an op is, and the three parts that are handed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Shape = tuple[int, ...]
MOST_VALUES = 50_000  # of one record: a perceptron's step has 40


class ProtocolError(TypeError):
    """Something of a framework is not what the protocol says; tells which, what was seen and what was expected."""


class Recorded(Protocol):
    """A number or an array that knows how it was computed. Any class with these names will do."""

    data: Any
    grad: Any  # what backward has added up so far; zero at first
    op: str  # the name of the operation that made it; "" for what was not computed
    inputs: tuple[Recorded, ...]  # one for each operand; () for what was not computed

    def backward(self) -> None:
        """Add the derivative of this number to the ``grad`` of all that it was computed from."""


@dataclass(frozen=True, slots=True)
class OpRules:
    """What a registry keeps of an op. All functions take and give plain arrays and shapes.

    ``gradients`` holds one rule for each operand: ``rule(g, out, *operands)`` takes the gradient of the result, the result and
    the operands, and gives what that operand gets. Where an operand was stretched, this may have the stretched shape: the
    engine adds up.
    """

    forward: Callable[..., Any]  # (*operands) -> result
    gradients: tuple[Callable[..., Any], ...]
    shape: Callable[..., Shape]  # (*shapes of the operands) -> shape of the result; sees no data


class Registry(Protocol):
    """A table of ops by name."""

    def register(
        self,
        name: str,
        forward: Callable[..., Any],
        gradients: Sequence[Callable[..., Any]],
        shape: Callable[..., Shape],
    ) -> None:
        """Put an op into the table; a ValueError where it is there already, or does not fit together."""

    def __getitem__(self, name: str, /) -> OpRules: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...


Slot = tuple[Recorded, int, float]  # a node, the worker that runs it, and when it begins
Planner = Callable[[Recorded, Callable[[Recorded], float], int], Sequence[Slot]]


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework of one's own: a class of arrays, a registry of its ops, and a scheduler."""

    tensor: Callable[[Any], Any]  # array -> Recorded, with operators and a method for each op
    ops: Registry
    plan: Planner  # (output, cost of a node, number of workers) -> slots


FIRST_OPS = {
    "add": OpRules(
        forward=lambda x, y: x + y,
        gradients=(lambda g, out, x, y: g, lambda g, out, x, y: g),
        shape=lambda x, y: np.broadcast_shapes(x, y),
    ),
    "mul": OpRules(
        forward=lambda x, y: x * y,
        gradients=(lambda g, out, x, y: g * y, lambda g, out, x, y: g * x),
        shape=lambda x, y: np.broadcast_shapes(x, y),
    ),
    "sum": OpRules(
        forward=lambda x: x.sum(),
        gradients=(lambda g, out, x: g * np.ones_like(x),),
        shape=lambda x: (),
    ),
}


def recorded(output: Recorded) -> list[Recorded]:
    """All that a value was computed from, and the value itself, each once and after its inputs.

    The order depends on nothing but the record: depth first, the first input first.

    Raises:
        ProtocolError: something in it is no value of the protocol, or is computed from itself.

    >>> from autodiff_lab.micro import Value
    >>> recorded(Value(1.0))
    Traceback (most recent call last):
    autodiff_exercises.own_framework.protocol.ProtocolError: a Value has no `op`; it needs data, grad, op, inputs and backward
    """
    order: list[Recorded] = []
    entered: set[int] = set()
    finished: set[int] = set()
    stack = [(output, False)]
    while stack:
        value, inputs_are_done = stack.pop()
        if inputs_are_done:
            if any(id(one) not in finished for one in value.inputs):
                raise ProtocolError(
                    f"the inputs of `{value.op}` lead back to its result, or are new ones at each asking"
                )
            finished.add(id(value))
            order.append(value)
        elif id(value) not in entered:
            entered.add(id(value))
            check_value(value)
            if len(entered) > MOST_VALUES:
                raise ProtocolError(f"more than {MOST_VALUES:,} values; does `inputs` make new ones when it is asked?")
            stack += [(value, True), *((one, False) for one in reversed(value.inputs))]
    return order


def check_value(value: Any) -> None:
    """Refuse what is no value of the protocol.

    Raises:
        ProtocolError: says which name is missing, or has another form.
    """
    kind = type(value).__name__
    for name in ("data", "grad", "op", "inputs", "backward"):
        if not hasattr(value, name):
            raise ProtocolError(f"a {kind} has no `{name}`; it needs data, grad, op, inputs and backward")
    if not isinstance(value.op, str):
        raise ProtocolError(f"`op` of a {kind} is {value.op!r}; it is the name of an operation, or an empty text")
    if not isinstance(value.inputs, tuple):
        raise ProtocolError(
            f"`inputs` of a {kind} is a {type(value.inputs).__name__}; it is a tuple, one for each operand"
        )


def record_of(output: Recorded) -> list[tuple[str, tuple[int, ...]]]:
    """The record as plain data: for each value its op, and the places of its inputs in this list."""
    order = recorded(output)
    place = {id(value): number for number, value in enumerate(order)}
    return [(value.op, tuple(place[id(one)] for one in value.inputs)) for value in order]
