"""Functions as a student's notebook defines them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autodiff_exercises.exercise import LESSON_NAMES


def defined(source: str, name: str = "topological_order") -> Callable[..., Any]:
    """The function of this name, from source that no module knows."""
    names = dict(LESSON_NAMES)
    exec(compile(source, "<cell>", "exec", dont_inherit=True), names)  # a notebook has no future imports
    function: Callable[..., Any] = names[name]
    return function
