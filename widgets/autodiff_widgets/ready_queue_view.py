"""ReadyQueueView: who waits for whom, the ready queue, the devices and what is done, event by event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autodiff_lab import events, schedule
from autodiff_lab.events import Event
from autodiff_lab.graph import Node
from autodiff_lab.schedule.timeline import Timeline

from .captions import caption
from .drawing import draw
from .scene import Change, Scene
from .schedule_captions import choice_caption, figures_caption, time_text
from .shapes import Text, shortened, writable
from .steps import Listing, Row, Steps, listings_pane
from .subjects import described
from .tasks_shown import graph_of_tasks, task_facts, task_keys, task_names
from .values import number_text
from .view import View

LONGEST_QUEUE = 8  # rows that are drawn

LEGEND = (
    ("waiting", "waits for others"), ("ready", "in the ready queue"), ("active", "runs"), ("done", "done"),
    ("target", "waits for one less"), ("used", "what it needs is not free"),
)  # fmt: skip


class ReadyQueueView(View):
    """The seven steps of a scheduler, one event at a time: counts, ready queue, the policy's choice and its key, devices.

    Args:
        tasks: a ``Graph``, ``Tasks``, or what they are made of.
        machine: a Machine, or a number of equal cores.
        policy: a name in ``schedule.POLICIES``, a Policy, a function, or a pair of functions.

    Raises:
        TypeError: ``tasks`` are no tasks.
        ScheduleError, PolicyError: as ``schedule.simulate``.

    >>> tasks = {"a": schedule.Task(cost=2), "b": schedule.Task(cost=1), "c": schedule.Task(after=["a", "b"])}
    >>> view = ReadyQueueView(tasks, 1, "fifo")
    >>> print(view.frames[7].caption)
    Step 4: at 0 s the policy takes `a` out of the ready queue. Its priority 0 is the highest of 2.
    """

    def __init__(self, tasks: Any, machine: Any = 2, policy: Any = schedule.DEFAULT, **traits: Any) -> None:
        self.tasks = _as_tasks(tasks)
        self.machine = machine if isinstance(machine, schedule.Machine) else schedule.cores(machine)
        heard: list[Event] = []
        self.timeline = schedule.simulate(self.tasks, self.machine, policy, heard.append)
        super().__init__(queue_scene(self.timeline, heard), heard, **traits)


def queue_scene(timeline: Timeline, heard: Sequence[Event]) -> Scene:
    """The scene of a run of the simulator: one frame for each event."""
    frames = QueueFrames(timeline)
    for event in heard:
        frames.show(event)
    title = f"Ready queue of {writable(timeline.policy)}"
    return Scene(title, frames.panes, tuple(frames.steps.frames), frames.facts, LEGEND)


def _as_tasks(tasks: Any) -> schedule.Tasks:
    if hasattr(tasks, "nodes"):
        return schedule.from_graph(tasks)
    try:
        return tasks if isinstance(tasks, schedule.Tasks) else schedule.Tasks(tasks)
    except (TypeError, schedule.ScheduleError) as error:
        if isinstance(error, schedule.ScheduleError) and isinstance(tasks, (dict, list, tuple)):
            raise
        raise TypeError(
            f"ReadyQueueView: expected Tasks or a Graph, got {described(tasks)}; pass schedule.from_graph(graph), or a dict of "
            "names and schedule.Task"
        ) from error


class QueueFrames:
    """Turns the events of scheduling into frames, for tasks on a machine."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline, self.tasks = timeline, timeline.tasks
        self.name, self.keys = task_names(self.tasks), task_keys(self.tasks)
        graph = graph_of_tasks(self.tasks)
        self.place = {task: node for node, task in enumerate(self.tasks.order)}
        self.drawing = draw(graph, "Tasks", self._lines, badge="number", key=lambda node: self.keys[self._task(node)])
        self.ready: dict[int, float] = {}  # task -> priority
        self.running: dict[int, int] = {}  # lane -> task
        self.waits: dict[int, int] = {}
        self.done = 0
        self.queue = Listing("ready", "Ready queue", min(len(self.tasks), LONGEST_QUEUE))
        self.devices = Listing("lane", "Devices", len(timeline.machine.lanes))
        start = "The tasks, and which of them waits for which. Nothing has run yet."
        self.steps = Steps(" ".join(filter(None, [start, self.drawing.note])), self._lists())
        self.panes = (self.drawing.pane, listings_pane("Ready queue and devices", self.queue, self.devices))
        drawn = self.drawing.elements
        self.facts = {self.keys[t]: task_facts(self.tasks, t) for t in self.tasks.order if self.place[t] in drawn}

    def show(self, event: Event) -> None:
        """Add the frame of an event."""
        lasting: tuple[Change, ...] = ()
        passing: tuple[Change, ...] = ()
        told, task = caption(event, self.name), getattr(event, "task", None)
        match event:
            case events.TaskDependenciesCounted(task, count):
                lasting, passing = self._now(task, "waiting", waits=_waits(count)), self._now(task, "target")
            case events.TaskEnqueued(task, priority):
                self.ready[task] = priority
                lasting = self._now(task, "ready", waits=f"priority {number_text(float(priority), 4)}")
            case events.TaskTaken(task):
                told = f"{told} {choice_caption(task, self.ready, self.name)}"
                del self.ready[task]
                passing = self._now(task, "active")
            case events.ResourceAwaited(task):
                passing = self._now(task, "used")
            case events.ResourceAcquired(task):
                self.running[self.timeline.lanes[task]] = task
                lasting = self._now(task, "active", waits=f"runs on {event.resource}")
            case events.ResourceReleased(task):
                del self.running[self.timeline.lanes[task]]
                self.done += 1
                lasting = self._now(task, "done", waits=f"done at {time_text(event.time)}", number=str(self.done))
            case events.TaskDependencyDone(before, task, count):
                lasting = (*self._edges(before, task), *self._now(task, None, waits=_waits(count)))
                passing = self._now(task, "target")
            case events.AllTasksDone():
                told = f"{told} {figures_caption(self.timeline)}"
        focus = None if task is None else self.drawing.elements.get(self.place[task])
        self.steps.add(told, (*lasting, *self._lists()), passing, focus)

    def next_first(self) -> list[int]:
        """The ready tasks, the highest priority first, equals in order of submission."""
        return sorted(self.ready, key=lambda task: (-self.ready[task], task))

    def _task(self, node: Node) -> int:
        return self.tasks.order[node.id]

    def _lines(self, node: Node) -> tuple[Text, ...]:
        task = self.tasks[self._task(node)]
        cost = "" if isinstance(task.cost, dict) else f" · {time_text(task.cost)}"  # type: ignore[arg-type]
        name = Text(f"{shortened(writable(task.name), 16)}{cost}", "label")
        return (name, Text("", "value", "waits", "waits for 10"))

    def _now(self, task: int, state: Any, **texts: str) -> tuple[Change, ...]:
        return self.drawing.node(self.place[task], state, **texts)

    def _edges(self, before: int, task: int) -> tuple[Change, ...]:
        source, target = self.place[before], self.place[task]
        return tuple(
            change
            for (a, b, argument) in [(source, target, n) for n in range(len(self.tasks.predecessors[task]))]
            for change in self.drawing.edge(a, b, argument, "done")
        )

    def _lists(self) -> tuple[Change, ...]:
        lanes = range(len(self.timeline.machine.lanes))
        return (
            *self.queue.show(self.next_first(), self._ready_row),
            *self.devices.show(lanes, self._lane_row),
        )

    def _short(self, task: int) -> str:
        return shortened(writable(self.tasks.name(task)), 16)

    def _ready_row(self, _place: int, task: int) -> Row:
        return Row(f"{self._short(task)}: {number_text(float(self.ready[task]), 4)}", "ready")

    def _lane_row(self, _place: int, lane: int) -> Row:
        title = self.timeline.lane_title(lane)
        if lane not in self.running:
            return Row(f"{title}: free")
        return Row(f"{title}: {self._short(self.running[lane])}", "active")


def _waits(count: int) -> str:
    return f"waits for {count}"
