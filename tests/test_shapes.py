"""Shapes that travel through a graph: what the rules say about known, named and unknown sizes, and never something wrong."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import events, faults, layers, ops
from autodiff_lab.operand_rules import is_known, may_be
from autodiff_lab.shapes import PartialShape
from tests.drawn_graphs import GRAPHS

NAMES = sorted(ad.registry.names())
SIZES = (0, 1, 2, 3, 5, 8, 64, 201, 5001)


def sampled(name: str) -> list[ad.Graph]:
    """A graph of one op for each of its samples; its inputs are the arrays."""
    return [graph_of_call(ad.registry[name], *call) for call in ad.registry[name].sample_calls()]


def graph_of_call(op: Any, operands: Any, attributes: Any) -> ad.Graph:
    places = [place for place, operand in enumerate(operands) if isinstance(operand, np.ndarray)]

    def f(*arrays: Any) -> Any:
        given = dict(zip(places, arrays, strict=True))
        return op.apply([given.get(place, operand) for place, operand in enumerate(operands)], attributes)

    return ad.record(f, *(operands[place] for place in places))


def inputs_of(graph: ad.Graph) -> list[ad.Node]:
    return [graph.nodes[place] for place in graph.inputs]


def forgotten(random: Random, node: ad.Node) -> PartialShape:
    """The shape of an input of which some sizes are named or unknown."""
    if random.random() < 0.1:
        return None
    return tuple(random.choice((size, size, None, "a", "b")) for size in node.shape)


def instance(random: Random, node: ad.Node, partial: PartialShape, named: dict[str, int]) -> tuple[int, ...]:
    """A shape in whole numbers that an input may have of which this much is known."""

    def any_size(recorded: int) -> int:
        return random.choice((recorded, recorded, 2 * recorded, random.choice(SIZES)))

    whole = []
    for size, recorded in zip(node.shape if partial is None else partial, node.shape, strict=True):
        if isinstance(size, str):
            size = named.setdefault(size, any_size(recorded))
        whole.append(any_size(recorded) if size is None or partial is None else size)
    return tuple(whole)


# ----------------------------------------------------------------------------------------------------------- known sizes


@pytest.mark.parametrize("name", NAMES)
def test_with_known_shapes_the_rules_say_what_was_recorded(name: str) -> None:
    for graph in sampled(name):
        found = ad.infer_shapes(graph)
        assert found.shapes == tuple(node.shape for node in graph)
        assert found.dtypes == tuple(node.dtype for node in graph)
        assert not found.lost and not found.unknown


@pytest.mark.parametrize("name", GRAPHS)
def test_so_they_do_for_whole_graphs(name: str) -> None:
    found = ad.infer_shapes(GRAPHS[name])
    assert found.shapes == tuple(node.shape for node in GRAPHS[name]) and not found.lost


# ------------------------------------------------------------------------------------------------------- unknown sizes


@pytest.mark.parametrize("name", NAMES)
def test_what_is_said_about_unknown_sizes_holds_for_all_that_fit(name: str) -> None:
    random = Random(name)
    graphs = sampled(name)
    for graph in graphs:
        for _ in range(4 if len(graphs) < 10 else 1):
            partial = {node.name: forgotten(random, node) for node in inputs_of(graph)}
            try:
                said = ad.infer_shapes(graph, partial)
            except ad.OpError:
                said = None
            assert said is None or not said.lost
            for _ in range(12):
                named: dict[str, int] = {}
                whole = {node.name: instance(random, node, partial[node.name], named) for node in inputs_of(graph)}
                try:
                    shape = ad.infer_shapes(graph, whole).shapes[-1]
                except ad.OpError:
                    continue
                assert said is not None, f"{partial} was refused, but {whole} is taken"
                known = said.shapes[-1]
                known = None if known is None else tuple(named.get(n, n) if isinstance(n, str) else n for n in known)
                assert shape is not None
                assert may_be(known, shape), f"{partial} gives {said.shapes[-1]}, but {whole} gives {shape}"


def loss(params: Any, x: Any, target: Any) -> Any:
    for w, b in params:
        x = ops.tanh(x @ w + b)
    return ops.mean((x - target) ** 2.0, axis=1)


MODEL = [(np.ones((784, 32)), np.ones(32)), (np.ones((32, 10)), np.ones(10))]
FORWARD = ad.record(loss, MODEL, np.ones((64, 784)), np.ones((64, 10)))


def test_a_named_size_travels_through_a_model_under_its_name() -> None:
    found = ad.infer_shapes(FORWARD, {"x": ("batch", 784), "target": ("batch", 10)})
    values = [shape for node, shape in zip(FORWARD, found.shapes, strict=True) if node.op is not None]
    assert not found.unknown and values[-1] == ("batch",) and {shape[0] for shape in values if shape} == {"batch"}


def test_a_joint_graph_whose_attributes_bear_the_recorded_size_finds_that_size_out() -> None:
    joint = ad.record(ad.grad(lambda w, x: ops.sum(ops.tanh(x @ w))), np.ones((784, 10)), np.ones((64, 784)))
    found = ad.infer_shapes(joint, {"x": ("batch", 784)})
    assert found.shapes[joint.outputs[0]] == (784, 10)
    spread = next(node for node in joint if node.label == "broadcast_to")
    assert found.shapes[spread.id] == (64, 10)


IMAGES, WORDS, TOKENS = np.ones((3, 1, 12, 12)), np.ones((3, 5, 8)), np.ones((3, 5), np.int64)


@pytest.mark.parametrize(
    ("layer", "x"),
    [
        (layers.Linear(8, 4, seed=0), WORDS),
        (layers.MLP(8, 16, 4, seed=0), WORDS),
        (layers.LayerNorm(8), WORDS),
        (layers.ResidualMLP(8, 16, 4, seed=0), WORDS),
        (layers.Conv2d(1, 4, 3, seed=0), IMAGES),
        (layers.CNN(12, 10, seed=0), IMAGES),
        (layers.Attention(8, 2, seed=0), WORDS),
        (layers.TransformerBlock(8, 2, seed=0), WORDS),
        (layers.Embedding(11, 8, seed=0), TOKENS),
        (layers.TransformerLM(11, context=5, seed=0), TOKENS),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, layers.Layer) else str(value.shape),
)
def test_the_batch_keeps_its_name_through_every_layer(layer: Any, x: Any) -> None:
    graph = ad.record(lambda x: layer.with_parameters(layer.values())(x), x)
    found = ad.infer_shapes(graph, {"x": ("batch", *x.shape[1:])})
    result = graph.outputs[0]
    assert not found.unknown and found.shapes[result] == ("batch", *graph.nodes[result].shape[1:])


def test_shapes_that_are_no_dict_are_refused() -> None:
    with pytest.raises(TypeError, match="dict such as"):
        ad.infer_shapes(FORWARD, [("x", (1, 784))])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("f", "shapes", "expected"),
    [
        (lambda x: x[:10], {"x": ("n", 3)}, (None, 3)),
        (lambda x: x[:5000], {"x": ("n", 3)}, (None, 3)),
        (lambda x: x[2:4, 0], {"x": ("n", 3)}, (None,)),
        (lambda x: x.T, {"x": ("n", None)}, (None, "n")),
        (lambda x: x.reshape(-1), {"x": ("n", 3)}, (None,)),
        (lambda x: x.reshape(-1, 3), {"x": ("n", 3)}, ("n", 3)),
        (lambda x: x.reshape(2, -1), {"x": (None, 3)}, (2, None)),
        (lambda x: x.reshape(8, 3), {"x": ("n", 3)}, (8, 3)),
        (lambda x: x.reshape(2, 12), {"x": ("n", 6)}, (2, 12)),
        (lambda x: ops.sum(x), {"x": None}, ()),
        (lambda x: ops.sum(x, axis=0), {"x": ("n", "m")}, ("m",)),
        (lambda x: x + np.ones((8, 3)), {"x": ("n", 3)}, (8, 3)),
        (lambda x: x + np.ones((1, 3)), {"x": ("n", 3)}, ("n", 3)),
        (lambda x: x + np.ones((8, 3)), {"x": None}, None),
        (lambda x: ops.concatenate([x, x]), {"x": ("n", 3)}, (None, 3)),
        (lambda x: ops.broadcast_to(x, shape=(8, 3)), {"x": (None, None)}, (8, 3)),
        (lambda x: x @ np.ones((3, 5)), {"x": ("n", None)}, ("n", 5)),
        (lambda x: x @ x.T, {"x": ("n", "m")}, ("n", "n")),
    ],
    ids=[
        "a slice", "a slice longer than the array", "a slice from the middle", "transposed", "flattened", "rows kept",
        "an axis to fill", "one size fits", "one size fits that was not recorded", "a sum of anything", "a sum of rows",
        "one size broadcasts", "a name beside 1", "rank unknown", "twice as long", "all unknown", "inner size known",
        "names on both sides",
    ],
)  # fmt: skip
def test_what_can_be_told_is_told(
    f: Callable[[Any], Any], shapes: dict[str, PartialShape], expected: PartialShape
) -> None:
    graph = ad.record(f, np.ones((8, 3)))
    assert ad.infer_shapes(graph, shapes).shapes[graph.outputs[0]] == expected


def test_a_size_of_one_name_is_one_size_and_two_names_may_differ() -> None:
    graph = ad.record(lambda x, y: x + y, np.ones(4), np.ones(4))
    assert ad.infer_shapes(graph, {"x": ("n",), "y": ("n",)}).shapes[-1] == ("n",)
    assert ad.infer_shapes(graph, {"x": ("n",), "y": ("m",)}).shapes[-1] == (None,)
    assert ad.infer_shapes(graph, {"x": (None,), "y": (None,)}).shapes[-1] == (None,)


def test_dtypes_travel_too() -> None:
    graph = ad.record(lambda x: ops.exp(ops.tanh(x) * 2.0), np.ones(3, np.float32))
    assert {dtype.name for node, dtype in zip(graph, ad.infer_shapes(graph).dtypes, strict=True) if node.op} == {
        "float32"
    }
    with faults.wrong_dtype_rule("tanh"):
        assert [d.name for d in ad.infer_shapes(graph).dtypes if d.kind == "f"][-3:] == [
            "float64",
            "float64",
            "float64",
        ]


# ------------------------------------------------------------------------------------------------- rules that lose something


def rows_doubled(rule: Callable[[Any], Any]) -> Any:
    """An op of a user with this shape rule."""

    @ad.op
    def doubled(xp: Any, x: Any) -> Any:
        """Each row twice."""
        return xp.concatenate([x, x])

    doubled.op.shape_rule(rule)
    doubled.samples(lambda: [((np.ones((2, 3)),), {})])
    return doubled


def knows_columns(x: Any) -> Any:
    return (None, x[1])


def knows_nothing(x: Any) -> Any:
    return None


@pytest.mark.parametrize("rule", [knows_columns, knows_nothing])
def test_a_rule_that_loses_something_is_recorded_rightly_and_inference_carries_the_loss(rule: Any) -> None:
    doubled = rows_doubled(rule)
    graph = ad.record(lambda x: ops.tanh(doubled(x)) * 2.0, np.ones((4, 3)))
    assert [node.shape for node in graph if node.op] == [(8, 3)] * 3
    np.testing.assert_array_equal(graph(np.ones((4, 3))), np.tanh(np.ones((8, 3))) * 2.0)
    found = ad.infer_shapes(graph)
    assert found.lost == (1,) and found.unknown == {1, 2, 4}
    assert [found.origin(node) for node in (1, 2, 4)] == [1, 1, 1]
    assert f"the shape rule {rule.__name__} of doubled loses a dimension (test_shapes.py:" in found.text()
    assert "1 of 5 unknown" not in str(found) and "3 of 5 unknown" in str(found)


def test_a_rule_may_answer_with_numpys_whole_numbers() -> None:
    doubled = rows_doubled(lambda x: [np.int64(2) * x[0], np.int64(x[1])])
    graph = ad.record(lambda x: ops.tanh(doubled(x)), np.ones((4, 3)))
    assert all(type(size) is int for node in graph for size in node.shape)
    assert ad.infer_shapes(graph, {"x": ("n", 3)}).shapes == (("n", 3), (None, 3), (None, 3))


def test_recording_asks_the_kernel_once_and_with_numbers_that_take_no_memory() -> None:
    seen: list[Any] = []

    @ad.op
    def indexed(xp: Any, x: Any, places: Any, y: Any) -> Any:
        """Rows by their numbers, and y."""
        seen.append((x.strides, places.dtype, y))
        return x[places] + y

    @indexed.shape_rule
    def indexed_shape(x: Any, places: Any, y: Any) -> Any:
        return (None, *x[1:])

    graph = ad.record(lambda x, places: indexed(x, places, 2), np.ones((4, 3), np.float32), np.array([2, 0]))
    assert seen == [((0, 0), np.int64, 0)] and (graph.nodes[-1].shape, graph.nodes[-1].dtype) == ((2, 3), np.float64)


def test_where_the_kernel_cannot_be_asked_the_error_says_that_the_rule_lost_it() -> None:
    @ad.op
    def picky(xp: Any, x: Any) -> Any:
        """x, which must not be 0."""
        if not x.all():
            raise ValueError("no zeros, please")
        return x + 0

    picky.op.shape_rule(knows_nothing)
    with pytest.raises(
        ad.OpError, match=r"picky\(x: .*knows_nothing loses a dimension .* stops with ValueError: no zeros, ple"
    ):
        ad.record(lambda x: picky(x), np.ones(3))


@pytest.mark.parametrize("answer", ["(2, 3)", (-1,), ("n",), (2.0,), 3, (True, "x")], ids=repr)
def test_what_is_no_shape_is_still_refused(answer: Any) -> None:
    doubled = rows_doubled(lambda x: answer)
    with pytest.raises(ad.OpError, match=r"gave .*; a shape is a tuple of sizes, as \(2, 3\)"):
        ad.record(lambda x: doubled(x), np.ones((4, 3)))


def test_the_result_of_a_lossy_rule_is_known_again_where_another_operand_leaves_no_choice() -> None:
    with faults.lost_dimension("tanh"):
        graph = ad.record(lambda x: ops.exp(x + ops.tanh(x)), np.ones((4, 3)))
        found = ad.infer_shapes(graph)
    assert found.shapes == ((4, 3), (None, 3), (4, 3), (4, 3)) and found.lost == (1,)


def test_a_recorded_shape_does_not_repair_a_rule() -> None:
    graph = ad.record(lambda x: ops.exp(ops.tanh(x)), np.ones((4, 3)))
    with faults.lost_dimension("tanh", axis=None):
        assert ad.infer_shapes(graph).shapes == ((4, 3), None, None)
    assert not ad.infer_shapes(graph).unknown


@pytest.mark.parametrize("axis", [0, -1, None])
def test_opcheck_finds_what_a_rule_loses_and_says_what_it_costs(axis: int | None) -> None:
    with faults.lost_dimension("tanh", axis):
        (found,) = ad.opcheck(ops.tanh).failed
    assert found.name == "shape rule"
    assert "loses a dimension" in found.reason and "neither fused nor given its memory" in found.reason


def test_opcheck_calls_a_known_part_that_is_wrong_wrong() -> None:
    doubled = rows_doubled(lambda x: (None, x[1] + 1))
    assert "loses" not in ad.opcheck(doubled).test("shape rule").reason


# -------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("shapes", "kind", "said"),
    [
        ({"q": (3,)}, ValueError, r"has no input 'q'; its inputs are: x, w"),
        ({"x": (3,)}, ValueError, r"x was recorded with shape \(4, 3\), so it has 2 axes, and \(3,\) has 1"),
        ({"x": (-1, 3)}, TypeError, r"x: \(-1, 3\) is no shape"),
        ({"x": "batch"}, TypeError, r"'batch' is no shape"),
        ({"x": (True, 3)}, TypeError, r"is no shape"),
        ({"x": ("", 3)}, TypeError, r"is no shape"),
    ],
    ids=["no such input", "another rank", "negative", "text", "a truth value", "an empty name"],
)
def test_a_mistake_is_named(shapes: Any, kind: Any, said: str) -> None:
    graph = ad.record(lambda x, w: x @ w, np.ones((4, 3)), np.ones((3, 5)))
    with pytest.raises(kind, match=said):
        ad.infer_shapes(graph, shapes)


def test_shapes_that_fit_for_no_size_are_an_error_at_the_line_of_the_op() -> None:
    def f(x: Any, w: Any) -> Any:
        product = x @ w
        return ops.tanh(product)

    graph = ad.record(f, np.ones((4, 3)), np.ones((3, 5)))
    for first, shown in (("batch", "'batch'"), (None, r"\?"), (4, "4")):
        with pytest.raises(
            ad.OpError,
            match=rf"matmul\(x = x: \({shown}, 7\), y = w: \(3, 5\)\) \(test_shapes.py:\d+ in f: product = x @ w\): "
            r"its shape rule matmul_shape refuses them: ",
        ):
            ad.infer_shapes(graph, {"x": (first, 7)})


# ----------------------------------------------------------------------------------------------------------------- telling


def test_every_node_is_told_and_every_loss() -> None:
    heard: list[Any] = []
    with faults.lost_dimension("tanh"):
        graph = ad.record(lambda x: ops.exp(ops.tanh(x)), np.ones((4, 3)))
        found = ad.infer_shapes(graph, tell=heard.append)
    told = [event for event in heard if isinstance(event, events.ShapeInferred)]
    assert tuple(event.shape for event in told) == found.shapes and [event.node for event in told] == [0, 1, 2]
    (lost,) = [event for event in heard if isinstance(event, events.ShapeLost)]
    assert (lost.node, lost.op, lost.rule, lost.shape) == (1, "tanh", "broadcast_shape", (None, 3))


def test_inference_runs_no_kernel() -> None:
    ran: list[str] = []

    @ad.op(elementwise=True)
    def loud(xp: Any, x: Any) -> Any:
        """x, and a note that a kernel ran."""
        ran.append("kernel")
        return x + 0

    graph = ad.record(lambda x: ops.exp(loud(x)), np.ones((4, 3)))
    for shape in ((4, 3), ("n", None), None):
        ad.infer_shapes(graph, {"x": shape})
    assert not ran


def test_a_partial_shape_is_known_where_every_size_has_a_number_or_a_name() -> None:
    assert is_known((2, "n")) and is_known(()) and not is_known((None,)) and not is_known(None)
