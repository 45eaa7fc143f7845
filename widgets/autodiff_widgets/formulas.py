"""How a number was computed, as one line: the formula by names, the same with the actual numbers, and what comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import autodiff_lab as ad

from .formula_parts import Part, Parts
from .values import number_text

LETTERS = "abcd"
LONGEST = 240  # characters of a formula by names; in a longer one, inner parts are written as their numbers
DEEPEST = 12  # parts inside of parts that are tried first
DECISIONS, DECISION = 3, 40  # that are told, and characters of each

TRUTH, ADD, MULTIPLY, NEGATE, POWER, ATOM = range(6)  # how strongly a part holds together

_INFIX = {
    "subtract": (" − ", ADD), "divide": ("/", MULTIPLY), "floor_divide": ("//", MULTIPLY), "greater": (" > ", TRUTH),
    "less": (" < ", TRUTH), "greater_equal": (" ≥ ", TRUTH), "less_equal": (" ≤ ", TRUTH), "equal": (" = ", TRUTH),
    "not_equal": (" ≠ ", TRUTH),
}  # fmt: skip
_OPPOSITE = {"greater": "less_equal", "less": "greater_equal", "equal": "not_equal"}
_OPPOSITE |= {other: one for one, other in _OPPOSITE.items()}
_CALLED = {"maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any", "sqrt": "√", "absolute": "abs",
           "rint": "round"}  # fmt: skip


class Written(NamedTuple):
    """A part of a formula as text, and how strongly it holds together."""

    text: str
    strength: int


Leaf = Callable[[Any], Written]


@dataclass(frozen=True)
class Formula:
    """How a number came to be: by names, with the actual numbers, and what comes out."""

    names: str
    numbers: str
    value: str
    letters: tuple[tuple[str, str, str], ...] = ()  # letter, the part that it stands for, and its number
    conditions: tuple[str, ...] = ()  # what decided where there was a choice

    def said(self, label: str) -> str:
        """The formula in one line, for the number that is called ``label``."""
        if not self.names:
            return f"{label} = {self.value}: the same whatever the inputs are"
        where = " and ".join(" = ".join(one) for one in self.letters)
        because = " and ".join(self.conditions)
        texts = dict.fromkeys([self.names, self.numbers, self.value])
        return (
            " = ".join([label, *texts])
            + (f", where {where}" if where else "")
            + (f", because {because}" if because else "")
        )


def formula(cell: Any, value: Any) -> Formula:
    """The formula of a number, from the way on which it was computed.

    >>> trace = ad.trace_cells(ad.ops.matmul, [np.array([[0.5, 1.0]]), np.array([[2.0], [0.25]])])
    >>> formula(trace.way("out", (0, 0)), trace.result[0, 0]).said("out[0, 0]")
    'out[0, 0] = x[0, 0]·y[0, 0] + x[0, 1]·y[1, 0] = 0.5·2 + 1·0.25 = 1.25'
    """
    if not isinstance(cell, ad.Cell):
        return Formula("", "", number(value).text)
    writer = _Writer(Parts(cell))
    names, numbers, text = writer.by_names(), writer.by_numbers(), number(value).text
    if np.asarray(value).dtype == bool:
        text = _truth(value)
    elif not writer.parts.whole.inside and numbers != text:  # only the dtype is another: 1.5 becomes 1
        names, numbers = (f"{np.asarray(value).dtype}({one})" for one in (names, numbers))
    return Formula(
        names,
        numbers,
        text,
        tuple(writer.letters_explained()),
        tuple(_decisions(writer.parts.conditions)),
    )


def cell_name(array: str, index: Sequence[int]) -> str:
    """What a cell is called.

    >>> cell_name("x", (0, 1)), cell_name("loss", ())
    ('x[0, 1]', 'loss')
    """
    return f"{array}[{', '.join(map(str, index))}]" if len(index) else array


def number(value: Any) -> Written:
    """A number in short, with a true minus sign; what is true or false as 1 or 0."""
    text = number_text(value if isinstance(value, (float, np.floating)) else np.asarray(value)[()], 4)
    text = {"True": "1", "False": "0"}.get(text, text).replace("-", "−")
    return Written(text, NEGATE if text.startswith("−") else ATOM)


def _named(cell: Any) -> Written:
    return Written(cell_name(cell.array, cell.index), ATOM)


def _valued(cell: Any) -> Written:
    return number(cell.value)


class _Writer:
    """Writes one formula. What is long and occurs again gets a letter, what lies too deep is written as its number."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.deepest = parts, DEEPEST
        self.explained = parts.worth_a_letter(len(LETTERS))
        self.letters = dict(zip(map(id, self.explained), LETTERS, strict=False))
        while self.deepest > 1 and len(self.by_names()) > LONGEST:
            self.deepest -= 1

    def by_names(self) -> str:
        """``x[0]·w[0]``."""
        return self._inside(self.parts.whole, _named, 0).text

    def by_numbers(self) -> str:
        """``2·3``."""
        return self._inside(self.parts.whole, _valued, 0).text

    def letters_explained(self) -> list[tuple[str, str, str]]:
        """``("a", "max(x[0], x[1])", "3")``."""
        return [
            (self.letters[id(part)], self._inside(part, _named, 0).text, number(part.value).text)
            for part in self.explained
        ]

    def _written(self, part: Part, leaf: Leaf, depth: int) -> Written:
        if id(part) in self.letters:
            return Written(self.letters[id(part)], ATOM) if leaf is _named else number(part.value)
        return self._inside(part, leaf, depth)

    def _inside(self, part: Part, leaf: Leaf, depth: int) -> Written:
        if isinstance(part.cell, ad.Cell) and not part.cell.name:
            return leaf(part.cell)
        if not part.inside or depth > self.deepest:
            return number(part.value)
        texts = [self._written(one, leaf, depth + 1) for one in part.inside]
        if part.left_out:
            texts.insert(-1, Written(f"… {part.left_out} more …", ATOM))
        if part.name in ("add", "multiply"):
            return _joined(texts, *((" + ", ADD) if part.name == "add" else ("·", MULTIPLY)))
        return _operation(part.cell, texts)


def _joined(parts: Sequence[Written], sign: str, strength: int) -> Written:
    """A sum or a product."""
    if len(parts) == 1:
        return parts[0]
    text = _held(parts[0], strength)
    for part in parts[1:]:
        is_less = strength == ADD <= part.strength and part.text.startswith("−")
        text += f" − {part.text[1:]}" if is_less else sign + _held(part, strength, behind=True)
    return Written(text, strength)


def _operation(cell: Any, parts: Sequence[Written]) -> Written:
    """A function that is neither a sum nor a product."""
    if cell.name in _INFIX and len(parts) == 2:
        sign, strength = _INFIX[cell.name]
        return Written(f"{_held(parts[0], strength)}{sign}{_held(parts[1], strength + 1, behind=True)}", strength)
    if cell.name == "negative":
        return Written(f"−{_held(parts[0], MULTIPLY, behind=True)}", NEGATE)
    if cell.name == "reciprocal":
        return Written(f"1/{_held(parts[0], NEGATE, behind=True)}", MULTIPLY)
    if cell.name in ("square", "power"):
        power = "²" if cell.name == "square" else f"^{_held(parts[1], ATOM)}"
        return Written(f"{_held(parts[0], ATOM)}{power}", POWER)
    is_whole = not getattr(cell.function, "is_elementwise", True)  # an op as a whole: one of its numbers
    place = cell_name("", cell.function.index) if is_whole else ""
    return Written(f"{_CALLED.get(cell.name, cell.name)}({', '.join(part.text for part in parts)}){place}", ATOM)


def _held(part: Written, strength: int, behind: bool = False) -> str:
    """A part, in brackets where it would fall apart beside an operator of this strength, or begins with a minus behind one.

    Square ones are around what is true or false: 1 or 0.
    """
    if part.strength >= strength and not (behind and part.text.startswith("−")):
        return part.text
    return f"({part.text})" if part.strength != TRUTH else f"[{part.text}]"


def _decisions(conditions: Sequence[Any]) -> list[str]:
    """What decided where there was a choice: ``x[0] > 0``."""
    texts = [_true(one) for one in conditions[: 2 * DECISIONS]]
    return [text for text in dict.fromkeys(texts) if len(text) <= DECISION][:DECISIONS]


def _true(condition: Any) -> str:
    """A condition, turned round where it does not hold."""
    text = _Writer(Parts(condition)).by_names()
    sign, opposite = _INFIX.get(condition.name), _INFIX.get(_OPPOSITE.get(condition.name, ""))
    if not sign or not opposite:
        return f"{text} is {_truth(condition.value)}"
    return text if condition.value else text.replace(sign[0], opposite[0], 1)


def _truth(value: Any) -> str:
    return str(bool(value)).lower()
