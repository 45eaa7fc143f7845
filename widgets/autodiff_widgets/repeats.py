"""Blocks of the same structure that were recorded in a row: block1 … block12 of a Transformer, layer1 … layer9 of an MLP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from autodiff_lab.graph import Graph, Node


@dataclass(frozen=True, eq=False, repr=False)
class Repeat:
    """Scopes in a row whose ops, attributes, shapes and wiring are the same in the forward pass.

    ``blocks`` are the nodes of each, in all phases, with the inputs and constants that only that block reads; ``shared`` are
    the inputs and constants that several blocks read, and nothing else. What else may differ is in ``differences``.
    """

    graph: Graph
    scopes: tuple[str, ...]
    blocks: tuple[tuple[int, ...], ...]
    shared: tuple[int, ...]
    neighbours: tuple[tuple[str, str], ...]  # scopes of the same name beside them, and why they are not among them

    @property
    def parent(self) -> str:
        """The scope that all of them lie in."""
        return self.scopes[0].rpartition(".")[0]

    @property
    def short_scopes(self) -> tuple[str, ...]:
        """Their names within that scope."""
        return tuple(scope.rpartition(".")[2] for scope in self.scopes)

    @property
    def name(self) -> str:
        """``block × 12``; ``blocks × 12`` for blocks.0, blocks.1, …; ``first … last × 3`` where nothing is numbered."""
        names = self.short_scopes
        stems = {_stem(name) for name in names}
        numbered = (stems.pop() or self.parent.rpartition(".")[2]) if len(stems) == 1 else ""
        return f"{numbered or f'{names[0]} … {names[-1]}'} × {len(names)}"

    @cached_property
    def nodes(self) -> frozenset[int]:
        """All nodes that the box stands for."""
        return frozenset([*self.shared, *(node for block in self.blocks for node in block)])

    def ops(self, block: int, phase: str) -> tuple[int, ...]:
        """The ops of one block in a phase."""
        return tuple(n for n in self.blocks[block] if _is_op(self.graph.nodes[n], phase))

    def ops_text(self, phase: str) -> str:
        """How many ops there are in a phase: ``12 × 29 ops``, or all together where blocks differ."""
        counts = [len(self.ops(number, phase)) for number in range(len(self.blocks))]
        return f"{len(counts)} × {counts[0]} ops" if len(set(counts)) == 1 else f"{sum(counts)} ops"

    def differences(self, phase: str) -> Iterator[tuple[str, str]]:
        """The blocks that are not as most others are in a phase, and in what."""
        graphs = [structure(self.graph, self.ops(number, phase)) for number in range(len(self.blocks))]
        (usual, _), *_ = Counter(graphs).most_common(1)
        for scope, graph in zip(self.scopes, graphs, strict=True):
            if graph != usual:
                yield scope, difference(graph, usual)


def repeats_of(graph: Graph) -> tuple[Repeat, ...]:
    """The repeated blocks of a graph, the outermost ones.

    A block is a scope with the ops that follow it in the scope around it, such as the activation after a layer.

    >>> import autodiff_lab as ad
    >>> import numpy as np
    >>> from autodiff_lab.layers import MLP
    >>> mlp = MLP(8, 8, 8, 8, 8, seed=0)
    >>> [repeat.name for repeat in repeats_of(ad.record(mlp, np.zeros((1, 8))))]
    ['layer × 3']
    """
    ops = [node.id for node in graph if _is_op(node, "forward")]
    return tuple(_found_in(graph, ops, 0))


def block_graph(graph: Graph, nodes: Iterable[int], name: str = "block") -> Graph:
    """The graph of some nodes alone, renumbered; the values that they read from outside are its inputs."""
    inside = set(nodes)
    order: dict[int, int] = {}
    for node in sorted(inside):
        for source in (*graph.nodes[node].inputs, node):
            order.setdefault(source, len(order))
    made = [_alone(graph.nodes[old], new, order, old in inside) for old, new in order.items()]
    return Graph(tuple(made), tuple(node.id for node in made if node.kind == "input"), (), name)


def structure(graph: Graph, nodes: Iterable[int]) -> Graph:
    """The graph of some nodes, in which arrays that are constants have no value: equal where two blocks are the same.

    A model that is recorded without its parameters as arguments has them as constants.
    """
    block = block_graph(graph, nodes)
    made = [replace(node, kind="input", value=None) if is_array(node) else node for node in block]
    return replace(block, nodes=tuple(made), inputs=tuple(node.id for node in made if node.kind == "input"))


def is_array(node: Node) -> bool:
    """Whether the node is a constant with axes, such as a parameter that is not an argument."""
    return node.kind == "constant" and node.shape != ()


def difference(one: Graph, other: Graph) -> str:
    """In what one block differs from another, by the first op that does.

    >>> import autodiff_lab as ad
    >>> difference(ad.record(ad.ops.tanh, 1.0), ad.record(ad.ops.exp, 1.0))
    'tanh instead of exp'
    """
    mine, others = ([node for node in graph if node.op is not None] for graph in (one, other))
    if len(mine) != len(others):
        return f"{len(mine)} ops instead of {len(others)}"
    for node, instead in zip(mine, others, strict=True):
        if node.op is not instead.op:
            return f"{node.label} instead of {instead.label}"
        if node.shape != instead.shape or node.dtype != instead.dtype:
            return f"{node.label} gives {node.shape} {node.dtype} instead of {instead.shape} {instead.dtype}"
        read, wanted = ([graph.nodes[i].shape for i in op.inputs] for graph, op in ((one, node), (other, instead)))
        if read != wanted:
            here, there = (" and ".join(map(str, some)) for some in (read, wanted))
            return f"{node.label} reads {here} instead of {there}"
    return "other attributes, constants or wiring"


# ------------------------------------------------------------------------------------------------------------- finding


@dataclass(frozen=True)
class _Unit:
    """A scope at one level, its forward ops, and those that follow it in the scope around it."""

    scope: str
    ops: tuple[int, ...]
    tail: tuple[int, ...]


def _found_in(graph: Graph, ops: Sequence[int], depth: int) -> Iterator[Repeat]:
    """The repeats among ops in a row, whose scopes are the same down to a depth; then those inside of other scopes."""
    units = _units(graph, ops, depth)
    start = 0
    while start < len(units):
        end = _end_of_run(graph, units, start)
        if end - start > 1:
            yield _repeat(graph, units, start, end)
        else:
            yield from _found_in(graph, units[start].ops, depth + 1)
        start = end


def _units(graph: Graph, ops: Sequence[int], depth: int) -> list[_Unit]:
    """The scopes in a row at a depth."""
    units: list[_Unit] = []
    for scope, run in groupby(ops, key=lambda op: _scope_at(graph.nodes[op], depth)):
        if scope:
            units.append(_Unit(scope, tuple(run), ()))
        elif units:
            units[-1] = replace(units[-1], tail=tuple(run))
    return units


def _end_of_run(graph: Graph, units: Sequence[_Unit], start: int) -> int:
    """The place after the last unit that has the structure of the first. Behind the last one more may follow."""
    first, end = units[start], start + 1
    count = len(first.tail)
    wanted = structure(graph, (*first.ops, *first.tail))
    while end < len(units) and len(units[end - 1].tail) == count and len(units[end].tail) >= count:
        if structure(graph, (*units[end].ops, *units[end].tail[:count])) != wanted:
            break
        end += 1
    return end


def _repeat(graph: Graph, units: Sequence[_Unit], start: int, end: int) -> Repeat:
    run, count = units[start:end], len(units[start].tail)
    forward = [(*unit.ops, *unit.tail[:count]) for unit in run]
    further = _further(graph, forward, [unit.scope for unit in run])
    blocks = [[*ops, *more] for ops, more in zip(forward, further, strict=True)]
    owner = {node: number for number, block in enumerate(blocks) for node in block}
    handed_on = _handed_on(graph, forward)
    shared: list[int] = []
    for node in graph:
        readers = {owner.get(reader, -1) for reader in graph.consumers[node.id]}
        is_inside = node.kind != "op" and readers and -1 not in readers
        if is_inside and node.id not in handed_on and node.id not in graph.outputs:
            (blocks[readers.pop()] if len(readers) == 1 else shared).append(node.id)
    wanted = structure(graph, forward[0])
    beside = [units[place] for place in (start - 1, end) if 0 <= place < len(units)]
    neighbours = [
        (unit.scope, difference(structure(graph, (*unit.ops, *unit.tail[:count])), wanted))
        for unit in beside
        if _stem(unit.scope) == _stem(run[0].scope)
    ]
    scopes = tuple(unit.scope for unit in run)
    return Repeat(graph, scopes, tuple(tuple(sorted(block)) for block in blocks), tuple(shared), tuple(neighbours))


def _handed_on(graph: Graph, blocks: Sequence[Sequence[int]]) -> set[int]:
    """What blocks read in a place in which another block reads a result: the data, which goes from block to block."""
    reads = [
        [source for source in dict.fromkeys(i for op in ops for i in graph.nodes[op].inputs) if source not in set(ops)]
        for ops in blocks
    ]
    alike = [set(column) for column in zip(*reads, strict=True)]
    return {node for column in alike if any(graph.nodes[other].kind == "op" for other in column) for node in column}


def _further(graph: Graph, forward: Sequence[Sequence[int]], scopes: Sequence[str]) -> list[list[int]]:
    """What the other phases do for each block: what its ops' rules made, and updates in its scope."""
    owner = {node: number for number, ops in enumerate(forward) for node in ops}
    own = {scope: number for number, scope in enumerate(scopes)}
    found: list[list[int]] = [[] for _ in forward]
    for node in graph:
        if node.kind == "op" and node.phase != "forward":
            at = (
                [own.get(scope) for scope in outer_scopes(node.scope)]
                if node.origin is None
                else [owner.get(node.origin)]
            )
            for number in at:
                if number is not None:
                    found[number].append(node.id)
    return found


def _alone(node: Node, number: int, order: dict[int, int], is_inside: bool) -> Node:
    """A node of a block's graph: with new ids, and without what is outside."""
    saved = tuple(order[i] for i in node.saved if i in order)
    origin = None if node.origin is None else order.get(node.origin)
    if is_inside:
        return replace(node, id=number, inputs=tuple(order[i] for i in node.inputs), saved=saved, origin=origin)
    kind = node.kind if node.kind == "constant" else "input"
    return replace(node, id=number, kind=kind, op=None, inputs=(), attributes={}, saved=(), origin=origin)


def _scope_at(node: Node, depth: int) -> str:
    """The node's scope down to a depth; nothing where it is not that deep."""
    parts = node.scope.split(".") if node.scope else []
    return ".".join(parts[: depth + 1]) if len(parts) > depth else ""


def _is_op(node: Node, phase: str) -> bool:
    return node.kind == "op" and node.phase == phase


def outer_scopes(scope: str) -> list[str]:
    """A scope with those around it, the outermost first; nothing for no scope.

    >>> outer_scopes("layer1.norm")
    ['layer1', 'layer1.norm']
    """
    parts = scope.split(".") if scope else []
    return [".".join(parts[: count + 1]) for count in range(len(parts))]


def lies_in(scope: str, outer: str) -> bool:
    """Whether a scope is another one, or inside it."""
    return scope == outer or scope.startswith(outer + ".")


def _stem(name: str) -> str:
    """A name without the number at its end."""
    return name.rstrip("0123456789")
