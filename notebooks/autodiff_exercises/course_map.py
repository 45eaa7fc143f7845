"""course: the path through the lessons as a map of cards, each with what a student has done there, and the same as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from . import progress_file
from .progress_file import Record
from .syllabus import Lesson, lessons

WIDTH, HEIGHT = 310, 106  # px: of a card
BESIDE, BELOW = 32, 36  # px: between cards
INK, PAPER, RULE = (
    "var(--jp-ui-font-color1, CanvasText)",
    "var(--jp-layout-color1, Canvas)",
    "var(--jp-border-color1, #888)",
)
PASSED = "background:var(--jp-success-color1, #2e7d32)"
ATTEMPTED = "background:repeating-linear-gradient(45deg, var(--jp-warn-color1, #b26a00) 0 4px, transparent 4px 7px)"


@dataclass(frozen=True, slots=True)
class Standing:
    """How many exercises of a lesson passed their visible checks, how many were checked without that, how many are open."""

    passed: int = 0
    attempted: int = 0
    open: int = 0

    def __str__(self) -> str:
        if self == Standing():
            return "no checked exercises"
        parts = (
            (self.passed, "passed the visible checks"),
            (self.attempted, "attempted"),
            (self.open, "open"),
        )
        return ", ".join(f"{count} {word}" for count, word in parts if count)


def standing(lesson: Lesson, records: Mapping[str, Record]) -> Standing:
    """Where a student stands in one lesson."""
    states = [records.get(one.name, Record()).state for one in lesson.exercises]
    passed, untouched = states.count("right"), states.count("not attempted")
    return Standing(passed, len(states) - passed - untouched, untouched)


@dataclass(frozen=True, slots=True)
class Course:
    """Every lesson with where the student stands; drawn in a notebook, and as text elsewhere."""

    lessons: tuple[tuple[Lesson, Standing], ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        lines = []
        for lesson, stands in self.lessons:
            lines.append(f"{lesson.number} {lesson.title} ({lesson.time}): {stands}")
            if lesson.after:
                lines.append(f"    goes well after {_numbers(lesson.after)}")
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        places = placed([lesson for lesson, _ in self.lessons])
        right = max((x for x, _y in places.values()), default=0) + WIDTH
        bottom = max((y for _x, y in places.values()), default=0) + HEIGHT
        cards = "".join(_card(lesson, stands, places[lesson.slug]) for lesson, stands in self.lessons)
        arrows = "".join(_arrow(places[a], places[b]) for a, b in arrows_of([lesson for lesson, _ in self.lessons]))
        svg = (
            f"<svg aria-hidden='true' width='{right}' height='{bottom}' style='position:absolute;left:0;top:0;overflow:visible;"
            f"fill:{RULE};stroke:{RULE};stroke-width:2'>{arrows}</svg>"
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        box = f"position:relative;width:{right}px;height:{bottom}px"
        return (
            f"<div style='overflow-x:auto;padding:4px'><div role='list' style='{box}'>{svg}{cards}</div></div>{notes}"
        )


def course() -> Course:
    """The path through the course: every lesson, what helps before it, and how far you are in it.

    >>> print(repr(course()).splitlines()[0])
    00 What happens under loss.backward() (about 90 minutes): no checked exercises
    """
    known, note = progress_file.records()
    return Course(tuple((one, standing(one, known)) for one in lessons()), (note,) if note else ())


# --------------------------------------------------------------------------------------------------------------- places


def arrows_of(course: Sequence[Lesson]) -> list[tuple[str, str]]:
    """From which lesson to which an arrow goes: what helps before, without what follows from other arrows."""
    after = _known(course)
    before: dict[str, set[str]] = {}  # of each lesson all that comes before it
    for slug in _rows(after):
        before[slug] = set(after[slug]).union(*(before[one] for one in after[slug]))
    return [
        (one, slug)
        for slug, direct in after.items()
        for one in direct
        if not any(one in before[other] for other in direct)
    ]


def placed(course: Sequence[Lesson]) -> dict[str, tuple[int, int]]:
    """The left upper corner of each lesson's card: a row below all that helps before it, near to that."""
    after = _known(course)
    rows: dict[int, list[str]] = {}
    for slug, row in _rows(after).items():
        rows.setdefault(row, []).append(slug)
    columns: dict[str, int] = {}
    for row in sorted(rows):
        middles = {slug: _middle(columns[one] for one in after[slug]) for slug in rows[row]}
        free = 0
        for slug in sorted(rows[row], key=lambda slug: (middles[slug], slug)):
            columns[slug] = max(free, int(middles[slug]))
            free = columns[slug] + 1
    at = _rows(after)
    return {slug: (columns[slug] * (WIDTH + BESIDE), at[slug] * (HEIGHT + BELOW)) for slug in after}


def _known(course: Sequence[Lesson]) -> dict[str, tuple[str, ...]]:
    """What goes before each lesson, of those that are there and stand earlier in the course."""
    after: dict[str, tuple[str, ...]] = {}
    for lesson in course:
        after[lesson.slug] = tuple(slug for slug in lesson.after if slug in after)
    return after


def _rows(after: Mapping[str, Sequence[str]]) -> dict[str, int]:
    rows: dict[str, int] = {}
    for slug, before in after.items():
        rows[slug] = 1 + max((rows[one] for one in before), default=-1)
    return rows


def _middle(numbers: Iterable[int]) -> float:
    found = list(numbers)
    return sum(found) / len(found) if found else 0.0


# ---------------------------------------------------------------------------------------------------------------- drawn


def _card(lesson: Lesson, stands: Standing, place: tuple[int, int]) -> str:
    style = (
        f"position:absolute;left:{place[0]}px;top:{place[1]}px;width:{WIDTH}px;height:{HEIGHT}px;box-sizing:border-box;"
        f"padding:7px 11px;border:1px solid {RULE};border-radius:8px;background:{PAPER};color:{INK};line-height:1.35;"
        "overflow:hidden"
    )
    name = f"{lesson.number} {escape(lesson.title)}"
    link = f"<a href='{escape(lesson.file)}' style='font-weight:600'>{name}</a>"
    time = f"<div style='opacity:.8'>{lesson.time}</div>"
    return (
        f"<div role='listitem' title='{escape(lesson.question, quote=True)}' style='{style}'>{link}{time}{_bar(stands)}"
        f"<div style='font-size:.92em'>{stands}</div></div>"
    )


def _bar(stands: Standing) -> str:
    """One field for each exercise; what a field means is also said in words below it."""
    looks = [PASSED] * stands.passed + [ATTEMPTED] * stands.attempted + [""] * stands.open
    fields = "".join(f"<span style='flex:1;border:1px solid {RULE};border-radius:2px;{look}'></span>" for look in looks)
    return (
        f"<div aria-hidden='true' style='display:flex;gap:2px;height:9px;margin:2px 0 1px'>{fields}</div>"
        if looks
        else ""
    )


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    (x1, y1), (x2, y2) = (start[0] + WIDTH // 2, start[1] + HEIGHT), (end[0] + WIDTH // 2, end[1] - 8)
    way = f"M{x1} {y1}"
    if y2 - y1 > BELOW:  # it goes past other cards, in the gap beside them
        x1, y1 = start[0] + (-BESIDE // 2 if x2 < x1 else WIDTH + BESIDE // 2), y1 + BELOW
        way += f"{_bend(start[0] + WIDTH // 2, y1 - BELOW, x1, y1)}V{y2 - BELOW + 8}"
        y1 = y2 - BELOW + 8
    way += _bend(x1, y1, x2, y2)
    return f"<path fill='none' d='{way}'/><path stroke='none' d='M{x2 - 6} {y2 - 2}h12l-6 10z'/>"


def _bend(x1: int, y1: int, x2: int, y2: int) -> str:
    return f"C{x1} {y1 + 24} {x2} {y2 - 24} {x2} {y2}"


def _numbers(slugs: Iterable[str]) -> str:
    return ", ".join(slug.split("_")[0] for slug in slugs)
