"""Reverse mode: one sweep from the output back to the leaves. vjp, grad, value_and_grad, and ``Tensor.backward``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import backend, events, ops
from .bindings import as_value, at_level, dtype_of, readings, shape_of
from .tensors import BASE, Leaf, Level, Record, Tensor, leaf_record, require_floating
from .trees import flatten
from .wide_arrays import is_wide

if TYPE_CHECKING:
    from .operators import Op
    from .trees import Structure

# ------------------------------------------------------------------------------------------------------------ the sweep


_serial = itemgetter(0)
_FEW = 10_000  # numbers, which nobody needs to forget


def backward_order(*roots: Record) -> list[Record]:
    """Every record that the roots were computed from, leaves too, earliest first.

    Read from its end, each record comes after all its consumers: a record's serial number is larger than those of its inputs,
    so sorting by it is a topological order. Each record is in the list once, however many paths lead to it, and nothing here
    recurses.

    Of what was found, only the numbers are remembered that can be found again: those up to the newest record that waits to be
    looked at. On a chain these are a few, however long it is. They are sorted out when as many records as numbers were looked
    at, so that this takes no longer than looking.
    """
    order: list[Any] = [(0, None, roots)]  # a consumer of all roots, to start from
    records = iter(order)  # which grows meanwhile
    found: set[int] = set()
    looked_at = 0
    while looked_at < len(order):
        many = max(_FEW, len(found))
        for record in islice(records, many):
            for parent in record[2]:
                if parent is not None and parent[0] not in found:
                    found.add(parent[0])
                    order.append(parent)
        looked_at += many
        newest = max(map(_serial, order[looked_at:]), default=0)
        found = {serial for serial in found if serial <= newest}
    del order[0]
    order.sort(key=_serial)
    return order


def run_sweep(order: list[Record], cotangents: dict[int, Any], level: Level | None = None) -> list[tuple[Record, Any]]:
    """Send cotangents backwards through the records in ``order``, and give each leaf that they reach with its gradient.

    ``order`` is consumed from its end, so that a record which nobody else holds is freed when its rules have run.
    ``cotangents`` holds the seeds, by serial number. ``level`` is given when the sweep itself is to be recorded
    (``create_graph``): saved values are then turned back into the Tensors of that level that they were.
    """
    context = events.context.get()
    watcher = None if context is None else _Watcher(context, order)
    reached: list[tuple[Record, Any]] = []
    is_plain = watcher is None and level is None
    may_be_wide = is_plain  # what an elementwise op sends is no larger than what it got, so that one is asked, not all
    while order:
        record = order.pop()
        g = cotangents.pop(record[0], None)
        if g is None:  # no consumer sent anything here
            continue
        op = record[1]
        if op is None:
            reached.append((record, g))
            continue
        if may_be_wide and op.elementwise:
            may_be_wide = is_wide(g)
            if may_be_wide and _sweep_in_blocks(record, g, order, cotangents):
                continue
        try:
            run_rules = op.pull if watcher is None else watcher.watched_pull(record)
            contributions = run_rules(g, record if level is None else _recorded(record, level))
            if record[4] is not None:
                contributions = fit_cotangents(contributions, record[4], op.elementwise)
            for place, parent in enumerate(record[2]):
                if parent is not None:
                    into, contribution = parent[0], contributions[place]
                    total = contribution
                    if into in cotangents:
                        add_up = accumulate if watcher is None else watcher.accumulating_at(into)
                        total = add_up(cotangents[into], contribution)
                    elif contribution is None:
                        raise TypeError("a gradient rule gave None; a rule returns the cotangent of its input")
                    cotangents[into] = total
                    if watcher is not None:
                        watcher.tell_contribution(record, place, into, g, contribution, total)
            if watcher is not None:
                watcher.tell_released(record)
            if is_plain and not op.elementwise:
                may_be_wide = True
        except Exception as error:
            error.add_note(f"This happened in reverse mode, in the gradient rules of {op.name}: {_rule_names(op)}.")
            raise
    return reached


def _sweep_in_blocks(record: Record, g: Any, order: list[Record], cotangents: dict[int, Any]) -> bool:
    from .wide_sweeps import sweep_in_blocks  # here, because few sweeps need what it loads

    return sweep_in_blocks(record, g, order, cotangents, run_sweep)


def _rule_names(op: Op) -> str:
    return ", ".join(rule.__name__ for rule in op.vjp_rules.values()) or "it has none"


def accumulate(total: Any, contribution: Any) -> Any:
    """The sum of what has arrived at a node and one more contribution; never in place, because arrays may be shared."""
    return total + contribution


def fit_cotangents(contributions: Sequence[Any], operands: Sequence[Any], elementwise: bool) -> Sequence[Any]:
    """Bring each contribution to the shape and dtype of its operand: sum over broadcast axes, cast between float widths."""
    fitted = list(contributions)
    for place, g in enumerate(contributions):
        if g is not None and type(operands[place]) is tuple:
            shape, dtype = operands[place]
            if elementwise and g.shape != shape:
                g = fitted[place] = ops.sum_to(g, shape=shape)
            if g.dtype != dtype:
                fitted[place] = ops.astype(g, dtype=dtype)
    return fitted


def _recorded(record: Record, level: Level) -> Record:
    """A record whose saved values are the Tensors that they were, so that computing with them is recorded."""
    _, op, parents, _, _, *saved = record
    assert op is not None
    names = op.operand_names(len(parents))
    histories: dict[str, Any] = dict(zip(names, parents, strict=True)) | {"out": record}
    tensors = [
        Tensor(value, level, histories[name]) if name in histories and hasattr(value, "shape") else value
        for name, value in zip(op.names_saved(len(parents)), saved, strict=False)
    ]
    return (*record[:5], *tensors)


class _Watcher:
    """Tells what a sweep does, and marks what it records as backward. Made only while somebody listens or records."""

    def __init__(self, context: events.Context, order: Sequence[Record]) -> None:
        self.tell = context.receiver
        self.is_brief = context.brief
        self.recorder = context.recorder
        self.guard = context.guard
        self.arrived: dict[int, int] = {}
        self.local: dict[str, Any] = {}
        self.last_reader: dict[int, tuple[int, str]] = {}
        if self.tell is not None:
            for record in order:  # earliest first: the sweep reaches the earliest reader of a value last
                for name, value in _saved_arrays(record):
                    self.last_reader.setdefault(id(value), (record[0], name))

    def watched_pull(self, record: Record) -> Callable[..., Sequence[Any]]:
        """The op's ``pull``, told, and run so that what it records is in phase backward and belongs to the forward node."""
        serial, op = record[0], record[1]
        assert op is not None

        def pull(g: Any, given: Record) -> Sequence[Any]:
            if self.tell is not None:
                self.tell(events.CotangentComplete(serial, op.name, g))
                self.local = {}
                numbers = g.innermost() if type(g) is Tensor else g
                if (
                    op.elementwise and not self.is_brief and backend.is_array(numbers)
                ):  # on symbols it would be recorded
                    with events.switched(receiver=None, recorder=None, observes=True):
                        local = op.pull(ops.ones_like(g), given)
                        self.local = dict(zip(op.operand_names(len(local)), local, strict=True))
            with self._on_behalf_of(serial, g), self._guarded(serial):
                contributions = op.pull(g, given)
                return contributions if record[4] is None else fit_cotangents(contributions, record[4], op.elementwise)

        return pull

    def accumulating_at(self, into: int) -> Callable[[Any, Any], Any]:
        """``accumulate``, where what it records belongs to the node that receives."""

        def accumulate_there(total: Any, contribution: Any) -> Any:
            with self._on_behalf_of(into):
                return accumulate(total, contribution)

        return accumulate_there

    def _on_behalf_of(self, serial: int, cotangent: Any = None) -> AbstractContextManager[Any]:
        return events.backward_phase() if self.recorder is None else self.recorder.backward_of(serial, cotangent)

    def _guarded(self, serial: int) -> AbstractContextManager[Any]:
        return nullcontext() if self.guard is None else events.switched(guard=self.guard.inside(serial))

    def tell_contribution(
        self, record: Record, place: int, into: int, upstream: Any, contribution: Any, total: Any
    ) -> None:
        """Tell what one rule sent along one edge, and the sum that it was added to."""
        op = record[1]
        assert op is not None
        count = len(record[2])
        argument = op.operand_names(count)[place]
        rule, used = op.vjp_rule(argument).__name__, op.per_operand(op.vjp_needs(argument), count)
        if self.guard is not None:
            self.guard.check_contribution(record, place, rule, upstream, contribution, total)
        if self.tell is None:
            return
        self.arrived[into] = self.arrived.get(into, 0) + 1
        local, count = self.local.get(argument), self.arrived[into]
        self.tell(
            events.ContributionAdded(record[0], into, argument, rule, upstream, local, contribution, total, count, used)
        )

    def tell_released(self, record: Record) -> None:
        """Tell which saved values no later rule of this sweep reads."""
        if self.tell is not None:
            for name, value in _saved_arrays(record):
                if self.last_reader.get(id(value)) == (record[0], name):
                    self.tell(events.SavedValueReleased(record[0], name, int(value.nbytes)))


def _saved_arrays(record: Record) -> list[tuple[str, Any]]:
    """The arrays that a record keeps, with the names under which its rules know them."""
    _, op, parents, _, _, *saved = record
    if op is None:
        return []
    return [(n, v) for n, v in zip(op.names_saved(len(parents)), saved, strict=False) if hasattr(v, "nbytes")]


# -------------------------------------------------------------------------------------------------- sweeps of a Tensor


def sweep(output: Tensor, cotangent: Any = None, create_graph: bool = False) -> dict[int, Any]:
    """The gradient of ``output`` for every leaf it was computed from, by the leaf's serial number; ``grad`` stays untouched.

    Args:
        output: a recorded Tensor.
        cotangent: the seed, shaped like ``output``; 1 by default where ``output`` is a single number.
        create_graph: record the sweep itself, for higher derivatives; gradients are then Tensors.

    Raises:
        ValueError: ``output`` is not recorded, needs a cotangent, or the cotangent has the wrong shape.
    """
    return {record[0]: gradient for record, gradient in _leaf_gradients(output, cotangent, create_graph)}


def _leaf_gradients(output: Tensor, cotangent: Any, create_graph: bool) -> list[tuple[Record, Any]]:
    root = output._history
    if root is None or not output._level.is_reverse:
        raise ValueError(
            "backward: this Tensor was not computed from a Tensor with requires_grad=True (or inside no_grad), so there is no "
            "graph to go back through"
        )
    if output._level is not BASE and output._level.is_reverse:
        raise ValueError(
            "backward inside grad: the derivative of this Tensor is being taken already; nest functions instead, as in "
            "ad.grad(lambda x: … ad.grad(g)(x) …)"
        )
    if type(output._data) in readings:
        raise ValueError("backward inside record: write ad.record(ad.value_and_grad(f), …) to record a gradient")
    seed = _seed(output, cotangent)
    context = events.context.get()
    tell = None if context is None else context.receiver
    if tell is not None:
        tell(events.SweepStarted(root[0], seed))
    owned = Owned(seed)
    if create_graph:
        seed = cotangent if isinstance(cotangent, Tensor) else Tensor(seed, output._level)
    result = []
    for leaf, gradient in run_sweep(backward_order(root), {root[0]: seed}, output._level if create_graph else None):
        if shape_of(gradient) != leaf[4].shape:
            raise _wrong_shape(gradient, f"leaf {leaf[4].name or leaf[0]}", leaf[4].shape)
        result.append((leaf, owned.own(gradient)))
    if tell is not None:
        for leaf, gradient in result:
            tell(events.LeafReached(leaf[0], gradient))
    return result


def _wrong_shape(gradient: Any, where: str, shape: tuple[int, ...]) -> ValueError:
    """The error for a gradient that a rule on the way gave another shape than what it belongs to."""
    return ValueError(
        f"the gradient that reached {where} has shape {shape_of(gradient)}, but its shape is {shape}: a gradient rule on "
        "the way gives the wrong shape; ad.find_faulty_op names it"
    )


def _seed(output: Tensor, cotangent: Any) -> Any:
    """The cotangent to start from, checked against the output."""
    if cotangent is None:
        if output.size != 1:
            raise ValueError(
                f"backward: the output has shape {output.shape}, not one number. Pass the cotangent to start from, an array of "
                "that shape (backward(np.ones(shape)) gives the gradient of the sum), or reduce first, as in y.sum().backward()"
            )
        return ops.ones_like(output._data)
    shape, dtype, value = output.shape, output.dtype, cotangent
    while (
        type(value) is Tensor
        and not value._level.is_batch
        and (value._level is output._level or value._history is None)
    ):
        value = value._data  # a Tensor of a running outer derivative stays: the result depends on it
    if type(value) is not Tensor and type(value) not in readings:
        value = backend.placed(value, dtype, output.device, "backward")
    elif value.dtype != dtype:
        value = ops.astype(value, dtype=dtype)
    if value.shape != shape:
        raise ValueError(
            f"backward: the cotangent has shape {value.shape}, but the output has {shape}; they must be equal"
        )
    return value


class Owned:
    """Makes sure that every gradient handed out has its own memory: a sweep may send one array to several inputs."""

    def __init__(self, *foreign: Any) -> None:
        self.given = {id(value): value for value in foreign}

    def own(self, gradient: Any) -> Any:
        """The gradient itself where nobody else has its memory, else a copy."""
        if isinstance(gradient, np.ndarray):
            if gradient.base is not None or id(gradient) in self.given or not gradient.flags.owndata:
                return gradient.copy()
            self.given[id(gradient)] = gradient
            return gradient
        return np.asarray(gradient) if isinstance(gradient, np.generic) else gradient


def backward(self: Tensor, gradient: Any = None, create_graph: bool = False) -> None:
    """Add the gradient of this Tensor to ``.grad`` of every leaf it was computed from.

    May be called again: the graph keeps what it saved as long as its result lives, and no intermediate gradient is kept.

    Args:
        gradient: the cotangent to start from, shaped like this Tensor; may be left out where it is a single number.
        create_graph: record the sweep, so that ``.grad`` can be differentiated again.

    Raises:
        ValueError: nothing was recorded, or a cotangent is needed or has the wrong shape.

    >>> import autodiff_lab as ad
    >>> x = ad.tensor(3.0, requires_grad=True)
    >>> (x * x).backward()
    >>> x.grad
    tensor(6.)
    """
    for record, found in _leaf_gradients(self, gradient, create_graph):
        new = found if type(found) is Tensor else Tensor(found)
        leaf: Leaf = record[4]
        leaf.grad = new if leaf.grad is None else leaf.grad + new


setattr(Tensor, "backward", backward)  # noqa: B010  (mypy would refuse the assignment to a method)


# ---------------------------------------------------------------------------------------------------- transformations


class Pullback(NamedTuple):
    """The result of ``vjp``: the function's value, and the function that turns its cotangent into those of the arguments."""

    value: Any
    pull: Callable[[Any], Any]


def vjp(f: Callable[..., Any], *primals: Any) -> Pullback:
    """The value of ``f(*primals)``, and the function from the result's cotangent to the cotangents of all arguments.

    Arguments and results may be nested lists, tuples and dicts of floating arrays. An argument that the result does not
    depend on gets zeros.

    >>> value, pull = vjp(lambda x, y: x * y, 2.0, 5.0)
    >>> float(value), [float(g) for g in pull(1.0)]
    (10.0, [5.0, 2.0])
    """
    values, pull_leaves, structure = pull_back(f, primals, copy=True)
    arguments = [flatten(argument)[1] for argument in primals]

    def pull(cotangent: Any) -> Any:
        seeds, seed_structure = flatten(cotangent)
        if seed_structure != structure:
            raise ValueError(f"vjp: the cotangent nests as {seed_structure}, but the result as {structure}")
        gradients = iter(pull_leaves(seeds))
        return tuple(argument.rebuild(gradients) for argument in arguments)

    return Pullback(structure.rebuild(map(_copy, values)), pull)


def pull_back(
    f: Callable[..., Any], primals: Sequence[Any], copy: bool = False
) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]], Structure]:
    """Run ``f`` once, recorded.

    Gives the leaves of the result, the function from one cotangent for each of them to one for each leaf of the arguments, and
    how the result nests. With ``copy`` that function may be called after the arguments have changed.
    """
    inputs, _, outputs, structure = _run_recorded(f, primals, range(len(primals)), copy)

    def pull_leaves(cotangents: Sequence[Any]) -> list[Any]:
        roots = [(o._history, _seed(o, s)) for o, s in zip(outputs, cotangents, strict=True) if o._history is not None]
        return _pulled_back(roots, inputs)

    return [output._data for output in outputs], pull_leaves, structure


def value_and_grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that gives ``(f(…), gradient)``.

    ``f`` must give a single number. The gradient nests like the argument ``argnums``, or is a tuple where that is a tuple.
    Keyword arguments are passed on to ``f``; no gradient is taken for them.

    >>> value, gradient = value_and_grad(lambda x: (x * x).sum())(np.array([1.0, 2.0]))
    >>> float(value), gradient.tolist()
    (5.0, [2.0, 4.0])
    """
    chosen = _checked_argnums(f, argnums)

    def value_and_gradient(*arguments: Any, **options: Any) -> Any:
        places = distinct([_argument_place(f, place, len(arguments)) for place in chosen], argnums)
        inputs, nestings, outputs, structure = _run_recorded(f, arguments, places, **options)
        if structure.kind is not None or outputs[0].size != 1:
            seen = f"a {structure.kind.__name__}" if structure.kind is not None else f"shape {outputs[0].shape}"
            raise ValueError(f"grad: {_name(f)} must give one number, got {seen}; reduce it, or use vjp or jacobian")
        output = outputs.pop()
        value = output._data
        with events.backward_phase():
            roots = [] if output._history is None else [(output._history, ops.ones_like(value))]
        del output  # so that the sweep frees each record when it is done with it
        reached = _pulled_back(roots, inputs)
        for leaf, gradient in zip(inputs, reached, strict=True):
            if shape_of(gradient) != leaf.shape:
                raise _wrong_shape(gradient, f"an argument of {_name(f)}", leaf.shape)
        gradients = iter(reached)
        parts = tuple([nesting.rebuild(gradients) for nesting in nestings])
        value = Owned(*(leaf._data for leaf in inputs)).own(value)
        return value, parts[0] if isinstance(argnums, int) else parts

    value_and_gradient.__name__ = f"value_and_grad({_name(f)})"
    value_and_gradient.__wrapped__ = f  # type: ignore[attr-defined]
    return value_and_gradient


def grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that gives the gradient of ``f``, which must give a single number; see ``value_and_grad``.

    >>> second = grad(grad(lambda x: x**3))
    >>> float(second(2.0))
    12.0
    """
    both = value_and_grad(f, argnums)

    def gradient(*arguments: Any, **options: Any) -> Any:
        return both(*arguments, **options)[1]

    gradient.__name__ = f"grad({_name(f)})"
    gradient.__wrapped__ = f  # type: ignore[attr-defined]
    return gradient


def _run_recorded(
    f: Callable[..., Any], arguments: Sequence[Any], places: Sequence[int], copy: bool = False, **options: Any
) -> Any:
    """Run ``f`` with the arguments at ``places`` as leaves of a new level.

    Gives the leaves, how each of these arguments nests, the outputs as Tensors of the level, and how the outputs nest.
    """
    level, name = Level(is_reverse=True), _name(f)
    inputs: list[Tensor] = []
    nestings = []
    passed = list(arguments)
    for place in places:
        leaves, nesting = flatten(arguments[place])
        where = f"argument {place} of {name}"
        made = [_input(_copy(leaf) if copy else leaf, level, where) for leaf in leaves]
        passed[place] = nesting.rebuild(made)
        nestings.append(nesting)
        inputs += made
    with events.with_gradients():
        leaves, structure = flatten(f(*passed, **options))
    outputs = [at_level(leaf, level, f"the result of {name}") for leaf in leaves]
    return inputs, nestings, outputs, structure


def _input(leaf: Any, level: Level, where: str) -> Tensor:
    value = as_value(leaf, where)
    require_floating(dtype_of(value), where)
    return Tensor(value, level, leaf_record(value))


def _copy(value: Any) -> Any:
    return value.copy(order="K") if isinstance(value, np.ndarray) else value  # sums in another order differ in bits


def _checked_argnums(f: Any, argnums: Any) -> tuple[int, ...]:
    """The places that ``argnums`` means; refuses what is not a function of numbered arguments."""
    if not callable(f):
        raise TypeError(f"grad takes a function, got {type(f).__name__}; for a recorded Tensor call its backward()")
    chosen = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    for place in chosen:
        if not isinstance(place, int):
            raise TypeError(
                f"grad: argnums says which argument by its number, got {type(place).__name__}; the gradient at a point is "
                f"ad.grad({_name(f)})(point)"
            )
    distinct(chosen, argnums)
    return tuple(chosen)


def distinct(places: Any, argnums: Any) -> Any:
    """The places, if no argument is named twice, as (0, −1) does for a function of one argument."""
    if len(set(places)) != len(places):
        raise ValueError(f"argnums={argnums} names an argument twice")
    return places


def _argument_place(f: Callable[..., Any], place: int, count: int) -> int:
    if not -count <= place < count:
        raise ValueError(f"grad: argnums={place}, but {_name(f)} was called with {count} arguments")
    return place % count


def _pulled_back(roots: list[tuple[Record, Any]], inputs: Sequence[Tensor]) -> list[Any]:
    """The cotangents of the inputs, from (record, seed) of each output; zeros where no output depends on an input."""
    cotangents: dict[int, Any] = {}
    for serial, seed in [(record[0], seed) for record, seed in roots]:
        cotangents[serial] = accumulate(cotangents[serial], seed) if serial in cotangents else seed
    owned = Owned(*cotangents.values(), *(leaf._data for leaf in inputs))
    order = backward_order(*(record for record, _ in roots))
    roots.clear()
    found = {leaf[0]: gradient for leaf, gradient in run_sweep(order, cotangents)}
    gradients = [found.get(leaf._history[0]) for leaf in inputs]
    with events.backward_phase():
        return [
            ops.zeros_like(leaf._data) if gradient is None else owned.own(gradient)
            for leaf, gradient in zip(inputs, gradients, strict=True)
        ]


def _name(f: Callable[..., Any]) -> str:
    return getattr(f, "__name__", type(f).__name__)
