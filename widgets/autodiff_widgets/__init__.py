"""Views of recorded graphs, orders, tangents, gradients and training: public names only."""

from .forward_mode_view import ForwardModeView
from .gradient_flow_view import GradientFlowView
from .graph_view import GraphView
from .topological_order_view import TopologicalOrderView
from .training_view import TrainingView
from .view import View

__all__ = ["ForwardModeView", "GradientFlowView", "GraphView", "TopologicalOrderView", "TrainingView", "View"]
