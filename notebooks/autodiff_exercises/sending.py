"""How a student's function travels to another process: by value, with everything of the notebook that it uses."""

from __future__ import annotations

import functools
import io
import sys
from collections.abc import Callable
from typing import Any

import cloudpickle

_Cached = type(functools.cache(len))


def sendable(work: Any) -> bytes:
    """The work as bytes, for ``pickle.loads`` in another process; raises whatever says why it cannot be sent.

    >>> import pickle
    >>> pickle.loads(sendable(lambda x: x + 1))(2)
    3
    """
    file = io.BytesIO()
    _Pickler(file).dump(work)
    return file.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Sends a function under ``functools.cache`` by value too, where cloudpickle itself only sends its name."""

    def reducer_override(self, obj: Any) -> Any:
        """How to make the object again over there."""
        if isinstance(obj, _Cached) and not _can_be_imported(obj):
            return _cached, (obj.__wrapped__, obj.cache_parameters())
        return super().reducer_override(obj)


def _can_be_imported(function: Any) -> bool:
    there: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        there = getattr(there, name, None)
    return function.__module__ != "__main__" and there is function


def _cached(function: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)
