"""The views in JupyterLab: what their pictures show there, and what a click does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.reader import Player, kernel_says, kernel_value
from tests.notebook_file import notebook_of

CELLS = (
    "import autodiff_lab as ad\nimport autodiff_widgets as aw\nfrom autodiff_lab.schedule import Task",
    "from tests.drawn_graphs import *\nfrom tests.drawn_ops import with_kernels",
    "graph = aw.GraphView(joint(mlp_loss, *mlp_arguments()))\ngraph",
    "flow = aw.GradientFlowView(square, 3.0)\nflow",
    "forward = aw.ForwardModeView(expression, 0.5, 3.0, 1.0)\nforward",
    "aw.RegistrationView('mul')",
    "aw.OpCard('mul')",
    "aw.DispatchView(with_kernels(), dtypes='float32')",
    "race = aw.ReadyQueueView({'a': Task(cost=2), 'b': Task(), 'c': Task(after=['a'])}, 1, 'fifo', race=True)\nrace",
    "line = aw.TimelineView(race.timeline)\nline",
    "queue = aw.ReadyQueueView(race.tasks, 1, 'lifo', predict=True)\nqueue",
    "graph = joint(square, 3.0)\nshapes = aw.ShapeInferenceView(graph)\nshapes",
    "fusion = aw.FusionView(graph, predict=True)\nfusion",
    "plan = aw.PlanView(ad.plan(graph))\nplan",
    "whole = aw.explain(diamond, 0.3)\nwhole",
)


@pytest.fixture(scope="module")
def opened(shared: tuple[Callable[[Path], Any], Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    return shared[0](notebook_of(tmp_path_factory.mktemp("views") / "views.ipynb", CELLS))


@pytest.fixture
def page(opened: Any, blamed: None) -> Any:
    """One page for all tests, so each uses views of its own or leaves them as it found them."""
    return opened


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


def test_a_part_of_a_registration_lights_up_its_readers_and_is_the_same_row_on_the_card(page: Any) -> None:
    registration, card = Player(page, 3), Player(page, 4)
    registration.root.focus()
    registration.press("End", "ArrowLeft", "ArrowLeft")
    states = registration.states()
    assert [key for key, state in states.items() if state == "active"] == ["mul: jvp rule for y"]
    assert [key for key, state in states.items() if state == "target"] == ["reader: forward mode"]
    registration.root.locator("[data-op='mul: vjp rule for x']").click()
    assert registration.selected() == card.selected() == {"mul: vjp rule for x"}
    assert "mul_vjp_x" in card.root.locator(".details").inner_text()
    assert not card.root.locator(".toolbar").is_visible(), "a card has no steps"


def test_a_search_for_a_kernel_ends_at_the_first_that_there_is(page: Any) -> None:
    dispatch = Player(page, 5)
    dispatch.root.focus()
    dispatch.press("End")
    taken = [key for key, state in dispatch.states().items() if state == "done"]
    assert taken == ["place 0", "product: kernel cpu, float32"]
    row = dispatch.root.locator("[data-op='product: kernel cuda, any']")
    assert "for cuda, not for cpu" in row.text_content()


def test_a_learner_races_a_policy_by_clicks_and_by_keys(page: Any) -> None:
    player = Player(page, 6)
    caption = player.root.locator(".caption")
    assert player.caption().startswith("Your turn, at 0 s: which task starts now?")
    player.root.locator(".node[data-op='task:b']").click()
    caption.filter(has_text="at 1 s").wait_for()
    player.root.locator(".node[data-op='task:a']").focus()
    player.press("Enter")
    caption.filter(has_text="at 3 s").wait_for()
    player.root.locator(".node[data-op='task:c']").click()
    caption.filter(has_text="Your makespan is 4 s, that of fifo is 4 s. You are as quick.").wait_for()
    assert kernel_says(page, "race.choices") == "('b', 'a', 'c')"


def test_selecting_a_bar_shows_its_arrows_and_selects_the_task_in_the_other_views(page: Any) -> None:
    line, queue = Player(page, 7), Player(page, 8)
    arrows = line.root.locator(".arrow")
    assert arrows.count() == 2 and not any(arrows.nth(i).is_visible() for i in range(2))
    line.root.locator(".bar[data-op='task:c']").click()
    assert [arrows.nth(i).is_visible() for i in range(2)].count(True) == 1
    assert queue.selected() == {"task:c"}
    assert "waits for" in line.root.locator(".details").inner_text()
    line.press("Escape")


def test_a_view_asks_what_comes_next_and_tells_whether_it_was_right(page: Any) -> None:
    player = Player(page, 8)
    step = player.root.get_by_role("button", name="Step forward")
    for _ in range(7):
        step.click()
    assert player.caption() == "Which task does lifo take next?"
    assert player.counter().startswith("6 /")
    player.root.get_by_role("button", name="a", exact=True).click()
    assert player.caption().startswith("No, it is b. (0 of 1 right)")
    assert player.counter().startswith("7 /")


def test_views_of_passes_step_both_ways_and_select_together(page: Any) -> None:
    players = {name: Player(page, 9 + place) for place, name in enumerate(("shapes", "fusion", "plan"))}
    for name, player in players.items():
        last = kernel_value(page, f"len({name}.frames) - 1")
        player.root.get_by_role("button", name="Last step").click()
        assert player.states() == kernel_value(page, f"{name}.scene.states_at(-1 + len({name}.frames))")
        player.press("ArrowLeft", "ArrowLeft")
        assert player.counter() == f"{last - 2} / {last}"
        assert player.states() == kernel_value(page, f"{name}.scene.states_at({last - 2})")
        player.press("Home")
        assert player.states() == kernel_value(page, f"{name}.scene.states_at(0)")
    mul = kernel_value(page, "next(f'n{node.serial}' for node in graph if node.label == 'mul')")
    players["fusion"].root.locator(f".node[data-op='{mul}']").click()
    assert {mul} <= players["shapes"].selected() and f"{mul}~step" in players["plan"].selected()
    players["fusion"].press("Escape")
    players["fusion"].root.get_by_role("button", name="Step forward").click()
    assert players["fusion"].caption().endswith("Do they become one kernel?")
    players["fusion"].root.get_by_role("button", name="yes, one kernel").click()
    assert players["fusion"].caption().startswith("Right!")


def test_an_explanation_is_one_page_whose_views_select_together(page: Any) -> None:
    count = int(kernel_says(page, "len(whole.views)"))
    players = [Player(page, 12 + number) for number in range(count)]
    assert page.get_by_text("Forward has 3 ops, backward adds 8").is_visible()
    exp = kernel_says(page, "next(f'n{node.serial}' for node in whole.views[2].graph if node.label == 'exp')").strip(
        "'"
    )
    players[0].root.locator(f".node[data-op='{exp}']").click()
    assert [player.selected() & {exp} for player in players[:5]] == [{exp}] * 5
    players[0].press("Escape")
