"""The progress file under stress: several notebooks at once, killed, suspended and newer ones, folders that refuse."""

from __future__ import annotations

import errno
import functools
import json
import multiprocessing
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from autodiff_exercises import file_lock, progress_file
from autodiff_exercises.outcomes import Outcome
from autodiff_exercises.progress_file import Record

pytestmark = pytest.mark.usefixtures("own_progress")
SPAWN = multiprocessing.get_context("spawn")  # as on every system


def count_up(names: Sequence[str], told: Connection | None = None) -> None:
    """What a notebook does: one more check of each of these exercises, each told when it is kept."""
    for name in names:
        _record, note = progress_file.update(name, lambda before: replace(before, checks=before.checks + 1))
        assert note == ""
        if told is not None:
            told.send(name)


def write_without_a_pause(names: Sequence[str], told: Connection | None = None) -> None:
    """A notebook that checks more often than anybody can, on a machine that may be busy: it is given time for its turns."""
    progress_file.held = functools.partial(file_lock.held, patience=120.0)  # in this process only
    count_up(names, told)


def counts() -> dict[str, int]:
    return {name: record.checks for name, record in progress_file.records()[0].items()}


@pytest.mark.slow
def test_notebooks_that_write_at_once_lose_nothing() -> None:
    random = Random(0)
    plans = [[random.choice("abcd") for _ in range(random.randint(20, 40))] for _ in range(4)]
    notebooks = [SPAWN.Process(target=write_without_a_pause, args=(plan,)) for plan in plans]
    for one in notebooks:
        one.start()
    while any(one.is_alive() for one in notebooks):
        assert progress_file.records()[1] == ""  # a reader never meets half a file
        time.sleep(0.005)
    assert [one.exitcode for one in notebooks] == [0] * 4
    assert counts() == Counter(name for plan in plans for name in plan)


def test_threads_of_one_notebook_take_turns_too() -> None:
    threads = [threading.Thread(target=count_up, args=("ab" * 10,)) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert counts() == {"a": 40, "b": 40}


@pytest.mark.slow
def test_a_killed_notebook_keeps_nobody_waiting_and_loses_nothing_that_it_told() -> None:
    ours, theirs = SPAWN.Pipe(duplex=False)
    notebook = SPAWN.Process(target=write_without_a_pause, args=("a" * 100_000, theirs))
    notebook.start()
    told = sum(bool(ours.recv()) for _ in range(50))
    notebook.kill()
    notebook.join()
    while ours.poll():
        told += bool(ours.recv())
    count_up("b")
    assert counts()["b"] == 1 and counts()["a"] in (told, told + 1)


def test_where_somebody_keeps_the_lock_progress_is_told_as_not_saved_and_stays_as_it_was(
    own_progress: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_up("a")
    before = own_progress.read_text()
    patient = file_lock.held
    monkeypatch.setattr(progress_file, "held", lambda path: patient(path, patience=0.05))
    with patient(own_progress.with_name("progress.json.lock")):
        found = progress_file.remember(Outcome("a", "right"))
        assert counts() == {"a": 1}  # reading needs no turn
    assert found.right and "another program keeps progress.json.lock" in found.notes[0]
    assert own_progress.read_text() == before
    assert progress_file.remember(Outcome("a", "right")).notes == ()


def test_a_file_system_without_locks_is_written_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_handle: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(file_lock, "_take", refuse)
    count_up("aa")
    assert counts() == {"a": 2}


def test_on_windows_the_first_byte_is_locked_and_freed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, int, int]] = []

    def locking(handle: int, mode: str, length: int) -> None:
        calls.append((mode, os.lseek(handle, 0, os.SEEK_CUR), length))
        if len(calls) == 1:
            raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(sys, "platform", "win32")
    windows = SimpleNamespace(locking=locking, LK_NBLCK="lock", LK_UNLCK="free")
    monkeypatch.setitem(sys.modules, "msvcrt", windows)  # type: ignore[arg-type]
    with file_lock.held(tmp_path / "lock"):
        assert calls == [("lock", 0, 1), ("lock", 0, 1)]
    assert calls[2:] == [("free", 0, 1)]


def test_a_file_that_a_reader_has_open_for_a_moment_is_replaced_when_it_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusals, replacing = iter([True, True]), os.replace

    def busy(source: str, target: Path) -> None:
        if next(refusals, False):
            raise PermissionError(errno.EACCES, "Access is denied")
        replacing(source, target)

    monkeypatch.setattr(os, "replace", busy)
    count_up("a")
    assert counts() == {"a": 1} and next(refusals, None) is None


def test_what_a_newer_version_wrote_is_kept(own_progress: Path) -> None:
    newer: dict[str, Any] = {"a": {"checks": 4, "seconds": [1.5]}, "about": {"version": 7}, "b": {"medal": "gold"}}
    own_progress.write_text(json.dumps(newer))
    count_up("aac")
    kept = json.loads(own_progress.read_text())
    assert kept["about"] == newer["about"] and kept["b"] == newer["b"]
    assert kept["a"]["seconds"] == [1.5] and kept["a"]["checks"] == 6
    assert progress_file.records()[0]["b"] == Record()


def test_a_file_that_cannot_be_read_is_never_written_over(own_progress: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count_up("a")
    before, reading = own_progress.read_text(), Path.read_text

    def refuse(path: Path, *arguments: Any, **named: Any) -> str:
        if path == own_progress:
            raise PermissionError(errno.EACCES, "Permission denied")
        return reading(path, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", refuse)
        found = progress_file.remember(Outcome("b", "right"))
        assert "could not be read" in progress_file.records()[1]
    assert found.right and "could not be saved" in found.notes[0]
    assert own_progress.read_text() == before


def test_a_folder_that_may_not_be_written_is_told_and_what_is_known_still_shows(
    own_progress: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_up("a")
    opening = os.open

    def read_only(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & os.O_CREAT and Path(path).parent == own_progress.parent:
            raise OSError(errno.EROFS, "Read-only file system")
        return opening(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", read_only)  # permissions would not stop root
    found = progress_file.remember(Outcome("a", "wrong"))
    assert found.verdict == "wrong" and "Read-only file system" in found.notes[0]
    assert counts() == {"a": 1}


def test_the_file_can_be_read_by_a_person(own_progress: Path) -> None:
    progress_file.remember(Outcome("topological_order", "right"))
    assert own_progress.read_text().startswith('{\n  "topological_order": {\n    "state": "right",\n    "checks": 1,\n')
