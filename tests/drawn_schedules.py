"""Timelines that several tests draw: chains, graphs, pipelines, what takes no time, what is real, what has no tasks."""

from __future__ import annotations

from collections.abc import Callable

from autodiff_lab import schedule
from autodiff_lab.schedule import Task, Timeline
from tests.drawn_graphs import HOSTILE, joint, mlp_arguments, mlp_loss

STEP = schedule.training_step(3, micro_batches=2, update=0.5)
GRAPH = joint(mlp_loss, *mlp_arguments())


def pipelined() -> schedule.Tasks:
    """Stages of a pipeline, with a task for each value that travels."""
    stages = schedule.training_step(4, micro_batches=3, devices=["gpu0", "gpu1", "gpu2", "gpu3"])
    return schedule.with_transfers(stages, schedule.AlphaBeta(0.2, 0.1))


TIMELINES: dict[str, Callable[[], Timeline]] = {
    "a chain": lambda: schedule.simulate(STEP, 2, "critical_path"),
    "one task": lambda: schedule.simulate({"only": Task()}, 1),
    "no task": lambda: schedule.simulate({}, 2),
    "what takes no time": lambda: schedule.simulate({"a": Task(cost=0), "b": Task(cost=0, after=["a"])}, 2),
    "joint mlp": lambda: schedule.simulate(schedule.from_graph(GRAPH), 2),
    "micro-batches": lambda: schedule.simulate(schedule.from_graph(GRAPH, micro_batches=2), 2, "heft"),
    "a pipeline": lambda: schedule.simulate(pipelined(), schedule.pipeline(4), "fifo"),
    "hostile names": lambda: schedule.simulate({name: Task(nbytes=8) for name in HOSTILE if name}, 2),
    "a real run": lambda: schedule.run({"p": Task(lambda: 1), "q": Task(lambda p: p + 1, after=["p"])})[1],
}
