"""The bytes that are kept for gradient rules, step by step: reverse mode saves and frees, forward mode reads at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import autodiff_lab as ad
from autodiff_lab import events
from autodiff_lab.events import Event

from . import shapes
from .facts import Rows
from .routes import Box
from .scene import Change, Pane
from .shapes import Text
from .values import bytes_text

Strip = Literal["forward", "backward", "tangents"]
HEADINGS: dict[Strip, str] = {
    "forward": "Forward pass: saves for later",
    "backward": "Reverse sweep: reads and frees",
    "tangents": "Forward mode: reads at once, keeps nothing",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """How many bytes are kept at an event."""

    event: Event
    strip: Strip
    nbytes: int


def moments_of_reverse(heard: Sequence[Event]) -> list[Moment]:
    """The bytes that are saved after each op of the forward pass, while each op's rules run, and when the sweep is over.

    A value that several ops save counts once. Of a forward pass that was not heard, what the sweep frees is known.

    >>> x = ad.tensor(3.0, requires_grad=True)
    >>> with ad.listen() as heard:
    ...     gradients = ad.sweep(ad.ops.exp(x * x))
    >>> [(moment.strip, moment.nbytes) for moment in moments_of_reverse(heard)]
    [('forward', 8), ('forward', 16), ('backward', 16), ('backward', 8), ('backward', 0)]
    """
    moments: list[Moment] = []
    saved: set[int] = set()
    is_heard = any(isinstance(event, events.OpCalled) for event in heard)
    kept = 0 if is_heard else sum(event.nbytes for event in heard if isinstance(event, events.SavedValueReleased))
    is_over = False
    for event in heard:
        match event:
            case events.OpCalled():
                fresh = {id(array): array.nbytes for array in event.saved.values() if id(array) not in saved}
                saved |= set(fresh)
                kept += sum(fresh.values())
                moments.append(Moment(event, "forward", kept))
            case events.CotangentComplete():
                moments.append(Moment(event, "backward", kept))
            case events.SavedValueReleased():
                kept -= event.nbytes
            case events.LeafReached() if not is_over:
                is_over = True
                moments.append(Moment(event, "backward", kept))
    return moments


def moments_of_forward(told: Sequence[Event]) -> list[Moment]:
    """The bytes that the JVP rules of each op read; they run right after the op, so that nothing is kept for later.

    >>> with ad.listen() as told:
    ...     pushed = ad.jvp(lambda x: ad.ops.exp(x * x), (3.0,), (1.0,))
    >>> [moment.nbytes for moment in moments_of_forward(told)]
    [8, 8]
    """
    calls = {event.serial: event for event in told if isinstance(event, events.OpCalled)}
    read: dict[int, dict[int, int]] = {}  # op call -> array -> bytes
    first: dict[int, Event] = {}
    for event in told:
        if isinstance(event, events.TangentPushed) and event.serial in calls:
            first.setdefault(event.serial, event)
            arrays = _arrays(calls[event.serial])
            found = {id(arrays[name]): arrays[name].nbytes for name in event.used if name in arrays}
            read.setdefault(event.serial, {}).update(found)
    return [Moment(event, "tangents", sum(read[serial].values())) for serial, event in first.items()]


def _arrays(call: events.OpCalled) -> Mapping[str, Any]:
    """The arrays that the rules of a call can read, by name."""
    names = ad.registry[call.op].operand_names(len(call.operands))
    values = dict(zip(names, call.operands, strict=True)) | {"out": call.value}
    return {name: value for name, value in values.items() if hasattr(value, "nbytes")}


class ByteBars:
    """The chart: a strip for each part of the run, one bar for each moment, all in one scale."""

    LEFT, TOP, HEIGHT, STRIP = 16.0, 60.0, 66.0, 112.0
    WIDTH = 380.0

    def __init__(self, moments: Sequence[Moment]) -> None:
        self.moments = moments
        self.strips = [strip for strip in HEADINGS if any(moment.strip == strip for moment in moments)]
        self.most = max((moment.nbytes for moment in moments), default=0)
        self._places = {id(moment.event): place for place, moment in enumerate(moments)}

    @property
    def pane(self) -> Pane:
        """The picture before the first step."""
        longest = max((self._count(strip) for strip in self.strips), default=1)
        step = min(max(self.WIDTH / longest, 2.0), 26.0)
        parts = [shapes.heading("Bytes held for gradient rules", self.LEFT, 30)]
        for number, strip in enumerate(self.strips):
            parts += self._strip(strip, self.TOP + self.STRIP * number, step)
        bottom = self.TOP + self.STRIP * len(self.strips)
        box = Box(0, self.LEFT, bottom - 10, self.WIDTH, 30)
        parts.append(shapes.row("bytes", box, [Text("held now", "label"), Text("0 B", "value", "now")]))
        return Pane(shapes.page(max(self.WIDTH, step * longest) + 2 * self.LEFT, bottom + 34, parts), "Bytes held")

    @property
    def facts(self) -> dict[str, Rows]:
        """The numbers of all bars, for the text twin."""
        rows = tuple(
            (HEADINGS[strip], ", ".join(bytes_text(moment.nbytes) for moment in self.moments if moment.strip == strip))
            for strip in self.strips
        )
        return {"bytes": rows} if rows else {}

    def hears(self, event: Event) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
        """What lasts and what shows for one step, where the event has a bar."""
        place = self._places.get(id(event))
        if place is None:
            return (self.ends() if isinstance(event, events.TangentReached) else ()), ()
        now = Change("bytes", None, {"now": bytes_text(self.moments[place].nbytes)})
        return (Change(f"bar.{place}", "done"), now), (Change(f"bar.{place}", "active"),)

    def ends(self) -> tuple[Change, ...]:
        """At the end of a run nothing is held that it still needs."""
        return (Change("bytes", None, {"now": "0 B"}),) if self.moments else ()

    def _count(self, strip: Strip) -> int:
        return sum(moment.strip == strip for moment in self.moments)

    def _strip(self, strip: Strip, top: float, step: float) -> list[str]:
        """Heading and bars of one part of the run."""
        most = max(moment.nbytes for moment in self.moments if moment.strip == strip)
        parts = [shapes.heading(f"{HEADINGS[strip]} · at most {bytes_text(most)}", self.LEFT, top, "detail")]
        inside = [place for place, moment in enumerate(self.moments) if moment.strip == strip]
        for number, place in enumerate(inside):
            nbytes = self.moments[place].nbytes
            height = 2.0 + (self.HEIGHT - 2.0) * nbytes / max(self.most, 1)
            box = Box(place, self.LEFT + step * number, top + 10 + self.HEIGHT - height, step * 0.8, height)
            css = {"forward": "forward", "backward": "backward", "tangents": "update"}[strip]
            parts.append(shapes.bar(f"bar.{place}", box, css, f"{bytes_text(nbytes)} held"))
        return parts
