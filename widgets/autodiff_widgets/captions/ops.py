"""What is said of one op with its arrays: what goes in, what it gives and keeps, and the gradients that come back."""

from __future__ import annotations

from typing import Any

from ..values import bytes_text
from .sentences import listed

ASK = "Point at a number to see what it was computed from."
TOO_MANY = "These are too many numbers to follow each of them."
KEPT_INSIDE = "This function is made of several ops. What each of them keeps for backward is not shown here."
ARRIVES = "Backward: the cotangent `g` arrives. It says how much the end result changes with each number of `out`."
KEPT_QUESTION = "Which of these arrays is kept for backward?"


def given_caption(op: str, operands: dict[str, tuple[str, tuple[int, ...]]]) -> str:
    """What an op is given: for each operand how a graph calls it, if any does, and its shape.

    >>> given_caption("exp", {"x": ("`h`", (2, 3))})
    '`exp` is given `x` (`h`), 2 × 3 numbers.'
    """
    what = [
        f"`{name}`{f' ({called})' if called else ''}, {numbers(shape)}" for name, (called, shape) in operands.items()
    ]
    return f"`{op}` is given {listed(what)}."


def result_caption(op: str, shape: tuple[int, ...]) -> str:
    """What an op gives."""
    return f"`{op}` runs and gives `out`, {numbers(shape)}."


def kept_caption(saved: list[str], nbytes: int) -> str:
    """What an op keeps for its gradient rules."""
    if not saved:
        return "No array is kept for backward: the gradient rules read none."
    them = "them" if len(saved) > 1 else "it"
    names = listed([f"`{name}`" for name in saved])
    return f"Kept for backward: {names}, {bytes_text(nbytes)}. The gradient rules read {them}."


def rule_caption(name: str, rule: str, reads: list[str]) -> str:
    """How a gradient is made; without a rule by the rules of all ops inside."""
    if not rule:
        return f"Backward through all its ops gives the gradient of `{name}`."
    return f"The rule `{rule}` makes the gradient of `{name}` from {listed([f'`{one}`' for one in reads])}."


def no_gradient_caption(op: Any) -> str:
    """Why nothing flows back."""
    if op is not None and not op.is_differentiable:
        return f"No gradient flows through `{op.name}`."
    return "No gradient flows here: no input is an array of floating numbers for which there is a gradient rule."


def numbers(shape: tuple[int, ...]) -> str:
    """How many numbers there are.

    >>> numbers((2, 3)), numbers((1,))
    ('2 × 3 numbers', 'one number')
    """
    return "one number" if all(size == 1 for size in shape) else f"{' × '.join(map(str, shape))} numbers"
