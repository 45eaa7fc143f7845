"""Loops that Numba compiles: NumPy's numbers, from compiled arithmetic and NumPy's own functions."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import compiled_loops, ops
from autodiff_lab.block_programs import block_program
from autodiff_lab.compiled_loops import CompiledLoop
from autodiff_lab.fused_loops import loop_of
from autodiff_lab.fusion import fuse
from autodiff_lab.loop_programs import NotALoop, group_program
from tests.drawn_groups import compare, is_rounded, node_values

pytest.importorskip("numba", reason="Numba, the extra [jit], is not installed")

ROWS = np.random.default_rng(0).standard_normal((240, 96)).astype(np.float32)
CUBE = ROWS.reshape(8, 30, 96)
EDGES = np.array([0.0, -0.0, 1.0, -1.0, 1e-30, 1e30, np.inf, -np.inf, np.nan, 3.0], np.float32)


def curve(x: Any) -> Any:
    return ops.tanh(1.5 * x + 0.3) * ops.sigmoid(x) - 0.5 * x * x


FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "sum, and its gradient": (lambda x: [(y := curve(x)).sum(), y * 2.0], (ROWS,)),
    "rows, a bias and a column": (lambda x, b, c: (x + b) * c - x, (ROWS, ROWS[0], ROWS[:, :1])),
    "three axes": (lambda x, y: ops.maximum(x + y, 0.0) * x, (CUBE, CUBE[:, :1])),
    "double precision": (lambda x: ops.square(x) / (1.0 + x), (ROWS.astype(float),)),
    "mixed precision": (lambda x, y: x * y + x, (ROWS, ROWS.astype(float))),
    "masks": (lambda x, m: ops.where(x > 0.5, x * m, -x), (ROWS, ROWS > 0)),
    "transposed": (lambda x, y: (x * y - x).max(axis=0), (np.asfortranarray(ROWS), ROWS)),
    "a number from outside": (lambda x, a: x * a + a, (ROWS, np.array(2.5, np.float32))),
    "at the edges": (
        lambda x, y: [x + y, ops.maximum(x, y) * 2.0, ops.minimum(x, y) * 2.0, x / y - 1.0, ops.abs(x) + y],
        (np.repeat(EDGES, 10).repeat(60).reshape(100, 60), np.tile(EDGES, 10).repeat(60).reshape(100, 60)),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_compiled_loop_gives_numpys_numbers(name: str) -> None:
    f, inputs = FUNCTIONS[name]
    graph, kinds = ad.record(f, *inputs), set()
    with np.errstate(all="ignore"):
        values, fusion = node_values(graph, inputs), fuse(graph)
        for group in fusion.groups:
            loop = loop_of(fusion, group, "compiled")
            kinds.add(loop.kind)
            given, expected = ([values[n] for n in ids] for ids in (group.inputs, group.outputs))
            compare(loop(*given), [np.asarray(one) for one in expected], is_rounded(graph, group))
            run = loop.parts(2).start(*given)
            for part in run.parts:
                part()
            compare(run.finish(), [np.asarray(one) for one in expected], is_rounded(graph, group))
    assert "compiled loop" in kinds


def loop_for(f: Any, *inputs: Any) -> Any:
    fusion = fuse(ad.record(f, *inputs))
    return loop_of(fusion, fusion.groups[0], "compiled")


def test_groups_that_differ_in_their_names_only_are_compiled_once_also_in_parts() -> None:
    def other(z: Any) -> Any:
        renamed = z * 1.75
        return renamed - z

    before = len(compiled_loops._functions)
    first = loop_for(lambda x: x * 1.75 - x, ROWS)
    first.parts(2)
    loop_for(other, ROWS)
    assert len(compiled_loops._functions) == before + 1
    loop_for(lambda x: x * 1.5 - x, ROWS)
    assert len(compiled_loops._functions) == before + 2


def test_what_numba_does_not_compute_as_numpy_stays_a_call_of_numpy() -> None:
    source = loop_for(curve, ROWS).source()
    assert "exp(s0, s0)  # sigmoid" in source and "def part(" in source


def test_tanh_of_single_precision_is_within_six_units_in_the_last_place_of_the_exact_one() -> None:
    everywhere = np.concatenate([np.linspace(-12, 12, 200_001), np.geomspace(1e-38, 1, 50_001)]).astype(np.float32)
    x = np.stack([everywhere, -everywhere])
    (y,) = loop_for(lambda x: ops.tanh(x + x), x)(x)
    exact = np.tanh(2.0 * x.astype(float))
    assert np.abs(y - exact).max() <= 3e-7 and np.abs(y).max() <= 1.0
    assert (np.abs(y - exact) <= 6 * np.spacing(np.abs(exact).astype(np.float32))).all()


def test_tanh_keeps_the_sign_of_zero_nan_and_its_bounds() -> None:
    x = np.repeat(EDGES, 4096)
    (y,) = loop_for(lambda x: ops.tanh(x + x), x)(x)
    expected = np.tanh(x + x)
    assert np.allclose(y, expected, rtol=4e-7, atol=0, equal_nan=True)
    finite = ~np.isnan(expected)
    assert np.array_equal(np.signbit(y[finite]), np.signbit(expected[finite]))


def test_where_nothing_would_be_compiled_together_the_loop_runs_in_blocks_and_says_why() -> None:
    loop = loop_for(lambda x: ops.tanh(ops.exp(x)), ROWS)
    assert loop.kind == "blocked NumPy"
    assert loop.why.endswith("not compiled, because Numba would compile no two calls of it together")
    whole = loop_for(lambda x: x * x + x, ROWS.astype(np.int64))
    assert whole.kind == "blocked NumPy"


def test_without_numba_the_loop_runs_in_blocks_and_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_loops, "find_spec", lambda name: None)
    loop = loop_for(curve, ROWS)
    assert loop.kind == "blocked NumPy"
    assert "Numba is not installed (pip install 'autodiff-lab[jit]')" in loop.why


def test_numba_is_not_loaded_before_a_loop_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refusing(name: str, *arguments: Any) -> Any:
        assert name.partition(".")[0] != "numba"
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", refusing)
    monkeypatch.setattr(compiled_loops, "import_module", lambda name: pytest.fail(f"{name} was loaded"))
    fusion = fuse(ad.record(curve, ROWS))
    assert loop_of(fusion, fusion.groups[0]).kind == "blocked NumPy"


def test_a_loop_without_anything_to_compile_is_refused() -> None:
    graph = ad.record(lambda x: ops.exp(ops.tanh(x)), ROWS)
    (group,) = fuse(graph).groups
    with pytest.raises(NotALoop, match="Numba would compile no two calls"):
        CompiledLoop(block_program(group_program(graph, group), ROWS.shape), {})
