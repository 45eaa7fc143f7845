"""The contract between the harness and an adapter module.

An adapter (``peers/<name>.py``) has a ``version()`` function and one function per
workload it supports, named after the workload (``w1``, ``w2``, ... see workloads.py).
Each takes the workload's data (a SimpleNamespace of NumPy arrays and constants) and
returns a Case.  A workload the adapter lacks is reported as ``-``.
"""

from dataclasses import dataclass
from typing import Any, Callable, Optional


@dataclass
class Case:
    #: One complete, synchronous step (what is timed): forward + backward (+ update).
    step: Callable[[], Any]
    #: Outputs and gradients *from the initial state*, as {name: ndarray}. Called once,
    #: before any step(); compared with the reference peer before anything is timed.
    result: Callable[[], dict]
    #: Optional split of step() into two timed halves: backward(forward()).
    forward: Optional[Callable[[], Any]] = None
    backward: Optional[Callable[[Any], Any]] = None
    note: str = ""
