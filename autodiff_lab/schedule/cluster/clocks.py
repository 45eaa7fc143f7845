"""The workers of a cluster: who they are, what they have, and how far their clocks are ahead of ours."""

from __future__ import annotations

from time import perf_counter, sleep
from typing import Any

from distributed import Client

from ... import __version__
from ..machines import Machine, Resource
from ..mistakes import ClusterError
from .workers import clock

TRIES = 5  # the shortest of so many answers says most exactly what a clock shows


def names_of(client: Client) -> dict[str, str]:
    """What each worker is called, by its address."""
    return {address: _name(facts["name"]) for address, facts in _facts(client).items()}


def machine_of(client: Client) -> Machine:
    """The cluster as a policy sees it: a resource for each worker, a lane for each of its threads.

    Raises:
        ClusterError: there is no worker.
    """
    facts = sorted(_facts(client).values(), key=lambda one: (not isinstance(one["name"], int), one["name"]))
    if not facts:
        raise ClusterError(
            "run_on_cluster: the cluster has no workers; start some, or wait with client.wait_for_workers(1)"
        )
    return Machine(tuple(Resource(_name(one["name"]), capacity=one["nthreads"]) for one in facts))


def wait_for(client: Client, machine: Machine, timeout: float) -> None:
    """Wait until every worker of a machine is there again, at most so many seconds; then go on with those that are."""
    until = perf_counter() + timeout
    while perf_counter() < until and not {r.name for r in machine.resources} <= set(names_of(client).values()):
        sleep(0.1)


def _facts(client: Client) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = client.scheduler_info(n_workers=-1)["workers"]
    return found


def _name(name: Any) -> str:
    return f"worker{name}" if isinstance(name, int) else str(name)


class Clocks:
    """How far each worker's clock is ahead. One that agrees within the error of asking is taken to be ours, as on one machine.

    A successor begins at least one message after what it waits for has ended, and that takes longer than the error.
    """

    def __init__(self, client: Client) -> None:
        self.ahead: dict[str, float] = {}
        self.error = 0.0
        self.ask(client)

    def ask(self, client: Client) -> None:
        """Ask each worker several times; the shortest way there and back counts.

        Raises:
            ClusterError: a worker has not our version of the lab.
        """
        best: dict[str, tuple[float, float]] = {}
        for _ in range(TRIES):
            asked = perf_counter()
            answers = client.run(clock, on_error="return")
            error = (perf_counter() - asked) / 2
            for address, answer in answers.items():
                ahead = _shown(address, answer) - asked - error
                best[address] = min(best.get(address, (error, ahead)), (error, ahead))
        for address, (error, ahead) in best.items():
            self.ahead[address] = ahead if abs(ahead) > error else 0.0
            self.error = max(self.error, error)

    def ours(self, address: str, time: float) -> float:
        """What our clock showed when a worker's showed ``time``."""
        return time - self.ahead.get(address, 0.0)


def _shown(address: str, answer: Any) -> float:
    """What a worker's clock shows, if the worker has our version of the lab."""
    here = f"this process has autodiff_lab {__version__}: install the same version on every worker and on the scheduler"
    if isinstance(answer, BaseException):
        raise ClusterError(
            f"run_on_cluster: worker {address} cannot load the lab ({type(answer).__name__}: {answer}), and {here}"
        ) from answer
    shown, version = answer
    if version != __version__:
        raise ClusterError(f"run_on_cluster: worker {address} has autodiff_lab {version}, and {here}")
    return float(shown)
