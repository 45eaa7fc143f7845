"""Three patients of the bug clinic that no training asks: what an op promised about shape and dtype, and which kernel runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

from ..exercise import RETURNS_NOTHING, STOPS_WITH_ERROR, Case, Misconception, Wrong, case
from . import bugs as sick
from . import promises_answers as answers
from . import repairs as repaired
from . import smallest_tests as tests
from .patients import Patient, gives

Function = Callable[..., Any]
Shape = tuple[int, ...]


def _shape_cases(random: Random, marking: bool) -> Iterator[Case]:
    n, m, k = random.sample(range(4, 9) if marking else range(2, 6), 3)
    for check, x, y in (
        ("another number of axes", (n, 1, m), (k, 1)), ("another number of axes", (n, m), (m,)),
        ("another number of axes", (m,), (n, 1)), ("a stretched axis", (n, 1), (1, m)), ("a stretched axis", (1, m), (n, m)),
        ("an axis of size 1 that stays", (n, 1), (1,)), ("an axis of size 1 that stays", (1,), (1, 1)),
        ("a number", (), (n, m)), ("a number", (), ()), ("an axis without entries", (n, 0), (1,)),
        ("an axis without entries", (1, m), (0, m)),
    ):  # fmt: skip
        yield case(check, f"{x}, {y}")


def _is_shape_of_sum(answer: Any, x: Shape, y: Shape) -> bool:
    """Whether a sum of two arrays of these shapes has this one."""
    is_shape = isinstance(answer, list | tuple) and all(isinstance(size, int | np.integer) for size in answer)
    return is_shape and tuple(answer) == (np.zeros(x) + np.zeros(y)).shape


BROADCAST_SHAPE = Patient(
    title="Patient 10: a shape rule",
    complaint="""\
The shape rule of addition, which follows NumPy's broadcasting: shapes are compared from the right. Training is right, since
a call on arrays never asks the rule. A recorded graph has wrong shapes, and whoever plans buffers or fuses ops trusts them.""",
    sick=sick.broadcast_shape,
    repaired=repaired.broadcast_shape,
    catches=tests.catches_broadcast_shape,
    shows="(1, 2), (2,)",
    hides="(2,), (1,)",
    hidden=(
        "all arrays have the same number of axes",
        "Your test calls the sick function healthy. With as many axes on both sides, or none on one, it does not matter from "
        "which end one counts. Give one shape more axes than the other.",
    ),
    test_hints=(
        "The function adds axes of size 1 to the shorter shape. On which side?",
        "Take a matrix and a vector: three axes in all. What does NumPy say of the shape of their sum?",
        "A matrix of shape (1, 2) plus a vector of shape (2,) has the shape of the matrix. Compare as tuples.",
    ),
    hints=(
        "Shapes are compared from the right. So where do the missing axes belong?",
        "The ones go in front: `(1,) * missing + shape`.",
        "Exchange the two summands in both places where the shape is made longer.",
    ),
    alternatives=(answers.broadcast_by_numpy, answers.broadcast_from_the_end),
    wrong=(
        (answers.broadcast_shorter, "the shorter shape decides"),
        (answers.broadcast_larger, "the larger size wins"),
        (answers.broadcast_longer, "the longer shape wins"),
        (answers.broadcast_turned, "never turned back"),
        (answers.broadcast_first, "only new axes are stretched"),
        (answers.broadcast_without_ones, "an axis of size 1 is none"),
    ),
    misconceptions=(
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        Misconception(
            "the shorter shape decides",
            "You look at the axes that both shapes have, and the others are gone. `zip` stops at the shorter one.",
            gives(answers.broadcast_shorter),
        ),
        Misconception(
            "the larger size wins",
            "You take the larger of two sizes. An axis may have size 0, and a 1 is stretched to 0 as well.",
            gives(answers.broadcast_larger),
        ),
        Misconception(
            "only new axes are stretched",
            "You add the axes that are missing, but an axis of size 1 is stretched too.",
            gives(answers.broadcast_first),
        ),
        Misconception(
            "an axis of size 1 is none",
            "Axes of size 1 are missing in your result. Where neither side has more than one entry, the axis stays, with "
            "size 1.",
            gives(answers.broadcast_without_ones),
        ),
        Misconception(
            "the longer shape wins",
            "You return the shape with more axes. It may have axes of size 1 that the other one stretches.",
            gives(answers.broadcast_longer),
        ),
        Misconception(
            "never turned back",
            "You compare from the right, and leave the result turned round.",
            gives(answers.broadcast_turned),
        ),
        Misconception(
            "not the shape of the sum",
            "Add two arrays of zeros of these shapes, and compare: NumPy gives another shape. A shape is a tuple of whole "
            "numbers.",
            lambda wrong: True,
        ),
    ),
    cases=_shape_cases,
    accepts=_is_shape_of_sum,
    size=lambda x, y: len(x) + len(y),
    unit="axes",
    is_rounded=False,
)


def _dtype_cases(random: Random, marking: bool) -> Iterator[Case]:
    kinds = ["int32", "int64", "float32", "float64"]
    pairs = [(x, y) for x in kinds for y in kinds]
    random.shuffle(pairs)
    for x, y in sorted(pairs, key=lambda pair: sum(one.startswith("float") for one in pair)):
        whole = sum(one.startswith("int") for one in (x, y))
        yield case(("floating numbers", "one of each", "whole numbers")[whole], f"{x!r}, {y!r}")


def _as_dtype(answer: Any) -> Any:
    """The dtype that an answer means; None where it is none."""
    if not isinstance(answer, str | type | np.dtype):
        return None
    try:
        return np.dtype(answer)
    except TypeError:
        return None


def _is_dtype_of_quotient(answer: Any, x: str, y: str) -> bool:
    """Whether a quotient of two arrays of these dtypes has this one."""
    found = _as_dtype(answer)
    return found is not None and bool(found == (np.ones(1, x) / np.ones(1, y)).dtype)


def _dtype_like(formula: Function) -> Callable[[Sequence[Wrong]], bool]:
    return lambda wrong: all(_as_dtype(one.answer) == formula(*one.case.arguments) for one in wrong)


DIV_DTYPE = Patient(
    title="Patient 11: a dtype rule",
    complaint="""\
The dtype rule of `a / b`, for whole numbers (`int32`, `int64`) and floating ones (`float32`, `float64`). Every test of the
team used floating numbers. A graph that divides counts by counts has buffers that cannot hold a half.""",
    sick=sick.div_dtype,
    repaired=repaired.div_dtype,
    catches=tests.catches_div_dtype,
    shows="'int32', 'int32'",
    hides="'float32', 'float64'",
    hidden=(
        "all numbers are floating",
        "Your test calls the sick function healthy. With floating numbers the rule of multiplication and that of division "
        "agree. Which dtypes tell them apart?",
    ),
    test_hints=(
        "What is 1 / 2, and of which dtype is it?",
        "Two dtypes, both of whole numbers. What does NumPy give for the quotient of such arrays?",
        "Ask for `'int32'` twice. The answer must be a floating dtype: `np.dtype(…).kind` is then `'f'`.",
    ),
    hints=(
        "For which pairs is NumPy's common dtype right already?",
        "Only two whole numbers need more: their quotient is floating. Which floating dtype does NumPy give?",
        "Where the `kind` of the common dtype is not `'f'`, return float64.",
    ),
    alternatives=(answers.div_dtype_by_trying,),
    wrong=(
        (answers.div_dtype_double, "double precision for everything"),
        (answers.div_dtype_single, "whole numbers fit into float32"),
        (answers.div_dtype_first, "the first input decides"),
        (answers.div_dtype_larger, "the wider input decides"),
        (answers.div_dtype_floating_one, "any floating input decides"),
    ),
    misconceptions=(
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        Misconception(
            "double precision for everything",
            "Now everything becomes float64, and networks in float32 take twice the memory. Those pairs were right before.",
            _dtype_like(answers.div_dtype_double),
        ),
        Misconception(
            "whole numbers fit into float32",
            "float32 has 24 bits for the digits, and whole numbers of 32 bits need more. NumPy takes the next floating "
            "dtype.",
            _dtype_like(answers.div_dtype_single),
        ),
        Misconception(
            "the first input decides",
            "You look at one input. The rule has to say the same when the two change places.",
            _dtype_like(answers.div_dtype_first),
        ),
        Misconception(
            "the wider input decides",
            "You count bytes. A whole number and a floating one of the same width do not fit into that width.",
            _dtype_like(answers.div_dtype_larger),
        ),
        Misconception(
            "any floating input decides",
            "You take the dtype of one floating input. The other may be wider, or a whole number that needs more digits.",
            _dtype_like(answers.div_dtype_floating_one),
        ),
        Misconception(
            "not the dtype of the quotient",
            "Divide two small arrays of these dtypes: NumPy gives another one. Return a dtype, or its name.",
            lambda wrong: True,
        ),
    ),
    cases=_dtype_cases,
    accepts=_is_dtype_of_quotient,
    unit="dtypes",
    is_rounded=False,
    can_grow=False,
)


def _kernel_cases(random: Random, marking: bool) -> Iterator[Case]:
    for number in range(14 if marking else 9):
        device, other = random.sample(["cpu", "cuda", "sim"], 2)
        dtype, rest = random.sample(["float32", "float64"], 2)
        everybody, own, special = ("any", None), (device, None), (device, dtype)
        tables = [
            [(other, dtype), everybody], [(other, dtype), everybody, own], [own, special, everybody],
            [special, everybody, own, (other, dtype)], [(device, rest), everybody],
        ]  # fmt: skip
        keys = [(other, dtype), (device, rest), special, own, (other, None)]
        chosen = tables[number] if number < len(tables) else [everybody, *random.sample(keys, random.randint(2, 5))]
        if number >= len(tables):
            random.shuffle(chosen)
        kernels = random.sample(["np.sin", "np.cos", "np.tan", "np.exp", "np.log", "np.sqrt"], len(chosen))
        table = ", ".join(f"{key}: {kernel}" for key, kernel in zip(chosen, kernels, strict=True))
        yield case(
            "small tables" if number < len(tables) else "tables in any order", f"{{{table}}}, {device!r}, {dtype!r}"
        )


def _is_most_special(answer: Any, kernels: dict[tuple[str, str | None], Function], device: str, dtype: str) -> bool:
    """Whether this kernel fits, and no other one that fits is more special, device before dtype."""
    fits = {
        key: (key[0] == device, key[1] == dtype)
        for key in kernels
        if key[0] in (device, "any") and key[1] in (dtype, None)
    }
    mine = [fits[key] for key in fits if kernels[key] is answer]
    return bool(mine) and max(mine) == max(fits.values())


CHOOSE_KERNEL = Patient(
    title="Patient 12: the kernel of another device",
    complaint="""\
Dispatch. A table holds kernels under `(device, dtype)`. The dtype `None` means "for every dtype", the device `"any"` "for
every device"; each table has a kernel for `("any", None)`. The most special one that fits should run: the device's kernel for
this dtype, else the device's for every dtype, else the one for any device. It worked until somebody registered a kernel for an
accelerator first.""",
    sick=sick.choose_kernel,
    repaired=repaired.choose_kernel,
    catches=tests.catches_choose_kernel,
    shows="{('cuda', 'float32'): np.sin, ('any', None): np.cos}, 'cpu', 'float32'",
    hides="{('cpu', 'float32'): np.sin, ('any', None): np.cos}, 'cpu', 'float32'",
    hidden=(
        "right on one machine is right",
        "Your test calls the sick function healthy. In your table the kernel that comes first may run on the device that was "
        "asked for. What must stand in the table to lead the function astray?",
    ),
    test_hints=(
        "Which part of the key does the loop not look at?",
        "Two kernels are enough: one of a device that was not asked for, and one that fits.",
        "Put a kernel of `'cuda'` first and one of `('any', None)` second, and ask for `'cpu'`. Kernels may be anything, "
        "also strings.",
    ),
    hints=(
        "`_where` begins with an underline, since nobody reads it. Who should?",
        "Three keys may hold the answer. In which order should they be looked up?",
        "Look for `(device, dtype)`, then `(device, None)`, then `('any', None)`, and return the first that is in the table.",
    ),
    alternatives=(answers.choose_by_ranking,),
    wrong=(
        (answers.choose_general_first, "what always works comes first"),
        (answers.choose_first_that_fits, "the first that fits"),
        (answers.choose_exact_or_general, "all or nothing"),
        (answers.choose_device_only, "the dtype does not matter"),
        (answers.choose_device_general_first, "special after general"),
    ),
    misconceptions=(
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        Misconception(
            "all or nothing",
            "Between the exact key and the kernel for everybody there is one for this device and every dtype.",
            gives(answers.choose_exact_or_general),
        ),
        Misconception(
            "what always works comes first",
            "The kernel for any device always fits, so no other one ever runs. Look for it last.",
            gives(answers.choose_general_first),
        ),
        Misconception(
            "special after general",
            "You ask for the device's general kernel before its special one. Why was the special one written?",
            gives(answers.choose_device_general_first),
        ),
        Misconception(
            "the first that fits",
            "Your kernel fits, but it is the first of the table that does. The order in which kernels were registered must "
            "not matter.",
            gives(answers.choose_first_that_fits),
        ),
        Misconception(
            "the dtype does not matter",
            "You look at the device only. A kernel for another dtype would read the bytes of the array as other numbers.",
            gives(answers.choose_device_only),
        ),
        Misconception(
            "not the most special kernel",
            "Your kernel does not fit, or a more special one does.",
            lambda wrong: True,
        ),
    ),
    cases=_kernel_cases,
    accepts=_is_most_special,
    size=lambda kernels, device, dtype: len(kernels),
    unit="kernels",
    is_rounded=False,
)

PATIENTS = (BROADCAST_SHAPE, DIV_DTYPE, CHOOSE_KERNEL)
