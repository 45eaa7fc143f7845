"""Running a student's function in a process of its own, so that no loop, crash or flood reaches the notebook.

Every check has a fresh process: on Linux a fork of one that has imported the lab and done nothing else, see forking.py; on
other systems one that was started meanwhile, so that a check finds it warm. A process that is late ends with whatever it
started, and all of them end with the notebook: see processes.py.
"""

from __future__ import annotations

import atexit
import os
import pickle
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .attempts import BEYOND_EVERY_CELL, Attempt, Printed, attempt, file_of
from .forking import Template
from .processes import CheckProcess, Starter, as_if_inside_a_check, environment, inside_a_check, path
from .receiving import received
from .sending import sendable
from .submitted import NotMade
from .withholding import withheld
from .worker import Job

SECONDS = 5.0
SERVE = "from autodiff_exercises.worker import serve; serve()"
GRACE = 15.0  # seconds beyond the limit in which a process starts on a crowded machine, or ends late


class CheckInsideACheck(RuntimeError):
    """A function that is being checked asked for a check."""


@dataclass(frozen=True, slots=True)
class Run:
    """What came back from the calls, and what stopped them early."""

    attempts: tuple[Attempt, ...]
    stopped: str = ""  # why the calls after these gave nothing
    note: str = ""  # a limit of this run that the student should know
    printed: dict[int, str] = field(default_factory=dict)  # the beginning of what each call printed, by number
    out_of_time: bool = False


def run(
    function: Callable[..., Any],
    cases: Sequence[tuple[Any, ...]],
    seconds: float = SECONDS,
    each: Sequence[float | None] = (),
    names: Sequence[str] = (),
) -> Run:
    """Call the function once for each case, in order, within ``seconds`` for all of them together.

    ``each`` gives single calls a limit of their own; a call that reaches its limit is the last one. ``names`` are what the lab
    withholds from the function.

    >>> [one.answer for one in run(len, [([1, 2],), ([],)]).attempts]
    [2, 0]

    Raises:
        CheckInsideACheck: where the function that is being checked calls this.
    """
    if inside_a_check():
        raise CheckInsideACheck(
            "your function asks for a check while it is being checked; take that line out of the function and put it into "
            "a cell of its own"
        )
    try:
        pickled = sendable((function, list(cases)))  # together: an argument may use the function itself
    except Exception as error:
        with withheld(names):
            return _run_here(function, cases, error)
    job = Job(pickled, seconds, list(each), list(names), os.getcwd(), environment(), path())
    return _run_there(job, len(cases), file_of(function))


def _run_here(function: Callable[..., Any], cases: Sequence[tuple[Any, ...]], error: Exception) -> Run:
    note = (
        f"Your function uses something that cannot be sent to another process ({type(error).__name__}: "
        f"{str(error)[:120]}), so it ran inside this notebook, without a time limit."
    )
    attempts: list[Attempt] = []
    printed: dict[int, str] = {}

    def keep(piece: Printed) -> None:
        printed[piece.number] = printed.get(piece.number, "") + piece.text

    for number, arguments in enumerate(cases):
        with as_if_inside_a_check():
            attempts.append(attempt(function, number, arguments, keep))
        failure = attempts[-1].failure
        if failure and failure.kind == "KeyboardInterrupt":  # the student's own: there is no other way to stop here
            raise KeyboardInterrupt
    return Run(tuple(attempts), note=note, printed=printed)


def _run_there(job: Job, count: int, file: str) -> Run:
    process = _take()
    try:
        ended = process.work(pickle.dumps(job), job.seconds + GRACE)
    except BaseException:
        process.close()
        raise
    finally:
        _warm_up(process)
    attempts, printed = received(ended.written)
    if attempts and attempts[-1].number < 0:
        return Run((), _not_loaded(attempts[-1]))
    if len(attempts) == count:
        return Run(attempts, printed=printed)
    words = ended.complaint.decode(errors="replace")
    if ended.late or words.startswith("Timeout"):  # the watchdog inside says where; the one here is for when it cannot
        why = _out_of_time(attempts, count, job.seconds, _place(words, file))
        return Run(attempts, why, printed=printed, out_of_time=True)
    return Run(attempts, _how_it_ended(ended.code, words.strip(), _place(words, file)), printed=printed)


def _not_loaded(attempt: Attempt) -> str:
    if attempt.failure and attempt.failure.kind == NotMade.__name__:
        return attempt.failure.message
    return (
        f"your function uses something that exists in this notebook only, and the process for checks could not make it "
        f"({attempt.failure}); write it inside your function, or leave it out"
    )


def _out_of_time(attempts: Sequence[Attempt], count: int, seconds: float, place: str) -> str:
    """What took so long: the call that was running, or all calls together."""
    spent = sum(one.seconds for one in attempts)
    if spent < seconds / 2:
        return f"your function was still running after {seconds:g} seconds{place}"
    return (
        f"the {count} calls of this check share {seconds:g} seconds, and {len(attempts)} of them took {spent:.1f} seconds "
        f"together; your function may be right, but it is too slow"
    )


def _place(complaint: str, file: str) -> str:
    """The student's line in a dump of the stack; cloudpickle gives a notebook's functions a file name of its own."""
    found = re.finditer(rf'File "(?:<dynamic-code>|{re.escape(file)}|<(cell \d+)>)", line (\d+)', complaint)
    place = next((one for one in found if int(one[2]) < BEYOND_EVERY_CELL), None)
    if not place:
        return ""
    return f", in line {place[2]} of {f'code {place[1]}' if place[1] else 'the cell or file that defines it'}"


def _how_it_ended(code: int | None, complaint: str, place: str) -> str:
    first, last = complaint.split("\n", 1)[0], complaint.rsplit("\n", 1)[-1]
    if first.startswith(("Fatal Python error", "Windows fatal exception")):
        return f"Python itself crashed in your function{place} ({first})"
    if complaint:
        return f"the process for checks did not start ({last})"
    if code is not None and code < 0:
        return f"the system ended your function (signal {-code}), perhaps because it took too much memory"
    return f"your function ended the whole of Python (exit code {code})"


# ---------------------------------------------------------------------------------------------------- the warm process

_waiting: list[CheckProcess] = []


def _new() -> CheckProcess:
    return Template() if sys.platform == "linux" else Starter(SERVE)


def _take() -> CheckProcess:
    while _waiting:
        process = _waiting.pop()
        if process.poll() is None:
            return process
        process.close()
    return _new()


def _warm_up(process: CheckProcess) -> None:
    """Keep this process for the next check if it can do another, else start one."""
    if _waiting:
        process.close()
    else:
        _waiting.append(process if process.poll() is None else _new())


@atexit.register
def _close_all() -> None:
    while _waiting:
        _waiting.pop().close()
