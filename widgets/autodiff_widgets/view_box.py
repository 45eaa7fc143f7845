"""Widgets that hold several views, and what is seen of them where there are no widgets."""

from __future__ import annotations

from typing import Any

import ipywidgets

from .export import stacked_svg
from .view import View


class ViewBox(ipywidgets.VBox):  # type: ignore[misc]
    """Several ``views`` in one widget. It has a static picture and a text too, as each view has."""

    views: tuple[View, ...] = ()

    def svg(self) -> str:
        """The last picture of every view, below each other, as one SVG document without script."""
        return stacked_svg(repr(self), [view.svg() for view in self.views])

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        widget = super()._repr_mimebundle_(**kwargs) or {}
        return {**widget, "text/plain": repr(self), "image/svg+xml": self.svg()}
