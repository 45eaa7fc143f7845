"""Calling a student's function: one attempt a case, and the loop of the process in which that happens safely."""

from __future__ import annotations

import builtins
import contextlib
import copy
import faulthandler
import functools
import inspect
import io
import os
import pickle
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

from .sameness import same

MEMORY = (
    2 * 2**30
)  # bytes that a function may add: a list that grows for ever ends as MemoryError. Enforced on Linux only
PRINTED = 1000  # characters of what one call prints that are kept
LARGEST = 4 * 2**20  # bytes of one answer, pickled: the largest right ones have 100,000
ALL_ANSWERS = 4 * LARGEST  # after so much, the calls that are left cannot change the verdict
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
    """Stands for an answer that cannot be sent from one process to another, or that is too large for it."""

    type_name: str
    items: int | None = None  # where it is too large

    def __repr__(self) -> str:
        return f"<{self.type_name} object>" if self.items is None else f"<{self.type_name} of {self.items:,} items>"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of the student's function: what came back, or how it failed."""

    number: int  # of the case; -1 where the function itself could not be loaded
    answer: Any = None
    failure: Failure | None = None
    changed_arguments: bool = False
    seconds: float = field(default=0.0, compare=False)  # how long it took


@dataclass(frozen=True, slots=True)
class Printed:
    """A piece of what a call printed."""

    number: int  # of the case
    text: str


Tell = Callable[[Printed], None]


def attempt(function: Callable[..., Any], number: int, arguments: tuple[Any, ...], tell: Tell) -> Attempt:
    """Call the function once on its own copy of the arguments; however it ends, this returns.

    What it prints is told while it runs, since a call may never end.
    """
    given = copy.deepcopy(arguments)
    began = time.perf_counter()
    try:
        with _heard(_FirstWords(lambda text: tell(Printed(number, text)))):
            answer = function(*given)
    except BaseException as error:
        return Attempt(number, failure=_failure(function, error), seconds=time.perf_counter() - began)
    return Attempt(number, answer, changed_arguments=_changed(given, arguments), seconds=time.perf_counter() - began)


def _changed(given: tuple[Any, ...], arguments: tuple[Any, ...]) -> bool:
    try:
        return not same(given, arguments)
    except Exception:  # something in it cannot be compared, and that is not ours
        return True


def file_of(function: Callable[..., Any]) -> str:
    """The cell or file that defines a function, also one that is decorated; empty where that is not known."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code.co_filename if code else ""


def _failure(function: Callable[..., Any], error: BaseException) -> Failure:
    file = file_of(function)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__, limit=-50) if frame.filename == file]
    return Failure(type(error).__name__, _said_by(error), lines[-1] if lines else None)


def _said_by(error: BaseException) -> str:
    try:
        return str(error)[:200]
    except BaseException as inner:
        return f"(it cannot say more: its own `__str__` raised {type(inner).__name__})"


class _FirstWords(io.TextIOBase):
    """Takes any amount of output and passes on the beginning."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell, self.left = tell, PRINTED

    def write(self, text: str) -> int:
        kept = text[: self.left]
        self.left -= len(kept)
        if kept:
            self.tell(kept)
        return len(text)


def _display(*objects: object, **_options: object) -> None:
    """What ``display`` does where there is no notebook: it prints each object."""
    for one in objects:
        print(repr(one))


def _no_input(prompt: object = "") -> str:
    raise EOFError("input() was called, and nobody answers during a check: use the function's arguments")


@contextlib.contextmanager
def _heard(output: io.TextIOBase) -> Iterator[None]:
    """Take what is printed or displayed, and refuse ``input()``, which would wait for ever."""
    missing = object()
    stand_ins = {"input": _no_input, "display": _display}
    before = {name: getattr(builtins, name, missing) for name in stand_ins}
    vars(builtins).update(stand_ins)
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            yield
    finally:
        for name, value in before.items():
            if value is missing:
                vars(builtins).pop(name, None)
            else:
                setattr(builtins, name, value)


# ---------------------------------------------------------------------------------------------------------- the process


def serve() -> None:
    """Take one job from standard input, write frames to standard output, one for each case and each piece of print, and end.

    A job is a pickled ``(work, seconds, each)``, where the work is ``(function, cases)`` pickled once more. The student's
    code sees other standard streams, so nothing that it prints reaches the frames. A watchdog in C tells on standard error
    where the code was after ``seconds``, or after what ``each`` says for this call, and ends the process, also when the
    notebook is gone or the code never gives up the interpreter.
    """
    jobs, answers, complaints = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(2), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    job = jobs.read()
    if job:
        pickled, seconds, each = pickle.loads(job)
        faulthandler.enable(complaints)
        watch = functools.partial(faulthandler.dump_traceback_later, exit=True, file=complaints)
        watch(seconds)
        _limit_memory()
        sys.setrecursionlimit(CALLS_INSIDE_EACH_OTHER)
        sent = 0
        for one in _attempts(pickled, _limits(seconds, each, watch), lambda printed: _write(answers, printed)):
            frame, size = _bounded(one)
            _write(answers, frame)
            sent += size
            if sent > ALL_ANSWERS:
                break
    _end()


def _limits(seconds: float, each: Sequence[float | None], watch: Callable[[float], None]) -> Callable[[int], None]:
    """What sets the watchdog before a call: to what is left for all of them, or to less where the call has a limit."""
    end = time.monotonic() + seconds

    def set_for(number: int) -> None:
        left = end - time.monotonic()
        own = each[number] if number < len(each) else None
        watch(max(left if own is None else min(left, own), 0.001))

    return set_for


def _attempts(pickled: bytes, before: Callable[[int], None], tell: Tell) -> Iterator[Attempt]:
    try:
        function, cases = pickle.loads(pickled)
    except Exception as error:
        yield Attempt(-1, failure=Failure(type(error).__name__, _said_by(error)))
        return
    for number, arguments in enumerate(cases):
        before(number)
        yield attempt(function, number, arguments, tell)


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


def _bounded(one: Attempt) -> tuple[bytes, int]:
    """The attempt, pickled, with a stand-in for an answer that cannot be sent or is too large; and the answer's size."""
    try:
        data = pickle.dumps(one)
    except Exception:
        data = pickle.dumps(replace(one, answer=NotPlain(type(one.answer).__name__)))
    if len(data) <= LARGEST:
        return data, len(data)
    items = len(one.answer) if hasattr(one.answer, "__len__") else 1
    return pickle.dumps(replace(one, answer=NotPlain(type(one.answer).__name__, items))), len(data)


def _write(stream: BinaryIO, one: Printed | bytes) -> None:
    """Write one frame: eight bytes of length, then the pickled object."""
    data = one if isinstance(one, bytes) else pickle.dumps(one)
    stream.write(struct.pack(">Q", len(data)) + data)
    stream.flush()


def received(data: bytes) -> tuple[tuple[Attempt, ...], dict[int, str]]:
    """The attempts, and what they printed by number, among what a process wrote before it ended."""
    attempts: list[Attempt] = []
    printed: dict[int, str] = {}
    for frame in _frames(data):
        try:
            one = pickle.loads(frame)
        except Exception:  # a class that exists over there only
            one = Attempt(len(attempts), answer=NotPlain("foreign"))
        if isinstance(one, Printed):
            printed[one.number] = printed.get(one.number, "") + one.text
        else:
            attempts.append(one)
    return tuple(attempts), printed


def _frames(data: bytes) -> Iterator[bytes]:
    """The complete frames."""
    start = 0
    while start + 8 <= len(data):
        (length,) = struct.unpack(">Q", data[start : start + 8])
        start += 8 + length
        if start <= len(data):
            yield data[start - length : start]
