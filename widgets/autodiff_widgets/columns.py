"""One column of a layered drawing: the order inside each row and each item's place, so that edges are short and straight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple

FREE = 1e-4  # the pull of an item that gives way to the others: an input beside a chain of ops never bends the chain

Near = list[tuple[int, float]]  # who pulls an item, and by how much beside
Neighbours = list[Near]


def arrange(
    rows: Sequence[Sequence[Sequence[int]]],
    widths: Sequence[float],
    sources: Sequence[Sequence[int]],
    gap: float = 24.0,
    sweeps: int = 2,
) -> list[float]:
    """The centre of each item of a column.

    ``rows`` lists, in the direction of the arrows, the groups of each row; a group stays together and keeps its order.
    ``sources`` holds for each item the items that point to it, in argument order; those in its own row do not pull it.
    Items where something begins or ends give way to those that something passes through. Each sweep orders and places the
    rows against the arrows and then along them (the barycentre method: Sugiyama, Tagawa, Toda 1981).
    Time O(sweeps · (items + edges)), besides sorting.

    >>> centres = arrange([[[0], [1]], [[2]]], [40, 40, 40], [[], [], [0, 1]])  # two inputs above the op that uses them
    >>> [round(centre) for centre in centres]
    [-32, 32, 0]
    """
    order = [[_group(members, widths, gap) for members in row] for row in rows]
    above, below, light = _neighbours(rows, sources)
    pull = [FREE if item in light else 1.0 for item in range(len(widths))]
    for row in order:
        for group in row:
            group.below, group.above = _pull(group, below, pull), _pull(group, above, pull)
    x = [0.0] * len(widths)
    for _ in range(sweeps):
        for row in reversed(order):
            _place(row, [group.below for group in row], gap, x)
        for row in order:
            _place(row, [group.above for group in row], gap, x)
    for row in reversed(order):  # what begins here moves to where it is used, what does not stays
        if not all(any(item not in light for item in group.members) for group in row):
            home = {item: below[item] if item in light else [(item, 0.0)] for group in row for item in group.members}
            _place(row, [_pull(group, home, pull) for group in row], gap, x, keeps_order=True)
    return x


class _Pull(NamedTuple):
    """Where a group would stand if it were alone in its row, and how strongly: ``at`` + Σ share · x[item]."""

    weight: float
    at: float
    shares: list[tuple[float, int]]


@dataclass(slots=True)
class _Group:
    """Items that stand side by side: how far each is from the middle of all, how wide they are, and what pulls them."""

    members: Sequence[int]
    offsets: Sequence[float]
    span: float
    below: _Pull | None = None
    above: _Pull | None = None


def _group(members: Sequence[int], widths: Sequence[float], gap: float) -> _Group:
    if len(members) == 1:
        return _Group(members, (0.0,), widths[members[0]])
    ends = list(accumulate(widths[item] + gap for item in members))
    span = ends[-1] - gap
    return _Group(members, [end - gap - (widths[i] + span) / 2 for end, i in zip(ends, members, strict=True)], span)


def _pull(group: _Group, neighbours: Sequence[Near] | Mapping[int, Near], pull: Sequence[float]) -> _Pull | None:
    """A group's heaviest members decide, and each wants the mean of its neighbours; None where it has none."""
    if len(group.members) == 1 and len(neighbours[group.members[0]]) == 1:  # as nearly all are
        other, beside = neighbours[group.members[0]][0]
        return _Pull(pull[group.members[0]], beside, [(1.0, other)])
    pulled = [(item, at) for item, at in zip(group.members, group.offsets, strict=True) if neighbours[item]]
    if not pulled:
        return None
    if len(pulled) > 1:
        weight = max(pull[item] for item, _ in pulled)
        pulled = [(item, offset) for item, offset in pulled if pull[item] == weight]
    at, shares = 0.0, []
    for item, offset in pulled:
        share = 1 / (len(pulled) * len(neighbours[item]))
        at -= offset / len(pulled)
        for other, beside in neighbours[item]:
            at += share * beside
            shares.append((share, other))
    return _Pull(pull[pulled[0][0]], at, shares)


def _neighbours(
    rows: Sequence[Sequence[Sequence[int]]], sources: Sequence[Sequence[int]]
) -> tuple[Neighbours, Neighbours, set[int]]:
    """Who pulls each item along the arrows and against them, and which items are light.

    A light item pulls a heavy one only where no heavy one does. A small offset keeps the arguments of an op in order.
    """
    row_of = {item: number for number, row in enumerate(rows) for group in row for item in group}
    outside = [[s for s in found if row_of[s] != row_of[item]] for item, found in enumerate(sources)]
    feeds = {source for found in outside for source in found}
    light = {item for item, found in enumerate(outside) if not found or item not in feeds}
    above: Neighbours = [[] for _ in sources]
    below: Neighbours = [[] for _ in sources]
    for item, found in enumerate(outside):
        above[item] = [(source, 0.0) for source in found]
        for place, source in enumerate(found):
            below[source].append((item, 0.01 * (place - (len(found) - 1) / 2)))
    for neighbours in (above, below):
        for item, pulling in enumerate(neighbours):
            neighbours[item] = [pair for pair in pulling if pair[0] not in light] or pulling
    return above, below, light


def _place(
    row: list[_Group], pulls: Sequence[_Pull | None], gap: float, x: list[float], keeps_order: bool = False
) -> None:
    """Order a row's groups by where they would like to stand, and put them there as nearly as they fit."""
    if len(row) == 1:
        pull, now = pulls[0], x[row[0].members[0]] - row[0].offsets[0]
        _stand(row[0], now if pull is None else _wished(pull, x), x)
        return
    wished = [_wish(group, pull, x) for group, pull in zip(row, pulls, strict=True)]
    if None in pulls:
        _keep_beside(wished)
    if not keeps_order:
        wished.sort(key=_centre)
        row[:] = [wish.group for wish in wished]
    _place_apart(wished, gap, x)


def _stand(group: _Group, centre: float, x: list[float]) -> None:
    if len(group.members) == 1:
        x[group.members[0]] = centre
        return
    for item, offset in zip(group.members, group.offsets, strict=True):
        x[item] = centre + offset


def _wished(pull: _Pull, x: Sequence[float]) -> float:
    _, centre, shares = pull
    for share, item in shares:
        centre += share * x[item]
    return centre


@dataclass(slots=True)
class _Wish:
    """Where a group would stand if it were alone in its row, how strongly, and how far that is from now."""

    centre: float
    pull: float
    group: _Group
    shift: float | None = None


_centre = attrgetter("centre")


def _wish(group: _Group, pull: _Pull | None, x: Sequence[float]) -> _Wish:
    now = x[group.members[0]] - group.offsets[0]
    if pull is None:
        return _Wish(now, FREE, group)
    centre = _wished(pull, x)
    return _Wish(centre, pull.weight, group, centre - now)


def _keep_beside(wished: Sequence[_Wish]) -> None:
    """A group without a wish moves along with the next one that has one, so that it stays on the same side of it."""
    for run in (wished, wished[::-1]):
        shift: float | None = None
        for wish in run:
            if wish.shift is None and shift is not None:
                wish.centre, wish.shift = wish.centre + shift, shift
            shift = wish.shift if wish.shift is not None else shift


def _place_apart(wished: Sequence[_Wish], gap: float, x: list[float]) -> None:
    """Put groups there in the given order, without overlap, as near to the wishes as possible (least squares).

    With the space that each group needs taken away this is isotonic regression, solved by pooling adjacent violators.
    """
    needed, edge = [], -wished[0].group.span / 2
    blocks: list[tuple[float, float, int]] = []  # mean wish, weight, how many groups
    for wish in wished:
        needed.append(edge + wish.group.span / 2)
        edge += wish.group.span + gap
        mean, weight, count = wish.centre - needed[-1], wish.pull, 1
        while blocks and blocks[-1][0] > mean:
            other, other_weight, other_count = blocks.pop()
            mean = (mean * weight + other * other_weight) / (weight + other_weight)
            weight, count = weight + other_weight, count + other_count
        blocks.append((mean, weight, count))
    place = 0
    for mean, _, count in blocks:
        for wish in wished[place : place + count]:
            _stand(wish.group, mean + needed[place], x)
            place += 1
