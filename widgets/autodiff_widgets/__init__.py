"""Views of graphs, orders, tangents, gradients, training, ops, passes, schedules, and of code as it runs: public names only."""

from .dispatch_view import DispatchView
from .explanation import Explanation, explain
from .forward_mode_view import ForwardModeView
from .fusion_view import FusionView
from .gradient_flow_view import GradientFlowView
from .graph_view import GraphView
from .live_view import LiveView, live
from .memory_view import MemoryView
from .op_card import OpCard
from .op_view import OpView
from .plan_view import PlanView
from .ready_queue_view import ReadyQueueView
from .registration_view import RegistrationView
from .shape_cost_view import ShapeCostView
from .shape_inference_view import ShapeInferenceView
from .timeline_view import TimelineView
from .topological_order_view import TopologicalOrderView
from .training_view import TrainingView
from .view import View
from .watching import watch
from .workbench import Workbench

__all__ = [
    "DispatchView", "Explanation", "ForwardModeView", "FusionView", "GradientFlowView", "GraphView", "LiveView",
    "MemoryView", "OpCard", "OpView", "PlanView", "ReadyQueueView", "RegistrationView", "ShapeCostView",
    "ShapeInferenceView", "TimelineView", "TopologicalOrderView", "TrainingView", "View", "Workbench", "explain", "live",
    "watch",
]  # fmt: skip
