"""Forward mode: tangents travel with the values, from the inputs to the outputs. jvp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import backend, events, ops
from .bindings import as_value, at_level, device_of, readings
from .tangents import numbered
from .tensors import Level, Tensor, require_floating
from .trees import Structure, flatten


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
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise TypeError(
                f"jvp: {what} is a tuple with one entry per argument, got {type(given).__name__}; write (x,)"
            )
    leaves, structure = flatten(tuple(primals))
    directions, direction_structure = flatten(tuple(tangents))
    if direction_structure != structure:
        raise ValueError(f"jvp: the tangents nest as {direction_structure}, but the primals as {structure}")
    outputs, pushed, result_structure = push_forward(f, leaves, structure, [(direction,) for direction in directions])
    return result_structure.rebuild(outputs), result_structure.rebuild(tangent for (tangent,) in pushed)


def push_forward(
    f: Callable[..., Any], primals: Sequence[Any], structure: Structure, tangents: Sequence[Sequence[Any]]
) -> tuple[list[Any], list[tuple[Any, ...]], Structure]:
    """Run ``f`` once with several tangents for each primal, all carried along together.

    ``primals`` are the leaves of the tuple of arguments, and ``structure`` is how they nest in it; for each leaf ``tangents``
    has one tangent per direction, equally many for all. Gives the leaves of the result, the tangents of each, and how the
    result nests.
    """
    level = Level(is_reverse=False)
    name = getattr(f, "__name__", type(f).__name__)
    inputs = [_with_tangents(x, dx, level, f"jvp of {name}") for x, dx in zip(primals, tangents, strict=True)]
    context = events.context.get()
    tell = None if context is None else context.receiver
    if tell is not None:
        for moving in inputs:
            moving._history = numbered(moving._history)
            tell(events.TangentSeeded(moving._history.serial, level.depth, moving._data, moving._history))
    with events.with_gradients():
        results, result_structure = flatten(f(*structure.rebuild(inputs)))
    outputs = [at_level(result, level, f"the result of {name}") for result in results]
    count = len(tangents[0]) if tangents else 1
    values, pushed = [o._data for o in outputs], [_tangents_of(o, count) for o in outputs]
    if tell is not None:
        for output, value, reached in zip(outputs, values, pushed, strict=True):
            tell(events.TangentReached(getattr(output._history, "serial", None), value, reached))
    return values, pushed, result_structure


def _with_tangents(primal: Any, tangents: Sequence[Any], level: Level, where: str) -> Tensor:
    value = as_value(primal, where)
    require_floating(value.dtype, where)
    return Tensor(value, level, tuple([_direction(tangent, value, where) for tangent in tangents]))


def _direction(tangent: Any, value: Any, where: str) -> Any:
    direction = as_value(tangent, where)
    is_alike = type(direction) is type(value) is np.ndarray and direction.dtype is value.dtype
    if not is_alike and type(direction) is not Tensor and type(direction) not in readings:
        if not isinstance(tangent, (int, float)):
            backend.common_device([device_of(direction), device_of(value)])
        direction = backend.asarray(direction, dtype=value.dtype, device=device_of(value))
    if direction.shape != value.shape:
        raise ValueError(
            f"{where}: a tangent has shape {direction.shape}, but its primal has {value.shape}; make them equal"
        )
    return direction


def _tangents_of(output: Tensor, count: int) -> tuple[Any, ...]:
    if output._history is None:
        return (ops.zeros_like(output._data),) * count
    return tuple([np.asarray(t) if isinstance(t, np.generic) else t for t in output._history])
