"""TrainingView and its plots: curves grow by one step a frame, from the events alone, and say what has no place on an axis."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import autodiff_widgets as aw
import pytest
from autodiff_widgets import plots
from autodiff_widgets.export import PICTURE_CSS
from autodiff_widgets.plots import Axis, axis_of
from hypothesis import example, given
from hypothesis import strategies as st

import autodiff_lab as ad
from autodiff_lab import faults, training
from autodiff_lab.events import StepTrained, TrainingStopped

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def compared() -> training.Comparison:
    return training.compare(training.mlp_on_digits(steps=12), faults.lost_sign("cross_entropy"))


def run(name: str, *losses: float) -> list[StepTrained]:
    return [StepTrained(name, step, loss, 1.0) for step, loss in enumerate(losses, 1)]


def columns(view: aw.View, pane: int = 0) -> dict[str, ET.Element]:
    found = ET.fromstring(view.scene.panes[pane].svg).iter()
    return {e.attrib["data-op"]: e for e in found if e.attrib.get("class") == "step"}


def strokes(view: aw.View, css: str, pane: int = 0) -> list[list[tuple[float, float]]]:
    """The pieces of a curve, each a start and an end."""
    return [
        [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path.attrib["d"])]
        for column in columns(view, pane).values()
        for path in column.iter(f"{SVG}path")
        if path.attrib["class"] == f"edge {css}" and "L" in path.attrib["d"]
    ]


# ------------------------------------------------------------------------------------------------------------- the view


def test_each_frame_brings_one_step_of_both_runs_into_sight(compared: training.Comparison) -> None:
    view = aw.TrainingView(compared)
    assert len(view.frames) == 14
    for index in range(13):
        states = view.scene.states_at(index)
        assert {key for key, state in states.items() if state in ("done", "active")} == {
            f"step.{step}" for step in range(1, index + 1)
        }
        assert [key for key, state in states.items() if state == "active"] == ([f"step.{index}"] if index else [])


def test_the_numbers_beside_the_names_are_those_of_the_step(compared: training.Comparison) -> None:
    view = aw.TrainingView(compared)
    for index in (1, 7, 12):
        texts = view.scene.texts_at(index)
        for number, one in enumerate((compared.healthy, compared.faulty)):
            assert texts[f"run.{number}", "loss"] == f"{one.losses[index - 1]:.4g}"
            assert texts[f"run.{number}", "norm"] == f"{one.gradient_norms[index - 1]:.4g}"


def test_a_curve_is_in_one_piece_and_its_dashes_go_on_from_step_to_step(compared: training.Comparison) -> None:
    view = aw.TrainingView(compared)
    for css in ("run1", "run2"):
        pieces = strokes(view, css)
        assert len(pieces) == 11
        assert all(before[1] == here[0] for before, here in pairwise(pieces))
    column = columns(view)["step.3"]
    (offset,) = [float(p.attrib["stroke-dashoffset"]) for p in column.iter(f"{SVG}path") if "run2" in p.attrib["class"]]
    assert offset == pytest.approx(math.dist(*strokes(view, "run2")[0]) % 13, abs=0.2)


def test_runs_are_told_apart_without_colour() -> None:
    view = aw.TrainingView([step for name in "abcd" for step in run(name, 2.0, 1.0)])
    marks = {
        re.sub(r"^M[\d. ]+", "", path.attrib["d"])
        for path in columns(view)["step.1"].iter(f"{SVG}path")
        if "mark" in path.attrib["class"]
    }
    assert len(marks) == 4
    for number, dashes in enumerate(plots.DASHES, 1):
        rule = re.search(rf"\.run{number} {{(.*?)}}", PICTURE_CSS, re.DOTALL)
        assert rule is not None and (f"stroke-dasharray: {' '.join(map(str, dashes))};" in rule[1] or not dashes)


def test_the_events_alone_draw_the_view() -> None:
    with ad.listen() as told:
        one = training.train(training.mlp_on_digits(steps=3))
    heard, given_run = aw.TrainingView(told), aw.TrainingView(one)
    assert heard.scene.as_json() == given_run.scene.as_json() and heard.events == one.events


def test_a_name_that_begins_again_is_another_run() -> None:
    view = aw.TrainingView([*run("healthy", 3.0, 2.0, 1.0), *run("healthy", 3.0, 2.5)])
    assert [len(strokes(view, css)) for css in ("run1", "run2")] == [2, 1]


def test_steps_that_were_not_told_have_no_frame() -> None:
    view = aw.TrainingView([StepTrained("mine", step, 2.0, 1.0) for step in (0, 10, 30)])
    assert list(columns(view)) == ["step.0", "step.10", "step.30"] and len(view.frames) == 5


def test_what_is_not_finite_breaks_the_curve_and_is_named_once() -> None:
    view = aw.TrainingView([*run("healthy", *[1.0] * 6), *run("faulty", 1.0, 2.0, math.inf, math.inf, math.nan, 3.0)])
    assert len(strokes(view, "run2")) == 1 + 3  # to step 2, and the marks at the top
    texts = [[text.text for text in column.iter(f"{SVG}text")] for column in columns(view).values()]
    assert texts == [[], [], ["inf"], [], ["nan"], []]
    assert "`faulty`, step 5: loss nan, gradient norm 1." in view.text()


def test_a_run_that_stops_with_an_error_says_so(compared: training.Comparison) -> None:
    view = aw.TrainingView(training.compare(training.mlp_on_digits(steps=2), faults.broadcast_not_summed()))
    assert "stopped with an error" in ET.tostring(columns(view)["step.1"], encoding="unicode")
    assert view.scene.texts_at(1)["run.1", "loss"] == "stopped"
    assert "layer2.bias has shape (64, 10)" in view.frames[1].caption
    assert view.frames[-1].caption.startswith(
        "Done. `broadcast_not_summed` stops with an error. `healthy`: loss from 2.3"
    )
    alone = aw.TrainingView([TrainingStopped("faulty", 1, "ValueError: no")])
    assert alone.frames[-1].caption == "Done. `faulty` took no step."


def test_the_text_twin_has_every_number_of_every_step(compared: training.Comparison) -> None:
    text = aw.TrainingView(compared).text()
    for one in (compared.healthy, compared.faulty):
        for step in one.steps:
            assert (
                f"`{one.name}`, step {step.step}: loss {step.loss:.4g}, gradient norm {step.gradient_norm:.4g}." in text
            )


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (3.0, "got float 3.0"),
        ("healthy", "got str 'healthy'"),
        ([], "got list"),
        (lambda: None, "training.compare("),
        ([step for name in "abcde" for step in run(name, 1.0)], "at most 4 runs can be told apart, got 5"),
    ],
)
def test_a_wrong_argument_is_refused_with_what_to_pass(wrong: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        aw.TrainingView(wrong)
    assert "TrainingView" in str(caught.value) and says in str(caught.value)


# ---------------------------------------------------------------------------------------------------------------- plots

NUMBERS = st.floats(-1e12, 1e12, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-9)


@given(st.lists(NUMBERS, min_size=1, max_size=9))
def test_an_axis_holds_its_numbers_in_order_between_its_ends(numbers: list[float]) -> None:
    axis = axis_of(numbers, 200.0)
    places = [axis.place(number) for number in sorted(numbers)]
    assert places == sorted(places) and places[0] >= 0 and places[-1] <= 200.0 + 1e-9
    assert axis.low <= min(numbers) and axis.high >= max(numbers)


@given(st.lists(NUMBERS, min_size=1, max_size=9))
@example([10000000024.0, 300000000721.0])  # just above and well above one power of ten: each mark once
def test_an_axis_has_a_few_ticks_that_lie_on_it(numbers: list[float]) -> None:
    axis = axis_of(numbers, 200.0)
    ticks = axis.ticks()
    assert 1 <= len(ticks) <= 8 and ticks == sorted(set(ticks))
    margin = 1e-6 * max(abs(axis.low), abs(axis.high))
    assert all(axis.low - margin <= tick <= axis.high + margin for tick in ticks)


def test_an_axis_is_logarithmic_only_where_numbers_are_positive_and_far_apart() -> None:
    kinds: dict[Callable[..., Any] | tuple[float, ...], bool] = {
        (1.0, 20.0): False,
        (1.0, 40.0): True,
        (0.0, 40.0): False,
    }
    assert {numbers: axis_of(numbers, 1.0).is_log for numbers in kinds} == kinds
    assert axis_of([math.nan, math.inf], 1.0) == Axis(0.0, 1.0, 1.0)


def test_equal_factors_are_equally_far_apart_on_a_logarithmic_axis() -> None:
    axis = Axis(0.01, 100.0, 400.0, is_log=True)
    assert [axis.place(10.0**k) for k in range(-2, 3)] == pytest.approx([0, 100, 200, 300, 400])
