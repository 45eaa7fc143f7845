"""Labels are data: what a learner calls an input, a scope, a device, a task, a policy or a run is shown as typed everywhere."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import autodiff_widgets as aw
import numpy as np
import pytest
from autodiff_widgets.shapes import writable
from autodiff_widgets.view import View

import autodiff_lab as ad
from autodiff_lab import schedule
from autodiff_lab.events import StepTrained
from autodiff_lab.graph import Graph, Node
from autodiff_lab.schedule import Machine, Policy, Resource, Task
from tests.drawn_graphs import HOSTILE
from tests.saved_pages import players_of

NAMES = tuple(name for name in HOSTILE if name.strip())


def named_inputs() -> Graph:
    """A graph of two inputs and an op for each label, on a device and in a scope of that name."""
    nodes: list[Node] = []
    for name in HOSTILE:
        place, facts = len(nodes), {"device": name, "scope": name, "dtype": np.dtype("float64"), "shape": ()}
        nodes += [Node(place, "input", name, serial=place + 1, **facts)]  # type: ignore[arg-type]
        nodes += [Node(place + 1, "op", name, op=ad.registry["exp"], inputs=(place,), serial=place + 2, **facts)]  # type: ignore[arg-type]
    inputs = tuple(node.id for node in nodes if node.op is None)
    return Graph(tuple(nodes), inputs, (len(nodes) - 1,), name="".join(HOSTILE))


def scheduled() -> schedule.Timeline:
    """A task for each label, on a resource of that name."""
    return schedule.simulate(tasks(), machine(), policy())


def machine() -> Machine:
    return Machine(tuple(Resource(name) for name in NAMES))


def tasks() -> schedule.Tasks:
    return schedule.Tasks({name: Task(nbytes=8, on=name) for name in NAMES})


def policy() -> Policy:
    return Policy("".join(NAMES), lambda task, state: 0.0)


def training(place: int) -> View:
    """Four runs, the most that a view shows."""
    return aw.TrainingView([StepTrained(name, 1, 1.0, 2.0) for name in NAMES[place : place + 4]])


MAKE: dict[str, Callable[[], View]] = {
    "graph": lambda: aw.GraphView(named_inputs()),
    "order": lambda: aw.TopologicalOrderView(named_inputs()),
    "shapes": lambda: aw.ShapeInferenceView(named_inputs()),
    "fusion": lambda: aw.FusionView(named_inputs()),
    "timeline": lambda: aw.TimelineView(scheduled()),
    "memory": lambda: aw.MemoryView(scheduled()),
    "queue": lambda: aw.ReadyQueueView(tasks(), machine(), policy()),
    **{f"training {place}": partial(training, place) for place in range(0, len(NAMES), 4)},
}


@pytest.fixture(scope="module", params=MAKE)
def view(request: pytest.FixtureRequest) -> View:
    return MAKE[request.param]()


@pytest.fixture
def names(view: View) -> tuple[str, ...]:
    """What the view has to show: a view of runs shows four of them."""
    runs = {event.run for event in view.events if isinstance(event, StepTrained)}
    return tuple(writable(name) for name in NAMES if not runs or name in runs)


class Shown(HTMLParser):
    """What a browser shows of a page without running it, and which elements it has."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.tags = "", list[str]()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def texts_of(svg: str) -> str:
    return "\n".join(element.text or "" for element in ElementTree.fromstring(svg).iter())


def test_every_name_is_in_the_text_twin(view: View, names: tuple[str, ...]) -> None:
    assert [name for name in names if name not in view.text()] == []


def test_every_name_is_in_the_picture_in_full(view: View, names: tuple[str, ...]) -> None:
    pictures = "\n".join(texts_of(pane.svg) for pane in view.scene.panes)
    by_steps = isinstance(
        view, aw.MemoryView
    )  # whose picture has numbers; names appear, shortened, while it is stepped
    assert by_steps or [name for name in names if name not in pictures] == []


def test_a_static_picture_is_well_formed_and_has_our_elements_only(view: View, tmp_path: Path) -> None:
    svg = view.save_svg(tmp_path / "picture.svg").read_text(encoding="utf-8")
    tags = {element.tag.split("}")[1] for element in ElementTree.fromstring(svg).iter()}
    assert tags <= {"svg", "g", "rect", "path", "text", "title", "style"}


def test_a_page_shows_every_name_and_has_our_elements_only(view: View, names: tuple[str, ...], tmp_path: Path) -> None:
    page = view.save_html(tmp_path / "page.html").read_text(encoding="utf-8")
    shown = Shown(page)
    assert shown.tags.count("script") == 2 and not {"g", "b", "c", "map", "img"} & set(shown.tags)
    assert [name for name in names if name not in shown.text] == []
    assert players_of(page)[0]["scene"] == view.scene.as_json()


def test_a_trace_has_the_names_of_tasks_and_resources() -> None:
    trace = aw.TimelineView(scheduled()).chrome_trace()
    assert {event["name"] for event in json.loads(trace)["traceEvents"]} >= set(NAMES)
