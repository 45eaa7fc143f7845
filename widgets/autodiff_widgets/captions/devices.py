"""What is said of simulated devices: kernels in their queues, copies between devices, and where the host waits."""

from __future__ import annotations

from collections.abc import Mapping

from autodiff_lab import events
from autodiff_lab.events import Event

from ..values import bytes_text, time_text
from .sentences import Names, says

_TOLD_BY_HOST = (
    "what a simulated device is told is drawn as a timeline, from the tasks of a schedule and not from these"
)
NOT_SHOWN: Mapping[type[Event], str] = {
    events.WorkQueued: _TOLD_BY_HOST, events.Transferred: _TOLD_BY_HOST, events.Synchronised: _TOLD_BY_HOST,
}  # fmt: skip


@says(events.WorkQueued)
def _work_queued(event: events.WorkQueued, name: Names) -> str:
    when = f"from {time_text(event.start)} to {time_text(event.end)}"
    return f"At {time_text(event.queued)} the host queues `{event.name}` on {event.device}, where it runs {when}."


@says(events.Transferred)
def _transferred(event: events.Transferred, name: Names) -> str:
    took = time_text(event.end - event.start)
    return f"{bytes_text(event.nbytes)} are copied from {event.source} to {event.target}, in {took}."


@says(events.Synchronised)
def _synchronised(event: events.Synchronised, name: Names) -> str:
    waited = event.end - event.start
    took = f"waits {time_text(waited)}" if waited else "need not wait"
    return f"`{event.asked_by}` needs what {event.device} has computed: the host {took}."
