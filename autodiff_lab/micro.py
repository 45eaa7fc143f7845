"""The lecture's scalar engine on one screen: every value knows how it was computed. Imports nothing of the lab."""

from __future__ import annotations

import math
from collections.abc import Callable

Rule = Callable[[float], tuple[float, ...]]  # the result's gradient -> one contribution for each parent


class Value:
    """One number and how it was computed: its parents, and the rule that carries a gradient back to them.

    >>> x = Value(3.0, requires_grad=True)
    >>> (2 * x * x).backward()
    >>> x.grad
    12.0
    """

    def __init__(self, data: float, requires_grad: bool = False) -> None:
        if getattr(data, "ndim", 0) or not hasattr(data, "__float__"):
            raise TypeError(f"data is a {type(data).__name__}; micro is scalar: use autodiff_lab for arrays")
        self.data, self.grad, self.requires_grad = float(data), 0.0, requires_grad
        self.parents: tuple[Value, ...] = ()
        self.rule: Rule | None = None

    def __repr__(self) -> str:
        return f"Value({self.data:g}, grad={self.grad:g})" if self.requires_grad else f"Value({self.data:g})"

    def __add__(self, other: Value | float) -> Value:
        b = as_value(other)
        return computed(self.data + b.data, (self, b), lambda g: (g, g))

    def __sub__(self, other: Value | float) -> Value:
        return self + -as_value(other)

    def __mul__(self, other: Value | float) -> Value:
        b = as_value(other)
        return computed(self.data * b.data, (self, b), lambda g: (g * b.data, g * self.data))

    def __truediv__(self, other: Value | float) -> Value:
        return self * as_value(other) ** -1

    def __pow__(self, n: float) -> Value:
        if isinstance(n, Value):
            raise TypeError("the exponent is a Value, expected a plain number: write (b * a.log()).exp() for a ** b")
        return computed(self.data**n, (self,), lambda g: (g * n * self.data ** (n - 1),))

    def __neg__(self) -> Value:
        return self * -1

    def __rsub__(self, number: float) -> Value:
        return as_value(number) - self

    def __rtruediv__(self, number: float) -> Value:
        return as_value(number) / self

    __radd__, __rmul__ = __add__, __mul__

    def exp(self) -> Value:
        """The exponential function."""
        out = math.exp(self.data)
        return computed(out, (self,), lambda g: (g * out,))

    def log(self) -> Value:
        """The natural logarithm."""
        return computed(math.log(self.data), (self,), lambda g: (g / self.data,))

    def tanh(self) -> Value:
        """The hyperbolic tangent."""
        out = math.tanh(self.data)
        return computed(out, (self,), lambda g: (g * (1 - out * out),))

    def relu(self) -> Value:
        """The number where it is positive, else 0; at 0 its gradient is 0."""
        return computed(max(self.data, 0.0), (self,), lambda g: (g * (self.data > 0),))

    def backward(self) -> None:
        """Add d(self)/d(leaf) to the ``grad`` of every leaf; the grads in between are those of this call alone."""
        order = topological_order(self)
        for value in order:
            value.grad = 0.0 if value.parents else value.grad
        self.grad += 1.0
        for value in reversed(order):
            contributions = value.rule(value.grad) if value.rule else ()
            for parent, contribution in zip(value.parents, contributions, strict=True):
                parent.grad += contribution if parent.requires_grad else 0.0


def as_value(number: Value | float) -> Value:
    """The number as a constant Value; a Value as it is."""
    return number if isinstance(number, Value) else Value(number)


def computed(data: float, parents: tuple[Value, ...], rule: Rule) -> Value:
    """The result of an operation: it remembers how it was computed if one of its parents requires a gradient."""
    out = Value(data, requires_grad=any(parent.requires_grad for parent in parents))
    if out.requires_grad:
        out.parents, out.rule = parents, rule
    return out


def topological_order(output: Value) -> list[Value]:
    """Everything that ``output`` was computed from, each value after its parents: depth first, without recursion."""
    order: list[Value] = []
    entered: set[Value] = set()
    stack = [(output, False)]
    while stack:
        value, parents_are_done = stack.pop()
        if parents_are_done:
            order.append(value)
        elif value not in entered:
            entered.add(value)
            stack += [(value, True), *((parent, False) for parent in value.parents)]
    return order
