"""Runs on the streams of a device: the host hands every task over without waiting, and events keep order between streams."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Protocol

from .. import backend, events
from ..events import Receiver
from .machines import Machine, Resource
from .policies import Policy
from .simulator import simulate
from .tasks import Tasks
from .timeline import Timeline
from .values import Values


def device_of_inputs(values: Values) -> str:
    """The device that a run computes on: where its inputs lie."""
    found = sorted({backend.device_of(value) for value in values.inputs.values() if backend.is_array(value)})
    others = [device for device in found if device != "cpu"]
    if len(others) > 1:
        raise ValueError(f"run: the inputs lie on {' and '.join(others)}; move them to one device with .to(…)")
    return others[0] if others else "cpu"


def execute_on_streams(tasks: Tasks, values: Values, device: str, streams: int, policy: Policy) -> Timeline:
    """Run tasks on so many streams of a device.

    A device does not say when a kernel ends, unless somebody waits. So the policy decides on a simulated run with the costs of
    the tasks, and the host hands the tasks over in that order, to those streams. What happens then follows from the device:
    ``submitted``, ``starts`` and ``ends`` are its own times. At the end the host waits for all of it.
    """
    kind = device.partition(":")[0]
    machine = Machine((Resource(device, kind, capacity=streams),))
    expected = simulate(tasks, machine, policy, tell=_nobody)
    side = _OnCuda(device, streams) if kind == "cuda" else _OnSimulated(device, streams)
    with backend.current(device):
        return _Submission(tasks, values, expected, side).run()


def _nobody(_event: events.Event) -> None:
    pass


class _Side(Protocol):
    """What a run needs of a device: its streams and clocks. Times are seconds since the run began."""

    streams: list[Any]
    keeps_what_is_read: bool  # whether memory that queued work still reads is not given away when its array is dropped

    def now(self) -> float: ...
    def begin(self) -> Any: ...
    def submit(self, stream: Any, call: Callable[[], Any]) -> Any: ...
    def finish(self) -> None: ...
    def span(self, mark: Any) -> tuple[float, float]: ...


class _OnSimulated:
    """A simulated device tells when work will run as soon as it is queued, in virtual time."""

    keeps_what_is_read = True

    def __init__(self, device: str, streams: int) -> None:
        from .. import simulated  # loaded only when asked for

        self.host, self.device = simulated.host, simulated.device(int(device.partition(":")[2]))
        self.streams = [simulated.Stream(self.device) for _ in range(streams)]
        self.began = self.host.now

    def now(self) -> float:
        return self.host.now - self.began

    def begin(self) -> Any:
        return self.device.default_stream.record()

    def submit(self, stream: Any, call: Callable[[], Any]) -> tuple[float, float]:
        told: list[Any] = []
        with stream, events.switched(receiver=_both(told.append, events.receiver())):
            call()
        work = [event for event in told if isinstance(event, events.WorkQueued | events.Transferred)]
        start, end = (
            min((e.start for e in work), default=self.host.now),
            max((e.end for e in work), default=self.host.now),
        )
        return start - self.began, end - self.began

    def finish(self) -> None:
        self.device.synchronize()

    def span(self, mark: tuple[float, float]) -> tuple[float, float]:
        return mark


class _OnCuda:
    """A GPU keeps times in events, which can be read when it is done. The one before a task may come before the task starts.

    CuPy gives the memory of a dropped array to whatever its stream allocates next, while another stream may still read it; so
    nothing is dropped before the end.
    """

    keeps_what_is_read = False

    def __init__(self, device: str, streams: int) -> None:
        self.cuda = backend.library_of(device).cuda
        self.device = self.cuda.Device(int(device.partition(":")[2]))
        with backend.current(device):
            self.streams = [self.cuda.Stream(non_blocking=True) for _ in range(streams)]
            self.device.synchronize()
            self.origin = self.cuda.Stream.null.record()
        self.began = perf_counter()

    def now(self) -> float:
        return perf_counter() - self.began

    def begin(self) -> Any:
        return self.origin

    def submit(self, stream: Any, call: Callable[[], Any]) -> tuple[Any, Any]:
        before = stream.record()
        with stream:
            call()
        return before, stream.record()

    def finish(self) -> None:
        self.device.synchronize()

    def span(self, mark: tuple[Any, Any]) -> tuple[float, float]:
        start, end = (self.cuda.get_elapsed_time(self.origin, event) / 1000 for event in mark)
        return start, end


class _Submission:
    """The host's side of a run: what was queued when, and which events it put between streams."""

    def __init__(self, tasks: Tasks, values: Values, expected: Timeline, side: _Side) -> None:
        self.tasks, self.values, self.expected, self.side = tasks, values, expected, side
        self.done: dict[int, Any] = {}  # the event behind each task, for streams that wait for it
        self.marks: dict[int, Any] = {}  # when each task ran, as the device notes it
        self.submitted = [math.nan] * len(tasks)

    def run(self) -> Timeline:
        """Hand everything over, wait, and say what happened when."""
        inputs_are_there = self.side.begin()
        for stream in self.side.streams:
            stream.wait_event(inputs_are_there)
        last_used = _last_used(self.tasks, self.expected.order)
        for task, freed in zip(self.expected.order, last_used, strict=True):
            self._submit(task)
            for producer in freed if self.side.keeps_what_is_read else ():
                self.values.drop(producer)
        self.side.finish()
        if not self.side.keeps_what_is_read:
            for producer in (one for freed in last_used for one in freed):
                self.values.drop(producer)
        spans = [self.side.span(self.marks[task]) for task in range(len(self.tasks))]
        return Timeline(
            self.tasks, self.expected.machine, self.expected.policy, [start for start, _ in spans], [end for _, end in spans],
            self.expected.lanes, simulated=False, submitted=self.submitted,
        )  # fmt: skip

    def _submit(self, task: int) -> None:
        lane = self.expected.lanes[task]
        stream = self.side.streams[lane]
        for other in self.tasks.predecessors[task]:
            if self.expected.lanes[other] != lane:
                stream.wait_event(self.done[other])
        self.submitted[task] = self.side.now()
        self.marks[task] = self.side.submit(stream, lambda: self.values.call(task))
        self.done[task] = stream.record()
        if self.values.unweighed[task] is not None:
            self.values.weigh(task)


def _last_used(tasks: Tasks, order: Sequence[int]) -> list[list[int]]:
    """For each place in an order the tasks whose results nobody uses afterwards."""
    position = {task: place for place, task in enumerate(order)}
    found: list[list[int]] = [[] for _ in order]
    for producer, users in enumerate(tasks.users):
        if producer not in tasks.kept:
            found[max(position[user] for user in users)].append(producer)
    return found


def _both(one: Receiver, other: Receiver | None) -> Receiver:
    def tell(event: events.Event) -> None:
        one(event)
        if other is not None:
            other(event)

    return tell
