"""ReadyQueueView: who waits for whom, the ready queue, the devices and what is done, event by event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import traitlets

from autodiff_lab import events, schedule
from autodiff_lab.events import Event
from autodiff_lab.graph import Node
from autodiff_lab.schedule.timeline import Timeline

from .captions import caption, scheduling
from .captions.sentences import and_note
from .captions.timelines import figures_caption
from .collector import paused
from .drawing import draw
from .questions import which
from .races import Race
from .scene import Change, Question, Scene
from .shapes import Text, shortened, writable
from .steps import Listing, Row, Steps, listings_pane
from .subjects import described
from .tasks_shown import graph_of_tasks, task_facts, task_keys, task_names
from .values import number_text, time_text
from .view import View

LONGEST_QUEUE = 8  # rows that are drawn

LEGEND = (
    ("waiting", "waits for others"), ("ready", "in the ready queue"), ("active", "runs"), ("done", "done"),
    ("target", "waits for one less"), ("used", "what it needs is not free"),
)  # fmt: skip

RACE_LEGEND = tuple((state, f"{text}, or you can start it" if state == "target" else text) for state, text in LEGEND)


class ReadyQueueView(View):
    """The seven steps of a scheduler, one event at a time: counts, ready queue, the policy's choice and its key, devices.

    Args:
        tasks: a ``Graph``, ``Tasks``, or what they are made of.
        machine: a Machine, or a number of equal cores.
        policy: a name in ``schedule.POLICIES``, a Policy, a function, or a pair of functions.
        race: you choose what starts, by selecting a ready task, and the policy is your rival. Needs a running kernel.

    ``timeline`` is the policy's schedule; in a race ``yours`` is your own once it is complete, and ``choices`` are the names
    of the tasks that you have started. Set ``choices`` to go back.

    Raises:
        TypeError: ``tasks`` are no tasks.
        ScheduleError, PolicyError: as ``schedule.simulate``.

    >>> tasks = {"a": schedule.Task(cost=2), "b": schedule.Task(cost=1), "c": schedule.Task(after=["a", "b"])}
    >>> view = ReadyQueueView(tasks, 1, "fifo")
    >>> print(view.frames[7].caption)
    Step 4: at 0 s the policy takes `a` out of the ready queue. Its priority 0 is the highest of 2.
    """

    def __init__(
        self, tasks: Any, machine: Any = 2, policy: Any = schedule.DEFAULT, race: bool = False, **traits: Any
    ) -> None:
        self.tasks = _as_tasks(tasks)
        self.machine = machine if isinstance(machine, schedule.Machine) else schedule.cores(machine)
        heard: list[Event] = []
        self.timeline = schedule.simulate(self.tasks, self.machine, policy, heard.append)
        self._race = Race(self.tasks, self.machine, ()) if race else None
        scene = self._race_scene() if race else queue_scene(self.timeline, heard)
        super().__init__(scene, heard, **traits)
        if race and "frame" not in traits:
            self.frame = len(self.frames) - 1  # whose turn it is; the steps before it are there to look back at

    @property
    def choices(self) -> tuple[str, ...]:
        """The names of the tasks that you have started, in order."""
        return () if self._race is None else tuple(map(self.tasks.name, self._race.choices))

    @choices.setter
    def choices(self, names: Sequence[str]) -> None:
        self._race = Race(self.tasks, self.machine, [self.tasks.id_of(name) for name in names])
        self.scene = self._race_scene()
        self.frame = len(self.frames) - 1

    @property
    def yours(self) -> Timeline | None:
        """Your own schedule, where all tasks have run."""
        return None if self._race is None else self._race.timeline

    @traitlets.observe("selected")
    def _start(self, change: dict[str, Any]) -> None:
        keys = task_keys(self.tasks)
        started = next((task for task in getattr(self._race, "startable", ()) if keys[task] == change["new"]), None)
        if started is not None:
            self.selected = None
            self.choices = (*self.choices, self.tasks.name(started))

    def _race_scene(self) -> Scene:
        assert self._race is not None
        return race_scene(self._race, self.timeline)


@paused()
def queue_scene(timeline: Timeline, heard: Sequence[Event]) -> Scene:
    """The scene of a run of the simulator: one frame for each event."""
    frames = QueueFrames(timeline.tasks, timeline.machine, timeline.policy, heard)
    frames.steps.add(f"Done. {figures_caption(timeline)}")
    return frames.scene(f"Ready queue of {writable(timeline.policy)}")


def race_scene(race: Race, rival: Timeline) -> Scene:
    """The scene of what you have chosen so far, and of who was quicker once nothing is left."""
    frames = QueueFrames(race.tasks, race.machine, race.policy.name, race.heard)
    if race.error:
        frames.steps.add(scheduling.stuck_caption(race.error))
    elif race.timeline is None:
        names = [frames.name(task) for task in race.startable]
        frames.steps.add(scheduling.turn_caption(race.time, names), passing=frames.open_now(race.startable))
    else:
        frames.steps.add(f"Done. {scheduling.race_caption(race.timeline, rival)}")
    return frames.scene(f"Ready queue: you against {writable(rival.policy)}", RACE_LEGEND)


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

    def __init__(self, tasks: schedule.Tasks, machine: schedule.Machine, policy: str, heard: Sequence[Event]) -> None:
        self.tasks, self.machine, self.policy = tasks, machine, writable(policy)
        self.name, self.keys = task_names(tasks), task_keys(tasks)
        self.place = {task: node for node, task in enumerate(tasks.order)}
        self.drawing = draw(
            graph_of_tasks(tasks), "Tasks", self._lines, badge="number", key=lambda node: self.keys[self._task(node)]
        )
        self.ready: dict[int, float] = {}  # task -> priority
        self.running: dict[tuple[int, int], int] = {}  # lane -> task
        self.done = 0
        self.queue = Listing("ready", "Ready queue", min(len(tasks), LONGEST_QUEUE))
        self.devices = Listing("lane", "Devices", len(machine.lanes))
        self.steps = Steps(and_note(scheduling.OPENING, self.drawing.note), self._lists())
        for event in heard:
            self.show(event)

    def scene(self, title: str, legend: tuple[tuple[str, str], ...] = LEGEND) -> Scene:
        """The scene of all frames so far."""
        panes = (self.drawing.pane, listings_pane("Ready queue and devices", self.queue, self.devices))
        facts = {self.keys[t]: task_facts(self.tasks, t) for t in self.tasks.order if self._element(t) is not None}
        return Scene(title, panes, tuple(self.steps.frames), facts, legend, runs=False)

    def show(self, event: Event) -> None:
        """Add the frame of an event."""
        lasting: tuple[Change, ...] = ()
        passing: tuple[Change, ...] = ()
        told, task, asks = caption(event, self.name), getattr(event, "task", None), None
        match event:
            case events.TaskDependenciesCounted(task, count):
                lasting, passing = self._now(task, "waiting", waits=_waits(count)), self._now(task, "target")
            case events.TaskEnqueued(task, priority):
                self.ready[task] = priority
                lasting = self._now(task, "ready", waits=f"priority {number_text(float(priority), 4)}")
            case events.TaskTaken(task):
                told = f"{told} {scheduling.choice_caption(task, self.ready, self.name)}"
                asks = self._question(task)
                del self.ready[task]
                passing = self._now(task, "active")
            case events.ResourceAwaited(task):
                passing = self._now(task, "used")
            case events.ResourceAcquired(task):
                self.running[self.machine.index(event.resource), event.lane] = task
                lasting = self._now(task, "active", waits=f"runs on {event.resource}")
            case events.ResourceReleased(task):
                del self.running[self.machine.index(event.resource), event.lane]
                self.done += 1
                lasting = self._now(task, "done", waits=f"done at {time_text(event.time)}", number=str(self.done))
            case events.TaskDependencyDone(before, task, count):
                lasting = (*self._edges(before, task), *self._now(task, None, waits=_waits(count)))
                passing = self._now(task, "target")
        focus = None if task is None else self._element(task)
        self.steps.add(told, (*lasting, *self._lists()), passing, focus, question=asks)

    def _question(self, taken: int) -> Question | None:
        """Which of the ready tasks is taken next?"""
        return which(scheduling.taken_question(self.policy), taken, sorted(self.ready), self._element, self._short)

    def _element(self, task: int) -> str | None:
        return self.drawing.elements.get(self.place[task])

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
        lanes = range(len(self.machine.lanes))
        return (
            *self.queue.show(list(self.ready), self._ready_row),
            *self.devices.show(lanes, self._lane_row),
        )

    def _short(self, task: int) -> str:
        return shortened(writable(self.tasks.name(task)), 16)

    def _ready_row(self, _place: int, task: int) -> Row:
        return Row(f"{self._short(task)}: {number_text(float(self.ready[task]), 4)}", "ready")

    def _lane_row(self, _place: int, lane: int) -> Row:
        title, runs = self.machine.lane_name(lane), self.running.get(self.machine.lanes[lane])
        return Row(f"{title}: free") if runs is None else Row(f"{title}: {self._short(runs)}", "active")

    def open_now(self, tasks: Iterable[int]) -> tuple[Change, ...]:
        """What a reader may choose from."""
        return tuple(change for task in tasks for change in self._now(task, "target"))


def _waits(count: int) -> str:
    return f"waits for {count}"
