"""What of a group's program runs once before a loop over blocks, what for each block, and what once after it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .loop_programs import GroupProgram, NotALoop, Operand, replaced
from .numpy_calls import Fact, NumPyCall, Shape, Value, cast, prepared, select, values_in


@dataclass(frozen=True)
class Reduction:
    """A ufunc along axes of the loop, of a value that is computed block by block."""

    ufunc: np.ufunc
    operand: Value
    axes: frozenset[int]
    dtype: np.dtype[Any] | None  # in which it is computed
    result: int


@dataclass(frozen=True)
class BlockProgram:
    """A group's calls sorted by when they run: once before the loop, for each block, once after it.

    ``whole``: the values of the loop that are written out, in full; those of the group's outputs, and what is read after the
    loop.
    """

    shape: Shape
    facts: tuple[Fact, ...]
    before: tuple[NumPyCall, ...]
    each: tuple[NumPyCall, ...]
    reductions: tuple[Reduction, ...]
    after: tuple[NumPyCall, ...]
    whole: tuple[int, ...]
    outputs: tuple[Operand, ...]


def block_program(program: GroupProgram, shape: Shape) -> BlockProgram:
    """Sort a group's calls for a loop over ``shape``.

    Raises:
        NotALoop: a call can be run neither on blocks nor on its own.
    """
    return _Sorter(program, shape).sorted()


class _Sorter:
    def __init__(self, program: GroupProgram, shape: Shape) -> None:
        self.program, self.shape = program, shape
        self.facts = list(program.facts)
        self.alias: dict[int, Operand] = {}
        self.stage: dict[int, str] = dict.fromkeys(range(len(program.inputs)), "before")
        self.stages: dict[str, list[NumPyCall]] = {"before": [], "each": [], "after": []}
        self.reductions: list[Reduction] = []
        self.whole: dict[int, None] = {}

    def sorted(self) -> BlockProgram:
        for call, node in zip(self.program.calls, self.program.node_of, strict=True):
            names = self._names(call)
            self._place(call.reading(tuple(replaced(one, names) for one in call.operands)), node)
        outputs = tuple(map(self._output, self.program.outputs, self.program.output_facts))
        stages = {name: tuple(prepared(call, self.facts) for call in calls) for name, calls in self.stages.items()}
        return BlockProgram(
            self.shape, tuple(self.facts), stages["before"], stages["each"], tuple(self.reductions), stages["after"],
            tuple(self.whole), outputs,
        )  # fmt: skip

    def _names(self, call: NumPyCall) -> dict[int, Operand]:
        """What a call reads now. Only a function that broadcasts may be given a number in place of a whole array."""
        repeats = isinstance(call.function, np.ufunc) or call.function in (cast, select, np.full, np.broadcast_to)
        return {n: self._standing_for(n) if repeats else self._in_full(n) for n in values_in(call.operands)}

    def _standing_for(self, number: int) -> Operand:
        return self.alias.get(number, Value(number))

    def _in_full(self, number: int) -> Operand:
        operand, fact = self._standing_for(number), self.facts[number]
        if isinstance(operand, Value) and self.facts[operand.number].shape == fact.shape:
            return operand
        self.alias[number] = self._copied(operand, fact)
        return self.alias[number]

    def _place(self, call: NumPyCall, node: int) -> None:
        stages = {self.stage[number] for number in values_in(call.operands)}
        shape, dtype = self.facts[call.result]
        if "after" in stages:
            self._add("after", call)
        elif call.function is np.full and self._is_filling(call.operands[1], dtype):
            self._rename(call.result, call.operands[1], dtype)
        elif call.function is np.broadcast_to and shape == self.shape:
            self.alias[call.result] = call.operands[0]
        elif self._is_reduction(call):
            self._add_reduction(call)
        elif self._is_constant(call):
            self._rename(call.result, call.function(*call.operands, **call.options), dtype)
        elif (same := self._times_one(call)) is not None:
            self.alias[call.result] = same
        elif call.is_elementwise and shape == self.shape:
            self._add("each", call.reading(tuple(map(self._as_value, call.operands))))
        elif "each" not in stages and shape != self.shape:
            self._add("before", call)
        elif self._is_sum_to(node) and "each" in stages:
            self._add_sum_to(call, node)
        else:
            raise NotALoop(f"{call.text()} is neither number by number nor a reduction")

    def _add(self, stage: str, call: NumPyCall) -> None:
        self.stages[stage].append(call)
        self.stage[call.result] = stage
        if stage == "after":
            self.whole |= {one: None for one in values_in(call.operands) if self.stage[one] == "each"}

    def _as_value(self, operand: Operand) -> Operand:
        """A constant array as a value, which blocks are taken from."""
        if not isinstance(operand, np.ndarray) or not operand.ndim:
            return operand
        self.facts.append(Fact(operand.shape, operand.dtype))
        self._add("before", NumPyCall(np.asarray, (operand,), {}, len(self.facts) - 1))
        return Value(len(self.facts) - 1)

    def _is_constant(self, call: NumPyCall) -> bool:
        """Whether a call computes one number from constants, as the gradient of a sum does with its seed."""
        return isinstance(call.function, np.ufunc) and call.is_elementwise and not any(map(_has_axes, call.operands))

    def _times_one(self, call: NumPyCall) -> Value | None:
        """The value that is multiplied by 1, which changes no bit."""
        if call.function is not np.multiply or call.options:
            return None
        ones = [one for one in call.operands if not isinstance(one, Value) and np.ndim(one) == 0 and one == 1]
        others = [one for one in call.operands if isinstance(one, Value)]
        fits = len(ones) == 1 and len(others) == 1 and self.facts[others[0].number] == self.facts[call.result]
        return others[0] if fits else None

    def _is_filling(self, value: Operand, dtype: np.dtype[Any]) -> bool:
        return not isinstance(value, Value) or self.facts[value.number].dtype == dtype

    def _rename(self, result: int, value: Operand, dtype: np.dtype[Any]) -> None:
        self.alias[result] = value if isinstance(value, Value) else np.asarray(value, dtype)

    def _is_reduction(self, call: NumPyCall) -> bool:
        owner = getattr(call.function, "__self__", None)
        return (
            isinstance(owner, np.ufunc) and call.function == owner.reduce and isinstance(call.operands[0], Value)
            and self.facts[call.operands[0].number].shape == self.shape
        )  # fmt: skip

    def _add_reduction(self, call: NumPyCall) -> None:
        axis = call.options.get("axis", 0)
        axes = range(len(self.shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        self._reduced(call.function.__self__, call.operands[0], axes, call.options.get("dtype"), call.result)  # type: ignore[attr-defined]

    def _reduced(self, ufunc: np.ufunc, x: Value, axes: Iterable[int], dtype: Any, result: int) -> None:
        axes = frozenset(one % len(self.shape) for one in axes) if self.shape else frozenset()
        if self.facts[result].dtype == np.float16 and ufunc is np.add:
            dtype = np.dtype(np.float32)  # sums of blocks would be rounded once too often
        self.reductions.append(Reduction(ufunc, x, axes, dtype, result))
        self.stage[result] = "after"

    def _is_sum_to(self, node: int) -> bool:
        op = self.program.graph.nodes[node].op
        return op is not None and op.name == "sum_to" and op.module.startswith(__package__)

    def _add_sum_to(self, call: NumPyCall, node: int) -> None:
        """``sum_to`` of a matrix, which its kernel computes as a product with ones."""
        (x,) = (one for one in call.operands if isinstance(one, Value))
        self._reduced(np.add, x, range(len(self.shape) - len(self.facts[call.result].shape)), None, call.result)

    def _output(self, operand: Operand, fact: Fact) -> Operand:
        """An output as a value of its own: written in the loop, or computed after it."""
        operand = self.alias.get(operand.number, operand) if isinstance(operand, Value) else operand
        stage = self.stage[operand.number] if isinstance(operand, Value) else "before"
        if stage == "after":
            return operand
        if (
            stage == "before" or operand.number in self.whole
        ):  # an input, a constant, or the same value as another output
            operand = self._copied(operand, fact)
        if fact.shape == self.shape:
            self.whole[operand.number] = None
        return operand

    def _copied(self, operand: Operand, fact: Fact) -> Value:
        self.facts.append(fact)
        number = len(self.facts) - 1
        if fact.shape == self.shape:
            given = self._as_value(operand)
            self._add("each", NumPyCall(cast, (given, fact.dtype), {}, number, writes=True, is_elementwise=True))
        else:
            self._add("before", NumPyCall(spread, (operand, fact.shape, fact.dtype), {}, number))
        return Value(number)


def _has_axes(operand: Operand) -> bool:
    """Whether an operand is more than one constant number."""
    return isinstance(operand, Value) or np.ndim(operand) > 0


def spread(value: Any, shape: Shape, dtype: Any) -> Any:
    """A copy of an array or number in another shape and dtype."""
    return np.array(np.broadcast_to(value, shape), dtype)
