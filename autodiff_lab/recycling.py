"""Memory for the results that a plan gives away, used again where it is certain that nobody holds them any more.

A large new array costs a page fault for every 4 KB: 0.5 ms for the 4 MB of a layer's new weights.
"""

from __future__ import annotations

import sys
from typing import Any
from weakref import getweakrefcount

import numpy as np

from .numpy_calls import Fact

WORTH_IT = 1 << 16  # bytes: smaller arrays come from memory that the process has
_KEPT = 3  # of each result: what came before, and before that, may still be in use


class Recycled:
    """Gives an array for a result: one that it gave earlier and that only it still holds, or a new one.

    Whoever holds a view, a Tensor or a buffer of an array holds the array too, and Python counts all of them.

    >>> recycled = Recycled(Fact((2,), np.dtype("float64")))
    >>> first = recycled()
    >>> recycled() is first  # somebody has it: ``first`` does
    False
    """

    def __init__(self, fact: Fact) -> None:
        self.fact = fact
        self._given: list[Any] = []

    def __call__(self) -> Any:
        """An array in C order whose numbers nobody needs."""
        for place in range(len(self._given)):
            if _getrefcount(self._given[place]) == _ALONE and self._is_as_new(self._given[place]):
                return self._given[place]
        made = np.empty(self.fact.shape, self.fact.dtype)
        if _ALONE:
            self._given = [*self._given[1 - _KEPT :], made]
        return made

    def _is_as_new(self, array: Any) -> bool:
        """Whether who had an array left it as it was, and will not find it again by a weak reference."""
        flags = array.flags
        is_same = (array.shape, array.dtype) == self.fact and flags.writeable and flags.c_contiguous and flags.owndata
        return is_same and not getweakrefcount(array)


def _count_alone() -> int:
    """How many references Python counts of an array that only a list holds; 0 where it does not count them reliably."""
    is_counted = hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: True)()
    held = [np.empty(1)]
    return sys.getrefcount(held[0]) if is_counted else 0


_getrefcount = getattr(sys, "getrefcount", lambda _: -1)
_ALONE = _count_alone()
