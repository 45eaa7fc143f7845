"""Exercise of lesson 50: write a gradient checker, which is marked on twenty wrong ops and five right ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

from . import gradient_check_answers as answers
from .exercise import CHANGED_ARGUMENTS, RETURNS_NOTHING, Case, Exercise, Misconception, Wrong, case
from .planted_ops import PLANS, PlantedOp, plan, planted_op

RIGHT_OPS = "right ops"


def _cases(random: Random, marking: bool) -> Iterator[Case]:
    """Every op once, in an order of its own for each seed."""
    seed = random.randrange(10_000)
    for number in range(len(PLANS)):
        kind = plan(planted_op(number, seed)).kind
        check = f"wrong {kind}" if kind else RIGHT_OPS
        yield case(check, f"planted_op({number}, seed={seed})", planted_op=planted_op)


def _is_verdict(answer: Any) -> bool:
    return isinstance(answer, bool | np.bool_)


def _is_right(answer: Any, op: PlantedOp) -> bool:
    return _is_verdict(answer) and bool(answer) == plan(op).is_right


def _rates(results: Sequence[tuple[Case, bool]]) -> str:
    """The detection rate and the false alarms."""
    counts = {right: [fine for case, fine in results if (case.check == RIGHT_OPS) is right] for right in (True, False)}
    found, wrong = sum(counts[False]), len(counts[False])
    alarms, right = len(counts[True]) - sum(counts[True]), len(counts[True])
    return f"It found {found} of {wrong} wrong ops, and refused {alarms} of {right} right ones."


# ------------------------------------------------------------------------------------------------ what explains wrong


def _missed(wrong: Sequence[Wrong]) -> set[str]:
    """The wrong ops that were let pass."""
    plans = (plan(one.case.arguments[0]) for one in wrong)
    return {one.name for one in plans if not one.is_right}


def _alarms(wrong: Sequence[Wrong]) -> set[str]:
    """The right ops that were refused."""
    plans = (plan(one.case.arguments[0]) for one in wrong)
    return {one.name for one in plans if one.is_right}


def _missing_all_of(*names: str) -> Callable[[Sequence[Wrong]], bool]:
    return lambda wrong: set(names) <= _missed(wrong)


def _missing_one_of(*names: str) -> Callable[[Sequence[Wrong]], bool]:
    return lambda wrong: bool(set(names) & _missed(wrong))


def _refusing_one_of(*names: str) -> Callable[[Sequence[Wrong]], bool]:
    return lambda wrong: bool(set(names) & _alarms(wrong))


def _refusing_only(*names: str) -> Callable[[Sequence[Wrong]], bool]:
    return lambda wrong: bool(_alarms(wrong)) and _alarms(wrong) <= set(names)


def _looks_at_one_input(wrong: Sequence[Wrong]) -> bool:
    """What is missed is wrong in one of two gradients only."""
    return _missed(wrong) == {"transposed"} or {"second input"} <= _missed(wrong) <= {
        "second input",
        "broadcasting not undone",
    }


MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    Misconception(
        "an error is a verdict",
        "Your checker stopped with an error on some op. A checker meets the strangest gradients, of the wrong shape "
        "for example, and has to give its verdict on them: look at the shapes before you compute with them.",
        lambda wrong: any(one.failure for one in wrong),
    ),
    Misconception(
        "anything is a verdict",
        "Your checker should return one truth value: is the gradient right, yes or no.",
        lambda wrong: any(not _is_verdict(one.answer) for one in wrong),
    ),
    Misconception(
        "there is a gradient, so it is right",
        "Your checker accepts plainly wrong numbers: a lost sign, a missing factor, a wrong product. It may look whether "
        "there is a gradient, or pull back zeros; it has to compare with something that knows nothing of the rule, such as "
        "differences of `forward`.",
        _missing_all_of("sign lost", "factor missing", "transposed"),
    ),
    Misconception(
        "smaller ε is better",
        "Your checker refuses right ops. Either the step is so small that the differences are nothing but rounding, or the "
        "tolerance is tighter than differences can be. Look at the plot of section 2: where is the error of the "
        "differences smallest, and how small?",
        _refusing_one_of("mul", "matmul"),
    ),
    Misconception(
        "all ones is a test",
        "Your checker misses every mistake that a cotangent of ones cannot show: the forgotten upstream gradient, a "
        "reshape in place of a transpose, a wrong axis. Pull back random numbers of both signs.",
        _missing_all_of("upstream forgotten", "reshaped", "wrong axis"),
    ),
    Misconception(
        "one input speaks for all",
        "Your checker misses an op with two inputs, one of whose gradients is right and one is not. Check every input.",
        _looks_at_one_input,
    ),
    Misconception(
        "the size is enough",
        "Your checker misses gradients with the wrong sign. Compare the numbers themselves, not their absolute values.",
        _missing_all_of("sign lost", "second input"),
    ),
    Misconception(
        "one entry speaks for all",
        "Your checker misses mistakes that show in some entries only. Check all of them, or random directions through all.",
        _missing_one_of("last entry", "reshaped", "wrong axis", "negative inputs"),
    ),
    Misconception(
        "one point is enough",
        "Your checker misses rules that are right at one point by luck, or that remember values from an earlier call. "
        "Check at several points: `op.inputs(seed)` gives others for another seed.",
        _missing_one_of("lucky point", "stale value"),
    ),
    Misconception(
        "if the numbers agree, the shape does",
        "Your checker accepts a gradient whose shape is not that of its input. NumPy broadcasts in comparisons and "
        "products, so the numbers seem to agree: compare the shapes first.",
        _missing_one_of("broadcasting not undone"),
    ),
    Misconception(
        "cotangents are positive",
        "Your checker misses a rule that is right for positive upstream gradients only. Draw numbers of both signs.",
        _missing_one_of("upstream without sign"),
    ),
    Misconception(
        "near enough is right",
        "Your checker misses a gradient that is one percent off. Central differences are good to many more digits, so "
        "the tolerance can be much tighter.",
        _missing_one_of("one percent off"),
    ),
    Misconception(
        "NaN is no difference",
        "Your checker accepts a gradient that holds NaN. Every comparison with NaN says no, also `error > tolerance`: "
        "write it the other way round, so that what is not close enough is wrong.",
        _missing_one_of("not a number"),
    ),
    Misconception(
        "a rule only reads",
        "Your checker misses a rule that gives the right numbers and overwrites what it was given. Keep a copy of the "
        "arguments and compare after the call.",
        _missing_one_of("changes x", "changes g"),
    ),
    Misconception(
        "only the numbers count",
        "Your checker misses a rule that turns float32 into float64. The dtype of a gradient is that of its input.",
        _missing_one_of("dtype"),
    ),
    Misconception(
        "float32 is precise enough for differences",
        "Your checker refuses a right op in float32: its numbers have seven digits, and a difference of two of them "
        "has hardly any. Compute the differences on float64 copies of the inputs. (If you do: a step can be too large as "
        "well.)",
        _refusing_only("float32 sine"),
    ),
    Misconception(
        "one tolerance for all sizes",
        "Your checker refuses a right op whose gradients are very large. An error is large or small only in "
        "comparison with the gradient.",
        _refusing_only("large squares"),
    ),
    Misconception(
        "zero divided by zero is an error",
        "Your checker refuses a right op, some of whose gradients are exactly zero. Do not divide by them: compare "
        "the error with a tolerance times the size of the whole gradient.",
        _refusing_only("relu"),
    ),
    Misconception(
        "not yet a checker",
        "Your checker is wrong about some of the ops. Take the one below, print its gradient and the differences side "
        "by side, and look where they part.",
        lambda wrong: True,
    ),
)

CHECKER = Exercise(
    lesson="50_gradient_check",
    statement="""\
Write `gradient_is_right(op)`: is the gradient rule of `op` right? It returns a truth value. It is marked on **twenty
wrong ops and five right ones**, so refusing everything is no way out. An op has three functions:

* `op.inputs(seed)` gives a tuple of fresh arrays; another seed gives other numbers.
* `op.forward(*inputs)` gives the result, an array. It is always right, in float32 and in float64.
* `op.vjp(g, *inputs)` gives a tuple with one gradient for each input. `g` is the upstream gradient, shaped like the result.

A right rule gives right numbers for every `g` and at every point, in the shape and dtype of each input, and leaves
its arguments as they were. `planted_op(number)` gives one of the ops to try, for numbers from 0 to 24.""",
    hints=(
        "Begin with one op, one point and a random `g`. For one entry of one input: move it a step up and a step down, run "
        "`forward` on both, multiply the difference by `g` and add up. Compare with that entry of the gradient. Then "
        "let it loop over all entries, all inputs, and a few seeds.",
        "Before you look at the numbers, look at the rest: is there one gradient for each input, with its shape and "
        "its dtype? Are `g` and the inputs after the call what they were before it? And think of NaN: it is not "
        "greater than anything.",
        "Differences need float64: convert copies of the inputs with `astype(np.float64)`, and call `vjp` on them "
        "once more for the numbers. A step of 1e-5 times the size of the entry (at least 1e-5), a tolerance of 1e-4 "
        "times the largest entry of the gradient, five seeds.",
    ),
    solution=answers.gradient_is_right,
    alternatives=(answers.checked_along_directions, answers.checked_with),
    wrong=(
        (answers.with_all_ones, "all ones is a test"),
        (answers.accepts_everything, "there is a gradient, so it is right"),
        (answers.with_the_smallest_step, "smaller ε is better"),
        (answers.of_the_first_input, "one input speaks for all"),
        (answers.of_the_last_input, "one input speaks for all"),
        (answers.of_the_size, "the size is enough"),
        (answers.of_the_first_entry, "one entry speaks for all"),
        (answers.at_one_point, "one point is enough"),
        (answers.whatever_the_shape, "if the numbers agree, the shape does"),
        (answers.with_positive_cotangents, "cotangents are positive"),
        (answers.near_enough, "near enough is right"),
        (answers.where_nan_is_no_difference, "NaN is no difference"),
        (answers.whatever_it_changes, "a rule only reads"),
        (answers.whatever_the_dtype, "only the numbers count"),
        (answers.in_single_precision, "float32 is precise enough for differences"),
        (answers.with_an_absolute_tolerance, "one tolerance for all sizes"),
    ),
    misconceptions=MISCONCEPTIONS,
    cases=_cases,
    accepts=_is_right,
    tally=_rates,
)
