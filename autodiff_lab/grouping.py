"""Which ops share a loop: ops join the groups that read them, one after the other, or a reason says why not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Literal

from . import events
from .events import Receiver
from .graph import Graph, Node
from .operand_rules import PartialShape
from .shapes import Inference, shape_text

Reason = Literal[
    "joined", "unknown shape", "different shape", "not elementwise", "second consumer", "other device", "cycle",
    "after the reduction",
]  # fmt: skip

REPEATS = frozenset({"broadcast_to"})  # the operand's numbers, repeated
CONSTANTS = frozenset({"ones_like", "zeros_like"})  # made from a shape
REDUCTIONS = frozenset({"sum", "mean", "sum_to", "max", "min", "prod", "all", "any"})  # these close a loop
LOOPS = REPEATS | CONSTANTS | REDUCTIONS  # what can be part of one, beside elementwise ops


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


@dataclass(slots=True, eq=False)
class Growing:
    """A group while ops join it. A set of nodes is the bits of a whole number: a union of two takes nanoseconds."""

    nodes: list[int]
    loop: PartialShape
    members: int
    after: int  # its nodes, and at least one of each group that waits for it
    behind: int  # what depends on its reductions in the graph
    operands: int  # what its nodes read

    def take(self, other: Growing) -> None:
        """Become one with another group."""
        self.nodes += other.nodes
        self.loop = self.loop or other.loop
        self.members |= other.members
        self.after |= other.after
        self.behind |= other.behind
        self.operands |= other.operands


class Grouping:
    """The groups while the ops are visited from the last to the first."""

    def __init__(self, graph: Graph, inference: Inference, write_shared: bool, tell: Receiver | None) -> None:
        self.graph, self.inference, self.write_shared, self.tell = graph, inference, write_shared, tell
        self.outputs = frozenset(graph.outputs)
        self.pairs: list[Neighbours] = []
        self.group: dict[int, Growing] = {}  # of each op visited
        self.groups: dict[Growing, None] = {}  # in the order in which they began
        self.below: dict[int, int] = {}  # of each op visited: itself, and what depends on it in the graph
        self.loops = [_has_loop(node) for node in graph.nodes]
        self.closes = [node.label in REDUCTIONS for node in graph.nodes]
        self.unknown = list(map(self._unknown, graph.nodes))  # of each op: the first value of unknown shape it meets

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
        if self.closes[node.id]:
            return "after the reduction"
        if self.inference.shapes[node.id] not in ((), self._loop(reader)):
            return "different shape"
        if not self.write_shared and self._is_shared(node):
            return "second consumer"
        return None

    def _obstacle_around(self, node: Node, reader: Node, around: Sequence[Growing]) -> Reason | None:
        """Why an op cannot join the group of one that reads it, beside the groups of all that read it."""
        group = self.group[reader.id]
        is_smaller = self.inference.shapes[node.id] == () != group.loop
        if is_smaller and (len(around) > 1 or node.id in self.outputs):
            return "second consumer"
        return "cycle" if any(other.after & group.members for other in around if other is not group) else None

    def _add(self, node: Node, joined: Sequence[Growing], around: Sequence[Growing]) -> None:
        """Put a node into the groups that it joins, which become one, or into a new group."""
        bit = 1 << node.id
        self.below[node.id] = below = _union(bit, (self.below[reader] for reader in self.graph.consumers[node.id]))
        behind = below if self.closes[node.id] else 0
        operands = _union(0, (1 << source for source in node.inputs))
        after = _union(bit, (group.after for group in around))
        new = Growing([node.id], self._loop(node), bit, after, behind, operands)
        self.group[node.id], self.groups[new] = new, None
        grown = any(after & ~group.after & ~group.members & ~bit for group in joined)
        self._unite([*joined, new])
        if grown:
            self._spread(self.group[node.id], node.id)

    def _unite(self, parts: Sequence[Growing]) -> None:
        """Make one group of several; the smaller ones go into the largest, so that few nodes change theirs."""
        largest = max(parts, key=lambda group: len(group.nodes))
        for part in parts:
            if part is not largest:
                largest.take(part)
                del self.groups[part]
                for member in part.nodes:
                    self.group[member] = largest

    def _spread(self, group: Growing, last: int) -> None:
        """More waits for a group than did before: it also waits for all that the group itself waits for."""
        if (group.operands & ~group.members) >> (last + 1):  # something visited is waited for
            for other in self.groups:
                if other.after & group.members:
                    other.after |= group.after

    def _loop(self, node: Node) -> PartialShape:
        """The shape that the loop of an op runs over: that of its result, and of the operand of a reduction."""
        return self.inference.shapes[node.inputs[0] if self.closes[node.id] else node.id]

    def _unknown(self, node: Node) -> int | None:
        """The first value of unknown shape that an op reads or gives."""
        unknown = self.inference.unknown
        return next((value for value in (*node.inputs, node.id) if value in unknown), None) if unknown else None

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
        return f"{called(node)} and {called(reader)} share a loop over {shape_text(self.group[reader.id].loop)}"

    def _device_text(self, node: Node, reader: Node) -> str:
        return f"{called(node)} lies on {node.device}, {called(reader)} on {reader.device}"

    def _kind_text(self, node: Node, reader: Node) -> str:
        return f"{called(reader if self.loops[node.id] else node)} does not work number by number"

    def _unknown_text(self, node: Node, reader: Node) -> str:
        value = next(v for v in (self.unknown[node.id], self.unknown[reader.id]) if v is not None)
        origin, shape = self.graph.nodes[self.inference.origin(value)], shape_text(self.inference.shapes[value])
        said = f"the shape of {called(self.graph.nodes[value])} is not known: {shape}"
        if origin.id in self.inference.losses:
            return f"{said}, because {self.inference.losses[origin.id]}"
        return said if origin.id == value else f"{said}, because of {called(origin)}"

    def _shape_text(self, node: Node, reader: Node) -> str:
        shape, loop = (shape_text(s) for s in (self.inference.shapes[node.id], self._loop(reader)))
        return (
            f"the loop of {called(reader)} is over {loop}: inside it {called(node)}, of shape {shape}, would be computed "
            "again for every row"
        )

    def _shared_text(self, node: Node, reader: Node) -> str:
        others = [f"{called(self.graph.nodes[i])} reads" for i in self.graph.consumers[node.id] if i != reader.id]
        others += ["the graph gives"] if node.id in self.outputs else []
        return f"{called(node)} is needed elsewhere too: {others[0]} it, so it is computed and written once, before"

    def _cycle_text(self, node: Node, reader: Node) -> str:
        group = self.group[reader.id]
        others = (self.graph.nodes[i] for i in self.graph.consumers[node.id] if self.group[i] is not group)
        between = next(other for other in others if self.group[other.id].after & group.members)
        return (
            f"{called(between)} reads {called(node)}, and the kernel of {called(reader)} waits for {called(between)}: "
            "joined, it would wait for itself"
        )

    def _reduction_text(self, node: Node, reader: Node) -> str:
        if self.closes[node.id]:
            return f"{called(node)} is known when its loop is over, and only then can {called(reader)} begin"
        closing = (self.graph.nodes[i] for i in self.group[node.id].nodes if self.closes[i])
        first = next(one for one in closing if self.below[one.id] & self.group[reader.id].members)
        return f"{called(first)} closes the loop of {called(node)}, and the kernel of {called(reader)} needs it"


_TEXTS = {
    "joined": Grouping._joined_text,
    "other device": Grouping._device_text,
    "not elementwise": Grouping._kind_text,
    "unknown shape": Grouping._unknown_text,
    "different shape": Grouping._shape_text,
    "second consumer": Grouping._shared_text,
    "cycle": Grouping._cycle_text,
    "after the reduction": Grouping._reduction_text,
}


def _has_loop(node: Node) -> bool:
    """Whether a node is an op that can be part of a loop made for several."""
    return node.op is not None and (node.op.elementwise or node.op.name in LOOPS)


def called(node: Node) -> str:
    """A node in a sentence: ``tanh 4 (h)``."""
    return f"{node.label} {node.id}{f' ({node.name})' if node.name else ''}"


def _union(first: int, sets: Iterable[int]) -> int:
    for one in sets:
        first |= one
    return first
