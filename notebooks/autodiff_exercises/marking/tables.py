"""The marks of a class as a table for a spreadsheet, and files that are replaced in one step."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .marks import Mark

COLUMNS = ("student", "lesson", "exercise", "outcome", "points", "misconception")


def table(marks: Sequence[Mark]) -> str:
    """The marks as CSV, one line each.

    >>> print(table([Mark("=anna", "10_computation_graph", "trace", "right")]), end="")
    student,lesson,exercise,outcome,points,misconception
    '=anna,10_computation_graph,trace,right,1,
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(getattr(mark, name)) for name in COLUMNS] for mark in marks)
    return text.getvalue()


def _cell(value: object) -> object:
    """The value; a name that a spreadsheet would take for a formula begins with an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def put(file: Path, text: str) -> None:
    """Write the whole text in one step: whoever reads the file finds the old or the new one, never a part."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=file.parent, prefix=file.name[:40], suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        os.replace(draft, file)
        file.chmod(0o644)  # a draft is for its writer only
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
