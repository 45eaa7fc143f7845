"""trace_cells: one op call and its gradients, followed number by number."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .bindings import is_number
from .cell_arrays import Cells, as_cells, cells_of
from .cell_kernels import as_a_whole
from .operators import Op
from .recording import parameter_names
from .reverse_mode import fit_cotangents, vjp
from .tensors import Tensor


@dataclass(frozen=True)
class CellTrace:
    """What one op call computed, and each number's way.

    ``result`` and ``gradients`` are the numbers that the kernel and the rules gave. ``ways`` has for ``"out"`` and for each
    input with a gradient an array of cells: how each number was computed, from the cells of the operands, of the result
    (``out``) and of the cotangent (``g``).
    """

    name: str
    operands: Mapping[str, Any]  # arrays, and Python numbers
    attributes: Mapping[str, Any]  # with the defaults of those that were not given
    result: Any
    saved: tuple[str, ...]  # what the gradient rules read: names of operands, and "out"
    cotangent: Any  # None where no gradient flows
    gradients: Mapping[str, Any]
    ways: Mapping[str, Cells]
    rules: Mapping[str, Callable[..., Any]]  # the gradient rule of each input that has a gradient
    op: Op | None  # None for a function that is made of several ops
    doc: str

    def way(self, name: str, index: tuple[int, ...]) -> Any:
        """How one number of the result or of a gradient was computed: a cell, or a number that depends on nothing."""
        return self.ways[name].view(np.ndarray)[index]


def trace_cells(
    op: Any, operands: Sequence[Any], attributes: Mapping[str, Any] | None = None, cotangent: Any = None,
    follow: bool = True,
) -> CellTrace:  # fmt: skip
    """One call of an op with its gradients, followed number by number: kernel and rules run on arrays of cells.

    Args:
        op: an op, its binding, or a function that is made of ops and gives one array.
        operands: arrays, Tensors or numbers.
        attributes: as in the call; those with a default may be left out.
        cotangent: shaped like the result; ones by default.
        follow: False for the numbers alone, without their ways.

    Raises:
        OpError: the op does not take the operands.

    >>> import autodiff_lab as ad
    >>> trace = trace_cells(ad.ops.mul, [np.array([2.0, 3.0]), np.array([5.0, 7.0])])
    >>> trace.way("out", (1,)).parents, trace.way("x", (1,)).parents
    ((<cell x[1]>, <cell y[1]>), (<cell g[1]>, <cell y[1]>))
    """
    found = getattr(op, "op", op)
    given = [_on_the_host(operand) for operand in operands]
    trace = _op_trace if isinstance(found, Op) else _function_trace
    return trace(found, given, dict(attributes or {}), cotangent, follow)


def _on_the_host(operand: Any) -> Any:
    """An operand's numbers as NumPy's; a Python number stays one."""
    if isinstance(operand, Tensor):
        return operand.numpy()
    if hasattr(operand, "get"):  # on another device
        return operand.get()
    return operand if type(operand) in (int, float, bool) else np.asarray(operand)


def _op_trace(
    op: Op, operands: Sequence[Any], attributes: Mapping[str, Any], cotangent: Any, follow: bool
) -> CellTrace:
    every = {name: value for name, value in op.attributes.items() if not op.is_required(name)} | dict(attributes)
    names = op.operand_names(len(operands))
    result = np.asarray(op.apply(operands, every))
    named = dict(zip(names, operands, strict=True))
    flowing = _flowing(op, named, result)
    g = _cotangent(cotangent, result) if flowing else None
    known = {"g": g, **named, "out": result}
    gradients = {names[place]: _pulled(op, place, known, every) for place in flowing}
    ways: dict[str, Cells] = {}
    if follow:
        cells = {name: _cells(op, name, value) for name, value in named.items()}
        ways["out"] = op.apply(list(cells.values()), every) if _any_cells(cells) else as_cells(result, result.dtype)
        known = {"g": None if g is None else cells_of("g", g), **cells, "out": cells_of("out", result)}
        ways |= {names[place]: _way_back(op, place, known, every) for place in flowing}
    rules = {names[place]: op.vjp_rule(names[place]) for place in flowing}
    saved = tuple(name for name in op.names_saved(len(operands)) if name in named or name == "out") if flowing else ()
    return CellTrace(op.name, named, every, result, saved, g, gradients, ways, rules, op, op.doc)


def _cells(op: Op, name: str, value: Any) -> Any:
    """An operand's cells; indices and classes stay numbers, because they say where something is and not how much."""
    is_place = name.partition("[")[0] in op.constant_inputs and np.asarray(value).dtype.kind in "iu"
    return value if is_number(value) or is_place else cells_of(name, value)


def _any_cells(cells: Mapping[str, Any]) -> bool:
    return any(isinstance(one, Cells) for one in cells.values())


def _flowing(op: Op, named: Mapping[str, Any], result: Any) -> list[int]:
    """The places of the operands that have a gradient: floating arrays that have a rule."""
    if not op.is_differentiable or result.dtype.kind != "f":
        return []
    return [
        place
        for place, (name, value) in enumerate(named.items())
        if getattr(getattr(value, "dtype", None), "kind", "") == "f" and name.partition("[")[0] in op.vjp_rules
    ]


def _cotangent(cotangent: Any, result: Any) -> Any:
    g = np.ones_like(result) if cotangent is None else np.asarray(_on_the_host(cotangent)).astype(result.dtype)
    if g.shape != result.shape:
        raise ValueError(f"trace_cells: the cotangent has shape {g.shape}, but the result has {result.shape}")
    return g


def _pulled(op: Op, place: int, named: Mapping[str, Any], attributes: Mapping[str, Any]) -> Any:
    """One operand's gradient, by its rule, in the operand's shape and dtype."""
    rest = {name: value for name, value in named.items() if name != "g"}
    operand = list(rest.values())[place]
    g = op.apply_vjp(place, named["g"], rest, attributes)
    return fit_cotangents([g], [(operand.shape, operand.dtype)], op.elementwise)[0]


def _way_back(op: Op, place: int, named: Mapping[str, Any], attributes: Mapping[str, Any]) -> Cells:
    """How each number of an operand's gradient was computed; by the rule as a whole where it does not run on cells."""
    try:
        found = _pulled(op, place, named, attributes)
        if isinstance(found, Cells):
            return found
    except Exception:  # whatever a rule does not do on cells
        pass
    rule = op.vjp_rule(op.inputs[0 if op.is_variadic else place]).__name__

    def pull(*values: Any) -> Any:
        return _pulled(op, place, dict(zip(named, values, strict=True)), attributes)

    return as_a_whole(rule, pull, list(named.values()))


def _function_trace(
    f: Callable[..., Any], operands: Sequence[Any], options: Mapping[str, Any], cotangent: Any, follow: bool
) -> CellTrace:
    """A function made of ops: its ops run on cells one after the other, forward and backward."""
    names = parameter_names(f, len(operands))
    named = dict(zip(names, operands, strict=True))
    moving = {name: value for name, value in named.items() if getattr(getattr(value, "dtype", None), "kind", "") == "f"}

    def of_moving(*values: Any) -> Any:
        return f(*{**named, **dict(zip(moving, values, strict=True))}.values(), **options)

    result, pull = vjp(of_moving, *moving.values())
    if not hasattr(result, "shape"):
        raise TypeError(f"trace_cells: {_name(f)} must give one array, got {type(result).__name__}; choose one of them")
    result = np.asarray(result)
    g = _cotangent(cotangent, result) if result.dtype.kind == "f" else None
    gradients = {} if g is None else dict(zip(moving, pull(g), strict=True))
    ways: dict[str, Cells] = {}
    if follow:
        way, pull_cells = vjp(of_moving, *(cells_of(name, value) for name, value in moving.items()))
        ways = {"out": way} | ({} if g is None else dict(zip(moving, pull_cells(cells_of("g", g)), strict=True)))
    return CellTrace(_name(f), named, options, result, (), g, gradients, ways, {}, None, inspect.getdoc(f) or "")


def _name(f: Callable[..., Any]) -> str:
    return str(getattr(f, "__name__", type(f).__name__))
