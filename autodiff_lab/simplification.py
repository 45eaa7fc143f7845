"""A graph made shorter without changing a bit of its results: constants folded, equal work shared, unneeded nodes dropped.

Only ops of this library are folded and shared: they are known to be functions of their operands. An op of yours may draw
random numbers or count its calls, so it is called as often as the recorded function called it, unless nobody needs its result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import events
from .events import Receiver
from .graph import Graph, Node
from .operators import Op

_OURS = f"{__package__}.ops."
_SMALL = 4096  # bytes: a constant up to this size may be made where there was a smaller one


@dataclass(frozen=True, eq=False)
class Simplified:
    """A shorter graph, and what became of each node of the one that it was made from."""

    graph: Graph
    original: Graph
    folded: tuple[int, ...]  # nodes of the original whose value is known now, or is one of their operands
    shared: Mapping[int, int]  # nodes of the original, and the earlier node that computes the same
    dropped: tuple[int, ...]  # nodes of the original that no output needs
    places: Mapping[int, int]  # nodes of the original that are left, or stand for others, and their ids in ``graph``

    def __str__(self) -> str:
        """One line: how many nodes there were and are, and why."""
        what = f"{len(self.folded)} folded, {len(self.shared)} shared, {len(self.dropped)} dropped"
        return f"{self.original.name}: {len(self.original)} nodes, {len(self.graph)} after simplification ({what})"


def simplify(graph: Graph, tell: Receiver | None = None) -> Simplified:
    """Fold what has constant operands, share what is computed twice, and drop what no output needs.

    A product with exactly 1 is its other operand, where shape and dtype stay. A constant never grows to more than 4 KB by
    folding: ``broadcast_to`` of a number stays a number where its consumers broadcast anyway. Results are the same bit by bit,
    NaN and −0.0 included.

    >>> import autodiff_lab as ad
    >>> def f(x):
    ...     return (ad.ops.exp(x) + ad.ops.exp(x)) * (ad.ops.ones_like(x) * 3.0)
    >>> found = simplify(ad.record(f, np.zeros(2)))
    >>> print(found)
    f: 8 nodes, 5 after simplification (2 folded, 1 shared, 0 dropped)
    >>> [node.label for node in found.graph]
    ['input', 'exp', 'add', 'constant', 'mul']
    """
    pass_ = _Pass(graph, tell)
    for node in graph:
        pass_.visit(node)
    return pass_.finish()


class _Pass:
    def __init__(self, graph: Graph, tell: Receiver | None) -> None:
        self.graph, self.tell = graph, tell
        self.nodes = list(graph.nodes)  # as they are now, under the ids of the original; new constants come behind
        self.inputs = [node.inputs for node in graph]
        self.before = list(range(len(graph)))  # where a node stands: a new constant, before the node that it serves
        self.meant = list(range(len(graph)))  # the node that stands for each one
        self.uniform: dict[int, int] = {}  # nodes full of one known number, and the constant that is this number
        self.known: dict[Any, int] = {}
        self.folded: list[int] = []
        self.shared: dict[int, int] = {}

    def visit(self, node: Node) -> None:
        """What one node becomes, now that its operands are what they are."""
        if node.kind == "constant":
            self._share(node, _constant_key(node))
        op = node.op
        if op is None:
            return
        inputs = [self.meant[i] for i in node.inputs]
        if op.module.startswith(_OURS):
            self._skip_broadcasts(node, inputs)
            self._simplify(node, op, inputs)
        self.inputs[node.id] = tuple(inputs)

    def _simplify(self, node: Node, op: Op, inputs: Sequence[int]) -> None:
        operands = [self.nodes[i] for i in inputs]
        if (value := _folded(node, operands)) is not None:
            self.nodes[node.id] = node = _constant(node, node.id, value)
            self._fold(node.id, node.id)
            self._share(node, _constant_key(node))
        elif (same := _times_one(node, operands)) is not None:
            self.meant[node.id] = same.id
            self._fold(node.id, same.id)
        else:
            self._note_uniform(node, operands)
            which = tuple(sorted(inputs) if op.name in ("add", "mul") else inputs)
            self._share(node, (op, which, bitwise_key(node.attributes), node.device))

    def _fold(self, node: int, into: int) -> None:
        self.folded.append(node)
        if self.tell is not None:
            self.tell(events.NodeFolded(node, into, self.graph.nodes[node].label))

    def _share(self, node: Node, key: Any) -> None:
        earlier = self.known.setdefault(key, node.id)
        if earlier == node.id:
            return
        self.meant[node.id] = earlier
        if self.graph.nodes[node.id].kind == "op" and node.kind == "op":
            self.shared[node.id] = earlier
            if self.tell is not None:
                self.tell(events.NodeShared(node.id, earlier, node.label))

    def _note_uniform(self, node: Node, operands: Sequence[Node]) -> None:
        """A large node that is full of one known number keeps it beside itself, as a constant of one number."""
        one = _uniform_value(node, [self.nodes[self.uniform.get(operand.id, operand.id)] for operand in operands])
        if one is not None:
            self.uniform[node.id] = len(self.nodes)
            self.nodes.append(replace(_constant(node, len(self.nodes), one), shape=()))
            self.inputs.append(())
            self.before.append(node.id)

    def _skip_broadcasts(self, node: Node, inputs: list[int]) -> None:
        """Give an elementwise op the one number of an operand that is full of it, where another operand has the shape."""
        assert node.op is not None
        for place, operand in enumerate(inputs):
            if node.op.elementwise and operand in self.uniform:
                others = [self.nodes[i].shape for other, i in enumerate(inputs) if other != place]
                if np.broadcast_shapes(*others) == node.shape:
                    inputs[place] = self.uniform[operand]

    def finish(self) -> Simplified:
        """The graph of what the outputs need. Inputs stay, since callers pass them."""
        outputs = tuple(self.meant[i] for i in self.graph.outputs)
        needed: set[int] = set()
        stack = [*outputs]
        while stack:
            if (node := stack.pop()) not in needed:
                needed.add(node)
                stack.extend(self.inputs[node] if self.nodes[node].op is not None else ())
        needed.update(self.graph.inputs)
        order = sorted(needed, key=lambda i: (self.before[i], -i))
        places = {node: place for place, node in enumerate(order)}
        gone = {*self.shared, *(i for i in self.folded if i not in needed)}
        dropped = tuple(i for i in range(len(self.graph)) if i not in needed and self._is_lost(i, gone))
        if self.tell is not None:
            for i in dropped:
                self.tell(events.NodeDropped(i, self.graph.nodes[i].label))
        for node, stands_for in enumerate(self.meant):
            if stands_for in places:
                places[node] = places[stands_for]
        nodes = tuple(_renumbered(self.nodes[i], self.inputs[i], places) for i in order)
        ends = tuple(places[i] for i in self.graph.inputs), tuple(places[i] for i in outputs)
        made = Graph(nodes, *ends, self.graph.name, self.graph.structure)
        return Simplified(made, self.graph, tuple(self.folded), self.shared, dropped, places)

    def _is_lost(self, node: int, gone: set[int]) -> bool:
        """Whether a node that is not needed was dropped, and not folded or shared: of a constant only its number counts."""
        return node not in gone and self.graph.nodes[node].kind == "op"


def _renumbered(node: Node, inputs: Sequence[int], places: Mapping[int, int]) -> Node:
    saved = tuple(dict.fromkeys(places[i] for i in node.saved if i in places))
    origin = None if node.origin is None else places.get(node.origin)
    mine = tuple(places[i] for i in inputs) if node.op is not None else ()
    return replace(node, id=places[node.id], inputs=mine, saved=saved, origin=origin)


def _constant(node: Node, id: int, value: Any) -> Node:
    return replace(node, id=id, kind="constant", op=None, inputs=(), attributes={}, saved=(), value=value)


def _constant_key(node: Node) -> Any:
    """Numbers and small arrays by value and type; large arrays by identity, since comparing them would take long."""
    value = node.value
    if isinstance(value, (int, float)) or (isinstance(value, np.ndarray) and value.nbytes <= _SMALL):
        return ("constant", node.device, bitwise_key(value))
    return ("constant", node.id)


def _uniform_value(node: Node, operands: Sequence[Node]) -> Any:
    """The number that fills a node, as a 0-d array, where its operands say so; else None."""
    op = node.op
    assert op is not None
    if node.device != "cpu" or node.nbytes <= _SMALL:
        return None
    if op.name in ("ones_like", "zeros_like"):
        return np.array(op.name == "ones_like", node.dtype)
    if not all(operand.kind == "constant" and np.size(operand.value) == 1 for operand in operands):
        return None
    values = [o.value if isinstance(o.value, (int, float)) else np.reshape(o.value, ()) for o in operands]
    if op.name in ("broadcast_to", "reshape", "transpose"):
        return None if isinstance(values[0], (int, float)) else values[0]
    return _computed(node, (), values) if op.elementwise else None


def _folded(node: Node, operands: Sequence[Node]) -> Any:
    """The node's value, where all of its operands are constants on the CPU and it is not too large; else None."""
    op = node.op
    assert op is not None
    if node.device != "cpu" or "device" in node.attributes:
        return None
    if op.name in ("ones_like", "zeros_like") and node.nbytes <= _SMALL:  # the shape is enough
        return (np.ones if op.name == "ones_like" else np.zeros)(node.shape, node.dtype)
    if any(operand.kind != "constant" or operand.value is None or operand.device != "cpu" for operand in operands):
        return None
    if node.nbytes > max(_SMALL, sum(operand.nbytes for operand in operands)):
        return None
    return _computed(node, node.shape, [operand.value for operand in operands])


def _computed(node: Node, shape: tuple[int, ...], operands: Sequence[Any]) -> Any:
    """What the op makes of known operands; None where it fails, so that the run itself says so, at its line."""
    assert node.op is not None
    try:
        with np.errstate(all="ignore"), events.silence():
            value = node.op.apply(operands, node.attributes)
    except (ArithmeticError, TypeError, ValueError, IndexError):
        return None
    return value.copy() if (value.shape, value.dtype) == (shape, node.dtype) else None


def _times_one(node: Node, operands: Sequence[Node]) -> Node | None:
    """The other operand of a product with exactly 1, or of a quotient by it, if that has the result's shape and dtype."""
    if node.label not in ("mul", "div"):
        return None
    for place in (1, 0) if node.label == "mul" else (1,):
        other = operands[1 - place]
        is_same = (other.shape, other.dtype, other.device) == (node.shape, node.dtype, node.device)
        is_number = other.kind == "constant" and isinstance(other.value, (int, float))
        if is_same and not is_number and _is_one(operands[place]):
            return other
    return None


def _is_one(node: Node) -> bool:
    """Whether a node is a constant full of ones."""
    if node.kind != "constant" or node.device != "cpu":
        return False
    return bool(np.size(node.value) and np.size(node.value) * 8 <= _SMALL and np.all(np.equal(node.value, 1)))


_PLAIN = frozenset([bool, int, str, bytes, type(None), type(...)])


def bitwise_key(value: Any) -> Any:
    """Something hashable that is equal only for attributes or constants that are the same bit by bit."""
    if type(value) in _PLAIN:
        return (type(value), value)
    if isinstance(value, dict):
        return tuple((name, bitwise_key(part)) for name, part in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return (type(value), *map(bitwise_key, value))
    if isinstance(value, (np.ndarray, np.generic)):
        return (type(value), value.shape, value.dtype, value.tobytes())
    if isinstance(value, float):
        return (float, value.hex())  # tells −0.0 from 0.0; every NaN of Python is one
    if isinstance(value, slice):
        return (slice, bitwise_key(value.start), bitwise_key(value.stop), bitwise_key(value.step))
    if isinstance(value, Mapping):
        return bitwise_key(dict(value))
    if isinstance(value, (type, np.dtype)):
        return (np.dtype, value) if isinstance(value, np.dtype) else (type, value)
    return object()  # unknown: the same as nothing else
