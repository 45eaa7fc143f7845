"""The base class of every view: a Scene as a widget, with its events, its text twin and its exports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import traitlets
from anywidget import AnyWidget

from .export import PICTURE_CSS, PLAYER_CSS, html_page, static_svg
from .player import PLAYER_JS
from .scene import Frame, Scene

if TYPE_CHECKING:
    from autodiff_lab.events import Event

_TEXT_LIMIT = 1900  # characters of text/plain, which a notebook keeps beside the picture


class View(AnyWidget):
    """A scene that is stepped in the browser; the views of graphs, orders and gradients inherit from it.

    ``scene`` is what is shown, ``frame`` the number of the step, ``selected`` the key of the selected element or None.
    Views with the same ``link`` select together. ``events`` are what the picture was drawn from. With ``predict=True`` the
    reader is asked what comes next before certain steps show it, where the view has questions. With ``projector=True`` it
    fills the window in large type.

    >>> from autodiff_widgets.scene import Change, Frame, Pane
    >>> svg = '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="20"><g data-op="n1"><text>x</text></g></svg>'
    >>> frames = (Frame("Nothing ran yet."), Frame("x runs.", (Change("n1", "active"),)))
    >>> View(Scene("One node", (Pane(svg, "graph"),), frames))
    One node: 0 elements, 2 frames
      0. Nothing ran yet.
      1. x runs.
    """

    _esm = PLAYER_JS
    _css = PICTURE_CSS + PLAYER_CSS

    scene = traitlets.Instance(Scene).tag(sync=True, to_json=lambda scene, view: scene.as_json())
    frame = traitlets.Int(0).tag(sync=True)
    selected = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    link = traitlets.Unicode("page").tag(sync=True)
    predict = traitlets.Bool(False).tag(sync=True)
    projector = traitlets.Bool(False).tag(sync=True)
    opened = traitlets.Unicode(None, allow_none=True).tag(sync=True)  # the element whose inside the reader wants to see
    inner = traitlets.Dict().tag(sync=True)  # element -> the scene inside it as JSON, or {"error": why there is none}

    def __init__(self, scene: Scene, events: Iterable[Event] = (), **traits: Any) -> None:
        self._events = tuple(events)
        super().__init__(scene=scene, **traits)

    @property
    def events(self) -> tuple[Event, ...]:
        """The events that the picture was drawn from."""
        return self._events

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The steps; the first is the picture before anything happens."""
        return self.scene.frames

    def inside(self, key: str) -> Scene:
        """The scene of the next level of detail: what is inside an element of ``scene.opens``, or of that of an inner scene.

        Raises:
            KeyError: the element has no inside.
        """
        raise KeyError(f"{type(self).__name__}: {key!r} has nothing inside; what can be opened is in scene.opens")

    def text(self) -> str:
        """Everything that the view shows, as text: elements with their facts, and every step's caption."""
        return self.scene.text()

    def svg(self, frame: int = -1) -> str:
        """The pictures at one frame (the last by default) as a single SVG document without script."""
        return static_svg(self.scene, frame)

    def save_html(self, path: str | Path, *more_views: View) -> Path:
        """Write this view, with others below it, as one HTML file that steps and links offline; returns its path."""
        return save_page(path, (self, *more_views))

    @traitlets.observe("opened")
    def _send_inside(self, change: dict[str, Any]) -> None:
        key = change["new"]
        if key is None:
            return
        if key not in self.inner:
            try:
                inside = self.inside(key).as_json()
            except Exception as error:
                inside = {"error": str(error.args[0] if isinstance(error, KeyError) else error)}
            self.inner = {**self.inner, key: inside}
        self.opened = None

    @traitlets.observe("scene")
    def _forget_insides(self, change: dict[str, Any]) -> None:
        self.inner = {}

    @traitlets.validate("frame")
    def _frame_exists(self, proposal: dict[str, Any]) -> int:
        return self.scene.index(proposal["value"])

    def __repr__(self) -> str:
        lines = [f"{self.scene.title}: {len(self.scene.facts)} elements, {len(self.frames)} frames"]
        lines += [f"  {number}. {frame.caption}" for number, frame in enumerate(self.frames)]
        kept, room = 0, _TEXT_LIMIT
        while kept < len(lines) and len(lines[kept]) < room:
            room -= len(lines[kept]) + 1
            kept += 1
        left_out = [f"  … {len(lines) - kept} more; .text() shows all"] if kept < len(lines) else []
        return "\n".join([*lines[:kept], *left_out])

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        data, metadata = bundle
        return {**data, "image/svg+xml": self.svg()}, metadata


def save_page(path: str | Path, views: Sequence[View], intro: str = "") -> Path:
    """Write views below each other, after an introduction, as one HTML file that steps and links offline; returns its path."""
    players = [
        {
            "scene": view.scene.as_json(),
            **{name: getattr(view, name) for name in ("frame", "selected", "link", "predict")},
        }
        for view in views
    ]
    target = Path(path)
    target.write_text(html_page(players, [view.text() for view in views], intro), encoding="utf-8")
    return target
