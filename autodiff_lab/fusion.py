"""Which neighbouring ops share one kernel, and for each pair that does not, the reason why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from heapq import heappop, heappush
from typing import Literal

from . import events
from .events import Receiver
from .graph import Graph, Node
from .operand_rules import PartialShape
from .shapes import Inference, infer_shapes, loss_text, shape_text

Reason = Literal[
    "joined", "unknown shape", "different shape", "not elementwise", "second consumer", "other device", "cycle",
    "after the reduction",
]  # fmt: skip

REPEATS = frozenset({"broadcast_to"})  # the operand's numbers, repeated
CONSTANTS = frozenset({"ones_like", "zeros_like"})  # made from a shape
REDUCTIONS = frozenset({"sum", "mean", "sum_to", "max", "min", "prod", "all", "any"})  # these close a loop
LOOPS = REPEATS | CONSTANTS | REDUCTIONS  # what can be part of one, beside elementwise ops

# ---------------------------------------------------------------------------------------------------------- what fusion says


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two ops of which one reads the other's result, and whether they share a kernel."""

    producer: int
    consumer: int
    reason: Reason
    text: str  # in words, with names, shapes, and the rule where one is to blame

    @property
    def joined(self) -> bool:
        """Whether both are in one group."""
        return self.reason == "joined"


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
    inference = infer_shapes(graph) if shapes is None else shapes
    grouping = _Grouping(graph, inference, write_shared, tell)
    for node in reversed(graph.nodes):
        if node.op is not None:
            grouping.visit(node)
    groups = tuple(_numbered(graph, grouping))
    if tell is not None:
        for group in groups:
            tell(events.GroupFormed(group.number, group.nodes, group.inputs, group.outputs, group.shape, group.name))
    return Fusion(graph, inference, groups, tuple(_with_what_is_written(graph, groups, grouping.pairs)))


# -------------------------------------------------------------------------------------------------------------- grouping


@dataclass(slots=True, eq=False)
class _Growing:
    """A group while ops join it. A set of nodes is the bits of a whole number: a union of two takes nanoseconds."""

    nodes: list[int]
    loop: PartialShape
    members: int
    after: int  # its nodes, and at least one of each group that waits for it
    behind: int  # what depends on its reductions in the graph
    operands: int  # what its nodes read

    def take(self, other: _Growing) -> None:
        """Become one with another group."""
        self.nodes += other.nodes
        self.loop = self.loop or other.loop
        self.members |= other.members
        self.after |= other.after
        self.behind |= other.behind
        self.operands |= other.operands


class _Grouping:
    """The groups while the ops are visited from the last to the first."""

    def __init__(self, graph: Graph, inference: Inference, write_shared: bool, tell: Receiver | None) -> None:
        self.graph, self.inference, self.write_shared, self.tell = graph, inference, write_shared, tell
        self.outputs = frozenset(graph.outputs)
        self.pairs: list[Neighbours] = []
        self.group: dict[int, _Growing] = {}  # of each op visited
        self.groups: dict[_Growing, None] = {}  # in the order in which they began
        self.below: dict[int, int] = {}  # of each op visited: itself, and what depends on it in the graph
        self.loops = [_has_loop(node) for node in graph.nodes]
        self.unknown = list(
            map(self._unknown, graph.nodes)
        )  # of each op: the first value of unknown shape that it meets

    def visit(self, node: Node) -> None:
        """Join an op with those of the groups that read it with which it may share a loop."""
        readers = [self.graph.nodes[reader] for reader in dict.fromkeys(self.graph.consumers[node.id])]
        around = list(dict.fromkeys(self.group[reader.id] for reader in readers))
        reasons = [self._obstacle(node, reader) or self._obstacle_around(node, reader, around) for reader in readers]
        refused = {self.group[reader.id] for reader, reason in zip(readers, reasons, strict=True) if reason}
        self._add(node, [group for group in around if group not in refused], around)
        for reader, reason in zip(readers, reasons, strict=True):
            self._say(node, reader, reason or "joined")

    def _obstacle(self, node: Node, reader: Node) -> Reason | None:
        """Why two ops cannot share a loop, whatever groups they are in."""
        if node.device != reader.device:
            return "other device"
        if not (self.loops[node.id] and self.loops[reader.id]):
            return "not elementwise"
        if self.unknown[node.id] is not None or self.unknown[reader.id] is not None:
            return "unknown shape"
        if node.label in REDUCTIONS:
            return "after the reduction"
        if self.inference.shapes[node.id] not in ((), self._loop(reader)):
            return "different shape"
        if not self.write_shared and self._is_shared(node):
            return "second consumer"
        return None

    def _obstacle_around(self, node: Node, reader: Node, around: Sequence[_Growing]) -> Reason | None:
        """Why an op cannot join the group of one that reads it, beside the groups of all that read it."""
        group = self.group[reader.id]
        is_smaller = self.inference.shapes[node.id] == () != group.loop
        if is_smaller and (len(around) > 1 or node.id in self.outputs):
            return "second consumer"
        return "cycle" if any(other.after & group.members for other in around if other is not group) else None

    def _add(self, node: Node, joined: Sequence[_Growing], around: Sequence[_Growing]) -> None:
        """Put a node into the groups that it joins, which become one, or into a new group."""
        bit = 1 << node.id
        self.below[node.id] = below = _union(bit, (self.below[reader] for reader in self.graph.consumers[node.id]))
        behind = below if node.label in REDUCTIONS else 0
        operands = _union(0, (1 << source for source in node.inputs))
        after = _union(bit, (group.after for group in around))
        new = _Growing([node.id], self._loop(node), bit, after, behind, operands)
        self.group[node.id], self.groups[new] = new, None
        grown = any(after & ~group.after & ~group.members & ~bit for group in joined)
        self._unite([*joined, new])
        if grown:
            self._spread(self.group[node.id], node.id)

    def _unite(self, parts: Sequence[_Growing]) -> None:
        """Make one group of several; the smaller ones go into the largest, so that few nodes change theirs."""
        largest = max(parts, key=lambda group: len(group.nodes))
        for part in parts:
            if part is not largest:
                largest.take(part)
                del self.groups[part]
                for member in part.nodes:
                    self.group[member] = largest

    def _spread(self, group: _Growing, last: int) -> None:
        """More waits for a group than did before: it also waits for all that the group itself waits for."""
        if (group.operands & ~group.members) >> (last + 1):  # something visited is waited for
            for other in self.groups:
                if other.after & group.members:
                    other.after |= group.after

    def _loop(self, node: Node) -> PartialShape:
        """The shape that the loop of an op runs over: that of its result, and of the operand of a reduction."""
        return self.inference.shapes[node.inputs[0] if node.label in REDUCTIONS else node.id]

    def _unknown(self, node: Node) -> int | None:
        """The first value of unknown shape that an op reads or gives."""
        return next((value for value in (*node.inputs, node.id) if value in self.inference.unknown), None)

    def _is_shared(self, node: Node) -> bool:
        return node.id in self.outputs or len(set(self.graph.consumers[node.id])) > 1

    # ------------------------------------------------------------------------------------------------------- in words

    def _say(self, node: Node, reader: Node, reason: Reason) -> None:
        if reason == "cycle" and self.group[node.id].behind & self.group[reader.id].members:
            reason = "after the reduction"
        pair = Neighbours(node.id, reader.id, reason, _TEXTS[reason](self, node, reader))
        self.pairs.append(pair)
        if self.tell is not None:
            self.tell(events.NeighboursCompared(*astuple(pair)))

    def _joined_text(self, node: Node, reader: Node) -> str:
        return f"{_called(node)} and {_called(reader)} share a loop over {shape_text(self.group[reader.id].loop)}"

    def _device_text(self, node: Node, reader: Node) -> str:
        return f"{_called(node)} lies on {node.device}, {_called(reader)} on {reader.device}"

    def _kind_text(self, node: Node, reader: Node) -> str:
        return f"{_called(reader if self.loops[node.id] else node)} does not work number by number"

    def _unknown_text(self, node: Node, reader: Node) -> str:
        value = next(v for v in (self.unknown[node.id], self.unknown[reader.id]) if v is not None)
        origin, shape = self.graph.nodes[self.inference.origin(value)], shape_text(self.inference.shapes[value])
        said = f"the shape of {_called(self.graph.nodes[value])} is not known: {shape}"
        if origin.id in self.inference.lost:
            return f"{said}, because {loss_text(origin)}"
        return said if origin.id == value else f"{said}, because of {_called(origin)}"

    def _shape_text(self, node: Node, reader: Node) -> str:
        shape, loop = (shape_text(s) for s in (self.inference.shapes[node.id], self._loop(reader)))
        return (
            f"the loop of {_called(reader)} is over {loop}: inside it {_called(node)}, of shape {shape}, would be computed "
            "again for every row"
        )

    def _shared_text(self, node: Node, reader: Node) -> str:
        others = [f"{_called(self.graph.nodes[i])} reads" for i in self.graph.consumers[node.id] if i != reader.id]
        others += ["the graph gives"] if node.id in self.outputs else []
        return f"{_called(node)} is needed elsewhere too: {others[0]} it, so it is computed and written once, before"

    def _cycle_text(self, node: Node, reader: Node) -> str:
        group = self.group[reader.id]
        others = (self.graph.nodes[i] for i in self.graph.consumers[node.id] if self.group[i] is not group)
        between = next(other for other in others if self.group[other.id].after & group.members)
        return (
            f"{_called(between)} reads {_called(node)}, and the kernel of {_called(reader)} waits for {_called(between)}: "
            "joined, it would wait for itself"
        )

    def _reduction_text(self, node: Node, reader: Node) -> str:
        if node.label in REDUCTIONS:
            return f"{_called(node)} is known when its loop is over, and only then can {_called(reader)} begin"
        closing = (self.graph.nodes[i] for i in self.group[node.id].nodes if self.graph.nodes[i].label in REDUCTIONS)
        first = next(one for one in closing if self.below[one.id] & self.group[reader.id].members)
        return f"{_called(first)} closes the loop of {_called(node)}, and the kernel of {_called(reader)} needs it"


_TEXTS = {
    "joined": _Grouping._joined_text,
    "other device": _Grouping._device_text,
    "not elementwise": _Grouping._kind_text,
    "unknown shape": _Grouping._unknown_text,
    "different shape": _Grouping._shape_text,
    "second consumer": _Grouping._shared_text,
    "cycle": _Grouping._cycle_text,
    "after the reduction": _Grouping._reduction_text,
}


def _has_loop(node: Node) -> bool:
    """Whether a node is an op that can be part of a loop made for several."""
    return node.op is not None and (node.op.elementwise or node.op.name in LOOPS)


def _called(node: Node) -> str:
    return f"{node.label} {node.id}{f' ({node.name})' if node.name else ''}"


def _union(first: int, sets: Iterable[int]) -> int:
    for one in sets:
        first |= one
    return first


# ---------------------------------------------------------------------------------------------------------------- result


def _numbered(graph: Graph, grouping: _Grouping) -> Iterator[Group]:
    """The groups in an order in which each comes after what it reads: of those that can run, the one that ends first."""
    feeds: dict[_Growing, set[_Growing]] = {group: set() for group in grouping.groups}
    waiting = dict.fromkeys(grouping.groups, 0)
    for source, consumer in graph.edges:
        one, other = grouping.group.get(source), grouping.group[consumer]
        if one is not None and one is not other and other not in feeds[one]:
            feeds[one].add(other)
            waiting[other] += 1
    ready = [(max(group.nodes), group.nodes[0], group) for group in grouping.groups if not waiting[group]]
    ready.sort()
    number = 0
    while ready:
        *_, group = heappop(ready)
        yield _group(graph, grouping.outputs, number, group)
        number += 1
        for reader in feeds[group]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heappush(ready, (max(reader.nodes), reader.nodes[0], reader))


def _group(graph: Graph, ends: frozenset[int], number: int, growing: _Growing) -> Group:
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
    written = {node: group for group in groups for node in group.outputs}
    for pair in sorted(pairs, key=lambda pair: (pair.consumer, pair.producer)):
        group = written.get(pair.producer)
        if pair.joined and group is not None:
            outside = [i for i in graph.consumers[pair.producer] if i not in group.nodes]
            needed = f"{_called(graph.nodes[outside[0]])} reads" if outside else "the graph gives"
            pair = replace(
                pair, text=f"{pair.text}; {_called(graph.nodes[pair.producer])} is written too, because {needed} it"
            )
        yield pair
