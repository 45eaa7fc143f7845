"""Forward mode: tangents travel with the values, from the inputs to the outputs. jvp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import backend, ops
from .bindings import as_value, at_level, readings
from .tensors import Level, Tensor, require_floating
from .trees import flatten


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of ``f(*primals)`` and its derivative along ``tangents``, in one forward pass.

    Args:
        f: a function of arrays; arguments and results may be nested lists, tuples and dicts.
        primals: a tuple of the arguments.
        tangents: a tuple that nests like ``primals``: the direction, each array shaped like its primal.

    Raises:
        TypeError: a primal is not floating.
        ValueError: the tangents do not nest or are not shaped like the primals.

    >>> value, derivative = jvp(lambda x, y: x * y, (2.0, 5.0), (1.0, 0.0))
    >>> float(value), float(derivative)
    (10.0, 5.0)
    """
    level = Level(is_reverse=False)
    name = getattr(f, "__name__", type(f).__name__)
    leaves, structure = flatten(tuple(primals))
    directions, direction_structure = flatten(tuple(tangents))
    if direction_structure != structure:
        raise ValueError(f"jvp: the tangents nest as {direction_structure}, but the primals as {structure}")
    inputs = [_with_tangent(x, dx, level, f"jvp of {name}") for x, dx in zip(leaves, directions, strict=True)]
    results, result_structure = flatten(f(*structure.rebuild(inputs)))
    outputs = [at_level(result, level, f"the result of {name}") for result in results]
    return (
        result_structure.rebuild(output._data for output in outputs),
        result_structure.rebuild(_tangent_of(output) for output in outputs),
    )


def _with_tangent(primal: Any, tangent: Any, level: Level, where: str) -> Tensor:
    value = as_value(primal, where)
    require_floating(value.dtype, where)
    direction = as_value(tangent, where)
    if type(direction) is not Tensor and type(direction) not in readings:
        direction = backend.asarray(direction, dtype=value.dtype)
    if direction.shape != value.shape:
        raise ValueError(
            f"{where}: a tangent has shape {direction.shape}, but its primal has {value.shape}; make them equal"
        )
    return Tensor(value, level, direction)


def _tangent_of(output: Tensor) -> Any:
    tangent = output._history
    if tangent is None:
        return ops.zeros_like(output._data)
    return np.asarray(tangent) if isinstance(tangent, np.generic) else tangent
