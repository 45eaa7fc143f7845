"""The exercise "a registry" of lesson 130: a table of ops that refuses what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from ..exercise import (
    ACCEPTS_ANYTHING,
    ANOTHER_ERROR,
    REMEMBERS,
    STOPS_WITH_ERROR,
    Case,
    Exercise,
    Misconception,
    case,
    refused,
)
from ..explaining import begins_with
from . import op_registries_answers as answers
from . import probes
from .judging import PROTOCOL
from .scalar_engines import LESSON

DOUBLE, KEPT, GRADIENTS, SHAPES = (
    "a name that is taken",
    "what was there stays",
    "a gradient rule for each operand",
    "a shape for each operand",
)
UNKNOWN, NEAR, NOTHING_LEFT, TWO, ORDER = (
    "a name that nobody registered",
    "an error that helps",
    "a refused op leaves nothing",
    "two registries",
    "the order of names",
)
NAMES = ("mul", "scale", "blend", "merge", "weigh", "couple")


def is_what_a_table_gives(answer: Any, script: Callable[[Any], Any]) -> bool:
    """Whether a script found what it finds in a plain dictionary with checks."""
    return bool(isinstance(answer, list) and answer == script(answers.Table()))


def cases(random: Random, marking: bool) -> Iterator[Case]:
    """Scripts, from one registration to what must not be left behind."""
    one, two, three = random.sample(NAMES, 3)
    a, b = random.randint(2, 5), random.randint(6, 9)
    put = f'ops.register("{one}", *probes.scaled({a}))'
    more = f'[ops.register(name, *probes.scaled({b})) for name in ("{three}", "{two}")]'
    short = f"probes.scaled({b})[0], probes.scaled({b})[1][:1], probes.scaled({b})[2]"
    narrow = f"*probes.scaled({b})[:2], lambda x: x"
    yield _case("one op", f'[{put}, list(ops), probes.kept(ops["{one}"])][1:]')
    yield _case("which names are there", f'[{put}, "{one}" in ops, "{two}" in ops][1:]')
    yield _case(ORDER, f"[{put}, {more}, list(ops)][2:]")
    yield refused(_case(DOUBLE, f"[{put}, {put}]"), "ValueError")
    yield _case(
        KEPT,
        f'[{put}, probes.said(lambda: ops.register("{one}", *probes.scaled({b}))) != "", probes.kept(ops["{one}"])][1:]',
    )
    yield refused(_case(GRADIENTS, f'ops.register("{one}", {short})'), "ValueError")
    yield refused(_case(SHAPES, f'ops.register("{one}", {narrow})'), "ValueError")
    for rest in (short, narrow):
        yield _case(
            NOTHING_LEFT, f'[probes.said(lambda: ops.register("{one}", {rest})) != "", list(ops), "{one}" in ops]'
        )
    yield refused(_case(UNKNOWN, f'[{put}, ops["{two}"]]'), "KeyError")
    yield _case(NEAR, f'[{put}, {more}, "{two}" in probes.said(lambda: ops["{two[:-1]}"])][2:]')
    first = random.sample(NAMES, 3 if marking else 2)
    yield _case(
        TWO, f"[[ops.register(name, *probes.scaled({a})) for name in {first}], list(ops), list(new_registry())][1:]"
    )


def _case(check: str, script: str) -> Case:
    return case(check, f"lambda ops: {script}", probes=probes, new_registry=answers.Table)


MISCONCEPTIONS = (
    REMEMBERS,
    PROTOCOL,
    Misconception(
        "the last one wins",
        "A name can be registered twice, and nobody is told. One of the two ops is lost, and which one depends on who came "
        "first. Refuse it with a ValueError, and keep what was there.",
        lambda wrong: begins_with(DOUBLE, KEPT)(wrong) and not wrong[0].failure,
    ),
    Misconception(
        "a missing rule shows later",
        "An op was taken that has fewer gradient rules than operands. That shows at the first `backward`, far from the "
        "mistake. Here it is easy to see: count the parameters of `forward`.",
        lambda wrong: begins_with(GRADIENTS)(wrong) and not wrong[0].failure,
    ),
    Misconception(
        "the shape rule is somebody else's",
        "An op was taken whose shape rule takes another number of shapes than `forward` takes arrays. Nobody notices before "
        "a graph is planned. Count its parameters, too.",
        lambda wrong: begins_with(SHAPES)(wrong) and not wrong[0].failure,
    ),
    Misconception(
        "half registered",
        "An op was refused, and is in the table all the same. First look at everything, and only then change the table.",
        begins_with(NOTHING_LEFT),
    ),
    Misconception(
        "what is unknown is nothing",
        "For a name that nobody registered you give something back in place of a KeyError. Whoever asked finds out later, "
        "somewhere else.",
        lambda wrong: begins_with(UNKNOWN)(wrong) and not wrong[0].failure,
    ),
    ACCEPTS_ANYTHING,
    ANOTHER_ERROR,
    STOPS_WITH_ERROR,
    Misconception(
        "an error need not help",
        "Your KeyError does not say which name may have been meant. Most unknown names are misspelt: name what is near, or "
        "all that there are. `difflib.get_close_matches` finds it.",
        begins_with(NEAR),
    ),
    Misconception(
        "names have an order of their own",
        "The names come in another order than they were registered in. Whoever lists a table wants to see it as it grew; a "
        "dictionary keeps that order.",
        begins_with(ORDER),
    ),
    Misconception(
        "not what was registered",
        "The table does not give back what was put in. Each name leads to one `OpRules` with the three parts.",
        lambda wrong: True,
    ),
)

EXERCISES = (
    Exercise(
        lesson=LESSON,
        statement="""\
Write `new_registry()`: it returns a new, empty registry, an object of a class of yours.

* `ops.register(name, forward, gradients, shape)` puts an op into the table. `gradients` is a tuple or list with one rule
  for each operand.
* `ops[name]` gives `OpRules(forward, gradients, shape)`, `name in ops` says whether it is there, and a loop over `ops`
  gives the names in the order of registering.
* Mistakes are refused *when they are made*, with a **ValueError**: a name that is taken; another number of gradient rules
  than `forward` has operands; a shape rule that takes another number of shapes. After that, the table is as it was.
* An unknown name is a **KeyError**, whose text names what was probably meant.

How many operands? `len(inspect.signature(forward).parameters)`.""",
        hints=(
            "A dictionary does most of the work. Which three questions do you ask before you change it?",
            "The methods are `__init__`, `register`, `__getitem__`, `__contains__` and `__iter__`. Where is the dictionary "
            "made, so that two registries do not share it?",
            "`difflib.get_close_matches(name, self.entries)` gives a list of names that look like it. In `register`: three "
            "times `if …: raise ValueError(…)`, then `self.entries[name] = OpRules(forward, tuple(gradients), shape)`.",
        ),
        solution=answers.new_registry,
        alternatives=(answers.a_dictionary,),
        wrong=(
            (answers.sorted_names, "names have an order of their own"),
            (answers.overwriting, "the last one wins"),
            (answers.first_wins, "the last one wins"),
            (answers.any_gradients, "a missing rule shows later"),
            (answers.any_shape, "the shape rule is somebody else's"),
            (answers.half_registered, "half registered"),
            (answers.silent, "what is unknown is nothing"),
            (answers.curt, "an error need not help"),
            (answers.asserting, "another error"),
            (answers.in_tuples, "the lab cannot read it"),
            (answers.one_for_all, REMEMBERS.name),
            (answers.names_only, "stops with an error"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=is_what_a_table_gives,
        withheld=("registry",),
        probe=probes.registered,
    ),
)
