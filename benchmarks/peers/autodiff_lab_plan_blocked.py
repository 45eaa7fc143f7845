"""Plans as they are without Numba, their loops in blocks: W5, as no other workload has loops that are worth compiling."""

from __future__ import annotations

from functools import partial

import autodiff_lab_plan

runs_on, version = autodiff_lab_plan.runs_on, autodiff_lab_plan.version
w5 = partial(autodiff_lab_plan.w5, loops="blocked")
