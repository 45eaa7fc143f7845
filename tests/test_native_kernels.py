"""Kernels in C and C++: compiled on the spot, equal to NumPy's, refused with a reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import compilers, ops

needs_compiler = pytest.mark.skipif(ad.find_compiler() is None, reason="no C++ compiler on this machine")

SCALED_TANH = """
#include <cmath>

extern "C" void scaled_tanh(int64_t y_size, const float* x, float alpha, float* y) {
    for (int64_t i = 0; i < y_size; i++) y[i] = alpha * std::tanh(x[i]);  // one number after the other
}
"""
PLUS = 'extern "C" void plus(int64_t z_size, const double* x, const double* y, double* z) {' \
       " for (int64_t i = 0; i < z_size; i++) z[i] = x[i] + y[i]; }"  # fmt: skip


@pytest.fixture(autouse=True)
def a_cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose name has a space, as many home folders have."""
    monkeypatch.delenv("AUTODIFF_LAB_KERNELS", raising=False)
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / "my cache"))
    return tmp_path / "my cache"


@needs_compiler
def test_a_kernel_in_cpp_serves_its_dtype_and_the_numpy_one_is_its_reference() -> None:
    @ad.op(elementwise=True)
    def scaled_tanh(xp: Any, x: Any, *, alpha: float = 1.0) -> Any:
        """alpha · tanh(x)."""
        return xp.asarray(alpha, x.dtype) * xp.tanh(x)

    @scaled_tanh.vjp
    def scaled_tanh_vjp(g: Any, out: Any, *, alpha: float) -> Any:
        return g * (alpha - out * out / alpha)

    scaled_tanh.kernel("cpu", dtype="float32")(ad.native_kernel(SCALED_TANH))
    reference = scaled_tanh.op.kernels["any", None]
    for shape in ((), (0, 3), (4,), (3, 5)):
        x = np.linspace(-2, 2, int(np.prod(shape))).reshape(shape).astype(np.float32)
        for given in (x, x.T):
            result = scaled_tanh(given, alpha=3.0)
            assert result.dtype == np.float32 and result.shape == given.shape
            np.testing.assert_allclose(result, reference(np, given, alpha=3.0), rtol=3e-7)
    assert scaled_tanh(np.ones(2)).dtype == np.float64
    chosen = ad.dispatch_told(scaled_tanh, [np.ones(2, np.float32)])[-1]
    assert chosen[1:3] == ("cpu", "float32") and chosen.chosen  # type: ignore[union-attr]
    slope = ad.grad(ad.grad(lambda x: scaled_tanh(x, alpha=2.0)))(np.float32(0.3))
    np.testing.assert_allclose(slope, -4 * np.tanh(0.3) * (1 - np.tanh(0.3) ** 2), rtol=1e-5)
    t = ad.tensor(np.ones(3, np.float32), requires_grad=True)
    scaled_tanh(t).sum().backward()
    assert t.grad is not None and t.grad.dtype == np.float32


@needs_compiler
def test_inputs_are_broadcast_and_made_contiguous() -> None:
    plus = ad.native_kernel(PLUS)
    x, y = np.arange(6.0).reshape(3, 2).T, np.arange(6.0)[::2]
    np.testing.assert_array_equal(plus(np, x, y), x + y)
    np.testing.assert_array_equal(plus(np, x, 2.0), x + 2.0)


@needs_compiler
def test_a_kernel_may_ask_for_shapes_and_fill_several_outputs() -> None:
    rows = ad.native_kernel(
        """
        #include <algorithm>
        static double larger(double a, double b) { return std::max(a, b); }
        extern "C" void rows(const double* x, const int64_t* x_shape, int64_t x_ndim, double* sums, double* largest) {
            if (x_ndim != 2) return;
            for (int64_t i = 0; i < x_shape[0]; i++) {
                const double* row = x + i * x_shape[1];
                sums[i] = 0.0;
                largest[i] = row[0];
                for (int64_t j = 0; j < x_shape[1]; j++) { sums[i] += row[j]; largest[i] = larger(largest[i], row[j]); }
            }
        }
        """,
        result_shape=lambda x: x[:1],
    )

    @ad.op(types="x: float64 -> sums: float64, largest: float64")
    def row_facts(xp: Any, x: Any) -> Any:
        return xp.sum(x, axis=1), xp.max(x, axis=1)

    row_facts.shape_rule(lambda x: x[:1])
    row_facts.kernel("cpu")(rows)
    x = np.random.default_rng(0).integers(-9, 9, (4, 3)).astype(float)
    for result, expected in zip(row_facts(x), (x.sum(axis=1), x.max(axis=1)), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.skipif(ad.find_compiler("c") is None, reason="no C compiler on this machine")
def test_c_is_compiled_as_c() -> None:
    count = ad.native_kernel(
        "void doubled(int64_t y_size, const int32_t* x, int32_t* y)"
        " { int class = 2; for (int64_t i = 0; i < y_size; i++) y[i] = class * x[i]; }",
        language="c",
    )
    assert count(np, np.arange(3, dtype=np.int32)).tolist() == [0, 2, 4]


@needs_compiler
def test_a_source_is_compiled_once_also_for_other_processes(
    a_cache_of_its_own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"import numpy as np, autodiff_lab as ad; print(ad.native_kernel({PLUS!r})(np, np.ones(1), np.ones(1)))"
    processes = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=120)[0] for process in processes] == ["[2.]\n", "[2.]\n"]
    (library,) = (a_cache_of_its_own / "autodiff-lab" / "kernels").iterdir()
    made = library.stat().st_mtime_ns
    monkeypatch.setattr(compilers, "_compile", lambda *_: pytest.fail("compiled again"))
    ad.native_kernel(PLUS)
    assert library.stat().st_mtime_ns == made


@needs_compiler
def test_where_the_cache_cannot_be_written_a_folder_of_the_process_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(blocked))
    assert ad.native_kernel(PLUS)(np, np.ones(1), np.ones(1)).tolist() == [2.0]


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert ad.find_compiler() is None
    with pytest.raises(ad.NoCompilerError, match=r"\$CXX is no-such-compiler.*Install.*use the NumPy kernel"):
        ad.native_kernel(PLUS)


def test_a_compiler_that_takes_other_options_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cl", "mine"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", "cl")
    assert ad.find_compiler() is None
    monkeypatch.setenv("CXX", "mine -m64")
    if sys.platform != "win32":
        assert ad.find_compiler() == str(tmp_path / "mine")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("int f() { return 1; }", "no function that returns void; write one, as in: void scale"),
        (
            "void f(const half* x, half* y) {}",
            r"cannot read the parameter 'const half\* x' of f; its type is one of float",
        ),
        ("void f(const float* x) {}", "f needs an input .* and an output"),
        ("void f(int64_t z_size, const float* x, float* y) {}", "asks for the size of z, but its arrays are x, y"),
    ],
)
def test_a_source_that_is_no_kernel_is_refused(source: str, message: str) -> None:
    with pytest.raises(ad.CompileError, match=message):
        ad.native_kernel(source)


@needs_compiler
def test_what_the_compiler_says_is_shown() -> None:
    with pytest.raises(ad.CompileError, match=r"refused the source:\n(.|\n)*kernel.cpp:1:(.|\n)*oops"):
        ad.native_kernel('extern "C" void f(const float* x, float* y) { y[0] = oops; }')


@needs_compiler
def test_a_name_that_cpp_has_changed_is_told_with_what_to_write() -> None:
    with pytest.raises(ad.CompileError, match=r'declare it extern "C" void f\('):
        ad.native_kernel("void f(const float* x, float* y) { y[0] = x[0]; }")


@needs_compiler
def test_another_dtype_is_refused_with_the_registration_that_is_meant() -> None:
    @ad.op(elementwise=True)
    def plus(xp: Any, x: Any, y: Any) -> Any:
        return x + y

    plus.kernel("cpu")(ad.native_kernel(PLUS))
    with pytest.raises(
        ad.OpError, match=r"plus.*compiled for float64 arrays, and x is float32; register it with .*float64"
    ):
        plus(np.ones(1, np.float32), np.ones(1, np.float32))
    assert float(ops.plus(1.0, 2.0)) == 3.0  # type: ignore[attr-defined]


@needs_compiler
def test_a_kernel_whose_parameters_are_not_the_ops_is_refused() -> None:
    @ad.op(elementwise=True)
    def tanh_like(xp: Any, x: Any) -> Any:
        return xp.tanh(x)

    with pytest.raises(
        ad.RegistrationError, match=r"takes \(xp, x, \*, alpha\) and must take \(xp, x\) as the op does"
    ):
        tanh_like.kernel("cpu")(ad.native_kernel(SCALED_TANH))


COUNTED = "void counted(const float* x, int8_t count, float* y) { y[0] = count; }"


@needs_compiler
@pytest.mark.parametrize("count", [300, 1.5, None, "3"])
def test_a_number_that_does_not_fit_its_c_type_is_refused_and_not_wrapped_around(count: Any) -> None:
    kernel = ad.native_kernel(COUNTED, language="c")
    assert float(kernel(np, np.zeros((), np.float32), count=np.int64(3))) == 3.0
    with pytest.raises(TypeError, match=r"kernel counted takes int8_t count, got .*; give a number that fits"):
        kernel(np, np.zeros((), np.float32), count=count)


@pytest.mark.parametrize("name", ["lambda", "xp", "_run"])
def test_a_name_that_a_kernel_cannot_have_is_refused(name: str) -> None:
    with pytest.raises(ad.CompileError, match=f"the name '{name}' means something else to a kernel"):
        ad.native_kernel(f"void f(const float* {name}, float* y) {{}}", language="c")


@needs_compiler
def test_a_library_that_was_cut_off_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTODIFF_LAB_KERNELS", str(tmp_path))
    library = compilers.shared_library(COUNTED, "c")
    library.write_bytes(b"")
    assert float(ad.native_kernel(COUNTED, language="c")(np, np.zeros((), np.float32), count=3)) == 3.0
