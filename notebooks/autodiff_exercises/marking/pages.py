"""The pages about a class: a report for each student, and the overview. Plain HTML that prints, and needs no network."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from urllib.parse import quote

from ..outcomes import MARKS, Verdict
from .marks import Mark

OUTCOMES: tuple[Verdict, ...] = ("right", "wrong", "not attempted", "could not be checked")
COMMONEST = 10  # misconceptions that the overview names

STYLE = """
:root { color-scheme: light dark; --line: #bbb; --faint: #595959; --right: #1b6e2a; --wrong: #b3261e; --unsure: #8a5300; }
@media (prefers-color-scheme: dark) {
  :root { --line: #555; --faint: #b0b0b0; --right: #7fd08c; --wrong: #ff9c94; --unsure: #f0b860; }
}
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: .2em; } h2 { font-size: 1.15em; margin: 1.6em 0 .4em; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3em .7em .3em 0; border-bottom: 1px solid var(--line); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
p { margin: .3em 0; } .faint { color: var(--faint); } .name { overflow-wrap: anywhere; }
.right { color: var(--right); } .wrong { color: var(--wrong); } .could { color: var(--unsure); } .not { color: var(--faint); }
section { border-left: 4px solid var(--line); padding: 0 0 .1em .9em; margin: 1em 0; break-inside: avoid; }
section h3 { font-size: 1em; margin: 0; } tr { break-inside: avoid; }
code { font-family: ui-monospace, monospace; }
@media print { body { margin: 0; max-width: none; font-size: 11pt; } a { color: inherit; text-decoration: none; } }
"""


def _page(title: str, *parts: str) -> str:
    body = "\n".join(parts)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return _encodable(
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}<style>{STYLE}</style></head><body>\n{body}\n</body></html>\n'
    )


def _encodable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def _paragraph(text: str, kind: str = "") -> str:
    """Safe HTML, with what stands between backticks as code, and what stands between stars as strong."""
    marked_up = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text)))
    return f'<p class="{kind}">{marked_up}</p>' if text else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table of cells that are HTML already; ``numbers`` are the columns to align at the right."""

    def row(kind: str, cells: Sequence[str]) -> str:
        classes = [' class="number"' if place in numbers else "" for place in range(len(cells))]
        return (
            "<tr>"
            + "".join(f"<{kind}{one}>{cell}</{kind}>" for one, cell in zip(classes, cells, strict=True))
            + "</tr>"
        )

    return (
        f"<table><thead>{row('th', head)}</thead><tbody>{''.join(row('td', cells) for cells in rows)}</tbody></table>"
    )


def _outcome(mark: Mark, words: bool = True) -> str:
    """A sign, in a colour, with the word beside it or as its text."""
    text = f"{MARKS[mark.outcome][0]} {mark.outcome}" if words else MARKS[mark.outcome][0]
    title = "" if words else f' title="{escape(mark.exercise)}: {mark.outcome}"'
    return f'<span class="{mark.outcome.split()[0]}"{title}>{escape(text)}</span>'


# ------------------------------------------------------------------------------------------------------------ a student


def student_page(student: str, marks: Sequence[Mark]) -> str:
    """What one student is told: each exercise with its outcome and why, and no input that marked it."""
    points = sum(mark.points for mark in marks)
    parts = [f'<h1 class="name">{escape(student)}</h1>', _paragraph(f"{points} of {len(marks)} exercises are right.")]
    for lesson, group in groupby(marks, key=lambda mark: mark.lesson):
        parts += [f"<h2>{escape(lesson or 'No lesson could be read')}</h2>", *map(_section, group)]
    parts.append(
        _paragraph(
            "An exercise is marked on other inputs than those of the visible check, and on larger ones.", "faint"
        )
    )
    return _page(f"Marks of {student}", *parts)


def _section(mark: Mark) -> str:
    belief = f" ({escape(mark.misconception)})" if mark.misconception else ""
    points = "1 point" if mark.points == 1 else "0 points"
    head = f"<h3><code>{escape(mark.exercise)}</code>: {_outcome(mark)}{belief}, {points}</h3>"
    raised = f"It raised {mark.raised}." if mark.raised else ""
    why = f"{mark.why[:1].upper()}{mark.why[1:]}." if mark.why else ""
    message = "" if mark.outcome == "not attempted" else mark.message
    said = [_paragraph(text) for text in (message, raised, why)]
    small = [_paragraph(text, "faint") for text in (*_counted(mark), *mark.notes)]
    return f"<section>{''.join((head, *said, *small))}</section>"


def _counted(mark: Mark) -> list[str]:
    """What ran when it was marked, and what of it failed."""
    if not mark.checks or mark.outcome == "not attempted":
        return []
    passed = sum(found is True for _name, found in mark.checks)
    lines = [f"{passed} of the {len(mark.checks)} checks that mark it passed."]
    for word, wanted in (("Failed", False), ("Not reached", None)):
        names = ", ".join(name for name, found in mark.checks if found is wanted)
        lines += [f"{word}: {names}."] if names else []
    return lines


# ------------------------------------------------------------------------------------------------------------ the class


def class_page(marks: Sequence[Mark], reports: Mapping[str, str], notes: Sequence[str]) -> str:
    """How a class did: each exercise, the commonest misconceptions, and each student with a link to the report."""
    return _page(
        "Marks of the class",
        "<h1>Marks of the class</h1>",
        *(_paragraph(note, "faint") for note in notes),
        "<h2>Exercises</h2>",
        _exercises(marks),
        "<h2>Commonest misconceptions</h2>",
        _misconceptions(marks),
        *_by_hand(marks),
        "<h2>Students</h2>",
        _students(marks, reports),
    )


def _exercises(marks: Sequence[Mark]) -> str:
    places = dict.fromkeys((mark.lesson, mark.exercise) for mark in marks)
    rows = []
    for lesson, exercise in places:
        count = Counter(mark.outcome for mark in marks if (mark.lesson, mark.exercise) == (lesson, exercise))
        rows.append(
            [escape(lesson), f"<code>{escape(exercise)}</code>", *(str(count[outcome]) for outcome in OUTCOMES)]
        )
    heads = [f"{MARKS[outcome][0]} {outcome}" for outcome in OUTCOMES]
    return _table(["Lesson", "Exercise", *heads], rows, numbers=range(2, 6))


def _misconceptions(marks: Sequence[Mark]) -> str:
    count = Counter((mark.misconception, mark.exercise) for mark in marks if mark.misconception)
    said = {(mark.misconception, mark.exercise): mark.message for mark in marks}
    if not count:
        return _paragraph("None was found.")
    rows = [
        [str(number), escape(belief), f"<code>{escape(exercise)}</code>", _paragraph(said[belief, exercise])]
        for (belief, exercise), number in count.most_common(COMMONEST)
    ]
    return _table(["Students", "Misconception", "Exercise", "What they are told"], rows, numbers=[0])


def _by_hand(marks: Sequence[Mark]) -> list[str]:
    """What could not be checked, and why: somebody may want to look at it."""
    rows = [
        [
            f'<span class="name">{escape(mark.student)}</span>',
            f"<code>{escape(mark.exercise)}</code>",
            _paragraph(mark.why),
        ]
        for mark in marks
        if mark.outcome == "could not be checked"
    ]
    return (
        ["<h2>To look at by hand</h2>", _table(["Student", "Exercise", "Why it could not be checked"], rows)]
        if rows
        else []
    )


def _students(marks: Sequence[Mark], reports: Mapping[str, str]) -> str:
    rows = []
    for student, report in reports.items():
        own = [mark for mark in marks if mark.student == student]
        link = f'<a class="name" href="{quote(report)}">{escape(student)}</a>'
        signs = " ".join(_outcome(mark, words=False) for mark in own)
        rows.append([link, str(sum(mark.points for mark in own)), str(len(own)), signs])
    return _table(["Student", "Points", "of", "Exercise by exercise"], rows, numbers=[1, 2])
