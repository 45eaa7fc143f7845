"""The errors of scheduling, and the words that they share: each names the task, what was seen and what was expected."""

from __future__ import annotations

from collections.abc import Iterable


class ScheduleError(ValueError):
    """Tasks, a machine or a policy cannot be scheduled as they are; the text names the task and the next step."""


class PolicyError(ScheduleError):
    """A policy raised, or answered what is no priority or no resource; the text names the policy and the task."""


class DeadlockError(ScheduleError):
    """Nothing runs, tasks are left, and the policy starts none of them; the text names the tasks."""


class OutOfMemoryError(MemoryError):
    """The tasks that are left do not fit beside what lives; the text names the tasks and what lives."""


class ClusterError(RuntimeError):
    """A cluster cannot go on; the text names what was lost, or what does not come, and the next step."""


def meant(name: object, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: what is near to it, else a few that there are.

    >>> meant("aa", ["a", "b"])
    "did you mean 'a'?"
    """
    from difflib import get_close_matches  # here, because importing it costs 1 ms

    names = list(known)
    near = get_close_matches(str(name), names, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"there are {some(names)}"


def some(names: Iterable[str], most: int = 6) -> str:
    """The names in a sentence: the first few of them, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return (", ".join(map(repr, listed[:most])) or "none") + more
