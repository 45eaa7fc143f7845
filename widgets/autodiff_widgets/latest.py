"""Work that only its newest order matters of: done in one thread, after a pause in which a newer order may come."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from threading import Condition, Thread, current_thread
from time import monotonic


class Latest:
    """Does the job that was asked for last. One that waits is dropped when a newer one comes; the thread ends when none waits.

    ``pause`` is how long to wait for a newer job, in seconds. A job that has not ended ``patience`` seconds after it began is
    left to itself, and the next one gets a new thread.

    >>> done, latest = [], Latest(pause=0.05)
    >>> for number in range(3):
    ...     latest.ask(lambda number=number: done.append(number))
    >>> latest.wait(10), done
    (True, [2])
    """

    def __init__(self, pause: float = 0.2, patience: float = 10.0) -> None:
        self.pause, self.patience = pause, patience
        self._changed = Condition()
        self._job: Callable[[], object] | None = None
        self._due = 0.0
        self._began: float | None = None  # when the running job did
        self._thread: Thread | None = None

    def ask(self, job: Callable[[], object]) -> None:
        """Do this job, unless a newer one comes within the pause."""
        with self._changed:
            self._job, self._due = job, monotonic() + self.pause
            is_stuck = self._began is not None and monotonic() - self._began > self.patience
            if self._thread is None or is_stuck:
                self._began = None
                self._thread = Thread(target=Context().run, args=(self._work,), name="latest job", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def wait(self, seconds: float = 10.0) -> bool:
        """Wait until nothing is left to do; False where something still runs after so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._thread is None, seconds)

    def _work(self) -> None:
        me = current_thread()
        try:
            while (job := self._next(me)) is not None:
                job()
        finally:
            with self._changed:
                if self._thread is me:
                    self._thread = self._began = None
                    self._changed.notify_all()

    def _next(self, me: Thread) -> Callable[[], object] | None:
        """The next job when it is due; None for a thread that has nothing to do, or that was given up."""
        with self._changed:
            if self._thread is me:
                self._began = None
            while self._thread is me and self._job is not None and (left := self._due - monotonic()) > 0:
                self._changed.wait(left)
            if self._thread is not me or self._job is None:
                if self._thread is me:
                    self._thread = None  # here, where nobody can ask in between
                    self._changed.notify_all()
                return None
            job, self._job, self._began = self._job, None, monotonic()
            return job
