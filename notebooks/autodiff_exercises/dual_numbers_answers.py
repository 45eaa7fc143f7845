"""Answers to the exercise on dual numbers, right and wrong: what its check is tested on."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import autodiff_lab as ad

# ------------------------------------------------------------------------------------ what a solution can look like


def push_tangents(f, primals, tangents):
    """The value of f(*primals), and its derivative in the direction of the tangents."""

    class Dual:
        def __init__(self, value, tangent):
            self.value, self.tangent = value, tangent

        def __add__(self, other):
            other = as_dual(other)
            return Dual(self.value + other.value, self.tangent + other.tangent)

        def __sub__(self, other):
            return self + as_dual(other) * -1.0

        def __rsub__(self, other):
            return as_dual(other) - self

        def __mul__(self, other):
            other = as_dual(other)
            return Dual(self.value * other.value, self.tangent * other.value + self.value * other.tangent)

        def exp(self):
            value = math.exp(self.value)
            return Dual(value, value * self.tangent)

        __radd__, __rmul__ = __add__, __mul__

    def as_dual(number):
        return number if isinstance(number, Dual) else Dual(number, 0.0)

    result = f(*(Dual(x, dx) for x, dx in zip(primals, tangents, strict=True)))
    return result.value, result.tangent


Pair = tuple[Any, Any]


def by_matrices(f: Callable[..., Any], primals: Any, tangents: Any) -> Pair:
    """The dual number x + dx·ε as the matrix [[x, dx], [0, x]]: sums and products of matrices do the rest."""

    class Matrix:
        __array_ufunc__ = None

        def __init__(self, array: Any) -> None:
            self.array = array

        def __add__(self, other: Any) -> Matrix:
            return Matrix(self.array + _array(other))

        def __sub__(self, other: Any) -> Matrix:
            return Matrix(self.array - _array(other))

        def __rsub__(self, other: Any) -> Matrix:
            return Matrix(_array(other) - self.array)

        def __mul__(self, other: Any) -> Matrix:
            return Matrix(self.array @ _array(other))

        def exp(self) -> Matrix:
            x, dx = self.array[0]
            return Matrix(math.exp(x) * np.array([[1.0, dx], [0.0, 1.0]]))

        __radd__, __rmul__ = __add__, __mul__

    def _array(number: Any) -> Any:
        return number.array if isinstance(number, Matrix) else number * np.eye(2)

    value, tangent = f(*(Matrix(np.array([[x, dx], [0.0, x]])) for x, dx in zip(primals, tangents, strict=True))).array[
        0
    ]
    return float(value), float(tangent)


# ------------------------------------------------------------------------------------ wrong solutions


class Dual:
    """A dual number with one rule for each operation, so that a subclass can get one wrong."""

    def __init__(self, value: Any, tangent: Any) -> None:
        self.value, self.tangent = value, tangent

    NUMBER_MOVES: Any = 0.0

    def dual(self, number: Any) -> Dual:
        """A plain number as a dual one."""
        return number if isinstance(number, Dual) else type(self)(number, self.NUMBER_MOVES)

    def add_rule(self, other: Dual) -> Any:
        """The tangent of a sum."""
        return self.tangent + other.tangent

    def sub_rule(self, other: Dual) -> Any:
        """The tangent of a difference."""
        return self.tangent - other.tangent

    def mul_rule(self, other: Dual) -> Any:
        """The tangent of a product."""
        return self.tangent * other.value + self.value * other.tangent

    def exp_rule(self) -> Any:
        """The tangent of exp."""
        return math.exp(self.value) * self.tangent

    def __add__(self, other: Any) -> Dual:
        other = self.dual(other)
        return type(self)(self.value + other.value, self.add_rule(other))

    def __sub__(self, other: Any) -> Dual:
        other = self.dual(other)
        return type(self)(self.value - other.value, self.sub_rule(other))

    def __mul__(self, other: Any) -> Dual:
        other = self.dual(other)
        return type(self)(self.value * other.value, self.mul_rule(other))

    def __radd__(self, other: Any) -> Dual:
        return self.dual(other) + self

    def __rsub__(self, other: Any) -> Dual:
        return self.dual(other) - self

    def __rmul__(self, other: Any) -> Dual:
        return self.dual(other) * self

    def exp(self) -> Dual:
        """The exponential function."""
        return type(self)(math.exp(self.value), self.exp_rule())


def _pushed(dual: type[Dual], f: Callable[..., Any], primals: Any, tangents: Any) -> Pair:
    result = f(*map(dual, primals, tangents))
    return result.value, result.tangent


def product_of_tangents(f: Callable[..., Any], primals: Any, tangents: Any) -> Pair:
    """(x · y)' = x' · y'."""

    class Wrong(Dual):
        def mul_rule(self, other: Dual) -> Any:
            return self.tangent * other.tangent

    return _pushed(Wrong, f, primals, tangents)


def chain_forgotten(f: Callable[..., Any], primals: Any, tangents: Any) -> Pair:
    """exp(x)' = exp(x), whatever x' is."""

    class Wrong(Dual):
        def exp_rule(self) -> Any:
            return math.exp(self.value)

    return _pushed(Wrong, f, primals, tangents)


def sign_lost(f: Callable[..., Any], primals: Any, tangents: Any) -> Pair:
    """(x - y)' = x' + y'."""

    class Wrong(Dual):
        sub_rule = Dual.add_rule

    return _pushed(Wrong, f, primals, tangents)


def numbers_move(f: Callable[..., Any], primals: Any, tangents: Any) -> Pair:
    """A plain number gets the tangent 1."""

    class Wrong(Dual):
        NUMBER_MOVES = 1.0

    return _pushed(Wrong, f, primals, tangents)


def always_the_same_direction(f: Callable[..., Any], primals: Any, tangents: Any) -> Pair:
    """Every input gets the tangent 1."""
    return _pushed(Dual, f, primals, [1.0 for _ in tangents])


def by_the_labs_jvp(f: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """The lab's own forward mode."""
    value, tangent = ad.jvp(f, primals, tangents)
    return [value, tangent]


def tangent_first(f: Callable[..., Any], primals: Any, tangents: Any) -> Pair:
    """The pair the other way round."""
    return _pushed(Dual, f, primals, tangents)[::-1]


def exp_cut_off(f: Callable[..., Any], primals: Any, tangents: Any) -> Pair:
    """The exponential function as a sum of twelve terms."""

    class Wrong(Dual):
        def exp(self) -> Dual:
            value = sum(self.value**n / math.factorial(n) for n in range(12))
            return Wrong(value, value * self.tangent)

    return _pushed(Wrong, f, primals, tangents)


def floats_only(f: Callable[..., Any], primals: Any, tangents: Any) -> Pair:
    """Only a float counts as a plain number."""

    class Wrong(Dual):
        def dual(self, number: Any) -> Dual:
            return Wrong(number, 0.0) if isinstance(number, float) else number

    return _pushed(Wrong, f, primals, tangents)


def in_place(f: Callable[..., Any], primals: Any, tangents: Any) -> Pair:
    """Writes the result of exp into the operand."""

    class Wrong(Dual):
        def exp(self) -> Dual:
            self.value = math.exp(self.value)
            self.tangent *= self.value
            return self

    return _pushed(Wrong, f, primals, tangents)


def reversed_like_forward(f: Callable[..., Any], primals: Any, tangents: Any) -> Pair:
    """One method for both sides."""

    class Wrong(Dual):
        __rsub__ = Dual.__sub__

    return _pushed(Wrong, f, primals, tangents)


def differences(f: Callable[..., Any], primals: Any, tangents: Any) -> Pair:
    """Two runs, a small step apart."""

    class Plain(Dual):
        pass

    def at(step: float) -> Any:
        return f(*(Plain(x + step * dx, 0.0) for x, dx in zip(primals, tangents, strict=True))).value

    return at(0.0), (at(1e-6) - at(-1e-6)) / 2e-6


def numbers_only_right(f: Callable[..., Any], primals: Any, tangents: Any) -> Pair:
    """2 + x is left to Python."""

    class Wrong(Dual):
        def __radd__(self, other: Any) -> Any:
            return NotImplemented

        __rsub__, __rmul__ = __radd__, __radd__

    return _pushed(Wrong, f, primals, tangents)


def tangent_only(f: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """Returns the derivative and forgets the value."""
    return _pushed(Dual, f, primals, tangents)[1]


def along_every_path(f: Callable[..., Any], primals: Any, tangents: Any) -> Pair:
    """Writes the program down first, then asks each operation for value and tangent, as often as it is used."""

    class Asked:
        def __init__(self, answer: Callable[[], Dual]) -> None:
            self.answer = answer

        def __add__(self, other: Any) -> Asked:
            return Asked(lambda: self.answer() + answer_of(other))

        def __sub__(self, other: Any) -> Asked:
            return Asked(lambda: self.answer() - answer_of(other))

        def __mul__(self, other: Any) -> Asked:
            return Asked(lambda: self.answer() * answer_of(other))

        def __rsub__(self, other: Any) -> Asked:
            return Asked(lambda: other - self.answer())

        def exp(self) -> Asked:
            return Asked(lambda: self.answer().exp())

        __radd__, __rmul__ = __add__, __mul__

    def answer_of(operand: Any) -> Any:
        return operand.answer() if isinstance(operand, Asked) else operand

    def given(x: Any, dx: Any) -> Asked:
        return Asked(lambda: Dual(x, dx))

    result = f(*map(given, primals, tangents)).answer()
    return result.value, result.tangent
