"""Programs of a few ops on operands as users have them: broadcast, oddly laid out, read-only, empty, in every float width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from autodiff_lab import ops

Shape = tuple[int, ...]

UNARY: dict[str, Callable[[Any], Any]] = {
    "tanh": ops.tanh, "neg": lambda x: -x, "square": ops.square, "scaled": lambda x: 0.5 * x + 1, "sigmoid": ops.sigmoid,
    "shifted": lambda x: x - np.float64(0.25), "halved": lambda x: x / np.array(2.0), "itself": lambda x: x,
    "divided": lambda x: x / (ops.square(x) + 1),
}  # fmt: skip
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "maximum": ops.maximum,
    "added to": lambda x, y: y + x, "taken from": lambda x, y: y - x,
}  # fmt: skip
ENDS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda x: x, "sum": ops.sum, "rows": lambda x: ops.sum(x, axis=0) if x.ndim else x,
    "columns": lambda x: ops.sum(x, axis=-1, keepdims=True) if x.ndim else x, "flat": lambda x: x.reshape(-1),
    "turned": lambda x: x.T * 2, "mean": lambda x: ops.mean(x) if 0 not in x.shape else ops.sum(x),
}  # fmt: skip
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": lambda x: x.copy(), "Fortran": lambda x: x.copy(order="F"), "backwards": lambda x: backwards(x),
    "with gaps": lambda x: np.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x.copy(), "read-only": lambda x: fixed(x.copy()),
}  # fmt: skip


def backwards(x: Any) -> Any:
    """x with its last number first in memory."""
    turned = (slice(None, None, -1),) * x.ndim
    return x[turned].copy()[turned] if x.ndim else x.copy()


def fixed(x: Any) -> Any:
    """x, read-only."""
    x.setflags(write=False)
    return x


@dataclass(frozen=True)
class Operand:
    """Numbers of some shape and dtype that lie in memory in some way; one operand in three is a constant."""

    shape: Shape
    dtype: str
    layout: str
    seed: int
    is_constant: bool

    def numbers(self) -> Any:
        """The numbers in C order. Whole numbers and truth values are constants, and small enough to widen nothing."""
        return np.random.default_rng(self.seed).uniform(-1.5, 1.5, self.shape).astype(self.dtype)

    def array(self) -> Any:
        """The numbers as they lie."""
        return LAYOUTS[self.layout](self.numbers())


@dataclass(frozen=True)
class Program:
    """Operands, and steps that each compute one more value from an earlier one, and any other or the same once more."""

    operands: tuple[Operand, ...]
    steps: tuple[tuple[str, int, int], ...]
    end: str

    def __call__(self, *operands: Any) -> Any:
        recorded = [x for x, operand in zip(operands, self.operands, strict=True) if not operand.is_constant]
        constants = [x for x, operand in zip(operands, self.operands, strict=True) if operand.is_constant]
        total = sum(recorded[1:], recorded[0])
        for constant in constants:
            total = total * constant + total
        for name, one, other in self.steps:
            x, y = recorded[one % len(recorded)], [*constants, *recorded][other % (len(constants) + len(recorded))]
            recorded.append(UNARY[name](x) if name in UNARY else BINARY[name](x, y))
        return ENDS[self.end](total * recorded[-1])

    @property
    def floating(self) -> Any:
        """The dtype of the widest recorded operand: no result may be wider, none of them be missing from it."""
        return np.result_type(*(operand.dtype for operand in self.operands if not operand.is_constant))


@st.composite
def programs(draw: Any, dtypes: Sequence[str] = ("float16", "float32", "float64")) -> Program:
    """Programs whose operands all broadcast to one shape."""
    rank = draw(st.sampled_from([2, 1, 3, 0]))
    full = tuple(draw(st.lists(st.sampled_from([2, 3, 1, 0]), min_size=rank, max_size=rank)))
    operands = []
    for place in range(draw(st.integers(1, 4))):
        ones = draw(st.lists(st.booleans(), min_size=len(full), max_size=len(full)))
        shape = tuple(1 if one else size for one, size in zip(ones, full, strict=True))[
            draw(st.integers(0, len(full))) :
        ]
        is_constant = place > 0 and draw(st.integers(0, 2)) == 0
        dtype = draw(st.sampled_from((*dtypes[:1], "int8", "bool") if is_constant else dtypes))
        operands.append(
            Operand(shape, dtype, draw(st.sampled_from(sorted(LAYOUTS))), draw(st.integers(0, 999)), is_constant)
        )
    step = st.tuples(st.sampled_from([*BINARY, *UNARY]), st.integers(0, 9), st.integers(0, 9))
    steps = draw(st.lists(step, min_size=1, max_size=5))
    return Program(tuple(operands), tuple(steps), draw(st.sampled_from(sorted(ENDS))))
