"""The tables of the course, in Markdown: the lessons for students in the index, and for teachers in TEACHERS.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autodiff_exercises.syllabus import Lesson

BEGIN, END = "<!-- lessons: written by notebooks/build.py -->", "<!-- end of the lessons -->"


def lesson_table(course: Sequence[Lesson]) -> str:
    """What each lesson asks, its time, its exercises, and what helps before it; a title opens the lesson."""
    rows = (
        (
            f"**[{one.number} {one.title}]({one.file})**",
            one.question,
            one.time,
            str(len(one.exercises) or "–"),
            _after(one),
        )
        for one in course
    )
    return _table(("lesson", "what it asks", "time", "exercises", "goes well after"), rows)


def teachers_table(course: Sequence[Lesson]) -> str:
    """What each lesson needs: time, exercises, what should come before, and what it wants of a machine."""
    rows = (
        (
            f"{one.number} {one.title}",
            one.time,
            str(len(one.exercises) or "–"),
            _after(one),
            one.machine or "nothing special",
        )
        for one in course
    )
    return _table(("lesson", "in class", "exercises", "goes well after", "machine"), rows)


def with_table(document: str, course: Sequence[Lesson]) -> str:
    """The document with the teachers' table between its marks."""
    before, rest = document.split(BEGIN)
    _old, after = rest.split(END)
    return f"{before}{BEGIN}\n{teachers_table(course)}\n{END}{after}"


def _after(lesson: Lesson) -> str:
    return ", ".join(slug.split("_")[0] for slug in lesson.after) or "–"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
