"""Numbers that know how they were computed: kernels and gradient rules run on arrays of them, once, as they are.

A kernel gets such arrays in place of NumPy's, and every number of its result is a ``Cell``: a function and the cells that it
was given, back to the numbers of the operands. So nothing is said about an op twice: what a cell came from is what ran.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from .bindings import OpError, readings
from .operand_rules import broadcast_shape

if TYPE_CHECKING:
    from .operators import Op

Index = tuple[int, ...]
LARGEST_PROBED = 256  # numbers of an op that is followed by changing one after the other
NEIGHBOURS = 12  # of these numbers that each is moved next to


class Cell:
    """One number: ``function`` of ``parents``, which are cells and plain numbers; or, without a function, ``array[index]``.

    ``is_reduction``: the function takes two numbers, and is applied along the parents.
    """

    __slots__ = ("_parents", "_value", "array", "function", "index", "is_reduction")

    def __init__(self, function: Any, parents: Any = (), is_reduction: bool = False, value: Any = None) -> None:
        self.function, self._parents, self.is_reduction, self._value = function, parents, is_reduction, value
        self.array, self.index = "", ()

    @classmethod
    def of_array(cls, array: str, index: Index, value: Any) -> Cell:
        """A number that was there before: ``x[0, 1]``."""
        cell = cls(None, value=value)
        cell.array, cell.index = array, index
        return cell

    @property
    def parents(self) -> tuple[Any, ...]:
        """What the function was given. Sums leave out what is 0 by construction: products with the zeros of a padding."""
        if type(self._parents) is not tuple:
            self._parents = self._parents()
        if self.is_reduction and self.function is np.add and any(map(_is_nothing, self._parents)):
            self._parents = tuple(one for one in self._parents if not _is_nothing(one))
        return self._parents

    @property
    def name(self) -> str:
        """What the function is called: ``add``, ``exp``, ``select``; ``""`` for a number of an array."""
        return "" if self.function is None else str(self.function.__name__)

    @property
    def taken(self) -> tuple[Any, ...]:
        """The parents that made the number: of a choice, the condition and the side that was taken."""
        if self.function is not select:
            return self.parents
        condition, x, y = self.parents
        return (condition, x if value_of(condition) else y)

    @property
    def leaves(self) -> list[Cell]:
        """The numbers of arrays that this one was computed from, each once."""
        found: dict[int, Cell] = {}
        seen: set[int] = set()
        stack: list[Any] = [self]
        while stack:
            one = stack.pop()
            if type(one) is Cell and id(one) not in seen and not _is_nothing(one):
                seen.add(id(one))
                if one.function is None:
                    found[id(one)] = one
                stack += reversed(one.taken)
        return list(found.values())

    @property
    def value(self) -> Any:
        """The number."""
        for cell in _unknown_below(self):
            cell._value = cell._computed()
        return self._value

    def _computed(self) -> Any:
        values = [value_of(parent) for parent in self.parents]
        with np.errstate(all="ignore"):
            if not self.is_reduction:
                return self.function(*values)
            return self.function.reduce(np.array(values)) if values else self.function.identity

    def __bool__(self) -> bool:
        return bool(self.value)

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < value_of(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > value_of(other))

    def __repr__(self) -> str:
        return f"<cell {self.name or self.array + str(list(self.index))}>"


def value_of(number: Any) -> Any:
    """The number of a cell, or a plain number itself."""
    return number.value if type(number) is Cell else number


def _unknown_below(cell: Cell) -> list[Cell]:
    """The cells whose numbers have to be computed first, each after its parents, ``cell`` last; chains may be long."""
    order: list[Cell] = []
    stack = [cell]
    while stack:
        one = stack[-1]
        missing = [p for p in one.parents if type(p) is Cell and p._value is None] if one._value is None else []
        if missing:
            stack += missing
            continue
        stack.pop()
        if one._value is None:
            one._value = one._computed()
            order.append(one)
    return order


def _is_nothing(number: Any) -> bool:
    """Whether a term is 0 whatever the operands are."""
    if type(number) is not Cell:
        return bool(number == 0)
    return number.function is np.multiply and any(type(p) is not Cell and p == 0 for p in number.parents)


# -------------------------------------------------------------------------------------- functions that are no ufuncs


def select(condition: Any, x: Any, y: Any) -> Any:
    """``x if condition else y``: what ``np.where`` does with each number."""
    return x if condition else y


class Cast:
    """A change of dtype: the number stays as far as the dtype allows."""

    __name__ = "astype"

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    def __call__(self, number: Any) -> Any:
        """The number in the dtype."""
        return np.asarray(number).astype(self.dtype)[()]


class Whole:
    """One number of what an op or a rule gave, where the inside of its code is not known."""

    def __init__(self, name: str, index: Index, is_elementwise: bool) -> None:
        self.__name__, self.index, self.is_elementwise = name, index, is_elementwise


# ------------------------------------------------------------------------------------------------------ arrays of cells


class _CellArray(np.ndarray[Any, Any]):
    """An array of cells and plain numbers, as NumPy's own functions see it: what is made of it becomes such an array."""

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return _as_found(found, self.dtype)

    def __setitem__(self, index: Any, value: Any) -> None:
        is_one = isinstance(value, _CellArray) and not value.ndim  # which NumPy would put into the array as an array
        super().__setitem__(index, _objects(value)[()] if is_one else value)

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
    def dtype(self) -> Any:  # type: ignore[override]
        """The dtype of the numbers."""
        return _objects(self).dtype if self._dtype is None else self._dtype

    def astype(self, dtype: Any, *_order: Any, copy: bool = True, **_more: Any) -> Any:
        """``ndarray.astype``."""
        wanted = np.dtype(dtype)
        if wanted == self.dtype:
            return self.copy() if copy else self
        return as_cells(_made(Cast(wanted), 1)(_objects(self)), wanted)

    def values(self) -> np.ndarray[Any, Any]:
        """The numbers alone."""
        numbers = [value_of(cell) for cell in _objects(self).ravel()]
        return np.array(numbers, self.dtype).reshape(self.shape)

    def __array_function__(self, function: Any, types: Any, operands: Any, options: Any) -> Any:
        if function in (np.mean, np.var, np.std):  # these decide by the dtype of the numbers
            return super().__array_function__(function, types, operands, options)
        dtypes = list(_dtypes_in((operands, tuple(options.values()))))
        result = function(*_bare(operands), **{name: _bare(one) for name, one in options.items()})
        return _as_found(result, np.result_type(*dtypes))


def as_cells(array: Any, dtype: Any) -> Cells:
    """An array of objects as cells with numbers of a dtype."""
    found = np.asarray(array, object)
    if not found.ndim and isinstance(found[()], np.ndarray):  # NumPy put an array into the array
        found = np.asarray(_base(found[()]))
    made: Cells = found.view(Cells)
    made._dtype = np.dtype(dtype)
    return made


def cells_of(name: str, values: Any) -> Cells:
    """An array's numbers as cells that are called ``name[index]``.

    >>> cells_of("x", np.array([1.0, 2.0]))
    Cells([<cell x[0]>, <cell x[1]>], dtype=float64)
    """
    array = np.asarray(values)
    made = np.empty(array.shape, object)
    for index in np.ndindex(array.shape):
        made[index] = Cell.of_array(name, index, array[index])
    return as_cells(made, array.dtype)


def _objects(array: Any) -> np.ndarray[Any, Any]:
    """The cells as a plain array of objects."""
    return array.view(np.ndarray)


def _made(function: Any, count: int) -> np.ufunc:
    """A function that makes a cell for each number."""
    return np.frompyfunc(lambda *parents: Cell(function, parents), count, 1)


def _called(ufunc: np.ufunc, operands: Sequence[Any]) -> Cells:
    if ufunc is np.matmul:
        return _product(*operands)
    if ufunc.signature is not None or ufunc.nout != 1:
        raise TypeError(f"np.{ufunc.__name__} is not followed number by number")
    kinds = [_kind(one) for one in operands]
    dtype = ufunc.resolve_dtypes((*kinds, None))[-1]
    return as_cells(_made(ufunc, ufunc.nin)(*map(_base, operands)), dtype)


def _product(x: Any, y: Any) -> Cells:
    """``matmul``: a sum of products for each number; the products are made when somebody asks."""
    rows, columns = _base(x), _base(y)
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
    last = np.moveaxis(_base(x), gone, range(x.ndim - len(gone), x.ndim))
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
    arrays = [_objects(one) if isinstance(one, _CellArray) else one for one in operands]
    result = getattr(_made(ufunc, 2), method)(*arrays, **{n: one for n, one in options.items() if n != "dtype"})
    return None if result is None else as_cells(result, operands[0].dtype)


def _keeps(ufunc: np.ufunc) -> bool:
    """Whether the reduction of one number is that number."""
    return not ufunc.__name__.startswith("logical")


def _selected(condition: Any, x: Any, y: Any) -> Cells:
    dtype = np.result_type(*(one.dtype if hasattr(one, "dtype") else one for one in (x, y)))
    return as_cells(_made(select, 3)(_base(condition), _base(x), _base(y)), dtype)


def _base(value: Any) -> Any:
    """An operand as an array of objects, of which NumPy takes one after the other."""
    if isinstance(value, _CellArray):
        return _objects(value)
    return value.astype(object) if isinstance(value, np.ndarray) else value


def _bare(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(_bare, value))
    return value.view(_CellArray) if type(value) is Cells else value


def _as_found(result: Any, dtype: Any) -> Any:
    if isinstance(result, np.ndarray):
        return as_cells(result, dtype) if _objects(result).dtype == object else result
    return as_cells(np.array(result, object), dtype) if type(result) is Cell else result


def _dtypes_in(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _dtypes_in(value)
        elif isinstance(value, Cells):
            yield value._dtype


def _kind(value: Any) -> Any:
    """An operand as ``resolve_dtypes`` takes it."""
    if hasattr(value, "dtype"):
        return value.dtype
    return np.dtype(np.bool_) if type(value) is bool else type(value)


# ---------------------------------------------------------------------------------------------- ops that are read on cells


class _NumPy:
    """NumPy as a kernel is given it: new arrays can take cells, and what was made of cells is an array of cells."""

    def __init__(self, module: ModuleType = np) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, ModuleType):
            return _NumPy(found)
        if name == "full":
            return _full
        if name in ("zeros", "ones", "empty"):
            return lambda *given, **options: _writable(found(*given, **options))
        if name in ("asarray", "asanyarray", "array", "ascontiguousarray"):
            return lambda x, dtype=None, **options: _converted(found, x, dtype, options)
        if name in ("mean", "var", "std") or isinstance(found, (np.ufunc, type)) or not callable(found):
            return found
        return lambda *given, **options: _as_found(found(*given, **options), _first_dtype(given))


_NUMPY = _NumPy()


def _writable(array: np.ndarray[Any, Any]) -> Cells:
    """A new array into which a kernel will write cells."""
    return as_cells(array.astype(object), array.dtype)


def _full(shape: Any, value: Any, dtype: Any = None) -> Cells:
    """``np.full``, of a cell as well."""
    made = np.empty(shape, object)
    made[...] = _base(value)
    return as_cells(made, getattr(value, "dtype", np.asarray(value).dtype) if dtype is None else dtype)


def _converted(function: Any, x: Any, dtype: Any, options: Mapping[str, Any]) -> Any:
    if not isinstance(x, Cells):
        return function(x, dtype=dtype, **options)
    return x if dtype is None else x.astype(dtype, copy=False)


def _first_dtype(values: Any) -> Any:
    return next(_dtypes_in(values), np.dtype(np.float64))


def _read(op: Op, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Cells:
    """An op on cells: its kernel runs on them. Where it cannot, each number of the result comes from the op as a whole."""
    names = op.operand_names(len(operands))
    given = [
        one.values() if type(one) is Cells and name in op.constant_inputs and one.dtype.kind in "iu" else one
        for one, name in zip(operands, names, strict=True)
    ]
    dtype = op.infer_dtype([one.dtype if hasattr(one, "dtype") else one for one in given], attributes)
    if op.declared is None:
        try:
            found = op.kernel_for("cpu", given)(_NUMPY, *given, **attributes)
        except Exception:  # whatever a kernel does not do on cells
            found = None
        if isinstance(found, Cells):
            return as_cells(found, dtype)
    return as_cells(as_a_whole(op.name, lambda *o: op.apply(o, attributes), given, op.elementwise), dtype)


readings[Cells] = _read


def as_a_whole(name: str, function: Callable[..., Any], operands: Sequence[Any], is_elementwise: bool = False) -> Cells:
    """Each number of a function's result as a cell that was computed from the numbers that it depends on.

    Which these are is known for an elementwise function, and else found by changing one number after the other. Where that
    is too many numbers, a cell has no parents.
    """
    values = [one.values() if type(one) is Cells else one for one in operands]
    result = np.asarray(function(*values))
    parents = _broadcast_parents(operands) if is_elementwise else _probed_parents(function, operands, values, result)
    made = np.empty(result.shape, object)
    for index in np.ndindex(result.shape):
        made[index] = Cell(Whole(name, index, is_elementwise), parents(index), value=result[index])
    return as_cells(made, result.dtype)


def _broadcast_parents(operands: Sequence[Any]) -> Callable[[Index], tuple[Any, ...]]:
    shape = broadcast_shape(*(np.shape(one) for one in operands))
    arrays = [np.broadcast_to(_base(one), shape) for one in operands]
    return lambda index: tuple(array[index] for array in arrays)


def _probed_parents(
    function: Callable[..., Any], operands: Sequence[Any], values: Sequence[Any], result: Any
) -> Callable[[Index], tuple[Any, ...]]:
    found: dict[Index, list[Any]] = {index: [] for index in np.ndindex(result.shape)}
    moving = [place for place, one in enumerate(operands) if type(one) is Cells]
    if sum(operands[place].size for place in moving) > LARGEST_PROBED:
        return lambda index: ()
    for place in moving:
        for where, cell in np.ndenumerate(_objects(operands[place])):
            for index in np.argwhere(_changed(function, values, result, place, where)):
                found[tuple(index.tolist())].append(cell)
    return lambda index: tuple(found[index])


def _changed(function: Callable[..., Any], values: Sequence[Any], result: Any, place: int, where: Index) -> Any:
    """Which numbers of the result change when one number of an operand does."""
    differs = np.zeros(result.shape, bool)
    for other in _others(values[place], where):
        moved = [np.array(one) if at == place else one for at, one in enumerate(values)]
        moved[place][where] = other
        try:
            with np.errstate(all="ignore"):
                new = np.asarray(function(*moved))
        except OpError:  # a number that an op does not take, such as a class that there is not
            continue
        if new.shape == result.shape:
            differs |= ~((new == result) | ((new != new) & (result != result)))
    return differs


def _others(array: Any, where: Index) -> list[Any]:
    """Numbers to try in place of one: beside it, far out, and next to other numbers of the array, which may change an order."""
    old = array[where]
    if old.dtype.kind == "b":
        return [not old]
    if old.dtype.kind != "f":
        return [old + 1, max(old, 1) - 1, old + 11]
    far = 8 * float(np.max(np.abs(array[np.isfinite(array)]), initial=1.0)) + 11
    beside = [number + step for number in np.unique(array)[:NEIGHBOURS] for step in (-1e-3, 0.0, 1e-3)]
    return [old + 0.37, old - 1.7, far, -far, *beside]
