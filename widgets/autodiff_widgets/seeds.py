"""What moves in forward mode: the passes that a seed asks for, each with a tangent for every input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab.events import Event

MOST_PASSES = 12  # directions that are run; an array has one for each of its numbers

Seed = int | str | Sequence[int | str] | Mapping[str, Any]


@dataclass(frozen=True)
class Pass:
    """One run of ``jvp``: what moves, the tangent of each input, and what was heard."""

    label: str  # the number that moves: "x", "w[0, 1]"; or "direction"
    tangents: tuple[np.ndarray[Any, Any], ...]
    heard: tuple[Event, ...] = ()


def heard_by(
    f: Callable[..., Any], inputs: Mapping[str, np.ndarray[Any, Any]], tangents: Sequence[np.ndarray[Any, Any]]
) -> tuple[Event, ...]:
    """What one pass tells."""
    with ad.listen() as heard:
        ad.jvp(f, tuple(inputs.values()), tuple(tangents))
    return tuple(heard)


def passes_of(inputs: Mapping[str, np.ndarray[Any, Any]], seed: Seed) -> tuple[list[Pass], str]:
    """The passes that a seed asks for, and a note where there would be too many."""
    if isinstance(seed, Mapping):
        return [Pass("direction", direction(inputs, seed, "seed"))], ""
    chosen = [_named(inputs, one) for one in ([seed] if isinstance(seed, (int, str)) else seed)]
    places = [(name, index) for names in chosen for name in names for index in np.ndindex(inputs[name].shape)]
    note = ""
    if len(places) > MOST_PASSES:
        note = f"Shown are the first {MOST_PASSES} of {len(places)} passes."
    return [_basis(inputs, name, index) for name, index in places[:MOST_PASSES]], note


def _basis(inputs: Mapping[str, np.ndarray[Any, Any]], name: str, index: tuple[int, ...]) -> Pass:
    """The pass in which one number moves with the tangent 1."""
    tangents = {key: np.zeros_like(value) for key, value in inputs.items()}
    tangents[name][index] = 1
    label = f"{name}[{', '.join(map(str, index))}]" if index else name
    return Pass(label, tuple(tangents.values()))


def direction(
    inputs: Mapping[str, np.ndarray[Any, Any]], tangents: Mapping[str, Any], argument: str
) -> tuple[np.ndarray[Any, Any], ...]:
    """A tangent for each input: the one given under its name, else zeros."""
    for name in tangents:
        _known(inputs, name, argument)
    return tuple(
        np.broadcast_to(np.asarray(tangents.get(name, 0.0), value.dtype), value.shape).copy()
        for name, value in inputs.items()
    )


def _named(inputs: Mapping[str, Any], seed: int | str) -> list[str]:
    """The inputs that one seed stands for."""
    names = list(inputs)
    if seed == "all" and "all" not in inputs:
        return names
    if isinstance(seed, int) and -len(names) <= seed < len(names):
        return [names[seed]]
    _known(inputs, seed, "seed")
    return [str(seed)]


def _known(inputs: Mapping[str, Any], name: Any, argument: str) -> None:
    if name not in inputs:
        raise ValueError(
            f"{argument}: no floating input {name!r}; give one of {', '.join(map(repr, inputs))}, its place, or 'all'"
        )
