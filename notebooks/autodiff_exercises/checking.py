"""check: call the student's function on every case, and say which of four outcomes it is."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from . import progress_file
from .exercise import Case, Exercise, Wrong
from .outcomes import Outcome
from .registry import exercise_named
from .sandbox import Run, run
from .worker import Failure

VISIBLE_SEED = 0


class _Shown(reprlib.Repr):
    """Values short enough to read; an array with its shape and dtype."""

    def repr_ndarray(self, array: np.ndarray, level: int) -> str:
        numbers = np.array2string(array, precision=5, separator=", ", threshold=40)
        return f"an array of shape {array.shape} and dtype {array.dtype}:\n{numbers}"


SHOWN = _Shown()
SHOWN.maxlist = SHOWN.maxtuple = 12


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
    found = examine(asked, student, VISIBLE_SEED if seed is None else seed, marking=seed is not None)
    return found if seed is not None else progress_file.remember(found)


def examine(exercise: Exercise, function: Callable[..., Any], seed: int, marking: bool = False) -> Outcome:
    """What a function is worth on the cases of one seed; nothing is remembered."""
    cases = list(exercise.cases(Random(seed), marking))
    done = run(function, [exercise.arguments(one, function) for one in cases], exercise.seconds)
    found = judged(exercise, cases, done)
    return replace(found, example="", returned="", marking=True) if marking else found


def judged(exercise: Exercise, cases: Sequence[Case], done: Run) -> Outcome:
    """The outcome of a run; a wrong attempt outweighs calls that gave nothing."""
    pairs = list(zip(cases, done.attempts, strict=False))
    if pairs and _is_stub(pairs[0][1].failure):
        return Outcome(exercise.name, "not attempted", message="Write the function, then run its cell and this one.")
    right = [exercise.is_right(case, attempt) for case, attempt in pairs]
    checks = _by_check(cases, right)
    tally = exercise.tally([(case, fine) for (case, _attempt), fine in zip(pairs, right, strict=True)])
    notes = tuple(note for note in (tally, done.note) if note)
    wrong = [Wrong(case, attempt) for (case, attempt), fine in zip(pairs, right, strict=True) if not fine]
    if wrong:
        belief, call = exercise.misconception(wrong), _call(exercise, wrong[0].case)
        came_back = _what_came_back(wrong[0])
        return Outcome(exercise.name, "wrong", checks, belief.name, belief.message, "", call, came_back, notes)
    if len(pairs) < len(cases):
        call = _call(exercise, cases[len(pairs)])
        return Outcome(exercise.name, "could not be checked", checks, why=done.stopped, example=call, notes=notes)
    return Outcome(exercise.name, "right", checks, notes=notes)


def _call(exercise: Exercise, case: Case) -> str:
    return f"{exercise.name}({case.expression})"


def _is_stub(failure: Failure | None) -> bool:
    return failure is not None and failure.kind == "NotImplementedError"


def _what_came_back(wrong: Wrong) -> str:
    if wrong.attempt.failure:
        return f"It raised {wrong.attempt.failure}."
    changed = ", and changed its argument" if wrong.attempt.changed_arguments else ""
    return f"Yours returned {SHOWN.repr(wrong.answer)}{changed}."


def _by_check(cases: Sequence[Case], right: Sequence[bool]) -> tuple[tuple[str, bool | None], ...]:
    """For each check whether all its cases are right, or None where the run did not reach its end."""
    results: dict[str, bool | None] = {}
    for number, case in enumerate(cases):
        fine = right[number] if number < len(right) else None
        before = results.get(case.check, True)
        results[case.check] = False if False in (before, fine) else None if None in (before, fine) else True
    return tuple(results.items())
