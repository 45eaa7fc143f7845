"""An answer as it stands in a submission: made, in the process for checks, from the statements that it needs."""

from __future__ import annotations
import __future__

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .confinement import confine
from .exercise import LESSON_NAMES
from .processes import inside_a_check


class NotMade(Exception):
    """The statements ran, and the function is not there."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some statements of a code cell: its number, its source as plain Python, and which of its statements."""

    cell: int
    source: str
    statements: tuple[int, ...]


@dataclass(slots=True)
class Submitted:
    """Stands for a function of a submission where that is not run, and becomes it in the process for checks."""

    name: str
    pieces: tuple[Piece, ...]
    function: Callable[..., Any] | None = field(default=None, compare=False)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the function; an exercise may hand it over as an argument."""
        return self.made()(*arguments, **options)

    def made(self) -> Callable[..., Any]:
        """The function itself; from the first call on the process is confined.

        Raises:
            NotMade: where the statements do not define a function of this name.
            RuntimeError: in any other process than one for checks.
        """
        if not inside_a_check():
            raise RuntimeError("the code of a submission runs in a process for checks, and nowhere else")
        if self.function is None:
            confine()
            self.function = self._run()
        return self.function

    def _run(self) -> Callable[..., Any]:
        """Run each statement, also after one that stopped: what is not needed after all does not cost the answer."""
        names: dict[str, Any] = {**LESSON_NAMES, "display": print}
        stopped, flags = "", 0
        for cell, statement in self._statements():
            flags |= _flags_of(statement)
            try:
                exec(compile(ast.Module([statement], []), f"<cell {cell}>", "exec", flags, dont_inherit=True), names)
            except BaseException as error:
                stopped = (
                    stopped or f"; line {statement.lineno} of code cell {cell} stopped with {type(error).__name__}"
                )
        function: Callable[..., Any] | None = names.get(self.name)
        if not callable(function):
            raise NotMade(f"{self.name} is not a function when its cell has run{stopped}")
        return function

    def _statements(self) -> Iterator[tuple[int, ast.stmt]]:
        for piece in self.pieces:
            body = ast.parse(piece.source).body
            yield from ((piece.cell, body[number]) for number in piece.statements)


def _flags_of(statement: ast.stmt) -> int:
    """How Python is to be read from here on: ``from __future__ import annotations`` holds for all cells below."""
    if not isinstance(statement, ast.ImportFrom) or statement.module != "__future__":
        return 0
    return sum(
        getattr(__future__, alias.name).compiler_flag for alias in statement.names if hasattr(__future__, alias.name)
    )
