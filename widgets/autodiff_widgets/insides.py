"""What is inside the ops of a graph: the values of its nodes, known or computed again, and the scene of each op."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import events
from autodiff_lab.events import Event
from autodiff_lab.graph import Graph, Node

from .drawing import key_of, node_text
from .op_frames import op_scene
from .op_view import traced
from .scene import Scene
from .values import numbers_of
from .view import View


class Insides:
    """The insides of a graph's ops.

    ``known`` are values of nodes by id, beside those that the graph kept; what follows from them is computed when it is asked
    for. ``cotangents`` are what arrived at nodes in a reverse sweep. ``advice`` says how to get what is not known.

    >>> insides = Insides(ad.record(lambda x: ad.ops.tanh(x * 2.0), 1.0), {0: 0.25})
    >>> insides.value(3)
    array(0.46211716)
    """

    def __init__(
        self,
        graph: Graph,
        known: Mapping[int, Any] | None = None,
        cotangents: Mapping[int, Any] | None = None,
        advice: str = "",
    ) -> None:
        self.graph, self.cotangents, self.advice = graph, dict(cotangents or {}), advice
        self._values = {node.id: node.value for node in graph if node.value is not None} | dict(known or {})
        self._nodes = {key_of(node): node for node in graph if node.op is not None}

    def opened(self, scene: Scene) -> Scene:
        """A scene of the graph in which every op can be opened."""
        return replace(scene, opens=(*scene.opens, *(key for key in self._nodes if key in scene.facts)))

    def __contains__(self, key: str) -> bool:
        return key in self._nodes

    def scene(self, key: str) -> Scene:
        """The scene of one op.

        Raises:
            ValueError: the numbers that went in are not known; says how to get them.
        """
        node = self._nodes[key]
        operands = [self.value(i) for i in node.inputs]
        cotangent = self.cotangents.get(node.id)
        trace = traced(node.op, operands, node.attributes, cotangent)
        note = "" if cotangent is not None or trace.cotangent is None else "No cotangent is known here: ones are shown."
        sources = [self.graph.nodes[i] for i in node.inputs]
        return op_scene(trace, key, [node_text(one) for one in sources], [key_of(one) for one in sources], note)

    def learn(self, others: Insides) -> None:
        """Take over what is known of the same nodes in another graph: those with the same serial number."""
        here = {node.serial: node.id for node in self.graph}
        for node in others.graph:
            if node.serial in here and node.id in others._values:
                self._values[here[node.serial]] = others._values[node.id]
            if node.serial in here and node.id in others.cotangents:
                self.cotangents[here[node.serial]] = others.cotangents[node.id]

    def value(self, wanted: int) -> Any:
        """A node's numbers: as they are known, or computed from what is."""
        stack = [wanted]
        while stack:
            node = self.graph.nodes[stack[-1]]
            missing = [i for i in node.inputs if i not in self._values]
            if node.id in self._values:
                stack.pop()
            elif node.op is None:
                raise ValueError(self._unknown(node))
            elif missing:
                stack += missing
            else:
                self._values[node.id] = node.op.apply([self._values[i] for i in node.inputs], node.attributes)
        found = self._values[wanted]
        return found if isinstance(found, (int, float)) else numbers_of(found)

    def _unknown(self, node: Node) -> str:
        return f"the numbers of {node_text(node)} were not kept, so this op cannot be opened; {self.advice}"


class OpensOps(View):
    """A view of a graph whose ops can be opened."""

    _insides: Insides

    def inside(self, key: str) -> Scene:
        """An op's arrays, number by number."""
        return self._insides.scene(key) if key in self._insides else super().inside(key)

    def learn(self, other: OpensOps) -> None:
        """Take over the numbers that another view knows of the same nodes."""
        self._insides.learn(other._insides)


def numbers_in(arguments: Sequence[Any], graph: Graph) -> list[Any] | None:
    """The arrays and numbers in nested arguments, where these are the graph's inputs."""
    found: list[Any] = []
    ad.map_leaves(found.append, arguments)
    return found if len(found) == len(graph.inputs) else None


def of_recorded(graph: Graph, inputs: Sequence[Any] | None, view: str, subject: Any) -> Insides:
    """The insides of a recorded graph, whose inputs are given, or of a Tensor's graph, which kept some values."""
    if inputs is not None and len(inputs) != len(graph.inputs):
        names = ", ".join(graph.nodes[i].name for i in graph.inputs)
        raise ValueError(f"{view}: inputs must be one value for each input of the graph ({names}), got {len(inputs)}")
    for place, value in zip(graph.inputs, inputs or (), strict=False):
        if np.shape(value) != graph.nodes[place].shape:
            raise ValueError(
                f"{view}: inputs: {node_text(graph.nodes[place])} was recorded with shape {graph.nodes[place].shape}, got "
                f"{np.shape(value)}"
            )
    if isinstance(subject, ad.Tensor):
        advice = "give its inputs names in the calling code, or pass the function and its arguments to GradientFlowView"
    else:
        names = ", ".join(graph.nodes[i].name for i in graph.inputs)
        advice = f"a graph is recorded without numbers: pass them too, {view}(graph, inputs=[{names}])"
    return Insides(graph, dict(zip(graph.inputs, inputs or (), strict=False)), advice=advice)


def of_run(
    graph: Graph, heard: Iterable[Event], inputs: Mapping[str, Any], ids: Mapping[int, int] | None = None
) -> Insides:
    """The insides of a graph that ran: values and cotangents are those that were heard."""
    places = {node.serial: node.id for node in graph} | dict(ids or {})
    known: dict[int, Any] = {}
    cotangents: dict[int, Any] = {}
    for event in heard:
        node = places.get(getattr(event, "serial", None) or -1)
        if node is None:
            continue
        if isinstance(event, events.OpCalled):
            known[node] = event.value
            known |= dict(zip(graph.nodes[node].inputs, event.operands, strict=True))
        elif isinstance(event, events.CotangentComplete):
            cotangents[node] = event.cotangent
    named = {graph.nodes[i].name: i for i in graph.inputs}
    known |= {named[name]: value for name, value in inputs.items() if name in named}
    advice = "pass the function and its arguments, GradientFlowView(f, …): it runs them and hears every value"
    return Insides(graph, known, cotangents, advice)
