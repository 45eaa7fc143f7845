"""Timeline: which task ran when and where, simulated or real, and the figures that follow from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from . import chrome_trace, idleness, validation
from .idleness import Idle
from .machines import Machine
from .tasks import Tasks

Status = Literal["done", "failed", "skipped", "cancelled"]


class Span(NamedTuple):
    """One task's run."""

    task: int
    name: str
    phase: str
    resource: str
    lane: int  # inside its resource
    start: float
    end: float
    status: Status


class LiveBytes(NamedTuple):
    """From ``time`` on, until the next record, so many bytes live."""

    time: float
    nbytes: float


@dataclass(frozen=True, eq=False, repr=False)
class Timeline:
    """A schedule, simulated or real. Times are in seconds from its start (or in the unit of the tasks' costs).

    Args:
        tasks, machine, policy: what was scheduled, on what, and the name of the policy.
        starts, ends: for each task; NaN where it did not run.
        lanes: for each task its lane, an index into ``machine.lanes``; -1 where it did not run.
        statuses: for tasks that failed, were skipped because what they wait for failed, or were cancelled because another did.
        simulated: whether time was virtual.
        cpu_times: for a real run, the CPU seconds of each lane's thread.
        submitted: for a run on streams, when the host handed each task over.
        live: for a real run, how many bytes lived, as measured.
        clock_error: for a run on a cluster, how far the workers' clocks may be apart, in seconds.

    >>> from autodiff_lab import schedule
    >>> tasks = schedule.Tasks(
    ...     {"a": schedule.Task(cost=2), "b": schedule.Task(cost=1), "c": schedule.Task(after=["a", "b"])}
    ... )
    >>> timeline = schedule.simulate(tasks, schedule.cores(2), "critical_path")
    >>> timeline.makespan, round(timeline.utilisation, 3), round(timeline.bound, 3)
    (3.0, 0.667, 0.667)
    >>> print(timeline)
    critical_path on 2 devices: makespan 3, utilisation 67 % of at most 67 %
      core0  a 0–2 · c 2–3
      core1  b 0–1
    """

    tasks: Tasks
    machine: Machine
    policy: str
    starts: Sequence[float]
    ends: Sequence[float]
    lanes: Sequence[int]
    statuses: Mapping[int, Status] = field(default_factory=dict)
    simulated: bool = True
    cpu_times: Sequence[float] | None = None
    submitted: Sequence[float] | None = None
    live: Sequence[LiveBytes] | None = None
    clock_error: float | None = None

    # ------------------------------------------------------------------------------------------------------------ who ran

    def __len__(self) -> int:
        return len(self.starts)

    def span(self, task: int) -> Span:
        """One task's run; a task that did not run has no resource and NaN for its times."""
        name, phase = self.tasks.name(task), self.tasks[task].phase
        status = self.statuses.get(task, "done")
        if self.lanes[task] < 0:
            return Span(task, name, phase, "", -1, math.nan, math.nan, status)
        place, lane = self.machine.lanes[self.lanes[task]]
        return Span(task, name, phase, self.resource_name(place), lane, self.starts[task], self.ends[task], status)

    @property
    def spans(self) -> Iterator[Span]:
        """The runs, in the order in which they began."""
        return map(self.span, self.order)

    @cached_property
    def order(self) -> list[int]:
        """The tasks that ran, in the order in which they began; of two at once the one that ended first, then by number."""
        ran = (task for task, lane in enumerate(self.lanes) if lane >= 0)
        return sorted(ran, key=lambda task: (self.starts[task], self.ends[task], task))

    def resource_name(self, place: int) -> str:
        """The name of the machine's resource number ``place``."""
        return self.machine.resources[place].name

    def resource(self, task: int) -> int:
        """The place in the machine of the resource that a task ran on."""
        return self.machine.lanes[self.lanes[task]][0]

    def duration(self, task: int) -> float:
        """Seconds that a task ran; 0 where it did not."""
        return self.ends[task] - self.starts[task] if self.lanes[task] >= 0 else 0.0

    # ------------------------------------------------------------------------------------------------------------- figures

    @cached_property
    def makespan(self) -> float:
        """From the start to the end of the last task."""
        return max((self.ends[task] for task in self.order), default=0.0)

    @cached_property
    def busy(self) -> dict[str, float]:
        """For each resource the seconds in which its lanes ran tasks, added up."""
        total = {resource.name: 0.0 for resource in self.machine.resources}
        for task in self.order:
            total[self.resource_name(self.resource(task))] += self.duration(task)
        return total

    @property
    def work(self) -> float:
        """Seconds of computing, added up over all lanes."""
        return sum(self.busy[self.resource_name(place)] for place in self.machine.computing)

    @property
    def utilisation(self) -> float:
        """The part of the computing lanes' time that was used: work / (lanes · makespan)."""
        return self._of_all(self.work)

    @property
    def cpu_utilisation(self) -> float | None:
        """For a real run, CPU time / (lanes · makespan): waiting inside a task does not count. None when simulated."""
        return None if self.cpu_times is None else self._of_all(sum(self.cpu_times))

    @cached_property
    def critical_path(self) -> list[int]:
        """The longest chain of tasks that wait for each other, with the durations of this run."""
        longest, best_after = [0.0] * len(self), [-1] * len(self)
        for task in reversed(self.tasks.order):
            for after in self.tasks.successors[task]:
                if best_after[task] < 0 or longest[after] > longest[best_after[task]]:
                    best_after[task] = after
            longest[task] = self.duration(task) + (longest[best_after[task]] if best_after[task] >= 0 else 0.0)
        path, task = [], max(range(len(self)), key=lambda one: longest[one], default=-1)
        while task >= 0:
            path.append(task)
            task = best_after[task]
        return path

    @property
    def critical_length(self) -> float:
        """Seconds of the critical path: no number of devices ends sooner with these durations."""
        return sum(map(self.duration, self.critical_path))

    @property
    def bound(self) -> float:
        """The highest utilisation that any policy could reach with these durations: min(1, W / (m · CP)).

        W is all work, m the number of computing lanes, CP the length of the critical path.
        """
        return min(1.0, self.work / (self.machine.workers * self.critical_length)) if self.critical_length else 1.0

    @property
    def backward_over_forward(self) -> float | None:
        """Work of the backward pass (dX and dW) as a multiple of the forward pass's; None where there is no forward."""
        seconds = {"F": 0.0, "dX": 0.0, "dW": 0.0}
        for task in self.tasks:
            if task.phase in seconds:
                seconds[task.phase] += self.duration(task.id)
        return (seconds["dX"] + seconds["dW"]) / seconds["F"] if seconds["F"] else None

    @cached_property
    def idle(self) -> list[Idle]:
        """Every stretch in which a computing lane did nothing, and why."""
        return idleness.stretches(self)

    @property
    def idle_by_cause(self) -> dict[str, float]:
        """Seconds in which computing lanes did nothing, by cause, the longest first."""
        total: dict[str, float] = {}
        for stretch in self.idle:
            total[stretch.cause] = total.get(stretch.cause, 0.0) + stretch.end - stretch.start
        return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))

    def _of_all(self, seconds: float) -> float:
        lanes_time = self.machine.workers * self.makespan
        return seconds / lanes_time if lanes_time else 0.0

    # -------------------------------------------------------------------------------------------------------------- memory

    def is_kept(self, task: int) -> bool:
        """Whether a task's result lives to the end of the run: it is an output, or not all of its users have run."""
        return task in self.tasks.kept or any(self.lanes[user] < 0 for user in self.tasks.users[task])

    def lifetime(self, task: int) -> tuple[float, float]:
        """When a task's result began to live, and when it was freed: at the end of its last user, or of the whole run."""
        end = self.makespan if self.is_kept(task) else max(self.ends[user] for user in self.tasks.users[task])
        return self.starts[task], end

    @cached_property
    def live_bytes(self) -> Sequence[LiveBytes]:
        """How many bytes live from when on. What is freed at a moment is gone before what begins then comes."""
        return self._live_bytes_of(self.order) if self.live is None else self.live

    def live_bytes_on(self, resource: str) -> Sequence[LiveBytes]:
        """How many bytes live on one resource from when on, by the sizes of the tasks."""
        place = self.machine.index(resource)
        return self._live_bytes_of([task for task in self.order if self.resource(task) == place])

    def _live_bytes_of(self, tasks: Sequence[int]) -> Sequence[LiveBytes]:
        changes: dict[float, list[float]] = {}
        for task in tasks:
            if size := self.tasks.nbytes[task]:
                born, freed = self.lifetime(task)
                changes.setdefault(born, [0.0, 0.0])[1] += size
                changes.setdefault(freed, [0.0, 0.0])[0] -= 0.0 if self.is_kept(task) else size
        found, live = [LiveBytes(0.0, 0.0)], 0.0
        for time in sorted(changes):
            less, more = changes[time]
            live += less + more
            found.append(LiveBytes(time, live))
        return found

    @property
    def peak(self) -> float:
        """The most bytes that lived at once."""
        return max(record.nbytes for record in self.live_bytes)

    @property
    def peak_tasks(self) -> list[int]:
        """The tasks whose results lived when memory was at its peak, the largest first."""
        time = max(self.live_bytes, key=lambda record: record.nbytes).time
        return sorted(self.living(time), key=lambda task: (-self.tasks.nbytes[task], task))

    def living(self, time: float) -> list[int]:
        """The tasks whose results live at a moment, among those that produce something, in the order in which they began."""
        return [task for task, (born, freed) in self._lifetimes.items() if born <= time < freed]

    @cached_property
    def _lifetimes(self) -> dict[int, tuple[float, float]]:
        """When the result of each task that produces something lives; what is kept is never freed."""
        lives = {task: self.lifetime(task) for task in self.order if self.tasks.nbytes[task]}
        return {task: (born, math.inf if self.is_kept(task) else freed) for task, (born, freed) in lives.items()}

    # ------------------------------------------------------------------------------------------------------- said and shown

    def faults(self) -> list[str]:
        """What is illegal in it, one sentence each; empty for a legal schedule. Knows nothing of the engines."""
        return validation.faults(self)

    def to_chrome_trace(self) -> str:
        """The timeline as JSON for chrome://tracing and Perfetto."""
        return chrome_trace.to_chrome_trace(self)

    def speedup_over(self, other: Timeline) -> float:
        """How many times faster this one is."""
        return other.makespan / self.makespan if self.makespan else math.inf

    def compared_with(self, other: Timeline) -> str:
        """Both side by side: makespan, utilisation and its bound, peak memory, idle time by cause."""
        rows = [("", self.policy, other.policy)]
        rows += [(label, one, two) for (label, one), (_, two) in zip(self._figures(), other._figures(), strict=True)]
        for cause in dict.fromkeys([*self.idle_by_cause, *other.idle_by_cause]):
            mine, others = (f"{timeline.idle_by_cause.get(cause, 0.0):.4g}" for timeline in (self, other))
            rows.append((f"idle: {cause}", mine, others))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        return "\n".join(f"{a:{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows)

    def text(self) -> str:
        """The timeline as text: its figures, then one line a lane."""
        clocks = "" if self.clock_error is None else f", clocks agree within {1e3 * self.clock_error:.2g} ms"
        kind = "" if self.simulated else f" (real{clocks})"
        head = (
            f"{self.policy} on {self.machine.workers} device{'s' * (self.machine.workers != 1)}{kind}: makespan "
            f"{self.makespan:.4g}, utilisation {100 * self.utilisation:.0f} % of at most {100 * self.bound:.0f} %"
        )
        rows: dict[int, list[str]] = {lane: [] for lane in range(len(self.machine.lanes))}
        for task in self.order:
            rows[self.lanes[task]].append(f"{self.tasks.name(task)} {self.starts[task]:.4g}–{self.ends[task]:.4g}")
        titles = [self.machine.lane_name(lane) for lane in rows]
        width = max(map(len, titles))
        lines = [f"  {title:{width}}  {' · '.join(rows[lane]) or '(idle)'}" for lane, title in enumerate(titles)]
        lines += [f"  {self.tasks.name(task)}: {status}" for task, status in sorted(self.statuses.items())]
        return "\n".join([head, *lines])

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Timeline of {len(self)} tasks by {self.policy}: makespan {self.makespan:.4g}>"

    def _figures(self) -> list[tuple[str, str]]:
        return [
            ("makespan", f"{self.makespan:.4g}"),
            ("utilisation", f"{100 * self.utilisation:.0f} %"),
            ("its bound", f"{100 * self.bound:.0f} %"),
            ("peak bytes", f"{self.peak:.4g}"),
        ]
