"""The vocabulary of pictures: a Scene is panes, frames and facts, computed once in Python and played by the browser.

A pane's SVG marks every element that takes part with ``data-op="KEY"``; several elements may share a key (a node, its
row in a list, a bar in a timeline), and a key means the same op in every view of a page. What shows the same thing but
has states of its own bears the key with a ``~`` and a word behind it; both are selected together. The state of an element is
one word in its ``data-s`` attribute, and all colour is CSS. A frame is the *difference* to the frame before it. Inside an
element, a ``<text data-slot="NAME">`` can be rewritten by a frame.

What an element was computed from (``sources``) lights up with it, directly and further back. An element may have an inside:
a scene of the next level of detail (a block's nodes, an op's arrays), which takes the place of the outer one until closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from html import unescape
from typing import Any, Literal

from .captions.graphs import played_note
from .collector import paused

# What an element can be just now. Each has a colour and a second channel (border, pattern or mark) in scene.css.
State = Literal["idle", "waiting", "ready", "active", "done", "used", "target", "skipped", "freed", "wrong"]


MOST_PLAYED = 10_000  # frames: more of them are a text that nobody steps through

_NO_TEXTS: Mapping[str, str] = {}  # one for all: a large scene has 100,000 changes without texts
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def writable(text: str) -> str:
    """The text with the replacement character for what neither XML nor UTF-8 can hold.

    >>> writable("a\\x00b")
    'a�b'
    """
    return _NOT_XML.sub("\ufffd", text)


@dataclass(frozen=True, slots=True)
class Change:
    """One element's new state and its rewritten texts; a state of None leaves the state as it is."""

    element: str
    state: State | None = None
    texts: Mapping[str, str] = field(default_factory=lambda: _NO_TEXTS)  # slot -> text

    def then(self, later: Change) -> Change:
        """This change and a later one of the same element as one."""
        return Change(self.element, later.state or self.state, {**self.texts, **later.texts})

    def as_json(self) -> list[Any]:
        """``[element, state, {slot: text}]``, without the texts where there are none."""
        return [self.element, self.state, dict(self.texts)] if self.texts else [self.element, self.state]


@dataclass(frozen=True, slots=True)
class Question:
    """What a reader is asked before a frame shows: which element is it? Asked where the view's ``predict`` is on.

    An answer that no element stands for has a word of its own in place of the element.
    """

    text: str
    choices: tuple[tuple[str, str], ...]  # (element, what its button says)
    right: str  # the element

    def __post_init__(self) -> None:
        if self.right not in dict(self.choices):
            raise ValueError(f"question {self.text!r}: the right answer {self.right!r} must be one of its choices")

    def as_json(self) -> dict[str, Any]:
        """The question for the player."""
        return {"text": self.text, "choices": [list(choice) for choice in self.choices], "right": self.right}


@dataclass(frozen=True, slots=True)
class Frame:
    """One step: a caption, what changes against the frame before, and the element that the camera follows.

    In the caption a name between backquotes is shown as code: ``"`w` is an input."``
    """

    caption: str
    changes: tuple[Change, ...] = ()
    focus: str | None = None
    source: str | None = None  # the line of the user's code that this step belongs to
    question: Question | None = None

    def as_json(self) -> dict[str, Any]:
        """The frame for the player, without a question where there is none."""
        return {
            "caption": self.caption,
            "changes": [change.as_json() for change in self.changes],
            "focus": self.focus,
            "source": self.source,
            **({} if self.question is None else {"question": self.question.as_json()}),
        }


@dataclass(frozen=True, slots=True)
class Pane:
    """One picture of a scene: an SVG document at its natural size, and the name that a screen reader says."""

    svg: str
    label: str

    def as_json(self) -> dict[str, Any]:
        """The pane for the player."""
        return {"svg": self.svg, "label": self.label}


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that a view shows: panes, frames, the facts of each element, and the key to the states in use.

    ``facts`` holds, for each element, the rows (label, value) that the details panel shows when it is selected. The
    first frame is the picture before the first step.
    """

    title: str
    panes: tuple[Pane, ...]
    frames: tuple[Frame, ...]
    facts: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    legend: tuple[tuple[State | str, str], ...] = ()  # (state or class, what it means here)
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # element -> those that it was computed from
    notes: Mapping[str, str] = field(default_factory=dict)  # element -> what is said while it is pointed at
    opens: tuple[str, ...] = ()  # the elements that have an inside: see View.inside
    runs: bool = True  # whether what a step makes active is run in it; else it is only what the step is about

    @paused()
    def as_json(self) -> dict[str, Any]:
        """The scene for the player, as much of it as is played: plain lists, dicts, strings, numbers and None."""
        it = self.played()
        return {
            "title": it.title,
            "panes": [pane.as_json() for pane in it.panes],
            "frames": [frame.as_json() for frame in it.frames],
            "facts": {key: [list(row) for row in rows] for key, rows in it.facts.items()},
            "legend": [list(row) for row in it.legend],
            **({"sources": {key: list(keys) for key, keys in it.sources.items()}} if it.sources else {}),
            **({"notes": dict(it.notes)} if it.notes else {}),
            **({"opens": list(it.opens)} if it.opens else {}),
            **({} if it.runs else {"runs": False}),
        }

    def played(self) -> Scene:
        """The scene itself; of over 10,000 frames the first and the last, with a note, and what is known of what is drawn."""
        if len(self.frames) <= MOST_PLAYED:
            return self
        first, *rest = self.frames[: MOST_PLAYED - 1]
        note = played_note(len(self.frames) - 1, len(rest))
        closing: dict[str, Change] = {}
        for frame in self.frames[MOST_PLAYED - 1 :]:
            for change in frame.changes:
                before = closing.get(change.element)
                closing[change.element] = change if before is None else before.then(change)
        drawn = {unescape(key) for pane in self.panes for key in re.findall(r'data-op="([^"]*)"', pane.svg)}
        return replace(
            self,
            frames=(
                replace(first, caption=f"{first.caption} {note}"),
                *rest,
                replace(self.frames[-1], changes=tuple(closing.values())),
            ),
            facts={key: rows for key, rows in self.facts.items() if key in drawn},
            sources={key: keys for key, keys in self.sources.items() if key in drawn},
            notes={key: text for key, text in self.notes.items() if key in drawn},
            opens=tuple(key for key in self.opens if key in drawn),
        )

    def __post_init__(self) -> None:
        if not self.panes or not self.frames:
            raise ValueError(
                f"scene {self.title!r} has {len(self.panes)} panes and {len(self.frames)} frames, and needs at least "
                "one of each: give the picture before the first step as the first frame"
            )
        if _NOT_XML.search("".join(self._texts())):  # a learner's names may hold anything
            for name in ("title", "frames", "facts", "legend", "sources", "notes", "opens"):
                object.__setattr__(self, name, _all_writable(getattr(self, name)))

    def _texts(self) -> Iterator[str]:
        """What is said beside the pictures, whose texts are escaped where they are drawn."""
        yield self.title
        for frame in self.frames:
            yield from (frame.caption, frame.source or "")
            yield from (text for change in frame.changes for text in change.texts.values())
        for rows in (*self.facts.values(), self.legend):
            yield from (text for row in rows for text in row)
        yield from self.notes.values()

    def index(self, frame: int) -> int:
        """The number of a frame counted from the start, for one that may be counted from the end (-1 is the last)."""
        count = len(self.frames)
        if not -count <= frame < count:
            raise IndexError(
                f"frame must be from {-count} to {count - 1}, as scene {self.title!r} has {count}, got {frame}"
            )
        return frame % count

    def texts_at(self, index: int) -> dict[tuple[str, str], str]:
        """What the frames 0 to ``index`` have written, by element and slot."""
        return {
            (change.element, slot): text
            for frame in self.frames[: index + 1]
            for change in frame.changes
            for slot, text in change.texts.items()
        }

    def states_at(self, index: int) -> dict[str, str]:
        """Every element's state after the frames 0 to ``index``: what the browser must show there."""
        states: dict[str, str] = {}
        for frame in self.frames[: index + 1]:
            for change in frame.changes:
                if change.state is not None:
                    states[change.element] = change.state
        return states

    def text(self) -> str:
        """The text twin: the title, every element with its facts, and every frame's caption."""
        lines = [self.title, "", "Elements"]
        for key, rows in self.facts.items():
            lines.append(f"  {key}: " + "; ".join(f"{label} {value}" for label, value in rows))
        lines += ["", "Steps"]
        lines += [f"  {number}. {frame.caption}" for number, frame in enumerate(self.frames)]
        return "\n".join(lines)


def _all_writable(value: Any) -> Any:
    """A part of a scene with every text in it made writable."""
    if isinstance(value, str):
        return writable(value)
    if isinstance(value, tuple):
        return tuple(map(_all_writable, value))
    if isinstance(value, Mapping):
        return {_all_writable(key): _all_writable(part) for key, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{part.name: _all_writable(getattr(value, part.name)) for part in fields(value)})
    return value
