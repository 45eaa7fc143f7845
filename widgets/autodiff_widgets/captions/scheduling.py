"""What is said of scheduling: its events, numbered as the lecture numbers its seven steps, and a race against a policy."""

from __future__ import annotations

from collections.abc import Mapping

from autodiff_lab import events
from autodiff_lab.events import Event
from autodiff_lab.schedule.timeline import Timeline

from ..values import number_text, time_text
from .sentences import Names, counted, few, percent, says

OPENING = "The tasks, and which of them waits for which. Nothing has run yet."

NOT_SHOWN: Mapping[type[Event], str] = {
    events.SearchAdvanced: "who waits for a long search listens to it; what it found is drawn as any schedule is",
}


@says(events.SearchAdvanced)
def _search_advanced(event: events.SearchAdvanced, name: Names) -> str:
    tried, gone, least = counted(event.tried, "order"), percent(event.gone), time_text(event.length)
    return f"Step 1: the policy has tried {tried}, {gone} of what it may; the shortest schedule takes {least}."


@says(events.TasksCollected)
def _tasks_collected(event: events.TasksCollected, name: Names) -> str:
    are = "is" if event.total == 1 else "are"
    return f"Step 1: {counted(event.total, 'task')} {are} collected. The policy is `{event.policy}`."


@says(events.TaskDependenciesCounted)
def _task_dependencies_counted(event: events.TaskDependenciesCounted, name: Names) -> str:
    waits = counted(event.waiting_for, "task") if event.waiting_for else "no task"
    return f"Step 2: {name(event.task)} waits for {waits}."


@says(events.TaskEnqueued)
def _task_enqueued(event: events.TaskEnqueued, name: Names) -> str:
    when = "" if event.step == 3 else f"at {time_text(event.time)} "
    return (
        f"Step {event.step}: {when}{name(event.task)} waits for nothing{' more' * (event.step != 3)}: it joins the ready "
        f"queue, with the priority {number_text(float(event.priority), 4)}."
    )


@says(events.TaskTaken)
def _task_taken(event: events.TaskTaken, name: Names) -> str:
    return f"Step 4: at {time_text(event.time)} the policy takes {name(event.task)} out of the ready queue."


@says(events.ResourceAwaited)
def _resource_awaited(event: events.ResourceAwaited, name: Names) -> str:
    where = f"`{event.resource}`" if event.resource else "every device that could run it"
    holder = "" if event.blocker is None else name(event.blocker)
    why = {
        "busy": f"{where} is busy" + (f" with {holder}" if event.resource else f"; {holder} ends first") * bool(holder),
        "memory": f"there is not enough memory on {where}" + f", and {holder} may free some" * bool(holder),
        "transfer": f"the value of {holder or 'another task'} is still on its way to {where}",
        "policy": "the policy lets it wait",
    }
    return f"Step 4: at {time_text(event.time)} {name(event.task)} stays in the ready queue: {why[event.cause]}."


@says(events.ResourceAcquired)
def _resource_acquired(event: events.ResourceAcquired, name: Names) -> str:
    return f"Step 4: {name(event.task)} is given {_lane(event.resource, event.lane)}, and runs."


@says(events.ResourceReleased)
def _resource_released(event: events.ResourceReleased, name: Names) -> str:
    return f"Step 4: at {time_text(event.time)} {name(event.task)} is done, and gives {_lane(event.resource, event.lane)} back."


@says(events.TaskDependencyDone)
def _task_dependency_done(event: events.TaskDependencyDone, name: Names) -> str:
    left = f"still waits for {counted(event.waiting_for, 'task')}" if event.waiting_for else "waits for nothing more"
    return f"Step 5: {name(event.task)} is done, so {name(event.successor)} {left}."


@says(events.AllTasksDone)
def _all_tasks_done(event: events.AllTasksDone, name: Names) -> str:
    return f"Step 7: steps 4 to 6 were repeated until nothing was left. All tasks are done at {time_text(event.time)}."


def _lane(resource: str, lane: int) -> str:
    return f"`{resource}`" if not lane else f"lane {lane} of `{resource}`"


def choice_caption(task: int, ready: Mapping[int, float], name: Names) -> str:
    """Why the policy took a task: its priority beside those of the others that were ready.

    >>> choice_caption(1, {0: 2.0, 1: 5.0}, Names("`t{}`".format))
    'Its priority 5 is the highest of 2.'
    """
    mine = number_text(float(ready[task]), 4)
    if len(ready) == 1:
        return f"It is the only one there, with the priority {mine}."
    ahead = [other for other in ready if (-ready[other], other) < (-ready[task], task)]
    if ahead:
        need = "has to wait: what it needs" if len(ahead) == 1 else "have to wait: what they need"
        return f"Its priority is {mine}; {few(map(name, ahead))} {need} is not free."
    ties = sum(ready[other] == ready[task] for other in ready) > 1
    return f"Its priority {mine} is the highest of {len(ready)}" + (", and it comes first." if ties else ".")


def turn_caption(time: float, names: list[str]) -> str:
    """What a learner is asked in a race."""
    return (
        f"Your turn, at {time_text(time)}: which task starts now? Select {' or '.join(names)} in the picture (Tab, ↑ ↓ and "
        "Enter work too). This needs a running kernel."
    )


def race_caption(yours: Timeline, rival: Timeline) -> str:
    """Who was quicker."""
    mine, others = yours.makespan, rival.makespan
    verdict = "You win" if mine < others else "You are as quick" if mine == others else "The policy wins"
    return (
        f"Your makespan is {time_text(mine)}, that of `{rival.policy}` is {time_text(others)}. {verdict}. No schedule is "
        f"shorter than {time_text(shortest(yours))}: the critical path takes as long, or all work shared out evenly."
    )


def shortest(timeline: Timeline) -> float:
    """What no schedule with these durations can beat."""
    return max(timeline.critical_length, timeline.work / timeline.machine.workers)


def stuck_caption(reason: str) -> str:
    """What ends a race in which nothing can start."""
    return f"No task can start. {reason}."


def taken_question(policy: str) -> str:
    """Before the policy takes a task: which one?"""
    return f"Which task does `{policy}` take next?"
