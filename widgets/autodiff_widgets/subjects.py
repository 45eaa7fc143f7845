"""What a user hands to a view, turned into a Graph: a Graph, or an executed Tensor with the names of the caller's variables."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import autodiff_lab as ad
from autodiff_lab.graph import Graph

from .shapes import writable


def graph_from(subject: Any, view: str) -> Graph:
    """The graph of a Graph or a recorded Tensor; anything else is refused with what to pass instead."""
    if isinstance(subject, Graph):
        return with_writable_names(subject)
    if isinstance(subject, ad.Tensor):
        return with_writable_names(ad.graph_of(recorded(subject, view), names=callers_tensors()))
    if callable(subject):
        name = getattr(subject, "__name__", "f")
        raise TypeError(
            f"{view}: got the function {name} without arguments; record it first: {view}(ad.record({name}, …))"
        )
    raise TypeError(
        f"{view}: expected a Graph or a Tensor, got {described(subject)}; pass ad.record(f, *args), or the result of a "
        "computation on tensors made with ad.tensor(…, requires_grad=True)"
    )


def with_writable_names(graph: Graph) -> Graph:
    """The graph, with names and scopes that can be written in a document."""
    texts = [graph.name, *(text for node in graph for text in (node.name, node.scope))]
    if all(writable(text) == text for text in texts):
        return graph
    nodes = tuple(replace(node, name=writable(node.name), scope=writable(node.scope)) for node in graph)
    return replace(graph, name=writable(graph.name), nodes=nodes)


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
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(__package__ or __name__):
        frame = frame.f_back
    if frame is None:
        return {}
    seen = {**frame.f_globals, **frame.f_locals}
    return {name: value for name, value in seen.items() if isinstance(value, ad.Tensor) and not name.startswith("_")}
