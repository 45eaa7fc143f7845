"""Listening: who hears what, and that nobody else is touched."""

from __future__ import annotations

import pytest

import autodiff_lab as ad


def test_listening_changes_no_number_and_ends_with_its_block() -> None:
    def run() -> tuple[float, float]:
        x = ad.tensor(0.3, requires_grad=True)
        y = ad.ops.tanh(x * x) * x
        y.backward()
        assert x.grad is not None
        return y.item(), x.grad.item()

    quiet = run()
    with ad.listen() as told:
        heard = run()
    count = len(told)
    assert heard == quiet and run() == quiet and len(told) == count
    assert {type(event).__name__ for event in told} == {
        "OpCalled", "SweepStarted", "CotangentComplete", "ContributionAdded", "SavedValueReleased", "LeafReached",
    }  # fmt: skip


def test_a_receiver_that_raises_stops_the_run_and_leaves_nothing_behind() -> None:
    def refuse(event: ad.events.Event) -> None:
        raise RuntimeError("stop")

    x = ad.tensor(2.0, requires_grad=True)
    with pytest.raises(RuntimeError, match="stop"), ad.listen(refuse):
        _ = x * x
    assert ad.events.context.get() is None
    (x * x).backward()
    assert x.grad is not None and x.grad.item() == 4.0


def test_name_scopes_nest_while_listening_and_cost_nothing_otherwise() -> None:
    x = ad.tensor(2.0, requires_grad=True)
    with ad.name_scope("outside"):
        assert ad.events.context.get() is None
    with ad.listen() as told, ad.name_scope("block1"), ad.name_scope("attn"):
        x * x
    assert [event.scope for event in told if isinstance(event, ad.events.OpCalled)] == ["block1.attn"]
