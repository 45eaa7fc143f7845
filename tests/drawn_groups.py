"""Elementwise programs with reductions that Hypothesis draws, and what a group of their ops has to give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from autodiff_lab import ops
from autodiff_lab.fusion import Group
from autodiff_lab.graph import Graph

DTYPES = ["float64", "float32", "float16", "int32", "uint8", "bool"]

UNARY: list[Callable[[Any], Any]] = [
    ops.tanh, ops.exp, ops.sigmoid, ops.silu, ops.gelu, ops.relu, ops.abs, ops.square, ops.sqrt, ops.log1p, ops.round, ops.erf,
    lambda x: -x, lambda x: 1.0 - x, lambda x: 2 * x, lambda x: x * 1, lambda x: x**3, lambda x: x / 3.0, lambda x: x > 0,
    lambda x: ops.clip(x, -0.5, 2), lambda x: ops.astype(x, dtype="float32"), ops.ones_like, ops.zeros_like, lambda x: x,
]  # fmt: skip
BINARY: list[Callable[[Any, Any], Any]] = [
    ops.add, ops.sub, ops.mul, ops.div, ops.maximum, ops.minimum, ops.less, ops.hypot,
    lambda x, y: ops.where(x > y, x, y), lambda x, y: ops.where(x, y, 0.5),
]  # fmt: skip
REDUCTIONS = [ops.sum, ops.mean, ops.max, ops.min, ops.any, ops.prod]


@st.composite
def arrays(draw: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An array that broadcasts to a shape: without some leading axes, with some of size 1, its rows side by side or not."""
    own = [draw(st.sampled_from([size, size, 1])) for size in shape][draw(st.sampled_from([0, 0, 1, 2])) :]
    values = np.random.default_rng(draw(st.integers(0, 9))).standard_normal(own) * 2
    array = np.asarray(values.astype(draw(st.sampled_from(DTYPES))))
    how = draw(st.sampled_from(["as it is", "as it is", "transposed", "strided"]))
    if how == "transposed":
        return np.ascontiguousarray(array.T).T
    return np.repeat(array, 2, axis=-1)[..., ::2] if how == "strided" and array.ndim else array


@st.composite
def programs(draw: Any) -> tuple[Callable[..., Any], list[np.ndarray[Any, Any]]]:
    """A function of some arrays that is elementwise but for reductions, with arguments."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 5, 7, 0]), min_size=0, max_size=3)))
    inputs = [np.ones(shape) * 0.75, *draw(st.lists(arrays(shape), min_size=1, max_size=3))]
    place = st.integers(0, 20)
    steps = draw(st.lists(st.tuples(st.sampled_from([*UNARY, *BINARY]), place, place), min_size=1, max_size=9))
    ends = draw(st.lists(st.tuples(place, st.sampled_from(REDUCTIONS), st.sampled_from([None, -1, 0, (0, -1)]), st.booleans()),
                         max_size=2))  # fmt: skip
    given_back = draw(st.lists(place, min_size=1, max_size=2))

    def f(*values: Any) -> Any:
        pool = [values[0] * value for value in values]
        for step, one, other in steps:
            operands = [pool[place % len(pool)] for place in (one, other)[: 1 if step in UNARY else 2]]
            try:
                pool.append(step(*operands))
            except TypeError:  # truth values have no sign
                continue
        results = [pool[-1 - place % len(pool)] for place in given_back]
        for place, reduction, axis, keepdims in ends:
            x = pool[-1 - place % len(pool)]
            axes = axis if x.ndim > 1 else None if not x.ndim else (axis if not isinstance(axis, tuple) else None)
            if x.size:
                results.append(reduction(x, axis=axes, keepdims=keepdims))
        return results

    return f, inputs


def node_values(graph: Graph, inputs: Sequence[Any]) -> dict[int, Any]:
    """Every value of a graph, computed op by op."""
    values: dict[int, Any] = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph:
        if node.kind == "constant":
            values[node.id] = node.value
        elif node.op is not None:
            values[node.id] = node.op.apply([values[i] for i in node.inputs], node.attributes)
    return values


def is_rounded(graph: Graph, group: Group) -> bool:
    return any(graph.nodes[n].label in ("sum", "mean", "prod", "sum_to") for n in group.nodes)


def compare(found: Sequence[Any], expected: Sequence[Any], rounded: bool) -> None:
    for one, other in zip(found, expected, strict=True):
        assert type(one) is np.ndarray and (one.shape, one.dtype) == (other.shape, other.dtype)
        if not rounded or other.dtype.kind in "iub":
            np.testing.assert_array_equal(one, other)
        else:
            step = float(np.finfo(other.dtype).eps)
            finite = np.abs(other[np.isfinite(other)]).astype(float)
            np.testing.assert_allclose(
                one.astype(float), other.astype(float), rtol=64 * step, atol=64 * step * float(finite.max(initial=1))
            )
