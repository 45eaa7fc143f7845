"""Hostile and unlucky code: whatever a student's function does is an outcome, and the next check works."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from autodiff_exercises import check, processes, sandbox
from autodiff_exercises.registry import EXERCISES

from tests.notebook_cell import defined

pytestmark = [pytest.mark.usefixtures("own_progress"), pytest.mark.slow, pytest.mark.alone]  # each check is a process


def loops(graph: Any) -> Any:
    while True:
        pass


def loops_and_catches_everything(graph: Any) -> Any:
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(10)


def floods(graph: Any) -> Any:
    while True:
        print("flood" * 1000)
        os.write(1, b"flood" * 1000)
        os.write(2, b"flood" * 1000)


def exits(graph: Any) -> Any:
    os._exit(0)


def is_killed(graph: Any) -> Any:
    os.kill(os.getpid(), 9)


def aborts(graph: Any) -> Any:
    os.abort()


def crashes(graph: Any) -> Any:
    ctypes.string_at(0)


HOSTILE = {
    loops: "still running",
    loops_and_catches_everything: "still running",
    floods: "still running",
    exits: "ended the whole of Python",
    is_killed: "the system ended your function (signal 9)",
    aborts: "crashed",
    crashes: "crashed",
}


@pytest.mark.parametrize("function", HOSTILE)
def test_code_that_never_answers_is_an_outcome_and_the_next_check_works(function: Callable[..., Any]) -> None:
    began = time.perf_counter()
    run = sandbox.run(function, [({"x": []},)], seconds=1.0)
    assert HOSTILE[function] in run.stopped
    assert time.perf_counter() - began < 10
    assert check("topological_order", EXERCISES["topological_order"].solution).right


@pytest.mark.slow
def test_an_endless_loop_is_told_with_its_line_and_the_call() -> None:
    exercise = EXERCISES["topological_order"]
    loop = defined("def topological_order(graph):\n    while True:\n        graph = dict(graph)", "topological_order")
    found = check(exercise.name, loop)
    assert found.verdict == "could not be checked" and found.example.startswith("topological_order({")
    assert "still running after 5 seconds, in line" in found.why


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("import sys; sys.exit(3)", "SystemExit"),
        ("return input('order? ')", "EOFError"),
        ("return topological_order(graph)", "RecursionError"),
        ("return graph['nothing']", "KeyError"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("return [0] * 10**12", "MemoryError"),
    ],
)
def test_an_exception_is_an_outcome_that_names_it(body: str, kind: str) -> None:
    found = check(defined(f"def topological_order(graph):\n    {body}", "topological_order"))
    assert found.verdict == "wrong" and f"It raised {kind}" in found.returned


def test_a_function_that_cannot_be_sent_away_runs_here_and_the_limit_is_said() -> None:
    lock = threading.Lock()

    def topological_order(graph: Any) -> Any:
        with lock:
            return EXERCISES["topological_order"].solution(graph)

    found = check(topological_order)
    assert found.right and "without a time limit" in " ".join(found.notes)


def test_an_answer_that_cannot_be_sent_back_is_refused() -> None:
    source = "class Odd: pass\ndef topological_order(graph): return Odd()"
    assert check(defined(source, "topological_order")).returned == "Yours returned <Odd object>."


def test_changed_globals_and_builtins_do_not_outlive_a_check() -> None:
    source = "import builtins\ndef topological_order(graph):\n    builtins.sorted = None\n    return []"
    assert check(defined(source, "topological_order")).verdict == "wrong"
    assert check("topological_order", EXERCISES["topological_order"].alternatives[1]).right


@pytest.mark.skipif(sys.platform == "win32", reason="fork is not known there")
def test_a_process_that_the_code_left_behind_does_not_hold_up_the_check() -> None:
    source = "import os, time\ndef topological_order(graph):\n    os.fork() or time.sleep(60)\n    return list(graph)"
    began = time.perf_counter()
    assert check(defined(source, "topological_order")).verdict == "wrong"
    assert time.perf_counter() - began < 4


CHECKS_ITSELF = """
from autodiff_exercises import check
def topological_order(graph):
    check(topological_order)
    return list(graph)
"""


def test_a_check_inside_a_check_is_refused_and_says_where_to_put_it() -> None:
    began = time.perf_counter()
    found = check(defined(CHECKS_ITSELF))
    assert found.verdict == "wrong" and "put it into a cell of its own" in found.returned
    assert time.perf_counter() - began < 4


def test_a_check_inside_a_function_that_cannot_be_sent_away_is_refused_too() -> None:
    lock = threading.Lock()

    def topological_order(graph: Any) -> Any:
        with lock:
            return check(topological_order)

    assert "CheckInsideACheck" in check(topological_order).returned


def test_what_a_check_started_starts_no_process_for_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(processes.MARK, "a mark")
    with pytest.raises(RuntimeError, match="does not start another"):
        processes.CheckProcess("")


# A process in a session of its own; it writes its number into the file whose name is put in.
STARTS_A_PROCESS = """
import pathlib, subprocess, sys, time
def topological_order(graph):
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    pathlib.Path({file!r}).write_text(str(started.pid))
    {then}
    return []
"""


def test_a_process_that_the_code_started_ends_with_the_check_also_in_a_session_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "number"
    check(defined(STARTS_A_PROCESS.format(file=str(file), then="")))
    assert ended(int(file.read_text()))


NOTEBOOK = """
import json, sys, threading, time
from autodiff_exercises import check, processes, sandbox
names = {{}}
exec({source!r}, names)
check(names["topological_order"])
print(json.dumps([sandbox._waiting[0].pid, processes._guards[0].pid]), flush=True)
time.sleep(60)
"""


@contextlib.contextmanager
def notebook_process(source: str) -> Iterator[subprocess.Popen[str]]:
    """A Python process that checks what the source defines, as a notebook's kernel does."""
    notebook = subprocess.Popen(
        [sys.executable, "-c", NOTEBOOK.format(source=source)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        yield notebook
    finally:
        notebook.kill()
        notebook.communicate()


def test_no_process_is_left_when_the_notebook_is_killed_between_checks() -> None:
    with notebook_process("def topological_order(graph):\n    raise NotImplementedError") as notebook:
        assert notebook.stdout is not None
        numbers = json.loads(notebook.stdout.readline())
        assert all(map(is_running, numbers))
    assert all(map(ended, numbers))


def test_no_process_is_left_when_the_notebook_is_killed_during_a_check(tmp_path: Path) -> None:
    file = tmp_path / "number"
    source = STARTS_A_PROCESS.format(file=str(file), then="time.sleep(60)")
    with notebook_process(source):
        deadline = time.monotonic() + 20
        while not (file.exists() and file.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert is_running(int(file.read_text()))
    assert ended(int(file.read_text()))


def ended(process: int) -> bool:
    """Whether the process ends, within seconds."""
    deadline = time.monotonic() + 10
    while is_running(process) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_running(process)


def is_running(process: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(process).status() != psutil.STATUS_ZOMBIE)
    return False


@pytest.fixture(autouse=True, scope="module")
def no_process_outlives_these_tests() -> Iterator[None]:
    yield
    sandbox._close_all()
    assert not sandbox._waiting


def test_a_case_that_uses_the_function_reaches_this_very_function_in_the_other_process() -> None:
    mine = defined("def mine(f):\n    return f() is mine", "mine")
    (attempt,) = sandbox.run(mine, [(eval("lambda: mine", {"mine": mine}),)]).attempts
    assert attempt.answer is True
