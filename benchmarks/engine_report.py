"""What the benchmark of the engine found, as data; the text, the JSON and the sentence of the README are made from it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

OURS, PLAN, BLOCKED = "autodiff_lab", "autodiff_lab plan", "plan without Numba"
OWN = (OURS, PLAN, BLOCKED)
HAND, TORCH = "hand NumPy", "torch eager"
FRAMEWORKS_ON_NUMPY = ("HIPS autograd", "MyGrad")
HEADLINE = {
    ("w2", PLAN): "a compiled training step of a small perceptron takes {} × the time",
    ("w4", PLAN): "a compiled Transformer block {} ×",
    ("w6b memory", OURS): "and a chain of a million nodes, eager, {} × the memory",
}


@dataclass(frozen=True)
class Target:
    """What to stay below, as a multiple of torch, of the best framework on NumPy, and of hand-written NumPy."""

    torch: float | None = None
    framework: float | None = None
    hand: float | None = None


@dataclass(frozen=True)
class Ratio:
    """One of ours as a multiple of another, round by round: the median, and the least and the most."""

    ours: str
    other: str
    median: float
    least: float
    most: float
    target: float | None

    @property
    def is_missed(self) -> bool:
        """Whether there is a target and the median is above it."""
        return self.target is not None and self.median > self.target

    def __str__(self) -> str:
        target = "" if self.target is None else f" (target {self.target:g}{', missed' if self.is_missed else ''})"
        return f"{number(self.median)} ×{target}"


@dataclass(frozen=True)
class Row:
    """One workload in one setting: a figure for each peer and round, in seconds or, for memory, in bytes."""

    name: str
    title: str
    setting: str
    figures: Mapping[str, Sequence[float]]
    left_out: Mapping[str, str] = field(default_factory=dict)
    targets: Mapping[str, Target] = field(default_factory=dict)
    is_quiet: bool = True
    is_memory: bool = False
    on_the_clock: bool = False

    @property
    def medians(self) -> dict[str, float]:
        """Each peer's figure."""
        return {peer: statistics.median(rounds) for peer, rounds in self.figures.items()}

    def ratios(self) -> Iterator[Ratio]:
        """Each of ours beside each of the others. Of the frameworks on NumPy the best has the target."""
        best = min(set(FRAMEWORKS_ON_NUMPY) & set(self.figures), key=self.medians.__getitem__, default=None)
        for ours in filter(self.figures.__contains__, OWN):
            target = self.targets.get(ours, Target()) if self.is_judged else Target()
            wanted = {TORCH: target.torch, best: target.framework, HAND: target.hand}
            for other in self.figures:
                if other not in OWN:
                    rounds = [a / b for a, b in zip(self.figures[ours], self.figures[other], strict=True)]
                    yield Ratio(ours, other, statistics.median(rounds), min(rounds), max(rounds), wanted.get(other))

    @property
    def is_judged(self) -> bool:
        """Whether targets count: other programs move wall time, beside several threads many times."""
        return self.is_quiet or not self.on_the_clock

    @property
    def is_measured(self) -> bool:
        """Whether one of ours took part."""
        return any(ours in self.figures for ours in OWN)

    def __str__(self) -> str:
        first = f"{self.name}: {self.title}; {self.setting}"
        if not self.is_measured:
            return f"{first}: not measured ({self.left_out.get(OURS, 'left out')})"
        first += "" if self.is_quiet else "; other programs ran beside it"
        first += "" if self.is_judged else ", so nothing is judged"
        medians, ratios = self.medians, {(ratio.ours, ratio.other): ratio for ratio in self.ratios()}
        columns = [ours for ours in OWN if ours in medians]
        lines = [["", *(f"{ours} {in_units(medians[ours], self.is_memory)}" for ours in columns)]]
        lines += [
            [f"{other:14}{in_units(figure, self.is_memory):>10}", *(str(ratios[ours, other]) for ours in columns)]
            for other, figure in medians.items()
            if other not in columns
        ]
        lines += [[f"{peer}: {why}"] for peer, why in self.left_out.items() if peer not in OWN]
        return "\n".join(
            [first, *(f"  {line[0]:27}{''.join(f'{cell:32}' for cell in line[1:])}".rstrip() for line in lines)]
        )


@dataclass(frozen=True)
class Report:
    """All rows, and where and with what they were measured."""

    machine: str
    versions: Mapping[str, str]
    rows: Sequence[Row]

    @property
    def heading(self) -> str:
        """The first lines of the text."""
        versions = " · ".join(f"{name} {version}" for name, version in self.versions.items())
        return (
            f"autodiff_lab beside its peers, {self.machine}\n{versions}\n"
            "Medians of the rounds, and medians of each round's ratio; every peer gave what hand-written NumPy gives."
        )

    @property
    def ending(self) -> str:
        """What falls short, what is not measured, and how many rows are within their target beside torch, which binds."""
        every = [(row, ratio) for row in self.rows for ratio in row.ratios() if ratio.target is not None]
        binding = [pair for pair in every if pair[1].other == TORCH]
        lines = [*_short("Short of the target beside torch:", binding)]
        lines += _short("Short of a target that informs:", [pair for pair in every if pair[1].other != TORCH])
        unmeasured = [row.name for row in self.rows if not row.is_measured]
        unjudged = [row.name for row in self.rows if row.is_measured and not row.is_judged]
        lines += [f"Not measured: {', '.join(unmeasured)}"] if unmeasured else []
        lines += [f"Not judged, as other programs ran: {', '.join(unjudged)}"] if unjudged else []
        within = sum(not ratio.is_missed for _, ratio in binding)
        return "\n".join([*lines, f"{within} of {len(binding)} rows within their target"])

    def __str__(self) -> str:
        return "\n\n".join([self.heading, *map(str, self.rows), self.ending])

    def as_json(self) -> dict[str, Any]:
        """The same for programs: numbers, texts, lists and dictionaries."""
        return {
            "machine": self.machine,
            "versions": dict(self.versions),
            "rows": [_row_as_json(row) for row in self.rows],
        }


def _short(heading: str, pairs: Iterable[tuple[Row, Ratio]]) -> list[str]:
    lines = [
        f"  {row.name}, {ratio.ours}: {number(ratio.median)} × {ratio.other}, target {ratio.target:g}"
        for row, ratio in pairs
        if ratio.is_missed
    ]
    return [heading, *lines] if lines else []


def _row_as_json(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "title": row.title,
        "setting": row.setting,
        "unit": "bytes" if row.is_memory else "seconds",
        "quiet": row.is_quiet,
        "judged": row.is_judged,
        "peers": {
            peer: {"median": row.medians[peer], "least": min(rounds), "most": max(rounds), "rounds": list(rounds)}
            for peer, rounds in row.figures.items()
        },
        "left out": dict(row.left_out),
        "ratios": [{**vars(ratio), "missed": ratio.is_missed} for ratio in row.ratios()],
    }


def headline(found: Mapping[str, Any]) -> str:
    """The README's sentence, from a report's JSON.

    Raises:
        ValueError: a row that it needs was not measured beside torch.
    """
    known = {
        (row["name"], ratio["ours"]): ratio["median"]
        for row in found["rows"]
        for ratio in row["ratios"]
        if ratio["other"] == TORCH
    }
    if missing := [f"{name} ({ours})" for name, ours in HEADLINE if (name, ours) not in known]:
        raise ValueError(f"headline: not measured beside torch: {', '.join(missing)}; run python -m benchmarks.engine")
    return f"Beside eager torch on one core, {', '.join(HEADLINE[key].format(number(known[key])) for key in HEADLINE)}."


def number(ratio: float) -> str:
    """A ratio with two digits that count.

    >>> [number(ratio) for ratio in (0.0163, 0.256, 1.164, 11.9)]
    ['0.016', '0.26', '1.16', '11.9']
    """
    return f"{ratio:.3f}" if ratio < 0.1 else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}"


def in_units(figure: float, is_memory: bool) -> str:
    """Seconds or bytes, in words.

    >>> in_units(6.21e-5, False), in_units(0.0126, False), in_units(9.2, False), in_units(304e6, True)
    ('62.1 µs', '12.6 ms', '9.20 s', '304 MB')
    """
    if is_memory:
        return f"{figure / 1e6:,.0f} MB"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if figure >= size or unit == "µs":
            scaled = figure / size
            return f"{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f} {unit}"
    raise AssertionError
