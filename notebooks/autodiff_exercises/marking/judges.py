"""Starting the process that marks a submission, ending it when it is late, and beginning again after what ended it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from ..registry import EXERCISES
from ..sandbox import GRACE
from .judge import Job
from .marks import WHOLE, Mark, mark_from
from .submissions import Submission

PATIENCE = 10.0  # seconds beyond what the two runs of a check may take, for reading, comparing and a crowded machine
JUDGE = [sys.executable, "-P", "-m", f"{__package__}.judge"]
# A namespace without a network and with processes of its own: nothing in it can reach, end or even see anything outside.
ALONE = ("--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
OFFLINE = ("--user", "--map-root-user", "--net")


@cache
def namespace() -> tuple[str, ...]:
    """The beginning of a command that runs it in a namespace of its own; empty where the system gives none to its users."""
    unshare = shutil.which("unshare") if sys.platform == "linux" else None
    for options in (ALONE, OFFLINE) if unshare else ():
        command = (str(unshare), *options)
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            if subprocess.run([*command, "true"], capture_output=True, timeout=10).returncode == 0:
                return command
    return ()


def protection() -> str:
    """What keeps submissions from the network, from other processes and from files, in one sentence."""
    if namespace()[1:] == ALONE:
        return "Submissions run in namespaces without a network, with processes of their own and read-only files."
    kept = "Python refuses to them to start processes and to change files; native code could do both."
    if namespace():
        return f"Submissions run in namespaces without a network. {kept}"
    return f"This system gives no namespaces, so Python refuses the network to submissions. {kept}"


@dataclass(slots=True)
class Marker:
    """Marks submissions, each in a process of its own. ``stop`` ends all of them, for good."""

    seed: int
    seconds: float | None = None
    lesson: str = ""
    folder: str = "."  # an empty one, in which submissions run
    command: tuple[str, ...] = field(default_factory=namespace)
    _running: set[subprocess.Popen[str]] = field(default_factory=set)
    _stopped: bool = False

    def marks_of(self, submission: Submission) -> list[Mark]:
        """A mark for each exercise that the submission should answer; however it ends, this returns."""
        marks: list[Mark] = []
        while not self._stopped:
            told = list(self._told_by_judge(submission, [mark.exercise for mark in marks]))
            marks += [
                mark_from(submission.student, _lesson(one["found"]["exercise"]), one["found"])
                for one in told
                if "found" in one
            ]
            if any("end" in one for one in told):
                break
            marks.append(_ended_early(submission, told, self.lesson))
            if marks[-1].exercise == WHOLE:
                break
        return marks

    def stop(self) -> None:
        """End every process, and start none any more."""
        self._stopped = True
        for process in list(self._running):
            process.kill()

    def _told_by_judge(self, submission: Submission, done: list[str]) -> Iterator[dict[str, Any]]:
        """What one process tells of a submission until it ends."""
        alone = self.command[1:] == ALONE
        job = Job(
            str(submission.file.absolute()), submission.names, self.lesson, self.seed, self.seconds, tuple(done), alone
        )
        with self._judge() as process:
            assert process.stdin and process.stdout
            with contextlib.suppress(OSError):  # it has ended already, which its output will show
                process.stdin.write(json.dumps(asdict(job)) + "\n")
                process.stdin.flush()
            clock = self._clock(process)
            for line in process.stdout:
                clock.cancel()
                with contextlib.suppress(ValueError):  # half a line
                    yield json.loads(line)
                clock = self._clock(process)
            clock.cancel()

    def _clock(self, process: subprocess.Popen[str]) -> threading.Timer:
        """Ends the process if it says nothing for longer than the two runs of a check may take."""
        longest = self.seconds or max(exercise.seconds for exercise in EXERCISES.values())
        clock = threading.Timer(2 * (longest + GRACE) + PATIENCE, process.kill)
        clock.daemon = True
        clock.start()
        return clock

    @contextlib.contextmanager
    def _judge(self) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [*self.command, *JUDGE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)), "PYTHONUTF8": "1"},
            start_new_session=True,  # Ctrl-C reaches who started the marking, and that ends this
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        self._running.add(process)
        try:
            if self._stopped:  # between the question and the start
                process.kill()
            yield process
        finally:
            process.kill()
            with contextlib.suppress(OSError):
                process.communicate()
            self._running.discard(process)


def _lesson(exercise: str) -> str:
    return EXERCISES[exercise].lesson


def _ended_early(submission: Submission, told: list[dict[str, Any]], lesson: str) -> Mark:
    """The mark that stands for what a judge did not come to the end of."""
    for one in told:
        if "unreadable" in one:
            return Mark(submission.student, lesson, WHOLE, "could not be checked", why=one["unreadable"])
    name = next((one["begins"] for one in reversed(told) if "begins" in one), "")
    if name:
        why = "the process that compares its answers was ended by it, or did not come to an end"
        return Mark(submission.student, _lesson(name), name, "could not be checked", why=why)
    why = "reading it takes too long, or ends the process that does it"
    return Mark(submission.student, lesson, WHOLE, "could not be checked", why=why)
