"""ForwardModeView: a value and its tangent travel together from the inputs to the outputs, one pass for each direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import traitlets

import autodiff_lab as ad
from autodiff_lab import events
from autodiff_lab.events import Event
from autodiff_lab.graph import Graph, Node

from . import shapes
from .captions import Names, caption, gradients
from .captions.sentences import and_note
from .drawing import draw, key_of, node_label, node_text
from .facts import Rows, graph_facts
from .insides import OpensOps, of_run
from .routes import Box
from .scene import Change, Pane, Scene
from .seeds import Pass, Seed, heard_by, passes_of
from .shapes import Text
from .steps import Steps
from .subjects import described, floating_inputs, linked, name_of, with_writable_names
from .tangents_shown import LEGEND, TangentsShown, longest_lines, matched
from .values import box_text, value_text


class ForwardModeView(OpensOps):
    """Forward mode, one pass for each number of the seeded inputs: each pass gives one column of the Jacobian.

    A click on an input seeds that input, while the kernel runs.

    Args:
        f: a function; its result may nest.
        arguments: floating numbers and arrays move, also inside lists, tuples and dicts; everything else is held.
        seed: which inputs move, one after the other: a name, a place among the floating inputs, a list of these, or
            ``"all"``. Or a dict from names to tangents: one pass in which all of them move together.
        like: the graph of the same function in another view: its nodes are selected together with those of this view.

    Raises:
        TypeError, ValueError: there is nothing that can move, or ``seed`` names no input.

    >>> view = ForwardModeView(lambda x, w: x * w, 2.0, 3.0, seed="all")
    >>> print(view.frames[3].caption)
    `mul` (node 2) gets 1 × 3 = 3 from `x` (rule `mul_jvp_x`): part 1 of 2; the sum is now 3.
    """

    def __init__(
        self, f: Callable[..., Any], *arguments: Any, seed: Seed = 0, like: Graph | None = None, **traits: Any
    ) -> None:
        if not callable(f) or isinstance(f, Graph) or not arguments:
            raise TypeError(_advice(f, arguments))
        self._inputs, self._function = floating_inputs(f, arguments, "ForwardModeView")
        self._like = like
        scene = self._run(seed)
        super().__init__(scene, self._heard(), **traits)

    @property
    def seed(self) -> Seed:
        """What moves; give it another value to run again."""
        return self._seed

    @seed.setter
    def seed(self, seed: Seed) -> None:
        scene = self._run(seed)
        self._events = self._heard()
        with self.hold_sync():
            self.frame = 0
            self.scene = scene

    def _run(self, seed: Seed) -> Scene:
        """Run every pass; the picture is that of the first one, and later ones are matched to it."""
        asked, note = passes_of(self._inputs, seed)
        self.passes = [replace(one, heard=heard_by(self._function, self._inputs, one.tangents)) for one in asked]
        self._seed = seed
        told = ad.graph_told(self.passes[0].heard, tuple(self._inputs), name_of(self._function))
        self.graph = with_writable_names(told if self._like is None else linked(told, self._like))
        ids = {node.serial: node.id for node in told}
        self._insides = of_run(self.graph, self.passes[0].heard, self._inputs, ids)
        return self._insides.opened(forward_scene(self.graph, self.passes, tuple(self._inputs), note))

    def _heard(self) -> tuple[Event, ...]:
        return tuple(event for one in self.passes for event in one.heard)

    @traitlets.observe("selected")
    def _seed_selected(self, change: dict[str, Any]) -> None:
        """A click on an input seeds it; the same input of the new run stays selected."""
        places = {key_of(self.graph.nodes[node]): place for place, node in enumerate(self.graph.inputs)}
        place = places.get(change["new"] or "")
        if place is None or self._seed in (place, list(self._inputs)[place]):
            return
        with self.hold_sync():
            self.seed = list(self._inputs)[place]
            self.selected = key_of(self.graph.nodes[self.graph.inputs[place]])


def forward_scene(graph: Graph, passes: Sequence[Pass], inputs: Sequence[str], note: str = "") -> Scene:
    """The scene of some passes over one graph: one frame for the start of a pass, and one for each of its events."""
    film = _Passes(graph, passes, inputs, note)
    for number in range(len(passes)):
        film.play(number)
    film.finish()
    facts = {key: (*rows, *film.tangents.get(key, ())) for key, rows in _facts(graph).items()}
    title = f"Forward mode of {graph.name}"
    return Scene(title, (film.drawing.pane, film.columns.pane), tuple(film.steps.frames), facts, LEGEND)


class _Passes:
    """Turns the events of passes into frames."""

    def __init__(self, graph: Graph, passes: Sequence[Pass], inputs: Sequence[str], note: str) -> None:
        self.graph, self.passes, self.inputs = graph, passes, inputs
        self.ids = [matched(one.heard, graph.inputs, graph) for one in passes]
        rooms: dict[int, str] = {}
        for one, ids in zip(passes, self.ids, strict=True):
            for node, text in longest_lines(one.heard, ids).items():
                rooms[node] = max(rooms.get(node, ""), text, key=len)
        self.drawing = draw(graph, f"Graph {graph.name}", lambda node: _lines(node, rooms.get(node.id, "")))
        self.columns = _Columns([one.label for one in passes])
        self.tangents: dict[str, list[tuple[str, str]]] = {}  # element -> the tangent of each pass, for the facts
        self.steps = Steps(and_note(gradients.FORWARD_MODE, note, self.drawing.note))

    def play(self, number: int) -> None:
        """Add the frames of a pass."""
        one, ids = self.passes[number], self.ids[number]
        shown = TangentsShown(self.graph, self.drawing, ids)
        name = Names(lambda serial: node_text(self.graph.nodes[ids[serial]]) if serial in ids else "a constant")
        seeds = [e for e in one.heard if isinstance(e, events.TangentSeeded) and e.serial in ids]
        lasting = [*self._blank(), *self.columns.starts(number)]
        for seeded in seeds:
            found = shown.of(seeded)
            lasting += found.lasting if found else ()
        self.steps.add(self._start(number), _last_of_each(lasting))
        self._note_tangents(one, ids)
        for event in one.heard:
            found = None if isinstance(event, events.TangentSeeded) else shown.of(event)
            if found is None:
                continue
            told = self.columns.hears(number, event)
            focus = None if found.node is None else self.drawing.elements.get(found.node)
            source = None if found.node is None else self.graph.nodes[found.node].source
            self.steps.add(
                caption(event, name),
                (*found.lasting, *told),
                found.passing,
                focus,
                None if source is None else str(source),
                shown.question(event, name),
            )

    def _note_tangents(self, one: Pass, ids: Mapping[int, int]) -> None:
        found: dict[str, Any] = {}
        for event in one.heard:
            if isinstance(event, (events.TangentSeeded, events.TangentPushed)) and event.serial in ids:
                key = key_of(self.graph.nodes[ids[event.serial]])
                found[key] = event.tangents[0] if isinstance(event, events.TangentSeeded) else event.total
        for key, tangent in found.items():
            self.tangents.setdefault(key, []).append((f"tangent along {one.label}", value_text(tangent)))

    def finish(self) -> None:
        """Add the last frame: what it took."""
        self.steps.add(gradients.passes_closing(len(self.passes), self.columns.rules), self.columns.starts(None))

    def _start(self, number: int) -> str:
        one = self.passes[number]
        moves = [place for place, tangent in enumerate(one.tangents) if np.any(tangent)]
        moving = ", ".join(f"`{self.inputs[i]}` moves with the tangent {value_text(one.tangents[i])}" for i in moves)
        still = [f"`{name}`" for place, name in enumerate(self.inputs) if place not in moves]
        return gradients.pass_opening(number + 1, len(self.passes), moving or "nothing moves", still)

    def _blank(self) -> list[Change]:
        """Every op waits for its tangent."""
        ops = [node for node in self.graph if node.op is not None]
        edges = [
            change
            for node in ops
            for place, source in enumerate(node.inputs)
            for change in self.drawing.edge(source, node.id, place, "idle")
        ]
        return [change for node in ops for change in self.drawing.node(node.id, "waiting", tangent="tangent ?")] + edges


class _Columns:
    """The list of the Jacobian's columns, and how many passes and rule calls they took so far."""

    WIDTH, HEIGHT, STEP = 400.0, 30.0, 34.0

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = labels
        self.rules = 0
        self.found: dict[int, list[str]] = {}
        self.active: int | None = None

    @property
    def pane(self) -> Pane:
        """The picture of the empty list."""
        rows = [
            (f"column.{place}", [Text(label, "label"), Text("?", "value", "column")])
            for place, label in enumerate(self.labels)
        ]
        rows += [
            ("passes", [Text("passes", "label"), Text("0", "value", "count")]),
            ("rules", [Text("calls of JVP rules", "label"), Text("0", "value", "count")]),
        ]
        drawn = [
            shapes.row(key, Box(place, 16, 46 + self.STEP * place, self.WIDTH, self.HEIGHT), texts)
            for place, (key, texts) in enumerate(rows)
        ]
        head = shapes.heading("The result's derivative along", 16, 32)
        return Pane(shapes.page(self.WIDTH + 32, 56 + self.STEP * len(rows), [head, *drawn]), "Columns of the Jacobian")

    def starts(self, number: int | None) -> tuple[Change, ...]:
        """A pass begins, or no pass is left."""
        before, self.active = self.active, number
        done = () if before is None else (Change(f"column.{before}", "done"),)
        if number is None:
            return done
        return (
            *done,
            Change(f"column.{number}", "active"),
            Change("passes", None, {"count": f"{number + 1} of {len(self.labels)}"}),
        )

    def hears(self, number: int, event: Event) -> tuple[Change, ...]:
        """A rule was called, or a result has its tangent."""
        if isinstance(event, events.TangentPushed):
            self.rules += 1
            return (Change("rules", None, {"count": str(self.rules)}),)
        if isinstance(event, events.TangentReached):
            column = self.found.setdefault(number, [])
            column.append(box_text(event.tangents[0]))
            return (Change(f"column.{number}", None, {"column": shapes.shortened("; ".join(column), 24)}),)
        return ()


def _last_of_each(changes: Sequence[Change]) -> list[Change]:
    """One change for each element: the last one."""
    return list({change.element: change for change in changes}.values())


def _lines(node: Node, room: str) -> tuple[Text, ...]:
    if node.kind == "constant":
        return (Text(node_label(node), "label"), Text("stands still"))
    known = f"value {box_text(node.value)}" if node.kind == "input" else "value ?"
    return (
        Text(node_label(node), "label"), Text(known, "value", "value", room), Text("tangent ?", "value", "tangent", room)
    )  # fmt: skip


def _facts(graph: Graph) -> dict[str, Rows]:
    """The facts of every node; an input says what a click does."""
    click = ("click", "seeds this input, while the kernel runs")
    inputs = {key_of(graph.nodes[node]) for node in graph.inputs}
    return {key: (*rows, click) if key in inputs else rows for key, rows in graph_facts(graph).items()}


def _advice(f: Any, arguments: Sequence[Any]) -> str:
    """Why forward mode cannot run, and what to pass instead."""
    where = "ForwardModeView"
    if isinstance(f, Graph):
        return f"{where}: a Graph has shapes and no values; pass the function and its arguments: {where}({f.name}, 2.0, 3.0)"
    if callable(f):
        return (
            f"{where}: got the function {name_of(f)} without arguments; pass them too: {where}({name_of(f)}, 2.0, 3.0)"
        )
    return f"{where}: expected a function with its arguments, got {described(f)}; pass them as in {where}(f, 2.0, 3.0)"
