"""What a wrong shape rule costs: what is counted is exact, what is measured says so, and numbers never differ."""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np
import pytest
from autodiff_widgets import ShapeCostView

from autodiff_lab import quiet, shape_claims
from autodiff_lab.shape_claims import Cost, Setting, cost_of_wrong_rule, region

SMALL = {"rows": 64, "width": 32}


def cost(**setting: Any) -> Cost:
    return cost_of_wrong_rule(Setting(**SMALL, loops="blocked", **setting), estimates=True)


def test_a_rule_switches_fusion_off_from_its_own_op_to_the_end_of_the_chain() -> None:
    assert cost(op="square").groups == ([11], [1] * 11)
    assert cost(op="tanh").groups == ([11], [6, 1, 1, 1, 1, 1])


def test_every_broken_pair_is_explained_by_the_rule_that_lost_a_dimension() -> None:
    for op in ("square", "tanh"):
        found = cost(op=op)
        assert len(found.reasons) >= len(found.groups[1]) - 1
        assert all(f"of {op} loses a dimension" in reason for reason in found.reasons)


def test_the_earlier_the_rule_is_wrong_the_more_it_costs_and_a_wide_layer_loses_less() -> None:
    square, tanh = (
        [one.ratio for one in region((64, 512), (1 << 20,), estimates=True, op=op, loops="blocked")]
        for op in ("square", "tanh")
    )
    assert all(1.0 < later < earlier for earlier, later in zip(square, tanh, strict=True))
    assert square[1] < square[0]


def test_the_elementwise_ops_alone_lose_more_than_the_layer_around_them() -> None:
    (found,) = region((128,), (1 << 20,), estimates=True, loops="blocked")
    assert found.ratio < found.elementwise_ratio


def test_results_that_differ_are_an_error_and_no_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape_claims, "_both", lambda *_: (lambda *given: np.ones(3), lambda *given: np.ones(3) + 2e-6))
    with pytest.raises(ValueError, match=r"the results differ by 2\.0e-06"):
        cost(op="square")


@pytest.mark.parametrize("busy", [False, True], ids=["quiet", "busy"])
def test_a_cost_says_whether_it_was_measured_while_the_machine_was_quiet(
    busy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = itertools.count()
    monkeypatch.setattr(quiet, "_used_by_others", lambda: next(looks) * 1e6 * busy)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1}, raising=False)
    found = cost_of_wrong_rule(Setting(**SMALL, loops="blocked"), 5, 1.0 if busy else 60.0)
    assert found.source.startswith("CPU time, less exact" if busy else "measured: medians of 5 quiet repetitions")
    assert found.ratio > 0 and all(seconds > 0 for seconds in found.seconds)


def test_the_picture_has_every_ratio_and_says_how_many_were_measured() -> None:
    costs = region((32, 64), (1 << 12, 1 << 14), estimates=True, loops="blocked")
    view = ShapeCostView(costs)
    assert (
        view.frames[-1].caption
        == "None of 4 ratios was measured while the machine was quiet. Select a curve to see how each was found."
    )
    told = [said for rows in view.scene.facts.values() for _, said in rows]
    assert all(any(said.startswith(f"{one.ratio:.2f} ×") for said in told) for one in costs)


@pytest.mark.parametrize("costs", [[], [1, 2]], ids=["nothing", "numbers"])
def test_a_picture_of_something_else_is_refused_with_what_to_pass(costs: list[Any]) -> None:
    with pytest.raises(TypeError, match=r"pass shape_claims.region"):
        ShapeCostView(costs)
