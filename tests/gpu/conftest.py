"""Tests on a real GPU, for ``python -m pytest tests/gpu``: they bear the mark gpu, and are skipped where CuPy finds none."""

from __future__ import annotations

from pathlib import Path

import pytest

import autodiff_lab as ad

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("gpu")


@pytest.fixture(autouse=True, scope="session")
def gpu() -> str:
    """The device on which the tests compute."""
    lines = [line for line in ad.devices() if line.startswith("cuda")]
    if not any(line.startswith("cuda:0:") for line in lines):
        pytest.skip("; ".join(lines))
    return "cuda:0"
