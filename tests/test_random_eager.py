"""Laws of eager training on drawn programs: how numbers lie, who listens and what the user does with arrays change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import autodiff_lab as ad
from tests.drawn_operands import LAYOUTS, Program, programs

drawn = settings(max_examples=300, deadline=None, derandomize=True, database=None)
SEEDS = st.integers(0, 999)


def operands_of(program: Program, arrays: Sequence[Any]) -> tuple[list[ad.Tensor], list[Any]]:
    """The leaves, and all operands in order: a leaf for each that is recorded, arrays for the constants."""
    given: list[Any] = [
        array if operand.is_constant else ad.tensor(array, requires_grad=True)
        for operand, array in zip(program.operands, arrays, strict=True)
    ]
    return [one for one in given if isinstance(one, ad.Tensor)], given


def cotangent(result: ad.Tensor, seed: int) -> Any:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, result.shape).astype(result.dtype)


def gradients(leaves: Sequence[ad.Tensor]) -> list[Any]:
    assert all(leaf.grad is not None for leaf in leaves)
    return [leaf.grad.numpy() for leaf in leaves if leaf.grad is not None]


def eager(program: Program, arrays: Sequence[Any], seed: int) -> tuple[Any, list[Any]]:
    """Value and gradients by ``backward``."""
    leaves, given = operands_of(program, arrays)
    result = program(*given)
    result.backward(cotangent(result, seed))
    return result.numpy(), gradients(leaves)


def same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two lists of arrays are the same bit by bit, with their shapes and dtypes."""
    return [(a.shape, a.dtype, a.tobytes()) for a in one] == [(a.shape, a.dtype, a.tobytes()) for a in other]


def close(one: Sequence[Any], other: Sequence[Any], dtype: Any) -> bool:
    tolerance = 200 * float(np.finfo(dtype).eps)
    return all(
        a.shape == b.shape and np.allclose(np.float64(a), np.float64(b), tolerance, tolerance)
        for a, b in zip(one, other, strict=True)
    )


def arrays_of(program: Program) -> list[Any]:
    return [operand.array() for operand in program.operands]


@drawn
@given(programs(), SEEDS)
def test_who_listens_changes_no_bit(program: Program, seed: int) -> None:
    value, found = eager(program, arrays_of(program), seed)
    with ad.listen() as told:
        heard_value, heard = eager(program, arrays_of(program), seed)
    assert told and same([value, *found], [heard_value, *heard])


@drawn
@given(programs(), SEEDS)
def test_gradients_have_the_shape_and_dtype_of_their_leaf_and_nothing_is_wider_than_the_leaves(
    program: Program, seed: int
) -> None:
    value, found = eager(program, arrays_of(program), seed)
    assert value.dtype == program.floating
    recorded = [operand for operand in program.operands if not operand.is_constant]
    assert [(g.shape, str(g.dtype)) for g in found] == [(operand.shape, operand.dtype) for operand in recorded]


@drawn
@given(programs(), SEEDS)
def test_how_operands_lie_in_memory_changes_rounding_at_most(program: Program, seed: int) -> None:
    value, found = eager(program, [operand.numbers() for operand in program.operands], seed)
    narrowest = min((g.dtype for g in found), key=lambda dtype: dtype.itemsize)
    for layout in LAYOUTS.values():
        laid, of_laid = eager(program, [layout(operand.numbers()) for operand in program.operands], seed)
        assert close([value, *found], [laid, *of_laid], narrowest)


@drawn
@given(programs(["float64"]), SEEDS)
def test_of_arrays_as_they_lie_vjp_gives_the_gradients_of_backward_and_the_adjoint_of_jvp(
    program: Program, seed: int
) -> None:
    arrays = arrays_of(program)
    value, found = eager(program, arrays, seed)
    moving = [a for a, operand in zip(arrays, program.operands, strict=True) if not operand.is_constant]

    def of_moving(*given: Any) -> Any:
        rest = iter(given)
        return program(
            *(a if operand.is_constant else next(rest) for a, operand in zip(arrays, program.operands, strict=True))
        )

    again, pull = ad.vjp(of_moving, *moving)
    seeds = np.random.default_rng(seed).uniform(-1.0, 1.0, value.shape)
    assert close([value, *found], [again, *pull(seeds)], np.float64)
    directions = [np.random.default_rng(seed + 1).standard_normal(a.shape) for a in moving]
    tangent = ad.jvp(of_moving, tuple(moving), tuple(directions))[1]
    along = sum(float(np.sum(g * v)) for g, v in zip(found, directions, strict=True))
    assert np.isclose(float(np.sum(seeds * tangent)), along, rtol=1e-9, atol=1e-9)


@drawn
@given(programs(["float64"]), SEEDS)
def test_the_gradient_of_a_broadcast_operand_is_the_sum_over_its_copies(program: Program, seed: int) -> None:
    value, found = eager(program, arrays_of(program), seed)
    full = np.broadcast_shapes(*(operand.shape for operand in program.operands))
    repeated = [np.broadcast_to(operand.array(), full) for operand in program.operands]
    whole, of_copies = eager(program, repeated, seed)
    recorded = [operand for operand in program.operands if not operand.is_constant]
    summed = [summed_to(g, operand.shape) for g, operand in zip(of_copies, recorded, strict=True)]
    assert close([value, *found], [whole, *summed], np.float64)


def summed_to(g: Any, shape: tuple[int, ...]) -> Any:
    g = g.sum(axis=tuple(range(g.ndim - len(shape))))
    return g.sum(axis=tuple(place for place, size in enumerate(shape) if size == 1), keepdims=True)


@drawn
@given(programs(), SEEDS)
def test_what_the_user_does_with_arrays_after_a_call_changes_no_gradient(program: Program, seed: int) -> None:
    _, expected = eager(program, arrays_of(program), seed)
    arrays = [array.copy() for array in arrays_of(program)]
    leaves, given = operands_of(program, arrays)
    result = program(*given)
    given_back = cotangent(result, seed)
    for array in arrays:
        array[...] = 7
    for tensor in (result, *leaves):
        tensor.numpy()[...] = 7
    for leaf in leaves:
        leaf.data = new = np.full(leaf.shape, 7, leaf.dtype)
        new[...] = 8
        assert leaf.numpy().tolist() == np.full(leaf.shape, 7).tolist()
    result.backward(given_back)
    given_back[...] = 7
    assert same(gradients(leaves), expected)


@drawn
@given(programs(), SEEDS)
def test_backward_may_be_called_again_and_adds_without_touching_what_the_user_holds(
    program: Program, seed: int
) -> None:
    leaves, given = operands_of(program, arrays_of(program))
    result = program(*given)
    seeds = cotangent(result, seed)
    result.backward(seeds)
    held, before = [leaf.grad for leaf in leaves], gradients(leaves)
    result.backward(seeds)
    (program(*given) * 2).backward(cotangent(result, seed + 1))
    assert same([g.numpy() for g in held if g is not None], before)
    leaves_again, given_again = operands_of(program, arrays_of(program))
    (program(*given_again) * 2).backward(cotangent(result, seed + 1))
    expected = [(g + g) + h for g, h in zip(before, gradients(leaves_again), strict=True)]
    assert same(gradients(leaves), expected)


@drawn
@given(programs(), SEEDS)
def test_a_gradient_shares_its_memory_with_nothing(program: Program, seed: int) -> None:
    arrays = arrays_of(program)
    leaves, given = operands_of(program, arrays)
    result = program(*given)
    seeds = cotangent(result, seed)
    result.backward(seeds)
    own = [leaf.grad._data for leaf in leaves if leaf.grad is not None]
    others = [*arrays, seeds, result._data, *(leaf._data for leaf in leaves)]
    for place, gradient in enumerate(own):
        assert not any(np.shares_memory(gradient, other) for other in (*others, *own[:place]))
        assert gradient.flags.writeable and gradient.flags.owndata
