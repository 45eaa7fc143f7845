"""Beyond one machine: the same tasks on the workers of a Dask cluster, with our priorities and places, and when each ran.

Dask is imported when somebody calls, not before; the extra ``cluster`` installs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...graph import Graph
from ...planning import Plan
from ..costs import CostModel
from ..machines import Machine, Transfer
from ..mistakes import ClusterError, ScheduleError
from ..outcomes import Named, outcome
from ..policies import DEFAULT, Place, Policy, Priority, as_policy
from ..task import Task
from ..tasks import Tasks
from ..timeline import Timeline

if TYPE_CHECKING:
    from distributed import Client

ATTEMPTS = 3  # at a run whose workers are lost with what Dask cannot make up for
REPEATS = 5  # of each size, when travel times are measured


def run_on_cluster(
    work: Graph | Tasks | Iterable[Task] | Mapping[str, Task],
    inputs: Sequence[Any] | Mapping[str, Any] = (),
    client: Client | None = None,
    policy: str | Policy | Priority | tuple[Priority, Place] = DEFAULT,
    *,
    costs: CostModel | None = None,
    machine: Machine | None = None,
    timeout: float = 60.0,
) -> tuple[Any, Timeline]:
    """Run a graph or tasks on the workers of a Dask cluster: the outputs of ``run``, bit by bit, and a timeline.

    The whole graph is handed to Dask at once. Dask runs the ready task of the highest priority first, and so do our
    policies: a task's place in the policy's order becomes its priority there. Where a policy only orders, Dask chooses the
    worker, one that has the values or the least busy. Where it places tasks too (``heft``, ``in_order``, …), a simulated run
    decides in advance which worker runs what in which order. A task with ``on`` runs on the worker of that name.

    Values stay on the worker that made them until another one needs them. These travels are tasks of the timeline, of the phase
    ``comm``, measured by the worker that waited. If a worker dies, Dask computes what it held again, on others. Where tasks
    were placed on it, the run begins again when the worker is back, and the timeline tells of the last attempt.

    Each worker must have the lab, in the same version. Ops that only the caller has, as from a notebook, are sent. A task takes
    some milliseconds of Dask's time, so this pays for tasks of 20 ms or more. BLAS should compute on one thread there, as it
    does in the processes of a ``LocalCluster``. A script starts these below ``if __name__ == "__main__":``.

    Args:
        work, inputs, policy, costs: as for ``run``. A plan's steps share memory, so it is no work for a cluster.
        client: a ``distributed.Client``; the last that was made by default. Its workers are the resources ``worker0``, ….
        machine: what a policy expects of the cluster, from ``cluster_machine``; without it travels cost nothing.
        timeout: seconds in which no task ends, after which the run gives up.

    Returns:
        outputs: as of ``run``.
        timeline: seconds from the moment of handing over, on the caller's clock; ``clock_error`` says how exactly the workers'
            clocks are known. What travelled is among its tasks.

    Raises:
        Whatever a task raises, with the note and the timeline of ``run``. Nothing of the run stays with the cluster; only
            what a worker computes at that moment ends by itself. The same holds for Ctrl-C.
        ClusterError: there is no worker, what a worker had is lost for good, or nothing happens any more.
        ScheduleError: Dask is missing, tasks and policy do not fit, an input is missing, or something cannot be sent.

    >>> from distributed import Client
    >>> with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as client:
    ...     tasks = {"p": Task(lambda: 1), "q": Task(lambda p: p + 1, after=["p"])}
    ...     outputs, timeline = run_on_cluster(tasks, client=client, policy="critical_path")
    >>> outputs, timeline.faults()
    ({'q': 2}, [])
    """
    if isinstance(work, Plan):
        raise ScheduleError(
            "run_on_cluster: a plan's steps write into memory that they share; give its graph, as in plan.graph"
        )
    chosen, cluster = as_policy(policy), _client(client)

    def on_workers(tasks: Tasks, named: Named) -> tuple[Named, Timeline]:
        from .clocks import wait_for
        from .submission import Submission, WorkerLost

        attempt = 1
        while True:
            submission = Submission(cluster, tasks, named, chosen, machine, timeout)
            try:
                return submission.outcome()
            except WorkerLost as lost:
                if attempt == ATTEMPTS:
                    lost.add_note(
                        f"The run was begun {ATTEMPTS} times. Does a task end its process? Try it with schedule.run"
                    )
                    raise
            wait_for(cluster, submission.workers, timeout)
            attempt += 1

    return outcome("run_on_cluster", work, inputs, costs, on_workers)


def cluster_machine(client: Client | None = None, nbytes: int = 4_000_000) -> Machine:
    """The workers of a cluster as a Machine that ``simulate`` takes, with measured travel times: alpha + beta · bytes.

    Arrays of one number and of ``nbytes`` bytes are sent from the first worker to the second, one after the other, several
    times. The shortest times count, for every pair.

    Raises:
        ClusterError, ScheduleError: as for ``run_on_cluster``.
    """
    cluster = _client(client)
    from .clocks import machine_of

    workers = machine_of(cluster)
    names = [resource.name for resource in workers.resources]
    if len(names) == 1:
        return workers
    tasks: dict[str, Task] = {}
    before: list[str] = []
    for number in range(REPEATS):
        for size in (8, nbytes):  # one after the other, so that none has to share the way
            sent, come = f"{size}, {number}", f"{size}, {number}, there"
            tasks[sent] = Task(_zeros, args=(size,), after=before, on=names[0])
            tasks[come] = Task(np.size, after=[sent], on=names[1])
            before = [come]
    _, timeline = run_on_cluster(tasks, client=cluster)
    few, many = (_shortest_travel(timeline, f"{size}, ") for size in (8, nbytes))
    way = Transfer(few, max(0.0, many - few) / nbytes)
    return Machine(workers.resources, {(a, b): way for a in names for b in names if a != b})


def _zeros(nbytes: int, *_before: Any) -> np.ndarray[Any, Any]:
    return np.zeros(nbytes // 8)


def _shortest_travel(timeline: Timeline, beginning: str) -> float:
    """The least disturbed travel of a value whose name begins so."""
    spans = [span for span in timeline.spans if span.phase == "comm" and span.name.startswith(beginning)]
    return min(span.end - span.start for span in spans if ", there" not in span.name)


def _client(client: Client | None) -> Client:
    try:
        from distributed import Client, default_client
    except ImportError:
        raise ScheduleError(
            'run_on_cluster: Dask is not installed; pip install "autodiff-lab[cluster]", or pip install distributed'
        ) from None
    if client is None:
        try:
            return default_client()
        except ValueError:
            raise ClusterError(
                "run_on_cluster: there is no client of a cluster; make one, for instance "
                "client = distributed.Client(n_workers=2, threads_per_worker=1)"
            ) from None
    if not isinstance(client, Client):
        raise ScheduleError(f"run_on_cluster: client must be a distributed.Client, got {client!r}")
    return client
