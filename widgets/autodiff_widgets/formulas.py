"""How a number was computed, as one line: the formula by names, the same with the actual numbers, and what comes out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import autodiff_lab as ad

from .values import number_text

TERMS = 6  # of a sum, or numbers of which the largest is taken, that are written; of more, the first ones and the last
LONG = 3  # numbers in a part that is written again, from which on it gets a letter
LONGEST = 240  # characters of a formula by names
LETTERS = "abcd"
DECISIONS, DECISION = 3, 40  # that are told, and characters of each
DEEPEST = 12  # parts inside of parts; what lies deeper is written as its number

ADD, MULTIPLY, NEGATE, POWER, ATOM = range(1, 6)  # how strongly a part holds together

_INFIX = {
    "subtract": ("−", ADD), "divide": ("/", MULTIPLY), "floor_divide": ("//", MULTIPLY), "greater": (">", 0), "less": ("<", 0),
    "greater_equal": ("≥", 0), "less_equal": ("≤", 0), "equal": ("=", 0), "not_equal": ("≠", 0), "logical_and": ("and", 0),
    "logical_or": ("or", 0),
}  # fmt: skip
_OPPOSITE = {"greater": "less_equal", "less": "greater_equal", "equal": "not_equal"}
_OPPOSITE |= {other: one for one, other in _OPPOSITE.items()}
_CALLED = {
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
    "sqrt": "√",
    "absolute": "abs",
}
_UNSEEN = ("astype", "positive", "conjugate")


class Written(NamedTuple):
    """A part of a formula, and how strongly it holds together."""

    text: str
    strength: int


Leaf = Callable[[Any], Written]


def formula(label: str, cell: Any, value: Any) -> str:
    """``out[0] = x[0]·w[0] = 2·3 = 6``: how a number came to be.

    >>> trace = ad.trace_cells(ad.ops.matmul, [np.array([[0.5, 1.0]]), np.array([[2.0], [0.25]])])
    >>> formula("out[0, 0]", trace.way("out", (0, 0)), trace.result[0, 0])
    'out[0, 0] = x[0, 0]·y[0, 0] + x[0, 1]·y[1, 0] = 0.5·2 + 1·0.25 = 1.25'
    """
    shown = _number(value).text
    if not isinstance(cell, ad.Cell):
        return f"{label} = {shown}: the same whatever the inputs are"
    parts = _Parts(cell)
    names, numbers = parts.written(cell, _named), parts.written(cell, _valued)
    texts = dict.fromkeys([names.text, numbers.text, shown])
    return " = ".join([label, *texts]) + parts.explained() + _decisions(cell)


def cell_name(array: str, index: Sequence[int]) -> str:
    """What a cell is called.

    >>> cell_name("x", (0, 1)), cell_name("loss", ())
    ('x[0, 1]', 'loss')
    """
    return f"{array}[{', '.join(map(str, index))}]" if len(index) else array


def _named(leaf: Any) -> Written:
    return Written(cell_name(leaf.array, leaf.index), ATOM)


def _valued(leaf: Any) -> Written:
    return _number(leaf.value)


def _number(value: Any) -> Written:
    text = number_text(value if isinstance(value, (float, np.floating)) else np.asarray(value)[()], 4)
    text = {"True": "1", "False": "0"}.get(text, text)
    return Written(text.replace("-", "−"), NEGATE if text.startswith("-") else ATOM)


class _Parts:
    """How the parts of one formula are written: what is long and occurs again gets a letter, what lies too deep its number."""

    def __init__(self, cell: Any) -> None:
        self.cells = _worth_a_letter(cell)
        self.letters = dict(zip(map(id, self.cells), LETTERS, strict=False))
        self.deepest = DEEPEST
        while self.deepest > 1 and len(self.written(cell, _named).text) > LONGEST:
            self.deepest -= 1

    def explained(self) -> str:
        """`` where a = max(x[0], x[1]) = 3``."""
        if not self.cells:
            return ""
        parts = [
            f"{self.letters[id(one)]} = {self._inside(one, _named, 0).text} = {_number(one.value).text}"
            for one in self.cells
        ]
        return f", where {' and '.join(parts)}"

    def written(self, cell: Any, leaf: Leaf, depth: int = 0) -> Written:
        """A cell, written with names or with numbers."""
        if not isinstance(cell, ad.Cell):
            return _number(cell)
        if id(cell) in self.letters:
            return Written(self.letters[id(cell)], ATOM) if leaf is _named else _number(cell.value)
        return self._inside(cell, leaf, depth)

    def _inside(self, cell: Any, leaf: Leaf, depth: int) -> Written:
        if not cell.name:
            return leaf(cell)
        if depth > self.deepest:
            return _number(cell.value)
        if cell.name == "select" or cell.name in _UNSEEN:
            return self.written(cell.taken[-1], leaf, depth)
        if cell.name in ("add", "multiply"):
            sign, strength = (" + ", ADD) if cell.name == "add" else ("·", MULTIPLY)
            return _joined(self._parts(_flat(cell, cell.name), leaf, depth), sign, strength)
        return _operation(cell, self._parts(cell.parents, leaf, depth))

    def _parts(self, cells: Sequence[Any], leaf: Leaf, depth: int) -> list[Written]:
        """All parts, or of many the first ones, how many are left out, and the last one."""
        if len(cells) <= TERMS:
            return [self.written(one, leaf, depth + 1) for one in cells]
        first = [self.written(one, leaf, depth + 1) for one in cells[: TERMS - 2]]
        left_out = Written(f"… {len(cells) - TERMS + 1} more …", ATOM)
        return [*first, left_out, self.written(cells[-1], leaf, depth + 1)]


def _operation(cell: Any, parts: list[Written]) -> Written:
    """A function that is neither a sum nor a product."""
    if cell.name in _INFIX and len(parts) == 2 and not cell.is_reduction:
        sign, strength = _INFIX[cell.name]
        gap = "" if strength == MULTIPLY else " "
        return Written(f"{_held(parts[0], strength)}{gap}{sign}{gap}{_held(parts[1], strength + 1, True)}", strength)
    if cell.name == "negative":
        return Written(f"−{_held(parts[0], POWER)}", NEGATE)
    if cell.name == "reciprocal":
        return Written(f"1/{_held(parts[0], NEGATE)}", MULTIPLY)
    if cell.name == "square":
        return Written(f"{_held(parts[0], ATOM)}²", POWER)
    if cell.name == "power":
        return Written(f"{_held(parts[0], ATOM)}^{_held(parts[1], ATOM)}", POWER)
    index = getattr(cell.function, "index", ())
    place = cell_name("", index) if not getattr(cell.function, "is_elementwise", True) and index else ""
    return Written(f"{_CALLED.get(cell.name, cell.name)}({', '.join(part.text for part in parts)}){place}", ATOM)


def _joined(parts: Sequence[Written], sign: str, strength: int) -> Written:
    """A sum or a product."""
    text = _held(parts[0], strength)
    for part in parts[1:]:
        is_less = strength == ADD <= part.strength and part.text.startswith("−")
        text += f" − {part.text[1:]}" if is_less else sign + _held(part, strength, behind=True)
    return Written(text, strength if len(parts) > 1 else parts[0].strength)


def _held(part: Written, strength: int, behind: bool = False) -> str:
    """A part, in brackets where it would fall apart beside an operator of this strength, or begins with a minus behind one.

    Square ones are around what is true or false: 1 or 0.
    """
    if part.strength >= strength and not (behind and part.text.startswith("−")):
        return part.text
    return f"({part.text})" if part.strength else f"[{part.text}]"


def _flat(cell: Any, name: str) -> list[Any]:
    """The terms of a sum of sums, or the factors of a product of products, from left to right."""
    found: list[Any] = []
    stack = [cell]
    while stack:
        one = stack.pop()
        if isinstance(one, ad.Cell) and one.name == name:
            stack += reversed(one.parents)
        else:
            found.append(one)
    neutral = 0 if name == "add" else 1
    return [one for one in found if isinstance(one, ad.Cell) or one != neutral] or [neutral]


def _worth_a_letter(cell: Any) -> list[Any]:
    """The parts that occur more than once and would be longest to write again, each after those inside it."""
    order, uses = _parts_of(cell)
    chosen: list[int] = []
    while len(chosen) < len(LETTERS):
        sizes: dict[int, int] = {}
        for one in order:
            sizes[id(one)] = sum(1 if id(p) in chosen else sizes.get(id(p), 1) for p in one.parents[:TERMS])
        saved = {id(one): (uses[id(one)] - 1) * sizes[id(one)] for one in order if sizes[id(one)] >= LONG}
        best = max((key for key in saved if key not in chosen), key=lambda key: saved[key], default=None)
        if best is None or not saved[best]:
            break
        chosen.append(best)
    return [one for one in order if id(one) in chosen]


def _parts_of(cell: Any) -> tuple[list[Any], Counter[int]]:
    """The parts of a formula, each after those inside it, and how often each is used."""
    uses: Counter[int] = Counter()
    order: list[Any] = []
    stack = [(cell, False)]
    while stack:
        one, is_done = stack.pop()
        if is_done:
            order.append(one)
        elif isinstance(one, ad.Cell) and one.name:
            while one.name in _UNSEEN or one.name == "select":
                one = one.taken[-1]
                if not isinstance(one, ad.Cell):
                    break
            else:
                uses[id(one)] += 1
                if uses[id(one)] == 1 and one.name:
                    stack.append((one, True))
                    stack += [(parent, False) for parent in reversed(one.parents)]
    return order, uses


def _decisions(cell: Any) -> str:
    """What decided where there was a choice: ``, because x[0] > 0``."""
    conditions: dict[int, str] = {}
    stack = [cell]
    while stack and len(conditions) < DECISIONS:
        one = stack.pop()
        if isinstance(one, ad.Cell):
            if one.name == "select" and isinstance(one.taken[0], ad.Cell):
                conditions[id(one.taken[0])] = _true(one.taken[0])
            stack += one.taken[::-1]
    found = [text for text in dict.fromkeys(conditions.values()) if len(text) <= DECISION]
    return f", because {' and '.join(found)}" if found else ""


def _true(condition: Any) -> str:
    """A condition, turned round where it does not hold."""
    parts = _Parts(condition)
    if condition.name in _OPPOSITE and not condition.value:
        sign = _INFIX[_OPPOSITE[condition.name]][0]
        return f" {sign} ".join(parts.written(one, _named).text for one in condition.parents)
    text = parts.written(condition, _named).text
    return text if condition.value else f"{text} is not so"
