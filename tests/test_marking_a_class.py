"""Marking forty submissions, half of them hostile: each has its rows, and nothing that one does reaches another."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from autodiff_exercises.registry import EXERCISES

from tests.handed_in import answered_by, code_cell, lesson, module_of, put

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(900)]  # keeps all cores busy

LESSON = "10_computation_graph"
ORDER, TRACE = EXERCISES["topological_order"], EXERCISES["trace"]
ALL_RIGHT = {"topological_order": ORDER.solved, "trace": TRACE.solved}
MARK = [sys.executable, "-m", "autodiff_exercises.marking"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
Row = tuple[str, str, str]  # outcome, points, misconception

RIGHT: Row = ("right", "1", "")
STUB: Row = ("not attempted", "0", "")


def wrong(misconception: str) -> Row:
    return ("wrong", "0", misconception)


UNCHECKED: Row = ("could not be checked", "0", "")

# ------------------------------------------------------------------------------- twenty who answered, one way or another


def honest() -> dict[str, tuple[Any, dict[str, Row]]]:
    """Notebooks with the answers that ship, right and wrong, and what each of them is worth."""
    ordered: list[tuple[Callable[..., Any], Row]] = [
        (function, RIGHT) for function in (ORDER.solution, *ORDER.alternatives)
    ]
    slow = {"without_memory", "seen_when_left"}  # they wait for the limit of a call
    ordered += [(function, wrong(name)) for function, name in ORDER.wrong if function.__name__ not in slow]
    traced: list[tuple[Callable[..., Any], Row]] = [(TRACE.solution, RIGHT), (TRACE.alternatives[0], RIGHT)]
    traced += [(function, wrong(name)) for function, name in TRACE.wrong if name != "once for every path"]
    made: dict[str, tuple[Any, dict[str, Row]]] = {}
    for number in range(18):
        (order, expected), (tracer, traced_as) = ordered[number], traced[number % len(traced)]
        answers = {"topological_order": answered_by(order, ORDER.name), "trace": answered_by(tracer, TRACE.name)}
        above = f"{module_of(ORDER.solution, ORDER.name)}\n\n{module_of(TRACE.solution, TRACE.name)}"
        made[f"student {number:02d}"] = (lesson(LESSON, answers, above), {ORDER.name: expected, TRACE.name: traced_as})
    made["untouched"] = (lesson(LESSON, {}), {ORDER.name: STUB, TRACE.name: STUB})
    made["solved"] = (lesson(LESSON, ALL_RIGHT), {ORDER.name: RIGHT, TRACE.name: RIGHT})
    return made


# --------------------------------------------------------------------------------------------- twenty who did something

HEAD = "def topological_order(graph):\n    "
IN_THE_FUNCTION = {
    "loops": ("while True: pass", UNCHECKED),
    "recurses": ("return topological_order(graph)", wrong("recursion")),
    "prints 10 MB": ("print('flood ' * 2_000_000)\n    return []", wrong("an empty list")),
    "asks": ("return input('order? ')", wrong("asks for input")),
    "exits": ("raise SystemExit", wrong("ends the program")),
    "exits at once": ("import os; os._exit(0)", UNCHECKED),
    "forks": ("import os\n    while True: os.fork()", wrong("reaches out of the exercise")),
    "ends its parent": ("import os; os.kill(os.getppid(), 9)", wrong("reaches out of the exercise")),
    "deletes": ("import shutil; shutil.rmtree({folder!r})", wrong("reaches out of the exercise")),
    "answers hugely": ("return [str(n) for n in range(10**6)]", wrong("far too much")),
    "nests deeply": ("x = []\n    for _ in range(10**5): x = [x]\n    return x", wrong("not a list")),
    "asks the package": (
        "from autodiff_exercises.registry import EXERCISES\n    return EXERCISES['topological_order'].solution(graph)",
        wrong("stops with an error"),
    ),
}
LOOPS = "while True: pass"
PATCHED = (
    "import graphlib, numpy as np\ncheck = lambda f: print('✓ right')\nnp.array = graphlib.TopologicalSorter = None\n"
)


def hostile(folder: Path) -> dict[str, tuple[Any, dict[str, Row]]]:
    """Notebooks that do what no notebook should, each beside a right answer to the other exercise where it has one."""
    beside = {TRACE.name: RIGHT}
    made: dict[str, tuple[Any, dict[str, Row]]] = {}
    for name, (body, row) in IN_THE_FUNCTION.items():
        answers = {**ALL_RIGHT, ORDER.name: HEAD + body.format(folder=str(folder))}
        made[name] = (lesson(LESSON, answers), {ORDER.name: row, **beside})
    whole = {"(the whole notebook)": UNCHECKED}
    made["empty file"] = (b"", whole)
    made["half a file"] = (b'{"nbformat": 4, "cells": [', whole)
    made["deeply nested file"] = (b"[" * 10**5, whole)
    made["another encoding"] = ('{"nbformat": 4}'.encode("utf-16"), whole)
    loop = lesson(LESSON, {**ALL_RIGHT, ORDER.name: f"{ORDER.solved}\n{LOOPS}"}, above=f"{PATCHED}\n{LOOPS}")
    made["loops in its cells"] = (loop, {ORDER.name: RIGHT, **beside})
    needs_it = lesson(LESSON, {**ALL_RIGHT, ORDER.name: f"{LOOPS}\nelse: n = 1\n{HEAD}return n"})
    made["needs a loop"] = (needs_it, {ORDER.name: UNCHECKED, **beside})
    twice = lesson(LESSON, ALL_RIGHT)
    twice["cells"].append(code_cell(f"{HEAD}return []", ORDER.name))
    made["answers twice"] = (twice, {ORDER.name: wrong("an empty list"), **beside})
    missing = lesson(LESSON, ALL_RIGHT)
    missing["cells"] = [cell for cell in missing["cells"] if "def topological_order" not in "".join(cell["source"])]
    made["a cell is missing"] = (missing, {ORDER.name: STUB, **beside})
    return made


# -------------------------------------------------------------------------------------------------------------- the run


@pytest.fixture(scope="module")
def marked(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[dict[str, dict[str, Row]], dict[str, dict[str, Row]], Path, str]:
    """What is expected and what was found, by student and exercise; the folder, and what was printed."""
    folder = tmp_path_factory.mktemp("class")
    made = {**honest(), **hostile(folder / "handed in")}
    assert len(made) == 40
    for student, (notebook, _expected) in made.items():
        put(folder / "handed in", student, notebook)
    command = [*MARK, str(folder / "handed in"), "--out", str(folder / "out"), "--seed", "7", "--seconds", "10"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Row]] = {student: {} for student in made}
    with (folder / "out" / "marks.csv").open(encoding="utf-8", newline="") as table:
        for row in csv.DictReader(table):
            found[row["student"]][row["exercise"]] = (row["outcome"], row["points"], row["misconception"])
    return {student: expected for student, (_notebook, expected) in made.items()}, found, folder, done.stdout


def test_every_submission_has_its_rows_and_the_outcomes_that_it_should_have(marked: Any) -> None:
    expected, found, _folder, _said = marked
    assert found == expected


def test_a_line_is_said_for_each_submission(marked: Any) -> None:
    lines = marked[3].splitlines()
    assert sorted(int(line.split("/")[0]) for line in lines if "/40  " in line) == list(range(1, 41))


def test_nothing_that_was_handed_in_is_gone(marked: Any) -> None:
    _expected, _found, folder, _said = marked
    assert len(list((folder / "handed in").glob("*.ipynb"))) == 40


def test_every_student_has_a_page_with_a_plain_reason_and_the_class_has_one(marked: Any) -> None:
    _expected, _found, folder, _said = marked
    assert len(list((folder / "out" / "students").glob("*.html"))) == 40
    page = (folder / "out" / "students" / "student-loops.html").read_text(encoding="utf-8")
    assert "still running after 10 seconds, in line 2 of code cell" in page
    assert "The file is empty." in (folder / "out" / "students" / "student-empty_file.html").read_text(encoding="utf-8")
    overview = (folder / "out" / "index.html").read_text(encoding="utf-8")
    assert "Marked with seed 7." in overview and overview.count("student-") == 40


# ------------------------------------------------------------------------------------------------------------- Ctrl-C


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal to a process")
def test_an_interrupt_leaves_what_was_marked_and_no_process(tmp_path: Path) -> None:
    put(tmp_path / "in", "anna", lesson(LESSON, {}))
    endless = lesson(LESSON, {name: f"{HEAD}while True: pass".replace(ORDER.name, name) for name in ALL_RIGHT})
    put(tmp_path / "in", "ben", endless)
    command = [*MARK, str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--jobs", "1", "--seconds", "500"]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            while "anna" not in process.stdout.readline():
                pass
            started = wait_for_processes(process.pid)
            process.send_signal(signal.SIGINT)
            assert "Stopped." in process.stdout.read()
        finally:
            process.kill()
    assert process.wait() == 130
    rows = (tmp_path / "out" / "marks.csv").read_text(encoding="utf-8").splitlines()
    assert [row.split(",")[0] for row in rows] == ["student", "anna", "anna"]
    _gone, alive = psutil.wait_procs(started, timeout=10)
    assert not alive


def wait_for_processes(parent: int) -> list[psutil.Process]:
    """All processes that one has started, once the code of a submission runs."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = psutil.Process(parent).children(recursive=True)
        if any("serve" in " ".join(one.cmdline()) for one in found):
            return found
        time.sleep(0.1)
    raise AssertionError("no process for a check was started")
