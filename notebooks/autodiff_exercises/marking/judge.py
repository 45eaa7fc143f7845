"""The process that marks one submission: it reads the notebook, has each answer checked, and tells line by line.

It runs no code of the submission. That runs in a process of its own for each exercise, like any check. This one may still be
ended at any moment, by code that ends its parent or by an answer that takes for ever to compare; so it tells what it
begins, and whoever started it begins another one after that exercise.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import tempfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..checking import examine
from ..exercise import Exercise
from ..outcomes import Outcome
from ..registry import EXERCISES
from ..worker import limit_memory
from .notebooks import Cell, Unreadable, cells_of, lessons_of
from .slicing import NoAnswer, answer_of


@dataclass(frozen=True, slots=True)
class Job:
    """What to mark, and how; it travels as JSON."""

    file: str
    names: tuple[str, ...]  # of file and folders: one may be a lesson's
    lesson: str  # which to mark; empty: which it answers
    seed: int
    seconds: float | None  # for all calls of an exercise; None: what the exercise says
    done: tuple[str, ...]  # exercises that are marked already
    alone: bool  # this process has a namespace of its own


def judge(job: Job) -> None:
    """Tell which exercises the submission should answer, then for each what it begins and what it found."""
    try:
        cells = cells_of(Path(job.file))
    except Unreadable as error:
        _tell(unreadable=str(error))
        return
    lessons = [job.lesson] if job.lesson else lessons_of(cells, job.names)
    if not lessons:
        _tell(unreadable="it has no cell that answers an exercise")
        return
    asked = [one for one in EXERCISES.values() if one.lesson in lessons]
    _tell(exercises=[one.name for one in asked])
    for exercise in asked:
        if exercise.name not in job.done:
            _tell(begins=exercise.name)
            limited = replace(exercise, seconds=job.seconds or exercise.seconds)
            _tell(found=as_plain(marked(cells, limited, job.seed)))
    _tell(end=True)


def marked(cells: list[Cell], exercise: Exercise, seed: int) -> Outcome:
    """What the answer in these cells is worth; nothing that it does stops this."""
    try:
        return examine(exercise, answer_of(cells, exercise.name), seed, marking=True)
    except NoAnswer as none:
        return Outcome(exercise.name, none.verdict, why=str(none), marking=True)
    except Exception as error:  # an answer that nobody foresaw: nested so deeply that it cannot be compared, say
        why = f"the check of what it returned stopped with {type(error).__name__}"
        return Outcome(exercise.name, "could not be checked", why=why, marking=True)


def as_plain(outcome: Outcome) -> dict[str, Any]:
    """What of an outcome is told, as JSON can hold it."""
    names = ("exercise", "verdict", "checks", "misconception", "message", "raised", "why", "notes")
    return {name: getattr(outcome, name) for name in names}


def _tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)


# --------------------------------------------------------------------------------------------------------- the process


def main() -> None:
    """Take one job from standard input; end when that is closed, so that nothing runs on when the marking has ended."""
    job = Job(**json.loads(sys.stdin.readline()))
    threading.Thread(target=_end_with_whoever_asked, daemon=True).start()
    if job.alone:
        make_files_read_only()
    limit_memory()
    judge(job)


def _end_with_whoever_asked() -> None:
    while os.read(0, 4096):  # not sys.stdin: a thread that waits there holds a lock that Python wants when it ends
        pass
    os._exit(1)


class _Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user")]


def make_files_read_only() -> None:
    """In a mount namespace of its own, make all files read-only, and this folder a place in memory for what is passed on.

    Where the system refuses (Linux before 5.12), files stay as they are.
    """
    here, tmpfs, read_only, below = os.getcwd(), b"tmpfs", 1, 0x8000  # AT_RECURSIVE
    if ctypes.CDLL(None).mount(tmpfs, here.encode(), tmpfs, 0, b"size=256m") == 0:
        _set_mount(b"/", below, _Attributes(set=read_only))
        _set_mount(here.encode(), 0, _Attributes(clear=read_only))
        os.chdir(here)
        tempfile.tempdir = here


def _set_mount(place: bytes, flags: int, attributes: _Attributes) -> None:
    mount_setattr, from_the_top = 442, -100  # the number of the call, the same on every processor; AT_FDCWD
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    ctypes.CDLL(None).syscall(mount_setattr, from_the_top, place, flags, ctypes.byref(attributes), size)


if __name__ == "__main__":
    main()
