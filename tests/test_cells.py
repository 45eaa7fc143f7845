"""What each number of an op was computed from: the same numbers as the kernel's, and no source too many or too few."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import autodiff_widgets as aw
import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.cell_traces import _pulled
from autodiff_lab.ops.composed import composed_functions

OPS = {op.name: op for name in ad.registry for op in ad.registry[name].members}
BRUTE = 40  # numbers of a call at most, which are changed one by one
MAY_DECIDE = ("select", "maximum", "minimum", "equal", "greater", "less", "sign", "logical")


def calls_of(op: Any, largest: int = 10**9) -> list[tuple[Any, dict[str, Any]]]:
    """The samples of an op whose operands have not too many numbers."""
    calls = [(operands, rest) for operands, rest in op.sample_calls()]
    return [call for call in calls if sum(np.size(one) for one in call[0]) <= largest]


def traces(op: Any, largest: int = 10**9) -> Iterator[ad.CellTrace]:
    for operands, attributes in calls_of(op, largest):
        with np.errstate(all="ignore"):
            result = np.asarray(op.apply(operands, attributes))
            cotangent = np.random.default_rng(0).normal(size=result.shape) if result.dtype.kind == "f" else None
            yield ad.trace_cells(op, operands, attributes, cotangent)


def numbers_of(trace: ad.CellTrace, way: str) -> Any:
    return trace.result if way == "out" else trace.gradients[way]


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_the_ways_of_all_numbers_lead_to_the_numbers_of_kernel_and_rules(op: Any) -> None:
    for trace in traces(op):
        for way, cells in trace.ways.items():
            numbers = numbers_of(trace, way)
            assert (cells.shape, cells.dtype) == (numbers.shape, numbers.dtype)
            close = 1e-2 if numbers.dtype == np.float16 else 1e-5
            np.testing.assert_allclose(cells.values().astype(float), numbers.astype(float), rtol=close, atol=1e-6)


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_a_number_comes_from_those_that_change_it(op: Any) -> None:
    for trace in list(traces(op, BRUTE))[:4]:
        names = list(trace.operands)
        compare(trace, "out", trace.operands, partial(applied, trace))
        for way in trace.gradients:
            named = {"g": trace.cotangent, **trace.operands, "out": trace.result}
            compare(trace, way, named, partial(pulled, trace, names.index(way)))


def applied(trace: ad.CellTrace, values: dict[str, Any]) -> Any:
    assert trace.op is not None
    return trace.op.apply(list(values.values()), trace.attributes)


def pulled(trace: ad.CellTrace, place: int, values: dict[str, Any]) -> Any:
    assert trace.op is not None
    return _pulled(trace.op, place, values, trace.attributes)


def compare(trace: ad.CellTrace, way: str, arrays: dict[str, Any], compute: Callable[[dict[str, Any]], Any]) -> None:
    """Change each number of the arrays in several ways; those that change a result are among its sources, and few others."""
    numbers = numbers_of(trace, way)
    found: dict[Any, set[Any]] = {index: set() for index in np.ndindex(numbers.shape)}
    followed = {leaf.array for index in found for leaf in leaves(trace, way, index)}
    for name in followed:
        for where in np.ndindex(np.shape(arrays[name])):
            for other in other_numbers(arrays, name, where):
                changed = np.array(arrays[name])
                changed[where] = other
                try:
                    with np.errstate(all="ignore"):
                        new = np.asarray(compute({**arrays, name: changed}))
                except ad.OpError:
                    continue
                for index in np.argwhere(~((new == numbers) | ((new != new) & (numbers != numbers)))):
                    found[tuple(index.tolist())].add((name, where))
    for index, seen in found.items():
        sources = {(leaf.array, leaf.index) for leaf in leaves(trace, way, index)}
        assert seen <= sources, (trace.name, trace.attributes, way, index, seen - sources)
        assert sources == seen or decides(trace.way(way, index)), (trace.name, way, index, sources - seen)


def leaves(trace: ad.CellTrace, way: str, index: Any) -> list[Any]:
    cell = trace.way(way, index)
    return cell.leaves if isinstance(cell, ad.Cell) else []


def decides(cell: Any) -> bool:
    """Whether a comparison or a choice is among what a number was computed from: then some sources matter seldom."""
    stack, seen = [cell], set()
    while stack:
        one = stack.pop()
        if isinstance(one, ad.Cell) and id(one) not in seen:
            seen.add(id(one))
            if one.name.startswith(MAY_DECIDE):
                return True
            stack += one.parents
    return False


def other_numbers(arrays: dict[str, Any], name: str, where: Any) -> list[Any]:
    old = arrays[name][where]
    if old.dtype.kind == "b":
        return [not old]
    if old.dtype.kind in "iu":
        return [old + 1, max(int(old) - 1, 0), old + 7]
    ties = [value for one in arrays.values() for value in np.ravel(one)[:6] if np.asarray(value).dtype.kind == "f"]
    return [old + 0.37, old - 1.71, 9.0, -9.0, old * 1.01, *ties]


FUNCTIONS = {
    name: found for name, found in composed_functions.items() if name not in ("stack", "vstack", "hstack", "split")
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_made_of_ops_is_followed_through_all_of_them(name: str) -> None:
    composed = FUNCTIONS[name]
    for operands, options in composed.sample_calls():
        function = composed.binding
        if name == "einsum":
            function = lambda *arrays, subscripts: ops.einsum(subscripts, *arrays)  # noqa: E731
        trace = ad.trace_cells(function, operands, options)
        for way, cells in trace.ways.items():
            np.testing.assert_allclose(cells.values(), numbers_of(trace, way), rtol=1e-4, atol=1e-6)


def test_equal_largest_numbers_share_the_cotangent_and_say_so() -> None:
    view = aw.OpView("max_pool2d", np.array([[1.0, 3.0], [3.0, 2.0]]), kernel=2)
    np.testing.assert_array_equal(view.trace.gradients["x"], [[0, 0.5], [0.5, 0]])
    assert {leaf.array for leaf in view.trace.way("x", (0, 1)).leaves} >= {"g", "x"}


def test_what_a_padding_adds_is_no_source_and_no_term() -> None:
    trace = ad.trace_cells(ops.conv2d, [np.ones((1, 1, 2, 2)), np.ones((1, 1, 3, 3))], {"padding": 1})
    way = trace.way("out", (0, 0, 0, 0))
    assert len(way.leaves) == 8 and way.value == 4.0


def test_an_op_whose_kernel_cannot_be_followed_is_probed() -> None:
    with ad.registry.restored():

        @ad.op
        def turned(xp: Any, x: Any) -> Any:
            return np.array([float(one) for one in x[::-1]])

        @turned.shape_rule
        def turned_shape(x: Any) -> Any:
            return x

        @turned.vjp
        def turned_vjp(g: Any) -> Any:
            return turned(g)

        trace = ad.trace_cells(turned, [np.array([1.0, 2.0, 3.0])])
        assert [leaf.index for leaf in trace.way("out", (0,)).leaves] == [(2,)]
        assert [(leaf.array, leaf.index) for leaf in trace.way("x", (0,)).leaves] == [("g", (2,))]
        note = next(iter(aw.OpView(turned, np.array([1.0, 2.0])).scene.notes.values()))
        assert note == "out[0] = turned(x[1])[0] = turned(2)[0] = 2"


def test_numbers_of_half_precision_stay_so_on_the_way() -> None:
    trace = ad.trace_cells(ops.mul, [np.array([0.1], np.float16), np.array([0.3], np.float16)])
    assert trace.ways["out"].values().dtype == np.float16
    assert trace.way("out", (0,)).value == np.float16(0.1) * np.float16(0.3)


def test_a_cotangent_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the cotangent has shape \(3,\), but the result has \(2,\)"):
        ad.trace_cells(ops.exp, [np.ones(2)], cotangent=np.ones(3))


def test_a_function_that_gives_a_list_is_refused() -> None:
    with pytest.raises(TypeError, match="split must give one array, got list; choose one of them"):
        ad.trace_cells(ops.split, [np.ones(4)], {"indices_or_sections": 2})
