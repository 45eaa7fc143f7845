"""Every view in JupyterLab: it steps both ways and selects with others, while the kernel waits, works, and is dead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.axe import findings
from tests.browser.jupyter import KERNEL_READY, Record, wait
from tests.browser.reader import Player, kernel_value
from tests.browser.walks import INTERRUPT, TRUTH, keep_busy, kill_kernel, select_together, walk
from tests.drawn_views import CODE, exported, notebook_of_every_view

NAMES = list(CODE)


def test_every_view_that_is_exported_is_shown_here() -> None:
    assert set(CODE) == exported()


@pytest.fixture(scope="module")
def opened(shared: tuple[Callable[[Path], Any], Record], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook with every view, after every cell has run."""
    return shared[0](notebook_of_every_view(tmp_path_factory.mktemp("every_view")))


@pytest.fixture(scope="module")
def truth(opened: Any) -> dict[str, Any]:
    """What each view has to show at each step."""
    told: dict[str, Any] = kernel_value(opened, TRUTH)
    return told


@pytest.fixture(scope="module", params=["idle", "busy", "dead"])
def kernel(request: pytest.FixtureRequest, opened: Any, shared: tuple[Any, Record], truth: Any) -> Iterator[Any]:
    """The page while its kernel waits, while a cell runs, and after the kernel has died: in this order."""
    begin: dict[str, Callable[[Any], None]] = {"idle": lambda page: None, "busy": keep_busy, "dead": kill_kernel}
    begin[request.param](opened)
    shared[1].errors.clear()  # JupyterLab's own about a kernel that died; the players must add none
    yield opened
    if request.param == "busy":
        opened.evaluate(INTERRUPT)
        wait(opened, KERNEL_READY, 20, "the kernel goes on after it was interrupted")


@pytest.mark.parametrize("name", NAMES)
def test_it_steps_both_ways_by_mouse_and_by_keys(kernel: Any, blamed: None, truth: dict[str, Any], name: str) -> None:
    before = sum(len(truth[other]) for other in NAMES[: NAMES.index(name)])
    for number, steps in enumerate(truth[name], before):
        walk(Player(kernel, number), steps)


def test_what_is_selected_in_one_view_is_selected_in_every_view_of_the_same_graph(kernel: Any, blamed: None) -> None:
    select_together(kernel)


@pytest.fixture
def drawn(opened: Any, blamed: None) -> Iterator[Any]:
    """The page with every cell drawn, also those that are far from the window."""
    style = opened.add_style_tag(content=".jp-Cell { content-visibility: visible !important; }")
    yield opened
    style.evaluate("(style) => style.remove()")


@pytest.mark.parametrize(("theme", "rules"), [("Dark", ("color-contrast",)), ("Light", ())])
def test_axe_finds_nothing_wrong_in_a_theme(drawn: Any, theme: str, rules: tuple[str, ...]) -> None:
    change = "(theme) => jupyterapp.commands.execute('apputils:change-theme', { theme })"
    drawn.evaluate(change, f"JupyterLab {theme}")
    drawn.wait_for_function(
        "(light) => document.body.dataset.jpThemeLight === light", arg=str(theme == "Light").lower()
    )
    assert findings(drawn, rules=rules) == []
