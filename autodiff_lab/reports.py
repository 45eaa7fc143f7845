"""What a gradient check found: frozen records with a text and a rich form, for people, lessons and CI."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["right", "wrong", "imprecise", "kink"]

HEADINGS: dict[Verdict, tuple[str, str]] = {  # the verdict in words, and its colour beside the text
    "right": ("✓ {name}: the gradient is right", "#2e7d32"),
    "wrong": ("✗ {name}: wrong gradient", "#c62828"),
    "imprecise": ("? {name}: not enough precision to tell", "#b26a00"),
    "kink": ("? {name}: on a kink, where there is no one gradient", "#b26a00"),
}
SHOWN = 5  # entries that a report shows before it counts the rest


@dataclass(frozen=True, slots=True)
class Finding:
    """One entry of a gradient that does not agree with differences, and what that means."""

    verdict: Verdict  # "right" for an entry on a kink that lies between the slopes to the left and to the right
    input: str  # the parameter's name: w, params['bias']
    index: tuple[int, ...] | None  # None: along a random direction, because the entries were only sampled
    got: float
    expected: float
    uncertainty: float
    reason: str = ""

    @property
    def relative_error(self) -> float:
        """|got − expected| / max(|got|, |expected|)."""
        largest = max(abs(self.got), abs(self.expected))
        if not math.isfinite(self.got - self.expected):
            return math.inf
        return abs(self.got - self.expected) / largest if largest else 0.0

    @property
    def place(self) -> str:
        """Input and index: ``w[0, 2]``."""
        if self.index is None:
            return f"{self.input} along a random direction"
        return f"{self.input}[{', '.join(map(str, self.index))}]" if self.index else self.input

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The entry as a row of a table: place, got, expected, relative error."""
        return self.place, f"{self.got:.6g}", f"{self.expected:.6g}", f"{self.relative_error:.1e}"


@dataclass(frozen=True, slots=True)
class GradcheckReport:
    """What ``gradcheck`` found.

    ``verdict`` is one of four: ``right``, ``wrong``, ``imprecise`` (not enough precision to tell) and ``kink`` (the point
    sits on a kink, and the entry cannot be judged there). As a truth value the report says whether it is ``right``.
    """

    name: str  # the function that was checked
    verdict: Verdict
    order: int = 1
    findings: tuple[Finding, ...] = ()
    explanations: tuple[str, ...] = ()  # what the mistakes have in common, and what to do next
    checked: tuple[tuple[str, int, int], ...] = ()  # for each input its name, the entries checked, and all its entries

    @property
    def ok(self) -> bool:
        """Whether the gradient is right."""
        return self.verdict == "right"

    @property
    def first(self) -> Finding | None:
        """The first entry that decided the verdict; None where the gradient is right."""
        return next((finding for finding in self.findings if finding.verdict == self.verdict != "right"), None)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        lines = [self._heading(), *(f"  {text}" for text in self._sentences())]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(row("td", finding.cells) for finding in self._deciding()[:SHOWN])
        table = f"<table>{row('th', ('entry', 'got', 'expected', 'relative error'))}{rows}</table>" if rows else ""
        texts = [*self._more(), *self._reasons(), *self.explanations, self._coverage()]
        return card(HEADINGS[self.verdict][1], self._heading(), table, texts)

    def _heading(self) -> str:
        return HEADINGS[self.verdict][0].format(name=self.name) + (", second derivatives" if self.order == 2 else "")

    def _sentences(self) -> list[str]:
        entries = [
            f"{place}: got {got}, expected {expected} (relative error {error})"
            for place, got, expected, error in (finding.cells for finding in self._deciding()[:SHOWN])
        ]
        return [*entries, *self._more(), *self._reasons(), *self.explanations, self._coverage()]

    def _deciding(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.verdict == self.verdict != "right"]

    def _more(self) -> list[str]:
        rest = len(self._deciding()) - SHOWN
        return [f"and {rest} more such {'entry' if rest == 1 else 'entries'}"] if rest > 0 else []

    def _reasons(self) -> list[str]:
        """Each reason once, with the first entry that it holds for; reasons of right entries too, as a note."""
        told = {finding.reason: finding for finding in reversed(self.findings) if finding.reason}
        return [f"{finding.place}: {finding.reason}" for finding in reversed(told.values())]

    def _coverage(self) -> str:
        if not self.checked:
            return "No entry was compared."
        parts = [
            f"{count} of {size}{' entries' if place == 0 else ''} of {name}"
            + ("" if count == size else " (a sample, and one random direction through all)")
            for place, (name, count, size) in enumerate(self.checked)
        ]
        return f"Checked by central differences with random cotangents: {', '.join(parts)}."


def card(colour: str, heading: str, table: str, texts: Iterable[str]) -> str:
    """A report in HTML: a heading, a table and sentences, with a coloured edge."""
    said = "".join(f"<p style='margin:.4em 0'>{_escaped(text)}</p>" for text in texts)
    style = f"border-left:4px solid {colour};padding:.3em .9em;max-width:60em;line-height:1.45"
    return f"<div role='status' style='{style}'><strong>{_escaped(heading)}</strong>{table}{said}</div>"


def row(tag: str, cells: tuple[str, ...]) -> str:
    """A row of a report's table, of ``td`` or ``th``."""
    return "<tr>" + "".join(f"<{tag} style='text-align:left'>{_escaped(cell)}</{tag}>" for cell in cells) + "</tr>"


def _escaped(text: str) -> str:
    """Text for HTML."""
    from html import escape  # here, because importing it costs 1 ms

    return escape(text)
