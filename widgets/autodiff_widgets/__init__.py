"""Views of recorded graphs, orders, tangents, gradients, training, registered ops and schedules: public names only."""

from . import pass_captions, plan_captions  # noqa: F401  (importing them registers their sentences)
from .dispatch_view import DispatchView
from .explanation import Explanation, explain
from .forward_mode_view import ForwardModeView
from .gradient_flow_view import GradientFlowView
from .graph_view import GraphView
from .memory_view import MemoryView
from .op_card import OpCard
from .ready_queue_view import ReadyQueueView
from .registration_view import RegistrationView
from .timeline_view import TimelineView
from .topological_order_view import TopologicalOrderView
from .training_view import TrainingView
from .view import View

__all__ = [
    "DispatchView", "Explanation", "ForwardModeView", "GradientFlowView", "GraphView", "MemoryView", "OpCard",
    "ReadyQueueView", "RegistrationView", "TimelineView", "TopologicalOrderView", "TrainingView", "View", "explain",
]  # fmt: skip
