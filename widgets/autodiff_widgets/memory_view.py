"""MemoryView: how many bytes live on each resource over time, the peak, and what lives at each moment."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

from autodiff_lab.schedule.timeline import LiveBytes, Timeline

from . import shapes
from .captions import timelines as said
from .captions.sentences import and_note, of_one
from .facts import Rows
from .plots import Axis, Plot
from .questions import in_words
from .routes import Box
from .scene import Change, Pane, Question, Scene
from .shapes import shortened, writable
from .steps import Listing, Row, Steps, listings_pane
from .tasks_shown import task_names
from .timeline_view import checked_timelines, timeline_names, timeline_title
from .values import bytes_text, bytes_unit, time_text, time_unit
from .view import View

WIDTH, HEIGHT, LEFT, RIGHT, HEAD, FOOT = 620.0, 110.0, 74.0, 40.0, 66.0, 50.0  # px: of each strip
MOST_STEPS = 600  # moments that are stepped through
MOST_STRIPS = 8  # resources that have a strip of their own
ALIVE = 12  # rows of the list of what lives

LEGEND = (("active", "this moment"),)


class MemoryView(View):
    """How many bytes live over time: of all resources together and of each, with the peak and what lives then.

    A result lives from the start of its task to the end of its last user. Steps go from one change to the next. For a real run
    the bytes are those that were measured.

    Args:
        timeline: what ``schedule.simulate`` or ``schedule.run`` gives.
        other: a second timeline, drawn below on the same axes.

    >>> from autodiff_lab import schedule
    >>> tasks = {"a": schedule.Task(nbytes=8), "b": schedule.Task(after=["a"], nbytes=4)}
    >>> print(MemoryView(schedule.simulate(tasks, 1)).frames[2].caption)
    At 1 s `b` takes 4 B: 12 B live. This is the peak.
    """

    def __init__(self, timeline: Timeline, other: Timeline | None = None, **traits: Any) -> None:
        self.timelines = checked_timelines("MemoryView", timeline, other)
        super().__init__(memory_scene(self.timelines), **traits)


def memory_scene(timelines: Sequence[Timeline]) -> Scene:
    """The scene of one timeline, or of two on the same axes."""
    strips = [strip for timeline in timelines for strip in _strips(timeline, len(timelines) > 1)]
    across = Axis(0.0, max(timeline.makespan for timeline in timelines) or 1.0, WIDTH)
    most = max(strip.most for strip in strips)
    moments = sorted({record.time for strip in strips for record in strip.records})
    shown = moments if len(moments) <= MOST_STEPS else []
    parts: list[str] = []
    top = 0.0
    for number, strip in enumerate(strips):
        parts += _strip(number, strip, across, Axis(0.0, most or 1.0, HEIGHT), top, shown)
        top += HEAD + HEIGHT + FOOT
    living = [
        Listing(
            f"alive.{number}",
            f"Alive{f': {writable(one.policy)}' if len(timelines) > 1 else ' now'}",
            ALIVE // len(timelines),
        )
        for number, one in enumerate(timelines)
    ]
    steps = _steps(timelines, strips, shown, living)
    chart = Pane(shapes.page(LEFT + WIDTH + RIGHT, top + 8, parts), "Live bytes")
    panes = (chart, *([listings_pane("What lives", *living)] if shown else []))
    facts = {f"live.{number}": _facts(strip) for number, strip in enumerate(strips)}
    return Scene(f"Memory of {timeline_title(timelines)}", panes, tuple(steps.frames), facts, LEGEND if shown else ())


# -------------------------------------------------------------------------------------------------------------- strips


@dataclass(frozen=True)
class _Strip:
    """One curve: what lives on some resources of a timeline."""

    timeline: Timeline
    name: str
    records: Sequence[LiveBytes]
    limit: float
    places: frozenset[int]

    @cached_property
    def peak(self) -> LiveBytes:
        """The first moment with the most bytes."""
        return max(self.records, key=lambda record: record.nbytes, default=LiveBytes(0.0, 0.0))

    @property
    def most(self) -> float:
        """The highest number on its axis: the peak, or a limit that is not far above."""
        return self.limit if self.peak.nbytes < self.limit <= 3 * self.peak.nbytes else self.peak.nbytes

    def at(self, time: float) -> float:
        """The bytes that live at a moment."""
        place = bisect_right(self.records, time, key=lambda record: record.time)
        return self.records[place - 1].nbytes if place else 0.0

    def alive(self, time: float) -> list[int]:
        """The tasks whose results live at a moment, the largest first."""
        t = self.timeline
        found = [task for task in t.living(time) if t.resource(task) in self.places]
        return sorted(found, key=lambda task: (-t.tasks.nbytes[task], task))


def _strips(timeline: Timeline, is_one_of_two: bool) -> Iterator[_Strip]:
    """All resources together; then, for one simulated timeline, each of several resources that holds something."""
    policy = f"{writable(timeline.policy)}: " if is_one_of_two else ""
    resources = timeline.machine.resources
    holding = [
        (place, resource, timeline.live_bytes_on(resource.name))
        for place, resource in enumerate(resources)
        if any(timeline.tasks.nbytes[task] for task in timeline.order if timeline.resource(task) == place)
    ]
    total = "all resources" if timeline.simulated else "measured"
    is_alone = len(resources) == 1 and timeline.simulated
    name = resources[0].name if is_alone else total
    limit = resources[0].memory if is_alone else math.inf
    yield _Strip(timeline, policy + name, timeline.live_bytes, limit, frozenset(range(len(resources))))
    if timeline.simulated and not is_alone and not is_one_of_two and len(holding) <= MOST_STRIPS:
        for place, resource, records in holding:
            yield _Strip(timeline, policy + resource.name, records, resource.memory, frozenset({place}))


def _strip(number: int, strip: _Strip, across: Axis, up: Axis, top: float, moments: Sequence[float]) -> Iterator[str]:
    """Head, axes, area, peak and limit of one curve, and a column for each moment."""
    unit, size = bytes_unit(up.high)
    seconds, second = time_unit(across.high)
    plot = Plot(
        Axis(0, across.high / second, across.length), Axis(0, up.high / size, up.length), (LEFT, top + HEAD + HEIGHT)
    )
    now = shapes.heading("", LEFT + WIDTH, top + 26, "value", "end", "now")
    yield shapes.group(
        f"now.{number}", "run", strip.name, shapes.heading(shapes.shortened(strip.name, 40), 16, top + 26) + now
    )
    yield from plot.frame(f"time in {seconds}", f"live {unit}")
    corners = _corners(strip.records, strip.timeline.makespan)
    points = [plot.point(time / second, nbytes / size) for time, nbytes in corners]
    outline = shapes.outline([plot.corner, *points, (points[-1][0], plot.corner[1])])
    yield shapes.group(f"live.{number}", "bar forward", f"bytes that live: {strip.name}", outline)
    for place, (time, then) in enumerate(pairwise([*moments, across.high])):
        left, right = LEFT + across.place(time), LEFT + across.place(then)
        box = Box(0, left, top + HEAD - 4, max(right - left, 1.5), HEIGHT + 4)
        yield shapes.column(f"moment.{place}", box, time_text(time), "")
    if strip.limit <= up.high:
        y = plot.point(0, strip.limit / size)[1]
        yield shapes.line([(LEFT, y), (LEFT + WIDTH, y)], "critical")
        yield shapes.heading(f"memory {bytes_text(strip.limit)}", LEFT + 6, y + 16, "detail note")
    if strip.peak.nbytes:
        x, y = plot.point(strip.peak.time / second, strip.peak.nbytes / size)
        yield shapes.mark((x, y), 2, "run2")
        anchor = "end" if x > LEFT + WIDTH / 2 else "start"
        yield shapes.heading(
            f"peak {bytes_text(strip.peak.nbytes)}", x - 8 if anchor == "end" else x + 8, y - 6, "note", anchor
        )


def _corners(records: Sequence[LiveBytes], end: float) -> list[tuple[float, float]]:
    """The corners of the steps."""
    points: list[tuple[float, float]] = [(0.0, 0.0)]
    for record in records:
        points += [(record.time, points[-1][1]), (record.time, record.nbytes)]
    return [*points, (max(end, points[-1][0]), points[-1][1])]


# -------------------------------------------------------------------------------------------------------------- frames


def _steps(
    timelines: Sequence[Timeline], strips: Sequence[_Strip], moments: Sequence[float], living: Sequence[Listing]
) -> Steps:
    totals = [next(strip for strip in strips if strip.timeline is timeline) for timeline in timelines]
    names = timeline_names(timelines)
    first = [of_one(called, _peak_caption(strip)) for called, strip in zip(names, totals, strict=True)]
    steps = Steps("\n".join([*first, *([] if moments else [said.TOO_MANY_CHANGES])]))
    times = [{record.time for record in strip.records} for strip in totals]
    before: list[set[int]] = [set() for _ in totals]
    live = 0.0
    for place, time in enumerate(moments):
        changes = [Change(f"now.{n}", None, {"now": bytes_text(strip.at(time))}) for n, strip in enumerate(strips)]
        captions: list[str] = []
        asks: Question | None = None
        for number, strip in enumerate(totals):
            alive = strip.alive(time)
            if time in times[number]:
                text = _moment_caption(strip, time, set(alive), before[number])
                captions.append(of_one(names[number], text) if len(totals) > 1 else text)
                if not number:
                    asks = _question(strip, time, live, set(alive), before[number])
                    live = strip.at(time)
            before[number] = set(alive)
            changes += living[number].show(alive, partial(_row, strip.timeline))
        steps.add("\n".join(captions), changes, [Change(f"moment.{place}", "active")], question=asks)
    if moments:
        steps.add("\n".join(["Done.", *first]))
    return steps


def _row(timeline: Timeline, _place: int, task: int) -> Row:
    name = shortened(writable(timeline.tasks.name(task)), 12)
    return Row(f"{name} {bytes_text(timeline.tasks.nbytes[task])}", "done")


def _news(strip: _Strip, alive: set[int], before: set[int]) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """The tasks whose results begin to live, and those whose results are freed, with their bytes."""
    t, name = strip.timeline, task_names(strip.timeline.tasks)
    born, freed = (
        [(name(task), t.tasks.nbytes[task]) for task in sorted(tasks)] for tasks in (alive - before, before - alive)
    )
    return born, freed


def _question(strip: _Strip, time: float, live: float, alive: set[int], before: set[int]) -> Question | None:
    """Before a change: how many bytes live then? A reader may forget what is freed, or what begins to live."""
    born, freed = _news(strip, alive, before)
    if not freed:
        return None
    more, less = (sum(nbytes for _, nbytes in tasks) for tasks in (born, freed))
    text = said.live_question(time, live, born, [task for task, _ in freed])
    wrong = [live + more, live - less, live, more, live + more + less]
    return in_words(text, bytes_text(strip.at(time)), [bytes_text(nbytes) for nbytes in wrong if nbytes >= 0])


def _moment_caption(strip: _Strip, time: float, alive: set[int], before: set[int]) -> str:
    born, freed = _news(strip, alive, before)
    peak = said.PEAK if strip.peak.nbytes and time == strip.peak.time else ""
    return and_note(said.memory_caption(time, born, freed, strip.at(time)), peak)


def _peak_caption(strip: _Strip) -> str:
    name = task_names(strip.timeline.tasks)
    alive = [name(task) for task in strip.alive(strip.peak.time)]
    return said.peak_caption(strip.peak.time, strip.peak.nbytes, alive)


def _facts(strip: _Strip) -> Rows:
    t = strip.timeline
    alive = [
        f"{writable(t.tasks.name(task))} {bytes_text(t.tasks.nbytes[task])}" for task in strip.alive(strip.peak.time)
    ]
    rows = [
        ("bytes of", strip.name),
        ("peak", f"{bytes_text(strip.peak.nbytes)} at {time_text(strip.peak.time)}"),
        ("memory", bytes_text(strip.limit) if strip.limit < math.inf else ""),
        ("alive at the peak", ", ".join(alive)),
        ("alive at the end", bytes_text(strip.at(math.inf))),
    ]
    return tuple((label, value) for label, value in rows if value)
