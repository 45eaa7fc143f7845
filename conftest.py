"""What tests and the examples in docstrings share: a student's progress file of their own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh place for progress, so that a test neither reads nor changes what somebody has really done."""
    file = tmp_path / "progress.json"
    monkeypatch.setenv("AUTODIFF_LAB_PROGRESS", str(file))
    return file
