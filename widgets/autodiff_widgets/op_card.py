"""OpCard: one op's whole registration on one card."""

from __future__ import annotations

from typing import Any

from autodiff_lab.events import Event

from .captions import listed
from .captions.registration import card_caption
from .registrations import Part, by_op, parts_of, whole_name
from .scene import Change, Frame, Scene
from .shapes import Text
from .subjects import registration_of
from .tables import Entry, table
from .view import View

LEGEND = (("done", "written for this op"), ("ready", "comes by itself"))
SECTIONS = {
    "Rules": ("shape rule", "dtype rule", "batch rule"),
    "Kernels": ("kernel",),
    "Gradient": ("vjp rule", "jvp rule"),
    "Binding": ("binding",),
}


class OpCard(View):
    """An op's schema with types, its rules with their lines, its kernels by device and dtype, and who reads what.

    Args:
        subject: an op, its name or the function that users call.

    Raises:
        TypeError, ValueError: there is no such op; says what to pass.

    >>> card = OpCard("exp")
    >>> [value for label, value in card.scene.facts["exp: vjp rule for x"] if label == "what"]
    ['reads g, out']
    """

    def __init__(self, subject: Any, **traits: Any) -> None:
        heard = registration_of(subject, "OpCard")
        super().__init__(card_scene(heard), heard, **traits)


def card_scene(heard: list[Event]) -> Scene:
    """The scene of a registration as it is at last: one frame."""
    parts = list(parts_of(heard).values())
    lines = [line for op, own in by_op(parts).items() for line in _card(op, own)]
    changes = [Change(part.key, "ready" if part.is_default else "done") for part in parts]
    name = whole_name(parts)
    frame = Frame(card_caption(name), tuple(changes))
    return Scene(
        f"Op {name}", (table(f"Op {name}", lines),), (frame,), {part.key: part.facts() for part in parts}, LEGEND
    )


def _card(op: str, parts: list[Part]) -> list[str | Entry]:
    """The lines of one op: a heading for each kind of part, with who reads it."""
    schema, *rest = parts
    lines: list[str | Entry] = [f"{op}: {schema.detail}", _row(schema)]
    for heading, kinds in SECTIONS.items():
        there = [part for kind in kinds for part in rest if part.kind == kind]
        readers = dict.fromkeys(reader.name for part in there for reader in part.readers)
        lines += [f"{heading}: read by {listed(list(readers))}" if there else f"{heading}: none", *map(_row, there)]
    return lines


def _row(part: Part) -> Entry:
    place = "" if part.source is None else str(part.source).partition(": ")[0]
    cells = Text(part.label, "label"), Text(part.function, "value"), Text(part.detail), Text(place)
    return Entry(part.key, cells)
