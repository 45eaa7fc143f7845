"""Every lesson: built byte for byte from its source, without answers or outputs, and running clean in both editions."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
from autodiff_exercises.registry import EXERCISES
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

ROOT = Path(__file__).resolve().parent.parent
LESSONS = ROOT / "notebooks" / "lessons"


def load_build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks_build", ROOT / "notebooks" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build = load_build()
every_lesson = pytest.mark.parametrize("source", build.sources(), ids=lambda path: path.stem)


def notebook(source: Path, edition: str) -> NotebookNode:
    return nbformat.reads(build.built(source, edition), as_version=4)


def code(cells: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in cells.cells if cell.cell_type == "code"]


def exercises_of(source: Path) -> list[str]:
    return re.findall(r'^# %% exercise="(\w+)"$', source.read_text(encoding="utf-8"), flags=re.M)


# ------------------------------------------------------------------------------------------------------------- building


def test_the_lessons_folder_holds_the_built_lessons_and_nothing_else() -> None:
    kept = [path.name for path in LESSONS.iterdir() if path.name != ".ipynb_checkpoints"]
    assert sorted(kept) == sorted(f"{source.stem}.ipynb" for source in build.sources()) != []


@every_lesson
def test_a_lesson_is_byte_equal_to_what_its_source_builds(source: Path) -> None:
    committed = (LESSONS / f"{source.stem}.ipynb").read_bytes()
    assert committed == build.built(source, "student").encode(), "run: python notebooks/build.py"


@every_lesson
@pytest.mark.parametrize("edition", ["student", "instructor"])
def test_a_notebook_is_valid_and_has_no_outputs(source: Path, edition: str) -> None:
    cells = notebook(source, edition)
    nbformat.validate(cells)
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code(cells))


@every_lesson
def test_cell_ids_come_from_lesson_and_position_and_agree_in_both_editions(source: Path) -> None:
    expected = source.stem.replace("_", "-")
    for edition in ("student", "instructor"):
        ids = [cell.id for cell in notebook(source, edition).cells]
        assert ids == [f"{expected}-{number:02d}" for number in range(len(ids))]


def test_every_exercise_stands_in_its_lesson_once() -> None:
    found = {name: source.stem for source in build.sources() for name in exercises_of(source)}
    assert found == {exercise.name: exercise.lesson for exercise in EXERCISES.values()}


# -------------------------------------------------------------------------------------------------------------- answers


@every_lesson
def test_no_answer_lies_where_students_look(source: Path) -> None:
    text = (LESSONS / f"{source.stem}.ipynb").read_text(encoding="utf-8")
    assert "BEGIN SOLUTION" not in text and "HIDDEN" not in text
    cells = "\n".join(cell.source for cell in notebook(source, "student").cells)
    for name in exercises_of(source):
        exercise = EXERCISES[name]
        head, given = exercise.starter.rsplit("    raise", 1)  # with what is given to be repaired
        answer = exercise.solved.removeprefix(head)
        told = [line for line in answer.splitlines() if len(line.split()) > 2 and line in cells and line not in given]
        assert told == [], f"{name} shows lines of its solution"


@every_lesson
def test_the_instructors_edition_has_the_solution_between_marks_and_lies_elsewhere(source: Path) -> None:
    sources = [cell.source for cell in code(notebook(source, "instructor"))]
    for name in exercises_of(source):
        assert EXERCISES[name].solved_between_marks in sources
    assert LESSONS not in build.FOLDERS["instructor"].parents
    assert "build/" in (ROOT / ".gitignore").read_text().splitlines()


@every_lesson
def test_the_cells_of_an_exercise_bear_the_metadata_that_nbgrader_marks_by(source: Path) -> None:
    for edition in ("student", "instructor"):
        marked = [cell.metadata.nbgrader for cell in code(notebook(source, edition)) if "nbgrader" in cell.metadata]
        assert [m.grade_id for m in marked] == [n for name in exercises_of(source) for n in (name, f"{name}-check")]
        for answer, test in zip(marked[::2], marked[1::2], strict=True):
            assert (answer.solution, answer.grade, answer.locked) == (True, False, False)
            assert (test.solution, test.grade, test.locked, test.points) == (False, True, True, 1)
            assert answer.schema_version == test.schema_version == 3


# ----------------------------------------------------------------------------------------------------------------- form


@every_lesson
def test_a_lesson_opens_with_its_question_and_ends_with_summary_and_exercises(source: Path) -> None:
    text = [cell.source for cell in notebook(source, "student").cells if cell.cell_type == "markdown"]
    assert text[0].startswith("# ") and "**The question:**" in text[0]
    assert "## Summary" in text[-1] and "## Exercises" in text[-1]


@every_lesson
def test_prose_comes_first_and_code_cells_are_short(source: Path) -> None:
    cells = notebook(source, "student").cells
    assert cells[0].cell_type == "markdown"
    for cell in code(notebook(source, "student")):
        assert 1 <= len(cell.source.splitlines()) <= 15, cell.source


@every_lesson
def test_two_pictures_never_stand_side_by_side(source: Path) -> None:
    cells = notebook(source, "student").cells
    pictures = [number for number, cell in enumerate(cells) if cell.cell_type == "code" and "View(" in cell.source]
    assert all(
        cells[number - 1].cell_type == "markdown" or "View(" not in cells[number - 1].source for number in pictures
    )
    assert all(cells[number].source.count("View(") == 1 for number in pictures)


# -------------------------------------------------------------------------------------------------------------- running


@pytest.fixture
def as_a_student(tmp_path: Path, own_progress: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv(
        "AUTODIFF_LAB_SMALL", "1"
    )  # what a lesson measures is small, since nobody reads the figures here
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(str(ROOT / part) for part in (".", "widgets", "notebooks")))
    return tmp_path


def run(source: Path, edition: str, folder: Path) -> tuple[NotebookNode, float]:
    """The lesson with its outputs, and the seconds of processor time that its kernel took; where there is no count, 0."""
    cells = notebook(source, edition)
    began = os.times()
    NotebookClient(
        cells,
        timeout=60,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        config=Config({"KernelManager": connection(folder)}),
    ).execute()
    ended = os.times()
    return cells, ended.children_user + ended.children_system - began.children_user - began.children_system


def connection(folder: Path) -> dict[str, str]:
    """Files in the folder where there can be: ports are looked for and taken later, perhaps by a kernel of another test."""
    short = os.name == "posix" and len(str(folder)) < 80  # a socket's file has at most 103 characters on macOS
    return {"transport": "ipc", "connection_file": str(folder / "kernel.json")} if short else {}


def verdicts(cells: NotebookNode) -> list[str]:
    """What the checks said, from the text beside the HTML."""
    texts = [out.data.get("text/plain", "") for cell in code(cells) for out in cell.outputs if "data" in out]
    said = re.compile(rf"[✓✗?○] ({'|'.join(EXERCISES)}): ")
    return [text.splitlines()[0] for text in texts if said.match(text)]


@every_lesson
@pytest.mark.slow
def test_the_solved_lesson_runs_clean_and_every_check_is_right(source: Path, as_a_student: Path) -> None:
    cells, seconds = run(source, "instructor", as_a_student)
    assert seconds < 20
    assert [out.text for cell in code(cells) for out in cell.outputs if out.get("name") == "stderr"] == []
    assert verdicts(cells) == [f"✓ {name}: right" for name in exercises_of(source)]
    kept = as_a_student / "progress.json"  # is not there before something was checked
    state = json.loads(kept.read_text()) if kept.exists() else {}
    assert {name: record["state"] for name, record in state.items()} == dict.fromkeys(exercises_of(source), "right")


@every_lesson
@pytest.mark.slow
def test_the_students_lesson_runs_to_its_end_and_only_the_exercises_are_open(source: Path, as_a_student: Path) -> None:
    cells, _seconds = run(source, "student", as_a_student)
    assert verdicts(cells) == [f"○ {name}: not attempted" for name in exercises_of(source)]
