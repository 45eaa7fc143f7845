"""What the examples in docstrings need: a progress file of their own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh place for progress, so that an example neither reads nor changes what somebody has really done."""
    file = tmp_path / "progress.json"
    monkeypatch.setenv("AUTODIFF_LAB_PROGRESS", str(file))
    return file
