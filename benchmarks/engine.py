"""Speed and memory, eager and compiled, beside hand-written NumPy and every peer that is installed: ``make bench``.

Each peer gave what hand-written NumPy gives before it is timed. Each has processes of its own, pinned to as many cores as the
row says, and rounds are interleaved; those during which other programs used the machine are repeated. One thread is timed in
CPU time of the process, two cores and GPUs on the clock; only ratios mean anything on another machine. Takes about 20 minutes.
``make bench-deps`` installs the peers.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from benchmarks.engine_report import BLOCKED, HAND, OURS, PLAN, TORCH, Report, Row, Target, headline
from benchmarks.machine import machine
from benchmarks.peer_processes import WORKLOADS, Peer, Setting, fresh, steady

RESULTS = Path(__file__).parent / "results"
PEERS = {
    OURS: Peer("autodiff_lab_eager", "numpy"),
    PLAN: Peer("autodiff_lab_plan", "numpy"),
    BLOCKED: Peer("autodiff_lab_plan_blocked", "numpy"),
    HAND: Peer("hand", "numpy"),
    TORCH: Peer("torch_eager", "torch"),
    "jax jit": Peer("jax_jit", "jax"),
    "HIPS autograd": Peer("hips_autograd", "autograd"),
    "MyGrad": Peer("mygrad_eager", "mygrad"),
}
PACKAGES = ("torch", "jax", "autograd", "mygrad", "numba", "cupy-cuda12x")  # whose versions decide the figures

ONE, TWO, GPU = Setting(), Setting(threads=2), Setting(threads=2, device="cuda:0")
TARGETS = {
    ("w1", ONE): {OURS: Target(0.40, 0.13, 1.65), PLAN: Target(0.14, 0.05, 0.58)},
    ("w2", ONE): {OURS: Target(0.26, 0.42, 1.30), PLAN: Target(0.125, 0.21, 0.62)},
    ("w3", ONE): {OURS: Target(0.92, 0.95, 1.08), PLAN: Target(0.82, 0.84, 0.98)},
    ("w3", GPU): {},
    ("w4", ONE): {OURS: Target(1.15, 0.50, 0.70), PLAN: Target(0.92, 0.40, 0.56)},
    ("w4", TWO): {PLAN: Target(1.05)},
    ("w4", GPU): {},
    ("w5", ONE): {OURS: Target(0.75, 0.55, 0.80)} | dict.fromkeys((PLAN, BLOCKED), Target(0.32, 0.24, 0.34)),
    ("w5", TWO): {PLAN: Target(0.24), BLOCKED: Target(0.24)},
    ("w5", GPU): {},
    ("w6b", ONE): {OURS: Target(0.40, 0.18, 2.65)},
    ("w7a_fwd", ONE): {OURS: Target(0.15, 0.35, 1.6)},
    ("w7a_rev", ONE): {OURS: Target(0.75, 0.085, 1.3)},
    ("w7b_fwd", ONE): {OURS: Target(0.78, 0.016, 1.3)},
    ("w7b_rev", ONE): {OURS: Target(0.15, 0.30, 3.5)},
    ("w8", ONE): {OURS: Target(0.55, 0.30, 2.7), PLAN: Target(0.155, 0.085, 0.77)},
    ("w9", ONE): {OURS: Target(1.45, 0.27, 0.65), PLAN: Target(1.45, 0.27, 0.65)},
    ("w9", TWO): {OURS: Target(1.5), PLAN: Target(1.5)},
    ("w9", GPU): {},
}
MEMORY_TARGETS = {OURS: Target(0.30)}
IN_WORDS = {ONE: "one core, CPU time", TWO: "two cores, wall time", GPU: "cuda:0, wall time"}
SHORT = {ONE: "", TWO: " on two cores", GPU: " on cuda:0"}
DEEP_ROUNDS = 3  # at most: each is a minute or two, since some peers need most of a minute for one step


def measured(workload: str, setting: Setting, rounds: int, seconds: float) -> Iterator[Row]:
    """The row of a workload in a setting; where a process runs one step only, a second row for its memory."""
    name, title, targets = f"{workload}{SHORT[setting]}", WORKLOADS[workload].title, TARGETS[workload, setting]
    if setting.threads > _cores():
        left_out = dict.fromkeys(PEERS, "there is one core")
        yield Row(name, title, IN_WORDS[setting], {}, left_out, targets)
    elif WORKLOADS[workload].mode == "fresh":
        found, left_out, is_quiet = fresh(PEERS, workload, setting, min(rounds, DEEP_ROUNDS))
        times, bytes_ = ({peer: [one[part] for one in each] for peer, each in found.items()} for part in (0, 1))
        how = f"{IN_WORDS[setting]} of the first step of a process"
        yield Row(name, title, how, times, left_out, targets, is_quiet)
        how = "memory that the first step adds to a process"
        yield Row(f"{name} memory", title, how, bytes_, left_out, MEMORY_TARGETS, is_quiet, is_memory=True)
    else:
        times, left_out, is_quiet = steady(PEERS, workload, setting, rounds, seconds)
        on_the_clock = setting.threads > 1
        yield Row(name, title, IN_WORDS[setting], times, left_out, targets, is_quiet, on_the_clock=on_the_clock)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def versions() -> dict[str, str]:
    """The versions of what is installed of the peers and of what plans use, and the GPU's name."""
    from autodiff_lab import devices  # here, because the processes of peers are to be without it

    gpus = [line.split(": ", 1) for line in devices() if line.startswith("cuda:0:")]
    found = {name: model for name, model in gpus}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.2, help="length of one peer's turn in a round")
    parser.add_argument("--only", default="", help="workloads, such as w1,w4, or the beginnings of their names: w7a,w6")
    parser.add_argument("--out", type=Path, help="write engine.txt and engine.json into this folder")
    parser.add_argument("--headline", action="store_true", help="print the README's sentence from the last results")
    options = parser.parse_args()
    if options.headline:
        return print(headline(json.loads((RESULTS / "engine.json").read_text(encoding="utf-8"))))
    report = Report(machine(), versions(), rows := [])
    print(report.heading, flush=True)
    for workload, setting in TARGETS:
        if workload.startswith(tuple(options.only.split(","))):
            for row in measured(workload, setting, options.rounds, options.seconds):
                rows.append(row)
                print(f"\n{row}", flush=True)
    print(f"\n{report.ending}")
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "engine.txt").write_text(f"{report}\n", encoding="utf-8")
        (options.out / "engine.json").write_text(f"{json.dumps(report.as_json(), indent=1)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
