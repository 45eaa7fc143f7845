"""What is said of timelines: figures, moments and why lanes idle, live bytes, and what a whole call of backward comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from autodiff_lab.graph import Graph
from autodiff_lab.schedule.timeline import Timeline

from ..values import bytes_text, time_text
from .sentences import counted, few, percent

# Why a lane did nothing: in few words, for a picture, and as a sentence's end.
CAUSES: Mapping[str, tuple[str, str]] = {
    "dependencies": ("waits for results", "every task that is left waits for results that are not there yet"),
    "transfer": ("value on its way", "a value that is needed is still on its way"),
    "memory": ("memory full", "no ready task fits into the memory that is left"),
    "policy": ("policy waits", "tasks are ready, and the policy holds them back"),
    "nothing left": ("nothing left", "every task that could run there has begun"),
}
OVERHEAD = (
    "handing over",
    "tasks are ready, and handing them to a worker takes time, or the policy holds them back",
)


def cause_words(cause: str, is_simulated: bool) -> tuple[str, str]:
    """Why a lane did nothing. Only in a real run does it take time to hand a task to a lane."""
    return CAUSES[cause] if is_simulated or cause != "policy" else OVERHEAD


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
    since: float | None = None,
) -> str:
    """What happens in a timeline at a moment: (task, lane) that end and begin, (lane, why, until when) that begin to idle.

    Of several moments in one step ``since`` is the first.

    >>> moment_caption(3.0, [("`a`", "core0")], [], [("core0", "nothing is ready", 5.0)])
    'At 3 s `a` ends on `core0`. `core0` idles until 5 s: nothing is ready.'
    >>> moment_caption(0.0, [], [], [("core0", "nothing is ready", 5.0), ("core1", "nothing is ready", 6.0)])
    'At 0 s `core0` idles until 5 s and `core1` until 6 s: nothing is ready.'
    """
    when = f"At {time_text(time)}" if since is None else f"From {time_text(since)} to {time_text(time)}"
    ends, begins = (
        few(f"{task}{'' if place else f' {verb}'} on `{lane}`" for place, (task, lane) in enumerate(pairs))
        for verb, pairs in (("ends", ended), ("begins", begun))
    )
    causes: dict[str, list[str]] = {}
    for lane, why, end in idle:
        here = causes.setdefault(why, [])
        here.append(f"`{lane}`{'' if here else ' idles'} until {time_text(end)}")
    rests = [f"{few(lanes)}: {why}" for why, lanes in causes.items()]
    what = "; ".join(filter(None, [ends, begins])) or (rests.pop(0) if rests else "nothing ends or begins")
    return " ".join([f"{when} {what}.", *(f"{rest}." for rest in rests)])


def comparison_caption(winner: str, quick: Timeline, loser: str, slow: Timeline) -> str:
    """Which of two timelines ends first, and how much longer the other one takes."""
    if quick.makespan == slow.makespan:
        return f"{winner} and {loser} both end after {time_text(quick.makespan)}."
    return (
        f"{winner} ends after {time_text(quick.makespan)}, {loser} after {time_text(slow.makespan)}: "
        f"{quick.speedup_over(slow):.2f} times as long."
    )


def binned_note(tasks: int, bins: int) -> str:
    """What a reader must know of a chart without a bar for each task."""
    return (
        f"{tasks} tasks are too many for a bar each: a column stands for 1/{bins} of the time, and is "
        "filled as far as its lane ran tasks. The timeline's own text() lists every task."
    )


STEP_THROUGH = "Step through time, or select a task."


def failed_caption(task: str) -> str:
    """What is said of a task of a real run that ended with an error."""
    return f"{task} failed."


# -------------------------------------------------------------------------------------------------------------- memory

TOO_MANY_CHANGES = "There are too many changes to step through."
PEAK = "This is the peak."


def memory_caption(
    time: float, born: Iterable[tuple[str, float]], freed: Iterable[tuple[str, float]], live: float
) -> str:
    """What begins to live and what is freed at a moment: (task, bytes) of each.

    >>> memory_caption(3.0, [("`b`", 8)], [("`a`", 4)], 12)
    'At 3 s `b` takes 8 B; `a` frees 4 B: 12 B live.'
    """
    takes, frees = (
        few(f"{task} {verb} {bytes_text(nbytes)}" for task, nbytes in tasks)
        for verb, tasks in (("takes", born), ("frees", freed))
    )
    what = "; ".join(filter(None, [takes, frees]))
    return f"At {time_text(time)} {what or 'nothing changes'}: {bytes_text(live)} live."


def peak_caption(time: float, nbytes: float, alive: list[str]) -> str:
    """The most bytes that live at once, and whose they are."""
    if not nbytes:
        return "No task produces any bytes."
    return (
        f"At most {bytes_text(nbytes)} live at once, at {time_text(time)}: the results of {few(alive) or 'the tasks'}."
    )


# ----------------------------------------------------------------------------------------------------------- questions


def waited_question(task: str, time: float) -> str:
    """Before a moment at which a task begins: whose end made that possible?"""
    return f"{task} begins at {time_text(time)}. Whose end was it still waiting for?"


def live_question(time: float, now: float, born: list[tuple[str, float]], freed: list[str]) -> str:
    """Before a moment at which bytes change: how many live then?"""
    news = [f"{task} takes {bytes_text(nbytes)}" for task, nbytes in born]
    news += [f"nobody reads {task} again" for task in freed]
    return f"{bytes_text(now)} live. At {time_text(time)} {few(news, most=6)}. How many bytes live then?"


# ------------------------------------------------------------------------------------------------------------- summary


def summary(joint: Graph, simulated: Timeline, real: Timeline, started: float, most: int) -> str:
    """What one call of backward comes to, in numbers."""
    sides = Counter(node.phase for node in joint if node.op is not None)
    ratio = simulated.backward_over_forward
    lines = [
        f"Forward has {counted(sides['forward'], 'op')}, backward adds {sides['backward']}"
        + (f", which take {ratio:.1f} times as long as the forward ops." if ratio else "."),
        f"As tasks on {counted(simulated.machine.workers, 'worker')} with the policy `{simulated.policy}`: "
        f"{time_text(simulated.makespan)} simulated with the measured times of the ops, {time_text(real.makespan)} in a real "
        f"run, after {time_text(started)} for starting the workers.",
        f"The simulated schedule uses {percent(simulated.utilisation)} of the workers' time; with these dependencies at most "
        f"{percent(simulated.bound)} can be used. At most {bytes_text(simulated.peak)} live at once.",
    ]
    if len(simulated.tasks) > most:
        lines.append(f"{len(simulated.tasks)} tasks are too many to show their ready queue event by event.")
    return "\n".join(lines)
