"""What the examples in the docstrings of the exercises need."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def examples_have_their_own_progress(own_progress: Path) -> None:
    """Each example begins as a student who has done nothing yet."""
