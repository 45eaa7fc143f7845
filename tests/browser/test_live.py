"""In JupyterLab: a graph that grows while its cell runs, callbacks meanwhile, and a workbench that follows what is typed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.jupyter import KERNEL_READY, wait
from tests.browser.reader import Player, kernel_says
from tests.notebook_file import notebook_of

CELLS = (
    "import threading, ipywidgets\nimport autodiff_lab as ad\nimport autodiff_widgets as aw\nfrom tests.drawn_graphs import *",
    """
from autodiff_widgets.turns import answer_meanwhile
go_on, button = threading.Event(), ipywidgets.Button(description="go on")
answer_meanwhile(button)
button.on_click(lambda _: go_on.set())
x = ad.tensor([0.5, -1.0], requires_grad=True)
button""",
    "graph = aw.GraphView(joint(mlp_loss, *mlp_arguments()))\ngraph",
    "bench = aw.Workbench('x * w + b', {'x': 2.0})\nbench",
)
LIVE = """
with aw.live() as view:
    h = ad.ops.tanh(x * 2.0)
    go_on.wait(60)
    loss = h.sum()
    loss.backward()
"""
RUN_NEW_CELL = """(code) => {
  const { currentWidget: panel } = jupyterapp.shell;
  panel.content.activeCellIndex = panel.content.widgets.length - 1;
  panel.content.model.sharedModel.addCell({ cell_type: "code", source: code });
  panel.content.activeCellIndex = panel.content.widgets.length - 1;
  void jupyterapp.commands.execute("notebook:run-cell");
}"""


@pytest.fixture(scope="module")
def opened(shared: tuple[Callable[[Path], Any], Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    return shared[0](notebook_of(tmp_path_factory.mktemp("live") / "live.ipynb", CELLS))


@pytest.fixture
def page(opened: Any, blamed: None) -> Any:
    return opened


def test_a_graph_grows_while_its_cell_runs_and_a_click_elsewhere_is_answered_meanwhile(page: Any) -> None:
    page.evaluate(RUN_NEW_CELL, LIVE)
    players = page.locator(".autodiff-player")
    running = players.filter(has_text="Running: 2 op calls so far.")
    running.wait_for()
    assert running.locator(".pane .node").count() == 4, "x, 2, mul and tanh; the sum comes later"
    graph = Player(page, 0).root
    graph.locator("[data-op='scope:layer1']").click()
    graph.locator(".node.collapsed").first.wait_for()  # the cell still waits: it was collapsed beside it
    assert running.count() == 1
    let_go(page)
    over = players.filter(has_text="The run is over: 3 op calls and 1 backward sweep.")
    over.wait_for()
    wait(page, KERNEL_READY, 30, "the cell does not end")
    assert (
        kernel_says(page, "view.painted > 1, [t.name for t in threading.enumerate() if t.name == 'live view']")
        == "(True, [])"
    )
    over.get_by_role("button", name="First step").click()
    over = page.get_by_role("region", name="Live")
    over.get_by_role("button", name="Step forward").click()
    assert "mul(x, a constant)" in str(over.locator(".caption").text_content())


def let_go(page: Any) -> None:
    """Let the cell go on, by a message that a widget's thread hears while the cell holds the main one."""
    page.locator("button", has_text="go on").click()


def test_the_views_of_a_workbench_follow_what_is_typed_and_a_mistake_leaves_the_last_picture(page: Any) -> None:
    code = page.get_by_role("textbox", name="Code", exact=True)
    code.scroll_into_view_if_needed()
    said = page.locator(".autodiff-said")
    code.fill("h = x * w\ntanh(h) + h")
    said.filter(has_text="Result: 6.99999").wait_for()
    graph, flow = Player(page, 1), Player(page, 2)
    assert graph.root.locator(".node", has_text="tanh").count() == 1
    graph.root.locator(".node", has_text="h = mul").click()
    assert flow.selected() == graph.selected() != set()
    page.get_by_role("textbox", name="x =", exact=True).fill("1.0")
    said.filter(has_text="Result: 3.99505").wait_for()
    assert "h = mul" in str(graph.root.locator("[data-selected]").first.text_content()), "it stays selected"
    code.fill("h = x * w\ntanh(h) +")
    said.filter(has_text="Line 2").wait_for()
    assert graph.root.locator(".node", has_text="tanh").count() == 1
    code.fill("h = x * w\ntanh(h) + h")
    page.get_by_role("combobox", name="Right").select_option("Timeline")
    Player(page, 2).root.locator(".bar").first.wait_for()
    assert kernel_says(page, "bench.wait(), eval(bench.as_code()).settings == bench.settings").endswith("(True, True)")
