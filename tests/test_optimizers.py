"""Optimizers against steps worked out by hand, in both forms, and recorded as a graph."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.layers import MLP
from autodiff_lab.optimizers import SGD, Adam, Optimizer

RULES = {
    "sgd": SGD(learning_rate=0.1),
    "momentum": SGD(learning_rate=0.1, momentum=0.9),
    "adam": Adam(learning_rate=0.1),
}
EACH_RULE = pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))


def leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    ad.map_leaves(found.append, tree)
    return found


def run(rule: Any, parameter: Any, gradients: list[Any]) -> tuple[Any, Any]:
    parameters, state = {"w": parameter}, rule.initial_state({"w": parameter})
    for gradient in gradients:
        parameters, state = rule.update(parameters, {"w": gradient}, state)
    return parameters["w"], state


# -------------------------------------------------------------------------------------------------------- the formulas


def test_sgd_on_a_parabola_shrinks_by_one_factor_a_step() -> None:
    w, rate = np.array([3.0, -2.0]), 0.1
    parameters, state = {"w": w}, {}
    for _ in range(5):
        parameters, state = SGD(rate).update(parameters, ad.grad(lambda p: (p["w"] ** 2).sum())(parameters), state)
    np.testing.assert_allclose(parameters["w"], w * (1 - 2 * rate) ** 5, rtol=1e-14)


def test_momentum_follows_its_closed_form_under_a_constant_gradient() -> None:
    mu, rate, steps = 0.75, 0.5, 6
    w, state = run(SGD(rate, momentum=mu), np.array(0.0), [np.array(1.0)] * steps)
    velocities = [(1 - mu**t) / (1 - mu) for t in range(1, steps + 1)]  # 1 + μ + … + μᵗ⁻¹
    assert float(state["velocity"]["w"]) == pytest.approx(velocities[-1], rel=1e-14)
    assert float(w) == pytest.approx(-rate * sum(velocities), rel=1e-14)


def test_adam_computes_the_steps_of_the_paper() -> None:
    rate, beta1, beta2, eps, gradients = 0.1, 0.9, 0.999, 1e-8, [0.5, -2.0, 1e-3, 4.0]
    p = m = v = 0.0
    for t, g in enumerate(gradients, 1):
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        p -= rate * (m / (1 - beta1**t)) / (math.sqrt(v / (1 - beta2**t)) + eps)
    w, state = run(Adam(rate, beta1, beta2, eps), np.array(0.0), [np.array(g) for g in gradients])
    assert float(w) == pytest.approx(p, rel=1e-12) and int(state["step"]) == 4


@pytest.mark.parametrize("beta1", [0.0, 0.9])
def test_adams_steps_have_the_size_of_the_learning_rate_whatever_the_gradients_scale(beta1: float) -> None:
    for scale in (1e-4, 1.0, 1e6):
        w, _ = run(Adam(0.01, beta1), np.array([0.0, 0.0]), [scale * np.array([1.0, -3.0])] * 10)
        np.testing.assert_allclose(w, [-0.1, 0.1], rtol=1e-3)


@EACH_RULE
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_dtype_of_each_parameter_is_kept(rule: Any, dtype: Any) -> None:
    parameters = {"a": np.ones(3, dtype), "b": np.ones((2, 2), np.float32), "scalar": np.ones((), dtype)}
    state = rule.initial_state(parameters)
    for _ in range(2):
        parameters, state = rule.update(parameters, ad.map_leaves(ops.ones_like, parameters), state)
    assert [p.dtype for p in leaves(parameters)] == [dtype, np.float32, dtype]
    assert all(s.dtype in (dtype, np.float32) for name, part in state.items() if name != "step" for s in leaves(part))


@EACH_RULE
def test_nothing_that_is_passed_in_changes(rule: Any) -> None:
    parameters, gradients = {"w": np.array([1.0, 2.0])}, {"w": np.array([3.0, 4.0])}
    state = rule.initial_state(parameters)
    before = [leaf.copy() for leaf in leaves((parameters, gradients, state))]
    rule.update(parameters, gradients, state)
    assert all(np.array_equal(a, b) for a, b in zip(before, leaves((parameters, gradients, state)), strict=True))


# ------------------------------------------------------------------------------------------------- both forms, and graphs

MODEL = MLP(3, 4, 2, activation=ops.tanh, seed=0)
X, Y = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32), np.array([0, 1, 1, 0, 1])


def loss_of(parameters: Any, x: Any, y: Any) -> Any:
    return ops.cross_entropy(MODEL.with_parameters(parameters)(x), y)


def training_step(rule: Any) -> Any:
    def step(parameters: Any, state: Any, x: Any, y: Any) -> Any:
        loss, gradients = ad.value_and_grad(loss_of)(parameters, x, y)
        return loss, *rule.update(parameters, gradients, state)

    return step


def trained(rule: Any, steps: int) -> Any:
    parameters = MODEL.values()
    state = rule.initial_state(parameters)
    for _ in range(steps):
        _, parameters, state = training_step(rule)(parameters, state, X, Y)
    return parameters


@EACH_RULE
def test_the_object_form_takes_the_same_steps_as_the_rule(rule: Any) -> None:
    model = MLP(3, 4, 2, activation=ops.tanh, seed=0)
    optimizer = Optimizer(model.parameters(), rule)
    for _ in range(3):
        optimizer.zero_grad()
        ops.cross_entropy(model(X), Y).backward()
        optimizer.step()
    for a, b in zip(leaves(model.values()), leaves(trained(rule, 3)), strict=True):
        np.testing.assert_array_equal(a, b)


@EACH_RULE
def test_a_recorded_training_step_run_again_and_again_trains_as_the_function_does(rule: Any) -> None:
    parameters = MODEL.values()
    state = rule.initial_state(parameters)
    graph = ad.record(training_step(rule), parameters, state, X, Y)
    for _ in range(3):
        _, parameters, state = graph(*leaves(parameters), *leaves(state), X, Y)
    for a, b in zip(leaves(parameters), leaves(trained(rule, 3)), strict=True):
        np.testing.assert_array_equal(a, b)


@EACH_RULE
def test_a_recorded_update_is_a_phase_of_its_own_in_the_scopes_of_the_layers(rule: Any) -> None:
    parameters = MODEL.values()
    graph = ad.record(training_step(rule), parameters, rule.initial_state(parameters), X, Y)
    update = [node for node in graph if node.phase == "update"]
    assert {node.scope for node in update} - {""} == {"layer1", "layer2"}
    assert [node.shape for node in update if node.name == "updated"] == [p.shape for p in leaves(parameters)]
    first = min(node.id for node in update)
    assert all(node.phase == "update" for node in graph.nodes[first:])
    assert not any(graph.nodes[source].phase == "update" for source, user in graph.edges if user < first)


def test_an_update_in_the_middle_leaves_the_phase_as_it_was() -> None:
    def f(w: Any) -> Any:
        updated, _ = SGD(0.1).update({"w": w}, {"w": w}, {})
        return updated["w"] * 2.0

    assert [node.phase for node in ad.record(f, np.ones(2)) if node.kind == "op"] == ["update", "update", "forward"]


def test_a_gradient_flows_through_an_update() -> None:
    """d/dη of (w − η · 2w)² is −4w² (1 − 2η): how to learn a learning rate."""

    def after_one_step(rate: Any) -> Any:
        w = np.array(3.0)
        updated, _ = SGD(1.0).update({"w": w}, {"w": rate * 2.0 * w}, {})
        return updated["w"] ** 2

    assert float(ad.grad(after_one_step)(0.1)) == pytest.approx(-4 * 9 * 0.8)


def test_tensors_in_any_nesting_are_trained() -> None:
    a, b = (ad.tensor(value, requires_grad=True) for value in (1.0, 2.0))
    optimizer = Optimizer([{"a": a}, (b,)], SGD(0.5))
    (a * a + b).backward()
    optimizer.step()
    assert (a.item(), b.item()) == (0.0, 1.5)
    optimizer.zero_grad()
    assert a.grad is None and b.grad is None


# --------------------------------------------------------------------------------------------------------------- errors


def test_a_parameter_without_gradient_is_named() -> None:
    model = MLP(3, 4, 2, seed=0)
    optimizer = Optimizer(model.parameters(), SGD())
    model.layer1(X).sum().backward()
    with pytest.raises(ValueError, match=r"no gradient has reached layer2\.weight, layer2\.bias; call backward"):
        optimizer.step()


def test_only_leaf_tensors_are_optimized() -> None:
    w = ad.tensor([1.0], requires_grad=True)
    for wrong in (np.ones(1), ad.tensor([1.0]), w * 2.0):
        with pytest.raises(TypeError, match=r"parameter w must be a Tensor made with requires_grad=True"):
            Optimizer({"w": wrong}, SGD())


@EACH_RULE
def test_gradients_that_nest_otherwise_are_refused(rule: Any) -> None:
    parameters = {"w": np.ones(1), "b": np.ones(1)}
    with pytest.raises(ValueError, match=r"nest like the parameters, w, b, but one nests like w;"):
        rule.update(parameters, {"w": np.ones(1)}, rule.initial_state(parameters))
    with pytest.raises(ValueError, match="no parameters"):
        rule.update({}, {}, rule.initial_state({}))


@pytest.mark.parametrize(("rule", "missing"), [(RULES["momentum"], "velocity"), (RULES["adam"], "step")])
def test_a_state_that_is_not_the_rules_own_is_refused(rule: Any, missing: str) -> None:
    for state in ({}, None, {"something": 1}):
        with pytest.raises(ValueError, match=f"the state has no '{missing}'; begin with initial_state"):
            rule.update({"w": np.ones(1)}, {"w": np.ones(1)}, state)


@EACH_RULE
def test_a_plain_number_is_a_parameter_too(rule: Any) -> None:
    updated, _ = rule.update({"w": 2.0}, {"w": 3.0}, rule.initial_state({"w": 2.0}))
    assert float(updated["w"]) < 2.0


def test_numbers_outside_their_range_are_refused() -> None:
    with pytest.raises(ValueError, match="SGD: learning_rate must be above 0, got 0"):
        SGD(0)
    with pytest.raises(ValueError, match=r"Adam: beta2 must be at least 0 and below 1, got 1\.0"):
        Adam(beta2=1.0)
