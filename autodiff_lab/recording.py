"""Run a function on symbols, which know shape and dtype but no numbers, and keep its graph. Graphs of executed Tensors too."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from . import backend, events, ops
from .bindings import device_of, dtype_of, is_number, owned, readings, real_array, shape_of
from .graph import Graph, Node
from .operators import Op
from .reverse_mode import backward_order
from .sources import call_site
from .tensors import Leaf, Record, Tensor, next_serial
from .trees import LEAF, Structure, flatten

# ------------------------------------------------------------------------------------------------------------ symbols


class Symbol:
    """A value of a graph that is being recorded: it has a shape and a dtype, and no numbers."""

    __slots__ = ("device", "dtype", "id", "recorder", "shape")
    __hash__ = object.__hash__
    is_symbol = True

    if TYPE_CHECKING:  # attached by ops.attach_operators below
        T: Symbol

    def __init__(self, recorder: Recorder, node: Node) -> None:
        self.recorder = recorder
        self.id = node.id
        self.shape = node.shape
        self.dtype = node.dtype
        self.device = node.device

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def requires_grad(self) -> bool:
        """A symbol is a plain value; derivatives are taken around it, by ``ad.record(ad.grad(f), …)``."""
        return False

    def detach(self) -> Symbol:
        """The symbol itself: it carries no gradient."""
        return self

    def __repr__(self) -> str:
        node = self.recorder.nodes[self.id]
        return f"<symbol {node.name or node.label} {self.shape} {self.dtype}>"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d symbol")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))  # type: ignore[index]

    def _no_value(self, *_arguments: Any, **_options: Any) -> NoReturn:
        raise TypeError(
            f"{self!r} has no numbers while its graph is recorded. An if, while or float() that depends on values cannot be "
            "recorded: use ops.where for a choice between values, or decide by shapes and plain Python numbers"
        )

    __bool__ = __float__ = __int__ = __index__ = __array__ = item = numpy = _no_value


def _read_symbols(op: Op, operands: Sequence[Any], attributes: dict[str, Any]) -> Symbol:
    recorder = next(operand.recorder for operand in operands if type(operand) is Symbol)
    result: Symbol = recorder.add(op, operands, attributes)
    return result


readings[Symbol] = _read_symbols
ops.attach_operators(Symbol)


# ------------------------------------------------------------------------------------------------------------ recorder


class Recorder:
    """Builds a Graph while a function runs on symbols."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._constants: dict[
            int, tuple[Any, int]
        ] = {}  # by identity; the array is kept so that the identity stays its own
        self._node_of: dict[int, int] = {}  # a record's serial number -> the node of its result
        self._refused: tuple[Exception, Node] | None = None  # the last call that no rule took
        self.captured = False  # whether what requires a gradient was used inside no_grad, as if it were a constant

    def input(self, value: Any, name: str) -> Symbol:
        """A new input, with the shape and dtype of an example value."""
        return self._append("input", name, shape_of(value), dtype_of(value), device=device_of(value))

    def constant(self, value: Any) -> int:
        """The node of a value that the function uses without computing it; the same array gives the same node."""
        if id(value) in self._constants and not isinstance(value, (int, float)):
            known = self._constants[id(value)][1]
            if _is_unchanged(self.nodes[known].value, value):
                return known
        kept = value if isinstance(value, (int, float)) else _kept(value)
        facts = {"device": device_of(kept), **self._whence()[1]}
        symbol = self._append("constant", "", shape_of(kept), dtype_of(kept), value=kept, **facts)
        self._constants[id(value)] = (value, symbol.id)
        return symbol.id

    def add(self, op: Op, operands: Sequence[Any], attributes: dict[str, Any]) -> Symbol:
        """A new node: the shape and dtype rule answer, nothing is computed."""
        ids = tuple(self._id_of(operand) for operand in operands)
        nodes = [self.nodes[i] for i in ids]
        dtypes = [node.dtype_fact for node in nodes]
        name, whence = self._whence()
        facts = {"op": op, "inputs": ids, "attributes": owned(attributes), **whence}
        try:
            shape = op.infer_shape([node.shape for node in nodes], attributes, dtypes)
            dtype = op.infer_dtype(dtypes, attributes)
            device = _result_device(nodes, attributes)
        except Exception as error:
            nowhere = np.dtype(np.float64)
            self._refused = error, Node(len(self.nodes), "op", name, (), nowhere, serial=next_serial(), **facts)
            raise
        return self._append("op", name, shape, dtype, device=device, **facts)

    def _whence(self) -> tuple[str, dict[str, Any]]:
        """The name, phase, scope, source line and origin of a node that is made now."""
        now = events.context.get() or events.Context()
        name, source = call_site()
        if now.phase == "backward":
            name = ""
            source = self.nodes[now.origin].source if now.origin is not None else source
        return name, {"phase": now.phase, "scope": now.scope, "source": source, "origin": now.origin}

    def note_unrecorded(self, operands: Sequence[Any]) -> None:
        """An op ran inside ``no_grad``: what requires a gradient is a constant of the graph now."""
        self.captured |= any(type(operand) is Tensor and operand.requires_grad for operand in operands)

    def note_record(self, record: Record, result: Any) -> None:
        """A Tensor around a symbol was recorded: its node keeps the record's saved values for backward."""
        node = _symbol_below(result)
        if node is None:
            return
        self._node_of[record[0]] = node.id
        symbols = [_symbol_below(value) for value in record[5:]]
        saved = tuple(symbol.id for symbol in symbols if symbol is not None)
        self.nodes[node.id] = replace(
            self.nodes[node.id], saved=tuple(dict.fromkeys((*self.nodes[node.id].saved, *saved)))
        )

    def backward_of(self, serial: int, cotangent: Any) -> AbstractContextManager[Any]:
        """The context of what backward computes for a record: its nodes belong to the record's node, the forward one.

        The node of the record's complete cotangent, where one is given, gets the forward node's name with a ∂.
        """
        origin = self._node_of.get(serial)
        if origin is None:
            return events.switched(phase="backward")
        node, symbol = self.nodes[origin], _symbol_below(cotangent)
        if symbol is not None and not self.nodes[symbol.id].name and node.name:
            self.nodes[symbol.id] = replace(self.nodes[symbol.id], name=f"∂{node.name}")
        return events.switched(phase="backward", origin=origin, scope=node.scope)

    def freeze(self, result: Any, inputs: Sequence[Symbol], name: str) -> Graph:
        """The finished graph of a function's result."""
        leaves, structure = flatten(result)
        outputs = tuple(self._id_of(leaf) for leaf in leaves)
        return Graph(
            tuple(self.nodes),
            tuple(symbol.id for symbol in inputs),
            outputs,
            name,
            None if structure == LEAF else structure,
        )

    def broken_off(self, error: Exception, inputs: Sequence[Symbol], name: str) -> Graph:
        """The graph that there was when an error ended the function. If an op was refused, its call is the last node."""
        nodes = tuple(self.nodes)
        if self._refused is not None and self._refused[0] in (error, error.__cause__):
            nodes += (self._refused[1],)
        return Graph(nodes, tuple(symbol.id for symbol in inputs), tuple(node.id for node in nodes[-1:]), name)

    def _id_of(self, operand: Any) -> int:
        symbol = _symbol_below(operand)
        plain = isinstance(operand, (int, float, list, tuple, Tensor)) or backend.is_array(operand)
        if symbol is None and not plain:
            raise TypeError(
                f"a graph is made of numbers and arrays, got {operand!r}; does the function return its result?"
            )
        if symbol is None:
            return self.constant(operand.innermost() if type(operand) is Tensor else operand)
        if symbol.recorder is not self:
            raise ValueError(f"{symbol!r} belongs to a graph whose recording is over; outside of record use values")
        return symbol.id

    def _append(self, kind: Any, name: str, shape: Any, dtype: Any, **rest: Any) -> Symbol:
        self.nodes.append(Node(len(self.nodes), kind, name, tuple(shape), dtype, serial=next_serial(), **rest))
        return Symbol(self, self.nodes[-1])


def _symbol_below(value: Any) -> Symbol | None:
    """The symbol inside a value, below any Tensors around it."""
    inner = value.innermost() if type(value) is Tensor else value
    return inner if type(inner) is Symbol else None


def _result_device(nodes: Sequence[Node], attributes: Mapping[str, Any]) -> str:
    """Where an op's result lies: where the op says, or where its operands lie, which must be one place."""
    devices = [node.device for node in nodes if not (node.kind == "constant" and is_number(node.value))]
    return backend.device_named(attributes["device"]) if "device" in attributes else backend.common_device(devices)


def _kept(value: Any) -> Any:
    """A copy of a constant, which the caller may change later; a simulated array never changes."""
    if backend.is_elsewhere(value):
        return value.copy() if hasattr(value, "copy") else value
    copied = real_array(value).copy()
    return copied[()] if isinstance(value, np.generic) else copied


def _is_unchanged(kept: Any, value: Any) -> bool:
    """Whether a constant still is what it was when it was kept."""
    return kept is value or (not backend.is_elsewhere(value) and np.array_equal(kept, value, equal_nan=True))


# -------------------------------------------------------------------------------------------------------------- record


def record(f: Callable[..., Any], *arguments: Any, **options: Any) -> Graph:
    """The graph of ``f``, recorded by running it on symbols shaped like ``arguments``; nothing is computed.

    Arguments may be arrays, Tensors, numbers, and nested lists, tuples and dicts of them; anything else, and keyword
    arguments, are passed on as they are.
    ``ad.record(ad.value_and_grad(f), …)`` gives the joint forward and backward graph.

    Raises:
        TypeError: ``f`` branches on a value, which a recorded graph cannot do.
        OpError: an op was called with shapes that do not fit; the error names op, operands and line.

    >>> graph = record(lambda x, w: (x @ w).tanh(), np.zeros((2, 3)), np.zeros((3, 4)))
    >>> [(node.label, node.shape) for node in graph]
    [('input', (2, 3)), ('input', (3, 4)), ('matmul', (2, 4)), ('tanh', (2, 4))]
    """
    recorder, inputs, symbols = _on_symbols(f, arguments)
    with events.switched(recorder=recorder, phase="forward", origin=None, scope=""):
        result = f(*symbols, **options)
    return recorder.freeze(result, inputs, _name_of(f))


def record_until_error(f: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Graph, Exception | None]:
    """The graph as ``record`` gives it, and None; where an error ends ``f``, the graph so far, and the error.

    A call that an op refused is the last node of that graph; it has no shape, so ``()`` stands for it.

    >>> graph, error = record_until_error(lambda x, w: ops.tanh(x) @ w, np.zeros((2, 3)), np.zeros((4, 5)))
    >>> print(error)
    matmul(x: (2, 3) float64, y: (4, 5) float64): the last axis of x has size 3, but y (4, 5) offers 4 rows
    >>> [node.label for node in graph]
    ['input', 'input', 'tanh', 'matmul']
    """
    recorder, inputs, symbols = _on_symbols(f, arguments)
    try:
        with events.switched(recorder=recorder, phase="forward", origin=None, scope=""):
            result = f(*symbols, **options)
        return recorder.freeze(result, inputs, _name_of(f)), None
    except Exception as error:
        return recorder.broken_off(error, inputs, _name_of(f)), error


def _on_symbols(f: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Recorder, list[Symbol], list[Any]]:
    """A recorder, its inputs, and the arguments with those in the place of numbers and arrays."""
    now = events.context.get()
    if now is not None and now.recorder is not None:
        raise ValueError("record inside record: a graph is being recorded already; call the function itself")
    recorder = Recorder()
    inputs: list[Symbol] = []
    symbols = []
    for name, argument in zip(parameter_names(f, len(arguments)), arguments, strict=True):
        leaves, structure = flatten(argument)
        replaced = []
        for label, leaf in zip(leaf_names(name, structure), leaves, strict=True):
            if isinstance(leaf, (int, float, Tensor)) or backend.is_array(leaf):
                inputs.append(recorder.input(leaf, label))
                leaf = inputs[-1]
            replaced.append(leaf)
        symbols.append(structure.rebuild(replaced))
    return recorder, inputs, symbols


def _name_of(f: Callable[..., Any]) -> str:
    return str(getattr(f, "__name__", type(f).__name__))


def parameter_names(f: Callable[..., Any], count: int) -> list[str]:
    """The names of a function's first ``count`` parameters; a starred one is numbered."""
    names: list[str] = []
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}[{i}]" for i in range(count - len(names))]
        elif parameter.kind is not parameter.KEYWORD_ONLY:
            names.append(parameter.name)
    return (names + [f"argument{i}" for i in range(len(names), count)])[:count]


def leaf_names(name: str, structure: Structure) -> list[str]:
    """A name for each leaf of an argument: ``w``, ``params[0]``, ``params['bias']``."""
    return [name + "".join(f"[{key!r}]" for key in path) for path in structure.paths()]


# ------------------------------------------------------------------------------------------- the graph of executed Tensors


def graph_of(output: Tensor, names: Mapping[str, Any] | None = None, told: Iterable[events.Event] = ()) -> Graph:
    """The graph that a Tensor was computed by, from what its records kept.

    A node's ``value`` is known where it was saved for backward, or bound to one of ``names``; elsewhere it is None, because the
    forward pass did not keep it. Shapes are inferred by the shape rules.

    Args:
        output: a recorded Tensor.
        names: variables and their Tensors, such as ``locals()``, which name the nodes.
        told: events heard while the Tensor was computed; they add names, scopes and source lines.

    Raises:
        ValueError: nothing was recorded.

    >>> import autodiff_lab as ad
    >>> x = ad.tensor(3.0, requires_grad=True, name="x")
    >>> y = x * x
    >>> print(graph_of(y, {"y": y}))
    graph y: 2 nodes, 2 edges
      0  x  input     ()  float64
      1  y  mul(0, 0) ()  float64
    output 1
    """
    root = output._history
    if root is None or not output._level.is_reverse:
        raise ValueError(
            "graph_of: this Tensor was not computed from a Tensor with requires_grad=True, so there is no graph"
        )
    order = backward_order(root)
    bound = {
        tensor._history[0]: (name, tensor)
        for name, tensor in (names or {}).items()
        if type(tensor) is Tensor and tensor._history is not None and tensor._level.is_reverse
    }
    calls = {event.serial: event for event in told if isinstance(event, events.OpCalled)}
    values = _known_values(order) | {s: t.innermost() for s, (_, t) in bound.items()} | {root[0]: output.innermost()}
    builder = _FromRecords({s: name for s, (name, _) in bound.items()}, calls, values)
    for one in order:
        builder.add(one)
    name = builder.nodes[builder.ids[root[0]]].name or "graph"
    inputs = tuple(node.id for node in builder.nodes if node.kind == "input")
    return Graph(tuple(builder.nodes), inputs, (builder.ids[root[0]],), name)


def _known_values(order: Sequence[Record]) -> dict[int, Any]:
    """The values that records kept for backward, by the serial number of the record that made them."""
    known: dict[int, Any] = {}
    for serial, op, parents, _, _, *saved in order:
        if op is None:
            continue
        makers = dict(zip(op.operand_names(len(parents)), parents, strict=True)) | {"out": (serial,)}
        for name, value in zip(op.names_saved(len(parents)), saved, strict=False):
            maker = makers.get(name)
            if maker is not None and value is not None:
                known[maker[0]] = value.innermost() if type(value) is Tensor else value
    return known


class _FromRecords:
    """Turns records, earliest first, into nodes."""

    def __init__(
        self, names: Mapping[int, str], calls: Mapping[int, events.OpCalled], values: Mapping[int, Any]
    ) -> None:
        self.nodes: list[Node] = []
        self.ids: dict[int, int] = {}
        self.names, self.calls, self.values = names, calls, values

    def add(self, record: Record) -> None:
        serial, op, parents, attributes, operands, *saved = record
        if op is None:
            leaf: Leaf = operands
            name = leaf.name or self.names.get(serial, "")
            self._append(serial, "input", name, leaf.shape, leaf.dtype, device=leaf.device)
            return
        names = op.operand_names(len(parents))
        kept = dict(zip(op.names_saved(len(parents)), saved, strict=False))
        here = next(self.nodes[self.ids[parent[0]]].device for parent in parents if parent is not None)
        ids = tuple(
            self.ids[parent[0]] if parent is not None else self._constant(operands[place], kept.get(name), here)
            for place, (name, parent) in enumerate(zip(names, parents, strict=True))
        )
        nodes = [self.nodes[i] for i in ids]
        dtypes = [node.dtype_fact for node in nodes]
        call = self.calls.get(serial)
        places = dict(zip(names, ids, strict=True)) | {"out": len(self.nodes)}
        self._append(
            serial, "op", self.names.get(serial) or (call.name if call else ""),
            op.infer_shape([node.shape for node in nodes], attributes, dtypes), op.infer_dtype(dtypes, attributes),
            op=op, inputs=ids, attributes=attributes, device=_result_device(nodes, attributes),
            scope=call.scope if call else "", source=call.source if call else None,
            saved=tuple(dict.fromkeys(places[n] for n, v in kept.items() if n in places and hasattr(v, "shape"))),
        )  # fmt: skip

    def _constant(self, spec: Any, kept: Any, device: str) -> int:
        number = not isinstance(spec, tuple)
        shape, dtype = ((), dtype_of(spec)) if number else spec
        where = "cpu" if number else device
        return self._append(next_serial(), "constant", "", shape, dtype, value=spec if number else kept, device=where)

    def _append(self, serial: int, kind: Any, name: str, shape: Any, dtype: Any, **rest: Any) -> int:
        if "value" not in rest:
            rest["value"] = self.values.get(serial)
        node = Node(len(self.nodes), kind, name, tuple(shape), dtype, serial=serial, **rest)
        self.nodes.append(node)
        self.ids[serial] = node.id
        return node.id
