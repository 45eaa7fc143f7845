"""Answers to the exercise "missing edges" of lesson 110, right and wrong: what its check is tested on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

TaskList = list[tuple[str, list[str], list[str]]]  # name, what it reads, what it writes
Pairs = list[tuple[str, str]]

# -------------------------------------------------------------------------------------- what a solution can look like


def missing_edges(tasks, edges):
    """The pairs of tasks that touch the same value, one of them writing, and that no way along the edges orders."""
    found = []
    before = {}
    for place, (later, reads, writes) in enumerate(tasks):
        before[later] = set()
        for one, other in edges:
            if other == later:
                before[later] |= {one, *before[one]}
        for earlier, read, written in tasks[:place]:
            touched = set(written) & {*reads, *writes} | set(read) & set(writes)
            if touched and earlier not in before[later]:
                found.append((earlier, later))
    return found


def by_marking(tasks: TaskList, edges: Pairs) -> Pairs:
    """From each task on, marks all that wait for it."""
    return _missing(tasks, _reached(tasks, edges), _conflict)


def _reached(tasks: TaskList, edges: Pairs, most: int | None = None) -> set[tuple[str, str]]:
    """The pairs with a way of at most so many edges."""
    after = {name: {later for one, later in edges if one == name} for name, _reads, _writes in tasks}
    found: set[tuple[str, str]] = set()
    for name in after:
        seen: set[str] = set()
        front = after[name]
        for _ in range(most or len(tasks)):
            seen |= front
            front = {later for one in front for later in after[one]} - seen
        found |= {(name, one) for one in seen}
    return found


Conflict = Callable[[Sequence[str], Sequence[str], Sequence[str], Sequence[str]], bool]


def _missing(tasks: TaskList, ordered: set[tuple[str, str]], conflict: Conflict) -> Pairs:
    return [
        (one, later)
        for place, (later, reads, writes) in enumerate(tasks)
        for one, read, written in tasks[:place]
        if conflict(read, written, reads, writes) and (one, later) not in ordered
    ]


def _meet(one: Sequence[str], other: Sequence[str]) -> bool:
    return not set(one).isdisjoint(other)


def _conflict(read: Sequence[str], written: Sequence[str], reads: Sequence[str], writes: Sequence[str]) -> bool:
    return _meet(written, reads) or _meet(read, writes) or _meet(written, writes)


# ---------------------------------------------------------------------------------------------------- wrong solutions


def only_true_dependencies(tasks: TaskList, edges: Pairs) -> Pairs:
    """Read after write."""
    return _missing(tasks, _reached(tasks, edges), lambda read, written, reads, writes: _meet(written, reads))


def readers_overtaken(tasks: TaskList, edges: Pairs) -> Pairs:
    """Forgets write after read."""
    return _missing(
        tasks, _reached(tasks, edges), lambda read, written, reads, writes: _meet(written, [*reads, *writes])
    )


def writers_overtaken(tasks: TaskList, edges: Pairs) -> Pairs:
    """Forgets write after write."""
    return _missing(
        tasks, _reached(tasks, edges), lambda read, written, reads, writes: _meet(written, reads) or _meet(read, writes)
    )


def readers_too(tasks: TaskList, edges: Pairs) -> Pairs:
    """Two that read the same value."""
    return _missing(
        tasks,
        _reached(tasks, edges),
        lambda read, written, reads, writes: _meet([*read, *written], [*reads, *writes]),
    )


def an_edge_for_each(tasks: TaskList, edges: Pairs) -> Pairs:
    """Looks at edges, not at ways along them."""
    return _missing(tasks, set(edges), _conflict)


def ways_of_two(tasks: TaskList, edges: Pairs) -> Pairs:
    """Looks along two edges at most."""
    return _missing(tasks, _reached(tasks, edges, 2), _conflict)


def later_first(tasks: TaskList, edges: Pairs) -> Pairs:
    """The other way round."""
    return [(later, one) for one, later in by_marking(tasks, edges)]


def neighbours_only(tasks: TaskList, edges: Pairs) -> Pairs:
    """Compares each task with the one before it."""
    names = [name for name, _reads, _writes in tasks]
    near = set(pairwise(names))
    return [pair for pair in by_marking(tasks, edges) if pair in near]


def as_if_mended(tasks: TaskList, edges: Pairs) -> Pairs:
    """Takes each edge that it names for given, the latest tasks first."""
    found: Pairs = []
    for place, (later, reads, writes) in enumerate(tasks):
        for earlier, read, written in reversed(tasks[:place]):
            if _conflict(read, written, reads, writes) and (earlier, later) not in _reached(tasks, [*edges, *found]):
                found.append((earlier, later))
    return found


def edges_as_written(tasks: TaskList, edges: Pairs) -> Pairs:
    """Hands on what is known along each edge, once."""
    before: dict[str, set[str]] = {name: set() for name, _reads, _writes in tasks}
    for one, later in edges:
        before[later] |= {one, *before[one]}
    return _missing(tasks, {(one, later) for later in before for one in before[later]}, _conflict)


def the_first(tasks: TaskList, edges: Pairs) -> Pairs:
    """Stops at the first."""
    return by_marking(tasks, edges)[:1]


def what_is_there(tasks: TaskList, edges: Pairs) -> Pairs:
    """All pairs that need an order."""
    return _missing(tasks, set(), _conflict)


def along_every_path(tasks: TaskList, edges: Pairs) -> Pairs:
    """Asks again and again."""

    def waits(later: str, one: str) -> bool:
        return any(first == one or waits(first, one) for first, last in edges if last == later)

    return [pair for pair in what_is_there(tasks, []) if not waits(pair[1], pair[0])]
