"""Questions about a reverse sweep: whose rules run next, what a rule sends, what contributions come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from autodiff_lab import events
from autodiff_lab.events import Event
from autodiff_lab.graph import Graph

from .captions import Names, gradients
from .drawing import node_name
from .questions import of_product, of_sum, which
from .scene import Question
from .values import value_text


class GradientQuestions:
    """Listens to a sweep, and asks before its events.

    ``ids`` are nodes by serial number, ``expected`` how many contributions each of these numbers receives, and ``element``
    says what is drawn for a node.
    """

    def __init__(
        self,
        graph: Graph,
        ids: Mapping[int, int],
        name: Names,
        expected: Mapping[int, int],
        element: Callable[[int], str | None],
    ) -> None:
        self.graph, self.ids, self.name, self.element = graph, ids, name, element
        self.missing = {ids[serial]: count for serial, count in expected.items() if serial in ids}
        self.sums: dict[int, Any] = {}  # node -> the sum of what has arrived
        self.begun: list[int] = []  # nodes that have received something, and wait for more

    def before(self, event: Event) -> Question | None:
        """The question before an event, which is taken note of."""
        match event:
            case events.CotangentComplete() if self.sums:
                return self._complete(self.ids[event.serial])
            case events.ContributionAdded():
                return self._added(event, self.ids[event.into])
        return None

    def _complete(self, node: int) -> Question | None:
        """Whose gradient is complete? Not that of a node that still waits; those that have received something come first."""
        nodes, further = self.graph.nodes, range(len(self.graph) - 1, -1, -1)
        waiting = (one for one in (*self.begun, *further) if nodes[one].op is not None and self.missing.get(one))
        return which(gradients.COMPLETE, node, waiting, self.element, lambda one: node_name(nodes[one]))

    def _added(self, event: events.ContributionAdded, into: int) -> Question | None:
        before = self.sums.get(into)
        self.sums[into] = event.total
        self.missing[into] -= 1
        self.begun = [one for one in (into, *self.begun) if self.missing[one]]
        if before is None:
            text = gradients.sent_question(event, self.name)
            return of_product(text, event.upstream, event.local, event.contribution)
        text = gradients.sum_question(event, value_text(before), self.name)
        return of_sum(text, before, event.contribution, event.total)
