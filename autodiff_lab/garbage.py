"""Python's search for garbage while a tape grows: a full one is put off, since it would look at all of it and find nothing.

Python frees at once what nobody holds; it searches only for objects that hold each other in a circle. It often looks at young
objects, which costs little, and at all objects when a quarter more have come: a dozen times while 1,000,000 nodes are recorded,
60 % of the forward pass. A record holds its inputs and never the other way round, so a tape has no circle to be found.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

from .bindings import NO_ATTRIBUTES

MANY = 10_000  # nodes more than at the last full search: then it was their coming that called for this one


class FullSearches:
    """Puts a full search off, by ``gc.freeze``, when it is the growth of a tape that calls for it.

    What is frozen comes back with the first full search that has another reason: a tape that was freed, or has stopped growing.
    So what else holds itself in a circle is found soon after a forward pass, and each training step has a full search at most.
    Searches of young objects, ``gc.collect()``, ``gc.disable()`` and a heap that the user has frozen stay as they are.

    >>> sum(type(one) is FullSearches for one in gc.callbacks)
    1
    """

    def __init__(self) -> None:
        self._nodes = 0  # alive at the last full search
        self._has_frozen = False

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        """What Python calls before and after each search: ``info`` says how old the objects are that it looks at."""
        if phase != "start" or info["generation"] < 2:
            return
        before, self._nodes = self._nodes, nodes_alive()
        if _is_automatic() and self._nodes - before > MANY and (self._has_frozen or not gc.get_freeze_count()):
            gc.freeze()  # moves the list of all objects aside, however long, and leaves this search an empty one
            self._has_frozen = True
        elif self._has_frozen:
            gc.unfreeze()
            self._has_frozen = False


def nodes_alive() -> int:
    """About how many recorded nodes somebody holds: the record of an op without attributes holds this one dictionary.

    So counting costs the hot path nothing.
    """
    return sys.getrefcount(NO_ATTRIBUTES)


def _is_automatic() -> bool:
    """Whether it is Python that searches, since enough was made, and not somebody who calls ``gc.collect()``."""
    (young, _, old), (enough_young, _, enough_old) = gc.get_count(), gc.get_threshold()
    return young > enough_young and old > enough_old


_full_searches = FullSearches()


def put_off_full_searches() -> None:
    """Ask Python to tell of its searches; asking twice changes nothing, and a Python that cannot freeze searches as before."""
    if hasattr(gc, "freeze") and _full_searches not in gc.callbacks:
        gc.callbacks.append(_full_searches)
