"""Plans without Numba: large loops run in blocks. The workloads that are missing here have no such loops."""

from __future__ import annotations

from types import SimpleNamespace

from case import Case

from benchmarks.ours import version
from benchmarks.ours_plan import wide

__all__ = ["version", "w5", "w5_two_workers"]


def w5(data: SimpleNamespace) -> Case:
    """An elementwise expression on four million numbers."""
    return wide(data, 1, "blocked")


def w5_two_workers(data: SimpleNamespace) -> Case:
    """The same expression, on two workers."""
    return wide(data, 2, "blocked")
