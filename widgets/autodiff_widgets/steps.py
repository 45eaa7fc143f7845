"""Frames built one step after the other, with what lasts and what shows for one step only; and lists that change with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from . import shapes
from .questions import spread
from .routes import Box
from .scene import Change, Frame, Pane, Question, State
from .shapes import Text


class Steps:
    """Collects frames. A passing change is taken back in the frame after it, and of many questions a dozen are asked.

    >>> steps = Steps("Before the first step.")
    >>> steps.add("It runs.", passing=[Change("n1", "active")])
    >>> steps.add("It has run.", [Change("n1", "done")])
    >>> [frame.changes for frame in steps.frames[1:]]
    [(Change(element='n1', state='active', texts={}),), (Change(element='n1', state='done', texts={}),)]
    """

    def __init__(self, caption: str, changes: Iterable[Change] = ()) -> None:
        self._frames: list[Frame] = []
        self._lasting: dict[str, State] = {}
        self._passing: dict[str, State] = {}
        self.add(caption, changes)

    @property
    def frames(self) -> tuple[Frame, ...]:
        """All frames so far."""
        return spread(self._frames)

    def add(
        self,
        caption: str,
        lasting: Iterable[Change] = (),
        passing: Iterable[Change] = (),
        focus: str | None = None,
        source: str | None = None,
        question: Question | None = None,
    ) -> None:
        """Add a frame: what the frame before showed in passing goes back, then ``lasting``, then ``passing`` on top."""
        merged = {element: Change(element, self._lasting.get(element, "idle")) for element in self._passing}
        self._passing = {}
        for change in lasting:
            if change.state is not None:
                self._lasting[change.element] = change.state
            merged[change.element] = _merged(merged.get(change.element), change)
        for change in passing:
            if change.state is not None:
                self._passing[change.element] = change.state
            merged[change.element] = _merged(merged.get(change.element), change)
        self._frames.append(Frame(caption, tuple(merged.values()), focus, source, question))


def _merged(first: Change | None, second: Change) -> Change:
    return second if first is None else first.then(second)


class Row(NamedTuple):
    """One entry of a list: its text and its state."""

    text: str
    state: State = "idle"


class Listing:
    """A list drawn with a fixed number of rows. What does not fit is counted: below the first entries, or above the last ones.

    >>> queue = Listing("queue", "Queue", count=2)
    >>> [change.texts["text"] for change in queue.show([7, 8, 9], lambda place, node: Row(f"node {node}"))]
    ['node 7', '… 2 more']
    >>> queue.show([7, 8, 9], lambda place, node: Row(f"node {node}"))  # nothing changed
    ()
    """

    WIDTH, HEIGHT, GAP = 190.0, 30.0, 4.0

    def __init__(self, name: str, title: str, count: int, end: bool = False) -> None:
        self.title, self.end = title, end
        self._keys = [f"{name}.{place}" for place in range(count)]
        self._shown = [Row("")] * count

    @property
    def pane(self) -> Pane:
        """The picture of the empty list."""
        return listings_pane(self.title, self)

    @property
    def height(self) -> float:
        """The px that it takes in a pane."""
        return 50 + (self.HEIGHT + self.GAP) * len(self._keys)

    def parts(self, top: float = 0.0) -> list[str]:
        """The shapes of the empty list, from ``top`` on."""
        step = self.HEIGHT + self.GAP
        rows = [
            shapes.row(
                key, Box(place, 16, top + 46 + step * place, self.WIDTH, self.HEIGHT), [Text("", "label", "text")]
            )
            for place, key in enumerate(self._keys)
        ]
        return [shapes.heading(self.title, 16, top + 32), *rows]

    def show(self, entries: Sequence[int], row: Callable[[int, int], Row]) -> tuple[Change, ...]:
        """The changes that make the list show these entries; ``row(place, entry)`` is asked for those that are seen."""
        rows = self._window(entries, row)
        changes = tuple(
            Change(key, new.state, {"text": shapes.shortened(new.text, 22)})
            for key, old, new in zip(self._keys, self._shown, rows, strict=True)
            if old != new
        )
        self._shown = rows
        return changes

    def _window(self, entries: Sequence[int], row: Callable[[int, int], Row]) -> list[Row]:
        count, total = len(self._keys), len(entries)
        if total <= count:
            return [row(place, entry) for place, entry in enumerate(entries)] + [Row("")] * (count - total)
        if self.end:  # a full list starts again, so that most steps change one row and not all of them
            hidden = count + (total - count - 1) // (count - 1) * (count - 1)
            rows = [Row(f"… {hidden} before"), *(row(place, entries[place]) for place in range(hidden, total))]
            return rows + [Row("")] * (count - len(rows))
        rows = [row(place, entries[place]) for place in range(count - 1)]
        return [*rows, Row(f"… {total - count + 1} more")]


def listings_pane(label: str, *listings: Listing) -> Pane:
    """Lists below each other in one picture."""
    parts, top = [], 0.0
    for listing in listings:
        parts += listing.parts(top)
        top += listing.height
    return Pane(shapes.page(Listing.WIDTH + 32, top + 6, parts), label)
