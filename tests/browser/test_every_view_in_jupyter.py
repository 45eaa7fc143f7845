"""Every view in real notebooks: it steps both ways by mouse and by keys and selects with others, whatever the kernel does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.jupyter import KERNEL_READY, Record, wait
from tests.browser.reader import Player, kernel_value
from tests.drawn_views import CODE, exported, notebook_of_every_view

SAYS = """(root) => ({
  counter: root.querySelector(".counter").value,
  caption: root.querySelector(".caption").textContent,
  states: Object.fromEntries([...root.querySelectorAll(".pane [data-op][data-s]")].map((e) => [e.dataset.op, e.dataset.s])),
})"""
# What the players must show, told by the kernel before anything happens to it: a list for each view, a triple for each step.
TRUTH = """{name: [[[f"{i} / {len(view.frames) - 1}", view.frames[i].caption, view.scene.states_at(i)]
    for i in range(len(view.frames)) if i < 4 or i > len(view.frames) - 4] for view in views]
    for name, views in SHOWN.items()}"""
START = {
    "idle": "() => {}",
    "busy": """async () => {
      const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
      kernel.requestExecute({ code: "import time; time.sleep(600)" }).done.catch(() => {});
      while (kernel.status !== "busy") await new Promise((done) => setTimeout(done, 20));
    }""",
    "dead": """async () => {
      const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
      kernel.requestExecute({ code: "import os; os.kill(os.getpid(), 9)" }).done.catch(() => {});
      while (kernel.status !== "dead") await new Promise((done) => setTimeout(done, 20));
    }""",
}
INTERRUPT = "() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.interrupt()"


def test_every_view_that_is_exported_is_shown_here() -> None:
    assert set(CODE) == exported()


@pytest.fixture(scope="module")
def opened(shared: tuple[Callable[[Path], Any], Record], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook with every view, after every cell has run."""
    return shared[0](notebook_of_every_view(tmp_path_factory.mktemp("every_view")))


@pytest.fixture(scope="module")
def truth(opened: Any) -> dict[str, Any]:
    """What each view has to show at each step."""
    told: dict[str, Any] = kernel_value(opened, TRUTH)
    return told


@pytest.fixture(scope="module", params=START)
def kernel(request: pytest.FixtureRequest, opened: Any, shared: tuple[Any, Record], truth: Any) -> Iterator[Any]:
    """The page while its kernel waits, while a cell runs, and after the kernel has died: in this order."""
    opened.evaluate(START[request.param])
    shared[1].errors.clear()  # JupyterLab's own about a kernel that died; the players must add none
    yield opened
    if request.param == "busy":
        opened.evaluate(INTERRUPT)
        wait(opened, KERNEL_READY, 20, "the kernel goes on after it was interrupted")


@pytest.mark.parametrize("name", CODE)
def test_it_steps_both_ways_by_mouse_and_by_keys(kernel: Any, blamed: None, truth: dict[str, Any], name: str) -> None:
    before = sum(len(truth[other]) for other in list(CODE)[: list(CODE).index(name)])
    for number, steps in enumerate(truth[name], before):
        walk(Player(kernel, number), steps)


def walk(player: Player, steps: list[Any]) -> None:
    """Step forwards and back, to the end and home again; the picture is always the one that the step has."""

    def shows(step: int) -> None:
        counter, caption, states = steps[step]
        seen = player.root.evaluate(SAYS)
        assert (seen["counter"], seen["caption"]) == (counter, caption.replace("`", ""))
        assert seen["states"] == {key: state for key, state in states.items() if key in seen["states"]}
        assert {key for key, state in states.items() if state == "active"} <= set(seen["states"])

    shows(0)
    if len(steps) == 1:
        assert not player.root.locator(".toolbar").is_visible(), "there is nothing to step through"
        return
    player.root.get_by_role("button", name="Step forward").click()
    shows(1)
    player.root.get_by_role("button", name="Step back").click()
    shows(0)
    player.root.focus()
    player.press("ArrowRight", "ArrowRight")
    shows(2)
    player.press("End")
    shows(-1)
    player.press("ArrowLeft")
    shows(-2)
    player.press("Home")
    shows(0)


def test_what_is_selected_in_one_view_is_selected_in_every_view_of_the_same_graph(kernel: Any, blamed: None) -> None:
    graph, order, shapes, fusion, plan = (Player(kernel, number) for number in range(5))
    key = fusion.root.locator(".node.op").first.get_attribute("data-op")
    for chosen in (fusion, order):
        chosen.root.locator(f".node[data-op='{key}']").click()
        assert all(key in player.selected() for player in (graph, order, shapes, fusion))
        assert f"{key}~step" in plan.selected()
        assert "float64" in graph.root.locator(".details").text_content()
        chosen.press("Escape")
        assert not any(player.selected() for player in (graph, order, shapes, fusion, plan))
