"""Where the values of a plan lie: buffers that several values use one after another, by who reads what for the last time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from . import events
from .events import Receiver
from .graph import Graph
from .layouts import Layout
from .plan_lines import Line, Lines

_WASTE = 2  # a buffer may be so many times larger than what lies in it
_PAGE = 4096  # bytes: below, waste does not matter


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that a plan keeps, for values that live one after another."""

    number: int
    nbytes: int
    device: str


@dataclass(frozen=True, slots=True)
class Lifetime:
    """From which step to which a value is needed, and where it lies. Steps count from 0."""

    node: int  # of the plan's graph; what a kernel computes on the way belongs to its node too
    name: str
    buffer: int | None  # None: an array of its own, as every output has
    nbytes: int
    first: int
    last: int  # an output lives to the end
    in_place_of: int | None  # the node whose place it takes over


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """What lies where. Values are numbers of ``Lines``."""

    buffers: tuple[Buffer, ...]
    buffer_of: Mapping[int, int]
    lifetimes: tuple[Lifetime, ...]
    dropped_after: Mapping[int, tuple[int, ...]]  # by the number of a line: the arrays that nobody reads again
    fixed: frozenset[int]  # views that can be made once, of buffers and constants
    copied: frozenset[int]  # outputs, by place, that have to be copied, because somebody else may hold their memory
    looked_at: frozenset[int]  # outputs, by place, of which only the run knows whether they lie in an input's memory
    given_away: frozenset[int]  # results in C order that leave the plan as they are
    peak_bytes: int  # buffers, and the most bytes that other arrays take at once
    bytes_without_reuse: int


def place_values(
    lines: Lines,
    layout: Layout,
    graph: Graph,
    outputs: Sequence[int | None],
    step_of: Sequence[int],
    workers: int = 1,
    tell: Receiver | None = None,
) -> Memory:
    """Give every value its place.

    Args:
        lines: all calls.
        layout: how their results lie.
        graph: for the names of nodes.
        outputs: the values that the plan returns; None for a constant.
        step_of: the step of each call.
        workers: with more than one a buffer rests as long as possible before it is used again, so that fewer steps wait.
        tell: hears ``BufferTaken`` and ``BufferReleased``.
    """
    placing = _Placing(lines, layout, graph, outputs, step_of, workers, tell)
    for place, line in enumerate(lines.calls):
        placing.take(place, line)
        placing.release(place)
    return placing.memory()


class _Free:
    """Buffers that nobody uses, by size."""

    def __init__(self) -> None:
        self.sizes: list[int] = []  # of all buffers, by number
        self._free: dict[int, deque[int]] = {}  # the one that was released last stands last

    def give(self, buffer: int) -> None:
        """Nobody uses a buffer any more."""
        self._free.setdefault(self.sizes[buffer], deque()).append(buffer)

    def take(self, nbytes: int, oldest_first: bool) -> int:
        """A free buffer that fits, or one that is made to fit, or a new one."""
        there = [size for size, buffers in self._free.items() if buffers]
        fitting = [size for size in there if nbytes <= size <= max(_WASTE * nbytes, _PAGE)]
        near = [size for size in there if size < nbytes <= _WASTE * size]
        if not fitting and not near:
            self.sizes.append(nbytes)
            return len(self.sizes) - 1
        buffers = self._free[min(fitting) if fitting else max(near)]
        chosen = buffers.popleft() if oldest_first else buffers.pop()
        self.sizes[chosen] = max(self.sizes[chosen], nbytes)
        return chosen


class _Placing:
    def __init__(
        self,
        lines: Lines,
        layout: Layout,
        graph: Graph,
        outputs: Sequence[int | None],
        step_of: Sequence[int],
        workers: int,
        tell: Receiver | None,
    ) -> None:
        self.lines, self.graph, self.step_of, self.tell = lines, graph, step_of, tell
        self.oldest_first = workers > 1
        self.nbytes = [_bytes(fact.shape) * fact.dtype.itemsize for fact in lines.facts]
        self.is_c, self.views = layout.is_c, layout.views
        self.shares = _shares(lines)
        self.is_input = [True] * len(lines.facts)
        self.is_whole = [True] * len(lines.facts)  # whether a view has every number of its base once
        self.is_own = [True] * len(lines.facts)  # whether it is made, and not a view of what is there
        self.is_unclear = [False] * len(lines.facts)
        for line in lines.calls:
            for number in line.results:
                self.is_input[number] = False
                self.is_own[number] = line.kind != "view"
                self.is_unclear[number] = line.may_share and line.kind != "view"
                self.is_whole[number] = line.kind != "view" or _keeps_all(line, lines)
        self.copied: set[int] = set()
        self.looked_at: set[int] = set()
        self._share_out(outputs)
        self.kept = {s for o in self._returned(outputs) for s in self.shares[o]}
        self.last = self._last_uses(outputs)
        self.pool = _Free()
        self.buffer_of: dict[int, int] = {}
        self.in_place_of: dict[int, int] = {}
        self.first: dict[int, int] = {}
        self.dropped_after: dict[int, tuple[int, ...]] = {}
        self._ending: dict[int, list[int]] = {}
        for number, place in self.last.items():
            self._ending.setdefault(place, []).append(number)

    # ------------------------------------------------------------------------------------------------------------ outputs

    def _share_out(self, outputs: Sequence[int | None]) -> None:
        """Which outputs would lie in the memory of an input, of another output, or of a larger array."""
        taken: set[int] = set()
        for place, number in enumerate(outputs):
            if number is None:
                continue
            mine = self.shares[number]
            is_unclear = any(self.is_unclear[s] for s in mine)
            is_given = any(self.is_input[s] for s in mine) and not is_unclear
            if taken & mine or is_given or not self.is_whole[number]:
                self.copied.add(place)
                continue
            taken |= mine
            if is_unclear:
                self.looked_at.add(place)

    def _returned(self, outputs: Sequence[int | None]) -> Iterator[int]:
        elsewhere = self.copied | self.looked_at
        return (o for place, o in enumerate(outputs) if o is not None and place not in elsewhere)

    def _last_uses(self, outputs: Sequence[int | None]) -> dict[int, int]:
        """For each piece of memory, by the value that made it, the last line that reads it; an output is read after the end."""
        last: dict[int, int] = {}
        for place, line in enumerate(self.lines.calls):
            for number in (*line.results, *line.reads):
                last.update(dict.fromkeys(self.shares[number], place))
        end = len(self.lines.calls)
        for output in outputs:
            last.update(dict.fromkeys(self.shares[output] if output is not None else (), end))
        return last

    # -------------------------------------------------------------------------------------------------------- line by line

    def take(self, place: int, line: Line) -> None:
        """Give the results of a line their places."""
        for number in line.results:
            self.first[number] = self.step_of[place]
            if not line.writes or not self.is_c[number] or number in self.kept or not self.nbytes[number]:
                continue
            source = self._replaced(place, line, number)
            if source is None:
                self.buffer_of[number] = self.pool.take(self.nbytes[number], self.oldest_first)
            else:
                self.buffer_of[number] = self.buffer_of[source]
                self.in_place_of[number] = source
            if self.tell is not None:
                owner = self.lines.owners[number]
                replaced = None if source is None else self.lines.owners[source]
                buffer, nbytes = self.buffer_of[number], self.nbytes[number]
                self.tell(events.BufferTaken(owner, self.step_of[place], buffer, nbytes, replaced))

    def _replaced(self, place: int, line: Line, result: int) -> int | None:
        """An operand that the result can take the place of, because nobody reads it again.

        Not for one number: NumPy takes 0.7 µs instead of 0.2 where a result of one element overlaps an operand.
        """
        fact = self.lines.facts[result]
        if not line.is_elementwise or self.nbytes[result] == fact.dtype.itemsize:
            return None
        for number in line.reads:
            is_alone = self.shares[number] == {number} and self.last[number] == place
            if is_alone and number in self.buffer_of and self.lines.facts[number] == fact:
                return number
        return None

    def release(self, place: int) -> None:
        """Take back what was read for the last time."""
        ending = self._ending.get(place, ())
        handed_on = {self.in_place_of.get(number) for number in self.lines.calls[place].results}
        for number in ending:
            if number in self.buffer_of and number not in handed_on:
                self.pool.give(self.buffer_of[number])
                if self.tell is not None:
                    owner, step, buffer = self.lines.owners[number], self.step_of[place], self.buffer_of[number]
                    self.tell(events.BufferReleased(owner, step, buffer, self.nbytes[number]))
        self.dropped_after[place] = tuple(n for n in ending if n not in self.buffer_of and not self.is_input[n])

    # ------------------------------------------------------------------------------------------------------------- the end

    def memory(self) -> Memory:
        """What was decided."""
        made = [n for n in self.first if self.is_own[n]]
        own = [n for n in made if n not in self.buffer_of]
        buffers = tuple(Buffer(number, nbytes, "cpu") for number, nbytes in enumerate(self.pool.sizes))
        return Memory(
            buffers,
            self.buffer_of,
            tuple(self._lifetime(number) for number in made),
            self.dropped_after,
            frozenset(self._fixed_views()),
            frozenset(self.copied),
            frozenset(self.looked_at),
            frozenset(n for n in self.kept if self.is_own[n] and self.is_c[n]),
            sum(self.pool.sizes) + self._most_at_once(own),
            sum(self.nbytes[n] for n in made),
        )

    def _fixed_views(self) -> Iterator[int]:
        """Views of buffers, of constants, and of such views."""
        fixed: set[int] = set()
        for line in self.lines.calls:
            there = all(number in fixed or number in self.buffer_of for number in line.reads)
            if line.results[0] in self.views and there:
                fixed.add(line.results[0])
                yield line.results[0]

    def _lifetime(self, number: int) -> Lifetime:
        owner = self.lines.owners[number]
        node, replaced = self.graph.nodes[owner], self.in_place_of.get(number)
        meant = self.lines.value_of.get(owner)
        is_node = getattr(meant, "number", None) == number
        name = node.name or f"{node.label}_{owner}"
        last = self.step_of[min(self.last[number], len(self.step_of) - 1)]
        return Lifetime(
            owner,
            name if is_node else f"inside {name}",
            self.buffer_of.get(number),
            self.nbytes[number],
            self.first[number],
            last,
            None if replaced is None else self.lines.owners[replaced],
        )

    def _most_at_once(self, numbers: Sequence[int]) -> int:
        """The most bytes that arrays of their own take at one time."""
        changes: dict[int, int] = {}
        born = {n: place for place, line in enumerate(self.lines.calls) for n in line.results}
        for n in numbers:
            changes[born[n]] = changes.get(born[n], 0) + self.nbytes[n]
            changes[self.last[n] + 1] = changes.get(self.last[n] + 1, 0) - self.nbytes[n]
        now = most = 0
        for place in sorted(changes):
            now += changes[place]
            most = max(most, now)
        return most


def _bytes(shape: Sequence[int]) -> int:
    size = 1
    for one in shape:
        size *= one
    return size


def _shares(lines: Lines) -> list[frozenset[int]]:
    """For each value the values whose memory it may lie in, itself among them."""
    found = [frozenset((number,)) for number in range(len(lines.facts))]
    for line in lines.calls:
        if line.may_share:
            for number in line.results:
                found[number] = found[number].union(*(found[read] for read in line.reads))
    return found


def _keeps_all(line: Line, lines: Lines) -> bool:
    """Whether the result of a view has as many numbers as its operand, and so each of them once."""
    sizes = {_bytes(lines.facts[number].shape) for number in (*line.reads, *line.results)}
    return line.kind == "view" and len(sizes) == 1
