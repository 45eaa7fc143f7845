"""How a value is written in a picture or a sentence: numbers in full, arrays in short, what was not kept by its shape."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab.playback import Outline


def value_text(value: Any, longest: int = 60) -> str:
    """A number as it is, an array of at most so many characters with its numbers, a larger one by shape, mean and norm.

    >>> value_text(6.0), value_text(np.array([1.0, 0.25])), value_text(np.ones((9, 9)))
    ('6', '[1, 0.25]', '(9, 9) mean 1, norm 9')
    """
    if isinstance(value, Outline):
        return f"{value.shape}, not kept"
    array = numbers_of(value)
    if is_short(array, longest):
        return _numbers(array)
    mean = f"mean {number_text(array.astype(float).mean(), 4)}, " if array.size else ""
    return f"{array.shape} {mean}{_norm(array)}"


def box_text(value: Any) -> str:
    """A value in few characters, for a box of a picture: a larger array by shape and norm.

    >>> box_text(np.ones((4, 4)))
    '(4, 4) norm 4'
    """
    if isinstance(value, Outline):
        return str(value.shape)
    array = numbers_of(value)
    return _numbers(array) if is_short(array, 20) else f"{array.shape} {_norm(array)}"


def is_short(value: Any, longest: int = 60) -> bool:
    """Whether a value has at most so many characters when all its numbers are written.

    >>> is_short(np.ones(3)), is_short(np.ones(300))
    (True, False)
    """
    if isinstance(value, Outline):
        return False
    array = numbers_of(value)
    return array.ndim == 0 or (0 < array.size <= longest // 2 and len(_numbers(array)) <= longest)


def numbers_of(value: Any) -> np.ndarray[Any, Any]:
    """A value's numbers as a NumPy array; from another device they are copied, for which the host waits.

    >>> numbers_of(ad.tensor([1.0, 2.0], device="sim:0"))
    array([1., 2.])
    """
    if isinstance(value, np.ndarray):
        return value
    return (value if isinstance(value, ad.Tensor) else ad.tensor(value)).numpy()


def _numbers(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 0:
        return number_text(array.item())
    return _listed(array.tolist())


def _listed(numbers: Any) -> str:
    """Nested lists of numbers in short; np.array2string takes ten times as long."""
    return f"[{', '.join(map(_listed, numbers))}]" if isinstance(numbers, list) else number_text(numbers, 4)


def _norm(array: np.ndarray[Any, Any]) -> str:
    return f"norm {number_text(np.linalg.norm(array.astype(float)), 4)}" if array.size else "empty"


def number_text(number: Any, digits: int = 6) -> str:
    """A number with at most so many significant digits; truth values and whole numbers as they are.

    >>> number_text(2 / 3), number_text(3), number_text(True)
    ('0.666667', '3', 'True')
    """
    return f"{number:.{digits}g}" if isinstance(number, (float, np.floating)) else str(number)


@cache
def dtype_text(dtype: np.dtype[Any]) -> str:
    """The name of a dtype, which NumPy takes 8 µs to find.

    >>> dtype_text(np.dtype("float32"))
    'float32'
    """
    return str(dtype)


def bytes_text(count: float) -> str:
    """A number of bytes.

    >>> bytes_text(96), bytes_text(4_200_000)
    ('96 B', '4.2 MB')
    """
    unit, size = bytes_unit(count)
    return f"{count / size:.3g} {unit}" if size > 1 else f"{number_text(count)} B"


def bytes_unit(most: float) -> tuple[str, int]:
    """The unit in which numbers of bytes up to ``most`` are written, and how many bytes it has."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if most >= max(size, 10**4):
            return unit, size
    return "B", 1


def time_text(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> time_text(2.5e-6), time_text(0.0125), time_text(3.0), time_text(0)
    ('2.5 µs', '12.5 ms', '3 s', '0 s')
    """
    unit, size = time_unit(seconds)
    return f"{number_text(float(seconds / size), 4)} {unit}"


def time_unit(longest: float) -> tuple[str, float]:
    """The unit in which times up to ``longest`` are written, and how many seconds it has."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if longest >= 0.1 * size:
            return unit, size
    return ("ns", 1e-9) if longest else ("s", 1.0)
