"""OpCard: one op's whole registration on one card."""

from __future__ import annotations

from typing import Any

from autodiff_lab.events import Event

from .registrations import Part, Reader, by_op, lacking, parts_of, reader_facts, readers_of, whole_name
from .scene import Change, Frame, Scene
from .shapes import Text
from .subjects import registration_of
from .tables import Entry, table
from .view import View

LEGEND = (
    ("done", "written for this op"), ("ready", "comes by itself"), ("waiting", "lacks a part"),
)  # fmt: skip


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
    readers = readers_of(parts)
    lines = [line for op, own in by_op(parts).items() for line in _card(op, own)]
    lines += ["Who reads what", *(_reader_row(reader, parts) for reader in readers)]
    changes = [Change(part.key, "ready" if part.is_default else "done") for part in parts]
    changes += [Change(reader.key, "waiting" if lacking(reader, parts) else "done") for reader in readers]
    facts = {part.key: part.facts() for part in parts} | {reader.key: reader_facts(reader) for reader in readers}
    said = (
        f"All that is registered of {whole_name(parts)}. Select a row to see what it is for and where it was written."
    )
    frames = (Frame(said, tuple(changes)),)
    return Scene(f"Op {whole_name(parts)}", (table("Card", lines),), frames, facts, LEGEND)


def _card(op: str, parts: list[Part]) -> list[str | Entry]:
    """The lines of one op: a heading for each kind of part."""
    lines: list[str | Entry] = []
    for heading, kinds in (
        (op, ("schema", "binding")), ("Rules", ("shape rule", "dtype rule", "batch rule")), ("Kernels", ("kernel",)),
        ("Gradient", ("vjp rule", "jvp rule")),
    ):  # fmt: skip
        rows = [_part_row(part) for kind in kinds for part in parts if part.kind == kind]
        lines += [heading, *rows] if rows else []
    return lines


def _part_row(part: Part) -> Entry:
    place = "" if part.source is None else str(part.source).partition(": ")[0]
    return Entry(
        part.key,
        (Text(part.label, "label"), Text(part.named, "value"), Text(part.detail), Text(place)),
    )


def _reader_row(reader: Reader, parts: list[Part]) -> Entry:
    missing = lacking(reader, parts)
    has = f"no {' and no '.join(missing)}" if missing else ", ".join(reader.reads)
    return Entry(reader.key, (Text(reader.name, "label"), Text(has)))
