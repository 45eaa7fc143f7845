"""What holds for every test: its ops are gone after it, and where nobody looks (CI=true) a skip is a failure, GPU aside."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from autodiff_lab import registry


@pytest.fixture(autouse=True)
def ops_of_a_test_are_its_own() -> Iterator[None]:
    """Put the registry back as it was before the test."""
    with registry.restored():
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names that are others in every process, since tests run in several that have to agree."""
    for item in items:
        if " at 0x" in item.name:
            raise pytest.UsageError(f"{item.nodeid}: its name has an address; give the parameter an id")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    expected_failure = hasattr(report, "wasxfail")
    if (
        os.environ.get("CI") == "true"
        and report.skipped
        and not expected_failure
        and not item.get_closest_marker("gpu")
    ):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report
