"""Fused groups on a GPU: one kernel gives what the group's ops give on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab.backend import asarray, to_numpy
from autodiff_lab.fused_loops import loop_of
from autodiff_lab.fusion import fuse
from tests.test_cuda_loops import FUNCTIONS, close


@pytest.mark.parametrize("name", FUNCTIONS)
def test_fused_groups_give_what_the_cpu_gives(name: str, gpu: str) -> None:
    f, inputs = FUNCTIONS[name]
    there = [asarray(one, device=gpu) for one in inputs]
    graph = ad.record(f, *there)
    fusion = fuse(graph)
    values: dict[int, Any] = dict(zip(graph.inputs, there, strict=True))
    kinds = set()
    for group in fusion.groups:
        loop = loop_of(fusion, group)
        kinds.add(loop.kind)
        given = [values[n] if n in values else graph.nodes[n].value for n in group.inputs]
        values |= dict(zip(group.outputs, loop(*given), strict=True))
    assert "CUDA kernel" in kinds or len(graph) < 5
    expected = f(*inputs)
    expected = expected if isinstance(expected, (list, tuple)) else [expected]
    for node, wanted in zip(graph.outputs, expected, strict=True):
        close(to_numpy(values[node]), np.asarray(to_numpy(getattr(wanted, "_data", wanted))), 1.0)
