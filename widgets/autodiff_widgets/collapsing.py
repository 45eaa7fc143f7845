"""Smaller graphs that stand for large ones: scopes collapsed to one node, or only the first nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from autodiff_lab.graph import Graph, Node


def first_nodes(graph: Graph, count: int) -> Graph:
    """The graph of the first ``count`` nodes, which never need a later one.

    >>> import autodiff_lab as ad
    >>> len(first_nodes(ad.record(lambda x: x * 2.0 + 1.0, 3.0), 3))
    3
    """
    nodes = graph.nodes[:count]
    kept = tuple(i for i in graph.outputs if i < count)
    return replace(graph, nodes=nodes, inputs=tuple(i for i in graph.inputs if i < count), outputs=kept)


def scopes_of(graph: Graph) -> tuple[str, ...]:
    """Every scope of a graph, outer ones too, in recorded order.

    >>> import autodiff_lab as ad
    >>> def f(x):
    ...     with ad.name_scope("layer1.norm"):
    ...         return x * 2.0
    >>> scopes_of(ad.record(f, 1.0))
    ('layer1', 'layer1.norm')
    """
    found: dict[str, None] = {}
    for node in graph:
        parts = node.scope.split(".") if node.scope else []
        for count in range(len(parts)):
            found[".".join(parts[: count + 1])] = None
    return tuple(found)


def collapsed(graph: Graph, scopes: Collection[str]) -> tuple[Graph, Mapping[int, int]]:
    """The graph with one node for each run of nodes of a scope and phase, and which new node stands for each old one.

    A run is what was recorded one after the other, so the small graph is in a valid order whatever the scopes are. A collapsed
    node bears the scope's name and ``attributes["collapsed"]``, how many nodes it stands for.
    """
    runs: list[tuple[str, list[Node]]] = []
    stands_for: dict[int, int] = {}
    for node in graph:
        scope = _outermost(node.scope, scopes)
        if not (scope and runs and runs[-1][0] == scope and runs[-1][1][0].phase == node.phase):
            runs.append((scope, []))
        runs[-1][1].append(node)
        stands_for[node.id] = len(runs) - 1
    nodes = tuple(_joined(number, scope, run, stands_for) for number, (scope, run) in enumerate(runs))
    small = replace(
        graph,
        nodes=nodes,
        inputs=tuple(stands_for[i] for i in graph.inputs),
        outputs=tuple(dict.fromkeys(stands_for[i] for i in graph.outputs)),
    )
    return small, stands_for


def _outermost(scope: str, scopes: Collection[str]) -> str:
    """The shortest of ``scopes`` that the scope lies in, or nothing."""
    return min((s for s in scopes if scope == s or scope.startswith(s + ".")), key=len, default="")


def _joined(number: int, scope: str, run: list[Node], stands_for: Mapping[int, int]) -> Node:
    """The node of a run: the one node itself, with new ids, or the node that stands for a collapsed scope."""
    first, last = run[0], run[-1]
    origin = None if first.origin is None else stands_for[first.origin]
    inputs = tuple(stands_for[i] for node in run for i in node.inputs)
    saved = tuple(dict.fromkeys(stands_for[i] for node in run for i in node.saved))
    if not scope:
        return replace(first, id=number, inputs=inputs, saved=saved, origin=origin)
    return replace(
        last,
        id=number,
        kind="op",
        op=None,
        name=scope,
        inputs=tuple(i for i in dict.fromkeys(inputs) if i != number),
        saved=tuple(i for i in saved if i != number),
        origin=None if origin == number else origin,
        scope=scope.rpartition(".")[0],
        attributes={"collapsed": len(run)},
        source=None,
        value=None,
    )
