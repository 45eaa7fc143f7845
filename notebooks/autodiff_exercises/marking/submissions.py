"""Which submissions lie in a folder: files ``NAME.ipynb``, or a folder for each student, as nbgrader collects them or plain."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Submission:
    """A notebook file, whose it is, and the names of the folders and the file that lead to it."""

    student: str
    file: Path
    names: tuple[str, ...]


def submissions_in(folder: Path) -> list[Submission]:
    """Every submission in the folder, by student.

    Raises:
        ValueError: where there is none.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; give the folder with the submissions")
    found = [_submission(file.relative_to(folder), folder) for file in _notebooks(folder)]
    if not found:
        raise ValueError(f"no notebook (NAME.ipynb, or STUDENT/NAME.ipynb) lies in {folder}")
    return sorted(found, key=lambda one: (one.student.casefold(), str(one.file)))


def _notebooks(folder: Path) -> Iterator[Path]:
    """The notebook files; a folder that is a link is not entered, since it may lead anywhere, also to itself."""
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place, name) for name in files if name.endswith(".ipynb") and not name.startswith("."))


def _submission(file: Path, folder: Path) -> Submission:
    """Whose a file is: the first folder's name, or its own; nbgrader puts all into a folder ``submitted``."""
    parts = file.parts[1:] if file.parts[0] == "submitted" and len(file.parts) > 1 else file.parts
    names = (*parts[1:-1], file.stem)
    return Submission(_readable(parts[0] if len(parts) > 1 else file.stem), folder / file, names)


def _readable(name: str) -> str:
    """A name that every table and page can hold, also where the system's file names are not text."""
    return "".join(letter if letter.isprintable() else "�" for letter in name)
