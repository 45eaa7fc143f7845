"""axe-core, the checker of accessibility that browsers' own tools are built on, run on what a page shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.browser.conftest import missing
from tests.browser.jupyter import REPOSITORY

AXE = REPOSITORY / "node_modules" / "axe-core" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
FIND = """async ([within, tags, rules]) => {
  const runOnly = rules.length ? rules : tags;
  const found = await axe.run({ include: [within] }, { runOnly, resultTypes: ["violations"], elementRef: true });
  // Of separate texts in a picture axe makes one word, so what is written on a button is compared elsewhere.
  for (const rule of found.violations.filter((rule) => rule.id === "label-content-name-mismatch")) {
    rule.nodes = rule.nodes.filter((node) => !node.element.closest("svg"));
  }
  const where = (node) => `${node.html.slice(0, 160)}: ${node.failureSummary.split("\\n").at(-1).trim()}`;
  return found.violations.filter((rule) => rule.nodes.length).map((rule) =>
    `${rule.impact} ${rule.id} (${rule.nodes.length}): ${rule.help}. First: ${where(rule.nodes[0])}`);
}"""


def findings(page: Any, within: str = ".autodiff-player", rules: tuple[str, ...] = ()) -> list[str]:
    """What axe finds wrong in the parts of a page that a selector names: by all of the rules, or by some only."""
    if not AXE.exists():
        missing(f"no {AXE.relative_to(REPOSITORY)}: run `npm ci`")
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(Path(AXE).read_text(encoding="utf-8"))
    return list(page.evaluate(FIND, [within, TAGS, list(rules)]))
