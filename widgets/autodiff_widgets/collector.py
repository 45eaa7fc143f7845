"""Python's search for garbage, left out while a picture is made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """No search for garbage during a block, or a function that this decorates.

    A large picture is many small objects that all stay. Python would look through them, and through all that the notebook has
    imported, again and again: 90 of the 150 ms of the layout of 3,000 nodes. Where blocks of several threads overlap, the
    first that ends turns the search on again.

    >>> with paused():
    ...     gc.isenabled()
    False
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
