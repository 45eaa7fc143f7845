"""Answers to the exercise "find the hidden copies" of lesson 70, right and wrong: what its check is tested on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import autodiff_lab as ad

Steps = list[tuple[str, Callable[[Any], Any]]]

# -------------------------------------------------------------------------------------- what solutions can look like


def copied_bytes(steps, x):
    """For each step that copies numbers between devices: its name, and how many bytes it copies in all."""
    found = {}
    for name, step in steps:
        with ad.listen() as told:
            x = step(x)
        nbytes = sum(event.nbytes for event in told if isinstance(event, ad.events.Transferred))
        if nbytes:
            found[name] = nbytes
    return found


def with_a_receiver(steps: Steps, x: Any) -> dict[str, int]:
    """One listener for the whole run, which knows which step is running."""
    found: Counter[str] = Counter()
    running = ""

    def hear(event: Any) -> None:
        if type(event).__name__ == "Transferred":
            found[running] += event.nbytes

    with ad.listen(hear):
        for running, step in steps:  # noqa: B007  (hear reads it)
            x = step(x)
    return dict(found)


# ------------------------------------------------------------------------------------------------- wrong solutions


def _told(step: Callable[[Any], Any], x: Any) -> tuple[Any, list[Any]]:
    """What a step gives, and the copies between devices that it makes."""
    with ad.listen() as told:
        x = step(x)
    return x, [event for event in told if isinstance(event, ad.events.Transferred)]


def by_where_it_lies(steps: Steps, x: Any) -> dict[str, int]:
    """A copy is seen where the result lies on another device."""
    found = {}
    for name, step in steps:
        y = step(x)
        if y.device != x.device:
            found[name] = y.numpy().nbytes
        x = y
    return found


def always_on_the_first(steps: Steps, x: Any) -> dict[str, int]:
    """Every step is given the x of the beginning."""
    copied = {name: sum(event.nbytes for event in _told(step, x)[1]) for name, step in steps}
    return {name: nbytes for name, nbytes in copied.items() if nbytes}


def by_waits(steps: Steps, x: Any) -> dict[str, int]:
    """Where the host waits, numbers are copied."""
    found = {}
    for name, step in steps:
        with ad.listen() as told:
            y = step(x)
        if any(isinstance(event, ad.events.Synchronised) for event in told):
            found[name] = sum(event.nbytes for event in told if isinstance(event, ad.events.Transferred))
        x = y
    return found


def only_to_the_host(steps: Steps, x: Any) -> dict[str, int]:
    """Counts what comes home."""
    found = {}
    for name, step in steps:
        x, copies = _told(step, x)
        nbytes = sum(event.nbytes for event in copies if event.target == "cpu")
        if nbytes:
            found[name] = nbytes
    return found


def number_of_copies(steps: Steps, x: Any) -> dict[str, int]:
    """How many copies, whatever their size."""
    found = {}
    for name, step in steps:
        x, copies = _told(step, x)
        if copies:
            found[name] = len(copies)
    return found


def the_last_copy(steps: Steps, x: Any) -> dict[str, int]:
    """A later copy of a step replaces the earlier one."""
    found = {}
    for name, step in steps:
        x, copies = _told(step, x)
        for event in copies:
            found[name] = event.nbytes
    return found


def added_up(steps: Steps, x: Any) -> dict[str, int]:
    """One list for the whole run: every step is told what all before it copied, too."""
    found: dict[str, int] = {}
    nbytes = 0
    for name, step in steps:
        x, copies = _told(step, x)
        nbytes += sum(event.nbytes for event in copies)
        if copies:
            found[name] = nbytes
    return found


def looks_at_results(steps: Steps, x: Any) -> dict[str, int]:
    """Prints what every step gives, while it listens."""
    found = {}
    for name, step in steps:
        with ad.listen() as told:
            x = step(x)
            x.numpy()
        found[name] = sum(event.nbytes for event in told if isinstance(event, ad.events.Transferred))
    return found


def with_a_rehearsal(steps: Steps, x: Any) -> dict[str, int]:
    """Runs every step once before it listens, so that everything is warm."""
    found = {}
    for name, step in steps:
        step(x)
        x, copies = _told(step, x)
        if copies:
            found[name] = sum(event.nbytes for event in copies)
    return found


def all_named(steps: Steps, x: Any) -> dict[str, int]:
    """Every step is in it, with 0 where it copied nothing."""
    found = {}
    for name, step in steps:
        x, copies = _told(step, x)
        found[name] = sum(event.nbytes for event in copies)
    return found
