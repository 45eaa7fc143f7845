"""Runs on a Dask cluster of two processes: results of one machine, legal timelines, and what is lost is made again or told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops, schedule
from autodiff_lab.layers import TransformerBlock
from autodiff_lab.schedule import ClusterError, ScheduleError, Task, run_on_cluster

pytestmark = pytest.mark.alone


@contextmanager
def two_workers() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="Dask, the extra [cluster], is not installed")
    settings: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**settings, scheduler_kwargs={"allowed_failures": 1}) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with two_workers() as client:
        yield client


@pytest.fixture(scope="module")
def doomed() -> Iterator[Any]:
    """A cluster for tests that kill workers: Dask starts them again, which may take long on a busy machine."""
    with two_workers() as client:
        yield client


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    used = request.getfixturevalue("doomed" if "doomed" in request.fixturenames else "client")
    yield
    deadline = time.monotonic() + 20
    while (left := used.run_on_scheduler(kept_by)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


def kept_by(dask_scheduler: Any) -> list[str]:
    return sorted(map(str, dask_scheduler.tasks))


def napping(seconds: float = 0.0) -> Callable[..., float]:
    def nap(*_: Any) -> float:
        time.sleep(seconds)
        return seconds

    return nap


def same(one: Any, other: Any) -> bool:
    found: list[bool] = []
    ad.map_leaves(lambda a, b: found.append(a.dtype == b.dtype and np.array_equal(a, b)), one, other)
    return bool(found) and all(found)


def towers(x: Any, weights: list[Any]) -> Any:
    results = [ops.tanh(ops.matmul(x, weight)) for weight in weights]
    return ops.concatenate(results, axis=0).sum() if len(results) > 1 else results[0].sum()


def towers_case() -> tuple[Any, list[Any]]:
    random = np.random.default_rng(0)
    arrays = [random.standard_normal((30, 30)).astype(np.float32) for _ in range(4)]
    return ad.record(ad.value_and_grad(towers, argnums=(0, 1)), arrays[0], arrays[1:]), arrays


# ------------------------------------------------------------------------------------------------- results and timelines


@pytest.mark.parametrize("policy", ["critical_path", "lifo", "heft", "level_barrier", "work_stealing"])
def test_every_kind_of_policy_gives_the_numbers_of_one_machine_and_a_legal_timeline(client: Any, policy: str) -> None:
    graph, arrays = towers_case()
    expected, _ = schedule.run(graph, arrays, workers=1)
    outputs, timeline = run_on_cluster(graph, arrays, client, policy)
    assert same(outputs, expected)
    assert timeline.faults() == [] and not timeline.simulated and timeline.clock_error is not None
    assert {span.name for span in timeline.spans if span.phase != "comm"} == {
        task.name for task in schedule.from_graph(graph)
    }


def test_a_transformer_trained_on_two_workers_has_the_same_bits(client: Any) -> None:
    block = TransformerBlock(16, 2, seed=0)
    x = np.random.default_rng(0).standard_normal((2, 5, 16)).astype(np.float32)
    graph = ad.record(ad.value_and_grad(lambda x: (block(x) ** 2).sum()), x)
    expected, _ = schedule.run(graph, [x], workers=1)
    outputs, timeline = run_on_cluster(graph, [x], client, "critical_path")
    assert same(outputs, expected) and timeline.faults() == []


def turned(x: Any) -> Any:
    return x.transpose(1, 2, 0)[:, ::-1]


def layout(x: Any) -> tuple[int, ...]:
    return tuple(np.sign(x.strides) * np.argsort(np.argsort(np.abs(x.strides))))


def test_an_array_lies_on_another_worker_as_it_lay_on_the_first(client: Any) -> None:
    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    tasks = {
        "x": Task(turned, args=(x,), on="worker0"),
        "here": Task(layout, after=["x"], on="worker0"),
        "there": Task(layout, after=["x"], on="worker1"),
        "value": Task(np.negative, after=["x"], on="worker1"),
    }
    outputs, timeline = run_on_cluster(tasks, client=client)
    assert outputs["here"] == outputs["there"] == layout(turned(x))
    assert np.array_equal(outputs["value"], -turned(x)) and timeline.faults() == []


def test_tasks_are_given_what_run_gives_them(client: Any) -> None:
    def tasks() -> schedule.Tasks:
        return schedule.Tasks(
            [
                Task(lambda x: (x, x + 1), name="split", reads=["x"], writes=["low", "high"]),
                Task(lambda *got: got, name="gather", args=(5,), reads=["x", "high"], after=["split"]),
                Task(lambda low: low * 10, name="again", reads=["low"], writes=["low"]),
                Task(lambda low: low, name="last", reads=["low"]),
            ],
            inputs=["x"],
            outputs=["high", "low"],
        )

    expected, _ = schedule.run(tasks(), {"x": 3})
    outputs, timeline = run_on_cluster(tasks(), {"x": 3}, client)
    assert outputs == expected == {"high": 4, "low": 30, "gather": (5, 3, 4, 3), "last": 30}
    assert timeline.faults() == []


def test_the_highest_priority_runs_first(client: Any) -> None:
    tasks = {f"t{number}": Task(napping(), priority=number * 7 % 20, on="worker0") for number in range(20)}
    _, timeline = run_on_cluster(tasks, client=client, policy="priority")
    names = [timeline.tasks.name(task) for task in timeline.order]
    assert names == sorted(tasks, key=lambda name: -tasks[name].priority)


@pytest.mark.parametrize("policy", ["heft", "in_order", "serial"])
def test_where_a_policy_places_tasks_the_workers_keep_its_places_and_its_order(client: Any, policy: str) -> None:
    tasks = {
        f"t{number}": Task(napping(), cost=1 + number % 3, after=[f"t{number - 3}"][: number // 3])
        for number in range(9)
    }
    expected = schedule.simulate(
        tasks, schedule.Machine((schedule.Resource("worker0"), schedule.Resource("worker1"))), policy
    )
    _, timeline = run_on_cluster(tasks, client=client, policy=policy)

    def on_each(found: schedule.Timeline) -> dict[str, list[str]]:
        spans = [span for span in found.spans if span.phase != "comm"]
        return {name: [span.name for span in spans if span.resource == name] for name in ("worker0", "worker1")}

    assert on_each(timeline) == on_each(expected) and timeline.faults() == []


def test_what_travels_is_drawn_exported_and_can_be_simulated(client: Any) -> None:
    tasks = {
        "made": Task(np.ones, args=(1000,), on="worker0", nbytes=8000),
        "used": Task(np.sum, after=["made"], on="worker1", nbytes=8),
    }
    outputs, timeline = run_on_cluster(tasks, client=client)
    assert outputs == {"used": 1000.0}
    made, moved, used = timeline.spans
    assert (moved.name, moved.phase, moved.resource) == ("made->worker1", "comm", "worker0->worker1")
    assert made.end <= moved.start < moved.end <= used.start
    again = schedule.simulate(timeline.tasks, timeline.machine, "critical_path")
    assert [span.name for span in again.spans] == ["made", "made->worker1", "used"] and again.faults() == []
    named = {event["name"] for event in json.loads(timeline.to_chrome_trace())["traceEvents"]}
    assert {"made", "made->worker1", "used"} <= named
    from autodiff_widgets import TimelineView

    assert "made->worker1" in TimelineView(timeline).text()


def test_a_large_constant_is_sent_once_and_a_small_one_with_its_task(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    scatter = type(client).scatter
    monkeypatch.setattr(
        type(client), "scatter", lambda self, data, **how: sent.extend(data) or scatter(self, data, **how)
    )
    large, small = np.ones(200_000, np.float32), np.ones(3)
    tasks = {f"t{number}": Task(np.dot, args=(large, large)) for number in range(4)} | {
        "s": Task(np.sum, args=(small,))
    }
    outputs, _ = run_on_cluster(tasks, client=client)
    assert len(sent) == 1 and outputs["t3"] == 200_000 and outputs["s"] == 3


def test_the_machine_of_a_cluster_has_its_workers_and_measured_travel_times(client: Any) -> None:
    machine = schedule.cluster_machine(client, nbytes=1_000_000)
    assert [resource.name for resource in machine.resources] == ["worker0", "worker1"]
    assert set(machine.transfers) == {("worker0", "worker1"), ("worker1", "worker0")}
    assert all(way.alpha > 0 and way.beta >= 0 for way in machine.transfers.values())
    _, timeline = run_on_cluster({"a": Task(napping())}, client=client, policy="heft", machine=machine)
    assert timeline.faults() == []


# --------------------------------------------------------------------------------------------------- ops of one's own


def test_an_op_that_only_the_caller_has_is_sent(client: Any) -> None:
    @ad.op
    def cubed(xp: Any, x: Any, *, by: float = 1.0) -> Any:
        """x³ · by."""
        return by * x * x * x

    cubed.shape_rule(lambda x: x)  # type: ignore[attr-defined]

    def doubled(xp: Any, x: Any, *, by: float = 1.0) -> Any:
        return 2 * by * x * x * x

    ad.registry["cubed"].kernel("cpu", dtype="float32")(doubled)
    for dtype in (np.float64, np.float32):
        x = np.arange(3.0, dtype=dtype)
        graph = ad.record(lambda x: ops.cubed(x, by=2.0), x)  # type: ignore[attr-defined]
        assert same(run_on_cluster(graph, [x], client)[0], schedule.run(graph, [x])[0])


def test_a_kernel_that_cannot_be_sent_is_named(client: Any) -> None:
    lock = threading.Lock()

    @ad.op
    def locked(xp: Any, x: Any) -> Any:
        """x, under a lock."""
        with lock:
            return x

    locked.shape_rule(lambda x: x)  # type: ignore[attr-defined]
    graph = ad.record(lambda x: ops.locked(x), np.ones(3))  # type: ignore[attr-defined]
    with pytest.raises(ScheduleError, match=r"task 'locked_1' cannot be sent: the kernel of op locked does not pickle"):
        run_on_cluster(graph, [np.ones(3)], client)


# ---------------------------------------------------------------------------------------------------- what goes wrong


def test_what_a_task_raises_is_raised_here_with_its_line_and_a_timeline(client: Any) -> None:
    @ad.op
    def refusing(xp: Any, x: Any) -> Any:
        """Raises."""
        raise ZeroDivisionError("no")

    refusing.shape_rule(lambda x: x)  # type: ignore[attr-defined]
    graph = ad.record(lambda x: ops.refusing(ops.tanh(x)) + 1, np.ones(3))  # type: ignore[attr-defined]
    with pytest.raises(ZeroDivisionError, match="no") as caught:
        run_on_cluster(graph, [np.ones(3)], client)
    assert (
        "in task 'refusing_2'" in caught.value.__notes__[0] and "test_schedule_cluster.py" in caught.value.__notes__[0]
    )
    timeline = caught.value.timeline  # type: ignore[attr-defined]
    became = {timeline.tasks.name(task): status for task, status in timeline.statuses.items()}
    assert became == {"refusing_2": "failed", "add_4": "skipped"} and timeline.faults() == []


@pytest.mark.parametrize("policy", ["critical_path", "heft"])
def test_a_worker_that_is_killed_is_made_up_for(doomed: Any, tmp_path: Path, policy: str) -> None:
    marker = tmp_path / "killed"

    def kill_once(x: int) -> int:
        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return x + 1

    tasks: dict[str, Task] = {"a": Task(lambda: 1)}
    tasks |= {f"b{number}": Task(napping(), after=["a"]) for number in range(4)}
    tasks |= {"kill": Task(kill_once, after=["a"]), "end": Task(lambda x, *_: x, after=["kill", *list(tasks)[1:]])}
    outputs, timeline = run_on_cluster(tasks, client=doomed, policy=policy, timeout=60)
    assert marker.exists() and outputs == {"end": 2} and timeline.faults() == []


def test_a_task_that_kills_every_worker_is_named(doomed: Any) -> None:
    tasks = {"a": Task(lambda: 1), "fatal": Task(lambda x: os.kill(os.getpid(), signal.SIGKILL), after=["a"])}
    with pytest.raises(
        ClusterError, match=r"task 'fatal' was lost with 2 workers, .* Try it at home with schedule\.run"
    ):
        run_on_cluster(tasks, client=doomed, timeout=60)


def losing(client: Any, times: int) -> Callable[[], None]:
    """Makes a client lose the input x as often as asked, as if every worker that had it had died."""

    def lose() -> None:
        future_of = pytest.importorskip("distributed").Future
        deadline = time.monotonic() + 20
        lost: set[str] = set()
        while len(lost) < times and time.monotonic() < deadline:
            found = {str(key) for key in list(client.futures) if str(key).startswith("x-")} - lost
            time.sleep(0.3)
            client.cancel([future_of(key, client) for key in found], force=True)
            lost |= found

    return lose


@pytest.mark.parametrize("times", [1, 3])
def test_inputs_that_every_worker_lost_are_sent_again_and_then_named(client: Any, times: int) -> None:
    losses = threading.Thread(target=losing(client, times))
    losses.start()
    tasks = schedule.Tasks([Task(napping(1.0), name="slow", reads=["x"])], inputs=["x"])
    if times == 1:
        assert run_on_cluster(tasks, {"x": np.ones(3)}, client, timeout=20)[0] == {"slow": 1.0}
    else:
        with pytest.raises(
            ClusterError, match=r"task 'slow' cannot be computed any more.* that were lost: 'x'"
        ) as caught:
            run_on_cluster(tasks, {"x": np.ones(3)}, client, timeout=20)
        assert any("begun 3 times" in note for note in caught.value.__notes__)
    losses.join()


def test_a_run_in_which_nothing_happens_ends_and_says_what_is_not_done(client: Any) -> None:
    tasks = {"slow": Task(napping(3.0))}
    with pytest.raises(ClusterError, match=r"no task ended for 0\.5 s; not done: 'slow'.* workers now: 2"):
        run_on_cluster(tasks, client=client, timeout=0.5)


def test_the_stop_button_ends_a_run_at_once(client: Any) -> None:
    def press(caller: int) -> None:
        os.kill(caller, signal.SIGINT)
        time.sleep(2.0)

    tasks = {"slow": Task(press, args=(os.getpid(),)), "after": Task(napping(), after=["slow"])}
    with pytest.raises(KeyboardInterrupt) as caught:
        run_on_cluster(tasks, client=client)
    assert caught.value.timeline.statuses == {0: "cancelled", 1: "cancelled"}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("tasks", "inputs", "says"),
    [
        ({"a": Task(on="gpu0")}, {}, "task 'a' can run on no resource"),
        ({"a": Task(napping(), reads=["x"])}, {}, "reads 'x'"),
        ({"a": Task(threading.Lock().acquire)}, {}, "task 'a' cannot be sent: its function, or an argument"),
        (ad.plan(ad.record(lambda x: x * x, 2.0)), [2.0], r"give its graph, as in plan\.graph"),
    ],
    ids=["nowhere", "no input", "no pickle", "a plan"],
)
def test_what_cannot_run_there_is_refused_before_anything_runs(client: Any, tasks: Any, inputs: Any, says: str) -> None:
    with pytest.raises(ScheduleError, match=says):
        run_on_cluster(tasks, inputs, client)


def test_without_dask_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ScheduleError, match=r'pip install "autodiff-lab\[cluster\]"'):
        run_on_cluster({"a": Task(napping())})


def test_the_library_and_its_schedules_load_no_dask() -> None:
    code = "import sys, autodiff_lab.schedule; print([m for m in sys.modules if m.startswith(('dask', 'distributed'))])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
