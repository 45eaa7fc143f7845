"""Wide arrays in eager runs: whatever is done block by block has the bits, the owners and the events of what is not."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import autodiff_lab as ad
from autodiff_lab import ops, reverse_mode, wide_arrays, wide_sweeps
from autodiff_lab.operators import Op
from autodiff_lab.seams import Replacement, function_seam, gradient_rule_seam

BLOCK_BYTES = 64  # so that a few numbers fill several blocks
ELEMENTWISE = [
    op for op in map(ad.registry.__getitem__, sorted(ad.registry)) if op.elementwise and op.is_differentiable
]


@contextmanager
def cut(smallest: int = 1) -> Iterator[list[int]]:
    """Cut arrays from so many bytes on; gives the number of NumPy calls of each stretch that was swept in blocks."""
    run, swept = wide_sweeps._run, []

    def counted(calls: Any, *rest: Any) -> None:
        run(calls, *rest)
        swept.append(len(calls))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wide_arrays, "WIDE_BYTES", smallest)
        patch.setattr(wide_arrays, "BLOCK_BYTES", BLOCK_BYTES)
        patch.setattr(wide_sweeps, "_run", counted)
        yield swept


def leaf(value: Any) -> ad.Tensor:
    return ad.tensor(value, requires_grad=True)


def normal(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def gradients(f: Callable[..., Any], *values: Any, cotangent: Any = None) -> list[Any]:
    leaves = [leaf(value) for value in values]
    result = f(*leaves)
    (ops.sum(result) if cotangent is None else result).backward(cotangent)
    return [np.zeros(()) if one.grad is None else one.grad.data for one in leaves]


def assert_same_bits(one: Any, other: Any) -> None:
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(np.signbit(one), np.signbit(other))


def assert_same_gradients(f: Callable[..., Any], *values: Any, cotangent: Any = None) -> list[int]:
    whole = gradients(f, *values, cotangent=cotangent)
    with cut() as swept:
        in_parts = gradients(f, *values, cotangent=cotangent)
    for one, other in zip(whole, in_parts, strict=True):
        assert_same_bits(one, other)
        assert one.strides == other.strides  # the order of numbers decides the last bits of a later sum
    return swept


# ------------------------------------------------------------------------------------------------------- same bits


def w5(x: Any) -> Any:
    return ops.tanh(1.3 * x + 0.1) * ops.sigmoid(x) - 0.5 * x * x


@pytest.mark.parametrize("size", [1, 7, 15, 16, 17, 31, 32, 33, 100])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_stretch_is_one_loop_with_the_same_bits_whatever_is_left_for_the_last_block(size: int, dtype: str) -> None:
    assert assert_same_gradients(w5, normal(size, dtype=dtype)) == [16]


@st.composite
def programs(draw: st.DrawFn) -> tuple[Callable[..., Any], list[Any], Any]:
    """A function made of elementwise ops, broadcasts and reductions; its arguments in some layout; a cotangent or None."""
    shape = draw(st.sampled_from([(1,), (15,), (16,), (17,), (33,), (4, 4), (3, 11), (2, 3, 7), (1, 17), (0, 3), ()]))
    dtype = draw(st.sampled_from(["float32", "float64", "float16"]))
    count = draw(st.integers(1, 3))
    values = [laid_out(normal(*shape, dtype=dtype, seed=seed), draw(st.integers(0, 3))) for seed in range(count)]
    row = normal(*shape[-1:], dtype=draw(st.sampled_from([dtype, "float64"])), seed=9)
    steps = draw(st.lists(st.tuples(st.integers(0, len(STEPS) - 1), *[st.integers(0, 9)] * 2), min_size=1, max_size=8))
    ends = draw(st.lists(st.integers(0, 9), min_size=1, max_size=3))

    def program(*leaves: Any) -> Any:
        pool = list(leaves)
        for kind, first, second in steps:
            pool.append(STEPS[kind](pool[-1 - first % len(pool)], pool[-1 - second % len(pool)], row))
        total = pool[-1]
        for end in ends:
            total = total * 2.0 - pool[-1 - end % len(pool)]
        return total

    cotangent = laid_out(normal(*shape, dtype=dtype, seed=5), draw(st.integers(0, 3)))
    return program, values, draw(st.sampled_from([cotangent, None]))


def laid_out(array: Any, how: int) -> Any:
    """The same numbers in C order, in Fortran's, with gaps, or backwards in memory."""
    if not array.ndim or how == 0:
        return array
    if how == 1:
        return np.asfortranarray(array)
    return np.repeat(array, 2, axis=-1)[..., ::2] if how == 2 else array[::-1].copy()[::-1]


STEPS: list[Callable[[Any, Any, Any], Any]] = [
    lambda x, y, row: ops.tanh(x),
    lambda x, y, row: ops.sigmoid(x) * y,
    lambda x, y, row: x - y,
    lambda x, y, row: x + y,
    lambda x, y, row: -x,
    lambda x, y, row: x / (1.5 + y * y),
    lambda x, y, row: ops.maximum(x, y),
    lambda x, y, row: ops.relu(x),
    lambda x, y, row: ops.where(x > y, x, 0.5 * y),
    lambda x, y, row: ops.clip(x, -0.5, 0.5),
    lambda x, y, row: x**3 + ops.square(y),
    lambda x, y, row: ops.sign(x) * y,
    lambda x, y, row: ops.exp(-ops.abs(x)),
    lambda x, y, row: x * ops.mean(y),
    lambda x, y, row: x * 3,
    lambda x, y, row: x.detach() * y,
    lambda x, y, row: ops.reshape(ops.transpose(x), shape=x.shape) + y,
    lambda x, y, row: x * row,
    lambda x, y, row: ops.astype(ops.astype(x, dtype="float64") * y, dtype="float32"),
]


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
@settings(max_examples=300, deadline=None, database=None)
@given(programs())
def test_random_programs_have_the_same_bits(drawn: tuple[Callable[..., Any], list[Any], Any]) -> None:
    program, values, cotangent = drawn
    with np.errstate(all="ignore"):
        assert_same_gradients(program, *values, cotangent=cotangent)


def floating_calls(op: Op) -> list[tuple[list[Any], dict[str, Any]]]:
    """An op's samples whose arrays are all floating and of one shape."""
    found = []
    for operands, attributes in op.sample_calls():
        arrays = [one for one in operands if isinstance(one, np.ndarray)]
        if arrays and all(one.dtype == np.float64 and one.size and one.shape == arrays[0].shape for one in arrays):
            repeated = [np.tile(one.ravel(), 20) if isinstance(one, np.ndarray) else one for one in operands]
            found.append((repeated, attributes))
    return found


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_the_rules_of_every_elementwise_op_run_in_blocks(op: Op) -> None:
    for operands, attributes in floating_calls(op):
        places = [place for place, one in enumerate(operands) if isinstance(one, np.ndarray)]
        flowing = [place for place in places if op.inputs[place] in op.flowing_inputs]

        def f(*values: Any, operands: Any = operands, places: Any = flowing, attributes: Any = attributes) -> Any:
            given = dict(enumerate(operands)) | dict(zip(places, values, strict=True))
            return 2.0 * op.apply([*given.values()], attributes)

        swept = assert_same_gradients(f, *(operands[place] for place in flowing))
        assert bool(swept) == (op.name != "astype")  # which ends a stretch, since its cotangents have two dtypes


def test_the_cotangent_of_a_sum_is_read_as_one_number() -> None:
    for f in (lambda x: ops.neg(-x), lambda x: -(x * 2.0), lambda x: x - x * x, lambda x: ops.exp(x) + x):
        assert assert_same_gradients(f, normal(100)) != []


def test_arrays_of_many_axes_are_cut_where_all_are_in_c_order() -> None:
    x, y = normal(3, 4, 5), normal(3, 4, 5, seed=1)
    assert assert_same_gradients(lambda x, y: ops.tanh(x * y), x, y) != []
    assert assert_same_gradients(lambda x, y: ops.tanh(x * y), x.T, y.T) == []
    assert assert_same_gradients(lambda x, y: ops.tanh(x * y), x, y, cotangent=np.asfortranarray(normal(3, 4, 5))) == []


def test_what_was_broadcast_or_has_another_dtype_ends_a_stretch() -> None:
    x, row, number = normal(6, 5), normal(5), normal()
    assert assert_same_gradients(lambda x, row: ops.tanh(ops.exp(x) * row), x, row) == []
    assert assert_same_gradients(lambda x, row: ops.tanh(ops.exp(x * row)), x, row) != []
    assert assert_same_gradients(lambda x, one: ops.tanh(ops.exp(x)) * one, x, number) != []
    assert assert_same_gradients(lambda x, y: ops.tanh(ops.exp(x) * y), x, normal(6, 5, dtype="float64")) == []


def test_a_value_that_is_used_twice_gets_both_parts_in_order() -> None:
    def f(x: Any) -> Any:
        h = ops.sum(ops.tanh(x) * x) * x  # what is used on both sides of a sum
        return ops.exp(h) - h * x

    assert assert_same_gradients(f, normal(50, dtype="float64") * 0.1) != []


# --------------------------------------------------------------------------------------------------------- kernels


@pytest.mark.parametrize("name", ["gelu", "sigmoid", "silu", "softplus"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64"])
@pytest.mark.parametrize("shape", [(0,), (1,), (15,), (16,), (17,), (100,), (7, 9), ()])
def test_a_kernel_in_blocks_gives_the_same_bits(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    op = ad.registry[name].binding
    for attributes in [{}] if name != "gelu" else [{"approximate": "none"}, {"approximate": "tanh"}]:
        x = (3 * normal(*shape, dtype="float64")).astype(dtype)
        for array in (x, np.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x, x.T):
            whole = op(array, **attributes)
            with cut():
                in_parts = op(array, **attributes)
            assert_same_bits(whole, in_parts)
            assert whole.strides == in_parts.strides


def test_a_kernel_in_blocks_is_called_with_no_more_than_a_block() -> None:
    sizes = []

    @wide_arrays.in_blocks
    def doubled(xp: Any, x: Any, *, factor: float = 2.0) -> Any:
        sizes.append(x.size)
        return factor * x

    with cut():
        assert doubled(np, np.ones(40, np.float32), factor=3.0).tolist() == [3.0] * 40
    assert sizes == [16, 16, 8]


# ------------------------------------------------------------------------------------------ what a user sees is the same


def test_a_small_array_is_not_cut() -> None:
    with cut(smallest=4 * 100) as swept:
        gradients(w5, normal(99))
        assert swept == []
        gradients(w5, normal(100))
        assert swept == [16]


def test_who_listens_hears_the_same() -> None:
    def told() -> list[str]:
        x = leaf(normal(40))
        loss = ops.sum(w5(x))
        with ad.listen() as heard:
            loss.backward()
        return [type(event).__name__ for event in heard]

    whole = told()
    with cut() as swept:
        assert told() == whole
    assert swept == []
    assert whole.count("ContributionAdded") > 10


def test_the_rule_of_an_op_of_the_users_is_called_once_with_whole_arrays() -> None:
    seen = []

    @ad.op(elementwise=True)
    def thrice_as_much(xp: Any, x: Any) -> Any:
        return 3.0 * x

    @thrice_as_much.vjp
    def thrice_as_much_vjp(g: Any, out: Any) -> Any:
        seen.append((type(g), g.shape))
        return 3.0 * g

    assert assert_same_gradients(lambda x: w5(thrice_as_much(ops.tanh(ops.exp(x)))), normal(40)) == [16, 4]
    assert seen == [(np.ndarray, (40,))] * 2


def test_a_rule_of_the_library_that_was_replaced_is_called_as_it_is() -> None:
    seen = []

    def altered(right: Any) -> Any:
        def rule(g: Any, out: Any) -> Any:
            seen.append((type(g), g.shape))
            return 2.0 * right(g, out)

        return rule

    with Replacement("doubled", gradient_rule_seam("tanh", None), altered):
        assert assert_same_gradients(w5, normal(40)) != []
    assert seen == [(np.ndarray, (40,))] * 2


def test_a_fault_in_adding_up_shows_in_blocks_too() -> None:
    right = gradients(w5, normal(40))
    with Replacement("last one wins", function_seam(reverse_mode, "accumulate"), lambda _: lambda total, new: new):
        assert assert_same_gradients(w5, normal(40)) != []
        assert not np.array_equal(gradients(w5, normal(40))[0], right[0])


def test_a_number_that_overflows_is_blamed_on_the_op_whose_rule_it_was() -> None:
    x = leaf(np.full(40, 300.0, np.float32))
    with np.errstate(over="ignore"):
        y = ops.sum(ops.square(ops.square(x)) * 1e30)
    with cut(), np.errstate(over="raise"), pytest.raises(FloatingPointError) as raised:
        (y * 1e8).backward()
    assert any("in the gradient rules of" in note for note in raised.value.__notes__)


def test_gradients_have_memory_of_their_own() -> None:
    seed = np.ones(40, np.float32)
    x, y = leaf(normal(40)), leaf(normal(40, seed=1))
    with cut() as swept:
        h = x + y
        (h * 1.0 + (x - y)).backward(seed)
    assert swept != []
    held = [seed, x.data, y.data, x.grad.data, y.grad.data]
    assert not any(np.shares_memory(one, other) for place, one in enumerate(held) for other in held[:place])
    assert seed.tolist() == [1.0] * 40


def test_a_graph_can_be_swept_again_and_adds_to_a_gradient_that_a_user_holds() -> None:
    x = leaf(normal(40))
    loss = ops.sum(w5(x))
    with cut():
        loss.backward()
        held = x.grad.data
        before = held.copy()
        loss.backward()
    assert_same_bits(held, before)
    assert_same_bits(x.grad.data, before + before)


def test_a_derivative_of_a_derivative_is_swept_op_by_op() -> None:
    def second(x: Any) -> Any:
        return ad.grad(lambda x: ops.sum(ad.grad(lambda x: ops.sum(w5(x)))(x) ** 2))(x)

    whole = second(normal(40))
    with cut():
        assert_same_bits(second(normal(40)), whole)


def test_backward_through_a_long_stretch_takes_the_memory_of_its_result() -> None:
    x = leaf(normal(2**21))
    h = x
    for _ in range(6):
        h = ops.tanh(h) * x
    loss = ops.sum(h)
    peaks = []
    for smallest in (2**40, 2**23):
        x.grad = None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(wide_arrays, "WIDE_BYTES", smallest)
            tracemalloc.start()
            loss.backward()
            peaks.append(tracemalloc.get_traced_memory()[1] / x.data.nbytes)
            tracemalloc.stop()
    assert peaks[0] > 3.5
    assert peaks[1] < 1.5
