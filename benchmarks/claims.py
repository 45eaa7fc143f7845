"""The lecture's claims about scheduling, measured, each beside a case where it does not hold: ``python -m benchmarks.claims``.

What is claimed and how it is measured stands in ``autodiff_lab/claims.py``, since the lecture measures it too.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from autodiff_lab.claims import CLAIMS, eight_towers, examine, one_tower, transformer

WORKLOADS = {
    "H1": (eight_towers, one_tower),
    "H2": (
        lambda: transformer(4, 256, 4),
        lambda: transformer(2, 512, 4),
        lambda: transformer(4, 256, 1),
        lambda: transformer(2, 512, 1),
    ),
}


def main() -> None:
    """Measure what the command line asks for, print it, and write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=CLAIMS, help="one claim")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=60.0, help="at most so long for each workload")
    parser.add_argument(
        "--simulate", action="store_true", help="simulate two workers with measured costs: one core is enough"
    )
    parser.add_argument("--json", type=Path, help="write all figures here")
    options = parser.parse_args()
    report = {}
    for name in [options.only] if options.only else CLAIMS:
        print(f"{name}: {CLAIMS[name].statement}")
        for make in WORKLOADS[name]:
            found = examine(CLAIMS[name], make(), options.repetitions, options.seconds, options.simulate)
            print(found, flush=True)
            milliseconds = {policy: 1e3 * timeline.makespan for policy, timeline in found.timelines.items()}
            report[f"{name}: {found.workload.title}"] = {
                "%": dict(found.figures), "ms": milliseconds, "source": found.source
            }  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
