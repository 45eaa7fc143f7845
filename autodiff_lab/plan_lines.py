"""The calls of a plan, before anybody knows where their results will lie: kernels as NumPy calls, fused groups as one call.

Calls of traced kernels are known to be functions of their operands. So the same call is made once, wherever it comes from (a
layer norm's mean is computed once for forward and backward), and a repeated value is handed to a ufunc as it was before it was
repeated. No bit of a result changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .bindings import OpError
from .graph import Graph, Node
from .kernel_programs import Fact, NumPyCall, Program, Value, program_of
from .operators import Op, registry
from .simplification import bitwise_key

Kind = Literal["ufunc", "kernel", "view", "blocked NumPy", "compiled loop", "CUDA kernel", "one launch"]


COMMUTATIVE = (np.add, np.multiply)  # a · b is b · a, bit by bit; of two NaNs either may be the result


@dataclass(frozen=True, slots=True)
class Line:
    """One call of a plan. Operands are ``Value``s, constants, or tuples of them; a fused group has several results."""

    node: int  # the node that it belongs to; of a group the last one
    function: Callable[..., Any]
    operands: tuple[Any, ...]
    options: Mapping[str, Any]
    results: tuple[int, ...]
    kind: Kind = "kernel"
    writes: bool = False  # it takes out=
    is_elementwise: bool = False  # it may write into an operand that it reads
    may_share: bool = False  # its result may lie in an operand's memory
    is_pure: bool = False  # a function of its operands alone
    is_checked: bool = False  # whether shape and dtype of its result have to be looked at when it runs
    is_group: bool = False  # it gives a tuple, and takes one of arrays to write into

    @property
    def reads(self) -> tuple[int, ...]:
        """The values that it reads."""
        return tuple(values_in(self.operands))


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """All calls in order, the facts of every value, and where the graph's nodes are among the values."""

    calls: tuple[Line, ...]
    facts: tuple[Fact, ...]
    devices: tuple[str, ...]
    owners: tuple[int, ...]  # the node that a value belongs to
    value_of: Mapping[int, Any]  # of a node: a ``Value``, or what a constant is


def values_in(operand: Any) -> Iterator[int]:
    """The numbers of the values in an operand, however deep in tuples and lists."""
    if type(operand) is Value:
        yield operand.number
    elif type(operand) in (tuple, list):
        for part in operand:
            yield from values_in(part)


def with_values(operand: Any, meant: Callable[[int], Any]) -> Any:
    """An operand in which every value is replaced."""
    if type(operand) is Value:
        return meant(operand.number)
    if type(operand) in (tuple, list):
        return type(operand)(with_values(part, meant) for part in operand)
    return operand


class Lowering:
    """Turns nodes and groups into lines, one after another.

    Where a shape is ``unknown`` to the rules, no memory can be set aside: such ops are called as they are.
    """

    def __init__(self, graph: Graph, unknown: Collection[int] = ()) -> None:
        self.graph = graph
        self.unknown = unknown
        self.calls: list[Line] = []
        self.facts: list[Fact] = []
        self.devices: list[str] = []
        self.owners: list[int] = []
        self.value_of: dict[int, Any] = {}
        self.known: dict[Any, Value] = {}  # pure calls, and the value that they gave
        self.repeated: dict[int, Any] = {}  # values that are another one, broadcast
        for node in graph:
            if node.kind == "input":
                self.value_of[node.id] = self._value(node.id, Fact(node.shape, node.dtype), node.device)
            elif node.kind == "constant":
                self.value_of[node.id] = node.value

    def add_node(self, node: Node) -> None:
        """The calls of one op: those of its kernel's program, or the op as it is."""
        assert node.op is not None
        operands = [self.value_of[i] for i in node.inputs]
        program = None if node.device != "cpu" else self._program(node)
        if program is None:
            self._add_as_it_is(node, operands)
            return
        values = [*operands]

        def meant(number: int) -> Any:
            return values[number]

        for call in program.calls:
            given = tuple(with_values(operand, meant) for operand in call.operands)
            values.append(self._call(node, call, given, program.facts[call.result]))
        self.value_of[node.id] = with_values(program.result, meant)

    def add_group(self, loop: Any, kind: Kind, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """One call for a whole group. ``inputs`` and ``outputs`` are nodes."""
        nodes = [self.graph.nodes[i] for i in outputs]
        results = [self._value(node.id, Fact(node.shape, node.dtype), node.device) for node in nodes]
        operands = tuple(self.value_of[i] for i in inputs)
        numbers = tuple(value.number for value in results)
        writes = nodes[0].device == "cpu"
        self.calls.append(Line(nodes[-1].id, loop, operands, {}, numbers, kind, writes, is_group=True))
        self.value_of.update(zip(outputs, results, strict=True))

    def finish(self, outputs: Sequence[int]) -> Lines:
        """The lines whose results somebody reads; calls of ops that are not of this library stay in any case."""
        needed = {number for i in outputs for number in values_in(self.value_of[i])}
        kept = []
        for line in reversed(self.calls):
            if not line.is_pure or needed.intersection(line.results):
                needed.update(line.reads)
                kept.append(line)
        return Lines(
            tuple(reversed(kept)), tuple(self.facts), tuple(self.devices), tuple(self.owners), dict(self.value_of)
        )

    # ------------------------------------------------------------------------------------------------------------ one call

    def _value(self, node: int, fact: Fact, device: str) -> Value:
        self.facts.append(fact)
        self.devices.append(device)
        self.owners.append(node)
        return Value(len(self.facts) - 1)

    def _program(self, node: Node) -> Program | None:
        """The kernel's program, after checking that it gives what the rules said."""
        assert node.op is not None
        nodes = [self.graph.nodes[i] for i in node.inputs]
        facts = [n.value if _is_python_number(n) else Fact(n.shape, n.dtype) for n in nodes]
        if any(n.device != "cpu" for n in nodes) or "device" in node.attributes:
            return None
        if any(n.id in self.unknown for n in (*nodes, node)):
            return None
        program = _remembered(node.op, facts, node.attributes)
        if program is not None:
            result = program.result
            fact = (
                program.facts[result.number]
                if type(result) is Value
                else Fact(np.shape(result), np.result_type(result))
            )
            check_result(node, fact.shape, fact.dtype)
        return program

    def _add_as_it_is(self, node: Node, operands: Sequence[Any]) -> None:
        result = self._value(node.id, Fact(node.shape, node.dtype), node.device)
        op = node.op
        assert op is not None
        line = Line(
            node.id, WholeOp(node), tuple(operands), {}, (result.number,), is_pure=_is_ours(op),
            may_share=bool(op.views) or not _is_ours(op), is_checked=node.device == "cpu",
        )  # fmt: skip
        self.calls.append(line)
        self.value_of[node.id] = result

    def _call(self, node: Node, call: NumPyCall, operands: tuple[Any, ...], fact: Fact) -> Any:
        is_ufunc = isinstance(call.function, np.ufunc)
        if is_ufunc and call.is_elementwise:
            operands = self._before_broadcast(operands, fact)
            operands = tuple(_as_array(call.function, operands, call.options, self.facts))
        named = tuple(with_values(operand, lambda number: ("value", number)) for operand in operands)
        if call.function in COMMUTATIVE:
            named = tuple(sorted(map(bitwise_key, named), key=repr))
        key = (call.function, bitwise_key(named), bitwise_key(call.options), fact)
        if (known := self.known.get(key)) is not None:
            return known
        result = self._value(node.id, fact, "cpu")
        kind: Kind = "view" if call.is_view else "ufunc" if call.writes else "kernel"
        line = Line(
            node.id, call.function, operands, call.options, (result.number,), kind, call.writes,
            is_elementwise=is_ufunc and call.is_elementwise, may_share=call.is_view, is_pure=True,
        )  # fmt: skip
        self.calls.append(line)
        self.known[key] = result
        if call.function is np.broadcast_to:
            self.repeated[result.number] = operands[0]
        return result

    def _before_broadcast(self, operands: tuple[Any, ...], fact: Fact) -> tuple[Any, ...]:
        """The operands of a ufunc, without a broadcast that the other operands make anyway."""
        given = list(operands)
        for place, operand in enumerate(given):
            if type(operand) is not Value or operand.number not in self.repeated:
                continue
            source = self.repeated[operand.number]
            shapes = [self._shape(source if other == place else one) for other, one in enumerate(given)]
            if np.broadcast_shapes(*shapes) == fact.shape:
                given[place] = source
        return tuple(given)

    def _shape(self, operand: Any) -> tuple[int, ...]:
        return self.facts[operand.number].shape if type(operand) is Value else np.shape(operand)


def _is_ours(op: Op) -> bool:
    """Whether an op is of this library: a function of its operands, of which its tests say whether it gives a view."""
    return op.module.startswith(f"{__package__}.ops.")


def _remembered(op: Op, facts: Sequence[Any], attributes: Mapping[str, Any]) -> Program | None:
    """``program_of``, which follows a kernel twice, once for all calls that are alike.

    An op of yours is followed for each plan anew, since its kernel may read what has changed in the meantime.
    """
    if not _is_ours(op):
        return program_of(op, facts, attributes)
    known = tuple(fact if isinstance(fact, Fact) else bitwise_key(fact) for fact in facts)
    key = (op, registry.changes, known, bitwise_key(attributes))
    if key not in _programs:
        while len(_programs) >= _MOST_PROGRAMS:
            _programs.pop(next(iter(_programs)), None)
        _programs[key] = program_of(op, facts, attributes)
    return _programs[key]


_MOST_PROGRAMS = 4096
_programs: dict[Any, Program | None] = {}


class WholeOp:
    """An op that is called as it is, by its binding."""

    def __init__(self, node: Node) -> None:
        assert node.op is not None
        self.op, self.attributes, self.node = node.op, node.attributes, node

    @property
    def __name__(self) -> str:
        return self.op.name

    def __call__(self, *operands: Any) -> Any:
        """The op's result."""
        return self.op.apply(operands, self.attributes)


def check_result(node: Node, shape: tuple[int, ...], dtype: Any) -> None:
    """Refuse what a kernel gives where the shape rule or the dtype rule has said something else.

    Raises:
        OpError: names the op, the rule that is wrong, and the user's line.
    """
    assert node.op is not None
    if shape == node.shape and dtype == node.dtype:
        return
    rule = node.op.operand_rule_name("shape" if shape != node.shape else "dtype")
    where = f", at {node.source}" if node.source else ""
    raise OpError(
        f"{node.op.name}: its kernel gives {shape} {dtype}, but its rule {rule} said {node.shape} {node.dtype}; correct "
        f"whichever is wrong (ad.opcheck({node.op.name}) shows more){where}"
    )


def _is_python_number(node: Node) -> bool:
    return node.kind == "constant" and isinstance(node.value, (int, float))


def _as_array(
    function: Any, operands: Sequence[Any], options: Mapping[str, Any], facts: Sequence[Fact]
) -> Iterator[Any]:
    """The operands with Python numbers as arrays of the dtype in which the ufunc computes: 0.2 µs less for each call."""
    if options or not any(type(operand) in (int, float) for operand in operands):
        yield from operands
        return
    kinds = [facts[o.number].dtype if type(o) is Value else getattr(o, "dtype", type(o)) for o in operands]
    try:
        computed = function.resolve_dtypes((*kinds, None))
    except TypeError:  # such as an integer that only a comparison takes
        computed = ()
    for operand, dtype in zip(operands, computed or [None] * len(operands), strict=False):
        number = type(operand) in (int, float) and dtype is not None and _converted(operand, dtype)
        yield operand if number is False else number


def _converted(number: float, dtype: Any) -> Any:
    """A Python number as a 0-d array, or False where that would not be the same number in the same dtype."""
    if type(number) is float and dtype.kind != "f":
        return False
    with np.errstate(all="ignore"):
        try:
            return np.array(number, dtype)
        except OverflowError:
            return False
