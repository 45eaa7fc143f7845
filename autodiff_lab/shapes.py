"""Shapes and dtypes travel through a graph without data, also where some sizes are not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from . import events
from .bindings import OpError
from .events import Receiver
from .graph import Graph, Node, check_graph
from .operand_rules import Dimension as Dimension
from .operand_rules import PartialShape as PartialShape
from .operand_rules import Shape
from .operand_rules import is_known as is_known
from .operators import Op
from .signatures import place_of
from .stand_ins import Answer, ask, sizes_in


@dataclass(frozen=True, eq=False)
class Inference:
    """The shape and dtype of every node of a graph, as its rules say, and the nodes whose rule lost what its operands knew."""

    graph: Graph
    shapes: tuple[PartialShape, ...]
    dtypes: tuple[np.dtype[Any], ...]
    lost: tuple[int, ...]

    @cached_property
    def unknown(self) -> frozenset[int]:
        """The nodes of whose shape some size is known neither by number nor by name."""
        return frozenset(node for node, shape in enumerate(self.shapes) if not is_known(shape))

    def origin(self, node: int) -> int:
        """Where what is not known about a node's shape began: at a node in ``lost``, at an input, or at the node itself."""
        return self._origins[node]

    @cached_property
    def losses(self) -> dict[int, str]:
        """For each node in ``lost`` which rule lost something, and where it stands."""
        return {node: _loss_text(self.graph.nodes[node]) for node in self.lost}

    @cached_property
    def _origins(self) -> list[int]:
        origins: list[int] = []
        lost = set(self.lost)
        for node in self.graph.nodes:
            unknown = [] if node.id in lost else [source for source in node.inputs if source in self.unknown]
            origins.append(origins[unknown[0]] if unknown else node.id)
        return origins

    def text(self) -> str:
        """Every node with its shape, and the rules that lost something."""
        rows = [(str(node.id), node.name, node.label, shape_text(self.shapes[node.id])) for node in self.graph.nodes]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        lines = [f"  {line}  {dtype}" for line, dtype in zip(lines, self.dtypes, strict=True)]
        lost = [f"lost at {node}: {text}" for node, text in self.losses.items()]
        heading = f"shapes of graph {self.graph.name}: {len(self.unknown)} of {len(rows)} unknown"
        return "\n".join([heading, *lines, *lost])

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()


def infer_shapes(
    graph: Graph, shapes: Mapping[str, PartialShape] | None = None, tell: Receiver | None = None
) -> Inference:
    """The shape and dtype of every node, by the shape and dtype rules alone: no data is looked at, no kernel runs.

    Args:
        graph: a recorded graph.
        shapes: shapes of some inputs by their names; the others keep the recorded ones. A size may be a number, a name such
            as ``"batch"``, or None where nothing is known of it; None for a shape: not even the number of axes.
        tell: hears a ``ShapeInferred`` for each node, and a ``ShapeLost`` where a rule lost what its operands knew.

    Raises:
        ValueError: there is no such input, or it has another number of axes.
        OpError: shapes do not fit an op; the error names the op, its operands, the rule, and the line it came from.

    >>> import autodiff_lab as ad
    >>> graph = ad.record(lambda x, w: ops.tanh(x @ w), np.zeros((64, 784)), np.zeros((784, 10)))
    >>> print(infer_shapes(graph, {"x": ("batch", 784)}))
    shapes of graph <lambda>: 0 of 4 unknown
      0  x  input   ('batch', 784)  float64
      1  w  input   (784, 10)       float64
      2     matmul  ('batch', 10)   float64
      3     tanh    ('batch', 10)   float64
    """
    check_graph(graph, "infer_shapes")
    given = _given(graph, shapes or {})
    asked = _Asked(graph)
    found: list[PartialShape] = []
    dtypes: list[np.dtype[Any]] = []
    lost: list[int] = []
    for node in graph.nodes:
        operands = [found[i] for i in node.inputs]
        answer = Answer(given.get(node.id, node.shape), False)
        dtype = node.dtype
        if node.op is not None:
            answer, dtype = asked.shape(node, node.op, operands), asked.dtype(node, node.op, dtypes)
        found.append(answer.shape)
        dtypes.append(dtype)
        if answer.loses:
            lost.append(node.id)
        if tell is not None:
            _tell(tell, node, answer, dtype, operands)
    return Inference(graph, tuple(found), tuple(dtypes), tuple(lost))


def _given(graph: Graph, shapes: Mapping[str, PartialShape]) -> dict[int, PartialShape]:
    """The shapes that inputs were given, by node."""
    if not isinstance(shapes, Mapping):
        raise TypeError(f'infer_shapes: shapes must be a dict such as {{"x": ("batch", 784)}}, got {shapes!r}')
    inputs = {graph.nodes[place].name: graph.nodes[place] for place in graph.inputs}
    return {_input(graph, inputs, name).id: _checked(inputs[name], shape) for name, shape in shapes.items()}


def _input(graph: Graph, inputs: Mapping[str, Node], name: str) -> Node:
    if name not in inputs:
        known = ", ".join(inputs) or "none"
        raise ValueError(f"infer_shapes: graph {graph.name} has no input {name!r}; its inputs are: {known}")
    return inputs[name]


def _checked(node: Node, shape: PartialShape) -> PartialShape:
    """A shape that an input may have."""
    where = f"infer_shapes: the input {node.name}"
    if shape is None:
        return None
    if not isinstance(shape, (tuple, list)) or not all(map(_is_dimension, shape)):
        raise TypeError(
            f'{where}: {shape!r} is no shape; write ("batch", 784): numbers, names, or None for an unknown size'
        )
    if len(shape) != len(node.shape):
        raise ValueError(
            f"{where} was recorded with shape {node.shape}, so it has {len(node.shape)} axes, and {tuple(shape)} has "
            f"{len(shape)}; record the function again for another number of axes"
        )
    return tuple(int(size) if isinstance(size, np.integer) else size for size in shape)


def _is_dimension(size: Any) -> bool:
    if isinstance(size, bool):
        return False
    return (
        size is None
        or (isinstance(size, str) and size != "")
        or (isinstance(size, (int, np.integer)) and bool(size >= 0))
    )


class _Asked:
    """What the rules of a graph's ops answered, each question asked once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.answers: dict[Any, Answer] = {}

    def shape(self, node: Node, op: Op, operands: Sequence[PartialShape]) -> Answer:
        """What the shape rule of a node says about its operands' shapes."""
        recorded = tuple(self.graph.nodes[i].shape for i in node.inputs)
        question = op, tuple(operands), recorded, tuple(node.attributes.items())
        try:
            if question in self.answers:
                return self.answers[question]
        except TypeError:  # an attribute that has no hash, such as an index array
            return self._ask(node, op, operands, recorded)
        self.answers[question] = answer = self._ask(node, op, operands, recorded)
        return answer

    def _ask(self, node: Node, op: Op, operands: Sequence[PartialShape], recorded: Sequence[Shape]) -> Answer:
        def rule(shapes: Sequence[Shape]) -> PartialShape:
            return op.ask_shape_rule(shapes, node.attributes)

        try:
            return ask(rule, operands, recorded, sizes_in(node.attributes))
        except Exception as error:
            raise self._refused(node, op, "shape", [shape_text(shape) for shape in operands], error) from error

    def dtype(self, node: Node, op: Op, dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
        """What the dtype rule of a node says about its operands' dtypes."""
        facts = [self.graph.nodes[i].dtype_fact for i in node.inputs]
        facts = [dtypes[i] if isinstance(fact, np.dtype) else fact for i, fact in zip(node.inputs, facts, strict=True)]
        try:
            return op.infer_dtype(facts, node.attributes)
        except Exception as error:
            raise self._refused(node, op, "dtype", list(map(str, facts)), error) from error

    def _refused(
        self, node: Node, op: Op, kind: Literal["shape", "dtype"], seen: Sequence[str], error: Exception
    ) -> OpError:
        """An error that names the op's line, its operands and the rule that refuses them."""
        names = op.operand_names(len(node.inputs))
        variables = [f" = {name}" if (name := self.graph.nodes[i].name) else "" for i in node.inputs]
        operands = [f"{name}{variable}: {what}" for name, variable, what in zip(names, variables, seen, strict=True)]
        where = f" ({node.source})" if node.source else ""
        return OpError(
            f"{op.name}({', '.join(operands)}){where}: its {kind} rule {op.operand_rule_name(kind)} refuses them: {error}"
        )


def _tell(tell: Receiver, node: Node, answer: Answer, dtype: Any, operands: Sequence[PartialShape]) -> None:
    rule = node.op.operand_rule_name("shape") if node.op is not None else ""
    tell(events.ShapeInferred(node.id, node.label, rule, tuple(operands), answer.shape, dtype))
    if answer.loses and node.op is not None:
        tell(events.ShapeLost(node.id, node.label, rule, answer.shape, node.op.operand_rule_source("shape")))


def shape_text(shape: PartialShape) -> str:
    """A shape with a question mark for each size that nothing is known of.

    >>> shape_text(("batch", None, 3)), shape_text((None,)), shape_text(None)
    ("('batch', ?, 3)", '(?,)', 'of unknown rank')
    """
    return "of unknown rank" if shape is None else repr(shape).replace("None", "?")


def _loss_text(node: Node) -> str:
    assert node.op is not None
    rule, place = node.op.operand_rule_name("shape"), place_of(node.op.operand_rule_source("shape"))
    return f"the shape rule {rule} of {node.op.name} loses a dimension ({place})"
