"""What a check, a hint and a progress report say, as text and as HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

Verdict = Literal["not attempted", "wrong", "could not be checked", "right"]

MARKS: dict[str, tuple[str, str]] = {  # a sign beside the colour, and the colour of the bar
    "not attempted": ("○", "var(--jp-border-color1, #888)"),
    "wrong": ("✗", "var(--jp-error-color1, #c62828)"),
    "could not be checked": ("?", "var(--jp-warn-color1, #b26a00)"),
    "right": ("✓", "var(--jp-success-color1, #2e7d32)"),
}

CALL_THAT_FAILED = "The smallest input on which it happened; run it in a cell of its own:"
CALL_WITHOUT_END = "This call did not come back:"
PRINTED_BY_THE_CALL = "In this call your function printed:"
PRINTED_FIRST = "The first that your function printed:"
RIGHT = "right so far"  # what a student reads: other inputs than the visible ones are tried when a submission is marked
SO_FAR = "Right so far: all visible checks passed; more run when it is marked."
LINES = 10  # of what a function printed are shown


@dataclass(frozen=True, slots=True)
class Message:
    """A heading and paragraphs, with a coloured bar in a notebook; code stands in lines of its own."""

    heading: str
    paragraphs: tuple[str, ...] = ()
    code: str = ""
    after_code: str = ""
    notes: tuple[str, ...] = ()
    output: tuple[str, str] = ("", "")  # what a program printed, with a line that says so
    colour: str = "var(--jp-brand-color1, #1565c0)"

    def __str__(self) -> str:
        parts = (self.heading, *self.paragraphs, _indented(self.code), self.after_code)
        said_so, printed = self.output
        return _encodable("\n".join(part for part in (*parts, said_so, _indented(printed), *self.notes) if part))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        small = "font-size:.92em"
        parts = [f"<strong>{escape(self.heading)}</strong>", *map(_paragraph, self.paragraphs)]
        said_so, printed = self.output
        parts += [_code(self.code), _paragraph(self.after_code), _paragraph(said_so), _code(printed)]
        parts += [_paragraph(text, small) for text in self.notes]
        style = f"border-left:4px solid {self.colour};padding:.3em .9em;max-width:46em;line-height:1.45"
        return _encodable(f"<div role='status' style='{style}'>{''.join(parts)}</div>")


def _encodable(text: str) -> str:
    """The text with what UTF-8 does not know written as an escape: halves of characters, which no page can show."""
    return text.encode(errors="backslashreplace").decode()


def _indented(code: str) -> str:
    return "\n".join("    " + line for line in code.splitlines())


def _code(text: str) -> str:
    return f"<pre style='margin:.4em 0;white-space:pre-wrap'>{escape(text)}</pre>" if text else ""


def _paragraph(text: str, style: str = "") -> str:
    """Safe HTML, with what stands between backticks as code."""
    marked_up = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return f"<p style='margin:.4em 0;{style}'>{marked_up}</p>" if text else ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check found. ``verdict`` is one of four; ``right`` says whether it is the best of them.

    ``misconception`` names the belief behind a wrong answer, ``example`` is a call that shows it, ``returned`` what the
    student's function made of that call, ``printed`` the beginning of what it printed, ``why`` the reason why something could
    not be checked.
    """

    exercise: str
    verdict: Verdict
    checks: tuple[
        tuple[str, bool | None], ...
    ] = ()  # each visible check: passed, failed, or None where it was not reached
    misconception: str = ""
    message: str = ""
    why: str = ""
    example: str = ""
    returned: str = ""
    printed: str = ""
    raised: str = ""  # the class of the error that ended the call, and its line, without what it said
    notes: tuple[str, ...] = ()
    marking: bool = False  # these were the checks of a submission, not the visible ones

    @property
    def right(self) -> bool:
        """Whether every check that ran has passed."""
        return self.verdict == "right"

    def __repr__(self) -> str:
        return str(self._message())

    def _repr_html_(self) -> str:
        return self._message()._repr_html_()

    def _message(self) -> Message:
        sign, colour = MARKS[self.verdict]
        heading = f"{sign} {self.exercise}: {RIGHT if self.right and not self.marking else self.verdict}"
        heading += f" ({self.misconception})" if self.misconception else ""
        why = self.why[:1].upper() + self.why[1:]
        before_code = "" if not self.example else CALL_THAT_FAILED if self.verdict == "wrong" else CALL_WITHOUT_END
        raised = f"It raised {self.raised}." if self.raised and not self.returned else ""
        said = tuple(text for text in (self.message, raised, f"{why}." if why else "", before_code) if text)
        notes = (*self._count(), *self.notes)
        return Message(heading, said, self.example, self.returned, notes, self._output(), colour)

    def _output(self) -> tuple[str, str]:
        """The first lines of what was printed, with a line that says so."""
        lines = self.printed.rstrip("\n").split("\n")
        shown = "\n".join([*lines[:LINES], "…"] if len(lines) > LINES else lines)
        return (PRINTED_BY_THE_CALL if self.example else PRINTED_FIRST, shown) if shown.strip() else ("", "")

    def _count(self) -> Sequence[str]:
        if not self.checks:
            return ()
        passed = sum(result is True for _name, result in self.checks)
        kind, more = ("", "") if self.marking else (" visible", "; more run when it is marked")
        lines = [f"{passed} of {len(self.checks)}{kind} checks passed{more}."]
        for result, word in ((False, "Failed"), (None, "Not reached")):
            names = [name for name, found in self.checks if found is result]
            lines += [f"{word}: {'; '.join(names)}."] if names else []
        return lines
