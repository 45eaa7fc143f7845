"""Asking for checks, hints and solutions, and the file that keeps a student's progress."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from autodiff_exercises import check, hint, progress, progress_file, solution
from autodiff_exercises.registry import EXERCISES

from tests.browser import jupyter
from tests.notebook_cell import defined

pytestmark = pytest.mark.usefixtures("own_progress")


@pytest.fixture(scope="module")
def where_a_test_that_asks_for_nothing_keeps_progress() -> Path:
    return progress_file.path()


def test_no_test_reads_or_changes_what_somebody_has_really_done(
    where_a_test_that_asks_for_nothing_keeps_progress: Path, tmp_path: Path
) -> None:
    real = platformdirs.user_data_path("autodiff-lab", appauthor=False)
    assert where_a_test_that_asks_for_nothing_keeps_progress.parent != real
    assert jupyter.isolated(tmp_path)["AUTODIFF_LAB_PROGRESS"] == str(tmp_path / "progress.json")


def test_a_bare_function_and_a_name_with_a_function_find_the_same_exercise() -> None:
    right = EXERCISES["topological_order"].solution
    assert check(right).right and check("topological_order", right).right


@pytest.mark.parametrize("call", [lambda: check("topological_ordr", len), lambda: hint("topological_ordr")])
def test_a_misspelt_exercise_is_told_with_the_near_name(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="Did you mean 'topological_order'"):
        call()


def test_a_check_without_a_function_says_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"write check\(topological_order\)"):
        check("topological_order")


def test_hints_come_one_by_one_and_the_last_one_stays() -> None:
    seen = [hint("topological_order") for _ in range(4)]
    assert [one.paragraphs[0] for one in seen] == [*EXERCISES["topological_order"].hints, seen[2].paragraphs[0]]


def test_the_solution_is_shown_only_when_asked_twice() -> None:
    exercise = EXERCISES["topological_order"]
    first, second = solution(exercise.name), solution(exercise.name, really=True)
    assert "stack" not in repr(first) + first._repr_html_()
    assert defined(second.code, exercise.name)({"y": ["x"], "x": []}) == ["x", "y"]
    assert progress_file.records()[0][exercise.name].solution_seen


def test_progress_remembers_and_right_stays_right(own_progress: Path) -> None:
    exercise = EXERCISES["topological_order"]
    assert "not attempted" in repr(progress())
    for function in (exercise.wrong[0][0], exercise.solution, exercise.wrong[1][0]):
        check(exercise.name, function)
    hint(exercise.name)
    assert "✓ right  topological_order  (10_computation_graph; 3 checks, 1 hint)" in repr(progress())
    assert "topological_order" in progress()._repr_html_()
    assert json.loads(own_progress.read_text())[exercise.name]["state"] == "right"


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"topological_order": {"no_such_field": 1}}', "\0\0"])
def test_a_damaged_progress_file_is_kept_and_told(own_progress: Path, content: str) -> None:
    own_progress.write_text(content)
    found = check("topological_order", EXERCISES["topological_order"].solution)
    assert found.right and "damaged" in " ".join(found.notes)
    (aside,) = own_progress.parent.glob("*unreadable*")
    assert aside.read_text() == content
    assert "right" in repr(progress())


def test_progress_that_cannot_be_saved_is_told_and_the_check_still_counts(
    own_progress: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTODIFF_LAB_PROGRESS", str(own_progress / "beneath" / "a file"))
    own_progress.write_text("{}")
    found = check("topological_order", EXERCISES["topological_order"].solution)
    assert found.right and "could not be saved" in " ".join(found.notes)


def test_a_disk_that_fills_up_leaves_the_old_file(own_progress: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hint("topological_order")
    before = own_progress.read_text()

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in str(hint("topological_order"))
    assert own_progress.read_text() == before and list(own_progress.parent.iterdir()) == [own_progress]


def test_what_a_student_writes_is_escaped_in_html() -> None:
    source = "def topological_order(graph):\n    return ['<script>alert(1)</script>']"
    page = check(defined(source, "topological_order"))._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page
