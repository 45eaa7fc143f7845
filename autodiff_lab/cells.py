"""Cell: one number that knows how it was computed, back to the numbers of the operands."""

from __future__ import annotations

from typing import Any

import numpy as np

Index = tuple[int, ...]


class Cell:
    """One number: ``function`` of ``parents``, which are cells and plain numbers; or, without a function, ``array[index]``.

    ``is_reduction``: the function takes two numbers, and is applied along the parents.
    """

    __slots__ = ("_is_listed", "_parents", "_value", "array", "function", "index", "is_reduction")

    def __init__(self, function: Any, parents: Any = (), is_reduction: bool = False, value: Any = None) -> None:
        self.function, self._parents, self.is_reduction, self._value = function, parents, is_reduction, value
        self._is_listed = False
        self.array: str = ""
        self.index: Index = ()

    @classmethod
    def of_array(cls, array: str, index: Index, value: Any) -> Cell:
        """A number that was there before: ``x[0, 1]``."""
        cell = cls(None, value=value)
        cell.array, cell.index = array, index
        return cell

    @property
    def parents(self) -> tuple[Any, ...]:
        """What the function was given. Sums leave out what is 0 by construction: products with the zeros of a padding."""
        if not self._is_listed:
            found = self._parents() if callable(self._parents) else self._parents
            is_sum = self.is_reduction and self.function is np.add
            self._parents = tuple(one for one in found if not _is_nothing(one)) if is_sum else found
            self._is_listed = True
        listed: tuple[Any, ...] = self._parents
        return listed

    @property
    def name(self) -> str:
        """What the function is called: ``add``, ``exp``, ``select``; ``""`` for a number of an array."""
        return "" if self.function is None else str(self.function.__name__)

    @property
    def taken(self) -> tuple[Any, ...]:
        """The parents that made the number: of a choice, the condition and the side that was taken."""
        if self.function is not select:
            return self.parents
        condition, x, y = self.parents
        return (condition, x if value_of(condition) else y)

    @property
    def leaves(self) -> list[Cell]:
        """The numbers of arrays that this one was computed from, each once."""
        found: dict[int, Cell] = {}
        seen: set[int] = set()
        stack: list[Any] = [self]
        while stack:
            one = stack.pop()
            if type(one) is Cell and id(one) not in seen and not _is_nothing(one):
                seen.add(id(one))
                if one.function is None:
                    found[id(one)] = one
                stack += reversed(one.taken)
        return list(found.values())

    @property
    def value(self) -> Any:
        """The number."""
        for cell in _unknown_below(self):
            cell._value = cell._computed()
        return self._value

    def _computed(self) -> Any:
        values = [value_of(parent) for parent in self.parents]
        with np.errstate(all="ignore"):
            if not self.is_reduction:
                return self.function(*values)
            return self.function.reduce(np.array(values)) if values else self.function.identity

    def __bool__(self) -> bool:
        return bool(self.value)

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < value_of(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > value_of(other))

    def __repr__(self) -> str:
        return f"<cell {self.name or self.array + str(list(self.index))}>"


def value_of(number: Any) -> Any:
    """The number of a cell, or a plain number itself."""
    return number.value if type(number) is Cell else number


def _unknown_below(cell: Cell) -> list[Cell]:
    """The cells whose numbers have to be computed first, each after its parents, ``cell`` last; chains may be long."""
    order: list[Cell] = []
    stack = [cell]
    while stack:
        one = stack[-1]
        missing = [p for p in one.parents if type(p) is Cell and p._value is None] if one._value is None else []
        if missing:
            stack += missing
            continue
        stack.pop()
        if one._value is None:
            one._value = one._computed()
            order.append(one)
    return order


def _is_nothing(number: Any) -> bool:
    """Whether a term is 0 whatever the operands are."""
    if type(number) is not Cell:
        return bool(number == 0)
    return number.function is np.multiply and any(type(p) is not Cell and p == 0 for p in number.parents)


# -------------------------------------------------------------------------------------- functions that are no ufuncs


def select(condition: Any, x: Any, y: Any) -> Any:
    """``x if condition else y``: what ``np.where`` does with each number."""
    return x if condition else y


class Cast:
    """A change of dtype: the number stays as far as the dtype allows."""

    __name__ = "astype"

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    def __call__(self, number: Any) -> Any:
        """The number in the dtype."""
        return np.asarray(number).astype(self.dtype)[()]


class Whole:
    """One number of what an op or a rule gave, where the inside of its code is not known."""

    def __init__(self, name: str, index: Index, is_elementwise: bool) -> None:
        self.__name__, self.index, self.is_elementwise = name, index, is_elementwise
