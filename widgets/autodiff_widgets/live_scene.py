"""Scenes of what is heard while code runs: the picture so far, as one frame, and the whole film when the run is over."""

from __future__ import annotations

import traceback
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import autodiff_lab as ad
from autodiff_lab import events
from autodiff_lab.events import Event
from autodiff_lab.graph import Graph, Node, Source

from . import shapes
from .captions import Names, caption, live
from .drawing import draw, key_of, node_label, node_lines, node_text
from .facts import Rows, graph_facts
from .gradient_flow_view import LEGEND
from .gradient_frames import GradientFrames
from .scene import Frame, Pane, Scene, State
from .shapes import Text
from .subjects import with_writable_names

WINDOW = 40  # calls in the picture while the run goes on: a larger one would take the time that the run needs

RUNNING: tuple[tuple[str, str], ...] = (
    ("active", "just ran"), ("target", "just received a contribution"), ("done", "has run"), ("ready", "gradient complete"),
    ("wrong", "no result"),
)  # fmt: skip
FORWARD = (("active", "this op call"), ("used", "its operands"))
AT_FAULT = (("wrong", "the run ended here"),)
LIBRARY = (str(Path(ad.__file__).parent), str(Path(__file__).parent), "<binding")


@dataclass
class Heard:
    """What was heard of a run, in order, and what is needed to draw it.

    ``before`` are op calls that an earlier run made, since a sweep may go back through them. ``left_out`` counts the events
    that came when the list was full.
    """

    title: str
    told: Sequence[Event] = ()
    before: Sequence[Event] = ()
    names: Mapping[str, Any] = field(default_factory=dict)
    left_out: int = 0

    def graph(self, told: Sequence[Event]) -> Graph:
        """The graph of some of what was heard."""
        return with_writable_names(ad.graph_heard(told, self.before, self.names, self.title))

    @property
    def amount(self) -> str:
        """How much ran, in words."""
        return live.amount(self.told, self.left_out)


def empty_scene(title: str, said: str) -> Scene:
    """A picture before anything has run."""
    pane = Pane(shapes.page(480, 60, [shapes.heading(said, 20, 36)]), "Graph")
    return Scene(title, (pane,), (Frame(said),))


# ---------------------------------------------------------------------------------------------------- while the run goes on


def running_scene(heard: Heard) -> Scene:
    """The picture so far: the calls that the run came to last, and what became of them."""
    recent = _recent(heard.told)
    graph, failed = heard.graph(recent), _failures(recent)
    drawing = draw(graph, f"Graph of {heard.title}", lambda node: _lines(node, failed))
    states = _states(heard.told)
    ids = {node.serial: node.id for node in graph}
    changes = [c for serial, state in states.items() if serial in ids for c in drawing.node(ids[serial], state)]
    last = heard.told[-1]
    name = Names(lambda serial: node_text(graph.nodes[ids[serial]]) if serial in ids else "an earlier value")
    said = live.running(heard.amount, caption(last, name))
    node = ids.get(getattr(last, "into", getattr(last, "serial", -1)))
    source = None if node is None or graph.nodes[node].source is None else str(graph.nodes[node].source)
    frame = Frame(said, tuple(changes), None if node is None else drawing.elements.get(node), source)
    return Scene(heard.title, (drawing.pane,), (frame,), _facts(graph, heard.told), RUNNING)


def _recent(told: Sequence[Event]) -> list[Event]:
    """The calls of the nodes that were heard of last."""
    calls = {event.serial: event for event in told if isinstance(event, events.OpCalled | events.OpFailed)}
    found: dict[int, Event] = {}
    for event in reversed(told):
        serial = getattr(event, "serial", None)
        if serial in calls and serial not in found:
            found[serial] = calls[serial]
            if len(found) == WINDOW:
                break
    return list(found.values())


def _states(told: Sequence[Event]) -> dict[int, State]:
    """What each node is, by serial number, after all that was heard."""
    states: dict[int, State] = {}
    for event in told:
        match event:
            case events.OpCalled():
                states[event.serial] = "done"
            case events.OpFailed():
                states[event.serial] = "wrong"
            case events.CotangentComplete() | events.LeafReached() | events.SweepStarted():
                states[event.serial] = "ready"
    match told[-1]:
        case events.ContributionAdded() as last:
            states |= {last.serial: "active", last.into: "target"}
        case events.OpCalled() | events.CotangentComplete() as last:
            states[last.serial] = "active"
    return states


# -------------------------------------------------------------------------------------------------------- when it is over


def finished_scene(heard: Heard, error: BaseException | None = None) -> Scene:
    """The film of all that was heard, one frame an event, and how the run ended."""
    graph = heard.graph(heard.told)
    frames = GradientFrames(graph, heard.told)
    for event in heard.told:
        if _is_drawn(event, graph, frames.ids):
            frames.show(event)
    if error is None:
        frames.steps.add(live.over(heard.amount))
    else:
        serial = _where_it_ended(heard.told, error)
        node = frames.ids.get(-1 if serial is None else serial)
        marks = () if node is None else frames.drawing.node(node, "wrong")
        focus = None if node is None else frames.drawing.elements.get(node)
        place = user_line(error)
        said = live.ended(error, place)
        frames.steps.add(said, marks, focus=focus, source=None if place is None else str(place))
    has_sweep = any(isinstance(event, events.SweepStarted) for event in heard.told)
    legend = (*(LEGEND if has_sweep else FORWARD), *(AT_FAULT if error is not None else ()))
    shown = tuple(frames.steps.frames)
    return Scene(heard.title, (frames.drawing.pane,), shown, _facts(graph, heard.told), legend)


def _is_drawn(event: Event, graph: Graph, ids: Mapping[int, int]) -> bool:
    """Whether an event is about nodes of the graph: a sweep may go back through calls that were never heard."""
    serials = [serial for name in ("serial", "into") if (serial := getattr(event, name, None)) is not None]
    if not all(serial in ids for serial in serials):
        return False
    return not isinstance(event, events.ContributionAdded) or graph.nodes[ids[event.serial]].op is not None


def _where_it_ended(told: Sequence[Event], error: BaseException) -> int | None:
    """The serial number of the call that raised an error, or of the one whose gradient rules did."""
    last = told[-1] if told else None
    match last:
        case events.OpFailed(serial=serial, reason=reason) if str(error) in reason or not str(error):
            return serial
        case events.CotangentComplete(serial=serial) | events.ContributionAdded(serial=serial):
            return serial
    return None


def user_line(error: BaseException) -> Source | None:
    """The innermost line of the user's own code that an error came through."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(LIBRARY)]
    if not own:
        return None
    return Source(own[-1].filename, own[-1].lineno or 0, own[-1].name, own[-1].line or "")


# ----------------------------------------------------------------------------------------------------------------- nodes


def _lines(node: Node, failed: Collection[int]) -> tuple[Text, ...]:
    """What stands in a node; a call that failed has no shape."""
    return (Text(node_label(node), "label"), Text("no result")) if node.serial in failed else node_lines(node)


def _failures(told: Sequence[Event]) -> dict[int, str]:
    """Why calls failed, by serial number."""
    return {event.serial: event.reason for event in told if isinstance(event, events.OpFailed)}


def _facts(graph: Graph, told: Sequence[Event]) -> dict[str, Rows]:
    """What is known about each node; a call that failed has no shape, and says why."""
    facts, failures = graph_facts(graph), _failures(told)
    for node in graph:
        if node.serial in failures:
            kept = tuple(row for row in facts[key_of(node)] if row[0] not in ("shape", "dtype", "size"))
            facts[key_of(node)] = (*kept, ("error", failures[node.serial]))
    return facts
