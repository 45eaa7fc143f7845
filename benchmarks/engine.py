"""Speed, eager and compiled, beside hand-written NumPy and every peer that is installed: ``python -m benchmarks.engine``.

Each workload's results are compared before anything is timed. Each peer has a process of its own, and their rounds are
interleaved. Every figure is thread CPU time, except those of two workers, which are wall time, and only the ratios mean
anything on another machine. ``--deep`` runs instead the chain of 1,000,000 nodes, with its memory a node.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # before NumPy loads

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "peers"))  # the peers import each other by bare name
from workloads import WORKLOADS

SPAWN = multiprocessing.get_context("spawn")

OURS, PLAN, BLOCKED = (
    "autodiff_lab",
    "autodiff_lab plan",
    "plan, no Numba",
)  # the third where loops are large enough to compile
HAND, TORCH = "hand NumPy", "torch eager"
PEERS = {
    OURS: "benchmarks.ours",
    PLAN: "benchmarks.ours_plan",
    BLOCKED: "benchmarks.ours_plan_blocked",
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


def serve(connection: Connection, module: str, function: str, workload: str, threads: int) -> None:
    """In a peer's process: send the result, None where it is not installed or lacks the workload; then time what is asked."""
    try:
        build = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError):
        return connection.send(None)
    if module == PEERS[TORCH]:
        importlib.import_module("torch").set_num_threads(threads)
    make = WORKLOADS[workload].make
    connection.send(build(make()).result())
    step = build(make()).step
    while (asked := connection.recv()) is not None:
        connection.send(seconds_of(step, *asked))


def seconds_of(step: Callable[[], Any], clock: str, repeats: int) -> float:
    """Median time of one step, by one of the clocks of ``time``."""
    read, samples = getattr(time, clock), []
    for _ in range(repeats):
        start = read()
        step()
        samples.append(read() - start)
    return statistics.median(samples)


@contextmanager
def cases(functions: Mapping[str, str], workload: str, threads: int = 1) -> Iterator[dict[str, Connection]]:
    """For each peer that there is, the connection to its process, which has built the workload and whose results agree.

    Each has a process of its own, as where it is used alone: autodiff_lab asks the C library to keep freed memory, which would
    spare the others their page faults too.
    """
    found, results, processes = {}, {}, []
    for peer, function in functions.items():
        ours, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=serve, args=(theirs, PEERS[peer], function, workload, threads), daemon=True)
        process.start()
        theirs.close()  # so that reading ends if the process does
        processes.append(process)
        if (result := ours.recv()) is not None:
            found[peer], results[peer] = ours, result
    agree(workload, results)
    yield found
    for connection in found.values():
        connection.send(None)
    for process in processes:
        process.join()


def ask(case: Connection, clock: str, repeats: int) -> float:
    """The median time of one step in a peer's process."""
    case.send((clock, repeats))
    return float(case.recv())


def interleaved(found: Mapping[str, Connection], clock: str, rounds: int, seconds: float) -> dict[str, list[float]]:
    """For each peer the time of a step in every round; in a round each has a turn of so many seconds."""
    repeats = {peer: max(3, int(seconds / max(ask(case, clock, 3), 1e-6))) for peer, case in found.items()}
    times: dict[str, list[float]] = {peer: [] for peer in found}
    for _ in range(rounds):
        for peer, case in found.items():
            times[peer].append(ask(case, clock, repeats[peer]))
    return times


def agree(name: str, results: dict[str, dict[str, Any]]) -> None:
    """Compare every peer's outputs and gradients with the hand-written ones."""
    reference, tolerance = results[HAND], WORKLOADS[name].tol
    for peer, result in results.items():
        for key, expected in reference.items():
            worst = np.max(np.abs(np.asarray(result[key]) - expected)) / max(float(np.max(np.abs(expected))), 1e-30)
            if not worst <= tolerance:
                raise SystemExit(f"{name}: {peer} disagrees on {key} by {worst:.1e} (allowed {tolerance:.0e})")


def compare(name: str, rounds: int, seconds: float) -> None:
    """Check, time in interleaved rounds, and print one line a peer."""
    with cases(dict.fromkeys(PEERS, name), name) as found:
        times = interleaved(found, "thread_time", rounds, seconds)
    print(f"{name}: {WORKLOADS[name].title}")
    medians = {peer: statistics.median(samples) for peer, samples in times.items()}
    frameworks = [peer for peer in FRAMEWORKS_ON_NUMPY if peer in medians]
    best = min(frameworks, key=medians.__getitem__, default=None)
    for peer, samples in times.items():
        line = f"  {peer:17} {medians[peer] * 1e6:10.0f} µs a step"
        for ours, targets in ((OURS, TARGETS), (PLAN, PLAN_TARGETS), (BLOCKED, PLAN_TARGETS)):
            if ours in times and peer not in (OURS, PLAN, BLOCKED) and name in targets:
                target = targets[name]
                wanted = {HAND: target.hand, TORCH: target.torch, best: target.framework}
                line += f"   {ours} is {judged(times[ours], samples, wanted.get(peer))}"
        print(line, flush=True)


def judged(ours: list[float], other: list[float], target: float | None) -> str:
    """Ours as a multiple of another's time, round by round, beside the target."""
    ratio = statistics.median(mine / theirs for mine, theirs in zip(ours, other, strict=True))
    missed = "" if target is None else f" (target {target:.3g}{'' if ratio <= target else ', missed'})"
    return f"{ratio:.2f} × of it{missed}"


def compare_two_workers(name: str, rounds: int, seconds: float) -> None:
    """Plans on two workers beside torch on two threads: wall time, in interleaved rounds."""
    two = f"{name}_two_workers"
    with cases({PLAN: two, BLOCKED: two, HAND: name, TORCH: name}, name, threads=2) as found:
        times = interleaved(found, "perf_counter", rounds, seconds)
    print(f"{name} on two workers, wall time: {WORKLOADS[name].title}")
    for peer, samples in times.items():
        line = f"  {peer:17} {statistics.median(samples) * 1e6:10.0f} µs a step"
        for ours in (PLAN, BLOCKED) if peer not in (PLAN, BLOCKED) else ():
            if ours in times:
                line += f"   {ours} is {judged(times[ours], samples, ON_TWO[name] if peer == TORCH else None)}"
        print(line, flush=True)


def deep(nodes: int) -> None:
    """A chain of ``nodes`` mul and add: time, and bytes per node while the whole tape is alive."""
    import autodiff_lab as ad  # here, because the processes of peers are to be without it

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
