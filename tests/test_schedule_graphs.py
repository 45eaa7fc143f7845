"""Tasks from graphs, their costs, and the lecture's claims on simulated machines."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import schedule
from autodiff_lab.graph import Graph, Node
from autodiff_lab.layers import MLP, TransformerLM
from autodiff_lab.optimizers import SGD
from autodiff_lab.schedule import (
    AlphaBeta,
    Constant,
    Measured,
    Roofline,
    Task,
    Tasks,
    from_graph,
    simulate,
    training_step,
)

MODEL = MLP(4, 5, 3, seed=0)
X = np.arange(8.0, dtype=np.float32).reshape(2, 4) / 8


def loss(parameters: Any, x: Any) -> Any:
    return (MODEL.with_parameters(parameters)(x) ** 2).sum()


def joint() -> Graph:
    return ad.record(ad.value_and_grad(loss), MODEL.values(), X)


def training() -> Graph:
    rule = SGD(learning_rate=0.1)

    def step(parameters: Any, x: Any) -> Any:
        value, gradients = ad.value_and_grad(loss)(parameters, x)
        return value, rule.update(parameters, gradients, {})[0]

    return ad.record(step, MODEL.values(), X)


@cache
def transformer(blocks: int, width: int) -> Graph:
    model = TransformerLM(64, context=32, width=width, heads=4, blocks=blocks, seed=0)
    tokens = np.zeros((2, 32), np.int64)
    return ad.record(ad.value_and_grad(lambda p, x: model.with_parameters(p)(x).sum()), model.values(), tokens)


def run_in_order(tasks: Tasks, order: list[int], inputs: dict[str, Any]) -> dict[str, Any]:
    """What the tasks' own calls give, one after the other."""
    values = dict(inputs)
    for number in order:
        task = tasks[number]
        assert task.call is not None
        values[task.name] = task.call(*(values[name] for name in task.reads))
    return values


# --------------------------------------------------------------------------------------------------------- from a graph


@pytest.mark.parametrize("policy", schedule.POLICIES)
@pytest.mark.parametrize("make", [joint, training])
def test_the_tasks_of_a_graph_give_its_results_bit_for_bit_in_the_order_of_every_policy(
    make: Callable[[], Graph], policy: str
) -> None:
    graph = make()
    tasks = from_graph(graph, Roofline())
    leaves = [leaf.numpy() if isinstance(leaf, ad.Tensor) else leaf for leaf in flat(MODEL.values())] + [X]
    values = run_in_order(tasks, simulate(tasks, 2, policy).order, dict(zip(tasks.inputs, leaves, strict=True)))
    for name, expected in zip(tasks.outputs, flat(graph(*leaves)), strict=True):
        assert np.array_equal(values[name], expected)


def flat(value: Any) -> list[Any]:
    leaves: list[Any] = []
    ad.map_leaves(leaves.append, value)
    return leaves


def test_micro_batches_add_up_in_a_fixed_order_whatever_the_schedule_is() -> None:
    tasks = from_graph(joint(), micro_batches=3, data=["x"])
    batches = [X, X * 2, X - 1]
    inputs = dict(zip(tasks.inputs, [*batches, *flat(MODEL.values())], strict=True))
    runs = [
        run_in_order(tasks, simulate(tasks, 2, policy).order, inputs) for policy in ("serial", "critical_path", "lifo")
    ]
    each = [flat(ad.value_and_grad(loss)(MODEL.values(), batch)) for batch in batches]
    for place, name in enumerate(tasks.outputs):
        assert np.array_equal(runs[0][name], runs[1][name]) and np.array_equal(runs[0][name], runs[2][name])
        assert np.array_equal(runs[0][name], (each[0][place] + each[1][place]) + each[2][place])


def test_back_propagation_never_waits_for_a_weights_gradient() -> None:
    for graph in (joint(), transformer(2, 16)):
        tasks = from_graph(graph)
        for task in tasks:
            before = {tasks[other].phase for other in tasks.predecessors[task.id]}
            assert task.phase != "dX" or "dW" not in before
            assert task.phase != "F" or before <= {"F"}
        assert {"F", "dX", "dW"} == {task.phase for task in tasks}


def test_the_gradient_of_a_weight_that_is_used_twice_is_dw_and_that_of_a_residual_is_dx() -> None:
    def twice(w: Any, x: Any) -> Any:
        return ad.ops.tanh(ad.ops.tanh(x @ w) @ w).sum()

    def residual(w: Any, x: Any) -> Any:
        h = ad.ops.tanh(x @ w)
        return (ad.ops.exp(h) + h).sum()

    square = np.ones((2, 2))
    for f, phase in ((twice, "dW"), (residual, "dX")):
        graph = ad.record(ad.grad(f), square, square)
        sums = [node.id for node in graph if node.label == "add" and node.phase == "backward"]
        assert [schedule.phases(graph)[node] for node in sums] == [phase]


def test_updates_come_once_and_after_the_gradients_of_all_micro_batches() -> None:
    graph = training()
    once, thrice = from_graph(graph), from_graph(graph, micro_batches=3)
    updates = [task for task in thrice if task.phase == "update"]
    assert len(updates) == len([task for task in once if task.phase == "update"]) > 0
    timeline = simulate(thrice, 4, "critical_path")
    first = min(timeline.starts[task.id] for task in updates if any("sum2" in name for name in task.reads))
    assert first >= min(timeline.ends[t.id] for t in thrice if t.name.endswith("@sum2"))
    assert timeline.faults() == []


def test_several_losses_are_one_graph_and_their_backward_passes_overlap() -> None:
    def two(p: Any, x: Any) -> Any:
        return ad.value_and_grad(loss)(p, x), ad.value_and_grad(
            lambda p, x: ad.ops.tanh(MODEL.with_parameters(p)(x)).sum()
        )(p, x)

    tasks = from_graph(ad.record(two, MODEL.values(), X))
    assert simulate(tasks, 2, "critical_path").makespan < 0.6 * simulate(tasks, 1, "critical_path").makespan


def test_a_node_outside_of_the_placed_scopes_goes_with_what_it_belongs_to() -> None:
    tasks = from_graph(joint(), place={"layer1": "gpu0", "layer2": "gpu1"})
    graph = joint()
    for task in tasks:
        assert task.node is not None
        node: Node = graph.nodes[task.node]
        assert task.on in ("gpu0", "gpu1")
        assert task.on == {"layer1": "gpu0", "layer2": "gpu1"}.get(node.scope, task.on)
    moved = schedule.with_transfers(tasks, AlphaBeta(1.0, 0.0))
    assert {task.on for task in moved if task.phase == "comm"} == {"gpu0->gpu1", "gpu1->gpu0"}
    assert simulate(moved, schedule.pipeline(2), "critical_path").faults() == []
    assert run_in_order(moved, list(moved.order), dict(zip(moved.inputs, [*flat(MODEL.values()), X], strict=True)))


def test_every_weights_gradient_is_reduced_once_before_its_update() -> None:
    tasks = schedule.with_all_reduce(from_graph(training(), micro_batches=2), 4, AlphaBeta())
    reduces = [task for task in tasks if task.phase == "comm"]
    assert sorted(task.nbytes for task in reduces) == sorted(p.nbytes for p in flat(MODEL.values()))
    updates = {name for task in tasks if task.phase == "update" for name in task.reads}
    assert {task.name for task in reduces} <= updates


def test_an_op_runs_only_where_it_has_a_kernel() -> None:
    @ad.op
    def only_here(xp: Any, x: Any) -> Any:
        return x + 1

    only_here.shape_rule(lambda x: x)
    graph = ad.record(lambda x: only_here(x) * 2.0, np.ones(3))
    kernel = only_here.op.kernels.pop(("any", None))
    only_here.op.kernels.update({("cuda", None): kernel, ("cpu", np.dtype("f4")): kernel})
    tasks = from_graph(graph, {"cpu": Constant(1.0), "cuda": Constant(0.1)})
    assert [dict(task.cost) for task in tasks] == [{"cuda": 0.1}, {"cpu": 1.0, "cuda": 0.1}]  # type: ignore[arg-type]
    with pytest.raises(schedule.ScheduleError, match=r"task 'only_here_1' can run on no resource.*for 'cuda'"):
        simulate(tasks, 1)


def named(x: Any) -> Any:
    h = x * x
    return h


def test_unknown_data_and_costs_are_refused() -> None:
    with pytest.raises(schedule.ScheduleError, match="no input 'y'"):
        from_graph(joint(), micro_batches=2, data=["y"])
    with pytest.raises(schedule.ScheduleError, match="the input 'h_1' is named like an op's task"):
        from_graph(ad.record(lambda h_1: named(h_1), 1.0))
    with pytest.raises(schedule.ScheduleError, match="costs must be a cost model"):
        from_graph(joint(), 3.0)  # type: ignore[arg-type]
    with pytest.raises(schedule.ScheduleError, match="micro_batches must be at least 1"):
        from_graph(joint(), micro_batches=0)


# ---------------------------------------------------------------------------------------------------------------- costs


def test_flops_and_bytes_come_from_shapes() -> None:
    product, tanh = schedule.costs.works(ad.record(lambda x, w: ad.ops.tanh(x @ w), np.ones((2, 3)), np.ones((3, 5))))
    assert (product.flops, product.traffic, product.nbytes) == (2 * 2 * 3 * 5, 8 * (6 + 15 + 10), 80)
    assert (tanh.flops, tanh.traffic) == (10, 160)
    images = np.ones((2, 3, 8, 8), np.float32), np.ones((4, 3, 3, 3), np.float32)
    (convolution,) = schedule.costs.works(ad.record(lambda x, w: ad.ops.correlate2d(x, w), *images))
    assert convolution.flops == 2 * (2 * 4 * 6 * 6) * (3 * 3 * 3)


def test_a_convolutions_backward_pass_is_about_twice_its_forward_pass() -> None:
    images = np.ones((2, 3, 8, 8), np.float32), np.ones((4, 3, 3, 3), np.float32)
    graph = ad.record(ad.grad(lambda x, w: ad.ops.correlate2d(x, w).sum(), argnums=(0, 1)), *images)
    products = [work.flops for work in schedule.costs.works(graph) if work.op.name.startswith("correlate")]
    assert len(set(products)) == 1 and len(products) in (2, 3)


def test_the_roofline_is_the_slower_of_arithmetic_and_memory() -> None:
    (add,) = schedule.costs.works(ad.record(lambda x: x + x, np.ones(1000)))
    assert Roofline(peak=1.0, bandwidth=1e9, launch=0.5).seconds(add) == 0.5 + 1000
    assert Roofline(peak=1e9, bandwidth=1.0, launch=0.5).seconds(add) == 0.5 + 24000


def test_every_cost_model_says_how_wrong_it_may_be() -> None:
    models = [Constant(), Roofline(), AlphaBeta(), Measured({"a": 1.0})]
    assert len({model.error for model in models}) == len(models)


def test_measured_costs_are_those_of_the_ops_and_a_fitted_roofline_states_its_error() -> None:
    graph = joint()
    measured = schedule.measure(graph, *flat(MODEL.values()), X, repeats=3)
    tasks = from_graph(graph, measured)
    once = [seconds for name, seconds in measured.times.items() if not name.endswith("@sum")]
    assert simulate(tasks, 1, "serial").makespan == pytest.approx(sum(once))
    twice = simulate(from_graph(graph, measured, micro_batches=2), 1, "serial").makespan
    assert twice == pytest.approx(sum(once) + sum(measured.times.values()))
    fitted = Roofline.fitted(graph, measured)
    assert fitted.off_by is not None and "fitted" in fitted.error
    other = ad.record(lambda x: ad.ops.sin(x), 1.0)
    with pytest.raises(schedule.ScheduleError, match="task 'sin_1': its time was not measured"):
        from_graph(other, measured)


def test_measured_times_order_a_large_op_before_a_small_one() -> None:
    graph = ad.record(lambda x, y: (x @ x, y + y), np.ones((200, 200)), np.ones(2))
    times = schedule.measure(graph, np.ones((200, 200)), np.ones(2)).times
    assert times["matmul_2"] > times["add_3"]


def test_a_ring_all_reduce_moves_two_times_n_minus_one_parts() -> None:
    assert AlphaBeta(alpha=1.0, beta=0.5).all_reduce(8, replicas=4) == 2 * 3 * (1.0 + 0.5 * 2)
    assert AlphaBeta().all_reduce(8, replicas=1) == 0


# ---------------------------------------------------------------------------------------------------- the lecture's claims


def test_in_the_theory_overlap_takes_a_layers_time_from_two_to_one_and_a_half() -> None:
    """Forward is a chain; beside dX, dW fills the second worker, and with overlap also beside another forward pass."""
    for micro_batches in (4, 8):
        step = training_step(4, micro_batches)
        loop, planned = simulate(step, 2, "loop"), simulate(step, 2, "critical_path")
        assert loop.makespan == 4 * micro_batches * 2.0 and planned.makespan == 4 * micro_batches * 1.5
        assert loop.backward_over_forward == planned.backward_over_forward == 2.0
    assert simulate(training_step(4), 2, "loop").makespan == simulate(training_step(4), 2, "critical_path").makespan


@pytest.mark.parametrize(("blocks", "width"), [(4, 64), (2, 128)])
def test_overlap_gains_thirty_percent_on_a_transformer_against_ops_issued_in_order(blocks: int, width: int) -> None:
    tasks = from_graph(transformer(blocks, width), Roofline(), micro_batches=4)
    in_order, planned = simulate(tasks, 2, "in_order"), simulate(tasks, 2, "critical_path")
    assert planned.speedup_over(in_order) >= 1.3
    loop = simulate(tasks, 2, "loop")
    assert 1 < planned.speedup_over(loop) < planned.speedup_over(in_order), (
        "a ready queue in each pass reaches part of it"
    )


def test_on_four_devices_a_good_scheduler_uses_them_and_a_bad_one_less_than_half() -> None:
    tasks = from_graph(transformer(4, 64), Roofline(), micro_batches=4)
    serial, in_order, planned = (simulate(tasks, 4, policy) for policy in ("serial", "in_order", "critical_path"))
    assert serial.utilisation == pytest.approx(0.25)
    assert in_order.utilisation < 0.5
    assert planned.utilisation >= 0.98
    one = simulate(from_graph(transformer(4, 64), Roofline()), 4, "critical_path")
    assert one.bound < 0.9 and one.utilisation <= one.bound, "one micro-batch has too little to do at once"


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("micro_batches", [1, 4, 8])
def test_the_bubble_of_a_pipeline_is_p_minus_1_over_m_plus_p_minus_1(stages: int, micro_batches: int) -> None:
    step = training_step(stages, micro_batches, devices=[f"gpu{i}" for i in range(stages)], splits=False)
    timeline = simulate(step, schedule.pipeline(stages), "fifo")
    assert 1 - timeline.utilisation == pytest.approx((stages - 1) / (micro_batches + stages - 1), rel=1e-12)


def all_forward_first(task: Task, state: schedule.State) -> float:
    return 1000 * (task.phase == "F") - task.micro_batch


def test_dw_fills_the_bubble_of_a_pipeline_if_it_waits_for_forward() -> None:
    step = training_step(4, 8, devices=[f"gpu{i}" for i in range(4)])
    used = {
        name: simulate(step, schedule.pipeline(4), policy).utilisation
        for name, policy in {
            "barrier": all_forward_first,
            "zero_bubble": "zero_bubble",
            "critical_path": "critical_path",
        }.items()
    }
    assert {name: round(part, 2) for name, part in used.items()} == {
        "barrier": 0.80,
        "zero_bubble": 0.89,
        "critical_path": 0.86,
    }


@pytest.mark.parametrize("micro_batches", [4, 8, 16])
def test_backward_first_keeps_two_micro_batches_alive_however_many_there_are(micro_batches: int) -> None:
    step = training_step(4, micro_batches, activation=1.0, gradient=0.0)
    eager, wide = simulate(step, 2, "backward_first"), simulate(step, 2, all_forward_first)
    assert eager.makespan == simulate(step, 2, "critical_path").makespan
    assert eager.peak / 4 == 2.0 and wide.peak / 4 == micro_batches


@pytest.mark.parametrize(("part", "gain"), [(0.5, 1 / 6), (1.0, 1 / 3)])
def test_reducing_gradients_while_backward_goes_on_hides_all_of_it(part: float, gain: float) -> None:
    cost = AlphaBeta(alpha=part / 2, beta=0.0)  # two steps for two replicas
    step = schedule.with_all_reduce(training_step(4, update=0.0), 2, cost)
    machine = schedule.gpus(1)
    hidden, after = simulate(step, machine, "critical_path"), simulate(step, machine, "serial")
    assert hidden.speedup_over(after) - 1 == pytest.approx(gain)


def test_an_optimizer_on_the_processor_works_beside_the_backward_pass() -> None:
    machine = schedule.cpu_and_gpu(gpu_speed=1.0, alpha=0.0, beta=0.0)
    step = training_step(4, update=1.0, devices=["gpu"], update_on="cpu")
    beside, after = simulate(step, machine, "critical_path"), simulate(step, machine, "serial")
    assert (after.makespan, beside.makespan) == (16, 13)


def test_an_update_in_place_waits_for_all_who_still_read_the_weights() -> None:
    step = training_step(2, update=1.0)
    readers = {step.name(before) for before in step.predecessors[step.id_of("update1")]}
    assert readers == {"dW1.0", "F1.0", "dX1.0"}
