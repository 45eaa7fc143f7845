"""The files that marking leaves: ``marks.csv``, ``index.html`` about the class, and a page for each student."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from .marks import Mark
from .pages import class_page, student_page
from .tables import put, table

STUDENTS = "students"  # the folder of their pages
LONGEST = 80  # letters of a page's file name


def write_reports(marks: Sequence[Mark], folder: Path, notes: Sequence[str] = ()) -> None:
    """Write or replace every file, each in one step; pages of students who are not there any more are removed."""
    students = list(dict.fromkeys(mark.student for mark in marks))
    reports = dict(zip(students, file_names(students), strict=True))
    for student, name in reports.items():
        put(folder / STUDENTS / name, student_page(student, [mark for mark in marks if mark.student == student]))
    put(folder / "marks.csv", table(marks))
    put(folder / "index.html", class_page(marks, {one: f"{STUDENTS}/{name}" for one, name in reports.items()}, notes))
    for page in (folder / STUDENTS).glob("*.html"):
        if page.name not in reports.values():
            page.unlink()


def file_names(students: Sequence[str]) -> list[str]:
    """A file name for each student that every system accepts, and that no two share, also where case does not count.

    >>> file_names(["Anna", "anna", "../con"])
    ['student-Anna.html', 'student-anna-2.html', 'student-_con.html']
    """
    taken: set[str] = set()
    found = []
    for student in students:
        stem = re.sub(r"[^\w-]+", "_", student)[:LONGEST]
        number, name = 1, f"student-{stem}.html"
        while name.casefold() in taken:
            number += 1
            name = f"student-{stem}-{number}.html"
        taken.add(name.casefold())
        found.append(name)
    return found
