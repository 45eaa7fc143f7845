"""Views of recorded graphs, orders, tangents, gradients, training and registered ops: public names only."""

from .dispatch_view import DispatchView
from .forward_mode_view import ForwardModeView
from .gradient_flow_view import GradientFlowView
from .graph_view import GraphView
from .op_card import OpCard
from .registration_view import RegistrationView
from .topological_order_view import TopologicalOrderView
from .training_view import TrainingView
from .view import View

__all__ = [
    "DispatchView", "ForwardModeView", "GradientFlowView", "GraphView", "OpCard", "RegistrationView", "TopologicalOrderView",
    "TrainingView", "View",
]  # fmt: skip
