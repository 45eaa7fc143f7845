"""Fused groups as NumPy's own functions, run block by block so that what passes between them stays in the cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from .block_programs import BlockProgram, Reduction
from .loop_blocks import cut, merge
from .loop_code import LoopCode
from .loop_programs import GroupProgram
from .numpy_calls import Fact, NumPyCall, Value, prepared, values_in

Array = np.ndarray[Any, Any]

BLOCK_BYTES = 128 * 1024  # of the widest value in a block: half a dozen of them fit a second-level cache of 1 MB
KEPT_BYTES = 4 * 2**20  # of scratch memory, by a loop that does not run
SHARED_BLOCK_BYTES = 512 * 1024  # where several threads work: the interpreter's lock changes hands once a call


class StraightLoop:
    """A group's calls one after the other on whole arrays, with scratch memory that is kept: for small arrays."""

    def __init__(self, program: GroupProgram) -> None:
        facts = program.facts
        calls = [prepared(call, facts) for call in program.calls]
        code = LoopCode(facts.__getitem__, in_place=all(math.prod(fact.shape) != 1 for fact in facts))
        code.names = {number: f"x{number}" for number in range(len(program.inputs))}
        results: dict[int, str] = {}
        self._facts = program.output_facts
        own = {call.result for call in calls}
        later = []
        for place, output in enumerate(program.outputs):
            is_own = isinstance(output, Value) and output.number in own and output.number not in results
            if is_own:
                results[output.number] = f"y{place}"
            else:
                later.append((place, output))
        code.write(calls, results, program.comments)
        for place, output in later:  # an input, a constant, or the same value as another output: a copy of its own
            code.lines.append(f"y{place}[...] = {code.operand(output)}")
        given = [*code.names.values()][: len(program.inputs)], [f"y{place}" for place in range(len(self._facts))]
        self._loop, self.source = code.function([*given[0], *given[1]])
        self._slots: list[Fact] = code.slots
        self._free: list[list[Array]] = []
        self._keeps = sum(math.prod(shape) * dtype.itemsize for shape, dtype in self._slots) <= KEPT_BYTES

    def __call__(self, arrays: Sequence[Any], out: Sequence[Array | None]) -> tuple[Array, ...]:
        """Run on the group's inputs; ``out`` may hold an array for each output."""
        made = out if out and all(one is not None for one in out) else self._made(out)
        free = self._free
        scratch = free.pop() if free else [np.empty(*slot) for slot in self._slots]
        try:
            self._loop(*arrays, *made, *scratch)
        finally:
            if self._keeps:
                free.append(scratch)
        return tuple(made)

    def _made(self, out: Sequence[Array | None]) -> list[Any]:
        if not out:
            return [np.empty(shape, dtype) for shape, dtype in self._facts]
        return [np.empty(*fact) if one is None else one for fact, one in zip(self._facts, out, strict=True)]


# ------------------------------------------------------------------------------------------------------------- in blocks


class Partial:
    """Where the blocks of a reduction go: each into its part of the result, or one number each where nothing is kept."""

    def __init__(self, reduction: Reduction, loop: BlockedLoop) -> None:
        merged, blocks = loop.merged, loop.blocks
        gone = merged.axes(reduction.axes)
        kept = tuple(1 if axis in gone else size for axis, size in enumerate(merged.shape))
        self.reduction = reduction
        self.fact = loop.program.facts[reduction.result]
        self.dtype = reduction.dtype or self.fact.dtype
        self.axes = tuple(axis - blocks.axis for axis in sorted(gone) if axis >= blocks.axis)  # of a block
        self.is_one = len(gone) == len(kept)
        self.shape = (len(blocks.starts),) if self.is_one else kept
        if self.is_one:
            indices: list[tuple[Any, ...]] = [(place,) for place in range(len(blocks.starts))]
        else:
            indices = blocks.indices(kept, reduced=True)
        self.places = [(*index, ...) for index in indices]
        numbers: dict[str, int] = {}
        self.slots = [numbers.setdefault(repr(index), len(numbers)) for index in indices]
        self.is_shared = len(numbers) < len(self.slots)  # whether several blocks go into one part

    def new(self) -> Array:
        """Room for the parts."""
        return np.empty(self.shape, self.dtype)

    def result(self, parts: Array) -> Array:
        """The reduction's result from its parts."""
        total = self.reduction.ufunc.reduce(parts, dtype=self.dtype) if self.is_one else parts
        return np.asarray(total).reshape(self.fact.shape).astype(self.fact.dtype, copy=False)


@dataclass
class Part:
    """A run of a loop's blocks, for one thread."""

    loop: BlockedLoop
    arrays: Sequence[Any]
    fixed: Sequence[Any]
    parts: Sequence[Array]  # of each reduction
    blocks: range
    touched: list[set[int]] = field(default_factory=list)

    def __call__(self) -> None:
        """Run the blocks."""
        loop, arrays, fixed = self.loop, self.arrays, self.fixed
        self.touched = [set() for _ in self.parts]
        with loop.scratch() as scratch:
            for number in self.blocks:
                given = [array[index] for array, index in zip(arrays, loop.indices[number], strict=True)]
                targets, later = self._targets(number)
                loop.body(*given, *fixed, *targets, *scratch[loop.sizes[number]])
                for ufunc, total, part in later:
                    ufunc(total, part, out=total)

    def _targets(self, number: int) -> tuple[list[Array], list[tuple[np.ufunc, Array, Array]]]:
        """Where a block's reductions go: into their place, or beside it where there is something already."""
        targets, later = [], []
        for one, parts, touched in zip(self.loop.partials, self.parts, self.touched, strict=True):
            target = parts[one.places[number]]
            if one.slots[number] in touched:
                total, target = target, np.empty_like(target)
                later.append((one.reduction.ufunc, total, target))
            touched.add(one.slots[number])
            targets.append(target)
        return targets, later


class BlockedLoop:
    """A group's calls on one block after the other."""

    def __init__(self, program: BlockProgram, comments: Mapping[int, str], block_bytes: int = BLOCK_BYTES) -> None:
        self.program, self.comments, self.block_bytes = program, comments, block_bytes
        calls, facts = program.each, program.facts
        own = [call.result for call in calls]
        read = [one for call in calls for one in values_in(call.operands)] + [
            r.operand.number for r in program.reductions
        ]
        outside = dict.fromkeys(one for one in read if one not in set(own))
        self.merged = merge(program.shape, [facts[n].shape for n in outside], [one.axes for one in program.reductions])
        width = max(facts[n].dtype.itemsize for n in (*own, *outside))
        self.blocks = cut(self.merged.shape, max(1, block_bytes // width))
        self.fixed = tuple(n for n in outside if math.prod(facts[n].shape) == 1)
        self.moving = tuple(n for n in outside if n not in self.fixed)
        columns = [self.blocks.indices(self.merged.of(facts[n].shape)) for n in (*self.moving, *program.whole)]
        self.indices = list(zip(*columns, strict=True)) or [()] * len(
            self.blocks.starts
        )  # () where it reads one number only
        self.sizes = self.blocks.sizes()
        self.partials = [Partial(one, self) for one in program.reductions]
        self.body, self.source, self.slots = self.generated()

    def generated(self) -> tuple[Callable[..., None], str, list[Any]]:
        """The function that computes one block, its text, and the dtypes of the scratch memory that it wants."""
        facts = self.program.facts
        code = LoopCode(lambda number: facts[number].dtype)
        code.names = {n: f"x{n}" for n in (*self.moving, *self.fixed)}
        results = {n: f"y{place}" for place, n in enumerate(self.program.whole)}
        results |= {one.reduction.result: f"p{place}" for place, one in enumerate(self.partials)}
        calls = self._with_reductions()
        parameters = self.parameters()
        code.write(calls, results, [self.comments.get(call.result, "") for call in calls])
        return *code.function(parameters), code.slots

    def parameters(self) -> list[str]:
        """The parameters of the body, before its scratch memory."""
        read = [f"x{n}" for n in self.moving], [f"x{n}" for n in self.fixed]
        written = [f"y{place}" for place in range(len(self.program.whole))]
        return [*read[0], *written, *read[1], *(f"p{place}" for place in range(len(self.partials)))]

    def _with_reductions(self) -> list[NumPyCall]:
        """The calls for one block: each reduction stands behind the call that makes what it reads."""
        waiting: dict[int, list[NumPyCall]] = {}
        for one in self.partials:
            r = one.reduction
            options = {"axis": one.axes, "dtype": r.dtype, "keepdims": False}
            call = NumPyCall(r.ufunc.reduce, (r.operand,), options, r.result, writes=True)
            waiting.setdefault(r.operand.number, []).append(call)
        calls = [call for n in (*self.moving, *self.fixed) for call in waiting.get(n, ())]
        for call in self.program.each:
            calls += [call, *waiting.get(call.result, ())]
        return calls

    @contextmanager
    def scratch(self) -> Iterator[dict[int, list[Array]]]:
        """Scratch memory for one thread: for each number of rows that a block can have, the arrays."""
        buffers = [_buffer(self.block_bytes) for _ in self.slots]
        row = self.blocks.block_shape[1:]
        try:
            yield {
                rows: [_as_block(b, dtype, (rows, *row)) for b, dtype in zip(buffers, self.slots, strict=True)]
                for rows in set(self.sizes)
            }
        finally:
            if self.block_bytes == BLOCK_BYTES and len(_spare) < 32:
                _spare.extend(buffers)

    def start(self, arrays: Sequence[Any], out: Sequence[Array | None] = (), count: int = 1) -> Run:
        """Prepare a run in at most ``count`` parts."""
        return Run(self, arrays, out, count)


_spare: list[Array] = []  # blocks of scratch memory that nobody uses now


def _buffer(nbytes: int) -> Array:
    if nbytes == BLOCK_BYTES:
        with suppress(IndexError):
            return _spare.pop()
    return np.empty(nbytes, np.uint8)


def _as_block(buffer: Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    return buffer[: math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)


class Run:
    """One run of a loop. Every part has to be called, in any thread; then ``finish`` gives the outputs."""

    def __init__(self, loop: BlockedLoop, arrays: Sequence[Any], out: Sequence[Array | None], count: int) -> None:
        program = loop.program
        self.loop, self.out = loop, out or [None] * len(program.outputs)
        self.values: dict[int, Any] = dict(enumerate(arrays))
        _run_calls(program.before, self.values)
        for number in program.whole:
            self.values[number] = self._room(number)
        moving = [self._merged(n) for n in (*loop.moving, *program.whole)]
        fixed = [np.asarray(self.values[n]).reshape(()) for n in loop.fixed]
        self.rooms = [one.new() for one in loop.partials]
        self.parts = tuple(
            Part(loop, moving, fixed, self._rooms(place), blocks)
            for place, blocks in enumerate(_split(len(loop.indices), count))
        )

    def _room(self, number: int) -> Array:
        """The array that a value of the loop is written into: the one that was handed over, if its rows lie side by side."""
        for output, given in zip(self.loop.program.outputs, self.out, strict=True):
            if isinstance(output, Value) and output.number == number and given is not None and given.flags.c_contiguous:
                return given
        return np.empty(*self.loop.program.facts[number])

    def _merged(self, number: int) -> Array:
        array, fact = self.values[number], self.loop.program.facts[number]
        return array.reshape(self.loop.merged.of(fact.shape))  # type: ignore[no-any-return]

    def _rooms(self, place: int) -> list[Array]:
        """Where a part's reductions go; the first part's is the run's, as is everything that parts do not share."""
        return [
            one.new() if place and one.is_shared else room
            for one, room in zip(self.loop.partials, self.rooms, strict=True)
        ]

    def finish(self) -> tuple[Array, ...]:
        """Join what the parts have reduced, and compute what comes after the loop."""
        for place, one in enumerate(self.loop.partials):
            if one.is_shared:
                self._join(place, one)
            self.values[one.reduction.result] = one.result(self.rooms[place])
        _run_calls(self.loop.program.after, self.values)
        return tuple(map(self._output, self.loop.program.outputs, self.out))

    def _join(self, place: int, one: Partial) -> None:
        first, *others = self.parts
        total, touched = self.rooms[place], set(first.touched[place])
        where = dict(zip(one.slots, one.places, strict=True))
        for other in others:
            for slot in other.touched[place]:
                part, at = other.parts[place], where[slot]
                total[at] = one.reduction.ufunc(total[at], part[at]) if slot in touched else part[at]
            touched |= other.touched[place]

    def _output(self, output: Value, given: Array | None) -> Array:
        value = self.values[output.number]
        if given is not None and value is not given:
            given[...] = value
            return given
        return value if output.number in self.loop.program.whole else np.array(value)


def _run_calls(calls: Sequence[NumPyCall], values: dict[int, Any]) -> None:
    for call in calls:
        values[call.result] = call.function(*[_given(one, values) for one in call.operands], **call.options)


def _given(operand: Any, values: Mapping[int, Any]) -> Any:
    # not inside of _run_calls: a function that calls itself there would keep all values alive until the collector runs
    if isinstance(operand, Value):
        return values[operand.number]
    return type(operand)(_given(one, values) for one in operand) if type(operand) in (tuple, list) else operand


def _split(blocks: int, count: int) -> list[range]:
    """Ranges of about equally many blocks."""
    count = max(1, min(count, blocks))
    ends = [blocks * place // count for place in range(count + 1)]
    return [range(start, end) for start, end in pairwise(ends)]
