"""Graph and Node: frozen records of a computation, and the orders in which a graph can be walked."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from . import events
from .events import Receiver

if TYPE_CHECKING:
    from .operators import Op

Phase = Literal["forward", "backward", "update"]
Kind = Literal["input", "constant", "op"]


@dataclass(frozen=True, slots=True)
class Source:
    """The line of the user's code that a node came from."""

    file: str
    line: int
    function: str
    text: str

    def __str__(self) -> str:
        name = self.file.replace("\\", "/").rsplit("/", 1)[-1]
        in_a_cell = "ipykernel" in self.file or name.startswith("<")  # a notebook's files have numbers for names
        place = f"line {self.line}" if in_a_cell else f"{name}:{self.line}"
        where = "" if self.function == "<module>" else f" in {self.function}"
        return f"{place}{where}: {self.text}"


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One value of a graph, and how it was computed.

    ``inputs`` are ids of earlier nodes, one per argument of the op, so a value used twice appears twice. ``saved`` are ids
    of the nodes whose values the gradient rules will reuse. ``origin`` is, for a node made by a backward rule, the id of the
    forward node whose rule made it. ``serial`` numbers records in the order in which they were made.
    """

    id: int
    kind: Kind
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    op: Op | None = None
    inputs: tuple[int, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    phase: Phase = "forward"
    scope: str = ""
    source: Source | None = None
    value: Any = None
    saved: tuple[int, ...] = ()
    origin: int | None = None
    serial: int = -1

    @property
    def label(self) -> str:
        """What the node is: the op's name, or ``input`` or ``constant``."""
        return self.op.name if self.op is not None else self.kind

    @property
    def dtype_fact(self) -> Any:
        """What a dtype rule is given: the dtype, or for a Python number the 0 of its type, which widens nothing."""
        is_number = self.kind == "constant" and isinstance(self.value, (int, float))
        return type(self.value)(0) if is_number else self.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the node's value."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A frozen record of a computation: nodes in a valid order, each after its inputs.

    >>> import autodiff_lab as ad
    >>> def f(x, w):
    ...     h = x * w
    ...     return ad.ops.tanh(h)
    >>> print(ad.record(f, 2.0, 0.5))
    graph f: 4 nodes, 3 edges
      0  x  input     ()  float64
      1  w  input     ()  float64
      2  h  mul(0, 1) ()  float64
      3     tanh(2)   ()  float64
    output 3
    """

    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str = "graph"
    structure: Any = None  # how the outputs nest: a trees.Structure; None is one plain output

    if TYPE_CHECKING:  # attached by graph_export.py, which stands above the ops

        def to_dot(self) -> str: ...
        def to_json(self) -> str: ...
        @classmethod
        def from_json(cls, text: str) -> Graph: ...

    def __eq__(self, other: object) -> bool:
        """Whether both compute the same in the same steps: ops, attributes, inputs, shapes, dtypes and constants.

        Names, scopes, phases and source lines are free. An op that was defined anew since is another op.

        >>> import autodiff_lab as ad
        >>> ad.record(lambda x: x * 2.0, 1.0) == ad.record(lambda renamed: renamed * 2.0, 5.0)
        True
        >>> ad.record(lambda x: x * 2.0, 1.0) == ad.record(lambda x: x * 3.0, 1.0)
        False
        """
        if not isinstance(other, Graph):
            return NotImplemented
        if len(self) != len(other):
            return False
        ends = (self.inputs, self.outputs, self.structure) == (other.inputs, other.outputs, other.structure)
        return ends and all(map(_computes_the_same, self.nodes, other.nodes))

    def __hash__(self) -> int:
        steps = tuple((node.label, node.inputs, node.shape, node.dtype) for node in self.nodes)
        return hash((steps, self.inputs, self.outputs))

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()

    @property
    def edges(self) -> Iterator[tuple[int, int]]:
        """Every (input, consumer) pair; a value used twice by one op gives two."""
        return ((source, node.id) for node in self.nodes for source in node.inputs)

    @cached_property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """For each node the ids of the nodes that use it, once per use."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for source, consumer in self.edges:
            found[source].append(consumer)
        return tuple(map(tuple, found))

    @cached_property
    def saved_by(self) -> Mapping[int, tuple[int, ...]]:
        """For each value that backward reuses, the ids of the nodes that keep it: those whose gradient rules name it."""
        keepers: dict[int, list[int]] = {}
        for node in self.nodes:
            for value in dict.fromkeys(node.saved):
                keepers.setdefault(value, []).append(node.id)
        return {value: tuple(ids) for value, ids in keepers.items()}

    def node(self, name: str) -> Node:
        """The node with this name; the last one where several share it."""
        for candidate in reversed(self.nodes):
            if candidate.name == name:
                return candidate
        known = ", ".join(sorted({n.name for n in self.nodes if n.name})) or "none"
        raise KeyError(f"graph {self.name} has no node named {name!r}; its names are: {known}")

    def text(self) -> str:
        """The whole graph as text, one line a node."""
        calls = [_call(node) for node in self.nodes]
        width_name = max((len(node.name) for node in self.nodes), default=0)
        width_call = max(map(len, calls), default=0)
        count = sum(len(node.inputs) for node in self.nodes)
        lines = [f"graph {self.name}: {len(self.nodes)} nodes, {count} edges"]
        for node, call in zip(self.nodes, calls, strict=True):
            device = (
                ""
                if node.device == "cpu"
                else f"  on {node.device}{' (simulated)' if node.device.startswith('sim') else ''}"
            )
            phase = "" if node.phase == "forward" else f"  {node.phase}"
            scope = f"  [{node.scope}]" if node.scope else ""
            replaced = "" if node.op is None or node.op.is_current else "  (replaced since)"
            lines.append(
                f"  {node.id}  {node.name:{width_name}}  {call:{width_call}} {node.shape}  {node.dtype}"
                f"{device}{phase}{scope}{replaced}"
            )
        lines.append("output " + ", ".join(map(str, self.outputs)))
        return "\n".join(lines)

    def __call__(self, *arguments: Any) -> Any:
        """Run the graph on new arguments: arrays, Tensors or symbols, in the order of its inputs.

        >>> import autodiff_lab as ad
        >>> square = ad.record(lambda x: x * x, 3.0)
        >>> float(square(5.0))
        25.0
        """
        values = self.values_with(*arguments)
        for node in self.nodes:
            if node.op is not None:
                values[node.id] = node.op.apply([values[i] for i in node.inputs], node.attributes)
        return self.results_of(values)

    def values_with(self, *arguments: Any) -> list[Any]:
        """One value for each node before a run: the arguments, in the order of the inputs, and the constants; else None."""
        if len(arguments) != len(self.inputs):
            names = ", ".join(self.nodes[i].name for i in self.inputs)
            raise TypeError(f"graph {self.name} takes {len(self.inputs)} inputs ({names}), got {len(arguments)}")
        values: list[Any] = [node.value for node in self.nodes]
        for place, argument in zip(self.inputs, arguments, strict=True):
            shape = argument.shape if hasattr(argument, "shape") else np.shape(argument)
            if shape != self.nodes[place].shape:
                raise ValueError(
                    f"graph {self.name}: its input {self.nodes[place].name} was recorded with shape "
                    f"{self.nodes[place].shape}, got {shape}; record the function again for another shape"
                )
            values[place] = argument
        for node in self.nodes:
            if node.kind == "constant" and node.value is None:
                raise ValueError(
                    f"graph {self.name}: constant {node.id} was not kept when it was computed; record the function"
                )
        return values

    def results_of(self, values: Sequence[Any]) -> Any:
        """The outputs among the nodes' values, nested as the function returned them."""
        results = [values[i] for i in self.outputs]
        return results[0] if self.structure is None else self.structure.rebuild(results)


def _computes_the_same(one: Node, other: Node) -> bool:
    facts = [(n.kind, n.op, n.inputs, n.shape, n.dtype, n.device) for n in (one, other)]
    if facts[0] != facts[1] or not _equal(dict(one.attributes), dict(other.attributes)):
        return False
    return one.kind != "constant" or _equal(one.value, other.value)


def _equal(a: Any, b: Any) -> bool:
    """Whether two attributes or constants are equal: of one type, arrays number by number (NaN equals NaN)."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_equal, a, b))
    if hasattr(a, "dtype") and hasattr(a, "get"):  # on another device
        return _equal(a.get(), b.get())
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return bool(a == b) or (isinstance(a, (float, np.floating)) and bool(np.isnan(a) and np.isnan(b)))


def _call(node: Node) -> str:
    """How a node's op was called, as ``sum(3, axis=0)``."""
    if node.kind == "constant" and np.ndim(node.value) == 0:
        return f"constant {node.value}"
    if node.op is None:
        return node.kind
    arguments = [str(i) for i in node.inputs]
    arguments += [f"{key}={value!r}" for key, value in node.attributes.items() if value is not None]
    return f"{node.op.name}({', '.join(arguments)})"


# ------------------------------------------------------------------------------------------------------------- orders


def depth_first_order(graph: Graph, tell: Receiver | None = None) -> list[int]:
    """A topological order by depth-first search from the outputs: a node is finished when all its inputs are.

    This is the order of the lecture's ``build_topo``, without its recursion. Only nodes that an output needs are in it.
    Time O(nodes + edges). Source: Cormen et al., Introduction to Algorithms, 22.4.

    >>> import autodiff_lab as ad
    >>> depth_first_order(ad.record(lambda x: (x + 1.0) * x, 2.0))
    [0, 1, 2, 3]
    """
    order: list[int] = []
    entered: set[int] = set()
    for root in graph.outputs:
        if root in entered:
            continue
        entered.add(root)
        if tell is not None:
            tell(events.NodeEntered(root, None))
        stack = [(root, iter(graph.nodes[root].inputs))]
        while stack:
            node, waiting = stack[-1]
            source = next(waiting, None)
            if source is None:
                stack.pop()
                if tell is not None:
                    tell(events.NodeFinished(node, len(order)))
                order.append(node)
            elif source in entered:
                if tell is not None:
                    tell(events.NodeSeenAgain(source, node))
            else:
                entered.add(source)
                if tell is not None:
                    tell(events.NodeEntered(source, node))
                stack.append((source, iter(graph.nodes[source].inputs)))
    return order


def kahn_order(graph: Graph, tell: Receiver | None = None) -> list[int]:
    """A topological order by counting: a node joins the queue when all its inputs are done.

    Time O(nodes + edges). Source: A. B. Kahn, Topological sorting of large networks, CACM 5 (1962).

    >>> import autodiff_lab as ad
    >>> kahn_order(ad.record(lambda x: (x + 1.0) * x, 2.0))
    [0, 1, 2, 3]
    """
    waiting_for = [len(node.inputs) for node in graph.nodes]
    queue: deque[int] = deque()
    for node in graph.nodes:
        if tell is not None:
            tell(events.DependenciesCounted(node.id, waiting_for[node.id]))
    for node in graph.nodes:
        if waiting_for[node.id] == 0:
            if tell is not None:
                tell(events.NodeEnqueued(node.id))
            queue.append(node.id)
    order: list[int] = []
    while queue:
        done = queue.popleft()
        if tell is not None:
            tell(events.NodeDequeued(done, len(order)))
        order.append(done)
        for consumer in graph.consumers[done]:
            waiting_for[consumer] -= 1
            if tell is not None:
                tell(events.DependencyDone(done, consumer, waiting_for[consumer]))
            if waiting_for[consumer] == 0:
                if tell is not None:
                    tell(events.NodeEnqueued(consumer))
                queue.append(consumer)
    return order


def is_topological_order(graph: Graph, order: Sequence[int]) -> bool:
    """Whether ``order`` holds each node once, every node after all its inputs."""
    position = {node: place for place, node in enumerate(order)}
    if len(position) != len(order) or set(position) != {node.id for node in graph.nodes}:
        return False
    return all(position[source] < position[consumer] for source, consumer in graph.edges)


def check_graph(value: Any, where: str) -> None:
    """Refuse what is no Graph, such as the function that one would be recorded of.

    Raises:
        TypeError: names who wanted a Graph, what was given, and how a Graph is made.
    """
    if not isinstance(value, Graph):
        raise TypeError(f"{where}: expected a Graph, as ad.record(f, *arguments) gives one, got {value!r}")
