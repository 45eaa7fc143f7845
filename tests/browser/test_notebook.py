"""Every view in Jupyter Notebook 7, where the same players have another host: they step, select together, and are saved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser import jupyter
from tests.browser.conftest import blame, missing, opened, run_copy
from tests.browser.reader import Player, kernel_value
from tests.browser.walks import TRUTH, kill_kernel, select_together, walk
from tests.drawn_views import notebook_of_every_view


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[jupyter.Lab]:
    """A server of Notebook, and none of JupyterLab."""
    try:
        import notebook  # noqa: F401
    except ImportError:
        missing("no notebook found")
    with jupyter.jupyter_lab(tmp_path_factory.mktemp("notebook"), jupyter.NOTEBOOK) as running:
        yield running


def test_every_view_steps_and_selects_with_a_living_and_a_dead_kernel_and_from_the_saved_file(
    browser: Any, notebook: jupyter.Lab, tmp_path_factory: pytest.TempPathFactory
) -> None:
    record = jupyter.Record()
    path = notebook_of_every_view(tmp_path_factory.mktemp("every_view"))
    with opened(browser, record) as page:
        run_copy(notebook, page, path)
        assert page.evaluate("() => jupyterapp.name") == "Jupyter Notebook"
        truth = [steps for views in kernel_value(page, TRUTH).values() for steps in views]
        step_all(page, truth)
        select_together(page)
        page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
        kill_kernel(page)
        record.errors.clear()  # the notebook's own about its kernel; the players must add none
        step_all(page, truth)
        select_together(page)
        page.goto("about:blank")
        page.goto(notebook.address(path.name))
        step_all(page, truth)
        select_together(page)
    blame(record)
    saved = json.loads((notebook.root / path.name).read_text(encoding="utf-8"))
    assert "application/vnd.jupyter.widget-state+json" in saved["metadata"]["widgets"]


def step_all(page: Any, truth: list[Any]) -> None:
    """Walk through every view."""
    for number, steps in enumerate(truth):
        walk(Player(page, number), steps)
