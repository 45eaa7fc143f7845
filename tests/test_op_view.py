"""One op as cells: its formulas give its numbers, its picture is bounded, and graphs and gradients open into it."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import autodiff_widgets as aw
import numpy as np
import pytest
from autodiff_widgets.cell_arrays import ROOM, CellArray, cell_text
from autodiff_widgets.formulas import Formula, formula
from autodiff_widgets.view import View

import autodiff_lab as ad
from autodiff_lab import ops
from tests.drawn_graphs import HOSTILE
from tests.test_cells import OPS, numbers_of, traces

# What a formula may call, as Python computes it.
MEANINGS: dict[str, Any] = {
    **{name: getattr(np, name) for name in dir(np) if isinstance(getattr(np, name), np.ufunc)},
    "max": lambda *x: np.max(x), "min": lambda *x: np.min(x), "all": lambda *x: np.all(x), "any": lambda *x: np.any(x),
    "abs": abs, "round": np.rint, "erf": math.erf, "erfc": math.erfc, "clip": np.clip,
    "to_device": lambda x: x, "inf": np.inf, "nan": np.nan,
}  # fmt: skip
SIGNS = {"·": "*", "−": "-", "²": "**2", "^": "**", "≥": ">=", "≤": "<=", "≠": "!=", "√": "sqrt", " = ": " == "}
WHOLE = re.compile(r"\)\[[\d, ]*\]$")  # one number of an op as a whole


def computed(text: str, letters: dict[str, float]) -> float:
    """What the arithmetic of a formula gives; square brackets are around what is true or false."""
    for sign, meaning in SIGNS.items():
        text = text.replace(sign, meaning)
    with np.errstate(all="ignore"):
        return float(eval(text.replace("[", "(").replace("]", ")"), {**MEANINGS, **letters}))


def with_values(text: str, leaves: dict[str, float]) -> str:
    """A formula by names with the whole numbers of arrays in place of their names."""
    for name in sorted(leaves, key=len, reverse=True):
        text = re.sub(rf"(?<![\w\]]){re.escape(name)}(?![A-Za-z0-9_\[])", f"({leaves[name]!r})", text)
    return text


def formulas_of(op: Any) -> Iterator[tuple[Any, Formula, Any]]:
    for trace in islice(traces(op, 40), 4):
        for way in trace.ways:
            numbers = numbers_of(trace, way)
            for index in islice(np.ndindex(numbers.shape), 12):
                cell = trace.way(way, index)
                yield cell, formula(cell, numbers[index]), numbers[index]


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_the_arithmetic_of_a_formula_gives_the_number(op: Any) -> None:
    for cell, found, value in formulas_of(op):
        written = found.names + "".join(text for _, text, _ in found.letters)
        if not isinstance(cell, ad.Cell) or "…" in written or WHOLE.search(written):
            continue
        leaves = {
            f"{leaf.array}{list(leaf.index)}" if leaf.index else leaf.array: float(leaf.value) for leaf in cell.leaves
        }
        letters: dict[str, float] = {}
        for letter, text, _ in found.letters:
            letters[letter] = computed(with_values(text, leaves), letters)
        size = 1.0 + sum(abs(one) for one in leaves.values() if math.isfinite(one))
        by_names = computed(with_values(found.names, leaves), letters)
        by_numbers = computed(found.numbers, {})
        for got in (by_names, by_numbers):
            assert got == pytest.approx(float(value), rel=5e-3, abs=1e-3 * size, nan_ok=True), (op.name, found)


def test_a_long_sum_says_how_many_terms_it_leaves_out() -> None:
    view = aw.OpView("sum", np.arange(50.0))
    note = next(note for note in view.scene.notes.values() if note.startswith("out"))
    assert note == ("out = x[0] + x[1] + x[2] + x[3] + … 45 more … + x[49] = 0 + 1 + 2 + 3 + … 45 more … + 49 = 1225")


def test_no_formula_is_longer_than_a_reader_can_take() -> None:
    view = aw.OpView("layer_norm", np.ones((4, 64)) * np.arange(64.0), np.ones(64), np.ones(64))
    assert max(map(len, view.scene.notes.values())) < 1200


def test_a_choice_says_what_decided() -> None:
    view = aw.OpView("relu", np.array([-1.0, 2.0]))
    notes = list(aw.OpView("maximum", np.array([1.0]), np.array([2.0])).scene.notes.values())
    assert "x̄[0] = 0, because x[0] ≤ y[0] and x[0] ≠ y[0]" in notes
    assert "x̄[0] = g[0]·[out[0] > 0] = 1·[0 > 0] = 0" in view.scene.notes.values()


def test_a_truth_value_is_said_as_one_and_a_condition_without_a_comparison_too() -> None:
    assert "out[0] = x[0] > y[0] = 1 > 3 = false" in aw.OpView("greater", [1.0], [3.0]).scene.notes.values()
    notes = aw.OpView("where", [True, False], [1.0, 2.0], [3.0, 4.0]).scene.notes.values()
    assert {"out[0] = x[0] = 1, because condition[0] is true", "x̄[1] = 0, because condition[1] is false"} <= set(notes)


def test_a_change_of_dtype_that_changes_the_number_is_written() -> None:
    notes = aw.OpView("astype", [1.5, 2.0], dtype="int32").scene.notes.values()
    assert set(notes) == {"out[0] = int32(x[0]) = int32(1.5) = 1", "out[1] = x[1] = 2"}


def test_plain_numbers_are_followed_like_arrays() -> None:
    notes = aw.OpView("mul", 2.0, 3.0).scene.notes.values()
    assert {"out = x·y = 2·3 = 6", "x̄ = g·y = 1·3 = 3", "y\u0304 = g·x = 1·2 = 2"} <= set(notes)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "uint8", "bool"])
def test_every_number_fits_into_its_cell(dtype: str) -> None:
    random = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        drawn = (random.normal(size=300) * 10.0 ** random.integers(-300, 300, 300)).astype(dtype)
        small = np.array([0, 1, 1234567, -1234567]).astype(dtype)
    ends = np.array({"float16": [65504, -6e-8], "int64": [2**63 - 1, -(2**63)]}.get(dtype, []), dtype)
    for number in (*drawn, *small, *ends, *np.array([np.nan, np.inf, -np.inf])):
        text = cell_text(number)
        assert len(text) <= ROOM, number
        if np.isfinite(number) and number and dtype != "bool":
            assert float(text.replace("−", "-")) == pytest.approx(float(number), rel=0.5)


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), (0, 3)])
def test_an_array_without_numbers_says_so(shape: tuple[int, ...]) -> None:
    assert CellArray("k", "k", "x", "x", np.zeros(shape)).size_text == f"{shape} float64: no numbers"
    assert ET.fromstring(aw.OpView("relu", np.zeros(shape)).svg()) is not None


def test_numbers_that_are_drawn_at_random_are_not_explained_by_others() -> None:
    with ad.registry.restored():

        @ad.op(elementwise=True)
        def shaken(xp: Any, x: Any) -> Any:
            return x + np.random.default_rng().normal()

        view = aw.OpView(shaken, np.array([1.0]))
    assert list(view.scene.notes.values()) == [
        "out[0]: the op gave another number when it ran again, so it cannot be followed"
    ]


# ------------------------------------------------------------------------------------------------------- the picture


SCENES: dict[str, Callable[[], View]] = {
    "matmul": lambda: aw.OpView("matmul", np.ones((2, 3)), np.ones((3, 4))),
    "layer norm": lambda: aw.OpView("layer_norm", np.ones((3, 4)) * np.arange(4.0), np.ones(4), np.ones(4)),
    "conv2d": lambda: aw.OpView(ops.conv2d, np.ones((1, 2, 4, 4)), np.ones((2, 2, 3, 3)), np.ones(2), padding=1),
    "large matmul": lambda: aw.OpView("matmul", np.ones((64, 100)), np.ones((100, 32))),
    "too large": lambda: aw.OpView("add", np.ones((1000, 1000)), 1.0),
    "no axis": lambda: aw.OpView("sum", np.arange(3.0)),
    "nothing": lambda: aw.OpView("exp", np.zeros((0, 3))),
    "no gradient": lambda: aw.OpView("argmax", np.arange(3.0)),
    "several arrays": lambda: aw.OpView("concatenate", [np.ones(2), np.zeros(1)], axis=0),
    "not finite": lambda: aw.OpView("exp", np.array([np.inf, -np.inf, np.nan])),
}


@pytest.fixture(params=SCENES, ids=str)
def view(request: pytest.FixtureRequest) -> View:
    return SCENES[request.param]()


def drawn(view: View) -> list[str]:
    return [e.attrib["data-op"] for e in ET.fromstring(view.scene.panes[0].svg).iter() if "data-op" in e.attrib]


def test_every_key_is_drawn_once_and_every_source_and_note_is_of_a_drawn_number(view: View) -> None:
    keys = drawn(view)
    assert len(keys) == len(set(keys))
    assert set(view.scene.notes) <= set(keys)
    for key, sources in view.scene.sources.items():
        assert {key, *sources} <= set(keys)


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_every_op_opens_on_its_samples(op: Any) -> None:
    for operands, attributes in op.sample_calls()[:3]:
        view = aw.OpView(op, *([operands] if op.is_variadic else operands), **attributes)
        text, keys = view.text(), set(drawn(view))
        assert (
            set(view.scene.facts) <= keys and {one for all_of in view.scene.sources.values() for one in all_of} <= keys
        )
        assert all(note in text for note in view.scene.notes.values())
        assert len(view.frames) >= 4


def test_a_picture_is_small_however_large_the_arrays_are(view: View) -> None:
    assert len(json.dumps(view.scene.as_json())) < 400_000


def test_the_text_twin_has_every_drawn_number_and_its_formula(view: View) -> None:
    text = view.text()
    assert all(note in text for note in view.scene.notes.values())
    assert all(f"  {key}: " in text for key in drawn(view) if ">" not in key and not key.endswith(":backward"))


def test_the_steps_are_inputs_result_what_is_kept_cotangent_and_gradients() -> None:
    captions = [frame.caption for frame in aw.OpView("mul", np.ones(2), np.ones(2)).frames]
    beginnings = ["`mul` is given", "`mul` runs", "Kept for backward: `x` and `y`, 32 B", "Backward: the cotangent `g` arrives",
                  "The rule `mul_vjp_x` makes", "The rule `mul_vjp_y` makes", "Point at a number"]  # fmt: skip
    assert [c.startswith(b) for c, b in zip(captions, beginnings, strict=True)] == [True] * 7


def test_a_window_of_a_large_array_is_told_in_words() -> None:
    array = CellArray("k", "k", "x", "x", np.zeros((5, 6, 40, 7)))
    assert array.size_text == "(5, 6, 40, 7) float64: 3 of 30 slices, rows 0–5"
    assert max(array.drawn) == (0, 2, 5, 6)


def test_two_op_views_of_one_page_have_keys_of_their_own() -> None:
    one, other = (set(drawn(SCENES["matmul"]())) for _ in range(2))
    assert not one & other


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: aw.OpView("matmul"), "pass the inputs of matmul too: OpView('matmul', …)"),
        (lambda: aw.OpView("matmull", 1.0), "matmul"),
        (lambda: aw.OpView("exp", "x"), "an input of exp is str 'x'; inputs are arrays, Tensors or numbers"),
        (lambda: aw.OpView("matmul", np.ones((2, 3)), np.ones((2, 3))), "the last axis of x has size 3"),
        (lambda: aw.OpView(3.0, 1.0), "expected an op, its name or its function"),
        (lambda: aw.OpView("sum", np.ones(2), axes=0), "axes"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_the_reason(call: Callable[[], Any], says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(says)):
        call()


# ------------------------------------------------------------------------------------------------------ opened from views


def mlp(x: Any, w: Any, b: Any) -> Any:
    h = ops.tanh(x @ w + b)
    return (h * h).sum()


ARGUMENTS = (np.array([[0.5, -1.0, 2.0]]), np.array([[1.0, 0.5], [0.25, -1.0], [0.1, 0.2]]), np.array([0.1, -0.2]))

OPENING: dict[str, Callable[[], View]] = {
    "graph": lambda: aw.GraphView(ad.record(mlp, *ARGUMENTS), inputs=ARGUMENTS),
    "joint graph": lambda: aw.GraphView(ad.record(ad.value_and_grad(mlp), *ARGUMENTS), inputs=ARGUMENTS),
    "order": lambda: aw.TopologicalOrderView(ad.record(mlp, *ARGUMENTS), inputs=ARGUMENTS),
    "gradients": lambda: aw.GradientFlowView(mlp, *ARGUMENTS),
    "gradients of a Tensor": lambda: flow_of_tensors(),
    "forward mode": lambda: aw.ForwardModeView(mlp, *ARGUMENTS),
    "shapes": lambda: aw.ShapeInferenceView(mlp, *ARGUMENTS),
    "fusion": lambda: aw.FusionView(ad.record(mlp, *ARGUMENTS), inputs=ARGUMENTS),
    "explanation": lambda: aw.explain(mlp, *ARGUMENTS).views[0],
}


def flow_of_tensors() -> View:
    """The view of a loss whose inputs are variables here, as in a cell of a notebook."""
    x, w, b = (ad.tensor(one, requires_grad=True) for one in ARGUMENTS)
    return aw.GradientFlowView(mlp(x, w, b))


@pytest.mark.parametrize("name", OPENING)
def test_every_op_of_a_graph_opens(name: str) -> None:
    view = OPENING[name]()
    assert view.scene.opens
    for key in view.scene.opens:
        inner = view.inside(key)
        assert len(inner.frames) >= 4 and key in inner.facts


def test_an_opened_op_has_the_numbers_of_the_run() -> None:
    view = aw.GradientFlowView(mlp, *ARGUMENTS)
    key = view.scene.opens[0]
    inner = view.inside(key)
    gradient = ad.grad(mlp, argnums=1)(*ARGUMENTS)
    shown = {dict(rows)["number"]: dict(rows)["value"] for rows in inner.facts.values() if rows[0][0] == "number"}
    for index in np.ndindex(gradient.shape):
        assert float(shown[f"y\u0304[{index[0]}, {index[1]}]"]) == pytest.approx(gradient[index])


def test_the_arrays_of_an_opened_op_bear_the_keys_of_their_nodes_and_its_numbers_keys_of_their_own() -> None:
    view = aw.GradientFlowView(mlp, *ARGUMENTS)
    key = view.scene.opens[0]
    keys = [one for one in view.inside(key).facts if one != key]
    nodes = {f"n{node.serial}" for node in view.graph}
    assert {one.split("~")[0] for one in keys if "~" in one} <= nodes
    assert all(one.startswith(f"{key}:") for one in keys if "~" not in one)
    others = {one for other in view.scene.opens[1:] for one in view.inside(other).facts if ":" in one}
    assert not others & {one for one in keys if ":" in one}


def test_an_array_that_goes_in_twice_is_shown_twice() -> None:
    view = aw.GradientFlowView(lambda x: x * x, 3.0)
    inner = view.inside(view.scene.opens[0])
    assert len([key for key in inner.facts if key.startswith(f"n{view.graph.nodes[0].serial}~")]) == 2


def test_a_graph_without_numbers_says_how_to_give_them() -> None:
    view = aw.GraphView(ad.record(mlp, *ARGUMENTS))
    view.opened = view.scene.opens[0]
    said = view.inner[view.scene.opens[0]]["error"]
    assert "pass them too, GraphView(graph, inputs=[x, w, b])" in said and view.opened is None


def test_inputs_that_do_not_fit_the_graph_are_refused() -> None:
    graph = ad.record(mlp, *ARGUMENTS)
    with pytest.raises(ValueError, match="one value for each input of the graph \\(x, w, b\\), got 1"):
        aw.GraphView(graph, inputs=[1.0])
    with pytest.raises(ValueError, match="`x` was recorded with shape \\(1, 3\\), got \\(2,\\)"):
        aw.GraphView(graph, inputs=[np.ones(2), *ARGUMENTS[1:]])


def test_names_of_a_user_are_shown_in_an_opened_op_as_text() -> None:
    for name in HOSTILE:
        x = ad.tensor([1.0, 2.0], requires_grad=True, name=name)
        view = aw.GradientFlowView(ops.exp(x).sum())
        inner = view.inside(view.scene.opens[0])
        for pane in inner.panes:
            tags = {element.tag.rpartition("}")[2] for element in ET.fromstring(pane.svg).iter()}
            assert tags <= {"svg", "g", "rect", "path", "text", "title"}
        json.dumps(inner.as_json(), ensure_ascii=False).encode()


def test_a_value_on_the_simulated_device_can_be_opened() -> None:
    x = ad.tensor([1.0, 2.0], device="sim:0", requires_grad=True, name="x")
    view = aw.GradientFlowView(ops.exp(x).sum())
    assert any("exp(1)" in note for note in view.inside(view.scene.opens[0]).notes.values())
