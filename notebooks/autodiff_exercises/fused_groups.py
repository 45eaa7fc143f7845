"""Two exercises of lesson 100 on what compilers do with known shapes: groups that run as one loop, and buffers used again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from random import Random
from typing import Any

from . import fused_groups_answers as answers
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
    stopped_by,
)
from .fused_groups_answers import Groups, Ops, Steps

# ----------------------------------------------------------------------------------------------------------------- groups


def are_good_groups(answer: Any, ops: Ops) -> bool:
    """Whether each op is in one group, every group can run as one loop, and no two neighbouring groups could be one."""
    if not _is_partition(answer, ops):
        return False
    groups = [list(group) for group in answer]
    return (
        all(_is_one_loop(group, ops) for group in groups) and not _waits(groups, ops) and not _could_be_one(groups, ops)
    )


def _is_partition(answer: Any, ops: Ops) -> bool:
    if not isinstance(answer, list | tuple | set) or not all(
        isinstance(group, list | tuple | set | frozenset) for group in answer
    ):
        return False
    names = [name for group in answer for name in group]
    return all(len(group) for group in answer) and len(names) == len(ops) and set(names) == set(ops)


def _is_one_loop(group: Sequence[str], ops: Ops) -> bool:
    return len(group) == 1 or (_fit(group, ops) and _hangs_together(group, ops))


def _fit(group: Sequence[str], ops: Ops) -> bool:
    """Whether all are elementwise and have one known shape."""
    shapes = {ops[name][1] for name in group}
    return all(ops[name][0] == "elementwise" for name in group) and len(shapes) == 1 and None not in shapes


def _hangs_together(group: Sequence[str], ops: Ops) -> bool:
    reached, waiting = {group[0]}, [group[0]]
    while waiting:
        one = waiting.pop()
        near = {other for other in group if one in ops[other][2] or other in ops[one][2]} - reached
        reached |= near
        waiting += near
    return len(reached) == len(group)


def _waits(groups: Groups, ops: Ops) -> bool:
    """Whether some groups wait for each other in a circle."""
    of = {name: place for place, group in enumerate(groups) for name in group}
    waits_for = {
        place: {of[source] for name in group for source in ops[name][2]} - {place} for place, group in enumerate(groups)
    }
    while ready := [place for place, others in waits_for.items() if not others]:
        for place in ready:
            del waits_for[place]
        waits_for = {place: others - set(ready) for place, others in waits_for.items()}
    return bool(waits_for)


def _could_be_one(groups: Groups, ops: Ops) -> bool:
    """Whether two groups between which something is handed on could be one, without a circle."""
    for one, other in combinations(range(len(groups)), 2):
        joined = groups[one] + groups[other]
        rest = [group for place, group in enumerate(groups) if place not in (one, other)]
        if _fit(joined, ops) and _hangs_together(joined, ops) and not _waits([*rest, joined], ops):
            return True
    return False


def _always(property_of_groups: Callable[[Groups, Ops], bool]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether all wrong answers are partitions with a property."""
    return lambda wrong: all(_shows(property_of_groups, one) for one in wrong)


def _some(wants: Callable[[Sequence[str], Ops], bool]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether some group of several ops has a property."""
    return lambda wrong: any(
        _shows(lambda groups, ops: any(len(group) > 1 and wants(group, ops) for group in groups), one) for one in wrong
    )


def _shows(property_of_groups: Callable[[Groups, Ops], bool], one: Wrong) -> bool:
    (ops,) = one.case.arguments
    is_partition = not one.failure and _is_partition(one.answer, ops)
    return is_partition and property_of_groups([list(group) for group in one.answer], ops)


def _misses_only_shared(groups: Groups, ops: Ops) -> bool:
    """Whether every pair of neighbours that could be joined has a value with several readers."""
    of = {name: place for place, group in enumerate(groups) for name in group}
    readers = {name: sum(name in inputs for _, _, inputs in ops.values()) for name in ops}
    missed = []
    for name, (_, _, inputs) in ops.items():
        for source in inputs:
            joined = groups[of[name]] + groups[of[source]]
            rest = [group for place, group in enumerate(groups) if place not in (of[name], of[source])]
            if of[name] != of[source] and _fit(joined, ops) and not _waits([*rest, joined], ops):
                missed.append((source, name))
    return bool(missed) and all(readers[source] > 1 or readers[name] > 1 for source, name in missed)


GROUP_MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Misconception(
        "an op alone is no group",
        "Ops are missing. An op that joins nobody still has to run: it is a group of one.",
        lambda wrong: all(
            not one.failure
            and isinstance(one.answer, list | tuple | set)
            and all(isinstance(group, list | tuple | set | frozenset) for group in one.answer)
            and {name for group in one.answer for name in group} < set(one.case.arguments[0])
            for one in wrong
        ),
    ),
    Misconception(
        "not groups of ops",
        "Return a list of groups, each a list of names, in which every op is exactly once.",
        lambda wrong: any(not _is_partition(one.answer, one.case.arguments[0]) for one in wrong),
    ),
    Misconception(
        "any op can share a loop",
        "You join ops that do not work number by number. A product of matrices needs whole rows and columns before it has "
        "one number.",
        _some(lambda group, ops: any(ops[name][0] != "elementwise" for name in group)),
    ),
    Misconception(
        "shapes do not matter",
        "You join ops of different shapes. One loop runs over one shape; the other op has another number of results.",
        _some(lambda group, ops: len({ops[name][1] for name in group}) > 1),
    ),
    Misconception(
        "what is unknown is equal",
        "You join ops whose shapes are not known, because both say `None`. They may differ when it runs: what is not known "
        "cannot be planned. This is how one wrong shape rule switches fusion off for all that follows.",
        _some(lambda group, ops: any(ops[name][1] is None for name in group)),
    ),
    Misconception(
        "alike is neighbours",
        "You put ops into one group that hand nothing on to each other, not even through others of the group. Nothing is saved "
        "by that: what makes a loop worth it are values that need not go to memory and back.",
        _some(lambda group, ops: not _hangs_together(group, ops)),
    ),
    Misconception(
        "a group cannot wait for itself",
        "A group of yours needs the result of an op outside of it, which itself needs a result of the group. Neither can "
        "run first. Before you join two, look whether a way leads out of the group and back in.",
        _always(_waits),
    ),
    Misconception(
        "a second reader forbids it",
        "You do not join an op whose result has two readers. It can share the loop of one of them, or of both; the loop "
        "writes the value to memory too if somebody outside needs it.",
        _always(_misses_only_shared),
    ),
    Misconception(
        "there is more to join",
        "Some of your groups are neighbours and could be one. Go on until nothing can be joined any more.",
        lambda wrong: any(_shows(_could_be_one, one) for one in wrong),
    ),
    Misconception(
        "not the groups of one loop each",
        "Take the smallest example and go through your groups: are all ops elementwise, of one known shape, and does each hand "
        "something on inside of its group? Could the groups run one after the other?",
        lambda wrong: True,
    ),
)


def group_cases(random: Random, large: bool) -> Iterator[Case]:
    """A chain, each reason for which neighbours stay apart, a value with two readers, a way out and back, and drawn graphs."""
    n, m = random.sample(range(2, 10), k=2)
    here, there, loop = (n, m), (n, 1), "elementwise"
    yield _group_case(
        "a chain", {"exp": (loop, here, []), "mul": (loop, here, ["exp"]), "tanh": (loop, here, ["mul"])}, random
    )
    yield _group_case(
        "an op that is not elementwise",
        {"exp": (loop, here, []), "matmul": ("other", here, ["exp"]), "tanh": (loop, here, ["matmul"])}, random,
    )  # fmt: skip
    yield _group_case("different shapes", {"exp": (loop, there, []), "add": (loop, here, ["exp"])}, random)
    yield _group_case("unknown shapes", {"exp": (loop, None, []), "tanh": (loop, None, ["exp"])}, random)
    yield _group_case(
        "two readers", {"exp": (loop, here, []), "sin": (loop, here, ["exp"]), "cos": (loop, here, ["exp"])}, random
    )
    yield _group_case("not neighbours", {"exp": (loop, here, []), "sin": (loop, here, [])}, random)
    out_and_back = {"exp": (loop, here, []), "sum": ("other", there, ["exp"]), "div": (loop, here, ["exp", "sum"])}
    yield _group_case("a way out and back", out_and_back, random)
    longer = {**out_and_back, "log": (loop, here, ["div"]), "neg": (loop, here, ["exp", "log"])}
    yield _group_case("a way out and back", longer, random)
    crossed = {
        "exp": (loop, here, []),
        "sin": (loop, there, []),
        "div": (loop, here, ["exp", "sin"]),
        "cos": (loop, there, ["sin", "exp"]),
    }
    yield _group_case("two that need each other", crossed, random)
    for size in range(6, 12 if large else 9):
        yield _group_case("drawn graphs", _drawn_ops(random, size), random)
    yield soon(_group_case("a long chain", _long_chain(40), random))


def _drawn_ops(random: Random, size: int) -> Ops:
    shapes = [(4, 3), (4, 3), (4, 3), (4, 1), None]
    ops: Ops = {}
    for number in range(size):
        inputs = random.sample(list(ops), k=min(len(ops), random.randint(0, 2)))
        ops[f"op{number}"] = ("elementwise" if random.random() < 0.75 else "other", random.choice(shapes), inputs)
    return ops


def _long_chain(length: int) -> Ops:
    return {f"op{n}": ("elementwise", (2, 3), [f"op{n - 1}"] if n else []) for n in range(length)}


def _group_case(check: str, ops: Ops, random: Random) -> Case:
    written = random.sample(list(ops), k=len(ops))
    return case(check, f"{ {name: ops[name] for name in written} }".strip())


# ---------------------------------------------------------------------------------------------------------------- buffers


def is_good_placement(answer: Any, steps: Steps, kept: Sequence[str]) -> bool:
    """Whether values that live at the same time lie in different buffers, and there are as few buffers as can be."""
    if not _is_placement(answer, steps):
        return False
    return not _clashes(answer, steps, kept) and len(set(answer.values())) == _fewest(steps, kept)


def _is_placement(answer: Any, steps: Steps) -> bool:
    return isinstance(answer, Mapping) and set(answer) == set(steps) and all(type(n) is int for n in answer.values())


def _lives(steps: Steps, kept: Sequence[str]) -> dict[str, range]:
    order = list(steps)
    ends = {name: [n for n, other in enumerate(order) if other == name or name in steps[other]][-1] for name in order}
    return {n: range(place, (len(order) if n in kept else ends[n]) + 1) for place, n in enumerate(order)}


def _clashes(placed: Mapping[str, int], steps: Steps, kept: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of values in one buffer of which the second is written while the first still lives."""
    lives = _lives(steps, kept)
    return [
        (one, other)
        for one, other in combinations(steps, 2)
        if placed[one] == placed[other] and lives[other].start in lives[one]
    ]


def _fewest(steps: Steps, kept: Sequence[str]) -> int:
    lives = _lives(steps, kept)
    return max((sum(moment in life for life in lives.values()) for moment in range(len(steps))), default=0)


def _every_clash(explains: Callable[[str, str, Steps, Sequence[str]], bool]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether values clash, and each clash has a property."""

    def explained(wrong: Sequence[Wrong]) -> bool:
        found = [
            (one, other, *w.case.arguments)
            for w in wrong
            if not w.failure
            for one, other in _clashes(w.answer, *w.case.arguments)
        ]
        return bool(found) and all(explains(*each) for each in found)

    return explained


def _is_read_before(one: str, other: str, steps: Steps) -> bool:
    order = list(steps)
    return any(one in steps[name] for name in order[: order.index(other)])


def _placed_like(formula: Callable[..., dict[str, int]]) -> Callable[[Sequence[Wrong]], bool]:
    return lambda wrong: all(
        not one.failure and len(set(one.answer.values())) == len(set(formula(*one.case.arguments).values()))
        for one in wrong
    )


BUFFER_MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    Misconception(
        "all ways can be tried",
        "No answer comes. Go through the steps once: whenever a value is not needed any more, its buffer is free.",
        stopped_by(TOO_LATE, "MemoryError"),
    ),
    STOPS_WITH_ERROR,
    Misconception(
        "not a buffer for each value",
        "Return a dictionary with a whole number for each value: the number of the buffer that it lies in.",
        lambda wrong: any(not _is_placement(one.answer, one.case.arguments[0]) for one in wrong),
    ),
    Misconception(
        "memory is not used twice",
        "You give each value a buffer of its own. When its last reader is done, nobody needs a value any more: the next "
        "result can lie there.",
        _placed_like(answers.a_buffer_each),
    ),
    Misconception(
        "what is kept can go",
        "A value that is wanted at the end is overwritten. Those in `kept` keep their buffers to the end.",
        _every_clash(lambda one, other, steps, kept: one in kept),
    ),
    Misconception(
        "a result may lie on what is being read",
        "You put a result where a value lies that its own step reads. A kernel such as a product of matrices would "
        "overwrite what it has not read yet. (For elementwise ops it is allowed: that is *in place*. Here nobody says that "
        "they are.)",
        _every_clash(lambda one, other, steps, kept: one in steps[other]),
    ),
    Misconception(
        "read once, free",
        "You free a buffer when its value was read for the first time. A later step reads it again, and finds something else.",
        _every_clash(lambda one, other, steps, kept: _is_read_before(one, other, steps)),
    ),
    Misconception(
        "two values that live share a buffer",
        "A result is written over a value that a later step reads. For the smallest example write down, step by step, which "
        "values are still needed.",
        _every_clash(lambda one, other, steps, kept: True),
    ),
    Misconception(
        "who is never read stays for ever",
        "A value that nobody reads and nobody keeps is not needed after its own step. With you its buffer is lost.",
        _placed_like(answers.unread_values_stay),
    ),
    Misconception(
        "more buffers than needed",
        "Fewer buffers are enough. A buffer is free as soon as its last reader is done: the very next step may write there.",
        lambda wrong: True,
    ),
)


def buffer_cases(random: Random, large: bool) -> Iterator[Case]:
    """Chains, values that are read later or twice, kept or never read, and drawn steps."""
    names = random.sample("abcdefgh", k=5)
    a, b, c, d, e = names
    yield _buffer_case("a chain", {a: [], b: [a], c: [b], d: [c]}, [d])
    yield _buffer_case("read again later", {a: [], b: [a], c: [b], d: [a, c]}, [d])
    yield _buffer_case("read for the first time later", {a: [], b: [], c: [b], d: [a, c]}, [d])
    yield _buffer_case("kept", {a: [], b: [a], c: [b], d: [c]}, [a, d])
    yield _buffer_case("never read", {a: [], b: [], c: [b], d: [c], e: [d]}, [e])
    yield _buffer_case("read twice by one step", {a: [], b: [a, a], c: [b, b]}, [c])
    for size in range(6, 14 if large else 10):
        steps = {
            f"v{n}": [f"v{i}" for i in random.sample(range(n), k=min(n, random.randint(0, 2)))] for n in range(size)
        }
        yield _buffer_case("drawn steps", steps, random.sample(list(steps), k=random.randint(1, 2)))
    chain = {f"v{n}": [f"v{n - 1}"] if n else [] for n in range(300)}
    yield soon(_buffer_case("a long chain", chain, ["v299"]))


def _buffer_case(check: str, steps: Steps, kept: list[str]) -> Case:
    return case(check, f"{steps}, {kept}")


EXERCISES = (
    Exercise(
        lesson="100_shape_inference_and_fusion",
        statement="""\
Write `form_groups(ops)`: which ops share a loop?

* `ops` has the ops of a graph: `name: (kind, shape, inputs)`. The kind is `"elementwise"` or `"other"`, the shape is a
  tuple, or `None` where it is not known, and `inputs` are the ops whose results it reads. They are written down in any
  order.
* A group can run as one loop if all its ops are elementwise, have one known shape, and hand their results on inside the
  group. An op that is alone is a group of one.
* Groups must not wait for each other in a circle. A value may have readers outside of its group: it is written as well.
* Return a list of groups, each a list of names, with every op in one group, so that no two neighbouring groups could be
  one.""",
        hints=(
            "Begin with a group for each op. When may two neighbours be one? Write down the three things that must hold, "
            "and the fourth that must not.",
            "The fourth: a way that leads out of the joined group, through any other *group*, and back into it. Look for it "
            "from the readers of the group onwards.",
            "Keep a set for each op, the same set object for all of its group. Join as long as something changes: an op "
            "that was in the way may be inside the group later.",
        ),
        solution=answers.form_groups,
        alternatives=(answers.from_the_last_to_the_first,),
        wrong=(
            (answers.whatever_is_between, "a group cannot wait for itself"),
            (answers.nothing_joined, "there is more to join"),
            (answers.unknown_is_equal, "what is unknown is equal"),
            (answers.shapes_do_not_matter, "shapes do not matter"),
            (answers.kinds_do_not_matter, "any op can share a loop"),
            (answers.all_that_are_alike, "alike is neighbours"),
            (answers.one_reader_only, "a second reader forbids it"),
            (answers.single_ops_are_no_groups, "an op alone is no group"),
            (answers.pairs, "there is more to join"),
        ),
        misconceptions=GROUP_MISCONCEPTIONS,
        cases=group_cases,
        accepts=are_good_groups,
    ),
    Exercise(
        lesson="100_shape_inference_and_fusion",
        statement="""\
Write `place_in_buffers(steps, kept)`: where does each result lie?

* `steps` are the steps of a plan in the order in which they run: `value: the values that its step reads`. All values have
  the same size.
* A value lives from its own step until its last reader is done; those in `kept` live to the end. While a step runs, what it
  reads and what it writes live at the same time.
* Return a dictionary with the number of a buffer for each value. Values that live at the same time lie in different
  buffers, and there are as few buffers as possible.""",
        hints=(
            "Take the chain of four and play it with as few sheets of paper as you can.",
            "Find out first which step reads each value last. Then go through the steps with a list of buffers that are free.",
            "At each step: take a free buffer, or a new one, for the result; *then* put the buffers of all values on the list "
            "whose last reader is this step, also that of a result that nobody reads.",
        ),
        solution=answers.place_in_buffers,
        alternatives=(answers.by_colours,),
        wrong=(
            (answers.a_buffer_each, "memory is not used twice"),
            (answers.operands_make_room, "a result may lie on what is being read"),
            (answers.freed_by_the_first_reader, "read once, free"),
            (answers.kept_values_go, "what is kept can go"),
            (answers.unread_values_stay, "who is never read stays for ever"),
            (answers.two_in_turn, "two values that live share a buffer"),
            (answers.only_when_all_is_done, "more buffers than needed"),
        ),
        misconceptions=BUFFER_MISCONCEPTIONS,
        cases=buffer_cases,
        accepts=is_good_placement,
    ),
)
