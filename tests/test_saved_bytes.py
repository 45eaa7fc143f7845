"""Bytes kept for gradient rules: what reverse mode saves is what it frees, and forward mode keeps one op's worth at most."""

from __future__ import annotations

from typing import Any

import autodiff_widgets as aw
import numpy as np
import pytest
from autodiff_widgets.saved_bytes import moments_of_forward, moments_of_reverse
from autodiff_widgets.seeds import direction, heard_by
from autodiff_widgets.subjects import floating_inputs, run
from autodiff_widgets.values import bytes_text

import autodiff_lab as ad
from autodiff_lab import events, ops
from tests.drawn_graphs import FUNCTIONS, chain, expression, mlp_arguments, mlp_loss


def reverse(f: Any, *arguments: Any) -> list[events.Event]:
    output, forward, _ = run(f, arguments, "test")
    with ad.listen() as backward:
        ad.sweep(output)
    return [*forward, *backward]


def forward(f: Any, *arguments: Any) -> tuple[events.Event, ...]:
    inputs, of_inputs = floating_inputs(f, arguments, "test")
    return heard_by(of_inputs, inputs, direction(inputs, {}, "tangents"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_that_is_saved_is_kept_until_the_sweep_frees_it(name: str) -> None:
    f, arguments = FUNCTIONS[name]
    heard = reverse(f, *arguments)
    moments = moments_of_reverse(heard)
    saves = [moment.nbytes for moment in moments if moment.strip == "forward"]
    frees = [moment.nbytes for moment in moments if moment.strip == "backward"]
    arrays = {id(a): a for event in heard if isinstance(event, events.OpCalled) for a in event.saved.values()}
    assert saves == sorted(saves) and frees == sorted(frees, reverse=True)
    assert saves[-1] == frees[0] == sum(array.nbytes for array in arrays.values())
    assert frees[-1] == 0


@pytest.mark.parametrize("length", [1, 10, 100])
def test_reverse_mode_keeps_more_the_longer_the_chain_and_forward_mode_does_not(length: int) -> None:
    peak_of_reverse = max(moment.nbytes for moment in moments_of_reverse(reverse(chain(length), 0.5)))
    peak_of_forward = max(moment.nbytes for moment in moments_of_forward(forward(chain(length), 0.5)))
    assert (peak_of_reverse, peak_of_forward) == (8 * length, 8)


def test_forward_mode_has_one_moment_for_each_op_that_a_tangent_passes() -> None:
    told = forward(mlp_loss, *mlp_arguments())
    calls = [event for event in told if isinstance(event, events.OpCalled)]
    assert len(moments_of_forward(told)) == len(calls)


def test_a_value_that_two_ops_save_counts_once() -> None:
    moments = moments_of_reverse(reverse(lambda x: ops.sum(ops.exp(x) * ops.exp(x)), np.ones(4)))
    assert max(moment.nbytes for moment in moments) == 2 * 32  # each result of exp, saved by exp and by mul


def test_of_a_forward_pass_that_was_not_heard_what_the_sweep_frees_is_known() -> None:
    x = ad.tensor(np.ones(3), requires_grad=True)
    y = ops.sum(ops.exp(x * x))
    with ad.listen() as heard:
        ad.sweep(y)
    assert [moment.nbytes for moment in moments_of_reverse(heard)] == [48, 48, 24, 0]


def test_the_chart_has_a_bar_for_each_moment_and_says_the_bytes_of_the_step() -> None:
    view = aw.GradientFlowView(expression, 0.5, 3.0, 1.0, tangents=True, memory=True)
    start = next(i for i, event in enumerate(view.events) if isinstance(event, events.TangentSeeded))
    moments = [*moments_of_reverse(view.events[:start]), *moments_of_forward(view.events[start:])]
    assert view.scene.panes[1].svg.count('class="bar ') == len(moments) == 4 + 5 + 4
    for place, moment in enumerate(moments):
        frame = next(i for i in range(len(view.frames)) if f"bar.{place}" in view.scene.states_at(i))
        assert view.scene.texts_at(frame)["bytes", "now"] == bytes_text(moment.nbytes)
    assert view.scene.texts_at(len(view.frames) - 1)["bytes", "now"] == "0 B"
    assert "Forward pass: saves for later 16 B, 16 B, 16 B, 24 B" in view.text()


def test_without_memory_there_is_no_chart() -> None:
    assert len(aw.GradientFlowView(expression, 0.5, 3.0, 1.0).scene.panes) == 1
