"""TimelineView: which task ran when and where, with idle time and its cause; two timelines on one axis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from math import ceil
from typing import Any, NamedTuple

from autodiff_lab.schedule.idleness import Idle
from autodiff_lab.schedule.timeline import Timeline

from . import shapes
from .captions import timelines as said
from .captions.sentences import of_one
from .captions.timelines import cause_words
from .collector import paused
from .facts import Rows
from .questions import which
from .scene import Change, Pane, Question, Scene
from .steps import Steps
from .subjects import described
from .tasks_shown import task_facts, task_names
from .timeline_chart import BINS, RIGHT, TOP, Chart, axis_parts, key_parts, lanes_width, time_axis
from .values import time_text
from .view import View

MOST_STEPS = 2000
NEAR = 50  # tasks begun before a task, of which a reader may think that it waited for them
LEGEND = (("active", "runs now"), ("used", "has just ended"))


class TimelineView(View):
    """A schedule, simulated or real: a row for each lane, a bar for each task, and why lanes were idle.

    Select a bar to see what it waits for and what waits for it. Steps go through time, from one start or end to the next.

    Args:
        timeline: what ``schedule.simulate`` or ``schedule.run`` gives.
        other: a second timeline, drawn below the first on the same axis: another policy, or the real run.

    >>> from autodiff_lab import schedule
    >>> tasks = {"a": schedule.Task(cost=2), "b": schedule.Task(cost=1), "c": schedule.Task(after=["a", "b"])}
    >>> view = TimelineView(schedule.simulate(tasks, 2, "fifo"))
    >>> print(view.frames[2].caption)
    At 1 s `b` ends on `core1`. `core1` idles until 2 s: every task that is left waits for results that are not there yet.
    """

    def __init__(self, timeline: Timeline, other: Timeline | None = None, **traits: Any) -> None:
        self.timelines = checked_timelines("TimelineView", timeline, other)
        super().__init__(timeline_scene(self.timelines), **traits)


@paused()
def timeline_scene(timelines: Sequence[Timeline]) -> Scene:
    """The scene of one timeline, or of two on one axis."""
    axis, left = time_axis(timelines), lanes_width(timelines)
    charts: list[Chart] = []
    top = TOP
    for place, timeline in enumerate(timelines):
        charts.append(Chart(timeline, axis, left, top, f"~{place + 1}" if place else ""))
        top += charts[-1].height + 10
    film = _Film(charts)
    key, width = key_parts(timelines)
    parts = [*key, *axis_parts(axis, left, top), *film.columns()]
    parts += [part for chart in charts for part in chart.parts()]
    pane = Pane(shapes.page(max(left + axis.length + RIGHT, width), top + 50, parts), "Timeline")
    facts = {key: rows for chart in charts for key, rows in _facts(chart)}
    return Scene(
        f"Timeline of {timeline_title(timelines)}",
        (pane,),
        tuple(film.steps().frames),
        facts,
        LEGEND if film.moments else (),
        runs=False,
    )


def checked_timelines(view: str, timeline: Any, other: Any) -> tuple[Timeline, ...]:
    """One timeline or two; what is none is refused with what to pass."""
    for one in (timeline, *(() if other is None else (other,))):
        if not isinstance(one, Timeline):
            raise TypeError(
                f"{view}: expected a Timeline, got {described(one)}; pass what schedule.simulate(tasks, machine, policy) "
                "gives, or the second of what schedule.run(graph, inputs) gives"
            )
    return (timeline,) if other is None else (timeline, other)


def timeline_title(timelines: Sequence[Timeline]) -> str:
    """How a title calls one timeline or two."""
    return " and ".join(name.replace("`", "") for name in timeline_names(timelines))


def timeline_names(timelines: Sequence[Timeline]) -> list[str]:
    """How sentences call timelines: by policy, as real where they are, and by their place where two have one name."""
    names = [f"`{shapes.writable(one.policy)}`{'' if one.simulated else ' (real)'}" for one in timelines]
    if len(set(names)) == len(names):
        return names
    return [f"{name} ({place})" for name, place in zip(names, ("above", "below"), strict=True)]


class _Happening(NamedTuple):
    """What one chart shows at one moment."""

    ended: list[int]
    begun: list[int]
    idle: list[Idle]


class _Film:
    """The moments at which something ends or begins, one frame each; of very many, several in a row share a frame."""

    def __init__(self, charts: Sequence[Chart]) -> None:
        self.charts = charts
        self.names = timeline_names([chart.timeline for chart in charts])
        self.happenings = [_happenings(chart) for chart in charts]
        self.place = {task: place for place, task in enumerate(charts[0].timeline.order)}
        times = sorted({time for happening in self.happenings for time in happening})
        together = ceil(len(times) / MOST_STEPS)
        self.moments = [times[place : place + together] for place in range(0, len(times), together or 1)]

    def columns(self) -> Iterator[str]:
        """From each moment to the next a column that shows where the film is."""
        for place, (times, then) in enumerate(pairwise(self.moments)):
            yield from (chart.column(f"moment.{place}", times[-1], then[-1]) for chart in self.charts)

    def steps(self) -> Steps:
        """The picture as a whole, then one frame for each moment."""
        first = [said.figures_caption(chart.timeline) for chart in self.charts]
        first += [said.binned_note(len(chart.timeline.order), BINS) for chart in self.charts if chart.is_binned]
        steps = Steps("\n".join([*first, *([said.STEP_THROUGH] if self.moments else [])]))
        for place, times in enumerate(self.moments):
            self._add(steps, place, times)
        if len(self.charts) == 2:
            steps.add(_comparison(zip(self.names, (chart.timeline for chart in self.charts), strict=True)))
        return steps

    def _add(self, steps: Steps, place: int, times: Sequence[float]) -> None:
        lasting: list[Change] = []
        passing = [Change(f"moment.{place}", "active")] if place + 1 < len(self.moments) else []
        captions, focus = [], None
        asks = self._question(self.charts[0], times[0]) if len(times) == 1 else None
        for chart, called, happenings in zip(self.charts, self.names, self.happenings, strict=True):
            now = _joined([happenings[time] for time in times if time in happenings])
            if now is None:
                continue
            over = set(now.ended)
            lasting += [Change(chart.keys[task], "active") for task in now.begun if task not in over]
            lasting += [Change(chart.keys[task], "idle") for task in now.ended]
            passing += [Change(chart.keys[task], "used") for task in now.ended]
            focus = next((chart.keys[task] for task in [*now.begun, *now.ended]), focus)
            text = _caption(chart, times, now)
            captions.append(of_one(called, text) if len(self.charts) > 1 else text)
        steps.add("\n".join(captions), lasting, passing, focus, question=asks)

    def _question(self, chart: Chart, time: float) -> Question | None:
        """Before a task begins that waited for one other: for which?"""
        t, name = chart.timeline, task_names(chart.timeline.tasks)
        now = self.happenings[0].get(time, _Happening([], [], []))
        for task in now.begun:
            before = t.tasks.predecessors[task]
            ended = [other for other in now.ended if other in before or t.lanes[other] == t.lanes[task]]
            if len(ended) == 1:
                near = t.order[max(0, self.place[task] - NEAR) : self.place[task]]
                others = [other for other in dict.fromkeys((*before, *near)) if t.starts[other] < time]
                others.sort(key=lambda other: (other not in before, -t.ends[other]))
                text = said.waited_question(name(task), time)
                return which(text, ended[0], others, chart.keys.__getitem__, lambda one: name(one).strip("`"))
        return None


def _happenings(chart: Chart) -> dict[float, _Happening]:
    found: dict[float, _Happening] = {}

    def at(time: float) -> _Happening:
        return found.setdefault(time, _Happening([], [], []))

    t = chart.timeline
    for task in () if chart.is_binned else t.order:
        at(t.starts[task]).begun.append(task)
        at(t.ends[task]).ended.append(task)
    for idle in chart.idle:
        at(idle.start).idle.append(idle)
    return found


def _joined(moments: Sequence[_Happening]) -> _Happening | None:
    """What happens at all of these moments; None where nothing does."""
    if len(moments) <= 1:
        return moments[0] if moments else None
    ended, begun, idle = (list(chain.from_iterable(parts)) for parts in zip(*moments, strict=True))
    return _Happening(ended, begun, idle)


def _caption(chart: Chart, times: Sequence[float], now: _Happening) -> str:
    t, name = chart.timeline, task_names(chart.timeline.tasks)
    ended, begun = (
        [(name(task), t.machine.lane_name(t.lanes[task])) for task in tasks] for tasks in (now.ended, now.begun)
    )
    idle = [(t.machine.lane_name(one.lane), cause_words(one.cause, t.simulated)[1], one.end) for one in now.idle]
    failed = [said.failed_caption(name(task)) for task in now.ended if t.statuses.get(task) == "failed"]
    since = times[0] if len(times) > 1 else None
    return " ".join([said.moment_caption(times[-1], ended, begun, idle, since), *failed])


def _comparison(named: Iterable[tuple[str, Timeline]]) -> str:
    (winner, quick), (loser, slow) = sorted(named, key=lambda pair: pair[1].makespan)
    return said.comparison_caption(winner, quick, loser, slow)


# --------------------------------------------------------------------------------------------------------------- facts


def _facts(chart: Chart) -> Iterator[tuple[str, Rows]]:
    t = chart.timeline
    critical = set(t.critical_path)
    for task in () if chart.is_binned else t.order:
        span = t.span(task)
        rows = [
            ("ran", f"{time_text(span.start)} to {time_text(span.end)}, {time_text(t.duration(task))}"),
            ("on", t.machine.lane_name(t.lanes[task])),
            ("critical path", "on it" if task in critical else ""),
            ("status", "" if span.status == "done" else span.status),
        ]
        known = task_facts(t.tasks, task)
        yield chart.keys[task], (*known[:1], *((label, value) for label, value in rows if value), *known[1:])
    for place, idle in enumerate(chart.idle):
        yield (
            chart.idle_key(place),
            (
                ("idle", t.machine.lane_name(idle.lane)),
                ("from", f"{time_text(idle.start)} to {time_text(idle.end)}"),
                ("because", cause_words(idle.cause, t.simulated)[1]),
            ),
        )
