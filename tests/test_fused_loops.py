"""Fused loops: whatever the shapes, dtypes and blocks, a group gives what its ops give one by one."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from weakref import ref

import numpy as np
import pytest
from hypothesis import given, settings

import autodiff_lab as ad
from autodiff_lab import ops, simulated
from autodiff_lab.block_programs import block_program
from autodiff_lab.blocked_loops import BlockedLoop
from autodiff_lab.fused_loops import STRAIGHT_BYTES, FusedLoop, loop_of
from autodiff_lab.fusion import Fusion, Group, fuse
from autodiff_lab.graph import Graph
from autodiff_lab.loop_programs import NotALoop, group_program
from tests.drawn_groups import compare, is_rounded, node_values, programs

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def group_loops(fusion: Fusion, group: Group) -> list[Callable[[Sequence[Any]], Any]]:
    """The ways to run a group: whole, in blocks of some sizes, and these in parts."""
    loop = loop_of(fusion, group)
    ways: list[Callable[[Sequence[Any]], Any]] = [lambda given: loop(*given)]
    try:
        program = block_program(group_program(fusion.graph, group), group.shape)  # type: ignore[arg-type]
    except NotALoop:
        return ways
    if math.prod(program.shape) < 2 or not (program.each or program.reductions):
        return ways
    for nbytes, count in ((8, 1), (40, 1), (64, 2), (160, 3), (10**4, 1)):
        ways.append(partial(in_parts, BlockedLoop(program, {}, nbytes), count=count))
    return ways


def in_parts(loop: Any, given: Sequence[Any], count: int, out: Sequence[Any] = ()) -> Any:
    run = loop.start(given, out, count)
    for part in reversed(run.parts):
        part()
    return run.finish()


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(programs())
def test_a_fused_loop_gives_what_its_ops_give_one_by_one(drawn: Any) -> None:
    f, inputs = drawn
    with np.errstate(all="ignore"):
        graph = ad.record(f, *inputs)
        values, fusion = node_values(graph, inputs), fuse(graph)
        for group in fusion.groups:
            given, expected = ([values[n] for n in ids] for ids in (group.inputs, group.outputs))
            before = [np.array(one) for one in given]
            for way in group_loops(fusion, group):
                found = way(given)
                compare(found, [np.asarray(one) for one in expected], is_rounded(graph, group))
                for one in found:
                    assert not any(np.shares_memory(one, other) for other in given if isinstance(other, np.ndarray))
                assert not any(
                    np.shares_memory(one, other) for n, one in enumerate(found) for other in found[:n] if one.size
                )
            assert all(np.array_equal(one, other, equal_nan=True) for one, other in zip(before, given, strict=True))


# ------------------------------------------------------------------------------------------------------- one group by hand


def only_loop(f: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Callable[..., Any], FusedLoop]:
    """The loop of a function that is one group, to be called with the function's arguments."""
    graph = ad.record(f, *arguments)
    fusion = fuse(graph)
    (group,) = fusion.groups
    loop = loop_of(fusion, group, **options)

    def call(*given: Any, out: Sequence[Any] = ()) -> Any:
        values = dict(zip(graph.inputs, given, strict=True))
        return loop(*(values.get(n, graph.nodes[n].value) for n in group.inputs), out=out)

    return call, loop


def curve(x: Any) -> Any:
    return ops.tanh(1.5 * x + 0.3) * ops.sigmoid(x) - 0.5 * x * x


LARGE = np.random.default_rng(0).standard_normal(3 * STRAIGHT_BYTES // 4).astype(np.float32)
CUBE = LARGE.reshape(8, 16, -1)
ROWS = LARGE[: len(LARGE) // 96 * 96].reshape(-1, 96)


SHAPES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "one axis": (curve, (LARGE,)),
    "rows and a bias": (lambda x, b: ops.tanh(x + b) * 2.0, (ROWS, ROWS[0])),
    "rows and a column": (lambda x, c: ops.exp(x * c), (ROWS, ROWS[:, :1])),
    "both sides": (lambda c, b: ops.exp(c + b), (ROWS[:, :1], ROWS[:1])),
    "leading ones": (lambda x, b: x * b + 1.0, (ROWS, ROWS[0].reshape(1, 1, 96))),
    "transposed": (lambda x, y: x * y - x, (np.asfortranarray(ROWS), ROWS)),
    "long rows": (lambda x, c: -(x * c), (LARGE.reshape(3, -1), np.ones((3, 1), np.float32))),
    "three axes, one repeated": (lambda x, y: ops.exp(x + y), (CUBE, CUBE[:, :1])),
    "a 0-d operand": (lambda x, a: ops.tanh(a * x), (LARGE, np.array(2.0, np.float32))),
    "masks": (lambda x: ops.where(x > 0, x, 0.0), (LARGE,)),
    "an op without a program": (lambda x: 2.0 * ops.erf(x[:70000]), (LARGE,)),
    "several outputs": (lambda x: [ops.exp(x), ops.exp(x) * 2.0], (LARGE,)),
    "sum of all": (lambda x: ops.tanh(x).sum(), (LARGE,)),
    "sum over rows": (lambda x: (x * x).sum(axis=0), (ROWS,)),
    "sum over columns": (lambda x: (x * x).sum(axis=1), (ROWS,)),
    "mean, keepdims": (lambda x: (x * 2.0).mean(axis=-1, keepdims=True), (ROWS,)),
    "largest and smallest": (lambda x: [(-x).max(axis=0), (-x).min()], (ROWS,)),
    "joint": (ad.value_and_grad(lambda x: curve(x).sum()), (LARGE,)),
    "a bias's gradient": (ad.grad(lambda b, x: ops.square(x + b).sum()), (ROWS[0], ROWS)),
    "half precision": (lambda x: (x * x).sum(axis=0), (ROWS.astype(np.float16),)),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_large_arrays_are_cut_into_blocks_that_give_the_same(name: str) -> None:
    f, inputs = SHAPES[name]
    graph = ad.record(f, *inputs)
    values, fusion = node_values(graph, inputs), fuse(graph)
    kinds = []
    for group in fusion.groups:
        loop = loop_of(fusion, group)
        given, expected = ([values[n] for n in ids] for ids in (group.inputs, group.outputs))
        compare(loop(*given), [np.asarray(one) for one in expected], is_rounded(graph, group))
        run = loop.parts(2).start(*given)
        for part in run.parts:
            part()
        compare(run.finish(), [np.asarray(one) for one in expected], is_rounded(graph, group))
        kinds.append(loop.kind)
    assert "blocked NumPy" in kinds


def test_outputs_are_written_into_arrays_that_are_handed_over_also_with_gaps() -> None:
    for x in (LARGE[:100], LARGE):
        loop, _ = only_loop(lambda x: [h := ops.exp(x), ops.tanh(h), h.sum()], x)
        expected = loop(x)
        whole, gaps, total = np.empty_like(x), np.empty((len(x), 2), np.float32)[:, 0], np.empty((), np.float32)
        found = loop(x, out=(whole, gaps, total))
        assert found[0] is whole and found[1] is gaps and found[2] is total
        compare(found, expected, rounded=False)
        found = loop(x, out=(None, gaps, None))
        assert found[1] is gaps and found[0] is not whole
        compare(found, expected, rounded=False)


def test_what_a_loop_gave_is_freed_when_nobody_needs_it_and_not_when_the_collector_runs() -> None:
    for x in (LARGE[:100], LARGE):
        loop, _ = only_loop(curve, x)
        gc.disable()
        try:
            result = ref(loop(x)[0])
            assert result() is None
        finally:
            gc.enable()


def test_what_a_loop_gave_is_not_changed_by_its_next_runs() -> None:
    for x in (LARGE[:100], LARGE):
        loop, _ = only_loop(curve, x)
        first = loop(x)[0]
        kept = first.copy()
        loop(-x)
        assert np.array_equal(first, kept)


def test_a_loop_may_run_in_several_threads_at_once() -> None:
    for x in (LARGE[:100], LARGE):
        loop, _ = only_loop(curve, x)
        inputs = [x * factor for factor in np.linspace(0, 1, 16, dtype=np.float32)]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(loop, inputs))
        for one, x in zip(found, inputs, strict=True):
            assert np.array_equal(one[0], loop(x)[0])


def test_a_loop_works_after_an_error_inside() -> None:
    for x in (LARGE[:100], LARGE):
        loop, _ = only_loop(curve, x)
        with pytest.raises((TypeError, ValueError, AttributeError)):
            loop("no array")
        assert np.array_equal(loop(x)[0], curve(x))


def test_a_sum_in_blocks_is_as_exact_as_numpys() -> None:
    x = np.full(2**21 + 7, 0.1, np.float32)
    exact = float(np.sum(x.astype(float)))
    loop, _ = only_loop(lambda x: (x * 1.0).sum(), x)
    column, kind = only_loop(lambda x: ops.abs(x).sum(axis=0), x.reshape(-1, 1))
    assert abs(loop(x)[0] - exact) / exact < 1e-6
    assert kind.kind == "blocked NumPy"
    assert abs(column(x.reshape(-1, 1))[0][0] - exact) / exact < 1e-6


def test_small_arrays_run_straight_through_and_the_event_says_so() -> None:
    fusion = fuse(ad.record(curve, LARGE[:100]))
    heard: list[Any] = []
    loop = loop_of(fusion, fusion.groups[0], tell=heard.append)
    (event,) = heard
    assert (event.kind, event.why) == (loop.kind, loop.why) == ("blocked NumPy", "400 bytes are one block")
    _, large = only_loop(curve, LARGE)
    blocks = "12 blocks of (32768,) stay in the cache from one function to the next"
    assert large.why == f"{blocks}; not compiled, because that would save less than 2 ms a run"


def test_a_loop_shows_its_source_with_the_names_of_the_user() -> None:
    def named(x: Any) -> Any:
        scaled = 2.0 * x
        return ops.tanh(scaled)

    for x in (LARGE[:100], LARGE):
        _, loop = only_loop(named, x)
        assert "# scaled = mul" in loop.source() and "tanh(" in loop.source()


def test_a_group_of_one_op_that_is_no_loop_runs_as_it_is() -> None:
    x = np.random.default_rng(0).standard_normal((300, 300))
    call, loop = only_loop(lambda x, y: x @ y, x, x)
    assert loop.kind == "op by op"
    assert np.array_equal(call(x, x)[0], x @ x)


def test_unknown_kinds_of_loops_are_refused() -> None:
    with pytest.raises(ValueError, match="loops must be 'auto', 'blocked' or 'compiled', got 'fast'"):
        only_loop(curve, LARGE, loops="fast")


# --------------------------------------------------------------------------------------------------- the simulated device


def on_sim(f: Callable[..., Any], *inputs: Any) -> tuple[Graph, Fusion, list[Any]]:
    """The graph of a function on arrays of a simulated device."""
    there = [ad.tensor(one, device="sim:0").data if isinstance(one, np.ndarray) else one for one in inputs]
    graph = ad.record(f, *there)
    return graph, fuse(graph), there


def run_groups(graph: Graph, fusion: Fusion, inputs: Sequence[Any]) -> list[Any]:
    values: dict[int, Any] = dict(zip(graph.inputs, inputs, strict=True))
    for group in fusion.groups:
        given = [values[n] if n in values else graph.nodes[n].value for n in group.inputs]
        values |= dict(zip(group.outputs, loop_of(fusion, group)(*given), strict=True))
    return [values[n] for n in graph.outputs]


def test_on_the_simulated_device_a_group_is_one_launch_of_the_bytes_that_move() -> None:
    graph, fusion, inputs = on_sim(curve, LARGE[:1000])
    costs = simulated.device(0).costs
    with ad.listen() as told:
        (fused,) = run_groups(graph, fusion, inputs)
    heard = [event for event in told if isinstance(event, ad.events.WorkQueued)]
    (event,) = heard
    assert event.name == fusion.groups[0].name
    assert event.end - event.start == pytest.approx(costs.kernel(2 * 4000))
    assert np.array_equal(fused.get(), ad.tensor(curve(inputs[0])).numpy())


def test_what_passes_between_fused_ops_takes_no_memory_on_the_simulated_device() -> None:
    device = simulated.device(0)
    graph, fusion, inputs = on_sim(curve, LARGE)
    device.synchronize()
    before = device.memory_peak = device.memory_used
    (fused,) = run_groups(graph, fusion, inputs)
    fused.get()
    assert device.memory_peak == before + LARGE.nbytes


def test_several_outputs_and_a_reduction_leave_one_launch() -> None:
    graph, fusion, inputs = on_sim(lambda x: [y := curve(x), y.sum()], LARGE[:1000])
    assert len(fusion.groups) == 1
    y, total = (one.get() for one in run_groups(graph, fusion, inputs))
    expected = ad.tensor(curve(inputs[0]))
    assert np.array_equal(y, expected.numpy()) and np.array_equal(total, expected.sum().numpy())


def test_an_error_inside_a_fused_kernel_names_the_op_and_its_line() -> None:
    @ad.op(elementwise=True)
    def fails_on_devices(xp: Any, x: Any) -> Any:
        return x if xp is np else np.tanh(x)

    graph, fusion, inputs = on_sim(lambda x: 2.0 * fails_on_devices(x), LARGE[:10])
    (fused,) = run_groups(graph, fusion, inputs)
    with pytest.raises(ValueError, match=r"fails_on_devices\(.*test_fused_loops"):
        fused.get()


@pytest.mark.parametrize("loops", ["blocked", "compiled"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_loop_that_reads_one_number_only_runs_all_its_blocks(loops: Any, workers: int) -> None:
    def f(x: Any) -> Any:
        return ops.sum(ops.broadcast_to(ops.tanh(x), shape=(700, 800)) * 2.0, axis=0)

    graph = ad.record(f, np.array(0.5))
    fusion = fuse(graph)
    (group,) = fusion.groups
    run = loop_of(fusion, group, loops).parts(workers).start(np.array(0.5), 2.0)
    for part in run.parts:
        part()
    assert np.allclose(run.finish()[0], 1400.0 * np.tanh(0.5))
    assert np.allclose(ad.plan(graph, loops=loops)(np.array(0.5)), 1400.0 * np.tanh(0.5))
