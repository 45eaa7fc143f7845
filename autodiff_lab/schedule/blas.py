"""BLAS on one thread while schedules run, so that every worker computes with one core."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

_lock = threading.Lock()
_runs = 0  # that want one thread now: the first switches, the last switches back, in whatever order they end
_controller: Any = None  # of the run under way
_limit: Any = None
_found: tuple[int, Any] = (0, None)  # how many modules were loaded, and a controller of the libraries of then


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS on one thread inside the block; afterwards, also after an error, it has as many as before.

    Needs threadpoolctl; without it BLAS stays as it is, and a warning says so. Runs in several threads may overlap: the
    count belongs to the whole process.
    """
    global _runs
    with _lock:
        if _runs == 0:
            _switch_to_one()
        _runs += 1
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            if _runs == 0:
                _switch_back()


def limit_this_thread() -> None:
    """Say it once more in a worker, because OpenBLAS on OpenMP has a count for each thread that calls it.

    The worker's limit ends with the worker. On every other BLAS this does nothing: the thread that began the run decides.
    """
    if _controller is not None:
        _controller.limit(limits=1, user_api="blas")


def _switch_to_one() -> None:
    global _controller, _limit
    if find_spec("threadpoolctl") is None:  # the library alone needs NumPy only
        warnings.warn(
            "schedule: threadpoolctl is not installed, so BLAS may use every core in each worker, and figures of times and "
            "utilisation mean little; pip install threadpoolctl",
            RuntimeWarning,
            stacklevel=4,
        )
        return
    _release_control()
    _controller = _controller_of_libraries()
    _limit = _controller.limit(limits=1, user_api="blas")


def _controller_of_libraries() -> Any:
    """A controller of all BLAS libraries; a new one, which takes 0.25 ms, only where a module was loaded since the last run."""
    global _found
    if _found[0] != len(sys.modules):
        made = import_module("threadpoolctl").ThreadpoolController()
        _found = len(sys.modules), made
    return _found[1]


def _switch_back() -> None:
    global _controller, _limit
    if _limit is not None:
        _release_control()
        _limit.restore_original_limits()
        _release_control()
    _controller = _limit = None


def _release_control() -> None:
    """Since threadpoolctl 3.8 one thread at a time has a say, the first that set a limit; but any may begin or end a run."""
    controller = import_module("threadpoolctl").OpenBLASController
    if hasattr(controller, "clear_controlling_thread"):
        controller.clear_controlling_thread(force=True)
