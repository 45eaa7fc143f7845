"""Walks through the notebook of every view, checked against what its kernel says that they show."""

from __future__ import annotations

from typing import Any

from tests.browser.reader import Player

# Told by the kernel before anything happens to it, for each view: the first and the last steps.
TRUTH = """{name: [[[f"{i} / {len(view.frames) - 1}", view.frames[i].caption, view.scene.states_at(i)]
    for i in range(len(view.frames)) if i < 4 or i > len(view.frames) - 4] for view in views]
    for name, views in SHOWN.items()}"""
SEEN = """(root) => [
  root.querySelector(".counter").value,
  root.querySelector(".caption").textContent,
  Object.fromEntries([...root.querySelectorAll(".pane [data-op][data-s]")].map((e) => [e.dataset.op, e.dataset.s])),
]"""
START = """async ([code, status]) => {
  const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  kernel.requestExecute({ code }).done.catch(() => {});
  while (kernel.status !== status) await new Promise((done) => setTimeout(done, 20));
}"""
INTERRUPT = "() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.interrupt()"


def keep_busy(page: Any) -> None:
    """Let the notebook's kernel work until it is interrupted."""
    page.evaluate(START, ["import time; time.sleep(600)", "busy"])


def kill_kernel(page: Any) -> None:
    """Let the notebook's kernel die, and stay dead."""
    page.evaluate(START, ["import os; os.kill(os.getpid(), 9)", "dead"])


def walk(player: Player, steps: list[Any]) -> None:
    """Step forwards and back by mouse and by keys, to the end and home again; each picture is the one that its step has."""
    player.root.focus()
    player.press("Home")  # a live view begins at its end
    _, _, first = steps[0]
    never_changed = {key: state for key, state in player.states().items() if key not in first}

    def shows(step: int) -> None:
        counter, caption, states = steps[step]
        assert player.root.evaluate(SEEN) == [counter, caption.replace("`", ""), never_changed | states]

    shows(0)
    if len(steps) == 1:
        assert not player.root.locator(".toolbar").is_visible(), "there is nothing to step through"
        return
    player.root.get_by_role("button", name="Step forward").click()
    shows(1)
    player.press("ArrowRight")
    shows(2)
    player.root.get_by_role("button", name="Step back").click()
    shows(1)
    player.press("End")
    shows(-1)
    player.press("ArrowLeft")
    shows(-2)
    player.press("Home")
    shows(0)


def select_together(page: Any) -> None:
    """Select an op in one of the views of one graph, then in another: all show it, with what is known about it."""
    graph, order, shapes, fusion, plan = (Player(page, number) for number in range(5))
    key = fusion.root.locator(".node.op").first.get_attribute("data-op")
    for chosen in (fusion, order):
        chosen.root.locator(f".node[data-op='{key}']").click()
        assert all(key in player.selected() for player in (graph, order, shapes, fusion))
        assert f"{key}~step" in plan.selected()
        assert "float64" in graph.root.locator(".details").text_content()
        chosen.press("Escape")
        assert not any(player.selected() for player in (graph, order, shapes, fusion, plan))
