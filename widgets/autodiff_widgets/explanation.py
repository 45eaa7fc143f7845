"""explain: what one line, ``loss.backward()``, does, from the graph to the timeline, as linked views on one page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets
import numpy as np

import autodiff_lab as ad
from autodiff_lab import schedule
from autodiff_lab.graph import Graph, Node
from autodiff_lab.schedule.timeline import Timeline

from .captions.timelines import summary
from .gradient_flow_view import GradientFlowView
from .graph_view import GraphView
from .memory_view import MemoryView
from .pages import save_page
from .ready_queue_view import ReadyQueueView
from .subjects import described, floating_inputs, linked, name_of
from .timeline_view import TimelineView
from .topological_order_view import TopologicalOrderView
from .view import View
from .view_box import ViewBox

MOST_TASKS = 500  # whose ready queue is shown event by event
MOST_TIMES = 4  # as long may the real run be, to share an axis with the simulated one


class Explanation(ViewBox):
    """What happens in ``loss.backward()``: views below each other, which select together; made by ``explain``.

    ``views`` are the parts, ``simulated`` and ``real`` the timelines of the tasks.
    """

    def __init__(self, summary: str, views: Sequence[View], simulated: Timeline, real: Timeline) -> None:
        self.summary, self.views, self.simulated, self.real = summary, tuple(views), simulated, real
        heading = ipywidgets.HTML("".join(f"<p>{escape(line)}</p>" for line in summary.split("\n")))
        super().__init__(children=(heading, *self.views))

    def text(self) -> str:
        """Everything that the page shows, as text."""
        return "\n\n".join([self.summary, *(view.text() for view in self.views)])

    def save_html(self, path: str | Path) -> Path:
        """Write the page as one HTML file that steps and links offline; returns its path."""
        return save_page(path, self.views, self.summary)

    def __repr__(self) -> str:
        return "\n".join([self.summary, *(f"  {view.scene.title}" for view in self.views)])


def explain(
    subject: Any, *arguments: Any, workers: int = 2, policy: str = "critical_path", predict: bool = False
) -> Explanation:
    """What ``loss.backward()`` does: graph, order, forward, backward, tasks, schedule, timeline and memory, linked.

    Gradients are computed once more to be heard. Forward and backward together are recorded as one graph, whose ops are timed,
    simulated, and run on threads. A Tensor does not keep every input of its ops: for what it did not keep, ones of the same
    shape take part in the timing.

    Args:
        subject: a Tensor of one number that was computed from Tensors with ``requires_grad=True``; or a function that returns
            one, with its arguments.
        workers, policy: as for ``schedule.run``.
        predict: ask what comes next before steps show it.

    Raises:
        TypeError, ValueError: there is nothing to go back through.

    >>> x = ad.tensor(2.0, requires_grad=True, name="x")
    >>> loss = ad.ops.tanh(x) * x
    >>> loss.backward()
    >>> [view.scene.title.split(":")[0] for view in explain(loss).views]  # doctest: +ELLIPSIS
    ['1. The graph', '2. The order', '3. Forward and backward', '4. Tasks', '5. The timeline', ...]
    """
    flow, joint, values = joint_graph(subject, arguments)
    costs = schedule.measure(joint, *values)
    tasks = schedule.from_graph(joint, costs)
    simulated = schedule.simulate(tasks, workers, policy)
    _, whole = schedule.run(joint, values, workers, policy, costs=costs)
    real = from_the_first_task(whole)
    graph, order = GraphView(joint), TopologicalOrderView(replace(flow.graph, name=joint.name))
    for view in (graph, order):
        view.learn(flow)
    views: dict[str, View | None] = {
        "The graph": graph,
        "The order": order,
        "Forward and backward": flow,
        "Tasks": ReadyQueueView(tasks, workers, policy) if len(tasks) <= MOST_TASKS else None,
        **timeline_views(simulated, real),
        "Memory": MemoryView(simulated),
    }
    shown = {name: view for name, view in views.items() if view is not None}
    for number, (name, view) in enumerate(shown.items(), start=1):
        view.scene = replace(view.scene, title=f"{number}. {name}: {view.scene.title}")
        view.predict = predict
    started = whole.makespan - real.makespan
    return Explanation(summary(joint, simulated, real, started, MOST_TASKS), tuple(shown.values()), simulated, real)


def timeline_views(simulated: Timeline, real: Timeline) -> dict[str, View]:
    """Both on one axis, unless one of them would be too small there."""
    if real.makespan <= MOST_TIMES * simulated.makespan:
        return {"The timeline": TimelineView(simulated, real)}
    return {"The timeline": TimelineView(simulated), "The real run": TimelineView(real)}


def from_the_first_task(timeline: Timeline) -> Timeline:
    """The timeline without the time before its first task, in which workers are started."""
    first = min((timeline.starts[task] for task in timeline.order), default=0.0)
    live = [record._replace(time=max(record.time - first, 0.0)) for record in timeline.live or ()]
    starts, ends = ([time - first for time in times] for times in (timeline.starts, timeline.ends))
    return replace(timeline, starts=starts, ends=ends, live=live)


def joint_graph(subject: Any, arguments: Sequence[Any]) -> tuple[GradientFlowView, Graph, Sequence[Any]]:
    """The view of the gradients, the graph of forward and backward, and the values that it runs on."""
    if isinstance(subject, ad.Tensor) and not arguments:
        flow = GradientFlowView(subject)
        forward = replace(flow.graph, nodes=tuple(map(_with_value, flow.graph)))
        values = [forward.nodes[i].value for i in forward.inputs]
        return flow, linked(_recorded(forward, values), flow.graph), values
    if callable(subject) and arguments:
        flow = GradientFlowView(subject, *arguments)
        inputs, of_inputs = floating_inputs(subject, arguments, "explain")
        values = list(inputs.values())
        joint = linked(_recorded(of_inputs, values), flow.graph)
        return flow, replace(joint, name=name_of(subject)), values
    wanted = "a loss, or a function and its arguments"
    if callable(subject):
        raise TypeError(f"explain: got the function {name_of(subject)} alone; pass {wanted}: explain(f, 2.0, 3.0)")
    raise TypeError(f"explain: expected {wanted}, got {described(subject)}")


def _with_value(node: Node) -> Node:
    """An input or constant whose value the forward pass did not keep, with ones in its place."""
    return replace(node, value=np.ones(node.shape, node.dtype)) if node.op is None and node.value is None else node


def _recorded(f: Callable[..., Any], values: Sequence[Any]) -> Graph:
    return ad.record(ad.value_and_grad(f, argnums=tuple(range(len(values)))), *values)
