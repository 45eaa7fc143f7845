"""The workbench: what is typed is what runs, a mistake leaves the last picture, and its settings are code again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from time import monotonic, sleep
from typing import Any

import autodiff_widgets as aw
import pytest
from autodiff_widgets.latest import Latest
from autodiff_widgets.programs import CodeError, Stopped, program_of, value_of, within
from autodiff_widgets.runs import VIEWS
from autodiff_widgets.settings import SHOWN_FAULTS

import autodiff_lab as ad


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    end = monotonic() + 10
    while any(thread.name == "latest job" for thread in threading.enumerate()):
        assert monotonic() < end, "a thread is left"
        sleep(0.01)


@pytest.fixture
def bench() -> aw.Workbench:
    return aw.Workbench("x * w + b", {"x": 2.0})


def change(bench: aw.Workbench, **changes: Any) -> list[str]:
    """Change settings, wait, and give the titles of both views."""
    bench.settings = replace(bench.settings, **changes)
    assert bench.wait(60)
    return [view.scene.title for view in bench.views]


def test_every_view_can_be_shown_and_all_know_the_same_nodes(bench: aw.Workbench) -> None:
    change(bench, code="h = x * w\ntanh(h) + b")
    mul = next(key for key, rows in bench.views[0].scene.facts.items() if ("name", "h") in rows)
    for name in VIEWS.keys() - {"Memory"}:  # which shows bytes, and no node
        change(bench, views=("Graph", name))
        assert bench.message.startswith("Result: 1.99999"), bench.message
        keys = bench.views[1].scene.facts
        mul = next(key for key, rows in bench.views[0].scene.facts.items() if ("name", "h") in rows)
        assert any(key == mul or key.startswith(f"{mul}~") for key in keys), f"{name} has no {mul}"


def test_values_device_policy_and_seed_reach_the_run(bench: aw.Workbench) -> None:
    change(bench, values={"x": "5", "w": "[1, 2]", "b": "0.5"})
    assert bench.message.startswith("Result: [5.5, 10.5]. The sum of the result")
    change(bench, code="x * w", values={"x": "rng.normal()", "w": "1.0"}, seed=3)
    third = bench.message
    change(bench, seed=4)
    assert bench.message != third
    change(bench, seed=3)
    assert bench.message == third
    change(bench, device="sim:0")
    assert any(("device", "sim:0 (simulated)") in rows for rows in bench.views[0].scene.facts.values())
    titles = change(bench, policy="critical_path", workers=3, views=("Timeline", "Ready queue"))
    assert all("critical_path" in title for title in titles)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x * w +", "Line 1, at 'x * w +': invalid syntax."),
        ("h = x * w\nh @ h", "Line 2: matmul(x: () float64, y: () float64)"),
        ("h = x * w\nh.size / 0", "Line 2: ZeroDivisionError: division by zero."),
        ("h = x * w", "Line 1: the last line gives no result."),
        ("x.item()", "The result is of type float, not a Tensor"),
        ("", "There is no code yet."),
        ("1.0 + 2.0", "There is no input"),
    ],
)
def test_code_that_cannot_run_leaves_the_picture_and_says_what_is_wrong(
    bench: aw.Workbench, code: str, said: str
) -> None:
    scenes = [view.scene for view in bench.views]
    change(bench, code=code)
    assert said in bench.message and "The picture is that of the last code that ran." in bench.message
    assert [view.scene for view in bench.views] == scenes
    change(bench, code="x + w")
    assert bench.message.startswith("Result: 5.")


def test_a_value_that_is_none_is_refused_with_what_to_write(bench: aw.Workbench) -> None:
    change(bench, values={"x": "two", "w": "3.0", "b": "1.0"})
    assert "x: 'two' has no value (NameError" in bench.message and "rng.normal" in bench.message
    with pytest.raises(CodeError, match="no array of numbers"):
        value_of("'text'", "x", 0)


def test_a_fault_is_switched_on_for_the_run_alone_and_named(bench: aw.Workbench) -> None:
    change(bench, fault=("lost_sign", "mul", "x"))
    assert "`x` -3" in bench.message and "mul_vjp_x is wrong" in bench.message
    assert float(ad.grad(lambda x: x * 3.0)(2.0)) == 3.0, "nobody else has the fault"
    assert bench.settings.fault == ("lost_sign", "mul", "x")
    for name in SHOWN_FAULTS:
        change(bench, fault=(name,))
        assert bench.settings.fault[0] == name
        assert bench.message.startswith("Result: "), f"{name}: {bench.message}"
    change(bench, fault=())
    assert "`x` 3" in bench.message


def test_what_it_is_set_to_is_code_that_makes_it_again(bench: aw.Workbench) -> None:
    change(
        bench, code="def f(x, w=0.5):\n    return tanh(x * w)", values={"x": "1.5"}, workers=4, seed=2, device="sim:0"
    )
    change(bench, fault=("missing_factor", "tanh", "x"), views=("Plan", "Fusion"), policy="fifo")
    again = eval(bench.as_code(), {"aw": aw})
    assert again.settings == bench.settings and again.as_code() == bench.as_code()
    assert again.message == bench.message


def test_no_step_shows_a_line_that_the_learner_has_not_written(bench: aw.Workbench) -> None:
    lines = [frame.source for view in bench.views for frame in view.frames if frame.source]
    assert lines and not [line for line in lines if ".py" in line]


def test_a_step_and_a_selection_stay_when_a_value_changes(bench: aw.Workbench) -> None:
    graph, flow = bench.views
    flow.frame = 6
    graph.selected = next(key for key, rows in graph.scene.facts.items() if ("name", "w") in rows)
    change(bench, values={"x": "7.0", "w": "3.0", "b": "1.0"})
    assert flow.frame == 6
    assert ("name", "w") in graph.scene.facts[graph.selected or ""]


def test_a_loop_that_never_ends_is_stopped_by_a_newer_change_or_by_the_button(bench: aw.Workbench) -> None:
    bench.settings = replace(bench.settings, code="while True:\n    x = x * 1.0\nx")
    sleep(0.5)
    change(bench, code="x * 2.0")
    assert bench.message.startswith("Result: 4.")
    bench.settings = replace(bench.settings, code="while True:\n    pass\nx")
    sleep(0.5)
    bench.controls.stop.click()
    assert bench.wait(20)
    assert bench.message.startswith("Stopped at line 1.") or bench.message.startswith("Stopped at line 2.")


def test_a_call_that_takes_too_long_is_stopped_at_its_own_line_even_inside_try() -> None:
    program = program_of(
        "def f(x):\n    try:\n        while True:\n            pass\n    except Exception:\n        return x"
    )
    with pytest.raises(Stopped, match=r"Line [34] still ran after 0\.1 s"):
        within(program, 0.1, Event())(1.0)


def test_a_box_appears_for_each_new_name_and_keeps_what_was_typed_before(bench: aw.Workbench) -> None:
    change(bench, values={"x": "9.0", "w": "3.0", "b": "1.0"})
    change(bench, code="x * scale")
    assert [box.description for box in bench.controls.values.children] == ["x =", "scale ="]
    change(bench, code="x * w + b")
    assert [box.value for box in bench.controls.values.children] == ["9.0", "3.0", "1.0"]


def test_every_control_has_a_label() -> None:
    controls = aw.Workbench("x * x").controls
    fields = [controls.code, controls.policy, controls.workers, controls.device, controls.seed, controls.fault]
    fields += [controls.where, controls.left, controls.right, controls.stop, *controls.values.children]
    assert all(field.description for field in fields)


def test_the_latest_job_wins_and_one_that_is_stuck_is_left_to_itself() -> None:
    done: list[str] = []
    latest, go_on, began = Latest(pause=0.02, patience=0.2), Event(), Event()

    def stuck() -> None:
        began.set()
        go_on.wait(30)
        done.append("stuck")

    latest.ask(stuck)
    assert began.wait(10)
    sleep(0.3)
    for name in ("old", "new"):
        latest.ask(lambda name=name: done.append(name))  # type: ignore[misc]
    assert latest.wait(10) and done == ["new"]
    go_on.set()
