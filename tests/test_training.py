"""Training for real: models learn digits, spirals and text far beyond chance, in both styles and in float32 throughout."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import datasets, ops
from autodiff_lab.layers import CNN, MLP, Layer, TransformerLM
from autodiff_lab.optimizers import SGD, Adam, Optimizer


def train_by_backward(model: Layer, rule: Any, batches: Iterable[Any]) -> None:
    optimizer = Optimizer(model.parameters(), rule)
    for x, y in batches:
        optimizer.zero_grad()
        ops.cross_entropy(model(x), y).backward()
        optimizer.step()


def train_by_value_and_grad(model: Layer, rule: Any, batches: Iterable[Any]) -> Layer:
    def loss_of(parameters: Any, x: Any, y: Any) -> Any:
        return ops.cross_entropy(model.with_parameters(parameters)(x), y)

    step, parameters = ad.value_and_grad(loss_of), model.values()
    state = rule.initial_state(parameters)
    for x, y in batches:
        _, gradients = step(parameters, x, y)
        parameters, state = rule.update(parameters, gradients, state)
    return model.with_parameters(parameters)


def epochs(count: int, x: Any, y: Any) -> Iterable[Any]:
    return (batch for seed in range(count) for batch in datasets.batches(x, y, size=32, seed=seed))


def logits_of(model: Layer, x: Any) -> Any:
    with ad.no_grad():
        logits = model(x)
    return logits.numpy() if isinstance(logits, ad.Tensor) else logits


def accuracy(model: Layer, x: Any, y: Any) -> float:
    return float((logits_of(model, x).argmax(axis=-1) == y).mean())


def assert_float32(model: Layer) -> None:
    ad.map_leaves(lambda value: np.testing.assert_equal(value.dtype, np.float32), model.values())


def test_a_perceptron_learns_digits_that_it_has_not_seen() -> None:
    images, labels = datasets.digits()
    (x, y), (x_test, y_test) = datasets.split(images.reshape(-1, 64), labels, seed=0)
    model = MLP(64, 32, 10, seed=0)
    assert accuracy(model, x_test, y_test) < 0.3
    train_by_backward(model, SGD(0.05, momentum=0.9), epochs(10, x, y))
    assert accuracy(model, x_test, y_test) > 0.94
    assert_float32(model)


def test_a_convolutional_network_learns_digits_that_it_has_not_seen() -> None:
    images, labels = datasets.digits()
    (x, y), (x_test, y_test) = datasets.split(images[:, None], labels, seed=0)
    model = CNN(8, 10, seed=0)
    assert accuracy(model, x_test, y_test) < 0.3
    trained = train_by_value_and_grad(model, Adam(0.01), epochs(6, x, y))
    assert accuracy(trained, x_test, y_test) > 0.94
    assert accuracy(model, x_test, y_test) < 0.3  # the functional style leaves the first model as it was
    assert_float32(trained)


def test_hidden_layers_learn_spirals_that_no_line_separates() -> None:
    x, y = datasets.spirals(300, arms=3, seed=0)
    x_test, y_test = datasets.spirals(300, arms=3, seed=1)
    line, network = MLP(2, 3, seed=0), MLP(2, 32, 32, 3, seed=0)
    for model in (line, network):
        train_by_backward(model, Adam(0.01), epochs(60, x, y))
    assert accuracy(line, x_test, y_test) < 0.5 < 0.9 < accuracy(network, x_test, y_test)


@pytest.mark.slow
def test_a_transformer_learns_to_guess_the_next_character_from_context() -> None:
    text = datasets.text()
    vocabulary = datasets.Vocabulary.of(text)
    tokens = vocabulary.encode(text)
    train, held_out = np.split(tokens, [len(tokens) * 9 // 10])
    ((x, y),) = datasets.text_batches(held_out, length=32, size=64, count=1, seed=0)
    model = TransformerLM(vocabulary.size, context=32, width=32, heads=4, blocks=1, seed=0)

    def perplexity() -> float:
        return math.exp(float(ops.cross_entropy(logits_of(model, x), y)))

    chance = vocabulary.size
    counts = np.bincount(train, minlength=chance) + 1  # the best guess that knows no context
    without_context = math.exp(-np.log(counts / counts.sum())[y].mean())
    before = perplexity()
    train_by_backward(model, Adam(0.01), datasets.text_batches(train, length=32, size=16, count=150, seed=0))
    after = perplexity()
    assert after < 0.75 * without_context < before
    assert before == pytest.approx(chance, rel=0.1) and after < chance / 4
    assert_float32(model)
