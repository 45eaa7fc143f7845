"""The process in which a student's function is called safely: it takes one job, sends what comes back, and ends."""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import os
import pickle
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

from .attempts import Attempt, NotPlain, Printed, Tell, attempt, not_loaded
from .processes import MARK, SAME_ORDER
from .submitted import Submitted
from .withholding import withheld

MEMORY = (
    2 * 2**30
)  # bytes that a function may add: a list that grows for ever ends as MemoryError. Enforced on Linux only
LARGEST = 4 * 2**20  # bytes of one answer, pickled: the largest right ones have 100,000
ALL_ANSWERS = 4 * LARGEST  # after so much, the calls that are left cannot change the verdict
CALLS_INSIDE_EACH_OTHER = 1000  # Python's usual recursion limit, whatever the notebook has set


@dataclass(frozen=True, slots=True)
class Job:
    """What a process is to call, and where: in the folder and with the variables that the notebook has now."""

    work: bytes  # the function and its cases, pickled
    seconds: float  # for all of them together
    each: Sequence[float | None]  # limits of single calls
    withheld: Sequence[str]  # names of the lab
    folder: str
    variables: Mapping[str, str]
    path: Sequence[str]  # where modules are found


def serve() -> None:
    """Take one job from standard input, write frames to standard output, one for each case and each piece of print, and end.

    A job is a pickled ``Job``. The student's code sees other standard streams, so nothing that it prints reaches the
    frames. A watchdog in C tells on standard error where the code was after ``seconds``, or after what ``each`` says for this
    call, and ends the process, also when the notebook is gone or the code never gives up the interpreter.
    """
    jobs, answers, complaints = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(2), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    read = jobs.read()
    if read:
        job: Job = pickle.loads(read)
        _go_where_the_notebook_is(job)
        faulthandler.enable(complaints)
        watch = functools.partial(faulthandler.dump_traceback_later, exit=True, file=complaints)
        watch(job.seconds)
        limit_memory()
        sys.setrecursionlimit(CALLS_INSIDE_EACH_OTHER)
        sent = 0
        with withheld(job.withheld):
            limits = _limits(job.seconds, job.each, watch)
            for one in _attempts(job.work, limits, lambda printed: _write(answers, printed)):
                frame, size = _bounded(one)
                _write(answers, frame)
                sent += size
                if sent > ALL_ANSWERS:
                    break
    _end()


def _go_where_the_notebook_is(job: Job) -> None:
    """A process that was started earlier finds the files, variables and modules that the notebook finds now."""
    with contextlib.suppress(OSError):
        os.chdir(job.folder)
    own = {name: os.environ[name] for name in (MARK, SAME_ORDER) if name in os.environ}
    os.environ.clear()
    os.environ.update({**job.variables, **own})
    sys.path[:] = job.path


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
        if isinstance(function, Submitted):
            function = function.made()
    except Exception as error:
        yield not_loaded(error)
        return
    for number, arguments in enumerate(cases):
        before(number)
        yield attempt(function, number, arguments, tell)


def _end() -> None:
    """End now, with all processes and threads that the student's code may have left."""
    if sys.platform != "win32" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def limit_memory() -> None:
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
