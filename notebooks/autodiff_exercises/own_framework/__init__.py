"""The capstone: a framework of one's own, in five exercises, and the small protocol by which the lab reads it."""

from __future__ import annotations

from . import array_engines, node_plans, op_registries, own_frameworks, probes, scalar_engines
from .lab_graphs import lab_graph, lab_timeline
from .protocol import FIRST_OPS, Framework, OpRules, ProtocolError, Recorded, Registry, recorded

__all__ = [
    "FIRST_OPS", "Framework", "OpRules", "ProtocolError", "Recorded", "Registry", "lab_graph", "lab_timeline", "probes",
    "recorded",
]  # fmt: skip

EXERCISES = tuple(
    exercise
    for part in (scalar_engines, array_engines, op_registries, node_plans, own_frameworks)
    for exercise in part.EXERCISES
)
