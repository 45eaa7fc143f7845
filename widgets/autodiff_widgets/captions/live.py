"""What is said of code that is drawn while it runs: how far it is, that it is over, or where it ended."""

from __future__ import annotations

from collections.abc import Sequence

from autodiff_lab import events
from autodiff_lab.events import Event
from autodiff_lab.graph import Source

from .sentences import Names, counted, listed, says

NOT_YET = "Nothing has run yet."
NOTHING = "No op was called on a Tensor that requires a gradient."
WATCHING = "Run a cell that computes with Tensors: this view shows what it recorded. aw.watch(False) ends it."


@says(events.OpFailed)
def _op_failed(event: events.OpFailed, name: Names) -> str:
    return f"No result: {name.call(event.op, event.inputs)} ended with an error. {event.reason.rstrip('.')}."


def amount(told: Sequence[Event], left_out: int = 0) -> str:
    """How much ran.

    >>> amount([events.SweepStarted(3, 1.0)], left_out=2)
    '1 backward sweep and 2 events more that are not shown'
    """
    calls = sum(isinstance(event, events.OpCalled) for event in told)
    sweeps = sum(isinstance(event, events.SweepStarted) for event in told)
    parts = [counted(calls, "op call")] if calls or not sweeps else []
    parts += [counted(sweeps, "backward sweep")] if sweeps else []
    parts += [f"{left_out} events more that are not shown"] if left_out else []
    return listed(parts)


def running(so_far: str, last: str) -> str:
    """What is said while the run goes on."""
    return f"Running: {so_far} so far. {last}"


def over(so_far: str) -> str:
    """What is said when the run is over."""
    return f"The run is over: {so_far}."


def ended(error: BaseException, place: Source | None) -> str:
    """What is said where an error ended the run.

    >>> print(ended(KeyboardInterrupt(), None))
    The run ended with KeyboardInterrupt: it was stopped.
    Shown is what ran before it.
    """
    said = str(error).strip() or ("it was stopped" if isinstance(error, KeyboardInterrupt) else "it says nothing more")
    text = f"{type(error).__name__}: {said.splitlines()[0].rstrip('.')}."
    where = f" in `{str(place).replace('`', '')}`" if place else ""
    return f"The run ended{where} with {text}\nShown is what ran before it."
