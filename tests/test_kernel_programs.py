"""Programs of kernels: what stand-ins see a kernel do, it does on arrays, bit by bit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.kernel_programs import Fact, NumPyCall, Program, Value, program_of
from autodiff_lab.operators import Op
from autodiff_lab.tracing import WholeKernel

OPS = [ad.registry[name] for name in ops.__all__ if name in ad.registry]

# Each looks at numbers, adds at places that repeat, asks for strides, or uses Python's math: they are called as they are.
NOT_FOLLOWED = {
    "add_along_axis", "add_at", "add_taken", "add_windows", "correlate2d", "correlate2d_images", "correlate2d_kernels",
    "cross_entropy", "erf", "erfc", "from_diagonal", "one_hot", "to_device", "windows",
}  # fmt: skip


def as_operands(operands: Sequence[Any]) -> list[Any]:
    """What dispatch gives a kernel: arrays and Python numbers."""
    return [one if isinstance(one, (int, float)) else np.asarray(one) for one in operands]


def facts_of(operands: Sequence[Any]) -> list[Any]:
    return [Fact(one.shape, one.dtype) if isinstance(one, np.ndarray) else one for one in operands]


def program(op: Op, operands: Sequence[Any], attributes: dict[str, Any]) -> Program | None:
    return program_of(op, facts_of(operands), attributes)


def kernels_own(op: Op, operands: Sequence[Any], attributes: dict[str, Any]) -> np.ndarray[Any, Any]:
    """What the kernel gives."""
    defaults = {name: value for name, value in op.attributes.items() if not op.is_required(name)}
    return np.asarray(op.kernel_for("cpu", operands)(np, *operands, **defaults | attributes))


def same_bits(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.tobytes() == expected.tobytes()


EVERY_OP = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)


def followed(op: Op) -> Iterator[tuple[Program, list[Any], dict[str, Any]]]:
    """The programs of an op's samples, with the operands and attributes that they are for."""
    for sample, attributes in op.sample_calls():
        operands = as_operands(sample)
        found = program(op, operands, attributes)
        assert found is not None or op.name in NOT_FOLLOWED
        if found is not None:
            yield found, operands, attributes


@EVERY_OP
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_program_gives_the_kernels_numbers_bit_by_bit(op: Op) -> None:
    for found, operands, attributes in followed(op):
        same_bits(found(*operands), kernels_own(op, operands, attributes))


def test_every_kernel_that_is_said_not_to_be_followed_is_not() -> None:
    without = {op.name for op in OPS if any(program(op, as_operands(o), a) is None for o, a in op.sample_calls())}
    assert without == NOT_FOLLOWED


@EVERY_OP
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_value_is_what_its_call_says_also_where_it_is_written_into_an_array(op: Op) -> None:
    for found, operands, _ in followed(op):
        values: list[Any] = [*operands]

        def given(one: Any, values: list[Any] = values) -> Any:
            if isinstance(one, Value):
                return values[one.number]
            return type(one)(map(given, one)) if isinstance(one, (tuple, list)) else one

        for call in found.calls:
            arguments = [given(one) for one in call.operands]
            value = np.asarray(call.function(*arguments, **call.options))
            assert (value.shape, value.dtype) == found.facts[call.result], call.text()
            assert call.is_view or not any(
                np.shares_memory(value, one) for one in arguments if isinstance(one, np.ndarray)
            )
            if call.writes:
                room = np.full(value.shape, 99).astype(value.dtype)
                call.function(*arguments, **call.options, out=room)
                same_bits(room, value)
            values.append(value)


FLOATS = [np.float16, np.float32, np.float64]
NUMBERS = [2, 3, -1, 0, 1, 2.0, 0.5, -1.0, 0.0, 1.0, -1.5, np.pi]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [*FLOATS, np.int8, np.int64], ids=lambda dtype: dtype.__name__)
def test_powers_by_plain_numbers_have_the_bits_of_the_kernel(dtype: Any) -> None:
    x = np.arange(1, 60).astype(dtype) / (7 if np.dtype(dtype).kind == "f" else 1)
    for shape, exponent in itertools.product(((59,), ()), NUMBERS):
        if np.dtype(dtype).kind == "i" and isinstance(exponent, int) and exponent < 0:
            continue
        base = x.astype(dtype) if shape else np.array(x[30], dtype)
        found = program(ops.power.op, (base, exponent), {})
        assert found is not None
        same_bits(found(base, exponent), kernels_own(ops.power.op, (base, exponent), {}))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.bool_], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4), (), (0, 3), (1000, 3)], ids=str)
def test_a_mean_has_the_bits_of_numpys(dtype: Any, shape: tuple[int, ...]) -> None:
    x = (np.random.default_rng(0).standard_normal(shape) * 3).astype(dtype)
    for axis, keepdims in itertools.product(
        [None, *range(len(shape)), -1][: len(shape) + 2 if shape else 1], (False, True)
    ):
        found = program(ops.mean.op, (x,), {"axis": axis, "keepdims": keepdims})
        assert found is not None
        same_bits(found(x), np.asarray(np.mean(x, axis=axis, keepdims=keepdims)))


DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", [op for op in OPS if op.elementwise], ids=lambda op: op.name)
def test_elementwise_programs_have_the_kernels_bits_on_all_dtypes_and_with_python_numbers(op: Op) -> None:
    operands, attributes = op.sample_calls()[0]
    rng = np.random.default_rng(0)
    for kinds in itertools.product([*DTYPES, 2, 0.5], repeat=len(operands)):
        given = [(rng.random((2, 3)) * 3).astype(kind) if isinstance(kind, str) else kind for kind in kinds]
        if not any(isinstance(one, np.ndarray) for one in given):
            continue
        try:
            expected = kernels_own(op, given, attributes)
        except TypeError:
            assert program(op, given, attributes) is None
            continue
        found = program(op, given, attributes)
        assert (found is None) == (op.name in NOT_FOLLOWED)
        if found is not None:
            same_bits(found(*given), expected)


# ------------------------------------------------------------------------------------------------------------- users' ops


def of_kernel(kernel: Any, *operands: Any, **options: Any) -> Program | None:
    return program(ad.op(**{"elementwise": True, **options})(kernel).op, as_operands(operands), {})


def test_the_op_of_a_user_is_followed_as_it_is() -> None:
    def cubed(xp: Any, x: Any, *, offset: float = 1.0) -> Any:
        y = x * x * x
        return xp.where(y > 0, y, -y) + offset

    x = np.linspace(-1, 1, 7, dtype=np.float32)
    found = of_kernel(cubed, x)
    assert found is not None and [call.function for call in found.calls[:3]] == [np.multiply, np.multiply, np.greater]
    same_bits(found(x), cubed(np, x))


def test_a_kernel_with_declared_types_gets_its_numbers_converted() -> None:
    @ad.op(types="x: float32, y: float32 -> z: float32", elementwise=True)
    def typed(xp: Any, x: Any, y: Any) -> Any:
        return x + y

    x = np.ones(3, np.float32)
    found = program(typed.op, (x, 2), {})
    assert found is not None
    same_bits(found(x, 2), typed(x, 2))


def looks(xp: Any, x: Any) -> Any:
    return x if x.sum() > 0 else -x


def converts(xp: Any, x: Any) -> Any:
    return float(x[0]) * x


def leaves_numpy(xp: Any, x: Any) -> Any:
    return np.array([1.0 + one for one in x.tolist()])


def writes_in_place(xp: Any, x: Any) -> Any:
    y = x * 2.0
    y += x
    return y


def writes_at_an_index(xp: Any, x: Any) -> Any:
    y = xp.zeros(x.shape)
    y[:] = x
    return y


def writes_its_result(xp: Any, x: Any) -> Any:
    return xp.add(x, x, out=xp.empty(x.shape))


def shape_depends_on_numbers(xp: Any, x: Any) -> Any:
    return xp.unique(x)


def takes_what_a_mask_says(xp: Any, x: Any) -> Any:
    return x[x > 0].mean()


def repeats_as_often_as_numbers_say(xp: Any, x: Any) -> Any:
    return xp.repeat(x, x.astype(np.int64)).mean()


def hides_that_it_looks(xp: Any, x: Any) -> Any:
    try:
        return x if float(x.sum()) > 0 else -x
    except Exception:
        return x * 0.0


def draws(xp: Any, x: Any) -> Any:
    return x * np.random.default_rng().random()


def draws_with_xp(xp: Any, x: Any) -> Any:
    return x + xp.random.random(x.shape)


def raises(xp: Any, x: Any) -> Any:
    raise ValueError("not today")


def gives_no_array(xp: Any, x: Any) -> Any:
    return [x]


UNFIT = [
    looks, converts, leaves_numpy, writes_in_place, writes_at_an_index, writes_its_result, shape_depends_on_numbers,
    takes_what_a_mask_says, repeats_as_often_as_numbers_say, hides_that_it_looks, draws, draws_with_xp, raises, gives_no_array,
]  # fmt: skip


@pytest.mark.parametrize("kernel", UNFIT, ids=lambda kernel: kernel.__name__)
def test_a_kernel_that_cannot_be_followed_has_no_program(kernel: Any) -> None:
    assert of_kernel(kernel, np.ones(3)) is None


def test_an_op_inside_that_cannot_be_followed_is_one_call() -> None:
    x = np.linspace(-2, 2, 5)
    found = program(ops.gelu.op, (x,), {})
    assert found is not None
    (whole,) = [call for call in found.calls if isinstance(call.function, WholeKernel)]
    assert (whole.function.__name__, whole.is_elementwise, whole.writes) == ("ops.erfc", True, False)
    same_bits(found(x), ops.gelu(x))


def test_a_number_that_counts_calls_is_noticed() -> None:
    count = itertools.count()

    def counts(xp: Any, x: Any) -> Any:
        return x + next(count)

    assert of_kernel(counts, np.ones(3)) is None


def test_a_program_reads_as_python() -> None:
    call = NumPyCall(np.add.reduce, (Value(0),), {"axis": None, "keepdims": False}, 1)
    assert call.text() == "v1 = np.add.reduce(v0, axis=None, keepdims=False)"
    found = program(ops.getitem.op, (np.ones((4, 3)),), {"index": (slice(1, 3), 0)})
    assert str(found).splitlines()[0] == "v1 = getitem(v0, (slice(1, 3, None), 0))"


def test_a_constant_result_is_a_fresh_array_at_every_run() -> None:
    def table(xp: Any, x: Any) -> Any:
        return xp.arange(3.0)

    found = of_kernel(table, np.ones(3))
    assert found is not None
    first = found(np.ones(3))
    first[:] = 7
    assert found(np.ones(3)).tolist() == [0, 1, 2]


def test_a_stand_in_that_outlives_its_kernel_is_refused() -> None:
    kept: list[Any] = []

    def keeps(xp: Any, x: Any) -> Any:
        kept.append(x)
        return kept[0] + x

    assert of_kernel(keeps, np.ones(3)) is None
