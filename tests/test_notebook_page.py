"""A notebook as one page: players where its widgets have a state, static pictures where not, maths, links, no request."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any
from weakref import WeakSet

import autodiff_widgets as aw
import nbformat
import pytest
from autodiff_widgets.notebook_page import WIDGET_STATE, WIDGET_VIEW, NotebookPage, ProseWithMaths
from autodiff_widgets.pages import embed
from autodiff_widgets.scene import Change, Frame, Pane, Scene
from autodiff_widgets.view import View, send_insides
from nbconvert.filters.markdown_mistune import MarkdownWithMath
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from traitlets.config import Config

from tests.drawn_graphs import diamond
from tests.hand_written import scene
from tests.saved_pages import players_of

ROOT = Path(__file__).parents[1]


def state_of(*widgets: Any) -> dict[str, Any]:
    """The widgets and all that they consist of, as a notebook keeps them."""
    state: dict[str, Any] = {}
    waiting = list(widgets)
    while waiting:
        widget = waiting.pop()
        state[widget.model_id] = {"model_name": widget._model_name, "state": widget.get_state()}
        waiting += getattr(widget, "children", ())
    return {WIDGET_STATE: {"state": state}}


def book_of(*widgets: Any, saved: bool = True) -> nbformat.NotebookNode:
    """An executed notebook with a cell for each widget."""
    cells = [new_markdown_cell("# A lesson about `f`\n\nthe slope $f'(x)$, see [the next](20_next.ipynb#there)")]
    for widget in widgets:
        data = {WIDGET_VIEW: {"model_id": widget.model_id}, "text/plain": repr(widget)}
        data |= {"image/svg+xml": widget.svg()} if isinstance(widget, View) else {}
        cells.append(new_code_cell("show(x < y)", outputs=[new_output("display_data", data)]))
    return new_notebook(cells=cells, metadata={"widgets": state_of(*widgets)} if saved else {})


def page_of(book: nbformat.NotebookNode) -> str:
    return str(NotebookPage().from_notebook_node(book)[0])


def test_a_widget_with_a_state_becomes_a_player_where_it_stood() -> None:
    one, two = View(scene("one </script><b>"), frame=2, link="a"), View(scene("two"))
    page = page_of(book_of(one, two))
    assert re.findall(r'data-scene="(\d)"', page) == ["0", "1"]
    players = players_of(page)
    assert [player["scene"] for player in players] == [one.scene.as_json(), two.scene.as_json()]
    assert [(player["frame"], player["link"]) for player in players] == [(2, "a"), (0, "page")]
    assert "<img" not in page and "one &lt;/script&gt;&lt;b&gt;" in page


def test_views_in_a_box_become_players_below_each_other_with_the_boxs_prose() -> None:
    whole = aw.explain(diamond, 0.3)
    page = page_of(book_of(whole))
    assert [player["scene"]["title"] for player in players_of(page)] == [view.scene.title for view in whole.views]
    assert "Forward has 3 ops" in page


def test_without_a_state_the_static_picture_stays() -> None:
    page = page_of(book_of(View(scene()), saved=False))
    assert "<img alt=" in page and "data:image/svg+xml;base64," in page
    assert players_of(page) == []


def test_formulas_are_mathml_and_what_is_no_formula_stays_as_typed() -> None:
    book = new_notebook(cells=[new_markdown_cell("$$\\frac{a}{b}$$ and $\\begin{odd$ and `$x$`")])
    page = page_of(book)
    assert "<mfrac>" in page and "<code>\\begin{odd</code>" in page and "<code>$x$</code>" in page


LESSONS = sorted((ROOT / "notebooks" / "lessons").glob("*.ipynb"))


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_formula_of_every_lesson_can_be_drawn(path: Path) -> None:
    cells = nbformat.read(path, 4).cells
    prose = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    formulas = re.findall(r"\$\$.+?\$\$|\$[^$`\n]+\$", re.sub(r"`[^`]*`", "", prose), re.DOTALL)
    assert MarkdownWithMath(ProseWithMaths(escape=False)).render(prose).count("</math>") == len(formulas)


def test_a_lesson_is_a_page_that_asks_for_nothing() -> None:
    page, _ = NotebookPage().from_filename(str(ROOT / "notebooks" / "lessons" / "20_forward_mode.ipynb"))
    assert not re.search(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(?!data:)', page)


def test_links_lead_to_pages_and_the_title_is_the_first_heading() -> None:
    page = page_of(book_of())
    assert 'href="20_next.html#there"' in page and "<title>A lesson about f</title>" in page


def test_a_page_may_run_the_player_and_nothing_else() -> None:
    book = new_notebook(
        cells=[new_code_cell("", outputs=[new_output("display_data", {"application/javascript": "run()"})])]
    )
    page = page_of(book)
    assert "run()" not in page
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert "default-src 'none'" in policy and "script-src 'sha256-" in policy


def test_nbconvert_finds_the_exporter_by_its_name() -> None:
    found = re.search(r'^autodiff_lab_html = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found is not None
    assert EntryPoint("autodiff_lab_html", found[1], "nbconvert.exporters").load() is NotebookPage


# ------------------------------------------------------------------------------------------------------------- insides

SQUARE = '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="20">{}</svg>'


class Nested(View):
    """Elements "0" and "1", in each of which are two more, without end."""

    def __init__(self, **traits: Any) -> None:
        super().__init__(self.inside(""), **traits)

    def inside(self, key: str) -> Scene:
        """The two elements inside an element."""
        keys = (f"{key}0", f"{key}1")
        pane = Pane(SQUARE.format("".join(f'<g data-op="{key}"/>' for key in keys)), "two")
        return Scene(f"inside {key}", (pane,), (Frame("Two.", (Change(keys[0], "done"),)),), opens=keys)


def opened(page: str) -> list[list[str]]:
    return [sorted(player["inner"], key=lambda key: (len(key), key)) for player in players_of(page)]


def test_a_page_holds_what_is_inside_level_by_level_until_its_bytes_are_spent(tmp_path: Path) -> None:
    one = len(str(Nested().scene.as_json()))
    page = Nested().save_html(tmp_path / "page.html", Nested(), insides=7 * one).read_text()
    first, second = opened(page)
    assert first[:2] == second[:2] == ["0", "1"] and 5 <= len(first) + len(second) <= 8
    assert opened(Nested().save_html(tmp_path / "page.html", insides=0).read_text()) == [[]]


def test_an_inside_that_cannot_be_shown_says_why(tmp_path: Path) -> None:
    class Broken(Nested):
        def inside(self, key: str) -> Scene:
            if key:
                raise KeyError("nothing was recorded here")
            return super().inside(key)

    (player,) = players_of(Broken().save_html(tmp_path / "page.html").read_text())
    assert player["inner"]["0"] == {"error": "nothing was recorded here"}


def test_views_send_what_is_inside_without_being_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(View, "alive", WeakSet())
    view = Nested()
    send_insides(2000)
    assert {"0", "1"} <= set(view.inner)


def test_players_without_insides_are_left_as_they_are() -> None:
    player: dict[str, Any] = {"scene": scene().as_json()}
    embed([player], lambda number, key: None, 1000)
    assert player == {"scene": scene().as_json(), "inner": {}}


@pytest.mark.slow
@pytest.mark.alone
def test_a_notebook_that_is_run_on_the_way_brings_its_insides(tmp_path: Path) -> None:
    places = [str(ROOT), str(ROOT / "widgets")]
    source = f"import sys\nsys.path[:0] = {places}\nfrom tests.test_notebook_page import Nested\nNested()"
    book = new_notebook(cells=[new_code_cell(source)], metadata={"kernelspec": {"name": "python3", "display_name": ""}})
    nbformat.write(book, tmp_path / "book.ipynb")
    execute = Config({"ExecutePreprocessor": {"enabled": True}})  # what --execute says
    page, _ = NotebookPage(config=execute).from_filename(str(tmp_path / "book.ipynb"))
    assert {"0", "1", "00"} <= set(players_of(page)[0]["inner"])
    assert page.count('class="input"') == 1, "the cell that asks for insides is no part of the page"
