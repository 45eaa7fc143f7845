"""The chart of a timeline: a row for each lane, a bar for each task, hatched idle time, and where all that stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median

import numpy as np

from autodiff_lab.schedule.task import Phase
from autodiff_lab.schedule.timeline import Timeline

from . import shapes
from .captions import counted, percent
from .captions.timelines import cause_words
from .phase_bars import LETTER, idle_shape, phase_bar, phase_css
from .plots import Axis
from .routes import Box, Point
from .shapes import writable
from .tasks_shown import PHASES, task_keys
from .values import time_text, time_unit

WIDTH, WIDER, WIDEST = 720.0, 1200.0, 3000.0  # px of the time axis
NARROW, THINNEST = (
    22.0,
    4.0,
)  # px that a bar has on average, if its lane is full: on an axis of over 1200, and over 3000 px
LANE, GAP, HEAD, TOP, RIGHT = 34.0, 12.0, 56.0, 44.0, 26.0  # px
DETAIL = shapes.DETAIL
MOST_BARS = 10_000  # tasks that are drawn one by one: the browser steps through so many in 40 ms
MOST_ARROWS = 2000
BINS = 240  # columns of a timeline with more tasks


class Chart:
    """One timeline on the page: ``top`` is the y of its head, ``axis`` the common time axis, ``suffix`` ends its keys."""

    def __init__(self, timeline: Timeline, axis: Axis, left: float, top: float, suffix: str = "") -> None:
        self.timeline, self.axis, self.left, self.top = timeline, axis, left, top
        self.is_binned = len(timeline.order) > MOST_BARS
        self.keys = [] if self.is_binned else [key + suffix for key in task_keys(timeline.tasks)]
        self.suffix = suffix
        self.idle = [] if self.is_binned else [idle for idle in timeline.idle if self.span(idle.start, idle.end) >= 2]

    @property
    def height(self) -> float:
        """From the head to below the last lane."""
        return HEAD + (LANE + GAP) * len(self.timeline.machine.lanes)

    def span(self, start: float, end: float) -> float:
        """The px from one time to another."""
        return self.axis.place(end) - self.axis.place(start)

    @property
    def bottom(self) -> float:
        """The y below the last lane."""
        return self.top + self.height - GAP / 2

    def column(self, key: str, start: float, end: float) -> str:
        """A column over all lanes, to show where the film is."""
        x, y, width = self.left + self.axis.place(start), self.top + HEAD - GAP / 2, max(self.span(start, end), 1.5)
        return shapes.column(key, Box(0, x, y, width, self.bottom - y), time_text(start), "")

    def box(self, lane: int, start: float, end: float) -> Box:
        """The box of a stretch of time on a lane."""
        y = self.top + HEAD + (LANE + GAP) * lane
        return Box(lane, self.left + self.axis.place(start), y, max(self.span(start, end), 1.0), LANE)

    def idle_key(self, place: int) -> str:
        """The key of an idle stretch."""
        return f"idle.{place}{self.suffix}"

    def parts(self) -> Iterator[str]:
        """Everything from the head to the last lane."""
        t = self.timeline
        kind = "simulated" if t.simulated else "real"
        yield shapes.heading(f"{writable(t.policy)}, {kind}", 16, self.top + 20)
        yield shapes.heading(self._figures(), 16, self.top + 40, "detail")
        for x in (self.left + self.axis.place(tick) for tick in ticks(self.axis)):
            yield shapes.line([(x, self.top + HEAD - GAP / 2), (x, self.bottom)], "grid")
        for lane in range(len(t.machine.lanes)):
            box = self.box(lane, 0.0, self.axis.high)
            yield shapes.line([(box.x, box.y + LANE + GAP / 2), (box.x + box.width, box.y + LANE + GAP / 2)], "grid")
            yield shapes.heading(
                shapes.shortened(t.machine.lane_name(lane), 18), self.left - 10, box.middle + 5, "detail", "end"
            )
        if self.is_binned:
            yield from self._bins()
            return
        for place, idle in enumerate(self.idle):
            words = cause_words(idle.cause, t.simulated)
            yield idle_shape(self.idle_key(place), self.box(idle.lane, idle.start, idle.end), *words)
        critical = set(t.critical_path)
        for task in t.order:
            yield self._bar(task, task in critical)
        yield from self._arrows()

    def _figures(self) -> str:
        t = self.timeline
        causes = [f"{cause} {time_text(seconds)}" for cause, seconds in t.idle_by_cause.items()]
        return (
            f"{counted(len(t.order), 'task')} · makespan {time_text(t.makespan)} · used {percent(t.utilisation)} of at most "
            f"{percent(t.bound)}" + (f" · idle: {', '.join(causes)}" if causes else "")
        )

    def _bar(self, task: int, is_critical: bool) -> str:
        t = self.timeline
        box = self.box(t.lanes[task], t.starts[task], t.ends[task])
        name = writable(t.tasks.name(task))
        title = f"{name}: {time_text(t.starts[task])} to {time_text(t.ends[task])}"
        return phase_bar(self.keys[task], box, t.tasks[task].phase, title, name, is_critical)

    def _arrows(self) -> Iterator[str]:
        """What each task waits for, and what waits for it; seen while it is selected."""
        t = self.timeline
        if sum(map(len, t.tasks.predecessors)) > MOST_ARROWS:
            return
        for task in t.order:
            edges = [(other, task) for other in t.tasks.predecessors[task]]
            edges += [(task, other) for other in t.tasks.successors[task]]
            for source, target in edges:
                if t.lanes[source] >= 0 and t.lanes[target] >= 0:
                    points = self._way(source, target)
                    yield shapes.edge(f"{self.keys[task]}~arrows", points, "edge arrow", curved=True)

    def _way(self, source: int, target: int) -> Sequence[Point]:
        t = self.timeline
        begin = self.box(t.lanes[source], t.starts[source], t.ends[source])
        end = self.box(t.lanes[target], t.starts[target], t.ends[target])
        x, y, to_x, to_y = begin.x + begin.width, begin.middle, end.x, end.middle
        bend, over = max(18.0, abs(to_x - x) / 3), 0.0
        if begin.y == end.y and to_x - x > 2:  # over what lies between them on their lane
            y, to_y, over, bend = begin.y, end.y, 24.0, min(bend, 40.0)
        return (x, y), (x + bend, y - over), (to_x - bend, to_y - over), (to_x, to_y)

    def _bins(self) -> Iterator[str]:
        """For each lane and each 1/240 of the time what part of it which phase took."""
        edges = np.linspace(0.0, self.axis.high, BINS + 1)
        for lane in range(len(self.timeline.machine.lanes)):
            filled = np.zeros(BINS)
            for phase in PHASES:
                part = self._shares(lane, phase, edges)
                for place in np.flatnonzero(part > 0.005):
                    box = self.box(lane, edges[place], edges[place + 1])
                    bottom = box.y + LANE * (1 - filled[place])
                    height = LANE * part[place]
                    part_box = Box(0, box.x, bottom - height, box.width, height)
                    yield shapes.bar("", part_box, f"bin {phase_css(phase)}", PHASES[phase])
                filled += part

    def _shares(self, lane: int, phase: Phase, edges: np.ndarray) -> np.ndarray:
        """The part of each bin in which a lane ran tasks of a phase."""
        t = self.timeline
        mine = [task for task in t.order if t.lanes[task] == lane and t.tasks[task].phase == phase]
        starts, ends = (np.array([times[task] for task in mine]) for times in (t.starts, t.ends))
        done = np.concatenate(
            [[0.0], np.cumsum(ends - starts)]
        )  # work before the k-th task; tasks of a lane do not overlap
        index = np.searchsorted(starts, edges, "right")
        begun = np.maximum(index - 1, 0)
        over = np.maximum(ends[begun] - edges, 0.0) if mine else np.zeros_like(edges)
        return np.diff(done[index] - np.where(index > 0, over, 0.0)) / np.diff(edges)


def time_axis(timelines: Sequence[Timeline]) -> Axis:
    """One axis from 0 to the end of the last timeline, as long as names in bars need, and longer where there are many tasks."""
    longest = max(timeline.makespan for timeline in timelines) or 1.0
    drawn = [timeline for timeline in timelines if 0 < len(timeline.order) <= MOST_BARS]
    names = max(
        (longest * _name_width(timeline) / (_middle_duration(timeline) or longest) for timeline in drawn), default=0.0
    )
    most = max((max(Counter(timeline.lanes).values()) for timeline in drawn), default=0)
    return Axis(0.0, longest, min(max(WIDTH, min(names, WIDER), NARROW * most), max(WIDEST, THINNEST * most)))


def _name_width(timeline: Timeline) -> float:
    return 12.0 + LETTER * median(min(len(timeline.tasks.name(task)), 9) for task in timeline.order)


def _middle_duration(timeline: Timeline) -> float:
    return median(map(timeline.duration, timeline.order))


def ticks(axis: Axis) -> list[float]:
    """The seconds that are written below the axis: round numbers of the axis' unit."""
    size = time_unit(axis.high)[1]
    scaled = Axis(axis.low / size, axis.high / size, axis.length)
    return [tick * size for tick in scaled.ticks(max(6, int(axis.length / 130)))]


def lanes_width(timelines: Sequence[Timeline]) -> float:
    """The px that the names of the lanes need at the left."""
    titles = [t.machine.lane_name(lane) for t in timelines for lane in range(len(t.machine.lanes))]
    return 26.0 + max(shapes.text_width(shapes.shortened(title, 18), DETAIL) for title in titles)


def axis_parts(axis: Axis, left: float, bottom: float) -> Iterator[str]:
    """The time axis below all charts."""
    unit, size = time_unit(axis.high)
    for tick in ticks(axis):
        x = left + axis.place(tick)
        yield shapes.line([(x, bottom), (x, bottom + 5)], "axis")
        yield shapes.heading(f"{tick / size:.4g}", x, bottom + 20, "detail", "middle")
    yield shapes.line([(left, bottom), (left + axis.length, bottom)], "axis")
    yield shapes.heading(f"time in {unit}", left + axis.length, bottom + 38, "detail", "end")


def key_parts(timelines: Sequence[Timeline]) -> tuple[list[str], float]:
    """What colours, shapes and marks mean, and how wide that is."""
    present = {task.phase for t in timelines for task in t.tasks}
    samples: list[tuple[str, Callable[[Box], str]]] = [
        (meaning, partial(phase_bar, "", phase=phase, title=meaning))
        for phase, meaning in PHASES.items()
        if phase in present
    ]
    if any(len(t.order) <= MOST_BARS for t in timelines):
        samples += [
            ("critical path", partial(phase_bar, "", phase="F", title="critical path", is_critical=True)),
            ("idle", lambda box: idle_shape("", box)),
        ]
    parts, x = [], 16.0
    for meaning, draw in samples:
        parts += [draw(Box(0, x, 14, 30, 18)), shapes.heading(meaning, x + 37, 28, "detail")]
        x += 46 + shapes.text_width(meaning, DETAIL)
    return parts, x
