"""The plot of errors against steps: its table, its picture, and what it refuses."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from autodiff_exercises.error_plot import error_plot

STEPS = (1e-1, 1e-2, 1e-3)
PLOT = error_plot(STEPS, {"one <sided>": [5e-2, 5e-3, 5e-4], "central": [2e-3, 2e-5, 0.0]})


def test_the_table_has_a_row_for_each_step_and_a_column_for_each_method() -> None:
    head, *rows = repr(PLOT).splitlines()
    assert head.split()[0] == "step" and "central" in head
    assert [row.split() for row in rows] == [
        ["1e-01", "5e-02", "2e-03"], ["1e-02", "5e-03", "2e-05"], ["1e-03", "5e-04", "0e+00"],
    ]  # fmt: skip


def test_the_picture_is_well_formed_says_its_numbers_and_has_a_curve_for_each_method() -> None:
    svg = ElementTree.fromstring(PLOT._repr_html_())
    assert "2e-05" in svg.attrib["aria-label"] and svg.attrib["role"] == "img"
    curves = [one.attrib for one in svg.iter("polyline")]
    assert len(curves) == 2 and len({one["stroke-dasharray"] for one in curves}) == 2


def test_smaller_steps_lie_to_the_left_and_smaller_errors_lower() -> None:
    points = re.findall(r"polyline points='([^']+)'", PLOT._repr_html_())[0]
    across, down = zip(*(map(float, point.split(",")) for point in points.split()), strict=True)
    assert sorted(across, reverse=True) == list(across) and sorted(down) == list(down)


def test_a_method_with_too_few_errors_is_refused() -> None:
    with pytest.raises(ValueError, match="central has 1 errors for 3 steps"):
        error_plot(STEPS, {"central": [1.0]})
