"""The memory picture of a plan: steps across, a row for each buffer, a bar for each value as long as it is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from autodiff_lab.graph import Graph

from . import shapes
from .drawing import node_label
from .phase_bars import LETTER
from .plan_bars import Bar, bars_of
from .plots import Axis, Plot
from .routes import Box, Point
from .scene import Pane
from .shapes import shortened
from .values import bytes_text, bytes_unit

if TYPE_CHECKING:
    from autodiff_lab.planning import Plan

ROW, GAP, THIN, HEAD, CURVE, FOOT, RIGHT = 28.0, 8.0, 7.0, 34.0, 96.0, 58.0, 30.0  # px
NARROWEST, LEGIBLE, WIDEST = (
    14.0,
    32.0,
    60.0,
)  # px of a step: of very many, of those whose bars should have room for names
USUAL, LONG, LONGEST = 520.0, 3000.0, 18_000.0  # px of the axis
LOW, MOST_ROWS = 11.0, 14  # px of a row of which there are more than so many
POINT = 7.0  # px of the point of a bar whose memory is taken over


class PlanChart:
    """Where everything stands: the first rows are the buffers, those below them arrays of their own."""

    def __init__(self, plan: Plan, graph: Graph) -> None:
        self.plan, self.graph, self.bars = plan, graph, bars_of(plan, graph)
        self.count = max(len(plan.steps), 1)
        step = max(min(USUAL / self.count, WIDEST), min(LEGIBLE, LONG / self.count), NARROWEST)
        step = min(step, LONGEST / self.count)
        self.across = Axis(0.0, float(self.count), step * self.count)
        titles = [self.title(buffer.number) for buffer in plan.buffers]
        self.left = 30.0 + max(shapes.text_width(text, shapes.DETAIL) for text in [*titles, "x" * 14])

    def title(self, buffer: int) -> str:
        """What stands before a buffer's row."""
        return f"buffer {buffer}, {bytes_text(self.plan.buffers[buffer].nbytes)}"

    @cached_property
    def rows(self) -> int:
        """How many rows there are."""
        return max([len(self.plan.buffers), *(bar.row + 1 for bar in self.bars)])

    @property
    def pane(self) -> Pane:
        """The picture, with no value in sight yet."""
        height = self.top(self.rows) + FOOT
        return Pane(shapes.page(self.left + self.across.length + RIGHT, height, self._parts()), "Memory of the plan")

    def top(self, row: int) -> float:
        """The y of a row; those below the buffers have a heading above them, and are lower where there are many."""
        buffers = len(self.plan.buffers)
        above = HEAD + 20 + CURVE + 66 + (ROW + GAP) * min(row, buffers)
        return above if row < buffers else above + HEAD + (row - buffers) * (self.height(row) + self.gap(row))

    def height(self, row: int) -> float:
        """The height of the bars of a row."""
        return ROW if row < len(self.plan.buffers) or self.rows - len(self.plan.buffers) <= MOST_ROWS else LOW

    def gap(self, row: int) -> float:
        """The space below a row."""
        return GAP if self.height(row) == ROW else GAP / 2

    def x(self, step: float) -> float:
        """Where a step begins."""
        return self.left + self.across.place(step)

    # ----------------------------------------------------------------------------------------------------------- shapes

    def _parts(self) -> Iterator[str]:
        buffers = len(self.plan.buffers)
        yield from self._curves()
        if buffers:
            yield shapes.heading("Buffers", 16, self.top(0) - 14)
        if self.rows > buffers:
            yield shapes.heading("Arrays of their own", 16, self.top(buffers) - 14)
        for buffer in self.plan.buffers:
            yield self._lane(buffer.number)
        for step in self.plan.steps:
            x, y = self.x(step.number), self.top(0) - GAP / 2
            box = Box(0, x, y, self.x(step.number + 1) - x, self.top(self.rows) - y)
            yield shapes.column(moment_key(step.number), box, f"step {step.number}: {step.name}", "")
        yield from self._places()
        yield from map(self._bar, self.bars)
        yield from self._axis(self.top(self.rows))

    def _places(self) -> Iterator[str]:
        """Where the result of each step goes, for the camera: the bar itself may be much longer than what is in sight."""
        results = {bar.first: bar for bar in reversed(self.bars) if not bar.is_inside}
        for step, bar in results.items():
            box = Box(0, self.x(step), self.top(bar.row), self.across.place(1.0), ROW)
            yield shapes.column(f"{step_key(step)}~here", box, "", "")

    def _lane(self, buffer: int) -> str:
        y, text = self.top(buffer), self.title(buffer)
        box = Box(0, self.left, y - GAP / 2, self.across.length, ROW + GAP)
        drawn = shapes.rectangle(box, 0) + shapes.heading(text, self.left - 8, y + ROW / 2 + 5, "detail", "end")
        return shapes.group(buffer_key(buffer), "lane", text, drawn)

    def _bar(self, bar: Bar) -> str:
        node = self.graph.nodes[bar.node]
        start, y = self.x(bar.start) + 1, self.top(bar.row)
        width = max(self.x(bar.end) - 1 - start, 2.0)
        height = self.height(bar.row)
        box = Box(0, start, y + (height - THIN if bar.is_view else 0), width, THIN if bar.is_view else height)
        room = int((width - 8 - POINT * bar.takes_over) / LETTER)
        name = f"inside {node.label}" if bar.is_inside else node.name or node.label
        size = shapes.text_width(shortened(name, max(room, 1)), shapes.DETAIL)
        begin = (
            box.x + 10 + POINT * bar.takes_over + size / 2
        )  # where a long bar begins is where the step is that writes it
        middle = min(box.centre + POINT / 2 * (bar.takes_over + bar.is_taken_over), begin)
        least = len(name) if bar.is_inside else min(len(name), 3)
        is_written = room >= least and not bar.is_view and height == ROW
        text = shapes.heading(shortened(name, room), middle, box.middle + 5, "", "middle") if is_written else ""
        what = "a view" if bar.is_view else bytes_text(bar.nbytes)
        title = f"{name if bar.is_inside else node_label(node, 10**6)}: {what}, steps {bar.first} to {bar.last}"
        return shapes.group(bar.key, f"bar lifetime {node.phase}", title, _outline(box, bar) + text)

    def _curves(self) -> Iterator[str]:
        """The bytes that are in use at each step, and what would be if no memory were used twice."""
        plan = self.plan
        size = bytes_unit(max(plan.bytes_without_reuse, plan.peak_bytes, 1))[1]
        plot = Plot(
            self.across,
            Axis(0.0, max(plan.bytes_without_reuse, plan.peak_bytes, 1) / size, CURVE),
            (self.left, HEAD + 20 + CURVE),
        )
        yield shapes.heading("Memory in use", 16, 26)
        for tick in plot.up.ticks(4):
            x, y = plot.point(0, tick)
            yield shapes.line([(x, y), (x + self.across.length, y)], "grid" if tick else "axis")
            yield shapes.heading(bytes_text(tick * size), x - 8, y + 4, "detail", "end")
        for css, values in (("edge run2", self.fresh), ("edge run1", self.in_use)):
            yield shapes.line(list(_staircase(plot, [value / size for value in values])), css)

    @cached_property
    def in_use(self) -> Sequence[int]:
        """The bytes at each step of the values that are needed then."""
        change = [0] * (self.count + 1)
        for bar in self.bars:
            change[bar.first] += bar.nbytes
            change[bar.last + (0 if bar.is_taken_over else 1)] -= bar.nbytes
        return list(accumulate(change))[:-1]

    @cached_property
    def fresh(self) -> Sequence[int]:
        """The bytes that would be taken up to each step, if every value had memory of its own."""
        taken = [0] * self.count
        for life in self.plan.lifetimes:
            taken[life.first] += life.nbytes
        return list(accumulate(taken))

    def _axis(self, bottom: float) -> Iterator[str]:
        half = self.across.place(0.5)
        for tick in self.across.ticks(max(4, int(self.across.length / 90))):
            if tick == int(tick) and tick < self.count:
                yield shapes.heading(f"{tick:.0f}", self.x(tick) + half, bottom + 18, "detail", "middle")
        yield shapes.line([(self.left, bottom), (self.left + self.across.length, bottom)], "axis")
        yield shapes.heading("step", self.left + self.across.length, bottom + 36, "detail", "end")


def buffer_key(number: int) -> str:
    """The key of a buffer's row.

    >>> buffer_key(2)
    'buffer.2'
    """
    return f"buffer.{number}"


def step_key(number: int) -> str:
    """The key of a step's row in the list."""
    return f"step.{number}"


def moment_key(step: int) -> str:
    """The key of the column that shows where the film is."""
    return f"moment.{step}"


def _outline(box: Box, bar: Bar) -> str:
    """A box; one whose memory is taken over points to the right, into the notch of the one that takes it."""
    if not bar.takes_over and not bar.is_taken_over:
        return shapes.rectangle(box, min(3, box.width / 4, box.height / 2))
    notch, point = POINT * bar.takes_over, POINT * bar.is_taken_over
    right = [(box.right, box.y), (box.right + point, box.middle), (box.right, box.bottom)]
    return shapes.outline([(box.x, box.y), *right, (box.x, box.bottom), (box.x + min(notch, box.width), box.middle)])


def _staircase(plot: Plot, values: Sequence[float]) -> Iterator[Point]:
    for step, value in enumerate(values):
        yield plot.point(step, value)
        yield plot.point(step + 1, value)
