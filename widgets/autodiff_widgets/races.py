"""A learner's choices as a policy: the simulator runs it as far as choices were made, and says between what to choose next."""

from __future__ import annotations

from collections.abc import Sequence

from autodiff_lab import schedule
from autodiff_lab.events import Event
from autodiff_lab.schedule import Policy, State, Task, Timeline
from autodiff_lab.schedule.policies import soonest


class UndecidedError(Exception):
    """Something could start now, and nothing was chosen."""


class Race:
    """What happens when tasks are started in the order of ``choices``, as soon as each can.

    ``heard`` are the simulator's events. ``timeline`` is there once all tasks have run; until then ``time`` is when the next
    choice is to be made, and ``startable`` what can be chosen. ``error`` says why there is nothing to choose: memory ran out.

    >>> tasks = schedule.Tasks({"a": Task(cost=2), "b": Task(cost=1), "c": Task(after=["b"])})
    >>> race = Race(tasks, schedule.cores(1), [1])
    >>> race.time, [tasks.name(task) for task in race.startable]
    (1.0, ['a', 'c'])
    >>> Race(tasks, schedule.cores(1), [1, 0, 2]).timeline.makespan
    4.0
    """

    def __init__(self, tasks: schedule.Tasks, machine: schedule.Machine, choices: Sequence[int]) -> None:
        self.tasks, self.machine, self.choices = tasks, machine, tuple(choices)
        self.heard: list[Event] = []
        self.timeline: Timeline | None = None
        self.startable: tuple[int, ...] = ()
        self.time = 0.0
        self.error = ""
        self.policy = Policy("you", self._priority, self._place)
        try:
            self.timeline = schedule.simulate(tasks, machine, self.policy, self.heard.append)
        except schedule.PolicyError as error:
            if not isinstance(error.__cause__, UndecidedError):
                raise
        except schedule.OutOfMemoryError as error:
            self.error = str(error)

    def _priority(self, task: Task, _state: State) -> float:
        """The first choice is the highest; what was not chosen comes after all choices."""
        return len(self.choices) - self.choices.index(task.id) if task.id in self.choices else 0

    def _place(self, task: Task, state: State) -> str | None:
        if task.id not in self.choices and any(state.free_for(task)):
            left = sorted(set(state.ready).difference(self.choices))
            self.startable = tuple(one for one in left if any(state.free_for(state.tasks[one])))
            self.time = state.time
            raise UndecidedError
        return soonest(task, state)
