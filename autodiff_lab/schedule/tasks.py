"""Tasks: all that there is to do, and who waits for whom, which follows from what each reads and writes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from heapq import heappop, heappush
from typing import Any, overload

from .machines import Machine
from .mistakes import ScheduleError, meant, some
from .task import Call, Dependency, Reason, Task, check_each, checked


class Tasks(Sequence[Task]):
    """Tasks in the order of submission, numbered from 0, and who waits for whom.

    Dependencies follow from names: a task waits for those in ``after``, for the last writer of what it reads, and before it
    writes for the last writer and all readers since.

    Args:
        tasks: an iterable, or a dict from names to tasks.
        inputs: values that are there from the start.
        outputs: values that are kept to the end. What nobody uses is kept too.

    Raises:
        ScheduleError: a name is missing, double or unknown, a cost is no cost, or tasks wait for each other in a circle.

    >>> tasks = Tasks({"load": Task(nbytes=10), "sum": Task(after=["load"])})
    >>> tasks.predecessors
    [(), (0,)]
    >>> [(d.source, d.target, d.reason) for d in tasks.dependencies()]
    [(0, 1, 'after')]
    """

    names: Sequence[str]
    costs: Sequence[float | Mapping[str, float]]
    nbytes: Sequence[float]
    demands: Sequence[int]
    predecessors: Sequence[Sequence[int]]
    order: Sequence[int]  # a topological order, the smallest number first

    def __init__(
        self,
        tasks: Iterable[Task] | Mapping[str, Task],
        *,
        inputs: Collection[str] = (),
        outputs: Collection[str] = (),
    ) -> None:
        if isinstance(tasks, Mapping):
            tasks = [replace(checked(task), name=name) for name, task in tasks.items()]
        self._records: Sequence[Task] | None = [replace(checked(task), id=place) for place, task in enumerate(tasks)]
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.names = [task.name for task in self._records]
        self.costs = [task.cost for task in self._records]
        self.nbytes = [task.nbytes for task in self._records]
        self.demands = [task.demand for task in self._records]
        check_each(self._records)
        self._bytes_on_edge: dict[tuple[int, int], float] = {}
        self._users: Sequence[Sequence[int]] | None = None
        self._connect()
        self.order = _topological_order(self)

    @classmethod
    def from_columns(
        cls,
        costs: Sequence[float],
        predecessors: Sequence[Sequence[int]],
        nbytes: Sequence[float] | None = None,
    ) -> Tasks:
        """Many plain tasks without a record each: costs, and for each the numbers of those it waits for, all smaller.

        >>> Tasks.from_columns([1.0, 2.0], [(), (0,)])[1].name
        't1'
        """
        made = cls(())
        made._records = None
        made.names = range(len(costs))  # type: ignore[assignment]
        made.costs, made.predecessors = costs, predecessors
        made.nbytes = nbytes if nbytes is not None else [0.0] * len(costs)
        made.demands = [1] * len(costs)
        made.order = range(len(costs))
        for task, before in enumerate(predecessors):
            if before and not 0 <= min(before) <= max(before) < task:
                raise ScheduleError(f"task t{task}: it waits for {list(before)}; expected numbers from 0 to {task - 1}")
        if costs and not min(costs) >= 0:
            raise ScheduleError(f"task t{costs.index(min(costs))}: the cost must not be negative, got {min(costs)}")
        return made

    # ------------------------------------------------------------------------------------------------------- as a sequence

    def __len__(self) -> int:
        return len(self.costs)

    @overload
    def __getitem__(self, which: int | str) -> Task: ...
    @overload
    def __getitem__(self, which: slice) -> Sequence[Task]: ...
    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, str):
            return self[self.id_of(which)]
        if self._records is not None:
            return self._records[which]
        if isinstance(which, slice):
            return [self[place] for place in range(*which.indices(len(self)))]
        place = range(len(self))[which]
        before = tuple(f"t{other}" for other in self.predecessors[place])
        return Task(name=f"t{place}", cost=self.costs[place], after=before, nbytes=self.nbytes[place], id=place)

    def __iter__(self) -> Iterator[Task]:
        return iter(self._records) if self._records is not None else (self[place] for place in range(len(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} tasks: {some(self.name(place) for place in range(min(len(self), 6)))}>"

    @cached_property
    def are_plain(self) -> bool:
        """Whether every resource that computes can run every task, each for one cost and on one unit."""
        return self._records is None or all(
            task.on is None and task.demand == 1 and not isinstance(task.cost, Mapping) for task in self._records
        )

    def name(self, task: int) -> str:
        """A task's name."""
        return self.names[task] if self._records is not None else f"t{task}"

    @cached_property
    def _places(self) -> dict[str, int]:
        return {self.name(place): place for place in range(len(self))}

    def id_of(self, name: str) -> int:
        """The number of the task with this name.

        Raises:
            ScheduleError: there is none; says which is near.
        """
        if name not in self._places:
            raise ScheduleError(f"no task is named {name!r}; {meant(name, self._places)}")
        return self._places[name]

    # -------------------------------------------------------------------------------------------------- who waits for whom

    @cached_property
    def successors(self) -> Sequence[Sequence[int]]:
        """For each task those that wait for it."""
        found: list[list[int]] = [[] for _ in range(len(self))]
        for task, before in enumerate(self.predecessors):
            for other in before:
                found[other].append(task)
        return list(map(tuple, found))  # a tuple's items lie beside its length: one miss of the cache less

    def dependencies(self) -> Iterator[Dependency]:
        """Every reason for which a task waits for another, in order of the waiting task."""
        writer: dict[str, int] = {}
        readers: dict[str, list[int]] = {}
        for task in self:
            for after in self._after(task):
                yield after
                value = self[after.source].written[0]  # what the task is given of it
                if writer.get(value) == after.source:
                    readers.setdefault(value, []).append(task.id)
            for value in dict.fromkeys(task.reads):
                if value in writer:
                    yield self._dependency(writer[value], task.id, "read after write", value)
                else:
                    self._check_is_input(task, value)
                readers.setdefault(value, []).append(task.id)
            for value in task.written:
                if value in writer:
                    yield self._dependency(writer[value], task.id, "write after write", value)
                for reader in readers.pop(value, ()):
                    if reader != task.id:
                        yield Dependency(reader, task.id, "write after read", value, 0)  # nothing travels
                writer[value] = task.id

    def edge_bytes(self, source: int, target: int) -> float:
        """What travels from one task to another if they run on different devices."""
        return self._bytes_on_edge.get((source, target), self.nbytes[source])

    @property
    def users(self) -> Sequence[Sequence[int]]:
        """For each task those that use what it produced; it is freed when the last of them has finished."""
        return self.successors if self._users is None else self._users

    @cached_property
    def uses(self) -> list[list[int]]:
        """For each task those whose results it uses."""
        found: list[list[int]] = [[] for _ in range(len(self))]
        for producer, users in enumerate(self.users):
            for user in users:
                found[user].append(producer)
        return found

    @cached_property
    def use_counts(self) -> list[int]:
        """For each task how many use its result, and one more where it is kept."""
        kept = self.kept
        return [len(users) + (task in kept) for task, users in enumerate(self.users)]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """A number for each value, by its name."""
        names = (*self.inputs, *self.outputs, *(name for task in self for name in task.written))
        return {name: number for number, name in enumerate(dict.fromkeys(names))}

    @cached_property
    def calls(self) -> list[Call]:
        """What a real run calls for each task."""
        numbers = self.numbers
        writers = Counter(name for task in self for name in task.written)
        first = {task.name: task.written[0] for task in self}
        return [
            Call(
                task.call,
                task.args,
                tuple(numbers[name] for name in (*task.reads, *[first[other] for other in task.after])),
                tuple(numbers[name] for name in task.written),
                task.nbytes / len(task.written),
                len(task.written) == 1 and not task.nbytes and writers[task.written[0]] == 1,
            )
            for task in self
        ]

    @cached_property
    def kept(self) -> frozenset[int]:
        """The tasks whose results are kept to the end: those of ``outputs``, and those that nobody uses."""
        wanted = set(self.outputs)
        named = {task.id for task in self if wanted.intersection(task.written)} if wanted else set()
        return frozenset(named | {task for task, users in enumerate(self.users) if not users})

    def _after(self, task: Task) -> Iterator[Dependency]:
        sizes = task.after if isinstance(task.after, Mapping) else {}
        for name in task.after:
            if name not in self._places:
                raise ScheduleError(
                    f"task {task.name!r} waits for {name!r}, which does not exist; {meant(name, self._places)}"
                )
            source = self._places[name]
            yield Dependency(source, task.id, "after", name, sizes.get(name, self.nbytes[source]))

    def _dependency(self, source: int, target: int, reason: Reason, value: str) -> Dependency:
        return Dependency(source, target, reason, value, self.nbytes[source])

    def _check_is_input(self, task: Task, value: str) -> None:
        if value in self.inputs:
            return
        later = next((other.name for other in self if value in other.written), None)
        why = f"which {later!r} writes, but only later" if later else "which nobody writes"
        known = [*self.inputs, *(name for other in self for name in other.written)]
        hint = f"submit {later!r} first" if later else f"{meant(value, known)} Name it in inputs if it is there before"
        raise ScheduleError(f"task {task.name!r} reads {value!r}, {why}; {hint}")

    def _connect(self) -> None:
        owner: dict[str, int] = {}  # the task that produced a value; who writes it again works in its place
        for task in self:
            for value in task.written:
                owner.setdefault(value, task.id)
        travels: dict[tuple[int, int], float] = {}
        users: list[dict[int, None]] = [{} for _ in range(len(self))]
        for source, target, reason, value, nbytes in self.dependencies():
            travels[source, target] = max(nbytes, travels.get((source, target), 0))
            user_of = source if reason == "after" else owner[value]
            if user_of != target and reason != "write after read":
                users[user_of][target] = None
        before: list[list[int]] = [[] for _ in range(len(self))]
        for source, target in travels:
            before[target].append(source)
        self.predecessors = [tuple(sources) for sources in before]
        self._users = [tuple(using) for using in users]
        self._bytes_on_edge = {edge: nbytes for edge, nbytes in travels.items() if nbytes != self.nbytes[edge[0]]}


def _topological_order(tasks: Tasks) -> list[int]:
    """The smallest number first among those that wait for nothing; what is left waits in a circle, or for one."""
    waiting = [len(before) for before in tasks.predecessors]
    free = [task for task, count in enumerate(waiting) if not count]  # sorted, so it is a heap
    order: list[int] = []
    while free:
        task = heappop(free)
        order.append(task)
        for other in tasks.successors[task]:
            waiting[other] -= 1
            if not waiting[other]:
                heappush(free, other)
    if len(order) < len(tasks):
        raise ScheduleError(_circle(tasks, waiting))
    return order


def _circle(tasks: Tasks, waiting: Sequence[int]) -> str:
    task = next(task for task, count in enumerate(waiting) if count)
    path: list[int] = []
    while task not in path:
        path.append(task)
        task = next(before for before in tasks.predecessors[task] if waiting[before])
    circle = [*path[path.index(task) :], task]
    return "tasks wait for each other in a circle: " + " waits for ".join(repr(tasks.name(t)) for t in circle)


def check_places(tasks: Tasks, machine: Machine) -> None:
    """Refuse a task that no resource can run or hold, before anything runs.

    Raises:
        ScheduleError: a task has no cost on, or no room in the memory of, any resource that it may use; says why.
    """
    if tasks.are_plain and machine.computing and all(r.memory == math.inf for r in machine.resources):
        return
    for task in tasks:
        possible = [r for r in machine.resources if task.cost_on(r) is not None]
        if not possible:
            raise ScheduleError(f"task {task.name!r} can run on no resource: {_why_nowhere(task, machine)}")
        if all(task.nbytes > r.memory for r in possible):
            most = max(r.memory for r in possible)
            raise ScheduleError(
                f"task {task.name!r} produces {task.nbytes} bytes, more than the memory of any resource that it may use "
                f"({most}); split it, or give the machine more memory"
            )


def _why_nowhere(task: Task, machine: Machine) -> str:
    names = [r.name for r in machine.resources]
    asked = [r for r in machine.resources if task.on in (r.name, r.kind) or (task.on is None and r.computes)]
    if not asked:
        known = [*names, *(resource.kind for resource in machine.resources)]
        return f"it asks for {task.on or 'a device that computes'!r}; {meant(task.on, known)}"
    if all(task.demand > r.capacity for r in asked):
        return f"it demands {task.demand} units, and the largest capacity is {max(r.capacity for r in asked)}"
    kernels = some(task.cost) if isinstance(task.cost, Mapping) else "none"
    return f"it has a cost (for an op: a kernel) for {kernels}, and the machine has {some(r.kind for r in asked)}"
