"""Shape and dtype rules that several ops share, and the change of dtype that kernels make by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

Shape = tuple[int, ...]
Dimension = int | str | None  # a size; the name of a size that is not known yet ("batch"); None: nothing is known
PartialShape = tuple[Dimension, ...] | None  # None: not even the number of axes is known
DTypeRule = TypeVar("DTypeRule", bound=Callable[..., Any])


def broadcast_shape(*shapes: Shape) -> Shape:
    """The shape that the operands of an elementwise op broadcast to."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        text = " and ".join(map(str, shapes))
        raise ValueError(
            f"the shapes {text} do not broadcast: counted from the right, sizes must be equal or 1; reshape one of them"
        ) from None


def shape_said(rule: str, answer: Any) -> PartialShape:
    """What a shape rule answered: sizes, None for a size that it loses; None alone where it loses the number of axes too.

    Raises:
        TypeError: it is no shape.
    """
    if answer is None:
        return None
    if not isinstance(answer, (tuple, list)) or not all(size is None or _is_size(size) for size in answer):
        raise TypeError(f"shape rule {rule} gave {answer!r}; a shape is a tuple of sizes, as (2, 3)")
    return tuple(None if size is None else int(size) for size in answer)


def _is_size(size: Any) -> bool:
    return isinstance(size, (int, np.integer)) and bool(size >= 0)


def is_known(shape: PartialShape) -> bool:
    """Whether a shape says every size, by number or by name.

    >>> is_known((2, "batch")), is_known((2, None)), is_known(None)
    (True, False, False)
    """
    return shape is not None and None not in shape


def may_be(partial: PartialShape, shape: Shape) -> bool:
    """Whether a shape that is known in part says nothing that a whole one contradicts.

    >>> may_be((None, 3), (2, 3)), may_be((None, 3), (2, 4)), may_be(None, (2,))
    (True, False, True)
    """
    if partial is None:
        return True
    return len(partial) == len(shape) and all(p == n for p, n in zip(partial, shape, strict=True) if isinstance(p, int))


def zeros_without_memory(shapes: Sequence[Shape], dtypes: Sequence[Any]) -> list[Any]:
    """Zeros of which every stride is 0; a Python number's 0 stands for itself."""
    return [
        np.broadcast_to(np.zeros((), dtype), shape) if isinstance(dtype, np.dtype) else dtype
        for shape, dtype in zip(shapes, dtypes, strict=True)
    ]


# ---------------------------------------------------------------------------------------------------------------- dtypes

_KEEP_FLOATING: set[Callable[..., Any]] = set()


def keeps_floating(rule: DTypeRule) -> DTypeRule:
    """Mark a dtype rule that says floating wherever an input is: the binding then need not look at each result."""
    _KEEP_FLOATING.add(rule)
    return rule


def is_known_to_keep_floating(rule: Callable[..., Any]) -> bool:
    """Whether a dtype rule bears that mark."""
    return rule in _KEEP_FLOATING


@keeps_floating
def result_dtype(*dtypes: Any) -> np.dtype[Any]:
    """NumPy's result type: the default dtype rule."""
    return np.dtype(np.result_type(*dtypes))


@keeps_floating
def signed_dtype(*dtypes: Any) -> np.dtype[Any]:
    """NumPy's result type, where truth values alone are refused: for what has a sign.

    Raises:
        TypeError: every operand is a truth value.
    """
    found = result_dtype(*dtypes)
    if found.kind == "b":
        raise TypeError("truth values have no sign; make numbers of them first: ops.astype(x, 'int64')")
    return found


@keeps_floating
def number_dtype(*dtypes: Any) -> np.dtype[Any]:
    """NumPy's result type, where truth values become whole numbers of 8 bits: for powers."""
    found = result_dtype(*dtypes)
    return np.dtype(np.int8) if found.kind == "b" else found


@keeps_floating
def sum_dtype(x: Any) -> np.dtype[Any]:
    """The dtype of a sum: NumPy adds whole numbers, and counts truth values, in the platform's widest."""
    found = result_dtype(x)
    widest = {"b": np.int_, "i": np.int_, "u": np.uint}.get(found.kind)
    return found if widest is None else np.result_type(found, widest)


@keeps_floating
def floating_dtype(*dtypes: Any) -> np.dtype[Any]:
    """NumPy's result type, where whole numbers and truth values become float64: for exp, division and the like."""
    found = np.result_type(*dtypes)
    return found if found.kind == "f" else np.dtype(np.float64)


@keeps_floating
def function_dtype(*dtypes: Any) -> np.dtype[Any]:
    """NumPy's result type for sin, sqrt and their like: whole numbers of 8 and 16 bits become half and single precision."""
    found = np.result_type(np.result_type(*dtypes))  # twice, so that a Python number counts with its own width
    if found.kind == "f":
        return found
    # Each array counts by itself, because int8 and uint8 fit half precision and their result type, int16, does not.
    arrays = [dtype for dtype in dtypes if isinstance(dtype, np.dtype)]
    return np.result_type(np.float16, *(arrays or [found]))


def as_floating(xp: Any, x: Any) -> Any:
    """x as a kernel needs it that subtracts before it takes exp: floating, because whole numbers of 8 bits would overflow."""
    x = xp.asarray(x)
    return x if x.dtype.kind == "f" else x.astype(function_dtype(x.dtype))


def boolean_dtype(*_dtypes: Any) -> np.dtype[Any]:
    """Truth values, whatever the operands are: for comparisons."""
    return np.dtype(np.bool_)
