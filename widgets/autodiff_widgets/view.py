"""The base class of every view: a Scene as a widget, as text, as a static SVG and as an HTML page that needs no kernel."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import traitlets
from anywidget import AnyWidget

from .scene import Frame, Scene

if TYPE_CHECKING:
    from autodiff_lab.events import Event

_HERE = Path(__file__).parent
_PLAYER = (_HERE / "scene.js").read_text(encoding="utf-8")
_PICTURE_CSS = (_HERE / "scene.css").read_text(encoding="utf-8")
_PLAYER_CSS = (_HERE / "player.css").read_text(encoding="utf-8")

_SVG = "http://www.w3.org/2000/svg"
_TEXT_LIMIT = 1900  # characters of text/plain: a notebook keeps it beside the picture


class View(AnyWidget):  # type: ignore[misc]  # anywidget's base has no types
    """A scene that is stepped in the browser; views of graphs, orders and gradients inherit from it.

    ``events`` are what the picture was drawn from, ``frame`` is the step that is shown, ``selected`` the key of the selected
    element or None. Views with the same ``link`` select together.

    >>> from autodiff_widgets.scene import Change, Frame, Pane
    >>> svg = '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="20"><g data-op="n1"><text>x</text></g></svg>'
    >>> frames = (Frame("Nothing ran yet."), Frame("x runs.", (Change("n1", "active"),)))
    >>> View(Scene("One node", (Pane(svg, "graph"),), frames))
    One node: 0 elements, 2 frames
      0. Nothing ran yet.
      1. x runs.
    """

    _esm = _PLAYER
    _css = _PICTURE_CSS + _PLAYER_CSS

    scene: Scene = traitlets.Instance(Scene).tag(sync=True, to_json=lambda scene, view: scene.as_json())
    frame: int = traitlets.Int(0).tag(sync=True)
    selected: str | None = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    link: str = traitlets.Unicode("page").tag(sync=True)

    def __init__(self, scene: Scene, events: Iterable[Event] = (), **traits: Any) -> None:
        if not scene.frames or not scene.panes:
            raise ValueError(
                f"scene {scene.title!r} has {len(scene.panes)} panes and {len(scene.frames)} frames; a view needs at least "
                "one of each: give the picture before the first step as the first frame"
            )
        self._events = tuple(events)
        super().__init__(scene=scene, **traits)

    @property
    def events(self) -> tuple[Event, ...]:
        """The events that the picture was drawn from."""
        return self._events

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The steps, the first one being the picture before anything happens."""
        return self.scene.frames

    @traitlets.validate("frame")  # type: ignore[untyped-decorator]
    def _frame_exists(self, proposal: dict[str, Any]) -> int:
        return _index(self.scene, int(proposal["value"]))

    def text(self) -> str:
        """Everything that the view shows, as text: elements with their facts, and every step's caption."""
        return self.scene.text()

    def svg(self, frame: int = -1) -> str:
        """The pictures at one frame (the last by default) as a single SVG document without script."""
        return static_svg(self.scene, frame)

    def save_html(self, path: str | Path, *more_views: View) -> Path:
        """Write this view, and others below it, as one HTML file that steps and links offline; returns its path."""
        target = Path(path)
        target.write_text(html_page((self, *more_views)), encoding="utf-8")
        return target

    def __repr__(self) -> str:
        scene = self.scene
        lines = [f"{scene.title}: {len(scene.facts)} elements, {len(scene.frames)} frames"]
        lines += [f"  {number}. {frame.caption}" for number, frame in enumerate(scene.frames)]
        return _shortened(lines)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**kwargs)
        return {**data, "image/svg+xml": self.svg()}, metadata


# ----------------------------------------------------------------------------------------------------- text and pages


def _index(scene: Scene, frame: int) -> int:
    """A frame number as Python counts, -1 being the last."""
    count = len(scene.frames)
    if not -count <= frame < count:
        raise IndexError(f"frame must be between 0 and {count - 1} (or negative, from the end), got {frame}")
    return frame % count


def _shortened(lines: list[str]) -> str:
    """As many lines as fit in the limit, and how many are left out."""
    kept: list[str] = []
    room = _TEXT_LIMIT
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return "\n".join([*kept, f"  … {len(lines) - len(kept)} more; .text() shows all"])
        kept.append(line)
    return "\n".join(kept)


def html_page(views: Iterable[View]) -> str:
    """An HTML page that plays views without a kernel and without a network; each has its text twin below it."""
    states = [
        {"scene": view.scene.as_json(), "frame": view.frame, "selected": view.selected, "link": view.link} for view in views
    ]
    # "<" is written as an escape: a title can then not end the script element that holds it.
    data = json.dumps(states, ensure_ascii=False).replace("<", "\\u003c")
    places = "\n".join(
        f'<div data-scene="{number}"></div>\n<details><summary>As text</summary><pre>{escape(view.text())}</pre></details>'
        for number, view in enumerate(views)
    )
    title = escape(states[0]["scene"]["title"]) if states else ""
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{_PICTURE_CSS}{_PLAYER_CSS}</style>
<body class="autodiff-page">
{places}
<script type="application/json" id="autodiff-scenes">{data}</script>
<script type="module">
{_PLAYER}
renderPage();
</script>
</body>
</html>
"""


# --------------------------------------------------------------------------------------------------------- static SVG


def static_svg(scene: Scene, frame: int = -1) -> str:
    """The panes side by side over the caption, with the states of one frame, in the light colours.

    The colours are written out, because few programs outside of a browser know CSS variables.
    """
    index = _index(scene, frame)
    ElementTree.register_namespace("", _SVG)
    page = ElementTree.Element(f"{{{_SVG}}}svg", {"class": "autodiff-player"})
    ElementTree.SubElement(page, f"{{{_SVG}}}style").text = _plain_css()
    paper = ElementTree.SubElement(page, f"{{{_SVG}}}rect", {"width": "100%", "height": "100%", "fill": "#ffffff"})
    gap, left, height = 12.0, 12.0, 0.0
    states, texts = scene.states_at(index), _texts_at(scene, index)
    for pane in scene.panes:
        picture = ElementTree.fromstring(pane.svg)
        _show(picture, states, texts)
        width, tall = _size(picture)
        picture.set("x", f"{left:g}")
        picture.set("y", f"{gap + 28:g}")
        page.append(picture)
        left += width + gap
        height = max(height, tall)
    caption = scene.frames[index].caption.replace("\n", " ")
    width, height = max(left, 320.0), height + 28 + 28 + 3 * gap
    for y, words, style in ((26.0, scene.title, "label"), (height - gap, caption, "caption")):
        text = ElementTree.SubElement(page, f"{{{_SVG}}}text", {"x": "12", "y": f"{y:g}", "class": style})
        text.text = words
    for name, value in (("width", f"{width:g}"), ("height", f"{height:g}"), ("viewBox", f"0 0 {width:g} {height:g}")):
        page.set(name, value)
    paper.set("class", "paper")
    return ElementTree.tostring(page, encoding="unicode")


def _texts_at(scene: Scene, index: int) -> dict[tuple[str, str], str]:
    """What the frames up to ``index`` wrote, by element and slot."""
    return {
        (change.element, slot): text
        for frame in scene.frames[: index + 1]
        for change in frame.changes
        for slot, text in change.texts.items()
    }


def _show(picture: ElementTree.Element, states: dict[str, str], texts: dict[tuple[str, str], str]) -> None:
    """Set the states and texts of a picture's elements."""
    for element in picture.iter():
        key = element.get("data-op")
        if key is None:
            continue
        if key in states:
            element.set("data-s", states[key])
        for slot in element.iter():
            text = texts.get((key, slot.get("data-slot", "")))
            if text is not None:
                slot.text = text


def _size(picture: ElementTree.Element) -> tuple[float, float]:
    """Width and height of a picture in user units, from its attributes or its viewBox."""
    box = (picture.get("viewBox") or "0 0 400 300").split()
    wide, tall = picture.get("width", box[2]), picture.get("height", box[3])
    unit = {"pt": 4 / 3}
    return _units(wide, unit), _units(tall, unit)


def _units(length: str, unit: dict[str, float]) -> float:
    number = float(re.match(r"[\d.]+", length)[0])  # type: ignore[index]
    return number * unit.get(length.lstrip("0123456789."), 1.0)


def _plain_css() -> str:
    """The picture's rules with light colours in place of variables."""
    palette = dict(re.findall(r"(--[\w-]+): light-dark\(([^,]+),[^)]+\);", _PICTURE_CSS))
    rules = re.sub(r"/\*.*?\*/", "", _PICTURE_CSS, flags=re.DOTALL).split("}", 1)[1]
    return re.sub(r"var\((--[\w-]+)\)", lambda found: palette[found[1]], rules)
