"""How time and memory grow with size: ``make bench-report``, or ``python -m benchmarks.growth``, in under 4 minutes.

Each curve is CPU time of this process, medians, on a logarithmic scale both ways, where a power of n is a straight line; its
slope over the last four points is fitted by least squares. n · log n has a slope of 1.1 there; one over 1.2 is reported.
Memory is what Python holds of the result (tracemalloc). What existed before is hidden from the garbage collector, since other
curves left it; not where tapes are timed, whose growth has an effect of its own on the collector.
Prints while it measures, and writes ``results/growth.txt`` and ``growth.html``.

To record a graph of 10⁶ nodes takes half a minute: what is done with graphs ends at 10⁵ unless ``--largest 1000000`` is given.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # before NumPy loads: threads that wait use CPU time too

import numpy as np
from autodiff_widgets.export import PICTURE_CSS
from autodiff_widgets.graph_view import GraphView
from autodiff_widgets.layout import place
from autodiff_widgets.plots import Plot, axis_of, run_css
from autodiff_widgets.shapes import heading, line, page
from autodiff_widgets.timeline_view import TimelineView

import autodiff_lab as ad
from autodiff_lab import ops, schedule
from autodiff_lab.graph import depth_first_order, kahn_order
from benchmarks.drawn import joint_mlp, mlp, timeline
from benchmarks.machine import machine
from benchmarks.scheduler import DEVICES, stencil, tasks_of

RESULTS = Path(__file__).parent / "results"
STEEPEST = 1.2  # slope; n · log n has 1.1 between 10³ and 10⁶
LONGEST = 8.0  # CPU seconds that the next point may take

Act = Callable[[], object]


@dataclass(frozen=True)
class Curve:
    """What is measured for each size: ``prepare(n)`` gives the real size and what to do, and is not measured itself."""

    title: str
    counted: str  # what n counts
    prepare: Callable[[int], tuple[int, Act]]
    largest: int | None = None
    memory: bool = False  # bytes of the result instead of seconds
    is_tape: bool = False  # the collector is left as a user has it, since the library puts off what it does then


@dataclass(frozen=True)
class Grown:
    """A curve's points, and its slope."""

    curve: Curve
    points: list[tuple[int, float]]

    @property
    def slope(self) -> float:
        """The exponent of n that fits the last four points."""
        upper = self.points[-4:]
        sizes, figures = (np.log([point[part] for point in upper]) for part in (0, 1))
        return float(np.polyfit(sizes, figures, 1)[0])

    def __str__(self) -> str:
        unit, size = ("B", 1.0) if self.curve.memory else ("µs", 1e-6)
        (least, _), (most, figure) = self.points[0], self.points[-1]
        steep = "" if self.slope <= STEEPEST else "  steeper than n · log n"
        return (
            f"{self.curve.title:44} {least:>9,} … {most:>9,} {self.curve.counted:10} "
            f"{figure / size / most:9.2f} {unit:2} each  n^{self.slope:.2f}{steep}"
        )


# ---------------------------------------------------------------------------------------------------------- what is measured


def chain(nodes: int) -> ad.Tensor:
    """A Tensor with a record of so many ops in a row."""
    x, w, b = (ad.tensor(value, requires_grad=True) for value in ([0.5], [0.9999], [1e-4]))
    h = x
    for number in range(nodes):
        h = h + b if number & 1 else h * w
    return h


def of_graph(act: Callable[[ad.Graph], object]) -> Callable[[int], tuple[int, Act]]:
    """Something done with the joint graph of a multilayer perceptron."""

    def prepare(nodes: int) -> tuple[int, Act]:
        graph = recorded(nodes)
        return len(graph), lambda: act(graph)

    return prepare


@cache
def recorded(nodes: int) -> ad.Graph:
    """The joint graph, recorded once for all curves."""
    return joint_mlp(max(nodes // 13, 1))


def recording(nodes: int) -> tuple[int, Act]:
    """Recording that joint graph."""
    f, *arguments = mlp(max(nodes // 13, 1))
    return 13 * max(nodes // 13, 1) + 8, lambda: ad.record(ad.value_and_grad(f), *arguments)


def backward(nodes: int) -> tuple[int, Act]:
    """The reverse sweep of a chain."""
    h = chain(nodes)
    return nodes, h.backward


def shared(readers: int) -> tuple[int, Act]:
    """The reverse sweep of one value that many ops read."""
    x = ad.tensor([0.5], requires_grad=True)
    total = x * 1.0
    for _ in range(readers // 2):
        total = total + x * 2.0
    return readers, total.backward


def parameters(count: int) -> tuple[int, Act]:
    """Loss and gradients of a function of many parameters."""
    given = [np.array([0.5 + place % 7]) for place in range(count)]

    def f(all_of_them: Any) -> Any:
        total = all_of_them[0]
        for one in all_of_them[1:]:
            total = total + one * one
        return total.sum()

    return count, lambda: ad.value_and_grad(f)(given)


def batch(rows: int) -> tuple[int, Act]:
    """Loss and gradients of a small network on a batch."""
    random = np.random.default_rng(0)
    weights = [random.standard_normal((32, 32)).astype(np.float32) for _ in range(3)]
    x = random.standard_normal((rows, 32)).astype(np.float32)

    def f(given: Any) -> Any:
        h = x
        for w in given:
            h = ops.tanh(h @ w)
        return (h * h).mean()

    return rows, lambda: ad.value_and_grad(f)(weights)


def simulated(count: int) -> tuple[int, Act]:
    """A simulated schedule."""
    tasks, devices = tasks_of(stencil, count), schedule.cores(DEVICES)
    return count, lambda: schedule.simulate(tasks, devices, "critical_path")


def crowded(count: int) -> tuple[int, Act]:
    """A simulated schedule of tasks that are all ready at once."""
    tasks = schedule.Tasks({f"t{number}": schedule.Task(cost=1 + number % 7 / 16) for number in range(count)})
    return count, lambda: schedule.simulate(tasks, DEVICES, "fifo")


def bars(count: int) -> tuple[int, Act]:
    """A picture of a timeline."""
    told = timeline(count)
    return count, lambda: TimelineView(told)


MILLION = 1_000_000
CURVES = [
    Curve("record op by op (Tensors)", "nodes", lambda n: (n, lambda: chain(n)), MILLION, is_tape=True),
    Curve("reverse sweep of a chain", "nodes", backward, MILLION, is_tape=True),
    Curve("reverse sweep, one value read n times", "reads", shared),
    Curve("record a joint graph", "nodes", recording),
    Curve("topological order, depth first", "nodes", of_graph(depth_first_order)),
    Curve("topological order, Kahn", "nodes", of_graph(kahn_order)),
    Curve("shapes", "nodes", of_graph(ad.infer_shapes)),
    Curve("fuse", "nodes", of_graph(ad.fuse)),
    Curve("plan", "nodes", of_graph(ad.plan)),
    Curve("tasks of a graph", "nodes", of_graph(schedule.from_graph)),
    Curve("loss and gradients by parameters", "parameters", parameters),
    Curve("loss and gradients by batch", "rows", batch),
    Curve("simulate", "tasks", simulated, MILLION),
    Curve("simulate, all ready at once", "tasks", crowded),
    Curve("layout of a graph", "nodes", of_graph(place)),
    Curve("picture of a graph", "nodes", of_graph(lambda graph: GraphView(graph, collapse=())), 3_000),
    Curve("picture of a timeline", "tasks", bars, 10_000),
    Curve("memory: record op by op (Tensors)", "nodes", lambda n: (n, lambda: chain(n)), 30_000, memory=True),
    Curve("memory: joint graph", "nodes", recording, 10_000, memory=True),
    Curve("memory: plan", "nodes", of_graph(ad.plan), 10_000, memory=True),
    Curve("memory: timeline", "tasks", simulated, 100_000, memory=True),
    Curve(
        "memory: picture of a graph", "nodes", of_graph(lambda graph: GraphView(graph, collapse=())), 3_000, memory=True
    ),
]


# ---------------------------------------------------------------------------------------------------------------- measuring


def grow(curve: Curve, largest: int) -> Grown:
    """Measure a curve at 100, 300, 1,000, … until it is long enough or the next point would take too long."""
    points: list[tuple[int, float]] = []
    for size in (factor * 10**power for power in range(2, 7) for factor in (1, 3)):
        if size > (curve.largest or largest) or (points and not curve.memory and 3 * points[-1][1] > LONGEST):
            break
        count, act = curve.prepare(size)
        points.append((count, held_bytes(act) if curve.memory else cpu_seconds(curve, size, act)))
    return Grown(curve, points)


def cpu_seconds(curve: Curve, size: int, act: Act) -> float:
    """Median CPU time; what is used up is prepared anew each time."""
    times: list[float] = []
    while len(times) < 3 or (len(times) < 15 and sum(times) < 0.2):
        if times and curve.prepare in (backward, shared):
            act = curve.prepare(size)[1]
        gc.collect()
        if not curve.is_tape:
            gc.freeze()
        start = time.process_time()
        result = act()
        times.append(time.process_time() - start)
        del result
        gc.unfreeze()
        if times[0] > 1:
            break
    return statistics.median(times)


def held_bytes(act: Act) -> float:
    """What Python holds of the result."""
    act()  # what is made once, such as bindings, does not count
    gc.collect()
    tracemalloc.start()
    result = act()
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del result
    return float(held)


# ------------------------------------------------------------------------------------------------------------------ the page


def html_page(found: list[Grown]) -> str:
    """All curves, a plot each."""
    steep = [grown.curve.title for grown in found if grown.slope > STEEPEST]
    verdict = f"steeper than n · log n: {', '.join(steep)}" if steep else "no curve is steeper than n · log n"
    pictures = "\n".join(f'<figure class="autodiff-static">{_plot(grown)}</figure>' for grown in found)
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>How time and memory grow</title>
<style>
{PICTURE_CSS.replace(".autodiff-player", ".autodiff-static")}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 24px auto; max-width: 1380px }}
main {{ display: flex; flex-wrap: wrap; gap: 12px }}
figure {{ margin: 0 }}
</style>
<h1>How time and memory grow</h1>
<p>{escape(machine())}: {escape(verdict)}. Both axes are logarithmic; the dotted line is n.</p>
<main>
{pictures}
</main>
</html>
"""


def _plot(grown: Grown) -> str:
    """One curve with its slope, beside a line of slope 1 through its last point."""
    unit, size = ("MB", 1e6) if grown.curve.memory else ("ms", 1e-3)
    points = [(float(n), figure / size) for n, figure in grown.points]
    (first, _), (last, end) = points[0], points[-1]
    linear = [(first, end * first / last), (last, end)]
    heights = [height for _, height in (*points, *linear)]
    plot = Plot(axis_of((n for n, _ in points), 300.0), axis_of(heights, 190.0), (78.0, 264.0))
    parts = [
        heading(grown.curve.title, 14, 24),
        *plot.frame(grown.curve.counted, unit),
        line([plot.point(*point) for point in linear], f"edge {run_css(2)}"),
        line([plot.point(*point) for point in points], f"edge {run_css(0 if grown.slope <= STEEPEST else 1)}"),
        heading(f"n^{grown.slope:.2f}", 378, 62, anchor="end"),
    ]
    return page(420, 316, parts)


def report(only: str, largest: int) -> Iterator[Grown]:
    """All curves whose titles contain a text."""
    for curve in CURVES:
        if only in curve.title:
            grown = grow(curve, largest)
            print(grown, flush=True)
            yield grown


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="curves with this in their title; nothing is written then")
    parser.add_argument("--largest", type=int, default=100_000, help="size at which most curves end")
    options = parser.parse_args()
    print(f"# python -m benchmarks.growth, {machine()}")
    found = list(report(options.only, options.largest))
    if not options.only:
        lines = [f"# python -m benchmarks.growth, {machine()}", *map(str, found)]
        (RESULTS / "growth.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (RESULTS / "growth.html").write_text(html_page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
