"""What of a number's way is written in its formula: the parts and their parts, which get a letter, and what decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import autodiff_lab as ad

TERMS = 6  # of a sum, or numbers of which the largest is taken, that are written; of more, the first ones and the last
WORTH = 3  # numbers in a part that is written again, from which on it gets a letter
DEEPEST = 60  # parts inside of parts; what lies deeper is written as its number

_UNSEEN = ("astype", "positive", "conjugate")  # functions that leave a number as it is
_NEUTRAL = {"add": 0, "multiply": 1}


@dataclass(eq=False)
class Part:
    """A number in a formula: of an array, a plain one, or a function of other parts."""

    cell: Any  # a Cell, or a plain number
    inside: list[Part] = field(default_factory=list)
    left_out: int = 0  # how many more parts there are before the last one

    @property
    def name(self) -> str:
        """The function; ``""`` where there is none, or none that is written."""
        return self.cell.name if self.inside else ""

    @property
    def value(self) -> Any:
        """The number itself."""
        return self.cell.value if isinstance(self.cell, ad.Cell) else self.cell


class Parts:
    """The parts of one formula, in which what occurs again is the same part; and the conditions that chose among them."""

    def __init__(self, cell: Any) -> None:
        self.conditions: list[Any] = []
        self._known: dict[int, Part] = {}
        self.whole = self._part(cell, 0)

    def _part(self, cell: Any, depth: int) -> Part:
        cell = self._seen(cell)
        if not isinstance(cell, ad.Cell):
            return Part(cell)
        if id(cell) not in self._known:
            self._known[id(cell)] = made = Part(cell)
            cells = _of_several(cell) if cell.name in _NEUTRAL else list(cell.parents)
            made.left_out = max(len(cells) - TERMS + 1, 0) if len(cells) > TERMS else 0
            written = [*cells[: TERMS - 2], cells[-1]] if made.left_out else cells
            made.inside = [self._part(one, depth + 1) for one in written] if depth < DEEPEST else []
        return self._known[id(cell)]

    def _seen(self, cell: Any) -> Any:
        """What is written in place of a cell: the side that a choice took, and a number that only changed its dtype."""
        while isinstance(cell, ad.Cell) and (cell.name == "select" or cell.name in _UNSEEN):
            if cell.name == "select" and isinstance(cell.taken[0], ad.Cell):
                self.conditions.append(cell.taken[0])
            cell = cell.taken[-1]
        return cell

    def worth_a_letter(self, most: int) -> list[Part]:
        """The parts that occur again and would be longest to write again, each after those inside it."""
        order = list(_inner_first(self.whole))
        uses = Counter(id(part) for one in order for part in one.inside)
        chosen: list[int] = []
        while len(chosen) < most:
            sizes: dict[int, int] = {}
            for one in order:
                sizes[id(one)] = sum(1 if id(part) in chosen else sizes[id(part)] for part in one.inside) or 1
            saved = {id(one): (uses[id(one)] - 1) * sizes[id(one)] for one in order if sizes[id(one)] >= WORTH}
            best = max((key for key in saved if key not in chosen), key=lambda key: saved[key], default=None)
            if best is None or saved[best] <= 0:
                break
            chosen.append(best)
        return [one for one in order if id(one) in chosen]


def _of_several(cell: Any) -> list[Any]:
    """The terms of a sum of sums, or the factors of a product of products, without zeros or ones."""
    found: list[Any] = []
    stack = [cell]
    while stack:
        one = stack.pop()
        if isinstance(one, ad.Cell) and one.name == cell.name:
            stack += reversed(one.parents)
        else:
            found.append(one)
    neutral = _NEUTRAL[cell.name]
    return [one for one in found if isinstance(one, ad.Cell) or one != neutral] or [neutral]


def _inner_first(whole: Part) -> Iterator[Part]:
    """Every part once, after those inside it."""
    seen: set[int] = set()
    stack = [(whole, False)]
    while stack:
        part, is_done = stack.pop()
        if is_done:
            yield part
        elif id(part) not in seen:
            seen.add(id(part))
            stack.append((part, True))
            stack += [(one, False) for one in reversed(part.inside)]
