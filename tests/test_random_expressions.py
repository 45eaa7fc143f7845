"""Laws of differentiation on a thousand random programs that are built from every differentiable op of the registry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.bindings import shape_of
from autodiff_lab.graph import Graph
from autodiff_lab.operators import Op

EXAMPLES = 1000
LARGEST = 40  # numbers in an operand, so that a Hessian stays small


@dataclass(frozen=True)
class Call:
    """An op with one of its samples: what it is applied to is brought into the sample's shapes and ranges."""

    op: Op
    operands: tuple[Any, ...]
    attributes: dict[str, Any]

    def __repr__(self) -> str:
        return f"{self.op.name}{tuple(np.shape(o) for o in self.operands)}{self.attributes or ''}"

    def moves(self, place: int) -> bool:
        """Whether the operand at a place takes part: gradients flow to it."""
        name = self.op.operand_names(len(self.operands))[place]
        operand = self.operands[place]
        return name not in self.op.constant_inputs and isinstance(operand, np.ndarray) and operand.dtype.kind == "f"

    def __call__(self, pool: Sequence[Any], picks: Sequence[int]) -> Any:
        given = [
            fitted(pool[picks[place % len(picks)] % len(pool)], operand) if self.moves(place) else operand
            for place, operand in enumerate(self.operands)
        ]
        return self.op.apply(given, self.attributes)


def fitted(value: Any, like: Any) -> Any:
    """The numbers of ``value``, repeated or left out to fill the shape of ``like``, no two equal, moved into its range."""
    size = int(np.prod(shape_of(value)))
    flat = ops.reshape(value, shape=(size,))
    taken = ops.reshape(flat[np.arange(like.size) % size], shape=like.shape)
    apart = 0.37 * np.arange(like.size).reshape(like.shape) % 1.0
    low, high = float(like.min()), float(like.max())
    return low + max(high - low, 0.1) * ops.sigmoid(taken + apart)


def calls() -> list[Call]:
    """Every sample of every differentiable op that gives float64 numbers from not too many."""
    found = []
    for op in (ad.registry[name] for name in ops.__all__ if name in ad.registry):
        for operands, attributes in op.sample_calls() if op.is_differentiable else []:
            wide = tuple(o.astype(float) if isinstance(o, np.ndarray) and o.dtype.kind == "f" else o for o in operands)
            call = Call(op, wide, attributes)
            arrays = [o for o in wide if isinstance(o, np.ndarray)]
            result = op.apply(wide, attributes)
            if not any(call.moves(place) for place in range(len(wide))) or result.dtype != np.float64:
                continue
            if all(0 < a.size <= LARGEST for a in [*arrays, result]):
                found.append(call)
    return found


CALLS = calls()


@dataclass(frozen=True)
class Program:
    """A function of two arrays: each step calls an op on earlier values; the result joins the last one and both arguments."""

    steps: tuple[tuple[Call, tuple[int, ...]], ...]

    def __call__(self, x: Any, y: Any) -> Any:
        pool = [x, y]
        for call, picks in self.steps:
            pool.append(call(pool, picks))
        return fitted(pool[-1], WEIGHT) * ops.sum(x) + fitted(pool[-2], WEIGHT) * ops.mean(y)


WEIGHT = np.random.default_rng(0).standard_normal((2, 2))
STEP = st.tuples(st.sampled_from(CALLS), st.lists(st.integers(0, 9), min_size=3, max_size=3).map(tuple))
PROGRAMS = st.lists(STEP, min_size=1, max_size=4).map(lambda steps: Program(tuple(steps)))
SEEDS = st.integers(0, 2**32 - 1)


def arguments(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((2, 2)), rng.standard_normal(3)


def close(got: Any, want: Any, rel: float) -> bool:
    size = max(float(np.abs(want).max(initial=0.0)), 1e-3)
    return bool(np.allclose(got, want, rtol=0.0, atol=rel * size))


def joined(parts: Sequence[Any]) -> Any:
    return np.concatenate([part.ravel() for part in parts])


def test_the_programs_are_built_from_most_of_the_registry() -> None:
    differentiable = {name for name in ops.__all__ if name in ad.registry and ad.registry[name].is_differentiable}
    assert len({call.op.name for call in CALLS}) > 0.8 * len(differentiable)


def check_both_modes(program: Program, x: Any, y: Any, dx: Any, dy: Any) -> None:
    """⟨c, J v⟩ = ⟨Jᵀ c, v⟩."""
    gradients = ad.vjp(program, x, y).pull(WEIGHT)
    tangent = ad.jvp(program, (x, y), (dx, dy))[1]
    assert close(np.sum(WEIGHT * tangent), np.sum(gradients[0] * dx) + np.sum(gradients[1] * dy), 1e-10)


def check_every_way_to_run(program: Program, x: Any, y: Any, other_x: Any, other_y: Any) -> None:
    """Arrays, Tensors, a graph recorded elsewhere and one read from a file give the same numbers; so do their gradients."""
    value, pull = ad.vjp(program, x, y)
    leaves = [ad.tensor(x, requires_grad=True), ad.tensor(y, requires_grad=True)]
    eager = program(*leaves)
    eager.backward(WEIGHT)
    assert np.array_equal(program(x, y), value) and np.array_equal(eager.numpy(), value)
    for leaf, gradient in zip(leaves, pull(WEIGHT), strict=True):
        assert leaf.grad is not None and np.array_equal(leaf.grad.numpy(), gradient)
    graph = ad.record(program, other_x, other_y)
    assert np.array_equal(graph(x, y), value)
    assert Graph.from_json(graph.to_json()) == graph


def check_second_derivatives(program: Program, x: Any, y: Any, dx: Any, dy: Any) -> None:
    """The Hessian is symmetric, and its product with a vector is how the gradient changes along it, as differences see it."""

    def loss(x: Any, y: Any) -> Any:
        return ops.sum(program(x, y) * WEIGHT)

    (xx, xy), (yx, yy) = ad.hessian(loss, (0, 1))(x, y)
    hessian = np.block([[xx.reshape(4, 4), xy.reshape(4, 3)], [yx.reshape(3, 4), yy]])
    assert close(hessian, hessian.T, 1e-9)
    products = ad.hvp(loss, (x, y), (dx, dy))
    assert close(joined(products), hessian @ joined((dx, dy)), 1e-9)

    def differences(h: float) -> Any:
        ahead, behind = (joined(ad.grad(loss, (0, 1))(x + step * dx, y + step * dy)) for step in (h, -h))
        return (ahead - behind) / (2 * h)

    if close(differences(1e-5), differences(3e-6), 1e-5):  # not so beside 0 for cbrt, whose slope changes in one step
        assert close(differences(1e-5), joined(products), 1e-4)


def check_jacobians(program: Program, x: Any, y: Any, dx: Any, dy: Any) -> None:
    """Columns equal rows, all at once equals one after the other as who listens hears it, and J v is the tangent along v."""
    columns, rows = (ad.jacobian(program, (0, 1), mode)(x, y) for mode in ("forward", "reverse"))
    with ad.listen(brief=True):
        heard = [ad.jacobian(program, (0, 1), mode)(x, y) for mode in ("forward", "reverse")]
    for other in (rows, *heard):
        assert all(close(one, same, 1e-10) for one, same in zip(columns, other, strict=True))
    product = np.tensordot(columns[0], dx, 2) + np.tensordot(columns[1], dy, 1)
    assert close(product, ad.jvp(program, (x, y), (dx, dy))[1], 1e-10)


@pytest.mark.slow
def test_the_laws_hold_for_a_thousand_random_programs() -> None:
    verdicts: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
    @given(PROGRAMS, SEEDS)
    def laws(program: Program, seed: int) -> None:
        (x, y), (dx, dy) = arguments(seed), arguments(seed + 1)
        check_both_modes(program, x, y, dx, dy)
        check_jacobians(program, x, y, dx, dy)
        check_every_way_to_run(program, x, y, dx, dy)
        check_second_derivatives(program, x, y, dx, dy)
        report = ad.gradcheck(program, (x, y))
        verdicts[report.verdict] += 1
        assert report.verdict != "wrong", report

    laws()
    assert verdicts.total() >= EXAMPLES
    assert verdicts["right"] >= 0.98 * verdicts.total(), verdicts
