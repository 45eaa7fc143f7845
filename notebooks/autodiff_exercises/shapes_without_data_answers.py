"""Answers to the exercises of lesson 100 on shapes, right and wrong: what their checks are tested on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product, zip_longest

PartialShape = tuple[int | None, ...]  # None: the size of this axis is not known
Nodes = dict[str, tuple[list[str], PartialShape | None]]  # name -> inputs, and shape; None: not even the number of axes

# -------------------------------------------------------------------------------------- what solutions can look like


def broadcast_unknown(x, y):
    """The shape that x and y broadcast to; None where a size does not follow from what is known."""
    axes = []
    for place in range(1, max(len(x), len(y)) + 1):
        a = x[-place] if place <= len(x) else 1
        b = y[-place] if place <= len(y) else 1
        if a == b or b == 1:
            size = a
        elif a == 1:
            size = b
        elif a is None or b is None:
            size = b if a is None else a
        else:
            raise ValueError(f"sizes {a} and {b} do not broadcast: make them equal, or one of them 1")
        axes.append(size)
    return tuple(reversed(axes))


def to_blame(nodes):
    """The names of the ops whose result has an unknown size although all of their inputs are known."""
    known = {name for name, (inputs, shape) in nodes.items() if shape is not None and None not in shape}
    return {
        name for name, (inputs, shape) in nodes.items() if inputs and name not in known and known.issuperset(inputs)
    }


# ---------------------------------------------------------------------------------------------- right alternatives


def by_all_possibilities(x, y):
    """Tries sizes for what is not known: what is the same every time is known."""
    pairs = list(zip_longest(reversed(x), reversed(y), fillvalue=1))
    axes = []
    for a, b in pairs:
        tried = {1, 2, 3, *(size for size in (a, b) if size is not None)}
        fits = [
            max(m, n)
            for m, n in product(tried if a is None else [a], tried if b is None else [b])
            if m == n or 1 in (m, n)
        ]
        if not fits:
            raise ValueError(f"{x} and {y} do not broadcast")
        axes.append(fits[0] if len(set(fits)) == 1 else None)
    return axes[::-1]


def from_the_unknown(nodes):
    """Starts from what is unknown, and looks whether its inputs are."""

    def has_hole(name):
        shape = nodes[name][1]
        return shape is None or any(size is None for size in shape)

    return [name for name in nodes if has_hole(name) and nodes[name][0] and not any(map(has_hole, nodes[name][0]))]


# --------------------------------------------------------------------------------------------- what goes wrong: sizes


def _by_axis(x: PartialShape, y: PartialShape, size: Callable[[int | None, int | None], int | None]) -> PartialShape:
    pairs = zip_longest(reversed(x), reversed(y), fillvalue=1)
    return tuple(reversed([size(a, b) for a, b in pairs]))


def _known(a, b):
    if a != b and 1 not in (a, b):
        raise ValueError(f"{a} and {b} do not broadcast")
    return max(a, b)


def unknown_is_one(x, y):
    """Takes an unknown size for 1."""
    return _by_axis(x, y, lambda a, b: _known(a or 1, b or 1))


def unknown_makes_unknown(x, y):
    """Gives up wherever something is unknown."""
    return _by_axis(x, y, lambda a, b: None if None in (a, b) else _known(a, b))


def unknown_is_like_the_other(x, y):
    """Takes an unknown size for that of the other operand, also where that is 1."""
    return _by_axis(x, y, lambda a, b: b if a is None else a if b is None else _known(a, b))


def from_the_left(x, y):
    """Counts axes from the left."""
    return tuple(reversed(broadcast_unknown(x[::-1], y[::-1])))


def like_the_first(x, y):
    """The first operand's shape, if the two fit."""
    broadcast_unknown(x, y)
    return x


def the_shorter_one(x, y):
    """Looks at the axes that both have, and forgets the others."""
    both = min(len(x), len(y))
    return broadcast_unknown(x[len(x) - both :], y[len(y) - both :])


def only_equal_ones(x, y):
    """Refuses everything that is not equal."""
    if x != y:
        raise ValueError("the shapes differ")
    return x


def the_larger_one(x, y):
    """Always finds something."""
    return _by_axis(x, y, _larger)


def _larger(a: int | None, b: int | None) -> int | None:
    if b == 1 or (b is None and a != 1):
        return a
    return b if a == 1 or a is None or b is None else max(a, b)


def wrong_way_round(x, y):
    """Goes from the last axis to the first, and leaves it at that."""
    return tuple(reversed(broadcast_unknown(x, y)))


# --------------------------------------------------------------------------------------------- what goes wrong: blame


def _is_known(shape: PartialShape | None) -> bool:
    return shape is not None and None not in shape


def everything_unknown(nodes):
    """Blames everything that is unknown."""
    return [name for name, (inputs, shape) in nodes.items() if inputs and not _is_known(shape)]


def the_first_unknown(nodes):
    """Stops at the first."""
    return [name for name in nodes if name in to_blame(nodes)][:1]


def inputs_too(nodes):
    """Blames what comes in with an unknown size."""
    return [
        n
        for n, (inputs, shape) in nodes.items()
        if not _is_known(shape) and all(_is_known(nodes[i][1]) for i in inputs)
    ]


def one_known_input_is_enough(nodes):
    """Blames an op with an unknown result if any of its inputs is known."""
    return [
        n
        for n, (inputs, shape) in nodes.items()
        if not _is_known(shape) and any(_is_known(nodes[i][1]) for i in inputs)
    ]


def a_hole_is_no_loss(nodes):
    """Sees only shapes of which nothing is known."""
    return [
        n
        for n, (inputs, shape) in nodes.items()
        if shape is None and inputs and all(_is_known(nodes[i][1]) for i in inputs)
    ]


def the_first_input_decides(nodes):
    """Looks at the first input only."""
    return [
        n for n, (inputs, shape) in nodes.items() if inputs and not _is_known(shape) and _is_known(nodes[inputs[0]][1])
    ]


def who_suffers(nodes):
    """Blames the ops that get something unknown."""
    return [n for n, (inputs, shape) in nodes.items() if any(not _is_known(nodes[i][1]) for i in inputs)]


def the_last_unknown(nodes):
    """Blames the last one, where the error shows."""
    return everything_unknown(nodes)[-1:]
