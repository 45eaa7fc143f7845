"""Runs on the streams of a device: the host hands every task over without waiting, and events keep order between streams."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

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
    found = sorted({backend.device_of(value) for value in values.named.values() if backend.is_array(value)})
    others = [device for device in found if device != "cpu"]
    if len(others) > 1:
        raise ValueError(f"run: the inputs lie on {' and '.join(others)}; move them to one device with .to(…)")
    return others[0] if others else "cpu"


def execute_on_streams(tasks: Tasks, values: Values, device: str, streams: int, policy: Policy) -> Timeline:
    """Run tasks on so many streams of a simulated device.

    A device does not say when a kernel ends, unless somebody waits. So the policy decides on a simulated run with the costs of
    the tasks, and the host hands the tasks over in that order, to those streams. What happens then follows from the device:
    ``submitted``, ``starts`` and ``ends`` are its own times. At the end the host waits for all of it.
    """
    if not device.startswith("sim:"):
        raise ValueError(
            f"run: the inputs lie on {device}; runs on streams are for sim:N, threads for cpu: move them with .to(…)"
        )
    machine = Machine((Resource(device, "sim", capacity=streams),))
    expected = simulate(tasks, machine, policy, tell=_nobody)
    return _Submission(tasks, values, expected).run()


def _nobody(_event: events.Event) -> None:
    pass


class _Submission:
    """The host's side of a run: what was queued when, and which events it put between streams."""

    def __init__(self, tasks: Tasks, values: Values, expected: Timeline) -> None:
        from .. import simulated  # loaded only when asked for

        self.tasks, self.values, self.expected = tasks, values, expected
        self.host = simulated.host
        self.device = simulated.device(int(expected.machine.resources[0].name.partition(":")[2]))
        self.streams = [simulated.Stream(self.device) for _ in expected.machine.lanes]
        self.done: dict[int, Any] = {}  # the event behind each task, for streams that wait for it
        self.began = self.host.now
        self.starts, self.ends, self.submitted = ([math.nan] * len(tasks) for _ in range(3))

    def run(self) -> Timeline:
        """Hand everything over, wait, and say what happened when."""
        inputs_are_there = self.device.default_stream.record()
        for stream in self.streams:
            stream.wait_event(inputs_are_there)
        for task, freed in zip(self.expected.order, _last_used(self.tasks, self.expected.order), strict=True):
            self._submit(task)
            for producer in freed:  # the device keeps what queued work still reads
                self.values.drop(producer)
        self.device.synchronize()
        return Timeline(
            self.tasks, self.expected.machine, self.expected.policy, self.starts, self.ends, self.expected.lanes,
            simulated=False, submitted=self.submitted,
        )  # fmt: skip

    def _submit(self, task: int) -> None:
        lane = self.expected.lanes[task]
        told: list[Any] = []
        stream = self.streams[lane]
        for other in self.tasks.predecessors[task]:
            if self.expected.lanes[other] != lane:
                stream.wait_event(self.done[other])
        self.submitted[task] = self.host.now - self.began
        with stream, events.switched(receiver=_both(told.append, _listener())):
            self.values.call(task)
        self.done[task] = stream.record()
        if self.values.unweighed[task] is not None:
            self.values.weigh(task)
        work = [event for event in told if isinstance(event, events.WorkQueued | events.Transferred)]
        self.starts[task] = min((event.start for event in work), default=self.host.now) - self.began
        self.ends[task] = max((event.end for event in work), default=self.host.now) - self.began


def _last_used(tasks: Tasks, order: Sequence[int]) -> list[list[int]]:
    """For each place in an order the tasks whose results nobody uses afterwards."""
    position = {task: place for place, task in enumerate(order)}
    found: list[list[int]] = [[] for _ in order]
    for producer, users in enumerate(tasks.users):
        if producer not in tasks.kept:
            found[max(position[user] for user in users)].append(producer)
    return found


def _listener() -> Receiver | None:
    now = events.context.get()
    return now.receiver if now else None


def _both(one: Receiver, other: Receiver | None) -> Receiver:
    def tell(event: events.Event) -> None:
        one(event)
        if other is not None:
            other(event)

    return tell
