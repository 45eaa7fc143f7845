"""Answers to the exercises of lesson 100 on fusion and memory, right and wrong: what their checks are tested on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Shape = tuple[int, ...]
Ops = dict[str, tuple[str, Any, list[str]]]  # name -> kind, shape (None: not known), the ops whose results it reads
Groups = list[list[str]]
Steps = dict[str, list[str]]  # a value, in the order of the steps -> the values that its step reads

# -------------------------------------------------------------------------------------- what solutions can look like


def form_groups(ops):
    """Groups of ops that run as one loop each, as few as neighbours allow."""
    group = {name: {name} for name in ops}

    def waits_for_itself(joined):
        seen, waiting = set(), [name for name in ops if joined.intersection(ops[name][2]) and name not in joined]
        while waiting:  # everything that comes behind the group, through whole groups
            for member in group[waiting.pop()]:
                if member not in seen:
                    seen.add(member)
                    waiting += [name for name in ops if member in ops[name][2]]
        return bool(seen & joined)

    changed = True
    while changed:
        changed = False
        for name, (kind, shape, inputs) in ops.items():
            for source in inputs:
                fits = ops[source][:2] == (kind, shape) == ("elementwise", shape) and shape is not None
                joined = group[name] | group[source]
                if fits and group[name] is not group[source] and not waits_for_itself(joined):
                    group.update(dict.fromkeys(joined, joined))
                    changed = True
    return [sorted(one) for one in {id(one): one for one in group.values()}.values()]


def place_in_buffers(steps, kept):
    """A buffer's number for each value, so that no two values that live at the same time share one."""
    last = {name: place for place, name in enumerate(steps)}
    for place, name in enumerate(steps):
        last.update(dict.fromkeys(steps[name], place))
    last.update(dict.fromkeys(kept, len(steps)))
    free, buffers, made = [], {}, 0
    for place, name in enumerate(steps):
        if not free:
            free.append(made)
            made += 1
        buffers[name] = free.pop()
        free += [buffers[one] for one in buffers if last[one] == place]
    return buffers


# ---------------------------------------------------------------------------------------------- right alternatives


def from_the_last_to_the_first(ops):
    """Joins each op with the ops that read it, from the end."""
    return form_groups(dict(reversed(ops.items())))


def by_colours(steps, kept):
    """Gives each value the smallest number that nothing else has that lives at its time."""
    order = list(steps)
    lives = {}
    for place, name in enumerate(order):
        readers = [there for there, other in enumerate(order) if name in steps[other]]
        lives[name] = (place, len(order) if name in kept else max([place, *readers]))
    buffers = {}
    for name in order:
        taken = {buffers[other] for other in buffers if lives[other][1] >= lives[name][0]}
        buffers[name] = next(number for number in range(len(order)) if number not in taken)
    return buffers


# -------------------------------------------------------------------------------------------- what goes wrong: groups


def _joined(ops: Ops, may: Callable[[Any, Any], bool]) -> Groups:
    """Joins neighbours wherever a rule allows it, and asks nothing else."""
    group = {name: {name} for name in ops}
    for name in ops:
        for source in ops[name][2]:
            if may(ops[source], ops[name]):
                joined = group[name] | group[source]
                group.update(dict.fromkeys(joined, joined))
    return [sorted(one) for one in {id(one): one for one in group.values()}.values()]


def _alike(one: Any, other: Any) -> bool:
    return one[0] == other[0] == "elementwise" and one[1] == other[1] and one[1] is not None


def whatever_is_between(ops):
    """Never asks whether a group would wait for itself."""
    return _joined(ops, _alike)


def nothing_joined(ops):
    """Leaves each op alone."""
    return [[name] for name in ops]


def unknown_is_equal(ops):
    """Takes two shapes that are not known for equal."""
    return _joined(ops, lambda one, other: one[0] == other[0] == "elementwise" and one[1] == other[1])


def shapes_do_not_matter(ops):
    """Joins all elementwise neighbours."""
    return _joined(ops, lambda one, other: one[0] == other[0] == "elementwise")


def kinds_do_not_matter(ops):
    """Joins all neighbours of one shape."""
    return _joined(ops, lambda one, other: one[1] == other[1] and one[1] is not None)


def all_that_are_alike(ops):
    """Puts everything of one shape into one group, neighbours or not."""
    groups: dict[Any, list[str]] = {}
    for name, (kind, shape, _) in ops.items():
        groups.setdefault((shape,) if kind == "elementwise" and shape is not None else name, []).append(name)
    return list(groups.values())


def one_reader_only(ops):
    """Joins only values that one op reads."""
    readers = {name: sum(name in inputs for _, _, inputs in ops.values()) for name in ops}
    return form_groups(
        {
            name: (kind if readers[name] < 2 else "several readers", shape, inputs)
            for name, (kind, shape, inputs) in ops.items()
        }
    )


def single_ops_are_no_groups(ops):
    """Forgets the ops that stay alone."""
    return [group for group in form_groups(ops) if len(group) > 1]


def pairs(ops):
    """Joins two at a time."""
    taken: set[str] = set()
    groups = []
    for name, entry in ops.items():
        partner = next((one for one in entry[2] if one not in taken and _alike(ops[one], entry)), None)
        if partner and name not in taken:
            taken |= {name, partner}
            groups.append([partner, name])
    return groups + [[name] for name in ops if name not in taken]


# ------------------------------------------------------------------------------------------- what goes wrong: buffers


def _placed(steps: Steps, last: dict[str, int], operands_first: bool = False) -> dict[str, int]:
    free: list[int] = []
    buffers: dict[str, int] = {}
    for place, name in enumerate(steps):
        ended = [one for one in buffers if last[one] == place]
        if operands_first:
            free += [buffers[one] for one in ended]
        if not free:
            free.append(max(buffers.values(), default=-1) + 1)
        buffers[name] = free.pop()
        free += [] if operands_first else [buffers[one] for one in buffers if last[one] == place]
    return buffers


def _last(steps: Steps, kept: Any) -> dict[str, int]:
    last = {name: place for place, name in enumerate(steps)}
    for place, reads in enumerate(steps.values()):
        last.update(dict.fromkeys(reads, place))
    return last | dict.fromkeys(kept, len(steps))


def a_buffer_each(steps, kept):
    """Uses no buffer twice."""
    return {name: place for place, name in enumerate(steps)}


def operands_make_room(steps, kept):
    """Frees what a step reads before its result is placed."""
    return _placed(steps, _last(steps, kept), operands_first=True)


def freed_by_the_first_reader(steps, kept):
    """Frees a value when its first reader is done."""
    last = {name: place for place, name in enumerate(steps)}
    for place, reads in reversed(list(enumerate(steps.values()))):
        last.update(dict.fromkeys(reads, place))
    return _placed(steps, last | dict.fromkeys(kept, len(steps)))


def kept_values_go(steps, kept):
    """Frees what is wanted at the end."""
    return _placed(steps, _last(steps, ()))


def unread_values_stay(steps, kept):
    """Never frees a value that nobody reads."""
    read = {one for reads in steps.values() for one in reads}
    return _placed(steps, _last(steps, {*kept, *(name for name in steps if name not in read)}))


def two_in_turn(steps, kept):
    """Uses two buffers in turn."""
    return {name: place % 2 for place, name in enumerate(steps)}


def only_when_all_is_done(steps, kept):
    """Keeps every value until the next but one step."""
    return _placed(steps, {name: place if name in kept else place + 1 for name, place in _last(steps, kept).items()})
