"""opcheck: whether an op keeps its promises, test by test."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from . import device_laws, gradient_laws  # noqa: F401  (importing them registers their laws)
from .families import Family
from .op_calls import OpCall
from .operator_laws import LAWS, Law
from .operator_reports import OpcheckReport, OpTest
from .operators import Op
from .ops.sampling import Call
from .sample_grids import as_call, calls_of, refusal

STOPS = "stops with"  # how a complaint begins where a law could not be judged, because the op raised an error


def opcheck(op: Any, samples: Iterable[Any] | None = None) -> OpcheckReport:
    """Check an op's kernels and rules against each other, and say what each test caught.

    The tests: ``schema``, ``arguments unchanged``, ``memory`` (undeclared sharing), ``determinism``, ``kernels agree``,
    ``shape rule`` and ``dtype rule`` against the kernel over a grid of shapes and dtypes, ``gradient shapes``,
    ``rules need no numbers`` (symbols), ``JVP rule`` and ``VJP rule`` against differences, ``adjoint``, ``second derivatives``,
    and ``kernel on a device`` and ``rules on a device``, a simulated one that is as strict as a GPU. Kinks and points where
    differences are too coarse raise no alarm.

    Args:
        op: an op or the function that users call: ``ops.mul``.
        samples: calls to check instead of the op's own samples: ``(operands, attributes)``, a tuple of operands, or one array.
            An op without samples whose attributes all have defaults is tried on arrays of a few shapes.

    Returns:
        A report: ``.ok``, ``.tests`` with verdict, reason and the smallest failing call; text, and in a notebook a table.

    Raises:
        TypeError: ``op`` is no op.

    >>> import autodiff_lab as ad
    >>> @ad.op(elementwise=True)
    ... def halved(xp, x):
    ...     return x / 2.0
    >>> @halved.vjp
    ... def halved_vjp(g):
    ...     return -g / 2.0
    >>> report = opcheck(halved, [np.array([1.0, 3.0])])
    >>> report.ok, [test.name for test in report.failed]
    (False, ['VJP rule'])
    >>> print(report.test("VJP rule").reason)  # doctest: +ELLIPSIS
    halved_vjp is wrong: at x it gives -0.5, differences give 0.5. Every entry of x is −1 times ...: a sign is lost.
    >>> report.test("VJP rule").example
    'ops.halved(np.array(1.0))'
    """
    checked = _checked(op)
    if samples is not None and not isinstance(samples, Iterable):
        raise TypeError(f"opcheck: samples are a list of calls, as in [(x, y)]; got {samples!r}")
    given = None if samples is None else list(samples)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a mean of nothing, on the grid of shapes
        tests = _tests_of(checked, given) if isinstance(checked, Op) else _tests_of_family(checked, given)
    return OpcheckReport(checked.name, tuple(tests))


def _tests_of(op: Op, samples: Iterable[Any] | None) -> list[OpTest]:
    """Every test of one op."""
    calls = calls_of(op, samples)
    if not calls:
        name = op.name.partition(".")[0]
        advice = f"no samples{refusal(op)}: add them with @{name}.samples, or pass opcheck({name}, samples=[…])"
        return [OpTest(law.name, "not applicable", advice) for law in LAWS]
    tests: list[OpTest] = []
    for law in LAWS:
        failed = {test.name for test in tests if test.verdict == "failed"}
        tests.append(_tested(law, op, calls, failed))
    return tests


def _tests_of_family(family: Family, samples: Iterable[Any] | None) -> list[OpTest]:
    """Every test of each op of a family, by the op's own name, and whether the outputs of a call lie apart."""
    given = None if samples is None else [as_call(sample) for sample in samples]
    tests = []
    apart: dict[tuple[str, ...], OpTest] = {}
    for op in family.members:
        chosen = None if given is None else [_there(call) for call in given if family.present(call[0]) == op.inputs]
        own = op.name.removeprefix(f"{family.name}.")
        tests += [replace(test, name=f"{own}: {test.name}") for test in _tests_of(op, chosen)]
        if op.inputs not in apart and len(family.outputs) > 1:
            apart[op.inputs] = _outputs_apart(family, calls_of(op, chosen))
    return [*tests, *apart.values()]


def _there(call: Call) -> Call:
    """A sample of a family as one of the op that it is for: None stands for an input that is left out."""
    return tuple(operand for operand in call[0] if operand is not None), call[1]


def _outputs_apart(family: Family, calls: Sequence[OpCall]) -> OpTest:
    """The test that the outputs of one call share no memory with each other."""
    name = "outputs apart"
    for call in calls:
        operands = call.fresh()
        named = {family.inputs[0]: operands} if family.is_variadic else dict(zip(call.names, operands, strict=True))
        results = family.binding(*(named.get(name) for name in family.inputs), **call.given)
        for (one, first), (other, second) in combinations(zip(family.outputs, results, strict=True), 2):
            if np.may_share_memory(first, second):
                numbers = (
                    f"output {family.outputs.index(one)} ({one}) and output {family.outputs.index(other)} ({other})"
                )
                reason = f"{numbers} share memory: give each an array of its own, as with .copy()"
                return OpTest(name, "failed", reason, str(call))
    if not calls:
        return OpTest(name, "not applicable", f"no samples: add them with @{family.name}.samples")
    return OpTest(name, "passed", f"holds for {len(calls)} call{'s' if len(calls) > 1 else ''}")


def _checked(op: Any) -> Op | Family:
    found = op if isinstance(op, (Op, Family)) else getattr(op, "op", None)
    if isinstance(found, (Op, Family)):
        return found
    if isinstance(op, str):
        raise TypeError(f"opcheck: {op!r} is text; pass the op itself, as in ad.opcheck(ops.{op})")
    name = getattr(op, "__name__", repr(op))
    raise TypeError(
        f"opcheck: {name} is no op, so it has no rules of its own; pass a function made by @ad.op, or use "
        f"ad.gradcheck({name}, …)"
    )


def _tested(law: Law, op: Op, samples: Sequence[OpCall], failed: set[str]) -> OpTest:
    """One test: the law on each of its calls, until one breaks it."""
    if reason := law.not_for(op):
        return OpTest(law.name, "not applicable", reason)
    if waiting := [name for name in law.needs if name in failed]:
        return OpTest(law.name, "not applicable", f"says nothing before {waiting[0]} passes")
    calls = sorted(law.calls(samples), key=lambda call: call.size)
    if not calls:
        needed = "a gradient needs floating operands and result, a kernel its dtype, a device an array"
        return OpTest(law.name, "not applicable", f"no sample that it applies to: {needed}")
    for call in calls:
        complaint = _complaint(law, call)
        if complaint is not None:
            said, shown = _simplest(law, call, complaint)
            return OpTest(law.name, "failed", said, str(shown))
    return OpTest(law.name, "passed", f"holds for {len(calls)} call{'s' if len(calls) > 1 else ''}")


def _complaint(law: Law, call: OpCall) -> str | None:
    try:
        return law.judge(call)
    except Exception as error:
        notes = "".join(f" {note}" for note in getattr(error, "__notes__", []))
        return f"{STOPS} {type(error).__name__}: {error}{notes}"


def _simplest(law: Law, call: OpCall, complaint: str) -> tuple[str, OpCall]:
    """The complaint about a call that a reader prefers, where that breaks the law in the same way; else about the call."""
    for simpler in _simpler(call):
        said = _complaint(law, simpler)
        if said is not None and said.startswith(STOPS) == complaint.startswith(STOPS):
            return said, simpler
    return complaint, call


def _simpler(call: OpCall) -> Iterator[OpCall]:
    """The call with one number in each array, where the op is elementwise, and the call with shorter numbers."""
    arrays = [call.operands[place] for place in call.arrays]
    rounded = [np.asarray(np.round(one, 1), one.dtype) if one.dtype.kind == "f" else one for one in arrays]
    if call.op.elementwise:
        yield call.with_arrays(call.arrays, [np.resize(value, ()) if value.size else value for value in rounded])
    yield call.with_arrays(call.arrays, rounded)
