"""RegistrationView: how an op is registered, part by part, and who reads each part later."""

from __future__ import annotations

from typing import Any

from autodiff_lab import events
from autodiff_lab.events import Event

from .captions import Names, caption, registration
from .questions import which
from .registrations import (
    Part,
    Reader,
    by_op,
    lacking,
    part_of,
    parts_of,
    reader_facts,
    readers_of,
    whole_name,
)  # fmt: skip
from .scene import Change, Question, Scene, State
from .shapes import Text
from .steps import Steps
from .subjects import registration_of
from .tables import Entry, table
from .view import View

LEGEND = (
    ("active", "registered now"), ("done", "registered"), ("ready", "comes by itself"), ("target", "will read it"),
    ("waiting", "not there, or waits for a part"),
)  # fmt: skip


class RegistrationView(View):
    """The registration of an op, step by step: schema, shape rule, dtype rule, kernels, gradient rules, binding.

    Args:
        subject: an op, its name or the function that users call; or the events that ``ad.listen`` heard while a cell
            registered something.

    Raises:
        TypeError, ValueError: there is no such op, or nothing was registered; says what to pass.

    >>> print(RegistrationView("mul").frames[2].caption)
    The shape rule of `mul`, `broadcast_shape`, comes by itself: it reads `x` and `y`. It gives the result's shape from shapes \
alone. Read later by recording a graph, memory planning, fusion and placement.
    """

    def __init__(self, subject: Any, **traits: Any) -> None:
        heard = registration_of(subject, "RegistrationView")
        super().__init__(registration_scene(heard), heard, **traits)


def registration_scene(heard: list[Event]) -> Scene:
    """The scene of a registration: one frame for each of its events."""
    telling = _Telling(list(parts_of(heard).values()))
    for event in heard:
        telling.show(event)
    telling.end()
    facts = {part.key: part.facts() for part in telling.parts}
    facts |= {reader.key: reader_facts(reader) for reader in telling.readers}
    title = f"Registration of {whole_name(telling.parts)}"
    return Scene(title, telling.panes(), tuple(telling.steps.frames), facts, LEGEND, runs=False)


class _Telling:
    """The frames of a registration: what is there so far, and which readers have all that they need."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts
        self.readers = readers_of(parts)
        self.there: dict[str, Part] = {}
        keys = [*(part.key for part in parts), *(reader.key for reader in self.readers)]
        self.steps = Steps(registration.OPENING, [Change(key, "waiting") for key in keys])

    def panes(self) -> tuple[Any, ...]:
        """The parts, op by op, and the readers."""
        lines: list[str | Entry] = []
        for op, parts in by_op(self.parts).items():
            lines += [op, *map(_part_row, parts)]
        readers = table("Who reads it later", ["Who reads it later", *map(self._reader_row, self.readers)])
        return table("Registration", lines), readers

    def show(self, event: Event) -> None:
        """Add the frame of an event."""
        names = Names(str)
        part = part_of(event)
        if part is None:
            if isinstance(event, events.OpReplaced):
                self.steps.add(caption(event, names))
            return
        asks = self._question(part)
        self.there[part.key] = part
        seen = Change(
            part.key, "ready" if part.is_default else "done", {"function": part.function, "detail": part.detail}
        )
        met = [reader for reader in self.readers if reader in part.readers]
        lasting = [seen, *(Change(reader.key, self._state(reader), {"has": self._has(reader)}) for reader in met)]
        passing = [Change(part.key, "active"), *(Change(reader.key, "target") for reader in met)]
        said = registration.part_caption(caption(event, names), part.kind, [reader.name for reader in met])
        self.steps.add(said, lasting, passing, part.key, None if part.source is None else str(part.source), asks)

    def _question(self, part: Part) -> Question | None:
        """Before the first part that these read: who will read it?"""
        if any(part.readers == before.readers for before in self.there.values()):
            return None
        readers = [place for place, reader in enumerate(self.readers) if reader in part.readers]
        others = [place for place in range(len(self.readers)) if place not in readers]
        text = registration.reader_question(part.label, part.op)
        return which(
            text, readers[0], others, lambda place: self.readers[place].key, lambda place: self.readers[place].name
        )

    def end(self) -> None:
        """Add the frame that says who still lacks something."""
        late = {reader.name: lacking(reader, self.there.values()) for reader in self.readers}
        self.steps.add(registration.closing(late))

    def _state(self, reader: Reader) -> State:
        return "waiting" if lacking(reader, self.there.values()) else "done"

    def _has(self, reader: Reader) -> str:
        kinds = {part.kind for part in self.there.values()}
        return ", ".join(kind for kind in reader.reads if kind in kinds)

    def _reader_row(self, reader: Reader) -> Entry:
        return Entry(reader.key, (Text(reader.name, "label"), Text("", "detail", "has", ", ".join(reader.reads))))


def _part_row(part: Part) -> Entry:
    """The row of a part, empty until its event; its room is what it will show at last."""
    function, detail = Text("", "value", "function", part.function), Text("", "detail", "detail", part.detail)
    return Entry(part.key, (Text(part.label, "label"), function, detail))
