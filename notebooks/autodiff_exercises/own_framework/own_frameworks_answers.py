"""Answers to the exercise "your framework" of lesson 130, right and wrong: what its check is tested on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .array_engines_answers import Arrays, array_engine, engine
from .node_plans_answers import one_after_the_other, plan_nodes, without_workers
from .op_registries_answers import Overwriting, new_registry
from .protocol import Framework

# ------------------------------------------------------------------------------------------ what a solution can look like


def my_framework():
    """A new framework: its class of arrays, its registry with nine ops, and its scheduler."""
    ops = new_registry()

    def stretched(x, y):
        return np.broadcast_shapes(x, y)

    def same(x):
        return x

    def add_up(x):
        return x.sum()

    def product(x, y):
        return x @ y

    ops.register("add", lambda x, y: x + y, (lambda g, out, x, y: g, lambda g, out, x, y: g), stretched)
    ops.register("sub", lambda x, y: x - y, (lambda g, out, x, y: g, lambda g, out, x, y: -g), stretched)
    ops.register("mul", lambda x, y: x * y, (lambda g, out, x, y: g * y, lambda g, out, x, y: g * x), stretched)
    ops.register("div", lambda x, y: x / y, (lambda g, out, x, y: g / y, lambda g, out, x, y: -g * out / y), stretched)
    ops.register("exp", lambda x: np.exp(x), (lambda g, out, x: g * out,), same)
    ops.register("log", lambda x: np.log(x), (lambda g, out, x: g / x,), same)
    ops.register("relu", lambda x: np.maximum(x, 0), (lambda g, out, x: g * (x > 0),), same)
    ops.register("sum", add_up, (lambda g, out, x: g * np.ones_like(x),), lambda x: ())
    ops.register(
        "matmul", product, (lambda g, out, x, y: g @ y.T, lambda g, out, x, y: x.T @ g), lambda x, y: (x[0], y[1])
    )
    return Framework(array_engine(ops), ops, plan_nodes)


Rules = dict[str, tuple[Any, ...]]


def rules() -> Rules:
    """The three parts of each op, written another way."""
    both = np.broadcast_shapes

    def binary(forward: Any, left: Any, right: Any) -> tuple[Any, ...]:
        return forward, (left, right), lambda x, y: both(x, y)

    def unary(forward: Any, rule: Any) -> tuple[Any, ...]:
        return forward, (rule,), lambda x: tuple(x)

    return {
        "add": binary(lambda x, y: np.add(x, y), lambda g, o, x, y: g + 0 * x, lambda g, o, x, y: g + 0 * y),
        "sub": binary(lambda x, y: np.subtract(x, y), lambda g, o, x, y: 1 * g, lambda g, o, x, y: -1 * g),
        "mul": binary(lambda x, y: np.multiply(x, y), lambda g, o, x, y: y * g, lambda g, o, x, y: x * g),
        "div": binary(lambda x, y: x * y**-1, lambda g, o, x, y: g * y**-1, lambda g, o, x, y: -g * x * y**-2),
        "exp": unary(lambda x: np.exp(x), lambda g, o, x: np.exp(x) * g),
        "log": unary(lambda x: np.log(x), lambda g, o, x: g * x**-1),
        "relu": unary(lambda x: np.where(x > 0, x, 0.0), lambda g, o, x: np.where(x > 0, g, 0.0)),
        "sum": (lambda x: np.sum(x), (lambda g, o, x: np.full(x.shape, g),), lambda x: ()),
        "matmul": (
            lambda x, y: np.dot(x, y),
            (lambda g, o, x, y: np.dot(g, y.T), lambda g, o, x, y: np.dot(g.T, x).T),
            lambda x, y: (x[0], y[1]),
        ),
    }


def made(table: Rules, ops: Any = None, plan: Any = plan_nodes, kind: Callable[[Any], Any] = engine) -> Framework:
    """A framework with these rules."""
    registry = new_registry() if ops is None else ops
    for name, parts in table.items():
        registry.register(name, *parts)
    return Framework(kind(registry), registry, plan)


def from_a_table() -> Framework:
    """Another engine, and rules in a dictionary."""
    return made(rules())


# -------------------------------------------------------------------------------------------------------- wrong solutions


def without_matmul() -> Framework:
    """Eight ops."""
    return made({name: parts for name, parts in rules().items() if name != "matmul"})


def minus_is_plus() -> Framework:
    """Both operands of a difference get g."""
    return made(rules() | {"sub": (rules()["sub"][0], rules()["add"][1], rules()["sub"][2])})


def divisor_not_squared() -> Framework:
    """Of x / y the derivative by y is taken for −x / y."""
    forward, (left, _right), shape = rules()["div"]
    return made(rules() | {"div": (forward, (left, lambda g, o, x, y: -g * x / y), shape)})


def log_without_upstream() -> Framework:
    """The rule of log is 1 / x."""
    return made(rules() | {"log": (rules()["log"][0], (lambda g, o, x: 1 / x,), rules()["log"][2])})


def relu_lets_all_pass() -> Framework:
    """The gradient of relu is g."""
    return made(rules() | {"relu": (rules()["relu"][0], (lambda g, o, x: g,), rules()["relu"][2])})


def matmul_not_transposed() -> Framework:
    """Reshapes where it should transpose."""
    forward, _rules, shape = rules()["matmul"]
    wrong = (lambda g, o, x, y: g @ y.reshape(y.shape[::-1]), lambda g, o, x, y: x.reshape(x.shape[::-1]) @ g)
    return made(rules() | {"matmul": (forward, wrong, shape)})


def matmul_shape_of_the_first() -> Framework:
    """The result of a product has the first one's shape."""
    return made(rules() | {"matmul": (*rules()["matmul"][:2], lambda x, y: x)})


def sum_keeps_its_shape() -> Framework:
    """The shape rule of sum is that of exp."""
    return made(rules() | {"sum": (*rules()["sum"][:2], lambda x: x)})


def exp_in_place() -> Framework:
    """Writes the result where the input was."""

    def forward(x: Any) -> Any:
        return np.exp(x, out=x)

    return made(rules() | {"exp": (forward, rules()["exp"][1], rules()["exp"][2])})


def table_copied() -> Framework:
    """The class has its own copy of the table."""
    return made(rules(), kind=lambda ops: engine({name: ops[name] for name in ops}))


def overwriting() -> Framework:
    """A registry in which the last one wins."""
    return made(rules(), Overwriting())


def planned_in_turn() -> Framework:
    """A scheduler that uses one worker."""
    return made(rules(), plan=one_after_the_other)


def planned_without_workers() -> Framework:
    """A scheduler without workers."""
    return made(rules(), plan=without_workers)


def copies_share() -> Framework:
    """An engine that takes an average over copies."""

    def fit(self: Any, part: Any, shape: Any) -> Any:
        return Arrays.fit(self, part, shape) * (int(np.prod(shape)) / max(np.size(part), 1))

    return made(rules(), kind=lambda ops: engine(ops, fit=fit))


def a_tuple() -> Any:
    """The parts in a tuple."""
    mine = made(rules())
    return mine.tensor, mine.ops, mine.plan


FOUND = made(rules() | {"mul": (lambda x, y: x * y, rules()["mul"][1], rules()["mul"][2])})


def always_the_same() -> Framework:
    """One framework for all calls."""
    return FOUND


def first_gradient_for_all() -> Framework:
    """Each rule has the first operand's."""
    table = {name: (f, (gs[0],) * len(gs), s) for name, (f, gs, s) in rules().items() if name in ("mul", "matmul")}
    return made(rules() | table)
