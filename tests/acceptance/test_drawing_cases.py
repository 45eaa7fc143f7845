"""Cases A32 to A35: labels like markup, a graph too large to draw, a widget that stays blank, handlers that pile up."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import autodiff_widgets as aw
import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from tests.acceptance import cases_adapter
from tests.acceptance.cases_adapter import SVG, chain, dot, doublings, network, show

LABELS = """
labels = ['x < y', 'lambda> <map', '<b>bold</b>', '<b> <c>', 'say "hi"', '<script>alert(1)</script>', '']
"""


def ran(sketch: str) -> dict[str, Any]:
    """The variables that a sketch leaves behind."""
    names = {name: getattr(cases_adapter, name) for name in cases_adapter.__all__}
    exec(sketch, names)
    return names


if shutil.which("dot"):

    def test_the_layout_program_shows_every_label_as_typed() -> None:
        case = ran(LABELS + "svg = layout(dot(chain_named(labels))); shown = texts_of_nodes(svg)")
        assert case["shown"] == case["labels"]
        assert "<b>" not in case["svg"] and "<script" not in case["svg"]


def test_no_label_becomes_markup_in_our_picture_or_page() -> None:
    case = ran(LABELS + "bundle = show(chain_named(labels)); svg, html_ = bundle['image/svg+xml'], bundle['text/html']")
    for text in (case["svg"], case["html_"]):
        assert not re.search(r"<(b|c|map)\b|<script>", text)
    titles = [title.text for title in ElementTree.fromstring(case["svg"]).iter(f"{SVG}title")]
    for label in case["labels"]:
        assert any((title or "").startswith(label) for title in titles), label


@pytest.mark.slow
def test_a_graph_that_is_too_large_is_cut_with_a_note_of_both_numbers() -> None:
    bundle = show(chain(5000))
    (shown, whole) = re.findall(r"Showing the first (\d+) of (\d+) nodes", bundle["image/svg+xml"])[0]
    assert int(whole) == 5001 and 0 < int(shown) < 5001
    assert len(bundle["text/plain"]) < 2000


def test_a_value_that_is_used_twice_is_drawn_once_and_all_text_grows_with_the_graph() -> None:
    picture = ElementTree.fromstring(show(doublings(80))["image/svg+xml"])
    assert len([group for group in picture.iter(f"{SVG}g") if group.get("class", "").startswith("node")]) == 81
    for make in (chain, doublings, network):
        small, large = make(10), make(40)
        assert len(dot(large)) / len(large) <= 1.2 * len(dot(small)) / len(small)
        assert dot(large).count("->") == sum(1 for _ in large.edges) + len(large.outputs)


def test_beside_the_widget_there_is_a_picture_without_script_and_a_short_text() -> None:
    case = ran("b = show(network(3)); kinds = set(b); plain = b['text/plain']; fallback = b['image/svg+xml']")
    assert {"application/vnd.jupyter.widget-view+json", "image/svg+xml", "text/plain"} <= case["kinds"]
    assert not re.search(r"<script|https?://(?!www\.w3\.org/2000/svg)|\son\w+=", case["fallback"])
    nodes = [
        g for g in ElementTree.fromstring(case["fallback"]).iter(f"{SVG}g") if g.get("class", "").startswith("node")
    ]
    assert len(nodes) == len(network(3))
    assert len(case["plain"]) < 2000 and "nodes" in case["plain"]


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    """A shell of its own, which is there while a test runs."""
    InteractiveShell.clear_instance()
    yield InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    InteractiveShell.clear_instance()


def test_a_cell_that_runs_again_replaces_its_handlers_and_frees_them(shell: InteractiveShell) -> None:
    sketch = """
s = control(); hits = []
for _ in range(5): panel(s, on_change=hits.append)
set_value(s, 3); k = len(hits); old = live_panels(s)
"""
    case = ran(sketch)
    assert (case["k"], case["old"], case["s"].others) == (1, 1, ["3"])


def test_within_one_run_several_handlers_may_come_from_one_place(shell: InteractiveShell) -> None:
    shell.user_ns |= {"view": aw.GraphView(chain(1)), "heard": []}
    cell = "for name in 'ab':\n    view.observe(lambda change, name=name: heard.append(name), 'selected')"
    for _ in range(2):
        shell.run_cell(cell, store_history=True).raise_error()
    shell.user_ns["view"].selected = "n1"
    assert shell.user_ns["heard"] == ["a", "b"]
