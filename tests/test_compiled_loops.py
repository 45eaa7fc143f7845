"""Loops that Numba compiles: NumPy's numbers, from compiled arithmetic and NumPy's own functions."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import compiled_loops, fused_loops, ops, planning, schedule
from autodiff_lab.block_programs import block_program
from autodiff_lab.compiled_loops import CompiledLoop
from autodiff_lab.fused_loops import loop_of
from autodiff_lab.fusion import fuse
from autodiff_lab.loop_programs import NotALoop, group_program
from autodiff_lab.trees import flatten
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


def same_bits(found: Any, expected: Any) -> bool:
    """Whether numbers are the same bit by bit; of two NaNs either may be the result."""
    pairs = zip(flatten(found)[0], flatten(expected)[0], strict=True)
    return all(
        a.dtype == b.dtype
        and np.array_equal(a, b, equal_nan=True)
        and not (np.signbit(a) != np.signbit(b))[a == a].any()
        for a, b in pairs
    )


@pytest.fixture
def every_loop_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of more than one number are loops, and compiled."""
    monkeypatch.setattr(fused_loops, "WORTH_COMPILING", 0)
    monkeypatch.setattr(fused_loops, "STRAIGHT_BYTES", 8)
    monkeypatch.setattr(planning, "_IN_CACHE", 0)


@pytest.mark.slow
@pytest.mark.usefixtures("every_loop_pays")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_compiled_unasked_gives_the_bits_of_blocks(name: str) -> None:
    f, inputs = FUNCTIONS[name]
    graph, heard = ad.record(f, *inputs), list[Any]()
    unasked = ad.plan(graph, tell=heard.append)
    assert "compiled loop" in [event.kind for event in heard if type(event).__name__ == "LoopChosen"]
    with np.errstate(all="ignore"):
        for workers in (1, 2):
            found, expected = (
                schedule.run(ad.plan(graph, loops=loops, workers=workers), inputs, workers)[0]
                for loops in ("auto", "blocked")
            )
            assert same_bits(found, expected)
        assert same_bits(unasked(*inputs), ad.plan(graph, loops="blocked")(*inputs))


STEPS = [
    ops.add, ops.sub, ops.mul, ops.div, ops.maximum, ops.minimum, lambda x, y: ops.where(x > y, x, y), lambda x, y: x < y,
    lambda x, y: -x, lambda x, y: ops.abs(x), lambda x, y: ops.square(x), lambda x, y: ops.relu(y), lambda x, y: 1.0 - y,
    lambda x, y: ops.exp(x), lambda x, y: ops.tanh(y), lambda x, y: ops.sigmoid(x), lambda x, y: 1.0 / x,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("every_loop_pays")
@pytest.mark.parametrize("seed", range(24))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_whatever_is_compiled_unasked_gives_the_bits_of_blocks(seed: int) -> None:
    random = np.random.default_rng(seed)
    steps = [(STEPS[random.integers(len(STEPS))], *random.integers(0, 20, 2)) for _ in range(10)]

    def f(x: Any, y: Any, z: Any) -> Any:
        pool = [x, y, x * y + z]
        for step, one, other in steps:
            pool.append(step(pool[-1 - one % len(pool)] * 1.0, pool[-1 - other % len(pool)] * 1.0))
        return pool[-1], ops.sum(pool[-2] * 1.0, axis=0), pool[-3]

    inputs = [random.standard_normal(shape) for shape in ((30, 40), (40,), (30, 1))]
    inputs[0][:4] = np.tile(EDGES, 4)
    inputs = [one.astype(random.choice(["float32", "float32", "float64"])) for one in inputs]
    graph = ad.record(f, *inputs)
    plan = ad.plan(graph)
    assert "compiled loop" in [step.kind for step in plan.steps]
    assert same_bits(plan(*inputs), ad.plan(graph, loops="blocked")(*inputs)), plan.source()


@pytest.mark.usefixtures("every_loop_pays")
def test_unasked_tanh_stays_numpys() -> None:
    fusion = fuse(ad.record(curve, ROWS))
    loop = loop_of(fusion, fusion.groups[0])
    assert loop.kind == "compiled loop" and "tanh(s" in loop.source()
    assert "tanh(v" in loop_of(fusion, fusion.groups[0], "compiled").source()


@pytest.mark.usefixtures("every_loop_pays")
def test_unasked_and_without_numba_a_loop_runs_in_blocks_and_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiled_loops, "find_spec", lambda name: None)
    fusion = fuse(ad.record(curve, ROWS))
    loop = loop_of(fusion, fusion.groups[0])
    assert loop.kind == "blocked NumPy"
    assert loop.why.endswith("not compiled, because Numba is not installed (pip install 'autodiff-lab[jit]')")


@pytest.mark.usefixtures("every_loop_pays")
def test_a_numba_that_cannot_be_loaded_is_a_reason_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(name: str) -> Any:
        raise ImportError(f"{name} needs NumPy 1.26 or less")

    monkeypatch.setattr(compiled_loops, "import_module", refusing)
    fusion = fuse(ad.record(curve, ROWS))
    for loops in ("auto", "compiled"):
        loop = loop_of(fusion, fusion.groups[0], loops)  # type: ignore[arg-type]
        assert loop.kind == "blocked NumPy"
        assert loop.why.endswith("not compiled, because Numba cannot be loaded: numba needs NumPy 1.26 or less")


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
