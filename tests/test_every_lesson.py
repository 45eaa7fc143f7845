"""Every lesson: built byte for byte from its source, without answers or outputs, and running clean in both editions."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from functools import cache
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
every_notebook = pytest.mark.parametrize("source", build.sources(), ids=lambda path: path.stem)
every_lesson = pytest.mark.parametrize("source", build.lesson_sources(), ids=lambda path: path.stem)
every_edition = pytest.mark.parametrize("edition", ["student", "instructor", "marked"])


@cache
def text_of(source: Path, edition: str) -> str:
    text: str = build.built(source, edition)
    return text


def notebook(source: Path, edition: str) -> NotebookNode:
    return nbformat.reads(text_of(source, edition), as_version=4)


def code(cells: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in cells.cells if cell.cell_type == "code"]


def for_instructors(cells: list[NotebookNode]) -> list[NotebookNode]:
    return [cell for cell in cells if "instructor" in cell.metadata.get("tags", ())]


def for_students(cells: list[NotebookNode]) -> list[NotebookNode]:
    return [cell for cell in cells if cell not in for_instructors(cells)]


def exercises_of(source: Path) -> list[str]:
    return re.findall(r'^# %% exercise="(\w+)"$', source.read_text(encoding="utf-8"), flags=re.M)


# ------------------------------------------------------------------------------------------------------------- building


def test_the_lessons_folder_holds_the_built_lessons_and_nothing_else() -> None:
    kept = [path.name for path in LESSONS.iterdir() if path.name != ".ipynb_checkpoints"]
    assert sorted(kept) == sorted(f"{source.stem}.ipynb" for source in build.sources()) != []


@every_notebook
def test_a_lesson_is_byte_equal_to_what_its_source_builds(source: Path) -> None:
    committed = (LESSONS / f"{source.stem}.ipynb").read_bytes()
    assert committed == text_of(source, "student").encode(), "run: python notebooks/build.py"


@every_notebook
@every_edition
def test_a_notebook_is_valid_and_has_no_outputs(source: Path, edition: str) -> None:
    cells = notebook(source, edition)
    nbformat.validate(cells)
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code(cells))


@every_notebook
def test_a_cell_has_the_same_id_in_every_edition_from_lesson_and_position(source: Path) -> None:
    expected = source.stem.replace("_", "-")
    for edition in ("student", "instructor", "marked"):
        cells = notebook(source, edition).cells
        for kind, some in (("", for_students(cells)), ("-instructor", for_instructors(cells))):
            assert [cell.id for cell in some] == [f"{expected}{kind}-{number:02d}" for number in range(len(some))]


def test_every_exercise_stands_in_its_lesson_once() -> None:
    found = {name: source.stem for source in build.sources() for name in exercises_of(source)}
    assert found == {exercise.name: exercise.lesson for exercise in EXERCISES.values()}


# -------------------------------------------------------------------------------------------------------------- answers


@every_notebook
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


# -------------------------------------------------------------------------------------------------------- instructors


@every_notebook
def test_students_and_what_nbgrader_hands_out_have_nothing_for_instructors(source: Path) -> None:
    student, instructor, marked = (notebook(source, edition).cells for edition in ("student", "instructor", "marked"))
    assert not for_instructors(student) and not for_instructors(marked)
    assert for_students(instructor) == marked
    assert [cell.id for cell in student] == [cell.id for cell in marked]
    assert all(cell.source not in (one.source for one in student) for cell in for_instructors(instructor))


@every_lesson
def test_an_instructor_reads_how_long_each_section_takes(source: Path) -> None:
    minutes = build.minutes_of(source)
    assert list(minutes) == build.sections_of(source)
    assert all(minutes.values()) and 60 <= sum(minutes.values()) <= 90


@every_lesson
def test_an_instructor_has_questions_for_the_class_with_the_expected_answers(source: Path) -> None:
    questions = [
        cell.source for cell in for_instructors(notebook(source, "instructor").cells) if "Ask the" in cell.source
    ]
    assert len(questions) >= 3
    for text in questions:
        assert re.match(r"\*\*Ask the class \(\d+ minutes?\)\.\*\* \S", text) and "\n\n**Expected:** " in text


@every_lesson
def test_an_instructor_reads_each_misconception_with_its_message_and_a_wrong_answer(source: Path) -> None:
    cells = notebook(source, "instructor").cells
    for name in exercises_of(source):
        (place,) = [
            number for number, cell in enumerate(cells) if cell.source.startswith(f"display(found := check({name}))")
        ]
        told, exercise = cells[place + 1].source, EXERCISES[name]
        messages = {one.name: one.message for one in exercise.explanations}
        for function, belief in exercise.wrong:
            assert f"**{belief}.** {messages[belief]}" in told
            first = next(wrong for wrong, other in exercise.wrong if other == belief)
            assert f"def {first.__name__}(" in told, function


def test_the_list_of_lessons_and_the_teachers_table_are_what_the_sources_tell() -> None:
    assert build.FILE.read_text(encoding="utf-8") == build.written(build.course()), "run: python notebooks/build.py"
    page = build.TEACHERS.read_text(encoding="utf-8")
    assert page == build.with_table(page, build.course()), "run: python notebooks/build.py"


def test_what_helps_before_a_lesson_stands_before_it_in_the_course() -> None:
    known: set[str] = set()
    for lesson in build.course():
        assert lesson.question.endswith("?") and set(lesson.after) <= known
        known.add(lesson.slug)


def test_a_new_lesson_is_in_the_index_and_in_every_table_without_an_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for source in build.sources():
        (tmp_path / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    new = tmp_path / "95_tea.py"
    new.write_text(
        '"""Lesson 95, tea.\n\nAfter: 10_computation_graph, 90_resources.\n"""\n\n# %% [markdown]\n# # A cup of tea\n#\n'
        "# **The question:** how long does a\n# leaf steep?\n#\n# By the end you know.\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(build, "SOURCES", tmp_path)
    (lesson,) = [one for one in build.course() if one.slug == "95_tea"]
    assert (lesson.title, lesson.question) == ("A cup of tea", "How long does a leaf steep?")
    assert lesson.after == ("10_computation_graph", "90_resources") and lesson.minutes is None
    assert "[95 A cup of tea](95_tea.ipynb)" in build.built(tmp_path / "00_index.py", "student")
    assert "| 95 A cup of tea | 60 to 90 minutes |" in build.with_table(
        build.TEACHERS.read_text(encoding="utf-8"), build.course()
    )


# ------------------------------------------------------------------------------------------------------------ languages


def test_a_translated_cell_stands_in_the_same_place_and_all_others_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = build.SOURCES / "10_computation_graph.py"
    monkeypatch.setattr(build, "SOURCES", tmp_path)
    book, told = build.in_language(source, "zh")
    assert book == text_of(source, "student")
    folder = tmp_path / "translations" / "zh"
    folder.mkdir(parents=True)
    (folder / f"{source.stem}.md").write_text(told.replace("# A program is a graph", "# 程序就是图"), encoding="utf-8")
    changed, again = build.in_language(source, "zh")
    before, after = (nbformat.reads(text, as_version=4).cells for text in (book, changed))
    assert after[0].source.startswith("# 程序就是图") and after[0].id == before[0].id
    assert after[1:] == before[1:]
    assert again == (folder / f"{source.stem}.md").read_text(encoding="utf-8")


def test_a_translation_of_english_that_has_changed_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "10_x.md"
    file.write_text(build.translation.to_translate(["old English"], {}).replace("old English", "alt"), encoding="utf-8")
    known = build.translation.read(file)
    assert known == {build.translation.key_of("old English"): "alt"}
    assert "new English" in build.translation.to_translate(["new English"], known)


# ----------------------------------------------------------------------------------------------------------------- form


@every_lesson
def test_a_lesson_opens_with_its_question_and_ends_with_summary_and_exercises(source: Path) -> None:
    text = [cell.source for cell in notebook(source, "student").cells if cell.cell_type == "markdown"]
    assert text[0].startswith("# ") and "**The question:**" in text[0]
    assert "## Summary" in text[-1] and "## Exercises" in text[-1]


@every_notebook
def test_prose_comes_first_and_code_cells_are_short(source: Path) -> None:
    cells = notebook(source, "student").cells
    assert cells[0].cell_type == "markdown"
    for cell in code(notebook(source, "student")):
        assert 1 <= len(cell.source.splitlines()) <= 15, cell.source


@every_notebook
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


@every_notebook
@pytest.mark.slow
def test_the_solved_lesson_runs_clean_and_every_check_is_right(source: Path, as_a_student: Path) -> None:
    cells, seconds = run(source, "instructor", as_a_student)
    assert seconds < 20
    assert [out.text for cell in code(cells) for out in cell.outputs if out.get("name") == "stderr"] == []
    assert verdicts(cells) == [f"✓ {name}: right so far" for name in exercises_of(source)]
    kept = as_a_student / "progress.json"  # is not there before something was checked
    state = json.loads(kept.read_text()) if kept.exists() else {}
    assert {name: record["state"] for name, record in state.items()} == dict.fromkeys(exercises_of(source), "right")


@every_notebook
@pytest.mark.slow
def test_the_students_lesson_runs_to_its_end_and_only_the_exercises_are_open(source: Path, as_a_student: Path) -> None:
    cells, _seconds = run(source, "student", as_a_student)
    assert verdicts(cells) == [f"○ {name}: not attempted" for name in exercises_of(source)]
