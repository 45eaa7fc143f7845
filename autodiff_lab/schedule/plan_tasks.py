"""Tasks from a plan: its steps, which wait for each other because of values and because of the memory that these lie in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..events import Receiver
from ..graph import Graph
from ..plan_code import PlanCode
from ..planning import Plan, Step
from .costs import CostModel, Roofline, work_of
from .graph_tasks import phases
from .machines import Machine
from .policies import Policy
from .task import Phase, Task
from .tasks import Tasks
from .timeline import Timeline
from .values import Memory

WORTH_TWO = 1e-3  # seconds of work: below, starting a second worker takes longer than it saves


def from_plan(plan: Plan, costs: CostModel | None = None, *, workers: int = 1) -> Tasks:
    """One task for each step of a plan; a large loop is several where there are ``workers`` to share it.

    What a task reads and writes are pieces of memory: ``buffer 3``, or the array that a step makes, ``v12``. So a step that
    uses a buffer again waits for those that read what was there before. A view that is made once is no task.

    Args:
        plan: from ``ad.plan``. Planned for more workers, it uses buffers again as late as possible.
        costs: what a step takes, the sum over its ops; ``Roofline()`` by default.
        workers: for how many workers large loops are split.

    >>> import autodiff_lab as ad
    >>> tasks = from_plan(ad.plan(ad.record(lambda x: ad.ops.tanh(x @ x) @ x, np.ones((8, 8)))))
    >>> [(task.name, task.reads, task.writes) for task in tasks]
    [('matmul_1', ('x',), ('buffer 0',)), ('tanh_2', ('buffer 0',), ('buffer 0',)), ('matmul_3', ('buffer 0', 'x'), ('v3',))]
    """
    if not isinstance(plan, Plan):
        raise TypeError(f"from_plan: expected a Plan, as ad.plan(graph) gives one, got {plan!r}")
    return _Builder(plan, plan.write(workers), costs or Roofline()).tasks()


def pays(graph: Graph, costs: CostModel | None = None) -> bool:
    """Whether a graph has enough work for a second worker."""
    model = costs or Roofline()
    return sum(model.seconds(work_of(graph, node)) for node in graph if node.op is not None) > WORTH_TWO


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """What a task of a plan calls: a function of the workspace, or one part of a loop that has been opened."""

    step: Step
    function: str
    part: int | None = None

    def call(self, workspace: Mapping[str, Any]) -> None:
        """Run it."""
        if self.part is None:
            workspace[self.function]()
        else:
            workspace[self.function].parts[self.part]()


class _Builder:
    def __init__(self, plan: Plan, code: PlanCode, costs: CostModel) -> None:
        self.plan, self.code = plan, code
        graph = plan.graph
        works = {node.id: work_of(graph, node) for node in graph if node.op is not None}
        self.seconds = [0.0 if s.kind == "view" else sum(costs.seconds(works[i]) for i in s.nodes) for s in plan.steps]
        self.phases = phases(graph)
        self.labels = _labels(plan, code)
        self.pieces: list[_Piece] = []
        self.found: list[Task] = []

    def tasks(self) -> Tasks:
        """All of them."""
        lines, fixed = self.plan.lines.calls, self.plan.memory.fixed
        for step in self.plan.steps:
            if fixed.issuperset(number for place in step.calls for number in lines[place].results):
                continue
            reads, writes = self._touched(step)
            count = self.code.parts.get(step.number, 1)
            name = f"{step.name}_{step.nodes[-1]}" if not step.name.endswith(f"_{step.nodes[-1]}") else step.name
            if count == 1:
                self._add(step, name, f"step_{step.number}", reads, writes, self.seconds[step.number])
            else:
                self._add_parts(step, name, reads, writes, count)
        written = {name for task in self.found for name in task.written}
        outputs = dict.fromkeys(label for o in self.plan.outputs for n in _numbers(o) for label in self.labels[n])
        return Tasks(self.found, inputs=self.code.inputs, outputs=[name for name in outputs if name in written])

    def _add_parts(self, step: Step, name: str, reads: Sequence[str], writes: Sequence[str], count: int) -> None:
        """A loop in parts: it is opened when its memory is free, and closed when every part has run."""
        run = f"run_{step.number}"
        self._add(step, f"{name} opens", f"step_{step.number}_open", reads, [*writes, run], 0.0)
        for part in range(count):
            seconds = self.seconds[step.number] / count
            self._add(step, f"{name} part {part}", run, [*reads, run], [f"{run}.{part}"], seconds, part)
        self._add(step, name, f"step_{step.number}", [f"{run}.{part}" for part in range(count)], writes, 0.0)

    def _add(
        self,
        step: Step,
        name: str,
        function: str,
        reads: Sequence[str],
        writes: Sequence[str],
        seconds: float,
        part: int | None = None,
    ) -> None:
        graph, last = self.plan.graph, self.plan.graph.nodes[step.nodes[-1]]
        self.pieces.append(_Piece(step, function, part))
        self.found.append(
            Task(
                name=name,
                cost=seconds,
                reads=tuple(reads),
                writes=tuple(writes),
                phase=self._phase(step),
                nbytes=0 if part is not None else sum(graph.nodes[i].nbytes for i in step.writes),
                op="+".join(dict.fromkeys(graph.nodes[i].label for i in step.nodes)),
                node=last.id,
                sequence=last.id if last.origin is None else last.origin,
                serial=last.serial,
            )
        )

    def _phase(self, step: Step) -> Phase:
        return self.phases[step.nodes[-1]]

    def _touched(self, step: Step) -> tuple[list[str], list[str]]:
        """The memory that a step reads before it writes there, and all that it writes."""
        reads: dict[str, None] = {}
        writes: dict[str, None] = {}
        for place in step.calls:
            line = self.plan.lines.calls[place]
            read = (label for number in line.reads for label in self.labels[number])
            reads.update((label, None) for label in read if label not in writes)
            made = [number for number in line.results if number not in self.plan.memory.fixed]
            writes.update((label, None) for number in made for label in self.labels[number][:1])
        return list(reads), list(writes)


def _labels(plan: Plan, code: PlanCode) -> list[tuple[str, ...]]:
    """For each value the memory that it may lie in: first its own, then that of what it is a view of."""
    lines, memory = plan.lines, plan.memory
    found: list[tuple[str, ...]] = [(f"v{number}",) for number in range(len(lines.facts))]
    for number, buffer in memory.buffer_of.items():
        found[number] = (f"buffer {buffer}",)
    for i, name in zip(plan.graph.inputs, code.inputs, strict=True):
        found[lines.value_of[i].number] = (name,)
    for line in lines.calls:
        if line.may_share:
            behind = [label for read in line.reads for label in found[read]]
            for number in line.results:
                own = () if number in memory.fixed else found[number]
                found[number] = tuple(dict.fromkeys([*own, *behind]))
    return found


def _numbers(output: Any) -> Iterator[int]:
    number = getattr(output, "number", None)
    if number is not None:
        yield number


class PlanRun:
    """A plan's tasks, ready to run again and again on workers."""

    def __init__(self, plan: Plan, workers: int, costs: CostModel | None = None) -> None:
        self.plan = plan
        self.code = plan.write(workers)
        builder = _Builder(plan, self.code, costs or Roofline())
        self.tasks = builder.tasks()
        self.pieces = builder.pieces
        self._idle: list[dict[str, Any]] = []

    def run(
        self,
        arrays: Sequence[Any],
        execute: Callable[..., Timeline],
        machine: Machine,
        policy: Policy,
        tell: Receiver | None = None,
    ) -> tuple[Any, Timeline]:
        """The outputs, and the timeline."""
        try:
            workspace = self._idle.pop()
        except IndexError:
            workspace = self.code.workspace()
        try:
            workspace.update(zip(self.code.inputs, arrays, strict=True))
            timeline = execute(self.tasks, _PlanValues(self, workspace, arrays), machine, policy, tell)
            return workspace["results"](), timeline
        finally:
            workspace.update(dict.fromkeys((*self.code.inputs, *self.code.own)))
            self._idle.append(workspace)


class _PlanValues:
    """What ``execute`` asks of values: here steps hand them on in a workspace."""

    def __init__(self, run: PlanRun, workspace: dict[str, Any], arrays: Sequence[Any]) -> None:
        self.inputs = dict(enumerate(arrays))
        self.memory = Memory()
        self.unweighed: list[Any] = [None] * len(run.pieces)
        self._pieces, self._workspace = run.pieces, workspace

    def call(self, task: int) -> None:
        """Run a task's piece of the plan."""
        self._pieces[task].call(self._workspace)

    def weigh(self, task: int) -> None:
        """Nothing: a plan's memory is known in advance."""

    drop = weigh


def runner_of(plan: Plan, workers: int, costs: CostModel | None = None) -> PlanRun:
    """What runs a plan on so many workers; prepared once, unless costs are given."""
    if costs is not None:
        return PlanRun(plan, workers, costs)
    if workers not in plan.runners:
        plan.runners[workers] = PlanRun(plan, workers)
    found: PlanRun = plan.runners[workers]
    return found
