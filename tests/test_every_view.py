"""What is true of every view on every graph: a scene that the browser can play and a text twin that leaves nothing out."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, cast, get_args

import autodiff_widgets as aw
import numpy as np
import pytest
from autodiff_widgets.collapsing import scopes_of
from autodiff_widgets.drawing import LARGEST, SHOWN
from autodiff_widgets.scene import Pane, Scene, State
from autodiff_widgets.view import View

import autodiff_lab as ad
from autodiff_lab import faults, schedule, shape_claims, training
from autodiff_lab.events import StepTrained
from autodiff_lab.graph import Graph, is_topological_order
from tests.drawn_graphs import FUNCTIONS, GRAPHS, HOSTILE, chain, mlp_arguments, mlp_loss, square
from tests.drawn_ops import OPS, dispatch_of_kernels, heard_while, op_for_float32, op_with_creator, typed_op
from tests.drawn_schedules import GRAPH, TIMELINES


def faulty_view() -> View:
    """Gradients through an op whose rule has lost its sign, with what find_faulty_op says about it."""

    @ad.op(elementwise=True)
    def doubled_wrongly(xp: Any, x: Any) -> Any:
        return x * 2.0

    @doubled_wrongly.vjp
    def doubled_wrongly_vjp(g: Any) -> Any:
        return g * -2.0

    @doubled_wrongly.jvp
    def doubled_wrongly_jvp(dx: Any) -> Any:
        return dx * 2.0

    def f(x: Any, w: Any) -> Any:
        return (ad.ops.tanh(doubled_wrongly(x * w)) * x).sum()

    arguments = (np.array([0.5, -0.25]), np.array([1.0, 2.0]))
    return aw.GradientFlowView(f, *arguments, faulty=ad.find_faulty_op(f, arguments))


def drawn_from(view: Callable[[Any], View], name: str) -> View:
    """A view of a timeline."""
    return view(TIMELINES[name]())


def queue_of(name: str) -> View:
    """The ready queue of what a timeline was made of."""
    timeline = TIMELINES[name]()
    return aw.ReadyQueueView(timeline.tasks, timeline.machine, "fifo")


def two_timelines() -> list[schedule.Timeline]:
    """The same tasks by two policies."""
    return [schedule.simulate(schedule.from_graph(GRAPH), 2, policy) for policy in ("critical_path", "serial")]


OF_GRAPHS: dict[str, Callable[[Graph], View]] = {
    "graph": aw.GraphView,
    "graph, collapsed": lambda graph: aw.GraphView(graph, collapse=scopes_of(aw.GraphView(graph).graph)),
    "graph, placed by Graphviz": partial(aw.GraphView, layout="graphviz"),
    "depth first": aw.TopologicalOrderView,
    "kahn": lambda graph: aw.TopologicalOrderView(graph, "kahn"),
    "shapes": aw.ShapeInferenceView,
    "fusion": aw.FusionView,
}
PLANNED = ("mlp", "joint diamond", "joint mlp", "joint residual", "hostile", "one input", "chain of 300")

VIEWS: dict[str, Callable[[], View]] = {
    **{f"{view} of {name}": partial(make, graph) for view, make in OF_GRAPHS.items() for name, graph in GRAPHS.items()},
    **{
        f"gradient flow of {name}": partial(aw.GradientFlowView, f, *arguments)
        for name, (f, arguments) in FUNCTIONS.items()
    },
    **{
        f"gradient flow of {name}, tangents and bytes": partial(
            aw.GradientFlowView, f, *arguments, tangents=True, memory=True
        )
        for name, (f, arguments) in FUNCTIONS.items()
    },
    **{
        f"forward mode of {name}": partial(aw.ForwardModeView, f, *arguments, seed="all" if name == "expression" else 0)
        for name, (f, arguments) in FUNCTIONS.items()
    },
    **{f"plan of {name}": lambda name=name: aw.PlanView(ad.plan(GRAPHS[name])) for name in PLANNED},  # type: ignore[misc]
    "diverging training of mlp": lambda: aw.TrainingView(diverging()),
    "training of runs with hostile names": lambda: aw.TrainingView(
        [StepTrained(name, 1, 1.0, 2.0) for name in HOSTILE[:4]]
    ),
}

VIEWS["gradient flow with a fault"] = faulty_view
VIEWS |= {
    "op matmul": lambda: aw.OpView("matmul", np.array([[0.5, -1.0]]), np.array([[2.0, 0.0], [-0.25, 1.0]])),
    "op max, with equal numbers": lambda: aw.OpView("max", np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]), axis=1),
    "op of a large array": lambda: aw.OpView("softmax", np.linspace(-1.0, 1.0, 1200).reshape(3, 20, 20)),
    "op without a gradient": lambda: aw.OpView("argmax", np.array([1.0, 2.0])),
    "op made of several": lambda: aw.OpView("conv2d", np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2)), padding=1),
}
VIEWS |= {f"timeline of {name}": partial(drawn_from, aw.TimelineView, name) for name in TIMELINES}
VIEWS |= {f"memory of {name}": partial(drawn_from, aw.MemoryView, name) for name in TIMELINES}
VIEWS |= {f"ready queue of {name}": partial(queue_of, name) for name in TIMELINES}
VIEWS["two timelines of mlp"] = lambda: aw.TimelineView(*two_timelines())
VIEWS["two memories of mlp"] = lambda: aw.MemoryView(*two_timelines())
VIEWS["cost of a wrong shape rule"] = lambda: aw.ShapeCostView(
    shape_claims.region((32, 64), (1 << 12, 1 << 14), estimates=True, loops="blocked")
)
VIEWS["race of mlp"] = lambda: aw.ReadyQueueView(GRAPH, 2, race=True)


def lived() -> View:
    """A run with a gradient, as it was heard live."""
    with aw.live() as view:
        x = ad.tensor([0.5, -1.0], requires_grad=True, name="x")
        (ad.ops.tanh(x) * x).sum().backward()
    return view


VIEWS["live run"] = lived


def diverging() -> training.Comparison:
    """A run that learns beside one whose numbers soon are infinite."""
    return training.compare(
        training.mlp_on_digits(steps=6), faults.missing_factor("cross_entropy", "logits", factor=1e-30)
    )


def registered_here(make: Callable[[], View]) -> View:
    """The view of an op that is registered for it alone."""
    with ad.registry.restored():
        return make()


VIEWS |= {
    **{
        f"{view.__name__} of {name}": partial(view, name)
        for view in (aw.RegistrationView, aw.OpCard)
        for name in ("mul", "sum", "concatenate", "equal")
    },
    **{
        f"{view.__name__} of {op.__name__}": partial(registered_here, lambda view=view, op=op: view(op()))  # type: ignore[misc]
        for view in (aw.RegistrationView, aw.OpCard)
        for op in OPS
    },
    "registration that was heard": partial(registered_here, lambda: aw.RegistrationView(heard_while(typed_op))),
    **{
        f"dispatch of mul with {dtypes} on {device}": partial(
            registered_here, partial(dispatch_of_kernels, dtypes=dtypes, device=device)
        )
        for dtypes in ("float32", "int64")
        for device in (None, "cuda:0", "sim:0")
    },
    "dispatch with a kernel creator": partial(registered_here, lambda: aw.DispatchView(op_with_creator())),
    "dispatch that finds nothing": partial(
        registered_here, lambda: aw.DispatchView(op_for_float32(), dtypes="float64")
    ),
}

SVG = "{http://www.w3.org/2000/svg}"

# A short one of each class.
EXAMPLES = (
    "graph of square", "kahn of square", "shapes of square", "fusion of square", "plan of one input", "timeline of a chain",
    "memory of a chain", "ready queue of one task", "gradient flow of square", "forward mode of square", "OpCard of mul",
    "RegistrationView of mul", "dispatch with a kernel creator", "training of runs with hostile names",
    "cost of a wrong shape rule", "op matmul", "live run",
)  # fmt: skip


def test_every_exported_class_of_views_is_among_those_that_are_tested() -> None:
    exported = [getattr(aw, name) for name in aw.__all__]
    views = {kind for kind in exported if isinstance(kind, type) and issubclass(kind, View) and kind is not View}
    tested = {type(VIEWS[name]()).mro()[1] for name in EXAMPLES}  # a widget's own class is made for it, with its traits
    assert tested == views, "add the class to VIEWS, and a short view of it to EXAMPLES"


@pytest.fixture(scope="module", params=VIEWS, ids=str)
def view(request: pytest.FixtureRequest) -> View:
    return VIEWS[request.param]()


@pytest.fixture
def graph(view: View) -> Graph:
    """The graph that a view shows: one without nodes where it shows something else."""
    return getattr(view, "graph", Graph((), (), ()))


def elements(view: View) -> dict[str, list[ET.Element]]:
    """The elements of all panes by key."""
    return drawn(view.scene.panes)


@lru_cache(maxsize=2)  # most tests of a view ask for them
def drawn(panes: tuple[Pane, ...]) -> dict[str, list[ET.Element]]:
    found: dict[str, list[ET.Element]] = {}
    for pane in panes:
        for element in ET.fromstring(pane.svg).iter():
            if "data-op" in element.attrib:
                found.setdefault(element.attrib["data-op"], []).append(element)
    return found


def test_a_scene_survives_json(view: View) -> None:
    scene = view.scene.as_json()
    assert json.loads(json.dumps(scene)) == scene
    json.dumps(scene, ensure_ascii=False).encode()


def test_every_pane_is_an_svg_document_of_a_finite_size_with_known_tags_only(view: View) -> None:
    for pane in view.scene.panes:
        root = ET.fromstring(pane.svg)
        assert root.tag == f"{SVG}svg"
        assert 0 < float(root.attrib["width"]) < 20_000 and 0 < float(root.attrib["height"]) < 60_000
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
            "svg",
            "g",
            "rect",
            "path",
            "text",
            "title",
        }
        assert not [name for element in root.iter() for name in element.attrib if name.lower().startswith("on")]


def test_every_change_names_an_element_of_a_pane_and_a_slot_that_it_has(view: View) -> None:
    known = elements(view)
    slots = {
        (key, text.attrib["data-slot"])
        for key, found in known.items()
        for element in found
        for text in element.iter(f"{SVG}text")
        if "data-slot" in text.attrib
    }
    for frame in view.frames:
        assert frame.focus is None or frame.focus in known
        for change in frame.changes:
            assert change.element in known
            assert change.state is None or change.state in get_args(State)
            assert {(change.element, slot) for slot in change.texts} <= slots


def with_insides(view: View, most: int = 4) -> Iterator[Scene]:
    """A view's scene, with the first scenes inside its elements and inside theirs; where there is none, it says why."""
    yield view.scene
    keys = list(view.scene.opens[:most])
    for key in keys:
        try:
            inside = view.inside(key)
        except (KeyError, ValueError) as refused:
            assert len(str(refused)) > 20
        else:
            yield inside
            keys += inside.opens[:1] if len(keys) < 2 * most else []


def test_what_is_said_about_elements_names_elements_that_are_drawn(view: View) -> None:
    for scene in with_insides(view):
        known = drawn(scene.panes)
        told = {*scene.sources, *(key for keys in scene.sources.values() for key in keys), *scene.notes, *scene.opens}
        hidden = {key for key in told if key not in known}
        assert not hidden or (getattr(view, "collapsed", ()) and hidden <= set(scene.facts))
        assert all(note.strip() for note in scene.notes.values())
        assert {frame.focus for frame in scene.frames} - {None} <= set(known)
        json.dumps(scene.as_json(), ensure_ascii=False).encode()


def test_a_scene_and_its_page_grow_with_what_they_show_and_not_faster(view: View, tmp_path: Path) -> None:
    shown = len(view.frames) + len(view.scene.facts)
    scene = len(json.dumps(view.scene.as_json(), ensure_ascii=False).encode())
    page = view.save_html(tmp_path / "page.html", insides=0).stat().st_size
    assert scene <= 6_000 + 4_000 * shown, "bytes of JSON"
    assert page <= 110_000 + 500 * shown, (
        "bytes of a page, of which the player and its rules are most where little is shown"
    )


def test_no_frame_changes_an_element_twice(view: View) -> None:
    for frame in view.frames:
        keys = [change.element for change in frame.changes]
        assert len(keys) == len(set(keys))


def test_a_key_is_drawn_once_in_a_pane(view: View) -> None:
    for pane in view.scene.panes:
        keys = [
            e.attrib["data-op"] for e in ET.fromstring(pane.svg).iter() if e.attrib.get("class", "").startswith("node")
        ]
        assert len(keys) == len(set(keys))


def test_at_most_one_node_is_active_in_a_frame_and_nothing_at_the_end(view: View, graph: Graph) -> None:
    nodes = {f"n{node.serial}" for node in graph}
    for index in range(0, len(view.frames), 1 + len(view.frames) // 60):
        active = [key for key, state in view.scene.states_at(index).items() if state == "active" and key in nodes]
        assert len(active) <= 1
    assert "active" not in {
        s for key, s in view.scene.states_at(len(view.frames) - 1).items() if not key.startswith("waiting")
    }


def test_the_text_twin_has_every_element_with_facts_and_every_frame(view: View) -> None:
    text = view.text()
    assert all(frame.caption and frame.caption in text for frame in view.frames)
    assert all(f"  {key}: " in text for key in view.scene.facts)


def test_the_text_twin_of_a_graph_has_every_node(view: View, graph: Graph) -> None:
    text = view.text()
    assert all(f"n{node.serial}: " in text for node in graph)


def test_every_element_with_facts_can_be_selected_in_the_picture(view: View) -> None:
    if not getattr(view, "collapsed", ()):
        assert set(view.scene.facts) <= set(elements(view))


def test_every_node_has_a_box_unless_its_scope_is_collapsed(view: View, graph: Graph) -> None:
    drawn = elements(view)
    collapsed = set(getattr(view, "collapsed", ()))
    for node in graph:
        hidden = any(node.scope == scope or node.scope.startswith(scope + ".") for scope in collapsed)
        assert (f"n{node.serial}" in drawn) != hidden


def test_every_use_of_a_value_has_an_edge_unless_it_is_inside_a_collapsed_scope(view: View, graph: Graph) -> None:
    edges = [key for key, found in elements(view).items() if found[0].attrib["class"].startswith("edge")]
    if graph and not getattr(view, "collapsed", ()):
        assert len(edges) == len(set(edges))
        uses = [(i, node.id, place) for node in graph for place, i in enumerate(node.inputs)]
        assert sorted(edges) == sorted(
            f"n{graph.nodes[i].serial}>n{graph.nodes[c].serial}.{place}" for i, c, place in uses
        )


def test_labels_of_a_user_are_shown_as_text_and_never_run() -> None:
    for make in OF_GRAPHS.values():
        view = make(GRAPHS["hostile"])
        titles = [e.text or "" for pane in view.scene.panes for e in ET.fromstring(pane.svg).iter(f"{SVG}title")]
        for name in HOSTILE:
            if name.strip() and name.isprintable():
                assert any(name in title for title in titles), name
                assert name in view.text()


# ------------------------------------------------------------------------------------------------------- single views


def test_the_order_that_a_view_shows_is_the_order_of_the_algorithm() -> None:
    graph = GRAPHS["joint mlp"]
    for algorithm in ("depth_first", "kahn"):
        view = aw.TopologicalOrderView(graph, algorithm)
        numbers = {
            key: int(text)
            for (key, slot), text in view.scene.texts_at(len(view.frames) - 1).items()
            if slot == "number"
        }
        order = sorted(
            (node.id for node in graph if f"n{node.serial}" in numbers),
            key=lambda i: numbers[f"n{graph.nodes[i].serial}"],
        )
        if algorithm == "kahn":
            assert is_topological_order(graph, order)
        assert order == {"depth_first": ad.depth_first_order, "kahn": ad.kahn_order}[algorithm](graph)


def test_gradients_that_are_shown_are_those_of_grad() -> None:
    view = aw.GradientFlowView(lambda x, w: ad.ops.tanh(x * w) * x, 0.5, 3.0)
    expected = ad.grad(lambda x, w: ad.ops.tanh(x * w) * x, argnums=(0, 1))(0.5, 3.0)
    texts = view.scene.texts_at(len(view.frames) - 1)
    for node, value in zip(view.graph.inputs, expected, strict=True):
        assert texts[f"n{view.graph.nodes[node].serial}", "gradient"] == f"grad {float(value):.6g}"


def test_contributions_add_up_step_by_step_at_a_value_used_twice() -> None:
    view = aw.GradientFlowView(square, 3.0)
    x = f"n{view.graph.nodes[0].serial}"
    shown = [view.scene.texts_at(i).get((x, "gradient")) for i in range(len(view.frames))]
    assert list(dict.fromkeys(shown)) == [None, "grad 3 (1 of 2)", "grad 6"]


def test_a_loss_shows_what_the_forward_pass_kept_and_says_what_it_did_not() -> None:
    x = ad.tensor(2.0, requires_grad=True)
    h = x * 3.0
    loss = ad.ops.exp(h + x)
    del h
    view = aw.GradientFlowView(loss)
    svg = view.scene.panes[0].svg
    assert [svg.count(text) for text in ("value not kept", "value 2<", "value 2980.96")] == [2, 1, 1]


def test_the_callers_variables_name_the_nodes_of_a_tensor() -> None:
    weight = ad.tensor(2.0, requires_grad=True)
    product = weight * 3.0
    result = ad.ops.tanh(product)
    for view in (aw.GraphView(result), aw.TopologicalOrderView(result), aw.GradientFlowView(result)):
        assert {"weight", "product", "result"} <= {node.name for node in view.graph}


def test_a_view_of_one_op_has_one_key_in_every_view() -> None:
    x = ad.tensor(2.0, requires_grad=True)
    y = x * x
    assert set(elements(aw.GraphView(y))) & set(elements(aw.GradientFlowView(y))) >= {
        f"n{n.serial}" for n in aw.GraphView(y).graph
    }


def test_a_large_graph_is_cut_with_a_note_and_its_text_twin_is_complete() -> None:
    graph = ad.record(chain(LARGEST + 500), 0.5)
    view = aw.GraphView(graph)
    note = f"Showing the first {SHOWN} of {len(graph)} nodes."
    assert note in view.scene.panes[0].svg and note in view.frames[0].caption
    assert len([key for key in elements(view) if ">" not in key]) == SHOWN
    assert len(view.frames) == len(graph) + 2 and view.text().count("\n") > 2 * len(graph)


def test_selecting_a_scope_collapses_it_and_selecting_its_box_opens_it() -> None:
    view = aw.GraphView(GRAPHS["joint mlp"])
    view.frame = 3
    before = len(elements(view))
    view.selected = "scope:layer1"
    assert view.collapsed == ("layer1",) and view.selected is None and view.frame == 3
    box = next(key for key in view.scene.facts if key.startswith("scope:layer1#"))
    assert len(elements(view)) < before
    view.selected = box
    assert view.collapsed == () and len(elements(view)) == before


@pytest.mark.parametrize(
    "make", [aw.GraphView, aw.TopologicalOrderView, aw.ShapeInferenceView, aw.GradientFlowView, aw.ForwardModeView]
)
@pytest.mark.parametrize(
    "wrong",
    [np.ones((2, 2)), ad.tensor([1.0, 2.0]), square, "x * x", None, 3.0],
    ids=["array", "tensor", "function", "text", "nothing", "number"],
)
def test_a_wrong_argument_is_refused_with_what_was_seen_and_what_to_pass(make: Any, wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=make.__name__) as caught:
        make(wrong)
    seen = {np.ndarray: "ndarray of shape (2, 2)", ad.Tensor: "shape (2,)", type(square): "square"}
    assert seen.get(type(wrong), type(wrong).__name__) in str(caught.value)
    assert any(word in str(caught.value) for word in ("requires_grad=True", "ad.record(", "2.0, 3.0"))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: aw.TopologicalOrderView(GRAPHS["square"], algorithm=cast(Any, "breadth_first")),
            "expected one of 'depth_first', 'kahn'",
        ),
        (lambda: aw.GraphView(GRAPHS["mlp"], collapse="layer9"), "no scope 'layer9'; its scopes are: layer1, layer2"),
        (lambda: aw.GradientFlowView(GRAPHS["square"]), "a Graph has shapes and no values"),
        (lambda: aw.GradientFlowView(square, 2), "write 2.0 instead of 2"),
        (lambda: aw.GradientFlowView(lambda x: 3.0, 2.0), "must return one Tensor, got float 3.0"),
        (lambda: aw.GradientFlowView(lambda x: x * x, np.ones(2)), "not one number"),
        (lambda: aw.GradientFlowView(ad.tensor(1.0, requires_grad=True), 2.0), "pass the Tensor alone"),
    ],
)
def test_what_a_view_cannot_show_is_refused_with_the_reason(call: Callable[[], Any], says: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert says in str(caught.value)


def test_arguments_that_are_not_floating_are_passed_on_as_they_are() -> None:
    view = aw.GradientFlowView(
        lambda x, times, axis: (x["a"] * times).sum(axis=axis), {"a": np.array([1.0, 2.0])}, 3, 0
    )
    assert view.frames[-1].caption == "Done. The gradient is: `x['a']` [3, 3]."


def test_each_step_of_a_function_names_the_line_that_it_belongs_to() -> None:
    view = aw.GradientFlowView(square, 3.0)
    assert all("return x * x" in (frame.source or "") for frame in view.frames[1:-2])


def test_a_cotangent_starts_the_sweep_of_a_result_that_is_not_one_number() -> None:
    view = aw.GradientFlowView(lambda x: x * x, np.array([1.0, 2.0]), cotangent=np.array([1.0, 10.0]))
    assert view.frames[-1].caption == "Done. The gradient is: `x` [2, 40]."


def test_a_scope_that_is_left_and_entered_again_collapses_to_a_box_for_each_time() -> None:
    view = aw.GraphView(GRAPHS["scope entered twice"], collapse=["layer"])
    assert len([key for key in elements(view) if "#" in key and ">" not in key]) == 2


def test_many_layers_collapse_to_a_box_a_layer_and_phase() -> None:
    graph = ad.record(ad.value_and_grad(mlp_loss), *mlp_arguments(12))
    view = aw.GraphView(graph, collapse=[f"layer{i + 1}" for i in range(12)])
    boxes = [key for key in elements(view) if "#" in key and ">" not in key]
    assert len(boxes) == 24
