"""A framework of one's own as the lab sees it: its record, its rules and its plan, whatever the student's class does."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import autodiff_widgets as aw
import numpy as np
import pytest
from autodiff_exercises import check, yours
from autodiff_exercises.checking import examine
from autodiff_exercises.exercise import LESSON_NAMES
from autodiff_exercises.own_framework import (
    EXERCISES,
    Framework,
    OpRules,
    ProtocolError,
    lab_graph,
    lab_timeline,
    probes,
    protocol,
    recorded,
)
from autodiff_exercises.own_framework import own_frameworks_answers as answers
from autodiff_exercises.own_framework.judging import labs_sweep, plan_fault
from autodiff_exercises.own_framework.node_plans_answers import one_after_the_other, plan_nodes
from autodiff_exercises.own_framework.protocol import record_of
from autodiff_exercises.own_framework.scalar_engines_answers import Engine, scalar_engine
from autodiff_exercises.registry import EXERCISES as EVERY_EXERCISE

import autodiff_lab as ad
from autodiff_lab import schedule

SCALAR = "scalar_engine"


class Value:
    """The least that the protocol asks for."""

    def __init__(self, data: Any, op: str = "", inputs: Any = ()) -> None:
        self.data, self.grad, self.op, self.inputs = data, 0.0, op, inputs

    def backward(self) -> None:
        """Nothing."""


# -------------------------------------------------------------------------------------------------------------- record


def test_a_record_is_the_labs_own() -> None:
    def program(x: Any, y: Any) -> Any:
        return (x * y + 2.0).log() / x - x

    kind = scalar_engine()
    assert record_of(program(kind(3.0), kind(2.0))) == labs_sweep(program, (3.0, 2.0))[2]


def test_a_value_that_is_its_own_input_is_refused_and_nothing_hangs() -> None:
    one = Value(1.0, "add")
    one.inputs = (Value(2.0, "mul", (one,)),)
    with pytest.raises(ProtocolError, match="lead back"):
        recorded(one)


def test_a_record_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MOST_VALUES", 1000)

    class Endless(Value):
        def __getattribute__(self, name: str) -> Any:
            return (Endless(1.0, "exp"),) if name == "inputs" else super().__getattribute__(name)

    with pytest.raises(ProtocolError, match="new ones"):
        recorded(Endless(1.0, "exp"))


@pytest.mark.parametrize("name", ["data", "grad", "op", "inputs"])
def test_what_a_value_lacks_is_named(name: str) -> None:
    one = Value(1.0)
    delattr(one, name)
    with pytest.raises(ProtocolError, match=f"no `{name}`"):
        recorded(Value(2.0, "exp", (one,)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("op", "inputs", "says"), [(None, (), "`op`"), ("add", [1.0], "`inputs`"), ("add", (1.0,), "a float")]
)
def test_what_has_another_form_is_named(op: Any, inputs: Any, says: str) -> None:
    with pytest.raises(ProtocolError, match=says):
        recorded(Value(1.0, op, inputs))


def test_a_record_of_any_depth_is_read() -> None:
    value = Value(1.0)
    for _ in range(6_000):
        value = Value(1.0, "exp", (value,))
    assert len(recorded(value)) == len(lab_graph(value)) == 6_001


# --------------------------------------------------------------------------------------------------------------- graph


def small_network(mine: Framework) -> tuple[Any, list[Any], list[np.ndarray]]:
    random = np.random.default_rng(2)
    arrays = [random.normal(size=shape) for shape in ((3, 2), (2,), (2, 1))]
    w1, b1, w2 = leaves = [mine.tensor(one) for one in arrays]
    return ((random.normal(size=(4, 3)) @ w1 + b1).relu() @ w2 / 3.0).sum(), leaves, arrays


@pytest.fixture
def network() -> Iterator[tuple[Framework, Any, list[Any], list[np.ndarray], Any]]:
    mine = answers.my_framework()
    output, leaves, arrays = small_network(mine)
    yield (
        mine,
        output,
        leaves,
        arrays,
        lab_graph(output, mine.ops, **dict(zip(("w1", "b1", "w2"), leaves, strict=True))),
    )


def test_the_labs_sweep_over_own_rules_gives_what_the_own_sweep_gives(network: Any) -> None:
    _mine, output, leaves, arrays, graph = network
    output.backward()
    value, gradients = ad.value_and_grad(graph, argnums=(0, 1, 2))(*arrays)
    assert np.allclose(value, output.data, rtol=1e-14)
    for leaf, gradient in zip(leaves, gradients, strict=True):
        assert leaf.grad.shape == gradient.shape and np.allclose(leaf.grad, gradient, rtol=1e-12)


def test_forward_and_backward_of_own_rules_run_on_real_workers(network: Any) -> None:
    _mine, output, leaves, arrays, graph = network
    output.backward()
    joint = ad.record(ad.value_and_grad(lambda w1, b1, w2: graph(w1, b1, w2), argnums=(0, 1, 2)), *arrays)
    assert {node.label for node in joint if node.phase == "backward"} >= {"my_matmul_gradient", "my_relu_gradient"}
    found, timeline = schedule.run(
        schedule.from_graph(joint), dict(zip(("w1", "b1", "w2"), arrays, strict=True)), workers=2
    )
    assert timeline.faults() == []
    for leaf, gradient in zip(leaves, list(found.values())[1:], strict=True):
        assert np.allclose(leaf.grad, gradient, rtol=1e-12)


def test_a_graph_of_own_ops_calls_the_own_functions() -> None:
    called: list[str] = []

    def forward(x: Any) -> Any:
        called.append("forward")
        return 2 * x

    def rule(g: Any, out: Any, x: Any) -> Any:
        called.append("rule")
        return 2 * g

    x = Value(3.0)
    graph = lab_graph(Value(6.0, "twice", (x,)), {"twice": OpRules(forward, (rule,), lambda shape: shape)}, x=x)
    assert float(ad.grad(graph)(5.0)) == 2.0 and called == ["forward", "rule"]


def test_own_ops_do_not_stay_in_the_labs_registry(network: Any) -> None:
    assert not [name for name in ad.registry if name.startswith("my_")]


def test_views_show_an_own_graph(network: Any) -> None:
    mine, output, _leaves, arrays, graph = network
    assert "my_matmul" in str(aw.GraphView(graph)) and "my_relu" in str(aw.TopologicalOrderView(graph, "kahn"))
    assert "my_relu" in str(aw.GradientFlowView(lambda w1, b1, w2: graph(w1, b1, w2), *arrays))
    plan = lab_timeline(output, mine.plan(output, lambda node: 1.0, 2), lambda node: 1.0, 2)
    assert "matmul" in str(aw.TimelineView(plan, schedule.simulate(plan.tasks, 2, "critical_path")))


def test_an_op_that_nobody_knows_is_named() -> None:
    one = Value(1.0, "frobnicate", (Value(2.0),))
    with pytest.raises(ProtocolError, match="frobnicate"):
        lab_graph(one)
    with pytest.raises(ProtocolError, match="frobnicate"):
        lab_graph(one, {})
    with pytest.raises(ProtocolError, match="takes 2 operands"):
        lab_graph(Value(1.0, "add", (Value(2.0),)))


# ---------------------------------------------------------------------------------------------------------------- plans


def test_the_validator_reads_an_own_plan() -> None:
    *_, output = probes.nodes_of([[], [0], [0], [1, 2]])
    good = plan_nodes(output, lambda node: 1.0, 2)
    assert lab_timeline(output, good, lambda node: 1.0, 2).faults() == []
    assert "never ran" in lab_timeline(output, good[:-1], lambda node: 1.0, 2).faults()[0]
    early = [(node, worker, 0.0) for node, worker, _begin in good]
    assert lab_timeline(output, early, lambda node: 1.0, 2).faults()
    with pytest.raises(ProtocolError, match="something else"):
        lab_timeline(output, [*good, (Value(1.0), 0, 0.0)], lambda node: 1.0, 2)


@pytest.mark.parametrize("seed", range(5))
def test_every_list_schedule_is_accepted_and_none_with_a_pause(seed: int) -> None:
    random = np.random.default_rng(seed)
    graph = [[], [], *(random.integers(0, n, size=2).tolist() for n in range(2, 12))]
    costs = random.integers(1, 9, size=12).tolist()
    places = probes.planned(plan_nodes, graph, costs, 2)
    assert plan_fault(places, graph, costs, 2) == ""
    later = [(number, worker, begin + 1.0) for number, worker, begin in places]
    assert plan_fault(later, graph, costs, 2) == "idle"
    alone = probes.planned(one_after_the_other, graph, costs, 2)
    assert (plan_fault(alone, graph, costs, 2) == "") == (len({begin for *_, begin in places}) == len(places))


# -------------------------------------------------------------------------------------------------- the student's own code


def notebook(**replaced: str) -> dict[str, Any]:
    """The names of a notebook in which all five cells have run, some of them with other text."""
    names = {
        **LESSON_NAMES,
        "Framework": Framework,
        "OpRules": OpRules,
        "partial": partial,
        "inspect": inspect,
        "difflib": difflib,
    }
    for exercise in EXERCISES:
        exec(compile(replaced.get(exercise.name, exercise.solved), "<cell>", "exec", dont_inherit=True), names)
    return names


@pytest.mark.slow
@pytest.mark.usefixtures("own_progress")
def test_a_later_part_runs_on_the_students_own_earlier_part() -> None:
    plus = EVERY_EXERCISE[SCALAR].solved.replace("gradients[one] + part if one in gradients else part", "part")
    assert plus != EVERY_EXERCISE[SCALAR].solved
    assert check(notebook()["array_engine"]).right
    assert check(notebook(scalar_engine=plus)["array_engine"]).misconception == "last path wins"


@pytest.mark.slow
@pytest.mark.usefixtures("own_progress")
def test_a_part_that_is_missing_is_not_attempted_rather_than_replaced() -> None:
    found = check(notebook(new_registry=EVERY_EXERCISE["new_registry"].starter)["my_framework"])
    assert found.verdict == "not attempted"


def test_yours_waits_for_what_is_not_written_and_hides_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(EVERY_EXERCISE[SCALAR].starter, names)
    assert yours(names[SCALAR]) is None and "write scalar_engine here" in capsys.readouterr().out
    assert yours(abs, -3) == 3
    with pytest.raises(ZeroDivisionError):
        yours(divmod, 1, 0)


# ------------------------------------------------------------------------------------------------------- hostile engines


def loops() -> type:
    class Loops(Engine):
        def backward(self) -> None:
            while True:
                pass

    return Loops


def loops_in_its_record() -> type:
    class Endless(Engine):
        @property
        def inputs(self) -> Any:
            return (Endless(1.0, "exp"),)

        @inputs.setter
        def inputs(self, value: Any) -> None: ...

        def backward(self) -> None: ...

    return Endless


def recurses() -> type:
    class Recurses(Engine):
        def __add__(self, other: Any) -> Any:
            return self + other

    return Recurses


def raises() -> type:
    class Raises(Engine):
        def backward(self) -> None:
            raise SystemExit("enough")

    return Raises


def ends_python() -> type:
    os._exit(3)


def floods() -> type:
    class Floods(Engine):
        def __add__(self, other: Any) -> Any:
            print("flood" * 100_000)
            return super().__add__(other)

    return Floods


def another_type() -> type:
    class Texts(Engine):
        def backward(self) -> None:
            self.inputs[0].grad = "six"

    return Texts


def grows() -> type:
    class Grows(Engine):
        def backward(self) -> None:
            self.inputs[0].grad = np.zeros(3_000_000)

    return Grows


def equals_everything() -> type:
    class Equal(float):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = float.__hash__

    class Flatters(Engine):
        def backward(self) -> None:
            for one in self.inputs:
                one.grad = Equal(0.5)

    return Flatters


def patches() -> type:
    """Makes every comparison in its process true, and every probe answer nothing."""
    np.allclose = np.array_equal = lambda *_args, **_options: True  # type: ignore[assignment]
    probes.gradients_by = lambda *_arguments: (0.0, (0.0, 0.0), [])
    return Engine


HOSTILE = [
    loops,
    loops_in_its_record,
    recurses,
    raises,
    ends_python,
    floods,
    another_type,
    grows,
    equals_everything,
    patches,
]


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.usefixtures("own_progress")
@pytest.mark.parametrize("engine", HOSTILE, ids=lambda one: one.__name__)
def test_a_hostile_engine_is_an_outcome(engine: Callable[[], type]) -> None:
    found = examine(replace(EVERY_EXERCISE[SCALAR], seconds=3.0), engine, 0)
    assert found.verdict in ("wrong", "could not be checked") or engine is floods
    assert len(repr(found)) < 5000
    assert np.allclose([1.0], [2.0]) is False and probes.swept(scalar_engine, lambda x: x * x, (3.0,))[1] == (6.0,)
