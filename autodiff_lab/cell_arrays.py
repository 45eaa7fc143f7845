"""Cells: arrays of numbers that know how they were computed. What NumPy does with such an array is noted number by number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .cells import Cast, Cell, select, value_of


class _CellArray(np.ndarray[Any, Any]):
    """An array of cells and plain numbers, as NumPy's own functions see it: what is made of it becomes such an array."""

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return as_found(found, self.dtype)

    def __setitem__(self, index: Any, value: Any) -> None:
        is_one = isinstance(value, _CellArray) and not value.ndim  # which NumPy would put into the array as an array
        super().__setitem__(index, objects_of(value)[()] if is_one else value)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
        out = options.pop("out", None)
        if method == "__call__":
            result = _called(ufunc, operands)
        elif method == "reduce":
            result = _reduced(ufunc, *operands, **options)
        elif method in ("accumulate", "at"):
            result = _stepped(ufunc, method, operands, options)
        else:
            return NotImplemented
        if out is None:
            return result
        out[0][...] = result
        return out[0]

    def __array_function__(self, function: Any, types: Any, operands: Any, options: Any) -> Any:
        if function is np.where:
            return _selected(*operands)
        return super().__array_function__(function, types, operands, options)


class Cells(_CellArray):
    """An array of cells and plain numbers, which says that it has the dtype of its numbers."""

    device = "cpu"
    _dtype: Any = None

    def __array_finalize__(self, made_from: Any) -> None:
        self._dtype = getattr(made_from, "_dtype", None)

    @property
    def dtype(self) -> Any:
        """The dtype of the numbers."""
        return objects_of(self).dtype if self._dtype is None else self._dtype

    def astype(self, dtype: Any, *_order: Any, copy: Any = True, **_more: Any) -> Any:
        """``ndarray.astype``."""
        wanted = np.dtype(dtype)
        if wanted == self.dtype:
            return self.copy() if copy else self
        return as_cells(_made(Cast(wanted), 1)(objects_of(self)), wanted)

    def values(self) -> np.ndarray[Any, Any]:
        """The numbers alone."""
        numbers = [value_of(cell) for cell in objects_of(self).ravel()]
        return np.array(numbers, self.dtype).reshape(self.shape)

    def __array_function__(self, function: Any, types: Any, operands: Any, options: Any) -> Any:
        if function in (np.mean, np.var, np.std):  # these decide by the dtype of the numbers
            return super().__array_function__(function, types, operands, options)
        dtypes = list(dtypes_in((operands, tuple(options.values()))))
        result = function(*_bare(operands), **{name: _bare(one) for name, one in options.items()})
        return as_found(result, np.result_type(*dtypes))


def as_cells(array: Any, dtype: Any) -> Cells:
    """An array of objects as cells with numbers of a dtype."""
    found = np.asarray(array, object)
    if not found.ndim and isinstance(found[()], np.ndarray):  # NumPy put an array into the array
        found = np.asarray(operand_of(found[()]))
    made: Cells = found.view(Cells)
    made._dtype = np.dtype(dtype)
    return made


def cells_of(name: str, values: Any) -> Cells:
    """An array's numbers as cells that are called ``name[index]``.

    >>> cells_of("x", np.array([1.0, 2.0])).view(np.ndarray)[1]
    <cell x[1]>
    """
    array = np.asarray(values)
    made = np.empty(array.size, object)
    made[:] = [Cell.of_array(name, index, value) for index, value in np.ndenumerate(array)]
    return as_cells(made.reshape(array.shape), array.dtype)


def objects_of(array: Any) -> np.ndarray[Any, Any]:
    """The cells as a plain array of objects."""
    found: np.ndarray[Any, Any] = array.view(np.ndarray)
    return found


def _made(function: Any, count: int) -> np.ufunc:
    """A function that makes a cell for each number."""
    made: np.ufunc = np.frompyfunc(lambda *parents: Cell(function, parents), count, 1)
    return made


def _called(ufunc: np.ufunc, operands: Sequence[Any]) -> Cells:
    if ufunc is np.matmul:
        return _product(*operands)
    if ufunc.signature is not None or ufunc.nout != 1:
        raise TypeError(f"np.{ufunc.__name__} is not followed number by number")
    kinds = [_kind(one) for one in operands]
    dtype = ufunc.resolve_dtypes((*kinds, None))[-1]
    return as_cells(_made(ufunc, ufunc.nin)(*map(operand_of, operands)), dtype)


def _product(x: Any, y: Any) -> Cells:
    """``matmul``: a sum of products for each number; the products are made when somebody asks."""
    rows, columns = operand_of(x), operand_of(y)
    dtype = np.matmul.resolve_dtypes((x.dtype, y.dtype, None))[-1]
    rows = rows[None] if x.ndim == 1 else rows
    columns = columns[:, None] if y.ndim == 1 else columns
    stack = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    rows = np.broadcast_to(rows, (*stack, *rows.shape[-2:]))
    columns = np.broadcast_to(columns, (*stack, *columns.shape[-2:]))
    if rows.shape[-1] != columns.shape[-2]:
        raise ValueError(f"no matrix product of shapes {x.shape} and {y.shape}")
    made = np.empty((*stack, rows.shape[-2], columns.shape[-1]), object)
    for index in np.ndindex(made.shape):
        row, column = rows[index[:-1]], columns[(*index[:-2], slice(None), index[-1])]
        made[index] = Cell(np.add, _products(row, column), True) if row.size else dtype.type(0)
    gone = ([-2] if x.ndim == 1 else []) + ([-1] if y.ndim == 1 else [])
    return as_cells(made.reshape(np.squeeze(made, tuple(gone)).shape), dtype)


def _products(row: Any, column: Any) -> Callable[[], tuple[Cell, ...]]:
    return lambda: tuple(Cell(np.multiply, pair) for pair in zip(row, column, strict=True))


def _reduced(
    ufunc: np.ufunc, x: Cells, axis: Any = 0, dtype: Any = None, keepdims: bool = False, **options: Any
) -> Any:
    if any(value is not True for name, value in options.items() if name == "where") or "initial" in options:
        raise TypeError(f"np.{ufunc.__name__}.reduce with {', '.join(options)} is not followed number by number")
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    gone = tuple(sorted(np.arange(x.ndim)[list(axes)].tolist()))
    last = np.moveaxis(operand_of(x), gone, range(x.ndim - len(gone), x.ndim))
    shape = last.shape[: x.ndim - len(gone)]
    rows = last.reshape(math.prod(shape), math.prod(last.shape[len(shape) :]))
    found = np.empty(len(rows), object)
    for place, row in enumerate(rows):
        found[place] = row[0] if len(row) == 1 and _keeps(ufunc) else _along(ufunc, row)
    kept = [1 if place in gone else size for place, size in enumerate(x.shape)]
    one = ufunc.reduce(np.zeros((1,) * x.ndim, x.dtype), axis=axis, dtype=dtype)
    return as_cells(found.reshape(kept if keepdims else shape), getattr(one, "dtype", object))


def _along(ufunc: np.ufunc, row: Any) -> Any:
    if not len(row) and ufunc.identity is None:
        raise ValueError(f"np.{ufunc.__name__} of no numbers")
    return Cell(ufunc, tuple(row), True) if len(row) else ufunc.identity


def _stepped(ufunc: np.ufunc, method: str, operands: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """``ufunc.accumulate`` and ``ufunc.at``: one number after the other."""
    arrays = [objects_of(one) if isinstance(one, _CellArray) else one for one in operands]
    result = getattr(_made(ufunc, 2), method)(*arrays, **{n: one for n, one in options.items() if n != "dtype"})
    return None if result is None else as_cells(result, operands[0].dtype)


def _keeps(ufunc: np.ufunc) -> bool:
    """Whether the reduction of one number is that number."""
    return not ufunc.__name__.startswith("logical")


def _selected(condition: Any, x: Any, y: Any) -> Cells:
    dtype = np.result_type(*(one.dtype if hasattr(one, "dtype") else one for one in (x, y)))
    return as_cells(_made(select, 3)(operand_of(condition), operand_of(x), operand_of(y)), dtype)


def operand_of(value: Any) -> Any:
    """An operand as an array of objects, of which NumPy takes one after the other."""
    if isinstance(value, _CellArray):
        return objects_of(value)
    return value.astype(object) if isinstance(value, np.ndarray) else value


def _bare(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(_bare, value))
    return value.view(_CellArray) if type(value) is Cells else value


def as_found(result: Any, dtype: Any) -> Any:
    """What a function of NumPy gave: cells again, where it holds any."""
    if isinstance(result, np.ndarray):
        return as_cells(result, dtype) if objects_of(result).dtype == object else result
    return as_cells(np.array(result, object), dtype) if type(result) is Cell else result


def dtypes_in(values: Any) -> Iterator[Any]:
    """The dtypes of the arrays of cells among nested values."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from dtypes_in(value)
        elif isinstance(value, Cells):
            yield value._dtype


def _kind(value: Any) -> Any:
    """An operand as ``resolve_dtypes`` takes it."""
    if hasattr(value, "dtype"):
        return value.dtype
    return np.dtype(np.bool_) if type(value) is bool else type(value)
