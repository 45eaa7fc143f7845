"""Plans: right numbers in memory that is nobody else's, whoever calls, and errors that name op, rule and line."""

from __future__ import annotations

import threading
import weakref
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import events, ops, planning, schedule
from autodiff_lab.faults import lost_dimension
from autodiff_lab.numpy_calls import Fact
from autodiff_lab.recycling import WORTH_IT, Recycled
from autodiff_lab.trees import flatten

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 3))


def loss(w: Any, x: Any) -> Any:
    h = ops.tanh(x @ w)
    return ops.mean(h * h) + ops.sum(ops.softmax(h.T)[0])


ARGUMENTS = RNG.standard_normal((3, 3)), X
JOINT = ad.record(ad.value_and_grad(loss, (0, 1)), *ARGUMENTS)


def same(got: Any, want: Any) -> bool:
    return all(
        np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(flatten(got)[0], flatten(want)[0], strict=True)
    )


def copies(value: Any) -> list[Any]:
    return [np.array(leaf) for leaf in flatten(value)[0]]


# ------------------------------------------------------------------------------------------------------- whose memory it is


def aliasing(x: Any, w: Any) -> Any:
    """Results that would share memory if nobody took care: inputs, constants, views, the same value twice."""
    h = x * 2.0
    return {"x": x, "twice": (h, h), "views": [h.T, h[0], h.reshape(12), x.reshape(12)], "constant": np.ones(3) * 1.0,
            "spread": ops.broadcast_to(ops.sum(w), shape=(2, 2)), "number": ops.sum(h)}  # fmt: skip


def test_results_share_no_memory_with_inputs_with_each_other_or_with_later_results() -> None:
    plan = ad.plan(ad.record(aliasing, X, X))
    first, second = flatten(plan(X, X))[0], flatten(plan(X, X))[0]
    arrays = [*first, *second, X]
    for place, one in enumerate(arrays):
        assert not any(np.shares_memory(one, other) for other in arrays[place + 1 :])


def test_results_stay_what_they_are_whatever_is_done_to_other_results() -> None:
    plan = ad.plan(JOINT)
    kept, wanted = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        given = rng.standard_normal((3, 3)), rng.standard_normal((4, 3))
        wanted.append(copies(JOINT(*given)))
        kept.append(plan(*given))
        plan(*given)[1][0][...] = np.nan  # the caller may do with his results what he likes
    assert all(same(got, want) for got, want in zip(kept, wanted, strict=True))


def test_results_can_be_fed_back_in() -> None:
    step = ad.record(lambda w, x: w - 0.1 * ad.grad(loss)(w, x), *ARGUMENTS)
    plan, w, v = ad.plan(step), ARGUMENTS[0], ARGUMENTS[0]
    for _ in range(10):
        w, v = plan(w, X), step(v, X)
    assert np.array_equal(w, v)


def test_inputs_and_constants_are_never_written() -> None:
    held = np.arange(12.0).reshape(4, 3)
    plan = ad.plan(ad.record(lambda x: ops.exp((x + held) * 0.5) - held, X))
    before = X.copy()
    first = plan(X)
    assert np.array_equal(X, before) and np.array_equal(plan(X), first)


def test_large_results_are_recycled_only_when_nobody_holds_them() -> None:
    size = WORTH_IT  # numbers, so more bytes
    plan = ad.plan(ad.record(lambda x: ops.exp(x) * 2.0, np.zeros(size)))
    held = plan(np.zeros(size))
    addresses = set()
    for number in range(6):
        result = plan(np.full(size, float(number)))
        assert not np.shares_memory(result, held)
        addresses.add(result.ctypes.data)
        del result
    assert len(addresses) <= 3 and np.all(held == 2.0)


@pytest.mark.parametrize(
    "hold",
    [lambda a: a[1:], lambda a: memoryview(a), lambda a: weakref.ref(a), lambda a: ad.tensor(a).data is None or [a]],
    ids=["a view", "a buffer", "a weak reference", "a list"],
)
def test_an_array_that_somebody_can_still_reach_is_not_recycled(hold: Any) -> None:
    recycled = Recycled(Fact((8,), np.dtype("float64")))
    first = recycled()
    address, holder = first.ctypes.data, hold(first)
    keep = [first] if isinstance(holder, weakref.ref) else []
    del first
    assert recycled().ctypes.data != address
    del holder, keep


def test_an_array_that_was_made_read_only_is_not_recycled() -> None:
    recycled = Recycled(Fact((8,), np.dtype("float64")))
    first = recycled()
    first.flags.writeable = False
    address = first.ctypes.data
    del first
    assert recycled().ctypes.data != address


# ---------------------------------------------------------------------------------------------------------------- who calls


def test_calls_from_two_threads_do_not_disturb_each_other() -> None:
    plan, wrong = ad.plan(JOINT), []

    def call(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(50):
            given = rng.standard_normal((3, 3)), rng.standard_normal((4, 3))
            if not same(plan(*given), JOINT(*given)):
                wrong.append(seed)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_kernel_may_call_the_plan_that_it_belongs_to() -> None:
    calls: list[Any] = []
    with ad.registry.restored():

        @ad.op(elementwise=True)
        def again(xp: Any, x: Any) -> Any:
            bool(x.sum() > 0)  # looks at numbers, so it is called as it is
            if len(calls) < 2:
                calls.append(None)
                calls[-1] = plan(x + 1.0)
            return x * 2.0

        graph = ad.record(lambda x: ops.exp(x) + again(ops.tanh(x)) * ops.exp(x), X)
        plan = ad.plan(graph)
        assert np.array_equal(plan(X), np.exp(X) + np.tanh(X) * 2.0 * np.exp(X))
        assert len(calls) == 2


def test_after_an_exception_inside_a_plan_works_as_before() -> None:
    with ad.registry.restored():

        @ad.op(elementwise=True)
        def positive_only(xp: Any, x: Any) -> Any:
            if not bool((x > 0).all()):
                raise ValueError("not positive")
            return xp.sqrt(x)

        def f(x: Any) -> Any:
            root = positive_only(x * 2.0)
            return ops.exp(root)

        plan = ad.plan(ad.record(f, np.ones(3)))
        want = plan(np.ones(3))
        with pytest.raises(ad.OpError, match="not positive") as caught:
            plan(-np.ones(3))
        assert any("root = positive_only" in note and "test_planning.py" in note for note in caught.value.__notes__)
        assert np.array_equal(plan(np.ones(3)), want)


def test_a_new_plan_reads_anew_what_a_kernel_of_ones_own_reads() -> None:
    factor = 2.0
    with ad.registry.restored():

        @ad.op(elementwise=True)
        def times_the_factor(xp: Any, x: Any) -> Any:
            return x * factor

        graph = ad.record(lambda x: times_the_factor(x), X)
        assert np.array_equal(ad.plan(graph)(X), X * 2.0)
        factor = 3.0
        assert np.array_equal(ad.plan(graph)(X), X * 3.0)


def test_ops_that_give_no_views_share_no_memory_however_they_are_called() -> None:
    def erf_of_erf(x: Any) -> Any:
        for _ in range(20):
            x = ops.erf(x)
        return x

    plan = ad.plan(ad.record(erf_of_erf, X))
    assert not any(line.may_share for line in plan.lines.calls) and not plan.memory.looked_at


# -------------------------------------------------------------------------------------------------------------- what it says


def test_a_kernel_that_does_not_do_what_its_rules_say_is_an_error_that_names_the_rule_and_the_line() -> None:
    with ad.registry.restored():

        @ad.op
        def halved(xp: Any, x: Any) -> Any:
            return x[::2]

        @halved.shape_rule
        def halved_shape(x: Any) -> Any:
            return x

        with pytest.raises(ad.OpError, match=r"halved.*\(2, 3\).*halved_shape.*\(4, 3\)"):
            ad.plan(ad.record(lambda x: halved(x), X))

        @ad.op
        def looked(xp: Any, x: Any) -> Any:
            return x[::2] if bool(x[0, 0] < 9) else x

        @looked.shape_rule
        def looked_shape(x: Any) -> Any:
            return x

        plan = ad.plan(ad.record(lambda x: looked(x), X))
        with pytest.raises(ad.OpError, match="looked_shape"):
            plan(X)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((X,), TypeError, "takes 2 inputs"),
        ((X, X), ValueError, "its input w was planned as"),
        ((ARGUMENTS[0], X.astype(np.float32)), ValueError, "float32"),
        ((ARGUMENTS[0], "x"), TypeError, "must be an array"),
    ],
    ids=["too few", "a wrong shape", "a wrong dtype", "a text"],
)
def test_arguments_that_do_not_fit_are_named(arguments: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ad.plan(JOINT)(*arguments)


def test_a_number_that_an_input_cannot_hold_is_refused_and_not_cut_off() -> None:
    doubled = ad.plan(ad.record(lambda x: x * 2, np.array(3)))
    assert doubled(4) == 8
    with pytest.raises(ValueError, match=r"planned as \(\) int64.*got \(\) float64"):
        doubled(2.7)


def test_a_masked_array_is_refused_as_ops_refuse_it() -> None:
    with pytest.raises(TypeError, match="masked"):
        ad.plan(ad.record(lambda x: ops.sum(x), X))(np.ma.masked_array(X, X > 0))


@pytest.mark.parametrize("of", [ad.plan, ad.fuse, ad.infer_shapes, schedule.from_plan], ids=lambda of: of.__name__)
def test_what_is_no_graph_is_refused_with_what_makes_one(of: Any) -> None:
    with pytest.raises(
        TypeError, match=rf"{of.__name__}: expected a .*, as ad\.(record|plan)\(.*\) gives one, got <function"
    ):
        of(loss)


def test_loops_that_there_are_not_are_refused_also_where_none_is_needed() -> None:
    with pytest.raises(ValueError, match="'blocked' or 'compiled', got 'fast'"):
        ad.plan(JOINT, loops="fast")  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [0, 1.5, True, "2"])
def test_a_number_of_workers_that_is_none_is_refused(workers: Any) -> None:
    with pytest.raises(ValueError, match="workers"):
        ad.plan(JOINT, workers=workers)


def test_the_source_has_a_comment_with_the_users_line_for_every_step() -> None:
    plan = ad.plan(JOINT)
    text = plan.source()
    assert text.count("    # ") == len(plan.steps) and "h = ops.tanh(x @ w)" in text
    assert "def run(w, x):" in text


def test_names_of_inputs_cannot_break_the_source() -> None:
    def f(b0: Any, v1: Any, exp: Any, run: Any, slice: Any, **_: Any) -> Any:
        return ops.exp(b0 * v1 + exp * run)[1:] * slice[::2]

    given = [np.full(3, value) for value in (1.0, 2.0, 3.0, 4.0, 5.0)]
    assert np.array_equal(ad.plan(ad.record(f, *given))(*given), f(*given))


def test_the_text_names_steps_buffers_and_what_memory_is_saved() -> None:
    plan = ad.plan(JOINT)
    text = str(plan)
    assert (
        f"{len(plan.steps)} steps" in text
        and "in place of" in text
        and f"{plan.peak_bytes:,} bytes at the peak" in text
    )
    assert plan.peak_bytes < plan.bytes_without_reuse


def test_decisions_are_told_in_an_order_that_makes_sense() -> None:
    with ad.listen() as told:
        plan = ad.plan(JOINT, fuse=False)
    taken: set[int] = set()
    for event in told:
        if isinstance(event, events.BufferTaken):
            assert (event.in_place_of is None) == (event.buffer not in taken)
            taken.add(event.buffer)
        elif isinstance(event, events.BufferReleased):
            taken.remove(event.buffer)
    assert sum(isinstance(event, events.StepPlanned) for event in told) == len(plan.steps)


def test_values_in_one_buffer_never_live_at_the_same_time() -> None:
    plan = ad.plan(JOINT, fuse=False)
    for buffer in plan.buffers:
        mine = sorted((one for one in plan.lifetimes if one.buffer == buffer.number), key=lambda one: one.first)
        for one, other in pairwise(mine):
            assert one.last <= other.first and one.nbytes <= buffer.nbytes


def test_a_chain_of_ops_works_in_place() -> None:
    def chain(x: Any) -> Any:
        for _ in range(10):
            x = ops.tanh(x)
        return ops.sum(x)

    assert [buffer.nbytes for buffer in ad.plan(ad.record(chain, X), fuse=False).buffers] == [X.nbytes]


def test_one_number_is_never_written_over_what_it_is_computed_from() -> None:
    plan = ad.plan(ad.record(lambda x: ops.tanh(ops.tanh(ops.tanh(ops.tanh(x)))), np.ones(1)))
    assert all(one.in_place_of is None for one in plan.lifetimes)


# ------------------------------------------------------------------------------------------------------------ loops, devices


def test_large_groups_are_loops_and_give_the_same_numbers() -> None:
    x = np.linspace(-3, 3, 1 + planning._IN_CACHE // 8)
    graph = ad.record(ad.value_and_grad(lambda x: ops.sum(ops.tanh(x) * ops.sigmoid(x))), x)
    plan = ad.plan(graph)
    assert {step.kind for step in plan.steps} == {"blocked NumPy"}
    for got, want in zip(flatten(plan(x))[0], flatten(graph(x))[0], strict=True):
        assert np.allclose(got, want, rtol=1e-12)


def test_a_graph_may_cross_devices() -> None:
    def f(x: Any) -> Any:
        return ops.tanh((x * 2.0).to("sim:0") + 1.0).to("cpu") * x

    graph = ad.record(f, X)
    plan = ad.plan(graph)
    assert {step.device for step in plan.steps} == {"cpu", "sim:0"}
    assert np.array_equal(plan(X), f(ad.tensor(X)).numpy())
    assert np.array_equal(plan(X), plan(X))


def test_two_workers_give_the_same_bits_and_a_legal_timeline() -> None:
    plan = ad.plan(JOINT, fuse=False, workers=2)
    want = JOINT(*ARGUMENTS)
    for policy in ("critical_path", "fifo", "serial"):
        outputs, timeline = schedule.run(plan, ARGUMENTS, workers=2, policy=policy)
        assert same(outputs, want) and timeline.faults() == []


def test_large_loops_run_in_parts_on_two_workers() -> None:
    x = np.linspace(-3, 3, 500_000)
    graph = ad.record(ad.value_and_grad(lambda x: ops.sum(ops.tanh(x) * ops.exp(x))), x)
    plan = ad.plan(graph, workers=2)
    outputs, timeline = schedule.run(plan, [x], workers=2)
    assert {task.name.rpartition(" ")[2] for task in timeline.tasks} >= {"opens", "0", "1"}
    for got, want in zip(flatten(outputs)[0], flatten(graph(x))[0], strict=True):
        assert np.allclose(got, want, rtol=1e-12)
    assert timeline.faults() == []


def test_tasks_of_a_plan_wait_for_readers_of_a_buffer_that_they_write() -> None:
    tasks = schedule.from_plan(ad.plan(JOINT, fuse=False))
    reasons = {dependency.reason for dependency in tasks.dependencies()}
    assert {"read after write", "write after read"} <= reasons
    assert schedule.simulate(tasks, schedule.cores(2)).faults() == []


def test_an_error_in_a_step_on_two_workers_is_the_steps_own_and_the_plan_works_on() -> None:
    with ad.registry.restored():

        @ad.op(elementwise=True)
        def fails_below_zero(xp: Any, x: Any) -> Any:
            if bool((x < 0).any()):
                raise ValueError("below zero")
            return x + 1.0

        plan = ad.plan(ad.record(lambda x: ops.exp(fails_below_zero(x)) + ops.tanh(x), np.ones(3)), workers=2)
        with pytest.raises(ad.OpError, match="below zero"):
            schedule.run(plan, [-np.ones(3)])
        outputs, _ = schedule.run(plan, [np.ones(3)])
        assert np.array_equal(outputs, np.exp(np.full(3, 2.0)) + np.tanh(np.ones(3)))


def test_a_value_whose_shape_the_rules_do_not_tell_has_no_buffer_and_the_numbers_are_the_same() -> None:
    def f(x: Any) -> Any:
        return ops.exp(ops.tanh(ops.square(x) * 2.0) + 1.0)

    x = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
    right = ad.plan(ad.record(f, x))
    for fuse in (True, False):
        with lost_dimension("tanh"):
            lost = ad.plan(ad.record(f, x), fuse=fuse)
        assert np.array_equal(lost(x), right(x))
        planned = {lost.graph.nodes[one.node].label for one in lost.lifetimes if one.buffer is not None}
        assert planned == {"square", "mul"} or planned == {"square"}
        assert [step.kind for step in lost.steps][-3:] == ["kernel"] * 3
