"""MirrorView: shows what another view shows, and can be given another one without leaving its place on the page."""

from __future__ import annotations

from typing import Any

import traitlets

from .scene import Scene
from .view import View


class MirrorView(View):
    """A place for views. The step stays where it is when another view comes; a click reaches the view that is shown.

    >>> import autodiff_lab as ad
    >>> from autodiff_widgets import GraphView
    >>> mirror = MirrorView(GraphView(ad.record(lambda x: x * x, 2.0)))
    >>> mirror.frame = 1
    >>> mirror.show(GraphView(ad.record(lambda x: x + x, 2.0)))
    >>> mirror.frames[mirror.frame].caption
    '`x` is an input: shape (), float64.'
    """

    def __init__(self, source: View, **traits: Any) -> None:
        self.source = source
        super().__init__(source.scene, source.events, **traits)
        source.observe(self._follow, ("scene", "selected"))

    def show(self, source: View) -> None:
        """Show another view in the place of the one before, which is closed."""
        before, frame = self.source, self.frame
        before.unobserve(self._follow, ("scene", "selected"))
        self.source, self._events = source, source.events
        with self.hold_sync():
            self.frame = 0
            self.scene = source.scene
            self.frame = min(frame, len(source.frames) - 1)
        source.observe(self._follow, ("scene", "selected"))
        if before is not source:
            before.close()

    def inside(self, key: str) -> Scene:
        """What is inside an element, as the view says that is shown."""
        return self.source.inside(key)

    @traitlets.observe("selected")
    def _pass_on(self, change: dict[str, Any]) -> None:
        self.source.selected = change["new"]

    def _follow(self, change: dict[str, Any]) -> None:
        """What the view itself changed, after a click."""
        if change["name"] == "selected":
            self.selected = change["new"]
            return
        with self.hold_sync():
            frame = self.frame
            self.frame = 0
            self.scene = change["new"]
            self.frame = min(frame, len(change["new"].frames) - 1)
