"""Questions before steps: every view asks some, the next frame answers them, and there are never too many."""

from __future__ import annotations

import inspect
from typing import Any

import autodiff_widgets as aw
import numpy as np
import pytest
from autodiff_widgets import questions
from autodiff_widgets.captions import gradients, passes, training
from autodiff_widgets.scene import Change, Frame, Question
from autodiff_widgets.view import View

import autodiff_lab as ad
from autodiff_lab.events import StepTrained
from tests.drawn_graphs import GRAPHS
from tests.test_every_view import VIEWS

# by name, as a widget gets a class of its own when it is made
KINDS = {name for name in aw.__all__ if inspect.isclass(kind := getattr(aw, name)) and issubclass(kind, View)}
ASKS_NOTHING = {"View": "shows what it is given", "OpCard": "has one frame, so nothing comes next"}


Asked = dict[str, tuple[str, list[Frame]]]


@pytest.fixture(scope="module")
def asked() -> Asked:
    """For each view its kind, and the frames before which it asks."""
    found: Asked = {}
    for name, make in VIEWS.items():
        view = make()
        assert view.frames[0].question is None
        found[name] = type(view).__name__, [frame for frame in view.frames if frame.question is not None]
    return found


def test_every_kind_of_view_asks_something(asked: Asked) -> None:
    assert {kind for kind, frames in asked.values() if frames} == KINDS - set(ASKS_NOTHING)


def test_no_run_asks_more_than_a_dozen_questions(asked: Asked) -> None:
    assert max(len(frames) for _, frames in asked.values()) == questions.MOST


def test_a_question_has_several_answers_of_which_no_two_look_alike(asked: Asked) -> None:
    for _, frames in asked.values():
        for frame in frames:
            question = frame.question
            assert question is not None and question.text.endswith("?")
            keys, labels = zip(*question.choices, strict=True)
            assert 2 <= len(set(keys)) == len(set(labels)) == len(keys) <= questions.CHOICES
            assert all(label.strip() for label in labels)


def test_the_right_answer_is_what_the_next_frame_shows(asked: Asked) -> None:
    for name, (_, frames) in asked.items():
        for frame in frames:
            assert frame.question is not None
            assert shows(frame, frame.question), (name, frame.question, frame.caption)


def shows(frame: Frame, question: Question) -> bool:
    """Whether a frame shows the right answer: its element changes, or its words are there to read."""
    words = dict(question.choices)[question.right]
    if words in (gradients.STILL, gradients.MOVES):
        return True  # see the test of moving operands
    if words in (passes.YES, passes.NO):
        return ("are joined" in frame.caption) == (words == passes.YES)
    read = " ".join([frame.caption, *(text for change in frame.changes for text in change.texts.values())])
    return question.right in {change.element for change in frame.changes} or words in read or words in training.LOSSES


def test_questions_are_the_same_each_time() -> None:
    graph = GRAPHS["joint mlp"]
    for make in (aw.GraphView, aw.TopologicalOrderView, aw.ShapeInferenceView, aw.FusionView):
        assert make(graph).frames == make(graph).frames


def test_a_product_is_asked_with_its_factors_their_sum_and_the_other_sign() -> None:
    view = aw.GradientFlowView(lambda x, w: x * w, 2.0, 5.0)
    question = next(frame.question for frame in view.frames if "sends 1 × 5 = 5 to `x`" in frame.caption)
    assert question is not None and question.text == "`mul` (node 2) has the gradient 1. What does it send to `x`?"
    assert {name for _, name in question.choices} == {"5", "1", "6", "-5"}


def test_of_many_numbers_it_is_asked_whether_they_move_at_all() -> None:
    view = aw.ForwardModeView(lambda x, w: x @ w, np.ones((9, 9)), np.ones((9, 9)), seed={"x": 1.0})
    asked = {f.question.text: dict(f.question.choices)[f.question.right] for f in view.frames if f.question}
    assert asked == {
        "`matmul` (node 2) gets a part of its tangent from `x`. What is in it?": gradients.MOVES,
        "`matmul` (node 2) gets a part of its tangent from `w`. What is in it?": gradients.STILL,
    }


def test_a_further_contribution_is_asked_as_a_sum_that_a_reader_may_take_for_the_last_one() -> None:
    view = aw.GradientFlowView(lambda x: x * 3.0 + x * 4.0, 2.0)
    question = next(frame.question for frame in view.frames if "contribution 2 of 2" in frame.caption)
    assert question is not None and dict(question.choices)[question.right] == "7"
    assert {name for _, name in question.choices} >= {"3", "4", "12"}


def test_whose_rules_run_next_is_never_asked_between_two_that_both_could() -> None:
    for some in ("expression", "diamond", "mlp", "residual"):
        view: Any = VIEWS[f"gradient flow of {some}"]()
        expected: dict[str, int] = {}
        arrived: dict[str, int] = {}
        serials = {node.serial: f"n{node.serial}" for node in view.graph}
        for event in view.events:
            if isinstance(event, ad.events.ContributionAdded):
                expected[serials[event.into]] = expected.get(serials[event.into], 0) + 1
        for frame, event in zip(view.frames[1:], view.events, strict=False):
            if isinstance(event, ad.events.CotangentComplete) and frame.question is not None:
                others = [key for key, _ in frame.question.choices if key != frame.question.right]
                assert all(arrived.get(key, 0) < expected[key] for key in others)
            if isinstance(event, ad.events.ContributionAdded):
                arrived[serials[event.into]] = arrived.get(serials[event.into], 0) + 1


@pytest.mark.parametrize(
    ("losses", "answers"),
    [((2.0, 1.0, 1.0, 3.0, float("nan"), 1.0), ["It falls.", "It stays the same.", "It rises.", training.LOSSES[3]])],
)
def test_what_becomes_of_a_loss_is_read_off_the_losses(losses: tuple[float, ...], answers: list[str]) -> None:
    view = aw.TrainingView([StepTrained("mine", step, loss, 1.0) for step, loss in enumerate(losses, 1)])
    rights = [dict(f.question.choices)[f.question.right] for f in view.frames if f.question]
    assert rights == answers  # after what is no number nothing can be asked


def test_the_bytes_that_live_are_asked_with_what_a_reader_forgets() -> None:
    tasks = {
        "a": ad.schedule.Task(nbytes=8),
        "b": ad.schedule.Task(after=["a"], nbytes=4),
        "c": ad.schedule.Task(after=["b"], nbytes=1),
    }
    view = aw.MemoryView(ad.schedule.simulate(tasks, 1))
    question = next(frame.question for frame in view.frames if "`a` frees" in frame.caption)
    assert question is not None and dict(question.choices)[question.right] == "5 B"
    assert {name for _, name in question.choices} >= {"13 B", "12 B", "4 B"}


def test_spreading_keeps_a_dozen_from_start_to_end_and_of_both_kinds_that_take_turns() -> None:
    kinds = [Question(text, (("a", "a"), ("b", "b")), "a") for text in ("one?", "two?")]
    frames = [Frame("…", (Change("a"),), question=kinds[number % 2]) for number in range(48)]
    kept = [(number, frame) for number, frame in enumerate(questions.spread(frames)) if frame.question is not None]
    assert len(kept) == questions.MOST and kept[0][0] < 4 and kept[-1][0] >= 44
    assert {frame.question.text for _, frame in kept if frame.question} == {"one?", "two?"}
    assert questions.spread(frames[:5]) == tuple(frames[:5])


def test_numbers_too_long_to_compute_with_are_not_asked() -> None:
    assert questions.of_product("?", np.ones(50), np.ones(50), np.ones(50)) is None
    assert questions.of_sum("?", np.ones(2), np.ones((2, 2)), np.ones((2, 2))) is None
    assert questions.which("?", 1, [1], str, str) is None and questions.in_words("?", "a", ["a"]) is None
