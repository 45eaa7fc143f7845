"""The lecture's claims, measured, each beside a case where it does not hold: ``python -m benchmarks.claims``.

What is claimed and how it is measured stands in ``claims.py`` and ``shape_claims.py`` of ``autodiff_lab``, since the lecture
measures it too.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from autodiff_lab import shape_claims
from autodiff_lab.claims import CLAIMS, eight_towers, examine, one_tower, transformer
from autodiff_lab.shape_claims import Setting, cost_of_wrong_rule, region

WORKLOADS = {
    "H1": (eight_towers, one_tower),
    "H2": (
        lambda: transformer(4, 256, 4),
        lambda: transformer(2, 512, 4),
        lambda: transformer(4, 256, 1),
        lambda: transformer(2, 512, 1),
    ),
}

SETTINGS = [
    Setting(rows, width, op, loops)
    for loops in ("compiled", "blocked")
    for rows, width in ((1 << 15, 128), (1 << 16, 256), (1 << 13, 512))
    for op in ("square", "tanh")
]
TARGET = 1.9  # of the first setting


def main() -> None:
    """Measure what the command line asks for, print it, and write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=[*CLAIMS, "H3"], help="one claim")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=60.0, help="at most so long for each workload")
    parser.add_argument(
        "--simulate", action="store_true", help="simulate two workers with measured costs: one core is enough"
    )
    parser.add_argument("--json", type=Path, help="write all figures here")
    options = parser.parse_args()
    report: dict[str, Any] = {}
    for name in [options.only] if options.only in CLAIMS else [] if options.only else CLAIMS:
        print(f"{name}: {CLAIMS[name].statement}")
        for make in WORKLOADS[name]:
            found = examine(CLAIMS[name], make(), options.repetitions, options.seconds, options.simulate)
            print(found, flush=True)
            milliseconds = {policy: 1e3 * timeline.makespan for policy, timeline in found.timelines.items()}
            report[f"{name}: {found.workload.title}"] = {
                "%": dict(found.figures), "ms": milliseconds, "source": found.source
            }  # fmt: skip
    if options.only in (None, "H3"):
        report |= _shape_rules(options.repetitions, options.seconds, options.simulate)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1))


def _shape_rules(repetitions: int, seconds: float, estimates: bool) -> dict[str, Any]:
    """H3: what a wrong shape rule costs, and a table of where it does."""
    print(f"H3: {shape_claims.STATEMENT}")
    costs = []
    for setting in SETTINGS:
        costs.append(cost_of_wrong_rule(setting, repetitions, seconds, estimates))
        target = f" (target: at least {TARGET} ×)" if setting is SETTINGS[0] else ""
        print(f"{costs[-1]}\n  the results differ by {costs[-1].difference:.0e} of the largest{target}", flush=True)
    print("compiled loops, square loses its shape: the ratio by width (rows) and activations (columns)")
    region_costs = region(repetitions=repetitions, seconds=seconds / 4, estimates=estimates)
    sizes = sorted({one.setting.activations for one in region_costs})
    print("       ", *(f"{size:>9,}" for size in sizes))
    for width in sorted({one.setting.width for one in region_costs}):
        row = [one for one in region_costs if one.setting.width == width]
        print(f"{width:7}", *(f"{one.ratio:8.2f}{' ' if one.is_measured else '~'}" for one in row))
    print("        ~: not quiet, so CPU time or an estimate")
    return {
        f"H3: {one.setting.title}": {
            "ratio": one.ratio, "elementwise ratio": one.elementwise_ratio, "difference": one.difference,
            "ms": [1e3 * t for t in one.seconds], "source": one.source,
        }
        for one in [*costs, *region_costs]
    }  # fmt: skip


if __name__ == "__main__":
    main()
