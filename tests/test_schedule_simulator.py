"""The simulator: legal schedules whatever the tasks and the policy are, known figures, and the seven steps as they are told."""

from __future__ import annotations

import itertools
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import events, schedule
from autodiff_lab.schedule import POLICIES, Machine, Resource, Task, Tasks, Transfer, cores, simulate

# -------------------------------------------------------------------------------------------------------- known figures

HEFT_COSTS = [[14, 16, 9], [13, 19, 18], [11, 13, 19], [13, 8, 17], [12, 13, 10],
              [13, 16, 9], [7, 15, 11], [5, 11, 14], [18, 12, 20], [21, 7, 16]]  # fmt: skip
HEFT_EDGES = {
    (1, 2): 18, (1, 3): 12, (1, 4): 9, (1, 5): 11, (1, 6): 14, (2, 8): 19, (2, 9): 16, (3, 7): 23, (4, 8): 27,
    (4, 9): 23, (5, 9): 13, (6, 8): 15, (7, 10): 17, (8, 10): 11, (9, 10): 13,
}  # fmt: skip


def ten_tasks() -> tuple[Tasks, Machine]:
    """The example of Topcuoglu, Hariri and Wu, 2002, figure 2."""
    names = ("p1", "p2", "p3")
    tasks = {
        str(task): Task(
            cost=dict(zip(names, HEFT_COSTS[task - 1], strict=True)),
            after={str(a): nbytes for (a, b), nbytes in HEFT_EDGES.items() if b == task},
        )
        for task in range(1, 11)
    }
    links = {pair: Transfer(beta=1.0) for pair in itertools.permutations(names, 2)}
    return Tasks(tasks), Machine(tuple(map(Resource, names)), links)


def test_heft_schedules_its_own_ten_tasks_in_80() -> None:
    tasks, machine = ten_tasks()
    ranks = schedule.upward_ranks(tasks, machine)
    assert [round(rank, 1) for rank in ranks] == [108, 77, 80, 80, 69, 63.3, 42.7, 35.7, 44.3, 14.7]
    timeline = simulate(tasks, machine, "heft")
    assert timeline.makespan == 80 and timeline.faults() == []


def test_the_adapter_for_instances_of_other_programs_maps_them_one_to_one() -> None:
    path = Path(__file__).parent / "acceptance" / "schedules_adapter.py"
    adapter = runpy.run_path(str(path))
    instance = {
        "n": 10, "m": 3, "w": HEFT_COSTS, "pred": [[a - 1 for a, b in HEFT_EDGES if b == task] for task in range(1, 11)],
        "comm": [[a - 1, b - 1, nbytes] for (a, b), nbytes in HEFT_EDGES.items()], "link": None,
    }  # fmt: skip
    timeline = simulate(*ten_tasks(), "heft")
    expected = [(task, timeline.resource(task), timeline.starts[task], timeline.ends[task]) for task in timeline.order]
    assert adapter["solve"](instance, "heft", 0.05) == expected
    assert adapter["policies"]() == list(POLICIES)


def graham(costs: list[int], edges: list[tuple[int, int]], workers: int, order: list[int]) -> float:
    tasks = [
        Task(name=str(task), cost=costs[task - 1], after=[str(a) for a, b in edges if b == task]) for task in order
    ]
    return simulate(tasks, workers, "priority").makespan


def test_grahams_anomaly_makes_more_workers_shorter_tasks_and_fewer_edges_slower() -> None:
    costs, edges, listed = [3, 2, 2, 2, 4, 4, 4, 4, 9], [(1, 9), (4, 5), (4, 6), (4, 7), (4, 8)], list(range(1, 10))
    assert graham(costs, edges, 3, listed) == 12
    assert graham(costs, edges, 4, listed) == 15
    assert graham([cost - 1 for cost in costs], edges, 3, listed) == 13
    assert graham(costs, [edge for edge in edges if edge not in ((4, 5), (4, 6))], 3, listed) == 16
    assert graham(costs, edges, 3, [1, 2, 4, 5, 6, 3, 9, 7, 8]) == 14


LOADS = (
    {f"L{i}": Task(nbytes=10) for i in range(4)}
    | {f"S{i}": Task(nbytes=1, after=[f"L{i}"]) for i in range(4)}
    | {"T": Task(nbytes=1, after=[f"S{i}" for i in range(4)])}
)


def test_the_default_order_uses_each_load_before_the_next_and_breadth_first_keeps_all_of_them() -> None:
    best, wide = simulate(LOADS, 1), simulate(LOADS, 1, "fifo")
    assert (best.peak, wide.peak) == (14, 41)
    assert [best.tasks.name(task) for task in best.peak_tasks] == ["L0", "S0", "S1", "S2", "S3"]
    assert best.faults() == wide.faults() == []
    assert "14" in best.compared_with(wide) and "41" in best.compared_with(wide)


def topological_orders(tasks: Tasks, so_far: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    if len(so_far) == len(tasks):
        yield so_far
    for task in range(len(tasks)):
        if task not in so_far and set(tasks.predecessors[task]) <= set(so_far):
            yield from topological_orders(tasks, (*so_far, task))


def test_the_peaks_of_all_orders_lie_between_14_and_41() -> None:
    tasks = Tasks(LOADS)
    orders = list(topological_orders(tasks))
    peaks = {simulate(tasks, 1, lambda task, state, o=order: -o.index(task.id)).peak for order in orders}
    assert (len(orders), min(peaks), max(peaks)) == (2520, 14, 41)


def test_equal_priorities_keep_the_order_of_submission_and_tasks_are_never_compared() -> None:
    tasks = {f"t{i}": Task(args=({"k": i}, ad.tensor([1.0, 2.0])), priority=1) for i in range(10)}
    runs = [simulate(tasks, workers, "priority") for workers in (1, 1, 3)]
    assert [run.order for run in runs] == [list(range(10))] * 3
    same = simulate(tasks, 1, lambda task, state: np.float32(1.0))
    assert same.order == list(range(10))


# ------------------------------------------------------------------------------------------------------- resources compete


def test_a_capacity_above_one_lets_ops_share_a_device_as_far_as_their_demands_go() -> None:
    gpu = Machine((Resource("gpu", "cuda", capacity=3),))
    tasks = {"wide": Task(cost=2, demand=2), "narrow": Task(cost=2), "next": Task(cost=2, demand=2)}
    assert list(simulate(tasks, gpu, "fifo").starts) == [0, 0, 2]


def test_streams_limit_how_many_ops_are_on_a_device() -> None:
    gpu = Machine((Resource("gpu", "cuda", capacity=8, streams=2),))
    assert list(simulate({f"t{i}": Task(cost=1) for i in range(4)}, gpu, "fifo").starts) == [0, 0, 1, 1]


def test_transfers_on_one_link_contend() -> None:
    placed = Tasks(
        [Task(name="a", on="gpu0", nbytes=10), Task(name="b", on="gpu0", nbytes=10)]
        + [Task(name=f"use {v}", on="gpu1", reads=[v]) for v in "ab"]
    )
    tasks = schedule.with_transfers(placed, schedule.AlphaBeta(0.0, 1.0))
    timeline = simulate(tasks, schedule.pipeline(2), "fifo")
    starts = {timeline.tasks.name(task): timeline.starts[task] for task in timeline.order}
    assert starts == {"a": 0, "b": 1, "a->gpu1": 1, "b->gpu1": 11, "use a": 11, "use b": 21}


def test_a_value_travels_between_devices_while_other_work_goes_on() -> None:
    machine = Machine((Resource("cpu"), Resource("gpu", "cuda")), {("cpu", "gpu"): Transfer(alpha=1.0, beta=0.5)})
    tasks = {"load": Task(on="cpu", nbytes=8), "other": Task(on="gpu", cost=2), "use": Task(on="gpu", after=["load"])}
    timeline = simulate(tasks, machine, "critical_path")
    assert list(timeline.starts) == [0, 0, 6]  # 1 + (1 + 0.5 · 8)
    assert timeline.idle_by_cause["transfer"] == 4


def waits(tasks: dict[str, Task], machine: Machine | int, policy: Any) -> list[events.ResourceAwaited]:
    told: list[Any] = []
    simulate(tasks, machine, policy, told.append)
    return [event for event in told if isinstance(event, events.ResourceAwaited)]


def test_who_waits_for_a_device_is_told_who_holds_it() -> None:
    (wait,) = waits({"a": Task(cost=3), "b": Task(cost=1)}, 1, "fifo")
    assert (wait.task, wait.resource, wait.cause, wait.blocker, wait.time) == (1, "core0", "busy", 0, 0.0)


def test_who_waits_for_memory_is_told_who_holds_it() -> None:
    gpu = Machine((Resource("gpu", "cuda", capacity=2, memory=10),))
    tasks = {"a": Task(nbytes=6), "use a": Task(after=["a"], cost=2), "b": Task(nbytes=6)}
    told = waits(tasks, gpu, "priority")
    assert [(w.task, w.resource, w.cause, w.blocker) for w in told] == [
        (2, "gpu", "memory", 0),
        (2, "gpu", "memory", 1),
    ]
    assert list(simulate(tasks, gpu, "priority").starts) == [0, 1, 3]


def test_a_schedule_under_a_cap_keeps_to_it_and_one_that_cannot_says_what_lives() -> None:
    assert simulate(LOADS, cores(1, memory=14)).peak == 14
    with pytest.raises(schedule.OutOfMemoryError, match=r"'S3 \(1\)' do not fit.*what lives: 'L3 \(10\)', 'S0 \(1\)'"):
        simulate(LOADS, cores(1, memory=13), "fifo")


# ------------------------------------------------------------------------------------------------------ policies of one's own


def test_a_function_in_a_cell_is_a_policy() -> None:
    def longest_first(task: Task, state: schedule.State) -> float:
        assert isinstance(task.cost, int)
        return task.cost

    timeline = simulate({f"t{cost}": Task(cost=cost) for cost in (1, 3, 2)}, 1, longest_first)
    assert (timeline.policy, timeline.order) == ("longest_first", [1, 2, 0])


def test_a_pair_of_functions_also_says_where() -> None:
    timeline = simulate({"a": Task(), "b": Task()}, 2, (lambda task, state: 0, lambda task, state: "core1"))
    assert [timeline.span(task).resource for task in timeline.order] == ["core1", "core1"]


def wrong_policies() -> Iterator[Any]:
    def first(task: Task, state: Any) -> float:
        return 0

    def boom(task: Task, state: Any) -> float:
        raise KeyError("oops")

    yield boom, r"policy 'boom': priority\('a'\) raised KeyError: 'oops'"
    yield lambda task, state: None, r"priority\('a'\) must be a number.*got None"
    yield lambda task, state: float("nan"), r"priority\('a'\) must be a number.*got nan"
    yield lambda task, state: "high", r"priority\('a'\) must be a number.*got 'high'"
    yield (first, boom), r"place\('a'\) raised KeyError"
    yield (
        (first, lambda task, state: "core9"),
        r"place\('a'\) must name a resource or be None; got 'core9'; did you mean",
    )
    yield (first, lambda task, state: 0), r"place\('a'\) must name a resource or be None; got 0"
    yield (first, lambda task, state: "link"), r"task 'a' cannot run on 'link'; it can on \['core0'\]"
    yield (
        schedule.Policy("planless", first, plan=lambda tasks, machine: 1 / 0),
        r"plan\(tasks, machine\) raised ZeroDivision",
    )


@pytest.mark.parametrize(("policy", "text"), list(wrong_policies()))
def test_a_policy_that_raises_or_answers_nonsense_is_named_with_the_task(policy: Any, text: str) -> None:
    machine = Machine((Resource("core0"), Resource("link", "link")))
    with pytest.raises(schedule.PolicyError, match=text):
        simulate({"a": Task()}, machine, policy)


def test_a_policy_that_lets_everybody_wait_ends_in_an_error_and_not_in_a_hang() -> None:
    with pytest.raises(schedule.DeadlockError, match=r"it lets every ready task wait: 'b'; 1 tasks are left"):
        simulate({"a": Task(), "b": Task(after=["a"])}, 1, (lambda t, s: 0, lambda t, s: None if t.id else "core0"))


def test_work_is_stolen_oldest_first_by_a_device_that_has_none() -> None:
    tasks = {"root": Task()} | {f"leaf{i}": Task(after=["root"]) for i in range(4)}
    timeline = simulate(tasks, 2, "work_stealing")
    at = {timeline.tasks.name(task): (timeline.span(task).resource, timeline.starts[task]) for task in timeline.order}
    assert at["leaf3"] == ("core0", 1) and at["leaf0"] == ("core1", 1)
    assert timeline.makespan == 3


# -------------------------------------------------------------------------------------------------------- the seven steps


def test_the_lectures_seven_steps_are_told_in_order() -> None:
    with ad.listen() as told:
        simulate({"a": Task(cost=2), "b": Task(after=["a"])}, 1, "fifo")
    e = events
    assert told == [
        e.TasksCollected(2, "fifo"),
        e.TaskDependenciesCounted(0, 0),
        e.TaskDependenciesCounted(1, 1),
        e.TaskEnqueued(0, 0, 0.0, 3),
        e.TaskTaken(0, 0.0),
        e.ResourceAcquired(0, "core0", 0, 0.0),
        e.ResourceReleased(0, "core0", 0, 2.0),
        e.TaskDependencyDone(0, 1, 0),
        e.TaskEnqueued(1, -1, 2.0, 6),
        e.TaskTaken(1, 2.0),
        e.ResourceAcquired(1, "core0", 0, 2.0),
        e.ResourceReleased(1, "core0", 0, 3.0),
        e.AllTasksDone(3.0),
    ]
    assert [event.step for event in told] == [1, 2, 2, 3, 4, 4, 4, 5, 6, 4, 4, 4, 7]  # type: ignore[union-attr]


def test_the_ready_queue_can_be_followed_event_by_event() -> None:
    tasks, machine = schedule.training_step(3, 2, update=1.0), 2
    waiting = {task: set(before) for task, before in enumerate(tasks.predecessors)}
    ready: set[int] = set()
    done: set[int] = set()

    def follow(event: Any) -> None:
        if isinstance(event, events.TaskEnqueued):
            assert waiting[event.task] <= done
            ready.add(event.task)
        elif isinstance(event, events.TaskTaken):
            ready.remove(event.task)
        elif isinstance(event, events.ResourceReleased):
            done.add(event.task)

    simulate(tasks, machine, "fifo", follow)
    assert not ready and done == set(range(len(tasks)))
