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
    """Every submission in the folder, by student; of nbgrader's course folder, what students have submitted.

    Raises:
        ValueError: where there is none.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; give the folder with the submissions")
    place = folder / "submitted" if (folder / "submitted").is_dir() else folder
    found = [_submission(file.relative_to(place), place) for file in _notebooks(place)]
    if not found:
        raise ValueError(f"no notebook (NAME.ipynb, or STUDENT/NAME.ipynb) lies in {folder}")
    return sorted(found, key=lambda one: (one.student.casefold(), str(one.file)))


def _notebooks(folder: Path) -> Iterator[Path]:
    """The notebook files; a folder that is a link is not entered, since it may lead anywhere, also to itself."""
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place, name) for name in files if name.endswith(".ipynb") and not name.startswith("."))


def _submission(file: Path, folder: Path) -> Submission:
    """Whose a file is: the first folder's name, or its own."""
    student, *more = file.parts
    return Submission(_readable(student if more else file.stem), folder / file, (*more[:-1], file.stem))


def _readable(name: str) -> str:
    """A name that every table and page can hold, also where the system's file names are not text."""
    return "".join(letter if letter.isprintable() else "�" for letter in name)
