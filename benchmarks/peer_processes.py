"""Peers, each in a process of its own: pinned to its cores, compared with hand-written NumPy, then timed.

A peer runs as where it is used alone: autodiff_lab asks the C library to keep freed memory, which would spare the others their
page faults too. The processes load this module, so it loads no peer but the hand-written one.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "peers"))  # the peers import each other by bare name
import hand
from workloads import WORKLOADS

SPAWN = multiprocessing.get_context("spawn")
BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
T = TypeVar("T")

SAMPLE = 1e-3  # seconds: shorter steps are timed several at once, since reading the clock takes 1 µs
PROCESSES = 3  # of each peer, one after the other: where a heap lies, and what it keeps, moves a step by up to a half
LIMIT = 60.0  # seconds that the one step of a deep chain may take


@dataclass(frozen=True)
class Peer:
    """A module of ``benchmarks/peers``, and the package without which it is left out."""

    module: str
    package: str

    @property
    def is_installed(self) -> bool:
        """Whether its package is there."""
        return find_spec(self.package) is not None


@dataclass(frozen=True)
class Setting:
    """Where a workload runs: a device, cores, and the clock by which it is timed."""

    threads: int = 1
    device: str = "cpu"

    @property
    def clock(self) -> str:
        """A clock of ``time``: CPU time where one thread computes, which other programs disturb less."""
        return "process_time" if self.threads == 1 else "perf_counter"


class Disagreement(Exception):
    """A peer's numbers are not those of hand-written NumPy."""


def data_of(workload: str, setting: Setting) -> SimpleNamespace:
    """The workload's data, and for peers that can choose: ``device`` and ``workers``."""
    data: SimpleNamespace = WORKLOADS[workload].make()
    data.device, data.workers = setting.device, setting.threads
    return data


def reference(workload: str) -> dict[str, Any]:
    """The hand-written outputs and gradients."""
    found: dict[str, Any] = getattr(hand, workload)(WORKLOADS[workload].make()).result()
    return found


def agree(workload: str, peer: str, result: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Compare a peer's outputs and gradients with the hand-written ones.

    Raises:
        Disagreement: they differ by more than the workload allows.
    """
    allowed = WORKLOADS[workload].tol
    for key, wanted in expected.items():
        difference = np.max(np.abs(np.asarray(result[key]) - wanted))
        worst = float(difference) / max(float(np.max(np.abs(wanted))), 1e-30)
        if not worst <= allowed:
            raise Disagreement(f"{workload}: {peer} disagrees on {key} by {worst:.1e} (allowed {allowed:.0e})")


@contextmanager
def pinned(threads: int) -> Iterator[None]:
    """Processes started inside have so many cores and BLAS threads: they inherit both, so these hold before NumPy loads."""
    before = dict(os.environ)
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    os.environ.update(dict.fromkeys(BLAS_THREADS, str(threads)))
    if cores:
        os.sched_setaffinity(0, sorted(cores)[-threads:])  # the first core serves interrupts
    try:
        yield
    finally:
        os.environ.update(before)
        for name in set(BLAS_THREADS) - set(before):
            del os.environ[name]
        if cores:
            os.sched_setaffinity(0, cores)


# ------------------------------------------------------------------------------------------- in the process of a peer


def serve(connection: Connection, module: str, workload: str, setting: Setting) -> None:
    """Send the result, or in words why there is none; then time what is asked."""
    peer = importlib.import_module(module)
    if why := lacks(peer, workload, setting):
        return connection.send(why)
    case = getattr(peer, workload)(data_of(workload, setting))
    connection.send(case.result())
    while True:
        try:
            asked = connection.recv()
        except EOFError:  # the benchmark is done with this peer
            return
        connection.send(seconds_of(case.step, *asked))


def lacks(peer: Any, workload: str, setting: Setting) -> str:
    """Why a peer cannot do a workload, in words; empty where it can. Without ``runs_on`` it knows the CPU only."""
    if not hasattr(peer, workload):
        return "lacks it"
    runs_on = getattr(peer, "runs_on", "cpu".__eq__)
    return "" if runs_on(setting.device) else f"no device {setting.device}"


def seconds_of(step: Callable[[], Any], clock: str, calls: int, repeats: int) -> float:
    """Median time of one step, of samples of so many calls."""
    read, samples = getattr(time, clock), []
    for _ in range(repeats):
        start = read()
        for _ in range(calls):
            step()
        samples.append((read() - start) / calls)
    return statistics.median(samples)


def serve_once(connection: Connection, module: str, workload: str, setting: Setting) -> None:
    """Send the result of one step, its seconds, and the bytes that it added to the process; a short chain warms up."""
    peer = importlib.import_module(module)
    if why := lacks(peer, workload, setting):
        return connection.send(why)
    data, build, read = data_of(workload, setting), getattr(peer, workload), getattr(time, setting.clock)
    build(SimpleNamespace(**{**vars(data), "n": 1000})).step()
    step = build(data).step
    before, start = peak_bytes(), read()
    result = step()
    connection.send((result, read() - start, peak_bytes() - before))


def peak_bytes() -> int:
    """Largest resident size of this process so far."""
    try:  # on Linux ru_maxrss begins with what the parent had
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


# ------------------------------------------------------------------------------------ in the process of the benchmark


@contextmanager
def started(target: Callable[..., None], *arguments: Any) -> Iterator[Connection]:
    """A process that runs ``target(connection, *arguments)``: our end of the connection."""
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()  # so that reading ends if the process does
    try:
        yield ours
    finally:
        ours.close()
        process.kill()
        process.join()


def answer(connection: Connection, seconds: float | None = None) -> Any:
    """What a process sends, or in words why nothing came."""
    try:
        return connection.recv() if connection.poll(seconds) else f"took over {seconds:g} s"
    except EOFError:
        return "its process ended"


@contextmanager
def cases(
    peers: Mapping[str, Peer], workload: str, setting: Setting, expected: Mapping[str, Any]
) -> Iterator[tuple[dict[str, Connection], dict[str, str]]]:
    """The processes of peers that have built the workload and gave what the hand gives; and why the others are left out.

    Raises:
        Disagreement: a peer gave something else.
    """
    running: dict[str, Connection] = {}
    left_out: dict[str, str] = {}
    with pinned(setting.threads), ExitStack() as stack:
        for name, peer in peers.items():
            if not peer.is_installed:
                left_out[name] = "not installed"
                continue
            connection = stack.enter_context(started(serve, peer.module, workload, setting))
            found = answer(connection)
            if isinstance(found, str):
                left_out[name] = found
                continue
            agree(workload, name, found, expected)
            running[name] = connection
        yield running, left_out


def steady(
    peers: Mapping[str, Peer], workload: str, setting: Setting, rounds: int, seconds: float
) -> tuple[dict[str, list[float]], dict[str, str], bool]:
    """The time of a step for each peer and round; why others are left out; and whether the rounds were quiet.

    Rounds are interleaved: in each, every peer has a turn of so many seconds. They are shared out among several processes of a
    peer.
    """
    expected, every, are_quiet = reference(workload), [], []
    processes = min(PROCESSES, rounds)
    for _ in range(processes):
        with cases(peers, workload, setting, expected) as (running, left_out):
            found, is_quiet = rounds_of(one_round(running, setting.clock, seconds), -(-rounds // processes))
        every += found
        are_quiet.append(is_quiet)
    there = [peer for peer in peers if peer not in left_out]
    return {peer: [one[peer] for one in every] for peer in there}, left_out, all(are_quiet)


def one_round(running: Mapping[str, Connection], clock: str, seconds: float) -> Callable[[], dict[str, float]]:
    """What measures one round of the peers that are running."""

    def ask(peer: str, calls: int, repeats: int) -> float:
        running[peer].send((clock, calls, repeats))
        return float(answer(running[peer]))

    turns = {}
    for peer in running:
        step = max(ask(peer, 1, 3), 1e-7)
        calls = max(1, round(SAMPLE / step))
        turns[peer] = calls, max(3, int(seconds / (calls * step)))
    return lambda: {peer: ask(peer, *turn) for peer, turn in turns.items()}


def fresh(
    peers: Mapping[str, Peer], workload: str, setting: Setting, rounds: int
) -> tuple[dict[str, list[tuple[float, int]]], dict[str, str], bool]:
    """The same for workloads of which a process runs one step only; a figure is seconds, and bytes that the step added."""
    expected = reference(workload)
    left_out = {name: "not installed" for name, peer in peers.items() if not peer.is_installed}

    def steps() -> dict[str, tuple[float, int]]:
        figures = {}
        for name in [name for name in peers if name not in left_out]:
            with started(serve_once, peers[name].module, workload, setting) as connection:
                found = answer(connection, LIMIT)
            if isinstance(found, str):
                left_out[name] = found
                continue
            result, *figure = found
            agree(workload, name, result, expected)
            figures[name] = tuple(figure)
        return figures

    with pinned(setting.threads):
        found, is_quiet = rounds_of(steps, rounds)
    there = [name for name in peers if name not in left_out]
    return {name: [one[name] for one in found] for name in there}, left_out, is_quiet


def rounds_of(measure: Callable[[], T], wanted: int) -> tuple[list[T], bool]:
    """So many rounds in which other programs left the machine alone; all rounds, where twice as many bring too few."""
    from autodiff_lab.quiet import MOST, watched  # here, because the processes of peers are to be without it

    if find_spec("psutil") is None:  # what other programs do is not known
        return [measure() for _ in range(wanted)], False
    every, quiet = [], []
    while len(quiet) < wanted and len(every) < 2 * wanted:
        found, share = watched(measure)
        every.append(found)
        quiet += [found] if share <= MOST else []
    return (quiet, True) if len(quiet) == wanted else (every, False)
