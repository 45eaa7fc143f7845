"""What is read of a submission: its code cells, and which lessons it answers. Nothing of it is run here."""

from __future__ import annotations

import ast
import json
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..registry import EXERCISES

LARGEST = 64 * 2**20  # bytes of a notebook: a lesson with all its pictures has 1.5 million
FORMAT = 4  # the notebook format of all lessons, and of all that JupyterLab writes
WRAPPERS = re.compile(r"\A\s*%%(?:time|timeit|capture|prun)\b[^\n]*")  # their cells are Python all the same


class Unreadable(ValueError):
    """A submission that is not a notebook with code; the message says why."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell: its number among the code cells, from 1, its source as plain Python, and what nbgrader calls it."""

    number: int
    source: str
    grade_id: str = ""

    def statements(self) -> list[ast.stmt]:
        """The statements; raises whatever Python says of a source that is none."""
        return _parsed(self.source)


@cache
def _parsed(source: str) -> list[ast.stmt]:
    return ast.parse(source).body


def cells_of(path: Path) -> list[Cell]:
    """The code cells of a notebook file.

    Raises:
        Unreadable: where the file is none, with the reason.
    """
    cells = _notebook(path).get("cells")
    if not isinstance(cells, list):
        raise Unreadable("it has no list of cells")
    code = [cell for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"]
    return [Cell(number, _python(_source(cell)), _grade_id(cell)) for number, cell in enumerate(code, start=1)]


def _notebook(path: Path) -> dict[str, Any]:
    text = _text(path)
    try:
        content = json.loads(text)
    except RecursionError:
        raise Unreadable("its JSON is nested too deeply") from None
    except ValueError as error:
        raise Unreadable(f"it is not JSON ({error})") from None
    if not isinstance(content, dict):
        raise Unreadable("it is JSON, but not a notebook")
    if content.get("nbformat") != FORMAT:
        found = str(content.get("nbformat"))[:20]
        raise Unreadable(
            f"its notebook format is {found}, not {FORMAT}; open it in JupyterLab, save it, and hand that in"
        )
    return content


def _text(path: Path) -> str:
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable("it is a link, or something else than a plain file")
        if found.st_size > LARGEST:
            raise Unreadable(f"it has {found.st_size / 2**20:.0f} MB; the limit is {LARGEST / 2**20:.0f} MB")
        data = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"it cannot be read ({error.strerror})") from None
    if not data.strip():
        raise Unreadable("the file is empty")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable("it is not text in UTF-8") from None


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    lines = source if isinstance(source, list) else [source]
    return "".join(line for line in lines if isinstance(line, str))


def _grade_id(cell: dict[str, Any]) -> str:
    found: Any = cell
    for key in ("metadata", "nbgrader", "grade_id"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


def _python(source: str) -> str:
    """The source with what only IPython understands as calls; unchanged where it cannot be read at all."""
    plain = WRAPPERS.sub("", source)
    try:
        _parsed(plain)
    except SyntaxError:
        return _without_magics(plain)
    except Exception:
        return source
    return plain


def _without_magics(source: str) -> str:
    from IPython.core.inputtransformer2 import TransformerManager  # takes longer than all the rest of this package

    try:
        return str(TransformerManager().transform_cell(source))  # type: ignore[no-untyped-call]
    except Exception:
        return source


def lessons_of(cells: Sequence[Cell], names: Sequence[str] = ()) -> list[str]:
    """Which lessons the cells answer: by nbgrader's names of the cells, by ``names`` of file and folders, by functions.

    >>> lessons_of([Cell(1, "def topological_order(graph): ...")])
    ['10_computation_graph']
    """
    known = list(dict.fromkeys(exercise.lesson for exercise in EXERCISES.values()))
    marked = {EXERCISES[cell.grade_id].lesson for cell in cells if cell.grade_id in EXERCISES}
    named = {name for name in names if name in known}
    defined = {word for cell in cells for word in re.findall(r"^def (\w+)", cell.source, re.MULTILINE)}
    written = {EXERCISES[word].lesson for word in defined if word in EXERCISES}
    return [lesson for lesson in known if lesson in (marked or named or written)]
