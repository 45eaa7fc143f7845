"""One column of a layered drawing: the order inside each row and each item's place, so that edges are short and straight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

FREE = 1e-4  # the pull of an item that gives way to the others: an input beside a chain of ops never bends the chain

Group = list[int]
Neighbours = list[list[tuple[int, float]]]  # for each item who pulls it, and by how much beside


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

    >>> arrange([[[0], [1]], [[2]]], [40, 40, 40], [[], [], [0, 1]])  # two inputs above the op that uses them
    [-32.0, 32.0, 0.0]
    """
    order: list[list[Group]] = [[list(group) for group in row] for row in rows]
    above, below, light = _neighbours(rows, sources)
    pull = [FREE if item in light else 1.0 for item in range(len(widths))]
    x = [0.0] * len(widths)
    for _ in range(sweeps):
        for row in reversed(order):
            _place(row, below, pull, widths, gap, x)
        for row in order:
            _place(row, above, pull, widths, gap, x)
    follow = [below[item] if item in light else [(item, 0.0)] for item in range(len(widths))]
    for row in reversed(order):  # what begins here moves to where it is used
        _place(row, follow, pull, widths, gap, x, keeps_order=True)
    return x


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
    row: list[Group],
    neighbours: Neighbours,
    pull: Sequence[float],
    widths: Sequence[float],
    gap: float,
    x: list[float],
    keeps_order: bool = False,
) -> None:
    """Order a row's groups by where they would like to stand, and put them there as nearly as they fit."""
    if len(row) == 1 and len(row[0]) == 1:
        x[row[0][0]] = _mean(row[0][0], neighbours, x)
        return
    wished = [_wish(group, neighbours, pull, widths, gap, x) for group in row]
    _keep_beside(wished)
    if not keeps_order:
        wished.sort(key=lambda wish: wish.centre)
        row[:] = [wish.group for wish in wished]
    for wish, centre in zip(wished, _apart(wished, gap), strict=True):
        left = centre - wish.span / 2
        for item in wish.group:
            x[item] = left + widths[item] / 2
            left += widths[item] + gap


@dataclass(slots=True)
class _Wish:
    """Where a group would stand if it were alone in its row, how strongly, how wide it is, and how far that is from now."""

    centre: float
    pull: float
    span: float
    group: Group
    shift: float | None = None


def _mean(item: int, neighbours: Neighbours, x: Sequence[float]) -> float:
    """The mean of an item's neighbours; where it stands if it has none."""
    found = neighbours[item]
    return sum(x[other] + offset for other, offset in found) / len(found) if found else x[item]


def _wish(
    group: Group, neighbours: Neighbours, pull: Sequence[float], widths: Sequence[float], gap: float, x: Sequence[float]
) -> _Wish:
    """A group's wish: its heaviest members decide, and each wants the mean of its neighbours."""
    span = sum(widths[item] for item in group) + gap * (len(group) - 1)
    now = x[group[0]] - widths[group[0]] / 2 + span / 2
    wishes = [(now + _mean(item, neighbours, x) - x[item], pull[item]) for item in group if neighbours[item]]
    if not wishes:
        return _Wish(now, FREE, span, group)
    heaviest = max(weight for _, weight in wishes)
    chosen = [wish for wish, weight in wishes if weight == heaviest]
    centre = sum(chosen) / len(chosen)
    return _Wish(centre, heaviest, span, group, centre - now)


def _keep_beside(wished: Sequence[_Wish]) -> None:
    """A group without a wish moves along with the next one that has one, so that it stays on the same side of it."""
    for run in (wished, wished[::-1]):
        shift: float | None = None
        for wish in run:
            if wish.shift is None and shift is not None:
                wish.centre, wish.shift = wish.centre + shift, shift
            shift = wish.shift if wish.shift is not None else shift


def _apart(wished: Sequence[_Wish], gap: float) -> list[float]:
    """Centres in the given order, without overlap, as near to the wishes as possible (least squares).

    With the space that each group needs taken away this is isotonic regression, solved by pooling adjacent violators.
    """
    needed = [0.0]
    for left, right in pairwise(wished):
        needed.append(needed[-1] + (left.span + right.span) / 2 + gap)
    blocks: list[tuple[float, float, int]] = []  # mean wish, weight, how many groups
    for wish, space in zip(wished, needed, strict=True):
        mean, weight, count = wish.centre - space, wish.pull, 1
        while blocks and blocks[-1][0] > mean:
            other, other_weight, other_count = blocks.pop()
            mean = (mean * weight + other * other_weight) / (weight + other_weight)
            weight, count = weight + other_weight, count + other_count
        blocks.append((mean, weight, count))
    means = [mean for mean, _, count in blocks for _ in range(count)]
    return [mean + space for mean, space in zip(means, needed, strict=True)]
