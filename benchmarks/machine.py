"""What a machine is, in words, for the first line of a benchmark's results."""

from __future__ import annotations

import os
import platform
from datetime import date

import numpy as np


def machine() -> str:
    """Cores, processor, system, versions and day."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return (
        f"on {cores} cores ({platform.machine()}, {platform.system()}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}), {date.today()}"
    )
