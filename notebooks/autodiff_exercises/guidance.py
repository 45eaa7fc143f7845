"""hint, solution, progress and yours: help in small doses, where a student stands, and what is there of an own part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby
from typing import Any

from . import progress_file
from .exercise import Exercise
from .outcomes import MARKS, RIGHT, SO_FAR, Message
from .progress_file import Record
from .registry import EXERCISES, exercise_named

Named = str | Callable[..., Any]


def hint(exercise: Named, number: int | None = None) -> Message:
    """The next of three hints; with a number, that one, also again.

    Raises:
        ValueError: where there is no hint of this number.

    >>> print(hint("topological_order").heading)
    Hint 1 of 3 for topological_order
    >>> print(hint("topological_order", 1).heading)
    Hint 1 of 3 for topological_order
    """
    asked = exercise_named(exercise)
    count = len(asked.hints)
    if number not in (None, *range(1, count + 1)):
        raise ValueError(f"hint {number!r} of {asked.name} was asked for; the hints are 1 to {count}")
    record, note = progress_file.update(
        asked.name, lambda before: replace(before, hints=max(before.hints, number or min(before.hints + 1, count)))
    )
    shown = number or record.hints
    return Message(
        f"Hint {shown} of {count} for {asked.name}", (asked.hints[shown - 1],), notes=(_more(asked, shown), note)
    )


def _more(asked: Exercise, shown: int) -> str:
    """How to go on from a hint, and back."""
    if shown == len(asked.hints):
        return f"This is the last hint. `hint({asked.name!r}, 1)` shows the first one again."
    return f"`hint({asked.name!r}, {shown - 1})` shows the one before again." if shown > 1 else ""


def solution(exercise: Named, really: bool = False) -> Message:
    """One solution of many, for whoever asks twice: with ``really=True``, and nothing else than True.

    >>> print(solution("topological_order").heading)
    The solution of topological_order is one step away
    """
    asked = exercise_named(exercise)
    if really is not True:
        left = len(asked.hints) - progress_file.records()[0].get(asked.name, Record()).hints
        hints = f"{left} of your hints are unread: hint({asked.name!r}). " if left else ""
        return Message(
            f"The solution of {asked.name} is one step away",
            (f"{hints}An answer that you found stays with you longer. To see ours all the same:",),
            f"solution({asked.name!r}, really=True)",
        )
    _record, note = progress_file.update(asked.name, lambda before: replace(before, solution_seen=True))
    others = f"One way of {len(asked.alternatives) + 1} that we know; yours may differ and be as right."
    return Message(f"A solution of {asked.name}", (), asked.solved, others, (note,))


def yours(function: Callable[..., Any], *arguments: Any) -> Any:
    """What your function returns; None, with a line that says so, where it is still to be written.

    >>> def trace(f, names):
    ...     raise NotImplementedError("write trace here")
    >>> yours(trace, abs, ["x"])
    ○ Nothing to show yet: write trace here. Then run this cell again.
    """
    try:
        return function(*arguments)
    except NotImplementedError as error:
        print(f"○ Nothing to show yet: {error}. Then run this cell again.")
        return None


@dataclass(frozen=True, slots=True)
class Progress:
    """Every exercise with what is remembered of it."""

    records: tuple[tuple[str, str, Record], ...]  # lesson, exercise, record
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        lines = [
            f"{_state(record)}  {exercise}  ({lesson}; {_effort(record)})" for lesson, exercise, record in self.records
        ]
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        begun = max((record.last, lesson) for lesson, _exercise, record in self.records)
        parts = [_folded(lesson, list(rows), begun) for lesson, rows in groupby(self.records, lambda one: one[0])]
        return "".join([*parts, *(f"<p>{escape(note)}</p>" for note in self.notes)])


def _folded(lesson: str, rows: Sequence[tuple[str, str, Record]], begun: tuple[str, str]) -> str:
    """A line for a lesson, with its exercises behind it; the one in which something happened last is open."""
    right = sum(record.state == "right" for _lesson, _exercise, record in rows)
    table = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(text)}</td>" for text in cells) + "</tr>"
        for cells in ((exercise, _state(record), _effort(record)) for _lesson, exercise, record in rows)
    )
    is_open = " open" if begun[0] and begun[1] == lesson else ""
    return (
        f"<details{is_open}><summary>{escape(lesson)}: {right} of {len(rows)} {RIGHT}</summary>"
        f"<table><tbody>{table}</tbody></table></details>"
    )


def progress() -> Progress:
    """Where you stand: every exercise with its state, checks and hints."""
    known, note = progress_file.records()
    rows = tuple((one.lesson, one.name, known.get(one.name, Record())) for one in EXERCISES.values())
    right = SO_FAR if any(record.state == "right" for _lesson, _name, record in rows) else ""
    return Progress(rows, tuple(text for text in (note, right, f"Kept in {progress_file.path()}") if text))


def _state(record: Record) -> str:
    return f"{MARKS.get(record.state, ('?', ''))[0]} {RIGHT if record.state == 'right' else record.state}"


def _effort(record: Record) -> str:
    seen = ", solution seen" if record.solution_seen else ""
    return f"{_count(record.checks, 'check')}, {_count(record.hints, 'hint')}{seen}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
