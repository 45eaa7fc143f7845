"""Which neighbouring ops share one kernel, and for each pair that does not, the reason why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heapify, heappop, heappush

from . import events
from .events import Receiver
from .graph import Graph, check_graph
from .grouping import LOOPS as LOOPS
from .grouping import REDUCTIONS as REDUCTIONS
from .grouping import Grouping, Growing, called
from .grouping import Neighbours as Neighbours
from .grouping import Reason as Reason
from .operand_rules import PartialShape
from .shapes import Inference, infer_shapes, shape_text

# ---------------------------------------------------------------------------------------------------------- what fusion says


@dataclass(frozen=True, slots=True)
class Group:
    """Ops that are one kernel: a loop over ``shape`` that reads ``inputs`` and writes ``outputs``.

    Every value of the loop has its shape. Two kinds are smaller: a reduction, which no other member reads, and a single
    number of shape ``()`` that only members read. A group of one op is that op's own kernel, whatever op it is.
    """

    number: int  # groups can run in the order of their numbers
    nodes: tuple[int, ...]  # in the order of the graph
    inputs: tuple[int, ...]  # values from outside, each once
    outputs: tuple[int, ...]  # values that are needed outside, or that nothing reads
    shape: PartialShape
    device: str
    name: str


@dataclass(frozen=True, eq=False)
class Fusion:
    """A graph, and which of its ops are one kernel. The graph itself is as it was."""

    graph: Graph
    shapes: Inference
    groups: tuple[Group, ...]
    neighbours: tuple[Neighbours, ...]  # one for each pair, in the order of the consumers

    @property
    def kernels_before(self) -> int:
        """How many kernels run without fusion: one for each op."""
        return sum(len(group.nodes) for group in self.groups)

    @property
    def kernels_after(self) -> int:
        """How many kernels run with it: one for each group."""
        return len(self.groups)

    def group_of(self, node: int) -> Group | None:
        """The group of a node; None for an input or a constant."""
        return self._groups_by_node.get(node)

    @cached_property
    def _groups_by_node(self) -> dict[int, Group]:
        return {node: group for group in self.groups for node in group.nodes}

    def text(self) -> str:
        """The groups, and each pair of neighbours that was not joined, with its reason."""
        lines = [f"fusion of graph {self.graph.name}: {self.kernels_before} kernels before, {self.kernels_after} after"]
        for group in self.groups:
            ids = ", ".join(map(str, group.nodes))
            lines.append(f"  kernel {group.number}: {group.name} [{ids}] over {shape_text(group.shape)}")
        broken = [pair for pair in self.neighbours if not pair.joined]
        lines += [f"  {pair.producer} | {pair.consumer}  {pair.reason}: {pair.text}" for pair in broken]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()


def fuse(
    graph: Graph, shapes: Inference | None = None, *, write_shared: bool = True, tell: Receiver | None = None
) -> Fusion:
    """Join neighbouring ops into groups, each of which is one kernel: one loop that keeps what is in between in registers.

    Elementwise ops, broadcasts and constants made from a shape share a loop where their values have the loop's shape; a
    reduction closes it. Other shapes may come from outside, broadcast as NumPy does; inside, only a single number that the
    group alone reads may be smaller, since any other value would be computed again for every row. No group ever waits for
    something that waits for it.

    The ops are visited from the last to the first, and each joins the ops that read it. So what backward needs of a forward
    value is computed in backward's loop, late, and need not be kept.

    Args:
        graph: a recorded graph.
        shapes: what is known of its shapes; ``infer_shapes(graph)`` by default.
        write_shared: whether a value that another op needs too may be joined, and written as well.
        tell: hears a ``NeighboursCompared`` for each pair and a ``GroupFormed`` for each group.

    >>> import numpy as np
    >>> from autodiff_lab import ops, record
    >>> print(fuse(record(lambda x, w: ops.tanh(x @ w * 2.0).sum(), np.ones((2, 3)), np.ones((3, 4)))))
    fusion of graph <lambda>: 4 kernels before, 2 after
      kernel 0: matmul [2] over (2, 4)
      kernel 1: mul+tanh+sum [4, 5, 6] over (2, 4)
      2 | 4  not elementwise: matmul 2 does not work number by number
    """
    check_graph(graph, "fuse")
    inference = infer_shapes(graph) if shapes is None else shapes
    grouping = Grouping(graph, inference, write_shared, tell)
    for node in reversed(graph.nodes):
        if node.op is not None:
            grouping.visit(node)
    groups = tuple(_numbered(graph, grouping))
    if tell is not None:
        for group in groups:
            tell(events.GroupFormed(group.number, group.nodes, group.inputs, group.outputs, group.shape, group.name))
    return Fusion(graph, inference, groups, tuple(_with_what_is_written(graph, groups, grouping.pairs)))


# ---------------------------------------------------------------------------------------------------------------- result


def _numbered(graph: Graph, grouping: Grouping) -> Iterator[Group]:
    """The groups in an order in which each comes after what it reads: of those that can run, the one that ends first."""
    feeds: dict[Growing, set[Growing]] = {group: set() for group in grouping.groups}
    waiting = dict.fromkeys(grouping.groups, 0)
    for source, consumer in graph.edges:
        one, other = grouping.group.get(source), grouping.group[consumer]
        if one is not None and one is not other and other not in feeds[one]:
            feeds[one].add(other)
            waiting[other] += 1
    ready = [(max(group.nodes), group.nodes[0], group) for group in grouping.groups if not waiting[group]]
    heapify(ready)
    number = 0
    while ready:
        group = heappop(ready)[-1]
        yield _group(graph, grouping.outputs, number, group)
        number += 1
        for reader in feeds[group]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heappush(ready, (max(reader.nodes), reader.nodes[0], reader))


def _group(graph: Graph, ends: frozenset[int], number: int, growing: Growing) -> Group:
    nodes = tuple(sorted(growing.nodes))
    inside = set(nodes)
    inputs = tuple(dict.fromkeys(i for node in nodes for i in graph.nodes[node].inputs if i not in inside))
    outputs = tuple(node for node in nodes if node in ends or not inside.issuperset(graph.consumers[node] or (-1,)))
    return Group(number, nodes, inputs, outputs, growing.loop, graph.nodes[nodes[0]].device, _name(graph, nodes))


def _name(graph: Graph, nodes: Sequence[int]) -> str:
    """The ops of a group, of a long one the first two and the last: ``mul+add+…+sum``."""
    labels = [graph.nodes[node].label for node in nodes]
    return "+".join(labels if len(labels) <= 4 else [*labels[:2], "…", labels[-1]])


def _with_what_is_written(graph: Graph, groups: Sequence[Group], pairs: Sequence[Neighbours]) -> Iterator[Neighbours]:
    """The pairs in the order of the graph; of a value that is joined and needed outside too it is said that it is written."""
    owner = {node: group for group in groups for node in group.nodes}
    written = {node for group in groups for node in group.outputs}
    for pair in sorted(pairs, key=lambda pair: (pair.consumer, pair.producer)):
        if pair.joined and pair.producer in written:
            here = owner[pair.producer]
            outside = [reader for reader in graph.consumers[pair.producer] if owner[reader] is not here]
            needed = f"{called(graph.nodes[outside[0]])} reads" if outside else "the graph gives"
            value = called(graph.nodes[pair.producer])
            pair = replace(pair, text=f"{pair.text}; {value} is written too, because {needed} it")
        yield pair
