"""What is said of a recorded graph: its nodes in recorded order, boxes that stand for several nodes, and what is not drawn."""

from __future__ import annotations

from autodiff_lab.graph import Graph, Node

from .sentences import Names, capitalised, counted, listed


def size_words(graph: Graph) -> str:
    """How large a graph is: ``3 nodes, 2 edges``."""
    return f"{counted(len(graph), 'node')}, {counted(sum(1 for _ in graph.edges), 'edge')}"


def title(graph: Graph) -> str:
    """What a graph is called, and how large it is; a graph without a name is called "graph"."""
    return f"Graph{'' if graph.name == 'graph' else f' {graph.name}'}: {size_words(graph)}"


def opening(title: str) -> str:
    """How the steps through a graph begin."""
    return f"{title}. Step to see the nodes in the order in which they were recorded."


def closing(count: int) -> str:
    """How the steps through a graph end."""
    return f"All {count} nodes are there." if count != 1 else "The one node is there."


def node_caption(node: Node, name: Names) -> str:
    """What a node of a recorded graph is or computes."""
    what = f"shape {node.shape}, {node.dtype}"
    called = name(node.id)
    if node.kind == "constant" and not node.name:
        return f"{capitalised(called)} needs no input: {what}."
    if node.op is None:
        return f"{called} is {'an input' if node.kind == 'input' else 'a constant'}: {what}."
    done = f"{called} = {name.call(node.op.name, node.inputs)}: {what}."
    if node.phase == "backward" and node.origin is not None:
        return f"Backward of {name(node.origin)}: {done}"
    return done


def block_title(scope: str, count: int, nodes: int) -> str:
    """How one of several blocks is called.

    >>> block_title("block1", 12, 34)
    'block1, one of 12 blocks: 34 nodes'
    """
    return f"{scope}, one of {count} blocks: {counted(nodes, 'node')}"


def blocks_caption(box: str, blocks: list[str], ops: int, phase: str) -> str:
    """What a box computes that stands for blocks of the same structure.

    >>> blocks_caption("block × 3", ["block1", "block2", "block3"], 87, "forward")
    '`block × 3` stands for `block1`, `block2` and `block3`, which have the same structure: 87 ops in the forward pass.'
    """
    names = [f"`{block}`" for block in blocks]
    if len(names) > 3:
        names = [f"`{blocks[0]}` to `{blocks[-1]}`"]
    same = "which have the same structure"
    return f"`{box}` stands for {listed(names)}, {same}: {counted(ops, 'op')} in the {phase}{' pass' * (phase != 'update')}."


def repeats_note(boxes: list[str]) -> str:
    """What a reader must know of a picture in which repeated blocks are drawn as one box."""
    return f"Blocks of the same structure are drawn as one box: {listed(boxes)}. Open a box to see one of its blocks."


NO_REPEATS = "No two blocks in a row have the same structure, so every node is drawn."


def first_nodes_note(shown: int, count: int) -> str:
    """What a reader must know of a picture that does not show every node."""
    return f"Showing the first {shown} of {count} nodes. The text twin, text(), has every node and every step."


def played_note(steps: int, played: int) -> str:
    """What a reader must know of a film that does not play every step."""
    return f"Of {steps} steps the first {played} are played, and the last. The text twin, text(), has every step."


def reads_question(node: str, is_reused: bool) -> str:
    """Before a node is computed: what does it read?"""
    if is_reused:
        return f"{capitalised(node)} is computed in the backward pass. Which value of the forward pass does it read?"
    return f"{capitalised(node)} is computed next. Which value does it read directly?"
