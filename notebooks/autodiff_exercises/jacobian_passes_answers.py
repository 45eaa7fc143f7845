"""Answers to the exercise on Jacobians by passes, right and wrong: what its check is tested on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import autodiff_lab as ad

# ------------------------------------------------------------------------------------ what a solution can look like


def jacobian_by_passes(f, x):
    """The Jacobian of f at x, one forward pass for each number of x."""
    columns = []
    for place in range(x.size):
        direction = np.zeros_like(x)
        direction[place] = 1.0
        _value, derivative = ad.jvp(f, (x,), (direction,))
        columns.append(derivative)
    return np.stack(columns, axis=1)


def by_unit_vectors(f: Callable[..., Any], x: Any) -> Any:
    """The rows of the transpose, from the rows of the identity."""
    return np.array([ad.jvp(f, (x,), (row,))[1] for row in np.eye(x.size, dtype=x.dtype)]).T


def by_sweeps(f: Callable[..., Any], x: Any) -> Any:
    """One run, and one backward sweep for each number of the result."""
    value, pull = ad.vjp(f, x)
    return np.stack([pull(row)[0] for row in np.eye(value.size)])


# ------------------------------------------------------------------------------------ wrong solutions


def one_pass(f: Callable[..., Any], x: Any) -> Any:
    """All inputs move in one pass."""
    return ad.jvp(f, (x,), (np.ones_like(x),))[1]


def one_pass_for_all_columns(f: Callable[..., Any], x: Any) -> Any:
    """One pass, its result in every column."""
    return np.stack([one_pass(f, x)] * x.size, axis=1)


def rows_for_columns(f: Callable[..., Any], x: Any) -> Any:
    """The results of the passes as rows."""
    return np.stack([ad.jvp(f, (x,), (row,))[1] for row in np.eye(x.size, dtype=x.dtype)])


def entry_by_entry(f: Callable[..., Any], x: Any) -> Any:
    """A pass for every entry."""
    rows = ad.jvp(f, (x,), (np.ones_like(x),))[0].size
    table = np.zeros((rows, x.size), x.dtype)
    for row in range(rows):
        for column in range(x.size):
            table[row, column] = ad.jvp(f, (x,), (np.eye(x.size)[column],))[1][row]
    return table


def forward_differences(f: Callable[..., Any], x: Any) -> Any:
    """One run more than there are inputs, a small step apart."""
    start, step = f(x), 1e-6
    return np.stack([(f(x + step * row) - start) / step for row in np.eye(x.size)], axis=1).astype(x.dtype)


def directions_pile_up(f: Callable[..., Any], x: Any) -> Any:
    """The last direction is still switched on when the next one begins."""
    direction = np.zeros_like(x)
    columns = []
    for place in range(x.size):
        direction[place] = 1.0
        columns.append(ad.jvp(f, (x,), (direction,))[1])
    return np.stack(columns, axis=1)


def always_double(f: Callable[..., Any], x: Any) -> Any:
    """The columns in an array of double precision."""
    columns = [ad.jvp(f, (x,), (row,))[1] for row in np.eye(x.size)]
    table = np.zeros((columns[0].size, x.size))
    for place, column in enumerate(columns):
        table[:, place] = column
    return table


def direction_in_x(f: Callable[..., Any], x: Any) -> Any:
    """The caller's array serves as the direction."""
    point, columns = x.copy(), []
    for place in range(x.size):
        x[:] = 0.0
        x[place] = 1.0
        columns.append(ad.jvp(f, (point,), (x,))[1])
    return np.stack(columns, axis=1)


def always_single(f: Callable[..., Any], x: Any) -> Any:
    """All numbers in single precision."""
    return jacobian_by_passes(f, x).astype(np.float32)


def values_in_the_table(f: Callable[..., Any], x: Any) -> Any:
    """The first of the two things that a pass gives."""
    return np.stack([ad.jvp(f, (x,), (row,))[0] for row in np.eye(x.size, dtype=x.dtype)], axis=1)


def reshaped(f: Callable[..., Any], x: Any) -> Any:
    """Rows for columns, and then the right shape."""
    table = jacobian_by_passes(f, x)
    return np.reshape(table.T, table.shape)


def by_the_labs_jacobian(f: Callable[..., Any], x: Any) -> Any:
    """The lab's own."""
    return ad.jacobian(f)(x)
