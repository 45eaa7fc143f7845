"""The laws that opcheck holds an op to: what one is, and those about kernels, shapes and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import backend
from .op_calls import OpCall
from .operand_rules import may_be
from .operators import Op
from .sample_grids import dtype_grid, layouts, outcome, refuses_the_numbers, shape_grid

Judge = Callable[[OpCall], str | None]


@dataclass(frozen=True)
class Law:
    """One law: its name, how a call is judged, and on which calls."""

    name: str
    judge: Judge
    calls: Callable[[Sequence[OpCall]], Sequence[OpCall]]
    not_for: Callable[[Op], str]  # why the law does not apply to an op, or ""
    needs: tuple[str, ...]  # laws without which this one says nothing


LAWS: list[Law] = []


def law(
    name: str,
    calls: Callable[[Sequence[OpCall]], Sequence[OpCall]] = lambda samples: samples,
    not_for: Callable[[Op], str] = lambda op: "",
    needs: Sequence[str] = (),
) -> Callable[[Judge], Judge]:
    """Register a law."""

    def register(judge: Judge) -> Judge:
        LAWS.append(Law(name, judge, calls, not_for, tuple(needs)))
        return judge

    return register


# ------------------------------------------------------------------------------------------------------------- the kernel


@law("schema")
def takes_and_gives_what_the_schema_says(call: OpCall) -> str | None:
    """The sample fits the op, the kernel gives one array, and every input that gradients flow to has a VJP rule."""
    op = call.op
    if not op.is_variadic and len(call.operands) != len(op.inputs):
        return f"the sample has {len(call.operands)} operands, but {op.name} takes {', '.join(op.inputs)}"
    if unknown := set(call.given) - set(op.attributes):
        return f"the sample gives {sorted(unknown)}, but the attributes of {op.name} are: {', '.join(op.attributes) or 'none'}"
    if missing := [name for name in op.attributes if name not in call.attributes]:
        return f"the sample leaves out {', '.join(missing)}, which {op.name} needs"
    kernel = op.kernel_for("cpu", call.operands)
    result = kernel(np, *call.fresh(), **call.attributes)
    if not isinstance(result, (np.ndarray, np.generic, bool, int, float)):
        return f"the kernel {kernel.__name__} gives a {type(result).__name__}; an op gives one array"
    if np.asarray(result).dtype.kind not in "biuf":
        return f"the kernel {kernel.__name__} gives dtype {np.asarray(result).dtype}; ops compute with real numbers"
    without = [name for name in op.flowing_inputs if name not in op.vjp_rules]
    if op.is_differentiable and op.vjp_rules and without:
        add = f'{op.schema.decorator}.vjp("{without[0]}")'
        return f"no VJP rule for {', '.join(without)}: add {add}, or name it in constant_inputs"
    return None


@law("arguments unchanged", layouts, needs=["schema"])
def leaves_its_arguments_unchanged(call: OpCall) -> str | None:
    """Kernel and gradient rules write into nothing that they were given."""
    operands = call.fresh()
    result = np.asarray(call.run(operands))
    if changed := _changed(call.operands, operands, call.names):
        return f"the kernel {call.op.kernel_for('cpu', operands).__name__} {_writes_into(changed)}"
    if not call.moving:
        return None
    named = dict(zip(call.names, call.fresh(), strict=True)) | {"out": np.array(result)}
    for kind, rules in (("g", call.op.vjp_rules), ("d", call.op.jvp_rules)):
        for place in call.moving:
            name = call.names[place]
            if name.partition("[")[0] in rules and (changed := _changed_by_rule(call, kind, place, named)):
                return f"{call.rule(place, 'vjp' if kind == 'g' else 'jvp')} {_writes_into(changed)}"
    return None


def _changed_by_rule(call: OpCall, kind: str, place: int, named: dict[str, Any]) -> str:
    """Which of its arguments a gradient rule changes."""
    before = {name: np.array(value) for name, value in named.items()}
    of = named["out"] if kind == "g" else named[call.names[place]]
    sent = np.ones_like(of)
    apply = call.op.apply_vjp if kind == "g" else call.op.apply_jvp
    apply(place, sent, named, call.attributes)
    given = {"g" if kind == "g" else f"d{call.names[place]}": (np.ones_like(of), sent)}
    given |= {name: (before[name], value) for name, value in named.items()}
    olds, news = zip(*given.values(), strict=True)
    return _changed(olds, news, list(given))


def _changed(before: Sequence[Any], after: Sequence[Any], names: Sequence[str]) -> str:
    """The first name whose array has other numbers now."""
    for old, new, name in zip(before, after, names, strict=True):
        if isinstance(new, np.ndarray) and not _same(np.asarray(old), new):
            return name
    return ""


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def _writes_into(name: str) -> str:
    return f"changes its argument {name} in place; others may hold that array: compute a new one ({name} = {name} + 1, not +=)"


@law("memory", layouts, needs=["schema"])
def shares_memory_only_as_declared(call: OpCall) -> str | None:
    """The result lies in memory of its own, or in that of an input that the op declares; two calls never share."""
    operands = call.fresh()
    result, again = call.run(operands), call.run()
    for operand, name in zip(operands, call.names, strict=True):
        base = name.partition("[")[0]
        if isinstance(operand, np.ndarray) and base not in call.op.views and _overlap(result, operand):
            advice = f'give a copy ({base}.copy()), or declare it: @op(views="{base}")'
            return f"output 0 shares memory with argument {name}: {advice}"
    if _overlap(result, again):
        return "output 0 is the same array in every call, so a later call changes an earlier result: make a new one each time"
    return None


def _overlap(one: Any, other: Any) -> bool:
    return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.may_share_memory(one, other)


@law("determinism", needs=["schema"])
def gives_the_same_every_time(call: OpCall) -> str | None:
    """Two calls give the same numbers, bit by bit."""
    once, again = np.asarray(call.run()), np.asarray(call.run())
    if not _same(once, again):
        return "two calls with the same arguments give two results: take randomness from an attribute such as seed"
    return None


def _others(op: Op) -> list[tuple[str, Any, Callable[..., Any], str]]:
    """The kernels beside the first that this machine can run: kind of device, dtype, kernel, device."""
    rest = list(op.kernels.items())[1:]
    found = [(kind, dtype, kernel, _device(kind)) for (kind, dtype), kernel in rest]
    return [(kind, dtype, kernel, device) for kind, dtype, kernel, device in found if device is not None]


def _device(kind: str) -> str | None:
    """A device of this machine that a kind of kernel runs on."""
    if kind in ("any", "cpu"):
        return "cpu"
    known = [line.partition(": ")[0] for line in backend.devices()]
    return next((name for name in known if name.startswith(f"{kind}:")), None)


def _only_one_kernel(op: Op) -> str:
    if len(op.kernels) == 1:
        return "one kernel serves every device"
    kinds = ", ".join(sorted({kind for kind, _ in list(op.kernels)[1:]}))
    return "" if _others(op) else f"this machine has no device for its kernels for {kinds}"


def _for_other_kernels(calls: Sequence[OpCall]) -> list[OpCall]:
    """The calls that another kernel is for, by device and by the dtype of the first operand."""
    return [call for call in calls if any(_is_for(call, dtype, device) for _, dtype, _, device in _others(call.op))]


def _is_for(call: OpCall, dtype: Any, device: str) -> bool:
    if device != "cpu" and not call.arrays:  # numbers lie nowhere
        return False
    return dtype is None or (len(call.operands) > 0 and getattr(call.operands[0], "dtype", None) == dtype)


@law("kernels agree", _for_other_kernels, _only_one_kernel, ["schema", "arguments unchanged", "determinism"])
def every_kernel_gives_the_reference_numbers(call: OpCall) -> str | None:
    """Every kernel that this machine can run gives what the first one gives."""
    reference = next(iter(call.op.kernels.values()))
    expected = np.asarray(reference(np, *call.fresh(), **call.attributes))
    for kind, dtype, kernel, device in _others(call.op):
        if not _is_for(call, dtype, device):
            continue
        where = f"the kernel {kernel.__name__} for {kind}{'' if dtype is None else f' and {dtype}'}"
        try:
            got = backend.to_numpy(_run_by(kernel, call, device))
        except Exception as error:
            reason = error.__cause__ or error
            return f"{where} stops with {type(reason).__name__}: {reason}"
        if problem := unlike(got, expected):
            return f"{where} {problem} of the reference kernel {reference.__name__}"
    return None


def _run_by(kernel: Any, call: OpCall, device: str) -> Any:
    """What one kernel gives on a device."""
    operands = call.moved(device)
    if launch := next((operand.launch for operand in operands if hasattr(operand, "launch")), None):
        return launch(call.op, kernel, operands, call.attributes)
    return kernel(backend.library_of(device), *operands, **call.attributes)


def unlike(got: np.ndarray, expected: np.ndarray) -> str:
    """In what numbers differ from those that are expected, up to rounding; "" where they do not."""
    for fact in ("shape", "dtype"):
        if getattr(got, fact) != getattr(expected, fact):
            return f"gives {fact} {getattr(got, fact)}, not the {getattr(expected, fact)}"
    tolerance = float(np.finfo(expected.dtype).eps) ** 0.75 if expected.dtype.kind == "f" else 0.0
    scale = float(np.max(np.abs(expected), where=np.isfinite(expected), initial=0.0)) if tolerance else 0.0
    far = ~np.isclose(got, expected, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    if not far.any():
        return ""
    return f"gives {got[far].flat[0]:.6g}, not the {expected[far].flat[0]:.6g}"


# ---------------------------------------------------------------------------------------------------- shape and dtype rule

LOSES = (
    "it loses a dimension that the operands' shapes tell. Results stay right, but what follows this op can be neither "
    "fused nor given its memory in advance; say every size"
)


@law("shape rule", lambda calls: shape_grid(layouts(calls)), needs=["schema"])
def shape_rule_says_what_the_kernel_gives(call: OpCall) -> str | None:
    """Shape rule and kernel agree on the shape, and on what they refuse."""
    rule, found = call.op.operand_rule_name("shape"), outcome(call)
    shapes = [np.shape(operand) for operand in call.operands]
    listed = " and ".join(map(str, shapes))
    try:
        said = call.op.ask_shape_rule(shapes, call.attributes)
    except (TypeError, ValueError, IndexError) as error:
        if isinstance(found, np.ndarray):
            return f"{rule} refuses {listed} ({error}), but the kernel gives shape {found.shape}: both must refuse, or neither"
        return None
    if isinstance(found, np.ndarray):
        if said == found.shape:
            return None
        seen = f"{rule} says {said} for {listed}, the kernel gives shape {found.shape}"
        missing = " (is its return missing?)" if said is None else ""
        return f"{seen}: {LOSES}{missing}" if may_be(said, found.shape) else seen
    if refuses_the_numbers(call):
        return None
    return f"{rule} says {said} for {listed}, but the kernel refuses them ({found}): raise a ValueError in {rule} too"


@law("dtype rule", dtype_grid, needs=["schema"])
def dtype_rule_says_what_the_kernel_gives(call: OpCall) -> str | None:
    """Dtype rule and kernel agree on the dtype, and on what they refuse."""
    found = outcome(call)
    dtypes = [o.dtype if isinstance(o, np.ndarray) else type(o)(0) for o in call.operands]
    rule = call.op.operand_rule_name("dtype")
    seen = " and ".join(str(d) if isinstance(d, np.dtype) else f"a Python {type(d).__name__}" for d in dtypes)
    try:
        said = call.op.infer_dtype(dtypes, call.attributes)
    except TypeError as error:
        if isinstance(found, np.ndarray):
            return f"{rule} refuses {seen} ({error}), but the kernel gives {found.dtype}: both must refuse, or neither"
        return None
    if not isinstance(found, np.ndarray):
        if refuses_the_numbers(call):
            return None
        return f"{rule} says {said} for {seen}, but the kernel refuses them ({found}): raise a TypeError in {rule} too"
    if said == found.dtype:
        return None
    advice = f"correct the kernel, or add {call.op.schema.decorator}.dtype_rule"
    if call.op.declared is not None:
        advice = "correct the kernel, or the declared types; float stands for any floating dtype"
    return f"{rule} says {said} for {seen}, the kernel gives {found.dtype}: {advice}"
