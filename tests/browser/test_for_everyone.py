"""A page of every view for those who use keys, a screen reader, large type, few colours, little motion, or paper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from autodiff_widgets.scene import State

from tests.browser.axe import findings
from tests.browser.conftest import blame, opened
from tests.browser.jupyter import Record
from tests.browser.reader import Player
from tests.drawn_views import ALL_SHOWN, page_of_every_view

WINDOW = {"width": 1400, "height": 1000}


@pytest.fixture(scope="module")
def shared_page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The page, opened once."""
    record = Record()
    with opened(browser, record) as page:
        page.goto(page_of_every_view(tmp_path_factory.mktemp("everyone")).as_uri())
        page.wait_for_function(ALL_SHOWN)
        yield page
    blame(record)


@pytest.fixture
def page(shared_page: Any) -> Iterator[Any]:
    """The page as it was opened: light, with little motion, at the first step, nothing selected."""
    yield shared_page
    shared_page.set_viewport_size(WINDOW)
    shared_page.emulate_media(
        media="screen", color_scheme="light", reduced_motion="reduce", forced_colors="none", contrast="no-preference"
    )
    shared_page.evaluate(
        """() => {
          for (const player of document.querySelectorAll(".autodiff-player"))
            for (const key of ["Escape", "Home"]) player.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
          document.activeElement.blur();
          scrollTo(0, 0);
        }"""
    )


# ----------------------------------------------------------- axe, which looks at JupyterLab in test_every_view_in_jupyterlab.py


def test_axe_finds_nothing_wrong_when_all_is_shown_in_dark(page: Any) -> None:
    page.emulate_media(color_scheme="dark")
    page.evaluate(
        """() => {
          for (const player of document.querySelectorAll(".autodiff-player")) {
            player.dispatchEvent(new KeyboardEvent("keydown", { key: "End", bubbles: true }));
            player.querySelector(".pane [role=button]")?.dispatchEvent(new MouseEvent("click", { bubbles: true, detail: 1 }));
          }
          for (const folded of [...document.querySelectorAll(".autodiff-player details")].slice(0, 3)) folded.open = true;
        }"""
    )
    page.locator(".tables table").nth(2).wait_for()
    assert findings(page) == []
    page.evaluate("() => document.querySelectorAll('.autodiff-player details').forEach((one) => (one.open = false))")


def test_axe_finds_nothing_wrong_with_the_projector(page: Any) -> None:
    page.locator(".autodiff-player .project").first.click()
    assert findings(page, ".autodiff-player[data-projector]") == []
    page.emulate_media(color_scheme="dark")
    assert findings(page, ".autodiff-player[data-projector]", ("color-contrast",)) == []
    page.keyboard.press("Escape")


NAMES = """() => [...document.querySelectorAll(".pane [role=button]")].flatMap((button) => {
  const texts = [...button.querySelectorAll("text:not(.tag *)")].map((text) => text.textContent.trim());
  const name = button.getAttribute("aria-label") ?? "";
  return texts.every((text) => name.includes(text)) ? [] : [[name, texts]];
})"""


def test_what_is_written_on_a_button_of_a_picture_is_its_name_at_every_step(page: Any) -> None:
    for key in ("ArrowRight", "ArrowRight", "End", "ArrowLeft", "Home"):
        assert page.evaluate(NAMES) == []
        page.evaluate(
            """(key) => document.querySelectorAll(".autodiff-player").forEach((player) =>
              player.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })))""",
            key,
        )


# ------------------------------------------------------------------------------------------------------------- keyboard

# Where the focus is: whether it is after the last one, how it is marked, and how much of it is in the window.
FOCUS = """() => {
  const now = document.activeElement;
  if (now === document.body) return null;
  const before = window.focusBefore;
  window.focusBefore = now;
  const style = getComputedStyle(now);
  const box = now.getBoundingClientRect();
  return {
    what: `${now.tagName} ${now.getAttribute("class")} ${now.getAttribute("aria-label")}`,
    isAfter: !before || Boolean(before.compareDocumentPosition(now) & Node.DOCUMENT_POSITION_FOLLOWING),
    isMarked: style.outlineStyle === "auto" || (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2),
    inWindow: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    player: [...document.querySelectorAll(".autodiff-player")].indexOf(now.closest(".autodiff-player")),
  };
}"""


def test_tab_walks_through_every_player_in_order_and_out_again_and_shows_where_it_is(page: Any) -> None:
    page.evaluate("() => { window.focusBefore = null; }")
    players = page.locator(".autodiff-player").count()
    visited = []
    for _ in range(40 * players):
        page.keyboard.press("Tab")
        seen = page.evaluate(FOCUS)
        if seen is None:
            break
        visited.append(seen)
    assert seen is None, "Tab never leaves the page"
    assert [one["what"] for one in visited if not one["isAfter"]] == []
    assert [one["what"] for one in visited if not one["isMarked"]] == []
    assert [one["what"] for one in visited if not one["inWindow"]] == []
    assert {one["player"] for one in visited} >= set(range(players))
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(FOCUS)["what"] == visited[-1]["what"], "and back into the page"


# ------------------------------------------------------------------------------------------------------ zoom and narrow

# What is cut off at the sides, outside of the boxes that scroll: pictures and lines of code.
CUT_OFF = """() => [
  ...(document.documentElement.scrollWidth > innerWidth ? [`the page is ${document.documentElement.scrollWidth} wide`] : []),
  ...[...document.querySelectorAll(".autodiff-player *:not(svg *)")]
    .filter((element) => !element.closest(".pane, .source, .tables, pre") && element.checkVisibility())
    .filter((element) => {
      const box = element.getBoundingClientRect();
      return box.width && (box.left < -0.5 || box.right > innerWidth + 0.5);
    })
    .map((element) => `${element.tagName} ${element.className} ${element.textContent.slice(0, 40)}`),
]"""


@pytest.mark.parametrize("width", [640, 320])  # a window of 1280 at 200 % and at 400 %
def test_enlarged_to_200_and_400_percent_nothing_is_cut_off_and_only_pictures_scroll_sideways(
    page: Any, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": width * 3 // 4})
    page.evaluate(
        """() => document.querySelectorAll(".pane [role=button]:first-of-type").forEach((button) =>
          button.dispatchEvent(new MouseEvent("click", { bubbles: true, detail: 1 })))"""
    )
    assert page.evaluate(CUT_OFF) == []


# ---------------------------------------------------------------------------------------------------------------- paper


def test_on_paper_every_picture_is_whole_and_light_and_has_no_buttons(page: Any) -> None:
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 with Chromium's margins
    printed = page.locator(".autodiff-player").evaluate_all(
        """(players) => players.map((player) => ({
          paper: getComputedStyle(player).backgroundColor,
          ink: getComputedStyle(player.querySelector(".caption")).color,
          caption: player.querySelector(".caption").checkVisibility(),
          controls: [...player.querySelectorAll("button, input, select")].filter((one) => one.checkVisibility()).length,
          cut: [...player.querySelectorAll(".pane")].filter((pane) => {
            const box = pane.firstElementChild.getBoundingClientRect();
            return box.right > innerWidth || pane.scrollHeight > pane.clientHeight + 1 || box.left < 0;
          }).length,
        }))"""
    )
    whole = {"paper": "rgb(255, 255, 255)", "ink": "rgb(23, 32, 42)", "caption": True, "controls": 0, "cut": 0}
    assert [one for one in printed if one != whole] == []


# ----------------------------------------------------------------------------------------------------- colours and motion

STATES = """(states) => {
  const node = [...document.querySelectorAll(".autodiff-player")].at(-1).querySelector(".node");
  const before = node.getAttribute("data-s");
  const looks = states.map((state) => {
    node.setAttribute("data-s", state);
    const { fill, stroke, strokeWidth, strokeDasharray } = getComputedStyle(node.querySelector("rect"));
    return [fill, stroke, strokeWidth, strokeDasharray, getComputedStyle(node).opacity].join(" ");
  });
  node.setAttribute("data-s", before);
  return looks;
}"""


def test_with_the_colours_of_the_system_every_state_still_looks_different(page: Any) -> None:
    page.emulate_media(forced_colors="active")
    states = list(get_args(State))
    looks = page.evaluate(STATES, states)
    same = [(states[i], states[j]) for i in range(len(states)) for j in range(i) if looks[i] == looks[j]]
    assert same == []


MOVING = """() => {
  const forward = document.querySelector("button.forward");
  forward.click();
  forward.click();
  return document.getAnimations().length;
}"""


def test_who_wants_little_motion_sees_none(page: Any) -> None:
    assert page.evaluate(MOVING) == 0
    page.emulate_media(reduced_motion="no-preference")
    assert page.evaluate(MOVING) > 0, "others see what changed move"


# -------------------------------------------------------------------------------------------------------- what is spoken


def test_a_step_is_spoken_once(page: Any) -> None:
    player = Player(page, 0)
    player.root.focus()
    page.evaluate(
        """() => {
          window.spoken = [];
          for (const region of document.querySelectorAll("[aria-live=polite], [role=status]")) {
            const observer = new MutationObserver(() => spoken.push(region.textContent));
            observer.observe(region, { childList: true, subtree: true, characterData: true });
          }
        }"""
    )
    for _ in range(3):
        player.press("ArrowRight")
        assert page.evaluate("() => spoken.splice(0)") == [player.caption()]
    player.press("ArrowLeft")
    assert page.evaluate("() => spoken.splice(0)") == [player.caption()]
