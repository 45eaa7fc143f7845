"""Answers to the exercise "an engine for arrays", right and wrong: what its check is tested on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from .protocol import OpRules
from .scalar_engines_answers import scalar_engine, users_first

Ops = Mapping[str, OpRules]

# ------------------------------------------------------------------------------------------ what a solution can look like


def array_engine(ops):
    """A class: arrays that are computed with the ops of a table, and backward in the shapes of the arrays."""
    sweep = scalar_engine().backward  # your own: it asks for nothing but inputs and rule

    class Tensor:
        __array_ufunc__ = None  # NumPy shall leave `array * tensor` to us

        def __init__(self, data, op="", inputs=(), rule=None):
            self.data = np.asarray(data, dtype=float)
            self.grad = np.zeros_like(self.data)
            self.op, self.inputs, self.rule = op, inputs, rule

        def __getattr__(self, name):
            if name not in ops:
                raise AttributeError(f"there is no op {name!r}")
            return partial(apply, name, self)

        def backward(self):
            if self.data.shape != ():
                raise ValueError(
                    f"backward begins at one number, and this has shape {self.data.shape}; add it up first"
                )
            sweep(self)

    def apply(name, *operands):
        inputs = tuple(one if isinstance(one, Tensor) else Tensor(one) for one in operands)
        arrays = [one.data for one in inputs]
        rules = ops[name]
        out = rules.forward(*arrays)

        def rule(g):
            parts = [gradient(g, out, *arrays) for gradient in rules.gradients]
            return [fitted(part, x.shape) for part, x in zip(parts, arrays, strict=True)]

        return Tensor(out, name, inputs, rule)

    def fitted(part, shape):
        part = np.sum(part, axis=tuple(range(np.ndim(part) - len(shape))))
        return np.sum(part, axis=tuple(axis for axis, size in enumerate(shape) if size == 1), keepdims=True)

    for name, sign in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("div", "truediv"), ("matmul", "matmul")):
        setattr(Tensor, f"__{sign}__", lambda x, y, name=name: apply(name, x, y))
        setattr(Tensor, f"__r{sign}__", lambda y, x, name=name: apply(name, x, y))
    return Tensor


class Arrays:
    """An engine of which a subclass can get a part wrong."""

    __array_ufunc__: Any = None
    ops: Ops

    def __init__(self, data: Any, op: str = "", inputs: Any = ()) -> None:
        self.data = np.array(data, float)
        self.grad, self.op, self.inputs = np.zeros(self.data.shape), op, inputs

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self.ops:
            raise AttributeError(name)
        return lambda *others: self.apply(name, self, *others)

    def apply(self, name: str, *operands: Any) -> Any:
        """The result of an op."""
        inputs = tuple(one if isinstance(one, Arrays) else type(self)(one) for one in operands)
        return type(self)(self.ops[name].forward(*(one.data for one in inputs)), name, inputs)

    def fit(self, part: Any, shape: Any) -> Any:
        """A contribution in the shape of its array: the sum over all places that one number was copied to."""
        part = np.asarray(part)
        while part.ndim > len(shape):
            part = part.sum(axis=0)
        for axis, size in enumerate(shape):
            part = part.sum(axis=axis, keepdims=True) if size == 1 else part
        return part

    def users_first(self) -> list[Any]:
        """Every value before what it was computed from."""
        return users_first(self)

    def parts(self, value: Any, g: Any) -> list[Any]:
        """What a value sends to each of its inputs."""
        arrays = [one.data for one in value.inputs]
        rules = self.ops[value.op].gradients if value.op else ()
        return [self.fit(rule(g, value.data, *arrays), x.shape) for rule, x in zip(rules, arrays, strict=True)]

    def backward(self) -> None:
        """One sweep."""
        if self.data.size != 1:
            raise ValueError("only from one number")
        self.sweep(np.ones_like(self.data))

    def sweep(self, seed: Any) -> None:
        """One sweep from a gradient of the result."""
        total: dict[Any, Any] = {self: seed}
        for value in self.users_first():
            for one, part in zip(value.inputs, self.parts(value, total[value]), strict=True):
                total[one] = total[one] + part if one in total else part
        for value, g in total.items():
            value.grad = value.grad + g


def _bound(name: str, turned: bool) -> Callable[[Any, Any], Any]:
    return lambda x, y: x.apply(name, *((y, x) if turned else (x, y)))


for _name, _sign in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("div", "truediv"), ("matmul", "matmul")):
    setattr(Arrays, f"__{_sign}__", _bound(_name, False))
    setattr(Arrays, f"__r{_sign}__", _bound(_name, True))


def engine(ops: Ops, base: type = Arrays, **changes: Any) -> Any:
    """The engine with some of its parts changed."""
    return type("Changed", (base,), {"ops": ops, **changes})


def by_counting_uses(ops: Ops) -> Any:
    """Kahn's order, from the output, and a loop over axes."""
    return engine(ops)


# -------------------------------------------------------------------------------------------------------- wrong solutions


def as_it_comes(ops: Ops) -> Any:
    """Contributions in whatever shape they come."""
    return engine(ops, fit=lambda self, part, shape: part)


def new_axes_only(ops: Ops) -> Any:
    """Sums over axes that were added on the left, and forgets those of size 1."""

    def fit(self: Any, part: Any, shape: Any) -> Any:
        return np.sum(part, axis=tuple(range(np.ndim(part) - len(shape))))

    return engine(ops, fit=fit)


def averages(ops: Ops) -> Any:
    """The mean over the copies."""

    def fit(self: Any, part: Any, shape: Any) -> Any:
        return Arrays.fit(self, part, shape) * (int(np.prod(shape)) / max(np.size(part), 1))

    return engine(ops, fit=fit)


def first_copy(ops: Ops) -> Any:
    """Cuts off what is too much."""

    def fit(self: Any, part: Any, shape: Any) -> Any:
        part = np.asarray(part)
        while part.ndim > len(shape):
            part = part[0]
        return part[tuple(slice(0, size) for size in shape)]

    return engine(ops, fit=fit)


def numpy_first(ops: Ops) -> Any:
    """Does not tell NumPy to stay away."""
    left_out = ("__array_ufunc__", "__dict__", "__weakref__")
    plain = {name: value for name, value in vars(Arrays).items() if name not in left_out}
    return type("Plain", (), {**plain, "ops": ops, "apply": _apply_any})


def _apply_any(self: Any, name: str, *operands: Any) -> Any:
    inputs = tuple(one if hasattr(one, "inputs") else type(self)(one) for one in operands)
    return type(self)(self.ops[name].forward(*(one.data for one in inputs)), name, inputs)


def three_ops_for_ever(ops: Ops) -> Any:
    """Has the first three ops built in."""
    return engine({name: ops[name] for name in ("add", "mul", "sum")})


def last_path_wins(ops: Ops) -> Any:
    """Assigns in place of adding."""

    def sweep(self: Any, seed: Any) -> None:
        self.grad = seed
        for value in self.users_first():
            for one, part in zip(value.inputs, self.parts(value, value.grad), strict=True):
                one.grad = part

    return engine(ops, sweep=sweep)


def in_place(ops: Ops) -> Any:
    """Adds into the array that came first, which may be somebody else's."""

    def sweep(self: Any, seed: Any) -> None:
        total: dict[Any, Any] = {self: seed}
        for value in self.users_first():
            for one, part in zip(value.inputs, self.parts(value, total[value]), strict=True):
                if one in total:
                    total[one] += part
                else:
                    total[one] = part
        for value, g in total.items():
            value.grad = value.grad + g

    return engine(ops, sweep=sweep)


def stale(ops: Ops) -> Any:
    """Sweeps with what earlier sweeps have left in between."""

    def sweep(self: Any, seed: Any) -> None:
        self.grad = seed
        for value in self.users_first():
            for one, part in zip(value.inputs, self.parts(value, value.grad), strict=True):
                one.grad = one.grad + part

    return engine(ops, sweep=sweep)


def from_any_shape(ops: Ops) -> Any:
    """Begins with ones wherever it is asked to."""
    return engine(ops, backward=lambda self: self.sweep(np.ones_like(self.data)))


def recursive(ops: Ops) -> Any:
    """A search that calls itself."""

    def users_first(self: Any) -> list[Any]:
        order: list[Any] = []
        entered = set()

        def build(value: Any) -> None:
            if value not in entered:
                entered.add(value)
                for one in value.inputs:
                    build(one)
                order.append(value)

        build(self)
        return order[::-1]

    return engine(ops, users_first=users_first)


def an_array(ops: Ops) -> Any:
    """Returns no class."""
    return engine(ops)(0.0)
