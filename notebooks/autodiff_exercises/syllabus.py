"""What the course knows of its lessons: title, question, time, and what helps before what."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from .exercise import Exercise
from .registry import EXERCISES

FILE = Path(__file__).with_name("lessons.json")  # written by notebooks/build.py from the lessons' sources


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson as its source tells of it."""

    slug: str
    title: str
    question: str
    minutes: int | None = None  # in class, the sum over its sections; None where the source does not say
    after: tuple[str, ...] = ()  # slugs of lessons that help before this one
    machine: str = ""  # what it wants of a machine beyond the rest

    @property
    def number(self) -> str:
        """The number by which the course calls it."""
        return self.slug.split("_")[0]

    @property
    def file(self) -> str:
        """The notebook that students open."""
        return f"{self.slug}.ipynb"

    @property
    def exercises(self) -> tuple[Exercise, ...]:
        """Its exercises, in the order of the registry."""
        return tuple(one for one in EXERCISES.values() if one.lesson == self.slug)

    @property
    def time(self) -> str:
        """How long it takes in class, in words."""
        return f"about {5 * round(self.minutes / 5)} minutes" if self.minutes else "60 to 90 minutes"


@cache
def lessons() -> tuple[Lesson, ...]:
    """Every lesson, in the order in which they are taught.

    >>> lessons()[0].slug
    '00_lecture'
    """
    return tuple(
        Lesson(**{**told, "after": tuple(told["after"])}) for told in json.loads(FILE.read_text(encoding="utf-8"))
    )


def written(course: tuple[Lesson, ...]) -> str:
    """The text of the file that holds these lessons."""
    return json.dumps([asdict(lesson) for lesson in course], indent=2, ensure_ascii=False) + "\n"
