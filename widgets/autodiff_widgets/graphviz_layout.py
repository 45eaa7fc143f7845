"""Where Graphviz puts the nodes and edges of a graph: written in its language, run with a time limit, read back.

A forward and backward graph of 300 nodes takes ``dot`` 15 s as it is, because backward nodes hang on all levels of forward. So
an edge between two backward nodes is written the other way round, and an edge for a value that backward reuses has no say
in the ranks: the picture becomes a ladder, in 0.14 s.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Iterator, Sequence

from autodiff_lab.graph import Graph

from .routes import Box, Line, Point, way_of

LIMIT = 5.0  # seconds; a reader waits no longer for a picture
FAST_FROM = 300  # nodes; 1,000 take 0.15 s with the rough network simplex, and more than 20 s without
POINTS = 72.0  # to an inch: Graphviz wants sizes in inches and answers in points, which are our px
MARGIN = 24.0

_EVEN = {"nodesep": "0.4", "ranksep": "0.6"}
_FAST = {"nslimit": "0.1", "nslimit1": "0.1", "mclimit": "0.2"}


class NoGraphvizError(RuntimeError):
    """Graphviz cannot place the graph; the text says why, and what to do."""


def graphviz_places(
    graph: Graph, widths: Sequence[float], height: float
) -> tuple[tuple[Box, ...], tuple[Line, ...], float, float]:
    """Boxes, lines, width and height of the page, as ``dot`` places them.

    Raises:
        NoGraphvizError: no Graphviz is installed, it failed, or it needed more than 5 seconds.
    """
    placed = json.loads(run_graphviz(dot_text(graph, widths, height)))
    page_width, page_height = map(float, placed["bb"].split(",")[2:])

    def point(text: str) -> Point:
        x, y = map(float, text.split(","))
        return x + MARGIN, page_height - y + MARGIN  # Graphviz counts upwards

    boxes: dict[int, Box] = {}
    for found in placed.get("objects", ()):
        node = int(found["name"])
        x, y = point(found["pos"])
        boxes[node] = Box(node, x - widths[node] / 2, y - height / 2, widths[node], height)
    lines = tuple(
        _line(graph, found["id"], [point(text) for text in found["pos"].split()]) for found in placed.get("edges", ())
    )
    return tuple(boxes[node.id] for node in graph), lines, page_width + 2 * MARGIN, page_height + 2 * MARGIN


def dot_text(graph: Graph, widths: Sequence[float], height: float) -> str:
    """The graph in Graphviz's language: boxes without text, and edges that bear source, consumer and argument."""
    try:
        import graphviz
    except ImportError:
        raise NoGraphvizError("The Python package graphviz is not installed.") from None
    dot = graphviz.Digraph(graph_attr=_EVEN | (_FAST if len(graph) >= FAST_FROM else {}))
    dot.attr("node", shape="box", label="", fixedsize="true", height=f"{height / POINTS:.4f}")
    dot.attr("edge", dir="none")  # lines end at the boxes; the arrowheads are ours
    for node in graph:
        dot.node(str(node.id), width=f"{widths[node.id] / POINTS:.4f}")
    for node in graph:
        for argument, source in enumerate(node.inputs):
            dot.edge(
                *_edge(graph, source, node.id), id=f"{source} {node.id} {argument}", **_weight(graph, source, node.id)
            )
    return str(dot.source)


def _edge(graph: Graph, source: int, consumer: int) -> tuple[str, str]:
    """Tail and head as Graphviz is told: an edge of the backward pass upside down."""
    ends = (str(source), str(consumer))
    return ends[::-1] if way_of(graph, source, consumer) == "backward" else ends


def _weight(graph: Graph, source: int, consumer: int) -> dict[str, str]:
    """How much say an edge has: one for a saved value has none in the ranks."""
    if way_of(graph, source, consumer) != "saved":
        return {}
    return {"constraint": "false"} | ({"weight": "0", "minlen": "0"} if len(graph) >= FAST_FROM else {})


def _line(graph: Graph, name: str, points: list[Point]) -> Line:
    """An edge's way from its source to its consumer, as a curve with two control points a piece (Bézier)."""
    source, consumer, argument = map(int, name.split())
    way = way_of(graph, source, consumer)
    return Line(source, consumer, argument, way, tuple(points[::-1] if way == "backward" else points), curved=True)


# ----------------------------------------------------------------------------------------------------- running Graphviz


def executables() -> Iterator[str]:
    """Every Graphviz that is installed: the system's ``dot``, then the one of the package ``graphviz-pure``."""
    places = ((None, "dot"), (None, "graphviz-pure"), (sysconfig.get_path("scripts"), "graphviz-pure"))
    found = (shutil.which(name, path=path) for path, name in places)
    yield from dict.fromkeys(path for path in found if path is not None)


def run_graphviz(text: str) -> str:
    """What Graphviz answers, as JSON; one executable is asked after the other, and all together for at most 5 seconds."""
    deadline = time.monotonic() + LIMIT
    reasons = []
    for executable in executables():
        try:
            done = subprocess.run(
                [executable, "-Kdot", "-Tjson0"],
                input=text, capture_output=True, encoding="utf-8", check=True, timeout=deadline - time.monotonic(),
            )  # fmt: skip
            return done.stdout
        except subprocess.TimeoutExpired:
            raise NoGraphvizError(f"Graphviz needed more than {LIMIT:g} seconds.") from None
        except (OSError, subprocess.CalledProcessError) as error:
            reasons.append(_reason(error))
    raise NoGraphvizError(
        f"Graphviz failed ({'; '.join(reasons)})." if reasons else "Graphviz is not installed (no program `dot`)."
    )


def _reason(error: OSError | subprocess.CalledProcessError) -> str:
    """The first line of what a program says about its failure."""
    said = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else ""
    return (said or str(error)).splitlines()[0]
