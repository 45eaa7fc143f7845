"""Exercise of lesson 70: a kernel for every array library, checked with NumPy and on the simulated device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import simulated

from . import second_kernel_answers as answers
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
from .vjp_laws import numbers

LESSON = "70_devices"
WITH_NUMPY, ON_DEVICE, ORDER, AXES, NARROW, MANY = (
    "with NumPy", "on the device", "levels in any order", "several axes", "float32", "500,000 numbers",
)  # fmt: skip

# -------------------------------------------------------------------------------------------------------------- cases


def _cases(random: Random, marking: bool) -> Iterator[Case]:
    def sizes(count: int) -> list[int]:
        return [random.randint(2, 5 if marking else 3) for _ in range(count)]

    def levels(count: int) -> list[float]:
        return sorted(random.sample([half / 2 for half in range(-7, 8)], count))

    spread = f"np.linspace(-4.0, {random.randint(2, 4)}, 5)"
    yield _case(WITH_NUMPY, spread, levels(3), on_device=False)
    yield _case(ON_DEVICE, spread, levels(3))
    yield _case(ON_DEVICE, numbers(random, *sizes(1)), levels(1))
    for on_device in (False, True):
        shuffled = levels(4)
        while shuffled == sorted(shuffled):
            random.shuffle(shuffled)
        yield _case(ORDER, "np.linspace(-4.0, 4.0, 17)", shuffled, on_device)
        yield _case(AXES, numbers(random, *sizes(2)), levels(4), on_device)
    yield _case(AXES, numbers(random, *sizes(3)), levels(5))
    yield _case(AXES, f"np.zeros((0, {random.randint(2, 5)}))", levels(2))
    for on_device in (False, True):
        yield _case(NARROW, numbers(random, *sizes(2), dtype="float32"), levels(3), on_device)
    many = f"np.linspace({-random.randint(2, 4)}, 4, 500_000, dtype=np.float32)"
    yield soon(_case(MANY, many, levels(3)))


def _case(check: str, x: str, levels: list[float], on_device: bool = True) -> Case:
    """The kernel's call with NumPy, or with the library of the simulated device and an array there."""
    if not on_device:
        return case(check, f"np, {x}, {tuple(levels)}")
    return case(check, f"sim, sim.asarray({x}), {tuple(levels)}", sim=ad.library_of("sim:0"))


# --------------------------------------------------------------------------------------------------- what tells right


def _numbers(array: Any) -> np.ndarray | None:
    """What an array holds, wherever it lies; None where it is no array."""
    if isinstance(array, simulated.DeviceArray):
        return simulated.numbers_in(array)
    return array if isinstance(array, np.ndarray) else None


def is_nearest(answer: Any, xp: Any, x: Any, levels: tuple[float, ...]) -> bool:
    """Whether the answer lies where x lies, with its shape and dtype, and holds levels than which no other is nearer."""
    found, given = _numbers(answer), _numbers(x)
    return (
        found is not None
        and given is not None
        and type(answer) is type(x)
        and found.dtype == given.dtype
        and found.shape == given.shape
        and _are_nearest(found, given, levels)
    )


def _are_nearest(found: np.ndarray, given: np.ndarray, levels: tuple[float, ...]) -> bool:
    """Of two levels that are equally near, either is right; so is one that is farther by no more than rounding."""
    table = np.asarray(levels, dtype=given.dtype)
    nearest = np.abs(given[..., None] - table).min(axis=-1)
    rounding = 4 * np.finfo(given.dtype).eps * np.abs(given).max(initial=1.0)
    return bool(np.isin(found, table).all() and (np.abs(given - found) <= nearest + rounding).all())


# ------------------------------------------------------------------------------------------------ what explains wrong


def _raised(*texts: str) -> Callable[[Sequence[Wrong]], bool]:
    """Whether the attempt that is shown was stopped with one of these words."""

    def explains(wrong: Sequence[Wrong]) -> bool:
        failure = wrong[0].attempt.failure
        return failure is not None and any(text in failure.message for text in texts)

    return explains


def _wrong_on(wrong: Sequence[Wrong]) -> set[str]:
    return {one.case.check for one in wrong}


def _answered(holds: Callable[[Any, Any], bool]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether the answer that is shown has a property, beside the x that it was computed from."""
    return lambda wrong: not wrong[0].failure and holds(wrong[0].answer, wrong[0].case.arguments[1])


def _is_another_dtype(answer: Any, x: Any) -> bool:
    found = _numbers(answer)
    return found is not None and found.dtype.kind == "f" and found.dtype != x.dtype


MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    Misconception(
        "NumPy is everywhere",
        "Your kernel calls a function of NumPy with an array that lies on another device. NumPy computes on the CPU. A "
        "kernel is given the library that computes where its arrays lie: `xp`.",
        _raised("NumPy computes on the CPU", "a kernel computes with xp"),
    ),
    Misconception(
        "a table lies everywhere",
        "Your kernel computes with an array on the device and with one of NumPy, which lies on the host. The table is "
        "an array, too: make it where `x` lies.",
        _raised("Unsupported type"),
    ),
    Misconception(
        "a kernel may look at its numbers",
        "Your kernel asks Python to compare or convert numbers that lie on the device: `if`, `min`, `float`. For that they "
        "would have to come to the host. Compare whole arrays, with functions of `xp`: they give arrays.",
        _raised("bool() of", "float() of", "int() of", "an index of"),
    ),
    Misconception(
        "fetch, compute, bring back",
        "Your kernel takes its numbers to the host. That is what a kernel on the device is there to avoid: two copies, "
        "and the host waits. The computation can be done with functions of `xp` alone.",
        _raised("get() inside a kernel"),
    ),
    Misconception(
        "what NumPy has, every library has",
        "Your kernel uses something that NumPy has and other libraries have not: what calls a Python function for every "
        "number cannot run on a device. Arithmetic, comparisons, `where`, sums and indexing are everywhere.",
        _raised("CuPy has no", "CuPy's"),
    ),
    Misconception(
        "an array is a row",
        "Your kernel is right for arrays with one axis, and not for others. Indexing with `...` stands for all axes that "
        "there are, and axis −1 is the last one.",
        lambda wrong: _wrong_on(wrong) <= {AXES, NARROW} and AXES in _wrong_on(wrong),
    ),
    STOPS_WITH_ERROR,
    Misconception(
        "the result may lie anywhere",
        "Your kernel does not return an array that lies where `x` lies. The next op would refuse it.",
        _answered(lambda answer, x: type(answer) is not type(x)),
    ),
    Misconception(
        "any dtype will do",
        "Another dtype goes out than came in: float32 should stay float32. Python's numbers become float64 when a library "
        "makes an array of them, unless it is told otherwise; on many GPUs that is 2 to 64 times slower.",
        _answered(_is_another_dtype),
    ),
    Misconception(
        "a loop is a kernel",
        "Your kernel goes through the numbers of `x` one by one in Python. On a device every one of them is a call, and a "
        "number that is looked at is a wait. Do the same to all numbers at once.",
        lambda wrong: all(one.failure == TOO_LATE for one in wrong),
    ),
    Misconception(
        "the levels come sorted",
        "Your kernel is right where the levels stand in order, and wrong where they do not. Nobody promised an order.",
        lambda wrong: _wrong_on(wrong) == {ORDER},
    ),
    Misconception(
        "not the nearest",
        "Some number is replaced by something that is no level, or by a level that is farther away than another. How far is "
        "each number from each level? That is one axis more than `x` has.",
        lambda wrong: True,
    ),
)

SECOND_KERNEL = Exercise(
    lesson=LESSON,
    statement="""\
Write `nearest_level(xp, x, levels)`: a kernel that rounds each number of `x` to the nearest of some levels, as a
quantised network does. It is checked with NumPy, and on `sim:0`.

* `xp` is an array library: `np`, or `sim`. `x` is a floating array of that library, with any number of axes.
* `levels` is a tuple of Python numbers: at least one, few, in any order.
* Return a new array of the same library, shape and dtype. Where two levels are equally near, either will do.
* All numbers at once: one case has 500,000.

Try it by hand as the check does: `nearest_level(np, np.array([0.2, 0.9]), (0.0, 1.0))`, and
`nearest_level(sim, sim.asarray(np.array([0.2, 0.9])), (0.0, 1.0))`.""",
    hints=(
        "Write it for NumPy first, without any loop over the numbers of `x`. How far is each number from each level? "
        "Broadcasting makes that table in one line, if `x` gets an axis more.",
        "`x[..., None]` has one more axis, at the end. Minus an array with the levels, that gives all distances. Which "
        "level is nearest is what `argmin` along the last axis says; an array can be indexed with that.",
        "Every function and every array has to come from `xp`: `xp.asarray(levels, dtype=x.dtype)`, `xp.abs`, "
        "`xp.argmin`. Look for an `np.` that is left.",
    ),
    solution=answers.nearest_level,
    alternatives=(answers.level_by_level, answers.between_the_edges),
    wrong=(
        (answers.the_level_below, "not the nearest"),
        (answers.with_numpy, "a table lies everywhere"),
        (answers.with_numpys_functions, "NumPy is everywhere"),
        (answers.by_python, "a kernel may look at its numbers"),
        (answers.for_every_number, "what NumPy has, every library has"),
        (answers.by_items, "a loop is a kernel"),
        (answers.fetched, "fetch, compute, bring back"),
        (answers.made_on_the_host, "the result may lie anywhere"),
        (answers.in_double_precision, "any dtype will do"),
        (answers.of_one_axis, "an array is a row"),
        (answers.if_sorted, "the levels come sorted"),
        (answers.in_its_place, "changes its argument"),
    ),
    misconceptions=MISCONCEPTIONS,
    cases=_cases,
    accepts=is_nearest,
)

EXERCISES = (SECOND_KERNEL,)
