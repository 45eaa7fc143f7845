"""Layers and models: shapes, names, gradients against differences, and the same numbers in every reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.layers import (
    CNN,
    MLP,
    Attention,
    Conv2d,
    Embedding,
    Layer,
    LayerNorm,
    Linear,
    ResidualBlock,
    ResidualMLP,
    TransformerBlock,
    TransformerLM,
)

RANDOM = np.random.default_rng(7)


def normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


TOKENS = np.array([[3, 1, 4, 1], [5, 0, 2, 5]])
# how each is made from a seed, an input, and the shape of the result
Case = tuple[Callable[..., Layer], Any, tuple[int, ...]]
CASES: dict[str, Case] = {
    "linear": (lambda seed: Linear(3, 5, seed=seed), normal(2, 4, 3), (2, 4, 5)),
    "conv2d": (lambda seed: Conv2d(2, 3, 3, padding=1, seed=seed), normal(2, 2, 5, 4), (2, 3, 5, 4)),
    "conv2d with stride": (lambda seed: Conv2d(1, 2, 2, stride=2, seed=seed), normal(1, 1, 4, 6), (1, 2, 2, 3)),
    "layer norm": (lambda seed: LayerNorm(6), normal(2, 3, 6), (2, 3, 6)),
    "embedding": (lambda seed: Embedding(6, 4, seed=seed), TOKENS, (2, 4, 4)),
    "causal attention": (lambda seed: Attention(6, 2, seed=seed), normal(2, 4, 6), (2, 4, 6)),
    "attention to all": (lambda seed: Attention(6, 3, causal=False, seed=seed), normal(2, 4, 6), (2, 4, 6)),
    "mlp": (lambda seed: MLP(3, 8, 5, 2, activation=ops.tanh, seed=seed), normal(4, 3), (4, 2)),
    "cnn": (lambda seed: CNN(8, 4, channels=(2, 3), seed=seed), normal(2, 1, 8, 8), (2, 4)),
    "residual block": (lambda seed: ResidualBlock(3, seed=seed), normal(4, 3), (4, 3)),
    "residual mlp": (lambda seed: ResidualMLP(3, 4, 2, blocks=2, seed=seed), normal(5, 3), (5, 2)),
    "transformer block": (lambda seed: TransformerBlock(4, 2, seed=seed), normal(2, 3, 4), (2, 3, 4)),
    "transformer": (
        lambda seed: TransformerLM(6, context=5, width=4, heads=2, blocks=2, seed=seed), TOKENS, (2, 4, 6),
    ),
}  # fmt: skip
EACH = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))


def loss_of(layer: Layer) -> Callable[..., Any]:
    """A number that depends on every result of the layer, differently."""

    def loss(parameters: Any, x: Any) -> Any:
        out = layer.with_parameters(parameters)(x)
        with ad.name_scope("loss"):
            weights = np.cos(np.arange(np.prod(out.shape))).reshape(out.shape).astype(out.dtype)
            return ops.sum(weights * out)

    return loss


def leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    ad.map_leaves(found.append, tree)
    return found


def paths(tree: Any, before: str = "") -> list[str]:
    """Where each parameter is, as block1.attn.query.weight."""
    if not isinstance(tree, dict):
        return [before]
    return [path for key, part in tree.items() for path in paths(part, f"{before}.{key}" if before else key)]


# --------------------------------------------------------------------------------------------------- what they compute


@EACH
def test_the_result_has_the_documented_shape_and_float32_is_kept(case: Case) -> None:
    make, x, shape = case
    out = make(0)(x)
    assert out.shape == shape and out.dtype == np.float32
    out.sum().backward()
    assert all(p.dtype == p.grad.dtype == np.float32 for p in leaves(make(0).parameters()) if p.grad is not None)


@EACH
def test_gradients_equal_central_differences_in_every_parameter_and_in_the_input(case: Case) -> None:
    make, x, _ = case
    layer, random = make(0), np.random.default_rng(1)
    parameters = ad.map_leaves(lambda p: p + 0.3 * random.standard_normal(p.shape), layer.values())  # float64, no zeros
    x = x.astype(np.float64) if x.dtype.kind == "f" else x
    report = ad.gradcheck(lambda parameters, x: layer.with_parameters(parameters)(x), (parameters, x), entries=3)
    assert report.ok, report


@EACH
def test_forward_mode_reverse_mode_and_a_difference_agree_along_a_direction(case: Case) -> None:
    make, x, _ = case
    layer, random = make(0), np.random.default_rng(1)
    parameters = ad.map_leaves(lambda p: p + 0.3 * random.standard_normal(p.shape), layer.values())
    direction = ad.map_leaves(lambda p: random.standard_normal(p.shape), parameters)

    def loss(parameters: Any) -> Any:
        return loss_of(layer)(parameters, x)

    def moved(step: float) -> float:
        return float(loss(ad.map_leaves(lambda p, d: p + step * d, parameters, direction)))

    _, derivative = ad.jvp(loss, (parameters,), (direction,))
    gradients = ad.map_leaves(lambda g, d: (g * d).sum(), ad.grad(loss)(parameters), direction)
    assert float(derivative) == pytest.approx(sum(leaves(gradients)), rel=1e-10)
    assert float(derivative) == pytest.approx((moved(1e-6) - moved(-1e-6)) / 2e-6, rel=1e-6, abs=1e-7)


@EACH
def test_arrays_tensors_and_a_recorded_graph_give_the_same_loss_and_gradients(case: Case) -> None:
    make, x, _ = case
    layer = make(0)
    loss = loss_of(layer)
    value, gradients = ad.value_and_grad(loss)(layer.values(), x)

    by_tensors = loss(layer.parameters(), x)
    by_tensors.backward()
    graph = ad.record(ad.value_and_grad(loss), layer.values(), x)
    by_graph, gradients_by_graph = graph(*leaves(layer.values()), x)

    assert by_tensors.item() == float(by_graph) == float(value)
    for parameter, g, again in zip(
        leaves(layer.parameters()), leaves(gradients), leaves(gradients_by_graph), strict=True
    ):
        np.testing.assert_array_equal(parameter.grad.numpy(), g)
        np.testing.assert_array_equal(again, g)


@pytest.mark.parametrize("causal", [True, False])
def test_only_causal_attention_is_blind_to_later_tokens(causal: bool) -> None:
    layer, x = Attention(6, 2, causal=causal, seed=0), normal(1, 4, 6)
    changed = x.copy()
    changed[:, 2] += 1.0
    moved = np.abs(layer(changed).numpy() - layer(x).numpy()).max(axis=(0, 2)) > 0
    assert moved.tolist() == ([False, False, True, True] if causal else [True] * 4)


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_attention_is_the_formula_head_by_head(heads: int) -> None:
    layer, x = Attention(4, heads, causal=False, seed=0), normal(1, 3, 4)
    p, width = layer.values(), 4 // heads
    query, key, value = (x[0] @ p[name]["weight"] + p[name]["bias"] for name in ("query", "key", "value"))
    mixed = []
    for head in range(heads):
        own = slice(head * width, (head + 1) * width)
        weights = np.exp(query[:, own] @ key[:, own].T / np.sqrt(width))
        mixed.append(weights / weights.sum(axis=1, keepdims=True) @ value[:, own])
    expected = np.concatenate(mixed, axis=1) @ p["project"]["weight"] + p["project"]["bias"]
    np.testing.assert_allclose(layer(x).numpy()[0], expected, rtol=1e-4, atol=1e-5)


def test_a_perceptron_is_the_formula() -> None:
    layer, x = MLP(3, 8, 5, 2, seed=0), normal(4, 3)
    w1, w2, w3 = (layer.values()[f"layer{number}"]["weight"] for number in (1, 2, 3))
    expected = np.maximum(np.maximum(x @ w1, 0) @ w2, 0) @ w3  # biases start at 0
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_block_whose_halves_give_nothing_is_the_identity() -> None:
    block, x = TransformerBlock(4, 2, seed=0), normal(1, 3, 4)
    values = block.values()
    values["attn"]["project"] = ad.map_leaves(np.zeros_like, values["attn"]["project"])
    values["mlp"]["layer2"] = ad.map_leaves(np.zeros_like, values["mlp"]["layer2"])
    np.testing.assert_array_equal(block.with_parameters(values)(x), x)


def test_a_new_language_model_finds_all_tokens_about_equally_likely() -> None:
    model = TransformerLM(50, context=8, seed=0)
    x = np.arange(32).reshape(4, 8)
    assert ops.cross_entropy(model(x), x + 1).item() == pytest.approx(np.log(50), rel=0.02)


# ------------------------------------------------------------------------------------------------------ names and parts


@EACH
def test_the_same_names_lead_to_a_parameter_in_the_dict_in_its_tensor_and_in_the_graph(case: Case) -> None:
    make, x, _ = case
    layer = make(0)
    where = paths(layer.parameters())
    assert [parameter.name for parameter in leaves(layer.parameters())] == where

    graph = ad.record(loss_of(layer), layer.values(), x)
    for place, path in zip(graph.inputs, where, strict=False):
        readers = {graph.nodes[reader].scope for reader in graph.consumers[place]}
        assert readers == {path.rpartition(".")[0]}


def test_a_transformers_scopes_nest_as_its_layers_do() -> None:
    make, x, _ = CASES["transformer"]
    scopes = {node.scope for node in ad.record(loss_of(make(0)), make(0).values(), x)}
    assert {"token", "block1", "block1.attn", "block1.attn.query", "block2.mlp.layer1", "norm", "head"} <= scopes


@EACH
def test_the_same_seed_gives_the_same_parameters_and_another_seed_others(case: Case) -> None:
    make, _, _ = case
    first, again, other = (leaves(make(seed).values()) for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    random_ones = [(a, b) for a, b in zip(first, other, strict=True) if np.unique(a).size > 1]
    assert not any(np.array_equal(a, b) for a, b in random_ones)


@pytest.mark.parametrize("name", ["mlp", "transformer"])
def test_no_two_random_parameters_start_alike(name: str) -> None:
    drawn = [value.ravel()[0] for value in leaves(CASES[name][0](0).values()) if np.unique(value).size > 1]
    assert len(set(drawn)) == len(drawn)


@EACH
def test_other_parameters_make_another_layer_and_leave_the_first_as_it_was(case: Case) -> None:
    make, x, _ = case
    layer = make(0)
    before = [value.copy() for value in leaves(layer.values())]
    other = layer.with_parameters(make(1).values())
    np.testing.assert_array_equal(other(x), make(1)(x).numpy())
    assert all(np.array_equal(a, b) for a, b in zip(before, leaves(layer.values()), strict=True))


def test_values_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Linear(2, 2, seed=0).values()["weight"][0] = 1.0


def test_a_layer_may_be_a_part_twice_and_each_place_has_parameters_of_its_own() -> None:
    one = Linear(2, 2, seed=0)
    model = Layer(first=one, second=one)
    assert paths(model.parameters()) == ["first.weight", "first.bias", "second.weight", "second.bias"]
    assert len({id(parameter) for parameter in leaves(model.parameters())}) == 4


# --------------------------------------------------------------------------------------------------------------- errors


def test_parameters_that_do_not_fit_are_refused_by_name() -> None:
    model = MLP(2, 3, 1, seed=0)
    values = model.values()
    with pytest.raises(ValueError, match=r"MLP: expected parameters named \['layer1', 'layer2'\], got \['layer1'\]"):
        model.with_parameters({"layer1": values["layer1"]})
    with pytest.raises(ValueError, match=r"Linear layer1: weight must have shape \(2, 3\), got \(9,\)"):
        model.with_parameters({**values, "layer1": {**values["layer1"], "weight": np.zeros(9)}})
    with pytest.raises(ValueError, match=r"Linear layer2: .* got a list"):
        model.with_parameters({**values, "layer2": [1.0]})


def test_sizes_that_cannot_work_are_refused_when_the_layer_is_made_or_called() -> None:
    with pytest.raises(ValueError, match="width must be a multiple of heads, got width 6 and heads 4"):
        Attention(6, 4, seed=0)
    with pytest.raises(ValueError, match="multiple of 4, got 10"):
        CNN(10, 2, seed=0)
    with pytest.raises(ValueError, match="at least the widths of input and output"):
        MLP(3, seed=0)
    with pytest.raises(ValueError, match="got 9 tokens, but its context is 8"):
        TransformerLM(5, context=8, seed=0)(np.zeros((1, 9), np.int64))
    with pytest.raises(ValueError, match="Layer: 'parts' means something else"):
        Layer(parts=np.ones(1))
    with pytest.raises(NotImplementedError, match="define forward"):
        Layer()(1.0)
