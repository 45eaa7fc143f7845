"""Speed, eager and compiled, beside hand-written NumPy and every peer that is installed: ``python -m benchmarks.engine``.

Each workload's results are compared before anything is timed. Rounds are interleaved, every figure is thread CPU time, except
those of two workers, which are wall time, and only the ratios mean anything on another machine. ``--deep`` runs instead the
chain of 1,000,000 nodes, with its memory a node.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # before NumPy loads

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "peers"))  # the peers import each other by bare name
from workloads import WORKLOADS

import autodiff_lab as ad

OURS, PLAN, HAND, TORCH = "autodiff_lab", "autodiff_lab plan", "hand NumPy", "torch eager"
PEERS = {
    OURS: "benchmarks.ours",
    PLAN: "benchmarks.ours_plan",
    HAND: "hand",
    TORCH: "benchmarks.torch_eager",
    "HIPS autograd": "benchmarks.hips_autograd",
    "MyGrad": "benchmarks.mygrad_eager",
}
FRAMEWORKS_ON_NUMPY = ("HIPS autograd", "MyGrad")


@dataclass(frozen=True)
class Target:
    """What to stay below, as a multiple of torch, of the best framework on NumPy, and of hand-written NumPy."""

    torch: float
    framework: float
    hand: float


TARGETS = {
    "w1": Target(0.40, 0.13, 1.65), "w2": Target(0.26, 0.42, 1.30), "w3": Target(0.92, 0.95, 1.08),
    "w4": Target(1.15, 0.50, 0.70), "w5": Target(0.75, 0.55, 0.80), "w7a_fwd": Target(0.15, 0.35, 1.6),
    "w7a_rev": Target(0.75, 0.085, 1.3), "w7b_fwd": Target(0.78, 0.016, 1.3), "w7b_rev": Target(0.15, 0.30, 3.5),
    "w8": Target(0.55, 0.30, 2.7), "w9": Target(1.45, 0.27, 0.65),
}  # fmt: skip
PLAN_TARGETS = {
    "w1": Target(0.14, 0.05, 0.58), "w2": Target(0.125, 0.21, 0.62), "w3": Target(0.82, 0.84, 0.98),
    "w4": Target(0.92, 0.40, 0.70), "w5": Target(0.32, 0.24, 0.34), "w8": Target(0.155, 0.085, 0.77),
}  # fmt: skip
ON_TWO = {"w4": 1.05, "w5": 0.24}  # two workers beside torch on two threads, in wall time


def peers_of(name: str) -> dict[str, Callable[[SimpleNamespace], Any]]:
    """Whom a workload is compared with: every peer that is installed and has the workload."""
    found = {}
    for peer, module in PEERS.items():
        try:
            loaded = importlib.import_module(module)
        except ImportError:
            continue
        if hasattr(loaded, name):
            found[peer] = getattr(loaded, name)
    return found


def agree(name: str, results: dict[str, dict[str, Any]]) -> None:
    """Compare every peer's outputs and gradients with the hand-written ones."""
    reference, tolerance = results[HAND], WORKLOADS[name].tol
    for peer, result in results.items():
        for key, expected in reference.items():
            worst = np.max(np.abs(np.asarray(result[key]) - expected)) / max(float(np.max(np.abs(expected))), 1e-30)
            if not worst <= tolerance:
                raise SystemExit(f"{name}: {peer} disagrees on {key} by {worst:.1e} (allowed {tolerance:.0e})")


def cpu_seconds(step: Callable[[], Any], repeats: int) -> float:
    """Median CPU time of one step on this thread."""
    samples = []
    for _ in range(repeats):
        start = time.thread_time()
        step()
        samples.append(time.thread_time() - start)
    return statistics.median(samples)


def compare(name: str, rounds: int, seconds: float) -> None:
    """Check, time in interleaved rounds, and print one line a peer."""
    make = WORKLOADS[name].make
    agree(name, {peer: build(make()).result() for peer, build in peers_of(name).items()})
    cases = {peer: build(make()) for peer, build in peers_of(name).items()}
    repeats = {peer: max(3, int(seconds / max(cpu_seconds(case.step, 3), 1e-6))) for peer, case in cases.items()}
    times: dict[str, list[float]] = {peer: [] for peer in cases}
    for _ in range(rounds):
        for peer, case in cases.items():
            times[peer].append(cpu_seconds(case.step, repeats[peer]))
    print(f"{name}: {WORKLOADS[name].title}")
    medians = {peer: statistics.median(found) for peer, found in times.items()}
    frameworks = [peer for peer in FRAMEWORKS_ON_NUMPY if peer in medians]
    best = min(frameworks, key=medians.__getitem__, default=None)
    for peer, found in times.items():
        line = f"  {peer:17} {medians[peer] * 1e6:10.0f} µs a step"
        for ours, targets in ((OURS, TARGETS), (PLAN, PLAN_TARGETS)):
            if ours in times and peer not in (OURS, PLAN) and name in targets:
                target = targets[name]
                wanted = {HAND: target.hand, TORCH: target.torch, best: target.framework}
                line += f"   {ours} is {judged(times[ours], found, wanted.get(peer))}"
        print(line, flush=True)


def judged(ours: list[float], other: list[float], target: float | None) -> str:
    """Ours as a multiple of another's time, round by round, beside the target."""
    ratio = statistics.median(mine / theirs for mine, theirs in zip(ours, other, strict=True))
    missed = "" if target is None else f" (target {target:.3g}{'' if ratio <= target else ', missed'})"
    return f"{ratio:.2f} × of it{missed}"


def compare_two_workers(name: str, rounds: int, seconds: float) -> None:
    """Plans on two workers beside torch on two threads: wall time, in interleaved rounds."""
    make, peers = WORKLOADS[name].make, peers_of(name)
    plans = importlib.import_module(PEERS[PLAN])
    cases = {PLAN: getattr(plans, f"{name}_two_workers")(make()), HAND: peers[HAND](make())}
    if TORCH in peers:
        importlib.import_module("torch").set_num_threads(2)
        cases[TORCH] = peers[TORCH](make())
    agree(name, {peer: case.result() for peer, case in cases.items()})
    times: dict[str, list[float]] = {peer: [] for peer in cases}
    for _ in range(rounds):
        for peer, case in cases.items():
            repeats = max(3, int(seconds / max(wall_seconds(case.step, 1), 1e-6)))
            times[peer].append(wall_seconds(case.step, repeats))
    print(f"{name} on two workers, wall time: {WORKLOADS[name].title}")
    for peer, found in times.items():
        line = f"  {peer:17} {statistics.median(found) * 1e6:10.0f} µs a step"
        if peer != PLAN:
            line += f"   {PLAN} is {judged(times[PLAN], found, ON_TWO[name] if peer == TORCH else None)}"
        print(line, flush=True)
    if TORCH in peers:
        importlib.import_module("torch").set_num_threads(1)


def wall_seconds(step: Callable[[], Any], repeats: int) -> float:
    """Median wall time of one step."""
    samples = []
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)


def deep(nodes: int) -> None:
    """A chain of ``nodes`` mul and add: time, and bytes per node while the whole tape is alive."""
    x, w, b = (ad.tensor(value, requires_grad=True) for value in ([0.5], [0.9999], [1e-4]))
    h = x * w  # the bindings' code is generated at the first call
    (h + b).backward()
    before, start = peak_bytes(), time.perf_counter()
    h = x
    for i in range(nodes):
        h = h + b if i & 1 else h * w
    middle = time.perf_counter()
    taped = peak_bytes() - before
    h.backward()
    print(
        f"chain of {nodes:,} nodes: forward {middle - start:.2f} s, backward {time.perf_counter() - middle:.2f} s; "
        f"{taped / nodes:.0f} bytes a node recorded, {(peak_bytes() - before) / nodes:.0f} at the peak of backward"
    )


def peak_bytes() -> int:
    """Largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.2, help="length of one peer's turn in a round")
    parser.add_argument("--only", help="workloads, such as w1,w4")
    parser.add_argument(
        "--deep", action="store_true", help="only the chain of 1,000,000 nodes, whose memory needs a process of its own"
    )
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}, one thread, CPU time")
    if options.deep:
        return deep(1_000_000)
    for name in options.only.split(",") if options.only else TARGETS:
        compare(name, options.rounds, options.seconds)
        if name in ON_TWO:
            compare_two_workers(name, options.rounds, options.seconds)


if __name__ == "__main__":
    main()
