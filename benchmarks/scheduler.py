"""Speed of the scheduler: ``python -m benchmarks.scheduler``. Thread CPU time, the best of the repetitions, and memory.

Four equal devices, priorities by critical path. Ranks, the order of priorities and the timeline are included; making the tasks
is not. Two graphs, both of 64 tasks a level, each waiting for two of the level before: in ``stencil`` these are neighbours,
in ``network`` drawn by chance, so that an eighth of the tasks is used by nobody, as the gradients of weights are, and the ready
queue grows to thousands.
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections.abc import Callable

from autodiff_lab import schedule

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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measures the scheduler.")
    parser.add_argument("--repetitions", type=int, default=5)
    simulator(parser.parse_args().repetitions)


if __name__ == "__main__":
    main()
