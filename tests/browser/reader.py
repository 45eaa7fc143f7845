"""What a reader of a page sees and does: a player, and an expression in the notebook's kernel."""

from __future__ import annotations

import json
from ast import literal_eval
from typing import Any


class Player:
    """One player of a page, as its reader sees it."""

    def __init__(self, page: Any, number: int = 0) -> None:
        self.page = page
        self.root = page.locator(".autodiff-player").nth(number)
        self.root.scroll_into_view_if_needed()  # JupyterLab draws a cell only when it is near the window
        self.root.locator(".caption:not(:empty)").wait_for()

    def counter(self) -> str:
        return str(self.root.locator(".counter").text_content())

    def caption(self) -> str:
        return str(self.root.locator(".caption").text_content())

    def states(self) -> dict[str, str]:
        elements = self.root.locator(".pane [data-op][data-s]")
        return dict(elements.evaluate_all("all => all.map(e => [e.dataset.op, e.dataset.s])"))

    def selected(self) -> set[str]:
        return set(self.root.locator("[data-selected]").evaluate_all("all => all.map(e => e.dataset.op)"))

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)


def kernel_says(page: Any, code: str) -> str:
    """What an expression gives in the notebook's kernel."""
    return str(
        page.evaluate(
            """async (code) => {
              const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
              const reply = await kernel.requestExecute({ code: "", user_expressions: { it: code } }).done;
              return reply.content.user_expressions.it.data["text/plain"];
            }""",
            code,
        )
    )


def kernel_value(page: Any, expression: str) -> Any:
    """A plain value of the notebook's kernel."""
    return json.loads(literal_eval(kernel_says(page, f"__import__('json').dumps({expression})")))
