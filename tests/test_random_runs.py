"""Ten thousand real runs of random tasks: right, legal, and no thread is left. They may run beside anything else."""

from __future__ import annotations

import threading

import pytest

from autodiff_lab.schedule import POLICIES
from tests.test_schedule_executor import check_random_run

RUNS, PARTS = 10_000, 8  # parts, so that two processes share them


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_random_runs_neither_hang_nor_leave_a_thread(part: int) -> None:
    names = list(POLICIES)
    before = threading.active_count()
    for seed in range(part, RUNS, PARTS):
        check_random_run(seed, names[seed % len(names)], workers=1 + seed // len(names) % 4, listens=seed % 5 == 4)
    assert threading.active_count() == before, threading.enumerate()
