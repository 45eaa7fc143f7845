"""Kernels on arrays of cells: a kernel gets them in place of NumPy's arrays, so what a cell came from is what ran.

A kernel that cannot run on cells is a whole: which numbers its results depend on is found by changing them one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from .bindings import OpError, readings
from .cell_arrays import Cells, as_cells, as_found, dtypes_in, objects_of, operand_of
from .cells import Cell, Index, Whole
from .operand_rules import broadcast_shape

if TYPE_CHECKING:
    from .operators import Op

LARGEST_PROBED = 256  # numbers of an op that is followed by changing one after the other
NEIGHBOURS = 12  # of these numbers that each is moved next to


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
        return lambda *given, **options: as_found(found(*given, **options), _first_dtype(given))


_NUMPY = _NumPy()


def _writable(array: np.ndarray[Any, Any]) -> Cells:
    """A new array into which a kernel will write cells."""
    return as_cells(array.astype(object), array.dtype)


def _full(shape: Any, value: Any, dtype: Any = None) -> Cells:
    """``np.full``, of a cell as well."""
    made = np.empty(shape, object)
    made[...] = operand_of(value)
    return as_cells(made, getattr(value, "dtype", np.asarray(value).dtype) if dtype is None else dtype)


def _converted(function: Any, x: Any, dtype: Any, options: Mapping[str, Any]) -> Any:
    if not isinstance(x, Cells):
        return function(x, dtype=dtype, **options)
    return x if dtype is None else x.astype(dtype, copy=False)


def _first_dtype(values: Any) -> Any:
    return next(dtypes_in(values), np.dtype(np.float64))


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
    arrays = [np.broadcast_to(operand_of(one), shape) for one in operands]
    return lambda index: tuple(array[index] for array in arrays)


def _probed_parents(
    function: Callable[..., Any], operands: Sequence[Any], values: Sequence[Any], result: Any
) -> Callable[[Index], tuple[Any, ...]]:
    found: dict[Index, list[Any]] = {index: [] for index in np.ndindex(result.shape)}
    moving = [place for place, one in enumerate(operands) if type(one) is Cells]
    if sum(operands[place].size for place in moving) > LARGEST_PROBED:
        return lambda index: ()
    for place in moving:
        for where, cell in np.ndenumerate(objects_of(operands[place])):
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
