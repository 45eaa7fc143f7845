"""Functions that may be called only so often: what tells that an answer costs too much."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


class TooManyCalls(Exception):
    """A function was called more often than its limit allows."""


@dataclass(slots=True)
class Limited:
    """A function with a number of calls left. Two of them are the same where function and limit are."""

    function: Callable[..., Any]
    calls: int
    used: int = field(default=0, compare=False)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function, unless the limit is reached."""
        self.used += 1
        if self.used > self.calls:
            raise TooManyCalls(f"the limit is {self.calls} {'call' if self.calls == 1 else 'calls'}")
        return self.function(*arguments)


def limited(function: Callable[..., Any], calls: int) -> Limited:
    """The function, which refuses to be called more than ``calls`` times.

    Raises:
        TooManyCalls: when it is called once more.

    >>> double = limited(lambda x: 2 * x, calls=1)
    >>> double(3)
    6
    >>> double(3)
    Traceback (most recent call last):
    autodiff_exercises.limits.TooManyCalls: the limit is 1 call
    """
    return Limited(function, calls)
