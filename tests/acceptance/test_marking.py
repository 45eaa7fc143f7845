"""Cases A36 to A38: a submission that never ends, a typed-in answer, and what is said when only the visible checks passed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from autodiff_exercises import check, progress
from autodiff_exercises.checking import examine
from autodiff_exercises.exercise import Exercise
from autodiff_exercises.marking.judge import as_plain, marked
from autodiff_exercises.marking.judges import Marker
from autodiff_exercises.marking.marks import Mark, mark_from
from autodiff_exercises.marking.notebooks import cells_of
from autodiff_exercises.marking.pages import student_page
from autodiff_exercises.marking.submissions import Submission
from autodiff_exercises.registry import EXERCISES

from tests.handed_in import lesson, put
from tests.notebook_cell import defined

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_progress")]


def grade(folder: Path, answers: dict[str, str], name: str, limit_s: float = 5.0) -> dict[str, Mark]:
    """The marks of one notebook with these answers, by exercise."""
    file = put(folder, "anna", lesson(name, answers))
    (folder / "empty").mkdir()
    marker = Marker(seed=1, seconds=limit_s, folder=str(folder / "empty"))
    return {mark.exercise: mark for mark in marker.marks_of(Submission("anna", file, ()))}


def grade_one(folder: Path, exercise: Exercise, answer: str) -> Mark:
    """The mark of one answer in its notebook."""
    cells = cells_of(put(folder, "anna", lesson(exercise.lesson, {exercise.name: answer})))
    return mark_from("anna", exercise.lesson, as_plain(marked(cells, exercise, seed=1)))


# ------------------------------------------------------------------------------------------------------------------ A36

NEVER_ENDS = {
    "a loop": ("while True: pass", "could not be checked", "still running after 5 seconds"),
    "a recursion": ("return legal_next(*given)", "wrong", "It raised RecursionError"),
    "10 MB of output": ("print('flood ' * 2_000_000)", "wrong", "returns None"),
    "a question": ("return input('next? ')", "wrong", "calls input()"),
}


@pytest.mark.parametrize("what", NEVER_ENDS)
def test_a36_a_submission_that_never_ends_costs_its_own_question(what: str, tmp_path: Path) -> None:
    body, outcome, words = NEVER_ENDS[what]
    good = {name: EXERCISES[name].solved for name in ("backward", "count_orders")}
    marks = grade(tmp_path, {**good, "legal_next": f"def legal_next(*given):\n    {body}"}, "30_reverse_mode")
    assert {name: marks[name].outcome for name in marks} == {
        "backward": "right",
        "legal_next": outcome,
        "count_orders": "right",
    }
    page = student_page("anna", list(marks.values())).replace("<code>", "").replace("</code>", "")
    assert words in page


def test_a36_in_a_notebook_the_next_check_works_after_one_that_did_not_end() -> None:
    assert check(defined("def exp_vjp(g, x):\n    while True: pass", "exp_vjp")).verdict == "could not be checked"
    assert check(EXERCISES["exp_vjp"].solution).right


# ------------------------------------------------------------------------------------------------------------------ A37

EXP = EXERCISES["exp_vjp"]
CHEATS = {
    "hard-coded": "def exp_vjp(g, x):\n    return {answer}",
    "finite differences": "def exp_vjp(g, x):\n    return g * (np.exp(x + 1e-6) - np.exp(x - 1e-6)) / 2e-6",
    "the library's gradient": "def exp_vjp(g, x):\n    return ad.vjp(ops.exp, x).pull(g)[0]",
    "only positive": "def exp_vjp(g, x):\n    return g * np.exp(np.abs(x))",
    "twice too large": "def exp_vjp(g, x):\n    return 2 * g * np.exp(x)",
    "right, but changes its input": "def exp_vjp(g, x):\n    g *= np.exp(x)\n    return g",
    "patches what checks it": (
        "import autodiff_exercises.attempts as attempts\nattempts.attempt = lambda *given: None\n"
        "def exp_vjp(g, x):\n    return g"
    ),
}


def visible_answer(exercise: Exercise) -> str:
    """What somebody types in who has seen the first case."""
    case = next(iter(exercise.cases(Random(0), False)))
    return f"np.{exercise.solution(*case.arguments)!r}".replace("np.np.", "np.").replace("dtype=", "dtype=np.")


@pytest.mark.parametrize("cheat", CHEATS)
def test_a37_a_typed_in_answer_loses_marks_and_is_told_why(cheat: str, tmp_path: Path) -> None:
    source = CHEATS[cheat].replace("{answer}", visible_answer(EXP))
    mark = grade_one(tmp_path, EXP, source)
    assert mark.outcome == "wrong" and mark.points == 0
    assert mark.misconception and mark.message
    assert_shows_no_answer(EXP, student_page("anna", [mark]))


def assert_shows_no_answer(exercise: Exercise, text: str) -> None:
    for case in exercise.cases(Random(1), True):
        expected = exercise.solution(*case.arguments)
        assert case.expression not in text
        numbers = [str(number) for number in expected.ravel().tolist()]
        assert not any(number in text for number in numbers if len(number) > 4)


def test_a37_the_reference_has_the_full_mark(tmp_path: Path) -> None:
    assert grade_one(tmp_path, EXP, EXP.solved).points == 1


def test_a37_an_error_whose_words_hold_the_input_is_told_without_its_words(tmp_path: Path) -> None:
    for telling in ("raise ValueError({})", "raise type({}, (Exception,), {{}})"):
        mark = grade_one(tmp_path, EXP, f"def exp_vjp(g, x):\n    {telling.format('repr((g, x, g * np.exp(x)))')}")
        assert mark.raised.endswith(" (line 2 of the cell or file that defines it)")
        assert_shows_no_answer(EXP, student_page("anna", [mark]))


# ------------------------------------------------------------------------------------------------------------------ A38


def largest(exercise: Exercise, marking: bool, size: Callable[..., int]) -> int:
    return max(size(*case.arguments) for case in exercise.cases(Random(0 if not marking else 1), marking))


@pytest.fixture
def passes_only_visible() -> Callable[..., Any]:
    """Right on everything that the visible checks try, wrong on what is larger."""
    exercise = EXERCISES["topological_order"]
    limit = largest(exercise, False, len)
    assert largest(exercise, True, len) > limit
    order = "list(__import__('graphlib').TopologicalSorter(graph).static_order())"
    return defined(f"def topological_order(graph):\n    return {order}[:: 1 if len(graph) <= {limit} else -1]")


def test_a38_what_is_said_is_what_was_run(passes_only_visible: Callable[..., Any]) -> None:
    found = check(passes_only_visible)
    count = len(found.checks)
    for text in (str(found), found._repr_html_()):
        assert f"{count} of {count} visible checks passed; more run when it is marked." in text
        assert "right so far" in text and "all tests" not in text.lower() and "all checks" not in text.lower()
    shown = str(progress())
    assert "✓ right so far  topological_order" in shown
    assert "more run when it is marked" in shown and "✓ right  " not in shown
    hidden = examine(EXERCISES["topological_order"], passes_only_visible, 1, marking=True)
    assert hidden.verdict == "wrong" and "visible" not in str(hidden)
