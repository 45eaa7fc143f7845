"""The base class of every view: a Scene as a widget, with its events, its text twin and its exports."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakSet

import traitlets
from ipywidgets import widget_serialization

from autodiff_lab.graph import Graph

from .export import static_svg
from .handlers import Handlers
from .pages import INSIDES, embed, packed, save_page, write
from .player import LOADER_JS
from .scene import Frame, Scene
from .shared_player import SharedPlayer
from .turns import InTurns

if TYPE_CHECKING:
    from autodiff_lab.events import Event

_TEXT_LIMIT = 1900  # characters of text/plain, which a notebook keeps beside the picture
# Of compression: a scene of 300 nodes is packed in 1.6 ms, which a live view does many times a second, to 54 kB of 320. Level 9
# takes 10 ms for 45 kB.
_LEVEL = 3


class View(InTurns):
    """A scene that is stepped in the browser; the views of graphs, orders and gradients inherit from it.

    ``scene`` is what is shown, ``frame`` the number of the step, ``selected`` the key of the selected element or None.
    Views with the same ``link`` select together. ``events`` are what the picture was drawn from. With ``predict=True`` the
    reader is asked what comes next before certain steps show it, where the view has questions. With ``projector=True`` it
    fills the window in large type.

    Every view can be taken elsewhere: ``text()``, ``svg()`` and ``save_svg()`` for one frame, and ``save_html()``, which steps
    offline, with other views below it. Views of a graph also have ``dot()`` and ``save_dot()``, those of timelines
    ``chrome_trace()`` and ``save_trace()``.

    >>> from autodiff_widgets.scene import Change, Frame, Pane
    >>> svg = '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="20"><g data-op="n1"><text>x</text></g></svg>'
    >>> frames = (Frame("Nothing ran yet."), Frame("x runs.", (Change("n1", "active"),)))
    >>> View(Scene("One node", (Pane(svg, "graph"),), frames))
    One node: 0 elements, 2 frames
      0. Nothing ran yet.
      1. x runs.
    """

    _esm = LOADER_JS
    _player = traitlets.Instance(SharedPlayer).tag(sync=True, **widget_serialization)

    scene = traitlets.Instance(Scene).tag(sync=True, to_json=lambda scene, view: packed(scene.as_json(), _LEVEL))
    frame = traitlets.Int(0).tag(sync=True)
    selected = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    link = traitlets.Unicode("page").tag(sync=True)
    predict = traitlets.Bool(False).tag(sync=True)
    projector = traitlets.Bool(False).tag(sync=True)
    opened = traitlets.Unicode(None, allow_none=True).tag(sync=True)  # the element whose inside the reader wants to see
    # element -> the scene inside it as JSON, or {"error": why there is none}
    inner = traitlets.Dict().tag(sync=True, to_json=lambda inner, view: packed(inner, _LEVEL))

    alive: ClassVar[WeakSet[View]] = WeakSet()  # every view that something still refers to

    def __init__(self, scene: Scene, events: Iterable[Event] = (), **traits: Any) -> None:
        self._events = tuple(events)
        super().__init__(scene=scene, **traits)
        self.alive.add(self)

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

    def save_svg(self, path: str | Path, frame: int = -1) -> Path:
        """Write the picture of one frame (the last by default) as an SVG file; returns its path."""
        return write(path, self.svg(frame))

    def save_html(self, path: str | Path, *more_views: View, insides: int = INSIDES) -> Path:
        """Write this view, with others below it, as one HTML file that steps and links offline; returns its path.

        What is inside elements (``scene.opens``) is written too, level by level, until ``insides`` bytes are spent.
        """
        return save_page(path, (self, *more_views), insides=insides)

    def dot(self) -> str:
        """The graph that the view shows, in Graphviz's language.

        Raises:
            TypeError: it shows no graph.
        """
        if not isinstance(graph := getattr(self, "graph", None), Graph):
            raise TypeError(
                f"{type(self).__name__} shows no graph, so there is no DOT of it; text() and svg() show it all"
            )
        return graph.to_dot()

    def save_dot(self, path: str | Path) -> Path:
        """Write the graph that the view shows in Graphviz's language, for ``dot -Tsvg``; returns its path."""
        return write(path, self.dot())

    def chrome_trace(self, number: int = 0) -> str:
        """The timeline that the view shows (of two, ``number`` 1 is the lower one) as a Chrome trace: JSON for Perfetto.

        Raises:
            TypeError: it shows no timeline.
            IndexError: it shows fewer.
        """
        timelines = getattr(self, "timelines", ())
        if not timelines:
            raise TypeError(
                f"{type(self).__name__} shows no timeline, so there is no trace of it; TimelineView and MemoryView do"
            )
        if not 0 <= number < len(timelines):
            raise IndexError(
                f"chrome_trace: the view shows {len(timelines)} timelines, so number is from 0 to "
                f"{len(timelines) - 1}, got {number}"
            )
        return str(timelines[number].to_chrome_trace())

    def save_trace(self, path: str | Path, number: int = 0) -> Path:
        """Write the timeline that the view shows as a Chrome trace, for chrome://tracing or Perfetto; returns its path."""
        return write(path, self.chrome_trace(number))

    def observe(self, handler: Any, names: Any = traitlets.All, type: Any = "change") -> None:
        """Call ``handler(change)`` when a trait changes. A cell that runs again replaces what it hung up before."""
        handlers = self.__dict__.setdefault("_handlers", Handlers())  # traitlets observes before __init__
        for old in handlers.replaced_by(handler, (names, type)):
            self.unobserve(old, names, type)
        super().observe(handler, names, type)

    def inside_as_json(self, key: str) -> dict[str, Any]:
        """The scene inside an element as JSON, or ``{"error": why there is none}``."""
        try:
            return self.inside(key).as_json()
        except Exception as error:
            return {"error": str(error.args[0] if isinstance(error, KeyError) else error)}

    @traitlets.default("_player")
    def _players_holder(self) -> SharedPlayer:
        return SharedPlayer.of_this_kernel()

    @traitlets.observe("opened")
    def _send_inside(self, change: dict[str, Any]) -> None:
        key = change["new"]
        if key is None:
            return
        if key not in self.inner:
            self.inner = {**self.inner, key: self.inside_as_json(key)}
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


def send_insides(budget: int = INSIDES) -> None:
    """Let the browser have what is inside the elements of every view without asking, up to so many bytes of JSON in all."""
    views = sorted(View.alive, key=lambda view: str(view.model_id))
    players = [{"scene": view.scene.as_json()} for view in views]
    embed(players, lambda number, key: views[number].inside_as_json(key), budget)
    for view, player in zip(views, players, strict=True):
        view.inner = player["inner"]
