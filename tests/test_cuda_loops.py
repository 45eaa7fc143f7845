"""CUDA kernels of fused groups, without a GPU: NVIDIA's compiler takes them, and on the CPU they give NumPy's numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.block_programs import block_program
from autodiff_lab.cuda_loops import CudaLoop, CudaPrograms
from autodiff_lab.cuda_spellings import literal
from autodiff_lab.fusion import Group, fuse
from autodiff_lab.graph import Graph
from autodiff_lab.loop_programs import NotALoop, group_program
from tests.cuda_on_host import CudaOnHost
from tests.drawn_groups import node_values, programs
from tests.test_cuda_kernels import GPUS, compiled, needs_compiler

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> CudaOnHost:
    return CudaOnHost(tmp_path_factory.mktemp("cuda"))


def cuda_loop(graph: Graph, group: Group) -> CudaLoop:
    program = group_program(graph, group, CudaPrograms())
    comments = dict(zip((call.result for call in program.calls), program.comments, strict=True))
    return CudaLoop(block_program(program, group.shape), comments)  # type: ignore[arg-type]


def loops_of(f: Any, inputs: Any) -> Iterator[tuple[Group, CudaLoop, list[Any], list[Any]]]:
    """The kernels of a function's groups, with what they are given and what they should give."""
    graph = ad.record(f, *inputs)
    values, fusion = node_values(graph, inputs), fuse(graph)
    for group in fusion.groups:
        try:
            loop = cuda_loop(graph, group)
        except NotALoop:
            continue
        yield group, loop, [values[n] for n in group.inputs], [np.asarray(values[n]) for n in group.outputs]


def close(found: Any, expected: Any, widest: float) -> None:
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if found.dtype.kind != "f":  # where a rounded value decides, as in x > 0, a few may differ
        assert np.mean(found != expected) <= 0.25 if found.size > 4 else True
        return
    step = 256 * float(np.finfo(found.dtype).eps)
    scale = float(np.abs(expected[np.isfinite(expected)]).max(initial=1.0))
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=step, atol=step * max(scale, widest))


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(programs())
def test_nvidias_compiler_takes_the_kernel_of_every_group(drawn: Any) -> None:
    with np.errstate(all="ignore"):
        for _, loop, _, _ in loops_of(*drawn):
            for gpu in GPUS:
                assert compiled(loop.source.text, gpu)


@needs_compiler
@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(drawn=programs())
def test_the_kernel_of_every_group_gives_numpys_numbers(host: CudaOnHost, drawn: Any) -> None:
    with np.errstate(all="ignore"):
        for _, loop, given_, expected in loops_of(*drawn):
            widest = max(
                (float(np.abs(one[np.isfinite(one)]).max(initial=0)) for one in map(np.asarray, given_)), default=0
            )
            for found, wanted in zip(loop(host, given_, [None] * len(expected)), expected, strict=True):
                close(np.asarray(found), wanted, widest)


ROWS = np.random.default_rng(0).standard_normal((33, 96)).astype(np.float32)


def curve(x: Any) -> Any:
    return ops.tanh(1.5 * x + 0.3) * ops.sigmoid(x) - 0.5 * x * x


FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "joint": (ad.value_and_grad(lambda x: curve(x).sum()), (ROWS,)),
    "rows and a bias": (lambda x, b: ops.tanh(x + b) * 2.0, (ROWS, ROWS[0])),
    "both sides": (lambda c, b: ops.exp(c + b), (ROWS[:, :1], ROWS[:1])),
    "transposed": (lambda x, y: x * y - x, (np.asfortranarray(ROWS), ROWS)),
    "half precision": (lambda x: (x * x).sum(axis=0), (ROWS.astype(np.float16),)),
    "masks and bounds": (lambda x: ops.where(x > 0, ops.clip(x, -1, 0.5), 0.0), (ROWS,)),
    "infinite": (lambda x: ops.maximum(ops.minimum(x, np.inf), -np.inf) + 0.0, (ROWS,)),
    "several outputs": (lambda x: [ops.exp(x), ops.exp(x) * 2.0], (ROWS,)),
    "empty": (lambda x: ops.exp(x) * 2.0, (ROWS[:0],)),
    "gelu": (ops.gelu, (ROWS,)),
}


@needs_compiler
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_launch_gives_what_the_ops_of_a_group_give(name: str, host: CudaOnHost) -> None:
    f, inputs = FUNCTIONS[name]
    seen = 0
    for _, loop, given_, expected in loops_of(f, inputs):
        before = host.launches
        found = loop(host, given_, [None] * len(expected))
        assert host.launches == before + (name != "empty" and bool(loop.source.writes))
        for one, wanted in zip(found, expected, strict=True):
            close(np.asarray(one), wanted, 1.0)
        seen += 1
        assert compiled(loop.source.text, GPUS[0])
    assert seen


@needs_compiler
def test_outputs_go_into_arrays_that_are_handed_over(host: CudaOnHost) -> None:
    ((_, loop, given_, expected),) = loops_of(lambda x: ops.tanh(2.0 * x), (ROWS,))
    room = np.empty_like(ROWS)
    assert loop(host, given_, [room])[0] is room
    close(room, expected[0], 1.0)


def test_a_kernel_reads_as_the_user_wrote_it() -> None:
    def named(x: Any, b: Any) -> Any:
        scaled = 2.0 * x
        return ops.round(scaled + b)

    ((_, loop, _, _),) = loops_of(named, (ROWS, ROWS[0]))
    assert (
        loop.source.text
        == """\
__device__ float mul_formula(float x, float y)
{
    using T = float;
    return x * y;
}

__device__ float add_formula(float x, float y)
{
    using T = float;
    return x + y;
}

extern "C" __global__ void fused_kernel(const float* x1, const float* x2, float* y5, long long size)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    const float v1 = x1[i];
    const float v2 = x2[i % 96];
    const float v3 = mul_formula(((float)(2.0)), v1);  // scaled = mul
    const float v4 = add_formula(v3, v2);  // add
    const float v5 = rint(v4);  // round
    y5[i] = v5;
}
"""
    )


NUMBERS = [0, -1, 7, 2**31 - 1, True, 0.1, -0.0, 1e-30, 65504.0, np.inf, -np.inf, np.nan]
NAMES = {
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "int64": "long long",
    "bool": "bool",
    "float16": "float",
}


@needs_compiler
@pytest.mark.parametrize("dtype", NAMES)
def test_a_literal_is_the_number(dtype: str, host: CudaOnHost) -> None:
    whole = [number for number in NUMBERS if np.isfinite(number) and number == int(number)]
    numbers = np.array(NUMBERS if dtype.startswith("float") else whole).astype(dtype)
    lines = [f"y[{place}] = {literal(number, numbers.dtype)};" for place, number in enumerate(numbers)]
    text = f'extern "C" __global__ void k({NAMES[dtype]}* y)\n{{ {" ".join(lines)} }}'
    expected = numbers.astype("float32" if dtype == "float16" else dtype)
    room = np.empty_like(expected)
    host.RawKernel(text, "k")((1,), (1,), (room,))
    assert np.array_equal(room, expected, equal_nan=dtype.startswith("float"))
    signs = [np.signbit(one[~np.isnan(one)]) for one in (room.astype(float), expected.astype(float))]
    assert np.array_equal(*signs)


def test_an_op_with_a_cuda_kernel_of_its_own_is_not_fused() -> None:
    @ad.op(elementwise=True)
    def by_hand(xp: Any, x: Any) -> Any:
        return x * 2.0

    by_hand.kernel("cuda")(lambda xp, x: x + x)
    graph = ad.record(lambda x: ops.tanh(by_hand(x)), ROWS)
    with pytest.raises(NotALoop, match="op by_hand has a kernel of its own for CUDA devices"):
        cuda_loop(graph, fuse(graph).groups[0])


def test_what_c_has_no_word_for_is_refused_with_its_name() -> None:
    graph = ad.record(lambda x: ops.round(x * 2.0, decimals=2), ROWS)
    with pytest.raises(NotALoop, match=r"C\+\+ has no word for np.round"):
        cuda_loop(graph, fuse(graph).groups[0])
