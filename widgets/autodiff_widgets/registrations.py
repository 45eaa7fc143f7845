"""What a registration consists of, from its events: the parts, what each is for, and who reads it later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from autodiff_lab import events
from autodiff_lab.events import Event

from .captions import counted, listed
from .captions.registration import PURPOSES
from .facts import Rows


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads parts of a registration, and for what."""

    name: str
    reads: tuple[str, ...]  # kinds of parts
    why: str
    is_optional: bool = False  # works without one of them too

    @property
    def key(self) -> str:
        """The key of the reader's element."""
        return f"reader: {self.name}"


READERS = (
    Reader("a call", ("kernel",), "runs the kernel that dispatch chooses for device and dtype"),
    Reader("recording a graph", ("shape rule", "dtype rule"), "asks what comes out, and runs nothing"),
    Reader("memory planning", ("shape rule", "dtype rule"), "knows the bytes of every value before the first one exists"),
    Reader("fusion", ("shape rule", "dtype rule"), "joins neighbours whose results have one shape and dtype"),
    Reader("placement", ("kernel", "shape rule", "dtype rule"), "asks which devices have a kernel, and how much must move"),
    Reader("backward", ("vjp rule",), "calls the rule of every input that needs a gradient"),
    Reader("forward mode", ("jvp rule",), "calls the rule of every input that moves"),
    Reader("many calls at once", ("batch rule",), "runs the op on a stack; without the rule it loops", is_optional=True),
    Reader("whoever writes a call", ("schema", "binding"), "finds a function with signature and help", is_optional=True),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an op's registration."""

    op: str
    kind: str  # a key of PURPOSES
    label: str  # "vjp rule for x"
    function: str  # "mul_vjp_x"
    detail: str  # what it reads, takes, serves or saves
    source: Any = None
    is_default: bool = False

    @property
    def key(self) -> str:
        """The key of the part's element: the same in every view."""
        return f"{self.op}: {self.label}"

    @property
    def readers(self) -> tuple[Reader, ...]:
        """Who reads it later."""
        return tuple(reader for reader in READERS if self.kind in reader.reads)

    @property
    def named(self) -> str:
        """The function, and whether somebody wrote it."""
        return f"{self.function} (by itself)" if self.is_default else self.function

    def facts(self) -> Rows:
        """The rows of the details panel."""
        rows = [
            (self.kind, self.named),
            ("what", self.detail),
            ("for", PURPOSES[self.kind]),
            ("read by", "; ".join(f"{reader.name}: {reader.why}" for reader in self.readers)),
            ("written in", "" if self.source is None else str(self.source)),
        ]
        return tuple((label, value) for label, value in rows if value)


def key_words(device: str, dtype: str) -> str:
    """What a kernel is for, in few words.

    >>> key_words("any", "float32")
    'any library, float32'
    """
    return f"{'any library' if device == 'any' else device}, {'any dtype' if dtype == 'any' else dtype}"


def part_of(event: Event) -> Part | None:
    """The part that an event registers; None for an event of something else.

    >>> part_of(events.KernelRegistered("mul", "mul_c", "cpu", "float32", None)).detail
    'for cpu, float32'
    """
    match event:
        case events.SchemaRegistered(op, inputs, outputs, attributes, source):
            takes = ", ".join([*inputs, *attributes])
            return Part(op, "schema", "schema", op, f"{takes} → {', '.join(outputs)}", source)
        case events.RuleRegistered(op, kind, argument, rule, reads, attributes, is_default, source):
            label = f"{kind} for {argument}" if argument else kind
            return Part(op, kind, label, rule, f"reads {', '.join([*reads, *attributes])}", source, is_default)
        case events.KernelRegistered(op, kernel, device, dtype, source):
            return Part(op, "kernel", f"kernel {device}, {dtype}", kernel, f"for {key_words(device, dtype)}", source)
        case events.BindingGenerated(op, signature, saved, _):
            return Part(op, "binding", "binding", signature, f"saves {', '.join(saved) or 'nothing'}")
    return None


def parts_of(heard: Iterable[Event]) -> dict[str, Part]:
    """The parts by key, in the order in which they came; one that is registered again counts as it is at last."""
    return {part.key: part for part in map(part_of, heard) if part is not None}


def readers_of(parts: Iterable[Part]) -> list[Reader]:
    """The readers that a registration with these parts is for."""
    kinds = {part.kind for part in parts}
    return [reader for reader in READERS if not reader.is_optional or kinds & set(reader.reads)]


def lacking(reader: Reader, parts: Iterable[Part]) -> list[str]:
    """The kinds of parts that a reader needs and that are not there."""
    kinds = {part.kind for part in parts}
    return [] if reader.is_optional else [kind for kind in reader.reads if kind not in kinds]


def reader_facts(reader: Reader) -> Rows:
    """The rows of the details panel."""
    return (("reads", listed([f"the {kind}" for kind in reader.reads])), ("why", reader.why))


def by_op(parts: Iterable[Part]) -> dict[str, list[Part]]:
    """The parts of each op: several ops may have one definition."""
    found: dict[str, list[Part]] = {}
    for part in parts:
        found.setdefault(part.op, []).append(part)
    return found


def whole_name(parts: Sequence[Part]) -> str:
    """What is registered, for a title: the op, or the ops of one definition."""
    names = list(by_op(parts))
    return names[0] if len(names) == 1 else f"{names[0].partition('.')[0]} ({counted(len(names), 'op')})"
