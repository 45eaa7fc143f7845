"""What an instructor is told of an exercise: the wrong answers that its check knows, each with its belief and its message."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from autodiff_exercises.exercise import Exercise


def wrong_answers(exercise: Exercise) -> str:
    """Markdown: each misconception that a wrong solution stands for, its message, and the code of the first such solution."""
    shown: dict[str, Callable[..., Any]] = {}
    for function, name in exercise.wrong:
        shown.setdefault(name, function)
    messages = {one.name: one.message for one in exercise.explanations}
    parts = [f"**{name}.** {messages[name]}\n\n```python\n{_code(function)}\n```" for name, function in shown.items()]
    more = [one.name for one in exercise.misconceptions if one.name not in shown]
    also = f"The check has words for these too: {', '.join(more)}." if more else ""
    return "\n\n".join([f"#### Wrong answers to `{exercise.name}`, and what the check says", *parts, also]).rstrip()


def _code(function: Callable[..., Any]) -> str:
    return textwrap.dedent(inspect.getsource(function)).rstrip()
