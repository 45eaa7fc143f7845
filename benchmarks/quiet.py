"""Repetitions that count: those in which other programs left the machine alone, since a share of 8 % already moves a figure."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import psutil

MOST = 0.08  # of the machine, for all other programs together
FEWEST = 5  # kept repetitions; with fewer, nothing was measured


@dataclass
class Samples:
    """What the kept repetitions measured, by name, and how many were rejected."""

    found: dict[str, list[float]] = field(default_factory=dict)
    rejected: int = 0

    @property
    def kept(self) -> int:
        """How many repetitions count."""
        return min(map(len, self.found.values()), default=0)

    def median(self, name: str) -> float | None:
        """The median of a figure; None is: not measured."""
        return statistics.median(self.found[name]) if self.kept >= FEWEST else None


def repeat(measure: Callable[[], Mapping[str, float]], wanted: int = 9, seconds: float = 60.0) -> Samples:
    """Measure until enough quiet repetitions are found or the time is over. All that is compared runs in each repetition."""
    samples, until = Samples(), time.monotonic() + seconds
    while samples.kept < wanted and time.monotonic() < until:
        began, used = time.monotonic(), _used_by_others()
        figures = measure()
        share = (_used_by_others() - used) / ((time.monotonic() - began) * (psutil.cpu_count() or 1))
        if share > MOST:
            samples.rejected += 1
            continue
        for name, figure in figures.items():
            samples.found.setdefault(name, []).append(figure)
    return samples


def _used_by_others() -> float:
    """CPU seconds of all processes but this one, since the machine started."""
    every, own = psutil.cpu_times(), time.process_time()
    return every.user + every.nice + every.system - own  # type: ignore[no-any-return]
