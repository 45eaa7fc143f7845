"""One run on a cluster: it is handed over to Dask as a whole, listened to, and cleared away whatever happens."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any

import dask
from dask.highlevelgraph import HighLevelGraph
from distributed import Client, Future, KilledWorker

from ... import backend, events
from ..asking import make_plan, planned_order
from ..machines import Machine
from ..mistakes import ClusterError, ScheduleError, some
from ..outcomes import Named, explained, statuses
from ..policies import Policy, planned, soonest
from ..simulator import simulate
from ..tasks import Tasks, check_places
from ..timeline import Timeline
from .arguments import Arguments
from .clocks import Clocks, machine_of, names_of
from .record import Moved, Ran, Reports, timeline_of
from .workers import Moves, Told, keeping_layout, received

LOOK = 1.0  # seconds without news after which the workers are counted


class WorkerLost(ClusterError):
    """A worker is gone with what Dask cannot make up for; the caller has all that is needed, so the run can begin again."""


class Submission:
    """Tasks on their way to a cluster, and what the workers tell of them."""

    def __init__(
        self, client: Client, tasks: Tasks, inputs: Named, policy: Policy, machine: Machine | None, timeout: float
    ) -> None:
        self.client, self.tasks, self.inputs, self.policy, self.timeout = client, tasks, inputs, policy, timeout
        self.workers = machine or machine_of(client)
        _check(tasks, inputs, self.workers)
        self.id = uuid.uuid4().hex
        # The scheduler keeps a topic for ever, so there are few: one for each thread that waits for a run.
        self.told = Told(f"autodiff_lab {threading.get_ident()}", self.id)
        self.keys = [f"{task.name}-{self.id}" for task in tasks]
        self.clocks, self.names = Clocks(client), names_of(client)
        self.news: SimpleQueue[Any] = SimpleQueue()  # what workers report, and futures that are done
        self.reports: list[dict[str, Any]] = []
        self.wanted: list[Future] = []
        self.held: dict[str, Future] = {}  # inputs and large constants
        self.needed: set[str] = set()  # addresses of workers that others cannot stand in for
        self.began = 0.0

    def outcome(self) -> tuple[Named, Timeline]:
        """The values that are kept, and the timeline; or the error of the task that failed."""
        given = {f"{name}-{self.id}": name for name in self.inputs}
        moves = Moves(self.told, {**dict(zip(self.keys, range(len(self.tasks)), strict=True)), **given})
        try:
            self.client.register_plugin(moves)
            self.client.subscribe_topic(self.told.topic, lambda event: self.news.put(event[1]))
            self._hand_over()
            self._wait()
            values = self._values()
            return values, self._timeline(None)
        except BaseException as error:
            with suppress(Exception):
                self.client.cancel(self.wanted, force=True)
            raise self._explained(error) from error.__cause__
        finally:
            self.wanted.clear()
            self.held.clear()
            with suppress(Exception):
                self.client.unsubscribe_topic(self.told.topic)
                self.client.unregister_worker_plugin(moves.name)

    # ----------------------------------------------------------------------------------------------------------- handing over

    def _hand_over(self) -> None:
        order, lanes = _decided(self.tasks, self.workers, self.policy)
        priorities = {self.keys[task]: -place for place, task in enumerate(order)}
        before, restricted = _before_on_lane(order, lanes), self._restricted(lanes)
        self.needed = {address for some_of_them in restricted.values() for address in some_of_them}
        arguments = Arguments(self.tasks, self.keys, self.told, self.inputs, self.scattered)
        graph = {self.keys[task.id]: arguments.entry(task, before.get(task.id)) for task in self.tasks}
        with dask.annotate(
            priority=priorities.get,
            workers=restricted.get,  # not allow_other_workers: then Dask's work stealing takes tasks from their places
        ):
            layered = HighLevelGraph.from_collections(self.id, graph)
        self.began = perf_counter()
        self.wanted = self.client.get(layered, [self.keys[task] for task in sorted(self.tasks.kept)], sync=False)

    def _restricted(self, lanes: Sequence[int] | None) -> dict[str, list[str]]:
        """For tasks that may not run everywhere the workers' addresses."""
        resources, found = self.workers.resources, {}
        addresses = {name: address for address, name in self.names.items()}
        for task in self.tasks:
            able = [r for r in resources if task.cost_on(r) is not None]
            if lanes is not None:
                able = [resources[self.workers.lanes[lanes[task.id]][0]]]
            if len(able) < len(resources):
                found[self.keys[task.id]] = [addresses[r.name] for r in able if r.name in addresses]
        return found

    def scattered(self, values: Named) -> dict[str, Future]:
        """Values that every worker gets once. Dask may drop copies that nobody uses now, and fetches them again."""
        if not values:
            return {}
        laid = {f"{name}-{self.id}": keeping_layout(value) for name, value in values.items()}
        try:
            held = self.client.scatter(laid, broadcast=True, hash=False, timeout=self.timeout)
        except TypeError as error:
            raise ScheduleError(f"run_on_cluster: an input does not pickle, so it cannot be sent: {error}") from error
        found = {name: held[f"{name}-{self.id}"] for name in values}
        self.held.update(found)
        return found

    # --------------------------------------------------------------------------------------------------------------- waiting

    def _wait(self) -> None:
        """Until every task that is kept has ended, or one has failed."""
        for future in self.wanted:
            future.add_done_callback(self.news.put)
        left, last_news = len(self.wanted), perf_counter()
        while left:
            try:
                news = self.news.get(timeout=min(LOOK, self.timeout))
            except Empty:
                self._check_places()
                if perf_counter() - last_news >= self.timeout:
                    raise ClusterError(self._silence()) from None
                continue
            last_news = perf_counter()
            if isinstance(news, dict):
                self._hear(news)
            elif news.status == "finished":
                left -= 1
            else:
                self._hear_the_rest()
                raise self._error_of(news)

    def _check_places(self) -> None:
        """Tasks that may run on a lost worker only would wait for ever."""
        if gone := self.needed.difference(names_of(self.client)):
            names = some(self.names[address] for address in sorted(gone))
            raise WorkerLost(f"run_on_cluster: tasks were placed on {names}, which was lost; not done: {self._left()}.")

    def _hear(self, report: dict[str, Any]) -> None:
        if report["run"] == self.id:
            self.reports.append(report)

    def _hear_the_rest(self) -> None:
        with suppress(Empty):
            while True:
                news = self.news.get_nowait()
                if isinstance(news, dict):
                    self._hear(news)

    def _values(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for task, future in zip(sorted(self.tasks.kept), self.wanted, strict=True):
            try:
                result = future.result(timeout=self.timeout)
            except TimeoutError:
                raise ClusterError(self._silence()) from None
            written = self.tasks[task].written
            found.update(zip(written, received(result, len(written)), strict=True))
        return found

    # ---------------------------------------------------------------------------------------------------- what went wrong

    def _error_of(self, future: Future) -> BaseException:
        if future.status != "error":
            lost = some(name for name, held in self.held.items() if held.status != "finished")
            return WorkerLost(
                f"run_on_cluster: task {self._name(future.key)!r} cannot be computed any more: the last worker that had what "
                f"it needs is gone; inputs and large constants that were lost: {lost}. {self._who_is_left()}"
            )
        error: BaseException = future.exception()
        if isinstance(error, KilledWorker):
            return ClusterError(
                f"run_on_cluster: task {self._name(error.task)!r} was lost with {error.allowed_failures + 1} workers, each of "
                f"which ended while it ran it, the last at {error.last_worker.address}. Has it enough memory, and does it end "
                "its process? Try it at home with schedule.run, or read the worker's log with client.get_worker_logs()"
            )
        return error.with_traceback(future.traceback())

    def _silence(self) -> str:
        return (
            f"run_on_cluster: no task ended for {self.timeout:g} s; not done: {self._left()}. {self._who_is_left()} "
            "If a task takes longer, give a longer timeout"
        )

    def _left(self) -> str:
        ended = {report["task"] for report in self.reports if "task" in report}
        return some(self.tasks.name(task) for task in range(len(self.tasks)) if task not in ended)

    def _who_is_left(self) -> str:
        now: set[str] = set()
        with suppress(Exception):
            now = set(names_of(self.client))
        lost = some(name for address, name in self.names.items() if address not in now)
        return f"Workers that were lost: {lost}; workers now: {len(now)}."

    def _name(self, key: Any) -> str:
        return str(key).removesuffix(f"-{self.id}")

    def _explained(self, error: BaseException) -> BaseException:
        failed = next((r["task"] for r in self.reports if not r.get("is_done", True)), None)
        task = None if failed is None else self.tasks[failed]
        with suppress(Exception):  # the error is what counts
            return explained("schedule.run_on_cluster", error, task, self._timeline(failed))
        return error

    def _timeline(self, failed: int | None) -> Timeline:
        if any(report["worker"] not in self.names for report in self.reports):
            self.names.update(names_of(self.client))  # a worker came later
            self.clocks.ask(self.client)
        found = Reports()
        for report in self.reports:
            on = self.names.get(report["worker"], report["worker"])
            start, end = (self.clocks.ours(report["worker"], report[at]) - self.began for at in ("start", "end"))
            if "task" in report:
                found.add(report["task"], Ran(on, start, end, report["cpu"], report["is_done"]))
            else:
                source = self.names.get(report["source"], report["source"])
                found.moved.append(Moved(report["moved"], source, on, start, end))
        is_over = len(found.ran) == len(self.tasks) and failed is None
        became = {} if is_over else statuses(self.tasks, found.ran, failed)
        return timeline_of(self.tasks, self.workers, self.policy.name, found, became, self.clocks.error)


def _decided(tasks: Tasks, machine: Machine, policy: Policy) -> tuple[Sequence[int], Sequence[int] | None]:
    """The tasks by priority; and for each its lane, where the policy places tasks too and a simulated run has to decide."""
    if policy.place is soonest and policy.priority is planned:
        return planned_order(policy, make_plan(policy, tasks, machine), len(tasks))[0], None
    with events.silence():
        expected = simulate(tasks, machine, policy)
    return expected.order, None if policy.place is soonest else expected.lanes


def _before_on_lane(order: Sequence[int], lanes: Sequence[int] | None) -> dict[int, int]:
    """For each task the one before it on its lane, which it waits for, so that the decided order is kept."""
    last: dict[int, int] = {}
    found: dict[int, int] = {}
    if lanes is None:
        return found
    for task in order:
        if lanes[task] in last:
            found[task] = last[lanes[task]]
        last[lanes[task]] = task
    return found


def _check(tasks: Tasks, inputs: Named, workers: Machine) -> None:
    check_places(tasks, workers)
    for name, value in inputs.items():
        if backend.is_elsewhere(value):
            raise ScheduleError(
                f"run_on_cluster: the input {name!r} lies on {backend.device_of(value)}; bring it home with .numpy(), since "
                "workers compute on their CPUs"
            )
    if many := next((task for task in tasks if task.demand > 1), None):
        raise ScheduleError(
            f"run_on_cluster: task {many.name!r} demands {many.demand} units; a worker's thread runs one task"
        )
