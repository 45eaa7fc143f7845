"""Graphs that several tests draw: small ones, deep ones, joint ones, and one whose names try to break out of the picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.graph import Graph, Node

HOSTILE = (
    "<script>alert(1)</script>", '"quoted" & \'single\'', "]]>", "&amp;", "γ́ 🦊 变量", "", " ", "x" * 300,
    "a\x00b\x1b", "\ud800", "javascript:alert(1)", "]}<g onload='alert(1)'>", "line\nbreak", "\\", "back\\n \\N \\l",
    "100 %s {0} {x} $y`z`", "שלום עולם", "\u202egnp.exe", "<b> <c>", "lambda> <map", "{|<f0>}", "a~b", "a>b",
)  # fmt: skip


def expression(x: Any, w: Any, b: Any) -> Any:
    h = x * w
    y = (h + b) * 2.0
    return ops.tanh(y)


def diamond(x: Any) -> Any:
    left, right = ops.exp(x), ops.tanh(x)
    return left * right


def square(x: Any) -> Any:
    return x * x


def mlp_loss(params: Any, x: Any, target: Any) -> Any:
    h = x
    for number, (w, b) in enumerate(params):
        with ad.name_scope(f"layer{number + 1}"):
            z = h @ w
            h = ops.tanh(z + b)
    with ad.name_scope("loss"), ad.name_scope("squared"):
        e = h - target
        return (e * e).mean()


def residual(x: Any, w: Any) -> Any:
    for number in range(3):
        with ad.name_scope(f"block{number}"):
            x = x + ops.tanh(x @ w)
    return x.sum()


def entered_twice(x: Any) -> Any:
    with ad.name_scope("layer"):
        x = ops.tanh(x)
    x = ops.exp(x)
    with ad.name_scope("layer"):
        return ops.tanh(x)


def chain(length: int) -> Callable[[Any], Any]:
    def long_chain(x: Any) -> Any:
        for _ in range(length):
            x = ops.tanh(x)
        return x

    return long_chain


def mlp_arguments(layers: int = 2) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    return [(rng.normal(size=(3, 3)), np.zeros(3)) for _ in range(layers)], np.ones((4, 3)), np.zeros((4, 3))


def hostile() -> Graph:
    """A chain of ops whose names are not names."""
    exp = ad.registry["exp"]
    nodes = [Node(0, "input", "x", (), np.dtype("float64"), serial=1)]
    for name in HOSTILE:
        place = len(nodes)
        nodes.append(
            Node(place, "op", name, (), nodes[0].dtype, op=exp, inputs=(place - 1,), scope=name, serial=place + 1)
        )
    return Graph(tuple(nodes), (0,), (len(nodes) - 1,), name=HOSTILE[0])


def joint(f: Callable[..., Any], *arguments: Any) -> Graph:
    return ad.record(ad.value_and_grad(f), *arguments)


# functions with arguments that give one number
FUNCTIONS: dict[str, tuple[Callable[..., Any], Sequence[Any]]] = {
    "expression": (expression, (0.5, 3.0, 1.0)),
    "diamond": (diamond, (0.3,)),
    "square": (square, (3.0,)),
    "mlp": (mlp_loss, mlp_arguments()),
    "residual": (residual, (np.ones((2, 2)), np.eye(2))),
    "scope entered twice": (entered_twice, (0.5,)),
    "chain of 300": (chain(300), (0.5,)),
}

GRAPHS: dict[str, Graph] = {
    **{name: ad.record(f, *arguments) for name, (f, arguments) in FUNCTIONS.items()},
    **{f"joint {name}": joint(f, *arguments) for name, (f, arguments) in FUNCTIONS.items() if name != "chain of 300"},
    "hostile": hostile(),
    "one input": ad.record(lambda x: x, 1.0),
}
