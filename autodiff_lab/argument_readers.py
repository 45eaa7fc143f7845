"""A generated function that tells at once whether arguments are of the kind of the last call, and gathers their arrays.

For 14 arrays it takes 1.5 µs, where walking through nested arguments takes 6: as much as twenty NumPy calls of a small plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Reader = Callable[[tuple[Any, ...]], "list[Any] | None"]


def reader_of(arguments: tuple[Any, ...]) -> Reader | None:
    """A function that gives the arrays of arguments like these, in order, and None for others.

    None where there is something among them that takes a closer look, such as a Tensor.

    >>> read = reader_of(([np.zeros(2)], 3))
    >>> read(([np.ones(2)], 3)), read(([np.ones(2)], 4)), read(([np.ones(3)], 3))
    ([array([1., 1.])], None, None)
    """
    writer = _Writer()
    if not writer.look_at(arguments, "arguments"):
        return None
    body = [*writer.lines, f"return [{', '.join(writer.leaves)}]"]
    text = "\n    ".join(["def read(arguments):", *body])
    exec(compile(text, "<argument reader>", "exec"), writer.names)
    found: Reader = writer.names["read"]
    return found


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.leaves: list[str] = []
        self.names: dict[str, Any] = {"ndarray": np.ndarray}
        self._count = 0

    def look_at(self, value: Any, name: str) -> bool:
        """Write what has to be true of a value; False where it takes a closer look."""
        kind = type(value)
        if kind is np.ndarray:
            shape, dtype = self._named(value.shape), self._named(value.dtype)
            self._unless(f"type({name}) is ndarray and {name}.shape == {shape} and {name}.dtype is {dtype}")
            self.leaves.append(name)
            return True
        if kind in (tuple, list):
            self._unless(f"type({name}) is {kind.__name__} and len({name}) == {len(value)}")
            return self._parts(list(value), name)
        if kind is dict:
            self._unless(f"type({name}) is dict and tuple({name}) == {self._named(tuple(value))}")
            return self._parts(list(value.values()), f"{name}.values()")
        if value is None or kind in (bool, str) or (kind in (int, float) and value):  # 0.0 equals −0.0
            constant = self._named(value)
            self._unless(f"type({name}) is type({constant}) and {name} == {constant}")
            return True
        return False

    def _parts(self, parts: Sequence[Any], whole: str) -> bool:
        names = [self._named(None) for _ in parts]
        if names:
            self.lines.append(f"{', '.join(names)}, = {whole}")
        return all(map(self.look_at, parts, names))

    def _unless(self, condition: str) -> None:
        self.lines.append(f"if not ({condition}): return None")

    def _named(self, value: Any) -> str:
        self._count += 1
        self.names[f"n{self._count}"] = value
        return f"n{self._count}"
