"""Marks as plain data: one for each exercise of each submission."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..outcomes import Verdict

WHOLE = "(the whole notebook)"  # stands for the exercise where a file cannot be read


@dataclass(frozen=True, slots=True)
class Mark:
    """What one answer is worth, and why; ``checks`` are the names of the checks with what became of them."""

    student: str
    lesson: str
    exercise: str
    outcome: Verdict
    misconception: str = ""
    message: str = ""
    raised: str = ""
    why: str = ""
    notes: tuple[str, ...] = ()
    checks: tuple[tuple[str, bool | None], ...] = ()

    @property
    def points(self) -> int:
        """1 where it is right."""
        return int(self.outcome == "right")


def mark_from(student: str, lesson: str, told: dict[str, Any]) -> Mark:
    """The mark that a judge told."""
    words = {name: told[name] for name in ("misconception", "message", "raised", "why")}
    checks = tuple((name, found) for name, found in told["checks"])
    return Mark(student, lesson, told["exercise"], told["verdict"], **words, notes=tuple(told["notes"]), checks=checks)


def best_of(marks: Iterable[Mark]) -> list[Mark]:
    """One mark for each student and exercise, the best where a student handed in several notebooks."""
    order = ("right", "wrong", "could not be checked", "not attempted")
    found: dict[tuple[str, str], Mark] = {}
    for mark in marks:
        place = (mark.student, mark.exercise)
        if place not in found or order.index(mark.outcome) < order.index(found[place].outcome):
            found[place] = mark
    return list(found.values())
