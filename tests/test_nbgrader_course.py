"""The course folder for nbgrader, round trip: made from a lesson, handed out, handed in, and marked by nbgrader and by us."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from autodiff_exercises.registry import EXERCISES
from nbgrader.api import Gradebook

pytestmark = [pytest.mark.slow, pytest.mark.alone]  # starts kernels

ROOT = Path(__file__).resolve().parents[1]
LESSON = "10_computation_graph"
SOLVED = {one.name: one.solved for one in EXERCISES.values() if one.lesson == LESSON}
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in ("", "widgets", "notebooks"))}


def run(*command: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("teaching") / "course"
    made = run("notebooks/course.py", "--out", str(folder), LESSON)
    assert made.returncode == 0, made.stdout
    return folder


def notebook(course: Path, step: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((course / step / LESSON / f"{LESSON}.ipynb").read_text(encoding="utf-8"))
    return found


def hand_in(course: Path, student: str, answers: dict[str, str]) -> None:
    """Put what was handed out, with these answers, where nbgrader collects it."""
    given = notebook(course, "release")
    for cell in given["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = answers.get(name, cell["source"])
    target = course / "submitted" / student / LESSON
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{LESSON}.ipynb").write_text(json.dumps(given), encoding="utf-8")


def test_what_is_handed_out_has_neither_solution_nor_hidden_tests(course: Path) -> None:
    source, release = (json.dumps(notebook(course, step)) for step in ("source", "release"))
    assert "BEGIN SOLUTION" in source and "BEGIN HIDDEN TESTS" in source and "seed=" in source
    assert not any(text in release for text in ("SOLUTION", "HIDDEN", "seed="))
    assert not any(json.dumps(solved)[1:-1] in release for solved in SOLVED.values())


def test_the_stub_does_not_validate_and_says_which_cells(course: Path) -> None:
    said = run("-m", "nbgrader", "validate", str(course / "release" / LESSON / f"{LESSON}.ipynb"), folder=course).stdout
    assert "VALIDATION FAILED ON 2 CELL(S)" in said
    assert all(f"check({name})" in said for name in SOLVED)


@pytest.fixture(scope="module")
def graded(course: Path) -> Path:
    hand_in(course, "anna", SOLVED)
    hand_in(course, "ben", {})
    graded = run("-m", "nbgrader", "autograde", LESSON, folder=course)
    assert graded.returncode == 0, graded.stdout
    return course


def test_nbgrader_gives_full_points_for_the_solved_notebook_and_none_for_the_stub(graded: Path) -> None:
    with Gradebook(f"sqlite:///{graded / 'gradebook.db'}", "autodiff_lab") as book:
        scores = {one.student.id: (one.score, one.max_score) for one in book.assignment_submissions(LESSON)}
    assert scores == {"anna": (2.0, 2.0), "ben": (0.0, 2.0)}


def test_our_marks_are_those_of_nbgrader(graded: Path, tmp_path: Path) -> None:
    marked = run("-m", "autodiff_exercises.marking", str(graded), "--out", str(tmp_path))
    assert marked.returncode == 0, marked.stdout
    with (tmp_path / "marks.csv").open(encoding="utf-8", newline="") as table:
        rows = [(row["student"], row["lesson"], row["points"]) for row in csv.DictReader(table)]
    assert rows == [("anna", LESSON, "1"), ("anna", LESSON, "1"), ("ben", LESSON, "0"), ("ben", LESSON, "0")]


def test_making_the_folder_again_keeps_the_configuration_and_what_was_handed_in(graded: Path) -> None:
    (graded / "nbgrader_config.py").open("a", encoding="utf-8").write("# mine\n")
    assert run("notebooks/course.py", "--out", str(graded), LESSON).returncode == 0
    assert (graded / "nbgrader_config.py").read_text(encoding="utf-8").endswith("# mine\n")
    assert (graded / "submitted" / "anna" / LESSON / f"{LESSON}.ipynb").exists()


def test_a_lesson_that_does_not_exist_is_told_with_those_that_do() -> None:
    made = run("notebooks/course.py", "no_lesson")
    assert made.returncode == 2 and "no lesson is called no_lesson" in made.stdout and LESSON in made.stdout
