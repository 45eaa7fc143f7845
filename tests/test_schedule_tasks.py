"""Tasks: who waits for whom follows from names, and what cannot be scheduled is refused before anything runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from autodiff_lab import schedule
from autodiff_lab.schedule import Machine, Resource, ScheduleError, Task, Tasks, Transfer, cores, simulate


def reasons(tasks: Tasks) -> set[tuple[str, str, str]]:
    return {(tasks.name(d.source), tasks.name(d.target), d.reason) for d in tasks.dependencies()}


def test_reading_and_writing_one_value_gives_the_three_hazards() -> None:
    tasks = Tasks(
        [
            Task(name="make", writes=["w"]),
            Task(name="use", reads=["w"]),
            Task(name="change", reads=["w"], writes=["w"]),
            Task(name="use again", reads=["w"]),
        ]
    )
    assert reasons(tasks) == {
        ("make", "use", "read after write"),
        ("make", "change", "read after write"),
        ("make", "change", "write after write"),
        ("use", "change", "write after read"),
        ("change", "use again", "read after write"),
    }
    assert tasks.predecessors == [(), (0,), (0, 1), (2,)]


def test_an_input_that_is_overwritten_waits_for_its_readers() -> None:
    tasks = Tasks([Task(name="forward", reads=["w"]), Task(name="update", writes=["w"])], inputs=["w"])
    assert reasons(tasks) == {("forward", "update", "write after read")}
    assert tasks.edge_bytes(0, 1) == 0, "nothing travels where a task only waits"


def test_what_waits_for_a_task_is_given_its_value_before_another_one_changes_it() -> None:
    tasks = Tasks(
        [
            Task(lambda: 1, name="make", writes=["v"]),
            Task(lambda v: v, name="late", cost=9, after=["make"]),
            Task(lambda v: v + 1, name="change", reads=["v"], writes=["v"]),
        ],
        outputs=["v"],
    )
    assert ("late", "change", "write after read") in reasons(tasks)
    assert schedule.run(tasks, workers=1, policy="lifo")[0] == {"late": 1, "v": 2}


def test_a_value_that_is_changed_in_place_lives_until_its_last_user() -> None:
    tasks = Tasks(
        [
            Task(name="a", writes=["v"], nbytes=8),
            Task(name="b", reads=["v"], writes=["v"]),
            Task(name="c", reads=["v"]),
        ]
    )
    assert [sorted(users) for users in tasks.users] == [[1, 2], [], []]


def test_the_bytes_of_an_edge_are_those_that_it_names() -> None:
    tasks = Tasks({"a": Task(nbytes=100), "b": Task(after={"a": 7}), "c": Task(after=["a"])})
    assert [tasks.edge_bytes(0, task) for task in (1, 2)] == [7, 100]


def test_tasks_may_be_given_in_any_order() -> None:
    tasks = Tasks({"c": Task(after=["b"]), "b": Task(after=["a"]), "a": Task()})
    assert list(tasks.order) == [2, 1, 0]
    for policy in schedule.POLICIES:
        assert [simulate(tasks, 2, policy).tasks.name(task) for task in simulate(tasks, 2, policy).order] == [
            "a",
            "b",
            "c",
        ]


def test_columns_and_records_give_the_same_tasks() -> None:
    columns = Tasks.from_columns([1.0, 2.0, 3.0], [(), (0,), (0, 1)], [4.0, 5.0, 6.0])
    records = Tasks(list(columns))
    assert records.predecessors == [(), (0,), (0, 1)]
    assert [(t.name, t.cost, t.nbytes) for t in records] == [("t0", 1.0, 4.0), ("t1", 2.0, 5.0), ("t2", 3.0, 6.0)]
    for policy in schedule.POLICIES:
        one, other = simulate(columns, 2, policy), simulate(records, 2, policy)
        assert (list(one.starts), list(one.lanes)) == (list(other.starts), list(other.lanes))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a dependency that does not exist": (
        lambda: Tasks({"a": Task(), "b": Task(after=["aa"])}), "task 'b' waits for 'aa'.*did you mean 'a'"),
    "a value that nobody writes": (
        lambda: Tasks([Task(name="b", reads=["hiden"]), Task(name="hidden")], inputs=["hidden_1"]),
        "task 'b' reads 'hiden', which nobody writes.*did you mean 'hidden"),
    "a value that is written only later": (
        lambda: Tasks([Task(name="b", reads=["a"]), Task(name="a")]), "task 'b' reads 'a', which 'a' writes, but only later"),
    "a circle": (
        lambda: Tasks({"s": Task(), "a": Task(after=["s", "c"]), "b": Task(after=["a"]), "c": Task(after=["b"])}),
        "circle: 'a' waits for 'c' waits for 'b' waits for 'a'"),
    "a task that waits for itself": (lambda: Tasks({"a": Task(after=["a"])}), "circle: 'a' waits for 'a'"),
    "a negative cost": (lambda: Tasks({"a": Task(cost=-1)}), "task 'a': a cost must be.*got -1"),
    "no cost": (lambda: Tasks({"a": Task(cost=None)}), "task 'a': a cost must be.*got None"),  # type: ignore[arg-type]
    "a cost that is no number": (lambda: Tasks({"a": Task(cost=math.nan)}), "task 'a': a cost must be.*got nan"),
    "an infinite cost": (lambda: Tasks({"a": Task(cost=math.inf)}), "task 'a': a cost must be.*got inf"),
    "no cost for any resource": (lambda: Tasks({"a": Task(cost={})}), "task 'a': it has no cost for any resource"),
    "two of one name": (lambda: Tasks([Task(name="a"), Task(name="a")]), "two tasks are named 'a'"),
    "no name": (lambda: Tasks([Task()]), "task 0: it has no name"),
    "a text for a list": (lambda: Tasks({"ab": Task(), "c": Task(after="ab")}), "task 'c': after must be a list of names"),
    "negative bytes": (lambda: Tasks({"a": Task(nbytes=-1)}), "task 'a': nbytes must be"),
    "a demand of nothing": (lambda: Tasks({"a": Task(demand=0)}), "task 'a': demand must be"),
    "a column that waits for later ones": (lambda: Tasks.from_columns([1.0, 1.0], [(1,), ()]), "task t0: it waits for"),
    "a negative cost in a column": (lambda: Tasks.from_columns([1.0, -2.0], [(), ()]), "task t1: the cost must not be"),
    "a resource that does not exist": (
        lambda: simulate({"a": Task(on="core7")}, cores(2)), "task 'a' can run on no resource: it asks for 'core7'.*core"),
    "an op without a kernel for the device": (
        lambda: simulate({"a": Task(cost={"cuda": 1.0})}, cores(1)),
        "task 'a' can run on no resource: it has a cost .*kernel.* for 'cuda', and the machine has 'cpu'"),
    "a demand above every capacity": (
        lambda: simulate({"a": Task(demand=3)}, Machine((Resource("gpu", "cuda", capacity=2),))),
        "task 'a' can run on no resource: it demands 3 units, and the largest capacity is 2"),
    "a task larger than memory": (
        lambda: simulate({"a": Task(nbytes=10)}, cores(2, memory=9)), "task 'a' produces 10 bytes, more than the memory"),
    "an unknown phase": (lambda: Tasks({"a": Task(phase="forward")}), "task 'a': a phase is one of F, dX.*got 'forward'"),  # type: ignore[arg-type]
    "what is no task": (lambda: simulate([1], 2), r"expected a Task, got 1; .*from_graph"),  # type: ignore[list-item]
    "what is no machine": (lambda: simulate({"a": Task()}, "cpu"), "a machine is a Machine or.*got 'cpu'"),  # type: ignore[arg-type]
    "no cores": (lambda: simulate({"a": Task()}, 0), "a number of cores of at least 1; got 0"),
    "an unknown policy": (lambda: simulate({"a": Task()}, 1, "fiffo"), "no policy is named 'fiffo'; did you mean 'fifo'"),
    "what is no policy": (lambda: simulate({"a": Task()}, 1, 3), "a policy is a name, a Policy"),  # type: ignore[arg-type]
    "a machine without resources": (lambda: Machine(()), "it has no resources"),
    "two resources of one name": (lambda: Machine((Resource("a"), Resource("a"))), "two resources are named 'a'"),
    "a transfer to nowhere": (
        lambda: Machine((Resource("cpu"),), {("cpu", "gpu"): Transfer()}), "no resource 'gpu'; did you mean 'cpu'"),
    "a resource without speed": (lambda: Resource("a", speed=0), "resource 'a': capacity must be"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_scheduled_is_refused_by_name(what: str) -> None:
    attempt, text = REFUSED[what]
    with pytest.raises(ScheduleError, match=text):
        attempt()


def test_nothing_runs_before_a_missing_dependency_is_refused() -> None:
    calls: list[int] = []

    def work() -> None:
        calls.append(1)

    with pytest.raises(ScheduleError, match=r"'b' waits for 'aa'"):
        simulate({"a": Task(work), "b": Task(work, after=["aa"])}, 2)
    assert not calls


def test_no_tasks_are_a_schedule_too() -> None:
    timeline = simulate({}, 2)
    assert (timeline.makespan, timeline.utilisation, timeline.bound, timeline.faults(), timeline.peak) == (
        0,
        0,
        1,
        [],
        0,
    )
    assert timeline.critical_path == [] and timeline.idle == []
