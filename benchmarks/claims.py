"""The lecture's claims about scheduling, measured, each beside a case where it does not hold: ``python -m benchmarks.claims``.

H1: a good scheduler uses over 90 % of the devices, a bad one about half. H2: overlapping forward and backward gains 30 % on a
Transformer. Two workers, BLAS on one thread. Repetitions in which other programs used over 8 % of the machine are rejected;
with fewer than five left the answer is "not measured". ``--simulate`` needs one core: it measures each op, and simulates.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import ops, schedule
from autodiff_lab.layers import TransformerBlock
from autodiff_lab.schedule import Tasks, Timeline
from benchmarks.quiet import FEWEST, Samples, repeat

WORKERS = 2


@dataclass(frozen=True)
class Workload:
    """Tasks with what they read, the graph that they were made of, and what they are an example of."""

    title: str
    tasks: Tasks
    values: Mapping[str, Any]


def workload(title: str, graph: ad.Graph, arguments: list[Any], micro_batches: int = 1) -> Workload:
    """A graph's tasks with measured costs; every micro-batch has an x of its own."""
    costs = schedule.measure(graph, *arguments)
    tasks = schedule.from_graph(graph, costs, micro_batches=micro_batches, data=("x",) if micro_batches > 1 else ())
    named = {graph.nodes[place].name: value for place, value in zip(graph.inputs, arguments, strict=True)}
    values = {name: named[name.partition("@")[0]] for name in tasks.inputs}
    return Workload(title, tasks, values)


# -------------------------------------------------------------------------------------------------------------- workloads


def eight_towers(width: int = 512) -> Workload:
    """Eight towers side by side that meet at the end: 47 ops, and much to do at once."""

    def towers(x: Any, weights: list[list[Any]]) -> Any:
        def tower(a: Any, b: Any, c: Any) -> Any:
            return ops.matmul(ops.tanh(ops.matmul(ops.tanh(ops.matmul(x, a)), b)), c)

        total = tower(*weights[0])
        for own in weights[1:]:
            total = total + tower(*own)
        return total

    random = np.random.default_rng(0)
    weights = [[_normal(random, width, width) / width**0.5 for _ in range(3)] for _ in range(8)]
    x = _normal(random, width, width)
    return workload("eight towers, 47 ops", ad.record(towers, x, weights), _leaves((x, weights)))


def one_tower(width: int = 512, depth: int = 12) -> Workload:
    """The same ops in one chain: no policy finds two of them at once."""

    def tower(x: Any, weights: list[Any]) -> Any:
        for weight in weights:
            x = ops.tanh(ops.matmul(x, weight))
        return x

    random = np.random.default_rng(0)
    weights = [_normal(random, width, width) / width**0.5 for _ in range(depth)]
    x = _normal(random, width, width)
    return workload("one tower", ad.record(tower, x, weights), _leaves((x, weights)))


def transformer(layers: int, width: int, micro_batches: int, tokens: int = 64, batch: int = 4) -> Workload:
    """Forward and backward of a stack of Transformer blocks, once for each micro-batch."""
    blocks = [TransformerBlock(width, heads=4, seed=seed) for seed in range(layers)]

    def loss(parameters: Any, x: Any) -> Any:
        for block, own in zip(blocks, parameters, strict=True):
            x = block.with_parameters(own)(x)
        return ops.square(x).mean()

    parameters = ad.map_leaves(lambda leaf: leaf.data, [block.parameters() for block in blocks])
    x = _normal(np.random.default_rng(0), batch, tokens, width)
    graph = ad.record(ad.value_and_grad(loss), parameters, x)
    title = f"Transformer, {layers} layers, d {width}, {micro_batches} micro-batch{'es' * (micro_batches > 1)}"
    return workload(title, graph, _leaves((parameters, x)), micro_batches)


def _normal(random: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    return random.standard_normal(shape).astype(np.float32)


def _leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    ad.map_leaves(found.append, tree)
    return found


# ------------------------------------------------------------------------------------------------------------------ claims


def timed(work: Workload, policy: str, simulates: bool) -> tuple[dict[str, Any], Timeline]:
    """One run, or one simulated run without results."""
    if simulates:
        return {}, schedule.simulate(work.tasks, WORKERS, policy)
    return schedule.run(work.tasks, work.values, WORKERS, policy)


def utilisation(work: Workload, simulates: bool) -> dict[str, float]:
    """H1: for each policy CPU time / (workers · wall time), in per cent, and what the best policy could reach."""
    figures = {}
    for policy in ("in_order", "fifo", "critical_path"):
        _, timeline = timed(work, policy, simulates)
        used = timeline.utilisation if timeline.cpu_utilisation is None else timeline.cpu_utilisation
        figures[policy] = 100 * used
    return {**figures, "bound": 100 * timeline.bound}


def gain(work: Workload, simulates: bool) -> dict[str, float]:
    """H2: by how many per cent one plan for all micro-batches is faster than one micro-batch after the other.

    That loop runs in two ways: op after op as they are issued, and with free choice inside a micro-batch.
    """
    results, joint = timed(work, "critical_path", simulates)
    figures = {"joint ms": 1e3 * joint.makespan}
    for policy, title in (("in_order", "gain over issuing in order %"), ("loop", "gain over a free loop %")):
        loop_results, loop = timed(work, policy, simulates)
        for name, value in loop_results.items():
            if not np.array_equal(value, results[name]):
                raise SystemExit(f"{work.title}: {name} differs between two orders")
        figures[title] = 100 * (joint.speedup_over(loop) - 1)
    return figures


CLAIMS = {
    "H1": (utilisation, (eight_towers, one_tower)),
    "H2": (
        gain,
        (
            lambda: transformer(4, 256, 4),
            lambda: transformer(2, 512, 4),
            lambda: transformer(4, 256, 1),
            lambda: transformer(2, 512, 1),
        ),
    ),
}


def main() -> None:
    """Measure what the command line asks for, print it, and write JSON and a picture if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=CLAIMS, help="one claim")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=60.0, help="at most so long for each workload")
    parser.add_argument(
        "--simulate", action="store_true", help="simulate two workers with measured costs: one core is enough"
    )
    parser.add_argument("--json", type=Path, help="write all figures here")
    options = parser.parse_args()
    report = {}
    for claim in [options.only] if options.only else CLAIMS:
        measure, workloads = CLAIMS[claim]
        for make in workloads:
            work = make()
            measure(work, options.simulate)  # warm
            if options.simulate:
                samples = Samples({name: [figure] * FEWEST for name, figure in measure(work, True).items()})
            else:
                samples = repeat(
                    lambda measure=measure, work=work: measure(work, False), options.repetitions, options.seconds
                )
            print(line(claim, work, samples), flush=True)
            report[f"{claim}: {work.title}"] = {**samples.found, "rejected": samples.rejected}
    if options.json:
        options.json.write_text(json.dumps(report, indent=1))


def line(claim: str, work: Workload, samples: Samples) -> str:
    """One workload's medians."""
    if samples.kept < FEWEST:
        figures = "not measured: other programs kept the machine busy; try again, or --simulate"
    else:
        figures = ", ".join(f"{name} {samples.median(name):.1f}" for name in samples.found)
    return f"{claim}  {work.title} ({len(work.tasks)} tasks): {figures}   [{samples.kept} kept, {samples.rejected} rejected]"


if __name__ == "__main__":
    main()
