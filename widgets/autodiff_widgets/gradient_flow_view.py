"""GradientFlowView: the values of the forward pass, then every contribution to a gradient as it arrives and is added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import autodiff_lab as ad
from autodiff_lab.events import Event
from autodiff_lab.graph import Graph

from .captions import gradients
from .collector import paused
from .drawing import node_text
from .facts import graph_facts
from .gradient_frames import GradientFrames, of_reverse_mode
from .insides import OpensOps, of_run
from .saved_bytes import ByteBars, moments_of_forward, moments_of_reverse
from .scene import Scene
from .seeds import direction, heard_by
from .subjects import (
    callers_tensors,
    described,
    floating_inputs,
    name_of,
    recorded,
    run,
    with_writable_names,
)  # fmt: skip
from .tangents_shown import matched

LEGEND = (
    ("waiting", "gradient not complete"), ("ready", "gradient complete"), ("active", "its rules run"),
    ("used", "saved value that the rule reads"), ("target", "receives a contribution"), ("done", "done"),
)  # fmt: skip
AT_FAULT = (("wrong", "at fault: find_faulty_op"),)
BOTH_WAYS = tuple((name, f"{text}, or sends its tangent" if name == "target" else text) for name, text in LEGEND)

Tangents = bool | Mapping[str, Any]


class GradientFlowView(OpensOps):
    """Why each gradient has its value: the reverse sweep of a result, one contribution a step.

    Args:
        subject: a Tensor that was computed from Tensors with ``requires_grad=True``; or a function, whose forward pass is shown
            too, with its arguments. Gradients flow to floating numbers and arrays, also inside lists, tuples and dicts.
        cotangent: the gradient to start from, shaped like the result; 1 by default where the result is one number.
        tangents: show forward mode on the same graph afterwards, and that gradient · tangent is the same number at both ends
            (the adjoint identity). True moves every number of every input by 1; a dict says by name what moves, and how.
        faulty: what ``ad.find_faulty_op`` found for the same function and arguments: the nodes at fault are marked, and the
            caption says what is wrong at the step where it happens.
        memory: show beside the graph how many bytes are kept for gradient rules at each step.

    Raises:
        TypeError, ValueError: there is nothing to go back through, a cotangent is needed, or tangents are wanted for a Tensor,
            whose function is not known.

    >>> view = GradientFlowView(lambda x, w: x * w, 2.0, 3.0)
    >>> print(view.frames[4].caption)
    `mul` (node 2) sends 1 × 3 = 3 to `x` (rule `mul_vjp_x`): nothing else comes there.
    """

    def __init__(
        self,
        subject: Any,
        *arguments: Any,
        cotangent: Any = None,
        tangents: Tangents = False,
        memory: bool = False,
        faulty: ad.FaultyOpReport | None = None,
        **traits: Any,
    ) -> None:
        forward: list[Event] = []
        names: dict[str, Any] = {}
        if isinstance(subject, ad.Tensor) and not arguments:
            output = recorded(subject, "GradientFlowView")
            names = callers_tensors()
        elif callable(subject) and arguments:
            output, forward, names = run(subject, arguments, "GradientFlowView")
        else:
            raise TypeError(_advice(subject, arguments))
        with ad.listen() as backward:
            ad.sweep(output, cotangent)
        self.graph = with_writable_names(ad.graph_of(output, names=names, told=forward))
        told, ids = _pushed(subject, arguments, tangents, names, self.graph)
        heard = [*forward, *backward]
        bars = ByteBars([*moments_of_reverse(of_reverse_mode(heard)), *moments_of_forward(told)]) if memory else None
        title = f"Gradients of {self.graph.name if isinstance(subject, ad.Tensor) else name_of(subject)}"
        faults = () if faulty is None else _faults_in(self.graph, faulty)
        scene = gradient_scene(GradientFrames(self.graph, heard, told, ids, bars, faults), title)
        self._insides = of_run(self.graph, heard, names)
        super().__init__(self._insides.opened(scene), [*heard, *told], **traits)


@paused()
def gradient_scene(frames: GradientFrames, title: str) -> Scene:
    """The scene of a forward pass, if it was heard, of a reverse sweep, and of forward mode, if it ran."""
    for event in frames.heard:
        frames.show(event)
    if frames.told:
        frames.push()
    graph = frames.graph
    leaves = [
        f"{node_text(node)} {frames.gradients[node.id]}"
        for node in graph
        if node.kind == "input" and node.id in frames.gradients
    ]
    frames.steps.add(gradients.closing(leaves), frames.bars.ends())
    frames.show_faults()
    panes = (frames.drawing.pane, *([frames.bars.pane] if frames.bars.moments else []))
    legend = (*(BOTH_WAYS if frames.told else LEGEND), *(AT_FAULT if frames.faults else ()))
    return Scene(title, panes, tuple(frames.steps.frames), {**graph_facts(graph), **frames.bars.facts}, legend)


def _faults_in(graph: Graph, report: ad.FaultyOpReport) -> tuple[ad.FaultFound, ...]:
    """The faults of a report, if it is about this graph."""
    if report.graph != graph:
        about = (
            "no graph" if report.graph is None else f"another graph, {report.graph.name} with {len(report.graph)} nodes"
        )
        raise ValueError(
            f"GradientFlowView: faulty is a report about {about}; "
            "call ad.find_faulty_op with the same function and arguments"
        )
    return report.faults


def _pushed(
    subject: Any, arguments: Sequence[Any], tangents: Tangents, tensors: Mapping[str, ad.Tensor], graph: Graph
) -> tuple[tuple[Event, ...], dict[int, int]]:
    """What forward mode tells of the same function, and which node each of its serial numbers stands for.

    What no gradient flows to stands still, so that both modes see the same inputs.
    """
    if tangents is False:
        return (), {}
    if not arguments:
        raise ValueError(
            "GradientFlowView: tangents need the function, and a Tensor does not know it; pass the function and its arguments: "
            "GradientFlowView(f, 2.0, 3.0, tangents=True)"
        )
    inputs, of_inputs = floating_inputs(subject, arguments, "GradientFlowView")
    moving = {name: value for name, value in inputs.items() if tensors[name].requires_grad}
    along = dict.fromkeys(moving, 1.0) if tangents is True else tangents
    given = dict(zip(moving, direction(moving, along, "tangents"), strict=True))
    told = heard_by(of_inputs, inputs, direction(inputs, given, "tangents"))
    ids = {node.serial: node.id for node in graph}
    return told, matched(told, [ids.get(_serial(tensors[name])) for name in inputs], graph)


def _serial(tensor: ad.Tensor) -> int:
    """The number by which events and graphs call a Tensor; -1 where nothing calls it."""
    graph = ad.graph_of(tensor) if tensor.requires_grad else None
    return -1 if graph is None else graph.nodes[graph.outputs[0]].serial


def _advice(subject: Any, arguments: Sequence[Any]) -> str:
    """Why a subject cannot be shown, and what to pass instead."""
    where = "GradientFlowView"
    if isinstance(subject, Graph):
        return f"{where}: a Graph has shapes and no values; pass the function and its arguments: {where}({subject.name}, …)"
    if callable(subject):
        name = name_of(subject)
        return f"{where}: got the function {name} without arguments; pass them too: {where}({name}, 2.0, 3.0)"
    if isinstance(subject, ad.Tensor):
        return f"{where}: got a Tensor and more arguments; pass the Tensor alone, or a function and its arguments"
    return (
        f"{where}: expected a Tensor or a function with its arguments, got {described(subject)}; pass the result of a "
        "computation on tensors made with ad.tensor(…, requires_grad=True)"
    )
