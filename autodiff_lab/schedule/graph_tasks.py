"""Tasks from a graph: phases, micro-batches, sums over them, and where each node runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..graph import Graph, Node, Source
from ..operators import Op, registry
from .costs import Constant, CostModel, Work, added_up, name_of, work_of
from .mistakes import ScheduleError, meant
from .task import Phase, Task
from .tasks import Tasks

Costs = CostModel | Mapping[str, CostModel]  # one for every device, or one for each kind of device
Placement = Mapping[str, str] | Callable[[Node], "str | None"]


@dataclass(frozen=True, slots=True, eq=False)
class OpCall:
    """What a task of a graph calls: the op on the values that it reads, with the constants in their places."""

    op: Op
    attributes: Mapping[str, Any]
    constants: Mapping[int, Any]  # by place among the operands
    source: Source | None = None  # the line that an error points at

    def __call__(self, *values: Any) -> Any:
        """The op's result."""
        if not self.constants:
            return self.op.apply(values, self.attributes)
        rest = iter(values)
        count = len(values) + len(self.constants)
        operands = [self.constants[place] if place in self.constants else next(rest) for place in range(count)]
        return self.op.apply(operands, self.attributes)


def from_graph(
    graph: Graph,
    costs: Costs | None = None,
    *,
    micro_batches: int = 1,
    data: Collection[str] = (),
    place: Placement | None = None,
) -> Tasks:
    """One task for each op of a graph: forward, joint or a whole training step.

    A task has its node's name and number, ``h_7``, and so has the value that it writes. Bytes, and whether there is a kernel
    for a kind of device, come from the registry. Constants are part of a task; inputs are values that are there.

    Args:
        graph: any graph; ``ad.record(ad.value_and_grad(f), …)`` has forward and backward.
        costs: a cost model, or a dict from kinds of devices (``cpu``, ``cuda``) to cost models. Every op costs 1 by default.
        micro_batches: run forward and backward so many times. Names end in ``@0``, ``@1``, …. What leaves them, the graph's
            outputs and what updates read, is added up in that order, ``g_9@sum1``, ``g_9@sum2``, …; updates come once.
        data: the graph's inputs of which every micro-batch has its own: ``x@0``, ``x@1``, ….
        place: the resource of each node: a function, or a dict from name scopes to resources. A node outside of these scopes
            goes where the node goes that it belongs to (``origin``), else where its last placed operand is.

    Raises:
        ScheduleError: a cost is missing, or ``data`` names no input.

    >>> import autodiff_lab as ad
    >>> graph = ad.record(ad.value_and_grad(lambda w, x: ad.ops.tanh(x * w).sum()), np.ones(3), np.ones(3))
    >>> [(task.name, task.phase) for task in from_graph(graph)][:4]
    [('mul_2', 'F'), ('tanh_3', 'F'), ('sum_4', 'F'), ('ones_like_5', 'dX')]
    >>> len(from_graph(graph, micro_batches=2)) - 2 * len(from_graph(graph))  # the loss and the gradient are added up
    2
    """
    return _Builder(graph, costs or Constant(), micro_batches, data, place).tasks()


def phases(graph: Graph) -> list[Phase]:
    """The phase of each node.

    A node of the backward pass is ``dX`` if the rule of another forward op needs it, on whatever way: back-propagation goes on
    through it. It is ``dW`` if only a gradient needs it that leaves the graph or is used by an update. Contributions that are
    added up belong to no rule, and are passed through.

    >>> import autodiff_lab as ad
    >>> graph = ad.record(ad.grad(lambda w, x: ad.ops.tanh(x * w)), 1.0, 2.0)
    >>> [(node.label, phase) for node, phase in zip(graph, phases(graph)) if node.phase == "backward"][-2:]
    [('mul', 'dX'), ('mul', 'dW')]
    """
    goes_on = [False] * len(graph)
    for node in reversed(graph.nodes):
        if node.phase == "backward":
            goes_on[node.id] = any(_goes_on(node, graph.nodes[c], goes_on[c]) for c in graph.consumers[node.id])
    return [_phase(node, goes_on[node.id]) for node in graph]


def _goes_on(node: Node, consumer: Node, consumer_goes_on: bool) -> bool:
    if consumer.phase != "backward":
        return False
    is_other_rule = consumer.origin is not None and consumer.origin != node.origin
    return is_other_rule or consumer_goes_on


def _phase(node: Node, goes_on: bool) -> Phase:
    if node.phase == "update":
        return "update"
    return "F" if node.phase == "forward" else "dX" if goes_on else "dW"


class _Builder:
    def __init__(
        self, graph: Graph, costs: Costs, micro_batches: int, data: Collection[str], place: Placement | None
    ) -> None:
        if micro_batches < 1:
            raise ScheduleError(f"from_graph: micro_batches must be at least 1, got {micro_batches}")
        self.graph, self.costs, self.count = graph, costs, micro_batches
        self.inputs = [name_of(graph.nodes[i]) for i in graph.inputs]
        for name in data:
            if name not in self.inputs:
                raise ScheduleError(f"from_graph: the graph has no input {name!r}; {meant(name, self.inputs)}")
        self.data = frozenset(data) if micro_batches > 1 else frozenset()
        self.phases = phases(graph)
        self.places = _places(graph, place)
        ops = [node for node in graph if node.op is not None]
        self.repeated = [node for node in ops if node.phase != "update"]
        self.once = [node for node in ops if node.phase == "update"]
        self.leaving = added_up(graph)
        if clash := set(self.inputs) & {name_of(node) for node in ops}:
            raise ScheduleError(
                f"from_graph: the input {min(clash)!r} is named like an op's task; rename the parameter"
            )

    def tasks(self) -> Tasks:
        """All of them, micro-batch by micro-batch, sums after the micro-batch that they wait for, then the updates."""
        found = [task for number in range(self.count) for task in self._micro_batch(number)]
        found += [self._task(node, self.count - 1, node.id, name_of(node), self._final) for node in self.once]
        inputs = [f"{name}@{k}" for name in self.inputs if name in self.data for k in range(self.count)]
        inputs += [name for name in self.inputs if name not in self.data]
        return Tasks(found, inputs=inputs, outputs=[self._final(self.graph.nodes[i]) for i in self.graph.outputs])

    def _micro_batch(self, number: int) -> Iterator[Task]:
        def value(node: Node) -> str:
            return self._value(node, number)

        for node in self.repeated:
            yield self._task(node, number, number * len(self.graph) + self._sequence(node), value(node), value)
        if number:
            for node in self.leaving:
                yield self._sum(node, number)

    def _value(self, node: Node, number: int) -> str:
        name = name_of(node)
        is_own = self.count > 1 and (self._is_repeated(node) or name in self.data)
        return f"{name}@{number}" if is_own else name

    def _final(self, node: Node) -> str:
        """The value of which there is one for all micro-batches."""
        is_sum = self.count > 1 and self._is_repeated(node)
        return f"{name_of(node)}@sum{self.count - 1}" if is_sum else name_of(node)

    def _is_repeated(self, node: Node) -> bool:
        return node.op is not None and node.phase != "update"

    def _sequence(self, node: Node) -> int:
        return node.id if node.origin is None else node.origin

    def _task(self, node: Node, number: int, sequence: int, name: str, value: Callable[[Node], str]) -> Task:
        assert node.op is not None
        operands = [self.graph.nodes[source] for source in node.inputs]
        constants = {place: operand.value for place, operand in enumerate(operands) if operand.kind == "constant"}
        return Task(
            OpCall(node.op, node.attributes, constants, node.source),
            name=name,
            cost=self._cost(work_of(self.graph, node)),
            reads=tuple(value(operand) for operand in operands if operand.kind != "constant"),
            phase=self.phases[node.id],
            nbytes=node.nbytes,
            on=self.places[node.id],
            op=node.op.name,
            node=node.id,
            sequence=sequence,
            micro_batch=number,
            serial=node.serial,
        )

    def _sum(self, node: Node, number: int) -> Task:
        name, facts = name_of(node), (node.shape, node.dtype)
        so_far = f"{name}@0" if number == 1 else f"{name}@sum{number - 1}"
        add = registry["add"]
        return Task(
            OpCall(add, {}, {}, node.source),
            name=f"{name}@sum{number}",
            cost=self._cost(Work(add, (facts, facts), *facts, f"{name}@sum")),
            reads=(so_far, f"{name}@{number}"),
            phase="F" if node.phase == "forward" else "dW",
            nbytes=node.nbytes,
            on=self.places[node.id],
            op="add",
            sequence=number * len(self.graph) + self._sequence(node),
            micro_batch=number,
        )

    def _cost(self, work: Work) -> float | Mapping[str, float]:
        first = work.inputs[0][1] if work.inputs else None
        kinds = {kind for kind, dtype in work.op.kernels if dtype in (None, first)}
        if isinstance(self.costs, Mapping):
            models = {kind: model for kind, model in self.costs.items() if kinds & {"any", kind}}
            return {kind: self._seconds(model, work) for kind, model in models.items()}
        seconds = self._seconds(self.costs, work)
        return seconds if "any" in kinds else dict.fromkeys(sorted(kinds), seconds)

    def _seconds(self, model: CostModel, work: Work) -> float:
        if not hasattr(model, "seconds"):
            raise ScheduleError(
                f"from_graph: costs must be a cost model such as Roofline(), or a dict of them, got {model!r}"
            )
        return model.seconds(work)


def _places(graph: Graph, place: Placement | None) -> Sequence[str | None]:
    if place is None:
        return [None] * len(graph)
    own = place if callable(place) else lambda node: _by_scope(place, node.scope)
    found: list[str | None] = []
    for node in graph:
        inherited = found[node.origin] if node.origin is not None else None
        operands = [found[source] for source in node.inputs if found[source] is not None]
        found.append(own(node) or inherited or (operands[-1] if operands else None))
    return found


def _by_scope(places: Mapping[str, str], scope: str) -> str | None:
    """The place of the longest scope that holds this one."""
    fitting = [name for name in places if scope == name or scope.startswith(f"{name}.")]
    return places[max(fitting, key=len)] if fitting else None
