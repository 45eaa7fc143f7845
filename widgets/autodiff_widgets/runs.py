"""One run of a learner's function as a workbench is set, and the views that can be made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, wraps
from threading import Event as Flag
from typing import Any

import autodiff_lab as ad
from autodiff_lab import schedule
from autodiff_lab.graph import Graph
from autodiff_lab.schedule.timeline import Timeline

from .captions import counted
from .explanation import from_the_first_task, timeline_views
from .forward_mode_view import ForwardModeView
from .fusion_view import FusionView
from .gradient_flow_view import GradientFlowView
from .graph_view import GraphView
from .insides import OpensOps
from .memory_view import MemoryView
from .plan_view import PlanView
from .programs import CodeError, Program, value_of, within
from .ready_queue_view import ReadyQueueView
from .settings import SHOWN_FAULTS, Settings
from .shape_inference_view import ShapeInferenceView
from .subjects import floating_inputs, linked, name_of
from .topological_order_view import TopologicalOrderView
from .values import value_text
from .view import View

MOST_NODES = 400  # of forward and backward together: more is a picture that nobody reads while typing
LONGEST = 5.0  # s that a call of the learner's function may take
FIRST_VALUES = ("2.0", "3.0", "1.0", "0.5")  # of inputs that have none yet


class Run:
    """A program run on values: what the views are made of is computed when it is asked for, once.

    Raises:
        CodeError: there is nothing to draw; says why.
    """

    def __init__(self, settings: Settings, program: Program, stopped: Flag) -> None:
        self.settings = settings
        self.texts = texts_of(program, settings.values)
        values = {name: value_of(text, name, settings.seed) for name, text in self.texts.items()}
        self.arguments = tuple(self._placed(name, value) for name, value in values.items())
        self.f = within(program, LONGEST, stopped)
        self.output = self._checked(self.f(*self.arguments))
        self.is_summed = self.output.size != 1
        if self.is_summed:
            self.f = _summed(self.f)

    def _placed(self, name: str, value: Any) -> Any:
        """A floating value as a Tensor on the device; anything else is held as it is."""
        is_floating = isinstance(value, float) or getattr(getattr(value, "dtype", None), "kind", "") == "f"
        return ad.tensor(value, device=self.settings.device, requires_grad=True, name=name) if is_floating else value

    def _checked(self, output: Any) -> ad.Tensor:
        if not isinstance(output, ad.Tensor):
            kind = type(output).__name__
            raise CodeError(f"The result is of type {kind}, not a Tensor: compute it from the inputs, with ops.")
        if not output.requires_grad:
            raise CodeError("The result does not depend on a floating input, so there is no gradient to show.")
        if (count := len(ad.graph_of(output))) > MOST_NODES // 2:
            raise CodeError(
                f"This has {counted(count, 'node')}, and the workbench shows {MOST_NODES // 2}: use aw.GraphView."
            )
        return output

    @property
    def summary(self) -> str:
        """The result and the gradients, in words."""
        what = "The sum of the result, which has several numbers, is differentiated. " if self.is_summed else ""
        captions = [frame.caption for frame in self.flow.frames]
        done = next(place for place, caption in enumerate(captions) if caption.startswith("Done. "))
        said = " ".join(captions[done:]).removeprefix("Done. ")  # what is wrong comes after it
        return f"Result: {value_text(self.output)}. {what}{said}"

    @cached_property
    def flow(self) -> GradientFlowView:
        """The reverse sweep; where a fault is on, with what find_faulty_op finds."""
        fault = self.settings.fault
        report = None
        if fault and SHOWN_FAULTS[fault[0]].check == "find_faulty_op" and self.settings.device == "cpu":
            report = ad.find_faulty_op(self.f, self.arguments)
        return GradientFlowView(self.f, *self.arguments, faulty=report)

    @cached_property
    def _inputs(self) -> tuple[list[Any], Callable[..., Any]]:
        inputs, of_inputs = floating_inputs(self.f, self.arguments, "Workbench")
        return [ad.tensor(value, device=self.settings.device) for value in inputs.values()], of_inputs

    @cached_property
    def joint(self) -> Graph:
        """Forward and backward as one graph, whose forward nodes are those of the sweep."""
        values, of_inputs = self._inputs
        both = ad.value_and_grad(of_inputs, argnums=tuple(range(len(values))))
        return replace(linked(ad.record(both, *values), self.flow.graph), name=name_of(self.f))

    def taught(self, view: OpensOps) -> OpensOps:
        """A view of one of the graphs, with the numbers that the sweep knows, so that its ops can be opened."""
        view.learn(self.flow)
        return view

    @cached_property
    def costs(self) -> Any:
        """How long each op takes here, measured."""
        return schedule.measure(self.joint, *self._inputs[0])

    @cached_property
    def simulated(self) -> Timeline:
        """The measured tasks on simulated workers."""
        tasks = schedule.from_graph(self.joint, self.costs)
        return schedule.simulate(tasks, self.settings.workers, self.settings.policy)

    @cached_property
    def real(self) -> Timeline:
        """The same tasks on threads."""
        how = self.settings
        _, timeline = schedule.run(self.joint, self._inputs[0], how.workers, how.policy, costs=self.costs)
        return from_the_first_task(timeline)


def _summed(f: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(f)
    def total(*arguments: Any) -> Any:
        return ad.ops.sum(f(*arguments))

    return total


def texts_of(program: Program, given: Mapping[str, str]) -> dict[str, str]:
    """The text of each input's value: as given, or the code's default, or a number to begin with."""
    first = {name: FIRST_VALUES[place % len(FIRST_VALUES)] for place, name in enumerate(program.inputs)}
    return {name: given.get(name) or default or first[name] for name, default in program.inputs.items()}


VIEWS: dict[str, Callable[[Run], View]] = {
    "Graph": lambda run: run.taught(GraphView(run.joint)),
    "Topological order": lambda run: run.taught(TopologicalOrderView(run.flow.graph)),
    "Gradient flow": lambda run: run.flow,
    "Forward mode": lambda run: ForwardModeView(run.f, *run.arguments, seed="all", like=run.flow.graph),
    "Shapes": lambda run: ShapeInferenceView(run.joint),
    "Fusion": lambda run: FusionView(run.joint),
    "Plan": lambda run: PlanView(ad.plan(run.joint)),
    "Ready queue": lambda run: ReadyQueueView(run.simulated.tasks, run.settings.workers, run.settings.policy),
    "Timeline": lambda run: timeline_views(run.simulated, run.real)["The timeline"],
    "Memory": lambda run: MemoryView(run.simulated),
}
