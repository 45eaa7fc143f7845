"""Equal graphs, graphs as DOT that Graphviz shows as typed, and graphs as JSON and back."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.graph import Graph, Node
from tests.drawn_graphs import FUNCTIONS, GRAPHS

EVERY_GRAPH = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
AWKWARD = [
    'say "hi"',
    "a < b & c > d",
    "&amp; &lt; &#65;",
    "back\\slash \\n \\N \\l",
    "two\nlines",
    "🦊 变量 γ́",
    "\\",
    '"',
    "{|}",
]


def indexed(x: Any) -> Any:
    """Attributes of every kind that ops take: slices, tuples, arrays, None, Ellipsis, dtypes, NumPy scalars."""
    taken = (
        x[1:, np.array([2, 0, 2])],
        x[..., None, 0],
        x[np.array([True, False, True])],
        x[np.int64(1)],
        x[(0, slice(None))],
    )
    narrow = [ops.astype(x, dtype=kind) for kind in (np.float32, np.dtype("float32"), "float32", float)]
    special = x * np.array([np.nan, np.inf, -np.inf, -0.0]) + float("inf")
    return {"taken": taken, "narrow": narrow, "special": [special, ops.sum(x, axis=(0, -1), keepdims=True)]}


# ------------------------------------------------------------------------------------------------------------ equality


@pytest.mark.parametrize("name", FUNCTIONS)
def test_recording_twice_gives_equal_graphs_with_equal_hashes(name: str) -> None:
    f, arguments = FUNCTIONS[name]
    one, other = ad.record(f, *arguments), ad.record(f, *arguments)
    assert one == other and hash(one) == hash(other)


@EVERY_GRAPH
def test_names_scopes_and_lines_are_free(graph: Graph) -> None:
    renamed = [replace(n, name=f"n{n.id}", scope="s", source=None, serial=-n.id, saved=()) for n in graph]
    assert replace(graph, nodes=tuple(renamed), name="other") == graph


def changed(graph: Graph, place: int, **facts: Any) -> Graph:
    nodes = list(graph.nodes)
    nodes[place] = replace(nodes[place], **facts)
    return replace(graph, nodes=tuple(nodes))


def test_every_difference_that_changes_the_computation_is_seen() -> None:
    graph = ad.record(lambda x, y: (ops.sum(x * y, axis=0) * np.array([1.0, 2.0]), x), np.ones((3, 2)), np.ones((3, 2)))
    assert [node.label for node in graph] == ["input", "input", "mul", "sum", "constant", "mul"]
    others = [
        changed(graph, 2, op=ad.registry["add"]),
        changed(graph, 2, inputs=(1, 0)),
        changed(graph, 3, attributes={**graph.nodes[3].attributes, "axis": 1}),
        changed(graph, 3, attributes={**graph.nodes[3].attributes, "axis": (0,)}),
        changed(graph, 0, shape=(2, 3)),
        changed(graph, 0, dtype=np.dtype("float32")),
        changed(graph, 0, device="cuda:0"),
        changed(graph, 4, value=np.array([1.0, 2.5])),
        replace(graph, outputs=graph.outputs[:1]),
        replace(graph, inputs=(1, 0)),
        replace(graph, nodes=graph.nodes[:-1]),
    ]
    for number, other in enumerate(others):
        assert other != graph, number
    assert graph != "graph" and graph == changed(graph, 4, value=np.array([1.0, 2.0]))


# ----------------------------------------------------------------------------------------------------------------- DOT

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|->|[{}\[\];,=]|[A-Za-z_0-9]+|\s+', re.DOTALL)


def tokens_of(dot: str) -> list[str]:
    """The tokens of a DOT text; everything in it must be one."""
    found = [match for match in TOKEN.finditer(dot)]
    assert "".join(match[0] for match in found) == dot
    return [match[0] for match in found if not match[0].isspace()]


def shown(quoted: str) -> str:
    """What Graphviz shows for a quoted text: escapes after a backslash first, then entities."""
    text = re.sub(r"\\(.)", lambda match: {"n": "\n"}.get(match[1], match[1]), quoted[1:-1], flags=re.DOTALL)
    return re.sub(r"&amp;", "&", text)


def labels_of(dot: str) -> list[str]:
    tokens = tokens_of(dot)
    return [
        shown(tokens[i + 2]) for i, token in enumerate(tokens) if token == "label" and tokens[i - 2].startswith("n")
    ]


def named(text: str) -> Graph:
    return Graph((Node(0, "input", text, (2,), np.dtype("float64")),), (0,), (0,), name=text)


@EVERY_GRAPH
def test_dot_is_well_formed_and_has_every_node_and_edge(graph: Graph) -> None:
    tokens = tokens_of(graph.to_dot())
    assert tokens[0] == "digraph" and tokens.count("{") == tokens.count("}") == 1
    assert tokens.count("->") == len(list(graph.edges)) + len(graph.outputs)
    assert len(labels_of(graph.to_dot())) == len(graph)


@pytest.mark.parametrize("text", AWKWARD)
def test_a_name_appears_in_the_label_as_typed(text: str) -> None:
    assert labels_of(named(text).to_dot()) == [f"{text}\ninput (2,)"]


def test_what_no_picture_can_show_gets_a_sign() -> None:
    (label,) = labels_of(named("a\x00b\x1bc\x9bd\ud800e").to_dot())
    assert label.startswith("a␀b␛c\ufffdd\ufffde\n")


if shutil.which("dot"):  # where there is no Graphviz, the reader above stands for it

    @pytest.mark.parametrize("graph", [*GRAPHS.values(), *map(named, AWKWARD)])
    def test_graphviz_accepts_the_text_and_shows_the_labels(graph: Graph) -> None:
        command = ["dot", "-Tsvg"]
        drawn = subprocess.run(command, input=graph.to_dot().encode(), capture_output=True, check=True)
        assert not drawn.stderr or b"font" in drawn.stderr.lower()
        space = "{http://www.w3.org/2000/svg}"
        groups = ElementTree.fromstring(drawn.stdout).iter(f"{space}g")
        seen = {}
        for group in groups:
            title = group.find(f"{space}title")
            if group.get("class") == "node" and title is not None:
                seen[title.text] = [str(line.text or "").replace("\xa0", " ") for line in group.findall(f"{space}text")]
        for node, label in zip(graph, labels_of(graph.to_dot()), strict=True):
            lines = [line for line in label.split("\n") if line.strip()]
            assert [line for line in seen[f"n{node.id}"] if line.strip()] == lines


# ---------------------------------------------------------------------------------------------------------------- JSON


@EVERY_GRAPH
def test_json_gives_the_same_graph_again(graph: Graph) -> None:
    text = graph.to_json()
    again = Graph.from_json(text)
    assert again == graph and again.to_json() == text
    for node, other in zip(graph, again, strict=True):
        facts = ("name", "scope", "phase", "saved", "origin", "serial", "source", "dtype", "device")
        assert [getattr(node, fact) for fact in facts] == [getattr(other, fact) for fact in facts]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_graph_that_was_read_runs_like_the_one_that_was_written(name: str) -> None:
    f, arguments = FUNCTIONS[name]
    leaves = [leaf for argument in arguments for leaf in flat(argument)]
    graph = ad.record(f, *arguments)
    assert np.array_equal(Graph.from_json(graph.to_json())(*leaves), graph(*leaves))


def flat(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, (list, tuple)) else [value]


@pytest.mark.filterwarnings("ignore:invalid value")
def test_attributes_constants_and_nesting_of_every_kind_survive() -> None:
    graph = ad.record(indexed, np.ones((3, 4)))
    again = Graph.from_json(graph.to_json())
    assert again == graph
    x = np.random.default_rng(1).standard_normal((3, 4))
    before, after = graph(x), again(x)
    assert list(after) == list(before) and type(after["taken"]) is tuple and type(after["narrow"]) is list
    for key in before:
        for one, other in zip(before[key], after[key], strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype


@pytest.mark.parametrize("name", [name for name in ad.ops.__all__ if name in ad.registry])
def test_every_op_survives_with_the_attributes_of_its_samples(name: str) -> None:
    op = ad.registry[name]
    for operands, attributes in op.sample_calls():
        arrays = [o for o in operands if isinstance(o, np.ndarray)]

        def call(*given: Any, operands: Any = operands, attributes: Any = attributes) -> Any:
            rest = iter(given)
            return op.apply([next(rest) if isinstance(o, np.ndarray) else o for o in operands], attributes)

        graph = ad.record(call, *arrays)
        again = Graph.from_json(graph.to_json())
        assert again == graph
        np.testing.assert_array_equal(again(*arrays), graph(*arrays))


def damaged(**changes: Any) -> str:
    content = json.loads(ad.record(lambda x: ops.sum(x * 2.0), np.ones(3)).to_json())
    for path, value in changes.items():
        *way, last = [int(part) if part.isdigit() else part for part in path.split("__")]
        place = content
        for part in way:
            place = place[part]
        place[last] = value
    return json.dumps(content)


MISTAKES: dict[str, tuple[str, str]] = {
    "no JSON": ("{", "not JSON"),
    "other JSON": ("[]", "expected the format"),
    "other version": (damaged(version=99), "version 1"),
    "no nodes": (damaged(nodes=3), "expected 'nodes' to be a list"),
    "unknown op": (damaged(nodes__2__op="unheard_of"), "node 2: op 'unheard_of' is not registered; run the code"),
    "unknown kind": (damaged(nodes__0__kind="magic"), "node 0: the kind must be input, constant or op, got 'magic'"),
    "input that is not there": (damaged(nodes__2__inputs=[0, 7]), "node 2: inputs: expected a node from 0 to 1"),
    "input that comes later": (damaged(nodes__2__inputs=[0, 3]), "stands before, got 3"),
    "output that is not there": (damaged(outputs=[-1]), "outputs: expected a node"),
    "too few inputs": (damaged(nodes__2__inputs=[]), "node 2"),
    "shape that the op does not give": (damaged(nodes__3__shape=[5]), r"it says shape \(5,\), but op sum gives \(\)"),
    "constant of another shape": (damaged(nodes__1__shape=[5]), "its value has"),
    "attribute of another op": (damaged(nodes__3__attributes={"way": 1}), r"op sum has the attributes \['axis', 'keepdims'\]"),
    "attribute of unknown type": (damaged(nodes__3__attributes__axis={"pickle": "x"}), "expected one of the types"),
    "no dtype": (damaged(nodes__0__dtype="float1000"), "is no dtype"),
    "no type": (damaged(nodes__3__attributes__axis={"type": "builtins.eval"}), "is no type"),
    "saved value that is not there": (damaged(nodes__2__saved=[44]), "saved and origin"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_damaged_file_is_refused_by_name(name: str) -> None:
    text, message = MISTAKES[name]
    with pytest.raises(ad.GraphFormatError, match=message):
        Graph.from_json(text)


def test_what_cannot_be_written_is_refused_by_name() -> None:
    graph = ad.record(lambda x: ops.sum(x), np.ones(3))
    strange = changed(graph, 1, attributes={"axis": object(), "keepdims": False})
    with pytest.raises(TypeError, match=r"node 1 \(sum\), axis: a object cannot be written"):
        strange.to_json()
