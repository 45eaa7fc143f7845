"""The one small file that remembers what a student has done: readable, written atomically, never thrown away."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import platformdirs

from .file_lock import held
from .outcomes import Outcome

Content = dict[str, dict[str, Any]]  # the records by exercise, as JSON
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Record:
    """What is remembered of one exercise."""

    state: str = "not attempted"  # the last verdict; "right" stays
    checks: int = 0
    hints: int = 0
    solution_seen: bool = False
    last: str = ""  # local time of the last change


TYPES = {field.name: type(field.default) for field in fields(Record)}


def path() -> Path:
    """Where the file lies: ``AUTODIFF_LAB_PROGRESS``, else ``progress.json`` in the user's data folder."""
    chosen = os.environ.get("AUTODIFF_LAB_PROGRESS")
    return Path(chosen) if chosen else platformdirs.user_data_path("autodiff-lab", appauthor=False) / "progress.json"


def records() -> tuple[dict[str, Record], str]:
    """What is remembered of each exercise, and a note where the file could not be read.

    A file that is not ours to understand is renamed, so that the next write does not destroy it.
    """
    note = ""
    try:
        try:
            content = _content()
        except ValueError:
            with _turn():
                content, note = _content_or_new()
    except OSError as error:
        return {}, f"Your progress could not be read ({error})."
    return {name: _record(entry) for name, entry in content.items()}, note


def _turn() -> AbstractContextManager[None]:
    """Wait until no other notebook changes the file, and keep them waiting."""
    return held(path().with_name(f"{path().name}.lock"))


def _content() -> Content:
    """The file as it stands, also with fields of a newer version; a ValueError where it is damaged."""
    try:
        found: Content = json.loads(_patiently(lambda: path().read_text(encoding="utf-8")))
        for entry in found.values():
            _record(entry)
    except FileNotFoundError:
        return {}
    except (TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path()} is damaged") from error
    return found


def _content_or_new() -> tuple[Content, str]:
    """The file as it stands; a damaged one is set aside, which a note tells."""
    try:
        return _content(), ""
    except ValueError:
        return {}, _set_aside()


def _record(entry: Mapping[str, Any]) -> Record:
    """What this version knows of an entry."""
    known = {name: value for name, value in entry.items() if name in TYPES}
    if wrong := [name for name, value in known.items() if not isinstance(value, TYPES[name])]:
        raise TypeError(f"not of the right type: {wrong}")
    return Record(**known)


def _set_aside() -> str:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    aside = path().with_name(f"{path().stem}.unreadable-{stamp}.json")
    _patiently(lambda: path().replace(aside))
    return f"Your progress file was damaged; it is kept as {aside}, and a new one begins."


def update(name: str, change: Callable[[Record], Record]) -> tuple[Record, str]:
    """Change what is remembered of one exercise; gives the new record, and a note where it could not be kept.

    Two notebooks may do so at once: each reads and writes in its turn.
    """

    def changed(content: Content) -> Record:
        return replace(change(_record(content.get(name, {}))), last=datetime.now().isoformat(" ", "seconds"))

    note = ""
    try:
        path().parent.mkdir(parents=True, exist_ok=True)
        with _turn():
            content, note = _content_or_new()
            record = changed(content)
            content[name] = {**content.get(name, {}), **asdict(record)}
            _write(json.dumps(content, indent=2) + "\n")
        return record, note
    except OSError as error:
        known, _ = records()
        said = f"{note} Your progress could not be saved to {path()} ({error})."
        return changed({one: asdict(record) for one, record in known.items()}), said.strip()


def _write(text: str) -> None:
    """Put the whole text in place at once, or leave the file as it was."""
    handle, temporary = tempfile.mkstemp(dir=path().parent, prefix=path().name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        _patiently(lambda: os.replace(temporary, path()))
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _patiently(step: Callable[[], Result]) -> Result:
    """Do it, several times if need be: Windows refuses while a reader or a virus scanner has the file open."""
    for pause in (0.01, 0.03, 0.1, 0.3):
        try:
            return step()
        except PermissionError:
            time.sleep(pause)
    return step()


def remember(outcome: Outcome) -> Outcome:
    """Keep what a check found; the outcome comes back with a note where that failed."""
    if outcome.verdict == "not attempted":
        return outcome

    def checked(before: Record) -> Record:
        state = "right" if before.state == "right" else outcome.verdict
        return replace(before, state=state, checks=before.checks + 1)

    _record, note = update(outcome.exercise, checked)
    return replace(outcome, notes=(*outcome.notes, note)) if note else outcome
