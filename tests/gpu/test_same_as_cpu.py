"""What a GPU computes is what the CPU computes, up to rounding: every op with its derivatives, graphs, and training."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops, schedule
from autodiff_lab.backend import asarray, device_of, to_numpy
from autodiff_lab.layers import CNN, MLP, Layer, TransformerLM
from autodiff_lab.optimizers import SGD, Adam, Optimizer
from autodiff_lab.trees import flatten, map_leaves
from tests.test_cuda_kernels import KERNELS, few_units_apart, grid
from tests.test_every_op import EVERY_CALL, applied, flowing, like


def moved(tree: Any, device: str) -> Any:
    """The same tree with every NumPy array on the device."""
    return map_leaves(lambda leaf: asarray(leaf, device=device) if isinstance(leaf, np.ndarray) else leaf, tree)


def same(found: Any, expected: Any, device: str, units: int = 64) -> None:
    """Assert that a result lies on the device and equals NumPy's: ``units`` in the last place of its largest number."""
    assert device_of(found) == device
    on_cpu = to_numpy(found)
    assert (on_cpu.shape, on_cpu.dtype) == (expected.shape, expected.dtype)
    if expected.dtype.kind != "f":
        assert np.array_equal(on_cpu, expected)
    elif expected.size:
        step = float(np.finfo(expected.dtype).eps) * units
        np.testing.assert_allclose(on_cpu, expected, rtol=step, atol=step * float(np.max(np.abs(expected))))


@EVERY_CALL
def test_every_op_and_its_derivatives_in_both_modes(
    op: Any, operands: tuple[Any, ...], attributes: dict[str, Any], gpu: str
) -> None:
    expected = applied(op, operands, attributes)
    same(applied(op, moved(operands, gpu), attributes), expected, attributes.get("device", gpu))
    places = flowing(op, operands)
    if not places:
        return

    def on(device: str) -> tuple[Any, ...]:
        """The gradients and the tangent, computed on a device."""
        given = moved(operands, device)

        def f(*values: Any) -> Any:
            chosen = dict(zip(places, values, strict=True))
            return applied(op, [chosen.get(place, operand) for place, operand in enumerate(given)], attributes)

        values = [operands[place] for place in places]
        tangents = moved(tuple(like(values, 2)), device)
        cotangent = moved(like([expected], 1)[0], attributes.get("device", device))
        primals = tuple(given[place] for place in places)
        return (*ad.vjp(f, *primals).pull(cotangent), ad.jvp(f, primals, tangents)[1])

    *gradients, tangent = zip(on(gpu), on("cpu"), strict=True)
    for found, wanted in gradients:
        same(found, wanted, gpu)
    same(*tangent, attributes.get("device", gpu))


@pytest.mark.parametrize(("name", "dtype"), [*itertools.product(KERNELS, ("float32", "float64"))])
def test_every_cuda_expression_at_the_edges(name: str, dtype: str, gpu: str) -> None:
    values = grid(KERNELS[name].op, dtype)
    with np.errstate(all="ignore"):
        expected = KERNELS[name].general(np, *values)
    few_units_apart(to_numpy(KERNELS[name].op.apply(moved(values, gpu), {})), expected, units=16)


# ---------------------------------------------------------------------------------------------------------------- training

BATCH = np.random.default_rng(0)
MODELS: dict[str, tuple[Layer, Any, Any]] = {
    "MLP": (MLP(6, 5, 3, seed=0), BATCH.standard_normal((4, 6), np.float32), np.array([0, 2, 1, 1])),
    "CNN": (CNN(8, 3, seed=0), BATCH.standard_normal((4, 1, 8, 8), np.float32), np.array([0, 2, 1, 1])),
    "TransformerLM": (
        TransformerLM(7, context=5, width=8, heads=2, blocks=1, seed=0),
        BATCH.integers(0, 7, (2, 5)),
        BATCH.integers(0, 7, (2, 5)),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_steps_of_training_by_value_and_grad(name: str, gpu: str) -> None:
    model, x, y = MODELS[name]

    def after_steps(device: str) -> tuple[Any, Any]:
        def loss_of(parameters: Any, x: Any, y: Any) -> Any:
            return ops.cross_entropy(model.with_parameters(parameters)(x), y)

        rule, parameters, losses = SGD(learning_rate=0.1, momentum=0.9), moved(model.values(), device), []
        state = rule.initial_state(parameters)
        for _ in range(3):
            loss, gradients = ad.value_and_grad(loss_of)(parameters, moved(x, device), moved(y, device))
            parameters, state = rule.update(parameters, gradients, state)
            losses.append(loss)
        return losses, parameters

    found, expected = flatten(after_steps(gpu))[0], flatten(after_steps("cpu"))[0]
    for one, other in zip(found, expected, strict=True):
        same(one, other, gpu, units=1024)


def test_a_step_of_training_by_backward(gpu: str) -> None:
    model, x, y = MODELS["MLP"]

    def after_step(device: str) -> list[Any]:
        leaves = map_leaves(lambda v: ad.tensor(v, device=device, requires_grad=True), model.values())
        optimizer = Optimizer(leaves, Adam(learning_rate=0.1))
        ops.cross_entropy(model.with_parameters(leaves)(moved(x, device)), moved(y, device)).backward()
        optimizer.step()
        return [leaf.data for leaf in flatten(leaves)[0]]

    for found, expected in zip(after_step(gpu), after_step("cpu"), strict=True):
        same(found, expected, gpu, units=1024)


def test_a_recorded_step_runs_where_its_arguments_lie(gpu: str) -> None:
    x = np.linspace(-2.0, 2.0, 12).reshape(3, 4)

    def loss(x: Any) -> Any:
        return ops.sum(ops.tanh(x) * ops.sigmoid(x))

    on_cpu, on_gpu = (ad.record(ad.value_and_grad(loss), moved(x, device)) for device in ("cpu", gpu))
    assert [node.label for node in on_gpu] == [node.label for node in on_cpu]
    for found, expected in zip(on_gpu(moved(x, gpu)), on_cpu(x), strict=True):
        same(found, expected, gpu)


@pytest.mark.parametrize("streams", [1, 2])
def test_a_schedule_on_streams_gives_the_numbers_of_one_worker_and_a_legal_timeline(gpu: str, streams: int) -> None:
    def loss(x: Any) -> Any:
        return ops.sum(ops.tanh(x) * ops.sigmoid(x))

    x = np.linspace(-2.0, 2.0, 12).reshape(3, 4)
    graph = ad.record(ad.value_and_grad(loss), moved(x, gpu))
    outputs, timeline = schedule.run(graph, [moved(x, gpu)], streams, "critical_path")
    for found, expected in zip(outputs, ad.value_and_grad(loss)(x), strict=True):
        same(found, expected, gpu)
    assert timeline.faults() == [] and timeline.submitted is not None


# --------------------------------------------------------------------------------------------------------------- transfers


def test_a_tensor_goes_to_the_gpu_and_comes_back_unchanged(gpu: str) -> None:
    x = np.random.default_rng(0).standard_normal((3, 4))
    there = ad.tensor(x).to(gpu)
    assert there.device == gpu and there.to(gpu) is there
    assert np.array_equal(there.to("cpu").numpy(), x) and np.array_equal(there.numpy(), x)
    assert (there * 2.0).device == gpu and (there[0, 0] * 2.0).item() == x[0, 0] * 2.0


def test_operands_on_two_devices_are_refused(gpu: str) -> None:
    there = ad.tensor(np.ones(3)).to(gpu)
    with pytest.raises(ad.OpError, match=rf"add.*cpu.*{gpu}|add.*{gpu}.*cpu"):
        there + ad.tensor(np.ones(3))
