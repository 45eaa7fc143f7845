"""Tasks as pictures show them: the key of each, its colour and shape, the graph of who waits for whom, its facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from autodiff_lab.graph import Graph, Node
from autodiff_lab.graph import Phase as Side
from autodiff_lab.schedule.task import Phase, Task
from autodiff_lab.schedule.tasks import Tasks

from .captions import Names, listed
from .facts import Rows
from .shapes import writable
from .values import bytes_text, number_text, time_text

SIDES: Mapping[Phase, Side] = {"F": "forward", "dX": "backward", "dW": "backward", "update": "update"}
PHASES: Mapping[Phase, str] = {
    "F": "forward (F)",
    "dX": "input gradient (dX)",
    "dW": "weight gradient (dW)",
    "comm": "transfer (comm)",
    "update": "update",
}


def task_keys(tasks: Tasks) -> list[str]:
    """The key of each task's elements: that of the node that it came from, so that both are selected together.

    What comes from one node several times, as in micro-batches, has a name of its own behind a ``~``.

    >>> from autodiff_lab import schedule
    >>> task_keys(schedule.Tasks({"load": schedule.Task(), "sum": schedule.Task()}))
    ['task:load', 'task:sum']
    """
    keys: dict[str, None] = {}
    for task in tasks:
        name = writable(task.name).replace("~", "∼")
        key = f"n{task.serial}" if task.serial >= 0 else f"task:{name}"
        keys[f"{key}~{name}" if key in keys else key] = None
    return list(keys)


def task_names(tasks: Tasks) -> Names:
    """How sentences call tasks."""
    return Names(lambda task: f"`{writable(tasks.name(task))}`")


def graph_of_tasks(tasks: Tasks) -> Graph:
    """The graph of who waits for whom; node ids are places in ``tasks.order``. A backward task belongs to its forward task."""
    place = {task: number for number, task in enumerate(tasks.order)}
    forward = {task.sequence: place[task.id] for task in tasks if task.phase == "F" and task.sequence >= 0}
    nodes: list[Node] = []
    for task in tasks.order:
        inputs = tuple(sorted(place[other] for other in tasks.predecessors[task]))
        node = Node(len(nodes), "op", writable(tasks.name(task)), (), np.dtype("float64"), inputs=inputs)
        nodes.append(_sided(node, tasks[task], forward, nodes))
    ends = tuple(place[task] for task in range(len(tasks)) if not tasks.successors[task])
    return Graph(tuple(nodes), (), ends, "tasks")


def _sided(node: Node, task: Task, forward: Mapping[int, int], before: Sequence[Node]) -> Node:
    """The node on its side of the graph; what moves values is on the side of what it waits for."""
    side = SIDES.get(task.phase) or (before[node.inputs[-1]].phase if node.inputs else "forward")
    origin = forward.get(task.sequence) if side == "backward" else None
    return replace(node, phase=side, origin=origin if origin is not None and origin < node.id else None)


def task_facts(tasks: Tasks, task: int) -> Rows:
    """What is known of a task before it runs."""
    it = tasks[task]
    rows = [
        ("task", writable(it.name)),
        ("op", it.op),
        ("phase", PHASES[it.phase]),
        ("cost", _cost_text(it)),
        ("waits for", listed([writable(tasks.name(other)) for other in tasks.predecessors[task]])),
        ("is waited for by", listed([writable(tasks.name(other)) for other in tasks.successors[task]])),
        ("produces", bytes_text(it.nbytes) if it.nbytes else ""),
        ("must run on", it.on or ""),
        ("micro-batch", str(it.micro_batch) if it.micro_batch else ""),
    ]
    return tuple((label, value) for label, value in rows if value)


def _cost_text(task: Task) -> str:
    if isinstance(task.cost, Mapping):
        return ", ".join(f"{time_text(cost)} on {kind}" for kind, cost in task.cost.items())
    return time_text(task.cost) + (f", {number_text(task.demand)} units" if task.demand > 1 else "")
