"""Speed of the scheduler: ``python -m benchmarks.scheduler``. Thread CPU time, the best of the repetitions, and memory.

Four equal devices, priorities by critical path. Ranks, the order of priorities and the timeline are included; making the tasks
is not. Two graphs, both of 64 tasks a level, each waiting for two of the level before: in ``stencil`` these are neighbours,
in ``network`` drawn by chance, so that an eighth of the tasks is used by nobody, as the gradients of weights are, and the ready
queue grows to thousands.

The executor runs functions that do nothing, 2 workers, beside Dask's threads and ``concurrent.futures``, where they are
installed. They take turns. Wall time counts only where other programs used under 8 % of the machine, processor time always.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue

from autodiff_lab import schedule
from autodiff_lab.quiet import repeat

WIDTH, DEVICES = 64, 4
SIZES = (10_000, 100_000, 1_000_000)
TARGETS = {("stencil", 100_000): 0.1, ("stencil", 1_000_000): 2.0}  # seconds


def stencil(task: int, r: random.Random) -> tuple[int, int]:
    """The task above and its neighbour."""
    return task - WIDTH, (task // WIDTH - 1) * WIDTH + (task + 1) % WIDTH


def network(task: int, r: random.Random) -> tuple[int, ...]:
    """Two of the level before, by chance."""
    level = (task // WIDTH - 1) * WIDTH
    return tuple({level + int(r.random() * WIDTH) for _ in range(2)})


def tasks_of(graph: Callable[[int, random.Random], tuple[int, ...]], count: int) -> schedule.Tasks:
    """So many tasks with random costs."""
    r = random.Random(0)
    before = [graph(task, r) if task >= WIDTH else () for task in range(count)]
    tasks = schedule.Tasks.from_columns([r.uniform(1, 10) for _ in range(count)], before)
    _ = tasks.successors  # a fact of the tasks, found once
    return tasks


def best_of(repetitions: int, run: Callable[[], object]) -> float:
    """The shortest thread CPU time, in seconds."""
    times = []
    for _ in range(repetitions):
        began = time.thread_time()
        run()
        times.append(time.thread_time() - began)
    return min(times)


def simulator(repetitions: int) -> None:
    """The simulator's rows."""
    print(f"{'simulated tasks':>23}  {'seconds':>8}  {'M tasks/s':>9}  {'peak MB':>8}  target")
    for count in SIZES:
        for graph in (stencil, network):
            tasks, machine = tasks_of(graph, count), schedule.cores(DEVICES)

            def run(tasks: schedule.Tasks = tasks, machine: schedule.Machine = machine) -> object:
                return schedule.simulate(tasks, machine, "critical_path")

            seconds, target = best_of(repetitions, run), TARGETS.get((graph.__name__, count))
            megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
            met = "" if target is None else f"≤ {target} s: {'met' if seconds <= target else 'missed'}"
            rate = count / seconds / 1e6
            print(f"{graph.__name__:>11} {count:11,}  {seconds:8.3f}  {rate:9.2f}  {megabytes:8.0f}  {met}", flush=True)


def executor(count: int = 10_000, workers: int = 2) -> None:
    """The executor's rows: microseconds a task, with the timeline, and how many times less that is than the others take."""
    before = [tuple(sorted(set(stencil(task, random.Random(task))))) if task >= WIDTH else () for task in range(count)]
    tasks = schedule.Tasks(
        schedule.Task(_nothing, name=f"t{task}", after=[f"t{other}" for other in others])
        for task, others in enumerate(before)
    )
    runs: dict[str, Callable[[], object]] = {
        "autodiff_lab": lambda: schedule.run(tasks, workers=workers, policy="critical_path"),
        "concurrent.futures": lambda: _with_futures(before, workers),
    }
    with suppress(ImportError):
        from dask.threaded import get

        graph = {f"t{task}": (_nothing, *(f"t{other}" for other in others)) for task, others in enumerate(before)}
        runs["dask.threaded"] = lambda: get(graph, [f"t{count - 1 - i}" for i in range(WIDTH)], num_workers=workers)

    processor: dict[str, list[float]] = {name: [] for name in runs}

    def once() -> dict[str, float]:
        found = {}
        for name, run in runs.items():
            began, cpu = time.perf_counter(), time.process_time()
            run()
            found[name] = (time.perf_counter() - began) / count * 1e6
            processor[name].append((time.process_time() - cpu) / count * 1e6)
        return found

    once()
    samples = repeat(once)
    for name in runs:
        cpu = statistics.median(processor[name])
        times = [found[name] for found in samples.kept] if samples.are_enough else []
        figure = (
            f"{statistics.median(times):.2f} µs a task" if times else "wall time not measured, the machine was busy"
        )
        if name == "autodiff_lab":
            target, ours = 2.0, times
            verdict = (
                f" (target {target}: {'met' if statistics.median(times) <= target else 'missed'})" if times else ""
            )
        else:
            ratios = [other / own for own, other in zip(ours, times, strict=True)]
            verdict = f", {statistics.median(ratios):.0f} × of autodiff_lab" if times else ""
        multiple = cpu / statistics.median(processor["autodiff_lab"])
        print(f"{name:>23}  {figure}{verdict}; processor time {cpu:.2f} µs, {multiple:.0f} ×", flush=True)
    print(f"{'':>23}  {len(samples.kept)} repetitions kept, {samples.rejected} rejected")


def _nothing(*_: object) -> None:
    return None


def _with_futures(before: list[tuple[int, ...]], workers: int) -> None:
    """The usual way without a scheduler: submit what waits for nothing, and again whenever something is done."""
    waiting = [len(others) for others in before]
    after: list[list[int]] = [[] for _ in before]
    for task, others in enumerate(before):
        for other in others:
            after[other].append(task)
    with ThreadPoolExecutor(workers) as pool:
        done: SimpleQueue[int] = SimpleQueue()

        def submit(task: int) -> None:
            pool.submit(_nothing).add_done_callback(lambda _: done.put(task))

        for task, count in enumerate(waiting):
            if not count:
                submit(task)
        for _ in before:
            for task in after[done.get()]:
                waiting[task] -= 1
                if not waiting[task]:
                    submit(task)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measures the scheduler.")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--only", choices=("simulator", "executor"))
    options = parser.parse_args()
    if options.only != "executor":
        simulator(options.repetitions)
    if options.only != "simulator":
        executor()


if __name__ == "__main__":
    main()
