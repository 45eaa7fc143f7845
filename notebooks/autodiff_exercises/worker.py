"""Calling a student's function: one attempt a case, and the loop of the process in which that happens safely."""

from __future__ import annotations

import builtins
import contextlib
import copy
import faulthandler
import io
import os
import pickle
import signal
import struct
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from .sameness import same

MEMORY = (
    2 * 2**30
)  # bytes that a function may add: a list that grows for ever ends as MemoryError. Enforced on Linux only
CALLS_INSIDE_EACH_OTHER = 1000  # Python's usual recursion limit, whatever the notebook has set


@dataclass(frozen=True, slots=True)
class Failure:
    """How a call ended that gave no answer."""

    kind: str  # the exception's class: "KeyError"
    message: str
    line: int | None = None  # in the cell or file that defines the function

    def __str__(self) -> str:
        place = f" (line {self.line} of the cell or file that defines it)" if self.line else ""
        return f"{self.kind}: {self.message}{place}" if self.message else f"{self.kind}{place}"


@dataclass(frozen=True, slots=True)
class NotPlain:
    """Stands for an answer that cannot be sent from one process to another."""

    type_name: str

    def __repr__(self) -> str:
        return f"<{self.type_name} object>"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of the student's function: what came back, or how it failed."""

    number: int  # of the case; -1 where the function itself could not be loaded
    answer: Any = None
    failure: Failure | None = None
    changed_arguments: bool = False


def attempt(function: Callable[..., Any], number: int, arguments: tuple[Any, ...]) -> Attempt:
    """Call the function once on its own copy of the arguments; however it ends, this returns."""
    given = copy.deepcopy(arguments)
    try:
        with _quiet():
            answer = function(*given)
    except BaseException as error:
        return Attempt(number, failure=_failure(function, error))
    return Attempt(number, answer, changed_arguments=not same(given, arguments))


def _failure(function: Callable[..., Any], error: BaseException) -> Failure:
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__, limit=-50) if frame.filename == file]
    return Failure(type(error).__name__, str(error)[:200], lines[-1] if lines else None)


class _Forgetful(io.StringIO):
    """Takes any amount of output and keeps none."""

    def write(self, text: str) -> int:
        return len(text)


def _no_input(prompt: object = "") -> str:
    raise EOFError("input() was called, and nobody answers during a check: use the function's arguments")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Swallow what is printed, and refuse ``input()``, which would wait for ever."""
    ask, builtins.input = builtins.input, _no_input
    try:
        with contextlib.redirect_stdout(_Forgetful()), contextlib.redirect_stderr(_Forgetful()):
            yield
    finally:
        builtins.input = ask


# ---------------------------------------------------------------------------------------------------------- the process


def serve() -> None:
    """Take one job from standard input, write one frame for each case to standard output, and end.

    A job is a pickled ``(work, seconds)``, where the work is ``(function, cases)`` pickled once more. The student's code sees
    other standard streams, so nothing that it prints reaches the frames. A watchdog in C tells on standard error where
    the code was after ``seconds`` and ends the process, also when the notebook is gone or the code never gives up the
    interpreter.
    """
    jobs, answers, complaints = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(2), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    job = jobs.read()
    if job:
        pickled, seconds = pickle.loads(job)
        faulthandler.enable(complaints)
        faulthandler.dump_traceback_later(seconds, exit=True, file=complaints)
        _limit_memory()
        sys.setrecursionlimit(CALLS_INSIDE_EACH_OTHER)
        for one in _attempts(pickled):
            _send(answers, one)
    _end()


def _attempts(pickled: bytes) -> Iterator[Attempt]:
    try:
        function, cases = pickle.loads(pickled)
    except Exception as error:
        yield Attempt(-1, failure=Failure(type(error).__name__, str(error)[:200]))
        return
    for number, arguments in enumerate(cases):
        yield attempt(function, number, arguments)


def _end() -> None:
    """End now, with all processes and threads that the student's code may have left."""
    if sys.platform != "win32" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def _limit_memory() -> None:
    """Limit what may be added to the address space, of which the threads of NumPy's BLAS alone may hold gigabytes."""
    if sys.platform == "linux":
        import resource

        with open("/proc/self/statm") as sizes:
            limit = int(sizes.read().split()[0]) * resource.getpagesize() + MEMORY
        _soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard == resource.RLIM_INFINITY or hard > limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _send(stream: BinaryIO, one: Attempt) -> None:
    """Write one frame: eight bytes of length, then the pickled attempt."""
    try:
        data = pickle.dumps(one)
    except Exception:
        data = pickle.dumps(replace(one, answer=NotPlain(type(one.answer).__name__)))
    stream.write(struct.pack(">Q", len(data)) + data)
    stream.flush()


def received(data: bytes) -> Iterator[Attempt]:
    """The complete frames among what a process wrote before it ended."""
    number = 0
    while len(data) >= 8:
        (length,) = struct.unpack(">Q", data[:8])
        frame, data = data[8 : 8 + length], data[8 + length :]
        if len(frame) < length:
            return
        try:
            yield pickle.loads(frame)
        except Exception:  # a class that exists over there only
            yield Attempt(number, answer=NotPlain("foreign"))
        number += 1
