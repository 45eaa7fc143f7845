"""A class on one server: ``python -m benchmarks.classroom``. What importing costs, and what thirty kernels take of memory.

The project is built and installed into a folder of its own first, and only that is imported. Import time is CPU time of fresh
interpreters, interleaved, with compiled files as after a first run; medians count. PSS are a process's own pages and its share
of those that several have in common, so thirty kernels take the sum; RSS counts shared pages in each. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).resolve().parent.parent
MEGABYTE = 1e6
IMPORT_TARGET = 1.5  # times NumPy's
MEMORY_TARGET = 15  # megabytes over a kernel that has loaded NumPy and ipywidgets
PATIENCE = 300  # seconds for one cell on a busy machine


@contextmanager
def installed() -> Iterator[dict[str, str]]:
    """The environment of a process that imports the project as it is installed, and nothing from this folder."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--target", str(site), str(ROOT)], check=True)
        own = {"PYTHONPATH": str(site), "AUTODIFF_LAB_SMALL": "1", "AUTODIFF_LAB_PROGRESS": f"{folder}/progress.json"}
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(site)], check=True)
        yield {**os.environ, **own}


# -------------------------------------------------------------------------------------------------------------- importing


def import_cost(rounds: int, environment: Mapping[str, str]) -> str:
    """A line that says what importing NumPy and what importing the lab takes."""
    times: dict[str, list[float]] = {"pass": [], "import numpy": [], "import autodiff_lab": []}
    for is_warm in (False, *[True] * rounds):
        for statement, found in times.items():
            seconds = _cpu_seconds(statement, environment)
            if is_warm:
                found.append(seconds)
    start_up, numpy, ours = (statistics.median(found) for found in times.values())
    ratio = (ours - start_up) / (numpy - start_up)
    return (
        f"import: NumPy {1e3 * (numpy - start_up):.0f} ms, autodiff_lab with it {1e3 * (ours - start_up):.0f} ms of CPU time, "
        f"{ratio:.2f} × (target {IMPORT_TARGET:.2f}: {'met' if ratio <= IMPORT_TARGET else 'missed'})"
    )


def _cpu_seconds(statement: str, environment: Mapping[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True, env=dict(environment), cwd="/")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# ----------------------------------------------------------------------------------------------------------------- memory


@dataclass(frozen=True)
class Memory:
    """What processes take, in megabytes."""

    rss: float
    pss: float

    @classmethod
    def of(cls, kernels: list[psutil.Process]) -> Memory:
        """The sum over kernels and the processes that they started."""
        processes = [one for kernel in kernels for one in (kernel, *kernel.children(recursive=True))]
        found = [one.memory_full_info() for one in processes]
        return cls(sum(one.rss for one in found) / MEGABYTE, sum(one.pss for one in found) / MEGABYTE)

    def row(self, title: str, count: int) -> str:
        """A line of the table."""
        return f"{title:<58}  {self.rss / count:8.0f}  {self.pss / count:8.0f}  {self.pss:8.0f}"


def cells_of(lesson: str) -> list[str]:
    """The code cells of a lesson as a student opens it."""
    notebook = json.loads((ROOT / "notebooks" / "lessons" / f"{lesson}.ipynb").read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


@contextmanager
def kernel(environment: Mapping[str, str], cells: list[str]) -> Iterator[psutil.Process]:
    """A kernel that has run these cells."""
    manager = KernelManager(kernel_name="python3", transport_encryption="auto")
    manager.start_kernel(env=dict(environment), cwd=tempfile.gettempdir())
    client: BlockingKernelClient = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE)
        for cell in cells:
            answer = client.execute(cell, reply=True, timeout=PATIENCE, stop_on_error=False)["content"]
            if answer["status"] == "error":
                raise RuntimeError(f"{answer['ename']}: {answer['evalue']} in the cell\n{cell}")
        yield psutil.Process(manager.provisioner.process.pid)  # type: ignore[union-attr]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def memory_of(environment: Mapping[str, str], cells: list[str], count: int = 1) -> tuple[Memory, float]:
    """What so many kernels take that each ran these cells, all alive at once; and the seconds of wall time of one."""
    with ExitStack() as alive:
        began = time.monotonic()
        kernels = [alive.enter_context(kernel(environment, cells)) for _ in range(count)]
        return Memory.of(kernels), (time.monotonic() - began) / count


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="imports of each kind")
    parser.add_argument("--kernels", type=int, default=30)
    parser.add_argument("--lesson", default="10_computation_graph")
    options = parser.parse_args()
    cells, widgets = cells_of(options.lesson), "import numpy, ipywidgets"
    with installed() as environment:
        print(import_cost(options.rounds, environment), flush=True)
        print(f"{'megabytes':<58}  {'RSS each':>8}  {'PSS each':>8}  {'PSS all':>8}")
        rows = {
            "a kernel": [],
            "a kernel with NumPy and ipywidgets": [widgets],
            "… and the lab": [widgets, "import autodiff_lab"],
            "… and its widgets and exercises": [widgets, "import autodiff_widgets, autodiff_exercises"],
            f"a kernel that ran {options.lesson}": cells,
        }
        found = {}
        for title, ran in rows.items():
            found[title], _ = memory_of(environment, ran)
            print(found[title].row(title, 1), flush=True)
        all_of_them, seconds = memory_of(environment, cells, options.kernels)
        print(
            all_of_them.row(f"{options.kernels} kernels that ran it, {seconds:.1f} s each", options.kernels), flush=True
        )
        added = found["… and the lab"].pss - found["a kernel with NumPy and ipywidgets"].pss
        print(
            f"importing the lab adds {added:.0f} MB (target {MEMORY_TARGET}: {'met' if added <= MEMORY_TARGET else 'missed'})"
        )


if __name__ == "__main__":
    main()
