"""Graphviz as a layout: the laws of a placed graph hold for it too; where it is missing, broken or slow a ladder is drawn."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import autodiff_widgets as aw
import pytest
from autodiff_widgets import graphviz_layout
from autodiff_widgets.graphviz_layout import dot_text, executables
from autodiff_widgets.layout import place
from autodiff_widgets.routes import way_of

from autodiff_lab.graph import Graph
from tests.drawn_graphs import GRAPHS, joint, mlp_arguments, mlp_loss

# Stands for Graphviz: puts the nodes in one column and answers in its format.
STAND_IN = f"""#!{sys.executable}
import json, re, sys
text = sys.stdin.read()
nodes = re.findall(r"^\\t(\\d+) \\[", text, re.M)
edges = re.findall(r"^\\t(\\d+) -> (\\d+) .*?id=\\"([^\\"]*)\\"", text, re.M)
at = {{name: 100 * place for place, name in enumerate(nodes)}}
print(json.dumps({{
    "bb": f"0,0,300,{{100 * len(nodes)}}",
    "objects": [{{"name": name, "pos": f"150,{{y}}"}} for name, y in at.items()],
    "edges": [
        {{"id": id, "pos": f"150,{{at[tail]}} 150,{{at[tail]}} 150,{{at[head]}} 150,{{at[head]}}"}} for tail, head, id in edges
    ],
}}))
"""
BROKEN = "#!/bin/sh\necho 'Format: \"json0\" not recognized' >&2\nexit 1\n"
SLOW = "#!/bin/sh\necho $$ > {folder}/pid\nexec sleep 60\n"

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """``install(dot=TEXT)``: from now on exactly these programs are installed."""
    monkeypatch.setattr(graphviz_layout.sysconfig, "get_path", lambda name: str(tmp_path / "none"))

    def install_only(**programs: str) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        for name, text in programs.items():
            path = tmp_path / name.replace("_", "-")
            path.write_text(text.replace("{folder}", str(tmp_path)).replace("sleep", "/bin/sleep"))
            path.chmod(0o755)

    return install_only


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are scripts")
class TestWithoutGraphviz:
    def test_where_it_is_missing_the_ladder_is_drawn_and_says_so(self, install: Install) -> None:
        install()
        graph = GRAPHS["joint mlp"]
        ladder, drawn = place(graph), place(graph, engine="graphviz")
        assert (drawn.boxes, drawn.lines) == (ladder.boxes, ladder.lines)
        view = aw.GraphView(graph, layout="graphviz")
        for text in (drawn.notice, view.frames[0].caption, view.scene.panes[0].svg):
            assert "Graphviz is not installed" in text and "drawn as a ladder instead" in text

    def test_where_dot_is_broken_the_package_graphviz_pure_is_asked(self, install: Install) -> None:
        install(dot=BROKEN, graphviz_pure=STAND_IN)
        drawn = place(GRAPHS["diamond"], engine="graphviz")
        assert not drawn.notice and len({box.centre for box in drawn.boxes}) == 1

    def test_a_graphviz_that_fails_is_quoted(self, install: Install) -> None:
        install(dot=BROKEN)
        notice = place(GRAPHS["diamond"], engine="graphviz").notice
        assert 'Graphviz failed (Format: "json0" not recognized)' in notice

    def test_a_slow_graphviz_is_ended_when_its_time_is_over(
        self, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(graphviz_layout, "LIMIT", 0.3)
        install(dot=SLOW, graphviz_pure=STAND_IN)
        start = time.monotonic()
        drawn = place(GRAPHS["diamond"], engine="graphviz")
        assert time.monotonic() - start < 3
        assert "Graphviz needed more than 0.3 seconds" in drawn.notice
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)

    def test_without_the_python_package_the_ladder_is_drawn(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "graphviz", None)
        notice = place(GRAPHS["diamond"], engine="graphviz").notice
        assert "The Python package graphviz is not installed" in notice

    def test_what_it_answers_becomes_boxes_and_lines_from_source_to_consumer(self, install: Install) -> None:
        install(dot=STAND_IN)
        graph = GRAPHS["joint mlp"]
        check_ends(graph, place(graph, lambda node: 90.0 + node.id, engine="graphviz"))


def check_ends(graph: Graph, layout: object) -> None:
    """Every node has its box, and every use a line that begins at the source's box and ends at the consumer's."""
    boxes, lines = layout.boxes, layout.lines  # type: ignore[attr-defined]
    assert [box.node for box in boxes] == [node.id for node in graph]
    uses = [(i, node.id, argument) for node in graph for argument, i in enumerate(node.inputs)]
    assert sorted((line.source, line.consumer, line.argument) for line in lines) == sorted(uses)
    for line in lines:
        for node, (x, y) in ((line.source, line.points[0]), (line.consumer, line.points[-1])):
            box = boxes[node]
            assert box.x - 3 <= x <= box.right + 3 and box.y - 3 <= y <= box.bottom + 3


GRAPHVIZ = pytest.mark.skipif(not list(executables()), reason="no Graphviz found")


@GRAPHVIZ
@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "chain of 300"])
def test_graphviz_places_every_graph_without_overlap(name: str) -> None:
    graph = GRAPHS[name]
    layout = place(graph, lambda node: 60.0 + 7 * (node.id % 9), engine="graphviz")
    assert not layout.notice
    check_ends(graph, layout)
    for one, other in combinations(layout.boxes, 2):
        apart = one.right < other.x or other.right < one.x or one.bottom < other.y or other.bottom < one.y
        assert apart
    corners = [(box.x, box.y) for box in layout.boxes] + [(box.right, box.bottom) for box in layout.boxes]
    assert all(0 <= x <= layout.width and 0 <= y <= layout.height for x, y in corners)


@GRAPHVIZ
def test_forward_goes_down_and_backward_climbs() -> None:
    graph = GRAPHS["joint mlp"]
    layout = place(graph, engine="graphviz")
    for source, consumer in graph.edges:
        way = way_of(graph, source, consumer)
        upper, lower = (source, consumer) if way == "forward" else (consumer, source)
        assert way == "saved" or layout.boxes[upper].bottom < layout.boxes[lower].y


@GRAPHVIZ
def test_a_network_of_400_nodes_is_placed_within_the_limit() -> None:
    graph = joint(mlp_loss, *mlp_arguments(30))
    assert len(graph) > graphviz_layout.FAST_FROM
    assert not place(graph, engine="graphviz").notice


def test_no_name_of_a_user_reaches_graphviz() -> None:
    text = dot_text(GRAPHS["hostile"], [80.0] * len(GRAPHS["hostile"]), 46.0)
    assert text.isascii() and "script" not in text and "onload" not in text


def test_an_unknown_layout_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"layout: expected one of 'ladder', 'graphviz', got 'neato'"):
        aw.GraphView(GRAPHS["square"], layout="neato")


def test_a_layout_that_is_no_name_is_the_widgets_own() -> None:
    view = aw.GraphView(GRAPHS["square"], layout={"width": "50%"})
    assert view.layout.width == "50%"
