"""Lessons in another language: a translator's text in place of each Markdown cell, found by the English that it translates.

A file of translations holds, for each cell, a mark with the key of the English text, then the text in the other language. Where
the English has changed since, its key has too: the cell is shown in English again, until somebody looks at it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

MARK = re.compile(r"^<!-- ([0-9a-f]{8}) -->\n", re.M)


def key_of(english: str) -> str:
    """The key of a text: eight hexadecimal digits that change when the text does.

    >>> key_of("# A program is a graph")
    '17070ae8'
    """
    return hashlib.sha256(english.encode()).hexdigest()[:8]


def read(path: Path) -> dict[str, str]:
    """The translations of a file by the keys of their English; none where there is no file."""
    if not path.exists():
        return {}
    _head, *parts = MARK.split(path.read_text(encoding="utf-8"))
    return {key: text.strip() for key, text in zip(parts[::2], parts[1::2], strict=True)}


def to_translate(texts: Iterable[str], known: Mapping[str, str]) -> str:
    """A file to work on: what is translated already stands as it is, the rest in English."""
    return "\n\n".join(f"<!-- {key_of(text)} -->\n{known.get(key_of(text), text)}" for text in texts) + "\n"
