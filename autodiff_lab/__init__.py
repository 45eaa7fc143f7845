"""Automatic differentiation, operator registration and scheduling, in the open. Public names only.

>>> import autodiff_lab as ad
>>> x = ad.tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4.])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import events, garbage, heap, ops
from .backend import accelerator, devices, library_of
from .bindings import OpError
from .cuda_kernels import cuda_expression, cuda_source
from .dispatch import fallback_order
from .events import listen, name_scope, no_grad
from .forward_mode import jvp
from .graph import Graph, Node, depth_first_order, is_topological_order, kahn_order
from .graph_export import GraphFormatError
from .operators import op, registry
from .recording import graph_of, record, record_until_error
from .reverse_mode import grad, sweep, value_and_grad, vjp
from .signatures import RegistrationError
from .tensors import Tensor, tensor
from .trees import map_leaves

if TYPE_CHECKING:
    from .anomalies import AnomalyError, anomaly_mode
    from .cell_arrays import Cells
    from .cell_traces import CellTrace, trace_cells
    from .cells import Cell
    from .checks import gradcheck
    from .compilers import CompileError, NoCompilerError, find_compiler
    from .compiling import Compiled, compile
    from .faulty_ops import find_faulty_op
    from .fusion import Fusion, Group, Neighbours, fuse
    from .jacobians import JacobianCost, hessian, hvp, jacobian, jacobian_cost
    from .native_kernels import native_kernel
    from .operator_checks import opcheck
    from .operator_reports import FaultFound, FaultyOpReport, OpcheckReport, OpTest
    from .planning import Plan, plan
    from .playback import dispatch_told, graph_heard, graph_told, registration_told
    from .registration import KernelContext, ShapeContext, register_op
    from .reports import Finding, GradcheckReport
    from .shapes import Inference, infer_shapes

__version__ = "0.1.0"

heap.keep_freed_memory()
garbage.put_off_full_searches()

__all__ = [
    "AnomalyError", "Cell", "CellTrace", "Cells", "CompileError", "Compiled", "FaultFound", "FaultyOpReport", "Finding",
    "Fusion", "GradcheckReport", "Graph", "GraphFormatError", "Group", "Inference", "JacobianCost", "KernelContext",
    "Neighbours", "NoCompilerError", "Node", "OpError", "OpTest", "OpcheckReport", "Plan", "RegistrationError",
    "ShapeContext", "Tensor", "accelerator", "anomaly_mode", "compile", "cuda_expression", "cuda_source",
    "depth_first_order", "devices", "dispatch_told", "events", "fallback_order", "find_compiler",
    "find_faulty_op", "fuse", "grad", "gradcheck", "graph_heard", "graph_of", "graph_told", "hessian", "hvp", "infer_shapes",
    "is_topological_order", "jacobian", "jacobian_cost", "jvp", "kahn_order", "library_of", "listen",
    "map_leaves", "name_scope", "native_kernel", "no_grad", "op", "opcheck", "ops", "plan", "record",
    "record_until_error", "register_op", "registration_told", "registry", "sweep", "tensor", "trace_cells",
    "value_and_grad", "vjp",
]  # fmt: skip

_LATER = {  # what a training run does not need is loaded when it is asked for: 26 ms instead of 35, after NumPy's import
    "anomalies": ("AnomalyError", "anomaly_mode"),
    "cell_traces": ("CellTrace", "trace_cells"),
    "cell_arrays": ("Cells",),
    "cells": ("Cell",),
    "checks": ("gradcheck",),
    "compilers": ("CompileError", "NoCompilerError", "find_compiler"),
    "compiling": ("Compiled", "compile"),
    "faulty_ops": ("find_faulty_op",),
    "fusion": ("Fusion", "Group", "Neighbours", "fuse"),
    "jacobians": ("JacobianCost", "hessian", "hvp", "jacobian", "jacobian_cost"),
    "native_kernels": ("native_kernel",),
    "operator_checks": ("opcheck",),
    "operator_reports": ("FaultFound", "FaultyOpReport", "OpTest", "OpcheckReport"),
    "planning": ("Plan", "plan"),
    "playback": ("dispatch_told", "graph_heard", "graph_told", "registration_told"),
    "registration": ("KernelContext", "ShapeContext", "register_op"),
    "reports": ("Finding", "GradcheckReport"),
    "shapes": ("Inference", "infer_shapes"),
}


def __getattr__(name: str) -> Any:
    """A public name whose module is not loaded yet."""
    for module, names in _LATER.items():
        if name in names:
            globals()[name] = found = getattr(import_module(f"{__name__}.{module}"), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
