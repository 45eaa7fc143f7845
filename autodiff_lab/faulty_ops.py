"""find_faulty_op: when the gradient of a whole model is wrong, which op's rule, which sum or which order is to blame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import backend, events
from .checks import gradcheck
from .graph import Graph, Node
from .op_calls import OpCall
from .operator_reports import FaultFound, FaultyOpReport
from .operators import registry
from .recording import graph_of, leaf_names, parameter_names
from .reverse_mode import sweep
from .sweep_laws import HeardSweep
from .tensors import Tensor, tensor
from .trees import flatten


def find_faulty_op(
    f: Callable[..., Any] | Tensor, inputs: Any = (), cotangent: Any = None, *, entries: int = 4, seed: int = 0
) -> FaultyOpReport:
    """Name the op whose gradient rule makes a whole gradient wrong, and the line that called it.

    Runs ``f`` once on recorded Tensors, as training does, and one reverse sweep. Then, each by itself:

    * every op call: its shape and dtype rule against what came out, and its VJP rules against central differences at the
      values that it had, for random cotangents and for the one that it was sent;
    * every sum: whether what a node got is the sum of the contributions that were sent to it, and whether adding changed
      another array;
    * the order: whether each node waited for all its contributions, and was visited once.

    If nothing is wrong so far, the gradient of the whole function is compared with differences too: where only that is wrong,
    a value reaches the result outside of recorded ops.

    Args:
        f: a function whose result is one array, or a recorded Tensor: then only what its records kept is known.
        inputs: its arguments, a list or tuple; a single argument may stand alone. Gradients flow to floating ones.
        cotangent: what the sweep starts from, shaped like the result; 1 by default where that is one number, else random.
        entries: how many entries of each operand are compared; of a larger operand also one random direction.
        seed: of the cotangents, entries and directions.

    Returns:
        A report: ``.ok``, ``.blame``, ``.op``, ``.node``, ``.source`` and ``.reason`` of the first fault, all ``.faults``.

    Raises:
        TypeError: the result is not one Tensor.
        ValueError: nothing was recorded, or the cotangent does not fit the result.

    >>> import autodiff_lab as ad
    >>> @ad.op(elementwise=True)
    ... def tripled(xp, x):
    ...     return 3.0 * x
    >>> @tripled.vjp
    ... def tripled_vjp(g):
    ...     return -3.0 * g
    >>> report = find_faulty_op(lambda x, w: (tripled(x * w) ** 2.0).sum(), (np.array([1.0, 2.0]), 0.5))
    >>> report.ok, report.op, report.blame
    (False, 'tripled', 'rule')
    """
    given = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
    rng = np.random.default_rng(seed)
    run = _recorded(f) if isinstance(f, Tensor) else _run(f, given)
    if run.graph is None:
        note = "Gradients were not judged, because no graph can be made with a wrong shape or dtype rule."
        return FaultyOpReport(run.name, None, run.misstated, (note,))
    sent = run.seed(cotangent, rng)
    heard = HeardSweep(run.graph)
    notes: list[str] = []
    stopped: Exception | None = None
    with np.errstate(all="ignore"):
        try:
            with events.listen(heard.hear):
                sweep(run.output, sent)
        except Exception as error:
            stopped = error
            notes.append(f"The sweep stopped with {type(error).__name__}: {error}")
        faults = [*run.misstated, *_wrong_rules(run, heard, entries, seed, notes), *heard.faults()]
        faults.sort(key=lambda fault: -1 if fault.node is None else fault.node, reverse=True)
        if stopped is not None and not faults:
            raise stopped  # no op is to blame: the cotangent does not fit
        if not faults and not isinstance(f, Tensor):
            faults += _outside(f, given, entries, seed, notes)
    return FaultyOpReport(run.name, run.graph, tuple(faults), tuple(notes))


# ------------------------------------------------------------------------------------------------------------ the run


@dataclass(frozen=True)
class _Run:
    """A recorded run: the result, its graph, and the operands of each op call as far as they are known."""

    name: str
    output: Tensor
    graph: Graph | None  # None where a wrong shape rule makes that impossible
    calls: dict[int, OpCall | None]  # by node; None where a value was not kept
    misstated: tuple[FaultFound, ...] = ()  # shape and dtype rules that say something else than what came out

    def seed(self, cotangent: Any, rng: np.random.Generator) -> Any:
        """What the sweep starts from."""
        if cotangent is not None or self.output.size == 1:
            return cotangent
        size, sign = rng.uniform(0.5, 1.5, self.output.shape), rng.choice([-1.0, 1.0], self.output.shape)
        return backend.asarray(size * sign, self.output.dtype, self.output.device)


def _run(f: Callable[..., Any], given: Sequence[Any]) -> _Run:
    """Run a function on Tensors, and keep every operand."""
    name = getattr(f, "__name__", type(f).__name__)
    inputs: dict[str, Tensor] = {}
    arguments = []
    for parameter, argument in zip(parameter_names(f, len(given)), given, strict=True):
        leaves, structure = flatten(argument)
        made = [_as_leaf(leaf, label) for leaf, label in zip(leaves, leaf_names(parameter, structure), strict=True)]
        inputs |= {t.name or "": t for t in made if isinstance(t, Tensor)}
        arguments.append(structure.rebuild(made))
    with events.listen() as told:
        output = f(*arguments)
    if not isinstance(output, Tensor):
        raise TypeError(f"find_faulty_op: {name} must give one Tensor, got {type(output).__name__}; return the loss")
    calls = {event.serial: event for event in told if isinstance(event, events.OpCalled)}
    try:
        graph = graph_of(output, inputs, told)
    except (TypeError, ValueError):
        misstated = tuple(_misstated(calls.values(), {}))
        if not misstated:
            raise
        return _Run(name, output, None, {}, misstated)
    ids = {node.serial: node.id for node in graph}
    known: dict[int, OpCall | None] = {ids[serial]: _call(event) for serial, event in calls.items() if serial in ids}
    return _Run(name, output, graph, known, tuple(_misstated(calls.values(), ids)))


def _misstated(calls: Iterable[events.OpCalled], ids: Mapping[int, int]) -> Iterator[FaultFound]:
    """Shape and dtype rules that say something else than what a call gave; gradients pass them by, recorded graphs do not."""
    for event in calls:
        call = _call(event)
        facts = [o.dtype if isinstance(o, np.ndarray) else type(o)(0) for o in call.operands]
        said = {
            "shape": call.op.ask_shape_rule([np.shape(operand) for operand in call.operands], call.attributes),
            "dtype": call.op.infer_dtype(facts, call.attributes),
        }
        value = _plain(event.value)
        for kind, fact in said.items():
            if fact != getattr(value, kind):
                rule = call.op.operand_rule_name("shape" if kind == "shape" else "dtype")
                reason = f"{rule} says {kind} {fact}, but the kernel gave {getattr(value, kind)}; ad.opcheck says more"
                yield FaultFound("rule", event.op, ids.get(event.serial), rule, event.source, reason)


def _as_leaf(leaf: Any, name: str) -> Any:
    """A Tensor that gradients flow to, made of a floating number or array; anything else stays."""
    is_floating = isinstance(leaf, float) or getattr(getattr(leaf, "dtype", None), "kind", "") == "f"
    if not is_floating or (isinstance(leaf, Tensor) and leaf.requires_grad):
        return leaf
    return tensor(leaf.data if isinstance(leaf, Tensor) else leaf, requires_grad=True, name=name)


def _call(event: events.OpCalled) -> OpCall:
    held = frozenset(place for place, serial in enumerate(event.inputs) if serial is None)
    return OpCall(registry[event.op], tuple(map(_plain, event.operands)), event.attributes, held)


def _plain(value: Any) -> Any:
    """A value as a NumPy array, or the Python number that it is."""
    inner = value.innermost() if isinstance(value, Tensor) else value
    return inner if isinstance(inner, (bool, int, float)) else backend.to_numpy(inner)


def _recorded(output: Tensor) -> _Run:
    """A Tensor that was computed before: its records kept what rules read, and the rest is computed again where that can be."""
    graph = graph_of(output)
    values: list[Any] = []
    calls: dict[int, OpCall | None] = {}
    for node in graph:
        operands = [values[i] for i in node.inputs]
        known = node.op is not None and all(operand is not None for operand in operands)
        value = None if node.value is None else _plain(node.value)
        if node.op is not None:
            held = frozenset(p for p, i in enumerate(node.inputs) if graph.nodes[i].kind == "constant")
            calls[node.id] = OpCall(node.op, tuple(operands), node.attributes, held) if known else None
        if value is None and known and node.op is not None:
            value = _plain(node.op.apply(operands, node.attributes))
        values.append(value)
    return _Run(graph.name, output, graph, calls)


# ----------------------------------------------------------------------------------------------------- rules, one by one


def _wrong_rules(run: _Run, heard: HeardSweep, entries: int, seed: int, notes: list[str]) -> Iterator[FaultFound]:
    """The op calls whose rules do not agree with differences at their values."""
    judged: Counter[str] = Counter()
    for node, call in run.calls.items():
        if call is None:
            judged["unknown"] += 1
            continue
        if not call.moving:
            continue
        try:
            fault, verdict = _judged(heard.graph.nodes[node], call, heard, entries, seed)
        except Exception as error:
            fault, verdict = _stopped(heard.graph.nodes[node], call, error), "wrong"
        judged[verdict] += 1
        if fault is not None:
            yield fault
    notes += _counts(judged)


def _judged(node: Node, call: OpCall, heard: HeardSweep, entries: int, seed: int) -> tuple[FaultFound | None, str]:
    """What is wrong with the rules of one call, and the verdict."""
    misfit = call.misfit(["shape"])
    if misfit is not None:
        place, said = misfit
        if not call.op.elementwise:
            return FaultFound("rule", call.op.name, node.id, call.rule(place), node.source, said), "wrong"
        shape = np.shape(call.operands[place])
        reason = (
            f"what it sends to {call.names[place]} keeps the shape that broadcasting gave it; the sweep sums the contributions "
            f"of elementwise ops to their operand's shape, here {shape} (reverse_mode.fit_cotangents)"
        )
        return FaultFound("sum", call.op.name, node.id, None, node.source, reason), "wrong"
    checked = call.checked()
    size = sum(part.size for part in checked.parts)
    report = call.judged(entries=entries, seed=seed, cotangent=heard.sent_to(node.serial, size))
    said_wrong = call.complaint(report)
    if said_wrong is None:
        return None, report.verdict
    return FaultFound("rule", call.op.name, node.id, call.blamed(report), node.source, said_wrong), "wrong"


def _stopped(node: Node, call: OpCall, error: Exception) -> FaultFound:
    rules = ", ".join(call.rule(place) for place in call.moving)
    reason = f"the gradient rules ({rules}) stop with {type(error).__name__}: {error}"
    return FaultFound("rule", call.op.name, node.id, None, node.source, reason)


def _counts(judged: Counter[str]) -> Iterator[str]:
    """How many calls were judged, in words."""
    right = judged["right"]
    yield f"The rules of {right} of {judged.total()} op calls agree with differences at the values that they had."
    if judged["kink"] or judged["imprecise"]:
        yield f"{judged['kink']} on a kink and {judged['imprecise']} for want of precision could not be judged."
    if judged["unknown"]:
        yield (
            f"{judged['unknown']} could not be judged, because the values that went in were not kept: pass the function and "
            "its arguments instead of its result."
        )


def _outside(
    f: Callable[..., Any], given: Sequence[Any], entries: int, seed: int, notes: list[str]
) -> Iterator[FaultFound]:
    """A fault of the whole function, where each rule, each sum and the order are right."""
    try:
        report = gradcheck(f, list(given), entries=entries, seed=seed)
    except ValueError as error:
        notes.append(f"The whole function was not compared: {error}")
        return
    if report.verdict != "wrong":
        word = "agrees" if report.ok else f"finds nothing wrong (verdict: {report.verdict})"
        notes.append(f"gradcheck of the whole function {word}.")
        return
    where = report.first.place if report.first is not None else "its result"
    why = "a value reaches the result outside of recorded ops (.numpy(), .detach(), no_grad, or NumPy on plain arrays)"
    if report.first is not None and not np.isfinite(report.first.got):
        why = (
            "on the way 0 is multiplied by a slope that is not finite, as that of an op behind ops.where at an operand which "
            "where leaves out; choose a harmless operand first, as in ops.log(ops.where(x > 0, x, 1.0))"
        )
    reason = f"every op's rule, every sum and the order are right, but the gradient of {where} is not: {why}"
    yield FaultFound("outside", None, None, None, None, reason)
