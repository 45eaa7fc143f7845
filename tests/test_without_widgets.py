"""What is seen where widgets are not: on GitHub, on paper, after nbconvert, in an editor that ignores them."""

from __future__ import annotations

import json
import os
import re
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import autodiff_widgets as aw
import nbformat
import pytest
from autodiff_widgets.view import View
from nbclient import NotebookClient
from nbconvert import HTMLExporter, MarkdownExporter

import autodiff_lab as ad
from tests.drawn_views import CODE, exported, names_of_code, notebook_of_every_view, players

ROOT = Path(__file__).parents[1]
WIDGET = "application/vnd.jupyter.widget-view+json"
TELL_WHAT_IS_TRUE = """import json
print(json.dumps({name: [[view.scene.states_at(len(view.frames) - 1), view.frames[-1].caption] for view in views]
    for name, views in SHOWN.items()}))"""
LIVE = """x = ad.tensor(2.0, requires_grad=True)
with aw.live():
    (x * x).backward()"""


def assert_true(svg: str, truth: list[tuple[dict[str, str], str]]) -> None:
    """A picture has the states and the caption of the last step of each view, and nothing that runs or is fetched."""
    root = ElementTree.fromstring(svg)
    states = {(e.get("data-op"), e.get("data-s")) for e in root.iter() if e.get("data-s")}
    drawn = {element.get("data-op") for element in root.iter()}
    texts = {element.text for element in root.iter() if element.text}
    for expected, caption in truth:
        assert {(key, state) for key, state in expected.items() if key in drawn} <= states
        assert " ".join(caption.replace("`", "").split()) in texts
    changed = {key for expected, _ in truth for key in expected}
    assert {one for one in states if one[0] in changed} <= {one for expected, _ in truth for one in expected.items()}
    assert "<script" not in svg and "href" not in svg


def truth_of(view: View) -> tuple[dict[str, str], str]:
    return view.scene.states_at(len(view.frames) - 1), view.frames[-1].caption


@pytest.fixture(scope="module")
def names() -> Iterator[dict[str, Any]]:
    with ad.registry.restored():
        yield names_of_code()


@pytest.mark.parametrize("name", CODE)
def test_beside_the_widget_there_are_a_picture_of_the_last_step_and_a_text(names: dict[str, Any], name: str) -> None:
    shown = eval(CODE[name], names)
    bundle = shown._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert set(data) == {WIDGET, "image/svg+xml", "text/plain"}
    assert_true(data["image/svg+xml"], [truth_of(view) for view in players(shown)])
    assert data["text/plain"] == repr(shown)


def test_every_view_that_is_exported_is_tried() -> None:
    assert set(CODE) == exported()


# ------------------------------------------------------------------------------------------------------ a whole notebook


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook of every view after a run that kept no widgets' state, as any front end but JupyterLab leaves it."""
    book = nbformat.read(notebook_of_every_view(tmp_path_factory.mktemp("run")), 4)
    book.cells += [nbformat.v4.new_code_cell(source) for source in (TELL_WHAT_IS_TRUE, LIVE)]
    rooms = os.pathsep.join(str(ROOT / part) for part in (".", "widgets", "notebooks"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", rooms)
        NotebookClient(book, timeout=120, store_widget_state=False).execute()
    return book


def told(book: Any) -> list[list[tuple[dict[str, str], str]]]:
    """What each cell that shows something has to show."""
    truth: dict[str, Any] = json.loads(book.cells[-2].outputs[0].text)
    return list(truth.values())


@pytest.mark.slow
def test_a_notebook_file_has_its_pictures(executed: Any) -> None:
    pictures = [
        output.data["image/svg+xml"] for cell in executed.cells[:-1] for output in cell.outputs if "data" in output
    ]
    for picture, truth in zip(pictures, told(executed), strict=True):
        assert_true(picture, truth)


@pytest.mark.slow
def test_the_picture_of_a_live_run_is_that_of_its_end(executed: Any) -> None:
    (output,) = executed.cells[-1].outputs
    assert "The run is over: 1 op call and 1 backward sweep." in output.data["image/svg+xml"]
    assert "The run is over: 1 op call and 1 backward sweep." in output.data["text/plain"]


@pytest.mark.slow
def test_plain_nbconvert_shows_the_pictures_in_html(executed: Any) -> None:
    html, _ = HTMLExporter().from_notebook_node(executed)
    pictures = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    for picture, truth in zip(pictures[:-1], told(executed), strict=True):
        assert_true(b64decode(picture).decode(), truth)


@pytest.mark.slow
def test_plain_nbconvert_shows_the_pictures_in_markdown(executed: Any) -> None:
    text, resources = MarkdownExporter().from_notebook_node(executed)
    files = re.findall(r"!\[svg\]\((.+?\.svg)\)", text)
    for file, truth in zip(files[:-1], told(executed), strict=True):
        assert_true(resources["outputs"][file].decode(), truth)


def test_an_explanation_says_all_of_its_summary(names: dict[str, Any]) -> None:
    whole = eval(CODE["Explanation"], names)
    assert isinstance(whole, aw.Explanation)
    assert whole.summary in whole._repr_mimebundle_()["text/plain"]
