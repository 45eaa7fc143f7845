"""The lecture as a class sees it: every picture stepped, and the pictures that ask what comes next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.reader import Player, kernel_value

LECTURE = Path(__file__).parents[2] / "notebooks" / "lessons" / "00_lecture.ipynb"
VIEWS = "[v for v in Out.values() if isinstance(v, aw.View)]"
SHOWN = 12  # steps of each picture that are taken one by one


@pytest.fixture
def lecture(open_notebook: Callable[[Path], Any]) -> Any:
    return open_notebook(LECTURE)


def test_every_picture_steps_through_what_its_events_say(lecture: Any) -> None:
    scenes = kernel_value(
        lecture, f"[[(f.caption, f.question is not None and v.predict) for f in v.frames] for v in {VIEWS}]"
    )
    assert len(scenes) >= 10
    for number, frames in enumerate(scenes):
        player = Player(lecture, number)
        player.root.focus()
        for step, (caption, asks) in enumerate(frames[1 : SHOWN + 1], 1):
            player.press(*["ArrowRight"] * (1 + asks))  # the second shows the step without an answer
            assert player.counter() == f"{step} / {len(frames) - 1}"
            assert player.caption() == caption.replace("`", "")
        player.press("End")
        assert player.caption() == frames[-1][0].replace("`", "")


def test_pictures_that_ask_wait_and_say_whether_the_class_was_right(lecture: Any) -> None:
    for number, predicts in enumerate(kernel_value(lecture, f"[v.predict for v in {VIEWS}]")):
        if predicts:
            check_answers(lecture, number)


def check_answers(lecture: Any, number: int) -> None:
    """The first question is answered wrong, the second right."""
    questions = kernel_value(
        lecture,
        f"[(i, f.question.text, f.question.choices, f.question.right) for i, f in enumerate({VIEWS}[{number}].frames) "
        "if f.question]",
    )
    player = Player(lecture, number)
    assert len(questions) >= 2
    player.root.focus()
    for place, (step, text, choices, right) in enumerate(questions[:2]):
        while player.counter().split(" / ")[0] != str(step - 1):
            player.press("ArrowRight")
        player.press("ArrowRight")
        assert player.caption() == text.replace("`", "")
        assert player.counter().startswith(f"{step - 1} / ")
        labels = dict(choices)
        wrong = next(label for key, label in choices if key != right)
        player.root.get_by_role("button", name=wrong if place == 0 else labels[right], exact=True).click()
        assert player.counter().startswith(f"{step} / ")
        verdict = f"No, it is {labels[right]}. (0 of 1 right)" if place == 0 else "Right! (1 of 2 right)"
        assert player.caption().startswith(verdict)
