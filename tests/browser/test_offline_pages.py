"""Pages from a file, without kernel and network: a whole lesson by nbconvert, and saved views whose labels try to break out."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from autodiff_widgets.notebook_page import NotebookPage
from autodiff_widgets.shapes import writable
from traitlets.config import Config

from tests.browser import jupyter
from tests.browser.reader import Player
from tests.hand_written import NestedView, scene
from tests.saved_pages import players_of
from tests.test_labels import MAKE, NAMES

LESSON = jupyter.REPOSITORY / "notebooks" / "lessons" / "10_computation_graph.ipynb"


def after(player: dict[str, Any], frame: int) -> dict[str, str]:
    """The states of a player's elements after its first frames."""
    changes = [change for shown in player["scene"]["frames"][: frame + 1] for change in shown["changes"]]
    return {element: state for element, state, *_ in changes if state is not None}


def test_a_lesson_by_nbconvert_steps_and_links(page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in jupyter.isolated(tmp_path).items():
        monkeypatch.setenv(name, value)
    execute = Config({"ExecutePreprocessor": {"enabled": True}})  # what --execute says
    written, _ = NotebookPage(config=execute).from_filename(str(LESSON))
    (tmp_path / "lesson.html").write_text(written, encoding="utf-8")
    assert os.path.getsize(tmp_path / "lesson.html") < 1_000_000
    page.goto((tmp_path / "lesson.html").as_uri())
    told = players_of(written)
    assert len(told) >= 5 and page.locator(".autodiff-player").count() == len(told)
    for number, player in enumerate(told):
        last = len(player["scene"]["frames"]) - 1
        shown = Player(page, number)
        shown.root.focus()
        shown.press("End")
        assert (shown.counter(), shown.states()) == (f"{last} / {last}", after(player, last))
        shown.press("ArrowLeft")
        assert shown.states() == after(player, max(last - 1, 0))
    one, other, key = next(
        (one, other, key)
        for one, other in combinations(range(len(told)), 2)
        for key in told[one]["scene"]["facts"]
        if key in told[other]["scene"]["facts"]
    )
    Player(page, one).root.locator(f".node[data-op='{key}']").first.click()
    assert key in Player(page, one).selected() & Player(page, other).selected()


def test_labels_that_try_to_break_out_of_a_page_are_text_in_it(page: Any, tmp_path: Path) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    views = [MAKE[name]() for name in ("graph", "timeline", "queue", "training 0")]
    page.goto(views[0].save_html(tmp_path / "page.html", *views[1:]).as_uri())
    Player(page, len(views) - 1)
    for number in range(len(views)):
        Player(page, number).root.focus()
        page.keyboard.press("End")
    for number in range(3):
        titles = Player(page, number).root.locator(".pane title").evaluate_all("all => all.map(e => e.textContent)")
        assert [name for name in NAMES if not any(writable(name) in title for title in titles)] == []
    twin = str(page.locator("pre").first.text_content())
    assert [name for name in NAMES if writable(name) not in twin] == []
    foreign = "main script, .autodiff-player :is(script, b, map, img, iframe, a), .autodiff-player [onload], [onerror]"
    assert page.locator(foreign).count() == 0
    assert dialogs == []


def test_what_is_inside_is_in_the_page_and_steps_there(page: Any, tmp_path: Path) -> None:
    page.goto(NestedView().save_html(tmp_path / "page.html").as_uri())
    player = Player(page)
    player.root.focus()
    player.press("ArrowRight")
    player.root.locator('.node[data-op="n3"]').dblclick()
    player.root.locator("nav").get_by_text("inside mul").wait_for()
    player.press("End")
    assert player.states() == scene().states_at(len(scene().frames) - 1)
    player.press("Escape", "Escape")
    player.root.locator(".title", has_text="outermost").wait_for()
    assert player.states() == scene().states_at(1)
