"""Handlers that a notebook hangs on a view: a cell that runs again replaces its own, so that one click stays one action."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from IPython import get_ipython

Handler = Callable[..., Any]


@dataclass(frozen=True)
class Hung:
    """A handler, what it listens to, where in the code it was made, and in which run of a cell it was hung up."""

    handler: Handler
    to: Any
    place: Any
    run: int


class Handlers:
    """The handlers that cells have hung on one view."""

    def __init__(self) -> None:
        self._hung: list[Hung] = []

    def replaced_by(self, handler: Handler, to: Any) -> list[Handler]:
        """What an earlier run of the same code hung up to listen to the same. Within one run nothing is replaced."""
        shell = get_ipython()
        place = place_of(handler)
        if shell is None or place is None:
            return []
        new = Hung(handler, to, place, shell.execution_count)
        old = [hung for hung in self._hung if (hung.place, hung.to) == (place, to) and hung.run != new.run]
        self._hung = [hung for hung in self._hung if hung not in old] + [new]
        return [hung.handler for hung in old]


def place_of(handler: Any) -> Any:
    """What a function has in common with the same one of another run: its name, or a lambda's code; else None.

    >>> place_of(lambda change: change.new) is None, place_of(print)
    (False, None)
    """
    code = getattr(handler, "__code__", None)
    return code if code is None or code.co_name == "<lambda>" else (handler.__module__, handler.__qualname__)
