"""The generated functions that users call, and the three ways to read an op call: arrays, Tensors, symbols.

``ops.mul(x, y)`` is a function generated from the op's schema. Where every operand is a Tensor of one level that holds a NumPy
array and nobody listens, it runs the kernel and records the result at once; this is the hot path of eager training. Tensors
of one level that hold something else, or carry tangents, go to the op's ``record`` or ``push``, generated too, which know its
inputs and rules. Every other case goes to ``call``, which says the same in general form: while nobody listens by ``record``
and ``push``; else by ``_record`` and ``_push_tangents`` below, which also tell what they do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from . import backend, events
from .sources import BINDING_FILE, call_site
from .tangents import TangentWatcher, numbered
from .tensors import Level, Record, Tensor, next_serial

if TYPE_CHECKING:
    from .families import Family
    from .operators import Op

NO_ATTRIBUTES: dict[str, Any] = {}
FLOATING_SCALARS = frozenset([np.float16, np.float32, np.float64])

# How a call is read whose operands are of some type; recording adds its symbols here.
readings: dict[type, Callable[[Op, Sequence[Any], dict[str, Any]], Any]] = {}


# ------------------------------------------------------------------------------------------------- an op call in general


def call(op: Op, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """Read one op call: at the highest level among its Tensors, or on plain arrays or symbols where there is none."""
    level: Level | None = None
    for operand in operands:
        if type(operand) is Tensor:
            its = operand._level
            if level is None or its.depth > level.depth:
                level = its
    try:
        if level is None:
            return compute(op, operands, attributes)
        if level.reading is not None:
            return level.reading(op, operands, attributes, level)
        if not op.is_differentiable:
            return _call_below(op, operands, attributes, level)
        if events.context.get() is None and not op.is_variadic:
            return (op.record if level.is_reverse else op.push)(op, operands, attributes, level)
        if level.is_reverse:
            return _record(op, operands, attributes, level)
        return _push_tangents(op, operands, attributes, level)
    except OpError as error:
        _tell_failed(op, operands, attributes, level, error)
        raise
    except (TypeError, ValueError, IndexError) as error:
        explained = op.explained(error, operands, attributes)
        _tell_failed(op, operands, attributes, level, explained)
        raise explained from error
    except BaseException as error:  # an interrupt too
        _tell_failed(op, operands, attributes, level, error)
        raise


class OpError(ValueError, TypeError, IndexError):
    """An op was called with operands or attributes that it cannot take; the text names op, argument and what was seen."""


def compute(op: Op, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """Run an op's kernel on arrays and Python numbers, or hand the call to the reading of its operands' type."""
    device = "cpu"
    launch: Callable[..., Any] | None = None
    arrays = list(operands)
    for place, operand in enumerate(arrays):
        kind = type(operand)
        if kind is np.ndarray or kind in (float, int, bool):
            continue
        if kind in readings:
            return readings[kind](op, operands, attributes)
        if isinstance(operand, (list, tuple, complex, np.generic, np.ndarray)):
            arrays[place] = real_array(operand)
        elif backend.is_array(operand):
            device, launch = device_of(operand), getattr(operand, "launch", None)
        else:
            raise TypeError(f"an operand is {type(operand).__name__}; ops take Tensors, arrays and numbers")
    if device != "cpu":
        backend.common_device([device_of(operand) for operand in operands if not is_number(operand)])
        arrays = [array[()] if type(array) is np.ndarray else array for array in arrays]  # a NumPy scalar again
    library = np if device == "cpu" else backend.library_of(device)
    if op.declared is not None:
        arrays = op.declared.converted(arrays, attributes, library)
    kernel = op.kernel_for(device, arrays)
    if device == "cpu":
        result = kernel(library, *arrays, **attributes)
    elif launch is not None and "device" not in attributes:
        return launch(op, kernel, arrays, attributes)
    else:
        with backend.current(device):
            result = kernel(library, *arrays, **attributes)
    return result if type(result) is np.ndarray or backend.is_elsewhere(result) else _number_as_array(result, kernel)


def _number_as_array(result: Any, kernel: Any) -> np.ndarray[Any, Any]:
    """What a kernel gave where that is no array: a number becomes a 0-d array, anything else is refused."""
    if isinstance(result, (np.generic, np.ndarray, int, float)):
        return np.asarray(result)
    given = "None: is its return missing?" if result is None else f"a {type(result).__name__}."
    raise TypeError(f"kernel {kernel.__name__} gave {given} A kernel returns one array, or a number")


def is_number(operand: Any) -> bool:
    """Whether an operand is a plain number, which lies on no device: Python's, or a NumPy scalar."""
    return isinstance(operand, (int, float, np.generic))


def device_of(value: Any) -> str:
    """The device of an array, Tensor, symbol or Python number; a list, which will become a NumPy array, is on ``cpu``."""
    if type(value) is np.ndarray:
        return "cpu"
    if type(value) is Tensor or type(value) in readings:
        return value.device  # type: ignore[no-any-return]
    return backend.device_of(value) if backend.is_array(value) else "cpu"


def as_operand(value: Any) -> Any:
    """An operand that meets a Tensor: itself, or an array of real numbers.

    A NumPy scalar or a 0-d array becomes a Python number, so that ``np.sqrt(64.0) * x`` keeps x's float32.
    """
    kind = type(value)
    if kind is Tensor or kind is float or (kind is np.ndarray and value.ndim and value.dtype.kind in "biuf"):
        return value
    if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0 and value.dtype.kind in "biuf":
        return value.item()
    return real_array(value) if isinstance(value, (list, tuple, complex, np.ndarray, np.generic)) else value


def real_array(value: Any) -> np.ndarray[Any, Any]:
    """``value`` as a NumPy array of real numbers."""
    if type(value).__name__ == "MaskedArray":  # by name, because numpy.ma is loaded only by who uses it
        raise TypeError(
            "an operand is a masked array, whose mask ops do not know; fill it, or use ops.where with the mask"
        )
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"an operand has dtype {array.dtype}; ops take real numbers")
    return array


def _call_below(op: Op, operands: Sequence[Any], attributes: dict[str, Any], level: Level) -> Any:
    """An op without gradients: its result is a constant of the level."""
    return Tensor(op.apply(_at_level(operands, level), attributes), level)


def _at_level(operands: Sequence[Any], level: Level) -> list[Any]:
    """The operands as seen one level below: Tensors of the level give their values, everything else stays."""
    return [o._data if type(o) is Tensor and o._level is level else o for o in operands]


# --------------------------------------------------------------------------- arguments and results of a transformed function


def at_level(leaf: Any, level: Level, where: str) -> Tensor:
    """A result as a Tensor of the level; one that does not depend on the level's inputs becomes a constant there."""
    return leaf if type(leaf) is Tensor and leaf._level is level else Tensor(as_value(leaf, where), level)


def as_value(leaf: Any, where: str) -> Any:
    """An argument or result of a transformed function: a Tensor or symbol itself, anything else as an array."""
    if type(leaf) is np.ndarray or type(leaf) is Tensor or type(leaf) in readings:
        return leaf
    if not isinstance(leaf, (int, float)) and not backend.is_array(leaf):
        raise TypeError(f"{where}: expected numbers, arrays or Tensors (or lists, tuples, dicts of them), got {leaf!r}")
    return np.asarray(leaf) if isinstance(leaf, (int, float, np.generic)) else leaf


# ----------------------------------------------------------------------------------------------- reverse mode: recording


def _record(op: Op, operands: Sequence[Any], attributes: dict[str, Any], level: Level) -> Tensor:
    """Compute, and keep what the gradient rules will need.

    While nobody listens, guards or records a graph, an op's ``record`` does the same by generated code.
    """
    operands = [as_operand(o) for o in operands]
    values = _at_level(operands, level)
    result = op.apply(values, attributes)
    context = events.context.get()
    if context is not None and context.guard is not None:
        context.guard.check_result(op, dict(zip(op.operand_names(len(values)), values, strict=True)), result)
    if context is not None and not context.records:
        if context.recorder is not None:
            context.recorder.note_unrecorded(operands)
        return Tensor(result, level)
    parents = tuple(
        o._history if type(o) is Tensor and o._level is level and name not in op.constant_inputs else None
        for o, name in zip(operands, op.operand_names(len(operands)), strict=True)
    )
    if all(parent is None for parent in parents) or dtype_of(result).kind != "f":
        return Tensor(result, level)
    saved = _saved_values(op, operands, values, result, parents)
    record: Record = (next_serial(), op, parents, owned(attributes), operand_specs(values, parents), *saved)
    if context is not None:
        _tell_call(context, record, values, result)
    return Tensor(result, level, record)


def owned(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes of which nobody else can change a part later: arrays and lists, as in an index, are copied."""
    if attributes and any(type(value) in _CHANGEABLE for value in attributes.values()):
        return {name: _owned(value) for name, value in attributes.items()}
    return attributes


_CHANGEABLE = (np.ndarray, list, tuple)  # a tuple may hold one of the others


def _owned(value: Any) -> Any:
    if type(value) is np.ndarray:
        return value.copy()
    return type(value)(map(_owned, value)) if type(value) in (list, tuple) else value


def _saved_values(
    op: Op, operands: Sequence[Any], values: Sequence[Any], result: Any, parents: Sequence[Any]
) -> tuple[Any, ...]:
    """The values that the rules of the recorded operands name, in the order of ``op.names_saved``; None for the others."""
    names = op.operand_names(len(operands))
    named = dict(zip(names, values, strict=True)) | {"out": result}
    for name, operand in zip(names, operands, strict=True):
        if type(operand) is not Tensor and _may_change(operand):
            named[name] = operand.copy()
    wanted = op.wanted_for(
        tuple(name for name, parent in zip(names, parents, strict=True) if parent is not None), len(names)
    )
    return tuple(saved_value(named, name) if name in wanted else None for name in op.names_saved(len(operands)))


def _may_change(operand: Any) -> bool:
    """Whether the caller can change an operand after the call: an array, here or on a GPU."""
    return type(operand) is np.ndarray or hasattr(operand, "__cuda_array_interface__")


def saved_value(named: dict[str, Any], name: str) -> Any:
    """What a rule gets for a name: a value, or for ``x_shape``, ``x_dtype``, ``x_device`` a fact about the value of ``x``."""
    if name in named:
        return named[name]
    value_name, _, fact = name.rpartition("_")
    value = named[value_name]
    return FACTS[fact](value)


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of an array, Tensor, symbol or Python number."""
    shape: tuple[int, ...] = getattr(value, "shape", ())
    return shape


def dtype_of(value: Any) -> np.dtype[Any]:
    """The dtype of an array, Tensor, symbol or Python number."""
    dtype: np.dtype[Any] | None = getattr(value, "dtype", None)
    return np.dtype(type(value)) if dtype is None else dtype


FACTS: dict[str, Callable[[Any], Any]] = {"shape": shape_of, "dtype": dtype_of, "device": device_of}


def operand_specs(values: Sequence[Any], parents: Sequence[Any]) -> tuple[Any, ...] | None:
    """Shape and dtype of each operand (a Python number stands for itself); None where all are recorded and alike."""
    if len(values) == 1 and parents[0] is not None:
        return None
    specs = tuple([(v.shape, v.dtype) if hasattr(v, "shape") else v for v in values])
    return None if None not in parents and specs.count(specs[0]) == len(specs) else specs


def _tell_call(context: events.Context, record: Record, values: Sequence[Any], result: Any) -> None:
    serial, op, parents, attributes, _, *saved = record
    if context.guard is not None:
        context.guard.note(record)
    if context.recorder is not None:
        context.recorder.note_record(record, result)
    if context.receiver is not None:
        assert op is not None
        name, source = call_site()
        inputs = tuple(None if parent is None else parent[0] for parent in parents)
        names = tuple(_leaf_name(parent) for parent in parents)
        kept = dict(zip(op.names_saved(len(parents)), saved, strict=True))
        arrays = {saved_name: value for saved_name, value in kept.items() if hasattr(value, "nbytes")}
        called = events.OpCalled(
            serial, op.name, inputs, name, context.scope, source, result, tuple(values), attributes, arrays, names
        )
        context.receiver(called)


def _leaf_name(record: Any) -> str:
    """The name with which a Tensor that is no op's result was made, or ""."""
    return record[4].name or "" if record is not None and record[1] is None else ""


def _tell_failed(
    op: Op, operands: Sequence[Any], attributes: dict[str, Any], level: Level | None, error: BaseException
) -> None:
    """Tell that a call on Tensors raised an error; it is told once, though a call holds one at each lower level."""
    context = events.context.get()
    if context is None or context.receiver is None or level is None or getattr(error, "_is_told", False):
        return
    error._is_told = True  # type: ignore[attr-defined]
    parents = [o._history if type(o) is Tensor and o._level is level and level.is_reverse else None for o in operands]
    inputs = tuple(None if parent is None else parent[0] for parent in parents)
    values, names = tuple(_at_level(operands, level)), tuple(map(_leaf_name, parents))
    name, source = call_site()
    reason = str(error) if isinstance(error, OpError) else f"{type(error).__name__}: {error}".removesuffix(": ")
    failed = events.OpFailed(
        next_serial(), op.name, inputs, name, context.scope, source, values, attributes, names, reason
    )
    context.receiver(failed)


# --------------------------------------------------------------------------------------------- forward mode: tangents


def _push_tangents(op: Op, operands: Sequence[Any], attributes: dict[str, Any], level: Level) -> Tensor:
    """Compute once, and carry every tangent along: for each, the sum of one JVP rule per operand that has tangents.

    While nobody listens or guards, an op's ``push`` does the same by generated code.
    """
    names = op.operand_names(len(operands))
    named: dict[str, Any] = {}
    moving: dict[int, Any] = {}
    for place, (name, operand) in enumerate(zip(names, operands, strict=True)):
        if type(operand) is not Tensor or operand._level is not level:
            named[name] = as_operand(operand)
            continue
        named[name] = operand._data
        if operand._history is not None and name not in op.constant_inputs:
            moving[place] = operand._history
    result = op.apply([*named.values()], attributes)
    context = events.context.get()
    if context is not None and context.guard is not None:
        context.guard.check_result(op, named, result)
    named["out"] = result
    if not moving or (context is not None and not context.records):
        return Tensor(result, level)
    watcher = None if context is None else TangentWatcher(context, op, named, moving, attributes)
    if watcher is not None:
        watcher.tell_call()
    tangents = []
    for number, directions in enumerate(zip(*moving.values(), strict=True)):
        tangent: Any = None
        for place, direction in zip(moving, directions, strict=True):
            part = op.apply_jvp(place, direction, named, attributes)
            tangent = part if tangent is None else tangent + part
            if watcher is not None:
                watcher.tell_part(number, place, part, tangent)
        tangents.append(op.fit_tangent(tangent, result))
    return Tensor(result, level, tuple(tangents) if watcher is None else numbered(tangents, watcher.serial))


# ------------------------------------------------------------------------------------------------------ generated code

# The generated code's own names start with an underscore; registering refuses such names for inputs and attributes. What
# belongs to an input also ends as none of the others does, in _value, _record, _tangents, _rule or _jvp: an input may be called
# kernel.


_NUMBERS = frozenset([int, float])
_PLAIN = _NUMBERS | {np.ndarray}
RULES = ("shape_rule", "dtype_rule", "batch_rule", "vjp", "jvp", "kernel", "samples")


def attach_rules(op: Op | Family, binding: Any) -> Any:
    """Let rules be hung on a binding, as in ``@scaled_tanh.vjp``."""
    binding.op = op
    for rule in RULES:
        setattr(binding, rule, getattr(op, rule))
    return binding


def new_binding(op: Op | Family) -> Callable[..., Any]:
    """The function that users call, with signature and docstring. Its code is completed by ``complete`` at the first call."""
    names = (*op.inputs, *op.attributes)
    code = _unfinished_code(len(op.inputs), len(op.attributes))
    code = code.replace(
        co_name=op.name, co_qualname=op.name, co_varnames=names, co_filename=f"{BINDING_FILE} {op.name}"
    )
    namespace = {"_first_call": op.first_call, "_default": op.attributes, "_NO_ATTRIBUTES": NO_ATTRIBUTES}
    defaults = tuple(op.attributes[name] for name in op.attributes if not op.is_required(name))
    defaults = (None,) * len(op.optional_inputs) + defaults
    binding = FunctionType(code, namespace, op.name, defaults)
    binding.__doc__ = op.doc
    binding.__module__ = op.module
    return binding


@cache
def _unfinished_code(inputs: int, attributes: int) -> CodeType:
    """Code that hands its first call on; compiled once for all ops with so many parameters, which halves the import."""
    operands, values = ([f"_{kind}{i}" for i in range(n)] for kind, n in (("input", inputs), ("attribute", attributes)))
    source = (
        f"def binding({', '.join([*operands, *values])}):\n    return _first_call({_tuple(operands)}, {_tuple(values)})"
    )
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    code: CodeType = namespace["binding"].__code__
    return code


def complete(op: Op) -> str:
    """Give the binding its fast code, now that the op's rules are known, and generate the op's ``pull``. Returns the code."""
    namespace = op.binding.__globals__
    kernels = op.cpu_kernels()
    rules = {f"_{name}_rule": op.vjp_rule(name) for name in op.flowing_inputs}
    namespace |= {
        "_call": call, "_context": events.context.get, "_kernel": kernels.get(None), "_ndarray": np.ndarray,
        "_kernels": kernels, "_fits": op.declared and op.declared.fits, "_scalars": FLOATING_SCALARS,
        "_new": Tensor.__new__, "_next_serial": next_serial, "_numpy": np, "_op": op,
        "_owned": owned, "_NO_ATTRIBUTES": NO_ATTRIBUTES, "_Tensor": Tensor, "_type": type, **rules,
    }  # fmt: skip
    namespace |= {f"_{fact}_of": function for fact, function in FACTS.items()}
    namespace |= {f"_{name}_jvp": op.jvp_rule(name) for name in op.flowing_inputs}
    namespace |= {
        "_as_operand": as_operand, "_binding": op.binding, "_hasattr": hasattr, "_len": len, "_may_change": _may_change,
        "_numbers": _NUMBERS, "_operand_specs": operand_specs, "_plain": _PLAIN, "_range": range, "_refuse": refuse_part,
    }  # fmt: skip
    sources = _sources(op)
    first = [sources[name] for name in sources if name not in ("_record", "_push")]
    exec(compile("\n".join(first), f"{BINDING_FILE} {op.name}", "exec"), namespace)
    if op.is_differentiable:  # first, since another thread may call the binding, and sweep, as soon as it has its code
        op.pull = variadic_pull(op) if op.is_variadic else namespace["_pull"]
        op.record, op.push = (_at_first_need(op, name, sources.get(f"_{name}", "")) for name in ("record", "push"))
    op.binding.__code__ = namespace[_identifier(op)].__code__
    namespace[_identifier(op)] = op.binding
    return "\n".join(sources.values())


def _at_first_need(op: Op, name: str, source: str) -> Callable[..., Tensor]:
    """A function that puts the generated one in its place when it is called, since compiling both takes 0.3 ms an op."""

    def generate(*arguments: Any) -> Tensor:
        namespace = op.binding.__globals__
        exec(compile(source, f"{BINDING_FILE} {op.name}", "exec"), namespace)
        if getattr(op, name) is generate:  # else a rule was replaced meanwhile
            setattr(op, name, namespace[f"_{name}"])
        return namespace[f"_{name}"](*arguments)  # type: ignore[no-any-return]

    return generate


def variadic_pull(op: Op) -> Callable[..., tuple[Any, ...]]:
    """``pull`` of an op with any number of inputs: its one rule, for each recorded operand."""
    rule, needs = op.vjp_rule(op.inputs[0]), op.vjp_needs(op.inputs[0])

    def pull(g: Any, record: Record) -> tuple[Any, ...]:
        _, _, parents, attributes, _, *saved = record
        named = dict(zip(op.names_saved(len(parents)), saved, strict=False))
        wanted = {name: attributes[name] for name in op.vjp_attributes(op.inputs[0])}
        return tuple(
            None if parent is None else rule(g, *rule_values(op, needs, named, place, len(parents)), **wanted)
            for place, parent in enumerate(parents)
        )

    return pull


def refuse_part(rule: Any, part: Any) -> None:
    """Say that what a JVP rule gave is no part of a tangent."""
    raise TypeError(f"jvp rule {rule.__name__} gave {part!r}; a rule returns its part of the result's tangent")


def rule_values(op: Op, needs: Sequence[str], named: dict[str, Any], place: int, count: int) -> list[Any]:
    """What a rule is given for the names it reads; for a variadic op's inputs the values of all operands."""
    if not op.is_variadic:
        return [saved_value(named, need) for need in needs]
    values: list[Any] = []
    for need in needs:
        if need == "place":
            values.append(place)
        elif op.is_of_each(need):
            values.append(tuple(saved_value(named, name) for name in op.per_operand([need], count)))
        else:
            values.append(saved_value(named, need))
    return values


def binding_source(op: Op) -> str:
    """The Python text that is generated for an op: its binding and, if it has gradients, ``_record``, ``_pull`` and ``_push``.

    >>> from autodiff_lab import registry
    >>> print(binding_source(registry["exp"]))  # doctest: +ELLIPSIS
    def exp(x):
        if _type(x) is _Tensor and _context() is None:
    ...
    """
    return "\n".join(_sources(op).values())


def _sources(op: Op) -> dict[str, str]:
    """The text of each function that is generated for an op, by name."""
    operands = f"(*{op.inputs[0]},)" if op.is_variadic else _tuple(op.inputs)
    general = f"return _call(_op, {operands}, {_dict(op.attributes)})"
    body = ""
    if not op.is_variadic and "device" not in op.attributes:
        body += _recording_source(op) if op.is_differentiable else ""
        body += _array_source(op)
        body += _batch_source(op) if op.elementwise else ""
        body += _number_source(op)
    found = {_identifier(op): f"def {_identifier(op)}({_parameters(op)}):\n{body}    {general}\n"}
    if op.is_differentiable and not op.is_variadic:
        found |= {"_record": _record_source(op), "_pull": _pull_source(op), "_push": _push_source(op)}
    return found


def _identifier(op: Op) -> str:
    """The op's name as a name of Python: an op of a family has a dot in its own."""
    return op.name.replace(".", "_")


def signature(op: Op) -> str:
    """How an op is called: ``scaled_tanh(x, alpha=1.0)``."""
    return f"{op.name}{inspect.signature(op.binding)}"


def _kernel_expression(op: Op, first: str) -> str:
    """The kernel that serves NumPy arrays: one, or by the dtype of the first. None, where there is none, raises a TypeError."""
    by_dtype = len(op.cpu_kernels().keys() - {None}) > 0
    return f"_kernels.get({first}.dtype, _kernel)" if by_dtype else "_kernel"


def _type_check(op: Op, names: Sequence[str]) -> str:
    """The condition that declared types add to the fast paths."""
    return f" and _fits({_tuple(names)}, {_dict(op.attributes)})" if op.declared is not None else ""


def _array_source(op: Op) -> str:
    """The part of a binding that runs the kernel on NumPy arrays; on an error ``call`` runs it again and explains.

    A NumPy scalar becomes an array by ``__array__``, which takes no longer than ``np.asarray`` and which None does not have:
    a result, and an operand that is alone, as NumPy makes it of a 0-d cotangent.
    """
    arrays = " and ".join(f"_type({name}) is _ndarray" for name in op.inputs)
    return _kernel_source(op, f"{arrays}{_type_check(op, op.inputs)}") + (
        _scalar_source(op) if len(op.inputs) == 1 else ""
    )


def _kernel_source(op: Op, condition: str) -> str:
    """The part of a binding that returns what the kernel gives for the operands as they are."""
    passed = ", ".join([*op.inputs, *(f"{a}={a}" for a in op.attributes)])
    return f"""    if {condition}:
        try:
            _out = {_kernel_expression(op, op.inputs[0])}(_numpy, {passed})
            return _out if _type(_out) is _ndarray else _out.__array__()
        except (AttributeError, TypeError, ValueError, IndexError):
            pass
"""


def _scalar_source(op: Op) -> str:
    """The part of a binding that makes a 0-d array of its only operand, where that is a floating scalar of NumPy."""
    passed = ", ".join([f"{op.inputs[0]}.__array__()", *(f"{a}={a}" for a in op.attributes)])
    return f"""    elif _type({op.inputs[0]}) in _scalars:
        return _op.binding({passed})
"""


def _recording_source(op: Op) -> str:
    """The part of a binding for Tensors of one level: around NumPy arrays it runs the kernel, and records the result.

    On an error ``call`` does it again and explains.
    """
    first, names, flowing = op.inputs[0], op.inputs, op.flowing_inputs
    tensors = " and ".join(f"_type({name}) is _Tensor" for name in names)
    same_level = "".join(f" and {name}._level is _level" for name in names[1:])
    arrays = " and ".join(f"_type({_local(name)}) is _ndarray" for name in names)
    passed = ", ".join([*map(_local, names), *(f"{a}={a}" for a in op.attributes)])
    values = "; ".join(f"{_local(name)} = {name}._data" for name in names)
    records = "; ".join(f"_{name}_record = {f'{name}._history' if name in flowing else None}" for name in names)
    nothing_flows = " and ".join(f"_{name}_record is None" for name in flowing)
    if not op.keeps_floating:
        nothing_flows = f"_out.dtype.kind != 'f' or {nothing_flows}"
    parents = _tuple([f"_{name}_record" for name in names])
    saved = "".join(f", {_saved_expression(op, name)}" for name in op.saved_names)
    specs = _tuple([f"({_local(name)}.shape, {_local(name)}.dtype)" for name in names])
    return f"""    if {tensors} and _context() is None:
        _level = {first}._level
        {values}
        if _level.is_reverse{same_level} and {arrays}{_type_check(op, [*map(_local, names)])}:
            try:
                _out = {_kernel_expression(op, _local(first))}(_numpy, {passed})
                if _type(_out) is not _ndarray:
                    _out = _out.__array__()
            except (AttributeError, TypeError, ValueError, IndexError):
                return _call(_op, {_tuple(names)}, {_dict(op.attributes)})
            _result = _new(_Tensor)
            _result._data = _out
            _result._level = _level
            {records}
            if {nothing_flows}:
                _result._history = None
            else:
                _result._history = (
                    _next_serial(), _op, {parents}, {_owned_expression(op)}, {_specs_expression(op, specs)}{saved}
                )
            return _result
        if not _level.is_batch{same_level}:
            try:
                return (_op.record if _level.is_reverse else _op.push)(_op, {_tuple(names)}, {_dict(op.attributes)}, _level)
            except (AttributeError, TypeError, ValueError, IndexError):
                return _call(_op, {_tuple(names)}, {_dict(op.attributes)})
"""


def _pull_source(op: Op) -> str:
    """Source of ``_pull``: from the cotangent of the result to one contribution per operand, by one rule each."""
    parts = []
    for name in op.inputs:
        if name not in op.flowing_inputs:
            parts.append("None")
            continue
        given = [_local(need) for need in op.vjp_needs(name)]
        given += [f"{attribute}=_attributes[{attribute!r}]" for attribute in op.vjp_attributes(name)]
        applied = f"_{name}_rule({', '.join(['_g', *given])})"
        parts.append(applied if len(op.inputs) == 1 else f"None if _{name}_record is None else {applied}")
    fields = ["_serial", "_op", "_parents", "_attributes", "_operands", *map(_local, op.saved_names)]
    lines = [f"{_tuple(fields)} = _record"]
    lines += [f"{_tuple([f'_{name}_record' for name in op.inputs])} = _parents"] if len(op.inputs) > 1 else []
    return _function("_pull(_g, _record)", [*lines, f"return {_tuple(parts)}"])


def _number_source(op: Op) -> str:
    """The part of a binding of two inputs that runs the kernel on a NumPy array beside a number of Python."""
    if len(op.inputs) != 2 or op.declared is not None or op.cpu_kernels().keys() != {None}:
        return ""
    x, y = op.inputs
    return _kernel_source(
        op, f"_type({x}) is _ndarray and _type({y}) in _numbers or _type({y}) is _ndarray and _type({x}) in _numbers"
    )


def _batch_source(op: Op) -> str:
    """The part of a binding that maps an elementwise op of one or two inputs over a batch, where no axes are to be added.

    That is so for one stack, for stacks of one rank, and for a stack beside a number or an array of fewer axes; ``map_batch``
    has the rest.
    """
    text = ""
    for stacks in [one for count in (1, 2) for one in combinations(op.inputs, count)] if len(op.inputs) <= 2 else []:
        first, arrays = stacks[0], [name for name in op.inputs if name not in stacks]
        conditions = [
            f"_type({name}) is _Tensor" if name in stacks else f"_type({name}) in _plain" for name in op.inputs
        ]
        conditions += [f"{first}._level.is_batch"]
        conditions += [
            f"{name}._level is {first}._level and {name}._data.ndim == {first}._data.ndim" for name in stacks[1:]
        ]
        conditions += [f"(_type({o}) is not _ndarray or 0 < {o}.ndim < {first}._data.ndim)" for o in arrays]
        values = [f"{name}._data" if name in stacks else name for name in op.inputs]
        passed = ", ".join([*values, *(f"{a}={a}" for a in op.attributes)])
        text += f"    if {' and '.join(conditions)}:\n        return _Tensor(_binding({passed}), {first}._level)\n"
    return text


def _record_source(op: Op) -> str:
    """Source of ``_record``: the op's value, recorded, for operands of any kind. What the caller can change later is copied."""
    values, records = [*map(_local, op.inputs)], [f"_{name}_record" for name in op.inputs]
    kept = [name for name in op.inputs if name in op.saved_names]
    record = [
        "_next_serial()", "_op", _tuple(records), "_owned(_attributes)" if op.attributes else "_NO_ATTRIBUTES",
        _specs_expression(op, f"_operand_specs({_tuple(values)}, {_tuple(records)})"),
        *(_saved_expression(op, name, True) for name in op.saved_names),
    ]  # fmt: skip
    nothing_flows = " and ".join(f"{one} is None" for one in records)
    lines = [
        *_value_lines(op, "record"),
        f"if {nothing_flows}:" if op.keeps_floating else f"if {nothing_flows} or _out.dtype.kind != 'f':",
        "    return _Tensor(_out, _level)",
        *(
            f"if _type({name}) is not _Tensor and _may_change({_local(name)}): {_local(name)} = {_local(name)}.copy()"
            for name in kept
        ),
        f"return _Tensor(_out, _level, {_tuple(record)})",
    ]
    return _function("_record(_op, _operands, _attributes, _level)", lines)


def _push_source(op: Op) -> str:
    """Source of ``_push``: the op's value, and each of its tangents: the sum of one part per operand that has tangents."""
    lines = [
        *_value_lines(op, "tangents"),
        f"_moving = {' or '.join(f'_{name}_tangents' for name in op.flowing_inputs)}",
        "if not _moving:",
        "    return _Tensor(_out, _level)",
        "_tangents = []",
        "for _direction in _range(_len(_moving)):",
        "    _tangent = None",
    ]
    for name in op.flowing_inputs:
        given = [f"_{name}_tangents[_direction]", *(_fact_expression(op, need) for need in op.jvp_needs(name))]
        given += [f"{attribute}=_attributes[{attribute!r}]" for attribute in op.jvp_attributes(name)]
        lines += [
            f"    if _{name}_tangents:",
            f"        _part = _{name}_jvp({', '.join(given)})",
            "        if _type(_part) is not _ndarray and _type(_part) is not _Tensor and not _hasattr(_part, 'shape'):",
            f"            _refuse(_{name}_jvp, _part)",
            "        _tangent = _part if _tangent is None else _tangent + _part",
        ]
    lines += [
        "    if _tangent.shape != _out.shape or _tangent.dtype is not _out.dtype:",
        "        _tangent = _op.fit_tangent(_tangent, _out)",
        "    _tangents.append(_tangent)",
        "return _Tensor(_out, _level, (*_tangents,))",
    ]
    return _function("_push(_op, _operands, _attributes, _level)", lines)


def _value_lines(op: Op, history: str) -> list[str]:
    """The lines that read the operands one level below, and compute: ``_x_value`` and, as ``_x_record``, its history."""
    lines = [f"{_tuple(op.inputs)} = _operands"]
    for name in op.inputs:
        flows = name in op.flowing_inputs
        lines += [
            f"if _type({name}) is _Tensor and {name}._level is _level:",
            f"    {_local(name)} = {name}._data; _{name}_{history} = {f'{name}._history' if flows else None}",
            "else:",
            f"    {_local(name)} = {name} if _type({name}) is _Tensor else _as_operand({name}); _{name}_{history} = None",
        ]
    passed = [*map(_local, op.inputs), *(["**_attributes"] if op.attributes else [])]
    return [*lines, f"_out = _binding({', '.join(passed)})"]


def _function(head: str, lines: Sequence[str]) -> str:
    return "\n    ".join([f"def {head}:", *lines]) + "\n"


def _fact_expression(op: Op, name: str, of_any: bool = True) -> str:
    """What a rule reads under a name: a value, or a fact about one; ``of_any`` value, an array's else."""
    if name in (*op.inputs, "out"):
        return "_out" if name == "out" else _local(name)
    holder, _, fact = name.rpartition("_")
    value = "_out" if holder == "out" else _local(holder)
    return f"_{fact}_of({value})" if of_any else f"{value}.{fact}"


def _saved_expression(op: Op, name: str, of_any: bool = False) -> str:
    """The value that is saved under a name, if an operand is recorded whose rule needs it."""
    value = _fact_expression(op, name, of_any)
    readers = [f"_{reader}_record is not None" for reader in op.flowing_inputs if name in op.vjp_needs(reader)]
    if not readers:  # a rule that was replaced has read it
        return "None"
    return value if len(readers) == len(op.flowing_inputs) else f"{value} if {' or '.join(readers)} else None"


def _owned_expression(op: Op) -> str:
    return f"_owned({_dict(op.attributes)})" if op.attributes else "_NO_ATTRIBUTES"


def _specs_expression(op: Op, specs: str) -> str:
    """None where all operands are recorded and alike, else their ``specs``, by an expression."""
    names = op.inputs
    if len(names) == 1:
        return "None"
    alike = [f"_{name}_record is not None" for name in names]
    first, *others = map(_local, names)
    alike += [f"{first}.dtype is {other}.dtype" for other in others]
    if op.elementwise:
        alike += [f"{first}.shape == {other}.shape" for other in others]
    return f"None if {' and '.join(alike)} else {specs}"


def _parameters(op: Op) -> str:
    """The parameters of the binding: inputs, then attributes, those without a default first."""
    return ", ".join([*op.inputs, *(a if op.is_required(a) else f"{a}=_default[{a!r}]" for a in op.attributes)])


def _local(name: str) -> str:
    """The generated code's variable for the value of an input, or for what was saved under a name."""
    return f"_{name}_value"


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _dict(names: Sequence[str] | Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name!r}: {name}" for name in names) + "}" if names else "_NO_ATTRIBUTES"


def stub(op: Op) -> str:
    """The typed declaration of an op's binding, for ``ops/__init__.pyi``."""
    parameters = inspect.signature(op.kernels["any", None], eval_str=True).parameters
    shown = [f"{name}: Any" for name in op.inputs]
    for name in op.attributes:
        default = "" if op.is_required(name) else f" = {op.attributes[name]!r}"
        shown.append(f"{name}: {inspect.formatannotation(parameters[name].annotation).replace('typing.', '')}{default}")
    return f"def {op.name}({', '.join(shown)}) -> Any: ...\n"
