"""The views in JupyterLab: what their pictures show there, and what a click does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

CELLS = (
    "import autodiff_lab as ad\nimport autodiff_widgets as aw\nfrom tests.drawn_graphs import *",
    "graph = aw.GraphView(joint(mlp_loss, *mlp_arguments()))\ngraph",
    "flow = aw.GradientFlowView(square, 3.0)\nflow",
)


def test_a_click_on_a_scope_collapses_it_and_the_step_stays(
    open_notebook: Callable[[Path], Any], tmp_path: Path
) -> None:
    path = tmp_path / "views.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS]), path)
    page = open_notebook(path)
    player = page.locator(".autodiff-player").first
    player.get_by_role("button", name="Step forward").click()
    player.locator("[data-op='scope:layer1']").click()
    boxes = player.locator(".node.collapsed")
    boxes.first.wait_for()
    assert boxes.count() == 2
    assert player.locator(".counter").input_value().startswith("1 /")
    boxes.first.click()
    player.locator("[data-op='scope:layer1']").wait_for()
    assert boxes.count() == 0


def test_a_gradient_adds_up_before_the_readers_eyes(open_notebook: Callable[[Path], Any], tmp_path: Path) -> None:
    path = tmp_path / "views.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS]), path)
    page = open_notebook(path)
    player = page.locator(".autodiff-player").nth(1)
    leaf = player.locator(".node.input [data-slot='gradient']")
    shown = [leaf.inner_text()]
    for _ in range(6):
        player.get_by_role("button", name="Step forward").click()
        shown.append(leaf.inner_text())
    assert list(dict.fromkeys(shown)) == ["grad ?", "grad 3 (1 of 2)", "grad 6"]
