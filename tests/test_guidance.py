"""Asking for checks, hints and solutions, and the file that keeps a student's progress."""

from __future__ import annotations

import functools
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

pytestmark = [pytest.mark.usefixtures("own_progress"), pytest.mark.slow]  # each check starts a process


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


def test_a_hint_can_be_read_again_and_that_counts_once() -> None:
    name, hints = "topological_order", EXERCISES["topological_order"].hints
    for number in (None, None, 1, 2, 1):
        said = hint(name, number)
    assert said.paragraphs[0] == hints[0] and "Hint 1 of 3" in said.heading
    assert progress_file.records()[0][name].hints == 2
    assert hint(name).paragraphs[0] == hints[2]


def test_the_last_hint_says_that_it_is_the_last_and_how_to_see_the_first_again() -> None:
    assert "This is the last hint. `hint('topological_order', 1)`" in str(hint("topological_order", 3))
    assert progress_file.records()[0]["topological_order"].hints == 3


@pytest.mark.parametrize("number", [0, 4, -1, "1"])
def test_a_hint_that_does_not_exist_is_refused_with_the_numbers_that_do(number: Any) -> None:
    with pytest.raises(ValueError, match="the hints are 1 to 3"):
        hint("topological_order", number)


@pytest.mark.parametrize("function", [lambda graph: [], functools.partial(sorted, key=str), sorted, print])
def test_a_function_of_another_name_is_told_how_to_be_checked(function: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"checked with its exercise: check\('\w+', \w+\)"):
        check(function)


@pytest.mark.parametrize("really", [False, "no", "yes", 1, [0], None])
def test_nothing_but_true_shows_the_solution(really: Any) -> None:
    assert "one step away" in solution("topological_order", really=really).heading
    assert "topological_order" not in progress_file.records()[0]
    assert "A solution" in solution("topological_order", True).heading


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
    assert "✓ right so far  topological_order  (10_computation_graph; 3 checks, 1 hint)" in repr(progress())
    assert "topological_order" in progress()._repr_html_()
    assert json.loads(own_progress.read_text())[exercise.name]["state"] == "right"


def test_progress_unfolds_the_lesson_in_which_something_happened_last_and_no_other() -> None:
    assert "<details open>" not in progress()._repr_html_()
    for name in ("topological_order", "served"):
        hint(name)
    page = progress()._repr_html_()
    assert page.count("<details open>") == 1
    assert page.count("<details") == len({exercise.lesson for exercise in EXERCISES.values()})
    assert all(f"<td style='text-align:left'>{name}</td>" in page for name in EXERCISES)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"topological_order": {"checks": "many"}}', '{"topological_order": 3}', "\0\0"]
)
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
    assert own_progress.read_text() == before and list(own_progress.parent.glob("*.part")) == []


def test_what_a_student_writes_is_escaped_in_html() -> None:
    source = "def topological_order(graph):\n    return ['<script>alert(1)</script>']"
    page = check(defined(source, "topological_order"))._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_halves_of_characters_are_shown_as_escapes_and_do_not_break_a_page() -> None:
    source = "def topological_order(graph):\n    print('\\ud800')\n    raise ValueError('\\udfff')"
    found = check(defined(source))
    for text in (str(found), found._repr_html_()):
        text.encode()
        assert r"\ud800" in text and r"\udfff" in text
