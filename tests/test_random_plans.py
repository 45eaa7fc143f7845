"""A thousand random graphs with first and second derivatives: plans, fused or not, on one worker or two, change no number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import seed as fixed_seed

import autodiff_lab as ad
from autodiff_lab import ops, planning, schedule
from autodiff_lab.graph import Graph
from autodiff_lab.trees import flatten
from tests.test_random_expressions import PROGRAMS, SEEDS, WEIGHT, Program, arguments

EXAMPLES, BLOCKS = 1000, 5  # a block at a time, so that several processes share them
EVERY = 16  # of so many examples one also runs on two workers and on the simulated device, which take longer
SHORT = PROGRAMS.filter(lambda program: len(program.steps) < 3)  # with second derivatives they have 200 nodes


def derivatives(program: Program) -> Any:
    """A function that gives the program's value, its first derivatives, and a product with its second ones."""

    def loss(x: Any, y: Any) -> Any:
        return ops.sum(program(x, y) * WEIGHT)

    def all_of_it(x: Any, y: Any, dx: Any, dy: Any) -> Any:
        return program(x, y), ad.grad(loss, (0, 1))(x, y), ad.hvp(loss, (x, y), (dx, dy))

    return all_of_it


def drawn(program: Program, seed: int) -> tuple[Graph, tuple[Any, ...]]:
    given = (*arguments(seed), *arguments(seed + 1))
    return ad.record(derivatives(program), *given), given


def same(got: Any, want: Any) -> bool:
    return all(
        one.dtype == other.dtype and np.array_equal(one, other, equal_nan=True) and signs_agree(one, other)
        for one, other in zip(flatten(got)[0], flatten(want)[0], strict=True)
    )


def signs_agree(one: Any, other: Any) -> bool:
    """Whether zeros have the same sign."""
    return bool(np.array_equal(np.signbit(one), np.signbit(other)) or np.isnan(other).any())


def close(got: Any, want: Any) -> bool:
    pairs = zip(flatten(got)[0], flatten(want)[0], strict=True)
    return all(np.allclose(a, b, rtol=1e-9, atol=1e-9 * (1e-3 + np.abs(b).max(initial=0.0))) for a, b in pairs)


def check_plans(program: Program, seed: int) -> None:
    """Not fused: bit by bit what the graph gives. As loops: to rounding, because these add up in another order."""
    graph, given = drawn(program, seed)
    want = graph(*given)
    fuse = seed % 2 == 1
    plan = ad.plan(graph, fuse=fuse)
    for _ in range(2):
        assert (close if fuse else same)(plan(*given), want), plan.source()
    if seed % EVERY == 7:
        check_everywhere(graph, given, want)


def check_everywhere(graph: Graph, given: Sequence[Any], want: Any) -> None:
    outputs, timeline = schedule.run(ad.plan(graph, fuse=False, workers=2), given, workers=2)
    assert same(outputs, want) and timeline.faults() == []
    moved = [ad.tensor(value, device="sim:0").data for value in given]
    try:
        there = ad.record(lambda *values: graph(*values), *moved)
    except ad.OpError:  # a constant of the program is an array, which stays on the CPU
        return
    results = flatten(ad.plan(there)(*moved))[0]
    assert close([value.get() if hasattr(value, "get") else value for value in results], flatten(want)[0])


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
def test_plans_of_a_thousand_random_graphs_change_no_number(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_IN_CACHE", 0)  # every group is a loop

    @fixed_seed(block)
    @settings(max_examples=EXAMPLES // BLOCKS, deadline=None, database=None)
    @given(SHORT, SEEDS)
    def law(program: Program, seed: int) -> None:
        with np.errstate(all="ignore"):
            check_plans(program, seed)

    law()
