"""Views of recorded graphs, orders, tangents and gradients: public names only."""

from .forward_mode_view import ForwardModeView
from .gradient_flow_view import GradientFlowView
from .graph_view import GraphView
from .topological_order_view import TopologicalOrderView
from .view import View

__all__ = ["ForwardModeView", "GradientFlowView", "GraphView", "TopologicalOrderView", "View"]
