"""What holds for every policy in the registry: legal schedules within their bounds, told or not, the same on every run."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import autodiff_lab as ad
from autodiff_lab import events
from autodiff_lab.schedule import (
    POLICIES,
    Machine,
    OutOfMemoryError,
    Resource,
    ScheduleError,
    Task,
    Tasks,
    Transfer,
    cores,
    searched,
    simulate,
)


def random_case(seed: int) -> tuple[Tasks, Machine]:
    """Few tasks, on equal cores, on unequal ones with links, or on a GPU with several streams beside a processor."""
    r = random.Random(seed)
    kind, count = r.choice(("equal", "unequal", "streams")), r.randint(1, 10)
    names = ["p0", "p1", "p2"][: r.randint(1, 3)]
    tasks = {}
    for task in range(count):
        before = r.sample(range(task), min(task, r.choice((0, 1, 1, 2))))
        tasks[f"t{task}"] = Task(
            cost={name: r.randint(0, 9) for name in names} if kind == "unequal" else r.choice((0, 1, 2, 0.1, 3.3)),
            after={f"t{other}": r.randint(0, 9) for other in before},
            phase=r.choice(("F", "dX", "dW", "comm", "update")),
            nbytes=r.randint(0, 5),
            demand=r.randint(1, 3) if kind == "streams" else 1,
            on="gpu" if kind == "streams" and r.random() < 0.5 else None,
            micro_batch=r.randint(0, 2),
        )
    if kind == "equal":
        return Tasks(tasks), cores(len(names))
    if kind == "unequal":
        links = {pair: Transfer(r.randint(0, 3), r.random()) for pair in itertools.permutations(names, 2)}
        return Tasks(tasks), Machine(tuple(map(Resource, names)), links)
    return Tasks(tasks), Machine(
        (Resource("cpu", capacity=3), Resource("gpu", "cuda", capacity=4, streams=2, speed=3.0))
    )


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_gives_legal_schedules_within_their_bounds(policy: str) -> None:
    for seed in range(720):  # 15 policies: 10,800 schedules
        tasks, machine = random_case(seed)
        timeline = simulate(tasks, machine, policy)
        assert timeline.faults() == [], f"seed {seed}"
        assert timeline.makespan >= timeline.critical_length - 1e-9
        assert timeline.makespan >= timeline.work / machine.workers - 1e-9
        assert timeline.utilisation <= timeline.bound + 1e-9
        idle = sum(timeline.idle_by_cause.values())
        assert abs(idle + timeline.work - machine.workers * timeline.makespan) < 1e-6


@pytest.mark.parametrize("policy", POLICIES)
def test_under_a_cap_a_schedule_is_legal_or_the_error_says_what_lives(policy: str) -> None:
    outcomes = set()
    for seed in range(60):
        tasks, machine = random_case(seed)
        cap = max(tasks.nbytes) + seed % 8
        capped = Machine(tuple(replace(r, memory=cap) for r in machine.resources), machine.transfers)
        try:
            timeline = simulate(tasks, capped, policy)
        except OutOfMemoryError as error:
            assert "do not fit" in str(error) and "what lives: '" in str(error)
            outcomes.add("out of memory")
        else:
            assert timeline.faults() == [], f"seed {seed}"
            outcomes.add("legal")
    assert outcomes == {"legal", "out of memory"}


NON_DELAY = (
    "priority",
    "fifo",
    "lifo",
    "latest_first",
    "critical_path",
    "backward_first",
    "zero_bubble",
    "work_stealing",
)


@pytest.mark.slow
def test_no_policy_beats_the_best_of_all_orders_and_list_policies_stay_within_grahams_bound() -> None:
    for seed in range(6):
        r = random.Random(seed)
        tasks = [
            Task(name=str(i), cost=r.randint(1, 9), after=[str(j) for j in range(i) if r.random() < 0.3])
            for i in range(6)
        ]
        workers = 2 + seed % 2
        orders = itertools.permutations(range(6))
        best = min(simulate(tasks, workers, lambda task, state, o=order: -o[task.id]).makespan for order in orders)
        for policy in POLICIES:
            makespan = simulate(tasks, workers, policy).makespan
            assert makespan >= best
            assert policy != "search" or makespan == best
            assert policy not in NON_DELAY or makespan <= (2 - 1 / workers) * best


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_that_is_told_is_the_run_that_is_not(policy: str) -> None:
    for seed in range(40):
        tasks, machine = random_case(seed)
        told: list[Any] = []
        quiet, heard = simulate(tasks, machine, policy), simulate(tasks, machine, policy, told.append)
        assert (list(quiet.starts), list(quiet.lanes)) == (list(heard.starts), list(heard.lanes))
        assert told


PRINT_ALL = """
from test_every_policy import random_case
from autodiff_lab.schedule import POLICIES, simulate
for seed in range(8):
    tasks, machine = random_case(seed)
    for policy in POLICIES:
        timeline = simulate(tasks, machine, policy)
        print(policy, list(timeline.starts), list(timeline.lanes), timeline.peak_tasks, timeline.to_chrome_trace())
"""


@pytest.mark.slow
def test_the_schedule_is_the_same_under_every_hash_seed() -> None:
    folders = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    runs = [
        subprocess.run(
            [sys.executable, "-c", PRINT_ALL],
            env={**os.environ, "PYTHONPATH": folders, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
        )
        for seed in ("0", "1", "2026")
    ]
    assert [run.stderr for run in runs] == [""] * 3
    printed = {run.stdout for run in runs}
    assert len(printed) == 1 and len(printed.pop()) > 1000


@pytest.mark.parametrize("policy", POLICIES)
def test_the_events_alone_give_the_timeline(policy: str) -> None:
    for seed in range(40):
        tasks, machine = random_case(seed)
        told: list[Any] = []
        timeline = simulate(tasks, machine, policy, told.append)
        acquired = {event.task: event for event in told if isinstance(event, events.ResourceAcquired)}
        released = {event.task: event for event in told if isinstance(event, events.ResourceReleased)}
        for task in range(len(tasks)):
            span = timeline.span(task)
            assert (acquired[task].resource, acquired[task].lane, acquired[task].time) == (
                span.resource,
                span.lane,
                span.start,
            )
            assert released[task].time == span.end


def test_a_search_is_never_longer_than_the_orders_that_it_begins_with_and_more_steps_never_make_it_longer() -> None:
    for seed in range(40):
        tasks, machine = random_case(seed)
        if any(task.demand > 1 for task in tasks):
            continue  # a layout knows no shares of a device
        lengths = [simulate(tasks, machine, searched(steps=steps)).makespan for steps in (1, 20)]
        assert lengths[1] <= lengths[0] <= simulate(tasks, machine, "heft").makespan + 1e-9, f"seed {seed}"


def test_a_search_says_how_far_it_is_and_finds_the_same_when_nobody_listens() -> None:
    r = random.Random(6)
    tasks = Tasks(
        [
            Task(
                name=str(i),
                cost={"p0": r.randint(1, 9), "p1": r.randint(1, 9)},
                after={str(before): r.randint(1, 5) for before in r.sample(range(i), min(i, 2))},
            )
            for i in range(30)
        ]
    )
    machine = Machine((Resource("p0"), Resource("p1")), {("p0", "p1"): Transfer(1, 1), ("p1", "p0"): Transfer(1, 1)})
    with ad.listen() as heard:
        timeline = simulate(tasks, machine, searched(steps=200))
    told = [event for event in heard if isinstance(event, events.SearchAdvanced)]
    assert 19 <= len(told) < 100 and heard[: len(told)] == told and told[-1].tried <= 200 and told[-1].gone >= 0.9
    assert all(a.tried < b.tried and a.gone < b.gone <= 1 and a.length >= b.length for a, b in itertools.pairwise(told))
    assert told[0].length > told[-1].length == timeline.makespan
    assert timeline.starts == simulate(tasks, machine, searched(steps=200)).starts


def test_a_search_ends_with_its_budget_and_refuses_one_that_is_none() -> None:
    r = random.Random(3)
    tasks = Tasks(
        [
            Task(name=str(i), cost=r.randint(1, 9), after=[str(j) for j in range(i) if r.random() < 0.1])
            for i in range(60)
        ]
    )
    assert simulate(tasks, 3, searched(budget=0.02)).faults() == []
    for wrong in ({"budget": 0}, {"budget": float("nan")}, {"steps": 0}, {"steps": 2.5}):
        with pytest.raises(ScheduleError, match="search: "):
            searched(**wrong)  # type: ignore[arg-type]
