"""Smaller graphs that stand for large ones: scopes and repeated blocks collapsed to one node, or only the first nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush

from autodiff_lab.graph import Graph, Node

from .repeats import Repeat, outer_scopes

Owner = str | Repeat  # what a node is joined by: a scope, a repeat, or nothing
Part = tuple[Owner, str]  # with the phase


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
    return tuple(dict.fromkeys(scope for node in graph for scope in outer_scopes(node.scope)))


def collapsed(graph: Graph, scopes: Collection[str], repeats: Iterable[Repeat] = ()) -> tuple[Graph, Mapping[int, int]]:
    """The graph with one node for each scope or repeat and phase, and which new node stands for each old one.

    A collapsed node bears the name of its scope or repeat, ``attributes["collapsed"]``, how many nodes it stands for, and
    ``attributes["repeat"]``. Where a scope is left and entered again, so that one node would wait for itself, each run of nodes
    that were recorded in a row gets a node; a repeat of which this is true is not collapsed.
    """
    scopes = frozenset(scopes)
    owners: dict[int, Owner] = {node: repeat for repeat in repeats for node in repeat.nodes}
    if not scopes and not owners:
        return graph, {node.id: node.id for node in graph}
    parts = [_part(graph, node, owners.get(node.id) or _outermost(node.scope, scopes)) for node in graph]
    first: dict[Part, int] = {}
    whole = [first.setdefault(part, place) if part[0] else place for place, part in enumerate(parts)]
    order = _order(graph, whole)
    if order is None and owners:
        return collapsed(graph, scopes)
    if order is None:
        whole = _runs(parts)
        order = sorted(set(whole))
    number = {name: place for place, name in enumerate(order)}
    stands_for = {node.id: number[whole[node.id]] for node in graph}
    members: list[list[Node]] = [[] for _ in order]
    for node in graph:
        members[stands_for[node.id]].append(node)
    nodes = tuple(_joined(place, parts[run[0].id][0], run, stands_for) for place, run in enumerate(members))
    inputs = tuple(stands_for[i] for i in graph.inputs)
    outputs = tuple(dict.fromkeys(stands_for[i] for i in graph.outputs))
    return replace(graph, nodes=nodes, inputs=inputs, outputs=outputs), stands_for


def _order(graph: Graph, whole: Sequence[int]) -> list[int] | None:
    """A valid order of the joined nodes, each named by its first member, as near to the recorded one as possible."""
    last = {first: node for node, first in enumerate(whole)}
    edges = {(whole[source], whole[consumer]) for source, consumer in graph.edges if whole[source] != whole[consumer]}
    consumers: dict[int, list[int]] = {first: [] for first in last}
    waits = dict.fromkeys(last, 0)
    for source, consumer in edges:
        consumers[source].append(consumer)
        waits[consumer] += 1
    ready = [(last[first], first) for first in last if not waits[first]]
    heapify(ready)
    order = []
    while ready:
        order.append(heappop(ready)[1])
        for consumer in consumers[order[-1]]:
            waits[consumer] -= 1
            if not waits[consumer]:
                heappush(ready, (last[consumer], consumer))
    return order if len(order) == len(last) else None


def _part(graph: Graph, node: Node, owner: Owner) -> Part:
    """What a node is joined by. What a repeat only reads belongs to the phase that reads it first."""
    if node.kind != "op" and isinstance(owner, Repeat):
        return owner, graph.nodes[min(graph.consumers[node.id], default=node.id)].phase
    return owner, node.phase


def _runs(parts: Sequence[Part]) -> list[int]:
    """For each node the first one of its run: what was recorded in a row in one scope and phase."""
    runs: list[int] = []
    for place, part in enumerate(parts):
        goes_on = bool(part[0]) and place > 0 and parts[place - 1] == part
        runs.append(runs[-1] if goes_on else place)
    return runs


def _outermost(scope: str, scopes: Collection[str]) -> str:
    """The shortest of ``scopes`` that the scope lies in, or nothing."""
    return next((outer for outer in outer_scopes(scope) if outer in scopes), "")


def _joined(number: int, owner: Owner, run: list[Node], stands_for: Mapping[int, int]) -> Node:
    """The node of a run: the one node itself, with new ids, or the node that stands for a collapsed scope or repeat."""
    first, last = run[0], run[-1]
    made_by = next((node.origin for node in run if node.origin is not None), None)
    origin = None if made_by is None else stands_for[made_by]
    inputs = tuple(stands_for[i] for node in run for i in node.inputs)
    saved = tuple(dict.fromkeys(stands_for[i] for node in run for i in node.saved))
    if not owner:
        return replace(first, id=number, inputs=inputs, saved=saved, origin=origin)
    return replace(
        last,
        id=number,
        kind="op",
        op=None,
        name=owner.name if isinstance(owner, Repeat) else owner,
        inputs=tuple(i for i in dict.fromkeys(inputs) if i != number),
        saved=tuple(i for i in saved if i != number),
        origin=None if origin == number else origin,
        scope=owner.parent if isinstance(owner, Repeat) else owner.rpartition(".")[0],
        phase=next((node.phase for node in run if node.kind == "op"), last.phase),
        attributes={"collapsed": len(run), "repeat": owner if isinstance(owner, Repeat) else None},
        source=None,
        value=None,
    )
