"""What is known about each node, as the rows of the details panel and of the text twin."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from autodiff_lab.graph import Graph, Node

from .captions import few, listed
from .drawing import key_of, node_name
from .repeats import Repeat, is_array, outer_scopes
from .shapes import scope_key
from .values import bytes_text, dtype_text, value_text

Rows = tuple[tuple[str, str], ...]


def graph_facts(graph: Graph) -> dict[str, Rows]:
    """The facts of every node of a graph, by element."""
    return {key_of(node): _node_facts(node, graph) for node in graph}


def scope_facts(graph: Graph, drawn: Collection[str]) -> dict[str, Rows]:
    """The facts of every scope whose band is drawn, by element."""
    inside = Counter(scope for node in graph for scope in outer_scopes(node.scope))
    note = ("click", "draws it as one box, while the kernel runs")
    return {
        scope_key(scope): (("scope", scope), ("nodes", str(count)), note)
        for scope, count in inside.items()
        if scope in drawn
    }


def box_facts(boxes: Mapping[str, Node]) -> dict[str, Rows]:
    """The facts of every box that stands for a collapsed scope or for repeated blocks, by element."""
    return {
        key: (
            _scope_box_facts(node)
            if node.attributes["repeat"] is None
            else repeat_facts(node.attributes["repeat"], node.phase)
        )
        for key, node in boxes.items()
    }


def _scope_box_facts(node: Node) -> Rows:
    return (
        ("scope", node.name),
        ("phase", node.phase),
        ("nodes", str(node.attributes["collapsed"])),
        ("click", "opens it, while the kernel runs"),
    )


def repeat_facts(repeat: Repeat, phase: str) -> Rows:
    """What is inside blocks of the same structure, and which of them differ."""
    nodes, count = repeat.graph.nodes, len(repeat.blocks)
    inside = [nodes[node] for block in repeat.blocks for node in block]
    parameters = [node for node in inside if node.phase == "forward" and (node.kind == "input" or is_array(node))]
    results = [node for node in inside if node.kind == "op" and node.phase == phase]
    differing = [f"{scope}: {how}" for scope, how in (repeat.differences(phase) if phase != "forward" else ())]
    rows = [
        ("blocks", few(repeat.scopes, most=3)),
        ("in", repeat.parent),
        ("phase", phase),
        ("inside", repeat.ops_text(phase)),
        ("own inputs", _parts(parameters, count) if phase == "forward" else ""),
        ("results", bytes_text(sum(node.nbytes for node in results))),
        ("shared inputs", _sizes([nodes[node] for node in repeat.shared]) if phase == "forward" else ""),
        ("differs", "; ".join(differing)),
        ("not among them", "; ".join(f"{scope}: {how}" for scope, how in repeat.neighbours)),
        ("opened", f"shows one of them: {repeat.scopes[0]}"),
    ]
    return tuple((label, value) for label, value in rows if value)


def _parts(parameters: Sequence[Node], count: int) -> str:
    """What a block reads that nobody else reads: ``12 × 16 arrays, 1,248 numbers, 5 kB in all``."""
    numbers = sum(math.prod(node.shape) for node in parameters)
    if not parameters:
        return ""
    size = bytes_text(sum(node.nbytes for node in parameters))
    each = f"{count} × {len(parameters) // count}" if len(parameters) % count == 0 else str(len(parameters))
    return f"{each} arrays, {numbers:,} numbers, {size} in all"


def _node_facts(node: Node, graph: Graph) -> Rows:
    rows = [
        ("name", node.name),
        ("op", _call(node, graph)),
        ("definition", _definition(node)),
        ("phase", node.phase),
        ("shape", str(node.shape)),
        ("dtype", dtype_text(node.dtype)),
        ("size", bytes_text(node.nbytes)),
        ("device", _device(node.device)),
        ("scope", node.scope),
        ("value", "" if node.value is None else value_text(node.value)),
        ("saves for backward", _sizes([graph.nodes[i] for i in node.saved])),
        ("reused by backward", _reused(node, graph)),
        ("made by the rule of", "" if node.origin is None else node_name(graph.nodes[node.origin])),
        ("written in", "" if node.source is None else str(node.source)),
    ]
    return tuple((label, value) for label, value in rows if value)


def _device(name: str) -> str:
    return "" if name == "cpu" else f"{name} (simulated)" if name.startswith("sim") else name


def _call(node: Node, graph: Graph) -> str:
    """The op with its operands and attributes: ``sum(h, axis=0)``."""
    if node.op is None:
        return node.kind
    arguments = [node_name(graph.nodes[i]) for i in node.inputs]
    arguments += [f"{key}={value!r}" for key, value in node.attributes.items() if value is not None]
    return f"{node.op.name}({', '.join(arguments)})"


def _definition(node: Node) -> str:
    """A warning where the op's name was given to another op after the graph was recorded."""
    if node.op is None or node.op.is_current:
        return ""
    return f"an older {node.op.name}, replaced since this graph was recorded"


def _sizes(nodes: list[Node]) -> str:
    return "; ".join(f"{node_name(node)} {bytes_text(node.nbytes)}" for node in dict.fromkeys(nodes))


def _reused(node: Node, graph: Graph) -> str:
    """Which backward nodes read a forward node's value."""
    if node.phase != "forward":
        return ""
    readers = [graph.nodes[i] for i in dict.fromkeys(graph.consumers[node.id]) if graph.nodes[i].phase == "backward"]
    return f"{listed([node_name(reader) for reader in readers])}: {bytes_text(node.nbytes)} kept" if readers else ""
