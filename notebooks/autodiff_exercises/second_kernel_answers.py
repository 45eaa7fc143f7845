"""Answers to the exercise "a second kernel" of lesson 70, right and wrong: what its check is tested on."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

# -------------------------------------------------------------------------------------- what solutions can look like


def nearest_level(xp, x, levels):
    """Each number of x replaced by the nearest of the levels, computed with the array library xp."""
    table = xp.asarray(levels, dtype=x.dtype)
    distances = xp.abs(x[..., None] - table)
    return table[xp.argmin(distances, axis=-1)]


def level_by_level(xp: Any, x: Any, levels: tuple[float, ...]) -> Any:
    """A loop over the levels, which are few: every round keeps what is nearer."""
    nearest = xp.full_like(x, levels[0])
    for level in levels[1:]:
        nearest = xp.where(abs(x - level) < abs(x - nearest), xp.full_like(x, level), nearest)
    return nearest


def between_the_edges(xp: Any, x: Any, levels: tuple[float, ...]) -> Any:
    """Half-way between two neighbours the nearest level changes."""
    ordered = sorted(levels)
    edges = xp.asarray([(low + high) / 2 for low, high in pairwise(ordered)], dtype=x.dtype)
    return xp.asarray(ordered, dtype=x.dtype)[xp.searchsorted(edges, x)]


# ------------------------------------------------------------------------------------------------- wrong solutions


def with_numpy(xp: Any, x: Any, levels: tuple[float, ...]) -> Any:
    """Right for NumPy's arrays: it calls NumPy's functions."""
    table = np.asarray(levels, dtype=x.dtype)
    return table[np.argmin(np.abs(x[..., None] - table), axis=-1)]


def with_numpys_functions(xp: Any, x: Any, levels: tuple[float, ...]) -> Any:
    """The table is made there, and one function of NumPy is left."""
    table = xp.asarray(levels, dtype=x.dtype)
    return table[xp.argmin(np.abs(x[..., None] - table), axis=-1)]


def by_python(xp: Any, x: Any, levels: tuple[float, ...]) -> Any:
    """Python's own min, number by number."""
    out = xp.empty_like(x)
    for place in np.ndindex(x.shape):
        out[place] = min(levels, key=lambda level: abs(x[place] - level))
    return out


def for_every_number(xp: Any, x: Any, levels: tuple[float, ...]) -> Any:
    """Python's min, made a function of arrays by NumPy."""
    nearest = xp.frompyfunc(lambda number: min(levels, key=lambda level: abs(number - level)), 1, 1)
    return np.asarray(nearest(x)).astype(x.dtype)


def by_items(xp: Any, x: Any, levels: tuple[float, ...]) -> Any:
    """The same, with every number taken out on purpose."""
    out = xp.empty_like(x)
    for place in np.ndindex(x.shape):
        number = x[place].item()
        out[place] = min(levels, key=lambda level: abs(number - level))
    return out


def fetched(xp: Any, x: Any, levels: tuple[float, ...]) -> Any:
    """All numbers to the host, and back."""
    here = x if xp is np else x.get()
    return xp.asarray(nearest_level(np, here, levels))


def made_on_the_host(xp: Any, x: Any, levels: tuple[float, ...]) -> Any:
    """Computed there, and gathered in an array of NumPy."""
    places = xp.argmin(xp.abs(x[..., None] - xp.asarray(levels)), axis=-1)
    return np.array([levels[place.item()] for place in places.ravel()], x.dtype).reshape(x.shape)


def in_double_precision(xp: Any, x: Any, levels: tuple[float, ...]) -> Any:
    """The table has the dtype that Python's numbers have."""
    table = xp.asarray(levels)
    return table[xp.argmin(xp.abs(x[..., None] - table), axis=-1)]


def of_one_axis(xp: Any, x: Any, levels: tuple[float, ...]) -> Any:
    """Takes it for granted that x is a row."""
    table = xp.asarray(levels, dtype=x.dtype)
    return table[xp.argmin(xp.abs(x[:, None] - table), axis=1)]


def if_sorted(xp: Any, x: Any, levels: tuple[float, ...]) -> Any:
    """Finds its place between the levels as they were given."""
    edges = xp.asarray([(low + high) / 2 for low, high in pairwise(levels)], dtype=x.dtype)
    return xp.asarray(levels, dtype=x.dtype)[xp.searchsorted(edges, x)]


def in_its_place(xp: Any, x: Any, levels: tuple[float, ...]) -> Any:
    """Writes the result over x."""
    x[...] = nearest_level(xp, x, levels)
    return x


def the_level_below(xp: Any, x: Any, levels: tuple[float, ...]) -> Any:
    """Rounds down."""
    table = xp.asarray(sorted(levels), dtype=x.dtype)
    return table[xp.maximum(xp.searchsorted(table, x, side="right") - 1, 0)]
