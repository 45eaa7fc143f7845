"""What every test has: a registry in which the ops that a test registers are gone after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autodiff_lab import registry


@pytest.fixture(autouse=True)
def ops_of_a_test_are_its_own() -> Iterator[None]:
    """Put the registry back as it was before the test."""
    before = dict(registry._ops)
    yield
    registry._ops.clear()
    registry._ops.update(before)
