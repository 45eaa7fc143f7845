"""What is told, read back: the graph of what ran from its events, a registration and a dispatch once more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import events
from .backend import is_array, library_of
from .bindings import OpError, device_of, dtype_of, is_number, shape_of
from .graph import Graph, Node, Source
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


@dataclass(frozen=True, slots=True)
class Outline:
    """What is left of an array that was not kept: its shape, dtype and device."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    device: str

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)


def outlined(value: Any, most: int = 8192) -> Any:
    """An event, or a value of one, with an ``Outline`` in place of each array that is larger than ``most`` bytes.

    Who listens for long keeps it instead of the event, whose arrays would stay in memory: a run that makes arrays of 512 kB
    takes three times as long when none of them is freed. An array on another device is outlined too, as a look at its
    numbers would make the host wait. What is kept is a copy, since the caller may change an array later.

    >>> import autodiff_lab as ad
    >>> x = ad.tensor(np.ones((100, 100)), requires_grad=True)
    >>> with ad.listen() as told:
    ...     y = x * 2.0
    >>> outlined(told[0]).value
    Outline(shape=(100, 100), dtype=dtype('float64'), device='cpu')
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is np.ndarray:
        return value.copy() if value.nbytes <= most else Outline(value.shape, value.dtype, "cpu")
    if kind is Tensor:
        return outlined(value.innermost(), most)
    if issubclass(kind, tuple):
        parts = [part if type(part) in _PLAIN else outlined(part, most) for part in value]  # half of the time of a call
        return value._make(parts) if hasattr(value, "_make") else tuple(parts)
    if kind is dict:
        return {name: outlined(part, most) for name, part in value.items()}
    if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, np.generic):
        return Outline(value.shape, value.dtype, device_of(value))
    return value


_PLAIN = frozenset([int, float, bool, str, type(None), Source])  # what most parts of an event are


def graph_heard(
    told: Iterable[events.Event],
    before: Iterable[events.Event] = (),
    names: Mapping[str, Any] | None = None,
    name: str = "graph",
) -> Graph:
    """The graph of every op call that was heard, also of one that failed; it grows as more is heard.

    A value that was computed earlier is an input. Where a backward sweep went through earlier calls, and they are in
    ``before``, they are nodes too. A failed call has no result, so its shape is ``()``.

    Args:
        told: the events of a run, in order.
        before: op calls that were heard earlier.
        names: variables and their Tensors, such as ``globals()``, which name the nodes that have no name yet.
        name: what to call the graph.

    >>> import autodiff_lab as ad
    >>> x = ad.tensor(3.0, requires_grad=True, name="x")
    >>> with ad.listen() as told:
    ...     y = x * x + 1.0
    >>> print(graph_heard(told, name="so far"))
    graph so far: 4 nodes, 4 edges
      0  x  input        ()  float64
      1     mul(0, 0)    ()  float64
      2     constant 1.0 ()  float64
      3  y  add(1, 2)    ()  float64
    output 3
    """
    heard = list(told)
    swept = {event.serial for event in heard if isinstance(event, events.CotangentComplete)}
    earlier = [event for event in before if isinstance(event, events.OpCalled) and event.serial in swept]
    both = (*earlier, *(event for event in heard if isinstance(event, events.OpCalled | events.OpFailed)))
    calls = {event.serial: event for event in both}
    builder = _FromCalls(_names_by_serial(names or {}))
    for serial in sorted(calls):  # a result has a larger number than its operands
        builder.add(calls[serial])
    used = {source for node in builder.nodes for source in node.inputs}
    outputs = tuple(node.id for node in builder.nodes if node.id not in used)
    inputs = tuple(node.id for node in builder.nodes if node.kind == "input")
    return Graph(tuple(builder.nodes), inputs, outputs, name)


def _names_by_serial(names: Mapping[str, Any]) -> dict[int, str]:
    """What variables call the records of their Tensors."""
    return {
        tensor._history[0]: name
        for name, tensor in names.items()
        if type(tensor) is Tensor and tensor._history is not None and tensor._level.is_reverse
    }


class _FromCalls:
    """Turns op calls into nodes."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self.nodes: list[Node] = []
        self._names = names
        self._ids: dict[int, int] = {}  # serial number -> node

    def add(self, call: events.OpCalled | events.OpFailed) -> None:
        """A call's node, after those of its operands."""
        names = call.names or ("",) * len(call.inputs)
        ids = tuple(map(self._operand, call.inputs, call.operands, names))
        op = registry.get(call.op)
        facts: dict[str, Any] = {"op": op, "inputs": ids, "attributes": call.attributes}
        facts |= {"scope": call.scope, "source": call.source}
        if isinstance(call, events.OpFailed):
            self._append(call.serial, "op", call.name, None, shape=(), dtype=np.dtype(float), device="cpu", **facts)
            return
        places = {} if op is None else dict(zip(op.operand_names(len(ids)), ids, strict=False))
        places["out"] = len(self.nodes)
        saved = tuple(dict.fromkeys(places[value] for value in call.saved if value in places))
        self._append(call.serial, "op", call.name, call.value, saved=saved, **facts)

    def _operand(self, serial: int | None, value: Any, name: str) -> int:
        if serial is None:
            return self._append(next_serial(), "constant", "", value)
        known = self._ids.get(serial)
        return self._append(serial, "input", name, value) if known is None else known

    def _append(self, serial: int, kind: Any, name: str, value: Any, **facts: Any) -> int:
        inner = value.innermost() if type(value) is Tensor else value
        if "shape" not in facts:
            device = inner.device if isinstance(inner, Outline) else device_of(inner)
            facts |= {"shape": shape_of(inner), "dtype": dtype_of(inner), "device": device}
        kept = inner if is_number(inner) or is_array(inner) else None
        named = name or self._names.get(serial, "")
        self.nodes.append(Node(len(self.nodes), kind, named, value=kept, serial=serial, **facts))
        self._ids[serial] = self.nodes[-1].id
        return self.nodes[-1].id


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
