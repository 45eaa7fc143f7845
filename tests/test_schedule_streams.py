"""Runs on streams of the simulated device: results of the CPU, order kept by events, and submission that does not wait."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import backend, events, ops, schedule
from autodiff_lab.schedule.streams import execute_on_streams
from autodiff_lab.schedule.values import Values

pytestmark = pytest.mark.alone


def branches(x: Any, weights: list[Any]) -> Any:
    results = [ops.tanh(ops.matmul(ops.tanh(ops.matmul(x, weight)), weight)) for weight in weights]
    total = results[0]
    for result in results[1:]:
        total = total + result
    return total.sum()


def case() -> tuple[list[Any], list[Any]]:
    """Arguments on the CPU, and the same on the device."""
    random = np.random.default_rng(0)
    here = [random.standard_normal((20, 20)).astype(np.float32) for _ in range(4)]
    return here, [ad.tensor(array, device="sim:0").data for array in here]


@pytest.mark.parametrize("policy", ["in_order", "lifo", "critical_path", "heft"])
@pytest.mark.parametrize("streams", [1, 2, 3])
def test_streams_give_what_the_cpu_gives_and_a_legal_timeline(policy: str, streams: int) -> None:
    here, there = case()
    gradient = ad.value_and_grad(branches, argnums=(0, 1))
    expected, _ = schedule.run(ad.record(gradient, here[0], here[1:]), here, workers=1)
    outputs, timeline = schedule.run(ad.record(gradient, there[0], there[1:]), there, streams, policy)
    same: list[bool] = []
    ad.map_leaves(lambda a, b: same.append(np.array_equal(a.get(), b)), outputs, expected)
    assert all(same) and len(same) == 5
    assert timeline.faults() == [] and not timeline.simulated and len(timeline.machine.lanes) == streams


def test_the_host_hands_everything_over_before_the_device_is_done_and_waits_once() -> None:
    _, there = case()
    graph = ad.record(branches, there[0], there[1:])
    with ad.listen() as told:
        _, timeline = schedule.run(graph, there, 1, "critical_path")
    assert timeline.submitted is not None and max(timeline.submitted) < timeline.makespan / 2
    assert all(queued <= start for queued, start in zip(timeline.submitted, timeline.starts, strict=True))
    waits = [event for event in told if isinstance(event, events.Synchronised)]
    assert [wait.asked_by for wait in waits] == ["synchronize()"] and waits[0].end > waits[0].start


def test_two_streams_overlap_what_one_runs_in_turn() -> None:
    _, there = case()
    graph = ad.record(branches, there[0], there[1:])
    one, two = (schedule.run(graph, there, streams, "critical_path")[1] for streams in (1, 2))
    assert 1.5 < two.speedup_over(one) <= 2


def test_a_value_leaves_the_device_after_its_last_use() -> None:
    from autodiff_lab import simulated

    x = ad.tensor(np.ones(1000), device="sim:7").data  # nothing else lies there

    def chain(x: Any) -> Any:
        for _ in range(20):
            x = x * 2.0
        return x

    graph, device = ad.record(chain, x), simulated.device(7)
    before = device.memory_used
    outputs, timeline = schedule.run(graph, [x], 1)
    assert device.memory_used - before == 8000 and timeline.peak == 16000
    assert outputs.get()[0] == 2.0**20


def test_inputs_on_two_devices_are_refused() -> None:
    arrays = [ad.tensor(1.0, device=device).data for device in ("sim:0", "sim:1")]
    tasks = schedule.Tasks([schedule.Task(lambda a, b: a, name="t", reads=["a", "b"])], inputs=["a", "b"])
    with pytest.raises(ValueError, match=r"inputs lie on sim:0 and sim:1"):
        schedule.run(tasks, dict(zip("ab", arrays, strict=True)))


# ------------------------------------------------------------------------------------------- CUDA's calls, on a stand-in


class StandInForCuda:
    """The calls of ``cupy.cuda`` that a run makes, on a clock of its own: each task takes a millisecond of its stream."""

    class Event:
        def __init__(self, time: float) -> None:
            self.time = time

    class Stream:
        null: Any

        def __init__(self, non_blocking: bool = False) -> None:
            self.time, self.is_entered = 0.0, False

        def __enter__(self) -> None:
            self.is_entered = True

        def __exit__(self, *_: object) -> None:
            self.is_entered = False
            self.time += 1e-3

        def record(self) -> Any:
            return StandInForCuda.Event(self.time)

        def wait_event(self, event: Any) -> None:
            self.time = max(self.time, event.time)

    class Device:
        waits = 0

        def __init__(self, number: int) -> None:
            assert number == 0

        def synchronize(self) -> None:
            StandInForCuda.Device.waits += 1

    @staticmethod
    def get_elapsed_time(start: Any, end: Any) -> float:
        return float(1e3 * (end.time - start.time))  # CUDA's unit is the millisecond


StandInForCuda.Stream.null = StandInForCuda.Stream()


@pytest.mark.parametrize("streams", [1, 2, 3])
def test_on_cuda_events_keep_the_order_between_streams_and_give_the_times(
    monkeypatch: pytest.MonkeyPatch, streams: int
) -> None:
    monkeypatch.setattr(backend, "library_of", lambda device: SimpleNamespace(cuda=StandInForCuda))
    monkeypatch.setattr(backend, "current", lambda device: nullcontext())
    arguments, _ = case()
    graph = ad.record(branches, arguments[0], arguments[1:])
    tasks = schedule.from_graph(graph)
    named = {graph.nodes[place].name: value for place, value in zip(graph.inputs, arguments, strict=True)}
    values = Values(tasks, named)
    waits = StandInForCuda.Device.waits
    timeline = execute_on_streams(tasks, values, "cuda:0", streams, schedule.POLICIES["critical_path"])
    assert timeline.faults() == [] and not timeline.simulated and timeline.submitted is not None
    assert timeline.work == pytest.approx(len(tasks) * 1e-3)
    assert StandInForCuda.Device.waits == waits + 2, "once before the clock starts, and once for everything"
    (result,) = (values.named[tasks[task].written[0]] for task in tasks.kept)
    assert np.array_equal(result, branches(arguments[0], arguments[1:]))
    assert len(values.named) == len(named) + 1, "what nobody reads any more is dropped at the end"
