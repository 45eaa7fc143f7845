"""Scheduling: which op runs first, which later, and on which device. Tasks, machines, policies, a simulator, timelines.

>>> from autodiff_lab import schedule
>>> tasks = schedule.Tasks(
...     {"a": schedule.Task(cost=3), "b": schedule.Task(cost=2), "c": schedule.Task(cost=2, after=["b"])}
... )
>>> schedule.simulate(tasks, schedule.cores(2), "critical_path").makespan
4.0
"""

from .cluster import cluster_machine, run_on_cluster
from .costs import AlphaBeta, Constant, CostModel, Measured, Roofline, Work, measure
from .executor import run
from .graph_tasks import from_graph, phases
from .machines import Machine, Resource, Transfer, cores, cpu_and_gpu, gpus, pipeline
from .mistakes import ClusterError, DeadlockError, OutOfMemoryError, PolicyError, ScheduleError
from .movement import with_all_reduce, with_transfers
from .plan_tasks import from_plan
from .plans import Plan, upward_ranks
from .policies import DEFAULT, POLICIES, Policy, as_policy, planned, searched, soonest
from .search import Search
from .simulator import simulate
from .state import State
from .task import Dependency, Task
from .tasks import Tasks
from .timeline import Span, Timeline
from .workloads import training_step

__all__ = [
    "DEFAULT", "POLICIES", "AlphaBeta", "ClusterError", "Constant", "CostModel", "DeadlockError", "Dependency", "Machine",
    "Measured", "OutOfMemoryError", "Plan", "Policy", "PolicyError", "Resource", "Roofline", "ScheduleError", "Search",
    "Span", "State", "Task", "Tasks", "Timeline", "Transfer", "Work", "as_policy", "cluster_machine", "cores", "cpu_and_gpu",
    "from_graph", "from_plan", "gpus", "measure", "phases", "pipeline", "planned", "run", "run_on_cluster", "searched",
    "simulate", "soonest", "training_step", "upward_ranks", "with_all_reduce", "with_transfers",
]  # fmt: skip
