"""The lecture's claim about shape rules, examined on this machine: a rule that loses a dimension costs half the speed.

H3: the same layer is planned twice, with the right shape rule of one op and with one that loses a dimension. Every number stays
the same, but no op behind that one shares a kernel with its neighbours. What that costs depends on how much of the time
elementwise ops take, on how fused loops run, and on whether arrays fit into the cache: for some sizes the claim does not hold.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter, process_time
from typing import Any

import numpy as np

from . import ops
from .faults import lost_dimension
from .fused_loops import Loops
from .planning import Plan, plan
from .quiet import FEWEST, obstacle, repeat
from .recording import record
from .schedule import Roofline
from .schedule.blas import one_blas_thread
from .schedule.costs import work_of

Array = Any
SMALLEST = 1 << 20  # numbers an op; of smaller arrays a repetition makes several calls, since one takes microseconds
STATEMENT = "a shape rule that loses a dimension costs half the speed"


def gelu_layer(x: Array, w: Array, b: Array) -> Array:
    """A product of matrices, then eleven elementwise ops: bias, gelu (Hendrycks and Gimpel, 2016) in nine, and x added.

    Shapes: x (rows, width), w (width, width), b (width,); the result as x.
    """
    return x + gelu(x @ w + b)


def gelu(u: Array) -> Array:
    """u · ½ (1 + tanh(√(2/π) (u + 0.044715 u³))) in nine ops."""
    cube = ops.square(u) * u
    inner = (cube * 0.044715 + u) * math.sqrt(2 / math.pi)
    return (ops.tanh(inner) + 1.0) * u * 0.5


@dataclass(frozen=True)
class Setting:
    """How large the layer is, the op whose shape rule is wrong, and how fused ops run."""

    rows: int
    width: int
    op: str = "square"
    loops: Loops = "compiled"

    @property
    def activations(self) -> int:
        """How many numbers each elementwise op computes."""
        return self.rows * self.width

    @property
    def title(self) -> str:
        """In a line of text."""
        size = self.activations
        text = f"{size / 1e6:.1f} M" if size >= 1e5 else f"{size / 1e3:.1f} k"
        return f"width {self.width}, {text} activations, {self.op} loses its shape, {self.loops} loops"

    def arguments(self) -> tuple[Array, Array, Array]:
        """x, w and b, always the same numbers, in single precision."""
        random = np.random.default_rng(0)
        x, w = random.standard_normal((self.rows, self.width)), random.standard_normal((self.width, self.width))
        return x.astype(np.float32), (w / self.width**0.5).astype(np.float32), np.zeros(self.width, np.float32)


@dataclass(frozen=True, repr=False)
class Cost:
    """What a wrong shape rule cost: time with it over time without, for the layer and for its elementwise ops alone."""

    setting: Setting
    ratio: float
    elementwise_ratio: float
    difference: float  # the largest between the results, in parts of the largest result
    right: Plan
    wrong: Plan
    seconds: tuple[float, float]  # of one call, with the right rule and with the wrong one
    source: str  # "measured: …", "CPU time …" or "estimated …"

    @property
    def groups(self) -> tuple[list[int], list[int]]:
        """How many ops each elementwise kernel has, with the right rule and with the wrong one."""
        return _sizes(self.right), _sizes(self.wrong)

    @property
    def is_measured(self) -> bool:
        """Whether quiet repetitions were measured."""
        return self.source.startswith("measured")

    @property
    def kind(self) -> str:
        """What the largest kernel runs as, with the right rule."""
        return max(self.right.steps, key=lambda step: len(step.nodes)).kind

    @property
    def reasons(self) -> list[str]:
        """Why neighbours were not joined under the wrong rule that were under the right one, each in words."""
        assert self.right.fusion is not None and self.wrong.fusion is not None
        joined = {(pair.producer, pair.consumer) for pair in self.right.fusion.neighbours if pair.joined}
        return [
            f"{pair.producer} | {pair.consumer}  {pair.text}"
            for pair in self.wrong.fusion.neighbours
            if not pair.joined and (pair.producer, pair.consumer) in joined
        ]

    def __repr__(self) -> str:
        right, wrong = self.groups
        return (
            f"{self.setting.title}: {self.ratio:.2f} × (elementwise ops alone {self.elementwise_ratio:.1f} ×)\n"
            f"  {1e3 * self.seconds[0]:.3g} → {1e3 * self.seconds[1]:.3g} ms, kernels of {right} → {wrong} ops, "
            f"the largest as {self.kind}\n  {self.source}"
        )


def cost_of_wrong_rule(setting: Setting, repetitions: int = 9, seconds: float = 20.0, estimates: bool = False) -> Cost:
    """Plan the layer with the right and with the wrong shape rule, and time both in turn, BLAS on one thread.

    Repetitions in which other programs used over 8 % of the machine are rejected. Where too few are left, CPU times of all
    are taken: other programs do not count there, but fill the caches. If ``estimates`` says so, times follow from the bytes and
    operations of each kernel, as if all functions of NumPy took the same time. ``source`` says which it was, and why.

    Raises:
        ValueError: the results differ by more than 1e-6 of the largest, which no fusion may do.

    >>> cost = cost_of_wrong_rule(Setting(rows=64, width=32), estimates=True)
    >>> cost.groups, cost.difference
    (([11], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]), 0.0)
    >>> cost_of_wrong_rule(Setting(64, 32, op="tanh"), estimates=True).groups[1]
    [6, 1, 1, 1, 1, 1]
    """
    x, w, b = setting.arguments()
    pairs = [_both(gelu_layer, setting, (x, w, b)), _both(lambda u, b, x: x + gelu(u + b), setting, (x, b, x))]
    results = [planned(x, w, b) for planned in pairs[0]]
    difference = float(np.abs(results[0] - results[1]).max() / np.abs(results[0]).max())
    if not difference <= 1e-6:
        raise ValueError(f"{setting.title}: the results differ by {difference:.1e} of the largest, more than 1e-6")
    del results
    if estimates:
        model = Roofline()
        guessed = [estimated_seconds(one, model) for pair in pairs for one in pair]
        return _cost(setting, [guessed], difference, pairs[0], "estimated from bytes and operations, as asked")
    calls = [partial(c, x, w, b) for c in pairs[0]] + [partial(c, x, b, x) for c in pairs[1]]
    times, source = _measure(calls, max(1, SMALLEST // setting.activations), repetitions, seconds)
    return _cost(setting, times, difference, pairs[0], source)


def _measure(
    calls: Sequence[Callable[[], Array]], rounds: int, repetitions: int, seconds: float
) -> tuple[list[list[float]], str]:
    """For each repetition that counts the time of each call, and where the times come from."""
    every: list[list[float]] = []  # CPU times of all repetitions

    def timed() -> list[float]:
        found = [_seconds_of(call, rounds) for call in calls]
        every.append([cpu for _, cpu in found])
        return [wall for wall, _ in found]

    with one_blas_thread():
        timed()  # warm
        every.clear()
        why = obstacle(1)
        if not why:
            samples = repeat(timed, repetitions, seconds)
            if samples.are_enough:
                return samples.kept, samples.source
            why = samples.shortage(seconds)
        while len(every) < FEWEST:
            timed()
    return every, f"CPU time, less exact, medians of {len(every)} repetitions: {why}"


def _cost(setting: Setting, times: list[list[float]], difference: float, plans: tuple[Plan, Plan], source: str) -> Cost:
    """Medians over repetitions; the ratios are taken inside of each."""
    layer, alone = (statistics.median(t[i + 1] / t[i] for t in times) for i in (0, 2))
    right, wrong = (statistics.median(t[i] for t in times) for i in (0, 1))
    return Cost(setting, layer, alone, difference, *plans, (right, wrong), source)


def region(
    widths: Sequence[int] = (64, 128, 256, 512), activations: Sequence[int] = (1 << 14, 1 << 17, 1 << 20, 1 << 22),
    repetitions: int = 5, seconds: float = 3.0, estimates: bool = False, op: str = "square", loops: Loops = "compiled",
) -> list[Cost]:  # fmt: skip
    """What the wrong rule costs for each width and each number of activations: where the claim holds, and where it does not.

    Args:
        widths: of the layer; the wider, the more of the time is the product of matrices.
        activations: numbers that each elementwise op computes.
        repetitions: of each measurement.
        seconds: after which a measurement ends.
        estimates: whether to estimate even where measuring is possible.
        op: whose shape rule is wrong.
        loops: how fused ops run.

    >>> [round(cost.ratio, 1) for cost in region((32,), (1 << 14,), estimates=True)]
    [4.4]
    """
    settings = [Setting(max(1, size // width), width, op, loops) for width in widths for size in activations]
    return [cost_of_wrong_rule(one, repetitions, seconds, estimates) for one in settings]


def estimated_seconds(planned: Plan, model: Roofline) -> float:
    """What the kernels of a plan take by the roofline model: a loop reads its inputs and writes its outputs once."""
    graph, total = planned.graph, 0.0
    for step in planned.steps:
        flops = sum(work_of(graph, graph.nodes[i]).flops for i in step.nodes)
        traffic = sum(graph.nodes[i].nbytes for i in (*step.reads, *step.writes))
        total += 0.0 if step.kind == "view" else model.launch + max(flops / model.peak, traffic / model.bandwidth)
    return total


def _both(f: Callable[..., Array], setting: Setting, arguments: tuple[Array, ...]) -> tuple[Plan, Plan]:
    """The function planned with the right shape rule, and with the wrong one."""
    right = plan(record(f, *arguments), loops=setting.loops)
    # a rule that loses one size only would be healed where x is added: there is one size that broadcasts with x's
    with lost_dimension(setting.op, axis=None):
        return right, plan(record(f, *arguments), loops=setting.loops)


def _seconds_of(call: Callable[[], Array], rounds: int) -> tuple[float, float]:
    """The time that passes during a call, and its CPU time; each result is dropped before the next call begins."""
    began, used = perf_counter(), process_time()
    for _ in range(rounds):
        call()
    passed, worked = perf_counter() - began, process_time() - used
    return passed / rounds, (worked or passed) / rounds  # where the clock of the processor is too coarse it shows 0


def _sizes(planned: Plan) -> list[int]:
    """How many elementwise ops each kernel of a plan has."""
    assert planned.fusion is not None
    nodes = planned.fusion.graph.nodes
    kernels = [[nodes[i] for i in group.nodes] for group in planned.fusion.groups]
    return [len(kernel) for kernel in kernels if all(node.op is not None and node.op.elementwise for node in kernel)]
