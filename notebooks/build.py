"""Makes the notebooks from the lessons' sources: ``python notebooks/build.py``.

A source is a Python file in the percent format: a docstring for whoever reads it, then the cells. An empty cell
``# %% exercise="NAME"`` stands for an exercise: its statement, answer and check; a Markdown cell with
``tags=["instructor"]`` is shown to instructors only. Each source gives two editions. The students', with a starter as the
answer, goes to ``notebooks/lessons``, which is all that JupyterLab shows; the instructor's, with timing, questions, wrong
answers, and the solution between nbgrader's marks, goes to ``build/instructor``. What nbgrader hands out is made from a
third one, "marked": the instructor's without what only instructors read.

The sources also give the list of lessons in ``autodiff_exercises/lessons.json`` and the table in ``TEACHERS.md``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Literal

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "source"
sys.path[:0] = [str(HERE), str(HERE.parent)]

from autodiff_exercises.exercise import Exercise  # noqa: E402
from autodiff_exercises.registry import exercise_named  # noqa: E402
from autodiff_exercises.syllabus import FILE, Lesson, written  # noqa: E402
from course_tables import lesson_table, with_table  # noqa: E402
from source_facts import cells_of, facts, is_for_instructors, minutes_of, sections_of  # noqa: E402, F401
from wrong_answers import wrong_answers  # noqa: E402

INDEX = "00_index"
Edition = Literal["student", "instructor", "marked"]
TEACHERS = HERE / "TEACHERS.md"
FOLDERS: dict[Edition, Path] = {"student": HERE / "lessons", "instructor": HERE.parent / "build" / "instructor"}
MARKING_SEED = 1  # whoever marks a class may choose another one in the instructor's edition
KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def sources() -> list[Path]:
    """The source of every notebook: the index, then the lessons in the order in which they are taught."""
    return sorted(SOURCES.glob("[0-9]*_*.py"), key=lambda path: (int(path.stem.split("_")[0]), path.stem))


def lesson_sources() -> list[Path]:
    """The source of every lesson."""
    return [source for source in sources() if source.stem != INDEX]


def course() -> tuple[Lesson, ...]:
    """Every lesson, as its source tells of it."""
    return tuple(facts(source) for source in lesson_sources())


def built(source: Path, edition: Edition) -> str:
    """One edition of a lesson, as the text of its notebook file; the same source always gives the same text.

    A cell has the same id in all editions, so those for instructors are counted by themselves.
    """
    cells, numbers = list(_cells(source, edition)), {"": count(), "-instructor": count()}
    for cell in cells:
        kind = "-instructor" if is_for_instructors(cell) else ""
        cell["id"] = f"{source.stem.replace('_', '-')}{kind}-{next(numbers[kind]):02d}"
    return str(nbformat.writes(new_notebook(cells=cells, metadata=KERNEL))) + "\n"


def _cells(source: Path, edition: Edition) -> Iterator[NotebookNode]:
    for cell in cells_of(source)[1]:
        if "exercise" in cell.metadata:
            yield from _exercise_cells(exercise_named(cell.metadata["exercise"]), edition)
        elif "generated" in cell.metadata:
            yield new_markdown_cell(lesson_table(course()))
        elif is_for_instructors(cell):
            if edition == "instructor":
                yield _for_instructors(cell.source)
        else:
            cell.metadata = {}
            yield cell


def _for_instructors(text: str) -> NotebookNode:
    return new_markdown_cell(text, metadata={"tags": ["instructor"]})


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
    lines = [*(hidden if edition != "student" else []), f"check({name})"]
    yield new_code_cell("\n".join(lines), metadata=_nbgrader(f"{name}-check", points=1))
    if edition == "instructor":
        yield _for_instructors(wrong_answers(exercise))


def _nbgrader(grade_id: str, solution: bool = False, points: int | None = None) -> dict[str, Any]:
    """What nbgrader (schema 3) needs to know: which cell a student answers, and which one it marks."""
    graded = {"points": points} if points is not None else {}
    marks = {"grade": bool(graded), "grade_id": grade_id, "locked": bool(graded), "solution": solution, "task": False}
    return {"nbgrader": {**marks, **graded, "schema_version": 3}}


def main() -> None:
    """Write both editions of every lesson, the list of lessons, and the table of the page for teachers."""
    argparse.ArgumentParser(description="Make the students' and the instructor's notebooks.").parse_args()
    FILE.write_text(written(course()), encoding="utf-8", newline="\n")
    TEACHERS.write_text(with_table(TEACHERS.read_text(encoding="utf-8"), course()), encoding="utf-8", newline="\n")
    for edition, folder in FOLDERS.items():
        folder.mkdir(parents=True, exist_ok=True)
        for source in sources():
            target = folder / f"{source.stem}.ipynb"
            target.write_text(built(source, edition), encoding="utf-8", newline="\n")
            print(target.relative_to(HERE.parent))


if __name__ == "__main__":
    main()
