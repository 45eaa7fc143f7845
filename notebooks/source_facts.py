"""What a lesson's source tells of itself: its title and question, the minutes of its sections, and what helps before it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import jupytext
from autodiff_exercises.syllabus import Lesson
from nbformat import NotebookNode

ROW = re.compile(r"^\| (.+?) \| (\d+) \|$", re.M)


def cells_of(source: Path) -> tuple[str, list[NotebookNode]]:
    """The docstring of a source, and its cells."""
    docstring, *cells = jupytext.read(source, fmt="py:percent").cells
    if not docstring.source.startswith('"""'):
        raise ValueError(f"{source.name} must begin with a docstring, before its first cell")
    return docstring.source, cells


def is_for_instructors(cell: NotebookNode) -> bool:
    """Whether only the instructor's edition shows a cell: one with ``tags=["instructor"]``."""
    return "instructor" in cell.metadata.get("tags", ())


@cache
def facts(source: Path) -> Lesson:
    """A lesson as its source tells of it: docstring, first cell and table of minutes."""
    docstring, cells = cells_of(source)
    opening = cells[0].source
    question = _after(r"\*\*The question:\*\* ", opening)
    return Lesson(
        slug=source.stem,
        title=opening.splitlines()[0].removeprefix("# ").replace("`", ""),
        question=question[:1].upper() + question[1:],
        minutes=sum(minutes_of(source).values()) or None,
        after=tuple(re.findall(r"\w+", _after("^After: ", docstring))),
        machine=_after("^Machine: ", docstring).rstrip('."'),
    )


def minutes_of(source: Path) -> dict[str, int]:
    """The minutes of each section, from the tables in the cells for instructors."""
    told = "\n\n".join(cell.source for cell in cells_of(source)[1] if is_for_instructors(cell))
    return {section: int(minutes) for section, minutes in ROW.findall(told)}


def sections_of(source: Path) -> list[str]:
    """The headings of a lesson's sections, without those that end it."""
    text = "\n".join(cell.source for cell in cells_of(source)[1] if cell.cell_type == "markdown")
    return [one for one in re.findall(r"^## (.+)$", text, re.M) if one not in ("Summary", "Exercises")]


def _after(begins: str, text: str) -> str:
    """What follows such a beginning, up to the end of its paragraph or line that begins anew, in one line."""
    found = re.search(rf"{begins}(.+?)(?=\n\n|\n\w+: |\Z|\n\"\"\")", text, re.M | re.S)
    return " ".join(found[1].split()) if found else ""
