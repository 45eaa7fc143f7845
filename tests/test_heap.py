"""Freed memory that the process keeps: counted in page faults, each test in an interpreter of its own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left as they are")

FAULTS = """
import resource
import numpy as np
{first}

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def step():
    held = [np.ones({megabytes} << 17) for _ in range(4)]

step()
before = faults()
for _ in range(10):
    step()
print(faults() - before)
"""


def faults_of_ten_steps(first: str, megabytes: int = 3, **settings: str) -> int:
    """Page faults of allocating and freeing four arrays, ten times over, in a new interpreter that runs ``first`` before."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("MALLOC_", "GLIBC_"))}
    code = FAULTS.format(first=first, megabytes=megabytes)
    ran = subprocess.run(
        [sys.executable, "-c", code], env=inherited | settings, capture_output=True, text=True, check=True
    )
    return int(ran.stdout)


def test_arrays_that_are_made_again_and_again_cost_no_page_faults() -> None:
    assert faults_of_ten_steps("") > 10_000  # four arrays of 3 MB: 768 pages each
    assert faults_of_ten_steps("import autodiff_lab") < 200


def test_what_the_user_set_up_stays() -> None:
    for settings in ({"MALLOC_MMAP_THRESHOLD_": "131072"}, {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=131072"}):
        assert faults_of_ten_steps("import autodiff_lab", **settings) > 10_000


def test_most_of_the_memory_of_large_arrays_goes_back_to_the_system() -> None:
    code = (
        "import autodiff_lab, numpy as np\n"
        "def resident():\n"
        "    return int(open('/proc/self/statm').read().split()[1]) * 4096 >> 20\n"
        "held = [np.ones(20 << 17) for _ in range(20)]\n"
        "full = resident()\n"
        "del held\n"
        "print(full - resident())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(ran.stdout) > 400 - 128 - 20  # 400 MB were held
