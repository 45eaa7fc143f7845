"""A small scene written by hand: what the player's own tests play, so that they need no real view."""

from __future__ import annotations

from dataclasses import replace

from autodiff_widgets.scene import Change, Frame, Pane, Scene
from autodiff_widgets.view import View

PLACES = {"n1": ("a", 20, 16), "n2": ("b", 190, 16), "n3": ("mul", 105, 116), "n4": ("tanh", 105, 216)}
EDGES = {"n1>n3.0": ("n1", "n3"), "n2>n3.1": ("n2", "n3"), "n3>n4.0": ("n3", "n4")}
VALUES = {"n1": "2.0", "n2": "−0.5", "n3": "−1.0", "n4": "−0.7616"}


def _node(key: str) -> str:
    name, x, y = PLACES[key]
    kind = "input" if key in ("n1", "n2") else "op"
    return (
        f'<g class="node forward {kind}" data-op="{key}">'
        f'<rect x="{x}" y="{y}" width="120" height="52" rx="{20 if kind == "input" else 6}"/>'
        f'<text class="label" x="{x + 60}" y="{y + 22}" text-anchor="middle">{name}</text>'
        f'<text class="value" data-slot="value" x="{x + 60}" y="{y + 42}" text-anchor="middle"></text></g>'
    )


def _edge(key: str) -> str:
    (_, x1, y1), (_, x2, y2) = (PLACES[end] for end in EDGES[key])
    return (
        f'<path class="edge" data-op="{key}" marker-end="url(#tip)" '
        f'd="M{x1 + 60} {y1 + 52}C{x1 + 60} {y1 + 76} {x2 + 60} {y2 - 30} {x2 + 60} {y2 - 4}"/>'
    )


GRAPH = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="330" height="290" viewBox="0 0 330 290"><defs>'
    '<marker id="tip" markerUnits="userSpaceOnUse" markerWidth="12" markerHeight="12" refX="9" refY="6" orient="auto">'
    '<path d="M0 0L12 6L0 12z"/></marker></defs>' + "".join(map(_edge, EDGES)) + "".join(map(_node, PLACES)) + "</svg>"
)

ORDER = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="180" height="200" viewBox="0 0 180 200">'
    + "".join(
        f'<g class="row" data-op="{key}"><rect x="4" y="{6 + 46 * place}" width="170" height="38" rx="4"/>'
        f'<text class="label" x="16" y="{31 + 46 * place}">{place + 1}. {PLACES[key][0]}</text></g>'
        for place, key in enumerate(PLACES)
    )
    + "</svg>"
)


def scene(title: str = "tanh(a · b), step by step") -> Scene:
    """Four nodes that run one after the other: six frames, two panes, facts for nodes only."""
    frames = [Frame("Nothing has run yet. Each op waits for its inputs.", tuple(Change(k, "waiting") for k in PLACES))]
    for key, (name, _, _) in PLACES.items():
        incoming = [edge for edge, (_, end) in EDGES.items() if end == key]
        changes = [Change(k, "done") for k in PLACES if k < key]
        changes += [Change(edge, "active") for edge in incoming]
        changes += [Change(edge, "done") for edge, (_, end) in EDGES.items() if end < key]
        changes.append(Change(key, "active", {"value": VALUES[key]}))
        frames.append(Frame(f"{name} runs and gives {VALUES[key]}.", tuple(changes), key, f"y = tanh(a * b)  # {name}"))
    frames.append(Frame("Every op has run once.", (Change("n4", "done"), Change("n3>n4.0", "done"))))
    facts = {
        key: (("op", name), ("shape", "()"), ("dtype", "float64"), ("value", VALUES[key]))
        for key, (name, _, _) in PLACES.items()
    }
    legend = (
        ("waiting", "waits for an input"),
        ("active", "runs now"),
        ("done", "has run"),
        ("edge saved", "saved value"),
    )
    return Scene(title, (Pane(GRAPH, "Graph"), Pane(ORDER, "Order")), tuple(frames), facts, legend)


class NestedView(View):
    """The small scene, in which mul and tanh open: each holds the small scene again, and so on without end."""

    def __init__(self) -> None:
        super().__init__(_nested("outermost"))

    def inside(self, key: str) -> Scene:
        return _nested(f"inside {PLACES[key][0]}")


def _nested(title: str) -> Scene:
    sources = {"n3": ("n1", "n2"), "n4": ("n3",)}
    return replace(scene(title), sources=sources, notes={"n4": "`tanh` of −1.0 is −0.7616"}, opens=("n3", "n4"))
