"""Makes the notebooks from the lessons' sources: ``python notebooks/build.py``.

A source is a Python file in the percent format: a docstring for whoever reads it, then the cells. An empty cell
``# %% exercise="NAME"`` stands for an exercise: its statement, answer and check; a Markdown cell with
``tags=["instructor"]`` is shown to instructors only. Each source gives two editions. The students', with a starter as the
answer, goes to ``notebooks/lessons``, which is all that JupyterLab shows; the instructor's, with timing, questions, wrong
answers, and the solution between nbgrader's marks, goes to ``build/instructor``. What nbgrader hands out is made from a
third one, "marked": the instructor's without what only instructors read.

Prose stands in Markdown cells of its own. ``--language XX`` writes the lessons with the translations in
``source/translations/XX`` to ``build/lessons-XX``, and files to begin or to go on with to ``build/translations-XX``.

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

import translation  # noqa: E402
from autodiff_exercises.exercise import Exercise  # noqa: E402
from autodiff_exercises.marking import MARKING_SEED  # noqa: E402
from autodiff_exercises.registry import exercise_named  # noqa: E402
from autodiff_exercises.syllabus import FILE, Lesson, written  # noqa: E402
from course_tables import lesson_table, with_table  # noqa: E402
from source_facts import cells_of, facts, is_for_instructors, minutes_of, sections_of  # noqa: E402, F401
from wrong_answers import wrong_answers  # noqa: E402

INDEX = "00_index"
Edition = Literal["student", "instructor", "marked"]
TEACHERS = HERE / "TEACHERS.md"
FOLDERS: dict[Edition, Path] = {"student": HERE / "lessons", "instructor": HERE.parent / "build" / "instructor"}
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


def in_language(source: Path, language: str) -> tuple[str, str]:
    """The students' edition in another language, and the file of its translations with what is still to do in English."""
    book = nbformat.reads(built(source, "student"), as_version=4)
    prose = [cell for cell in book.cells if cell.cell_type == "markdown"]
    known = translation.read(SOURCES / "translations" / language / f"{source.stem}.md")
    told = translation.to_translate([cell.source for cell in prose], known)
    for cell in prose:
        cell.source = known.get(translation.key_of(cell.source), cell.source)
    return str(nbformat.writes(book)) + "\n", told


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
    marked = [  # the last line is what nbgrader looks at, and where validate finds what is not right yet
        f"display(found := check({name}))",
        "### BEGIN HIDDEN TESTS",
        f"found = check({name}, seed={MARKING_SEED})",
        "### END HIDDEN TESTS",
        "assert found.right, found",
    ]
    lines = [f"check({name})"] if edition == "student" else marked
    yield new_code_cell("\n".join(lines), metadata=_nbgrader(f"{name}-check", points=1))
    if edition == "instructor":
        yield _for_instructors(wrong_answers(exercise))


def _nbgrader(grade_id: str, solution: bool = False, points: int | None = None) -> dict[str, Any]:
    """What nbgrader (schema 3) needs to know: which cell a student answers, and which one it marks."""
    graded = {"points": points} if points is not None else {}
    marks = {"grade": bool(graded), "grade_id": grade_id, "locked": bool(graded), "solution": solution, "task": False}
    return {"nbgrader": {**marks, **graded, "schema_version": 3}}


def write(target: Path, text: str) -> None:
    """Write a file with the same line ends on every system, and say so."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8", newline="\n")
    print(target.relative_to(HERE.parent))


def main() -> None:
    """Write both editions of every lesson, the list of lessons, and the table of the page for teachers."""
    parser = argparse.ArgumentParser(description="Make the students' and the instructor's notebooks.")
    parser.add_argument(
        "--language", metavar="XX", help="instead, the students' in a language that source/translations/XX holds"
    )
    language = parser.parse_args().language
    if language:
        for source in sources():
            book, told = in_language(source, language)
            write(HERE.parent / "build" / f"lessons-{language}" / f"{source.stem}.ipynb", book)
            write(HERE.parent / "build" / f"translations-{language}" / f"{source.stem}.md", told)
        return
    write(FILE, written(course()))
    write(TEACHERS, with_table(TEACHERS.read_text(encoding="utf-8"), course()))
    for edition, folder in FOLDERS.items():
        for source in sources():
            write(folder / f"{source.stem}.ipynb", built(source, edition))


if __name__ == "__main__":
    main()
