"""The small models that lessons train: a perceptron, a convolutional network, a Transformer."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from .. import ops
from ..bindings import device_of
from .layer import Layer, Seed
from .single import Attention, Conv2d, Embedding, LayerNorm, Linear, places


class MLP(Layer):
    """A multi-layer perceptron: linear layers ``layer1``, ``layer2``, … with an activation after each but the last.

    >>> model = MLP(64, 32, 10, seed=0)
    >>> model
    <MLP with 2410 parameters>
    >>> list(model.parameters())
    ['layer1', 'layer2']
    """

    def __init__(self, *widths: int, activation: Callable[[Any], Any] = ops.relu, seed: Seed) -> None:
        if len(widths) < 2:
            raise ValueError(
                f"MLP: expected at least the widths of input and output, got {widths}; write MLP(64, 32, 10)"
            )
        random = np.random.default_rng(seed)
        sizes = enumerate(pairwise(widths), 1)
        super().__init__(**{f"layer{number}": Linear(*pair, seed=random) for number, pair in sizes})
        self.activation = activation

    def forward(self, x: Any) -> Any:
        """One layer after the other."""
        *before, last = self.parts.values()
        hidden = x
        for layer in before:
            hidden = self.activation(layer(hidden))
        return last(hidden)


class CNN(Layer):
    """A small convolutional network: twice convolution, relu and pooling, then a linear layer.

    Shapes: x (images, 1, size, size), the result (images, classes): logits. The size must be a multiple of 4.

    >>> CNN(size=8, classes=10, seed=0)(np.ones((2, 1, 8, 8), np.float32)).shape
    (2, 10)
    """

    conv1: Conv2d
    conv2: Conv2d
    head: Linear

    def __init__(self, size: int, classes: int, *, channels: tuple[int, int] = (8, 16), seed: Seed) -> None:
        if size % 4:
            raise ValueError(f"CNN: the size is halved twice, so it must be a multiple of 4, got {size}")
        random = np.random.default_rng(seed)
        super().__init__(
            conv1=Conv2d(1, channels[0], 3, padding=1, seed=random),
            conv2=Conv2d(*channels, 3, padding=1, seed=random),
            head=Linear(channels[1] * (size // 4) ** 2, classes, seed=random),
        )

    def forward(self, x: Any) -> Any:
        """Find small patterns, then patterns of them, then classes."""
        hidden = x
        for conv in (self.conv1, self.conv2):
            hidden = ops.max_pool2d(ops.relu(conv(hidden)), 2)
        return self.head(hidden.reshape((-1, math.prod(hidden.shape[1:]))))  # so that a graph holds for any batch


def _gelu(x: Any) -> Any:
    return ops.gelu(x, approximate="tanh")  # as in GPT-2; the exact form takes 50 ns a number on the CPU


class TransformerBlock(Layer):
    """x + attention(norm(x)), and then x + mlp(norm(x)): normalised first, "pre-norm" (Xiong et al., 2020).

    Shapes: x (batch, tokens, width), the result as x.

    >>> sorted(TransformerBlock(8, heads=2, seed=0).parameters())
    ['attn', 'attn_norm', 'mlp', 'mlp_norm']
    """

    attn_norm: LayerNorm
    attn: Attention
    mlp_norm: LayerNorm
    mlp: MLP

    def __init__(self, width: int, heads: int, *, causal: bool = True, seed: Seed) -> None:
        random = np.random.default_rng(seed)
        super().__init__(
            attn_norm=LayerNorm(width),
            attn=Attention(width, heads, causal=causal, seed=random),
            mlp_norm=LayerNorm(width),
            mlp=MLP(width, 4 * width, width, activation=_gelu, seed=random),
        )

    def forward(self, x: Any) -> Any:
        """Both halves add to x, so that gradients have a short way back."""
        attended = x + self.attn(self.attn_norm(x))
        return attended + self.mlp(self.mlp_norm(attended))


class TransformerLM(Layer):
    """A language model: for each token of a text, how likely each token is to come next.

    Tokens and their places become vectors, ``block1``, ``block2``, … work on them, a linear layer gives the logits. Its weights
    start small, so that at first all tokens are almost equally likely and the loss is about log(vocabulary).

    Shapes: tokens (batch, tokens), whole numbers from 0, at most ``context`` tokens; logits (batch, tokens, vocabulary).

    >>> model = TransformerLM(50, context=16, width=8, heads=2, blocks=1, seed=0)
    >>> model(np.array([[3, 1, 4, 1, 5]])).shape
    (1, 5, 50)
    """

    token: Embedding
    place: Embedding
    norm: LayerNorm
    head: Linear

    def __init__(
        self, vocabulary: int, *, context: int = 32, width: int = 32, heads: int = 4, blocks: int = 2, seed: Seed
    ) -> None:
        random = np.random.default_rng(seed)
        self.context = context
        self.block_names = tuple(f"block{number}" for number in range(1, blocks + 1))
        super().__init__(
            token=Embedding(vocabulary, width, seed=random),
            place=Embedding(context, width, seed=random),
            **{name: TransformerBlock(width, heads, seed=random) for name in self.block_names},
            norm=LayerNorm(width),
            head=Linear(width, vocabulary, deviation=0.02, seed=random),
        )

    def forward(self, x: Any) -> Any:
        """Vectors of tokens and places, through every block, to logits."""
        count = x.shape[-1]
        if count > self.context:
            raise ValueError(
                f"TransformerLM: got {count} tokens, but its context is {self.context}; cut the text or raise context"
            )
        hidden = self.token(x) + self.place(places(count, device_of(x)))
        for name in self.block_names:
            hidden = getattr(self, name)(hidden)
        return self.head(self.norm(hidden))


class ResidualBlock(Layer):
    """x + deep(x) + wide(x): two branches side by side that both add to x, as in GPT-J.

    Shapes: x (…, width), the result as x.

    >>> list(ResidualBlock(8, seed=0).parameters())
    ['deep', 'wide']
    """

    deep: MLP
    wide: Linear

    def __init__(self, width: int, *, seed: Seed) -> None:
        random = np.random.default_rng(seed)
        super().__init__(
            deep=MLP(width, width, width, activation=ops.tanh, seed=random), wide=Linear(width, width, seed=random)
        )

    def forward(self, x: Any) -> Any:
        """Both branches first, then the sum: x has three consumers, at different distances from the loss."""
        deep, wide = self.deep(x), ops.tanh(self.wide(x))
        return x + deep + wide


class ResidualMLP(Layer):
    """A small residual network: a linear layer to ``width``, blocks ``block1``, ``block2``, …, and a linear layer to classes.

    >>> ResidualMLP(64, 16, 10, blocks=2, seed=0)
    <ResidualMLP with 2842 parameters>
    """

    stem: Linear
    head: Linear

    def __init__(self, inputs: int, width: int, classes: int, *, blocks: int = 2, seed: Seed) -> None:
        random = np.random.default_rng(seed)
        self.block_names = tuple(f"block{number}" for number in range(1, blocks + 1))
        super().__init__(
            stem=Linear(inputs, width, seed=random),
            **{name: ResidualBlock(width, seed=random) for name in self.block_names},
            head=Linear(width, classes, seed=random),
        )

    def forward(self, x: Any) -> Any:
        """The stem, every block, the head."""
        hidden = self.stem(x)
        for name in self.block_names:
            hidden = getattr(self, name)(hidden)
        return self.head(hidden)
