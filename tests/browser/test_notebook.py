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


# Its shortcuts say so when the settings of another plugin are there before theirs; no player has to do with it.
ITS_OWN = "Cannot read properties of undefined (reading 'schema')"


def test_every_view_steps_and_selects_with_a_living_and_a_dead_kernel_and_from_the_saved_file(
    browser: Any, notebook: jupyter.Lab, tmp_path_factory: pytest.TempPathFactory
) -> None:
    record = jupyter.Record()
    path = notebook_of_every_view(tmp_path_factory.mktemp("every_view"))
    with opened(browser, record) as page:
        run_copy(notebook, page, path)
        assert page.evaluate("() => jupyterapp.name") == "Jupyter Notebook"
        truth = [steps for views in kernel_value(page, TRUTH).values() for steps in views]
        for number, steps in enumerate(truth):
            walk(Player(page, number), steps)
        select_together(page)
        page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
        kill_kernel(page)
        errors = [error for error in record.errors if error != ITS_OWN]
        record.errors.clear()  # with its own about the kernel; the players must add none
        walk(Player(page), truth[0])
        select_together(page)
        page.goto("about:blank")
        page.goto(notebook.address(path.name))
        walk(Player(page), truth[0])
        select_together(page)
    record.errors[:] = [*errors, *(error for error in record.errors if error != ITS_OWN)]
    blame(record)
    saved = json.loads((notebook.root / path.name).read_text(encoding="utf-8"))
    assert "application/vnd.jupyter.widget-state+json" in saved["metadata"]["widgets"]
