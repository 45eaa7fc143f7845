"""What a class sees at 1280 × 720: a whole player; nothing in it moves while it is stepped, no writing is tiny or covered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import autodiff_widgets as aw
import pytest

import autodiff_lab as ad
from autodiff_lab import ops
from tests.browser.reader import Player

MOVED = """async (player) => {
  const step = player.querySelector("input[type=range]"), seen = new Set();
  for (let at = 0; at <= step.max; at++) {
    step.value = at;
    step.dispatchEvent(new Event("input", { bubbles: true }));
    const { x, y, width, height } = player.querySelector(".pane").getBoundingClientRect();
    seen.add([x, y, width, height].map(Math.round).join(" "));
  }
  return [...seen];
}"""
SCALES = "(player) => [...player.querySelectorAll('.pane > svg')].map((svg) => svg.getScreenCTM().a)"
COVERED = """(player) => {
  const boxes = (query) => [...player.querySelectorAll(query)].map((one) => one.getBoundingClientRect());
  return boxes(".row > text").filter((text) => text.width && boxes(".row > .tag").some((tag) =>
    tag.left < text.right - 1 && text.left < tag.right - 1 && tag.top < text.bottom - 1 && text.top < tag.bottom - 1)).length;
}"""


def layer(x: Any, w: Any, b: Any) -> Any:
    h = x * w + b
    return ops.tanh(h) * h


@pytest.fixture
def players(page: Any, tmp_path: Path) -> list[Player]:
    """Views of all kinds of layout, at the size of an old projector."""
    page.set_viewport_size({"width": 1280, "height": 720})
    graph = ad.record(ad.value_and_grad(layer, argnums=(0, 1)), 2.0, 0.5, 1.0)
    views = (
        aw.GradientFlowView(layer, 2.0, 0.5, 1.0, memory=True, predict=True),
        aw.OpView("matmul", [[0.5, 1.0]], [[2.0], [0.25]]),
        aw.TopologicalOrderView(graph, "kahn"),
        aw.PlanView(ad.plan(graph)),
        aw.RegistrationView("mul"),
    )
    page.goto(views[0].save_html(tmp_path / "page.html", *views[1:]).as_uri())
    return [Player(page, number) for number in range(len(views))]


def test_a_player_fits_and_stays_where_it_is(page: Any, players: list[Player]) -> None:
    for player in players:
        name = player.root.get_attribute("aria-label")
        assert player.root.bounding_box()["height"] <= 720, name
        assert len(player.root.evaluate(MOVED)) == 1, name
        assert player.root.evaluate(COVERED) == 0, name


def test_a_projected_player_stays_where_it_is_and_none_of_its_pictures_is_small(
    page: Any, players: list[Player]
) -> None:
    for player in players:
        name = player.root.get_attribute("aria-label")
        player.root.locator(".project").click()
        page.wait_for_function("() => document.querySelector('.autodiff-player[data-projector]').clientWidth === 1280")
        page.wait_for_timeout(200)  # the browser's passage to the whole screen
        assert len(player.root.evaluate(MOVED)) == 1, name
        assert min(player.root.evaluate(SCALES)) >= 1, name
        player.root.locator(".project").click()
