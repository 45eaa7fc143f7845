"""Answers to the exercise "an engine for numbers", right and wrong: what its check is tested on."""

from __future__ import annotations

import math
from typing import Any


def users_first(result: Any) -> list[Any]:
    """A result and all that it was computed from, each value after all that use it: by counting how often each is used."""
    uses: dict[Any, int] = {result: 0}
    found = [result]
    for value in found:
        for one in value.inputs:
            if one not in uses:
                found.append(one)
            uses[one] = uses.get(one, 0) + 1
    order = [result]
    for value in order:
        for one in value.inputs:
            uses[one] -= 1
            if uses[one] == 0:
                order.append(one)
    return order


# ------------------------------------------------------------------------------------------ what a solution can look like


def scalar_engine():
    """A class: numbers with + - * / exp log that know how they were computed, and backward."""

    class Value:
        def __init__(self, data, op="", inputs=(), rule=None):
            self.data, self.grad = data, 0.0
            self.op, self.inputs, self.rule = op, inputs, rule  # rule: gradient -> one contribution for each input

        def __add__(self, other):
            other = as_value(other)
            return Value(self.data + other.data, "add", (self, other), lambda g: (g, g))

        def __sub__(self, other):
            other = as_value(other)
            return Value(self.data - other.data, "sub", (self, other), lambda g: (g, -g))

        def __mul__(self, other):
            a, b = self, as_value(other)
            return Value(a.data * b.data, "mul", (a, b), lambda g: (g * b.data, g * a.data))

        def __truediv__(self, other):
            a, b = self, as_value(other)
            out = a.data / b.data
            return Value(out, "div", (a, b), lambda g: (g / b.data, -g * out / b.data))

        def __radd__(self, number):
            return as_value(number) + self

        def __rsub__(self, number):
            return as_value(number) - self

        def __rmul__(self, number):
            return as_value(number) * self

        def __rtruediv__(self, number):
            return as_value(number) / self

        def exp(self):
            out = math.exp(self.data)
            return Value(out, "exp", (self,), lambda g: (g * out,))

        def log(self):
            return Value(math.log(self.data), "log", (self,), lambda g: (g / self.data,))

        def backward(self):
            order, gradients = inputs_first(self), {self: 1.0}
            for value in reversed(order):
                for one, part in zip(value.inputs, value.rule(gradients[value]) if value.inputs else (), strict=True):
                    gradients[one] = gradients[one] + part if one in gradients else part
            for value, gradient in gradients.items():
                value.grad = value.grad + gradient

    def as_value(number):
        return number if isinstance(number, Value) else Value(number)

    def inputs_first(output):
        order, entered, stack = [], set(), [(output, False)]
        while stack:
            value, inputs_are_done = stack.pop()
            if inputs_are_done:
                order.append(value)
            elif value not in entered:
                entered.add(value)
                stack += [(value, True), *((one, False) for one in value.inputs)]
        return order

    return Value


class Engine:
    """An engine whose rules are methods, so that a subclass can get one wrong."""

    def __init__(self, data: Any, op: str = "", inputs: Any = (), factors: Any = ()) -> None:
        self.data, self.grad, self.op, self.inputs, self.factors = data, 0.0, op, inputs, factors

    def of(self, number: Any) -> Any:
        """A plain number as a value."""
        return number if isinstance(number, Engine) else type(self)(number)

    def made(self, op: str, data: Any, inputs: Any, *factors: Any) -> Any:
        """The result of an operation, with its derivative by each input."""
        return type(self)(data, op, inputs, factors)

    def __add__(self, other: Any) -> Any:
        return self.made("add", self.data + self.of(other).data, (self, self.of(other)), 1.0, 1.0)

    def __sub__(self, other: Any) -> Any:
        other = self.of(other)
        return self.made("sub", self.data - other.data, (self, other), 1.0, -1.0)

    def __mul__(self, other: Any) -> Any:
        other = self.of(other)
        return self.made("mul", self.data * other.data, (self, other), other.data, self.data)

    def __truediv__(self, other: Any) -> Any:
        other = self.of(other)
        factors = (1 / other.data, -self.data / other.data**2)
        return self.made("div", self.data / other.data, (self, other), *factors)

    def __radd__(self, number: Any) -> Any:
        return self.of(number) + self

    def __rsub__(self, number: Any) -> Any:
        return self.of(number) - self

    def __rmul__(self, number: Any) -> Any:
        return self.of(number) * self

    def __rtruediv__(self, number: Any) -> Any:
        return self.of(number) / self

    def exp(self) -> Any:
        """The exponential function."""
        return self.made("exp", math.exp(self.data), (self,), math.exp(self.data))

    def log(self) -> Any:
        """The natural logarithm."""
        return self.made("log", math.log(self.data), (self,), 1 / self.data)

    def order(self) -> list[Any]:
        """All values, the consumers before what they use: by counting how often each one is used."""
        return users_first(self)

    def backward(self) -> None:
        """A sweep with gradients of its own, which are added to ``grad`` at the end."""
        total = {value: 0.0 for value in self.order()} | {self: 1.0}
        for value in self.order():
            for one, factor in zip(value.inputs, value.factors, strict=True):
                total[one] += total[value] * factor
        for value in total:
            value.grad += total[value]


def by_counting_uses() -> type:
    """Kahn's order, from the output."""
    return Engine


# -------------------------------------------------------------------------------------------------------- wrong solutions


def last_path_wins() -> type:
    """Assigns in place of adding."""

    class Assigning(Engine):
        def backward(self) -> None:
            self.grad = 1.0
            for value in self.order():
                for one, factor in zip(value.inputs, value.factors, strict=True):
                    one.grad = value.grad * factor

    return Assigning


def breadth_first() -> type:
    """Each value once, as soon as it is met."""

    class Early(Engine):
        def order(self) -> list[Any]:
            order = [self]
            for value in order:
                order += [one for one in dict.fromkeys(value.inputs) if one not in order]
            return order

    return Early


def every_path() -> type:
    """Sends on what arrives at once, along every path."""

    class Eager(Engine):
        def backward(self) -> None:
            waiting = [(self, 1.0)]
            while waiting:
                value, g = waiting.pop()
                value.grad += g
                waiting += [(one, g * factor) for one, factor in zip(value.inputs, value.factors, strict=True)]

    return Eager


def recursive() -> type:
    """The lecture's search, which calls itself."""

    class Recursive(Engine):
        def order(self) -> list[Any]:
            order: list[Any] = []
            entered = set()

            def build(value: Any) -> None:
                if value not in entered:
                    entered.add(value)
                    for one in value.inputs:
                        build(one)
                    order.append(value)

            build(self)
            return order[::-1]

    return Recursive


def stale() -> type:
    """Sweeps with what earlier sweeps have left in between."""

    class Stale(Engine):
        def backward(self) -> None:
            self.grad = 1.0
            for value in self.order():
                for one, factor in zip(value.inputs, value.factors, strict=True):
                    one.grad += value.grad * factor

    return Stale


def from_zero() -> type:
    """Every sweep begins by forgetting."""

    class Forgetting(Engine):
        def backward(self) -> None:
            for value in self.order():
                value.grad = 0.0
            super().backward()

    return Forgetting


def minus_is_plus() -> type:
    """The rule of a difference is that of a sum."""

    class Plus(Engine):
        def __sub__(self, other: Any) -> Any:
            return self.made("sub", self.data - self.of(other).data, (self, self.of(other)), 1.0, 1.0)

    return Plus


def divisor_stands_still() -> type:
    """The divisor is a constant."""

    class Still(Engine):
        def __truediv__(self, other: Any) -> Any:
            other = self.of(other)
            return self.made("div", self.data / other.data, (self, other), 1 / other.data, 0.0)

    return Still


def left_is_right() -> type:
    """With a number on the left, the operands change places."""

    class Turned(Engine):
        __rsub__, __rtruediv__ = Engine.__sub__, Engine.__truediv__

    return Turned


def only_on_the_right() -> type:
    """Knows numbers on the right only."""

    class Right(Engine):
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = None  # type: ignore[assignment]

    return Right


def inputs_as_a_set() -> type:
    """Who uses a value twice has it once."""

    class Once(Engine):
        def made(self, op: str, data: Any, inputs: Any, *factors: Any) -> Any:
            return super().made(op, data, tuple(dict.fromkeys(inputs)), *factors[: len(set(inputs))])

    return Once


def minus_by_plus() -> type:
    """A difference is a sum with a product, as in many small engines."""

    class Composed(Engine):
        def __sub__(self, other: Any) -> Any:
            return self + self.of(other) * -1.0

    return Composed


def an_object() -> Any:
    """Returns a value in place of the class."""
    return Engine(0.0)


def by_the_lab() -> Any:
    """The lab's small engine."""
    from autodiff_lab.micro import Value

    return Value
