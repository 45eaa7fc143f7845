"""Makes the notebooks from the lessons' sources: ``python notebooks/build.py``.

A source is a Python file in the percent format: a docstring for whoever reads it, then the cells. An empty cell
``# %% exercise="NAME"`` stands for an exercise: its statement, answer and check. Each source gives two editions.
The students', with a starter as the answer, goes to ``notebooks/lessons``, which is all that JupyterLab shows; the
instructor's, with the solution between nbgrader's marks, goes to ``build/instructor``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import jupytext
import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "source"
sys.path[:0] = [str(HERE), str(HERE.parent)]

from autodiff_exercises.exercise import Exercise  # noqa: E402
from autodiff_exercises.registry import exercise_named  # noqa: E402

Edition = Literal["student", "instructor"]
FOLDERS: dict[Edition, Path] = {"student": HERE / "lessons", "instructor": HERE.parent / "build" / "instructor"}
MARKING_SEED = 1  # whoever marks a class may choose another one in the instructor's edition
KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def sources() -> list[Path]:
    """The source of every lesson, in the order in which they are taught."""
    return sorted(SOURCES.glob("[0-9]*_*.py"), key=lambda path: int(path.stem.split("_")[0]))


def built(source: Path, edition: Edition) -> str:
    """One edition of a lesson, as the text of its notebook file; the same source always gives the same text."""
    cells = list(_cells(source, edition))
    for number, cell in enumerate(cells):
        cell["id"] = f"{source.stem.replace('_', '-')}-{number:02d}"
    return str(nbformat.writes(new_notebook(cells=cells, metadata=KERNEL))) + "\n"


def _cells(source: Path, edition: Edition) -> Iterator[NotebookNode]:
    docstring, *cells = jupytext.read(source, fmt="py:percent").cells
    if not docstring.source.startswith('"""'):
        raise ValueError(f"{source.name} must begin with a docstring, before its first cell")
    for cell in cells:
        name = cell.metadata.get("exercise")
        if name:
            yield from _exercise_cells(exercise_named(name), edition)
        else:
            cell.metadata = {}
            yield cell


def _exercise_cells(exercise: Exercise, edition: Edition) -> Iterator[NotebookNode]:
    name = exercise.name
    yield new_markdown_cell(
        f"{exercise.statement}\n\n"
        f'Stuck? `hint("{name}")` gives one hint at a time, `solution("{name}")` shows one of many ways.'
    )
    answer = exercise.starter if edition == "student" else exercise.solved_between_marks
    yield new_code_cell(answer, metadata=_nbgrader(name, solution=True))
    hidden = [
        "### BEGIN HIDDEN TESTS",
        f"assert (found := check({name}, seed={MARKING_SEED})).right, found",
        "### END HIDDEN TESTS",
    ]
    lines = [*(hidden if edition == "instructor" else []), f"check({name})"]
    yield new_code_cell("\n".join(lines), metadata=_nbgrader(f"{name}-check", points=1))


def _nbgrader(grade_id: str, solution: bool = False, points: int | None = None) -> dict[str, Any]:
    """What nbgrader (schema 3) needs to know: which cell a student answers, and which one it marks."""
    graded = {"points": points} if points is not None else {}
    marks = {"grade": bool(graded), "grade_id": grade_id, "locked": bool(graded), "solution": solution, "task": False}
    return {"nbgrader": {**marks, **graded, "schema_version": 3}}


def main() -> None:
    """Write both editions of every lesson."""
    argparse.ArgumentParser(description="Make the students' and the instructor's notebooks.").parse_args()
    for edition, folder in FOLDERS.items():
        folder.mkdir(parents=True, exist_ok=True)
        for source in sources():
            target = folder / f"{source.stem}.ipynb"
            target.write_text(built(source, edition), encoding="utf-8", newline="\n")
            print(target.relative_to(HERE.parent))


if __name__ == "__main__":
    main()
