"""Cost models: how long an op takes, from its shapes or from a measurement. Each says how wrong it may be."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..graph import Graph, Node
from ..operand_rules import Shape
from ..operators import Op, registry
from .blas import one_blas_thread
from .mistakes import ScheduleError

DType = np.dtype[Any]


class Work(NamedTuple):
    """One call of an op as a cost model sees it: what the registry's shape and dtype rules say, and no numbers."""

    op: Op
    inputs: tuple[tuple[Shape, DType], ...]
    shape: Shape
    dtype: DType
    name: str = ""  # the task's name in one micro-batch

    @property
    def nbytes(self) -> int:
        """Bytes of the result."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def traffic(self) -> int:
        """Bytes that are read and written: every operand once, and the result."""
        return self.nbytes + sum(math.prod(shape) * dtype.itemsize for shape, dtype in self.inputs)

    @property
    def flops(self) -> int:
        """Floating point operations: two for each multiply-add of a product, one for each number of any other op."""
        shapes = [shape for shape, _ in self.inputs]
        if self.op.name in _PRODUCTS:
            return 2 * _PRODUCTS[self.op.name](shapes, self.shape)
        return max(map(math.prod, (self.shape, *shapes)))


_PRODUCTS: dict[
    str, Callable[[list[Shape], Shape], int]
] = {  # multiply-adds of an op, from operands' and result's shape
    "matmul": lambda operands, out: math.prod(out) * operands[0][-1],
    "correlate2d": lambda operands, out: math.prod(out) * math.prod(operands[1][1:]),
    "correlate2d_images": lambda operands, out: math.prod(operands[0]) * math.prod(operands[1][1:]),
    "correlate2d_kernels": lambda operands, out: math.prod(operands[1]) * math.prod(out[1:]),
}


class CostModel(Protocol):
    """How long an op takes. ``error`` says in a sentence how wrong that may be."""

    @property
    def error(self) -> str:
        """How far from the truth the model may be, and why."""

    def seconds(self, work: Work) -> float:
        """Seconds of one call at speed 1."""


@dataclass(frozen=True, slots=True)
class Constant:
    """Every op takes the same time: for counting.

    >>> Constant(2.0).error
    'counts ops; it says nothing about their time'
    """

    each: float = 1.0

    @property
    def error(self) -> str:
        """What it cannot know."""
        return "counts ops; it says nothing about their time"

    def seconds(self, work: Work) -> float:
        """The same for all."""
        return self.each


@dataclass(frozen=True, slots=True)
class Roofline:
    """An op is limited by arithmetic or by memory: launch + max(flops / peak, traffic / bandwidth).

    Units: peak in operations a second, bandwidth in bytes a second, launch in seconds a call. Source: Williams, Waterman and
    Patterson, Roofline, CACM 52 (2009). The defaults are those of one core of an ordinary laptop; ``fitted`` finds a machine's
    own.

    >>> from autodiff_lab import registry
    >>> product = Work(registry["matmul"], (((100, 100), np.dtype("f4")),) * 2, (100, 100), np.dtype("f4"))
    >>> Roofline(peak=1e9, bandwidth=1e9, launch=0.0).seconds(product)
    0.002
    """

    peak: float = 4e10
    bandwidth: float = 1e10
    launch: float = 2e-6
    off_by: float | None = None  # the median of |model / measured − 1|, where it was fitted

    @property
    def error(self) -> str:
        """Measured where fitted; else what the model leaves out."""
        if self.off_by is not None:
            return f"fitted; half of the ops are off by less than {100 * self.off_by:.0f} %"
        return "an upper bound of speed: caches, and how costly each function is, are left out; factors of 2 to 5 are usual"

    def seconds(self, work: Work) -> float:
        """What limits the op, and the launch."""
        return self.launch + max(work.flops / self.peak, work.traffic / self.bandwidth)

    @classmethod
    def fitted(cls, graph: Graph, measured: Measured) -> Roofline:
        """The roofline of the machine that ``measured`` comes from: the speeds that its largest ops reach, in the median.

        Raises:
            ScheduleError: nothing in the graph was measured.
        """
        known = [(work, measured.times[work.name]) for work in works(graph) if work.name in measured.times]
        if not known:
            raise ScheduleError(
                "Roofline.fitted: none of the graph's ops was measured; use measure(graph, …) of this graph"
            )
        launch = min(seconds for _, seconds in known)
        by_size = sorted((pair for pair in known if pair[1] > 2 * launch), key=lambda pair: -pair[1]) or known
        products = [w.flops / s for w, s in by_size if w.op.name in _PRODUCTS]
        others = [w.traffic / s for w, s in by_size if w.op.name not in _PRODUCTS]
        usual = cls()
        peak, bandwidth = _median(products or [usual.peak]), _median(others or [usual.bandwidth])
        model = cls(peak, bandwidth, launch)
        return replace(model, off_by=_median([abs(model.seconds(w) / s - 1) for w, s in known if s]))


@dataclass(frozen=True, slots=True)
class AlphaBeta:
    """The time of a transfer: alpha seconds for the start and beta for each byte.

    >>> AlphaBeta(alpha=1e-5, beta=1e-9).for_bytes(90_000)
    0.0001
    """

    alpha: float = 1e-5
    beta: float = 1e-10

    @property
    def error(self) -> str:
        """What the model leaves out."""
        return "leaves out how transfers slow each other down; small ones may take twice as long"

    def for_bytes(self, nbytes: float) -> float:
        """Seconds for so many bytes."""
        return self.alpha + self.beta * nbytes

    def all_reduce(self, nbytes: float, replicas: int) -> float:
        """Seconds of a ring all-reduce: 2 (n − 1) steps with one n-th of the bytes each.

        Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, 2009.
        """
        return 2 * (replicas - 1) * self.for_bytes(nbytes / replicas)

    def seconds(self, work: Work) -> float:
        """An op that only moves its result."""
        return self.for_bytes(work.nbytes)


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds that were measured, by task name; micro-batches share those of their op.

    Args:
        times: the median of each task's repetitions.
        spread: the median over the tasks of (slowest − fastest) / median.
    """

    times: Mapping[str, float]
    spread: float = 0.0

    @property
    def error(self) -> str:
        """How much repetitions differed."""
        return f"measured; repetitions of half of the ops differ by less than {100 * self.spread:.0f} %"

    def seconds(self, work: Work) -> float:
        """The measured time.

        Raises:
            ScheduleError: this op was not measured.
        """
        if work.name not in self.times:
            raise ScheduleError(f"task {work.name!r}: its time was not measured; measure this graph, or use Roofline")
        return self.times[work.name]

    @classmethod
    def of(cls, repetitions: Mapping[str, list[float]]) -> Measured:
        """From the times of each task's repetitions.

        >>> Measured.of({"a": [1.0, 2.0, 4.0]}).times
        {'a': 2.0}
        """
        times = {name: _median(seen) for name, seen in repetitions.items()}
        spreads = [(max(seen) - min(seen)) / times[name] for name, seen in repetitions.items() if times[name]]
        return cls(times, _median(spreads or [0.0]))


def _median(numbers: list[float]) -> float:
    return float(np.median(numbers))  # importing statistics would cost 12 ms


def measure(graph: Graph, *arguments: Any, repeats: int = 5) -> Measured:
    """The thread's CPU time of each op of a graph, run one after the other, with BLAS on one thread as in ``schedule.run``.

    The first run does not count.

    What micro-batches would add up (``added_up``) is added to itself and timed too.

    >>> import autodiff_lab as ad
    >>> graph = ad.record(lambda x: x * x, np.ones(1000))
    >>> list(measure(graph, np.ones(1000)).times)
    ['mul_1', 'mul_1@sum']
    """
    seen: dict[str, list[float]] = {}
    with one_blas_thread():
        for repetition in range(repeats + 1):
            for name, seconds in _timed_run(graph, arguments):
                if repetition:
                    seen.setdefault(name, []).append(seconds)
    return Measured.of(seen)


def _timed_run(graph: Graph, arguments: tuple[Any, ...]) -> list[tuple[str, float]]:
    values: list[Any] = [node.value for node in graph]
    for place, argument in zip(graph.inputs, arguments, strict=True):
        values[place] = argument
    found = []
    for node in graph:
        if node.op is not None:
            values[node.id], seconds = _timed(node.op, [values[source] for source in node.inputs], node.attributes)
            found.append((name_of(node), seconds))
    for node in added_up(graph):
        found.append((f"{name_of(node)}@sum", _timed(registry["add"], [values[node.id]] * 2, {})[1]))
    return found


def _timed(op: Op, operands: list[Any], attributes: Mapping[str, Any]) -> tuple[Any, float]:
    began = time.thread_time_ns()
    result = op.apply(operands, attributes)
    return result, (time.thread_time_ns() - began) * 1e-9


def works(graph: Graph) -> list[Work]:
    """What each op of a graph has to do, in the graph's order."""
    return [work_of(graph, node) for node in graph if node.op is not None]


def added_up(graph: Graph) -> list[Node]:
    """The nodes whose values micro-batches add up: outputs of forward and backward, and what updates read of them."""
    wanted = {*graph.outputs, *(source for node in graph if node.phase == "update" for source in node.inputs)}
    return [node for node in graph if node.op is not None and node.phase != "update" and node.id in wanted]


def work_of(graph: Graph, node: Node) -> Work:
    """What a node's op has to do."""
    assert node.op is not None
    operands = tuple((graph.nodes[source].shape, graph.nodes[source].dtype) for source in node.inputs)
    return Work(node.op, operands, node.shape, node.dtype, name_of(node))


def name_of(node: Node) -> str:
    """The name of a node's task and of its value: ``h_7``, ``matmul_8``; an input keeps its own."""
    return node.name if node.op is None and node.name else f"{node.name or node.label}_{node.id}"
