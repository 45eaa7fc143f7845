"""Fusion: the groups compute what the ops do, never wait for themselves, and every pair apart has a reason that is true."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import events, faults, fusion, ops
from autodiff_lab.fusion import Fusion, Group, Neighbours
from tests.drawn_graphs import GRAPHS
from tests.drawn_programs import joint_program, program

DRAWN = {f"forward {seed}": program(seed) for seed in range(30)} | {
    f"joint {seed}": joint_program(seed) for seed in range(20)
}
DRAWN["long"] = program(1032, steps=40)  # goes wrong where what waits for a group is not kept up to date while it grows
EACH = pytest.mark.parametrize("name", DRAWN)
BOTH = pytest.mark.parametrize("write_shared", [True, False], ids=["written too", "not joined"])


def story(x: Any) -> Any:
    """The lecture's chain of eleven ops; the first is square, the seventh tanh."""
    h = ops.square(x)
    h = h + 1.0
    h = ops.log(h)
    h = h * 0.5
    h = ops.exp(h)
    h = h - 1.0
    h = ops.tanh(h)
    h = h * 2.0
    h = ops.sigmoid(h)
    h = ops.sqrt(h)
    return ops.abs(h)


@cache
def recorded(name: str) -> ad.Graph:
    f, arguments = DRAWN[name]
    return ad.record(f, *arguments)


def fused(f: Callable[..., Any], *arguments: Any, **options: Any) -> Fusion:
    return ad.fuse(ad.record(f, *arguments), **options)


def sizes(found: Fusion) -> list[int]:
    return [len(group.nodes) for group in found.groups]


def labels(found: Fusion) -> list[list[str]]:
    return [[found.graph.nodes[node].label for node in group.nodes] for group in found.groups]


def pair(found: Fusion, producer: str, consumer: str) -> Neighbours:
    """The one pair of ops of these names."""
    nodes = found.graph.nodes
    (only,) = [
        p for p in found.neighbours if (nodes[p.producer].label, nodes[p.consumer].label) == (producer, consumer)
    ]
    return only


BATCH = np.linspace(-1.0, 1.0, 12).reshape(3, 4)

# ----------------------------------------------------------------------------------------------------------- the story


def test_with_the_right_shape_rules_eleven_ops_are_one_kernel() -> None:
    found = fused(story, BATCH)
    assert sizes(found) == [11] and (found.kernels_before, found.kernels_after) == (11, 1)
    assert {p.reason for p in found.neighbours} == {"joined"}


@pytest.mark.parametrize(
    ("op", "left"), [("square", [1] * 11), ("tanh", [6, 1, 1, 1, 1, 1])], ids=["the first op", "the seventh op"]
)
@pytest.mark.parametrize("axis", [0, None], ids=["one size", "the whole shape"])
def test_a_rule_that_loses_a_dimension_parts_all_that_come_after_it(op: str, left: list[int], axis: int | None) -> None:
    with faults.lost_dimension(op, axis):
        found = fused(story, BATCH)
    assert sizes(found) == left
    np.testing.assert_array_equal(found.graph(BATCH), story(BATCH))
    broken = [p for p in found.neighbours if not p.joined]
    assert {p.reason for p in broken} == {"unknown shape"}
    assert all(f"broadcast_shape of {op} loses a dimension (operand_rules.py:" in p.text for p in broken)


def test_fusion_begins_again_where_the_shape_is_known_again() -> None:
    with faults.lost_dimension("tanh"):
        found = fused(lambda x: ops.exp(ops.sin(x + ops.tanh(x))) * 2.0, BATCH)
    assert labels(found) == [["tanh"], ["add"], ["sin", "exp", "mul"]]


def test_a_size_that_has_only_a_name_is_enough() -> None:
    graph = ad.record(story, BATCH)
    named = ad.fuse(graph, ad.infer_shapes(graph, {"x": ("batch", 4)}))
    assert sizes(named) == [11] and named.groups[0].shape == ("batch", 4)
    unknown = ad.fuse(graph, ad.infer_shapes(graph, {"x": (None, 4)}))
    assert sizes(unknown) == [1] * 11
    assert unknown.neighbours[0].text == "the shape of input 0 (x) is not known: (?, 4)"
    assert unknown.neighbours[1].text == "the shape of square 1 (h) is not known: (?, 4), because of input 0 (x)"


# ------------------------------------------------------------------------------------------- what every fusion promises


def run_by_groups(found: Fusion, arguments: Any) -> dict[int, Any]:
    """Run kernel by kernel: each sees its inputs alone, and only its outputs stay."""
    graph = found.graph
    values = {node.id: node.value for node in graph if node.kind == "constant"}
    values |= dict(zip(graph.inputs, arguments, strict=True))
    for group in found.groups:
        inside = {value: values[value] for value in group.inputs}
        for node in (graph.nodes[i] for i in group.nodes):
            assert node.op is not None
            inside[node.id] = node.op.apply([inside[i] for i in node.inputs], node.attributes)
        values |= {value: inside[value] for value in group.outputs}
    return values


@EACH
@BOTH
def test_kernel_by_kernel_the_same_is_computed(name: str, write_shared: bool) -> None:
    _, arguments = DRAWN[name]
    found = ad.fuse(recorded(name), write_shared=write_shared)
    nodes = [node for group in found.groups for node in group.nodes]
    assert sorted(nodes) == [node.id for node in found.graph if node.op is not None]
    values = run_by_groups(found, arguments)
    leaves = [values[i] for i in found.graph.outputs]
    np.testing.assert_equal(found.graph.structure.rebuild(leaves), found.graph(*arguments))


def reached(graph: ad.Graph, start: int) -> set[int]:
    """A node and all that depends on it."""
    found = {start}
    for node in graph.nodes[start:]:
        if found.intersection(node.inputs):
            found.add(node.id)
    return found


def waits_for_itself(found: Fusion, one: Group, other: Group) -> bool:
    """Whether two groups as one kernel would wait for themselves through another kernel."""
    owner = {node: group.number for group in found.groups for node in group.nodes}
    merged = {one.number, other.number}
    front = {owner[c] for g in (one, other) for n in g.nodes for c in found.graph.consumers[n]} - merged
    seen: set[int] = set()
    while front:
        group = front.pop()
        seen.add(group)
        after = {owner[c] for n in found.groups[group].nodes for c in found.graph.consumers[n]}
        if after & merged:
            return True
        front |= after - seen
    return False


def is_true(found: Fusion, p: Neighbours, write_shared: bool) -> bool:
    """Whether the reason of a pair is so."""
    graph, shapes = found.graph, found.shapes
    producer, consumer = graph.nodes[p.producer], graph.nodes[p.consumer]
    one, other = found.group_of(p.producer), found.group_of(p.consumer)
    assert one is not None and other is not None and producer.op is not None and consumer.op is not None
    if p.reason == "joined":
        return one is other
    if one is other:
        return False
    reductions = [node for node in one.nodes if graph.nodes[node].label in fusion.REDUCTIONS]
    loop = consumer.inputs[0] if consumer.label in fusion.REDUCTIONS else consumer.id
    read_elsewhere = set(graph.consumers[p.producer]) - set(other.nodes) or p.producer in graph.outputs
    return {
        "unknown shape": bool(shapes.unknown & {p.producer, p.consumer, *producer.inputs, *consumer.inputs}),
        "different shape": producer.shape not in ((), graph.nodes[loop].shape),
        "not elementwise": any(not op.elementwise and op.name not in fusion.LOOPS for op in (producer.op, consumer.op)),
        "second consumer": (
            len(set(graph.consumers[p.producer])) + (p.producer in graph.outputs) > 1
            if not write_shared
            else bool(read_elsewhere) and producer.shape == () != other.shape
        ),
        "other device": producer.device != consumer.device,
        "cycle": waits_for_itself(found, one, other),
        "after the reduction": any(reached(graph, r) & set(other.nodes) for r in reductions),
    }[p.reason]


@EACH
@BOTH
def test_every_pair_of_neighbours_is_joined_or_has_a_reason_that_is_true(name: str, write_shared: bool) -> None:
    found = ad.fuse(recorded(name), write_shared=write_shared)
    edges = {edge for edge in found.graph.edges if found.graph.nodes[edge[0]].op is not None}
    assert {(p.producer, p.consumer) for p in found.neighbours} == edges
    assert len(found.neighbours) == len(edges)
    for p in found.neighbours:
        assert is_true(found, p, write_shared), f"{p}\n{found}"


@pytest.mark.parametrize("name", GRAPHS)
def test_so_it_is_in_the_graphs_of_the_lessons(name: str) -> None:
    found = ad.fuse(GRAPHS[name])
    assert all(is_true(found, p, True) for p in found.neighbours)


def test_every_reason_is_met_by_the_drawn_graphs_or_a_test_below() -> None:
    met = {p.reason for name in DRAWN for p in ad.fuse(recorded(name)).neighbours}
    assert met >= {"joined", "different shape", "not elementwise", "second consumer", "cycle", "after the reduction"}


@EACH
def test_a_groups_values_have_the_loops_shape_or_stay_inside_as_one_number_or_are_reductions(name: str) -> None:
    found = ad.fuse(recorded(name))
    for group in (g for g in found.groups if len(g.nodes) > 1):
        for node in (found.graph.nodes[i] for i in group.nodes):
            if node.label in fusion.REDUCTIONS:
                assert found.graph.nodes[node.inputs[0]].shape in ((), group.shape)
                assert not set(found.graph.consumers[node.id]) & set(group.nodes)
            else:
                assert node.shape == group.shape or (node.shape == () and node.id not in group.outputs)


@EACH
def test_fusing_twice_gives_the_same(name: str) -> None:
    assert ad.fuse(recorded(name)).text() == ad.fuse(recorded(name)).text()


@pytest.mark.parametrize("name", ["joint mlp", "joint residual", "joint 3"])
def test_what_is_told_is_what_became(name: str) -> None:
    graph = GRAPHS[name] if name in GRAPHS else recorded(name)
    heard: list[Any] = []
    found = ad.fuse(graph, tell=heard.append)
    compared = [event for event in heard if isinstance(event, events.NeighboursCompared)]
    assert {e[:3] for e in compared} == {(p.producer, p.consumer, p.reason) for p in found.neighbours}
    assert all(
        p.text.startswith(e.text) for e in compared for p in found.neighbours if e[:2] == (p.producer, p.consumer)
    )
    formed = [event for event in heard if isinstance(event, events.GroupFormed)]
    assert [(e.number, e.nodes, e.outputs) for e in formed] == [(g.number, g.nodes, g.outputs) for g in found.groups]


# ------------------------------------------------------------------------------------------------------- rule by rule


def test_a_bias_from_outside_is_read_and_one_that_is_computed_stays_outside() -> None:
    found = fused(lambda x, b: ops.tanh(x + b), BATCH, np.ones(4))
    assert sizes(found) == [2] and found.groups[0].inputs == (0, 1)
    found = fused(lambda x, b: ops.tanh(x + ops.exp(b)), BATCH, np.ones(4))
    assert labels(found) == [["exp"], ["add", "tanh"]]
    assert pair(found, "exp", "add").reason == "different shape"
    assert "exp 2, of shape (4,), would be computed again for every row" in pair(found, "exp", "add").text


def test_a_single_number_is_computed_inside_the_loop_that_alone_reads_it() -> None:
    found = fused(lambda x, a: ops.tanh(x * ops.exp(a)), BATCH, 2.0)
    assert labels(found) == [["exp", "mul", "tanh"]] and found.groups[0].shape == (3, 4)
    found = fused(lambda x, w, a: (x * (c := ops.exp(a)), w + c), BATCH, np.ones(5), 2.0)
    assert labels(found) == [["exp"], ["mul"], ["add"]] and pair(found, "exp", "mul").reason == "second consumer"
    assert "exp 3 is needed elsewhere too: add 5 reads it" in pair(found, "exp", "mul").text


def test_a_value_that_is_needed_outside_is_written_too_or_stays_apart() -> None:
    def f(x: Any, w: Any) -> Any:
        h = ops.exp(x)
        return ops.tanh(h), h @ w

    found = fused(f, BATCH, np.ones((4, 2)))
    assert labels(found) == [["exp", "tanh"], ["matmul"]] and found.groups[0].outputs == (2, 3)
    assert pair(found, "exp", "tanh").text.endswith("; exp 2 (h) is written too, because matmul 4 reads it")
    apart = fused(f, BATCH, np.ones((4, 2)), write_shared=False)
    assert labels(apart) == [["exp"], ["tanh"], ["matmul"]] and pair(apart, "exp", "tanh").reason == "second consumer"


def test_an_output_of_the_graph_is_written_though_the_loop_goes_on() -> None:
    found = fused(lambda x: [h := ops.exp(x), ops.tanh(h)], BATCH)
    assert sizes(found) == [2] and found.groups[0].outputs == (1, 2)
    assert found.neighbours[0].text.endswith("exp 1 is written too, because the graph gives it")


def test_two_reductions_close_one_loop_and_what_follows_them_begins_another() -> None:
    def f(x: Any) -> Any:
        e = ops.exp(x)
        return e / ops.sum(e, axis=1, keepdims=True), ops.max(e, axis=0)

    found = fused(f, BATCH)
    assert sorted(labels(found)) == [["div"], ["exp", "sum", "max"]]
    assert pair(found, "sum", "div").reason == pair(found, "exp", "div").reason == "after the reduction"
    assert "sum 2 closes the loop of exp 1 (e)" in pair(found, "exp", "div").text


def test_a_kernel_never_waits_for_itself() -> None:
    def f(x: Any, w: Any) -> Any:
        h = ops.tanh(x)
        return h + h @ w

    found = fused(f, BATCH, np.ones((4, 4)))
    assert labels(found) == [["tanh"], ["matmul"], ["add"]]
    assert pair(found, "tanh", "add").reason == "cycle"
    assert pair(found, "tanh", "add").text == (
        "matmul 3 reads tanh 2 (h), and the kernel of add 4 waits for matmul 3: joined, it would wait for itself"
    )


def test_what_only_backward_needs_of_a_forward_value_is_computed_in_backward() -> None:
    def loss(w: Any, x: Any) -> Any:
        return ops.sum(ops.tanh(x @ w) @ w)

    found = fused(ad.grad(loss), np.ones((4, 4)), BATCH)
    nodes = found.graph.nodes
    mixed = [group for group in found.groups if {nodes[i].phase for i in group.nodes} == {"forward", "backward"}]
    assert not mixed and ["mul", "sub", "mul"] in labels(found)


def test_devices_are_not_mixed() -> None:
    found = fused(lambda x: ops.tanh(ops.exp(x).to("sim:0")), BATCH)
    assert sizes(found) == [1, 1, 1]
    assert pair(found, "exp", "to_device").reason == "other device"
    assert pair(found, "exp", "to_device").text == "exp 1 lies on cpu, to_device 2 on sim:0"
    assert pair(found, "to_device", "tanh").reason == "not elementwise"


def test_dtypes_may_share_a_loop() -> None:
    found = fused(lambda x: ops.sum(ops.astype(ops.tanh(x), dtype="float64") * 2.0), BATCH.astype(np.float32))
    assert sizes(found) == [4]


def test_an_op_of_a_user_joins_like_any_other() -> None:
    @ad.op(elementwise=True)
    def cube(xp: Any, x: Any) -> Any:
        """x³."""
        return x * x * x

    assert labels(fused(lambda x: ops.tanh(cube(x) + 1.0), BATCH)) == [["cube", "add", "tanh"]]


def test_a_view_or_a_product_stays_a_kernel_of_its_own() -> None:
    found = fused(lambda x: ops.tanh(ops.exp(x).T)[0], BATCH)
    assert labels(found) == [["exp"], ["transpose"], ["tanh"], ["getitem"]]
    assert {p.reason for p in found.neighbours} == {"not elementwise"}
    assert pair(found, "exp", "transpose").text == "transpose 2 does not work number by number"


def test_ops_that_nothing_reads_are_kernels_too() -> None:
    def f(x: Any) -> Any:
        ops.exp(x)
        return x * 2.0

    found = fused(f, BATCH)
    assert labels(found) == [["exp"], ["mul"]] and [len(group.outputs) for group in found.groups] == [1, 1]


def test_a_graph_without_ops_has_no_kernels() -> None:
    found = fused(lambda x: x, BATCH)
    assert found.groups == () and found.neighbours == () and found.group_of(0) is None
    assert str(found) == "fusion of graph <lambda>: 0 kernels before, 0 after"
