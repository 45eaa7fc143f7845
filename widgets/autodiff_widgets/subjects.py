"""What a user hands to a view: a Graph, a Tensor named by the caller's variables, a function to run on arguments, an op."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import events
from autodiff_lab.events import Event
from autodiff_lab.graph import Graph, Node

from .shapes import writable

if TYPE_CHECKING:
    from autodiff_lab.families import Family
    from autodiff_lab.operators import Op

_HERE = Path(__file__).parent
_REGISTRATION = (
    events.SchemaRegistered, events.OpReplaced, events.RuleRegistered, events.KernelRegistered, events.BindingGenerated,
)  # fmt: skip


def graph_from(subject: Any, view: str) -> Graph:
    """The graph of a Graph or a recorded Tensor; anything else is refused with what to pass instead."""
    if isinstance(subject, Graph):
        return with_writable_names(subject)
    if isinstance(subject, ad.Tensor):
        return with_writable_names(ad.graph_of(recorded(subject, view), names=callers_tensors()))
    if callable(subject):
        name = name_of(subject)
        raise TypeError(
            f"{view}: got the function {name} without arguments; record it first: {view}(ad.record({name}, …))"
        )
    raise TypeError(
        f"{view}: expected a Graph or a Tensor, got {described(subject)}; pass ad.record(f, *args), or the result of a "
        "computation on tensors made with ad.tensor(…, requires_grad=True)"
    )


def with_writable_names(graph: Graph) -> Graph:
    """The graph, with names, scopes and devices that can be written in a document."""
    texts = [graph.name, *(text for node in graph for text in (node.name, node.scope, node.device))]
    if all(writable(text) == text for text in texts):
        return graph
    nodes = [
        replace(node, name=writable(node.name), scope=writable(node.scope), device=writable(node.device))
        for node in graph
    ]
    return replace(graph, name=writable(graph.name), nodes=tuple(nodes))


def linked(joint: Graph, forward: Graph) -> Graph:
    """A graph whose forward nodes have the numbers, names and lines of the same nodes of the forward graph.

    So both are selected together. The first output and the inputs of both are the same values.
    """
    same = {joint.outputs[0]: forward.outputs[0]} | dict(zip(joint.inputs, forward.inputs, strict=False))
    for node in reversed(joint.nodes):
        other = forward.nodes[same[node.id]] if node.id in same else None
        if other is not None and node.op is not None and node.op is other.op:
            same = dict(zip(node.inputs, other.inputs, strict=True)) | same
    nodes = [
        replace(node, serial=other.serial, name=other.name or node.name, scope=other.scope, source=other.source)
        if (other := forward.nodes[same[node.id]] if node.id in same else None) and other.kind == node.kind
        else _without_our_line(node)
        for node in joint
    ]
    return with_writable_names(replace(joint, nodes=tuple(nodes), name=forward.name))


def _without_our_line(node: Node) -> Node:
    """The node; one that a line of ours has asked for, as the first cotangent, stands in no line of the learner's."""
    ours = node.source is not None and Path(node.source.file).parent == _HERE
    return replace(node, source=None) if ours else node


def recorded(tensor: ad.Tensor, view: str) -> ad.Tensor:
    """The Tensor, if it has a record of how it was computed."""
    if not tensor.requires_grad:
        raise ValueError(
            f"{view}: the Tensor of shape {tensor.shape} has no record of how it was computed; make its inputs with "
            "ad.tensor(…, requires_grad=True) and compute outside of ad.no_grad()"
        )
    return tensor


def described(value: Any) -> str:
    """What a value is, for an error: its type, and its shape where it has one."""
    shape = getattr(value, "shape", None)
    return (
        f"{type(value).__name__} of shape {shape}"
        if isinstance(shape, tuple)
        else f"{type(value).__name__} {value!r:.60}"
    )


def callers_tensors() -> dict[str, ad.Tensor]:
    """The Tensors that the variables of the code that made the view hold: its locals, and the globals they do not hide."""
    frame = _callers_frame()
    return {} if frame is None else tensors_in({**frame.f_globals, **frame.f_locals})


def callers_globals() -> dict[str, Any]:
    """The namespace of the code that made the view: a notebook's."""
    frame = _callers_frame()
    return {} if frame is None else frame.f_globals


def tensors_in(namespace: Mapping[str, Any]) -> dict[str, ad.Tensor]:
    """The Tensors that variables hold, also while another thread makes new ones."""
    seen = dict(namespace)
    return {name: value for name, value in seen.items() if isinstance(value, ad.Tensor) and not name.startswith("_")}


def _callers_frame() -> FrameType | None:
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(__package__ or __name__):
        frame = frame.f_back
    return frame


def name_of(f: Any) -> str:
    """The name of a function."""
    return str(getattr(f, "__name__", type(f).__name__))


def run(
    f: Callable[..., Any], arguments: Sequence[Any], view: str
) -> tuple[ad.Tensor, list[Event], dict[str, ad.Tensor]]:
    """Run a function on Tensors made from its arguments: its result, the events of its forward pass, its inputs by name."""
    inputs: dict[str, ad.Tensor] = {}

    def as_tensor(name: str, value: Any) -> Any:
        if _is_floating(value) and not isinstance(value, ad.Tensor):
            value = ad.tensor(value, requires_grad=True, name=name)
        if isinstance(value, ad.Tensor):
            inputs[name] = value
        return value

    tensors = _each_leaf(f, arguments, as_tensor)
    if not inputs:
        raise _no_inputs(f, view)
    with ad.listen() as heard:
        output = f(*tensors)
    if not isinstance(output, ad.Tensor):
        raise TypeError(f"{view}: {name_of(f)} must return one Tensor, got {described(output)}")
    return recorded(output, view), heard, inputs


def floating_inputs(
    f: Callable[..., Any], arguments: Sequence[Any], view: str
) -> tuple[dict[str, np.ndarray[Any, Any]], Callable[..., Any]]:
    """The floating inputs of a call by name, and ``f`` as a function of them alone, with the other arguments held.

    >>> inputs, f = floating_inputs(lambda p, n: p["a"] * n, ({"a": 2.0}, 3), "view")
    >>> inputs, f(5.0)
    ({"p['a']": array(2.)}, 15.0)
    """
    inputs: dict[str, np.ndarray[Any, Any]] = {}

    def note(name: str, value: Any) -> Any:
        if _is_floating(value):
            inputs[name] = (value if isinstance(value, ad.Tensor) else ad.tensor(value)).numpy()
        return value

    _each_leaf(f, arguments, note)
    if not inputs:
        raise _no_inputs(f, view)

    def of_inputs(*values: Any) -> Any:
        given = dict(zip(inputs, values, strict=True))
        return f(*_each_leaf(f, arguments, lambda name, value: given.get(name, value)))

    of_inputs.__name__ = name_of(f)
    return inputs, of_inputs


def _each_leaf(f: Callable[..., Any], arguments: Sequence[Any], act: Callable[[str, Any], Any]) -> list[Any]:
    """The arguments with ``act(name, value)`` in place of each value, in lists, tuples and dicts too."""

    def inside(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: inside(f"{name}[{key!r}]", part) for key, part in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(inside(f"{name}[{place}]", part) for place, part in enumerate(value))
        return act(name, value)

    return [inside(name, value) for name, value in zip(_parameters(f, len(arguments)), arguments, strict=True)]


def _is_floating(value: Any) -> bool:
    return isinstance(value, float) or getattr(getattr(value, "dtype", None), "kind", "") == "f"


def _no_inputs(f: Callable[..., Any], view: str) -> TypeError:
    return TypeError(f"{view}: no argument of {name_of(f)} is a floating number or array; write 2.0 instead of 2")


def _parameters(f: Callable[..., Any], count: int) -> list[str]:
    """The names of a function's first parameters."""
    try:
        known = [p.name for p in inspect.signature(f).parameters.values() if p.kind is not p.VAR_POSITIONAL]
    except (TypeError, ValueError):
        known = []
    return [*known, *(f"argument{place}" for place in range(len(known), count))][:count]


def registration_of(subject: Any, view: str) -> list[Event]:
    """The events of an op's registration: told again for an op, or those among what was heard."""
    if isinstance(subject, (list, tuple)):
        heard: list[Event] = [event for event in subject if isinstance(event, _REGISTRATION)]
        if not any(isinstance(event, events.SchemaRegistered) for event in heard):
            raise ValueError(
                f"{view}: no op was registered among {len(subject)} events; hear a cell that registers one with ad.listen()"
            )
        return heard
    return ad.registration_told(definition_of(subject, view))


def plain_op(subject: Any, view: str) -> Op:
    """The op of one output and fixed inputs that a name, binding or op means."""
    found = definition_of(subject, view)
    first, *others = found.members
    if others:
        names = ", ".join(op.name for op in found.members)
        raise ValueError(f"{view}: {found.name} is several ops; choose one: {names}")
    return first


def definition_of(subject: Any, view: str) -> Op | Family:
    """The op, or the ops of one definition, that a name, binding, registration or op means."""
    if isinstance(subject, str):
        try:
            subject = ad.registry.binding(subject) or ad.registry[subject]
        except KeyError as error:
            raise ValueError(f"{view}: {error.args[0]}") from None
    candidates: list[Any] = [subject, getattr(subject, "op", None), getattr(subject, "definition", None)]
    found: Op | Family | None = next((one for one in candidates if hasattr(one, "members")), None)
    if found is not None:
        return found
    raise TypeError(
        f"{view}: expected an op, its name or its function, got {described(subject)}; pass ops.mul or 'mul'"
    )
