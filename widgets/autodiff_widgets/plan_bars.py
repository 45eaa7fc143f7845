"""The bars of a plan's memory picture: which value lies in which row, from where to where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autodiff_lab.graph import Graph

from .drawing import key_of

if TYPE_CHECKING:
    from autodiff_lab.lifetimes import Lifetime
    from autodiff_lab.planning import Plan


@dataclass(slots=True)
class Bar:
    """A value on the chart: from where to where, in steps, and how it begins and ends."""

    key: str
    node: int
    row: int
    nbytes: int
    first: int
    last: int
    is_inside: bool  # computed on the way to the node's value, and needed no longer than that
    is_view: bool = False
    takes_over: bool = False  # it lies where its operand lay, which nobody reads again
    is_taken_over: bool = False
    start: float = 0.0
    end: float = 0.0


def bars_of(plan: Plan, graph: Graph) -> Sequence[Bar]:
    """The bars, those of a row in the order in which they use its memory."""
    bars: dict[tuple[int, int | None, bool], Bar] = {}
    latest: dict[int, Bar] = {}  # of each row
    ends: list[int] = []  # of the rows below the buffers
    values = {life.node: life for life in values_of(plan)}
    for life in plan.lifetimes:
        is_inside = values.get(life.node) is not life
        known = bars.get((life.node, life.buffer, True)) if is_inside else None
        if known is not None:  # one bar stands for all that a node computes on the way in one buffer
            known.last = max(known.last, life.last)
            continue
        row = life.buffer if life.buffer is not None else len(plan.buffers) + _free_row(ends, life.first, life.last)
        key = key_of(graph.nodes[life.node]) + (f"~inside.{row}" if is_inside else "")
        bar = Bar(key, life.node, row, life.nbytes, life.first, life.last, is_inside)
        if life.in_place_of is not None and latest[row].node == life.in_place_of:
            bar.takes_over = latest[row].is_taken_over = True
        bars[life.node, life.buffer, is_inside] = latest[row] = bar
    found = list(bars.values())
    _share_steps(found)
    return [*found, *_views(plan, graph, found)]


def _views(plan: Plan, graph: Graph, bars: Sequence[Bar]) -> Iterator[Bar]:
    """A bar for each view of a value that has one: it lies in that value's memory."""
    found = {bar.node: bar for bar in bars if not bar.is_inside}
    last = {node: step.number for step in plan.steps for node in step.reads}
    for step in plan.steps:
        node = graph.nodes[step.nodes[0]]
        base = found.get(node.inputs[0]) if node.inputs else None
        if step.kind == "view" and base is not None and node.id not in found:
            end = last.get(node.id, step.number)
            bar = Bar(key_of(node), node.id, base.row, 0, step.number, end, is_inside=False, is_view=True)
            bar.start, bar.end = step.number, end + 1
            found[node.id] = bar
            yield bar


def values_of(plan: Plan) -> Iterator[Lifetime]:
    """The lifetime of each node's value. Where that is a view, what it lies in was made on the way to it, and lives for it."""
    found: dict[int, Lifetime] = {}
    for life in plan.lifetimes:
        known = found.get(life.node)
        if known is None or not _is_inside(life) or (_is_inside(known) and life.last > known.last):
            found[life.node] = life
    return iter(found.values())


def _is_inside(life: Lifetime) -> bool:
    return life.name.startswith("inside ")


def _free_row(ends: list[int], first: int, last: int) -> int:
    """The first row that is free at a step, from then on taken until another."""
    row = next((row for row, end in enumerate(ends) if end < first), len(ends))
    ends[row : row + 1] = [last]
    return row


def _share_steps(bars: Sequence[Bar]) -> None:
    """Where bars of a row meet in one step, each takes its part of it, in their order."""
    meeting: dict[tuple[int, int], list[Bar]] = {}
    for bar in bars:
        for step in {bar.first, bar.last}:
            meeting.setdefault((bar.row, step), []).append(bar)
    for bar in bars:
        here, there = meeting[bar.row, bar.first], meeting[bar.row, bar.last]
        bar.start = bar.first + here.index(bar) / len(here)
        bar.end = bar.last + (there.index(bar) + 1) / len(there)
