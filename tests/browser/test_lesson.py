"""The first lesson as a student has it: every view stepped both ways, selection linked, the exercise done wrong, then right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autodiff_exercises.registry import EXERCISES

from tests.browser.reader import Player, kernel_says, kernel_value

LESSON = Path(__file__).parents[2] / "notebooks" / "lessons" / "10_computation_graph.ipynb"
BREADTH_FIRST = """def topological_order(graph):
    used = {source for inputs in graph.values() for source in inputs}
    order = [node for node in graph if node not in used]
    for node in order:
        order += [source for source in dict.fromkeys(graph[node]) if source not in order]
    return order[::-1]"""
ENDLESS = "def topological_order(graph):\n    while True:\n        pass"
VIEWS = "[v for v in Out.values() if isinstance(v, aw.View)]"


@pytest.fixture(scope="module")
def opened(shared: tuple[Callable[[Path], Any], Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    page = shared[0](LESSON)
    path = str(tmp_path_factory.mktemp("progress") / "progress.json")
    kernel_says(page, f"__import__('os').environ.__setitem__('AUTODIFF_LAB_PROGRESS', {path!r})")
    return page


@pytest.fixture
def lesson(opened: Any, blamed: None) -> Any:
    """One page for all tests: each leaves the pictures at their first step with nothing selected, the last one aside."""
    return opened


def run_cell(page: Any, cell: str, source: str | None = None) -> str:
    """Run the cell with this id, with other source if given, and return its output as text."""
    return str(
        page.evaluate(
            """async ([id, source]) => {
              const notebook = jupyterapp.shell.currentWidget.content;
              const index = notebook.widgets.findIndex((widget) => widget.model.sharedModel.getId() === id);
              notebook.activeCellIndex = index;
              const model = notebook.widgets[index].model;
              if (source !== null) model.sharedModel.setSource(source);
              const before = model.executionCount;
              await jupyterapp.commands.execute("notebook:run-cell");
              while (model.executionCount === before || model.executionCount === null) {
                await new Promise((done) => setTimeout(done, 50));
              }
              return JSON.stringify(model.toJSON().outputs.map((output) => output.data ?? output));
            }""",
            [cell, source],
        )
    )


def test_every_view_steps_forwards_and_backwards_and_shows_the_state_that_its_events_say(lesson: Any) -> None:
    titles = kernel_value(lesson, f"[type(v).__name__ for v in {VIEWS}]")
    assert {"GraphView", "TopologicalOrderView", "GradientFlowView"} == set(titles)
    for number in range(len(titles)):
        scene = f"{VIEWS}[{number}].scene"
        last = kernel_value(lesson, f"len({scene}.frames) - 1")
        truth = kernel_value(lesson, f"[{scene}.states_at(i) for i in range({last + 1})]")
        captions = kernel_value(lesson, f"[f.caption for f in {scene}.frames]")
        assert any("active" in states.values() for states in truth)
        player = Player(lesson, number)

        def shows(step: int, player: Player = player, truth: Any = truth, captions: Any = captions) -> None:
            assert player.counter() == f"{step} / {len(truth) - 1}"
            drawn = player.states()
            assert drawn == {key: state for key, state in truth[step].items() if key in drawn}
            active = {key for key, state in truth[step].items() if state == "active"}
            assert active == {key for key, state in drawn.items() if state == "active"}
            assert player.caption() == captions[step].replace("`", "")

        shows(0)
        for step in range(1, last + 1):
            player.root.get_by_role("button", name="Step forward").click()
            shows(step)
        for step in reversed(range(last)):
            player.root.get_by_role("button", name="Step back").click()
            shows(step)
        player.root.focus()
        for step in range(1, last + 1):
            player.press("ArrowRight")
            shows(step)
        for step in reversed(range(last)):
            player.press("ArrowLeft")
            shows(step)


def test_selecting_an_op_in_one_view_selects_it_in_the_others_of_the_same_graph(lesson: Any) -> None:
    orders = [
        number
        for number, name in enumerate(kernel_value(lesson, f"[type(v).__name__ for v in {VIEWS}]"))
        if name == "TopologicalOrderView"
    ]
    assert len(orders) == 2
    depth_first, kahn = (Player(lesson, number) for number in orders)
    node = depth_first.root.locator(".node.op").first
    key = node.get_attribute("data-op")
    node.click()
    assert depth_first.selected() == kahn.selected() == {key}
    kahn.root.scroll_into_view_if_needed()  # JupyterLab draws no text of a cell that is far from the window
    assert "float64" in kahn.root.locator(".details").inner_text()
    others = [Player(lesson, n) for n in range(lesson.locator(".autodiff-player").count()) if n not in orders]
    assert all(not other.selected() for other in others), "another graph's op was selected"
    depth_first.press("Escape")


def test_the_exercise_is_not_attempted_then_wrong_then_endless_then_right(lesson: Any) -> None:
    exercise = EXERCISES["topological_order"]
    ids = lesson.evaluate(
        """() => jupyterapp.shell.currentWidget.content.model.toJSON().cells
            .filter((cell) => cell.metadata.nbgrader?.grade_id.startsWith("topological_order")).map((cell) => cell.id)"""
    )
    answer, check = ids
    assert "not attempted" in run_cell(lesson, check).lower()
    message = next(one.message for one in exercise.misconceptions if one.name == "breadth-first is enough")
    assert run_cell(lesson, answer, BREADTH_FIRST) == "[]"
    assert message.split("`")[0].split(".")[0] in run_cell(lesson, check)
    assert run_cell(lesson, answer, ENDLESS) == "[]"
    assert "5 s" in run_cell(lesson, check)
    assert run_cell(lesson, answer, exercise.solved) == "[]"
    assert "right" in run_cell(lesson, check).lower()
    assert "✓ right" in kernel_says(lesson, "str(progress())")
