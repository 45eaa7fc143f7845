"""Marking many submissions at once: what is marked comes back as soon as it is, and an interrupt ends everything."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from .judges import Marker
from .marks import Mark
from .submissions import Submission

Say = Callable[[str], None]
LOOK = 0.5  # seconds between looks for Ctrl-C, which does not end a wait on Windows


class Interrupted(Exception):
    """The marking was stopped; ``marks`` holds those of the submissions that were finished."""

    def __init__(self, marks: list[Mark]) -> None:
        self.marks = marks
        super().__init__(f"stopped after {len({mark.student for mark in marks})} students")


def mark_all(submissions: Sequence[Submission], marker: Marker, jobs: int, say: Say) -> list[Mark]:
    """Marks for every submission, in their order; a line is said for each one that is finished.

    Raises:
        Interrupted: on Ctrl-C, with the marks so far. No process is left then.
    """
    found: dict[int, list[Mark]] = {}
    with tempfile.TemporaryDirectory() as empty, ThreadPoolExecutor(jobs) as pool:
        marker.folder = empty
        pending = {pool.submit(_timed, marker, one): number for number, one in enumerate(submissions)}
        try:
            while pending:
                done, _waiting = wait(pending, timeout=LOOK, return_when=FIRST_COMPLETED)
                for future in done:
                    number = pending.pop(future)
                    found[number] = _told(future, submissions[number], f"{len(found) + 1}/{len(submissions)}", say)
        except KeyboardInterrupt:
            for future in pending:
                future.cancel()
            marker.stop()
            raise Interrupted(_in_order(found)) from None
    return _in_order(found)


def _timed(marker: Marker, submission: Submission) -> tuple[list[Mark], float]:
    began = time.monotonic()
    return marker.marks_of(submission), time.monotonic() - began


def _told(future: Future[tuple[list[Mark], float]], submission: Submission, place: str, say: Say) -> list[Mark]:
    marks, seconds = future.result()
    unchecked = sum(mark.outcome == "could not be checked" for mark in marks)
    more = f", {unchecked} could not be checked" if unchecked else ""
    right = sum(mark.points for mark in marks)
    say(f"{place}  {submission.student}  {submission.file.stem}: {right} of {len(marks)} right{more} ({seconds:.1f} s)")
    return marks


def _in_order(found: dict[int, list[Mark]]) -> list[Mark]:
    return [mark for number in sorted(found) for mark in found[number]]
