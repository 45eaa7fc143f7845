"""How a value is written in a picture or a sentence: numbers in full, arrays in short."""

from __future__ import annotations

from typing import Any

import numpy as np

import autodiff_lab as ad

LONGEST = 24  # characters of an array that is written in full


def value_text(value: Any) -> str:
    """A number as it is, a small array with its numbers, a larger one by shape, mean and norm.

    >>> value_text(6.0), value_text(np.array([1.0, 0.25])), value_text(np.ones((4, 4)))
    ('6', '[1, 0.25]', '(4, 4) mean 1, norm 4')
    """
    array = value if isinstance(value, np.ndarray) else ad.tensor(value).numpy()
    if array.ndim == 0:
        return number_text(array.item())
    if array.size == 0:
        return f"{array.shape} empty"
    if array.size <= LONGEST // 2:
        text = " ".join(np.array2string(array, separator=", ", formatter={"all": lambda v: number_text(v, 4)}).split())
        if len(text) <= LONGEST:
            return text
    numbers = array.astype(float)
    return f"{array.shape} mean {number_text(numbers.mean(), 4)}, norm {number_text(np.linalg.norm(numbers), 4)}"


def number_text(number: Any, digits: int = 6) -> str:
    """A number with at most so many significant digits; truth values and whole numbers as they are.

    >>> number_text(2 / 3), number_text(3), number_text(True)
    ('0.666667', '3', 'True')
    """
    return f"{number:.{digits}g}" if isinstance(number, (float, np.floating)) else str(number)


def bytes_text(count: int) -> str:
    """A number of bytes.

    >>> bytes_text(96), bytes_text(4_200_000)
    ('96 B', '4.2 MB')
    """
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**4)):
        if count >= size:
            return f"{count / (1000 if unit == 'kB' else size):.3g} {unit}"
    return f"{count} B"
