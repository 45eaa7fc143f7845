"""What sentences are made of: the registry from event kinds to sentences, names, and lists and counts in English."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from autodiff_lab.events import Event


@dataclass(frozen=True)
class Names:
    """How sentences call things: nodes by id or by serial number, whichever the events have."""

    of: Callable[[int], str]
    saved: Callable[[int, str], str] = lambda node, name: (
        f"what it calls {name}"
    )  # a value that a node's rules know by a name
    contributions: Mapping[int, int] = field(default_factory=dict)  # how many each node receives, where that is known

    def __call__(self, node: int) -> str:
        """The name of a node."""
        return self.of(node)

    def call(self, op: str, inputs: Iterable[int | None]) -> str:
        """An op with its operands: ``mul(`x`, `w`)``."""
        return f"{op}({', '.join('a constant' if i is None else self(i) for i in inputs)})"


Sentence = Callable[[Any, Names], str]

SENTENCES: dict[type[Event], Sentence] = {}


def says(kind: type[Event]) -> Callable[[Sentence], Sentence]:
    """Register the sentence of an event kind."""

    def register(sentence: Sentence) -> Sentence:
        SENTENCES[kind] = sentence
        return sentence

    return register


def caption(event: Event, name: Names) -> str:
    """The sentence of an event.

    >>> from autodiff_lab import events
    >>> caption(events.NodeEnqueued(3), Names(lambda node: f"`n{node}`"))
    '`n3` waits for nothing more: it joins the end of the queue.'
    """
    return capitalised(SENTENCES[type(event)](event, name))


def listed(words: list[str]) -> str:
    """Words as English writes a list.

    >>> listed(["`x`", "`w`", "`b`"])
    '`x`, `w` and `b`'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def few(words: Iterable[str], most: int = 4) -> str:
    """Words as English writes a list, the first few of many.

    >>> few("abcdef")
    'a, b, c, d and 2 more'
    """
    every = list(words)
    return listed(every if len(every) <= most else [*every[:most], f"{len(every) - most} more"])


def counted(count: int, word: str) -> str:
    """``1 input``, ``2 inputs``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def percent(part: float) -> str:
    """A share as a whole percentage."""
    return f"{100 * part:.0f} %"


def capitalised(text: str) -> str:
    """A sentence that begins with a capital, unless it begins with a name in backquotes."""
    return f"{text[:1].upper()}{text[1:]}"


def of_one(name: str, text: str) -> str:
    """What is said of one of several things.

    >>> of_one("`fifo`", "At 3 s nothing changes.")
    '`fifo`: at 3 s nothing changes.'
    """
    return f"{name}: {text[:1].lower()}{text[1:]}"


def and_note(text: str, *notes: str) -> str:
    """An opening with the notes that a picture needs, where there are some."""
    return " ".join(filter(None, [text, *notes]))
