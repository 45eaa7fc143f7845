"""One call of an op as checks see it: fresh operands, the op as a function of what moves, its gradient judged, its text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from . import backend
from .checked_functions import CheckedFunction
from .checks import judged
from .operators import Op
from .reports import GradcheckReport
from .reverse_mode import vjp


@dataclass(frozen=True)
class OpCall:
    """An op with operands (NumPy arrays and Python numbers) and attributes."""

    op: Op
    operands: tuple[Any, ...]
    given: Mapping[str, Any]  # the attributes that the call states
    held: frozenset[int] = frozenset()  # places of operands that no gradient is asked for

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """All attributes, those that the call leaves out at their defaults."""
        defaults = {key: value for key, value in self.op.attributes.items() if not self.op.is_required(key)}
        return {**defaults, **self.given}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The operands' names."""
        return self.op.operand_names(len(self.operands))

    @cached_property
    def arrays(self) -> tuple[int, ...]:
        """The places of the operands that are arrays."""
        return tuple(place for place, operand in enumerate(self.operands) if isinstance(operand, np.ndarray))

    @cached_property
    def moving(self) -> tuple[int, ...]:
        """The places of the operands that a gradient can flow to."""
        if not self.op.is_differentiable:
            return ()
        return tuple(
            place
            for place in self.arrays
            if self.operands[place].dtype.kind == "f"
            and self._input(place) not in self.op.constant_inputs
            and place not in self.held
        )

    @property
    def size(self) -> int:
        """How many numbers go in."""
        return sum(int(np.size(operand)) for operand in self.operands)

    def fresh(self) -> list[Any]:
        """The operands, arrays in memory of their own and laid out as they were."""
        return [_copied(operand) if isinstance(operand, np.ndarray) else operand for operand in self.operands]

    def moved(self, device: str) -> list[Any]:
        """The operands, arrays copied to a device; on ``cpu`` laid out as they were."""
        operands = self.fresh()
        if device != "cpu":
            operands = [backend.asarray(o, device=device) if isinstance(o, np.ndarray) else o for o in operands]
        return operands

    def run(self, operands: Sequence[Any] | None = None) -> Any:
        """The result: an array where the operands are arrays."""
        return self.op.apply(self.fresh() if operands is None else operands, self.given)

    def of_moving(self, *values: Any) -> Any:
        """The result as a function of the operands that gradients flow to; the others are held."""
        operands = self.fresh()
        for place, value in zip(self.moving, values, strict=True):
            operands[place] = value
        return self.run(operands)

    def moving_values(self) -> list[np.ndarray[Any, Any]]:
        """Fresh operands that gradients flow to."""
        operands = self.fresh()
        return [operands[place] for place in self.moving]

    def with_arrays(self, places: Iterable[int], values: Iterable[Any]) -> OpCall:
        """The same call with other operands at some places."""
        operands = list(self.operands)
        for place, value in zip(places, values, strict=True):
            operands[place] = value
        return replace(self, operands=tuple(operands))

    def rule(self, place: int, kind: str = "vjp") -> str:
        """The name of an operand's gradient rule; where it has none of its own, what it is for."""
        name = self.names[place]
        rule = self.op.vjp_rule(name) if kind == "vjp" else self.op.jvp_rule(name)
        return rule.__name__ if rule.__name__ != "<lambda>" else f"the {kind.upper()} rule for {name}"

    def has_rules(self, kind: str) -> bool:
        """Whether every operand that moves has a gradient rule of this kind, ``vjp`` or ``jvp``."""
        return all(self.has_rule(place, kind) for place in self.moving)

    def has_rule(self, place: int, kind: str) -> bool:
        """Whether an operand has a gradient rule of this kind."""
        return self._input(place) in (self.op.vjp_rules if kind == "vjp" else self.op.jvp_rules)

    def checked(self) -> CheckedFunction:
        """The op as a function of what moves, with its inputs called as the op calls them."""
        function = CheckedFunction(self.of_moving, self.moving_values())
        function.name = self.op.name
        function.names = [self.names[place] for place in self.moving]
        return function

    def misfit(self, facts: Sequence[str] = ("shape", "dtype")) -> tuple[int, str] | None:
        """The place of an operand whose contribution has another shape or dtype, and what is wrong; None where all fit."""
        values = self.moving_values()
        result, pull = vjp(self.of_moving, *values)
        for place, value, gradient in zip(self.moving, values, pull(np.ones_like(result)), strict=True):
            for fact in facts:
                got, expected = getattr(gradient, fact, None), getattr(value, fact)
                if got != expected:
                    about = _about_shape(got, expected) if fact == "shape" else _about_dtype(self.names[place])
                    said = f"gives a cotangent of {fact} {got} for {self.names[place]}, whose {fact} is {expected}"
                    return place, f"{self.rule(place)} {said}; {about}"
        return None

    def complaint(self, report: GradcheckReport, kind: str = "vjp") -> str | None:
        """What a report about this call found wrong, with the rule's name; None where nothing is wrong for certain."""
        if report.verdict != "wrong":
            return None
        if report.first is None:
            return " ".join(report.explanations)
        rule = self.blamed(report, kind) or f"a rule of {self.op.name}"
        place, got, expected, _ = report.first.cells
        reasons = [text for text in report.explanations if not text.startswith("The result has ")]
        return " ".join([f"{rule} is wrong: at {place} it gives {got}, differences give {expected}.", *reasons])

    def blamed(self, report: GradcheckReport, kind: str = "vjp") -> str | None:
        """The rule of the first input that a report about this call found wrong."""
        name = "" if report.first is None else report.first.input
        return self.rule(self.names.index(name), kind) if name in self.names else None

    def judged(self, order: int = 1, entries: int = 6, seed: int = 0, cotangent: Any = None) -> GradcheckReport:
        """The gradient rules against differences."""
        return judged(self.checked(), order, entries, seed, cotangent)

    def __str__(self) -> str:
        """The call as a reader can type it, with ``ops`` and ``np``."""
        operands = [written(operand) for operand in self.operands]
        listed = [f"[{', '.join(operands)}]"] if self.op.is_variadic else operands
        name, part = self.op.name.partition(".")[0], self.op.schema.part
        if part and part != self.op.name:  # one choice of optional inputs: the others are left out
            listed = [f"{name}={text}" for name, text in zip(self.names, operands, strict=True)]
        return f"ops.{name}({', '.join([*listed, *(f'{k}={written(v)}' for k, v in self.given.items())])})"

    def _input(self, place: int) -> str:
        return self.op.inputs[0 if self.op.is_variadic else place]


def _about_shape(got: Any, expected: Any) -> str:
    if got is None:
        return "a rule returns an array"
    if len(got) >= len(expected) and _broadcasts(expected, got):
        return "it must be summed over the axes along which the operand was broadcast, as ops.sum_to does"
    if got == expected[::-1]:
        return "transpose it"
    return "a rule gives one number for each number of its operand"


def _about_dtype(name: str) -> str:
    return f"compute in the dtype of g, or cast with ops.astype(…, dtype={name}_dtype)"


def _broadcasts(small: Sequence[int], large: Sequence[int]) -> bool:
    try:
        return np.broadcast_shapes(tuple(small), tuple(large)) == tuple(large)
    except ValueError:
        return False


def _copied(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return array.copy(order="K")
    return strided(array)


def strided(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same numbers in memory of their own with gaps between them.

    >>> strided(np.arange(3)).strides
    (16,)
    """
    return np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else array.copy()


def written(value: Any) -> str:
    """A value as an expression of Python and NumPy.

    >>> written((np.zeros((0, 3)), np.array([1.0, 2.0], "float32"), 0.5))
    "(np.zeros((0, 3)), np.array([1.0, 2.0], 'float32'), 0.5)"
    """
    if isinstance(value, np.ndarray):
        return _written_array(value)
    if isinstance(value, (np.dtype, np.generic)):
        return written(value.name if isinstance(value, np.dtype) else value.item())
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(written, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    if isinstance(value, float) and not np.isfinite(value):
        return "np.nan" if np.isnan(value) else f"{'-' if value < 0 else ''}np.inf"
    return repr(value)


def _written_array(array: np.ndarray[Any, Any]) -> str:
    usual = array.dtype in (np.float64, np.int64, np.bool_)
    if array.size == 0:
        return f"np.zeros({array.shape}{'' if array.dtype == np.float64 else f', {array.dtype.name!r}'})"
    numbers, end = array, ""
    if array.dtype.kind == "f" and array.dtype.itemsize < 8:
        numbers = array.astype(str).astype(np.float64)  # 0.2, not 0.20000000298023224
    if not array.flags.c_contiguous:
        numbers, end = (numbers.T, ".T") if array.flags.f_contiguous else (np.repeat(numbers, 2, axis=-1), "[..., ::2]")
    return f"np.array({written(numbers.tolist())}{'' if usual else f', {array.dtype.name!r}'}){end}"
