"""Compiled functions called again and again: whoever shares, changes or keeps what passes, the numbers are the function's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import compiling, fused_loops, ops, planning
from autodiff_lab.recycling import WORTH_IT
from autodiff_lab.trees import flatten

Array = np.ndarray[Any, Any]
CALLS = 24


def update(w: Any, x: Any) -> Any:
    """A step of gradient descent, whose result is as large as what is used again."""

    def loss(w: Any) -> Any:
        h = ops.tanh(w * x + 0.5) * ops.sigmoid(w)
        return ops.sum(h - 0.5 * x * w)

    value, gradient = ad.value_and_grad(loss)(w)
    return value, w - 0.1 * gradient


def passed_on(w: Any, x: Any) -> Any:
    """Results that are inputs, views of them, the same value twice, and constants."""
    h = w * 2.0 - x
    return {"w": w, "views": [w.T, h.T, h[:1], ops.reshape(x, -1)], "twice": (h, h), "ones": ops.ones_like(x)}


def reduced(w: Any, x: Any) -> Any:
    """Sums over columns, over rows and over all, and a truth value for each number."""
    h = ops.exp(-ops.abs(w)) * x
    return ops.sum(h, axis=0), ops.mean(h * h, axis=-1, keepdims=True), ops.sum(h * 0.5), w > x


FUNCTIONS: list[Callable[..., Any]] = [update, passed_on, reduced]
LARGE = (96, 1 + WORTH_IT // 4 // 96)  # in single precision its results are recycled
SHAPES: list[tuple[int, ...]] = [(4, 3), (1, 1), LARGE]
WAYS = [("no loops", 1), ("blocked", 1), ("compiled", 1), ("no loops", 2), ("blocked", 2), ("compiled", 2)]


def pairs(
    random: np.random.Generator, shape: Sequence[int], dtype: Any, earlier: Sequence[Array]
) -> tuple[Array, Array]:
    """Two arguments, as a user might come to have them."""

    def new(*sizes: int) -> Array:
        return random.standard_normal(sizes).astype(dtype)

    rows, columns = shape
    base = new(rows + 1, columns)
    ways: list[Callable[[], tuple[Array, Array]]] = [
        lambda: (new(rows, columns), new(rows, columns)),
        lambda: (base[1:], base[1:]),  # the same memory twice
        lambda: (base[:-1], base[1:]),  # overlapping
        lambda: (base[1:], base[1:][::-1]),  # forwards and backwards
        lambda: (new(columns, rows).T, new(rows, 2 * columns)[:, ::2]),
        lambda: (read_only(base[1:]), new(rows, columns)),
        lambda: (np.broadcast_to(new(1, columns), shape), new(rows, columns)),
    ]
    fed_back = [one for one in earlier if (one.shape, one.dtype) == (tuple(shape), dtype)]
    ways += [lambda: (fed_back[-1], new(rows, columns)), lambda: (fed_back[0], fed_back[-1])] if fed_back else []
    return ways[random.integers(len(ways))]()


def read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


def agree(got: Any, want: Any, exact: bool) -> bool:
    """Whether results nest alike and have the same shapes, dtypes and numbers."""
    ours, theirs = flatten(got), flatten(want)
    step = 1e-4 if any(np.asarray(leaf).dtype == np.float32 for leaf in theirs[0]) else 1e-10
    return ours[1] == theirs[1] and all(
        (type(a), a.shape, a.dtype) == (np.ndarray, np.shape(b), b.dtype)
        and (
            np.array_equal(a, b)
            if exact
            else np.allclose(a, b, rtol=step, atol=step * (1.0 + np.abs(b).max(initial=0)))
        )
        for a, b in zip(ours[0], theirs[0], strict=True)
    )


@pytest.fixture
def loops(way: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The options of a way; also small groups are loops, and run on two workers."""
    kind, workers = way
    if kind == "compiled" and find_spec("numba") is None:
        pytest.skip("Numba, the extra [jit], is not installed")
    monkeypatch.setattr(planning, "_IN_CACHE", 0)
    monkeypatch.setattr(fused_loops, "STRAIGHT_BYTES", 8)
    monkeypatch.setattr(fused_loops, "COMPILED_BYTES", 8)
    monkeypatch.setattr(compiling, "pays", lambda graph: True)
    return {"fuse": False, "workers": workers} if kind == "no loops" else {"loops": kind, "workers": workers}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way[0]}, {way[1]} workers")
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_shared_changed_or_kept_between_calls_changes_no_other_number(
    way: tuple[str, int], f: Callable[..., Any], shape: tuple[int, ...], dtype: str, loops: dict[str, Any]
) -> None:
    compiled, random = ad.compile(f, **loops), np.random.default_rng(len(shape) + shape[0])
    kept: list[tuple[Array, Array]] = []  # results, and copies of what they were
    for _ in range(CALLS if shape != LARGE else CALLS // 2):
        given = pairs(random, shape, np.dtype(dtype), [one for one, _ in kept])
        before = [one.copy() for one in given]
        got, want = compiled(*given), f(*before)
        assert agree(got, want, exact=loops.get("fuse") is False and all(one.flags.c_contiguous for one in given))
        assert all(np.array_equal(one, other) for one, other in zip(given, before, strict=True))
        assert all(np.array_equal(one, other) for one, other in kept)
        new = flatten(got)[0]
        for place, one in enumerate(new):
            others = [*given, *new[:place], *(other for other, _ in kept)]
            assert not any(np.shares_memory(one, other) for other in others if one.size)
        for one in given:  # what a caller may do: change what he gave, …
            if one.flags.writeable:
                one[...] = np.nan if not any(np.shares_memory(one, other) for other, _ in kept) else one
        for one in new:  # … change, keep or forget what he got
            choice = random.integers(3)
            if choice == 0:
                one[...] = 7
            if choice:
                kept.append((one, one.copy()))
        kept = kept[-6:]
    assert len(compiled.plans) == 1


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way[0]}, {way[1]} workers")
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (5,)], ids=str)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_empty_arrays_and_single_numbers_keep_shape_and_dtype(
    way: tuple[str, int], shape: tuple[int, ...], dtype: str, loops: dict[str, Any]
) -> None:
    def f(x: Any, y: Any) -> Any:
        h = ops.tanh(x * 2.0) - y
        return h, ops.sum(h), ad.grad(lambda x: ops.sum(ops.square(x) * y))(x), x

    compiled, random = ad.compile(f, **loops), np.random.default_rng(0)
    for _ in range(3):
        x = np.asarray(random.standard_normal(shape)).astype(dtype)
        got, want = compiled(x, x), f(x, x)
        step = 1e-2 if dtype == "float16" else 1e-5
        for a, b in zip(got, want, strict=True):
            assert (type(a), a.shape, a.dtype) == (np.ndarray, np.shape(b), b.dtype)
            assert np.allclose(a, b, rtol=step, atol=step) and not np.shares_memory(a, x)
