"""PlanView: the flat list of kernel calls that a graph becomes, and where each value lies for how long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from autodiff_lab import events
from autodiff_lab.events import Event

from .captions import Names, caption, plans
from .collector import paused
from .drawing import key_of, node_label, node_name
from .facts import Rows, graph_facts
from .plan_bars import Bar, values_of
from .plan_chart import PlanChart, buffer_key, moment_key, step_key
from .questions import CHOICES
from .scene import Change, Pane, Question, Scene
from .shapes import Text, writable
from .steps import Steps
from .subjects import described, with_writable_names
from .tables import Entry, Share, table
from .values import bytes_text
from .view import View

if TYPE_CHECKING:
    from autodiff_lab.planning import Plan, Step

MOST_WRAPPED = 60  # nodes of a step whose selection selects its row too
MOST_GONE = 40  # rows of nodes that are not computed
OWN = "own"
LEGEND = (
    ("active", "written now"), ("used", "read now"), ("done", "needed later"), ("freed", "its memory is free again"),
    ("edge run1", "bytes in use"), ("edge run2", "without using memory twice"),
)  # fmt: skip


class PlanView(View):
    """A plan: its steps in order, and the memory of every value from the step that writes it to the last one that reads it.

    A row is a buffer; the bars in it are the values that it holds one after another. A bar that points into the next one hands
    its memory on: the next is computed in its place. A thin bar is a view, which lies in the memory of what it shows.

    Args:
        plan: what ``ad.plan(graph)`` gives.

    Raises:
        TypeError: ``plan`` is something else.

    >>> import numpy as np
    >>> import autodiff_lab as ad
    >>> view = PlanView(ad.plan(ad.record(lambda x: ad.ops.tanh(x @ x) @ x, np.eye(2)), fuse=False))
    >>> print(view.frames[2].caption)
    Step 1 runs `tanh`, by 1 NumPy call. `tanh` is written over `matmul`, which nobody reads again: 32 B of buffer 0.
    """

    def __init__(self, plan: Any, **traits: Any) -> None:
        if not (hasattr(plan, "steps") and hasattr(plan, "lifetimes")):
            raise TypeError(
                f"PlanView: expected a Plan, got {described(plan)}; pass ad.plan(graph), with graph = ad.record(f, *args)"
            )
        self.plan: Plan = plan
        told = list(_told(plan))
        self.chart = PlanChart(plan, with_writable_names(plan.graph))
        super().__init__(plan_scene(self.chart, told), told, **traits)


@paused()
def plan_scene(chart: PlanChart, told: Sequence[Event]) -> Scene:
    """The scene of a plan: a frame for each step."""
    showing = _Showing(chart, told)
    for step in chart.plan.steps:
        showing.show(step)
    showing.end()
    panes = (chart.pane, showing.pane())
    return Scene(f"Plan of {chart.graph.name}", panes, tuple(showing.steps.frames), showing.facts(), LEGEND)


class _Showing:
    """The frames of a plan: what a step reads and writes, and what is free after it."""

    def __init__(self, chart: PlanChart, told: Sequence[Event]) -> None:
        self.chart, self.plan, self.graph = chart, chart.plan, chart.graph
        self.original = with_writable_names(self.plan.original)
        self.name = Names(lambda node: f"`{node_label(self.graph.nodes[node])}`")
        self.bars = {bar.node: bar for bar in self.chart.bars if not bar.is_inside}
        self.written: dict[int, list[Bar]] = {}  # by the step that writes them
        self.ending: dict[int, list[Bar]] = {}  # by the last step that needs them
        self.rows: dict[int, list[Bar]] = {}
        for bar in chart.bars:
            self.rows.setdefault(bar.row, []).append(bar)
            self.written.setdefault(bar.first, []).append(bar)
            self.ending.setdefault(bar.last, []).append(bar)
        self.told: dict[int, list[Event]] = {}
        for event in told:
            if isinstance(event, events.StepPlanned | events.BufferTaken | events.BufferReleased):
                self.told.setdefault(event.step, []).append(event)
        self.gone = dict(self._gone(told))
        self.steps = Steps(plans.opening(self.plan), [Change("memory:without", "done"), Change("memory:with", "done")])

    def show(self, step: Step) -> None:
        """Add the frame of a step."""
        written = self.written.get(step.number, [])
        ending = self.ending.get(step.number, []) if step.number + 1 < len(self.plan.steps) else []
        lasting = [Change(step_key(step.number), "done")]
        lasting += [Change(bar.key, "freed" if bar in ending else "done") for bar in (*written, *ending)]
        passing = [Change(step_key(step.number), "active"), Change(moment_key(step.number), "active")]
        passing += [Change(self.bars[node].key, "used") for node in step.reads if node in self.bars]
        passing += [
            Change(bar.key, "active" if not place else "target")
            for place, bar in enumerate(self._results(step, written))
        ]
        source = self.graph.nodes[step.nodes[-1]].source
        where = None if source is None else str(source)
        self.steps.add(
            self._said(step, written),
            _once(lasting),
            _once(passing),
            step_key(step.number),
            where,
            self._question(step),
        )

    def _said(self, step: Step, written: Sequence[Bar]) -> str:
        said = [caption(event, self.name) for event in self.told.get(step.number, ())]
        own = [bar for bar in written if bar.row >= len(self.plan.buffers) and not bar.is_inside]
        return " ".join([*said, *(plans.own_caption(self.name(bar.node), bar.nbytes) for bar in own)])

    def end(self) -> None:
        """Add the frame that shows every value, and what using memory again comes to."""
        self.steps.add(
            plans.plan_caption(self.plan),
            [Change(bar.key, "idle") for bar in self.chart.bars],
        )

    def pane(self) -> Pane:
        """How much memory there is, and the list of steps."""
        plan = self.plan
        most = max(plan.bytes_without_reuse, plan.peak_bytes, 1)
        lines: list[str | Entry | Share] = ["Memory"]
        for which, nbytes in (("without", plan.bytes_without_reuse), ("with", plan.peak_bytes)):
            lines.append(Share(f"memory:{which}", f"{which} reuse: {bytes_text(nbytes)}", nbytes / most))
        lines.append("Steps")
        lines += [self._entry(step) for step in plan.steps]
        if self.gone:
            lines.append("Not computed")
            lines += [
                Entry(key, (Text(""), Text(rows[0][1]), Text(rows[1][1])))
                for key, rows in list(self.gone.items())[:MOST_GONE]
            ]
            if len(self.gone) > MOST_GONE:
                lines.append(f"… {len(self.gone) - MOST_GONE} more")
        return table("Steps", lines)

    def facts(self) -> dict[str, Rows]:
        """What is known of each step, each buffer, each value, and each node that is not computed."""
        facts = graph_facts(self.graph)
        facts = {
            bar.key: (*(() if bar.is_inside else facts[bar.key]), *self._bar_facts(bar)) for bar in self.chart.bars
        }
        facts |= {step_key(step.number): self._step_facts(step) for step in self.plan.steps}
        facts |= {buffer_key(buffer.number): self._buffer_facts(buffer.number) for buffer in self.plan.buffers}
        return facts | dict(list(self.gone.items())[:MOST_GONE])

    # ------------------------------------------------------------------------------------------------------------ pieces

    def _entry(self, step: Step) -> Entry:
        texts = (Text(str(step.number), "label"), Text(self._called(step), ""), Text(step.kind))
        keys = [f"{key_of(self.graph.nodes[node])}~step" for node in step.nodes[-MOST_WRAPPED:]]
        return Entry(step_key(step.number), texts, within=tuple(keys))

    def _called(self, step: Step) -> str:
        """What a step computes: ``h = tanh``, or the ops that it joins."""
        return writable(step.name) if len(step.nodes) > 1 else node_label(self.graph.nodes[step.nodes[0]])

    def _results(self, step: Step, written: Sequence[Bar]) -> list[Bar]:
        """What others read of a step's results; else what it computed last."""
        results = [bar for bar in written if not bar.is_inside]
        return results or list(written[-1:])

    def _question(self, step: Step) -> Question | None:
        """Before a step: which memory does its result get?"""
        bars = [self.bars[node] for node in step.writes if node in self.bars]
        if not bars or bars[0].is_view or len(self.plan.buffers) < 2:
            return None
        right, buffers = bars[0].row, len(self.plan.buffers)
        others = [number for number in range(min(buffers, CHOICES)) if number != right][: CHOICES - 2]
        keys = {
            buffer_key(number): f"buffer {number}"
            for number in sorted([*others, *([right] if right < buffers else [])])
        }
        choices = (*keys.items(), (OWN, "an array of its own"))
        said = plans.place_question(step.number, self._called(step), self.name(bars[0].node))
        return Question(said, choices, buffer_key(right) if right < buffers else OWN)

    def _bar_facts(self, bar: Bar) -> Rows:
        where = f"buffer {bar.row}" if bar.row < len(self.plan.buffers) else "an array of its own"
        node = self.graph.nodes[bar.node]
        rows = [
            ("computed on the way to", node_name(node) if bar.is_inside else ""),
            ("lies in", where),
            ("needed", f"from step {bar.first} to step {bar.last}"),
            ("in the place of", "its operand" if bar.takes_over else ""),
            ("hands its memory on", "yes" if bar.is_taken_over else ""),
        ]
        return tuple((label, value) for label, value in rows if value)

    def _buffer_facts(self, buffer: int) -> Rows:
        held = [self.graph.nodes[bar.node] for bar in self.rows.get(buffer, ()) if not bar.is_view]
        names = ", ".join(dict.fromkeys(map(node_name, held)))
        size = bytes_text(self.plan.buffers[buffer].nbytes)
        return (("buffer", str(buffer)), ("size", size), ("holds in turn", names))

    def _step_facts(self, step: Step) -> Rows:
        rows = [
            ("step", str(step.number)),
            ("runs", self._called(step)),
            ("as", step.kind),
            ("ops", ", ".join(node_name(self.graph.nodes[node]) for node in step.nodes)),
            ("reads", ", ".join(node_name(self.graph.nodes[node]) for node in step.reads)),
            ("writes", ", ".join(node_name(self.graph.nodes[node]) for node in step.writes)),
            ("phase", step.phase),
            ("device", "" if step.device == "cpu" else step.device),
        ]
        return tuple((label, value) for label, value in rows if value)

    def _gone(self, told: Sequence[Event]) -> Iterator[tuple[str, Rows]]:
        """The nodes of the recorded graph that are not computed, and why."""
        words = {events.NodeFolded: "folded", events.NodeShared: "shared", events.NodeDropped: "dropped"}
        name = Names(lambda node: f"`{node_label(self.original.nodes[node])}`")
        for event in told:
            if isinstance(event, events.NodeFolded | events.NodeShared | events.NodeDropped):
                node = self.original.nodes[event.node]
                said = caption(event, name).replace("`", "")
                yield f"{key_of(node)}~gone", (("node", node_name(node)), ("is", words[type(event)]), ("because", said))


def _told(plan: Plan) -> Iterator[Event]:
    """What planning decided, as events."""
    nodes = plan.original.nodes
    yield from (events.NodeFolded(node, node, nodes[node].label) for node in plan.folded)
    yield from (events.NodeShared(node, earlier, nodes[node].label) for node, earlier in plan.shared.items())
    yield from (events.NodeDropped(node, nodes[node].label) for node in plan.dropped)
    for step in plan.steps:
        yield events.StepPlanned(step.number, step.nodes, step.kind, len(step.calls))
    handed_on = {(life.in_place_of, life.first) for life in plan.lifetimes}
    lives = list(values_of(plan))
    for life in lives:
        if life.buffer is not None:
            yield events.BufferTaken(life.node, life.first, life.buffer, life.nbytes, life.in_place_of)
    for life in lives:
        if life.buffer is not None and (life.node, life.last) not in handed_on:
            yield events.BufferReleased(life.node, life.last, life.buffer, life.nbytes)


def _once(changes: Sequence[Change]) -> list[Change]:
    return list({change.element: change for change in changes}.values())
