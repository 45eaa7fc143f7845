"""Exercise of lesson 70: find which steps of a program copy numbers between devices, and how many bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from random import Random
from typing import Any

from autodiff_lab import simulated

from . import hidden_copies_answers as answers
from .exercise import CHANGED_ARGUMENTS, RETURNS_NOTHING, STOPS_WITH_ERROR, Case, Exercise, Misconception, Wrong, case
from .hidden_copies_answers import Steps
from .limits import TooManyCalls, limited
from .vjp_laws import numbers

LESSON = "70_devices"
CLEAN, HOME, THERE, BOTH, SHRINKS, WAITS, ONCE, MOVED = (
    "no copies", "copies to the host", "copies to the device", "there and back", "steps that change the size", "waiting",
    "each step once", "a result that stays on the host",
)  # fmt: skip

# -------------------------------------------------------------------------------------------------------------- cases

PURE = ("x * 2.0", "x - x.mean()", "ops.exp(x)", "x / (1.0 + abs(x))", "ops.where(x > 0, x, 0.1 * x)")
TO_HOST = ("x / x.sum().item()", "x - float(x.max())", "-x if x.mean() < 0 else x", "x * x.numpy().max()")
TO_DEVICE = ('x + ad.tensor(np.ones(x.shape), device="sim:0")', 'x * ad.tensor([0.5], device="sim:0")')
ROUND_TRIP = ('x.to("cpu").to("sim:0")', 'ad.tensor(np.tanh(x.numpy()), device="sim:0")')
NAMES = ("scale", "centre", "bend", "fold", "tilt", "shift", "press", "lift", "turn", "blend")


def _cases(random: Random, marking: bool) -> Iterator[Case]:
    size = random.randint(6, 9) if marking else random.randint(4, 5)
    pure, home, there, both = (partial(random.choice, kind) for kind in (PURE, TO_HOST, TO_DEVICE, ROUND_TRIP))
    yield _case(CLEAN, [pure(), pure()], size, random)
    yield _case(HOME, [pure(), home()], size, random)
    yield _case(THERE, [there(), pure()], size, random)
    yield _case(BOTH, [pure(), ROUND_TRIP[0], pure(), ROUND_TRIP[1]], size, random)
    yield _case(WAITS, ["(simulated.device(0).synchronize(), x)[1]", pure()], size, random)
    yield _case(SHRINKS, [pure(), "x[1:]", both(), "x.sum()", both()], size, random)
    yield _case(ONCE, [f"limited(lambda x: {step}, 1)" for step in (pure(), home(), both())], size, random)
    yield _case(MOVED, [home(), pure(), 'x.to("cpu")', "x * 2.0", "x + x.sum().item()"], size, random)
    for _ in range(6 if marking else 2):
        count = random.randint(4, 7)
        yield _case("several steps", [random.choice((pure, home, there, both))() for _ in range(count)], size, random)


def _case(check: str, steps: list[str], size: int, random: Random) -> Case:
    """The steps with names, and an array on the device."""
    named = zip(random.sample(NAMES, len(steps)), steps, strict=True)
    text = ", ".join(
        f'("{name}", {step})' if step.startswith("limited") else f'("{name}", lambda x: {step})' for name, step in named
    )
    x = f'ad.tensor({numbers(random, size)}, device="sim:0")'
    return case(check, f"[{text}], {x}", limited=limited, simulated=simulated)


# --------------------------------------------------------------------------------------------------- what tells right


def _is_count(answer: Any, steps: Steps, x: Any) -> bool:
    return _are_bytes(answer) and bool(answer == answers.with_a_receiver(deepcopy(steps), x))  # each copy may run once


def _are_bytes(answer: Any) -> bool:
    return isinstance(answer, dict) and all(
        isinstance(name, str) and isinstance(nbytes, int) for name, nbytes in answer.items()
    )


# ------------------------------------------------------------------------------------------------ what explains wrong


def _equals(formula: Callable[[Steps, Any], Any]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether every wrong answer is what another way of counting gives."""

    def holds(one: Wrong) -> bool:
        if one.failure:
            return False
        steps, x = one.case.evaluated_with()
        try:
            return bool(one.answer == formula(steps, x))
        except TooManyCalls:
            return False

    return lambda wrong: all(map(holds, wrong))


def _counts_too_much(wrong: Sequence[Wrong]) -> bool:
    """Whether every step is named, with more bytes than it copied."""
    for one in wrong:
        steps, x = one.case.evaluated_with()
        right = answers.with_a_receiver(steps, x)
        if one.failure or not all(one.answer.get(name, 0) > right.get(name, 0) for name, _step in steps[:1]):
            return False
    return True


MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    Misconception(
        "once more does no harm",
        "Your function runs a step more than once. What runs on a device costs time and memory, and may change something: run "
        "each step once, and listen while it runs.",
        lambda wrong: wrong[0].failure == "TooManyCalls",
    ),
    STOPS_WITH_ERROR,
    Misconception(
        "not names with bytes",
        "Return a dictionary: the names of the steps that copy, each with a whole number of bytes.",
        lambda wrong: not _are_bytes(wrong[0].answer),
    ),
    Misconception(
        "nothing is 0 bytes",
        "Your numbers are right, and steps that copy nothing are in the dictionary, too. Asked for are those that copy.",
        _equals(answers.all_named),
    ),
    Misconception(
        "what ends where it began was never away",
        "You compare where a value lies before and after a step. A copy that comes back, or of which only a number is used, is "
        "not seen there: that is what makes it hidden. Listen to what is told while the step runs.",
        _equals(answers.by_where_it_lies),
    ),
    Misconception(
        "waiting is copying",
        "You count where the host waits. It can wait without copying anything, and a copy to the device is one also where "
        "nobody waits for results.",
        _equals(answers.by_waits),
    ),
    Misconception(
        "copies go home",
        "You count one direction. Numbers that travel from the host to the device are copied, too.",
        _equals(answers.only_to_the_host),
    ),
    Misconception(
        "a copy is a copy",
        "You count the copies of a step. Asked for are their bytes, which is what the link has to carry.",
        _equals(answers.number_of_copies),
    ),
    Misconception(
        "a step copies once",
        "Where a step copies several times, only one copy is counted. Add them up.",
        _equals(answers.the_last_copy),
    ),
    Misconception(
        "every step begins anew",
        "You give every step the same `x`. A step gets what the step before it gave, which may have another size, or lie on "
        "another device.",
        _equals(answers.always_on_the_first),
    ),
    Misconception(
        "one list for all steps",
        "A step is charged for what steps before it have copied. Begin with an empty list for each.",
        _equals(answers.added_up),
    ),
    Misconception(
        "who looks copies nothing",
        "You count more than the steps copy, also where they copy nothing: your own look at their results is a copy. Do "
        "not read numbers while you listen.",
        _counts_too_much,
    ),
    Misconception(
        "not what was copied",
        "Print what `ad.listen` hears for a single step, and look for the events named `Transferred`: what do they say?",
        lambda wrong: True,
    ),
)

HIDDEN_COPIES = Exercise(
    lesson=LESSON,
    statement="""\
Write `copied_bytes(steps, x)`: which steps of a program copy numbers between devices, and how much?

* `steps` is a list of pairs: a name, and a function that takes a Tensor and gives one. `x` is a Tensor.
* The first step gets `x`, every other one what the step before it gave. Run each step **once**.
* Return a dictionary with the name of each step that copies, and the bytes that it copies in all, in both directions. Steps
  that copy nothing are not in it.""",
    hints=(
        "Where a value lies before and after a step says nothing of what happened between. What happened is told, to whoever "
        "listens.",
        "`with ad.listen() as told:` around one step. Then look through `told` for events of the class "
        "`ad.events.Transferred`. They know their bytes.",
        "A loop over `steps`; in each round a list of its own, and `x = step(x)` inside of the `with`. Add up `event.nbytes` "
        "of the copies, and write the sum down if it is not 0.",
    ),
    solution=answers.copied_bytes,
    alternatives=(answers.with_a_receiver,),
    wrong=(
        (answers.by_where_it_lies, "what ends where it began was never away"),
        (answers.always_on_the_first, "every step begins anew"),
        (answers.by_waits, "waiting is copying"),
        (answers.only_to_the_host, "copies go home"),
        (answers.number_of_copies, "a copy is a copy"),
        (answers.the_last_copy, "a step copies once"),
        (answers.added_up, "one list for all steps"),
        (answers.looks_at_results, "who looks copies nothing"),
        (answers.with_a_rehearsal, "once more does no harm"),
        (answers.all_named, "nothing is 0 bytes"),
    ),
    misconceptions=MISCONCEPTIONS,
    cases=_cases,
    accepts=_is_count,
)

EXERCISES = (HIDDEN_COPIES,)
