"""FusionView: neighbours are compared pair by pair, groups form, and each border says why it is there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import autodiff_lab as ad
from autodiff_lab import events
from autodiff_lab.events import Event
from autodiff_lab.graph import Graph, Node

from .captions import Names, caption, passes
from .captions.passes import shape_words
from .captions.sentences import and_note
from .collector import paused
from .drawing import draw, key_of, node_label, node_name
from .facts import Rows, graph_facts
from .fusion_gains import gains, moved
from .insides import OpensOps, of_recorded
from .layout import Layout
from .regions import Region, region_css, region_key
from .routes import Line
from .scene import Change, Pane, Question, Scene, State
from .shapes import Text
from .steps import Steps
from .subjects import described, with_writable_names
from .tables import Entry, table
from .values import bytes_text

if TYPE_CHECKING:
    from autodiff_lab.fusion import Fusion, Group, Neighbours

MOST_PAIRS = 300  # neighbours that are compared one by one; of more only the groups are stepped through
PAIRS = (("active", "may join"), ("used", "the op that reads it"), ("edge waiting", "a border"))
LEGEND = (("edge done", "joined"),)
UNKNOWN = (
    ("edge wrong", "a border because a shape is unknown"), ("waiting", "unknown shape"), ("wrong", "its rule lost it"),
)  # fmt: skip

Pair = tuple[int, int]  # producer and consumer


class FusionView(OpensOps):
    """Which neighbours become one kernel, pair by pair, and why the others stay two.

    A coloured region is a group that is one kernel; ``written`` marks the values of a kernel that still go to memory. Select an
    edge to see why it is joined, or a border. Of more than 300 pairs the groups are stepped through.

    Args:
        subject: a graph, or what ``ad.fuse(graph)`` or ``ad.plan(graph)`` gives.
        heard: events of planning, from ``ad.listen``: they say which kind of loop each group is, and why.
        inputs: what the graph is run on when an op is opened, to show its arrays: one value for each input.

    Raises:
        TypeError: ``subject`` is something else.

    >>> view = FusionView(ad.record(lambda x: ad.ops.tanh(x * 2.0), 1.0))
    >>> print(view.frames[-1].caption)
    2 kernels become 1. One by one they read and write 40 B of memory, in groups 24 B.
    """

    def __init__(
        self, subject: Any, heard: Iterable[Event] = (), inputs: Sequence[Any] | None = None, **traits: Any
    ) -> None:
        told: list[Event] = []
        self.fusion = _fusion_of(subject, told)
        self.graph = self.fusion.graph
        loops = [event for event in heard if isinstance(event, events.LoopChosen)]
        self._insides = of_recorded(self.graph, inputs, "FusionView", subject)
        super().__init__(self._insides.opened(fusion_scene(self.fusion, told, loops)), [*told, *loops], **traits)


@paused()
def fusion_scene(fusion: Fusion, told: Sequence[Event], loops: Sequence[events.LoopChosen] = ()) -> Scene:
    """The scene of a fusion: a frame for each pair and for each group of several ops, or for the groups alone."""
    forming = _Forming(fusion, loops)
    for event in (*told, *loops):
        forming.show(event)
    forming.end()
    panes = (forming.drawing.pane, forming.pane())
    unknown = UNKNOWN if any(pair.reason == "unknown shape" for pair in fusion.neighbours) else ()
    pairs = PAIRS if forming.is_by_pairs else ()
    return Scene(
        f"Fusion of {fusion.graph.name}",
        panes,
        tuple(forming.steps.frames),
        forming.facts(),
        (*pairs, *LEGEND, *unknown),
        runs=False,
    )


class _Forming:
    """The frames of a fusion: which pairs are joined, which groups are complete, what that comes to."""

    def __init__(self, fusion: Fusion, loops: Sequence[events.LoopChosen]) -> None:
        self.fusion, self.graph = fusion, fusion.graph
        self.groups = {group.number: group for group in fusion.groups if len(group.nodes) > 1}
        self.loops = {event.number: event for event in loops if event.number in self.groups}
        self.regions = {
            number: Region(number, place, f"kernel {number}: {group.name}", self._keys(group))
            for place, (number, group) in enumerate(self.groups.items())
        }
        self.is_by_pairs = len(fusion.neighbours) <= MOST_PAIRS
        self.near: dict[
            int, list[Neighbours]
        ] = {}  # the edges at each node that a group's step colours; other borders stay
        for pair in fusion.neighbours:  # as they are: dots along thousands of px take the browser seconds to paint
            if pair.reason in ("joined", "unknown shape"):
                self.near.setdefault(pair.producer, []).append(pair)
                self.near.setdefault(pair.consumer, []).append(pair)
        self.drawing = draw(self.graph, f"Graph {self.graph.name}", self._lines, behind=self._behind)
        self.name = Names(lambda node: f"`{node_label(self.graph.nodes[node])}`")
        how = passes.BY_PAIRS if self.is_by_pairs else passes.BY_GROUPS
        start = and_note(passes.FUSION_OPENING, how, self.drawing.note)
        self.steps = Steps(start, [Change("kernels:before", "done"), Change("bytes:before", "done"), *self._unknown()])

    def show(self, event: Event) -> None:
        """Add the frame of an event."""
        if isinstance(event, events.NeighboursCompared) and self.is_by_pairs:
            self._compare(event)
        elif isinstance(event, events.GroupFormed) and event.number in self.groups:
            self._form(event)
        elif isinstance(event, events.LoopChosen) and event.number in self.groups:
            key, first = region_key(event.number), self.groups[event.number].nodes[0]
            chosen = Change(key, None, {"loop": event.kind})
            self.steps.add(
                caption(event, self.name), [chosen], [Change(key, "active")], self.drawing.elements.get(first)
            )

    def end(self) -> None:
        """Add the frame that says what all groups come to."""
        alone = [group for group in self.fusion.groups if len(group.nodes) == 1]
        changes = [change for group in alone for change in self._numbered(group)]
        changes += [Change("kernels:after", "done"), Change("bytes:after", "done")]
        kernels = self.fusion.kernels_before, self.fusion.kernels_after
        self.steps.add(passes.gains_caption(*kernels, *moved(self.fusion)), changes)

    def pane(self) -> Pane:
        """What is won, and a row for each group."""
        lines = gains(self.fusion)
        lines.append("Groups of several ops" if self.groups else "No group of several ops")
        for number, group in self.groups.items():
            cells = [Text("", "label", "number", str(number)), Text("", "", "ops", group.name)]
            if number in self.loops:
                cells.append(Text("", "detail", "loop", self.loops[number].kind))
            lines.append(Entry(region_key(number), tuple(cells), f"row {region_css(self.regions[number].place)}"))
        return table("Groups", lines)

    def facts(self) -> dict[str, Rows]:
        """What is known of each node, each pair of neighbours and each group."""
        facts = graph_facts(self.graph)
        for group in self.fusion.groups:
            for node in group.nodes:
                facts[key_of(self.graph.nodes[node])] += (("kernel", _place(group, node)),)
        facts |= {region_key(number): self._group_facts(group) for number, group in self.groups.items()}
        for pair in self.fusion.neighbours:
            names = [node_name(self.graph.nodes[node]) for node in (pair.producer, pair.consumer)]
            rows = (
                ("between", " and ".join(names)),
                ("is", "joined" if pair.joined else f"a border: {pair.reason}"),
                ("because", pair.text),
            )
            facts |= {change.element: rows for change in self._edges((pair.producer, pair.consumer), "idle")}
        return facts

    # ------------------------------------------------------------------------------------------------------- one event

    def _compare(self, event: events.NeighboursCompared) -> None:
        pair = event.producer, event.consumer
        lasting = self._edges(pair, _edge_state(event.reason))
        if event.reason == "joined":
            lasting += self._shown(pair)
        passing = [
            *self._edges(pair, "active"),
            *self.drawing.node(pair[1], "used"),
            *self.drawing.node(pair[0], "active"),
        ]
        focus = self.drawing.elements.get(event.producer)
        self.steps.add(caption(event, self.name), lasting, passing, focus, question=self._question(event))

    def _form(self, event: events.GroupFormed) -> None:
        group = self.groups[event.number]
        lasting = [*self._shown(group.nodes), *self._numbered(group)]
        if not self.is_by_pairs:
            near = {pair: None for node in group.nodes for pair in self.near.get(node, ())}
            lasting += [c for p in near for c in self._edges((p.producer, p.consumer), _edge_state(p.reason))]
        lasting.append(Change(region_key(group.number), "done", {"number": str(group.number), "ops": group.name}))
        self.steps.add(caption(event, self.name), lasting, (), self.drawing.elements.get(group.nodes[0]))

    def _question(self, event: events.NeighboursCompared) -> Question:
        choices = (("joined", passes.YES), ("border", passes.NO))
        right = "joined" if event.reason == "joined" else "border"
        return Question(passes.pair_question(event, self.name), choices, right)

    # ------------------------------------------------------------------------------------------------------ the picture

    def _lines(self, node: Node) -> tuple[Text, ...]:
        shape = f"{shape_words(self.fusion.shapes.shapes[node.id])} {node.dtype}".removeprefix("() ")
        place = f" · {node.device}" if node.device != "cpu" else ""
        lines = (Text(node_label(node), "label"), Text(shape + place))
        group = self.fusion.group_of(node.id)
        return lines if group is None else (*lines, Text("", "detail", "kernel", _place(group, node.id)))

    def _behind(self, layout: Layout) -> Iterator[str]:
        inside: dict[int, list[Line]] = {number: [] for number in self.regions}
        for line in layout.lines:
            group = self.fusion.group_of(line.source)
            if group is not None and group.number in inside and group is self.fusion.group_of(line.consumer):
                inside[group.number].append(line)
        for number, region in self.regions.items():
            yield from region.parts(layout.boxes, inside[number])

    def _keys(self, group: Group) -> dict[int, str]:
        return {node: key_of(self.graph.nodes[node]) for node in group.nodes}

    def _numbered(self, group: Group) -> list[Change]:
        return [change for node in group.nodes for change in self.drawing.node(node, None, kernel=_place(group, node))]

    def _shown(self, nodes: Collection[int]) -> list[Change]:
        """What brings the nodes of a group, and the edges between them, into sight."""
        group = next(self.fusion.group_of(node) for node in nodes)
        assert group is not None
        drawn = [node for node in nodes if node in self.drawing.elements]
        edges = [
            (source, node, place)
            for node in drawn
            for place, source in enumerate(self.graph.nodes[node].inputs)
            if source in nodes
        ]
        return self.regions[group.number].shown(drawn, edges)

    def _edges(self, pair: Pair, state: State) -> list[Change]:
        """The edges between two nodes: a value that is used twice has two."""
        producer, consumer = pair
        places = [place for place, source in enumerate(self.graph.nodes[consumer].inputs) if source == producer]
        return [change for place in places for change in self.drawing.edge(producer, consumer, place, state)]

    def _unknown(self) -> Iterator[Change]:
        """The nodes whose shape is not known, and those whose rule lost it."""
        for node in self.fusion.shapes.unknown:
            yield from self.drawing.node(node, "wrong" if node in self.fusion.shapes.lost else "waiting")

    def _group_facts(self, group: Group) -> Rows:
        nodes = self.graph.nodes
        inside = [node for node in group.nodes if node not in group.outputs]
        rows = [
            ("kernel", str(group.number)),
            ("ops", ", ".join(node_name(nodes[node]) for node in group.nodes)),
            ("loop over", shape_words(group.shape)),
            ("reads", _sizes(nodes, group.inputs)),
            ("writes", _sizes(nodes, group.outputs)),
            ("never in memory", _sizes(nodes, inside)),
        ]
        if group.number in self.loops:
            rows += [("ran as", self.loops[group.number].kind), ("because", self.loops[group.number].why)]
        return tuple((label, value) for label, value in rows if value)


def _place(group: Group, node: int) -> str:
    return f"kernel {group.number}{', written' if len(group.nodes) > 1 and node in group.outputs else ''}"


def _sizes(nodes: Sequence[Node], values: Collection[int]) -> str:
    total = bytes_text(sum(nodes[value].nbytes for value in values))
    return f"{', '.join(node_name(nodes[value]) for value in values)}: {total}" if values else ""


def _edge_state(reason: str) -> State:
    return {"joined": "done", "unknown shape": "wrong"}.get(reason, "waiting")  # type: ignore[return-value]


def _fusion_of(subject: Any, told: list[Event]) -> Fusion:
    """The fusion of a graph or a plan; one that was made before is made again, to hear how."""
    subject = getattr(subject, "fusion", subject)
    if isinstance(subject, Graph):
        return ad.fuse(with_writable_names(subject), tell=told.append)
    if not hasattr(subject, "neighbours"):
        raise TypeError(
            f"FusionView: expected a Graph, a Fusion or a Plan, got {described(subject)}; pass ad.record(f, *args), "
            "ad.fuse(graph), or a plan that fuses"
        )
    graph = with_writable_names(subject.graph)
    for write_shared in (True, False):
        told.clear()
        fusion = ad.fuse(graph, subject.shapes, write_shared=write_shared, tell=told.append)
        if fusion.groups == subject.groups:
            break
    return fusion
