"""A graph as a flat list of kernel calls, with the memory that each of them writes to decided in advance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np

from . import backend, events
from . import fusion as fusing
from .bindings import real_array
from .events import Receiver
from .fused_loops import Loops, loop_of
from .fusion import Fusion, Group
from .graph import Graph, Node, Phase, check_graph
from .layouts import with_dot
from .lifetimes import Buffer, Lifetime, Memory, place_values
from .numpy_calls import Value
from .plan_code import PlanCode, write_plan
from .plan_lines import Kind, Line, Lines, Lowering
from .shapes import Inference, infer_shapes
from .simplification import Simplified, simplify
from .tensors import Tensor

# Up to here the values of a group, some of which live at once, stay in a last-level cache of 32 MB. Then blocks gain less than
# calls that are shared with other groups, such as the tanh that forward and backward both need.
_IN_CACHE = 2 << 20


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel of a plan: an op, or a group of ops that run as one loop. Nodes are those of the plan's graph."""

    number: int
    nodes: tuple[int, ...]
    name: str
    kind: Kind
    reads: tuple[int, ...]  # nodes whose values it takes
    writes: tuple[int, ...]  # nodes whose values it gives to others
    phase: Phase
    device: str
    calls: tuple[int, ...]  # its lines, by their numbers in ``plan.lines``


class Plan:
    """A graph that is ready to run: call it with the graph's inputs.

    The numbers are those of the graph, bit by bit, where no reduction is fused and the inputs lie in C order; else sums may be
    rounded in another way. (With ``loops="compiled"``, tanh in single precision is one of ours: see ``rational_tanh``.)
    What a call returns is yours for ever: it shares no memory with inputs, constants, other results or later calls. Calls
    from several threads at once do not disturb each other. On the CPU a plan keeps its buffers between calls, one set for
    each call that runs at the same time. A kernel must not keep its operands: their memory is used again.

    >>> import autodiff_lab as ad
    >>> square = plan(ad.record(lambda x: x * x + 1.0, np.zeros(2)))
    >>> square(np.array([1.0, 2.0]))
    array([2., 5.])
    """

    def __init__(
        self,
        simplified: Simplified,
        fusion: Fusion | None,
        lines: Lines,
        steps: tuple[Step, ...],
        memory: Memory,
        outputs: Sequence[Any],
        workers: int,
    ) -> None:
        self.simplified, self.fusion, self.lines, self.steps, self.memory = simplified, fusion, lines, steps, memory
        self.original, self.graph = simplified.original, simplified.graph
        self.folded, self.dropped = simplified.folded, simplified.dropped
        self.shared = simplified.shared
        self.buffers: tuple[Buffer, ...] = memory.buffers
        self.lifetimes: tuple[Lifetime, ...] = memory.lifetimes
        self.peak_bytes, self.bytes_without_reuse = memory.peak_bytes, memory.bytes_without_reuse
        self.workers = workers
        self.outputs = tuple(outputs)  # a ``Value`` or a constant each
        self._inputs = [self.graph.nodes[i] for i in self.graph.inputs]
        self.runners: dict[int, Any] = {}  # what ``schedule.run`` has prepared, by the number of workers
        self._idle: list[dict[str, Any]] = []  # workspaces that no call uses

    def __repr__(self) -> str:
        return f"<plan of {self.graph.name}: {len(self.steps)} steps, {len(self.buffers)} buffers>"

    def __str__(self) -> str:
        return self.text()

    def __call__(self, *arguments: Any) -> Any:
        """Run on new arguments, in the order of the graph's inputs: arrays, numbers, or Tensors, which are taken as arrays.

        Raises:
            TypeError, ValueError: too many or too few, or of another shape, dtype or device.
        """
        return self.run_on(self.checked(arguments))

    def checked(self, arguments: Sequence[Any]) -> list[Any]:
        """Arguments as the arrays that the plan was made for.

        Raises:
            TypeError, ValueError: too many or too few, or of another shape, dtype or device.
        """
        if len(arguments) != len(self._inputs):
            names = ", ".join(node.name for node in self._inputs)
            raise TypeError(
                f"plan of {self.graph.name} takes {len(self._inputs)} inputs ({names}), got {len(arguments)}"
            )
        return list(map(self._checked, self._inputs, arguments))

    def _checked(self, node: Node, argument: Any) -> Any:
        value = argument.innermost() if type(argument) is Tensor else argument
        if type(value) in (int, float, bool) and np.result_type(node.dtype, type(value)) == node.dtype:
            value = np.asarray(value, node.dtype)
        elif isinstance(value, (int, float, np.generic, np.ndarray, list)):
            value = real_array(value)
        if not backend.is_array(value):
            raise TypeError(f"plan of {self.graph.name}: its input {node.name} must be an array, got {value!r}")
        facts = value.shape, value.dtype, backend.device_of(value)
        if facts != (node.shape, node.dtype, node.device):
            raise ValueError(
                f"plan of {self.graph.name}: its input {node.name} was planned as {node.shape} {node.dtype} on {node.device}, "
                f"got {facts[0]} {facts[1]} on {facts[2]}; make a plan for these, or use ad.compile, which does"
            )
        return value

    def run_on(self, arrays: Sequence[Any]) -> Any:
        """Run on arrays that are known to fit."""
        workspace = self.take_workspace()
        try:
            return workspace["run"](*arrays)
        except Exception as error:
            self.explain(error)
            raise
        finally:
            self.give_back(workspace)

    def take_workspace(self) -> dict[str, Any]:
        """Buffers, and the functions that use them, for one run at a time."""
        try:
            return self._idle.pop()
        except IndexError:
            return self.code.workspace()

    def give_back(self, workspace: dict[str, Any]) -> None:
        """A run is over, well or not: what is in the buffers is written again before it is read."""
        self._idle.append(workspace)

    def explain(self, error: Exception) -> None:
        """Say at which step an error happened."""
        trace, file = error.__traceback__, self.code.compiled.co_filename
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == file and trace.tb_lineno in self.code.step_at:
                step = self.steps[self.code.step_at[trace.tb_lineno]]
                error.add_note(
                    f"This happened in step {step.number} of the plan of {self.graph.name}: {self.title(step)}"
                )
                return
            trace = trace.tb_next

    @cached_property
    def code(self) -> PlanCode:
        """The Python that runs."""
        return self.write()

    def write(self, workers: int = 0) -> PlanCode:
        """The Python as one function or, for workers, as one for each step."""
        titles, calls = list(map(self.title, self.steps)), [step.calls for step in self.steps]
        return write_plan(self.lines, self.memory, self.graph, calls, titles, self.outputs, workers)

    def source(self) -> str:
        """The Python that runs, as text: one line a NumPy call, with the node, and where it came from, above it."""
        return self.code.text

    # ------------------------------------------------------------------------------------------------------------- as text

    def title(self, step: Step) -> str:
        """What a step is: ``h = matmul(x, w)  (64, 32) float64, forward, model.py:10: h = x @ w``."""
        node = self.graph.nodes[step.nodes[-1]]
        source = f", {node.source}" if node.source else ""
        if len(step.nodes) > 1:
            return f"{step.name}: {len(step.nodes)} ops as one {step.kind}, {node.shape} {node.dtype}, {step.phase}{source}"
        operands = ", ".join(_name(self.graph.nodes[i]) for i in node.inputs)
        return f"{_name(node)} = {node.label}({operands})  {node.shape} {node.dtype}, {step.phase}{source}"

    def text(self) -> str:
        """The steps, the buffers, and how much memory a run takes, with and without using memory again.

        >>> import autodiff_lab as ad
        >>> print(plan(ad.record(lambda x: ad.ops.tanh(x * 2.0).sum(), np.zeros(3))))
        plan of <lambda>: 3 steps for 5 nodes; 0 folded, 0 shared, 0 dropped
            0  mul_2 = mul  [ufunc, 1 calls]  buffer 0
            1  tanh_3 = tanh  [ufunc, 1 calls]  buffer 0, in place of mul_2
            2  sum_4 = sum  [ufunc, 1 calls]  its own array
        32 bytes at the peak, 56 without reuse; buffers 0: 24
        """
        simplified = self.simplified
        head = (
            f"plan of {self.graph.name}: {len(self.steps)} steps for {len(simplified.original)} nodes; "
            f"{len(self.folded)} folded, {len(self.shared)} shared, {len(self.dropped)} dropped"
        )
        by_node = {one.node: one for one in self.lifetimes if not one.name.startswith("inside ")}
        lines = [self._step_text(step, by_node) for step in self.steps]
        sizes = ", ".join(f"{buffer.number}: {buffer.nbytes:,}" for buffer in self.buffers) or "none"
        memory = f"{self.peak_bytes:,} bytes at the peak, {self.bytes_without_reuse:,} without reuse; buffers {sizes}"
        return "\n".join([head, *lines, memory])

    def _step_text(self, step: Step, lifetimes: Mapping[int, Lifetime]) -> str:
        node = self.graph.nodes[step.nodes[-1]]
        life = lifetimes.get(node.id)
        where = "" if life is None else "its own array" if life.buffer is None else f"buffer {life.buffer}"
        if life is not None and life.in_place_of is not None:
            where += f", in place of {_name(self.graph.nodes[life.in_place_of])}"
        what = step.name if len(step.nodes) > 1 else f"{_name(node)} = {node.label}"
        return f"  {step.number:3}  {what}  [{step.kind}, {len(step.calls)} calls]  {where}".rstrip()


def plan(
    graph: Graph, *, fuse: bool = True, loops: Loops = "auto", workers: int = 1, tell: Receiver | None = None
) -> Plan:
    """Decide everything about a graph's runs in advance: what is computed, in which calls, and where each result lies.

    What the shape rules cannot tell is not planned: such an op is called as it is, and its kernel makes an array each time.

    Args:
        graph: forward, joint, or a whole training step.
        fuse: whether neighbouring elementwise ops become one loop.
        loops: how such a loop runs on the CPU: ``blocked`` NumPy, ``compiled`` by Numba with a tanh of its own, or ``auto``:
            the numbers of ``blocked``, and large loops compiled where Numba is installed. Compiled code warns of no overflow.
        workers: for how many workers of ``schedule.run`` memory is laid out. A call of the plan itself is one worker's.
        tell: hears each decision; by default whoever listens with ``ad.listen``.

    Raises:
        OpError: a kernel does not give what its shape or dtype rule said; names the rule and the line.
        TypeError: ``graph`` is no Graph.
        ValueError: ``workers`` is not a whole number of at least 1, or there are no such ``loops``.
    """
    if type(workers) is not int or workers < 1:
        raise ValueError(f"plan: workers must be a whole number of at least 1, got {workers!r}")
    if loops not in get_args(Loops):
        raise ValueError(f"plan: loops must be 'auto', 'blocked' or 'compiled', got {loops!r}")
    check_graph(graph, "plan")
    tell = tell or events.receiver()
    simplified = simplify(graph, tell)
    shapes = infer_shapes(simplified.graph)
    found = fusing.fuse(simplified.graph, shapes, tell=tell) if fuse else None
    return _Planner(simplified, shapes, found, loops, workers, tell).plan()


class _Planner:
    def __init__(
        self,
        simplified: Simplified,
        shapes: Inference,
        fusion: Fusion | None,
        loops: Loops,
        workers: int,
        tell: Receiver | None,
    ) -> None:
        self.simplified, self.fusion, self.loops, self.workers, self.tell = simplified, fusion, loops, workers, tell
        self.graph = simplified.graph
        self.lowering = Lowering(self.graph, shapes.unknown)
        self.kinds: list[tuple[tuple[int, ...], str]] = []  # nodes and name of each step
        self.step_of_node: dict[int, int] = {}

    def plan(self) -> Plan:
        """All of it."""
        for unit in self._units():
            if isinstance(unit, Node):
                self._begin((unit.id,), _name(unit))
                self.lowering.add_node(unit)
            else:
                self._add_group(unit)
        lines, layout = with_dot(self.lowering.finish(self.graph.outputs))
        steps, step_of = self._steps(lines)
        outputs = [lines.value_of[i] for i in self.graph.outputs]
        returned = [output.number if type(output) is Value else None for output in outputs]
        memory = place_values(lines, layout, self.graph, returned, step_of, self.workers, self.tell)
        return Plan(self.simplified, self.fusion, lines, steps, memory, outputs, self.workers)

    def _begin(self, nodes: tuple[int, ...], name: str) -> None:
        self.step_of_node.update(dict.fromkeys(nodes, len(self.kinds)))
        self.kinds.append((nodes, name))

    def _add_group(self, group: Group) -> None:
        """A group as one loop where that pays, else op by op."""
        assert self.fusion is not None
        largest = max(self.graph.nodes[i].nbytes for i in group.nodes)
        if group.device == "cpu" and self.loops != "compiled" and largest <= _IN_CACHE:
            why = f"values of at most {largest:,} bytes stay in the cache, and ops of several groups share calls"
            if self.tell is not None:
                self.tell(events.LoopChosen(group.number, group.name, "op by op", why))
            return self._add_each(group)
        loop = loop_of(self.fusion, group, self.loops, tell=self.tell)
        if loop.kind == "op by op":
            return self._add_each(group)
        self._begin(group.nodes, group.name)
        self.lowering.add_group(loop, loop.kind, group.inputs, group.outputs)

    def _add_each(self, group: Group) -> None:
        for i in group.nodes:
            self._begin((i,), _name(self.graph.nodes[i]))
            self.lowering.add_node(self.graph.nodes[i])

    def _units(self) -> Iterator[Node | Group]:
        """Ops and groups, each after what it reads."""
        if self.fusion is None:
            yield from (node for node in self.graph if node.op is not None)
        else:
            for group in self.fusion.groups:
                yield group if len(group.nodes) > 1 else self.graph.nodes[group.nodes[0]]

    def _steps(self, lines: Lines) -> tuple[tuple[Step, ...], list[int]]:
        """The steps that have calls, and the step of each call."""
        calls: dict[int, list[int]] = {}
        for place, line in enumerate(lines.calls):
            calls.setdefault(self.step_of_node[line.node], []).append(place)
        steps: list[Step] = []
        step_of = [0] * len(lines.calls)
        needed = frozenset(self.graph.outputs)
        for unit in sorted(calls, key=lambda one: calls[one][0]):
            steps.append(self._step(len(steps), unit, lines, calls[unit], needed))
            for place in calls[unit]:
                step_of[place] = len(steps) - 1
            if self.tell is not None:
                self.tell(events.StepPlanned(steps[-1].number, steps[-1].nodes, steps[-1].kind, len(calls[unit])))
        return tuple(steps), step_of

    def _step(self, number: int, unit: int, lines: Lines, calls: Sequence[int], needed: frozenset[int]) -> Step:
        nodes, name = self.kinds[unit]
        inside = set(nodes)
        last = self.graph.nodes[nodes[-1]]
        reads = dict.fromkeys(i for n in nodes for i in self.graph.nodes[n].inputs if i not in inside)
        writes = [n for n in nodes if n in needed or set(self.graph.consumers[n]) - inside]
        kind = _kind([lines.calls[place] for place in calls])
        return Step(number, nodes, name, kind, tuple(reads), tuple(writes), last.phase, last.device, tuple(calls))


def _kind(lines: Sequence[Line]) -> Kind:
    """The kind of a step: that of its call which says most."""
    order: tuple[Kind, ...] = ("CUDA kernel", "one launch", "compiled loop", "blocked NumPy", "kernel", "ufunc", "view")
    return min((line.kind for line in lines), key=order.index)


def _name(node: Node) -> str:
    """The node's name, or its op and number; of a constant the number."""
    if node.kind == "constant" and isinstance(node.value, (int, float)):
        return repr(node.value)
    return node.name or f"{node.label}_{node.id}"
