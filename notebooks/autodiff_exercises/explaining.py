"""What explains wrong attempts, for exercises on numbers: the first check that fails, or a property of all answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .exercise import Wrong

EXACT = 1e-12  # relative: rounding errors are a thousand times smaller, those of differences a thousand times larger

Explains = Callable[[Sequence[Wrong]], bool]


def begins_with(*checks: str) -> Explains:
    """Whether the first thing that is wrong is one of these: each check adds one thing to those before it."""
    return lambda wrong: wrong[0].case.check in checks


def every(has: Callable[..., bool]) -> Explains:
    """Whether all wrong attempts gave an answer, and all answers have a property."""
    return lambda wrong: all(not one.failure and has(one.answer, *one.case.arguments) for one in wrong)


def called_too_often(wrong: Sequence[Wrong]) -> bool:
    """Whether a function that may be called only so often was called once more."""
    return any(one.failure == "TooManyCalls" for one in wrong)


def is_number(answer: Any) -> bool:
    """Whether the answer is one plain number, also as NumPy's or in an array without axes."""
    return isinstance(answer, int | float | np.number) or (isinstance(answer, np.ndarray) and answer.shape == ())
