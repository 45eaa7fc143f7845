"""Live views: what runs is drawn while it runs, the steps are there afterwards, errors go on, and nothing is left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from time import monotonic, sleep
from typing import Any

import autodiff_widgets as aw
import numpy as np
import pytest
from autodiff_widgets.live_view import MOST
from IPython.core.interactiveshell import InteractiveShell

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.playback import outlined


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name == "live view"] == []
    assert ad.events.receiver() is None


def until(condition: Callable[[], Any]) -> None:
    """Wait for what another thread does."""
    end = monotonic() + 20
    while not condition():
        assert monotonic() < end, "it never happened"
        sleep(0.01)


def captions(view: Any) -> list[str]:
    return [frame.caption for frame in view.frames]


def test_the_graph_is_drawn_while_the_code_runs_and_grows() -> None:
    x = ad.tensor([1.0, 2.0], requires_grad=True, name="x")
    with aw.live() as view:
        h = x * 3.0
        until(lambda: "Running: 1 op call" in view.frames[0].caption)
        before = len(view.scene.facts)
        ops.tanh(h)
        until(lambda: "Running: 2 op calls" in view.frames[0].caption)
        assert len(view.scene.facts) == before + 1 == 4
        assert view.frames[0].source is not None and "ops.tanh(h)" in view.frames[0].source
    assert captions(view)[-1] == "The run is over: 2 op calls."


def test_afterwards_every_call_and_every_contribution_is_a_step() -> None:
    x = ad.tensor(3.0, requires_grad=True, name="x")
    with aw.live() as view:
        y = x * x
        y.backward()
        y.backward()
    said = captions(view)
    assert said[1] == "Forward: `y` = mul(`x`, `x`) = 9."
    assert sum("contribution 2 of 2; the sum is now 6" in caption for caption in said) == 2, "each sweep counts its own"
    assert said[-1] == "The run is over: 1 op call and 2 backward sweeps."
    assert view.frame == len(said) - 1 and len(view.events) > 10


def test_a_refused_call_is_marked_and_its_error_reaches_the_student() -> None:
    x, w = (ad.tensor(np.ones(shape), requires_grad=True) for shape in ((2, 3), (4, 5)))
    with pytest.raises(ad.OpError), aw.live() as view:
        h = ops.tanh(x)
        h @ w
    last = view.frames[-1]
    states = view.scene.states_at(len(view.frames) - 1)
    assert [states[key] for key in states if ">" not in key].count("wrong") == 1 and states[last.focus or ""] == "wrong"
    assert "OpError: matmul(x: (2, 3) float64, y: (4, 5) float64)" in last.caption
    assert last.source is not None and last.source.endswith("h @ w")
    assert ("error", str(view.events[-1].reason)) in view.scene.facts[last.focus or ""]  # type: ignore[union-attr]


def test_a_gradient_rule_that_fails_is_marked() -> None:
    @ad.op(elementwise=True)
    def fails_backwards(xp: Any, x: Any) -> Any:
        return x * 2.0

    @fails_backwards.vjp
    def fails_backwards_vjp(g: Any) -> Any:
        raise ZeroDivisionError("no gradient today")

    x = ad.tensor(1.0, requires_grad=True)
    with pytest.raises(ZeroDivisionError), aw.live() as view:
        y = fails_backwards(x)
        (y * 3.0).backward()
    focus = view.frames[-1].focus
    assert focus is not None and dict(view.scene.facts[focus])["op"] == "fails_backwards(x)"
    assert view.scene.states_at(len(view.frames) - 1)[focus] == "wrong"


@pytest.mark.parametrize("inside_an_op", [False, True])
def test_a_run_that_is_stopped_shows_how_far_it_came(inside_an_op: bool) -> None:
    @ad.op(elementwise=True)
    def never_ends(xp: Any, x: Any) -> Any:
        raise KeyboardInterrupt

    x = ad.tensor(1.0, requires_grad=True)
    with pytest.raises(KeyboardInterrupt), aw.live() as view:
        y = x * 2.0
        if not inside_an_op:
            raise KeyboardInterrupt
        never_ends(y)
    assert "with KeyboardInterrupt: it was stopped." in captions(view)[-1]
    assert ("wrong" in view.scene.states_at(len(view.frames) - 1).values()) is inside_an_op


def test_a_long_run_keeps_its_first_events_and_says_how_many_more_there_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(aw.LiveView._hear.__globals__, "MOST", 20)
    x = ad.tensor(1.0, requires_grad=True)
    with aw.live() as view:
        for _ in range(50):
            x = x * 1.5
    assert len(view.events) == 20 < MOST
    assert captions(view)[-1] == "The run is over: 20 op calls and 30 events more that are not shown."


def test_large_arrays_are_not_kept_and_small_ones_are_as_they_were() -> None:
    large, small = ad.tensor(np.ones((200, 200)), requires_grad=True), np.ones(3)
    with ad.listen() as told:
        y = large * 2.0
        ad.tensor(small, requires_grad=True) * small
    kept = [outlined(event) for event in told]
    assert kept[0].value.shape == y.shape and not hasattr(kept[0].value, "nbytes")
    small += 5.0
    assert kept[1].operands[1].tolist() == [1.0, 1.0, 1.0]


def test_nothing_on_a_device_is_read_and_the_host_does_not_wait() -> None:
    with aw.live() as view:
        x = ad.tensor(np.ones(4), device="sim:0", requires_grad=True, name="x")
        with ad.listen() as told:
            pass
        ops.tanh(x * 2.0)
    assert not any(isinstance(event, ad.events.Synchronised) for event in (*told, *view.events))
    assert "(4,)" in captions(view)[-2]


def test_a_recorded_graph_is_the_same_while_a_live_view_listens() -> None:
    def f(x: Any) -> Any:
        return ops.tanh(x * x).sum()

    alone = ad.record(ad.value_and_grad(f), np.ones(3))
    with aw.live():
        assert ad.record(ad.value_and_grad(f), np.ones(3)) == alone


# ---------------------------------------------------------------------------------------------------------- aw.watch()


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    """An IPython of its own."""
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_cell("import autodiff_lab as ad, autodiff_widgets as aw")
    yield shell
    shell.run_cell("aw.watch(False)")
    InteractiveShell.clear_instance()


def handlers(shell: InteractiveShell) -> list[int]:
    return [len(shell.events.callbacks[name]) for name in ("pre_run_cell", "post_run_cell")]


def test_after_each_cell_the_view_shows_what_the_cell_recorded(shell: InteractiveShell) -> None:
    shell.run_cell("view = aw.watch()")
    view = shell.user_ns["view"]
    shell.run_cell("x = ad.tensor(2.0, requires_grad=True)\ny = x * x")
    assert captions(view)[1:] == ["Forward: `y` = mul(`x`, `x`) = 4.", "The run is over: 1 op call."]
    shell.run_cell("1 + 1")
    assert captions(view)[-1] == "The run is over: 1 op call.", "a cell without Tensors leaves the picture"
    shell.run_cell("y.backward()")
    assert "The gradient of the input `x` is complete: 4." in captions(view), "through calls of an earlier cell"
    shell.run_cell("x @ x")
    assert "The run ended in `line 1: x @ x` with OpError" in captions(view)[-1]
    shell.run_cell("import asyncio\nawait asyncio.sleep(0)\nz = x * 7.0")
    assert captions(view)[1] == "Forward: `z` = mul(`x`, a constant) = 14."


def test_calling_watch_again_replaces_its_handlers_and_false_ends_it(shell: InteractiveShell) -> None:
    before = handlers(shell)
    for _ in range(3):
        shell.run_cell("view = aw.watch()")
        assert handlers(shell) == [count + 1 for count in before]
    first = shell.user_ns["view"]
    shell.run_cell("view = aw.watch()")
    shell.run_cell("y = ad.tensor(2.0, requires_grad=True) * 3.0")
    assert len(first.frames) == 1, "the view before hears no more"
    assert len(shell.user_ns["view"].frames) == 3
    shell.run_cell("aw.watch(False)")
    assert handlers(shell) == before
