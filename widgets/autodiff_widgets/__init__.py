"""Views of recorded graphs, orders and gradients: public names only."""

from .gradient_flow_view import GradientFlowView
from .graph_view import GraphView
from .topological_order_view import TopologicalOrderView
from .view import View

__all__ = ["GradientFlowView", "GraphView", "TopologicalOrderView", "View"]
