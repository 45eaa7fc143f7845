"""Workers on real threads: they carry out tasks that wait for each other, and every one of them ends, whatever happens."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Sequence
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from time import monotonic, perf_counter, sleep, thread_time
from typing import NamedTuple, Protocol

from .blas import limit_this_thread

NONE, ALL_DONE = -1, -2  # instead of a task; every task's number is higher
LOOK = (
    0.2  # seconds after which a sleeping worker looks by itself; on Windows only then Ctrl-C is heard while it sleeps
)
GRACE = 0.3  # seconds that running tasks get to end after another one failed, and then to notice that they are stopped


class Work(Protocol):
    """What a crew is given to do. Tasks are numbers."""

    def execute(self, task: int) -> None:
        """Run a task; many workers do at once."""

    def step(self, worker: int, done: int) -> int:
        """The worker has done a task, or NONE; the task that it runs next, or NONE: it sleeps until it is woken, or ALL_DONE.

        Called by one worker at a time.
        """


class Failure(NamedTuple):
    """What ended a run before its time: an error, and the task in which it was raised, or NONE."""

    task: int
    error: BaseException


class Stopped(BaseException):
    """Raised inside a task whose worker is to end now."""


class Crew:
    """Workers for the seven steps. The calling thread is worker 0: one worker needs no thread, and Ctrl-C reaches a task.

    One lock guards ``step``. It is only tried, never waited for: a thread that sleeps on a lock is given it
    before it has the GIL, and then the thread that has the GIL sleeps on the lock. With waiting, two workers switched every
    16 tasks and needed twice the time.
    """

    def __init__(self, work: Work, workers: int, tasks: int) -> None:
        self.work = work
        self.began = 0.0  # by ``perf_counter``; whoever has the crew says it
        self.starts, self.ends = [math.nan] * tasks, [math.nan] * tasks  # seconds since then; NaN is not yet
        self.lanes = [NONE] * tasks
        self.cpu_times = [0.0] * workers
        self.failure: Failure | None = None
        self._stopped = False
        self._lock = [None]  # who takes the item out has the lock: half of the time of a ``threading.Lock``
        self._asleep: list[SimpleQueue[None]] = [SimpleQueue() for _ in range(workers)]

    def run(self) -> None:
        """Carry out every task, or stop at the first that fails: ``failure`` says which.

        Each worker runs in a copy of the caller's context, so tasks see its context variables and change only their own.
        """
        threads = [self._thread(number) for number in range(1, len(self._asleep))]
        try:
            for thread in threads:
                thread.start()
            copy_context().run(self._begin, 0)
        except BaseException as error:  # Ctrl-C between two lines of the engine
            self._stop(NONE, error)
        finally:
            self._end(threads)

    def wake(self, worker: int) -> None:
        """Let a worker ask for its next task; one that is awake asks once too often."""
        self._asleep[worker].put(None)

    def _thread(self, number: int) -> threading.Thread:
        return threading.Thread(
            target=copy_context().run, args=(self._begin, number), name=f"schedule worker {number}", daemon=True
        )

    def _begin(self, me: int) -> None:
        began = thread_time()
        try:
            if me:
                limit_this_thread()
            self._loop(me)
        except Stopped:
            pass
        except BaseException as error:
            self._stop(NONE, error)
        finally:
            self.cpu_times[me] = thread_time() - began

    def _loop(self, me: int) -> None:
        take, give, step, execute = self._lock.pop, self._lock.append, self.work.step, self.work.execute
        lanes, starts, ends, clock, began = self.lanes, self.starts, self.ends, perf_counter, self.began
        task = NONE
        while True:
            try:
                take()
            except IndexError:
                if self._stopped:
                    return  # the lock may have been left by a worker that was interrupted just before its ``try``
                sleep(0)  # gives the GIL to the worker that has the lock
                continue
            try:
                task = ALL_DONE if self._stopped else step(me, task)
            finally:
                give(None)
            if task < 0:
                if task == ALL_DONE:
                    self._stopped = True
                    return self._wake_all()
                self._sleep(me)
                continue
            lanes[task] = me
            starts[task] = clock() - began
            try:
                execute(task)
            except Stopped:
                return  # it has no end
            except BaseException as error:
                ends[task] = clock() - began
                return self._stop(task, error)
            ends[task] = clock() - began

    def _sleep(self, me: int) -> None:
        with suppress(Empty):
            self._asleep[me].get(timeout=LOOK)

    # ------------------------------------------------------------------------------------------------------------- the end

    def _stop(self, task: int, error: BaseException) -> None:
        """Let every worker end after the task that it runs now."""
        if self.failure is None and not isinstance(error, Stopped):
            self.failure = Failure(task, error)
        self._stopped = True
        self._wake_all()

    def _wake_all(self) -> None:
        for worker in range(len(self._asleep)):
            self.wake(worker)

    def _end(self, threads: Sequence[threading.Thread]) -> None:
        """Join the threads. What still runs after the grace is stopped, and ends at its next line of Python.

        A function that never comes back to Python keeps its thread until the process ends; it cannot delay the caller.
        """
        self._stopped = True
        self._wake_all()
        alive = [thread for thread in threads if thread.ident is not None]
        is_patient = self.failure is None or isinstance(self.failure.error, Exception)
        for grace in (GRACE if is_patient else 0.0, GRACE):  # the stop button is obeyed at once
            until = monotonic() + grace
            for thread in alive:
                thread.join(max(0.0, until - monotonic()))
            alive = [thread for thread in alive if thread.is_alive()]
            for thread in alive:
                _raise_in(thread, Stopped)


def _raise_in(thread: threading.Thread, kind: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(kind))
