"""Questions about a recorded graph: what does a node read?"""

from __future__ import annotations

from functools import partial

from autodiff_lab.graph import Graph, Node

from .captions import Names, graphs
from .drawing import Drawing
from .questions import which
from .scene import Question


def reads_question(graph: Graph, node: Node, drawing: Drawing, name: Names) -> Question | None:
    """Before an op: what does it read? A reader may think of what that was computed from, or of what reads the op."""
    element = drawing.elements.get(node.id)
    if node.op is None or not node.inputs or element is None or element in drawing.boxes:
        return None
    nodes = graph.nodes
    reused = [i for i in node.inputs if node.phase == "backward" and nodes[i].phase == "forward"]
    right = (reused or node.inputs)[-1]
    further = [far for i in node.inputs for far in nodes[i].inputs]
    label = partial(_label, drawing, name)
    read = {label(i) for i in node.inputs}  # a name may be used again
    others = (
        i
        for i in (*further, *graph.consumers[node.id], *range(node.id - 1, -1, -1))
        if nodes[i].kind != "constant" and (not reused or nodes[i].phase == "forward") and label(i) not in read
    )
    if nodes[right].kind == "constant":
        return None
    return which(graphs.reads_question(name(node.id), bool(reused)), right, others, drawing.elements.get, label)


def _label(drawing: Drawing, name: Names, node: int) -> str:
    """What is on the button of a node: the box that it is in, or its name."""
    box = drawing.boxes.get(drawing.elements.get(node, ""))
    return name(node).replace("`", "") if box is None else box.name
