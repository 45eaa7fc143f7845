"""Repetitions that count: those in which other programs left the machine alone, since a share of 8 % already moves a figure."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Generic, TypeVar

MOST = 0.08  # of the machine, for all other programs together
FEWEST = 5  # kept repetitions; with fewer, nothing was measured

T = TypeVar("T")


@dataclass
class Samples(Generic[T]):
    """What the kept repetitions gave, and how many were rejected."""

    kept: list[T] = field(default_factory=list)
    rejected: int = 0

    @property
    def are_enough(self) -> bool:
        """Whether a median of them means something."""
        return len(self.kept) >= FEWEST

    @property
    def source(self) -> str:
        """Where a median of them comes from, in words."""
        return f"measured: medians of {len(self.kept)} quiet repetitions, {self.rejected} rejected"

    def shortage(self, seconds: float) -> str:
        """Why they are not enough, in words, where so much time was given."""
        count = len(self.kept) + self.rejected
        return f"only {len(self.kept)} of {count} repetitions were quiet, and {FEWEST} are needed in {seconds:g} s"


def repeat(measure: Callable[[], T], wanted: int = 9, seconds: float = 60.0) -> Samples[T]:
    """Measure until enough quiet repetitions are found or the time is over. What is compared has to run in each repetition.

    Ends early when the fewest that count cannot fit into the time that is left.

    Needs psutil, which knows what other programs do: see ``obstacle``.

    >>> repeat(lambda: "measured", seconds=0.0)
    Samples(kept=[], rejected=0)
    """
    samples: Samples[T] = Samples()
    until, fastest = time.monotonic() + seconds, 0.0
    while len(samples.kept) < wanted and time.monotonic() + fastest * (FEWEST - len(samples.kept)) < until:
        began = time.monotonic()
        result, share = watched(measure)
        passed = time.monotonic() - began
        fastest = min(fastest or passed, passed)
        if share > MOST:
            samples.rejected += 1
        else:
            samples.kept.append(result)
    return samples


def watched(measure: Callable[[], T]) -> tuple[T, float]:
    """What ``measure`` returns, and the share of the machine that other programs used meanwhile. Needs psutil."""
    began, used = time.monotonic(), _used_by_others()
    result = measure()
    passed = time.monotonic() - began
    return result, (_used_by_others() - used) / (passed * (os.cpu_count() or 1))


def obstacle(cores: int) -> str:
    """Why figures for so many cores cannot be measured here, as the end of a sentence; empty where they can be tried.

    >>> obstacle(10_000)
    'this machine has only ... for this program, and 10000 are needed'
    """
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if here < cores:
        return f"this machine has only {here} core{'s' * (here > 1)} for this program, and {cores} are needed"
    missing = [name for name in ("psutil", "threadpoolctl") if find_spec(name) is None]
    return f"{' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not installed" if missing else ""


def _used_by_others() -> float:
    """CPU seconds of all processes but this one and those that it started, since the machine started."""
    every = import_module("psutil").cpu_times()
    busy: float = every.user + getattr(every, "nice", 0.0) + every.system - _used_here()  # Windows has no nice
    return busy


def _used_here() -> float:
    """CPU seconds of this process and of those that it started, also of those that have ended."""
    psutil = import_module("psutil")
    used = 0.0
    for process in (own := psutil.Process(), *own.children(recursive=True)):
        try:
            used += sum(process.cpu_times()[:4])  # user, system, and both of its children that have ended
        except psutil.Error:  # it has ended just now; what it used counts for its parent
            continue
    return used
