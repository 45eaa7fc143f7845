"""What a live view costs the code that it draws: the same 300 op calls with and without it, taken in turns.

``python -m benchmarks.live`` prints one line a size: the median of each, and how much longer the calls took inside the view, on
the clock and in CPU time of the whole process with its drawing thread, which a busy machine disturbs less. BLAS has one thread.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple

import autodiff_widgets as aw
import numpy as np
from threadpoolctl import threadpool_limits

import autodiff_lab as ad

CALLS = 300


def chain(x: Any, w: Any) -> Any:
    """300 op calls: matrix product, sum, tanh, again and again."""
    h = x
    for _ in range(CALLS // 3):
        h = ad.ops.tanh(h @ w + x)
    return h


class Took(NamedTuple):
    """What a run took: seconds on the clock, of CPU, and until the steps were there; and the pictures sent meanwhile."""

    clock: float
    cpu: float
    after: float = 0.0
    pictures: int = 0


def timed(run: Callable[[], Any]) -> Took:
    """Run, and look at both clocks."""
    gc.collect()
    clock, cpu = perf_counter(), process_time()
    run()
    return Took(perf_counter() - clock, process_time() - cpu)


def inside(run: Callable[[], Any]) -> Took:
    """Run inside a live view."""
    with aw.live() as view:
        took = timed(run)
        pictures, began = view.sent, perf_counter()
    after = perf_counter() - began
    view.close()  # ipywidgets keeps every open widget, and garbage collection looks through them all
    return took._replace(after=after, pictures=pictures)


def middle(rounds: Sequence[Took]) -> Took:
    """The median of each column."""
    return Took(*map(median, zip(*rounds, strict=True)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sizes", type=int, nargs="+", default=[4, 128, 256, 384])
    options = parser.parse_args()
    print("   size    one op      alone     inside    extra  extra CPU  pictures  steps afterwards")
    for size in options.sizes:
        x = ad.tensor(np.full((size, size), 0.01), requires_grad=True, name="x")
        w = ad.tensor(np.full((size, size), 1 / size), requires_grad=True, name="w")
        run = partial(chain, x, w)
        with threadpool_limits(1):
            rounds = [(timed(run), inside(run)) for _ in range(options.rounds + 1)][1:]  # the first warms up
        a, b = (middle(column) for column in zip(*rounds, strict=True))
        print(
            f"{size:7} {1e6 * a.clock / CALLS:6.0f} µs {1e3 * a.clock:7.1f} ms {1e3 * b.clock:7.1f} ms"
            f" {b.clock / a.clock - 1:8.1%} {b.cpu / a.cpu - 1:10.1%} {b.pictures:9.0f} {1e3 * b.after:8.0f} ms"
        )


if __name__ == "__main__":
    main()
