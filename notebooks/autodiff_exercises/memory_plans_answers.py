"""Answers to the exercises of lesson 90 on memory, right and wrong: what their checks are tested on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import permutations
from typing import Any

Reads = dict[str, list[str]]  # task -> the tasks whose results it reads, one entry for each use
Sizes = dict[str, float]  # task -> bytes of its result

# -------------------------------------------------------------------------------------- what solutions can look like


def peak_memory(order, reads, nbytes, kept):
    """The most bytes that live at one time when the tasks run in this order."""
    last_reader = {}
    for task in order:
        last_reader[task] = task  # nobody has read it yet
        for source in reads[task]:
            last_reader[source] = task

    live = most = 0
    for task in order:
        live += nbytes[task]
        most = max(most, live)
        for result, reader in last_reader.items():
            if reader == task and result not in kept:
                live -= nbytes[result]
    return most


def by_moments(order: list[str], reads: Reads, nbytes: Sizes, kept: list[str]) -> float:
    """For each moment add up what has begun to live and is still wanted."""
    found = []
    for now, _ in enumerate(order):
        born, later = order[: now + 1], order[now:]
        wanted = {*kept, order[now], *(source for task in later for source in reads[task])}
        found.append(sum(nbytes[task] for task in born if task in wanted))
    return max(found)


def under_a_cap(reads, nbytes, kept, cap):
    """An order of the tasks in which never more than cap bytes live."""
    users = {task: {user for user in reads if task in reads[user]} for task in reads}
    hopeless = set()

    def go_on(order, done):
        if len(order) == len(reads):
            return order
        live = sum(nbytes[task] for task in done if task in kept or not users[task] <= done)
        for task in reads:
            if task not in done and done.issuperset(reads[task]) and live + nbytes[task] <= cap:
                after = done | {task}
                if after not in hopeless:
                    found = go_on([*order, task], after)
                    if found:
                        return found
                    hopeless.add(after)
        return []

    return go_on([], frozenset())


def by_the_best_of_all(reads: Reads, nbytes: Sizes, kept: list[str], cap: int) -> list[str]:
    """From set to set: the smallest peak with which its tasks can be done first."""
    best: dict[frozenset[str], tuple[float, list[str]]] = {frozenset(): (0, [])}
    for _ in reads:
        longer: dict[frozenset[str], tuple[float, list[str]]] = {}
        for done, (peak, order) in best.items():
            lives = _living(done, reads, nbytes, kept)
            for task in reads:
                if task not in done and done.issuperset(reads[task]):
                    now = (max(peak, lives + nbytes[task]), [*order, task])
                    longer[done | {task}] = min(longer.get(done | {task}, now), now)
        best = longer
    return best[frozenset(reads)][1]


def smallest_peak(reads: Reads, nbytes: Sizes, kept: list[str]) -> float:
    """The peak of the order that needs least memory."""
    return by_moments(by_the_best_of_all(reads, nbytes, kept, 0), reads, nbytes, kept)


def _living(done: Iterable[str], reads: Reads, nbytes: Sizes, kept: list[str]) -> float:
    done = set(done)
    wanted = {*kept, *(source for task in reads if task not in done for source in reads[task])}
    return sum(nbytes[task] for task in done & wanted)


# -------------------------------------------------------------------------------------- wrong solutions of peak_memory


def freed_at_the_end(order: list[str], reads: Reads, nbytes: Sizes, kept: list[str]) -> float:
    """Everything lives until the end."""
    return sum(nbytes.values())


def first_is_kept(order: list[str], reads: Reads, nbytes: Sizes, kept: list[str]) -> float:
    """One output is enough."""
    return peak_memory(order, reads, nbytes, kept[:1])


def last_as_written(order: list[str], reads: Reads, nbytes: Sizes, kept: list[str]) -> float:
    """The last reader is the one that stands last in the dictionary."""
    last = {source: task for task in reads for source in reads[task]}
    living = most = 0.0
    for task in order:
        living += nbytes[task]
        most = max(most, living)
        living -= sum(nbytes[one] for one in {task, *reads[task]} if last.get(one, one) == task and one not in kept)
    return most


def only_what_is_read(order: list[str], reads: Reads, nbytes: Sizes, kept: list[str]) -> float:
    """What the running task reads, and its result."""
    return max(sum(nbytes[one] for one in {task, *reads[task]}) for task in order)


def freed_before(order: list[str], reads: Reads, nbytes: Sizes, kept: list[str]) -> float:
    """The operands make room for the result."""
    live = most = 0.0
    for place, task in enumerate(order):
        later = {source for other in order[place + 1 :] for source in reads[other]}
        live -= sum(nbytes[one] for one in set(reads[task]) - later - set(kept))
        live += nbytes[task]
        most = max(most, live)
        if task not in later and task not in kept:
            live -= nbytes[task]
    return most


def freed_by_the_first(order: list[str], reads: Reads, nbytes: Sizes, kept: list[str]) -> float:
    """A result is freed when it has been read once."""
    live = most = 0.0
    freed: set[str] = set()
    for task in order:
        live += nbytes[task]
        most = max(most, live)
        for one in set(reads[task]) - freed - set(kept):
            live -= nbytes[one]
            freed.add(one)
        if task not in kept and not any(task in reads[other] for other in order):
            live -= nbytes[task]
    return most


def outputs_freed(order: list[str], reads: Reads, nbytes: Sizes, kept: list[str]) -> float:
    """Nothing is kept."""
    return float(peak_memory(order, reads, nbytes, []))


def unread_kept(order: list[str], reads: Reads, nbytes: Sizes, kept: list[str]) -> float:
    """What nobody reads is never freed."""
    read = {source for before in reads.values() for source in before}
    return float(peak_memory(order, reads, nbytes, [*kept, *(task for task in order if task not in read)]))


def at_the_end(order: list[str], reads: Reads, nbytes: Sizes, kept: list[str]) -> float:
    """What is left when all is done."""
    return sum(nbytes[task] for task in kept)


def twice_read_twice_there(order: list[str], reads: Reads, nbytes: Sizes, kept: list[str]) -> float:
    """Takes a result off once for every entry of its last reader."""
    live = most = 0.0
    for place, task in enumerate(order):
        live += nbytes[task]
        most = max(most, live)
        later = {source for other in order[place + 1 :] for source in reads[other]}
        live -= sum(nbytes[one] for one in [task, *reads[task]] if one not in later and one not in kept)
    return most


def number_of_results(order: list[str], reads: Reads, nbytes: Sizes, kept: list[str]) -> float:
    """How many live at one time."""
    return float(peak_memory(order, reads, dict.fromkeys(nbytes, 1), kept))


# -------------------------------------------------------------------------------------- wrong solutions of under_a_cap


def _ordered(reads: Reads, choose: Callable[[list[str], list[str]], str]) -> list[str]:
    order: list[str] = []
    while len(order) < len(reads):
        order.append(choose([t for t in reads if t not in order and set(order) >= set(reads[t])], order))
    return order


def as_they_come(reads: Reads, nbytes: Sizes, kept: list[str], cap: int) -> list[str]:
    """The first that is ready."""
    queue = [task for task in reads if not reads[task]]
    for task in queue:
        queue += [o for o in reads if o not in queue and set(queue[: queue.index(task) + 1]) >= set(reads[o])]
    return queue


def newest_first(reads: Reads, nbytes: Sizes, kept: list[str], cap: int) -> list[str]:
    """What was just made is used next."""
    return _ordered(reads, lambda ready, order: max(ready, key=lambda t: max(map(order.index, reads[t]), default=-1)))


def smallest_first(reads: Reads, nbytes: Sizes, kept: list[str], cap: int) -> list[str]:
    """The smallest result."""
    return _ordered(reads, lambda ready, order: min(ready, key=nbytes.__getitem__))


def largest_first(reads: Reads, nbytes: Sizes, kept: list[str], cap: int) -> list[str]:
    """The largest result."""
    return _ordered(reads, lambda ready, order: max(ready, key=nbytes.__getitem__))


def least_now(reads: Reads, nbytes: Sizes, kept: list[str], cap: int) -> list[str]:
    """Who leaves least behind."""
    return _ordered(
        reads, lambda ready, order: min(ready, key=lambda task: _living([*order, task], reads, nbytes, kept))
    )


def smallest_sizes_first(reads: Reads, nbytes: Sizes, kept: list[str], cap: int) -> list[str]:
    """Sorted by size, whoever waits for whom."""
    return sorted(reads, key=nbytes.__getitem__)


def every_order(reads: Reads, nbytes: Sizes, kept: list[str], cap: int) -> list[str]:
    """Tries all orders."""
    for order in permutations(reads):
        place = {task: number for number, task in enumerate(order)}
        is_order = all(place[source] < place[task] for task in reads for source in reads[task])
        if is_order and by_moments(list(order), reads, nbytes, kept) <= cap:
            return list(order)
    return []


def every_legal_order(reads: Reads, nbytes: Sizes, kept: list[str], cap: int) -> list[str]:
    """Tries all orders in which each task comes after what it reads, and looks at the memory at the end."""

    def orders(begun: list[str]) -> Iterator[list[str]]:
        if len(begun) == len(reads):
            yield begun
        for task in reversed(reads):
            if task not in begun and set(reads[task]) <= set(begun):
                yield from orders([*begun, task])

    return next(order for order in orders([]) if by_moments(order, reads, nbytes, kept) <= cap)


def leaves_some_out(reads: Reads, nbytes: Sizes, kept: list[str], cap: int) -> list[str]:
    """Only what the outputs need."""
    wanted: set[str] = set(kept)
    for _ in reads:
        wanted |= {source for task in wanted for source in reads[task]}
    return [task for task in under_a_cap(reads, nbytes, kept, cap) if task in wanted]


def gives_up(reads: Reads, nbytes: Sizes, kept: list[str], cap: int) -> Any:
    """Stops where the smallest result does not fit."""
    order = least_now(reads, nbytes, kept, cap)
    return order if by_moments(order, reads, nbytes, kept) <= cap else "out of memory"
