"""check: call the student's function on every case, and say which of four outcomes it is."""

from __future__ import annotations

import builtins
import reprlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from autodiff_lab import simulated

from . import progress_file
from .attempts import Attempt, Failure
from .exercise import REMEMBERS, TOO_LATE, Case, Exercise, Wrong, too_late
from .outcomes import Outcome
from .registry import exercise_named
from .sandbox import Run, run

VISIBLE_SEED = 0
TOLD_BY_NAME = (
    "AnsweredByTheLab",
    "LinAlgError",
    "OpError",
    "OutOfBounds",
    "TooManyCalls",
)  # and what Python has itself


class _Shown(reprlib.Repr):
    """Values short enough to read; an array with its shape and dtype."""

    def repr_ndarray(self, array: np.ndarray, level: int) -> str:
        return self._described(array, "")

    def repr_DeviceArray(self, array: simulated.DeviceArray, level: int) -> str:
        return self._described(simulated.numbers_in(array), f" on {array.device} (simulated)")

    def _described(self, array: np.ndarray, place: str) -> str:
        numbers = np.array2string(array, precision=5, separator=", ", threshold=40)
        return f"an array{place} of shape {array.shape} and dtype {array.dtype}:\n{numbers}"


SHOWN = _Shown()
SHOWN.maxlist = SHOWN.maxtuple = SHOWN.maxdict = SHOWN.maxset = 12


def check(
    exercise: str | Callable[..., Any], function: Callable[..., Any] | None = None, *, seed: int | None = None
) -> Outcome:
    """Check a function that a student wrote, and remember the outcome.

    ``check(topological_order)`` finds the exercise by the function's name; ``check("topological_order", mine)`` takes
    any function. It runs in a process of its own, so an endless loop or a crash is an outcome too. Who marks a
    submission gives a ``seed``: then the cases are others, and larger, no failing input is shown and nothing is
    remembered.

    >>> def topological_order(graph):
    ...     raise NotImplementedError
    >>> check(topological_order).verdict
    'not attempted'
    """
    asked = exercise_named(exercise)
    student = exercise if callable(exercise) and function is None else function
    if not callable(student):
        raise TypeError(f"check({asked.name!r}) was given no function; write check({asked.name}) after defining it")
    try:
        found = examine(asked, student, VISIBLE_SEED if seed is None else seed, marking=seed is not None)
    except KeyboardInterrupt:
        return Outcome(asked.name, "could not be checked", why="interrupted; nothing was judged")
    return found if seed is not None else progress_file.remember(found)


def examine(exercise: Exercise, function: Callable[..., Any], seed: int, marking: bool = False) -> Outcome:
    """What a function is worth on the cases of one seed; nothing is remembered."""
    cases = list(exercise.cases(Random(seed), marking))
    calls = [*cases, cases[0]]  # the first once more: what came back then tells whether the function remembers
    arguments = [exercise.arguments(one, function) for one in calls]
    limits = [one.seconds for one in calls]
    done = run(exercise.called(function), arguments, exercise.seconds, limits, exercise.withheld)
    if _lost_its_time(exercise, cases, done):
        done = run(exercise.called(function), arguments, exercise.seconds, limits, exercise.withheld)
    found = judged(exercise, cases, done)
    if found.verdict == "wrong" and _is_right_alone(exercise, function, cases, done):
        found = replace(found, misconception=REMEMBERS.name, message=REMEMBERS.message)
    return replace(found, example="", returned="", printed="", marking=True) if marking else found


def judged(exercise: Exercise, cases: Sequence[Case], done: Run) -> Outcome:
    """The outcome of a run; a wrong attempt outweighs calls that gave nothing."""
    attempts = _with_late_one(exercise, cases, done)
    pairs = list(zip(cases, attempts, strict=False))
    if pairs and _is_stub(pairs[0][1].failure):
        return Outcome(exercise.name, "not attempted", message="Write the function, then run its cell and this one.")
    results = [exercise.is_right(case, attempt) for case, attempt in pairs]
    tally = exercise.tally([(case, right) for (case, _), right in zip(pairs, results, strict=True)])
    about = Outcome(
        exercise.name,
        "right",
        _by_check(cases, results),
        notes=tuple(note for note in (tally, done.note) if note),
        printed=next(iter(done.printed.values()), ""),
    )
    wrong = [Wrong(*pair) for pair, right in zip(pairs, results, strict=True) if not right]
    if wrong:
        belief = REMEMBERS if _remembers(exercise, cases, done) else exercise.misconception(wrong)
        return replace(
            about,
            verdict="wrong",
            misconception=belief.name,
            message=belief.message,
            example=exercise.shown(wrong[0].case),
            returned=_what_came_back(wrong[0]),
            raised=_how_it_failed(wrong[0].attempt.failure),
            printed=done.printed.get(wrong[0].attempt.number, ""),
        )
    if len(pairs) < len(cases):
        call, printed = exercise.shown(cases[len(pairs)]), done.printed.get(len(pairs), "")
        return replace(about, verdict="could not be checked", why=done.stopped, example=call, printed=printed)
    return about


def _with_late_one(exercise: Exercise, cases: Sequence[Case], done: Run) -> tuple[Attempt, ...]:
    """The attempts, and one more where a call was ended at its own limit, not at that of all calls together."""
    number = len(done.attempts)
    limit = cases[number].seconds if done.out_of_time and number < len(cases) else None
    if limit is None or sum(one.seconds for one in done.attempts) + limit > exercise.seconds:
        return done.attempts
    return (*done.attempts, too_late(number, limit))


def _lost_its_time(exercise: Exercise, cases: Sequence[Case], done: Run) -> bool:
    """Whether a call with a limit of its own was ended at that of all calls: those before it have waited for a busy machine."""
    number = len(done.attempts)
    limited = done.out_of_time and number < len(cases) and cases[number].seconds is not None
    return limited and _with_late_one(exercise, cases, done) is done.attempts


def _is_right_alone(exercise: Exercise, function: Callable[..., Any], cases: Sequence[Case], done: Run) -> bool:
    """Whether the first call that went wrong after others is right where nothing was called before it."""
    pairs = zip(cases, done.attempts, strict=False)
    first = next((number for number, pair in enumerate(pairs) if not exercise.is_right(*pair)), 0)
    if not first:
        return False
    arguments = [exercise.arguments(cases[first], function)]
    alone = run(exercise.called(function), arguments, exercise.seconds, names=exercise.withheld)
    return any(exercise.is_right(cases[first], one) for one in alone.attempts)


def _remembers(exercise: Exercise, cases: Sequence[Case], done: Run) -> bool:
    """Whether the first call, made once more at the end, gave something else: wrong after right, or more, or less."""
    if len(done.attempts) <= len(cases):
        return False
    first, again = done.attempts[0], done.attempts[-1]
    if exercise.is_right(cases[0], first) and not exercise.is_right(cases[0], again):
        return True
    return _length(first.answer) != _length(again.answer)


def _length(answer: Any) -> int | None:
    return len(answer) if isinstance(answer, list | tuple | dict | set | str) else None


def _is_stub(failure: Failure | None) -> bool:
    return failure is not None and failure.kind == "NotImplementedError"


def _what_came_back(wrong: Wrong) -> str:
    if wrong.failure == TOO_LATE:
        return "It did not come back in time."
    if wrong.attempt.failure:
        return f"It raised {wrong.attempt.failure}."
    changed = ", and changed its argument" if wrong.attempt.changed_arguments else ""
    return f"Yours returned {SHOWN.repr(wrong.answer)}{changed}."


def _how_it_failed(failure: Failure | None) -> str:
    """The class of the error and its line, without its words, which may hold the input; so may a class of the student's."""
    if failure is None or failure.kind == TOO_LATE:
        return ""
    kind = (
        failure.kind
        if failure.kind in TOLD_BY_NAME or hasattr(builtins, failure.kind)
        else "an exception of its own class"
    )
    return str(replace(failure, kind=kind, message=""))


def _by_check(cases: Sequence[Case], results: Sequence[bool]) -> tuple[tuple[str, bool | None], ...]:
    """For each check whether all its cases are right, or None where the run did not reach its end."""
    found: dict[str, bool | None] = {}
    for number, case in enumerate(cases):
        fine = results[number] if number < len(results) else None
        before = found.get(case.check, True)
        found[case.check] = False if False in (before, fine) else None if None in (before, fine) else True
    return tuple(found.items())
