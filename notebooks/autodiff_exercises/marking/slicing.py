"""Which statements of a notebook an answer needs: its own cell, and what that uses of the cells above, directly or not.

A check, a picture, a loop that never ends in another cell, and a library that was patched are not needed, so they are not run.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from ..exercise import LESSON_NAMES
from ..outcomes import Verdict
from ..submitted import Piece, Submitted
from .notebooks import Cell

# Who uses these may use any name: then everything above is needed.
ANY_NAME = {"eval", "exec", "globals", "locals", "vars", "get_ipython"}
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)  # what Python says of source that it cannot compile


class NoAnswer(Exception):
    """A submission without the function, or with one that cannot be read."""

    def __init__(self, verdict: Verdict, why: str) -> None:
        self.verdict: Verdict = verdict
        super().__init__(why)


@dataclass(frozen=True)
class Statement:
    """One statement of a cell, and the names of the notebook that it binds, changes and uses."""

    cell: Cell
    number: int
    tree: ast.stmt

    @cached_property
    def _table(self) -> symtable.SymbolTable:
        return symtable.symtable(ast.unparse(self.tree), "<cell>", "exec")

    @cached_property
    def binds(self) -> set[str]:
        """Names that have a new value afterwards."""
        return {one.get_name() for one in self._table.get_symbols() if one.is_assigned() or one.is_imported()}

    @cached_property
    def uses(self) -> set[str]:
        """Names of the notebook that are read, also when its functions are called later."""
        return {one.get_name() for one in self._table.get_symbols() if one.is_referenced()} | set(
            _globals_of(self._table.get_children())
        )

    @cached_property
    def changes(self) -> set[str]:
        """Names whose values change: ``x.y = …``, ``x[0] = …``, ``x.append(…)``."""
        if isinstance(self.tree, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
            return set()
        return {name for node in ast.walk(self.tree) for name in _changed_by(node)}

    @property
    def concerns_all(self) -> bool:
        """Whether every statement below may depend on it: it imports a star, or how Python is to be read."""
        tree = self.tree
        return isinstance(tree, ast.ImportFrom) and (tree.module == "__future__" or tree.names[0].name == "*")

    @property
    def imports(self) -> bool:
        """Whether it binds modules, or what stands in them."""
        return isinstance(self.tree, ast.Import | ast.ImportFrom)


def _globals_of(tables: Iterable[symtable.SymbolTable]) -> Iterator[str]:
    for table in tables:
        yield from (one.get_name() for one in table.get_symbols() if one.is_global())
        yield from _globals_of(table.get_children())


def _changed_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        node = node.value.func
    elif not (isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del)):
        return
    inside = False
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node, inside = node.func if isinstance(node, ast.Call) else node.value, True
    if inside and isinstance(node, ast.Name):
        yield node.id


def answer_of(cells: Sequence[Cell], name: str) -> Submitted:
    """The function of this name as the cells define it.

    Its own cell is the last that nbgrader calls so and that defines it, else the last that defines it at all.

    Raises:
        NoAnswer: where there is none, with what that means.

    >>> cells = [Cell(1, "two = 2"), Cell(2, "forever()"), Cell(3, "def double(x):\\n    return two * x")]
    >>> [piece.cell for piece in answer_of(cells, "double").pieces]
    [1, 3]
    """
    own = _own_cell(cells, name)
    pool = [one for cell in cells if cell.number <= own.number for one in _statements(cell)]
    needed = _needed(pool, name)
    numbers = {cell.number: tuple(one.number for one in needed if one.cell is cell) for cell in cells}
    pieces = (Piece(cell.number, cell.source, numbers[cell.number]) for cell in cells if numbers[cell.number])
    return Submitted(name, tuple(pieces))


@cache
def _statements(cell: Cell) -> list[Statement]:
    """The statements of a cell; none where it cannot be read."""
    try:
        found = [Statement(cell, number, tree) for number, tree in enumerate(cell.statements())]
        for one in found:
            _read = one.binds, one.uses, one.changes
        return found
    except UNREADABLE:
        return []


def _own_cell(cells: Sequence[Cell], name: str) -> Cell:
    called_so = [cell for cell in cells if cell.grade_id == name]
    for candidates in (called_so, cells):
        for cell in reversed(candidates):
            if any(name in one.binds for one in _statements(cell)):
                return cell
    raise _no_answer(called_so or [cell for cell in cells if f"def {name}(" in cell.source], name)


def _no_answer(cells: Sequence[Cell], name: str) -> NoAnswer:
    """What it means that none of the cells in which the answer should stand defines it."""
    if not cells:
        return NoAnswer("not attempted", f"no cell defines {name}")
    cell = cells[-1]
    try:
        if not cell.statements():
            return NoAnswer("not attempted", f"code cell {cell.number}, where {name} should stand, is empty")
        why = f"does not define {name}" if _statements(cell) else "is too deeply nested to be read"
    except SyntaxError as error:
        why = f"is not Python: {error.msg}, in its line {error.lineno}"
    except UNREADABLE as error:
        why = f"cannot be read by Python ({type(error).__name__})"
    return NoAnswer("could not be checked", f"code cell {cell.number} {why}")


def _needed(pool: Sequence[Statement], name: str) -> list[Statement]:
    """The statements that the name needs, in their order."""
    modules = {bound for one in pool if one.imports for bound in one.binds} | set(LESSON_NAMES)
    names, chosen = {name}, set[int]()
    while True:
        new = {
            place
            for place, one in enumerate(pool)
            if one.concerns_all or one.binds & names or (one.changes - modules) & names
        } - chosen
        if not new:
            return [pool[place] for place in sorted(chosen)]
        chosen |= new
        names = names.union(*(pool[place].uses for place in new))
        if names & ANY_NAME:
            return list(pool)
