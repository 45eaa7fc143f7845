"""A function under check: its floating inputs, result and gradients as flat lists of arrays, copied at every call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from . import ops
from .backend import is_array, to_numpy
from .bindings import OpError, device_of, dtype_of
from .recording import leaf_names, parameter_names
from .reverse_mode import vjp
from .tensors import Tensor
from .trees import flatten

Arrays = list[np.ndarray]
Pull = Callable[
    [Sequence[np.ndarray], np.ndarray], list[Arrays]
]  # values, cotangents -> for each cotangent, each gradient


class WrongShapeError(ValueError):
    """A gradient does not have the shape that it must have."""


class CheckedFunction:
    """A function at a point. The floating leaves of its arguments are what is checked; everything else is held.

    ``given`` has the checked inputs as they came, ``point`` the same in float64, ``names`` how they are called. ``pull`` gives
    the gradients to check.
    """

    def __init__(
        self, f: Callable[..., Any], arguments: Sequence[Any], by_hand: Callable[..., Any] | None = None
    ) -> None:
        self.f, self.name = f, getattr(f, "__name__", type(f).__name__)
        leaves, self._structure = flatten(tuple(arguments))
        self._devices = [device_of(leaf) for leaf in leaves]
        self._leaves = [to_numpy(leaf.innermost()) if _is_host_tensor(leaf) else leaf for leaf in leaves]
        self._places = [place for place, leaf in enumerate(self._leaves) if _is_floating(leaf)]
        if not self._places:
            seen = ", ".join(sorted({type(leaf).__name__ for leaf in leaves})) or "none"
            raise ValueError(f"gradcheck of {self.name}: expected a floating input, got {seen}; write 1.0 instead of 1")
        parts = zip(parameter_names(f, len(arguments)), self._structure.parts, strict=True)
        every_name = [name for argument, part in parts for name in leaf_names(argument, part)]
        self.names = [every_name[place] for place in self._places]
        self.given = [np.array(_numbers(self._leaves[place])) for place in self._places]
        self.point = [value.astype(np.float64) for value in self.given]
        self._narrows = by_hand is None and self._refuses_float64()
        self._wraps = by_hand is None or self._needs_tensors()
        self._check_result()
        self.pull: Pull = self._by_rules if by_hand is None else lambda *asked: self._by_hand(by_hand, *asked)

    def arguments(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """All arguments, with ``values`` for the checked leaves, each on its device."""
        given = list(self._leaves)
        for place, value, own in zip(self._places, values, self.given, strict=True):
            narrow = ops.astype(value, dtype=own.dtype) if self._narrows else value
            given[place] = moved(narrow, self._devices[place])
        found: tuple[Any, ...] = self._structure.rebuild(given)
        return found

    def result(self, values: Sequence[np.ndarray]) -> Arrays:
        """The floating arrays of the result. Fresh copies go in and come out: an op may give a view of its input."""
        fresh = [Tensor(np.array(value)) if self._wraps else np.array(value) for value in values]
        results = flatten(self.f(*self.arguments(fresh)))[0]
        arrays = [np.array(_numbers(r)) for r in results]
        return [array for array in arrays if array.dtype.kind == "f"]

    def numbers(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """All floating numbers of the result in one row, in float64."""
        return np.concatenate([np.zeros(0), *(part.astype(np.float64).ravel() for part in self.result(values))])

    @cached_property
    def parts(self) -> Arrays:
        """The result at the point."""
        return self.result(self.point)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The coarsest floating dtype of the result, which decides how well differences can see."""
        return max((part.dtype for part in self.parts), key=lambda dtype: float(np.finfo(dtype).eps))

    def _refuses_float64(self) -> bool:
        """Whether an op is declared for the inputs' own narrow dtype alone; it is then checked in that."""
        self._narrows = False
        if all(value.dtype == np.float64 for value in self.given):
            return False
        try:
            self.f(*self.arguments([Tensor(value) for value in self.point]))
        except OpError:
            return True
        return False

    def _needs_tensors(self) -> bool:
        """Whether a function with a gradient of its own, which may be plain NumPy, calls methods that only Tensors have."""
        try:
            self.f(*self.arguments([np.array(value) for value in self.point]))
        except AttributeError:
            return True
        return False

    def _check_result(self) -> None:
        if not self.parts:
            raise ValueError(f"gradcheck of {self.name}: the result has no floating numbers, so it has no gradient")
        once, again = self.numbers(self.point), self.numbers(self.point)
        if not np.array_equal(once, again, equal_nan=True):
            raise ValueError(
                f"gradcheck of {self.name}: two calls gave two results; fix what is random in it and check again"
            )

    # ------------------------------------------------------------------------------------------------------ the gradients

    def _by_rules(self, values: Sequence[np.ndarray], cotangents: np.ndarray) -> list[Arrays]:
        def floating_results(*moving: Any) -> Any:
            return [moved(r, "cpu") for r in flatten(self.f(*self.arguments(moving)))[0] if dtype_of(r).kind == "f"]

        results, pull = vjp(floating_results, *values)
        return [[self._shaped(g, i, ()) for i, g in enumerate(pull(_split(c, results)))] for c in cotangents]

    def _by_hand(
        self, gradient: Callable[..., Any], values: Sequence[np.ndarray], cotangents: np.ndarray
    ) -> list[Arrays]:
        fresh = [Tensor(np.array(value)) if self._wraps else np.array(value) for value in values]
        given = gradient(*self.arguments(fresh))
        alone = len(values) == 1 and not (isinstance(given, tuple) and len(given) == 1)
        found = [given] if alone else flatten(given)[0]
        if len(found) != len(values):
            raise ValueError(
                f"gradcheck of {self.name}: grad must give one gradient for each of {', '.join(self.names)}, got {len(found)}"
            )
        if len(self.parts) != 1:
            raise ValueError(
                f"gradcheck of {self.name}: grad can be given where f gives one array, not {len(self.parts)}"
            )
        result_shape = () if self.parts[0].size == 1 else self.parts[0].shape
        arrays = [self._shaped(g, i, result_shape) for i, g in enumerate(found)]
        return [
            [(c @ g.reshape(c.size, v.size)).reshape(v.shape) for g, v in zip(arrays, values, strict=True)]
            for c in cotangents
        ]

    def _shaped(self, gradient: Any, place: int, result_shape: tuple[int, ...]) -> np.ndarray:
        """A gradient as an array of its own, refused where its shape is not that of its input."""
        array = np.array(_numbers(gradient))
        expected = result_shape + self.given[place].shape
        if array.shape != expected:
            raise WrongShapeError(
                f"The gradient of {self.names[place]} has shape {array.shape}, expected {expected}"
                + (
                    ": the result's shape, then the input's. Let f end in a sum to check one gradient."
                    if result_shape
                    else "."
                )
            )
        return array.astype(np.float64)


def second_order(checked: CheckedFunction, cotangents: np.ndarray) -> CheckedFunction:
    """The gradient of a function as a function of its inputs and of the result's cotangent: what order 2 checks."""
    seeds = _split(cotangents[0], checked.parts)
    count = len(checked.point)

    def gradient(*moving: Any) -> Any:
        def floating_results(*values: Any) -> Any:
            results = flatten(checked.f(*checked.arguments(values)))[0]
            return [moved(r, "cpu") for r in results if dtype_of(r).kind == "f"]

        return vjp(floating_results, *moving[:count]).pull(list(moving[count:]))

    made = CheckedFunction(gradient, [*checked.point, *seeds])
    made.name = checked.name
    made.names = [*checked.names, *(f"cotangent {i}" if len(seeds) > 1 else "cotangent" for i in range(len(seeds)))]
    return made


def _split(row: np.ndarray, parts: Sequence[Any]) -> list[Any]:
    """A row of numbers as arrays shaped like the parts of a result."""
    ends = np.cumsum([0, *(part.size for part in parts)])
    pieces = zip(ends[:-1], ends[1:], parts, strict=True)
    return [np.asarray(row[start:end].reshape(part.shape), part.dtype) for start, end, part in pieces]


def moved(value: Any, device: str) -> Any:
    """A value on a device; differences are taken on the host, wherever the function computes."""
    return value if device_of(value) == device else ops.to_device(value, device)


def _numbers(value: Any) -> Any:
    return to_numpy(value.innermost() if isinstance(value, Tensor) else value) if hasattr(value, "dtype") else value


def _is_host_tensor(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and leaf.device == "cpu"


def _is_floating(leaf: Any) -> bool:
    return isinstance(leaf, float) or ((is_array(leaf) or isinstance(leaf, Tensor)) and leaf.dtype.kind == "f")
