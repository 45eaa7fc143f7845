"""RegistrationView, OpCard and DispatchView: what they show is what is registered, and what they say of readers happens."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import autodiff_widgets as aw
import numpy as np
import pytest
from autodiff_widgets.registrations import READERS, lacking, part_of, parts_of

import autodiff_lab as ad
from autodiff_lab import events
from tests.drawn_ops import OPS, family, heard_while, op_for_float32, op_with_creator, typed_op, with_kernels

ops = ad.ops

# ------------------------------------------------------------------------------------------------------------ the parts


@pytest.mark.parametrize("name", ad.registry)
def test_a_registration_shows_every_rule_and_kernel_and_no_differentiable_op_lacks_one(name: str) -> None:
    op, view = ad.registry[name], aw.RegistrationView(name)
    parts = parts_of(view.events)
    shown = {(part.kind, part.function) for part in parts.values()}
    rules = {("vjp rule", rule.__name__) for rule in op.vjp_rules.values()}
    rules |= {("jvp rule", rule.__name__) for rule in op.jvp_rules.values()}
    assert shown >= rules | {("kernel", kernel.__name__) for kernel in op.kernels.values()}
    late = {reader.name for reader in READERS if lacking(reader, parts.values())}
    assert late <= (set() if op.is_differentiable else {"backward", "forward mode"})
    assert (view.frames[-1].caption == "Done. Every reader has what it reads.") == (not late)


@pytest.mark.parametrize("register", OPS)
def test_a_step_brings_its_part_and_marks_exactly_its_readers(register: Callable[[], Any]) -> None:
    view = aw.RegistrationView(register())
    before = view.scene.states_at(0)
    assert set(before.values()) == {"waiting"}
    for number, event in enumerate(view.events, 1):
        part = part_of(event)
        assert part is not None
        states = view.scene.states_at(number)
        assert [key for key, state in states.items() if state == "active"] == [part.key]
        assert {key for key, state in states.items() if state == "target"} == {r.key for r in part.readers}
        assert all(reader.name in view.frames[number].caption for reader in part.readers)


def test_an_op_without_gradient_rules_leaves_its_readers_waiting_and_says_so() -> None:
    view = aw.RegistrationView(op_for_float32())
    assert view.frames[-1].caption == "Done. Backward has no vjp rule and forward mode has no jvp rule."
    states = view.scene.states_at(len(view.frames) - 1)
    assert {key for key, state in states.items() if state == "waiting"} == {"reader: backward", "reader: forward mode"}


def test_what_is_heard_while_a_cell_registers_is_shown_and_a_rule_that_comes_later_takes_the_place_of_the_first() -> (
    None
):
    def register() -> Any:
        op = typed_op()

        @op.shape_rule
        def own_shape(x: Any, w: Any) -> Any:
            return np.broadcast_shapes(x, w)

        return ops.scaled(1.0, 2.0)

    view = aw.RegistrationView(heard_while(register))
    shown = [view.scene.texts_at(i).get(("scaled: shape rule", "function")) for i in range(len(view.frames))]
    assert list(dict.fromkeys(shown)) == [None, "broadcast_shape", "own_shape"]


def test_a_cell_that_runs_again_is_told_to_replace_the_op(capsys: pytest.CaptureFixture[str]) -> None:
    typed_op()
    captions = [frame.caption for frame in aw.RegistrationView(heard_while(typed_op)).frames]
    assert any("was defined before" in caption for caption in captions)


def test_a_card_has_types_lines_and_the_kernels_of_each_device_and_dtype() -> None:
    card = aw.OpCard(with_kernels())
    facts = {key: dict(rows) for key, rows in card.scene.facts.items()}
    kernels = {key.removeprefix("product: kernel ") for key in facts if "kernel" in key}
    assert kernels == {"any, any", "cpu, float32", "any, float32", "cuda, any", "cpu, float64"}
    assert all("drawn_ops.py:" in facts[f"product: kernel {key}"]["written in"] for key in kernels)
    card = aw.OpCard(typed_op())
    assert "x: float, w: float, alpha = 1.0 → y: float" in card.scene.panes[0].svg
    assert "read by backward" in card.scene.panes[0].svg


def test_every_op_of_a_definition_with_several_outputs_is_shown() -> None:
    names = {"spread.low.with_b", "spread.low.without_b", "spread.high.with_b", "spread.high.without_b"}
    assert {part.op for part in parts_of(aw.OpCard(family()).events).values()} == names
    assert aw.OpCard("spread.low.with_b").scene.title == "Op spread.low.with_b"


# ---------------------------------------------------------------------------------------------------------- the readers


def counted_op() -> tuple[Any, list[str]]:
    """An op whose kernel and rules note the kind of part that was called."""
    called: list[str] = []

    @ad.op
    def noted(xp: Any, x: Any) -> Any:
        called.append("kernel")
        return 2.0 * x

    @noted.shape_rule
    def noted_shape(x: Any) -> Any:
        called.append("shape rule")
        return x

    @noted.dtype_rule
    def noted_dtype(x: Any) -> Any:
        called.append("dtype rule")
        return x

    @noted.vjp
    def noted_vjp(g: Any) -> Any:
        called.append("vjp rule")
        return 2.0 * g

    @noted.jvp
    def noted_jvp(dx: Any) -> Any:
        called.append("jvp rule")
        return 2.0 * dx

    return noted, called


ACTS: dict[str, Callable[[Any], Any]] = {
    "a call": lambda op: op(np.ones(3)),
    "recording a graph": lambda op: ad.record(op, np.ones(3)),
    "backward": lambda op: ad.vjp(op, np.ones(3))[1](np.ones(3)),
    "forward mode": lambda op: ad.jvp(op, (np.ones(3),), (np.ones(3),)),
}


@pytest.mark.parametrize("reader", ACTS)
def test_a_reader_calls_what_the_view_says_that_it_reads(reader: str) -> None:
    op, called = counted_op()
    ACTS[reader](op)
    ran = {"kernel"} if reader in ("backward", "forward mode") else set()  # the value is computed on the way
    (reads,) = (one.reads for one in READERS if one.name == reader)
    assert set(called) == set(reads) | ran


# ------------------------------------------------------------------------------------------------------------- dispatch

KEYS = (("cpu", "float32"), ("cpu", None), ("any", "float32"), ("cuda", None), ("sim", None))


@pytest.mark.parametrize("chosen", [chosen for n in range(6) for chosen in itertools.combinations(KEYS, n)])
def test_the_kernel_that_is_shown_as_taken_is_the_one_that_a_call_runs(chosen: tuple[Any, ...]) -> None:
    @ad.op(elementwise=True)
    def one(xp: Any, x: Any) -> Any:
        return x

    for device, dtype in chosen:
        one.kernel(device, dtype)(eval(f"lambda xp, x: x + {KEYS.index((device, dtype)) + 1}"))
    for dtype in ("float32", "float64"):
        view = aw.DispatchView(one, np.zeros(1, dtype))
        states = view.scene.states_at(len(view.frames) - 1)
        (taken,) = (key for key, state in states.items() if state == "done" and key.startswith("one: kernel"))
        device, _, kind = taken.removeprefix("one: kernel ").partition(", ")
        key = device, None if kind == "any" else kind
        assert int(one(np.zeros(1, dtype))[0]) == (KEYS.index(key) + 1 if key in KEYS else 0)
        shown = view.scene.texts_at(len(view.frames) - 1)
        assert [text for (_, slot), text in shown.items() if slot == "why"].count("taken") == 1


def test_each_kernel_that_was_not_taken_has_its_reason() -> None:
    view = aw.DispatchView(with_kernels(), dtypes="float32")
    texts = view.scene.texts_at(len(view.frames) - 1)
    assert {key.removeprefix("product: kernel "): text for (key, slot), text in texts.items() if slot == "why"} == {
        "any, any": "a more special one came first",
        "cpu, float32": "taken",
        "any, float32": "a more special one came first",
        "cuda, any": "for cuda, not for cpu",
        "cpu, float64": "for float64, not for float32",
    }


def test_a_search_that_finds_nothing_says_that_the_call_raises() -> None:
    op = op_for_float32()
    view = aw.DispatchView(op, np.ones(1))
    assert "the call raises an error" in view.frames[-1].caption
    with pytest.raises(ad.OpError):
        op(np.ones(1))


def test_a_kernel_is_made_once_and_then_found_again() -> None:
    op = op_with_creator()
    captions = [" ".join(frame.caption for frame in aw.DispatchView(op).frames) for _ in range(2)]
    assert "makes the kernel" in captions[0] and "has made the kernel before" in captions[1]


def test_without_operands_the_declared_dtypes_are_looked_for() -> None:
    op = op_with_creator()
    (first,) = (event for event in aw.DispatchView(op).events[:1] if isinstance(event, events.KernelConsidered))
    assert first.dtype == "float32"


# ------------------------------------------------------------------------------------------------------ wrong arguments


@pytest.mark.parametrize("make", [aw.RegistrationView, aw.OpCard, aw.DispatchView])
@pytest.mark.parametrize(
    ("wrong", "says"),
    [("mull", "did you mean mul"), (3.0, "got float 3.0"), (np.sin, "pass ops.mul or 'mul'"), (None, "pass ops.mul")],
)
def test_what_is_no_op_is_refused_with_what_to_pass(make: Any, wrong: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=make.__name__) as caught:
        make(wrong)
    assert says in str(caught.value)


def test_events_without_a_registration_several_ops_and_a_wrong_number_of_operands_are_refused() -> None:
    with pytest.raises(ValueError, match=r"no op was registered among 0 events.*ad\.listen"):
        aw.RegistrationView([])
    with pytest.raises(ValueError, match=r"spread is several ops; choose one: spread\.low\.with_b"):
        aw.DispatchView(family())
    with pytest.raises(ValueError, match="mul takes x, y, got 1 operands"):
        aw.DispatchView("mul", np.ones(2))
