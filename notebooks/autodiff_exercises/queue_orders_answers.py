"""Answers to the exercise "whom the queue serves" of lesson 80, right and wrong: what its check is tested on."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import Any

Log = list[Any]  # ("a", 3): the task a arrives with priority 3; "take": a worker takes one

# -------------------------------------------------------------------------------------- what a solution can look like


def served(log, kind):
    """The tasks in the order in which workers take them."""
    queue = []
    taken = []
    for entry in log:
        if entry != "take":
            queue.append(entry)
        elif queue:
            if kind == "fifo":
                chosen = queue[0]
            elif kind == "lifo":
                chosen = queue[-1]
            else:
                chosen = max(queue, key=lambda waiting: waiting[1])  # of equals, max takes the first
            queue.remove(chosen)
            taken.append(chosen[0])
    return taken


def by_keys(log: Log, kind: str) -> list[str]:
    """One heap for all three: only the key differs."""
    keys: dict[str, Callable[[int, float], tuple[float, int]]] = {
        "fifo": lambda number, priority: (0, number),
        "lifo": lambda number, priority: (0, -number),
        "priority": lambda number, priority: (-priority, number),
    }
    heap: list[Any] = []
    taken = []
    numbers = count()
    for entry in log:
        if entry != "take":
            heapq.heappush(heap, (keys[kind](next(numbers), entry[1]), entry[0]))
        elif heap:
            taken.append(heapq.heappop(heap)[1])
    return taken


# ---------------------------------------------------------------------------------------------------- wrong solutions


def _taken_by(log: Log, choose: Callable[[list[Any]], int]) -> list[str]:
    queue: list[Any] = []
    taken = []
    for entry in log:
        if entry != "take":
            queue.append(entry)
        elif queue:
            taken.append(queue.pop(choose(queue))[0])
    return taken


def _place(queue: list[Any], entry: Any) -> int:
    return queue.index(entry)


def all_known_at_first(log: Log, kind: str) -> list[str]:
    """Sorts all arrivals, also those that come after a take."""
    arrivals = [entry for entry in log if entry != "take"]
    if kind == "priority":
        arrivals.sort(key=lambda entry: -entry[1])
    if kind == "lifo":
        arrivals.reverse()
    return [name for name, _ in arrivals][: len(served(log, kind))]


def smallest_first(log: Log, kind: str) -> list[str]:
    """A small number is urgent."""
    if kind != "priority":
        return served(log, kind)
    return _taken_by(log, lambda queue: _place(queue, min(queue, key=lambda entry: entry[1])))


def last_of_equals(log: Log, kind: str) -> list[str]:
    """Of equal priorities the one that came last."""
    if kind != "priority":
        return served(log, kind)
    return _taken_by(log, lambda queue: _place(queue, max(queue[::-1], key=lambda entry: entry[1])))


def by_name(log: Log, kind: str) -> list[str]:
    """A heap of (-priority, name): of equals the first in the alphabet."""
    if kind != "priority":
        return served(log, kind)
    return _taken_by(log, lambda queue: _place(queue, min(queue, key=lambda entry: (-entry[1], entry[0]))))


def swapped(log: Log, kind: str) -> list[str]:
    """First in, last out."""
    return served(log, {"fifo": "lifo", "lifo": "fifo"}.get(kind, kind))


def nothing_is_served(log: Log, kind: str) -> list[Any]:
    """Whoever finds nothing is written down too."""
    taken: list[Any] = []
    for place, entry in enumerate(log):
        if entry == "take":
            so_far = served(log[: place + 1], kind)
            taken.append(so_far[-1] if len(so_far) > len([one for one in taken if one]) else None)
    return taken


def emptied(log: Log, kind: str) -> list[str]:
    """What is left at the end is served too."""
    return served([*log, *["take"] * len(log)], kind)


def everybody(log: Log, kind: str) -> list[str]:
    """All that arrive, in order, whether a worker takes them or not."""
    return [entry[0] for entry in log if entry != "take"]


def two_kinds(log: Log, kind: str) -> list[str]:
    """What is not FIFO is LIFO, and an empty queue is an error."""
    queue: list[str] = []
    taken = []
    for entry in log:
        if entry != "take":
            queue.append(entry[0])
        else:
            taken.append(queue.pop(0 if kind == "fifo" else -1))
    return taken


def never_removed(log: Log, kind: str) -> list[str]:
    """Looks at the first and leaves it where it is."""
    queue: list[Any] = []
    taken = []
    for entry in log:
        if entry != "take":
            queue.append(entry)
        elif queue:
            one = queue[0] if kind == "fifo" else queue[-1] if kind == "lifo" else max(queue, key=lambda e: e[1])
            taken.append(one[0])
    return taken


def always_first_come(log: Log, kind: str) -> list[str]:
    """A queue is a queue."""
    return served(log, "fifo")
