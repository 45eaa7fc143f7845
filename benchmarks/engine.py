"""Eager speed beside hand-written NumPy and, where it is installed, torch: ``python -m benchmarks.engine``.

Each workload's results are compared before anything is timed. Rounds are interleaved, every figure is thread CPU time, and
only the ratios mean anything on another machine. ``--deep`` adds the chain of 1,000,000 nodes with its memory per node.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # before NumPy loads

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "peers"))  # the peers import each other by bare name
import hand
from case import Case
from workloads import WORKLOADS, train_result

import autodiff_lab as ad
from autodiff_lab import ops

# What to reach, as a multiple of torch eager and of hand-written NumPy.
TARGETS = {"w1": (0.40, 1.65), "w2": (0.26, 1.30)}


def chain(data: SimpleNamespace) -> Case:
    """W1: a chain of 1,000 mul, add and tanh on one element."""

    def forward() -> tuple[Any, ...]:
        x, w, b = (ad.tensor(value, requires_grad=True) for value in (data.x, data.w, data.b))
        h = x
        for i in range(data.n):
            kind = i % 3
            h = h * w if kind == 0 else h + b if kind == 1 else ops.tanh(h)
        return h, x, w, b

    def step() -> dict[str, Any]:
        h, x, w, b = forward()
        h.backward()
        return {"y": h.numpy(), "gx": x.grad.numpy(), "gw": w.grad.numpy(), "gb": b.grad.numpy()}

    return Case(step, step, forward)


def perceptron(data: SimpleNamespace) -> Case:
    """W2: one SGD step of a small perceptron."""
    params = [ad.tensor(p, requires_grad=True) for p in data.params]
    x, y = ad.tensor(data.X), ad.tensor(data.Y)

    def step() -> float:
        w1, b1, w2, b2, w3, b3 = params
        hidden = ops.tanh(ops.tanh(x @ w1 + b1) @ w2 + b2)
        error = hidden @ w3 + b3 - y
        loss = ops.mean(error * error)
        loss.backward()
        for p in params:
            p.data = p.data - data.lr * p.grad.data
            p.grad = None
        return loss.item()

    return Case(step, lambda: train_result([step() for _ in range(3)], [p.numpy() for p in params]))


def torch_chain(data: SimpleNamespace) -> Case:
    """W1 in torch eager."""
    import torch

    def step() -> dict[str, Any]:
        x, w, b = (torch.tensor(value, requires_grad=True) for value in (data.x, data.w, data.b))
        h = x
        for i in range(data.n):
            kind = i % 3
            h = h * w if kind == 0 else h + b if kind == 1 else torch.tanh(h)
        h.backward()
        return {"y": h.detach().numpy(), "gx": x.grad.numpy(), "gw": w.grad.numpy(), "gb": b.grad.numpy()}

    return Case(step, step)


def torch_perceptron(data: SimpleNamespace) -> Case:
    """W2 in torch eager."""
    import torch

    params = [torch.tensor(p, requires_grad=True) for p in data.params]
    x, y = torch.tensor(data.X), torch.tensor(data.Y)

    def step() -> float:
        w1, b1, w2, b2, w3, b3 = params
        error = torch.tanh(torch.tanh(x @ w1 + b1) @ w2 + b2) @ w3 + b3 - y
        loss = torch.mean(error * error)
        loss.backward()
        with torch.no_grad():
            for p in params:
                p -= data.lr * p.grad
                p.grad = None
        return loss.item()

    return Case(step, lambda: train_result([step() for _ in range(3)], [p.detach().numpy() for p in params]))


OURS = {"w1": chain, "w2": perceptron}
TORCH = {"w1": torch_chain, "w2": torch_perceptron}


def peers_of(name: str) -> dict[str, Callable[[SimpleNamespace], Case]]:
    """Whom a workload is compared with: hand-written NumPy, and torch where it is installed."""
    found = {"autodiff_lab": OURS[name], "hand NumPy": getattr(hand, name)}
    try:
        import torch
    except ImportError:
        return found
    torch.set_num_threads(1)
    return {**found, "torch eager": TORCH[name]}


def agree(name: str, results: dict[str, dict[str, Any]]) -> None:
    """Compare every peer's outputs and gradients with the hand-written ones."""
    reference, tolerance = results["hand NumPy"], WORKLOADS[name].tol
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
    against = {"torch eager": TARGETS[name][0], "hand NumPy": TARGETS[name][1]}
    for peer, found in times.items():
        line = f"  {peer:13} {statistics.median(found) * 1e6:8.0f} µs a step"
        if peer in against:
            ratio = statistics.median(ours / other for ours, other in zip(times["autodiff_lab"], found, strict=True))
            line += f"   autodiff_lab is {ratio:.2f} × of it (target {against[peer]:.2f})"
        print(line)


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


def import_cost(rounds: int) -> None:
    """Import time beside NumPy's: medians of fresh interpreters, interleaved, with compiled files as after a first run."""
    times: dict[str, list[float]] = {"pass": [], "import numpy": [], "import autodiff_lab": []}
    with tempfile.TemporaryDirectory() as compiled:
        settings = {**os.environ, "PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
        for warm_up in (True, *[False] * rounds):
            for statement, found in times.items():
                start = time.perf_counter()
                subprocess.run([sys.executable, "-c", statement], check=True, env=settings)
                if not warm_up:
                    found.append(time.perf_counter() - start)
    start_up, numpy, ours = (statistics.median(found) for found in times.values())
    print(
        f"import: NumPy {1000 * (numpy - start_up):.0f} ms, autodiff_lab with it {1000 * (ours - start_up):.0f} ms, "
        f"{(ours - start_up) / (numpy - start_up):.2f} × (target 1.50)"
    )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.2, help="length of one peer's turn in a round")
    parser.add_argument("--deep", action="store_true", help="add the chain of 1,000,000 nodes")
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}, one thread, CPU time")
    for name in OURS:
        compare(name, options.rounds, options.seconds)
    import_cost(options.rounds)
    if options.deep:
        deep(1_000_000)


if __name__ == "__main__":
    main()
