"""What every layer has: named parts, their parameters, and a scope in graphs."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from .. import Tensor, map_leaves, name_scope, tensor

Parameters = dict[str, Any]  # name -> parameter, or the Parameters of a layer inside
Seed = int | np.random.Generator  # a Generator is used up by one layer after the other


class Layer:
    """A function with parameters. A subclass names its parts in ``__init__`` and says in ``forward`` what it computes.

    A part is a parameter (an array here, a Tensor with ``requires_grad`` afterwards) or another layer, which becomes a copy
    of its own; it is an attribute with the name that it was given. The same names lead to a parameter everywhere: in
    ``parameters()``, in the name of its Tensor, and in the scope of the graph's nodes.

    >>> class Scale(Layer):
    ...     def __init__(self):
    ...         super().__init__(factor=np.ones(()))
    ...
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> class Twice(Layer):
    ...     def __init__(self):
    ...         super().__init__(first=Scale(), second=Scale())
    ...
    ...     def forward(self, x):
    ...         return self.second(self.first(x))
    >>> Twice().parameters()["second"]
    {'factor': tensor(1., requires_grad=True, name='second.factor')}
    """

    scope = ""

    def __init__(self, **parts: Any) -> None:
        self.part_names = tuple(parts)
        for name, part in parts.items():
            if hasattr(type(self), name):
                raise ValueError(
                    f"{type(self).__name__}: {name!r} means something else in every layer; rename this part"
                )
            placed = part._placed(name) if isinstance(part, Layer) else tensor(part, requires_grad=True, name=name)
            setattr(self, name, placed)

    def forward(self, x: Any) -> Any:
        """What the layer computes."""
        raise NotImplementedError(f"{type(self).__name__} has no forward; define forward(self, x) in it")

    def __call__(self, x: Any) -> Any:
        """Compute, with the layer's name as the scope of what is recorded."""
        with name_scope(self.scope):
            return self.forward(x)

    def __repr__(self) -> str:
        count = sum(int(np.prod(part.shape)) for part in _leaves(self.parameters()))
        return f"<{type(self).__name__} with {count} parameters>"

    @property
    def parts(self) -> dict[str, Any]:
        """The layer's own parameters and the layers inside, by name."""
        return {name: getattr(self, name) for name in self.part_names}

    def parameters(self) -> Parameters:
        """Every parameter by name; those of a layer inside are a dict of their own."""
        return {name: part.parameters() if isinstance(part, Layer) else part for name, part in self.parts.items()}

    def values(self) -> Parameters:
        """The values of ``parameters()`` as read-only arrays: the start of training by ``value_and_grad``."""
        values: Parameters = map_leaves(lambda part: part.data if type(part) is Tensor else part, self.parameters())
        return values

    def with_parameters(self, parameters: Parameters) -> Self:
        """The same layer with other parameters: Tensors, arrays or symbols. This layer stays as it is.

        Args:
            parameters: nested and shaped like ``parameters()``.

        Raises:
            ValueError: a name is missing or unknown, or a shape is wrong.
        """
        if not isinstance(parameters, dict) or set(parameters) != set(self.part_names):
            seen = sorted(parameters) if isinstance(parameters, dict) else f"a {type(parameters).__name__}"
            raise ValueError(
                f"{self._title()}: expected parameters named {sorted(self.part_names)}, got {seen}; "
                "nest them as parameters() does"
            )
        other = copy.copy(self)
        for name, part in self.parts.items():
            new = parameters[name]
            if isinstance(part, Layer):
                new = part.with_parameters(new)
            elif getattr(new, "shape", ()) != part.shape:
                raise ValueError(
                    f"{self._title()}: {name} must have shape {part.shape}, got {getattr(new, 'shape', ())}"
                )
            setattr(other, name, new)
        return other

    def to(self, device: str) -> Self:
        """A copy of the layer whose parameters lie on a device; they are new leaves, so make the optimizer afterwards.

        >>> from autodiff_lab.layers import Linear
        >>> Linear(3, 2, seed=0).to("sim:0").weight.device
        'sim:0'
        """

        def moved(parameter: Any) -> Tensor:
            value = parameter.detach() if type(parameter) is Tensor else parameter
            return tensor(value, device=device, requires_grad=True, name=getattr(parameter, "name", None))

        return self.with_parameters(map_leaves(moved, self.parameters()))

    def _placed(self, name: str) -> Self:
        """A copy that knows its name in the layer around it."""

        def renamed(parameter: Tensor) -> Tensor:
            return tensor(parameter.detach(), requires_grad=True, name=f"{name}.{parameter.name}")

        placed = self.with_parameters(map_leaves(renamed, self.parameters()))
        placed.scope = name
        return placed

    def _title(self) -> str:
        return f"{type(self).__name__} {self.scope}".rstrip()


def _leaves(parameters: Parameters) -> list[Any]:
    found: list[Any] = []
    map_leaves(found.append, parameters)
    return found
