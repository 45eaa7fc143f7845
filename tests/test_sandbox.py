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

import cloudpickle
import psutil
import pytest
from autodiff_exercises import check, forking, processes, sandbox
from autodiff_exercises.registry import EXERCISES

from tests.notebook_cell import defined

pytestmark = [pytest.mark.usefixtures("own_progress"), pytest.mark.slow]  # each check is a process

WAYS = {
    "started": "processes.Starter(sandbox.SERVE)",  # as on every system
    "forked": pytest.param(
        "forking.Template()", marks=pytest.mark.skipif(sys.platform != "linux", reason="as on Linux")
    ),
}


@pytest.fixture(autouse=True, scope="module", params=WAYS.values(), ids=WAYS)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """How a process for checks comes into being, as an expression; none of them outlives these tests."""
    sandbox._close_all()
    cloudpickle.register_pickle_by_value(
        sys.modules[__name__]
    )  # as what a cell defines: else this file is imported there
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "_new", lambda: eval(request.param))
        yield request.param
        sandbox._close_all()
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


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
    # The line is known to the watchdog inside only, and it may miss a function that it sees between two calls.
    loops: "still running after 1 seconds, in line",
    loops_and_catches_everything: "still running after 1 seconds, in line",
    floods: "still running after 1 seconds",
    exits: "ended the whole of Python",
    is_killed: "the system ended your function (signal 9)",
    aborts: "crashed",
    crashes: "crashed",
}


@pytest.mark.parametrize("function", HOSTILE)
def test_code_that_never_answers_is_an_outcome_and_the_next_check_works(function: Callable[..., Any]) -> None:
    assert HOSTILE[function] in sandbox.run(function, [({"x": []},)], seconds=1.0).stopped
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
    assert time.perf_counter() - began < 30


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
    assert time.perf_counter() - began < 30


def test_a_check_inside_a_function_that_cannot_be_sent_away_is_refused_too() -> None:
    lock = threading.Lock()

    def topological_order(graph: Any) -> Any:
        with lock:
            return check(topological_order)

    assert "CheckInsideACheck" in check(topological_order).returned


def test_what_a_check_started_starts_no_process_for_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(processes.MARK, "a mark")
    with pytest.raises(RuntimeError, match="does not start another"):
        processes.Starter("")


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
from autodiff_exercises import check, forking, processes, sandbox
sandbox._new = lambda: {way}
names = {{}}
exec({source!r}, names)
check(names["topological_order"])
print(json.dumps([sandbox._waiting[0].pid, processes._guards[0].pid]), flush=True)
time.sleep(60)
"""


@contextlib.contextmanager
def notebook_process(source: str, way: str) -> Iterator[subprocess.Popen[str]]:
    """A Python process that checks what the source defines, as a notebook's kernel does."""
    notebook = subprocess.Popen(
        [sys.executable, "-c", NOTEBOOK.format(source=source, way=way)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        yield notebook
    finally:
        notebook.kill()
        notebook.communicate()


def test_no_process_is_left_when_the_notebook_is_killed_between_checks(way: str) -> None:
    with notebook_process("def topological_order(graph):\n    raise NotImplementedError", way) as notebook:
        assert notebook.stdout is not None
        numbers = json.loads(notebook.stdout.readline())
        assert all(map(is_running, numbers))
    assert all(map(ended, numbers))


def test_no_process_is_left_when_the_notebook_is_killed_during_a_check(tmp_path: Path, way: str) -> None:
    file = tmp_path / "number"
    source = STARTS_A_PROCESS.format(file=str(file), then="time.sleep(60)")
    with notebook_process(source, way):
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


def test_a_case_that_uses_the_function_reaches_this_very_function_in_the_other_process() -> None:
    mine = defined("def mine(f):\n    return f() is mine", "mine")
    (attempt,) = sandbox.run(mine, [(eval("lambda: mine", {"mine": mine}),)]).attempts
    assert attempt.answer is True


# ----------------------------------------------------------------------------------------------- fresh, and up to date


def state_of_a_process(_: Any) -> Any:
    import builtins
    import random

    import numpy as np

    seen = hasattr(builtins, "left_behind"), os.getpid(), random.random(), float(np.random.rand())
    builtins.left_behind = True
    return seen


def test_every_check_has_a_process_that_no_other_check_has_used_and_random_numbers_of_its_own() -> None:
    changed, *unlike = zip(*[sandbox.run(state_of_a_process, [(0,)]).attempts[0].answer for _ in range(3)], strict=True)
    assert not any(changed)
    assert [len(set(values)) for values in unlike] == [3, 3, 3]


def test_a_check_finds_the_folder_the_variables_and_the_modules_that_the_notebook_has_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def surroundings(name: str) -> tuple[str, str | None, int]:
        return os.getcwd(), os.environ.get("OF_THE_NOTEBOOK"), __import__(name).NUMBER

    assert sandbox.run(len, [("",)]).attempts[0].answer == 0  # the process for the next one may be there now
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / f"beside_{number}.py").write_text(f"NUMBER = {number}")
        monkeypatch.setenv("OF_THE_NOTEBOOK", str(number))
        monkeypatch.syspath_prepend(folder)
        monkeypatch.chdir(folder)
        assert sandbox.run(surroundings, [(f"beside_{number}",)]).attempts[0].answer == (
            str(folder),
            str(number),
            number,
        )


@pytest.mark.skipif(sys.platform == "win32", reason="there an orphan keeps its parent's number")
def test_a_function_that_ends_the_process_that_made_its_own_is_an_outcome_and_the_next_check_works(way: str) -> None:
    def ends_its_parent(_: Any) -> None:
        os.kill(os.getppid(), 9)
        time.sleep(60)

    if "Template" in way:  # the other's parent is the notebook
        assert "the system ended your function (signal 9)" in sandbox.run(ends_its_parent, [(0,)]).stopped
    assert sandbox.run(len, [("abc",)]).attempts[0].answer == 3


def test_a_process_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox._close_all()
    with monkeypatch.context() as patch:
        patch.setattr(sandbox, "SERVE", "import a_module_that_nobody_has")
        patch.setattr(forking, "SERVE", "import a_module_that_nobody_has")
        stopped = sandbox.run(len, [("",)]).stopped
        sandbox._close_all()
    assert "the process for checks did not start" in stopped and "a_module_that_nobody_has" in stopped


def test_two_threads_may_check_at_once() -> None:
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda word=word: found.append(sandbox.run(len, [(word,)]).attempts[0].answer))
        for word in ("a", "bb", "ccc")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [1, 2, 3]
    assert len(sandbox._waiting) == 1
