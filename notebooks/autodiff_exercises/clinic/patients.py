"""What a patient of the bug clinic is: a function with a planted bug, and all that its two exercises are made of."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from ..exercise import Case, Misconception, Wrong, case
from ..sameness import same
from . import bugs

CALLS = 4  # of a specimen in one test: room for a law such as f(2 g) = 2 f(g), and for a forward step and one back

Function = Callable[..., Any]


def size_of(*values: Any) -> int:
    """How many numbers and names there are in some values.

    >>> size_of(1.0, np.ones((2, 3)), {"y": ["x", "x"]}, None)
    10
    """
    return sum(map(_size, values))


def _size(value: Any) -> int:
    if isinstance(value, dict):
        return size_of(*value.keys(), *value.values())
    if isinstance(value, list | tuple):
        return size_of(*value)
    return 0 if value is None or callable(value) else int(np.size(value))


@dataclass(frozen=True)
class Patient:
    """One planted bug. Both exercises are made of it: the smallest test that fails on it, and its repair.

    ``shows`` and ``hides`` are arguments as a student can type them. With the first the bug shows, and their size is all that a
    test may use in a call. With the second it does not; they are no larger. ``hidden`` is the belief of who tests with those.
    """

    title: str
    complaint: str  # Markdown: what the function owes, and what was noticed
    sick: Function
    repaired: Function
    catches: Function  # the smallest test
    shows: str
    hides: str
    hidden: tuple[str, str]  # the misconception's name and its message
    test_hints: tuple[str, str, str]
    hints: tuple[str, str, str]
    alternatives: tuple[Function, ...]
    wrong: tuple[tuple[Function, str], ...]  # beside the sick one
    misconceptions: tuple[Misconception, ...]
    cases: Callable[[Random, bool], Iterable[Case]]
    accepts: Callable[..., bool]
    size: Callable[..., int] = size_of
    unit: str = "numbers"
    is_rounded: bool = True  # healthy ones may differ in the last digit
    withheld: tuple[str, ...] = ()  # names of the lab that a repair may not use
    can_grow: bool = True  # there are arguments that are larger than need be

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.repaired.__name__

    @property
    def smallest(self) -> int:
        """The size of arguments with which the bug shows: all that a test may use in a call."""
        return self.size(*self.arguments(self.shows))

    def arguments(self, expression: str) -> tuple[Any, ...]:
        """Fresh arguments from what a student can type."""
        return case("", expression).arguments

    def sick_one(self, seed: int = 0) -> Specimen:
        """The function with its bug; another seed rounds in another way."""
        return Specimen(self.sick, self.size, self.unit, self.smallest, seed)

    def healthy_one(self, seed: int = 0) -> Specimen:
        """A function without the bug; another seed computes or rounds in another way."""
        bodies = (self.repaired, *self.alternatives)
        return Specimen(bodies[seed % len(bodies)], self.size, self.unit, self.smallest, seed)


class TooLarge(ValueError):
    """A test that should be small passes too much to the function that it tests, or calls it too often."""


@dataclass(slots=True)
class Specimen:
    """One body of a patient's function, which takes small arguments only and only a few calls.

    It does not say whether it is sick, or a test could simply ask it; ``is_sick`` knows.

    >>> Specimen(len, size_of, "numbers", 2)([1, 2])
    2
    >>> Specimen(len, size_of, "numbers", 2)([1, 2, 3])
    Traceback (most recent call last):
    autodiff_exercises.clinic.patients.TooLarge: a call with 3 numbers, and it can be told with 2
    """

    body: Function
    size: Callable[..., int]
    unit: str
    most: int  # of that unit in one call
    seed: int = 0
    used: int = field(default=0, compare=False)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the body, unless that is too much."""
        given = inspect.signature(self.body).bind(*arguments, **named).args
        self.used += 1
        if self.used > CALLS:
            raise TooLarge(f"{self.used} calls in one test, and it can be told with {CALLS} or fewer")
        if (seen := self.size(*given)) > self.most:
            raise TooLarge(f"a call with {seen} {self.unit}, and it can be told with {self.most}")
        return _otherwise_rounded(self.body(*given), self.seed)


def is_sick(specimen: Specimen) -> bool:
    """Whether the body of a specimen is one of those with a planted bug."""
    return specimen.body.__module__ == bugs.__name__


def _otherwise_rounded(value: Any, seed: int) -> Any:
    """The value with other last digits, as computing in another order gives them; seed 0 leaves it as it is."""
    if seed == 0:
        return value
    if isinstance(value, dict):
        return {key: _otherwise_rounded(one, seed) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_otherwise_rounded(one, seed) for one in value)
    if isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype == np.float64):
        return value * (1.0 + 1e-13 * np.random.default_rng(seed).uniform(0.5, 1.0))
    return value


# ------------------------------------------------------------------------------------------------------- comparing


def outcome(function: Function, arguments: tuple[Any, ...]) -> Any:
    """What a call gives and what it makes of its arguments, or the class of the error that ends it."""
    given = copy.deepcopy(arguments)
    try:
        return function(*given), tuple(one for one in given if not callable(one))
    except TooLarge:
        raise
    except Exception as error:
        return type(error).__name__


def alike(one: Any, other: Any) -> bool:
    """Whether two values agree up to rounding; a list and a tuple agree, an array and a number of the same size do.

    >>> alike((1.0, [2]), [1.0 + 1e-12, (2,)]), alike(np.ones(2), np.ones(1))
    (True, False)
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if _is_number(one) and _is_number(other):
        single = any(getattr(value, "dtype", None) == np.float32 for value in (one, other))
        rtol = 1e-5 if single else 1e-9
        return np.shape(one) == np.shape(other) and bool(np.allclose(one, other, rtol=rtol, equal_nan=True))
    return same(one, other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.generic | np.ndarray) and np.asarray(value).dtype.kind in "biuf"


def gives(formula: Function) -> Callable[[Sequence[Wrong]], bool]:
    """Whether every wrong answer is what a formula of the arguments gives: what explains a misconception."""
    return lambda wrong: all(
        not one.failure and alike(one.answer, formula(*copy.deepcopy(one.case.arguments))) for one in wrong
    )
