"""The one small file that remembers what a student has done: readable, written atomically, never thrown away."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

import platformdirs

from .outcomes import Outcome


@dataclass(frozen=True, slots=True)
class Record:
    """What is remembered of one exercise."""

    state: str = "not attempted"  # the last verdict; "right" stays
    checks: int = 0
    hints: int = 0
    solution_seen: bool = False
    last: str = ""  # local time of the last change


def path() -> Path:
    """Where the file lies: ``AUTODIFF_LAB_PROGRESS``, else ``progress.json`` in the user's data folder."""
    chosen = os.environ.get("AUTODIFF_LAB_PROGRESS")
    return Path(chosen) if chosen else platformdirs.user_data_path("autodiff-lab", appauthor=False) / "progress.json"


def records() -> tuple[dict[str, Record], str]:
    """What is remembered of each exercise, and a note where the file could not be read.

    A file that is not ours to understand is renamed, so that the next write does not destroy it.
    """
    try:
        content = json.loads(path().read_text(encoding="utf-8"))
        return {name: Record(**fields) for name, fields in content.items()}, ""
    except FileNotFoundError:
        return {}, ""
    except OSError as error:
        return {}, f"Your progress could not be read ({error})."
    except (ValueError, TypeError, AttributeError):
        return {}, _set_aside()


def _set_aside() -> str:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    aside = path().with_name(f"{path().stem}.unreadable-{stamp}.json")
    try:
        path().replace(aside)
    except OSError as error:
        return f"Your progress file {path()} is damaged and could not be moved aside ({error})."
    return f"Your progress file was damaged; it is kept as {aside}, and a new one begins."


def update(name: str, change: Callable[[Record], Record]) -> tuple[Record, str]:
    """Change what is remembered of one exercise; gives the new record, and a note where it could not be kept."""
    known, note = records()
    record = replace(change(known.get(name, Record())), last=datetime.now().isoformat(" ", "seconds"))
    known[name] = record
    try:
        _write(json.dumps({key: asdict(value) for key, value in known.items()}, indent=2) + "\n")
    except OSError as error:
        note = f"{note} Your progress could not be saved to {path()} ({error}).".strip()
    return record, note


def _write(text: str) -> None:
    """Put the whole text in place at once, or leave the file as it was."""
    path().parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path().parent, prefix=path().name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path())
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def remember(outcome: Outcome) -> Outcome:
    """Keep what a check found; the outcome comes back with a note where that failed."""
    if outcome.verdict == "not attempted":
        return outcome

    def checked(before: Record) -> Record:
        state = "right" if before.state == "right" else outcome.verdict
        return replace(before, state=state, checks=before.checks + 1)

    _record, note = update(outcome.exercise, checked)
    return replace(outcome, notes=(*outcome.notes, note)) if note else outcome
