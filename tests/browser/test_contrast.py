"""Every text of every view can be read in every state, in every choice of colours: WCAG's contrast of 4.5 to 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from autodiff_widgets.view import View

from tests.browser.conftest import blame, opened
from tests.browser.jupyter import Record
from tests.drawn_views import ALL_SHOWN
from tests.test_every_view import VIEWS

SHOWN = [
    name for name in VIEWS if name.endswith((" of mlp", " of joint diamond", " fault", " a pipeline", "op matmul"))
]  # scopes, and all phases

# Steps a player through its frames, and gives the texts whose colour is too near to what is behind them: the last box drawn
# before the text around its middle, else the player's own paper. "rgb(r, g, b)" of getComputedStyle, contrast as in WCAG 2.2.
# Boxes stay where they are, so what lies around a text is looked up once; a text is looked up again when it reads otherwise.
TOO_FAINT = """(player) => {
  const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number)
    .map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ratios = new Map();
  const ratio = (ink, paper) => {
    const [low, high] = [light(ink), light(paper)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const inside = (box, x, y) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
  const opaque = (style) => Number(style.fillOpacity) > 0.5; // else the paper shows through
  const paper = getComputedStyle(player).backgroundColor;
  const panes = [...player.querySelectorAll(".pane")].map((pane) => [
    [...pane.querySelectorAll("text:not(.tag *)")].map((text) => ({ text, style: getComputedStyle(text) })),
    [...pane.querySelectorAll("rect:not(.tag *), .bar > path")].map((shape) => ({ shape, style: getComputedStyle(shape) })),
  ]);
  const tags = () => [...player.querySelectorAll(".pane .tag > text")].map((text) => { // they move, each with its own box
    const [style, behind] = [text, text.parentElement.querySelector("rect")].map((element) => getComputedStyle(element));
    return { text, style, said: text.textContent, around: [{ style: behind }] };
  });
  const place = (one, shapes) => {
    const at = one.text.getBoundingClientRect();
    const [x, y] = [(at.left + at.right) / 2, (at.top + at.bottom) / 2];
    const before = ({ shape }) => shape.compareDocumentPosition(one.text) & Node.DOCUMENT_POSITION_FOLLOWING;
    one.said = one.text.textContent;
    one.around = shapes.filter(({ shape }) => inside(shape.getBoundingClientRect(), x, y)).filter(before).reverse();
  };
  const [at, last] = player.querySelector(".counter").value.split(" / ").map(Number);
  const forward = player.querySelector("button.forward");
  const faint = new Set();
  let looked = 0;
  for (let frame = at; frame <= last; frame++) {
    for (const [texts, shapes] of [...panes, [tags(), []]]) {
      for (const one of texts) {
        if (!one.text.textContent.trim() || one.text.closest('[data-s="skipped"]')) continue;
        if (one.said !== one.text.textContent) place(one, shapes);
        const ink = one.style.fill;
        const behind = one.around.find(({ style }) => opaque(style))?.style.fill ?? paper;
        const pair = `${ink} on ${behind}`;
        if (!ratios.has(pair)) ratios.set(pair, ratio(ink, behind));
        looked += 1;
        const element = one.text.closest("[data-op]");
        if (ratios.get(pair) < 4.5) faint.add(`${one.text.className.baseVal} "${one.said}" of ${element?.className.baseVal} ` +
          `when ${element?.dataset.s}: ${pair}, ${ratios.get(pair).toFixed(1)} to 1, frame ${frame}`);
      }
    }
    forward.click();
  }
  return [[...faint], looked, player.querySelector(".counter").value];
}"""


@pytest.fixture(scope="module")
def views() -> list[View]:
    return [VIEWS[name]() for name in SHOWN]


COLOURS: dict[str, dict[str, str]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "more contrast": {"color_scheme": "dark", "contrast": "more"},
    "the system's colours": {"color_scheme": "dark", "forced_colors": "active"},
}


@pytest.fixture(scope="module", params=COLOURS)
def page(browser: Any, request: Any, views: list[View], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One page with all of them: opening one for each took longer than looking."""
    record = Record()
    with opened(browser, record) as page:
        page.emulate_media(reduced_motion="reduce", **COLOURS[request.param])
        page.goto(views[0].save_html(tmp_path_factory.mktemp("contrast") / "views.html", *views[1:]).as_uri())
        page.wait_for_function(ALL_SHOWN)
        yield page
    blame(record)


@pytest.mark.parametrize("number", range(len(SHOWN)), ids=SHOWN)
def test_every_text_stands_out_in_every_frame(page: Any, views: list[View], number: int) -> None:
    faint, looked, counter = page.locator(".autodiff-player").nth(number).evaluate(TOO_FAINT)
    last = len(views[number].frames) - 1
    assert counter == f"{last} / {last}"
    assert looked > last
    assert faint == []
