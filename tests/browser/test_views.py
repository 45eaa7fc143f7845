"""The views in JupyterLab: what their pictures show there, and what a click does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.browser.reader import Player, kernel_says

CELLS = (
    "import autodiff_lab as ad\nimport autodiff_widgets as aw\nfrom tests.drawn_graphs import *",
    "graph = aw.GraphView(joint(mlp_loss, *mlp_arguments()))\ngraph",
    "flow = aw.GradientFlowView(square, 3.0)\nflow",
    "forward = aw.ForwardModeView(expression, 0.5, 3.0, 1.0)\nforward",
)


@pytest.fixture
def page(open_notebook: Callable[[Path], Any], tmp_path: Path) -> Any:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, tmp_path / "views.ipynb")
    return open_notebook(tmp_path / "views.ipynb")


def test_a_click_on_a_scope_collapses_it_and_the_step_stays(page: Any) -> None:
    player = page.locator(".autodiff-player").first
    player.get_by_role("button", name="Step forward").click()
    player.locator("[data-op='scope:layer1']").click()
    boxes = player.locator(".node.collapsed")
    boxes.first.wait_for()
    assert boxes.count() == 2
    assert player.locator(".counter").text_content().startswith("1 /")
    boxes.first.click()
    player.locator("[data-op='scope:layer1']").wait_for()
    assert boxes.count() == 0


def test_a_click_on_an_input_seeds_it_and_the_passes_start_again(page: Any) -> None:
    player = Player(page, 2)
    caption, step = player.root.locator(".caption"), player.root.get_by_role("button", name="Step forward")
    step.click()
    assert player.caption() == "Pass 1 of 1: x moves with the tangent 1, and w and b stand still."
    player.root.locator(".node.input", has_text="b").click()
    caption.filter(has_text="Forward mode sends a tangent along with each value.").wait_for()
    step.click()
    assert player.caption() == "Pass 1 of 1: b moves with the tangent 1, and x and w stand still."
    player.root.locator(".node.input[data-selected]", has_text="b").wait_for()
    assert kernel_says(page, "forward.seed") == "'b'"
    step.press("End")
    column = player.root.locator("[data-op='column.0'] [data-slot='column']").text_content()
    assert column == kernel_says(page, "f'{ad.jvp(expression, (0.5, 3.0, 1.0), (0.0, 0.0, 1.0))[1]:.6g}'").strip("'")


def test_a_gradient_adds_up_before_the_readers_eyes(page: Any) -> None:
    player = page.locator(".autodiff-player").nth(1)
    leaf = player.locator(".node.input [data-slot='gradient']")
    shown = [leaf.text_content()]
    for _ in range(6):
        player.get_by_role("button", name="Step forward").click()
        shown.append(leaf.text_content())
    assert list(dict.fromkeys(shown)) == ["grad ?", "grad 3 (1 of 2)", "grad 6"]
