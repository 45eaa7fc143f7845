"""Answers to the exercise "write a tracer", right and wrong: what its check is tested on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import autodiff_lab as ad

Traces = tuple[dict[str, tuple[str, list[str]]], str]  # the graph, and the name of its output

# -------------------------------------------------------------------------------------- what a solution can look like


def trace(f, names):
    """The graph of f as {node: (op, inputs)}, and the name of its output."""
    graph = {name: ("input", []) for name in names}

    class Traced:
        def __init__(self, name):
            self.name = name

        def __add__(self, other):
            return recorded("add", self, other)

        def __sub__(self, other):
            return recorded("sub", self, other)

        def __mul__(self, other):
            return recorded("mul", self, other)

    def recorded(op, *operands):
        name = f"n{len(graph)}"
        graph[name] = (op, [operand.name for operand in operands])
        return Traced(name)

    output = f(*(Traced(name) for name in names))
    return graph, output.name


class _Stand:
    """A stand-in that remembers its op and its operands."""

    def __init__(self, op: str, *operands: _Stand) -> None:
        self.op, self.operands = op, operands

    def __add__(self, other: _Stand) -> _Stand:
        return _Stand("add", self, other)

    def __sub__(self, other: _Stand) -> _Stand:
        return _Stand("sub", self, other)

    def __mul__(self, other: _Stand) -> _Stand:
        return _Stand("mul", self, other)


def by_parents(f: Callable[..., Any], names: list[str]) -> Traces:
    """Stand-ins that know their parents, gathered from the output afterwards; each has its identity for a name."""
    inputs = [_Stand("input") for _ in names]
    output = f(*inputs)
    name_of = dict(zip(map(id, inputs), names, strict=True))
    graph: dict[str, tuple[str, list[str]]] = {name: ("input", []) for name in names}
    stack = [output]
    while stack:
        stand = stack.pop()
        name = name_of.setdefault(id(stand), f"at {id(stand)}")
        if name not in graph:
            for operand in stand.operands:
                name_of.setdefault(id(operand), f"at {id(operand)}")
            graph[name] = (stand.op, [name_of[id(operand)] for operand in stand.operands])
            stack.extend(stand.operands)
    return graph, name_of[id(output)]


# ---------------------------------------------------------------------------------------------------- wrong solutions


class _Writer:
    """A tracer with parts to get wrong: how a new node is named, and which inputs are written down."""

    def __init__(self, names: list[str]) -> None:
        self.graph: dict[str, tuple[str, list[str]]] = {name: ("input", []) for name in names}

    def name(self, op: str, inputs: list[str]) -> str:
        """The name of a new node."""
        return f"n{len(self.graph)}"

    def inputs(self, first: str, second: str) -> list[str]:
        """What is written down as the inputs."""
        return [first, second]

    def add(self, op: str, first: str, second: str) -> _Named:
        """A new node."""
        inputs = self.inputs(first, second)
        name = self.name(op, inputs)
        self.graph[name] = (op, inputs)
        return _Named(self, name)

    def run(self, f: Callable[..., Any]) -> _Named:
        """The stand-in that f returns."""
        output: _Named = f(*(_Named(self, name) for name in list(self.graph)))
        return output


class _Named:
    def __init__(self, writer: _Writer, name: str) -> None:
        self.writer, self.name = writer, name

    def __add__(self, other: _Named) -> _Named:
        return self.writer.add("add", self.name, other.name)

    def __sub__(self, other: _Named) -> _Named:
        return self.writer.add("sub", self.name, other.name)

    def __mul__(self, other: _Named) -> _Named:
        return self.writer.add("mul", self.name, other.name)


def as_a_tree(f: Callable[..., Any], names: list[str]) -> Traces:
    """Unfolds the output: every use of a value gets a node of its own."""
    inputs = [_Stand("input") for _ in names]
    graph: dict[str, tuple[str, list[str]]] = {name: ("input", []) for name in names}

    def unfolded(stand: _Stand) -> str:
        if stand in inputs:
            return names[inputs.index(stand)]
        operands = [unfolded(operand) for operand in stand.operands]
        name = f"n{len(graph)}"
        graph[name] = (stand.op, operands)
        return name

    return graph, unfolded(f(*inputs))


def along_every_path(f: Callable[..., Any], names: list[str]) -> Traces:
    """Gathered from the output without remembering what is gathered already."""
    inputs = [_Stand("input") for _ in names]
    output = f(*inputs)
    name_of = dict(zip(map(id, inputs), names, strict=True))
    graph: dict[str, tuple[str, list[str]]] = {name: ("input", []) for name in names}

    def named(stand: _Stand) -> str:
        operands = [named(operand) for operand in stand.operands]
        name = name_of.setdefault(id(stand), f"at {id(stand)}")
        graph[name] = (stand.op, operands)
        return name

    return graph, named(output)


def inputs_as_a_set(f: Callable[..., Any], names: list[str]) -> Traces:
    """Each input is written down once."""

    class Once(_Writer):
        def inputs(self, first: str, second: str) -> list[str]:
            return list(dict.fromkeys((first, second)))

    writer = Once(names)
    return writer.graph, writer.run(f).name


def named_by_formula(f: Callable[..., Any], names: list[str]) -> Traces:
    """Two additions of the same values share a name."""

    class Formula(_Writer):
        def name(self, op: str, inputs: list[str]) -> str:
            return f"{op}({', '.join(inputs)})"

    writer = Formula(names)
    return writer.graph, writer.run(f).name


def named_by_op(f: Callable[..., Any], names: list[str]) -> Traces:
    """All additions share a name."""

    class ByOp(_Writer):
        def name(self, op: str, inputs: list[str]) -> str:
            return op

    writer = ByOp(names)
    return writer.graph, writer.run(f).name


def named_by_id(f: Callable[..., Any], names: list[str]) -> Traces:
    """A node is named after the address of its stand-in, which another one gets when this one is gone."""
    graph: dict[str, tuple[str, list[str]]] = {name: ("input", []) for name in names}

    class Addressed(_Named):
        def __init__(self, name: str = "") -> None:
            self.name = name or f"n{id(self)}"

        def __add__(self, other: _Named) -> _Named:
            return recorded("add", self, other)

        def __sub__(self, other: _Named) -> _Named:
            return recorded("sub", self, other)

        def __mul__(self, other: _Named) -> _Named:
            return recorded("mul", self, other)

    def recorded(op: str, *operands: _Named) -> _Named:
        new = Addressed()
        graph[new.name] = (op, [operand.name for operand in operands])
        return new

    return graph, f(*map(Addressed, names)).name


def operands_swapped(f: Callable[..., Any], names: list[str]) -> Traces:
    """The second operand comes first."""

    class Swapped(_Writer):
        def inputs(self, first: str, second: str) -> list[str]:
            return [second, first]

    writer = Swapped(names)
    return writer.graph, writer.run(f).name


def last_is_output(f: Callable[..., Any], names: list[str]) -> Traces:
    """Whatever was recorded last is called the output."""
    writer = _Writer(names)
    writer.run(f)
    return writer.graph, list(writer.graph)[-1]


def only_what_is_used(f: Callable[..., Any], names: list[str]) -> Traces:
    """Gathered from the output, so an input that nobody uses is not there."""
    graph, output = by_parents(f, names)
    used = {source for _op, inputs in graph.values() for source in inputs} | {output}
    return {name: node for name, node in graph.items() if name in used}, output


def by_the_lab(f: Callable[..., Any], names: list[str]) -> Traces:
    """The lab's own tracer."""
    graph = ad.record(f, *(1.0 for _ in names))
    name = [names[graph.inputs.index(node.id)] if node.id in graph.inputs else f"#{node.id}" for node in graph]
    nodes = {name[node.id]: (node.label, [name[i] for i in node.inputs]) for node in graph}
    return nodes, name[graph.outputs[0]]


def computed(f: Callable[..., Any], names: list[str]) -> Any:
    """Runs the program on numbers."""
    return f(*range(2, 2 + len(names)))
