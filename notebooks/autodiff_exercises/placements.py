"""The exercise "place the ops" of lesson 90: devices for a chain of ops, with the time that values travel."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from . import placements_answers as answers
from .attempts import Attempt
from .exercise import (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    TOO_LATE,
    Case,
    Exercise,
    Misconception,
    Wrong,
    case,
    soon,
)
from .explaining import every
from .placements_answers import Costs, seconds_of

TRIES = 2000
TOGETHER = "many ops that pay only together"


def is_placement(answer: Any, costs: Costs) -> bool:
    """Whether this names, for each op, a device that has a kernel for it."""
    return _names_devices(answer, costs) and all(
        device in kernels for device, kernels in zip(answer, costs, strict=True)
    )


def _names_devices(answer: Any, costs: Costs) -> bool:
    if not isinstance(answer, list | tuple) or len(answer) != len(costs):
        return False
    return all(isinstance(device, str) and device in ("cpu", "gpu") for device in answer)


def is_best(answer: Any, costs: Costs, travel: float) -> bool:
    """Whether no other placement takes less time: each prefix is followed in the best way, from both devices."""
    return is_placement(answer, costs) and math.isclose(
        seconds_of(list(answer), costs, travel), _shortest(costs, travel)
    )


def _shortest(costs: Costs, travel: float, leaves: bool = True, comes_back: bool = True) -> float:
    """Seconds of the best placement: step by step, how soon can the value be on each device?"""
    soonest = {"cpu": 0.0, "gpu": travel if leaves else 0.0}
    for kernels in costs:
        done = {device: soonest[device] + kernels.get(device, math.inf) for device in soonest}
        soonest = {device: min(done[device], travel + min(done.values())) for device in done}
    return soonest["cpu"] if comes_back else min(soonest.values())


def _plans(has: Callable[[list[str], Costs, float], bool]) -> Callable[[Sequence[Wrong]], bool]:
    return every(lambda answer, costs, travel: is_placement(answer, costs) and has(list(answer), costs, travel))


def _like(formula: Callable[[Costs, float], list[str]]) -> Callable[[Sequence[Wrong]], bool]:
    return _plans(lambda plan, costs, travel: plan == formula(costs, travel))


def _is_best_without(**ways: bool) -> Callable[[Sequence[Wrong]], bool]:
    return _plans(
        lambda plan, costs, travel: math.isclose(
            seconds_of(plan, costs, travel, **ways), _shortest(costs, travel, **ways)
        )
    )


MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    Misconception(
        "all placements can be tried",
        "You try all placements: n ops on two devices have 2 to the power of n. Go through the chain once, and "
        "remember for each device only the best way to have the value there.",
        lambda wrong: any(one.failure in (TOO_LATE, "MemoryError") for one in wrong),
    ),
    STOPS_WITH_ERROR,
    Misconception(
        "not a device for each op",
        'Return a list with a device, "cpu" or "gpu", for each op of the chain.',
        lambda wrong: any(not _names_devices(one.answer, one.case.arguments[0]) for one in wrong),
    ),
    Misconception(
        "every op runs everywhere",
        "You place an op on a device that has no kernel for it. Only the devices in its dictionary can run it.",
        lambda wrong: any(not is_placement(one.answer, one.case.arguments[0]) for one in wrong),
    ),
    Misconception(
        "each op where it is fastest",
        "You place each op where it is fastest, and the value travels to and fro. Two journeys can cost more than a "
        "slow kernel.",
        _like(answers.fastest_each),
    ),
    Misconception(
        "the GPU is always faster",
        "You place everything on the GPU. Small ops are often faster on the CPU, and the way there and back costs time "
        "too.",
        _like(answers.all_on_the_gpu),
    ),
    Misconception(
        "transfers never pay",
        "You never leave the CPU. The way costs `travel` seconds once, and several ops together may win more than that.",
        _like(answers.all_on_the_cpu),
    ),
    Misconception(
        "the next op decides",
        "You go where the next op ends first, or the next few. A journey that does not pay for these may pay for all that "
        "follow: you cannot decide until you have seen them, so keep both possibilities.",
        lambda wrong: (
            _like(answers.short_sighted)(wrong)
            or _like(answers.three_at_a_time)(wrong)
            or all(one.case.check in (TOGETHER, "a long chain") and not one.failure for one in wrong)
        ),
    ),
    Misconception(
        "the result may stay there",
        "Your plan would be best if the result could stay on the GPU. It is needed on the CPU, and has to travel.",
        _is_best_without(comes_back=False),
    ),
    Misconception(
        "the data are there already",
        "Your plan would be best if the data began on the GPU. They begin on the CPU, and have to travel.",
        _is_best_without(leaves=False),
    ),
    Misconception(
        "one journey is enough",
        "You go to the GPU at most once. Two stretches there, with some ops on the CPU between them, can be better.",
        _like(answers.one_stretch),
    ),
    Misconception(
        "not the best placement",
        "There is a faster placement. For the smallest example write down all of them, with the seconds of each.",
        lambda wrong: True,
    ),
)

RULES = (
    (answers.fastest_each, "each op where it is fastest"),
    (answers.short_sighted, "the next op decides"),
    (answers.one_stretch, "one journey is enough"),
    (answers.without_the_way_back, "the result may stay there"),
    (answers.without_the_way_there, "the data are there already"),
)


def cases(random: Random, large: bool) -> Iterator[Case]:
    """Short chains with a reason for each, random ones on which simple rules fail, and a long one."""
    factor = random.randint(1, 4)
    for check, ops, travel in (
        ("an op that does not pay for its way", [(4, 1)], 2),
        ("ops that pay together", [(5, 2), (5, 2), (5, 2)], 2),
        ("an op in between", [(9, 1), (1, 2), (9, 1)], 3),
        (TOGETHER, [(3, 1)] * 8, 7),
        ("an op without a kernel", [(9, 1), (2, None), (9, 1)], 1),
        ("an op without a kernel", [(9, 1), (9, 1), (1, None)], 4),
    ):
        scaled = [tuple(None if one is None else factor * one for one in op) for op in ops]
        yield _case(check, scaled, factor * travel)
    for rule, name in RULES:
        for _ in range(2 if large else 1):
            yield _chain_that_shows(rule, name, random)
    length = random.randint(45, 60) if large else 40
    ops = [(random.randint(1, 9), random.randint(1, 4)) for _ in range(length)]
    yield soon(_case("a long chain", ops, random.randint(1, 5)))


def _chain_that_shows(rule: Callable[[Costs, float], list[str]], name: str, random: Random) -> Case:
    """A chain on which a simple rule fails, in a way that tells it from all others."""
    for _ in range(TRIES):
        ops = [(random.randint(1, 9), random.choice((1, 2, 3, 6, 9, None))) for _ in range(random.randint(4, 8))]
        one = _case("random chains", ops, random.randint(1, 5))
        wrong = Wrong(one, Attempt(0, rule(*one.arguments)))
        belief = next(belief for belief in MISCONCEPTIONS if belief.explains([wrong]))
        if belief.name == name and not is_best(wrong.answer, *one.arguments):
            return one
    raise AssertionError(f"no chain was found for {name}")


def _case(check: str, ops: Sequence[Sequence[float | None]], travel: float) -> Case:
    costs = [{"cpu": cpu} if gpu is None else {"cpu": cpu, "gpu": gpu} for cpu, gpu in ops]
    return case(check, f"{costs}, {travel}")


EXERCISES = (
    Exercise(
        lesson="90_resources",
        statement="""\
Write `place_ops(costs, travel)`: a device for each op.

* The program is a chain: each op gets the result of the one before. `costs` is a list with a dictionary for each op, such as
  `{"cpu": 5, "gpu": 2}`: its seconds on each device. A device that is not in it has no kernel for this op.
* The data begin on the CPU, and the result is needed on the CPU. To get from one device to the other a value needs
  `travel` seconds.
* Return a list with `"cpu"` or `"gpu"` for each op, so that the whole takes **as short as possible**. Several placements may
  be best: any of them is right. A chain of dozens of ops must go through.""",
        hints=(
            "Write down for a chain of two ops all four placements, with their seconds. What exactly must you know of "
            "the first op, to decide about the second?",
            "Only this: how soon can the value be on the CPU, and how soon on the GPU, and by which placement? Go "
            "through the chain and keep these two, for each device, up to date.",
            'Begin with `best = {"cpu": (0, [])}`. For each op make a new dictionary: for each of its devices take the entry '
            "of `best` from which one gets there soonest, and add seconds and device. At the end do not forget the way "
            "back.",
        ),
        solution=answers.place_ops,
        alternatives=(answers.from_the_end,),
        wrong=(
            *RULES,
            (answers.three_at_a_time, "the next op decides"),
            (answers.all_on_the_gpu, "the GPU is always faster"),
            (answers.all_on_the_cpu, "transfers never pay"),
            (answers.every_placement, "all placements can be tried"),
            (answers.without_asking_for_kernels, "every op runs everywhere"),
            (answers.how_long, "not a device for each op"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=is_best,
    ),
)
