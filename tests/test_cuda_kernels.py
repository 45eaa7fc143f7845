"""CUDA C++ of elementwise ops, without a GPU: NVIDIA's compiler takes every source, and on the CPU it gives NumPy's numbers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.cuda_kernels import THREADS, ElementwiseKernel, Operand, elementwise_kernel
from autodiff_lab.operators import Op
from tests.cuda_on_host import COMPILER, CudaOnHost, RawKernel

OPS = [op for op in map(ad.registry.get, ops.__all__) if op is not None]
KERNELS = {op.name: kernel for op in OPS if (kernel := elementwise_kernel(op)) is not None}
GPUS = ("sm_80", "sm_90")  # A100 and H100, by the names of their machine code

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


def compiled(source: str, gpu: str) -> bytes:
    """What NVIDIA's compiler makes of a source, which takes no GPU: machine code for sm_80, readable PTX for compute_80."""
    nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc", reason="CuPy, which brings NVRTC, is not installed")
    program = nvrtc.createProgram(source, "kernel.cu", (), ())
    try:
        nvrtc.compileProgram(program, (f"-arch={gpu}", "-std=c++17"))
        return bytes(nvrtc.getCUBIN(program) if gpu.startswith("sm_") else nvrtc.getPTX(program))
    except nvrtc.NVRTCError:
        raise ValueError(nvrtc.getProgramLog(program)) from None
    finally:
        nvrtc.destroyProgram(program)


def widens(source: str) -> bool:
    """Whether single precision becomes double on the way."""
    return b"cvt.f64.f32" in compiled(source, "compute_80")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> CudaOnHost:
    return CudaOnHost(tmp_path_factory.mktemp("cuda"))


@pytest.fixture(scope="module")
def on_host() -> dict[str, ElementwiseKernel]:
    """The kernels of all ops, apart from those that a GPU of this machine may have compiled."""
    return {name: ElementwiseKernel(one.op, one.expression, one.general) for name, one in KERNELS.items()}


def few_units_apart(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], units: int = 8) -> None:
    """Assert equal shapes and dtypes, and numbers that are at most so many units in the last place apart."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if found.dtype.kind != "f":
        assert np.array_equal(found, expected)
    else:
        step = np.finfo(found.dtype).eps * units
        np.testing.assert_allclose(found, expected, rtol=step, atol=np.finfo(found.dtype).tiny, equal_nan=True)


# ----------------------------------------------------------------------------------------------- what NVIDIA's compiler says


def test_every_elementwise_op_without_attributes_has_a_cuda_expression() -> None:
    assert set(KERNELS) == {op.name for op in OPS if op.elementwise and not op.attributes}


COMPILED = [
    pytest.param(name, dtype, gpu, marks=[] if (dtype, gpu) == ("float32", GPUS[0]) else [pytest.mark.slow])
    for name, dtype, gpu in itertools.product(KERNELS, ("float32", "float64"), GPUS)
]


@pytest.mark.parametrize(("name", "dtype", "gpu"), COMPILED)
def test_the_kernel_of_every_expression_compiles(name: str, dtype: str, gpu: str) -> None:
    assert compiled(ad.cuda_source(getattr(ops, name), dtype), gpu)


MIXED: list[tuple[str, tuple[Operand, ...]]] = [
    *(("mul", (np.dtype(np.float64), np.dtype(dtype))) for dtype in "?bhilqBHILQefd"),
    *(("mul", (np.dtype(np.float32), kind)) for kind in (bool, int, float)),
    ("less", (float, np.dtype(np.float16))),
    ("where", (bool, np.dtype(np.float32), float)),
    ("where", (np.dtype(np.bool_), float, np.dtype(np.float64))),
]


@pytest.mark.parametrize(("name", "operands"), MIXED)
def test_kernels_for_masks_whole_numbers_and_python_numbers_compile(name: str, operands: tuple[Operand, ...]) -> None:
    signature = KERNELS[name].signature(operands)
    assert signature is not None
    assert compiled(KERNELS[name].source(signature), GPUS[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_single_precision_asks_for_nothing_in_double_precision(name: str) -> None:
    assert not widens(ad.cuda_source(getattr(ops, name), "float32"))


def test_a_constant_that_is_no_t_widens_single_precision() -> None:
    assert widens(ad.cuda_source(register("0.5 * x * y"))) and not widens(ad.cuda_source(register("T(0.5) * x * y")))


def test_a_wrong_expression_is_refused_by_nvidias_compiler() -> None:
    op = register("x * yy")
    with pytest.raises(ValueError, match='identifier "yy" is undefined'):
        compiled(ad.cuda_source(op), GPUS[0])


# ---------------------------------------------------------------------------------------------------------- run on the CPU

NUMBERS = [
    0.0,
    -0.0,
    1e-30,
    -1e-8,
    1e-3,
    0.1,
    -0.5,
    0.7,
    1.0,
    -1.0,
    1.5,
    2.0,
    -2.5,
    3.0,
    10.0,
    -20.0,
    80.0,
    -90.0,
    1e4,
    1e20,
]
VALUES = np.array([*NUMBERS, np.inf, -np.inf, np.nan])


def grid(op: Op, dtype: str) -> list[np.ndarray[Any, Any]]:
    """Every combination of values for every input; a condition holds or not."""
    choices = [np.array([0.0, 1.0]) if name in op.constant_inputs else VALUES for name in op.inputs]
    return [np.ascontiguousarray(each.ravel(), dtype) for each in np.meshgrid(*choices)]


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype"), [*itertools.product(KERNELS, ("float32", "float64"))])
def test_a_kernel_gives_numpys_numbers_also_at_the_edges(
    name: str, dtype: str, host: CudaOnHost, on_host: dict[str, ElementwiseKernel]
) -> None:
    values = grid(KERNELS[name].op, dtype)
    with np.errstate(all="ignore"):
        few_units_apart(on_host[name](host, *values), KERNELS[name].general(np, *values))


SAMPLES = [
    pytest.param(op.name, operands, id=f"{op.name}-{number}")
    for op in OPS
    if op.name in KERNELS
    for number, (operands, _) in enumerate(op.sample_calls())
]


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(("name", "operands"), SAMPLES)
def test_every_sample_gives_the_same_shape_dtype_and_numbers_as_numpy(
    name: str, operands: tuple[Any, ...], host: CudaOnHost, on_host: dict[str, ElementwiseKernel]
) -> None:
    expected = KERNELS[name].op.apply(operands, {})
    few_units_apart(
        np.asarray(on_host[name](host, *operands)), expected, units=4 if expected.dtype == np.float16 else 8
    )


@needs_compiler
@pytest.mark.parametrize("size", [1, THREADS - 1, THREADS, THREADS + 1, 3 * THREADS])
def test_threads_beyond_the_last_number_write_nothing(size: int, host: CudaOnHost) -> None:
    x, out = np.arange(4.0 * THREADS), np.full(4 * THREADS, -1.0)
    blocks = -(-size // THREADS)
    kernel = RawKernel(host, ad.cuda_source(ops.square, "float64"), "square_kernel")
    kernel((blocks,), (THREADS,), (x, out, np.int64(size)))
    assert np.array_equal(out[:size], x[:size] ** 2)
    assert np.all(out[size:] == -1.0)


def register(expression: str) -> Any:
    @ad.op(elementwise=True)
    def product(xp: Any, x: Any, y: Any) -> Any:
        """x · y."""
        return xp.multiply(x, y)

    ad.cuda_expression(product, expression)
    return product


def kernel_of(expression: str) -> ElementwiseKernel:
    found = elementwise_kernel(register(expression).op)
    assert found is not None
    return found


@needs_compiler
def test_a_kernel_is_compiled_once_for_its_dtypes_and_launched_at_each_call(host: CudaOnHost) -> None:
    kernel, x = kernel_of("x * y"), np.arange(3.0)
    before = host.compilations, host.launches
    for factor in (x, x, 2.0, 3.0, x > 1):
        assert kernel(host, x, factor).tolist() == (x * factor).tolist()
    assert (host.compilations - before[0], host.launches - before[1]) == (3, 5)


@needs_compiler
def test_what_the_expression_is_not_for_goes_to_the_general_kernel(host: CudaOnHost) -> None:
    kernel, x = kernel_of("this is no C++"), np.arange(3.0)
    before = host.launches
    assert kernel(host, x, np.ones((2, 1))).shape == (2, 3)
    assert kernel(host, np.arange(3), np.arange(3)).tolist() == [0, 1, 4]
    assert kernel(host, np.ones((0, 3)), np.ones((0, 3))).shape == (0, 3)
    assert host.launches == before


@needs_compiler
def test_a_wrong_expression_is_refused_at_the_first_call_and_the_message_and_traceback_show_it(
    host: CudaOnHost,
) -> None:
    kernel = register("x * yy").op.kernels["cuda", None]
    with pytest.raises(ValueError, match=r"(?s)CUDA expression 'x \* yy' does not compile: .*yy") as caught:
        kernel(host, np.ones(2), np.ones(2))
    assert "ad.cuda_expression(product, expression)" in [str(entry.statement).strip() for entry in caught.traceback]


@needs_compiler
def test_a_wrong_formula_gives_other_numbers_than_numpy(host: CudaOnHost) -> None:
    x = np.arange(1.0, 3.0)
    with pytest.raises(AssertionError, match="Mismatched elements"):
        few_units_apart(kernel_of("x + y")(host, x, x + 1), x * (x + 1))


def test_only_elementwise_ops_without_attributes_take_an_expression() -> None:
    for op in (ops.sum, ops.clip, ops.concatenate):
        with pytest.raises(
            TypeError, match=rf'op {op.op.name}: .* register a whole kernel with @{op.op.name}.kernel\("cuda"\)'
        ):
            ad.cuda_expression(op, "x")


def test_where_there_is_no_cuda_source_the_error_says_what_computes_instead() -> None:
    with pytest.raises(
        ValueError, match="op sum has no CUDA expression; on CUDA devices CuPy's own functions compute it"
    ):
        ad.cuda_source(ops.sum)
    with pytest.raises(ValueError, match="op add on int32: CuPy's own functions compute it"):
        ad.cuda_source(ops.add, "int32")
