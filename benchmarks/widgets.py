"""What a reader of a notebook waits for: ``python -m benchmarks.widgets``, in real JupyterLab in Chromium, in under 4 minutes.

A step is timed from the key press until it is painted. *Painted* means: requestAnimationFrame twice. The first callback runs
just before the browser styles and paints the change, the second one when that frame is done. Both wait for the screen's
clock, so even a page with one SVG rectangle that changes its class needs 17 to 33 ms. That page is measured in the same run,
in turns with each view, and a step's target is what it may need more than that. Keys come at every phase of the screen's clock.

Only batches during which other programs left the machine alone are counted; where these are too few, all are, and a line says
so.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autodiff_widgets.graph_view import GraphView
from autodiff_widgets.layout import place
from autodiff_widgets.player import PLAYER_JS

from autodiff_lab import quiet
from benchmarks.drawn import LAYERS, joint_mlp
from benchmarks.machine import machine
from tests.browser import jupyter
from tests.browser.reader import kernel_value
from tests.notebook_file import notebook_of

RESULTS = Path(__file__).parent / "results"
STEPS, BATCHES, SECONDS = 20, 5, 20.0  # steps in a batch, quiet batches wanted, seconds at most for one view
WIDGETS = 20
IMPORTS = "import autodiff_widgets as aw, autodiff_lab as ad\nfrom autodiff_lab import schedule\nfrom benchmarks import drawn\n"

# nodes: (ms from run-all until the picture is painted, ms that a step may need more than the page with one rectangle)
GRAPHS = {47: (400, 16), 294: (400, 20), 996: (650, 30), 2998: (1200, 60)}
# other views of large graphs, and what a step of each may need more than that page
VIEWS = {
    "timeline of 10,000 bars": ("aw.TimelineView(drawn.timeline(10_000))", None),
    "ShapeInferenceView, 1,256 nodes": ("aw.ShapeInferenceView(drawn.joint_mlp(96))", 60),
    "FusionView, 1,256 nodes": ("aw.FusionView(drawn.joint_mlp(96))", 60),
    "PlanView, 1,256 nodes": ("aw.PlanView(ad.plan(drawn.joint_mlp(96)))", 60),
    "GradientFlowView, 1,160 nodes": ("aw.GradientFlowView(*drawn.mlp(384))", 60),
}
TIMELINE_STEP = 50  # ms in all

FLOOR_PAGE = """<style>rect { fill: #cbeade } .on { fill: #f5ab1f }</style>
<svg width="300" height="200"><rect width="100" height="40"/></svg>"""

# A list of times in ms, one for each step. `act` steps; the pauses differ, so that keys come at every phase of the clock.
TIMED_STEPS = """
const frame = () => new Promise(requestAnimationFrame);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const timed = async (count, act) => {
  const times = [];
  for (let i = 0; i < count; i++) {
    await pause(12 + (i * 7) % 17);
    const start = performance.now();
    act();
    await frame();
    await frame();
    times.push(performance.now() - start);
  }
  return times;
};
"""
STEP_OF_FLOOR = f"""async (count) => {{
  {TIMED_STEPS}
  return timed(count, () => document.querySelector("rect").classList.toggle("on"));
}}"""
# From another place of the film for each batch.
STEP_OF_PLAYER = f"""async ([count, part]) => {{
  {TIMED_STEPS}
  const player = document.querySelector(".autodiff-player:not([data-old])");
  const scrubber = player.querySelector("input[type=range]");
  scrubber.value = Math.round(part * Math.max(0, Number(scrubber.max) - count));
  scrubber.dispatchEvent(new Event("input"));
  await pause(300);
  const key = () => new KeyboardEvent("keydown", {{ key: "ArrowRight", bubbles: true, cancelable: true }});
  return timed(count, () => player.dispatchEvent(key()));
}}"""
RUN_ALL = """async (code) => {
  for (const old of document.querySelectorAll(".autodiff-player")) old.setAttribute("data-old", "");
  jupyterapp.shell.currentWidget.content.widgets[0].model.sharedModel.setSource(code);
  const frame = () => new Promise(requestAnimationFrame);
  const start = performance.now();
  jupyterapp.commands.execute("notebook:run-all-cells");
  while (!document.querySelector(".autodiff-player:not([data-old]) .counter:not(:empty)")) {
    if (document.querySelector('[data-mime-type="application/vnd.jupyter.stderr"]')) return null;
    await frame();
  }
  await frame();
  await frame();
  return performance.now() - start;
}"""
# The kernel sets a trait 20 times and notes when; the page notes when each value was painted.
WATCH_UPDATES = """() => {
  window.painted = [];
  const frame = () => new Promise(requestAnimationFrame);
  window.watching = new MutationObserver(async () => {
    await frame();
    await frame();
    const player = document.querySelector(".autodiff-player:not([data-old])");
    if (!player) return;
    const seen = `${player.querySelector(".title").textContent} ${player.querySelector(".counter").textContent}`;
    window.painted.push([seen, performance.timeOrigin + performance.now()]);
  });
  window.watching.observe(document.querySelector(".jp-Notebook"), { subtree: true, childList: true, characterData: true });
}"""


UPDATES = """
import time
from dataclasses import replace
stamps, first = [], view.scene
for k in range(1, 21):
    began = time.time()
    STATEMENT
    stamps.append((f"{view.scene.title} {view.frame} / {len(view.frames) - 1}", began))
    time.sleep(0.25)
"""
LIVE = {"frame set": "view.frame = k", "new scene": "view.scene = replace(first, title=f'scene {k}')"}


@dataclass(frozen=True)
class Figure:
    """One line of the table: what was measured, and at most how much it should be."""

    name: str
    value: float
    unit: str
    target: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the target is met; nothing where there is none."""
        return "" if self.target is None else "met" if self.value <= self.target else "missed"

    def __str__(self) -> str:
        target = "" if self.target is None else f"≤ {self.target:g}"
        return f"{self.name:62}{self.value:10.1f} {self.unit:5}{target:>9}  {self.verdict}"


@dataclass(frozen=True)
class Batch:
    """Steps of a view and steps of the page with one rectangle, in turns; in ms."""

    view: list[float]
    floor: list[float]


def percentile(times: list[float], part: float) -> float:
    """The value that a part of the times stays below."""
    return statistics.quantiles(times, n=100, method="inclusive")[round(100 * part) - 1]


# ------------------------------------------------------------------------------------------------------------ in a browser


class Reader:
    """A notebook of one cell in JupyterLab, and beside it the page with one rectangle."""

    def __init__(self, lab: jupyter.Lab, context: Any) -> None:
        self.lab = lab
        self.floor, self.page = context.new_page(), context.new_page()
        self.floor.set_content(FLOOR_PAGE)
        self.page.set_viewport_size({"width": 1400, "height": 1000})
        self.devtools = context.new_cdp_session(self.page)
        self.open("steps.ipynb", [IMPORTS])
        jupyter.run_all_cells(self.page)

    def open(self, name: str, cells: list[str]) -> Path:
        """Open a notebook of these cells; returns its file."""
        path = notebook_of(self.lab.root / name, cells)
        self.page.goto(self.lab.address(name))
        return path

    def show(self, code: str) -> float:
        """Run the notebook with this code in its cell; ms until its picture is painted."""
        self.page.bring_to_front()
        passed: float | None = self.page.evaluate(RUN_ALL, f"{IMPORTS}view = {code}\nview")
        assert passed is not None, f"the cell failed: {code}"
        jupyter.wait(self.page, jupyter.ALL_RAN_OR_ONE_FAILED, 60, "the cell still runs")
        return passed

    def batch(self, part: float) -> Batch:
        """Some steps of the view, from a part of its film on, and some of the page with one rectangle."""
        self.page.bring_to_front()
        view = self.page.evaluate(STEP_OF_PLAYER, [STEPS, part])
        self.floor.bring_to_front()
        return Batch(view, self.floor.evaluate(STEP_OF_FLOOR, STEPS))

    def batches(self) -> tuple[Batch, str]:
        """The steps of all quiet batches, or of all where too few were quiet, and which of both."""
        every: list[Batch] = []

        def measure() -> Batch:
            every.append(self.batch((2 * (len(every) % BATCHES) + 1) / (2 * BATCHES)))
            return every[-1]

        samples = quiet.repeat(measure, BATCHES, SECONDS)
        kept = samples.kept if samples.are_enough else every
        joined = Batch([t for one in kept for t in one.view], [t for one in kept for t in one.floor])
        return joined, samples.source if samples.are_enough else f"not quiet: {samples.shortage(SECONDS)}"

    def memory(self) -> tuple[float, float]:
        """What the page holds: MB of JavaScript objects, and thousands of elements."""
        self.devtools.send("HeapProfiler.collectGarbage")
        self.devtools.send("Performance.enable")
        metrics = {one["name"]: one["value"] for one in self.devtools.send("Performance.getMetrics")["metrics"]}
        return metrics["JSHeapUsedSize"] / 1e6, metrics["Nodes"] / 1e3

    def updates(self, statement: str) -> list[float]:
        """ms from when the kernel sets a trait until that is painted, for each of 20 times; ``k`` is which time."""
        self.page.bring_to_front()
        self.page.evaluate(WATCH_UPDATES)
        kernel_value(self.page, f"exec({UPDATES.replace('STATEMENT', statement)!r}) or 1")
        self.page.wait_for_timeout(1000)
        painted: dict[str, float] = {}
        for seen, when in self.page.evaluate("() => (window.watching.disconnect(), window.painted)"):
            painted.setdefault(seen, when)
        stamps = kernel_value(self.page, "stamps")
        return [painted[seen] - 1000 * stamp for seen, stamp in stamps if seen in painted]

    def saved_size(self, cells: list[str]) -> float:
        """MB of a notebook of these cells that was run and saved in JupyterLab."""
        path = self.open("saved.ipynb", cells)
        before = path.stat().st_size
        jupyter.run_all_cells(self.page)
        self.page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
        return (path.stat().st_size - before) / 1e6


@contextmanager
def reader() -> Iterator[Reader]:
    """A reader in a browser, for a ``with`` block."""
    from playwright.sync_api import sync_playwright

    path = jupyter.chromium()
    if path is None:
        raise SystemExit(
            "no Chromium found: install it, or say where it is: CHROMIUM=path python -m benchmarks.widgets"
        )
    with tempfile.TemporaryDirectory() as folder, jupyter.jupyter_lab(Path(folder)) as lab, sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path, args=list(jupyter.BROWSER_OPTIONS), proxy=jupyter.NO_NETWORK
        )
        yield Reader(lab, browser.new_context(reduced_motion="reduce"))
        browser.close()


def in_browser(only: str) -> Iterator[Figure | str]:
    """All figures that need a browser, or those of the views whose name contains ``only``."""
    graphs = {f"GraphView, {nodes:,} nodes": (nodes, *targets) for nodes, targets in GRAPHS.items()}
    with reader() as one:
        for name, (nodes, until_painted, step) in graphs.items():
            if only in name:
                yield from _of_view(
                    one, name, f"aw.GraphView(drawn.joint_mlp({LAYERS[nodes]}), collapse=())", until_painted, step
                )
        for name, (code, step) in VIEWS.items():
            if only in name:
                yield from _of_view(one, name, code, None, step)
        if only in "live":
            for nodes in (47, 294):
                one.show(f"aw.GraphView(drawn.joint_mlp({LAYERS[nodes]}), collapse=())")
                for what, statement in LIVE.items():
                    times = one.updates(statement)
                    yield Figure(f"live, {nodes} nodes: {what} → painted, p50", statistics.median(times), "ms")
                    yield Figure(f"live, {nodes} nodes: {what} → painted, p95", percentile(times, 0.95), "ms")
        if only in "saved":
            cell = f"{IMPORTS}aw.GraphView(drawn.joint_mlp({LAYERS[47]}), collapse=())"
            yield Figure(f"saved notebook, {WIDGETS} widgets of 47 nodes", one.saved_size([cell] * WIDGETS), "MB", 2.0)


def _of_view(
    one: Reader, name: str, code: str, until_painted: float | None, step: float | None
) -> Iterator[Figure | str]:
    shown = statistics.median(one.show(code) for _ in range(3))
    yield Figure(f"{name}: run all → painted", shown, "ms", until_painted)
    batches, source = one.batches()
    if batches.view:
        floor = percentile(batches.floor, 0.95)
        p50, p95 = statistics.median(batches.view), percentile(batches.view, 0.95)
        yield Figure(f"{name}: step p50", p50, "ms")
        yield Figure(f"{name}: step p95", p95, "ms", TIMELINE_STEP if step is None else None)
        yield Figure(f"{name}: step p95 over one rectangle's", p95 - floor, "ms", step)
        yield f"    one rectangle: p50 {statistics.median(batches.floor):.1f}, p95 {floor:.1f} ms; {source}"
    heap, elements = one.memory()
    yield f"    the page holds {heap:.0f} MB of JavaScript objects and {elements:.0f} thousand elements"


# ---------------------------------------------------------------------------------------------------------------- in Python


def in_python() -> Iterator[Figure]:
    """Sizes, and CPU time of drawing without a browser."""
    yield Figure("player (ESM)", len(PLAYER_JS.encode()) / 1024, "KiB", 40)
    graph = joint_mlp(LAYERS[2998])
    yield Figure("layout of 2,998 nodes, CPU time", cpu_ms(lambda: place(graph)), "ms", 50)
    yield Figure("scene of GraphView, 2,998 nodes, CPU time", cpu_ms(lambda: GraphView(graph, collapse=())), "ms", 1000)
    large = joint_mlp(7700)
    yield Figure(
        f"GraphView of {len(large):,} nodes, cut, wall time", wall_ms(lambda: GraphView(large, collapse=())), "ms", 5000
    )


def cpu_ms(act: Callable[[], Any], times: int = 5) -> float:
    """Median CPU time of this process."""
    return 1000 * statistics.median(_passed(act, time.process_time) for _ in range(times))


def wall_ms(act: Callable[[], Any]) -> float:
    """Wall time."""
    return 1000 * _passed(act, time.perf_counter)


def _passed(act: Callable[[], Any], clock: Callable[[], float]) -> float:
    start = clock()
    act()
    return clock() - start


def main() -> None:
    """Measure what the command line asks for, print it, and write ``results/widgets.txt`` and ``.json``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only what is measured in a browser and has this in its name")
    options = parser.parse_args()
    lines: list[str] = []
    figures: list[Figure] = []

    def tell(line: Figure | str) -> None:
        print(line, flush=True)
        lines.append(str(line))
        if isinstance(line, Figure):
            figures.append(line)

    tell(f"# python -m benchmarks.widgets, {machine()}")
    for line in () if options.only else in_python():
        tell(line)
    for line in in_browser(options.only):
        tell(line)
    if not options.only:
        (RESULTS / "widgets.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        report = {"machine": machine(), "figures": [asdict(figure) | {"verdict": figure.verdict} for figure in figures]}
        (RESULTS / "widgets.json").write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
