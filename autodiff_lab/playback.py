"""What is told, read back: the graph of a forward-mode run from its events, a registration and a dispatch once more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import events
from .backend import library_of
from .bindings import OpError, device_of, dtype_of, shape_of
from .graph import Graph, Node
from .operators import Op, registry
from .tensors import Tensor, next_serial


def graph_told(told: Iterable[events.Event], names: Sequence[str] = (), name: str = "graph") -> Graph:
    """The graph of a run of ``jvp``, from the events that were heard; each node knows its value.

    It has the inputs that move, every op call that a tangent passes through, and the constants that these use. Where ``jvp``
    ran inside ``jvp``, or several times, it is the graph of the one that began first.

    Args:
        told: the events of a run, in order.
        names: what to call the inputs, in order.
        name: what to call the graph.

    Raises:
        ValueError: no ``TangentSeeded`` was heard, so there was no forward mode.

    >>> import autodiff_lab as ad
    >>> with ad.listen() as told:
    ...     value, tangent = ad.jvp(lambda x, y: x * y + 1.0, (2.0, 5.0), (1.0, 0.0))
    >>> print(graph_told(told, ("x", "y")))
    graph graph: 5 nodes, 4 edges
      0  x  input        ()  float64
      1  y  input        ()  float64
      2     mul(0, 1)    ()  float64
      3     constant 1.0 ()  float64
      4     add(2, 3)    ()  float64
    output 4
    """
    builder = _FromEvents(names)
    for event in told:
        builder.add(event)
    if not builder.inputs:
        raise ValueError("graph_told: no forward mode was heard; call ad.jvp inside `with ad.listen() as told:`")
    return Graph(tuple(builder.nodes), tuple(builder.inputs), tuple(dict.fromkeys(builder.outputs)), name)


class _FromEvents:
    """Turns events into nodes, in the order in which they were told."""

    def __init__(self, names: Sequence[str]) -> None:
        self.nodes: list[Node] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self._level: int | None = None  # of the derivative that began first
        self._names = names
        self._ids: dict[int, int] = {}  # serial number -> node
        self._constants: dict[int, int] = {}  # identity of an array, which its event keeps alive -> node

    def add(self, event: events.Event) -> None:
        match event:
            case events.TangentSeeded() if self._level in (None, event.level):
                self._level = event.level
                place = len(self.inputs)
                given = self._names[place] if place < len(self._names) else ""
                self.inputs.append(self._append(event.serial, "input", event.value, name=given))
            case events.OpCalled() if any(serial in self._ids for serial in event.inputs):
                ids = tuple(map(self._operand, event.inputs, event.operands))
                self._append(
                    event.serial, "op", event.value, name=event.name, op=registry[event.op], inputs=ids,
                    attributes=event.attributes, scope=event.scope, source=event.source,
                )  # fmt: skip
            case events.TangentReached() if event.serial in self._ids:
                self.outputs.append(self._ids[event.serial])

    def _operand(self, serial: int | None, value: Any) -> int:
        """The node of an operand; one that carries no tangent is a constant."""
        if serial in self._ids:
            return self._ids[serial]
        if isinstance(value, (int, float)):
            return self._append(next_serial(), "constant", value, name="")
        if id(value) not in self._constants:
            self._constants[id(value)] = self._append(next_serial(), "constant", value, name="")
        return self._constants[id(value)]

    def _append(self, serial: int, kind: Any, value: Any, **rest: Any) -> int:
        inner = value.innermost() if type(value) is Tensor else value
        node = Node(
            len(self.nodes),
            kind,
            shape=shape_of(inner),
            dtype=dtype_of(inner),
            device=device_of(inner),
            value=inner,
            serial=serial,
            **rest,
        )
        self.nodes.append(node)
        self._ids[serial] = node.id
        return node.id


def registration_told(op: Any) -> list[events.Event]:
    """How an op is registered, step by step: it is registered again as it is now, outside of the registry, and heard.

    Args:
        op: an op, or its binding; several ops of one definition are told one after the other.

    >>> import autodiff_lab as ad
    >>> [type(event).__name__ for event in registration_told(ad.ops.exp)][:3]
    ['SchemaRegistered', 'RuleRegistered', 'RuleRegistered']
    """
    told: list[events.Event] = []
    with events.switched(receiver=told.append):
        for member in getattr(op, "op", op).members:
            member.registered_again()
    return told


def dispatch_told(
    op: Any, operands: Sequence[Any], attributes: Mapping[str, Any] | None = None, device: str | None = None
) -> list[events.Event]:
    """How the kernel for a call is found: each key of the fallback order, and what a kernel creator did. Nothing is run.

    Where none is chosen the call itself raises an ``OpError``.

    Args:
        op: an op, or its binding.
        operands: arrays.
        attributes: as in the call; those with a default may be left out.
        device: where the operands are thought to lie, such as ``cuda:0``; where they do by default.

    >>> import autodiff_lab as ad
    >>> [(e.device, e.dtype, e.kernel) for e in dispatch_told(ad.ops.exp, [np.ones(2)])]
    [('cpu', 'float64', None), ('cpu', 'any', None), ('any', 'float64', None), ('any', 'any', 'exp')]
    """
    found: Op = getattr(op, "op", op)
    place = device or next((device_of(array) for array in operands if hasattr(array, "dtype")), "cpu")
    told: list[events.Event] = []
    try:
        kernel = found.kernel_for(place, operands, told.append)
    except OpError:
        return told
    if hasattr(kernel, "kernel_for") and device is None:  # a kernel creator
        kernel.kernel_for(library_of(place), operands, {**found.attributes, **(attributes or {})}, told.append)
    return told
