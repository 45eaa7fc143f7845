"""How one submission is read and marked: what of a notebook runs, what never does, and what every odd file comes to."""

from __future__ import annotations

import json
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from autodiff_exercises import processes, receiving
from autodiff_exercises.attempts import Attempt, NotPlain
from autodiff_exercises.marking import judges
from autodiff_exercises.marking.__main__ import parse
from autodiff_exercises.marking.judges import Marker
from autodiff_exercises.marking.marks import WHOLE, Mark, best_of
from autodiff_exercises.marking.notebooks import Cell, Unreadable, cells_of, lessons_of
from autodiff_exercises.marking.pages import class_page, student_page
from autodiff_exercises.marking.reports import file_names, write_reports
from autodiff_exercises.marking.slicing import NoAnswer, answer_of
from autodiff_exercises.marking.submissions import Submission, submissions_in
from autodiff_exercises.marking.tables import put as put_file
from autodiff_exercises.registry import EXERCISES

from tests.handed_in import code_cell, lesson, put

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}

# ------------------------------------------------------------------------------------------------------ reading a file

NOT_NOTEBOOKS = {
    "an empty file": (b"", "the file is empty"),
    "half a file": (b'{"cells": [', "it is not JSON ("),
    "another encoding": ('{"cells": []}'.encode("utf-16"), "it is not text in UTF-8"),
    "another format": (b'{"nbformat": 3, "worksheets": []}', "its notebook format is 3, not 4; open it"),
    "a format that is no number": (b'{"nbformat": [4]}', "its notebook format is [4], not 4"),
    "a list": (b"[]", "it is JSON, but not a notebook"),
    "no list of cells": (b'{"nbformat": 4, "cells": {}}', "it has no list of cells"),
    "deeply nested": (b"[" * 100_000, "its JSON is nested too deeply"),
}


@pytest.mark.parametrize("content", NOT_NOTEBOOKS)
def test_a_file_that_is_no_notebook_is_told_why(content: str, tmp_path: Path) -> None:
    data, reason = NOT_NOTEBOOKS[content]
    with pytest.raises(Unreadable) as told:
        cells_of(put(tmp_path, "anna", data))
    assert str(told.value).startswith(reason)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_is_not_followed_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "link.ipynb").symlink_to(put(tmp_path, "anna", lesson("10_computation_graph", {})))
    os.mkfifo(tmp_path / "pipe.ipynb")
    for name in ("link", "pipe"):
        with pytest.raises(Unreadable, match="a link, or something else"):
            cells_of(tmp_path / f"{name}.ipynb")


def test_cells_with_odd_fields_are_read_as_far_as_they_make_sense(tmp_path: Path) -> None:
    odd = [7, None, {}, {"cell_type": "code"}, {"cell_type": "code", "source": ["x = 1\n", 5], "metadata": [1]}]
    cells = cells_of(put(tmp_path, "anna", {"nbformat": 4, "cells": odd}))
    assert [(cell.number, cell.source, cell.grade_id) for cell in cells] == [(1, "", ""), (2, "x = 1\n", "")]


def test_magics_do_not_stand_in_the_way_of_the_code_beside_them(tmp_path: Path) -> None:
    sources = ["%matplotlib inline\n!ls\nx = 1", "%%time\ndef f():\n    return x", "?f"]
    cells = cells_of(put(tmp_path, "anna", {"nbformat": 4, "cells": [code_cell(source) for source in sources]}))
    assert [piece.cell for piece in answer_of(cells, "f").pieces] == [1, 2]


def test_lessons_are_known_by_the_cells_then_by_the_names_of_folders_then_by_the_functions() -> None:
    function = [Cell(1, "def backward(graph, rule, output, seed): ...")]
    assert lessons_of([*function, Cell(2, "", "trace")], ["40_gradient_rules"]) == ["10_computation_graph"]
    assert lessons_of(function, ["40_gradient_rules"]) == ["40_gradient_rules"]
    assert lessons_of(function, ["homework 3"]) == ["30_reverse_mode"]
    assert lessons_of([Cell(1, "x = 1")]) == []


# --------------------------------------------------------------------------------------------------------- what is run


def needed(*sources: str, name: str = "f") -> list[str]:
    """The statements that an answer needs, as text."""
    cells = [Cell(number, source) for number, source in enumerate(sources, start=1)]
    return [
        cell_statements(piece.source)[number] for piece in answer_of(cells, name).pieces for number in piece.statements
    ]


def cell_statements(source: str) -> list[str]:
    return [source[slice(*_span(source, one))] for one in Cell(1, source).statements()]


def _span(source: str, statement: Any) -> tuple[int, int]:
    lines = [0, *(len("\n".join(source.split("\n")[:n])) + 1 for n in range(1, source.count("\n") + 2))]
    return lines[statement.lineno - 1] + statement.col_offset, lines[
        statement.end_lineno - 1
    ] + statement.end_col_offset


def test_an_answer_needs_its_definition_and_what_that_uses_directly_or_not() -> None:
    above = "import math\nimport os\nscale = math.pi\nunused = 1\ndef helper(x): return x * scale"
    assert needed(above, "def f(x): return helper(x)") == [
        "import math",
        "scale = math.pi",
        "def helper(x): return x * scale",
        "def f(x): return helper(x)",
    ]


def test_what_changes_a_needed_value_is_needed_and_what_patches_a_library_is_not() -> None:
    above = (
        "import numpy as np\ntable = []\ntable.append(1)\nnp.sum = len\nnp.random.seed(0)\nother = []\nother.append(2)"
    )
    assert needed(above, "def f(): return np.sum(table)") == [
        "import numpy as np",
        "table = []",
        "table.append(1)",
        "def f(): return np.sum(table)",
    ]


def test_checks_pictures_and_loops_without_end_are_not_needed() -> None:
    own = "def f(x): return x\nwhile True: pass"
    assert needed("check(f)\nhint(f)\naw.GraphView(g)\nwhile True: pass", own) == ["def f(x): return x"]


def test_a_local_variable_does_not_ask_for_the_notebooks_value_of_that_name() -> None:
    assert needed("x = forever()", "def f(g):\n    x = g\n    return [x for _ in range(3)]") == [
        "def f(g):\n    x = g\n    return [x for _ in range(3)]"
    ]


def test_a_function_that_evaluates_text_may_need_everything() -> None:
    assert needed("secret = 1", "def f(): return eval('secret')")[0] == "secret = 1"


def test_decorators_defaults_classes_and_a_second_definition_are_needed() -> None:
    above = "class Base: pass\ndef twice(g): return g\nstart = 3\ndef f(): return 0"
    own = "@twice\ndef f(n=start):\n    class Mine(Base): pass\n    return Mine()\nf = twice(f)"
    assert len(needed(above, own)) == 6


def test_the_last_cell_that_nbgrader_calls_so_is_the_answer_whatever_stands_below() -> None:
    cells = [
        Cell(1, "def f(): return 1", "f"),
        Cell(2, "def f(): return 2", "f"),
        Cell(3, "# a copy, emptied", "f"),
        Cell(4, "f = 'another use of the name'"),
    ]
    assert [piece.cell for piece in answer_of(cells, "f").pieces] == [1, 2]


@pytest.mark.parametrize(
    ("cells", "verdict", "why"),
    [
        ([Cell(1, "x = 1")], "not attempted", "no cell defines f"),
        ([Cell(1, "# nothing", "f")], "not attempted", "is empty"),
        ([Cell(1, "def g(): return 1", "f")], "could not be checked", "does not define f"),
        ([Cell(1, "def f(:", "f")], "could not be checked", "is not Python"),
        ([Cell(1, "def f(:")], "could not be checked", "is not Python"),
        ([Cell(1, "def f():\n    return '\ud800'", "f")], "could not be checked", "cannot be read"),
        ([Cell(1, "f = " + "(" * 5000, "f")], "could not be checked", "code cell 1"),
        ([Cell(1, "f = " + "-" * 50_000 + "1", "f")], "could not be checked", "code cell 1"),
    ],
    ids=["missing", "empty", "renamed", "syntax error", "without metadata", "half a letter", "brackets", "signs"],
)
def test_a_missing_or_unreadable_answer_is_told_apart(cells: list[Cell], verdict: str, why: str) -> None:
    with pytest.raises(NoAnswer) as told:
        answer_of(cells, "f")
    assert told.value.verdict == verdict and why in str(told.value)


def test_the_code_of_a_submission_never_runs_in_the_process_that_marks() -> None:
    answer = answer_of([Cell(1, "def f(): return 1")], "f")
    with pytest.raises(RuntimeError, match="a process for checks, and nowhere else"):
        answer()


# ------------------------------------------------------------------------------------------- what comes back is data


class Calls:
    """Its pickle calls a function where it is read."""

    def __reduce__(self) -> Any:
        return os.system, ("exit 1",)


def test_an_answer_whose_pickle_would_call_something_is_a_foreign_object() -> None:
    data = pickle.dumps(Attempt(0, answer=[1, Calls()]))
    attempts, _printed = receiving.received(len(data).to_bytes(8, "big") + data)
    assert attempts == (Attempt(0, answer=NotPlain("foreign")),)


# ----------------------------------------------------------------------------------------------------- confined code

CONFINED = """
import json, os, sys
os.environ[{mark!r}] = "a test"
from autodiff_exercises import confinement
confinement.confine()
said = {{}}
for name, act in {acts!r}.items():
    try:
        exec(act)
        said[name] = "did it"
    except BaseException as error:
        said[name] = f"{{type(error).__name__}}: {{error}}"
print(json.dumps(said))
"""
ACTS = {
    "a socket": "import socket; socket.socket()",
    "a name on the network": "import socket; socket.getaddrinfo('localhost', 1)",
    "a process": "import subprocess; subprocess.run([sys.executable])",
    "a process by the back door": "import _posixsubprocess; _posixsubprocess.fork_exec()",
    "a fork": "os.fork()",
    "a shell": "os.system('true')",
    "ending its parent": "os.kill(os.getppid(), 9)",
    "ending its parent by a descriptor": "import signal; signal.pidfd_send_signal(0, 9)",
    "writing a file": "open('new', 'w')",
    "writing a file by its number": "os.open('new', os.O_CREAT | os.O_WRONLY)",
    "deleting a folder": "import shutil; shutil.rmtree('.')",
    "deleting a file": "os.remove('kept')",
    "renaming a file": "os.rename('kept', 'gone')",
    "native code": "import ctypes; ctypes.CDLL(None)",
    "looking for the answers": "import gc; gc.get_objects()",
    "reading the answers": "open(confinement.HERE + 'computation_graph_answers.py')",
}
ON_POSIX = {"a process by the back door", "a fork", "ending its parent by a descriptor"}


@pytest.fixture(scope="module")
def what_confined_code_met(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What became of each act, in a confined process that looks at a folder with one file."""
    folder = tmp_path_factory.mktemp("confined")
    (folder / "kept").touch()
    program = CONFINED.format(mark=processes.MARK, acts=ACTS)
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, env=ENVIRONMENT, capture_output=True, check=True)
    assert os.listdir(folder) == ["kept"]
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("act", ACTS)
def test_confined_code_is_kept_from(act: str, what_confined_code_met: dict[str, str]) -> None:
    if act in ON_POSIX and sys.platform == "win32":
        pytest.xfail("Windows does not know it")
    assert what_confined_code_met[act].startswith("OutOfBounds: ")


# What the system does beside Python, where it gives a namespace: protection() tells who reads the reports.


@pytest.mark.slow
def test_in_a_namespace_nobody_answers_on_the_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        program = f"import socket; socket.create_connection({server.getsockname()!r}, timeout=5)"
        done = subprocess.run([*judges.namespace(), sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode == 0) == (not judges.namespace())
    assert ("Python refuses the network" in judges.protection()) == (not judges.namespace())


@pytest.mark.slow
def test_in_a_namespace_of_its_own_a_process_cannot_write_files(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    program = f"""
from autodiff_exercises.marking.judge import make_files_read_only
make_files_read_only()
open("in its folder", "w").write("in memory")
open({str(outside)!r}, "w")
"""
    alone = judges.namespace()[1:] == judges.ALONE
    if alone:
        command = [*judges.namespace(), sys.executable, "-c", program]
        done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        assert f"Read-only file system: {str(outside)!r}" in done.stderr
    assert ("read-only files" in judges.protection()) == alone
    assert list(tmp_path.rglob("*")) == [folder]


# ------------------------------------------------------------------------------------------------ the process that marks


def marks_of(folder: Path, notebook: dict[str, Any] | bytes, **options: Any) -> dict[str, Mark]:
    file = put(folder, "anna", notebook)
    (folder / "empty").mkdir(exist_ok=True)
    marker = Marker(seed=1, folder=str(folder / "empty"), **options)
    return {mark.exercise: mark for mark in marker.marks_of(Submission("anna", file, ("anna",)))}


RIGHT = {name: EXERCISES[name].solved for name in ("topological_order", "trace")}


@pytest.mark.slow
@pytest.mark.parametrize("command", [judges.namespace(), ()], ids=["as the system can", "without namespaces"])
def test_a_right_answer_counts_and_a_hostile_one_beside_it_does_not(command: Sequence[str], tmp_path: Path) -> None:
    hostile = "import os\ndef topological_order(graph):\n    os.kill(os.getppid(), 9)\n    return list(graph)"
    found = marks_of(tmp_path, lesson("10_computation_graph", {**RIGHT, "topological_order": hostile}), command=command)
    assert found["trace"].outcome == "right" and found["trace"].points == 1
    assert found["topological_order"].misconception == "reaches out of the exercise"


@pytest.mark.slow
def test_a_judge_that_is_ended_costs_one_exercise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dies = """
import json, os, sys
from autodiff_exercises.marking import judge
def marked(cells, exercise, seed, before=judge.marked):
    os._exit(9) if exercise.name == "topological_order" else None
    return before(cells, exercise, seed)
judge.marked = marked
judge.main()
"""
    monkeypatch.setattr(judges, "JUDGE", [sys.executable, "-c", dies])
    found = marks_of(tmp_path, lesson("10_computation_graph", RIGHT))
    assert found["trace"].outcome == "right"
    assert found["topological_order"].outcome == "could not be checked"
    assert "was ended by it" in found["topological_order"].why


@pytest.mark.slow
def test_a_judge_that_hangs_is_ended_and_one_that_cannot_start_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges, "PATIENCE", 0.1)
    monkeypatch.setattr(judges, "GRACE", 0.1)
    for program in ("import time; time.sleep(100)", "raise SystemExit(1)"):
        monkeypatch.setattr(judges, "JUDGE", [sys.executable, "-c", program])
        found = marks_of(tmp_path, lesson("10_computation_graph", RIGHT), seconds=0.1)
        assert found[WHOLE].outcome == "could not be checked" and "takes too long" in found[WHOLE].why


# ------------------------------------------------------------------------------------------------- folders and reports


def test_submissions_are_found_as_files_as_folders_and_as_nbgrader_collects_them(tmp_path: Path) -> None:
    for place in ("zoe", "anna/lesson", "ben/10_computation_graph/mine", "anna/.ipynb_checkpoints/lesson-checkpoint"):
        put((tmp_path / "in" / place).parent, Path(place).name, b"{}")
    put(tmp_path / "course" / "autograded" / "ben", "10_computation_graph", b"{}")
    (tmp_path / "in").rename(tmp_path / "course" / "submitted")
    for folder in (tmp_path / "course", tmp_path / "course" / "submitted"):
        assert [(one.student, one.names) for one in submissions_in(folder)] == [
            ("anna", ("lesson",)),
            ("ben", ("10_computation_graph", "mine")),
            ("zoe", ("zoe",)),
        ]


def test_a_folder_without_submissions_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no notebook"):
        submissions_in(tmp_path)
    with pytest.raises(ValueError, match="is not a folder"):
        submissions_in(tmp_path / "none")


NAMES = ["=1+1", "<script>alert(1)</script>", "ä/ö", "Anna", "anna", "x" * 300, "../../up", "con"]


def test_every_name_is_escaped_and_gets_a_file_of_its_own(tmp_path: Path) -> None:
    names = file_names(NAMES)
    assert len({name.casefold() for name in names}) == len(NAMES)
    assert all("/" not in name and len(name) < 120 for name in names)
    marks = [Mark(name, "10_computation_graph", "trace", "wrong", "<b>", "<i>`x`</i>", "<u>", "<s>") for name in NAMES]
    write_reports(marks, tmp_path, ["<note>"])
    pages = [page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html")]
    assert len(pages) == len(NAMES) + 1
    for page in pages:
        assert not any(f"<{tag}" in page for tag in ("script", "b>", "i>", "u>", "s>", "note"))
        assert "http" not in page and "src=" not in page
    assert "\n'=1+1," in (tmp_path / "marks.csv").read_text(encoding="utf-8")


def test_a_second_run_replaces_reports_and_removes_those_of_students_who_are_gone(tmp_path: Path) -> None:
    first = Mark("anna", "10_computation_graph", "trace", "wrong")
    write_reports([first, Mark("ben", "10_computation_graph", "trace", "right")], tmp_path)
    write_reports([Mark("anna", "10_computation_graph", "trace", "right")], tmp_path)
    assert [page.name for page in (tmp_path / "students").iterdir()] == ["student-anna.html"]
    assert "anna,10_computation_graph,trace,right,1," in (tmp_path / "marks.csv").read_text(encoding="utf-8")


def test_a_report_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    put_file(tmp_path / "marks.csv", "old")
    with pytest.raises(UnicodeEncodeError):
        put_file(tmp_path / "marks.csv", "new \ud800")
    assert (tmp_path / "marks.csv").read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_of_two_notebooks_of_a_student_the_better_answer_counts() -> None:
    outcomes = ("wrong", "right", "not attempted")
    marks = [Mark("anna", "10_computation_graph", "trace", outcome) for outcome in outcomes]
    assert [mark.outcome for mark in best_of(marks)] == ["right"]


def test_the_overview_counts_outcomes_and_misconceptions() -> None:
    marks = [
        *(Mark(f"s{n}", "10_computation_graph", "trace", "wrong", "a graph is a tree", "No.") for n in range(3)),
        Mark("s3", "10_computation_graph", "trace", "right"),
    ]
    page = class_page(marks, {f"s{n}": f"students/{n}.html" for n in range(4)}, ["Seed 7."])
    row = '<td class="number">1</td><td class="number">3</td><td class="number">0</td><td class="number">0</td>'
    assert row in page and '<td class="number">3</td><td>a graph is a tree</td>' in page and "Seed 7." in page


def test_a_report_says_what_ran_and_shows_an_answer_that_was_not_attempted_as_such() -> None:
    checks = (("small graphs", True), ("deep graphs", False), ("large graphs", None))
    page = student_page("anna", [Mark("anna", "10_computation_graph", "trace", "wrong", checks=checks)])
    assert "1 of the 3 checks that mark it passed." in page and "Failed: deep graphs." in page
    assert "Not reached: large graphs." in page


@pytest.mark.parametrize("wrong", [["--seed", "0"], ["--jobs", "0"], ["--seconds", "-1"], ["--lesson", "none"], []])
def test_a_command_that_makes_no_sense_is_refused_with_a_reason(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse([*wrong, *(["folder"] if wrong else [])])
    assert "error:" in capsys.readouterr().err
