"""Tasks that move values: between the devices of a pipeline, and between the replicas of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .costs import AlphaBeta
from .task import Task
from .tasks import Tasks


def _same(value: Any) -> Any:
    return value


def with_transfers(tasks: Tasks, cost: AlphaBeta) -> Tasks:
    """The same tasks, where each value that another device needs gets there by a task of its own, once for each device.

    The tasks must be placed (``Task.on``). From ``gpu0`` to ``gpu1`` a value takes the resource ``gpu0->gpu1``, so transfers
    contend there, and each takes its device no time.

    >>> tasks = Tasks([Task(name="a", on="gpu0", nbytes=10), Task(name="b", on="gpu1", reads=["a"])])
    >>> [(task.name, task.on, task.cost) for task in with_transfers(tasks, AlphaBeta(1.0, 0.1))]
    [('a', 'gpu0', 1.0), ('a->gpu1', 'gpu0->gpu1', 2.0), ('b', 'gpu1', 1.0)]
    """
    maker = {value: task for task in tasks for value in task.written}
    made: set[str] = set()
    found: list[Task] = []
    for task in tasks:
        renamed = {}
        for value in dict.fromkeys((*task.reads, *task.after)):
            source = maker.get(value)
            if source is None or source.on is None or task.on is None or source.on == task.on:
                continue
            renamed[value] = f"{value}->{task.on}"
            if renamed[value] not in made:
                made.add(renamed[value])
                found.append(_transfer(source, value, task, cost))
        found.append(_reading(task, renamed))
    return Tasks(found, inputs=tasks.inputs, outputs=tasks.outputs)


def _transfer(source: Task, value: str, target: Task, cost: AlphaBeta) -> Task:
    return Task(
        _same, name=f"{value}->{target.on}", cost=cost.for_bytes(source.nbytes), reads=(value,), phase="comm",
        nbytes=source.nbytes, on=f"{source.on}->{target.on}", op="transfer", sequence=source.sequence,
        micro_batch=source.micro_batch,
    )  # fmt: skip


def with_all_reduce(tasks: Tasks, replicas: int, cost: AlphaBeta) -> Tasks:
    """The tasks of one of several equal replicas, where each gradient is added up over all of them before it is used.

    A gradient is what a ``dW`` task writes for an update, or for whoever gets the outputs. Its all-reduce is a task on a
    ``link``. It is there to be simulated: one process has no other replicas, so running it hands the value on.

    >>> tasks = Tasks([Task(name="g", phase="dW", nbytes=10), Task(name="w", phase="update", reads=["g"])])
    >>> [(task.name, task.on, task.cost) for task in with_all_reduce(tasks, 2, AlphaBeta(1.0, 0.1))][1]
    ('all_reduce(g)', 'link', 3.0)
    """
    used = {value for task in tasks if task.phase == "update" for value in (*task.reads, *task.after)} | {
        *tasks.outputs
    }
    last_writer = {value: task.id for task in tasks if task.phase == "dW" for value in task.written}
    renamed: dict[str, str] = {}
    found: list[Task] = []
    for task in tasks:
        found.append(_reading(task, renamed) if task.phase == "update" else task)
        for value in [value for value in task.written if value in used and last_writer.get(value) == task.id]:
            renamed[value] = f"all_reduce({value})"
            found.append(_all_reduce(task, value, cost.all_reduce(task.nbytes, replicas)))
    return Tasks(found, inputs=tasks.inputs, outputs=[renamed.get(value, value) for value in tasks.outputs])


def _all_reduce(source: Task, value: str, seconds: float) -> Task:
    return Task(
        _same, name=f"all_reduce({value})", cost=seconds, reads=(value,), phase="comm", nbytes=source.nbytes, on="link",
        op="all_reduce", sequence=source.sequence, micro_batch=source.micro_batch,
    )  # fmt: skip


def _reading(task: Task, renamed: Mapping[str, str]) -> Task:
    """The task with other names for what it reads and waits for."""
    if not renamed:
        return task
    sizes = task.after if isinstance(task.after, Mapping) else None
    after: Any = [renamed.get(name, name) for name in task.after]
    if sizes is not None:
        after = dict(zip(after, sizes.values(), strict=True))
    return replace(task, reads=tuple(renamed.get(value, value) for value in task.reads), after=after)
