"""Captions: every kind of event has a sentence, and the sentence has the names and the numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, get_args

import autodiff_widgets as aw
import numpy as np
import pytest
from autodiff_widgets.captions import NOT_SHOWN, SENTENCES, Names, Sentence, caption, counted, gradients, listed
from autodiff_widgets.values import bytes_text, value_text
from autodiff_widgets.view import View

import autodiff_lab as ad
from autodiff_lab import events
from tests.drawn_graphs import GRAPHS
from tests.drawn_ops import heard_while, typed_op
from tests.test_every_view import VIEWS, registered_here

NAMES = Names("`{}`".format, lambda node, name: f"`saved {name}`", {2: 2, 1: 1})


def test_every_event_kind_has_a_sentence_and_every_sentence_an_event() -> None:
    records = {kind for kind in vars(events).values() if isinstance(kind, type) and hasattr(kind, "_fields")}
    assert set(get_args(events.Event)) == records == set(SENTENCES) and len(records) > 10


def test_event_records_live_in_one_module() -> None:
    for module in Path(ad.__file__).parent.rglob("*.py"):
        told = re.findall(r"\btell\(\s*([A-Za-z_.]+)\(", module.read_text(encoding="utf-8"))
        assert {name.partition(".")[0] for name in told if name[:1].isupper()} == set(), module
        assert all(hasattr(events, name.removeprefix("events.")) for name in told if name.startswith("events.")), module


def unused(x: Any) -> Any:
    _ = ad.ops.exp(x)
    return x * 2.0


def rank_lost() -> View:
    """The shapes of an op whose rule knows less than its operands' shapes say."""
    op = ad.register_op("Forgetful").input("x: float").output("y: float")
    op.shape_fn(lambda context: None).kernel(lambda xp, x: x, "cpu")
    return aw.ShapeInferenceView(ad.record(ad.ops.Forgetful, np.ones((2, 3))))


def with_loops() -> View:
    """A fusion with the loops that planning chose."""
    graph = GRAPHS["expression"]
    with ad.listen() as heard:
        ad.plan(graph)
    return aw.FusionView(graph, heard)


def failed_run() -> View:
    """A live view of a run that ends with a refused call."""
    x = ad.tensor(np.ones((2, 3)), requires_grad=True)
    with pytest.raises(ad.OpError), aw.live() as view:
        x @ x
    return view


# what says the rest: views of what seldom happens
RARE: tuple[Callable[[], View], ...] = (
    with_loops,
    failed_run,
    partial(registered_here, rank_lost),
    partial(registered_here, lambda: aw.RegistrationView(heard_while(lambda: (typed_op(), typed_op())))),
    lambda: aw.PlanView(ad.plan(ad.record(unused, 2.0))),
    lambda: aw.TrainingView([events.StepTrained("mine", 1, 2.0, 1.0), events.TrainingStopped("mine", 2, "no sum")]),
)


@pytest.fixture(scope="module")
def said() -> Iterator[tuple[set[type], set[str]]]:
    """The kinds of events that all views say, and all that they say."""
    kinds: set[type] = set()

    def watched(kind: type, sentence: Sentence) -> Sentence:
        return lambda event, name: (kinds.add(kind), sentence(event, name))[1]

    with pytest.MonkeyPatch.context() as patch:
        for kind, sentence in list(SENTENCES.items()):
            patch.setitem(SENTENCES, kind, watched(kind, sentence))
        frames = [
            frame
            for name, make in [*VIEWS.items(), *((rare.__doc__ or "", rare) for rare in RARE)]
            for frame in make().frames
            if "hostile" not in name
        ]
    questions = {frame.question.text for frame in frames if frame.question is not None}
    yield kinds, questions | {line for frame in frames for line in frame.caption.split("\n")}


def test_views_say_every_sentence_but_those_that_are_listed_with_the_reason(said: tuple[set[type], set[str]]) -> None:
    assert said[0] == set(SENTENCES) - set(NOT_SHOWN)
    assert all(reason.strip() for reason in NOT_SHOWN.values())


def test_no_sentence_stands_in_a_view() -> None:
    """What a view gives to Steps or to a Frame comes from captions: never a text that ends a sentence there."""
    for module in Path(aw.__file__).parent.glob("*_view.py"):
        for call in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in (
                "Steps",
                "Frame",
                "steps.add",
                "self.steps.add",
            ):
                texts = [part.value for part in ast.walk(call) if isinstance(part, ast.Constant)]
                assert not [
                    text for text in texts if isinstance(text, str) and re.search(r" .*[a-z]{2}[.!?]( |$)", text)
                ], module


def test_captions_and_questions_read_as_english(said: tuple[set[type], set[str]]) -> None:
    for text in said[1]:
        plain = re.sub(r"`[^`]*`|\([^)]*\)|\[.*\]", "#", text)  # what a user named, and numbers of an array
        assert not re.search(r"\b1 (?:nodes|inputs|tasks|steps|ops|values|lanes|kernels|calls)\b", plain), text
        assert "  " not in plain and " ," not in plain and ".." not in plain, text
        assert not text[:1].islower() and text.rstrip()[-1:] in ".?", text


def contribution(
    upstream: Any, local: Any, sent: Any, total: Any, into: int = 2, count: int = 2
) -> events.ContributionAdded:
    return events.ContributionAdded(3, into, "x", "mul_vjp_x", upstream, local, sent, total, count, ("y",))


def pushed(tangent: Any, local: Any, part: Any, total: Any, count: int = 1, direction: int = 0) -> events.TangentPushed:
    return events.TangentPushed(
        3, 1, "mul", "x", "mul_jvp_x", direction, 4.0, tangent, local, part, total, count, count, ("y",)
    )


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (events.NodeEntered(3, None), "The search starts at the output `3`, which goes on the stack."),
        (events.NodeEntered(1, 3), "`3` needs `1` first, which goes on the stack."),
        (events.DependenciesCounted(1, 0), "`1` waits for no input."),
        (events.DependenciesCounted(1, 1), "`1` waits for 1 input."),
        (events.DependencyDone(1, 3, 2), "`1` is done, so `3` still waits for 2 inputs."),
        (events.DependencyDone(1, 3, 0), "`1` is done, so `3` waits for nothing more."),
        (events.NodeDequeued(1, 0), "`1` leaves the head of the queue and is number 1 in the order."),
        (
            events.OpCalled(3, "mul", (1, None), "h", "", None, np.float64(6.0), (2.0, 3.0), {}, {}),
            "Forward: `3` = mul(`1`, a constant) = 6.",
        ),
        (
            pushed(2.0, 5.0, 10.0, 10.0),
            "`3` gets 2 × 5 = 10 from `1` (rule `mul_jvp_x`): this is its whole tangent.",
        ),
        (
            pushed(2.0, 5.0, 10.0, 13.0, count=2),
            "`3` gets 2 × 5 = 10 from `1` (rule `mul_jvp_x`): part 2 of 2; the sum is now 13.",
        ),
        (
            pushed(np.ones(100), np.ones(100), np.ones(100), np.ones(100)),
            "`3` gets tangent × the local derivative = (100,) mean 1, norm 10 from `1` (rule `mul_jvp_x`): "
            "this is its whole tangent.",
        ),
        (
            pushed(2.0, None, 4.0, 4.0, direction=1),
            "`3` gets 4 from `1`, made from its tangent 2 (rule `mul_jvp_x`): direction 2, this is its whole tangent.",
        ),
        (events.TangentSeeded(1, 0, 3.0, (1.0,)), "The input `1` moves: it starts with the tangent 1."),
        (events.TangentSeeded(1, 0, 3.0, (np.zeros(2),)), "The input `1` stands still: its tangent is 0."),
        (
            events.TangentSeeded(1, 0, 3.0, (1.0, 2.0)),
            "The input `1` starts with 2 tangents that travel together.",
        ),
        (events.TangentReached(3, 6.0, (5.0,)), "The result `3` has the value 6 and the tangent 5."),
        (
            events.TangentReached(None, 6.0, (0.0,)),
            "The result 6 does not depend on an input that moves: its tangent is 0.",
        ),
        (
            contribution(3.0, 2.0, 6.0, 9.0),
            "`3` sends 3 × 2 = 6 to `2` (rule `mul_vjp_x`): contribution 2 of 2; the sum is now 9.",
        ),
        (
            contribution(3.0, 2.0, 6.0, 6.0, 1, 1),
            "`3` sends 3 × 2 = 6 to `1` (rule `mul_vjp_x`): nothing else comes there.",
        ),
        (
            contribution(np.ones(2), np.array([1.0, 2.0]), np.array(3.0), np.array(3.0), 1, 1),
            "`3` sends [1, 1] × [1, 2], summed to shape (), = 3 to `1` (rule `mul_vjp_x`): nothing else comes there.",
        ),
        (
            contribution(1.0, None, np.ones(2), np.ones(2), 1, 1),
            "`3` makes [1, 1] from its gradient 1 and sends it to `1` (rule `mul_vjp_x`): nothing else comes there.",
        ),
        (
            contribution(np.ones(100), np.ones(100), np.ones(100), np.ones(100), 1, 1),
            "`3` sends its gradient × the local derivative = (100,) mean 1, norm 10 to `1` (rule `mul_vjp_x`): "
            "nothing else comes there.",
        ),
        (
            events.SchemaRegistered("mul", ("x: T", "y: T"), ("z: T",), ("alpha: float = 1.0",), None),
            "The schema of `mul`: 2 inputs (`x: T` and `y: T`), the output `z: T` and the attribute `alpha: float = 1.0`.",
        ),
        (
            events.OpReplaced("mul", None, None),
            "`mul` was defined before. From now on the name means the new op; graphs from before keep the old one.",
        ),
        (
            events.RuleRegistered("mul", "vjp rule", "x", "mul_vjp_x", ("g", "y"), ("alpha",), False, None),
            "The vjp rule for `x` of `mul`, `mul_vjp_x`, is registered: it reads `g`, `y` and the attribute `alpha`.",
        ),
        (
            events.RuleRegistered("mul", "dtype rule", "", "result_dtype", ("x", "y"), (), True, None),
            "The dtype rule of `mul`, `result_dtype`, comes by itself: it reads `x` and `y`.",
        ),
        (
            events.KernelRegistered("mul", "mul_c", "cpu", "float32", None),
            "The kernel `mul_c` of `mul` is registered for cpu and float32.",
        ),
        (
            events.BindingGenerated("mul", "mul(x, y)", ("x", "y"), "def mul(x, y): …"),
            "The function `mul(x, y)` is written: a call saves `x` and `y` for backward.",
        ),
        (
            events.KernelConsidered("mul", "cpu", "float32", None, False),
            "Dispatch of `mul` looks for a kernel for cpu and float32: there is none.",
        ),
        (
            events.KernelConsidered("mul", "any", "any", "mul", True),
            "Dispatch of `mul` looks for a kernel for any array library and any dtype and takes `mul`.",
        ),
        (
            events.KernelCreated("mul", "create", "cpu", ("float32", "number"), {"alpha": 2.0}, True),
            "The kernel creator `create` of `mul` has made the kernel before, and it is used again, for cpu, float32 and "
            "number, alpha=2.0.",
        ),
        (
            events.SavedValueReleased(3, "y", 8),
            "`3` saved `saved y`, and no later rule of this sweep reads it: 8 B can be freed.",
        ),
    ],
)
def test_a_sentence_has_the_names_and_numbers_of_its_event(event: events.Event, sentence: str) -> None:
    assert caption(event, NAMES) == sentence


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1 / 3, "0.333333"), (7, "7"), (True, "True"), (float("nan"), "nan"), (np.float32(0.1), "0.1"), (1e-300, "1e-300"),
        ([[1.0, 2.0], [3.0, 4.0]], "[[1, 2], [3, 4]]"), (np.zeros((0, 3)), "(0, 3) empty"), (np.arange(4), "[0, 1, 2, 3]"),
        (np.arange(100.0), "(100,) mean 49.5, norm 573"), (np.full((2, 2), 1 / 3), "[[0.3333, 0.3333], [0.3333, 0.3333]]"),
    ],
)  # fmt: skip
def test_numbers_are_written_in_full_and_large_arrays_in_short(value: Any, text: str) -> None:
    assert value_text(value) == text


def test_ends_that_differ_are_called_a_wrong_rule() -> None:
    assert "the same number" in gradients.adjoint_caption(1.0, 1.0 + 1e-6)
    assert "a gradient rule is wrong" in gradients.adjoint_caption(1.0, 1.01)


def test_words_and_bytes_read_as_english() -> None:
    assert [counted(n, "input") for n in (0, 1, 2)] == ["0 inputs", "1 input", "2 inputs"]
    assert [listed(["a", "b", "c"][:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert [bytes_text(n) for n in (8, 9_999, 12_340, 4_200_000, 3 * 10**9)] == [
        "8 B",
        "9999 B",
        "12.3 kB",
        "4.2 MB",
        "3 GB",
    ]
