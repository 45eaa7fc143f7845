"""NumPy's functions that are made of ufuncs, as a kernel's program notes them: as these ufuncs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .numpy_calls import Fact, select


class Untraceable(Exception):
    """A kernel does something that stand-ins cannot follow."""


def axes_of(axis: Any, ndim: int) -> set[int]:
    """The axes that a reduction's ``axis`` means."""
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return {one % ndim for one in axes}


def reduction(ufunc: np.ufunc, result: Any = None) -> Callable[..., Any]:
    """``np.sum`` and ``np.prod``: a reduction by a ufunc, whose result has a dtype of its own if there is one."""

    def reduce(x: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
        if out is not None:
            raise Untraceable("out=")
        return ufunc.reduce(x, axis=axis, dtype=result if dtype is None else dtype, keepdims=bool(keepdims))

    return reduce


def _extreme(ufunc: np.ufunc) -> Callable[..., Any]:
    """``np.max``, ``np.any``: as a reduction, but without a dtype."""
    reduce = reduction(ufunc, np.dtype(np.bool_) if ufunc.__name__.startswith("logical") else None)
    return lambda x, axis=None, out=None, keepdims=False: reduce(x, axis, None, out, keepdims)


def _mean(x: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """``np.mean``: the sum, in single precision for half precision, divided in the way that NumPy's rounding is met."""
    if dtype is not None or out is not None:
        raise Untraceable("np.mean with dtype= or out=")
    wide = {"f": x.dtype if x.dtype != np.float16 else np.dtype(np.float32)}.get(x.dtype.kind, np.dtype(np.float64))
    total = reduction(np.add)(x, axis, wide, None, keepdims)
    count = math.prod(x.shape[one] for one in axes_of(axis, x.ndim))
    is_exact = wide.type(count) == count and (total.shape or x.dtype != np.float16)
    mean = total / (float(count) if is_exact else np.intp(count))
    result = x.dtype if x.dtype.kind == "f" else wide
    return mean if mean.dtype == result else mean.astype(result)


def _var(x: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False) -> Any:
    """``np.var``, as NumPy computes it: the mean square of what is left when the mean is subtracted."""
    if dtype is None and out is None and not ddof and x.dtype.char in "fd":
        away = x - _mean(x, axis, keepdims=True)
        return _mean(away * away, axis, keepdims=keepdims)
    options = {"axis": axis, "dtype": dtype, "out": out, "ddof": ddof, "keepdims": keepdims}
    return x.tracer.note_generic(np.var, (x,), {name: value for name, value in options.items() if value is not None})


def _where(condition: Any, x: Any, y: Any) -> Any:
    tracer = next(one.tracer for one in (condition, x, y) if hasattr(one, "tracer"))
    kinds = [one.dtype if hasattr(one, "dtype") else one for one in (x, y)]
    shape = np.broadcast_shapes(*(getattr(one, "shape", ()) for one in (condition, x, y)))
    fact = Fact(shape, np.result_type(*kinds))
    return tracer.note(select, (condition, x, y), {}, fact, writes=True, is_elementwise=True)


def _full_like(x: Any, value: Any, dtype: Any = None) -> Any:
    return full(x.shape, value, x.dtype if dtype is None else dtype, tracer=x.tracer)


def full(shape: Any, value: Any, dtype: Any = None, tracer: Any = None) -> Any:
    """``np.full``; without a stand-in it makes an array."""
    tracer = value.tracer if hasattr(value, "tracer") else tracer
    found = getattr(value, "dtype", None) if dtype is None else np.dtype(dtype)
    if tracer is None or found is None:
        return np.full(shape, value, dtype)
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return tracer.note(np.full, (sizes, value, found), {}, Fact(sizes, found))


ANSWERS: dict[Any, Callable[..., Any]] = {
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x: x.size,
    np.where: _where,
    np.sum: reduction(np.add),
    np.prod: reduction(np.multiply),
    np.mean: _mean,
    np.var: _var,
    **{function: _extreme(np.maximum) for function in (np.max, np.amax)},
    **{function: _extreme(np.minimum) for function in (np.min, np.amin)},
    np.all: _extreme(np.logical_and),
    np.any: _extreme(np.logical_or),
    np.full_like: _full_like,
    np.ones_like: lambda x, dtype=None: _full_like(x, 1, dtype),
    np.zeros_like: lambda x, dtype=None: _full_like(x, 0, dtype),
}
