"""The two exercises of each patient of the bug clinic: the smallest test that fails on the bug, and the repair."""

from __future__ import annotations

import copy
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from ..exercise import RETURNS_NOTHING, Case, Exercise, Misconception, Wrong, case, stopped_by
from ..sameness import same
from .patients import CALLS, Function, Patient, Specimen, alike, is_sick, outcome

# -------------------------------------------------------------------------------------------- tests, right and wrong


def differs(specimen: Function, patient: Patient, arguments: tuple[Any, ...]) -> bool:
    """Whether a specimen does with these arguments what a healthy function does not."""
    return not alike(outcome(specimen, arguments), outcome(patient.repaired, arguments))


def trials_of(patient: Patient) -> tuple[Function, dict[str, Function]]:
    """A test that is right, and wrong ones by the name of their misconception. Each is given one specimen."""
    shows = patient.arguments(patient.shows)

    def compared_with_a_healthy_one(specimen: Function) -> bool:
        return differs(specimen, patient, shows)

    def where_it_hides(specimen: Function) -> bool:
        return differs(specimen, patient, patient.arguments(patient.hides))

    def large(specimen: Function) -> bool:
        cases = patient.cases(Random(1), True)
        most = max((one.arguments for one in cases), key=lambda arguments: patient.size(*arguments))
        return differs(specimen, patient, copy.deepcopy(most))

    def the_other_way_round(specimen: Function) -> bool:
        return not differs(specimen, patient, shows)

    def always(specimen: Function) -> bool:
        return bool(outcome(specimen, shows))

    def asserted(specimen: Function) -> None:
        assert not differs(specimen, patient, shows), "sick"

    def exact(specimen: Function) -> bool:
        return not same(outcome(specimen, shows), outcome(patient.repaired, shows))

    wrong: dict[str, Function] = {
        patient.hidden[0]: where_it_hides,
        OTHER_WAY_ROUND.name: the_other_way_round,
        ALL_SICK.name: always,
        ASSERTS.name: asserted,
    }
    if patient.can_grow:
        wrong[ANY_INPUT.name] = large
    if patient.is_rounded:
        wrong[EXACTLY.name] = exact
    return compared_with_a_healthy_one, wrong


def _missed(wrong: Sequence[Wrong]) -> bool:
    """Whether a sick one was let pass."""
    return any(is_sick(one.case.arguments[0]) for one in wrong)


def _refused(wrong: Sequence[Wrong], first: bool = False) -> bool:
    """Whether a healthy one was refused; the first of them is the one that students know."""
    healthy = (one.case.arguments[0] for one in wrong if not is_sick(one.case.arguments[0]))
    return any(one.seed == 0 or not first for one in healthy)


ANY_INPUT = Misconception(
    "any input that fails will do",
    "Your test passes more to the function than the bug needs, or calls it more often. A small failing test is half of the "
    "repair: with a handful of numbers you can do the arithmetic in your head and see which line is wrong. Leave out what "
    "the bug does not need, one thing at a time.",
    stopped_by("TooLarge"),
)
ASSERTS = Misconception(
    "an assertion is an answer",
    "Your test stops with an AssertionError. Here a test has to *return* whether the function is sick, so that it can be "
    "asked about many functions.",
    stopped_by("AssertionError"),
)
STOPS = Misconception(
    "the function always gives what I expect",
    "Your test stopped with an error. It meets functions that are sick, and healthy ones that return a list where others "
    "return a tuple, or a number where others return an array.",
    lambda wrong: any(one.failure for one in wrong),
)
NO_VERDICT = Misconception(
    "anything is a verdict",
    "Your test should return one truth value: is the function sick, yes or no. A comparison of arrays gives an array.",
    lambda wrong: any(not isinstance(one.answer, bool | np.bool_) for one in wrong),
)
OTHER_WAY_ROUND = Misconception(
    "what comes out is what should come out",
    "Your test calls the sick function healthy and the healthy one sick. Did you take what the function returns for what is "
    "right? Work out with pencil and paper what should come out.",
    lambda wrong: _missed(wrong) and _refused(wrong, first=True),
)
ALL_SICK = Misconception(
    "a test that fails is a good test",
    "Your test calls a healthy function sick. A test has to fail on the bug **and** pass on what is right: work out once "
    "more with pencil and paper what should come out.",
    lambda wrong: _refused(wrong, first=True),
)
EXACTLY = Misconception(
    "there is one right answer",
    "Your test refuses a healthy function that computes in another way: its last digit differs, or it returns a list where "
    "others return a tuple. Compare floating numbers with a tolerance, as `np.isclose` and `np.allclose` do.",
    _refused,
)


def catching_exercise(patient: Patient, lesson: str, names: Mapping[str, Callable[..., Specimen]]) -> Exercise:
    """Write the smallest test that fails on the patient's bug and passes on what is right."""
    right, wrong = trials_of(patient)

    def cases(random: Random, marking: bool) -> Iterator[Case]:
        name = patient.name
        yield case("the sick function", f"sick({name!r})", **names)
        yield case("a healthy function", f"healthy({name!r})", **names)
        for seed in random.sample(range(1, 1000), 6 if marking else 3):
            yield case("healthy functions that compute in another way", f"healthy({name!r}, seed={seed})", **names)
        yield case("the sick function, rounded otherwise", f"sick({name!r}, seed={random.randint(1, 999)})", **names)

    return Exercise(
        lesson=lesson,
        statement=_first_statement(patient),
        hints=patient.test_hints,
        solution=patient.catches,
        alternatives=(right,),
        wrong=tuple((function, name) for name, function in wrong.items()),
        misconceptions=(
            ANY_INPUT, ASSERTS, RETURNS_NOTHING, STOPS, NO_VERDICT, OTHER_WAY_ROUND, ALL_SICK, EXACTLY,
            Misconception(*patient.hidden, lambda wrong: True),
        ),
        cases=cases,
        accepts=_is_verdict_on,
    )  # fmt: skip


def _is_verdict_on(answer: Any, specimen: Specimen) -> bool:
    return isinstance(answer, bool | np.bool_) and bool(answer) == is_sick(specimen)


def _first_statement(patient: Patient) -> str:
    name = patient.name
    source = textwrap.dedent(inspect.getsource(patient.sick)).strip()
    return f"""\
### {patient.title}

{patient.complaint}

```python
{source}
```

**First the test.** Write `catches_{name}({name})`. It is given a function, this one or a healthy one, and returns whether it
is sick. Make it small: at most {patient.smallest} {patient.unit} in a call, all arguments together, and at most {CALLS} calls.
(`sick({name!r})` and `healthy({name!r})` give one of each, to try.)"""


# ------------------------------------------------------------------------------------------------------------ repair


def repair_exercise(patient: Patient, lesson: str) -> Exercise:
    """Repair the patient's function."""

    still_sick = Misconception(
        "still sick",
        "On every input that fails, your function gives what the sick one gives. Follow your smallest failing input through "
        "it, line by line: which line is the first to be wrong?",
        lambda wrong: all(_does_as(patient.sick, one) for one in wrong),
    )
    return Exercise(
        lesson=lesson,
        statement=f"**Then the repair** of `{patient.name}`. Change as little as the bug needs.",
        hints=patient.hints,
        solution=patient.repaired,
        alternatives=patient.alternatives,
        wrong=((patient.sick, still_sick.name), *patient.wrong),
        misconceptions=(still_sick, *patient.misconceptions),
        cases=patient.cases,
        accepts=patient.accepts,
        withheld=patient.withheld,
        broken=patient.sick,
    )


def _does_as(sick: Function, one: Wrong) -> bool:
    """Whether an attempt gave what the sick function gives, and changed its arguments where that does."""
    given = copy.deepcopy(one.case.arguments)
    answer = sick(*given)
    changed = not same(given, one.case.arguments)
    return not one.failure and alike(one.answer, answer) and one.attempt.changed_arguments == changed
