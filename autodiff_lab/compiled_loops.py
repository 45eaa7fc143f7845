"""Fused groups with loops that Numba compiles: arithmetic in registers, NumPy's own functions for everything else.

What passes between two compiled parts, or between one and a function such as exp, is a block of scratch memory. NumPy's vector
code for exp is faster than what Numba makes of the C library's, and so the numbers are those of NumPy bit by bit. Who asks for
it gets an exception (``OwnTanhLoop``): tanh in single precision, which took most of such loops' time, as a quotient of
polynomials (``rational_tanh``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from .block_programs import BlockProgram
from .blocked_loops import BlockedLoop
from .loop_blocks import aligned
from .loop_code import LoopCode
from .loop_programs import NotALoop
from .numpy_calls import DType, Fact, NumPyCall, Value, cast, select, values_in
from .rational_tanh import tanh

# NumPy's ufuncs as Python writes them for two numbers. Each gives NumPy's bits: no function of the C library is among them.
_BETWEEN = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "less": "<", "less_equal": "<=", "greater": ">",
            "greater_equal": ">=", "equal": "==", "not_equal": "!="}  # fmt: skip
SPELLINGS = {
    **{name: f"{{0}} {sign} {{1}}" for name, sign in _BETWEEN.items()},
    "negative": "-{0}",
    "positive": "{0}",
    "square": "{0} * {0}",
    "reciprocal": "{one} / {0}",
    "absolute": "abs({0})",
    "maximum": "{0} if {0} > {1} or {0} != {0} else {1}",
    "minimum": "{0} if {0} < {1} or {0} != {0} else {1}",
}
Spellings = Mapping[str, str]
NUMBERS = ("float32", "float64")  # whole numbers overflow in ways of their own, and Numba has no half precision


def why_not() -> str | None:
    """Why nothing can be compiled here; None where it can, and then Numba is loaded."""
    if not find_spec("numba"):
        return "Numba is not installed (pip install 'autodiff-lab[jit]')"
    try:
        import_module("numba")
    except ImportError as error:  # such as one that is older than this NumPy
        return f"Numba cannot be loaded: {error}"
    return None


def spelling(call: NumPyCall, facts: Sequence[Fact], own: Spellings) -> tuple[str, tuple[DType, ...]] | None:
    """A call as an expression with ``{0}``, ``{1}`` for its operands, and their dtypes there; None: it stays NumPy's.

    ``own``: further functions in single precision, which need not give NumPy's bits.
    """
    kinds = [facts[o.number].dtype if isinstance(o, Value) else getattr(o, "dtype", None) for o in call.operands]
    result = facts[call.result].dtype
    if call.function is cast:
        return ("{0}", (result,)) if _is_known(kinds[0]) and result.name in NUMBERS else None
    if not all(map(_is_known, kinds)):
        return None
    if call.function is select:
        return ("{1} if {0} else {2}", (np.dtype(bool), result, result)) if result.name in NUMBERS else None
    if not isinstance(call.function, np.ufunc) or call.options:
        return None
    loop = call.function.resolve_dtypes((*kinds, None))[:-1]
    known = {**SPELLINGS, **own} if result == np.float32 else SPELLINGS
    fits = all(one.name in NUMBERS for one in loop) and call.function.__name__ in known
    return (known[call.function.__name__], loop) if fits else None


def _is_known(dtype: DType | None) -> bool:
    """Whether compiled code reads numbers of a dtype; None is that of a Python number, or of something that is no array."""
    return dtype is not None and dtype.name in (*NUMBERS, "bool")


class CompiledLoop(BlockedLoop):
    """A loop in blocks whose arithmetic is compiled.

    Raises:
        NotALoop: nothing of it can be, says why.
    """

    own: ClassVar[Spellings] = {}

    def generated(self) -> tuple[Callable[..., None], str, list[Any]]:
        """The function that computes one block: compiled parts, calls of NumPy between them, then the reductions."""
        stages = _stages(self.program, self.own)
        if not any(is_compiled and len(calls) > 1 for is_compiled, calls in stages):
            raise NotALoop("Numba would compile no two calls of it together")
        code = _Body(self)
        for is_compiled, calls in stages:
            code.compiled(calls) if is_compiled else code.called(calls)
        code.reduced()
        function, source = code.code.function(self.parameters())
        return function, "\n".join([*code.texts, source]), code.code.slots


class OwnTanhLoop(CompiledLoop):
    """A compiled loop that computes tanh in single precision itself."""

    own: ClassVar[Spellings] = {"tanh": "tanh({0})"}


def _stages(program: BlockProgram, own: Spellings) -> list[tuple[bool, list[NumPyCall]]]:
    """The calls in stages, compiled ones and NumPy's by turns: NumPy's as early as they can be, compiled ones as late.

    So what a compiled part does not need for a function of NumPy is computed in the last part, and little is carried over.
    """
    facts = program.facts
    spelled = {call.result: spelling(call, facts, own) is not None for call in program.each}
    early: dict[int, int] = {}
    for call in program.each:  # compiled stages have even numbers
        stage = max((early.get(n, 0) for n in values_in(call.operands)), default=0)
        early[call.result] = stage + (stage % 2 == spelled[call.result])
    end = max(early.values(), default=0)
    late = {n: end - end % 2 if spelled[n] else stage for n, stage in early.items()}
    for call in reversed(program.each):
        for n in values_in(call.operands):
            if spelled.get(n):
                stage = late[call.result]
                late[n] = min(late[n], stage if spelled[call.result] else stage - 1)
    stages = [
        (place % 2 == 0, [call for call in program.each if late[call.result] == place]) for place in range(end + 1)
    ]
    return [(is_compiled, calls) for is_compiled, calls in stages if calls]


class _Body:
    """The Python of one block under way."""

    def __init__(self, loop: CompiledLoop) -> None:
        self.loop, self.program, self.facts = loop, loop.program, loop.program.facts
        self.code = LoopCode(lambda number: self.facts[number].dtype)
        self.code.names = {n: f"x{n}" for n in (*loop.moving, *loop.fixed)}
        self.code.names |= {n: f"y{place}" for place, n in enumerate(self.program.whole)}
        self.texts: list[str] = []
        self.reads: dict[int, int] = {}
        for call in self.program.each:
            for n in values_in(call.operands):
                self.reads[n] = self.reads.get(n, 0) + 1
        for one in self.program.reductions:
            self.reads[one.operand.number] = self.reads.get(one.operand.number, 0) + 1

    def called(self, calls: Sequence[NumPyCall]) -> None:
        """Calls that stay calls of NumPy, each into scratch memory of its own."""
        for call in calls:
            target = self._target(call) if call.writes else None
            self.code.write_line(call, target, self.loop.comments.get(call.result, ""))

    def _target(self, call: NumPyCall) -> str:
        """Where a function of NumPy writes: over its operand, if that is scratch memory that nothing else reads."""
        for operand in call.operands if isinstance(call.function, np.ufunc) else ():
            if isinstance(operand, Value) and call.result not in self.code.names:
                name, n = self.code.names[operand.number], operand.number
                if name.startswith("s") and self.reads[n] == 1 and self.facts[n].dtype == self.facts[call.result].dtype:
                    self.code.names[call.result] = name
        return self._place(call.result)

    def compiled(self, calls: Sequence[NumPyCall]) -> None:
        """Calls that become one loop of Numba's."""
        own = {call.result for call in calls}
        inside = [n for call in calls for n in values_in(call.operands)]
        read = [n for n in dict.fromkeys(inside) if n not in own]
        written = [n for n in own if inside.count(n) < self.reads.get(n, 0) or n in self.program.whole]
        names = [self.code.names[n] for n in read] + [self._place(n) for n in written]
        function, text = _Part(self, calls, read, written).compiled()
        self.texts.append(text)
        self.code.lines.append(f"{self.code.named(function, f'part{len(self.texts)}')}({', '.join(names)})")

    def reduced(self) -> None:
        """The reductions, by NumPy: it adds in pairs, which is more exact than one sum after the other."""
        for place, one in enumerate(self.loop.partials):
            r = one.reduction
            options = {"axis": one.axes, "dtype": r.dtype, "keepdims": False}
            self.code.write_line(NumPyCall(r.ufunc.reduce, (r.operand,), options, r.result, writes=True), f"p{place}")

    def _place(self, number: int) -> str:
        if number not in self.code.names:
            self.code.slots.append(self.facts[number].dtype)
            self.code.names[number] = f"s{len(self.code.slots) - 1}"
        return self.code.names[number]

    def patterns(self, read: Sequence[int]) -> dict[int, tuple[bool, ...]]:
        """For each operand which of a block's axes it has."""
        merged, axis = self.loop.merged, self.loop.blocks.axis
        shapes = {n: merged.of(aligned(self.facts[n].shape, len(self.program.shape)))[axis:] for n in read}
        return {n: tuple(size != 1 for size in shape) for n, shape in shapes.items()}


class _Part:
    """One compiled function: nested loops over rows, which is what Numba can vectorise, around the expressions of calls."""

    def __init__(self, body: _Body, calls: Sequence[NumPyCall], read: Sequence[int], written: Sequence[int]) -> None:
        self.calls, self.read, self.written = calls, read, written
        self.facts, self.comments, self.own = body.facts, body.loop.comments, body.loop.own
        self.fixed = [n for n in read if n in body.loop.fixed]
        self.depth = len(body.loop.blocks.block_shape)
        self.patterns = body.patterns(read) | dict.fromkeys(written, (True,) * self.depth)
        self.views = {n: f"a{n}" for n in (*read, *written) if n not in self.fixed}
        self.lines = [f"    v{n} = a{n}[()]" for n in self.fixed]
        self.constants: dict[str, Any] = {}
        for axis in range(self.depth):
            self._open(axis)
        for n in self._arrays(varies=True):
            self._line(self.depth, f"v{n} = {self._element(n)}")
        for call in calls:
            self._write(call)

    def compiled(self) -> tuple[Callable[..., None], str]:
        """The function, which takes what it reads and then what it writes, and its text."""
        given = ", ".join(f"a{n}" for n in (*self.read, *self.written))
        source = "\n".join([f"def part({given}):", *self.lines, ""])
        return _function(source, self.constants), source

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("    " * (depth + 1) + text)

    def _arrays(self, varies: bool) -> list[int]:
        """The arrays that are read and do, or do not, vary along the last axis."""
        return [n for n in self.read if n not in self.fixed and self.patterns[n][-1] is varies]

    def _element(self, n: int) -> str:
        return f"{self.views[n]}[i{self.depth - 1}]"

    def _open(self, axis: int) -> None:
        """The loop over one axis; before the last one, what is the same in all of a row."""
        is_last, length = axis == self.depth - 1, f"{self.views[self.written[0]]}.shape[0]"
        for n in self._arrays(varies=False) if is_last else ():
            self._line(axis, f"v{n} = {self.views[n]}[0]")
        self._line(axis, f"for i{axis} in range({length}):")
        for n, view in self.views.items() if not is_last else ():
            self._line(axis + 1, f"a{n}_{axis} = {view}[{f'i{axis}' if self.patterns[n][axis] else 0}]")
            self.views[n] = f"a{n}_{axis}"

    def _write(self, call: NumPyCall) -> None:
        found, dtype, n = spelling(call, self.facts, self.own), self.facts[call.result].dtype, call.result
        assert found is not None
        template, kinds = found
        given = [self._operand(one, kind) for one, kind in zip(call.operands, kinds, strict=False)]
        text = template.format(*given, one=f"{dtype.name}(1)")
        typed = text if dtype == np.bool_ else f"{dtype.name}({text})"
        self._line(self.depth, f"v{n} = {typed}  # {self.comments.get(n, '')}")
        if n in self.written:
            self._line(self.depth, f"{self._element(n)} = v{n}")

    def _operand(self, operand: Any, dtype: DType) -> str:
        """An operand in an expression, converted to the dtype in which NumPy computes."""
        if isinstance(operand, Value):
            name = f"v{operand.number}"
            return name if self.facts[operand.number].dtype == dtype else f"{dtype.name}({name})"
        name = f"c{len(self.constants)}"
        self.constants[name] = operand.astype(dtype)[()]
        return name


_functions: dict[Hashable, Callable[..., None]] = {}  # compiled before: the layers of a network have the same groups


def _function(source: str, constants: dict[str, Any]) -> Callable[..., None]:
    """The compiled function of a source; of sources that differ in their comments only there is one."""
    code = "\n".join(line.partition("  #")[0] for line in source.splitlines())
    key = code, tuple((name, value.dtype, value.tobytes()) for name, value in constants.items())
    if key not in _functions:
        numba = import_module("numba")
        options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
        namespace = {"float32": numba.float32, "float64": numba.float64, "bool": bool, **constants}
        if "tanh(" in code:
            namespace["tanh"] = numba.njit(**options, fastmath={"contract"})(tanh)  # a product and a sum rounded once
        exec(compile(source, "<compiled loop>", "exec"), namespace)
        if len(_functions) >= 500:
            _functions.clear()
        _functions[key] = numba.njit(**options)(namespace["part"])
    return _functions[key]
