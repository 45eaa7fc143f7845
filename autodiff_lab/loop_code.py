"""Straight-line Python for the calls of a program: every result that can be is written into a slot of scratch memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from .numpy_calls import NumPyCall, Value, name_of, values_in


@dataclass
class LoopCode:
    """Lines of Python under way: names of values, slots of scratch memory and what is in them.

    ``slot_key`` says for a value which kind of slot it needs; slots of one kind can be used again. ``in_place``: whether a
    ufunc may write into the slot of an operand that nobody needs any more. (Of one number it may not: that takes 0.7 µs where
    another place takes 0.2.)
    """

    slot_key: Callable[[int], Hashable]
    in_place: bool = True
    names: dict[int, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    slots: list[Any] = field(default_factory=list)
    namespace: dict[str, Any] = field(default_factory=dict)
    _slot_of: dict[int, int] = field(default_factory=dict)
    _free: dict[Hashable, list[int]] = field(default_factory=dict)
    _roots: dict[int, frozenset[int]] = field(default_factory=dict)
    _constants: dict[Hashable, str] = field(default_factory=dict)

    def write(self, calls: Sequence[NumPyCall], results: Mapping[int, str], comments: Sequence[str]) -> None:
        """Write the lines of calls; ``results`` names the arrays that some values are written into."""
        last = self._last_uses(calls)
        ending: dict[int, list[int]] = {}
        for number, place in last.items():
            ending.setdefault(place, []).append(number)
        for place, (call, comment) in enumerate(zip(calls, comments, strict=True)):
            over = [one for one in ending.get(place, ()) if one in self._slot_of]
            target = results.get(call.result)
            if target is None and call.writes:
                target = self._slot(call, over)
            self.write_line(call, target, comment)
            for number in over:
                self._release(number)
            if call.result not in last and call.result in self._slot_of:  # nobody reads it
                self._release(call.result)

    def _last_uses(self, calls: Sequence[NumPyCall]) -> dict[int, int]:
        """For each value, the place of the last call that reads it or a view of it."""
        last: dict[int, int] = {}
        for place, call in enumerate(calls):
            read = values_in(call.operands)
            roots = frozenset().union(*(self._roots.get(one, frozenset([one])) for one in read))
            self._roots[call.result] = roots if call.is_view else frozenset([call.result])
            last |= dict.fromkeys([*read, *roots], place)
        return last

    def _slot(self, call: NumPyCall, over: Sequence[int]) -> str:
        """The slot that a result is written into: that of an operand which ends here, one that is free, or a new one."""
        key = self.slot_key(call.result)
        if self.in_place and isinstance(call.function, np.ufunc) and call.is_elementwise:
            for number in over:
                slot = self._slot_of[number]
                if self.slots[slot] == key and Value(number) in call.operands:
                    self._slot_of[call.result] = self._slot_of.pop(number)
                    return f"s{slot}"
        free = self._free.get(key)
        if free:
            self._slot_of[call.result] = free.pop()
        else:
            self.slots.append(key)
            self._slot_of[call.result] = len(self.slots) - 1
        return f"s{self._slot_of[call.result]}"

    def _release(self, number: int) -> None:
        slot = self._slot_of.pop(number, None)
        if slot is not None:
            self._free.setdefault(self.slots[slot], []).append(slot)

    def write_line(self, call: NumPyCall, target: str | None, comment: str = "") -> None:
        """Write one call, into the array named ``target`` if there is one."""
        function, given = (
            self.named(call.function, name_of(call.function)),
            [self.operand(one) for one in call.operands],
        )
        owner = getattr(call.function, "__self__", None)
        if isinstance(owner, np.ufunc) and call.function == owner.reduce:
            axis, dtype, keepdims = (call.options.get(name) for name in ("axis", "dtype", "keepdims"))
            line = f"{function}({given[0]}, {axis!r}, {self.operand(dtype)}, {target}, {bool(keepdims)})"
        else:
            given += [f"{name}={self.operand(value)}" for name, value in call.options.items()]
            if target is not None and call.writes:
                given.append(target if self._by_place(call) else f"out={target}")
            line = f"{function}({', '.join(given)})"
        if target is None or not call.writes:
            name = target or f"t{call.result}"
            line = f"{name}[...] = {line}" if target else f"{name} = {line}"
        self.names[call.result] = target or f"t{call.result}"
        self.lines.append(f"{line}  # {comment}" if comment else line)

    @staticmethod
    def _by_place(call: NumPyCall) -> bool:
        """Whether ``out`` may be passed without its name, which takes less time."""
        is_plain = isinstance(call.function, np.ufunc) and not call.options
        return is_plain and call.function not in (np.maximum, np.minimum)  # since NumPy 2.4 these two want the name

    def operand(self, operand: Any) -> str:
        """An operand as it stands in the code."""
        if isinstance(operand, Value):
            return self.names[operand.number]
        if operand is None or type(operand) in (int, bool, str):
            return repr(operand)
        if type(operand) in (tuple, list) and values_in(operand):
            inner = ", ".join(map(self.operand, operand)) + ","
            return f"({inner})" if type(operand) is tuple else f"[{inner}]"
        return self._constant(operand)

    def _constant(self, value: Any) -> str:
        is_number = isinstance(value, np.ndarray) and value.ndim == 0
        key: Hashable = (value.dtype, value.tobytes()) if is_number else id(value)
        if key not in self._constants:
            self._constants[key] = f"c{len(self._constants)}"
            self.namespace[self._constants[key]] = value
        return self._constants[key]

    def named(self, function: Any, name: str) -> str:
        """The name under which the code calls a function."""
        known = self._constants.get(("function", function))
        if known is None:
            known = name.removeprefix("np.").replace(".", "_")
            while known in self.namespace:
                known += "_"
            self.namespace[known] = function
            self._constants["function", function] = known
        return known

    def function(self, parameters: Sequence[str]) -> tuple[Callable[..., None], str]:
        """The compiled function of the lines, and its text."""
        given = ", ".join([*parameters, *(f"s{number}" for number in range(len(self.slots)))])
        body = "\n    ".join(self.lines or ["pass"])
        source = f"def loop({given}):\n    {body}\n"
        exec(_compiled(source), self.namespace)
        return self.namespace["loop"], source


@lru_cache(maxsize=256)
def _compiled(source: str) -> CodeType:
    """Python's code for a loop; compiling takes 0.2 ms, and every backward sweep of a training loop may want the same."""
    return compile(source, "<fused loop>", "exec")
