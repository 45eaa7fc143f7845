"""The laws about gradient rules that opcheck holds an op to. Each says what is wrong with one call, or None."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .checked_functions import CheckedFunction
from .checks import judged
from .forward_mode import push_forward
from .op_calls import OpCall
from .operator_laws import law, unlike
from .operators import Op
from .recording import record
from .reverse_mode import value_and_grad, vjp
from .sample_grids import outcome
from .trees import flatten


def has_no(kind: str) -> Callable[[Op], str]:
    """Why an op has no gradient rule of a kind, ``vjp`` or ``jvp``; "" where it has one."""

    def reason(op: Op) -> str:
        if not op.is_differentiable:
            return "no gradient: the op is registered with differentiable=False"
        if not (op.vjp_rules if kind == "vjp" else op.jvp_rules):
            return f"no gradient: the op has no {kind} rule; add one with {op.schema.decorator}.{kind}"
        return ""

    return reason


SOUND = ("schema", "arguments unchanged", "determinism", "kernels agree", "shape rule")


def floating(calls: Sequence[OpCall]) -> list[OpCall]:
    """The calls through which a gradient flows."""
    return [call for call in calls if call.moving and kind_of_result(call) == "f"]


def kind_of_result(call: OpCall) -> str:
    """The kind of dtype that a call gives: ``f`` for floating."""
    found = outcome(call)
    return str(found.dtype.kind) if isinstance(found, np.ndarray) else ""


def _with_jvp(calls: Sequence[OpCall]) -> list[OpCall]:
    return [call for call in floating(calls) if call.has_rules("jvp")]


@law("gradient shapes", floating, has_no("vjp"), SOUND)
def gradients_have_shape_and_dtype_of_their_operand(call: OpCall) -> str | None:
    """Each contribution has the shape and the dtype of the operand that it is for."""
    found = call.misfit()
    return None if found is None else found[1]


@law("rules need no numbers", floating, has_no("vjp"), (*SOUND, "gradient shapes"))
def rules_run_on_symbols_and_hold_for_other_numbers(call: OpCall) -> str | None:
    """The joint graph is recorded on symbols, and gives the right gradient for other numbers of the same shape."""
    places = tuple(range(len(call.moving)))

    def loss(*values: Any) -> Any:
        result = call.of_moving(*values)
        return (result * result).sum()

    values = call.moving_values()
    both = value_and_grad(loss, places)
    graph = record(both, *values)
    other = [np.asarray(np.flip(value) * 0.95, value.dtype) for value in values]
    recorded, eager = flatten(graph(*other))[0], flatten(both(*other))[0]
    names = ["the result", *(call.rule(place) for place in call.moving)]
    for got, expected, name in zip(recorded, eager, names, strict=True):
        if problem := unlike(np.asarray(got), np.asarray(expected)):
            return (
                f"{name}: the recorded graph {problem} of a call with the same numbers, so a rule keeps a value of an earlier "
                "call; let it name what it needs as a parameter"
            )
    return None


@law("JVP rule", _with_jvp, has_no("jvp"), SOUND)
def jvp_agrees_with_differences(call: OpCall) -> str | None:
    """Each number that comes out of the JVP rules is a central difference."""
    checked = call.checked()
    checked.pull = lambda values, cotangents: _pulled_by_columns(checked, values, cotangents)
    return call.complaint(judged(checked, entries=6), "jvp")


def _of_moving(checked: CheckedFunction) -> Callable[..., Any]:
    """A checked function, as a function of what is checked alone."""
    return lambda *moving: checked.f(*checked.arguments(moving))


def _pulled_by_columns(
    checked: CheckedFunction, values: Sequence[np.ndarray], cotangents: np.ndarray
) -> list[list[np.ndarray]]:
    """⟨c, J⟩ for each cotangent c, where forward mode gives J column by column."""
    sizes = [value.size for value in values]
    total = sum(sizes)
    basis = np.eye(total)
    ends = np.cumsum([0, *sizes])
    tangents = [
        tuple(row[start:end].reshape(value.shape).astype(value.dtype) for row in basis)
        for start, end, value in zip(ends, ends[1:], values, strict=False)
    ]
    outputs, pushed, _ = push_forward(_of_moving(checked), list(values), flatten(tuple(values))[1], tangents)
    columns = [np.asarray(tangent, np.float64).ravel() for tangent in pushed[0]]
    matrix = np.stack(columns, axis=1) if columns else np.zeros((np.size(outputs[0]), 0))
    rows = cotangents @ matrix
    return [
        [row[start:end].reshape(value.shape) for start, end, value in zip(ends, ends[1:], values, strict=False)]
        for row in rows
    ]


@law("VJP rule", floating, has_no("vjp"), (*SOUND, "gradient shapes"))
def vjp_agrees_with_differences(call: OpCall) -> str | None:
    """Each number that comes out of the VJP rules is a central difference, for random cotangents."""
    return call.complaint(call.judged())


@law(
    "adjoint",
    _with_jvp,
    lambda op: has_no("vjp")(op) or has_no("jvp")(op),
    (*SOUND, "gradient shapes", "JVP rule", "VJP rule"),
)
def vjp_is_the_adjoint_of_jvp(call: OpCall) -> str | None:
    """⟨g, JVP(t)⟩ = ⟨VJP(g), t⟩, input by input."""
    checked = call.checked()
    values, f = checked.point, _of_moving(checked)
    rng = np.random.default_rng(0)
    result, pull = vjp(f, *values)
    cotangent = np.asarray(rng.standard_normal(result.shape), result.dtype)
    gradients = pull(cotangent)
    for which, place in enumerate(call.moving):
        tangents = [np.zeros_like(value) for value in values]
        tangents[which] = np.asarray(rng.standard_normal(values[which].shape))
        _, pushed, _ = push_forward(f, values, flatten(tuple(values))[1], [(t,) for t in tangents])
        forward, reverse = cotangent * pushed[0][0], gradients[which] * tangents[which]
        size = float(np.abs(forward).sum() + np.abs(reverse).sum())
        difference = abs(float(forward.sum() - reverse.sum()))
        if np.isfinite(size) and difference > 1e3 * float(np.finfo(result.dtype).eps) * size:
            return (
                f"{call.rule(place)} is not the adjoint of {call.rule(place, 'jvp')}: ⟨g, JVP(t)⟩ is {forward.sum():.6g}, "
                f"⟨VJP(g), t⟩ is {reverse.sum():.6g}; one of the two is wrong"
            )
    return None


@law("second derivatives", floating, has_no("vjp"), (*SOUND, "gradient shapes", "VJP rule"))
def gradients_differentiate_again(call: OpCall) -> str | None:
    """The gradient of the gradient agrees with differences too."""
    return call.complaint(call.judged(order=2, entries=3))
