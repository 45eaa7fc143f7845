"""A scene as a static SVG of one frame; and the rules that its look follows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from .scene import Scene


def rules(name: str) -> str:
    """The rules of a CSS file beside this one, without comments and indentation."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))


PICTURE_CSS, PLAYER_CSS = rules("scene.css"), rules("player.css")

_SVG = "http://www.w3.org/2000/svg"
_GAP, _TITLE = 12.0, 34.0  # between pictures, and above them for the title, in SVG units
_PIXELS = {"": 1.0, "px": 1.0, "pt": 4 / 3, "in": 96.0}


def static_svg(scene: Scene, frame: int = -1) -> str:
    """The panes side by side under the title and over the caption of one frame (the last by default), in light colours.

    Colours are written out, because few programs outside of a browser know CSS variables.

    >>> from autodiff_widgets.scene import Change, Frame, Pane
    >>> pane = Pane('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><g data-op="n1"/></svg>', "graph")
    >>> scene = Scene("One node", (pane,), (Frame("Nothing."), Frame("It ran.", (Change("n1", "done"),))))
    >>> '<g data-op="n1" data-s="done" />' in static_svg(scene), "data-s=" in static_svg(scene, 0).split("</style>")[1]
    (True, False)
    """
    index = scene.index(frame)
    states, texts = scene.states_at(index), scene.texts_at(index)
    ElementTree.register_namespace("", _SVG)
    page = _element("svg", **{"class": "autodiff-static", "role": "img", "aria-label": scene.title})
    style, paper, title = _element("style"), _element("rect", fill="#ffffff"), _element("text", **{"class": "label"})
    title.text = scene.title
    _place(title, _GAP, 26)
    page.extend((style, paper, title))
    left, height = _GAP, 0.0
    for pane in scene.panes:
        picture = ElementTree.fromstring(pane.svg)
        _show(picture, "", states, texts)
        width, tall = _size(picture)
        _place(picture, left, _TITLE + _GAP)
        left, height = left + width + _GAP, max(height, tall)
        page.append(picture)
    caption = _element("text")
    caption.text = " ".join(scene.frames[index].caption.replace("`", "").split())
    widths = (left, 7.5 * len(caption.text) + 2 * _GAP, 10 * len(scene.title) + 2 * _GAP)  # letters as wide as most are
    width, height = max(widths), _TITLE + height + 50
    _place(caption, _GAP, height - _GAP)
    page.append(caption)
    for box in (page, paper):
        box.set("width", f"{width:g}")
        box.set("height", f"{height:g}")
    page.set("viewBox", f"0 0 {width:g} {height:g}")
    style.text = _plain_css(page)
    return ElementTree.tostring(page, encoding="unicode")


def stacked_svg(title: str, pictures: Sequence[str]) -> str:
    """Static pictures below each other, as one SVG document."""
    page, top, width = _element("svg", role="img", **{"aria-label": title}), 0.0, 0.0
    for picture in map(ElementTree.fromstring, pictures):
        wide, tall = _size(picture)
        _place(picture, 0, top)
        page.append(picture)
        top, width = top + tall + _GAP, max(width, wide)
    for name, value in {"width": f"{width:g}", "height": f"{top:g}", "viewBox": f"0 0 {width:g} {top:g}"}.items():
        page.set(name, value)
    return ElementTree.tostring(page, encoding="unicode")


def _element(tag: str, **attributes: str) -> ElementTree.Element:
    return ElementTree.Element(f"{{{_SVG}}}{tag}", attributes)


def _place(element: ElementTree.Element, x: float, y: float) -> None:
    element.set("x", f"{x:g}")
    element.set("y", f"{y:g}")


def _show(
    element: ElementTree.Element, key: str, states: Mapping[str, str], texts: Mapping[tuple[str, str], str]
) -> None:
    """Set the states and the rewritten texts of an element and of everything in it; ``key`` is the op that it is in."""
    key = element.get("data-op", key)
    if "data-op" in element.attrib and key in states:
        element.set("data-s", states[key])
    if (key, element.get("data-slot", "")) in texts:
        element.text = texts[key, element.get("data-slot", "")]
    for child in element:
        _show(child, key, states, texts)


def _size(picture: ElementTree.Element) -> tuple[float, float]:
    """Width and height of a picture in pixels, from its attributes or else from its viewBox."""
    box = (picture.get("viewBox") or "0 0 400 300").replace(",", " ").split()
    return _pixels(picture.get("width", box[2])), _pixels(picture.get("height", box[3]))


def _pixels(length: str) -> float:
    found = re.fullmatch(r"([\d.]+)(\D*)", length.strip())
    if found is None or found[2] not in _PIXELS:
        raise ValueError(f"a pane's width and height must be lengths like 320, 320px or 240pt, got {length!r}")
    return float(found[1]) * _PIXELS[found[2]]


def _plain_css(page: ElementTree.Element) -> str:
    """The rules that a picture needs, with light colours in place of variables, and a class that no live player bears."""
    palette = dict(re.findall(r"(--[\w-]+): light-dark\(([^,]+),", PICTURE_CSS))
    shapes = PICTURE_CSS.split("}", 1)[1].replace(".autodiff-player", ".autodiff-static")  # all but the palette
    words = {word for element in page.iter() for name in ("class", "data-s") for word in element.get(name, "").split()}
    kept = []
    for selectors, declarations in re.findall(r"([^{}]+)\{([^{}]*)\}", shapes):
        needed = [one.strip() for one in re.split(r",(?![^(]*\))", selectors) if _names_in(one) <= words]
        kept += [f"{','.join(needed)}{{{declarations.strip()}}}"] if needed else []
    return re.sub(r"var\((--[\w-]+)\)", lambda variable: palette[variable[1]], "\n".join(kept))


def _names_in(selector: str) -> set[str]:
    """The classes and states that a selector asks for; what stands in brackets, as in :not(), may or may not be there."""
    return set(re.findall(r"(?<=\.)[\w-]+|(?<=data-s=.)[\w-]+", re.sub(r"\([^)]*\)", "", selector)))
