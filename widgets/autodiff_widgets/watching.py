"""watch: one view that shows, after each cell of a notebook, what the cell's Tensors recorded."""

from __future__ import annotations

from collections import deque
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from autodiff_lab import events
from autodiff_lab.events import Event

from .captions.live import WATCHING
from .live_scene import empty_scene
from .live_view import MOST, LiveView


class WatchView(LiveView):
    """What the cell that ran last did with Tensors; it grows while the cell runs. Made by ``aw.watch``."""

    def __init__(self, shell: Any, **traits: Any) -> None:
        self._shell = shell
        self._depth = 0  # a cell may run another one, as with %run
        super().__init__("Watching", **traits)
        self._earlier: deque[Event] = deque(maxlen=MOST)
        self._show(empty_scene(self.title, WATCHING))
        shell.events.register("pre_run_cell", self._cell_begins)
        shell.events.register("post_run_cell", self._cell_ends)

    def stop(self) -> None:
        """Watch no more; the view stays as it is."""
        for name in ("pre_run_cell", "post_run_cell"):
            for handler in _handlers(self._shell, name):
                if handler.__self__ is self:
                    self._shell.events.unregister(name, handler)
        self.end()

    def _cell_begins(self, info: Any = None) -> None:
        if self._depth == 0:
            self.begin(self._shell.user_ns)
        self._depth += 1

    def _cell_ends(self, result: Any = None) -> None:
        if self._depth == 0:  # the cell that called watch
            return
        self._depth -= 1
        if self._depth == 0:
            self.end(getattr(result, "error_in_exec", None))
            self._earlier.extend(event for event in self._told if isinstance(event, events.OpCalled))

    def _nothing_ran(self) -> None:
        """A cell without Tensors leaves the picture of the cell before it."""


def watch(on: bool = True, **traits: Any) -> WatchView | None:
    """A view that shows, after each cell, what the cell's Tensors recorded: the op calls, and the gradients as they arrived.

    In JupyterLab choose "Create New View for Cell Output" in the menu of its output, and it stays in sight beside the cells.
    Calling ``watch`` again makes a new view, which takes the place of the one before; ``aw.watch(False)`` ends it, as its
    ``stop()`` does. Each watched op call takes about 20 µs longer.

    Raises:
        RuntimeError: there is no notebook.

    >>> watch()
    Traceback (most recent call last):
    ...
    RuntimeError: watch: it needs a notebook, whose cells it watches; elsewhere use `with aw.live() as view:`
    """
    if not InteractiveShell.initialized():
        raise RuntimeError(
            "watch: it needs a notebook, whose cells it watches; elsewhere use `with aw.live() as view:`"
        )
    shell = InteractiveShell.instance()
    for handler in _handlers(shell, "post_run_cell"):
        handler.__self__.stop()
    return WatchView(shell, **traits) if on else None


def _handlers(shell: Any, event: str) -> list[Any]:
    """The handlers of watching views, also of those that a copy of this module made before it was loaded again."""
    known = shell.events.callbacks[event]
    return [handler for handler in known if type(getattr(handler, "__self__", None)).__name__ == WatchView.__name__]
