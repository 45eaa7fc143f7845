"""The exercise "pipeline bubble" of lesson 110: what part of the time the stages of a pipeline do nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from autodiff_lab import schedule

from . import pipeline_bubbles_answers as answers
from .exercise import CHANGED_ARGUMENTS, RETURNS_NOTHING, STOPS_WITH_ERROR, Case, Exercise, Misconception, Wrong, case
from .explaining import every, is_number


def is_bubble(answer: Any, stages: int, micro_batches: int, forward: float, backward: float) -> bool:
    """Whether this is the idle part of the schedule that the lab's simulator makes."""
    devices = [f"gpu{stage}" for stage in range(stages)]
    step = schedule.training_step(
        stages, micro_batches, forward=forward, dx=backward / 2, dw=backward / 2, splits=False, devices=devices
    )
    idle = 1 - schedule.simulate(step, schedule.pipeline(stages), "fifo").utilisation
    return _is_close(answer, idle)


def _is_close(answer: Any, number: float) -> bool:
    return is_number(answer) and math.isclose(answer, number, rel_tol=1e-9, abs_tol=1e-12)


def _like(formula: Callable[[int, int, float, float], float]) -> Callable[[Sequence[Wrong]], bool]:
    return every(lambda answer, *arguments: _is_close(answer, formula(*arguments)))


MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Misconception(
        "the bubble is not one number",
        "Return one number: the idle part of the time.",
        lambda wrong: any(not one.failure and not is_number(one.answer) for one in wrong),
    ),
    Misconception(
        "a part of the work",
        "You divide the idle time by the work. Asked for is its part of *all* the time, in which the idle time counts too: "
        "otherwise it could be more than everything.",
        _like(answers.of_the_work),
    ),
    Misconception(
        "filling takes a step for every stage",
        "You let even a single stage wait. The first stage begins at once, so the last of p stages waits for p − 1 steps.",
        _like(answers.a_step_too_many),
    ),
    Misconception(
        "micro-batches change nothing",
        "You let one stage work at a time. While the second stage works on the first micro-batch, the first stage already "
        "works on the next one.",
        _like(answers.no_pipeline),
    ),
    Misconception(
        "the used part",
        "You return the part of the time that is *used*. The bubble is the rest.",
        _like(answers.the_used_part),
    ),
    Misconception(
        "two passes, one pass of work",
        "You count the filling and draining of both passes, and the work of one. Backward brings waiting, and work as well.",
        _like(answers.fills_twice),
    ),
    Misconception(
        "nobody waits in the forward pass",
        "You count waiting with the seconds of backward only. The last stage waits at the beginning too, while the first "
        "micro-batch comes forward.",
        _like(answers.only_backward_waits),
    ),
    Misconception(
        "seconds for a part",
        "You return the seconds in which one stage does nothing. Divide them by the seconds that the whole takes.",
        _like(answers.in_seconds),
    ),
    Misconception(
        "per cent for a fraction",
        "You return per cent. Asked for is a fraction: nothing is 0, and all of the time is 1.",
        _like(answers.in_per_cent),
    ),
    Misconception(
        "a whole that is a step too long",
        "The idle time is right, the whole is one step too long: the first micro-batch takes p steps through the stages, and "
        "each of the others comes one step later.",
        _like(answers.many_micro_batches),
    ),
    Misconception(
        "not the bubble",
        "Draw a row for each stage and a column for each step, for the smallest example, first for forward alone. How many "
        "columns are there, and how many fields of a row stay empty?",
        lambda wrong: True,
    ),
)


def cases(random: Random, large: bool) -> Iterator[Case]:
    """From one stage to many; costs of both passes equal and different; fewer and more micro-batches than stages."""
    yield _case("two stages", 2, random.randint(2, 4), 1, 1)
    yield _case("one stage", 1, random.randint(2, 6), 1, 2)
    yield _case("one micro-batch", random.randint(3, 5), 1, 1, 2)
    for stages in range(2, 8 if large else 6):
        for micro_batches in random.sample(range(2, 24 if large else 12), k=3):
            yield _case("many pipelines", stages, micro_batches, random.randint(1, 4), random.randint(1, 6))
    yield _case("a long pipeline", random.randint(9, 12), random.randint(3, 6), 2, 3)


def _case(check: str, *arguments: int) -> Case:
    return case(check, ", ".join(map(str, arguments)))


EXERCISES = (
    Exercise(
        lesson="110_overlap",
        statement="""\
Write `pipeline_bubble(stages, micro_batches, forward, backward)`: what part of the time do the stages of a pipeline do nothing?

* So many equal `stages`, each on a device of its own. Every one of the `micro_batches` goes forward through all of them,
  `forward` seconds in each, and then backward through all of them in turn, `backward` seconds in each.
* No stage waits without need: together they are as fast as they can be.
* Return the **bubble**: the time in which stages do nothing, from 0 to the end of the whole, divided by the time of all stages.
  It is a fraction from 0 to 1.""",
        hints=(
            "How many seconds does the last stage wait at the beginning, and how many at the end, until the last gradient has "
            "gone all the way back? Does the first stage wait less?",
            "Every stage works for `micro_batches * (forward + backward)` seconds. Follow the first micro-batch through the "
            "stages forward, and the last one backward: what comes on top of the work?",
            "On top come `stages - 1` steps of each pass: `(stages - 1) * (forward + backward)` seconds. Divide by the whole.",
        ),
        solution=answers.pipeline_bubble,
        alternatives=(answers.by_simulation, answers.by_steps),
        wrong=(
            (answers.of_the_work, "a part of the work"),
            (answers.a_step_too_many, "filling takes a step for every stage"),
            (answers.no_pipeline, "micro-batches change nothing"),
            (answers.the_used_part, "the used part"),
            (answers.fills_twice, "two passes, one pass of work"),
            (answers.only_backward_waits, "nobody waits in the forward pass"),
            (answers.in_seconds, "seconds for a part"),
            (answers.in_per_cent, "per cent for a fraction"),
            (answers.many_micro_batches, "a whole that is a step too long"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=is_bubble,
    ),
)
