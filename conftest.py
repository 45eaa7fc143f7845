"""What tests and the examples in docstrings share: the library's usual names, and a student's progress file of their own."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad

# Examples that need Dask, the extra [cluster]; without it the tests of clusters say that they were skipped.
collect_ignore = [] if find_spec("distributed") else ["autodiff_lab/schedule/cluster"]


@pytest.fixture(autouse=True)
def names_in_examples(doctest_namespace: dict[str, Any]) -> None:
    """Let an example write ``ops.sum(…)``, ``ad.grad(…)`` and ``np.ones(…)`` without importing them first."""
    doctest_namespace.update(ad=ad, ops=ad.ops, np=np)


@pytest.fixture(autouse=True, scope="session")
def nobodys_progress(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep progress and compiled kernels of a run of the tests in folders of its own, also for the processes that it starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTODIFF_LAB_PROGRESS", str(tmp_path_factory.mktemp("progress") / "progress.json"))
        patch.setenv("AUTODIFF_LAB_KERNELS", str(tmp_path_factory.mktemp("compiled kernels")))
        yield


@pytest.fixture
def own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh place for progress, for a test that begins as a student who has done nothing yet."""
    file = tmp_path / "progress.json"
    monkeypatch.setenv("AUTODIFF_LAB_PROGRESS", str(file))
    return file
