"""A stand-in for CuPy that runs CUDA C++ on the CPU: a C++ compiler reads the very text, and the threads run one by one."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")

BEFORE = """\
#include <cmath>
using namespace std;
#define __device__ static
#define __global__
struct Index { unsigned x; };
static Index blockIdx, threadIdx, blockDim;
"""

AFTER = """
extern "C" void launch(unsigned blocks, unsigned threads, {parameters})
{{
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x)
            {name}({names});
}}
"""


class CompileException(Exception):
    """What CuPy raises where a source is refused."""


class RawKernel:
    """CuPy's RawKernel, as far as it is used."""

    def __init__(self, host: CudaOnHost, source: str, name: str) -> None:
        self.host, self.source, self.name = host, source, name
        self.function: Any = None

    def compile(self) -> None:
        """Compile the source, between the lines that make a CPU understand it."""
        if self.function is not None:
            return
        found = re.search(rf"__global__ void {self.name}\((.*)\)", self.source)
        assert found is not None, f"no kernel {self.name} in:\n{self.source}"
        parameters = found.group(1)
        names = ", ".join(parameter.split()[-1] for parameter in parameters.split(", "))
        self.function = self.host.compiled(
            self.source + AFTER.format(parameters=parameters, name=self.name, names=names)
        ).launch

    def __call__(self, grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
        """Run all threads, with the limits of CUDA."""
        self.compile()
        assert 0 < grid[0] < 2**31 and 0 < block[0] <= 1024
        self.host.launches += 1
        self.function(ctypes.c_uint(grid[0]), ctypes.c_uint(block[0]), *map(as_c, arguments))


def as_c(argument: Any) -> Any:
    """An array as the address of its numbers, which must lie side by side; a number as it is in C."""
    if isinstance(argument, np.ndarray):
        assert argument.flags.c_contiguous
        return ctypes.c_void_p(argument.ctypes.data)
    return np.ctypeslib.as_ctypes_type(argument.dtype)(argument.item())


class CudaOnHost:
    """NumPy, and RawKernel as CuPy has it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.launches, self.compilations = folder, 0, 0
        self.cuda = SimpleNamespace(compiler=SimpleNamespace(CompileException=CompileException))
        (folder / "before.h").write_text(BEFORE)
        self._run("-x", "c++-header", "before.h", "-o", "before.h.gch")  # read once: 0.1 s a kernel instead of 0.3

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def RawKernel(self, source: str, name: str) -> RawKernel:
        """A kernel from its CUDA C++."""
        return RawKernel(self, source, name)

    def compiled(self, source: str) -> ctypes.CDLL:
        """A library from C++."""
        self.compilations += 1
        stem = f"kernel{self.compilations}"
        (self.folder / f"{stem}.cpp").write_text(source)
        self._run("-shared", "-include", "before.h", f"{stem}.cpp", "-o", f"{stem}.so")
        return ctypes.CDLL(str(self.folder / f"{stem}.so"))

    def _run(self, *options: str) -> None:
        assert COMPILER is not None
        command = [COMPILER, "-std=c++17", "-O1", "-fPIC", *options]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=100)
        if done.returncode:
            raise CompileException(done.stderr)
