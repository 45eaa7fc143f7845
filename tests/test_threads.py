"""Widgets are answered in a thread of their own while a cell runs: neither may see, or disturb, what the other does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from threading import Barrier, Event, Thread
from typing import Any

import autodiff_widgets as aw
import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import faults, ops
from tests.drawn_graphs import joint, mlp_arguments, mlp_loss

THREADS = 4


@pytest.fixture(autouse=True)
def hasty_threads() -> Iterator[None]:
    """Let threads take turns every few instructions, so that what can meet does meet."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*jobs: Callable[[], Any]) -> list[Any]:
    """Start jobs at once, each in a thread, and give their results; an error in one is raised here."""
    barrier = Barrier(len(jobs))
    results: list[Any] = [None] * len(jobs)
    errors: list[BaseException] = []

    def run(place: int, job: Callable[[], Any]) -> None:
        try:
            barrier.wait(10)
            results[place] = job()
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=run, args=(place, job), daemon=True) for place, job in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]
    return results


def new_op(name: str) -> Any:
    """An op that nobody has called: its binding has no code yet."""

    def kernel(xp: Any, x: Any, y: Any) -> Any:
        return x * y

    kernel.__name__ = kernel.__qualname__ = name
    made = ad.op(elementwise=True)(kernel)

    @made.vjp("x")
    def vjp_x(g: Any, y: Any) -> Any:
        return g * y

    @made.vjp("y")
    def vjp_y(g: Any, x: Any) -> Any:
        return g * x

    return made


def test_threads_that_call_a_new_op_first_at_the_same_time_all_get_its_gradient() -> None:
    for number in range(40):
        op = new_op(f"met_{number}")

        def gradient(op: Any = op) -> Any:
            x, y = ad.tensor(3.0, requires_grad=True), ad.tensor(5.0, requires_grad=True)
            op(x, y).backward()
            return x.grad.item(), y.grad.item()

        assert together(*[gradient] * THREADS) == [(5.0, 3.0)] * THREADS
        assert sorted(op.op.saved_names) == ["x", "y"]


def test_the_registry_can_be_read_while_a_cell_registers_ops() -> None:
    registered = Event()

    def register() -> None:
        try:
            for number in range(60):
                new_op(f"read_meanwhile_{number % 7}")
        finally:
            registered.set()

    def read() -> None:
        while not registered.is_set():
            assert {name for name in ad.registry if not name.startswith("read_")} == known
            assert ad.registry["mul"].name == "mul" and "mul" in ad.registry.names()
            assert all(ad.registry.get(name) is not None for name in seen)
            seen.update(name for name in ad.registry if name.startswith("read_"))

    known, seen = set(ad.registry), set()
    together(register, read, read)
    assert len(seen) <= 7


def test_what_two_threads_register_at_the_same_time_is_all_there() -> None:
    def register(place: int) -> None:
        for number in range(25):
            new_op(f"thread_{place}_op_{number}")

    together(*[lambda place=place: register(place) for place in range(THREADS)])  # type: ignore[misc]
    assert all(f"thread_{place}_op_{number}" in ad.registry for place in range(THREADS) for number in range(25))


def test_a_fault_no_grad_and_listening_stay_in_their_thread() -> None:
    def slope() -> float:
        return float(ad.grad(ops.tanh)(0.0))

    def faulty() -> set[float]:
        found = set()
        for _ in range(60):
            with faults.lost_sign("tanh"):
                found.add(slope())
        return found

    def silent() -> set[bool]:
        x = ad.tensor(1.0, requires_grad=True)
        with ad.no_grad():
            return {(x * x).requires_grad for _ in range(200)}

    def heard() -> set[str]:
        x = ad.tensor(1.0, requires_grad=True)
        with ad.listen() as told:
            for _ in range(60):
                x / 3.0
        return {event.op for event in told}  # type: ignore[union-attr]

    def right() -> set[float]:
        return {slope() for _ in range(200)}

    assert together(faulty, silent, heard, right) == [{-1.0}, {False}, {"div"}, {1.0}]
    assert slope() == 1.0


def test_a_click_that_collapses_a_scope_while_a_cell_records_and_trains_disturbs_neither() -> None:
    view = aw.GraphView(joint(mlp_loss, *mlp_arguments()))
    alone, whole = view.graph, view.scene.as_json()
    done = Event()

    def cell() -> tuple[bool, set[float]]:
        try:
            same, gradients = True, set()
            w = ad.tensor(np.full(3, 0.5), requires_grad=True)
            with ad.listen():
                for _ in range(8):
                    same &= joint(mlp_loss, *mlp_arguments()) == alone
                    w.grad = None
                    ops.tanh(w * w).sum().backward()
                    gradients.add(float(w.grad.numpy()[0]))
            return same, gradients
        finally:
            done.set()

    def clicks() -> int:
        count = 0
        while count < 2 or not done.is_set():
            view.set_state({"selected": "scope:layer1"})  # as a message from the browser does
            assert view.collapsed == ("layer1",)
            box = next(key for key in view.scene.facts if key.startswith("scope:layer1#"))
            view.set_state({"selected": box})
            assert view.collapsed == ()
            count += 1
        return count

    (same, gradients), count = together(cell, clicks)
    assert same and len(gradients) == 1 and count > 1
    assert view.scene.as_json() == whole


def test_nothing_that_a_cell_shows_is_lost_while_the_browser_writes_to_the_view() -> None:
    view = aw.GraphView(joint(mlp_loss, *mlp_arguments()))
    whole, small = view.scene, aw.GraphView(view.graph, collapse="layer1").scene
    shown: list[Any] = []
    view.observe(lambda change: shown.append(change["new"]), "scene")

    def cell() -> None:
        for _ in range(200):
            view.scene = small
            view.scene = whole

    def browser() -> None:
        for number in range(400):
            view.set_state({"frame": number % 5, "selected": f"n{number}"})

    together(cell, browser)
    assert shown == [small, whole] * 200
    view.set_state({"frame": 3})
    assert view.frame == 3
