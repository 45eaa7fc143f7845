"""Views between threads: the cell, what draws beside it, and the browser's messages, which are answered while a cell runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

from anywidget import AnyWidget


class InTurns(AnyWidget):
    """A widget that several threads may write to.

    traitlets keeps what it has still to tell on the widget itself, for whoever writes: a message from the browser, which a
    notebook handles in a thread of its own while a cell runs, would swallow what the cell writes meanwhile. All widgets share
    one lock, so that two that write to each other cannot wait for each other.
    """

    _turn = RLock()

    def open(self) -> None:
        """Join the browser, whose messages are answered while a cell runs."""
        super().open()
        answer_meanwhile(self)

    @contextmanager
    def hold_trait_notifications(self) -> Iterator[None]:
        """Tell all changes of the block at its end."""
        with self._turn, super().hold_trait_notifications():
            yield

    @contextmanager
    def hold_sync(self) -> Iterator[None]:
        """Send all changes of the block in one message at its end."""
        with self._turn, super().hold_sync():
            yield

    def _notify_trait(self, name: str, old_value: Any, new_value: Any) -> None:
        with self._turn:
            super()._notify_trait(name, old_value, new_value)


def answer_meanwhile(widget: Any) -> None:
    """Let the browser's messages to a widget be answered while a cell runs, in the thread that JupyterLab has for them.

    ipykernel from 7.4 on hands them to the thread that wrote to the widget last instead, for cells that await an answer: that
    is the cell's, which hears nothing until the cell is over. It has no setting for that; where a later one is built otherwise,
    nothing changes.
    """
    if hasattr(widget.comm, "_reply_subshell_for"):
        widget.comm._reply_subshell_for = None
