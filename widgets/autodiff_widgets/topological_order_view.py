"""TopologicalOrderView: how depth-first search or Kahn's counting puts a graph's nodes in order, with its stack or queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from autodiff_lab import events
from autodiff_lab.events import Event
from autodiff_lab.graph import Graph, Node, depth_first_order, kahn_order

from .captions import Names, caption, orders
from .captions.sentences import and_note
from .collector import paused
from .drawing import Drawing, draw, node_label, node_lines, node_text
from .facts import graph_facts
from .insides import OpensOps, of_recorded
from .questions import which
from .scene import Change, Question, Scene, State
from .shapes import Text
from .steps import Listing, Row, Steps
from .subjects import graph_from

Algorithm = Literal["depth_first", "kahn"]

MOST_WAITING = 12  # rows of the stack or queue that are drawn
LONGEST_ORDER = 40  # rows of the order that are drawn

ALGORITHMS = {"depth_first": depth_first_order, "kahn": kahn_order}


class TopologicalOrderView(OpensOps):
    """An order of a graph's nodes in which each comes after its inputs, as an algorithm finds it.

    Args:
        subject: a Graph, or a Tensor that was computed from Tensors with ``requires_grad=True``.
        algorithm: ``"depth_first"``, from the outputs, with a stack; or ``"kahn"``, by counting inputs, with a queue.
        inputs: what the graph is run on when an op is opened, to show its arrays: one value for each input.

    Raises:
        TypeError, ValueError: ``subject`` has no graph, or there is no such algorithm.

    >>> import autodiff_lab as ad
    >>> view = TopologicalOrderView(ad.record(lambda x: x * x, 3.0))
    >>> print(view.frames[4].caption)
    `mul` (node 1) needs `x` too, but it has been entered before: it is not entered twice.
    """

    def __init__(
        self, subject: Any, algorithm: Algorithm = "depth_first", inputs: Sequence[Any] | None = None, **traits: Any
    ) -> None:
        if algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm: expected one of {', '.join(map(repr, ALGORITHMS))}, got {algorithm!r}")
        self.graph = graph_from(subject, "TopologicalOrderView")
        heard: list[Event] = []
        ALGORITHMS[algorithm](self.graph, heard.append)
        self._insides = of_recorded(self.graph, inputs, "TopologicalOrderView", subject)
        super().__init__(self._insides.opened(order_scene(self.graph, heard, algorithm)), heard, **traits)


@paused()
def order_scene(graph: Graph, heard: list[Event], algorithm: Algorithm) -> Scene:
    """The scene of a run of one of the two algorithms: one frame for each of its events."""
    player = _DepthFirst(graph) if algorithm == "depth_first" else _Kahn(graph)
    for event in heard:
        player.show(event)
    player.steps.add(orders.closing(len(player.order)))
    panes = (player.drawing.pane, player.waiting.pane, player.result.pane)
    title = f"Topological order of {graph.name} by {player.method}"
    return Scene(title, panes, tuple(player.steps.frames), graph_facts(graph), player.legend, runs=False)


class _Order:
    """What both algorithms show: the graph, who waits in what order, and the result so far."""

    method: str
    algorithm: Algorithm
    waits: str
    legend: tuple[tuple[str, str], ...]

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.drawing = self.draw()
        self.labels = [node_label(node) for node in graph]
        self.name = Names(lambda node: node_text(graph.nodes[node]))
        self.waiting_nodes: list[int] = []
        self.order: list[int] = []
        self.left = dict.fromkeys(range(len(graph)))  # that are not in the order yet
        self.waiting = Listing("waiting", self.waits, min(len(graph), MOST_WAITING))
        self.result = Listing("order", "Order", min(len(graph), LONGEST_ORDER), end=True)
        self.used: Counter[tuple[int, int]] = Counter()
        self.steps = Steps(and_note(orders.OPENINGS[self.algorithm], self.drawing.note))

    def draw(self) -> Drawing:
        """The graph with a place above each node for its number in the order."""
        return draw(self.graph, f"Graph {self.graph.name}", badge="number")

    def show(self, event: Event) -> None:
        """Add the frame of an event."""
        raise NotImplementedError

    def add(self, event: Event, node: int, lasting: tuple[Change, ...] = (), passing: tuple[Change, ...] = ()) -> None:
        """Add a frame, with both lists brought up to date."""
        lists = (
            *self.waiting.show(self.waiting_entries(), self.waiting_row),
            *self.result.show(self.order, self.order_row),
        )
        self.steps.add(
            caption(event, self.name),
            (*lasting, *lists),
            passing,
            self.drawing.elements.get(node),
            question=self.question(event),
        )

    def question(self, event: Event) -> Question | None:
        """Before a node joins the order: which one will it be?"""
        if not isinstance(event, events.NodeFinished | events.NodeDequeued):
            return None
        self.left.pop(event.node)
        return which(orders.QUESTION, event.node, self.left, self.drawing.elements.get, lambda node: self.labels[node])

    def waiting_entries(self) -> list[int]:
        """The stack or queue, the node that leaves next first."""
        return self.waiting_nodes

    def waiting_row(self, place: int, node: int) -> Row:
        """A node of the stack or queue."""
        raise NotImplementedError

    def order_row(self, place: int, node: int) -> Row:
        """A node of the order, with its number."""
        return Row(f"{place + 1}. {self.labels[node]}", "done")

    def next_edge(self, source: int, consumer: int, state: State) -> tuple[Change, ...]:
        """The change of the next edge between two nodes: a node used twice has two."""
        places = [place for place, i in enumerate(self.graph.nodes[consumer].inputs) if i == source]
        place = places[min(self.used[source, consumer], len(places) - 1)]
        self.used[source, consumer] += 1
        return self.drawing.edge(source, consumer, place, state)

    def take(self, node: int) -> tuple[Change, ...]:
        """Give a node the next number of the order."""
        self.order.append(node)
        return self.drawing.node(node, "done", number=str(len(self.order)))


class _DepthFirst(_Order):
    method = "depth-first search"
    algorithm: Algorithm = "depth_first"
    waits = "Stack (top first)"
    legend = (
        ("active", "arrives now"), ("waiting", "on the stack"), ("used", "met again"), ("done", "in the order"),
    )  # fmt: skip

    def show(self, event: Event) -> None:
        match event:
            case events.NodeEntered(node, via):
                self.waiting_nodes.append(node)
                edge = () if via is None else self.next_edge(node, via, "active")
                self.add(event, node, self.drawing.node(node, "waiting"), (*edge, *self.drawing.node(node, "active")))
            case events.NodeSeenAgain(node, via):
                self.add(event, node, (), (*self.next_edge(node, via, "used"), *self.drawing.node(node, "used")))
            case events.NodeFinished(node, _):
                self.waiting_nodes.pop()
                self.add(event, node, self.take(node))

    def waiting_entries(self) -> list[int]:
        return self.waiting_nodes[::-1]

    def waiting_row(self, place: int, node: int) -> Row:
        return Row(self.labels[node], "waiting" if place else "active")


class _Kahn(_Order):
    method = "Kahn's algorithm"
    algorithm: Algorithm = "kahn"
    waits = "Queue (head first)"
    legend = (
        ("active", "now"), ("ready", "in the queue"), ("target", "waits for one less"), ("done", "in the order"),
    )  # fmt: skip

    def draw(self) -> Drawing:
        return draw(self.graph, f"Graph {self.graph.name}", _counting_lines, badge="number")

    def show(self, event: Event) -> None:
        match event:
            case events.DependenciesCounted(node, count):
                self.add(
                    event, node, self.drawing.node(node, None, waits=_waits(count)), self.drawing.node(node, "active")
                )
            case events.NodeEnqueued(node):
                self.waiting_nodes.append(node)
                self.add(event, node, self.drawing.node(node, "ready"))
            case events.NodeDequeued(node, _):
                self.waiting_nodes.pop(0)
                self.add(event, node, self.take(node), self.drawing.node(node, "active"))
            case events.DependencyDone(node, consumer, count):
                edge = self.next_edge(node, consumer, "done")
                told = self.drawing.node(consumer, None, waits=_waits(count))
                self.add(event, consumer, (*edge, *told), self.drawing.node(consumer, "target"))

    def waiting_row(self, place: int, node: int) -> Row:
        return Row(self.labels[node], "ready")


def _counting_lines(node: Node) -> tuple[Text, ...]:
    return (node_lines(node)[0], Text("", "value", "waits", _waits(10)))


def _waits(count: int) -> str:
    return f"waits for {count}"
