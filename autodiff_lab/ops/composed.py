"""How a function that is made of ops becomes public as ``ops.outer``: no node and no rules of its own, but samples to check."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ..bindings import OpError, real_array
from ..operators import registry
from ..signatures import RegistrationError
from .sampling import Call


class ComposedBinding(Protocol):
    """The function that users call."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Compute on arrays, Tensors or symbols."""

    def samples(self, function: Callable[[], list[Call]]) -> Callable[[], list[Call]]:
        """Register inputs for the generic checks."""


class Composed:
    """A function made of ops. A graph shows the ops; every reading and every derivative comes from them."""

    is_differentiable = True
    constant_inputs: frozenset[str] = frozenset()

    def __init__(self, function: Callable[..., Any], arrays: int, apply: Callable[..., Any]) -> None:
        self.name = function.__name__
        self.doc = inspect.getdoc(function) or ""
        self.binding = self._with_arrays(function, arrays)
        self._apply = apply
        self._samples: Callable[[], list[Call]] = list

    def __repr__(self) -> str:
        return f"<composed {self.name}{inspect.signature(self.binding)}>"

    def operand_names(self, count: int) -> tuple[str, ...]:
        """A name for each of ``count`` operands."""
        return tuple(f"operand {place}" for place in range(count))

    def apply(self, operands: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """Call the binding with a list of operands."""
        return self._apply(self.binding, operands, options)

    def samples(self, function: Callable[[], list[Call]]) -> Callable[[], list[Call]]:
        """Register inputs for the generic checks, as ``Op.samples`` does."""
        self._samples = function
        return function

    def sample_calls(self) -> list[Call]:
        """The registered samples: operands and attributes."""
        return self._samples()

    def _with_arrays(self, function: Callable[..., Any], arrays: int) -> ComposedBinding:
        """The function that users call: lists and numbers among its first arguments become arrays."""

        @functools.wraps(function)
        def binding(*arguments: Any, **options: Any) -> Any:
            try:
                values = [value if hasattr(value, "shape") else real_array(value) for value in arguments[:arrays]]
                return function(*values, *arguments[arrays:], **options)
            except OpError:
                raise
            except (TypeError, ValueError, IndexError) as error:
                raise OpError(f"{self.name}: {error}") from error

        binding.samples = self.samples  # type: ignore[attr-defined]
        return binding  # type: ignore[return-value]


composed_functions: dict[str, Composed] = {}


def _plainly(function: Callable[..., Any], operands: Sequence[Any], options: Mapping[str, Any]) -> Any:
    return function(*operands, **options)


def composed(arrays: int = 1, apply: Callable[..., Any] = _plainly) -> Callable[[Callable[..., Any]], ComposedBinding]:
    """Make a function of ops public in ``ops``.

    Args:
        arrays: how many of its first parameters are arrays.
        apply: how it takes a list of operands and a dict of options, where that is not ``function(*operands, **options)``.
    """

    def register(function: Callable[..., Any]) -> ComposedBinding:
        new = Composed(function, arrays, apply)
        if new.name in registry:
            raise RegistrationError(f"composed function {new.name}: an op has that name; choose another")
        composed_functions[new.name] = new
        return new.binding

    return register
