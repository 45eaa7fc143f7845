"""From the record of a framework of one's own to the lab's Graph and Timeline, so that all views and checks can read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import ops, schedule
from autodiff_lab.graph import Graph, Node
from autodiff_lab.schedule import Task, Tasks, Timeline

from .protocol import OpRules, ProtocolError, Recorded, Registry, Slot, recorded


def lab_graph(
    output: Recorded, own_ops: Registry | Mapping[str, OpRules] | None = None, /, **inputs: Recorded
) -> Graph:
    """What a value was computed from, as the lab's Graph.

    With ``own_ops`` a node's op *is* the one of this registry: whoever runs or differentiates the graph calls its functions,
    under the names ``my_mul``, ``my_mul_gradient``, …. Without, an op is the lab's of the same name.

    Args:
        output: a value that knows its op and its inputs.
        own_ops: the registry that the ops are taken from.
        inputs: values that become inputs of the graph, by name. All others that were not computed become constants.

    Raises:
        ProtocolError: something in the record is no value of the protocol, or no op has that name.

    >>> class Value:
    ...     def __init__(self, data, op="", inputs=()):
    ...         self.data, self.grad, self.op, self.inputs = data, 0.0, op, inputs
    ...
    ...     def backward(self): ...
    >>> x = Value(3.0)
    >>> print(lab_graph(Value(6.0, "mul", (x, Value(2.0))), x=x))
    graph mine: 3 nodes, 2 edges
      0  x  input        ()  float64
      1     constant 2.0 ()  float64
      2     mul(0, 1)    ()  float64
    output 2
    """
    name_of = {id(value): name for name, value in inputs.items()}
    values = [*inputs.values(), *(one for one in recorded(output) if id(one) not in name_of)]
    place = {id(value): number for number, value in enumerate(values)}
    known: dict[str, Any] = {}
    nodes = []
    for number, value in enumerate(values):
        array = np.asarray(value.data)
        facts = (name_of.get(id(value), ""), array.shape, array.dtype)
        if id(value) in name_of:
            nodes.append(Node(number, "input", *facts))
        elif not value.op:
            nodes.append(_constant(number, array))
        else:
            op = known.get(value.op) or known.setdefault(value.op, _op(value, own_ops))
            sources = tuple(place[id(one)] for one in value.inputs)
            nodes.append(Node(number, "op", *facts, op=op, inputs=sources, attributes=dict(op.attributes)))
    return Graph(tuple(nodes), tuple(range(len(inputs))), (place[id(output)],), "mine")


def lab_timeline(
    output: Recorded, slots: Iterable[Slot], cost: Callable[[Recorded], float], workers: int, policy: str = "mine"
) -> Timeline:
    """A schedule of all that was computed for a value, as the lab's Timeline: ``.faults()`` says what is illegal in it.

    A node of which there is no slot never ran.
    """
    nodes = [value for value in recorded(output) if value.op]
    name = {id(node): f"{node.op}_{number}" for number, node in enumerate(nodes)}
    tasks = Tasks([_task(node, name, cost(node)) for node in nodes])
    slot_of = {id(node): (worker, begin) for node, worker, begin in slots}
    if unknown := slot_of.keys() - name.keys():
        raise ProtocolError(
            f"a plan has slots for what was computed, and {len(unknown)} of these are for something else"
        )
    found = [slot_of.get(id(node), (-1, float("nan"))) for node in nodes]
    starts = [float(begin) for _worker, begin in found]
    ends = [start + cost(node) for start, node in zip(starts, nodes, strict=True)]
    return Timeline(tasks, schedule.cores(workers), policy, starts, ends, [worker for worker, _begin in found])


def _constant(number: int, array: np.ndarray) -> Node:
    name, value = ("data", array) if array.shape else ("", array[()])  # a plain number is shown by itself
    return Node(number, "constant", name, array.shape, array.dtype, value=value)


def _task(node: Recorded, name: Mapping[int, str], cost: float) -> Task:
    before = dict.fromkeys(name[id(one)] for one in node.inputs if one.op)
    return Task(name=name[id(node)], cost=cost, after=tuple(before), op=node.op, nbytes=np.asarray(node.data).nbytes)


def _op(value: Recorded, own_ops: Registry | Mapping[str, OpRules] | None) -> Any:
    """The op that made a value."""
    if own_ops is not None:
        if value.op not in own_ops:
            raise ProtocolError(f"a value was made by the op {value.op!r}, and the registry has none of that name")
        return lab_op(value.op, own_ops[value.op])
    if value.op not in ad.registry:
        raise ProtocolError(f"the lab has no op {value.op!r}; call it as the lab does, or hand in your registry, too")
    op = ad.registry[value.op]
    if len(op.inputs) != len(value.inputs):
        raise ProtocolError(
            f"{value.op!r} takes {len(op.inputs)} operands, and a value made by it has {len(value.inputs)} inputs"
        )
    return op


def lab_op(name: str, rules: OpRules) -> Any:
    """An op of the lab whose kernel, shape rule and gradient rules are those of an own op, outside of the lab's registry.

    The gradient rules are ops as well, so that a graph can show forward and backward together.
    """

    def kernel(xp: Any, *arrays: Any) -> Any:
        return np.asarray(rules.forward(*arrays))

    def gradient(xp: Any, *arrays: Any, of: int) -> Any:  # arrays: g, the result, the operands
        return ops.sum_to(np.asarray(rules.gradients[of](*arrays)), shape=arrays[2 + of].shape)

    kernel.__name__, gradient.__name__ = f"my_{name}", f"my_{name}_gradient"
    with ad.registry.restored():
        op, gradient_op = ad.op(kernel), ad.op(gradient)

    @gradient_op.shape_rule
    def gradient_shape(*shapes: Any, of: int) -> Any:
        return shapes[2 + of]

    @op.shape_rule
    def own_shape(*shapes: Any) -> Any:
        return tuple(rules.shape(*shapes))

    @op.vjp
    def own_gradient(g: Any, out: Any, arrays: Any, place: int) -> Any:
        return gradient_op([g, out, *arrays], of=place)

    return op.op
