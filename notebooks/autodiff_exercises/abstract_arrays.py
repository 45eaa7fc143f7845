"""Arrays that know their shape and dtype, and raise where somebody looks at their data: what a shape rule works with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn


class ReadsData(Exception):
    """Somebody looked at the numbers of an array that has none yet."""


@dataclass(frozen=True)
class AbstractArray:
    """An array that will exist when the graph runs. Now there is its shape and its dtype."""

    shape: tuple[int, ...]
    dtype: str = "float32"

    def __repr__(self) -> str:
        return f"abstract({self.shape})" if self.dtype == "float32" else f"abstract({self.shape}, {self.dtype!r})"

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    def __array__(self, *_arguments: Any, **_options: Any) -> NoReturn:
        _refuse("NumPy asked for the numbers")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # Python looks for these itself, and takes no for an answer
            raise AttributeError(name)
        _refuse(f".{name} was asked for")


def _refuse(what: str) -> NoReturn:
    raise ReadsData(f"{what}, but this array has no data yet: it knows its .shape, .ndim and .dtype")


def _refusing(name: str) -> Any:
    def operator(self: AbstractArray, *_others: Any) -> NoReturn:
        _refuse(f"{name} was used")

    return operator


for _name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "matmul", "neg", "abs", "getitem", "iter",
    "float", "int", "bool", "lt", "gt", "le", "ge",
):  # fmt: skip
    setattr(AbstractArray, f"__{_name}__", _refusing(f"__{_name}__"))


def abstract(shape: tuple[int, ...], dtype: str = "float32") -> AbstractArray:
    """An array without data.

    >>> abstract((2, 3)).shape
    (2, 3)
    >>> abstract((2, 3)) + 1
    Traceback (most recent call last):
    autodiff_exercises.abstract_arrays.ReadsData: __add__ was used, but this array has no data yet: it knows its .shape, \
.ndim and .dtype
    """
    return AbstractArray(shape, dtype)
