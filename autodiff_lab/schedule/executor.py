"""Execute: run the tasks of a graph, or functions that wait for each other, on real threads, and say who ran when and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from threading import RLock
from time import perf_counter
from typing import Any

from .. import events
from ..events import Receiver
from ..graph import Graph
from ..planning import Plan
from .blas import one_blas_thread
from .costs import CostModel
from .crew import ALL_DONE, NONE, Crew, Failure
from .dispatch import Dispatch
from .machines import Machine, cores
from .mistakes import ScheduleError
from .outcomes import Named, explained, outcome, statuses
from .plan_tasks import runner_of
from .policies import DEFAULT, Place, Policy, Priority, as_policy
from .streams import device_of_inputs, execute_on_streams
from .task import Task
from .tasks import Tasks, check_places
from .timeline import LiveBytes, Status, Timeline
from .values import Values


def run(
    work: Graph | Plan | Tasks | Iterable[Task] | Mapping[str, Task],
    inputs: Sequence[Any] | Mapping[str, Any] = (),
    workers: int = 2,
    policy: str | Policy | Priority | tuple[Priority, Place] = DEFAULT,
    tell: Receiver | None = None,
    costs: CostModel | None = None,
) -> tuple[Any, Timeline]:
    """Run a graph, a plan or tasks on real threads: the outputs, and a timeline of the form that ``simulate`` gives.

    Ops release Python's lock while they compute, so two workers keep two cores busy; plain Python functions take turns. BLAS
    computes on one thread meanwhile. Every result is the same as with one worker, bit by bit. A value is dropped when the last
    task that uses it has finished.

    Inputs on a simulated device, ``sim:0``, are computed there, and a worker is a stream of it. Then the order is decided in
    advance, the device tells what it does (``WorkQueued``, ``Synchronised``), and ``tell`` hears nothing.

    The calling thread is the first worker. Tasks see the caller's context (``ad.listen``, ``ad.no_grad``, name scopes) and
    change only their worker's copy; a receiver hears one event at a time.

    Args:
        work: a Graph or a Plan; or ``Tasks``, or what they are made of. A task's ``call`` is given its ``args``, then the
            values that it reads, then the results of the tasks in ``after``.
        inputs: a graph's or plan's arguments in order; for tasks a dict of the values that are there before.
        workers: how many run at once; they are the ``cores(workers)`` that a policy sees.
        policy: as for ``simulate``.
        tell: hears each step; by default whoever listens with ``ad.listen``.
        costs: what a policy expects a graph's ops or a plan's steps to take, for instance ``measure(graph, *inputs)``;
            ``Roofline()`` by default.

    Returns:
        outputs: for a graph or plan what calling it gives; for tasks a dict of their outputs, and of results that no task uses.
        timeline: seconds from the start. ``cpu_times`` are those of the workers, ``live_bytes`` are measured.

    Raises:
        Whatever a task raises: the same exception, with a note that names the task and, for an op, the user's line. Others
            that run may end within 0.3 s; those that depend on it are ``skipped``, the rest is ``cancelled``, and the
            exception's ``timeline`` says so. No thread is left, unless a function never comes back to Python.
        ScheduleError: tasks and policy do not fit, or an input is missing; before anything runs.
        PolicyError, DeadlockError: as for ``simulate``; what runs is stopped.

    >>> tasks = {"p": Task(lambda: 1), "q": Task(lambda p: p + 1, after=["p"])}
    >>> outputs, timeline = run(tasks)
    >>> outputs, timeline.order, timeline.faults()
    ({'q': 2}, [0, 1], [])
    """
    if type(workers) is not int or workers < 1:
        raise ScheduleError(f"run: workers must be a whole number of at least 1, got {workers!r}")
    if isinstance(work, Plan):
        return runner_of(work, workers, costs).run(
            work.checked(tuple(inputs)), execute, cores(workers), as_policy(policy), tell
        )

    def in_threads(tasks: Tasks, named: Named) -> tuple[Named, Timeline]:
        values = Values(tasks, named)
        timeline = execute(tasks, values, cores(workers), as_policy(policy), tell)
        return values.named, timeline

    return outcome("run", work, inputs, costs, in_threads)


def execute(tasks: Tasks, values: Values, machine: Machine, policy: Policy, tell: Receiver | None = None) -> Timeline:
    """Run tasks on a machine of cores. ``values`` has the inputs, and afterwards what was kept."""
    device = device_of_inputs(values)
    if device != "cpu":
        return execute_on_streams(tasks, values, device, len(machine.lanes), policy)
    check_places(tasks, machine)
    if (receiver := events.receiver()) is not None:
        heard = _one_at_a_time(receiver)
        with events.switched(receiver=heard):
            return _Execution(tasks, values, machine, policy, tell or heard).run()
    return _Execution(tasks, values, machine, policy, tell).run()


def _one_at_a_time(receiver: Receiver) -> Receiver:
    lock = RLock()

    def tell(event: events.Event) -> None:
        with lock:
            receiver(event)

    return tell


Step = Callable[[int, int], int]  # a worker and what it has done: what it runs next. See ``crew.Work``


class _Execution(Dispatch):
    """The engine that asks the clock.

    With equal workers and nobody listening, a worker that is free takes the first ready task itself (``is_pulled``).
    Otherwise each ready task is asked for its place, as in the simulator, and handed to the worker there.
    """

    step: Step

    def __init__(self, tasks: Tasks, values: Values, machine: Machine, policy: Policy, tell: Receiver | None) -> None:
        super().__init__(tasks, machine, policy, tell)
        self.is_pulled = self.is_alike and tell is None
        self.values = values
        self.execute = values.call
        self.left = len(tasks)
        self.idle: set[int] = set()
        self.handed = [NONE] * len(machine.lanes)
        self.crew = Crew(self, len(machine.lanes), len(tasks))

    def run(self) -> Timeline:
        """All seven steps, and the timeline; or the error of the task that failed."""
        with one_blas_thread():
            if self.is_plain:
                self.count_users()
            self.crew.began = perf_counter()
            self.collect()
            self.step = self._pulling() if self.is_pulled else self._handing_over
            if self.left:
                self.crew.run()
        timeline = self._timeline()
        if self.crew.failure is not None:
            raise self._explained(self.crew.failure, timeline)
        if self.tell is not None:
            self.tell(events.AllTasksDone(timeline.makespan))
        return timeline

    def expected_end(self, task: int) -> float:
        """Unknown, so the task that began first counts as the first to end."""
        start = self.crew.starts[task]
        return math.inf if math.isnan(start) else start

    # ------------------------------------------------------------------------------------------ what the crew asks: Work

    def _pulling(self) -> Step:
        """Steps 4 to 7 for workers that take the first ready task themselves.

        What every step needs is in local names, and without state each task is counted down here: a tenth of the time.
        """
        ready, idle, is_planned, is_plain = self.ready, self.idle, self.is_planned, self.is_plain
        waiting, position, by_priority = self.waiting, self.position, self.by_priority
        successors, uses, users_left = self.tasks.successors, self.uses, self.users_left
        values, unweighed, drop = self.values, self.values.unweighed, self.values.drop

        def step(worker: int, done: int) -> int:
            if done != NONE:
                self.left -= 1
                if not is_plain:
                    self._finish(done)
                else:
                    if unweighed[done] is not None:
                        values.weigh(done)
                    for producer in uses[done]:  # as in ``use_up``
                        users_left[producer] = left = users_left[producer] - 1
                        if not left:
                            drop(producer)
                    for after in successors[done]:  # as in ``count_down``
                        waiting[after] = left = waiting[after] - 1
                        if not left:
                            heappush(ready, position[after])
                if not self.left:
                    return ALL_DONE
            if not ready:
                idle.add(worker)
                return NONE
            entry = heappop(ready)
            task: int = by_priority[entry] if is_planned else entry[1]
            if idle:
                idle.discard(worker)
                if ready and idle:
                    self.crew.wake(idle.pop())
            if not is_plain:
                self.acquire(task, worker)
            return task

        return step

    def _handing_over(self, worker: int, done: int) -> int:
        """Steps 4 to 7 for a worker that waits until a task is handed to it."""
        if done != NONE:
            self.left -= 1
            self._finish(done)
            if not self.left:
                return ALL_DONE
        if self.handed[worker] == NONE:
            self._hand_over(worker)
        task, self.handed[worker] = self.handed[worker], NONE
        return task

    def _finish(self, task: int) -> None:
        """What a worker has done is counted."""
        if self.values.unweighed[task] is not None:
            self.values.weigh(task)
        self.state.time = self.crew.ends[task]
        self.release(task)
        self.count_down(task)

    def drop(self, producer: int) -> None:
        """The last task that uses a result has finished."""
        self.values.drop(producer)
        super().drop(producer)

    def _hand_over(self, worker: int) -> None:
        """Ask the ready tasks, in order of priority, where to run now."""
        self.state.time = self._now()
        aside = []
        while self.ready and (any(self.state.free_lanes) or self.tell is not None):
            entry = heappop(self.ready)
            task = self.by_priority[entry] if self.is_planned else entry[1]
            place = self.choose(task)
            if place is None:
                aside.append(entry)
                continue
            lane = self.acquire(task, place)
            self.handed[lane] = task
            if lane != worker:
                self.crew.wake(lane)
        self.ready.extend(aside)
        heapify(self.ready)
        if self.left and not self.state.running:
            raise self.deadlock()

    def _now(self) -> float:
        return perf_counter() - self.crew.began

    # --------------------------------------------------------------------------------------------------------------- the end

    def _timeline(self) -> Timeline:
        crew, failure = self.crew, self.crew.failure
        ends = crew.ends
        if failure is not None:  # what had begun and has no end was stopped
            now = self._now()
            ends = [
                now if math.isnan(end) and lane != NONE else end for end, lane in zip(ends, crew.lanes, strict=True)
            ]
        last = max([end for end in ends if end == end], default=0.0)
        live = [LiveBytes(min(time - crew.began, last), nbytes) for time, nbytes in self.values.memory.changes]
        return Timeline(
            self.tasks,
            self.machine,
            self.policy.name,
            crew.starts.copy(),  # a worker that never ends may still write
            list(ends),
            list(crew.lanes),
            {} if failure is None else self._statuses(failure),
            simulated=False,
            cpu_times=list(crew.cpu_times),
            live=[LiveBytes(0.0, 0), *live],
        )

    def _statuses(self, failure: Failure) -> dict[int, Status]:
        ended = {task for task, end in enumerate(self.crew.ends) if end == end}
        return statuses(self.tasks, ended, None if failure.task == NONE else failure.task)

    def _explained(self, failure: Failure, timeline: Timeline) -> BaseException:
        task = None if failure.task == NONE else self.tasks[failure.task]
        return explained("schedule.run", failure.error, task, timeline)
