"""Fused groups as one kernel: NumPy's functions block by block, one compiled loop, or one kernel of a device."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, get_args

from . import backend, events
from .block_programs import BlockProgram, block_program
from .blocked_loops import BLOCK_BYTES, SHARED_BLOCK_BYTES, BlockedLoop, StraightLoop
from .compiled_loops import CompiledLoop, OwnTanhLoop, why_not
from .cuda_loops import CudaLoop, CudaPrograms
from .events import Receiver
from .fusion import Fusion, Group
from .graph import Graph
from .loop_programs import GroupProgram, NotALoop, group_program

Loops = Literal["auto", "blocked", "compiled"]
Kind = Literal["blocked NumPy", "compiled loop", "CUDA kernel", "one launch", "op by op"]
Array = Any

# Up to here whole arrays stay in the second-level cache as well as blocks do, and cutting costs more than it saves.
STRAIGHT_BYTES = 4 * BLOCK_BYTES
COMPILED_BYTES = 16 * 1024  # a compiled part pays from here on: starting a loop in blocks takes as long as thirty calls
# Compiling takes 0.1 to 0.6 s, and saves about 0.05 ns for each number of each call. From so many on, that is 2 ms a run.
WORTH_COMPILING = 40_000_000


class Run(Protocol):
    """One run of a loop in parts: every part has to be called, in any thread; then ``finish`` gives the outputs."""

    @property
    def parts(self) -> Sequence[Callable[[], None]]:
        """What has to be called."""

    def finish(self) -> tuple[Array, ...]:
        """What the loop gives, once all parts have run."""


class FusedLoop(ABC):
    """A group as one kernel: called with the values of ``group.inputs``, gives those of ``group.outputs``.

    ``kind`` says what runs, ``why`` why it is that. Calls from several threads at once do not disturb each other.
    """

    kind: Kind
    why: str

    @abstractmethod
    def __call__(self, *arrays: Array, out: Sequence[Array | None] = ()) -> tuple[Array, ...]:
        """Run it; ``out`` may hold an array for each output, which is then written and given. It overlaps no input."""

    @abstractmethod
    def source(self) -> str:
        """What runs, as text."""

    def parts(self, count: int) -> Parts:
        """The same loop in parts that may run at the same time: as many as pay, at most ``count``."""
        return Parts(self, 1)


class Parts:
    """A fused loop in ``count`` parts.

    >>> fusion = ad.fuse(ad.record(lambda x: ops.tanh(2.0 * x).sum(), np.ones(10**6)))
    >>> parts = loop_of(fusion, fusion.groups[0]).parts(2)
    >>> run = parts.start(2.0, np.ones(10**6))
    >>> for part in run.parts:  # each in a thread of its own, where there are threads
    ...     part()
    >>> parts.count, run.finish()
    (2, (array(964027.58007582),))
    """

    def __init__(self, loop: FusedLoop, count: int) -> None:
        self.loop, self.count = loop, count

    def start(self, *arrays: Array, out: Sequence[Array | None] = ()) -> Run:
        """Prepare a run: nothing is computed yet."""
        return _WholeRun(self.loop, arrays, out)


class _WholeRun:
    """A run in one part."""

    def __init__(self, loop: FusedLoop, arrays: Sequence[Array], out: Sequence[Array | None]) -> None:
        self.parts = (self._run,)
        self._given = loop, arrays, out
        self._outputs: tuple[Array, ...] = ()

    def _run(self) -> None:
        loop, arrays, out = self._given
        self._outputs = loop(*arrays, out=out)

    def finish(self) -> tuple[Array, ...]:
        """What the loop gave."""
        return self._outputs


def loop_of(fusion: Fusion, group: Group, loops: Loops = "auto", *, tell: Receiver | None = None) -> FusedLoop:
    """The kernel of a group.

    Args:
        fusion: what ``ad.fuse`` gave.
        group: one of its groups, whose shapes are known.
        loops: on the CPU, ``blocked``: NumPy's functions on blocks that stay in the cache; ``compiled``: Numba compiles what
            is between functions such as exp, where it is installed (the extra ``[jit]``), and tanh in single precision too;
            ``auto``: the same bits as ``blocked``, and compiled where that is paid back within a few hundred runs.
        tell: hears a ``LoopChosen``.

    >>> fusion = ad.fuse(ad.record(lambda x: ops.tanh(2.0 * x) + 1.0, np.ones(3)))
    >>> loop = loop_of(fusion, fusion.groups[0])
    >>> print(loop.kind, loop(2.0, np.array([0.0, 1.0, 2.0]), 1.0))
    blocked NumPy (array([1.        , 1.96402758, 1.9993293 ]),)
    """
    if loops not in get_args(Loops):
        raise ValueError(f"loops must be 'auto', 'blocked' or 'compiled', got {loops!r}")
    loop = _on_device(fusion.graph, group, loops)
    if tell is not None:
        tell(events.LoopChosen(group.number, group.name, loop.kind, loop.why))
    return loop


def _on_device(graph: Graph, group: Group, loops: Loops) -> FusedLoop:
    if group.device == "cpu":
        return _on_cpu(group_program(graph, group), group, loops)
    if len(group.nodes) == 1:
        return OpByOp(graph, group, "it is one op")
    return OneLaunch(graph, group) if group.device.startswith("sim") else _on_cuda(graph, group)


# -------------------------------------------------------------------------------------------------------------- the CPU


def _on_cpu(program: GroupProgram, group: Group, loops: Loops) -> FusedLoop:
    if sum(not call.is_view for call in program.calls) < 2:
        return WholeArrays(program, "op by op", "it is one call")
    try:
        shape = _loop_shape(group)
        width = max(program.graph.nodes[node].dtype.itemsize for node in group.nodes)
        nbytes = math.prod(shape) * width
        if nbytes <= (COMPILED_BYTES if loops == "compiled" else STRAIGHT_BYTES):
            return WholeArrays(program, "blocked NumPy", f"{nbytes} bytes are one block")
        return _in_blocks(block_program(program, shape), program, loops)
    except NotALoop as error:
        return WholeArrays(program, "op by op", str(error))


def _in_blocks(blocks: BlockProgram, program: GroupProgram, loops: Loops) -> FusedLoop:
    if loops == "blocked":
        return NumPyBlocks(blocks, program)
    is_small = loops == "auto" and len(blocks.each) * math.prod(blocks.shape) < WORTH_COMPILING
    reason = "that would save less than 2 ms a run" if is_small else why_not()
    if reason is None:
        try:
            return NumPyBlocks(blocks, program, OwnTanhLoop if loops == "compiled" else CompiledLoop)
        except NotALoop as error:
            reason = str(error)
    return NumPyBlocks(blocks, program, why=reason)


def _loop_shape(group: Group) -> tuple[int, ...]:
    shape = group.shape
    if shape is None or not all(isinstance(size, int) for size in shape):
        raise NotALoop(f"its shape is not known: {shape}")
    return shape  # type: ignore[return-value]


class WholeArrays(FusedLoop):
    """One call after the other on whole arrays."""

    def __init__(self, program: GroupProgram, kind: Kind, why: str) -> None:
        self.kind, self.why = kind, why
        self._loop = StraightLoop(program)

    def __call__(self, *arrays: Array, out: Sequence[Array | None] = ()) -> tuple[Array, ...]:
        """Run the calls."""
        return self._loop(arrays, out)

    def source(self) -> str:
        """The Python that runs."""
        return self._loop.source


class NumPyBlocks(FusedLoop):
    """NumPy's functions, block by block; with ``CompiledLoop`` what is between them is compiled."""

    def __init__(
        self, blocks: BlockProgram, program: GroupProgram, kind: type[BlockedLoop] = BlockedLoop, why: str = ""
    ) -> None:
        self.kind: Kind = "compiled loop" if issubclass(kind, CompiledLoop) else "blocked NumPy"
        self._program, self._kind = blocks, kind
        self._comments = dict(zip((call.result for call in program.calls), program.comments, strict=True))
        self._loop = kind(blocks, self._comments)
        shape, count = self._loop.blocks.block_shape, len(self._loop.sizes)
        self.why = f"{count} blocks of {shape} stay in the cache from one function to the next"
        self.why += f"; not compiled, because {why}" if why else ""

    def __call__(self, *arrays: Array, out: Sequence[Array | None] = ()) -> tuple[Array, ...]:
        """Run all blocks."""
        run = self._loop.start(arrays, out)
        for part in run.parts:
            part()
        return run.finish()

    def source(self) -> str:
        """The Python that runs for each block."""
        return self._loop.source

    def parts(self, count: int) -> Parts:
        """Blocks for each of several threads: larger ones, because the interpreter's lock changes hands at every call."""
        shared = self._kind(self._program, self._comments, SHARED_BLOCK_BYTES)
        return _BlockParts(self, shared, min(count, len(shared.sizes)))


class _BlockParts(Parts):
    def __init__(self, loop: FusedLoop, blocks: BlockedLoop, count: int) -> None:
        super().__init__(loop, count)
        self._blocks = blocks

    def start(self, *arrays: Array, out: Sequence[Array | None] = ()) -> Run:
        return self._blocks.start(arrays, out, self.count)


# ---------------------------------------------------------------------------------------------------------- other devices


class OpByOp(FusedLoop):
    """The ops of a group one after the other, each as its device runs it."""

    kind: Kind = "op by op"

    def __init__(self, graph: Graph, group: Group, why: str) -> None:
        self.why = why
        self._graph, self._group = graph, group
        self._nodes = [graph.nodes[number] for number in group.nodes]

    def __call__(self, *arrays: Array, out: Sequence[Array | None] = ()) -> tuple[Array, ...]:
        """Run the ops; a device's arrays are never written, so ``out`` is not either."""
        values = self._values(arrays)
        for node in self._nodes:
            assert node.op is not None
            values[node.id] = node.op.apply([values[n] for n in node.inputs], node.attributes)
        return tuple(values[number] for number in self._group.outputs)

    def _values(self, arrays: Sequence[Array]) -> dict[int, Any]:
        read = [self._graph.nodes[n] for node in self._nodes for n in node.inputs]
        known = {one.id: one.value for one in read if one.kind == "constant"}
        return known | dict(zip(self._group.inputs, arrays, strict=True))

    def source(self) -> str:
        """The ops."""
        return "\n".join(f"{node.name or node.id} = {node.label}{node.inputs}" for node in self._nodes)


def _on_cuda(graph: Graph, group: Group) -> FusedLoop:
    try:
        program = group_program(graph, group, CudaPrograms())
        return CudaKernel(block_program(program, _loop_shape(group)), program, group)
    except NotALoop as error:
        return OpByOp(graph, group, str(error))


class CudaKernel(FusedLoop):
    """One CUDA kernel for what is number by number; what is reduced is written by it, and reduced by CuPy."""

    kind: Kind = "CUDA kernel"

    def __init__(self, blocks: BlockProgram, program: GroupProgram, group: Group) -> None:
        comments = dict(zip((call.result for call in program.calls), program.comments, strict=True))
        self._loop, self._device = CudaLoop(blocks, comments), group.device
        self.why = f"{len(group.nodes)} ops in one kernel on {group.device}"
        self.why += f", and {len(blocks.reductions)} reductions by CuPy" if blocks.reductions else ""

    def __call__(self, *arrays: Array, out: Sequence[Array | None] = ()) -> tuple[Array, ...]:
        """Launch it on the current stream."""
        with backend.current(self._device):
            return self._loop(backend.library_of(self._device), arrays, out)

    def source(self) -> str:
        """The CUDA C++."""
        return self._loop.source.text


class OneLaunch(OpByOp):
    """All ops of a group in one launch of the simulated device: it reads and writes what the group does, and no more."""

    kind: Kind = "one launch"

    def __init__(self, graph: Graph, group: Group) -> None:
        super().__init__(graph, group, f"{len(group.nodes)} ops in one kernel on {group.device}")

    def __call__(self, *arrays: Array, out: Sequence[Array | None] = ()) -> tuple[Array, ...]:
        """Queue the kernel."""
        outputs = [self._graph.nodes[n] for n in self._group.outputs]
        return backend.simulation().launch_together(  # type: ignore[no-any-return]
            self._group.name, self._nodes, self._values(arrays), outputs
        )
