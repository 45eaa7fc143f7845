"""Every text of every view can be read, in light and in dark, in every state: WCAG's contrast of 4.5 to 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.test_every_view import VIEWS

SHOWN = [
    name for name in VIEWS if name.endswith((" of mlp", " of joint diamond", " fault", " a pipeline", "op matmul"))
]  # scopes, and all phases

# The texts whose colour is too near to what is behind them: the last box drawn before the text around its middle, else
# the pane's own paper. "rgb(r, g, b)" of getComputedStyle, contrast as in WCAG 2.2.
TOO_FAINT = """() => {
  const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number)
    .map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const inside = (box, x, y) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
  const faint = new Set();
  for (const pane of document.querySelectorAll(".pane")) {
    const opaque = (rect) => Number(getComputedStyle(rect).fillOpacity) > 0.5; // else the paper shows through
    const filled = [...pane.querySelectorAll("rect, .bar > path")].filter(opaque);
    const boxes = filled.map((shape) => [shape, shape.getBoundingClientRect()]);
    for (const text of pane.querySelectorAll("text")) {
      const at = text.getBoundingClientRect();
      if (!text.textContent.trim() || text.closest('[data-s="skipped"]')) continue;
      const [x, y] = [(at.left + at.right) / 2, (at.top + at.bottom) / 2];
      const before = ([rect]) => rect.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
      const behind = boxes.filter((one) => inside(one[1], x, y) && before(one)).at(-1)?.[0];
      const paper = behind ? getComputedStyle(behind).fill : getComputedStyle(pane.closest(".autodiff-player")).backgroundColor;
      const [low, high] = [light(getComputedStyle(text).fill), light(paper)].sort((a, b) => a - b);
      const ratio = (high + 0.05) / (low + 0.05);
      const element = text.closest("[data-op]");
      if (ratio < 4.5) faint.add(`${text.className.baseVal} "${text.textContent}" of ${element?.className.baseVal} ` +
        `when ${element?.dataset.s}: ${getComputedStyle(text).fill} on ${paper}, ${ratio.toFixed(1)} to 1`);
    }
  }
  return [...faint];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", SHOWN)
def test_every_text_stands_out_in_every_frame(page: Any, tmp_path: Path, name: str, scheme: str) -> None:
    view = VIEWS[name]()
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.goto(view.save_html(tmp_path / "view.html").as_uri())
    page.locator(".autodiff-player").focus()
    for number in range(len(view.frames)):
        assert page.evaluate(TOO_FAINT) == [], f"frame {number}: {view.frames[number].caption}"
        page.keyboard.press("ArrowRight")
