"""Graphs as text for other programs: DOT for Graphviz, and JSON that gives the same graph again. Attached to Graph here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .backend import asarray, is_elsewhere, to_numpy
from .graph import Graph, Node, Source
from .operators import registry
from .trees import Structure

FORMAT = "autodiff-lab graph"
VERSION = 1


class GraphFormatError(ValueError):
    """A text is not a graph that can be read; says at which node, what was seen and what was expected."""


# ----------------------------------------------------------------------------------------------------------------- DOT


def to_dot(graph: Graph) -> str:
    r"""The graph in Graphviz's language: ``dot -Tsvg`` draws it.

    Names are data: quotes, ``<``, ``&`` and backslashes appear as they are, a newline starts a new line, and a control
    character appears as its symbol (␀ for NUL). Source: the DOT language, https://graphviz.org/doc/info/lang.html.

    >>> import autodiff_lab as ad
    >>> print(ad.record(lambda x: x * 2.0, 1.0).to_dot())
    digraph "<lambda>" {
      rankdir=TB; node [shape=box];
      n0 [label="x\ninput ()", shape=ellipse];
      n1 [label="constant 2.0", shape=ellipse];
      n2 [label="mul ()"];
      n0 -> n2;
      n1 -> n2;
      n2 -> out0;
      out0 [label="output", shape=plain];
    }
    """
    lines = [f"digraph {_quoted(graph.name)} {{", "  rankdir=TB; node [shape=box];"]
    for node in graph:
        style = ", shape=ellipse" if node.op is None else ", style=dashed" if node.phase != "forward" else ""
        lines.append(f"  n{node.id} [label={_quoted(_label(node))}{style}];")
    lines += [f"  n{source} -> n{consumer};" for source, consumer in graph.edges]
    for place, output in enumerate(graph.outputs):
        label = "output" if len(graph.outputs) == 1 else f"output {place}"
        lines += [f"  n{output} -> out{place};", f'  out{place} [label="{label}", shape=plain];']
    return "\n".join([*lines, "}"])


def _label(node: Node) -> str:
    if node.kind == "constant" and np.ndim(node.value) == 0:
        what = f"constant {node.value}"
    else:
        attributes = "".join(f" {key}={value!r}" for key, value in node.attributes.items() if value is not None)
        what = f"{node.label}{attributes} {node.shape}"
    return f"{node.name}\n{what}" if node.name else what


def _quoted(text: str) -> str:
    """A DOT string that shows ``text``: Graphviz reads escapes after a backslash and entities after &, also in quotes."""
    shown = "".join(map(_visible, text))
    for character, written in (("\\", "\\\\"), ('"', '\\"'), ("&", "&amp;"), ("\n", "\\n")):
        shown = shown.replace(character, written)
    return f'"{shown}"'


def _visible(character: str) -> str:
    """A control character as its symbol, half a surrogate pair as the sign for an unreadable character."""
    code = ord(character)
    if code < 0x20 and character != "\n":
        return chr(0x2400 + code)
    return "\ufffd" if 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or code in (0xFFFE, 0xFFFF) else character


# ------------------------------------------------------------------------------------------------------------ to JSON


def to_json(graph: Graph) -> str:
    """The graph as JSON, which ``Graph.from_json`` turns into an equal graph: ops by name, every constant in full.

    >>> import autodiff_lab as ad
    >>> graph = ad.record(lambda x: (x[1:] * 2.0).sum(), np.ones(3))
    >>> ad.Graph.from_json(graph.to_json()) == graph
    True

    Raises:
        TypeError: an attribute or a constant has a type that the format does not know.
        ValueError: an op was defined anew since the graph was recorded, so that its name means another op.
    """
    import json  # here, because importing it costs 1 ms

    content = {
        "format": FORMAT, "version": VERSION, "name": graph.name, "inputs": list(graph.inputs),
        "outputs": list(graph.outputs), "structure": _structure_to_json(graph.structure),
        "nodes": [_node_to_json(node) for node in graph],
    }  # fmt: skip
    return json.dumps(content, indent=1, allow_nan=False)


def _node_to_json(node: Node) -> dict[str, Any]:
    where = f"to_json: node {node.id} ({node.label})"
    written: dict[str, Any] = {
        "kind": node.kind,
        "name": node.name,
        "shape": list(node.shape),
        "dtype": node.dtype.name,
    }
    if node.op is not None:
        if not node.op.is_current:
            raise ValueError(f"{where}: the op was replaced since, and is written by name; record the graph again")
        attributes = {key: _encoded(value, f"{where}, {key}") for key, value in node.attributes.items()}
        written |= {"op": node.op.name, "inputs": list(node.inputs), "attributes": attributes}
    if node.kind == "constant":
        written["value"] = _encoded(to_numpy(node.value) if is_elsewhere(node.value) else node.value, where)
    source = node.source
    rest = {
        "device": node.device, "phase": node.phase, "scope": node.scope, "saved": list(node.saved), "origin": node.origin,
        "serial": node.serial, "source": source and [source.file, source.line, source.function, source.text],
    }  # fmt: skip
    blank: dict[str, Any] = {
        "device": "cpu",
        "phase": "forward",
        "scope": "",
        "saved": [],
        "origin": None,
        "source": None,
    }
    return written | {key: value for key, value in rest.items() if key not in blank or value != blank[key]}


def _structure_to_json(structure: Structure | None) -> Any:
    if structure is None or structure.kind is None:
        return None if structure is None else "leaf"
    if structure.kind not in (list, tuple, dict):
        raise TypeError(f"to_json: results nest in lists, tuples and dicts, not in a {structure.kind.__name__}")
    keys = [_encoded(key, "to_json: a key of the result") for key in structure.keys]
    return {"kind": structure.kind.__name__, "parts": list(map(_structure_to_json, structure.parts)), "keys": keys}


def _encoded(value: Any, where: str) -> Any:
    """A value as JSON: what JSON has stands for itself, everything else is an object with one key that names the type."""
    if value is None or isinstance(value, (bool, str)) or type(value) is int:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    for kind, (name, to_plain, _) in _TYPES.items():
        if isinstance(value, kind):
            return {name: _inside(to_plain(value), where)}
    raise TypeError(f"{where}: a {type(value).__name__} cannot be written; use numbers, texts, slices, arrays, dtypes")


def _inside(plain: Any, where: str) -> Any:
    return [_encoded(part, where) for part in plain] if isinstance(plain, list) else plain


def _array_to_plain(array: Any) -> list[Any]:
    return [array.dtype.name, list(array.shape), array.ravel().tolist()]


def _array_from_plain(parts: list[Any]) -> Any:
    dtype, shape, numbers = parts
    return np.array(numbers, np.dtype(dtype)).reshape(shape)


def _type_from_plain(name: str) -> type:
    """A type that stands for a dtype: ``builtins.float``, ``numpy.float32``."""
    known: dict[str, type] = {f"builtins.{kind.__name__}": kind for kind in (bool, int, float)}
    return known.get(name) or np.dtype(name.removeprefix("numpy.")).type


# type: its name in the file, how to take it apart into lists and plain values, and how to put it together
_TYPES: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    tuple: ("tuple", list, tuple),
    list: ("list", list, list),
    slice: ("slice", lambda s: [s.start, s.stop, s.step], lambda parts: slice(*parts)),
    type(Ellipsis): ("ellipsis", lambda _: "...", lambda _: Ellipsis),
    np.dtype: ("dtype", lambda dtype: dtype.name, np.dtype),
    np.ndarray: ("array", _array_to_plain, _array_from_plain),
    np.generic: ("scalar", _array_to_plain, lambda parts: _array_from_plain(parts)[()]),
    dict: ("dict", lambda d: [list(pair) for pair in d.items()], dict),
    type: ("type", lambda kind: f"{kind.__module__}.{kind.__name__}", _type_from_plain),
}
_READERS = {name: from_plain for name, _, from_plain in _TYPES.values()} | {"float": float}


# ---------------------------------------------------------------------------------------------------------- from JSON


def from_json(cls: type[Graph], text: str) -> Graph:
    """The graph that ``to_json`` wrote. Ops are found by name in the registry, and shapes are checked by their rules.

    Raises:
        GraphFormatError: the text is not such a graph, names an op that is not registered, or contradicts itself.
    """
    import json

    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise GraphFormatError(f"from_json: this is not JSON: {error}") from error
    if not isinstance(content, dict) or (content.get("format"), content.get("version")) != (FORMAT, VERSION):
        raise GraphFormatError(f"from_json: expected the format {FORMAT!r}, version {VERSION}; write it with to_json")
    nodes: list[Node] = []
    for written in _field(content, "nodes", list, "from_json"):
        nodes.append(_node_from_json(written, nodes))
    for node in nodes:
        named = [*node.saved, *([] if node.origin is None else [node.origin])]
        _ids(named, nodes, f"from_json: node {node.id}: saved and origin")
    inputs, outputs = (_ids(_field(content, key, list, "from_json"), nodes, key) for key in ("inputs", "outputs"))
    structure = _structure_from_json(content.get("structure"))
    return cls(tuple(nodes), inputs, outputs, _field(content, "name", str, "from_json"), structure)


def _node_from_json(written: Any, before: list[Node]) -> Node:
    where = f"from_json: node {len(before)}"
    if not isinstance(written, dict):
        raise GraphFormatError(f"{where}: expected an object, got {written!r}")
    kind = _field(written, "kind", str, where)
    if kind not in ("input", "constant", "op"):
        raise GraphFormatError(f"{where}: the kind must be input, constant or op, got {kind!r}")
    facts = {key: written[key] for key in ("device", "phase", "scope", "origin", "serial") if key in written}
    if kind == "op":
        facts |= _call_from_json(written, before, where)
    node = Node(
        len(before), kind, _field(written, "name", str, where), tuple(_field(written, "shape", list, where)),
        _decoded({"dtype": _field(written, "dtype", str, where)}, where), saved=tuple(written.get("saved", ())),
        source=Source(*written["source"]) if written.get("source") else None,
        value=_decoded(written.get("value"), where), **facts,
    )  # fmt: skip
    _check_shape(node, before, where)
    if node.device != "cpu" and isinstance(node.value, np.ndarray):
        return replace(node, value=asarray(node.value, device=node.device))
    return node


def _call_from_json(written: Mapping[str, Any], before: list[Node], where: str) -> dict[str, Any]:
    """Op, inputs and attributes of a node."""
    name = _field(written, "op", str, where)
    if name not in registry:
        raise GraphFormatError(f"{where}: op {name!r} is not registered; run the code that defines it, then read again")
    op, inputs = registry[name], _ids(_field(written, "inputs", list, where), before, f"{where}: inputs")
    attributes = {k: _decoded(v, f"{where}, {k}") for k, v in _field(written, "attributes", dict, where).items()}
    if attributes.keys() != op.attributes.keys():
        raise GraphFormatError(f"{where}: op {name} has the attributes {list(op.attributes)}, got {list(attributes)}")
    return {"op": op, "inputs": inputs, "attributes": attributes}


def _check_shape(node: Node, before: list[Node], where: str) -> None:
    if node.op is None:
        if node.kind == "constant" and node.value is not None and np.shape(node.value) != node.shape:
            raise GraphFormatError(f"{where}: it says shape {node.shape}, but its value has {np.shape(node.value)}")
        return
    try:
        operands = [before[i] for i in node.inputs]
        shape = node.op.infer_shape([o.shape for o in operands], node.attributes, [o.dtype_fact for o in operands])
    except (TypeError, ValueError, IndexError) as error:
        raise GraphFormatError(f"{where}: op {node.op.name} cannot take these inputs: {error}") from error
    if shape != node.shape:
        raise GraphFormatError(f"{where}: it says shape {node.shape}, but op {node.op.name} gives {shape}")


def _ids(found: list[Any], nodes: list[Node], where: str) -> tuple[int, ...]:
    for one in found:
        if type(one) is not int or not 0 <= one < len(nodes):
            raise GraphFormatError(
                f"{where}: expected a node from 0 to {len(nodes) - 1} that stands before, got {one!r}"
            )
    return tuple(found)


def _structure_from_json(written: Any) -> Structure | None:
    if written is None or written == "leaf":
        return None if written is None else Structure()
    kinds = {"list": list, "tuple": tuple, "dict": dict}
    if not isinstance(written, dict) or written.get("kind") not in kinds:
        raise GraphFormatError(f"from_json: a result nests in list, tuple or dict, got {written!r}")
    parts = tuple(_structure_from_json(part) or Structure() for part in _field(written, "parts", list, "structure"))
    keys = tuple(_decoded(key, "structure") for key in written.get("keys", ()))
    return Structure(kinds[written["kind"]], parts, keys)


def _decoded(written: Any, where: str) -> Any:
    if not isinstance(written, dict):
        return written
    (name, plain), *others = list(written.items()) or [("nothing", None)]
    if others or name not in _READERS:
        raise GraphFormatError(f"{where}: expected one of the types {', '.join(sorted(_READERS))}, got {list(written)}")
    parts = [_decoded(part, where) for part in plain] if isinstance(plain, list) else plain
    try:
        return _READERS[name](parts)
    except (TypeError, ValueError) as error:
        raise GraphFormatError(f"{where}: {plain!r} is no {name}: {error}") from error


def _field(written: Mapping[str, Any], key: str, kind: type, where: str) -> Any:
    if not isinstance(written.get(key), kind):
        raise GraphFormatError(f"{where}: expected {key!r} to be a {kind.__name__}, got {written.get(key)!r}")
    return written[key]


setattr(Graph, "to_dot", to_dot)  # noqa: B010  (mypy would refuse the assignment to a method)
setattr(Graph, "to_json", to_json)  # noqa: B010
setattr(Graph, "from_json", classmethod(from_json))  # noqa: B010
