"""A second array library: its arrays are computed with its own functions only, as those of a GPU are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np


@dataclass(eq=False, repr=False)
class OtherArray:
    """An array of another library than NumPy. NumPy's functions refuse it; operators, and the functions of ``other``, work."""

    _numbers: np.ndarray
    __array_ufunc__ = None

    def __repr__(self) -> str:
        return f"other.array({self._numbers.tolist()}, dtype={str(self.dtype)!r})"

    def __array__(self, *_arguments: Any, **_options: Any) -> NoReturn:
        raise TypeError("NumPy cannot read an array of another library; use the functions of xp")

    def __array_function__(self, function: Any, *_rest: Any) -> NoReturn:
        raise TypeError(f"np.{function.__name__} cannot read an array of another library; use xp.{function.__name__}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _within(getattr(self._numbers, name))


@dataclass(frozen=True, repr=False)
class OtherLibrary:
    """The functions of the other library: those of NumPy, on its own arrays."""

    def __repr__(self) -> str:
        return "other"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _within(getattr(np, name))


def _within(found: Any) -> Any:
    """Something of NumPy's as the other library has it."""
    if isinstance(found, (np.ndarray, np.generic)):
        return OtherArray(np.asarray(found))
    return _wrapped(found) if callable(found) and not isinstance(found, type) else found


def _wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        return _within(function(*map(_numbers, arguments), **{key: _numbers(value) for key, value in options.items()}))

    return call


def _numbers(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        raise TypeError("an array of NumPy met one of another library; make it with the functions of xp")
    return value._numbers if isinstance(value, OtherArray) else value


def _operator(name: str) -> Any:
    def operator(self: OtherArray, *others: Any) -> Any:
        return _within(getattr(self._numbers, name)(*map(_numbers, others)))

    return operator


for _name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "rpow", "neg", "abs", "getitem",
    "lt", "gt", "le", "ge", "eq", "ne",
):  # fmt: skip
    setattr(OtherArray, f"__{_name}__", _operator(f"__{_name}__"))

other = OtherLibrary()


def numbers_of(array: Any) -> np.ndarray:
    """The numbers of an array of either library, for whoever checks it."""
    return array._numbers if isinstance(array, OtherArray) else np.asarray(array)
