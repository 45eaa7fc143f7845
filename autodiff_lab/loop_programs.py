"""The program of a fused group: the calls of its ops one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .fusion import Group
from .graph import Graph, Node
from .kernel_programs import Programs
from .numpy_calls import Fact, NumPyCall, Program, Value
from .tracing import WholeKernel

Operand = Any  # a Value or a constant


class NotALoop(ValueError):
    """A group cannot be computed block by block; the text says why."""


@dataclass(frozen=True)
class GroupProgram:
    """All calls of a group. Values 0 … ``len(inputs)`` − 1 are the group's inputs, in its order.

    ``node_of`` names the node that a call belongs to; ``outputs`` has a ``Value`` or a constant for each output.
    """

    graph: Graph
    inputs: tuple[int, ...]
    facts: tuple[Fact, ...]
    calls: tuple[NumPyCall, ...]
    node_of: tuple[int, ...]
    outputs: tuple[Operand, ...]
    output_facts: tuple[Fact, ...]

    @property
    def comments(self) -> tuple[str, ...]:
        """For each call what it is part of: the node's name and op."""
        return tuple(_described(self.graph.nodes[node]) for node in self.node_of)

    def text(self) -> str:
        """The calls, one a line, each with the node that it computes."""
        inputs = [f"v{number}: {_described(self.graph.nodes[node])}" for number, node in enumerate(self.inputs)]
        calls = [f"{call.text()}  # {why}" for call, why in zip(self.calls, self.comments, strict=True)]
        return "\n".join([*inputs, *calls])


def _described(node: Node) -> str:
    return f"{node.name} = {node.label}" if node.name and node.op else node.name or node.label


def group_program(graph: Graph, group: Group, programs: Programs | None = None) -> GroupProgram:
    """The program of a group; ``programs`` finds those of its ops, by default what their kernels do on NumPy arrays."""
    return _Joiner(graph, group, programs or Programs()).joined()


class _Joiner:
    def __init__(self, graph: Graph, group: Group, programs: Programs) -> None:
        self.graph, self.group, self.programs = graph, group, programs
        self.facts = [Fact(graph.nodes[node].shape, graph.nodes[node].dtype) for node in group.inputs]
        self.calls: list[NumPyCall] = []
        self.node_of: list[int] = []
        self.known: dict[int, Operand] = {}
        for place, node in enumerate(group.inputs):
            self.known[node] = _number_of(graph.nodes[node], Value(place))

    def joined(self) -> GroupProgram:
        for number in self.group.nodes:
            node = self.graph.nodes[number]
            operands = [self._operand(one) for one in node.inputs]
            self.known[number] = self._added(node, operands)
        outputs = tuple(self.known[number] for number in self.group.outputs)
        facts = tuple(
            Fact(self.graph.nodes[number].shape, self.graph.nodes[number].dtype) for number in self.group.outputs
        )
        return GroupProgram(
            self.graph, self.group.inputs, tuple(self.facts), tuple(self.calls), tuple(self.node_of), outputs, facts
        )

    def _operand(self, number: int) -> Operand:
        """An operand of a node: a value, or the number or array of a constant that is not among the inputs."""
        if number not in self.known:
            node = self.graph.nodes[number]
            if node.kind != "constant":
                raise ValueError(f"group {self.group.number} reads node {number}, which is not among its inputs")
            self.known[number] = node.value
        return self.known[number]

    def _fact(self, operand: Operand) -> Any:
        if isinstance(operand, Value):
            return self.facts[operand.number]
        return Fact(operand.shape, operand.dtype) if hasattr(operand, "shape") else operand

    def _added(self, node: Node, operands: Sequence[Operand]) -> Operand:
        """The calls of one node, with values numbered anew; the operand that stands for its result."""
        assert node.op is not None
        facts = [self._fact(one) for one in operands]
        found = self.programs.of(node.op, facts, node.attributes)
        if found is None or _fact_of_result(found) != Fact(node.shape, node.dtype):
            found = _as_one_call(node, facts)
        renamed = dict(enumerate(operands))
        for call in found.calls:
            self.facts.append(found.facts[call.result])
            renamed[call.result] = Value(len(self.facts) - 1)
            given = tuple(replaced(one, renamed) for one in call.operands)
            self.calls.append(call.reading(given, len(self.facts) - 1))
            self.node_of.append(node.id)
        return replaced(found.result, renamed)


def _number_of(node: Node, value: Value) -> Operand:
    """A constant that is a plain number is known; its place among the inputs stays, and is not read."""
    return node.value if node.kind == "constant" and isinstance(node.value, (int, float)) else value


def _as_one_call(node: Node, facts: Sequence[Any]) -> Program:
    """A kernel that cannot be followed, as it is."""
    op = node.op
    assert op is not None
    examples = [np.empty((), one.dtype) if isinstance(one, Fact) else one for one in facts]
    kernel = WholeKernel(op, op.kernel_for("cpu", examples), node.attributes)
    numbers = tuple(Value(place) for place in range(len(facts)))
    call = NumPyCall(kernel, numbers, {}, len(facts), is_elementwise=op.elementwise, is_view=bool(op.views))
    return Program(len(facts), (*map(_as_fact, facts), Fact(node.shape, node.dtype)), (call,), Value(len(facts)))


def _as_fact(one: Any) -> Fact:
    return one if isinstance(one, Fact) else Fact((), np.dtype(type(one)))


def _fact_of_result(program: Program) -> Fact:
    result = program.result
    return (
        program.facts[result.number] if isinstance(result, Value) else Fact(np.shape(result), np.asarray(result).dtype)
    )


def replaced(operand: Operand, by: dict[int, Operand]) -> Operand:
    """An operand in which what stands for each value is put in its place, also inside tuples and lists."""
    if isinstance(operand, Value):
        return by[operand.number]
    return type(operand)(replaced(one, by) for one in operand) if type(operand) in (tuple, list) else operand
