"""Processes for checks: each bears a mark that everything it starts inherits, so that all of it can be ended together.

A mark stands in the environment. Unlike a process group it also reaches a process that began a session of its own, or
whose parent is gone. The notebook ends what is marked after each check. One guard, started with the first check, does it
when the notebook itself has ended, however that came about. This file runs as the guard, so it imports nothing of ours.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import psutil

MARK = "AUTODIFF_LAB_CHECK"
SAME_ORDER = "PYTHONHASHSEED"  # 0: sets have the same order in every check
ROUNDS = 20  # a tree that grows while it is being ended needs more than one look
_NOTEBOOK = uuid.uuid4().hex  # the marks of this notebook's processes begin with it


def inside_a_check() -> bool:
    """Whether this process was started by a check, directly or not."""
    return MARK in os.environ


@contextlib.contextmanager
def as_if_inside_a_check() -> Iterator[None]:
    """Mark this process itself for a ``with`` block, in which it calls the function that is being checked."""
    os.environ[MARK] = "the notebook itself"
    try:
        yield
    finally:
        del os.environ[MARK]


@dataclass(frozen=True, slots=True)
class Ended:
    """What a process for checks had written on its two streams when it ended, and how it ended."""

    written: bytes
    complaint: bytes
    code: int | None  # its exit code, or the negative of the signal that ended it
    late: bool = False  # it had to be ended


class CheckProcess(subprocess.Popen[bytes], ABC):
    """A Python process for checks, with a mark of its own."""

    def __init__(self, code: str, variables: Mapping[str, str] = MappingProxyType({}), **streams: Any) -> None:
        if inside_a_check():
            raise RuntimeError("a process for checks does not start another one")
        _start_guard()
        self.mark = f"{_NOTEBOOK}-{uuid.uuid4().hex}"
        super().__init__(
            [sys.executable, "-c", code],
            env={**environment(), **variables, MARK: self.mark, SAME_ORDER: "0"},
            start_new_session=True,  # an interrupt of the notebook stays with the notebook; ignored on Windows
            creationflags=_NO_WINDOW,
            **streams,
        )

    @abstractmethod
    def work(self, job: bytes, seconds: float) -> Ended:
        """Have a job done by a process that does no other, within a time; nothing that it started is left then."""

    def close(self) -> tuple[bytes, bytes]:
        """End all and return what is in the pipes; nothing where a grandchild still holds them."""
        self.end()
        try:
            written, complaint = self.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            return b"", b""
        return written or b"", complaint or b""

    def end(self) -> None:
        """End the process and everything that it started."""
        started = _descendants(self.pid) if self.poll() is None else []
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self.kill()
        _end(started)
        end_marked(self.mark)


class Starter(CheckProcess):
    """A process that is started for each job, as every system can."""

    def __init__(self, code: str) -> None:
        super().__init__(code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def work(self, job: bytes, seconds: float) -> Ended:
        """Let this process read the job, and wait for its end."""
        try:
            written, complaint = self.communicate(job, seconds)
        except subprocess.TimeoutExpired:
            return Ended(*self.close(), self.returncode, late=True)
        self.end()  # what the student's code may have started
        return Ended(written, complaint, self.returncode)


def end_marked(mark: str, spared: int = 0) -> None:
    """End every process whose mark begins like this, and what those started; but not the one whose number is spared."""
    for _ in range(ROUNDS):
        marked = (process for process in psutil.process_iter() if _mark_of(process).startswith(mark))
        found = [process for process in marked if process.pid != spared]
        if not found:
            return
        _end([*found, *(one for process in found for one in _descendants(process.pid))])


def _mark_of(process: psutil.Process) -> str:
    try:
        return str(process.environ().get(MARK, ""))
    except (psutil.Error, OSError):  # it belongs to somebody else, or has ended
        return ""


def _descendants(process: int) -> list[psutil.Process]:
    try:
        return list(psutil.Process(process).children(recursive=True))
    except (psutil.Error, OSError):
        return []


def _end(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            process.kill()


# ------------------------------------------------------------------------------------------------------------ the guard

_NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)
_guards: list[subprocess.Popen[bytes]] = []


def environment() -> dict[str, str]:
    """The variables of a process that finds the modules which this one finds."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path())}


def path() -> list[str]:
    """Where this process finds modules, as places that are the same from every folder."""
    return [os.path.abspath(place) for place in sys.path]


def _start_guard() -> None:
    if _guards and _guards[0].poll() is None:
        return
    _guards[:] = [
        subprocess.Popen(
            [sys.executable, "-P", __file__, _NOTEBOOK],  # -P: this folder's modules are not the standard library's
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
            start_new_session=True,
            creationflags=_NO_WINDOW,
        )
    ]


@atexit.register
def _dismiss_guard() -> None:
    while _guards:
        _guards.pop().communicate()


if __name__ == "__main__":
    sys.stdin.buffer.read()  # comes to its end when the notebook does, even when that is killed
    end_marked(sys.argv[1])
