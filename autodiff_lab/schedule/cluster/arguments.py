"""What each task is given on a cluster: results by their keys, inputs and large constants by futures, the rest by value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from distributed import Future

from ..graph_tasks import OpCall
from ..outcomes import Named
from ..task import Task
from ..tasks import Tasks
from .workers import Call, Operand, Told, packed

LARGE = 100_000  # bytes from which a constant is sent to each worker once, and not with every task that has it
Scatter = Callable[[Named], Mapping[str, Future]]  # sends values to every worker


class Arguments:
    """What each task is given: results of others by their key, inputs and large constants by future, the rest by value."""

    def __init__(self, tasks: Tasks, keys: Sequence[str], told: Told, inputs: Named, scattered: Scatter) -> None:
        self._tasks, self._keys, self._told = tasks, keys, told
        self._latest: dict[str, tuple[int, int | None]] = {}  # who wrote a value last, and as which part of its result
        large = {
            id(value): value for task in tasks for value in _constants(task) if getattr(value, "nbytes", 0) > LARGE
        }
        self._inputs = scattered(inputs)
        once = scattered({f"constant {place}": value for place, value in enumerate(large.values())})
        self._once = dict(zip(large, once.values(), strict=True))

    def entry(self, task: Task, also_after: int | None) -> tuple[Any, ...]:
        """A task's line in Dask's graph: what is called, and the keys of what it waits for."""
        waits: dict[Any, int] = {}  # keys and futures, with their places among what arrives
        operands = [self._operand(one, waits) for one in _operands(task)]
        tasks, keys = self._tasks, self._keys
        for other in (*tasks.predecessors[task.id], *([] if also_after is None else [also_after])):
            waits.setdefault(keys[other], len(waits))
        parts = len(task.written) > 1
        self._latest.update({name: (task.id, part if parts else None) for part, name in enumerate(task.written)})
        call = Call(self._told, task.id, packed(task, operands), tuple(task.written))
        return (call, *waits)

    def _operand(self, one: Operand | str | tuple[str], waits: dict[Any, int]) -> Operand:
        if isinstance(one, Operand):
            if id(one.value) not in self._once:
                return one
            return Operand(waits.setdefault(self._once[id(one.value)], len(waits)))
        if isinstance(one, tuple):
            maker = self._tasks[one[0]]
            return Operand(waits.setdefault(self._keys[maker.id], len(waits)), 0 if len(maker.written) > 1 else None)
        if one in self._latest:
            number, part = self._latest[one]
            return Operand(waits.setdefault(self._keys[number], len(waits)), part)
        return Operand(waits.setdefault(self._inputs[one], len(waits)))


def _constants(task: Task) -> Sequence[Any]:
    return list(task.call.constants.values()) if isinstance(task.call, OpCall) else task.args


def _operands(task: Task) -> list[Operand | str | tuple[str]]:
    """What a task's function is given, in order: a value that travels along, the name of one, or (the task that makes it,)."""
    if isinstance(task.call, OpCall):
        fixed, rest = task.call.constants, iter(task.reads)
        count = len(task.reads) + len(fixed)
        return [Operand(-1, None, fixed[place]) if place in fixed else next(rest) for place in range(count)]
    return [*(Operand(-1, None, value) for value in task.args), *task.reads, *((name,) for name in task.after)]
