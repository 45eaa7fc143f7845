"""Fixtures for tests in a real browser: one JupyterLab, and for each test a page of its own that must stay offline."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.browser import jupyter

HERE = Path(__file__).parent
pytest.register_assert_rewrite("tests.browser.walks")  # so that a failure says what was seen


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
        chromium = playwright.chromium.launch(
            executable_path=path, args=list(jupyter.BROWSER_OPTIONS), proxy=jupyter.NO_NETWORK
        )
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
    with opened(browser, record) as page:
        yield page
    blame(record)


@contextmanager
def opened(browser: Any, record: jupyter.Record) -> Iterator[Any]:
    """An empty page of a fresh profile."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, reduced_motion="reduce")
    page = context.new_page()
    jupyter.watch(page, record)
    try:
        yield page
    finally:
        context.close()


def blame(record: jupyter.Record) -> None:
    """Fail where a page did what it should not."""
    assert record.outside == [], "the page asked for something outside of this machine"
    assert record.errors == [], "the page logged errors"


@pytest.fixture
def open_notebook(lab: jupyter.Lab, page: Any) -> Iterator[Callable[[Path], Any]]:
    """``open_notebook(path)`` opens a copy of a notebook in JupyterLab, runs every cell and gives the page.

    An error in a cell fails the test with the cell's traceback.
    """
    yield lambda path: run_copy(lab, page, path)
    lab.end_kernels()


def run_copy(lab: jupyter.Lab, page: Any, path: Path) -> Any:
    """Open a copy of a notebook and run every cell."""
    shutil.copy(path, lab.root / path.name)
    page.goto(lab.address(path.name))
    jupyter.run_all_cells(page)
    return page


# --------------------------------------------------------- one notebook for all tests of a file: opening it takes seconds


@pytest.fixture(scope="module")
def shared(browser: Any, lab: jupyter.Lab) -> Iterator[tuple[Callable[[Path], Any], jupyter.Record]]:
    """What opens a notebook for all tests of a file, and what its page did that it should not."""
    record = jupyter.Record()
    with opened(browser, record) as page:
        yield lambda path: run_copy(lab, page, path), record
    lab.end_kernels()


@pytest.fixture
def blamed(shared: tuple[Any, jupyter.Record]) -> Iterator[None]:
    """Blame the test during which a shared page did what it should not, and no later one."""
    yield
    _, record = shared
    did = replace(record, outside=list(record.outside), errors=list(record.errors))
    record.outside.clear()
    record.errors.clear()
    blame(did)
