"""Sentences about scheduling: those of its events, numbered as the lecture numbers its seven steps, and those of timelines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from autodiff_lab import events
from autodiff_lab.graph import Graph
from autodiff_lab.schedule.timeline import Timeline

from .captions import Names, counted, listed, says
from .values import bytes_text, number_text, time_text

# Why a lane did nothing: in few words, for a picture, and as a sentence's end.
CAUSES: Mapping[str, tuple[str, str]] = {
    "dependencies": ("waits for results", "every task that is left waits for results that are not there yet"),
    "transfer": ("value on its way", "a value that is needed is still on its way"),
    "memory": ("memory full", "no ready task fits into the memory that is left"),
    "policy": ("policy waits", "tasks are ready, and the policy has other plans for them"),
    "nothing left": ("nothing left", "every task that could run there has begun"),
}
OVERHEAD = (
    "handing over",
    "tasks are ready, and handing them over takes this time, or the policy has other plans for them",
)


def cause_words(cause: str, is_simulated: bool) -> tuple[str, str]:
    """Why a lane did nothing. Only in a real run does it take time to hand a task to a lane."""
    return CAUSES[cause] if is_simulated or cause != "policy" else OVERHEAD


# -------------------------------------------------------------------------------------------------------- seven steps


@says(events.TasksCollected)
def _tasks_collected(event: events.TasksCollected, name: Names) -> str:
    return f"Step 1: {counted(event.total, 'task')} collected. The policy is `{event.policy}`."


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
        return f"It was the only one there, with the priority {mine}."
    ahead = [other for other in ready if (-ready[other], other) < (-ready[task], task)]
    if ahead:
        return f"Its priority is {mine}; {_some(map(name, ahead))} had to wait, for what it needs is not free."
    ties = sum(ready[other] == ready[task] for other in ready) > 1
    return f"Its priority {mine} is the highest of {len(ready)}" + (", and it came first." if ties else ".")


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
        f"shorter than {time_text(shortest(yours))}, by the critical path, or all work shared out evenly."
    )


def shortest(timeline: Timeline) -> float:
    """What no schedule with these durations can beat."""
    return max(timeline.critical_length, timeline.work / timeline.machine.workers)


# ----------------------------------------------------------------------------------------------------------- timelines


def figures_caption(timeline: Timeline) -> str:
    """Makespan, utilisation and what it could be at most."""
    kind = "simulated" if timeline.simulated else "real"
    devices = counted(timeline.machine.workers, "lane")
    return (
        f"`{timeline.policy}` ({kind}) on {devices}: makespan {time_text(timeline.makespan)}, "
        f"{percent(timeline.utilisation)} of the lanes' time used, of at most {percent(timeline.bound)}."
    )


def moment_caption(
    time: float,
    ended: Iterable[tuple[str, str]],
    begun: Iterable[tuple[str, str]],
    idle: Iterable[tuple[str, str, float]],
) -> str:
    """What happens in a timeline at a moment: (task, lane) that end and begin, (lane, why, until when) that begin to idle.

    >>> moment_caption(3.0, [("`a`", "core0")], [], [("core0", "nothing is ready", 5.0)])
    'At 3 s `a` ends on core0. core0 idles until 5 s: nothing is ready.'
    """
    ends, begins = (
        _some(f"{task}{'' if place else f' {verb}'} on {lane}" for place, (task, lane) in enumerate(pairs))
        for verb, pairs in (("ends", ended), ("begins", begun))
    )
    what = "; ".join(filter(None, [ends, begins])) or "nothing ends or begins"
    rests = [f"{lane} idles until {time_text(end)}: {why}." for lane, why, end in idle]
    return " ".join([f"At {time_text(time)} {what}.", *rests[:3]])


def memory_caption(
    time: float, born: Iterable[tuple[str, float]], freed: Iterable[tuple[str, float]], live: float
) -> str:
    """What begins to live and what is freed at a moment: (task, bytes) of each.

    >>> memory_caption(3.0, [("`b`", 8)], [("`a`", 4)], 12)
    'At 3 s 8 B more for `b`, and 4 B of `a` freed: 12 B live.'
    """
    more = _some(f"{bytes_text(nbytes)} more for {task}" for task, nbytes in born)
    less = _some(f"{bytes_text(nbytes)} of {task}" for task, nbytes in freed)
    what = ", and ".join(filter(None, [more, less and f"{less} freed"]))
    return f"At {time_text(time)} {what or 'nothing begins to live'}: {bytes_text(live)} live."


def peak_caption(time: float, nbytes: float, alive: list[str]) -> str:
    """The most bytes that live at once, and whose they are."""
    if not nbytes:
        return "no task produces any bytes."
    return f"at most {bytes_text(nbytes)} live at once, at {time_text(time)}: the results of {_some(alive) or 'the tasks'}."


def summary(joint: Graph, simulated: Timeline, real: Timeline, started: float, most: int) -> str:
    """What one call of backward comes to, in numbers."""
    sides = Counter(node.phase for node in joint if node.op is not None)
    ratio = simulated.backward_over_forward
    lines = [
        f"Forward has {counted(sides['forward'], 'op')}, backward adds {sides['backward']}"
        + (f", which take {ratio:.1f} times as long as the forward ops." if ratio else "."),
        f"As tasks on {counted(simulated.machine.workers, 'worker')} with the policy {simulated.policy}: "
        f"{time_text(simulated.makespan)} simulated with the measured times of the ops, {time_text(real.makespan)} in a real "
        f"run, after {time_text(started)} for starting the workers.",
        f"The simulated schedule uses {percent(simulated.utilisation)} of the workers' time; with these dependencies at most "
        f"{percent(simulated.bound)} can be used. At most {bytes_text(simulated.peak)} live at once.",
    ]
    if len(simulated.tasks) > most:
        lines.append(f"{len(simulated.tasks)} tasks are too many to show their ready queue event by event.")
    return "\n".join(lines)


def percent(part: float) -> str:
    """A share as a whole percentage."""
    return f"{100 * part:.0f} %"


def _some(words: Iterable[str], most: int = 4) -> str:
    """Words as English writes a list, the first few of many."""
    every = list(words)
    return listed(every if len(every) <= most else [*every[:most], f"{len(every) - most} more"])
