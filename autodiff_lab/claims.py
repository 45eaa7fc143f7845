"""The lecture's claims about scheduling, examined on this machine: measured where it is quiet, else simulated, and said which.

H1: a good scheduler uses over 90 % of the devices, a bad one about half. H2: overlapping forward and backward gains 30 % on a
Transformer. Each comes with workloads for which it holds and others for which it does not, and is examined on two workers, BLAS
on one thread.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import ops, schedule
from .graph import Graph
from .layers import MLP, Layer, LayerNorm, Linear
from .quiet import obstacle, repeat
from .recording import record
from .reverse_mode import value_and_grad
from .schedule import Tasks, Timeline
from .trees import flatten, map_leaves

WORKERS = 2

Timelines = Mapping[str, Timeline]  # by policy


@dataclass(frozen=True)
class Workload:
    """Tasks with measured costs and with what they read, and what they are an example of."""

    title: str
    tasks: Tasks
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Claim:
    """What is claimed, the policies that are compared, and the figures in per cent that follow from their timelines."""

    statement: str
    policies: Sequence[str]
    figures: Callable[[Timelines], Mapping[str, float]]


@dataclass(frozen=True, repr=False)
class Evidence:
    """What became of a claim on one workload: figures in per cent, and the timelines that they are nearest to."""

    claim: Claim
    workload: Workload
    figures: Mapping[str, float]
    timelines: Timelines
    source: str  # "measured: …" or "simulated: …"

    @property
    def is_simulated(self) -> bool:
        """Whether time was virtual."""
        return all(timeline.simulated for timeline in self.timelines.values())

    def __repr__(self) -> str:
        width = max(map(len, self.figures))
        rows = [f"  {name:{width}}  {figure:5.1f} %" for name, figure in self.figures.items()]
        return "\n".join([f"{self.workload.title} ({len(self.workload.tasks)} tasks)", *rows, f"  {self.source}"])


# -------------------------------------------------------------------------------------------------------------- workloads


def workload(title: str, graph: Graph, arguments: Any, micro_batches: int = 1) -> Workload:
    """A graph's tasks with measured costs; every micro-batch reads the same x."""
    leaves = flatten(arguments)[0]
    costs = schedule.measure(graph, *leaves)
    tasks = schedule.from_graph(graph, costs, micro_batches=micro_batches, data=("x",) if micro_batches > 1 else ())
    named = {graph.nodes[place].name: value for place, value in zip(graph.inputs, leaves, strict=True)}
    return Workload(title, tasks, {name: named[name.partition("@")[0]] for name in tasks.inputs})


def eight_towers(width: int = 512) -> Workload:
    """Eight towers side by side that meet at the end: 47 ops, and much to do at once."""

    def towers(x: Any, weights: Any) -> Any:
        def tower(a: Any, b: Any, c: Any) -> Any:
            return ops.matmul(ops.tanh(ops.matmul(ops.tanh(ops.matmul(x, a)), b)), c)

        total = tower(*weights[0])
        for own in weights[1:]:
            total = total + tower(*own)
        return total

    random = np.random.default_rng(0)
    weights = [[_normal(random, width, width) / width**0.5 for _ in range(3)] for _ in range(8)]
    x = _normal(random, width, width)
    return workload(f"eight towers, width {width}", record(towers, x, weights), (x, weights))


def one_tower(width: int = 512, depth: int = 12) -> Workload:
    """The same ops in one chain: no policy finds two of them at once."""

    def tower(x: Any, weights: Any) -> Any:
        for weight in weights:
            x = ops.tanh(ops.matmul(x, weight))
        return x

    random = np.random.default_rng(0)
    weights = [_normal(random, width, width) / width**0.5 for _ in range(depth)]
    x = _normal(random, width, width)
    return workload(f"one tower, width {width}", record(tower, x, weights), (x, weights))


class Block(Layer):
    """A Transformer block with ReLU (Vaswani et al., 2017), normalised first; one product gives query, key and value, as where
    speed counts. So its forward pass is a chain, with little to do side by side.

    Shapes: x (batch, tokens, width), the result as x.
    """

    attn_norm: LayerNorm
    qkv: Linear
    project: Linear
    mlp_norm: LayerNorm
    mlp: MLP

    def __init__(self, width: int, heads: int, *, seed: int) -> None:
        random = np.random.default_rng(seed)
        super().__init__(
            attn_norm=LayerNorm(width),
            qkv=Linear(width, 3 * width, seed=random),
            project=Linear(width, width, seed=random),
            mlp_norm=LayerNorm(width),
            mlp=MLP(width, 4 * width, width, seed=random),
        )
        self.heads = heads

    def forward(self, x: Any) -> Any:
        """Both halves add to x."""
        attended = x + self.project(self._attention(self.qkv(self.attn_norm(x)), x.shape))
        return attended + self.mlp(self.mlp_norm(attended))

    def _attention(self, qkv: Any, shape: tuple[int, int, int]) -> Any:
        size = shape[-1] // self.heads
        query, key, value = qkv.reshape((*shape[:2], 3, self.heads, size)).transpose(2, 0, 3, 1, 4)
        weights = ops.softmax((query @ key.transpose(0, 1, 3, 2)) * size**-0.5)
        return (weights @ value).transpose(0, 2, 1, 3).reshape(shape)


def transformer(layers: int, width: int, micro_batches: int, tokens: int = 64, batch: int = 8) -> Workload:
    """Forward and backward of a stack of Transformer blocks, once for each micro-batch."""
    blocks = [Block(width, heads=4, seed=seed) for seed in range(layers)]

    def loss(parameters: Any, x: Any) -> Any:
        for block, own in zip(blocks, parameters, strict=True):
            x = block.with_parameters(own)(x)
        return ops.square(x).mean()

    parameters = map_leaves(lambda leaf: leaf.data, [block.parameters() for block in blocks])
    x = _normal(np.random.default_rng(0), batch, tokens, width)
    title = f"Transformer, {layers} layers, width {width}, {micro_batches} micro-batch{'es' * (micro_batches > 1)}"
    return workload(title, record(value_and_grad(loss), parameters, x), (parameters, x), micro_batches)


def _normal(random: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    return random.standard_normal(shape).astype(np.float32)


# ------------------------------------------------------------------------------------------------------------------ claims


def utilisations(timelines: Timelines) -> Mapping[str, float]:
    """For each policy the part of the workers' time that was used, and the most that any policy could reach.

    For a real run this is CPU time / (workers · wall time), so that waiting inside of an op does not count.
    """
    used = {
        policy: t.utilisation if t.cpu_utilisation is None else t.cpu_utilisation for policy, t in timelines.items()
    }
    *_, last = timelines.values()
    return {**{policy: 100 * part for policy, part in used.items()}, "no policy can do more than": 100 * last.bound}


def gains(timelines: Timelines) -> Mapping[str, float]:
    """By how much one plan for all micro-batches is faster than one micro-batch after the other.

    That loop, forward, backward, forward, backward, runs in two ways: with a ready queue inside of each pass (``loop``), and op
    after op as they are issued (``in_order``). The plan takes backward work first. The critical path alone would start every
    forward pass at once; with 850 MB alive instead of 290 that was measured to be slower than the loop (2 layers, width 512).
    """
    joint = timelines["backward_first"]
    slower = {"the loop with a ready queue": "loop", "issuing op after op": "in_order"}
    return {f"gain over {name}": 100 * (joint.speedup_over(timelines[p]) - 1) for name, p in slower.items()}


CLAIMS: Mapping[str, Claim] = {
    "H1": Claim(
        "a good scheduler uses over 90 % of the devices, a bad one about half",
        ("in_order", "fifo", "critical_path"),
        utilisations,
    ),
    "H2": Claim(
        "overlapping forward and backward gains 30 % on a Transformer",
        ("in_order", "loop", "backward_first"),
        gains,
    ),
}


def examine(
    claim: Claim, work: Workload, repetitions: int = 9, seconds: float = 60.0, simulates: bool = False
) -> Evidence:
    """Run a workload with each policy, and give the medians of the figures.

    Repetitions in which other programs used over 8 % of the machine are rejected. Where too few are left, where the machine
    has one core, or if ``simulates`` says so, the runs are simulated with the measured costs of the ops; ``source`` says why.

    Args:
        claim: one of ``CLAIMS``, or your own.
        work: what runs.
        repetitions: after which the measuring ends; one that came before all others does not count.
        seconds: after which it ends too.
        simulates: whether to simulate even where measuring is possible.

    Raises:
        ValueError: two policies gave different results, which no legal order can.

    >>> work = workload("a sum", record(lambda x, y: ops.exp(x) + ops.exp(y), 1.0, 2.0), (1.0, 2.0))
    >>> evidence = examine(CLAIMS["H1"], work, simulates=True)
    >>> list(evidence.figures), evidence.is_simulated
    (['in_order', 'fifo', 'critical_path', 'no policy can do more than'], True)
    """
    why = "as asked" if simulates else obstacle(WORKERS)
    if not why:
        _run(claim, work)  # warm
        samples = repeat(lambda: _run(claim, work), repetitions, seconds)
        if samples.are_enough:
            figures, typical = _medians(claim, samples.kept)
            return Evidence(claim, work, figures, typical, samples.source)
        why = samples.shortage(seconds)
    timelines = {policy: schedule.simulate(work.tasks, WORKERS, policy) for policy in claim.policies}
    source = f"simulated with the measured cost of each op: {why}"
    return Evidence(claim, work, claim.figures(timelines), timelines, source)


def _run(claim: Claim, work: Workload) -> Timelines:
    """One run with each policy; their results have to be equal bit by bit."""
    first, timelines = None, {}
    for policy in claim.policies:
        results, timelines[policy] = schedule.run(work.tasks, work.values, WORKERS, policy)
        first = first or results
        for name, value in results.items():
            if not np.array_equal(value, first[name]):
                raise ValueError(f"{work.title}: {name} differs between {claim.policies[0]} and {policy}")
    return timelines


def _medians(claim: Claim, runs: Sequence[Timelines]) -> tuple[Mapping[str, float], Timelines]:
    """The median of each figure, and the run that is nearest to them."""
    found = [claim.figures(run) for run in runs]
    medians = {name: statistics.median(figures[name] for figures in found) for name in found[0]}
    distances = [sum(abs(figures[name] - medians[name]) for name in medians) for figures in found]
    return medians, runs[distances.index(min(distances))]
