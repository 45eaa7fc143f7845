"""OpView: one op with its arrays number by number, forward and backward, and what each number was computed from."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

import autodiff_lab as ad

from .op_frames import op_scene
from .subjects import described, plain_op
from .view import View

MOST_FOLLOWED = 200_000  # numbers in the operands; of more the arrays are shown, but no number is followed

_numbers = count(1)


class OpView(View):
    """One op as cells: its inputs, its result, what it keeps, the cotangent that arrives, and each input's gradient.

    Point at a number to see the numbers that it was computed from, and the formula with them. Both come from running the op's
    kernel and its gradient rules on numbers that remember how they were made. Large arrays show a window.

    Args:
        subject: an op, its name, or a function made of ops, such as ``ops.conv2d``.
        inputs: arrays, Tensors or numbers.
        cotangent: what arrives at the result, shaped like it; ones by default.
        attributes: the op's attributes, such as ``axis=0``. What is none of them is a trait of the widget.

    Raises:
        TypeError, ValueError: there is no such op, or it does not take these inputs; says what was seen.

    >>> view = OpView("matmul", [[0.5, 1.0]], [[2.0], [0.25]])
    >>> [note for key, note in view.scene.notes.items() if "out" in key]
    ['out[0, 0] = x[0, 0]·y[0, 0] + x[0, 1]·y[1, 0] = 0.5·2 + 1·0.25 = 1.25']
    """

    def __init__(self, subject: Any, *inputs: Any, cotangent: Any = None, **attributes: Any) -> None:
        callee, known = _callee(subject)
        traits = {
            name: attributes.pop(name) for name in set(attributes) - set(known) if name in self.class_trait_names()
        }
        if not inputs:
            raise TypeError(f"OpView: pass the inputs of {_name(callee)} too: OpView({_name(callee)!r}, …)")
        self.trace = traced(callee, _operands(callee, inputs), attributes, cotangent)
        super().__init__(op_scene(self.trace, f"op{next(_numbers)}"), **traits)


def traced(callee: Any, operands: Sequence[Any], attributes: Any = None, cotangent: Any = None) -> ad.CellTrace:
    """An op call with its numbers' ways, unless there are too many numbers."""
    size = sum(int(np.size(operand)) for operand in operands if not isinstance(operand, ad.Tensor))
    size += sum(operand.size for operand in operands if isinstance(operand, ad.Tensor))
    return ad.trace_cells(callee, operands, attributes, cotangent, follow=size <= MOST_FOLLOWED)


def _callee(subject: Any) -> tuple[Any, Sequence[str]]:
    """The op, or the function made of ops, and the names of its attributes."""
    if isinstance(subject, str) and subject not in ad.registry and callable(getattr(ad.ops, subject, None)):
        subject = getattr(ad.ops, subject)
    if callable(subject) and not hasattr(subject, "op") and not hasattr(subject, "definition"):
        return subject, _parameters(subject)
    op = plain_op(subject, "OpView")
    return op, tuple(op.attributes)


def _parameters(f: Callable[..., Any]) -> Sequence[str]:
    try:
        return tuple(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        return ()


def _operands(callee: Any, inputs: Sequence[Any]) -> list[Any]:
    """The operands: those of an op that takes a list of arrays may be given as one list."""
    if getattr(callee, "is_variadic", False) and len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
        inputs = inputs[0]
    for one in inputs:
        if not isinstance(one, (int, float, list, tuple)) and not hasattr(one, "shape"):
            raise TypeError(
                f"OpView: an input of {_name(callee)} is {described(one)}; inputs are arrays, Tensors or numbers"
            )
    if not any(
        hasattr(one, "shape") for one in inputs
    ):  # all numbers: else one is a constant in what is done to the others
        return [np.asarray(one) for one in inputs]
    return list(inputs)


def _name(callee: Any) -> str:
    return str(getattr(callee, "name", None) or getattr(callee, "__name__", type(callee).__name__))
