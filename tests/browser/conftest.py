"""Fixtures for tests in a real browser: one JupyterLab, and for each test a page of its own that must stay offline."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import jupyter

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("browser")
            item.add_marker("alone")


def missing(what: str) -> None:
    """Skip where a browser is optional; fail where it must be there."""
    reason = f"{what}; tests in a browser need `pip install playwright jupyterlab` and Chromium (or CHROMIUM=path)"
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, headless."""
    path = jupyter.chromium()
    if path is None:
        missing("no Chromium found")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("no playwright found")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(jupyter.BROWSER_OPTIONS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def lab(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[jupyter.Lab]:
    """One JupyterLab for all tests."""
    try:
        import jupyterlab  # noqa: F401
    except ImportError:
        missing("no jupyterlab found")
    with jupyter.jupyter_lab(tmp_path_factory.mktemp("lab")) as running:
        yield running


@pytest.fixture
def record() -> jupyter.Record:
    """What the test's page did that it should not; a test that provokes an error may clear it."""
    return jupyter.Record()


@pytest.fixture
def page(browser: Any, record: jupyter.Record) -> Iterator[Any]:
    """A page of its own that has no network and must log no error."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, reduced_motion="reduce")
    page = context.new_page()
    jupyter.watch(page, record)
    yield page
    context.close()
    assert record.outside == [], "the page asked for something outside of this machine"
    assert record.errors == [], "the page logged errors"


@pytest.fixture
def open_notebook(lab: jupyter.Lab, page: Any) -> Iterator[Callable[[Path], Any]]:
    """``open_notebook(path)`` opens a copy of a notebook in JupyterLab, runs every cell and gives the page.

    An error in a cell fails the test with the cell's traceback.
    """

    def open_and_run(path: Path) -> Any:
        shutil.copy(path, lab.root / path.name)
        page.goto(lab.address(path.name))
        jupyter.run_all_cells(page)
        return page

    yield open_and_run
    lab.end_kernels()
