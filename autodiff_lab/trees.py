"""Nested arguments and results: lists, tuples and dicts of arrays, taken apart into a flat list and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Structure:
    """How a value nests: a leaf, or a container with its parts (and keys, for a dict)."""

    kind: type | None = None  # None is a leaf
    parts: tuple[Structure, ...] = ()
    keys: tuple[Any, ...] = ()

    def __str__(self) -> str:
        """``(*, [*, *])``: a star for each leaf."""
        if self.kind is None:
            return "*"
        if self.kind is dict:
            return "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(self.keys, self.parts, strict=True)) + "}"
        inside = ", ".join(map(str, self.parts))
        return f"[{inside}]" if self.kind is list else f"({inside}{',' if len(self.parts) == 1 else ''})"

    def rebuild(self, leaves: Iterable[Any]) -> Any:
        """Put flat leaves back into this structure.

        >>> leaves, structure = flatten({"w": [1, 2], "b": 3})
        >>> leaves, structure.rebuild(leaf * 10 for leaf in leaves)
        ([1, 2, 3], {'w': [10, 20], 'b': 30})
        """
        return self._take(iter(leaves))

    def paths(self, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """The keys and places on the way to each leaf, in order.

        >>> flatten({"w": [1, 2], "b": 3})[1].paths()
        [('w', 0), ('w', 1), ('b',)]
        """
        if self.kind is None:
            return [before]
        keys = self.keys or range(len(self.parts))
        return [path for key, part in zip(keys, self.parts, strict=True) for path in part.paths((*before, key))]

    def _take(self, leaves: Iterator[Any]) -> Any:
        if self.kind is None:
            return next(leaves)
        parts = [next(leaves) if part.kind is None else part._take(leaves) for part in self.parts]
        if self.kind is dict:
            return dict(zip(self.keys, parts, strict=True))
        if hasattr(self.kind, "_fields"):  # a named tuple
            return self.kind(*parts)
        return self.kind(parts)


LEAF = Structure()
CONTAINERS = (dict, list, tuple)


def flatten(value: Any) -> tuple[list[Any], Structure]:
    """The leaves of nested lists, tuples and dicts, in order, and the structure that they came from."""
    if not isinstance(value, CONTAINERS):
        return [value], LEAF
    leaves: list[Any] = []
    return leaves, _flatten_into(value, leaves)


def _flatten_into(container: Any, leaves: list[Any]) -> Structure:
    is_dict = isinstance(container, dict)
    parts = []
    for part in container.values() if is_dict else container:
        if isinstance(part, CONTAINERS):
            parts.append(_flatten_into(part, leaves))
        else:
            leaves.append(part)
            parts.append(LEAF)
    if is_dict:
        return Structure(dict, tuple(parts), tuple(container))
    return Structure(type(container), tuple(parts))


def map_leaves(function: Callable[..., Any], value: Any, *others: Any) -> Any:
    """Apply ``function`` to each leaf, together with the leaves at the same place of ``others``.

    >>> map_leaves(lambda p, g: p - 0.1 * g, {"w": 1.0}, {"w": 5.0})
    {'w': 0.5}
    """
    leaves, structure = flatten(value)
    columns = [leaves]
    for other in others:
        more, other_structure = flatten(other)
        if other_structure != structure:
            raise ValueError(f"map_leaves: the structures differ: {structure} and {other_structure}")
        columns.append(more)
    return structure.rebuild(function(*row) for row in zip(*columns, strict=True))
