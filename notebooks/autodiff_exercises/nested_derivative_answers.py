"""Answers to the exercise on nested derivatives of lesson 20, right and wrong: what its check is tested on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import autodiff_lab as ad

from .dual_numbers_answers import Dual

# ------------------------------------------------------------------------------------ what a solution can look like


def derivative(f, x):
    """The derivative of f at x, where f may call derivative again."""
    derivative.level = level = getattr(derivative, "level", 0) + 1

    class Dual:
        def __init__(self, value, tangent):
            self.value, self.tangent, self.level = value, tangent, level

        def __add__(self, other):
            if getattr(other, "level", 0) > level:
                return NotImplemented  # then Python asks the other operand
            value, tangent = parts(other)
            return Dual(self.value + value, self.tangent + tangent)

        def __mul__(self, other):
            if getattr(other, "level", 0) > level:
                return NotImplemented
            value, tangent = parts(other)
            return Dual(self.value * value, self.tangent * value + self.value * tangent)

        __radd__, __rmul__ = __add__, __mul__

    def parts(number):
        return (number.value, number.tangent) if getattr(number, "level", 0) == level else (number, 0.0)

    _value, tangent = parts(f(Dual(x, 1.0)))
    return tangent


_symbols = count()


class _Polynomial:
    """A polynomial in the small steps ε₁, ε₂, …, whose squares are zero: {steps: factor}."""

    def __init__(self, terms: dict[frozenset[int], float]) -> None:
        self.terms = terms

    def __add__(self, other: Any) -> _Polynomial:
        terms = dict(self.terms)
        for steps, factor in _terms(other).items():
            terms[steps] = terms.get(steps, 0.0) + factor
        return _Polynomial(terms)

    def __mul__(self, other: Any) -> _Polynomial:
        terms: dict[frozenset[int], float] = {}
        for mine, factor in self.terms.items():
            for theirs, other_factor in _terms(other).items():
                if not mine & theirs:
                    terms[mine | theirs] = terms.get(mine | theirs, 0.0) + factor * other_factor
        return _Polynomial(terms)

    __radd__, __rmul__ = __add__, __mul__


def _terms(number: Any) -> dict[frozenset[int], float]:
    return number.terms if isinstance(number, _Polynomial) else {frozenset(): number}


def by_polynomials(f: Callable[..., Any], x: Any) -> Any:
    """A step of its own for each derivative; what is returned are the terms with that step, without it."""
    step = next(_symbols)
    found = {
        steps - {step}: factor
        for steps, factor in _terms(f(x + _Polynomial({frozenset({step}): 1.0}))).items()
        if step in steps
    }
    return _Polynomial(found) if any(found) else found.get(frozenset(), 0.0)


# ------------------------------------------------------------------------------------ wrong solutions


def by_the_lab(f: Callable[..., Any], x: Any) -> Any:
    """The lab's own forward mode, which has a level for each running derivative."""
    return ad.jvp(f, (x,), (1.0,))[1]


class _OneForAll(Dual):
    """A dual number that does not know whose tangent it carries."""


def confused(f: Callable[..., Any], x: Any) -> Any:
    """The tangents of both derivatives are added up."""
    result = f(_OneForAll(x, 1.0))
    return result.tangent if isinstance(result, _OneForAll) else 0.0


def left_operand_decides(f: Callable[..., Any], x: Any) -> Any:
    """Each derivative has numbers of its own, and whatever stands on the left takes the other for a constant."""

    class Own(Dual):
        def dual(self, number: Any) -> Dual:
            return number if isinstance(number, Own) else Own(number, 0.0)

    result = f(Own(x, 1.0))
    return result.tangent if isinstance(result, Own) else 0.0


def inner_result_is_a_number(f: Callable[..., Any], x: Any) -> Any:
    """What an inner derivative returns has lost how it depends on the outer x."""
    found = derivative(f, x)
    while hasattr(found, "value"):
        found = found.value
    return found


def nested_differences(f: Callable[..., Any], x: Any) -> Any:
    """Differences of differences."""
    step = 1e-4
    return (f(x + step) - f(x + -step)) * (0.5 / step)


def small_differences(f: Callable[..., Any], x: Any) -> Any:
    """Differences with a step that is good for one derivative, and leaves noise of two."""
    step = 1e-6
    return (f(x + step) - f(x - step)) / (2 * step)


def wide_differences(f: Callable[..., Any], x: Any) -> Any:
    """A step of one half: exact for parabolas."""
    return f(x + 0.5) + -1.0 * f(x + -0.5)


def whoever_it_belongs_to(f: Callable[..., Any], x: Any) -> Any:
    """Takes the tangent of the result also where it is the number of another derivative."""
    last = []

    def watched(number: Any) -> Any:
        last.append(f(number))
        return last[-1]

    derivative(watched, x)
    return getattr(last[-1], "tangent", 0.0)
