"""Exercise of lesson 70: which kernel of a table runs a call, judged by the order in which the lab itself looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

import autodiff_lab as ad

from . import dispatch_table_answers as answers
from .dispatch_table_answers import Kernels
from .exercise import CHANGED_ARGUMENTS, Case, Exercise, Misconception, Wrong, case

LESSON = "70_devices"
KINDS, DTYPES = ("cpu", "cuda", "sim"), ("float16", "float32", "float64", "int64")
EXACT, NONE, NUMBERS, MIXED, SEVERAL = (
    "a kernel of its own", "no kernel", "Python numbers", "operands on two devices", "two dtypes",
)  # fmt: skip
LESS_SPECIAL, DEVICE_OR_DTYPE, ORDER, STAND_IN, NUMBERED = (
    "a less special kernel", "device or dtype", "the order of the table", "the stand-in", "the second device of a kind",
)  # fmt: skip

# -------------------------------------------------------------------------------------------------------------- cases


def _cases(random: Random, marking: bool) -> Iterator[Case]:
    one, other, third = random.sample(DTYPES, 3)
    kind = random.choice(("cpu", "cuda"))
    here = (kind if kind == "cpu" else f"{kind}:0", one)
    general = {("any", "any"): "general"}
    yield _case(EXACT, {(kind, one): "special"}, [here], random)
    yield _case(LESS_SPECIAL, {(kind, other): "other", **general}, [here], random)
    yield _case(NONE, {(kind, other): "other"}, [here], random)
    yield _case(NONE, {("cpu", "any"): "on_cpu", ("cpu", one): "narrow"}, [("cuda:0", one)], random)
    yield _case(DEVICE_OR_DTYPE, {(kind, "any"): "of_device", ("any", one): "of_dtype", **general}, [here], random)
    yield _case(LESS_SPECIAL, {("any", one): "of_dtype", **general}, [here, here], random)
    table = {**general, ("any", one): "of_dtype", (kind, "any"): "of_device", (kind, one): "special"}
    yield case(ORDER, f"{table}, {[here]}")
    yield _case(STAND_IN, {("cuda", "any"): "on_gpu", ("cuda", one): "narrow", **general}, [("sim:0", one)], random)
    yield _case(NUMBERED, {("cuda", "any"): "on_gpu", **general}, [(f"cuda:{random.randint(10, 15)}", one)], random)
    yield _case(NUMBERS, {("cuda", one): "special", **general}, [("cuda:0", one), 2.0], random)
    yield _case(NUMBERS, {("cuda", one): "special", **general}, [0.5, ("cuda:0", one), 2], random)
    yield _case(NUMBERS, {("cpu", "float64"): "wide", ("cpu", "any"): "on_cpu", **general}, [1.5, 2.0], random)
    yield _case(MIXED, {("cuda", "any"): "on_gpu", **general}, [("cuda:0", one), ("cpu", one)], random)
    yield _case(MIXED, {("cuda", "any"): "on_gpu", **general}, [("cuda:0", one), 3.0, ("cuda:1", one)], random)
    both = {("sim", other): "second", ("sim", one): "first", ("sim", third): "neither", **general}
    yield _case(SEVERAL, both, [2.0, ("sim:1", one), ("sim:1", other)], random)
    for _ in range(24 if marking else 8):
        yield _case("random tables", _table(random), _operands(random), random)


def _case(check: str, kernels: Kernels, operands: list[Any], random: Random) -> Case:
    """The call with a table in some order."""
    shuffled = random.sample(list(kernels.items()), len(kernels))
    return case(check, f"{dict(shuffled)}, {operands}")


def _table(random: Random) -> Kernels:
    keys = [(kind, dtype) for kind in (*KINDS, "any") for dtype in (*DTYPES, "any")]
    return {key: "_".join(("on", *key)) for key in random.sample(keys, random.randint(3, 9))}


def _operands(random: Random) -> list[Any]:
    """An array or two on one device, perhaps with a number."""
    device = random.choice(("cpu", "cuda:0", "cuda:1", "sim:0", "sim:12"))
    arrays: list[Any] = [(device, random.choice(DTYPES)) for _ in range(random.randint(1, 2))]
    return [*arrays[:1], *random.choice(([], [2.0])), *arrays[1:]]


# --------------------------------------------------------------------------------------------------- what tells right


def chosen(kernels: Kernels, operands: list[Any]) -> str | None:
    """The kernel that is first in the lab's own order of dispatch."""
    arrays = [operand for operand in operands if isinstance(operand, tuple)]
    if len({device for device, _dtype in arrays}) > 1:
        return None
    device, dtype = arrays[0] if arrays else ("cpu", None)
    order = ad.fallback_order(device.partition(":")[0], None if dtype is None else np.dtype(dtype))
    keys = [(kind, "any" if one is None else str(one)) for kind, one in order]
    return next((kernels[key] for key in keys if key in kernels), None)


def is_chosen(answer: Any, kernels: Kernels, operands: list[Any]) -> bool:
    """Whether the answer is that kernel's name, or None where there is none."""
    right = chosen(kernels, operands)
    return answer is None if right is None else isinstance(answer, str) and answer == right


# ------------------------------------------------------------------------------------------------ what explains wrong


def _equals(formula: Callable[[Kernels, list[Any]], str | None]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether every wrong answer is what another rule takes."""

    def holds(one: Wrong) -> bool:
        other = formula(*one.case.arguments)
        return not one.failure and type(one.answer) is type(other) and bool(one.answer == other)

    return lambda wrong: all(map(holds, wrong))


MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    Misconception(
        "there is always a kernel",
        "Your function stops with an error. Sometimes no kernel fits, or no device is the right one, and there is an answer "
        "for that, too. Also think of operands that are plain numbers: they are no pairs.",
        lambda wrong: bool(wrong[0].failure),
    ),
    Misconception(
        "not a kernel's name",
        "Return the name of one kernel, as it stands in the table, and nothing else.",
        lambda wrong: not isinstance(wrong[0].answer, str | None),
    ),
    Misconception(
        "only an exact match will do",
        "You take a kernel for exactly this device and dtype, or none. A kernel for any dtype runs this one, too, and a "
        "kernel for any library runs on this device.",
        _equals(answers.exact_only),
    ),
    Misconception(
        "a number lies on the CPU",
        "You treat a Python number as if it lay on the CPU, in float64. It lies nowhere: it goes along with the call, and "
        "decides neither device nor dtype.",
        lambda wrong: _equals(answers.numbers_on_the_cpu)(wrong) or _equals(answers.first_may_be_a_number)(wrong),
    ),
    Misconception(
        "all GPUs are one",
        "Two arrays on two devices of one kind are not on one device: each has memory of its own.",
        _equals(answers.same_kind_is_same_device),
    ),
    Misconception(
        "the first operand decides",
        "Your function lets a call run whose arrays lie on two devices. Somebody would have to copy one of them, and nothing "
        "is copied by itself: no kernel may run.",
        _equals(answers.of_the_first_operand),
    ),
    Misconception(
        "dtype before device",
        "Where there is one kernel for the device and another one for the dtype, you take the one for the dtype. A kernel that "
        "was written for this device knows it best.",
        _equals(answers.dtype_first),
    ),
    Misconception(
        "every device has kernels of its own",
        "You look for the device's full name in the table. Kernels are kept by kind: all devices of a kind share them.",
        _equals(answers.by_the_devices_name),
    ),
    Misconception(
        "the CPU can always help",
        "You fall back to a kernel of the CPU where the arrays lie elsewhere. It cannot read them; they would have to be "
        "copied there and back, without a word.",
        _equals(answers.cpu_helps_out),
    ),
    Misconception(
        "a stand-in is a GPU",
        "You give the simulated device a kernel that was written for CUDA. It is no GPU, and cannot run it.",
        _equals(answers.sim_is_a_gpu),
    ),
    Misconception(
        "a kernel takes any dtype",
        "You give an array to a kernel that was written for another dtype. It would read its bytes as something else.",
        _equals(answers.any_dtype_of_the_device),
    ),
    Misconception(
        "the last dtype counts",
        "Where the arrays have several dtypes you take that of the wrong one: the first array decides.",
        _equals(answers.of_the_last_operand),
    ),
    Misconception(
        "the first that fits",
        "Your answer depends on the order in which the kernels were registered. Take the most special kernel that fits, "
        "wherever it stands.",
        _equals(answers.first_that_fits),
    ),
    Misconception(
        "not the kernel that runs",
        "Write down the four keys in the order in which they are looked for, each with what the table has for it. The first "
        "that is there is the answer.",
        lambda wrong: True,
    ),
)

DISPATCH_TABLE = Exercise(
    lesson=LESSON,
    statement="""\
Write `kernel_for(kernels, operands)`: the name of the kernel that runs a call.

* `kernels` is a dictionary from pairs to names, as in `{("cuda", "float32"): "fast", ("any", "any"): "general"}`. A pair
  holds the kind of device (`"cpu"`, `"cuda"`, `"sim"`, or `"any"`) and the dtype (as `"float32"`, or `"any"`).
* `operands` is a list. An array stands as the pair of its device and dtype, as in `("cuda:0", "float32")`. A Python number
  stands as it is: it lies nowhere.
* The dtype of a call is that of its first array. A call of numbers alone runs on the CPU, and has no dtype: only kernels for
  any dtype fit.
* Look for the kernel from the most special to the most general one, in the order of the picture above.
* Return None where no kernel may run.""",
    hints=(
        "Three questions, one after the other: on which device do the arrays lie, and is it one? What is the dtype? Which "
        "keys are looked for, in which order?",
        "`isinstance(operand, tuple)` tells arrays from numbers. A set of the arrays' devices has one member, several, or "
        'none. The kind is what stands before the colon: `"cuda:0".split(":")[0]`.',
        "Write the keys as a list of pairs, device and dtype first, then the device with any dtype, then any library with the "
        "dtype, then any with any. Go through that list, and return what the table has for the first key that is in it.",
    ),
    solution=answers.kernel_for,
    alternatives=(answers.best_of_all,),
    wrong=(
        (answers.cpu_helps_out, "the CPU can always help"),
        (answers.exact_only, "only an exact match will do"),
        (answers.dtype_first, "dtype before device"),
        (answers.first_that_fits, "the first that fits"),
        (answers.any_dtype_of_the_device, "a kernel takes any dtype"),
        (answers.sim_is_a_gpu, "a stand-in is a GPU"),
        (answers.by_the_devices_name, "every device has kernels of its own"),
        (answers.of_the_first_operand, "the first operand decides"),
        (answers.numbers_on_the_cpu, "a number lies on the CPU"),
        (answers.first_may_be_a_number, "a number lies on the CPU"),
        (answers.of_the_last_operand, "the last dtype counts"),
        (answers.same_kind_is_same_device, "all GPUs are one"),
        (answers.asks_the_lab, "the lab does it"),
    ),
    misconceptions=MISCONCEPTIONS,
    cases=_cases,
    accepts=is_chosen,
    withheld=("fallback_order", "dispatch_told"),
)

EXERCISES = (DISPATCH_TABLE,)
