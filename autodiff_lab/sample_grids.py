"""More calls made from an op's samples: a grid of shapes, a grid of dtypes, and inputs for an op that has no samples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice, product
from random import Random
from typing import Any

import numpy as np

from .op_calls import OpCall, strided
from .operators import Op
from .ops.sampling import normal, positive

Shape = tuple[int, ...]

SHAPES: tuple[Shape, ...] = (
    (),
    (3,),
    (0,),
    (4,),
    (2, 3),
    (2, 1),
    (0, 3),
)  # some pairs broadcast, others must be refused
DTYPES = {"f": ("float64", "float32", "float16"), "i": ("int64", "int32", "int8", "uint8"), "b": ("bool",)}
TRIED: tuple[Shape, ...] = ((), (3,), (2, 3), (2, 2))  # for an op without samples
BASES = 3  # calls that grids are made from: those with other attributes or another number of operands
LARGEST_GRID = 300


def calls_of(op: Op, samples: Iterable[Any] | None = None) -> list[OpCall]:
    """The calls that an op is checked on, smallest first.

    They come from ``samples``, else from the op's own; for an op without any they are found by trying: numbers of both signs
    and positive ones, in a few shapes that shape rule and kernel accept.
    """
    given = op.sample_calls() if samples is None else [as_call(sample) for sample in samples]
    calls = [OpCall(op, tuple(map(_as_operand, operands)), attributes) for operands, attributes in given]
    return sorted(calls or list(_tried(op)), key=lambda call: call.size)


def as_call(sample: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """``(operands, attributes)`` of a sample; an array alone is the one operand, a tuple of arrays are all operands."""
    if isinstance(sample, tuple) and len(sample) == 2 and isinstance(sample[1], dict):
        return tuple(sample[0]), dict(sample[1])
    return (sample if isinstance(sample, tuple) else (sample,)), {}


def _as_operand(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, np.ndarray)) else np.asarray(value)


def _tried(op: Op) -> Iterator[OpCall]:
    """Calls that run, for an op about which nothing is known but its schema."""
    if any(op.is_required(name) for name in op.attributes):
        return
    count = 2 if op.is_variadic else len(op.inputs)
    for (make, shape), given in product(product((normal, positive), TRIED), _attributes_tried(op)):
        arrays = [make(*shape, seed=place) for place in range(count)]
        for dtype in ("float64", "float32", "float16", "int64", "bool"):  # the first that the op takes
            call = OpCall(op, tuple(array.astype(dtype) for array in arrays), given)
            result = outcome(call)
            if isinstance(result, np.ndarray):
                if result.dtype.kind != "f" or np.isfinite(result).all():
                    yield call
                break


def refusal(op: Op) -> str:
    """What a call says that was tried for an op without samples, to be told after "no samples"; "" where none was tried."""
    if op.sample_calls() or any(op.is_required(name) for name in op.attributes):
        return ""
    arrays = [normal(*TRIED[-1], seed=place) for place in range(2 if op.is_variadic else len(op.inputs))]
    result = outcome(OpCall(op, tuple(arrays), {}))
    return f", and arrays of a few shapes are refused ({result})" if isinstance(result, Exception) else ""


def _attributes_tried(op: Op) -> list[dict[str, Any]]:
    """The defaults, and each floating one replaced by another number: a rule that forgets it is right at 1."""
    others = [(name, default) for name, default in op.attributes.items() if type(default) is float]
    return [{}, *({name: 1.5 * default or 0.5} for name, default in others)]


def layouts(calls: Sequence[OpCall]) -> list[OpCall]:
    """The calls, and those with a matrix once more with their arrays not contiguous."""
    scattered = [
        call.with_arrays(call.arrays, [strided(call.operands[place]) for place in call.arrays])
        for call in calls
        if any(call.operands[place].ndim > 1 for place in call.arrays)
    ]
    return [*calls, *scattered[:BASES]]


def shape_grid(calls: Sequence[OpCall]) -> list[OpCall]:
    """The calls, and the same with operands of other shapes: 0-d, empty, broadcasting, and such as must be refused."""
    made = [call for base in _bases(calls) for call in islice(_other_shapes(base), LARGEST_GRID)]
    return [*calls, *made]


def dtype_grid(calls: Sequence[OpCall]) -> list[OpCall]:
    """The calls, and the same with floating operands cast to other dtypes, of the kinds that the samples have."""
    kinds = {call.operands[place].dtype.kind for call in calls for place in call.arrays if _may_be_cast(call, place)}
    return [*calls, *dtypes_tried(calls, kinds)]


def dtypes_tried(calls: Sequence[OpCall], kinds: Collection[str]) -> list[OpCall]:
    """The smallest calls with floating operands cast to every pair of dtypes of some kinds: ``f``, ``i`` and ``b``."""
    made = []
    dtypes = [dtype for kind in DTYPES if kind in kinds for dtype in DTYPES[kind]]
    for base in _bases(calls):
        places = [place for place in base.arrays if base.operands[place].dtype.kind == "f"]
        for chosen in _choices(dtypes, len(places)):
            cast = [base.operands[place].astype(dtype) for place, dtype in zip(places, chosen, strict=True)]
            made.append(base.with_arrays(places, cast))
        if base.op.elementwise:
            made += [base.with_arrays([place], [number]) for place in places[1:] for number in (2, 2.0)]
    return made


def _choices(dtypes: Sequence[str], count: int) -> list[tuple[str, ...]]:
    """A dtype for each of ``count`` operands: in every way, or in some ways where there are too many."""
    if len(dtypes) ** count <= LARGEST_GRID:
        return list(product(dtypes, repeat=count))
    draw = Random(0)
    return [tuple(draw.choices(dtypes, k=count)) for _ in range(LARGEST_GRID)]


def _may_be_cast(call: OpCall, place: int) -> bool:
    return call.names[place].partition("[")[0] not in call.op.constant_inputs


def _bases(calls: Sequence[OpCall]) -> list[OpCall]:
    """The smallest calls with an array that is not empty, one for each set of attributes and number of arrays."""
    found: dict[Any, OpCall] = {}
    for call in calls:
        if call.arrays and all(call.operands[place].size for place in call.arrays):
            found.setdefault((str(sorted(call.given.items(), key=str)), len(call.arrays)), call)
    return list(found.values())[:BASES]


def _other_shapes(base: OpCall) -> Iterator[OpCall]:
    if base.op.elementwise:
        for shapes in product(SHAPES, repeat=len(base.arrays)):
            yield _shaped(base, shapes)
        return
    seen = [base.operands[place].shape for place in base.arrays]
    for which, shape in enumerate(seen):
        for other in _neighbours(shape):
            yield _shaped(base, [*seen[:which], other, *seen[which + 1 :]])


def _neighbours(shape: Shape) -> Iterator[Shape]:
    """Shapes near to one: an axis of another size, an axis fewer, an axis more."""
    for axis, size in enumerate(shape):
        for other in {0, 1, size + 1} - {size}:
            yield (*shape[:axis], other, *shape[axis + 1 :])
    if shape:
        yield shape[1:]
        yield ()
    yield (2, *shape)


def _shaped(base: OpCall, shapes: Sequence[Shape]) -> OpCall:
    """The call with its arrays' numbers repeated or cut to fill other shapes."""
    return base.with_arrays(
        base.arrays, [np.resize(base.operands[p], s) for p, s in zip(base.arrays, shapes, strict=True)]
    )


# ------------------------------------------------------------------------------------------------------------ outcomes


def outcome(call: OpCall) -> Any:
    """The result as an array, or the error with which the kernel refuses the call."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(call.run())
    except Exception as error:
        return error.__cause__ or error


def refuses_the_numbers(call: OpCall) -> bool:
    """Whether a kernel that refuses a call may refuse its numbers, which no shape rule can know: an index out of range."""
    places = [place for place, operand in enumerate(call.operands) if np.asarray(operand).dtype.kind in "iub"]
    if not places or any(np.size(operand) == 0 for operand in call.operands):
        return bool(places)
    zeros = call.with_arrays(places, [np.zeros_like(call.operands[place]) for place in places])
    return isinstance(outcome(zeros), np.ndarray)
