"""Values of a real run: what each task reads and returns, dropped after the last use, and how many bytes of it live."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any

from numpy import ndarray

from .mistakes import ScheduleError
from .tasks import Tasks

ABSENT: Any = object()  # where a value is not there yet, or dropped


class Values:
    """The values of a run. Tasks that run at once touch different ones; the rest is called by one worker at a time.

    >>> from autodiff_lab.schedule import Task
    >>> values = Values(Tasks({"a": Task(lambda: 2), "b": Task(lambda a, x: a * x, args=(5,), after=["a"])}), {})
    >>> values.call(0)
    >>> values.call(1)
    >>> values.named
    {'a': 2, 'b': 10}
    >>> values.drop(0)
    >>> values.named
    {'b': 10}
    """

    def __init__(self, tasks: Tasks, inputs: Mapping[str, Any]) -> None:
        self.inputs = inputs
        self.memory = Memory(inputs.values())
        self.unweighed: list[Any] = [None] * len(tasks)  # the results that may take memory, until they are weighed
        self._tasks, self._calls = tasks, tasks.calls
        self._held = [inputs.get(name, ABSENT) for name in tasks.numbers] if inputs else [ABSENT] * len(tasks.numbers)
        self._value = self._held.__getitem__

    @property
    def named(self) -> dict[str, Any]:
        """The values that are there, by name."""
        return {name: value for name, value in zip(self._tasks.numbers, self._held, strict=True) if value is not ABSENT}

    def call(self, task: int) -> None:
        """Call the task's function with its arguments and the values that it reads, and keep what it returns."""
        call = self._calls[task]
        function = call.function
        result = None if function is None else function(*call.arguments, *map(self._value, call.reads))
        if call.is_light and type(result) is not ndarray:
            self._held[call.writes[0]] = result
        else:
            self.unweighed[task] = parts_of(result, self._tasks[task].written)

    def weigh(self, task: int) -> None:
        """A task is done: its results become values, in place of older ones of the same name, and their bytes count."""
        call, held = self._calls[task], self._held
        parts, self.unweighed[task] = self.unweighed[task], None
        for number, part in zip(call.writes, parts, strict=True):
            self.memory.hold(part, call.nbytes)
            if held[number] is not ABSENT:
                self.memory.drop(held[number], call.nbytes)
            held[number] = part

    def drop(self, task: int) -> None:
        """Nobody needs a task's results any more."""
        call, held = self._calls[task], self._held
        for number in call.writes:
            if call.nbytes or type(held[number]) is ndarray:
                self.memory.drop(held[number], call.nbytes)
            held[number] = ABSENT


def parts_of(result: Any, names: Sequence[str]) -> tuple[Any, ...]:
    """A task's result as one part for each value that it writes.

    Raises:
        ScheduleError: the task did not return a tuple of so many.
    """
    if len(names) == 1:
        return (result,)
    if not isinstance(result, tuple) or len(result) != len(names):
        raise ScheduleError(
            f"a task that writes {len(names)} values ({', '.join(names)}) must return a tuple of {len(names)}; got {result!r}"
        )
    return result


class Memory:
    """Counts the buffers behind values as they come and go, each once. What was there before a run does not count.

    >>> import numpy as np
    >>> memory, array = Memory(clock=iter(range(10)).__next__), np.zeros(4)
    >>> memory.hold(array)
    >>> memory.hold(array[::2])  # a view: it keeps the whole buffer
    >>> memory.drop(array)
    >>> memory.drop(array[::2])
    >>> memory.changes
    [(0, 32.0), (1, 0.0)]
    """

    def __init__(self, before: Iterable[Any] = (), clock: Callable[[], float] = perf_counter) -> None:
        self.changes: list[tuple[float, float]] = []  # when, and how many bytes lived from then on
        self._clock = clock
        self._live = 0.0
        self._before = {id(owner_of(value)) for value in before}
        self._holders: dict[int, int] = {}  # by identity of the owner, which lives as long as somebody holds it

    def hold(self, value: Any, otherwise: float = 0) -> None:
        """A value is there; one that is no array counts ``otherwise``."""
        self._change(value, 1, otherwise)

    def drop(self, value: Any, otherwise: float = 0) -> None:
        """Nobody needs a value any more."""
        self._change(value, -1, otherwise)

    def _change(self, value: Any, sign: int, otherwise: float) -> None:
        nbytes = otherwise
        if isinstance(value, ndarray):
            owner = owner_of(value)
            key = id(owner)
            if key in self._before:
                return
            holders = self._holders.pop(key, 0)
            if holders + sign:
                self._holders[key] = holders + sign
            if holders and holders + sign:
                return  # another value has the same buffer
            nbytes = owner.nbytes
        if nbytes:
            self._live += sign * nbytes
            self.changes.append((self._clock(), self._live))


def owner_of(value: Any) -> Any:
    """The array that owns the buffer of a view.

    >>> import numpy as np
    >>> array = np.zeros((2, 3))
    >>> owner_of(array.T[0]) is array
    True
    """
    while isinstance(value, ndarray) and isinstance(value.base, ndarray):
        value = value.base
    return value
