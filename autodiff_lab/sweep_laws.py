"""The laws of a reverse sweep: each node waits for all its contributions, is visited once, and gets their sum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import backend, events
from .graph import Graph, Node
from .operator_reports import FaultFound
from .tensors import Tensor

ROUNDING = 1e3  # how many units in the last place the sums of a sweep may differ


@dataclass(frozen=True)
class Arrival:
    """One contribution as it was when it arrived, and the sum that it was added to."""

    sender: int
    contribution: np.ndarray[Any, Any]
    total: np.ndarray[Any, Any]


class HeardSweep:
    """A sweep as its events told it. Arrays are copied when they are told, since a fault may write into them later."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._nodes = {node.serial: node for node in graph}
        self._arrived: dict[int, list[Arrival]] = {}
        self._visited: dict[
            int, list[tuple[int, np.ndarray[Any, Any]]]
        ] = {}  # after how many arrivals, with which cotangent
        self._held: dict[
            int, tuple[Any, np.ndarray[Any, Any]]
        ] = {}  # sums that wait: the array itself, and as it was told
        self._overwritten: dict[int, int] = {}  # a node whose sum changed -> the node at whose addition it changed

    def hear(self, event: events.Event) -> None:
        """Take in one event."""
        match event:
            case events.ContributionAdded(serial=sender, into=into):
                self._look_for_changes(into)
                self._arrived.setdefault(into, []).append(
                    Arrival(sender, _copy(event.contribution), _copy(event.total))
                )
                self._held[into] = (event.total, _copy(event.total))
            case events.CotangentComplete():
                self._visit(event.serial, event.cotangent)
            case events.LeafReached():
                self._visit(event.serial, event.gradient)

    def sent_to(self, serial: int, size: int) -> np.ndarray[Any, Any] | None:
        """The cotangent that an op's rules were given, as a row of ``size`` numbers; None where there is no such."""
        visits = self._visited.get(serial)
        row = None if not visits else np.asarray(visits[0][1], np.float64).ravel()
        return row if row is not None and row.size == size and np.isfinite(row).all() else None

    def faults(self) -> Iterator[FaultFound]:
        """What breaks a law; nothing for nodes that the sweep did not come to, because it stopped before."""
        for node in reversed(self.graph.nodes):
            if node.kind != "constant":
                yield from self._node_faults(node)
        for changed, into in self._overwritten.items():
            yield self._fault("sum", self._nodes[into], self._changed_text(changed))

    # --------------------------------------------------------------------------------------------------------- listening

    def _visit(self, serial: int, cotangent: Any) -> None:
        self._held.pop(serial, None)
        count = len(self._arrived.get(serial, ()))
        self._visited.setdefault(serial, []).append((count, _copy(cotangent)))

    def _look_for_changes(self, into: int) -> None:
        """Whether adding to one node wrote into the sum of another, which holds the same array."""
        for serial, (array, told) in self._held.items():
            if serial != into and serial not in self._overwritten and not _equal(_numbers(array), told):
                self._overwritten[serial] = into

    # ------------------------------------------------------------------------------------------------------------ judging

    def _node_faults(self, node: Node) -> Iterator[FaultFound]:
        """What is wrong at one node, in the order in which a reader should look."""
        arrivals, visits = self._arrived.get(node.serial, []), self._visited.get(node.serial, [])
        if len(visits) > 1:
            yield self._fault(
                "order", node, f"the sweep visits {_called(node)} {len(visits)} times, and must do so once"
            )
        elif arrivals and visits and (early := self._taken_early(node, arrivals, visits[0])):
            yield early
        elif node.serial not in self._overwritten:
            yield from self._sum_faults(node, arrivals)

    def _taken_early(
        self, node: Node, arrivals: list[Arrival], visit: tuple[int, np.ndarray[Any, Any]]
    ) -> FaultFound | None:
        """A node that did not wait for its last contributions."""
        count, cotangent = visit
        if node.kind == "input":  # told when the sweep is over: what the leaf has shows when it was taken
            taken = [k for k, arrival in enumerate(arrivals, 1) if _close(arrival.total, cotangent, arrivals)]
            count = taken[-1] if taken and not _close(_sum(arrivals), cotangent, arrivals) else len(arrivals)
        if count == len(arrivals):
            return None
        late = self._nodes[arrivals[count].sender]
        reason = (
            f"the sweep takes {_called(node)} after {count} of {len(arrivals)} contributions, before {_called(late)} sends its "
            "own, which is lost: a node comes after all its consumers (reverse_mode.backward_order)"
        )
        return self._fault("order", node, reason)

    def _sum_faults(self, node: Node, arrivals: list[Arrival]) -> Iterator[FaultFound]:
        """The first addition that does not give the sum."""
        for count in range(2, len(arrivals) + 1):
            before, last = arrivals[count - 2], arrivals[count - 1]
            if not _close(last.total, before.total + last.contribution, arrivals):
                yield self._fault("sum", node, self._sum_text(node, before, last, count))
                return

    def _sum_text(self, node: Node, before: Arrival, last: Arrival, count: int) -> str:
        what = f"the sum at {_called(node)} is wrong after contribution {count}, from {_called(self._nodes[last.sender])}: "
        if np.array_equal(last.total, last.contribution):
            return f"{what}it is that contribution alone, and what had arrived before is lost (reverse_mode.accumulate)"
        if np.array_equal(last.total, before.total):
            return f"{what}it did not change, so that contribution is lost (reverse_mode.accumulate)"
        expected = before.total + last.contribution
        place = np.unravel_index(int(np.argmax(np.abs(last.total - expected))), expected.shape)
        return f"{what}got {last.total[place]:.6g}, expected {expected[place]:.6g} (reverse_mode.accumulate)"

    def _changed_text(self, changed: int) -> str:
        into = self._nodes[self._overwritten[changed]]
        return (
            f"adding a contribution at {_called(into)} changed the cotangent of {_called(self._nodes[changed])} as well, which "
            "is the same array: never add in place, make a new array (reverse_mode.accumulate)"
        )

    def _fault(self, blame: Any, node: Node, reason: str) -> FaultFound:
        op = None if node.op is None else node.op.name
        return FaultFound(blame, op, node.id, None, node.source, reason)


def _called(node: Node) -> str:
    return f"{node.name or node.label} (node {node.id})"


def _numbers(value: Any) -> np.ndarray[Any, Any]:
    inner = value.innermost() if isinstance(value, Tensor) else value
    return backend.to_numpy(inner)


def _copy(value: Any) -> np.ndarray[Any, Any]:
    return np.array(_numbers(value))


def _equal(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    return np.array_equal(one, other, equal_nan=True)


def _sum(arrivals: list[Arrival]) -> np.ndarray[Any, Any]:
    return np.asarray(sum((arrival.contribution for arrival in arrivals[1:]), arrivals[0].contribution))


def _close(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any], arrivals: list[Arrival]) -> bool:
    """Equal up to the rounding of a sum of these contributions."""
    if one.shape != other.shape:
        return False
    size = max((float(np.max(np.abs(arrival.contribution), initial=0.0)) for arrival in arrivals), default=0.0)
    allowed = ROUNDING * float(np.finfo(one.dtype).eps) * size
    return bool(np.allclose(one, other, rtol=0.0, atol=allowed, equal_nan=True))
