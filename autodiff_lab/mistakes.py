"""What the wrong entries of a gradient have in common, in words: a lost sign, a factor, an ignored cotangent, a transpose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np


def explained(
    name: str, got: np.ndarray, expected: np.ndarray, sizes: Mapping[str, int], shape: tuple[int, ...] = ()
) -> Iterator[str]:
    """Sentences about one input's wrong gradient.

    Args:
        name: the input.
        got: the gradient that was checked, one row for each cotangent, one column for each entry.
        expected: the same by differences.
        sizes: numbers that a mistake may be a factor of, by what they are: ``{"the number of entries of x": 3}``.
        shape: of the input, where all its entries are there.

    >>> list(explained("x", np.array([[1.0, 2.0]]), np.array([[4.0, 8.0]]), {"the size of x": 4}))
    ['Every entry of x is 1/4 of what it should be: 4 is the size of x.']
    """
    factor = _common_factor(got, expected)
    if factor is not None:
        yield f"Every entry of {name} is {_in_words(factor, sizes)}"
    elif len(got) > 1 and np.any(got) and np.allclose(got[1:], got[0], rtol=1e-6):
        yield f"The gradient of {name} is the same for every cotangent: a rule forgets to multiply by its cotangent g."
    elif len(shape) == 2 and shape[0] == shape[1] and _is_transposed(got, expected, shape):
        yield f"The gradient of {name} is right, but transposed."


def _is_transposed(got: np.ndarray, expected: np.ndarray, shape: tuple[int, ...]) -> bool:
    turned = np.swapaxes(expected.reshape(-1, *shape), 1, 2)
    return np.allclose(got.reshape(-1, *shape), turned, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


def _common_factor(got: np.ndarray, expected: np.ndarray) -> float | None:
    """The one factor between all entries, where there is one and it is not 1."""
    size = np.abs(expected).max(initial=0.0)
    clear = np.abs(expected) > 1e-4 * size
    if not clear.any() or not np.isfinite(got).all():
        return None
    factor = float(np.median(got[clear] / expected[clear]))
    tolerance = 1e-3 * max(abs(factor), 1e-3) * np.abs(expected) + 1e-6 * size
    fits = bool(np.all(np.abs(got - factor * expected) <= tolerance))
    return factor if fits and abs(factor - 1) > 1e-4 else None


def _in_words(factor: float, sizes: Mapping[str, int]) -> str:
    if factor == 0:
        return "0: the gradient does not arrive, or the rule gives zeros."
    times = f"{_number(factor)} times what it should be"
    if np.isclose(factor, -1, rtol=1e-3):
        return "−1 times what it should be: a sign is lost."
    for what, size in sizes.items():
        if size > 1 and np.isclose(abs(factor), size, rtol=1e-3):
            return f"{times}: {size} is {what}."
        if size > 1 and np.isclose(abs(factor), 1 / size, rtol=1e-3):
            return f"{'−' if factor < 0 else ''}1/{size} of what it should be: {size} is {what}."
    return f"{times}."


def _number(factor: float) -> str:
    """A factor as people write it: 2, 1/2, 1.01."""
    sign, size = "−" if factor < 0 else "", abs(factor)
    if size < 1 and np.isclose(1 / size, round(1 / size), rtol=1e-3):
        return f"{sign}1/{round(1 / size)}"
    return f"{sign}{size:.4g}"
